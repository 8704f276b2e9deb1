"""Front matter and fences are exact: text is read back as written, and malformed text is named with its line."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.base.errors import BrokenFile
from harness.state import documents, files
from tests.helpers import nasty, put


def value(dice: random.Random, depth: int = 2) -> Any:
    """A value that front matter may hold."""
    kinds: list[Any] = [nasty(dice), dice.randrange(-9, 9999), dice.random() < 0.5, None, dice.random()]
    if depth:
        kinds.append([value(dice, depth - 1) for _ in range(dice.randrange(4))])
        kinds.append({nasty(dice): value(dice, depth - 1) for _ in range(dice.randrange(4))})
    return dice.choice(kinds)


def test_front_matter_and_body_come_back_as_they_were() -> None:
    """Keys in their order, the body byte for byte, whatever it contains."""
    dice = random.Random(5)
    for _ in range(300):
        meta = {nasty(dice) or "key": value(dice) for _ in range(dice.randrange(5))}
        body = dice.choice(["", "---\n", "{", "\n", " "]) + nasty(dice, 20)
        head = yaml.dump(meta, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, default_flow_style=False)
        got, rest = documents.front_matter(f"---\n{head}---\n{body}", "f")
        assert (got, list(got), rest) == (meta, list(meta), body)


@pytest.mark.parametrize("text", ["", "words\n", "--- \nx", "\n---\na: 1\n---\n", "----\n", "---"])
def test_a_file_without_front_matter_is_all_body(text: str) -> None:
    """Front matter starts with a line of three dashes in line 1."""
    assert documents.front_matter(text, "f") == ({}, text)


def test_empty_front_matter_is_none_said() -> None:
    """In every notation."""
    assert documents.front_matter("---\n---\nbody", "f") == ({}, "body")
    assert documents.front_matter("---\n\n---\nbody", "f") == ({}, "body")
    assert documents.front_matter("---\n# a comment\n---\nbody", "f") == ({}, "body")


@pytest.mark.parametrize(
    ("head", "line", "fault"),
    [
        ("---\nname: x\n", 1, "not closed"),
        ("---\nname: x\n---", 1, "not closed"),
        ("---\nname: x\n ---\n", 1, "not closed"),
        ("---\n- a\n---\n", 2, "key: value"),
        ("---\nwords\n---\n", 2, "key: value"),
        ("---\n[]\n---\n", 2, "key: value"),
        ("---\n0\n---\n", 2, "key: value"),
        ("---\n1: x\n---\n", 2, "key: value"),
        ("---\na: 1\nb: [\n---\n", 4, "does not parse"),
        ("---\na: 1\nb: c: d\n---\n", 3, "does not parse .*; put the text with this ':' in quotes"),
        ("---\na: 1\nä: ö\n  ü: x\n---\n", 4, "this ':' in quotes"),
        ("---\na: [ü: x: y]\n---\n", 2, "this ':' in quotes"),
        ("---\na: @x\n---\n", 2, "this '@' in quotes"),
        ("---\na: 1\n\tb: 2\n---\n", 3, "does not parse"),
        ("---\na: !!python/object:os.x 1\n---\n", 2, "does not parse"),
        ("---\na: 2026-13-45\n---\n", 2, "does not parse"),
        ("---\na: \0\n---\n", 2, r"does not parse \(not YAML\)"),
    ],
)
def test_malformed_front_matter_is_named_with_its_line(head: str, line: int, fault: str) -> None:
    """Never silently empty."""
    with pytest.raises(BrokenFile, match=fault) as caught:
        documents.front_matter(head, "roles/x.md")
    assert (caught.value.path, caught.value.line) == ("roles/x.md", line)


def nested(dice: random.Random) -> str:
    """Text with its own fences, headings and line endings."""
    pieces = [nasty(dice, 4), "\n```\n", "\n~~~~\n", "\n   ```\n", "`" * dice.randrange(9), "\n# h\n", "\n"]
    return "".join(dice.choice(pieces) for _ in range(dice.randrange(12)))


def test_fenced_text_cannot_get_out() -> None:
    """It is one block, for us and for CommonMark, and is read back unchanged."""
    dice = random.Random(9)
    for _ in range(300):
        text = nested(dice).replace("\r", "")
        document = "before\n\n" + documents.fenced(text, "data") + "\n# after\n"
        assert documents.fenced_blocks(document, "data") == [text.removesuffix("\n")]
        assert documents.headings(document)[-1][0] == "after"
        assert len(documents.headings(document)) == 1
        kinds = [(block.kind, block.info) for block in documents.blocks(document)]
        assert kinds == [("paragraph", ""), ("fence", "data"), ("heading", "")]
        assert documents.blocks(document)[1].text == text + ("" if text.endswith("\n") or not text else "\n")


@pytest.mark.parametrize("info", ['sh ready="`date`"', "sh ```", "sh `~~~`"])
def test_an_info_string_may_have_ticks(info: str) -> None:
    """CommonMark allows them only after tildes."""
    text = "~~~\n```\n~~~~\n"
    (block,) = documents.blocks(documents.fenced(text, info))
    assert (block.kind, block.info, block.text) == ("fence", info, text)
    assert documents.fenced_blocks(documents.fenced(text, info), info) == [text[:-1]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```json\n1\n```\n", ["1"]),
        ("  ```json\n1\n  ```", ["1"]),
        ("~~~json\n1\n~~~\n", ["1"]),
        ("```json\n1\n```\nand\n```json\n2\n```\n", ["1", "2"]),
        ("```json\n1\n", []),
        ("```json\ntorn\n```json\n2\n```\n", ["2"]),
        ("```python\nnever closed\n```json\n2\n```\n", ["2"]),
        ("````md\n```json\nquoted\n```\n````\n", []),
        ("```json x\n1\n```\n", []),
        ("```ls``` shows it\n```json\n1\n```\n", ["1"]),
        ("```json\n1\n~~~\n```\n", ["1\n~~~"]),
        ("```json\r\n1\r\n```\r\n", ["1\r"]),
        ("", []),
    ],
)
def test_blocks_are_found_in_whatever_an_agent_wrote(text: str, found: list[str]) -> None:
    """A fence that is never closed opens no block, and hides no marked block."""
    assert documents.fenced_blocks(text, "json") == found


def test_headings_stand_outside_fences() -> None:
    """Of all levels, with or without closing marks."""
    text = "# One\n```\n# no\n```\n## Two ##\n#no\n####### no\n~~~\n```\n## no\n~~~\n```x``` words\n### Three\n"
    assert documents.headings(text) == [("One", 1, 0), ("Two", 2, 4), ("Three", 3, 12)]


SECTIONS = "# A\none\n## B\ntwo\n### C\nthree\n# D\n"


@pytest.mark.parametrize(
    ("heading", "found"),
    [
        ("b", ["## B\ntwo\n### C\nthree"]),
        ("## c", ["### C\nthree"]),
        ("D", ["# D\n"]),
        ("none", []),
        ("", []),
        ("A", ["# A\none\n## B\ntwo\n### C\nthree"]),
    ],
)
def test_a_section_has_its_subsections(heading: str, found: list[str]) -> None:
    """Found regardless of case, with or without its marks; none if it is absent."""
    assert list(documents.sections(SECTIONS, heading)) == found


FORMS = (
    "{}",
    "2. {}",
    "2.1 {}",
    "2.1.3. {}",
    "2) {}",
    "2 {}",
    "§ 2 {}",
    "§2.1 {}",
    "**{}**",
    "`{}`",
    "_2. {}_",
    "2.  *{}*",
)


@pytest.mark.parametrize("asked", [*FORMS, "## {}", "## 2. {} ##", " {} "])
@pytest.mark.parametrize("there", FORMS)
def test_numbering_emphasis_case_and_blanks_of_a_heading_do_not_matter(there: str, asked: str) -> None:
    """Each form of a heading is found by each form of its name; a heading of other words is not."""
    for words in ("Output formats", "output  FORMATS"):
        text = f"# Title\n\n## {there.format('Output formats')}\nJSON.\n\n## 3. Output\nNo.\n"
        [found] = documents.sections(text, asked.format(words))
        assert "JSON." in found and "No." not in found
    assert not documents.named("## 2. Output formats\n", "Formats") and not documents.named("## 2.\n## 3.\n", "4.")


def test_an_exact_heading_comes_first_and_all_that_are_alike_count() -> None:
    """A name that means two sections brings both."""
    text = "## Errors\na\n## 2. Errors\nb\n## 3. *Errors*\nc"
    assert list(documents.sections(text, "errors")) == ["## Errors\na"]
    assert list(documents.sections(text, "2. Errors")) == ["## 2. Errors\nb"]
    assert list(documents.sections(text.partition("a\n")[2], "Errors")) == ["## 2. Errors\nb", "## 3. *Errors*\nc"]


PLAIN_DESCRIPTIONS = (
    *("Use when: x", "Use when:", "a: b: c", "*all*: that", "`git`: commits", "@x: y", "Use when: x # and y", "- a: b"),
    'say "x": y',
)


@pytest.mark.parametrize("said", PLAIN_DESCRIPTIONS)
@pytest.mark.parametrize("rest", ["", "  more: of it\n"])
def test_a_description_with_a_colon_is_the_rest_of_its_line(said: str, rest: str) -> None:
    """And the lines below that are indented; what is no YAML elsewhere stays a fault with its own line."""
    head = f"name: x\ndescription: {said}\n{rest}license: MIT\n"
    meta, body = documents.front_matter(f"---\n{head}---\nDo.\n", "p")
    assert meta == {"name": "x", "description": f"{said} {rest.strip()}".strip(), "license": "MIT"}
    assert body == "Do.\n"
    with pytest.raises(BrokenFile) as caught:
        documents.front_matter("---\nname: a: b\ndescription: d\n---\n", "p")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("|\n  a: b\n  c", "a: b\nc"),
        (">\n  a: b\n  c", "a: b c"),
        ('"a: b"', "a: b"),
        ("'a: b'", "a: b"),
        ("[a]", ["a"]),
    ],
)
def test_a_description_that_yaml_can_read_means_what_yaml_says(written: str, said: object) -> None:
    """A block, a quoted text, a list; one that YAML cannot read in such a form stays a fault."""
    assert documents.front_matter(f"---\ndescription: {written}\n---\n", "p")[0] == {"description": said}
    for broken in ('"a": b', "'a': b", "[a: b", "| a: b"):
        with pytest.raises(BrokenFile, match="does not parse"):
            documents.front_matter(f"---\ndescription: {broken}\n---\n", "p")


def test_blocks_know_their_lines() -> None:
    """An error message can name a fault by its line."""
    found = documents.blocks("# H\n\nwords\n\n```sh x\nrun\n```\n\n<b>\n\n    code\n")
    assert [(block.kind, block.line, block.level) for block in found] == [
        ("heading", 1, 1),
        ("paragraph", 3, 0),
        ("fence", 5, 0),
        ("other", 9, 0),
        ("other", 11, 0),
    ]


@pytest.fixture
def cache(tmp_path: Path) -> str:
    """A missing cache folder in an existing folder."""
    return str(tmp_path / "cache")


def test_a_kept_value_is_there_until_its_text_changes(cache: str) -> None:
    """Also for a text of bytes that are not UTF-8."""
    text = "a\udcff"
    documents.keep(cache, "x", text, [1])
    assert [documents.recall(cache, "x", one) for one in (text, text, "b")] == [[1], [1], None]


def test_a_value_of_another_version_is_absent(cache: str) -> None:
    """Its fields differ: the value only saves time, and is made again."""
    documents.keep(cache, "x", "a", {"new": 1}, ("new",))
    assert (documents.recall(cache, "x", "a", ("old",)), documents.recall(cache, "x", "a")) == (None, None)
    assert documents.recall(cache, "x", "a", ("new",)) == {"new": 1}


@pytest.mark.parametrize("torn", [b"", b"{", b"[]", b"5", b'{"text":"a"}', b"\xff", None])
def test_a_value_that_cannot_be_read_is_absent(cache: str, torn: bytes | None) -> None:
    """Also if something else has its name (None: a folder)."""
    if torn is None:
        os.makedirs(cache + "/x.json")
    else:
        put(cache + "/x.json", torn)
    assert documents.recall(cache, "x", "a") is None


def test_a_value_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """No folder is created without a mission."""
    documents.keep(str(tmp_path / "none" / "cache"), "x", "a", [1])
    assert os.listdir(tmp_path) == []
    files.replace(str(tmp_path / "file"), b"")
    documents.keep(str(tmp_path / "file"), "x", "a", [1])
    assert documents.recall(str(tmp_path / "file"), "x", "a") is None


FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")
HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")


def test_marks_are_those_that_the_patterns_say() -> None:
    """The patterns are the words of the rule; the code reads by hand, because loading `re` costs half a bare start."""
    pick = random.Random(1)
    for _ in range(20_000):
        line = "".join(pick.choice("`~# a\tb") for _ in range(pick.randrange(12)))
        fence, heading, tick = FENCE.match(line), HEADING.match(line), pick.choice("`~")
        assert documents.fence_mark(line) == (fence[1] if fence else ""), line
        alone = [] if fence else [(heading[2], len(heading[1]), 0)] if heading else []
        assert documents.headings(line) == alone, line
        longest = max((len(run) for run in re.findall(tick + "+", line)), default=0)
        assert documents.fence_for(line, tick=tick) == tick * max(3, longest + 1), line
