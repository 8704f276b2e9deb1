"""Promises of harness/filesystem/expressions.py: an expression finds what ripgrep finds, or is refused with its reason."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.filesystem import plain_grep, ripgrep
from harness.filesystem.expressions import compiled
from harness.filesystem.patterns import BadPattern
from tests import crash

TEXT = (
    b"abc\nABC 12\n a_b-c\n\n\tx{y}[z]\r\n(1) $5 ^.*+?|\\ \"q\" 'r'\nna\xc3\xafve caf\xe9\n\xe6\xbc\xa2\xe5\xad\x97 \xff\xfe\n"
    b"foo(bar)\nfoo bar\nfoobar\nend \nA\nStra\xc3\x9fe \xc2\xa0x\xe2\x80\xa8y\n-->\nlast"
)
SAME = (
    *(
        "abc",
        "a.c",
        "^a",
        "c$",
        "^$",
        "",
        "a|x",
        "(a|b)+",
        "[a-c]{2,3}",
        "[^a-z]",
        r"\d+",
        r"\w+\s\w",
        r"\bbar\b",
        r"foo\(",
        "foo[(]",
    ),
    *(
        r"\.\*",
        "é",
        "ï",
        ".",
        "..",
        "^.$",
        "[[:alpha:]]+[[:digit:]]",
        r"[\w-]+c",
        "(?i)abc",
        "(?i:A)bc",
        "a(?i)BC",
        "(?P<n>a)b",
        "x*",
        "a**",
        "(?:ab)+?+",
        "a{2}{1}b?*",
    ),
    *(
        r"\S$",
        r"\W\W",
        r"\D",
        r"[^\s]x",
        r"\x41",
        r"\x{6F22}",
        r"\u6F22",
        "漢",
        "ß",
        "(?i)STRASSE",
        "a{0}b",
        "b??c",
        "(?:ab)c",
    ),
    *(
        r"\<bar",
        r"bar\>",
        r"\b{start}foo",
        r"\Aabc",
        r"c\z",
        "[]z]",
        "[^]z]",
        "[a-]",
        r"[\]z]",
        "}",
        "]",
        "-->",
        "\\$5",
        "'r'",
        '"q"',
    ),
    *(
        "(?-i)abc",
        "(?u)a",
        "(a)(b)(c)",
        "a|",
        "|",
        "(|a)b",
        r"[\d\s]x",
        r"\t",
        r"[\t]x",
        "[.]",
        "[$]5",
        "[+*?]",
        r"\-c",
        "(?s).",
        "y\r$",
    ),
)
REFUSED = (
    "(",
    ")",
    "[",
    "a{,2}b",
    "*a",
    "(?=a)",
    "(?<!a)b",
    r"(a)\1",
    r"\n",
    "a\nb",
    r"\Z",
    "a{",
    "a{2",
    r"\q",
    "(?P>a)",
    "[b-a]",
    "\\",
)
ATOMS = st.sampled_from(
    ["a", "b", "c", "1", ".", "[a-c]", "[^b]", r"\w", r"\d", r"\s", r"\b", "^", "$", " ", "é", r"\.", "(", "B", "_"]
)
MARKS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "|", "*?", ")"])
RANDOM = st.lists(st.tuples(ATOMS, MARKS).map("".join), min_size=1, max_size=5).map("".join)


def ours(pattern: str, *, literal: bool = False, ignore_case: bool = False) -> list[int] | None:
    """The lines that we find; None where it is no pattern."""
    try:
        wanted = compiled(pattern, literal=literal, ignore_case=ignore_case)
    except BadPattern:
        return None
    return [int(hit.split(b":")[0]) for hit in plain_grep.hits(TEXT, wanted, 1, 0)]


def theirs(pattern: str, *flags: str) -> list[int] | None:
    """The lines that ripgrep finds."""
    argv = [ripgrep.program(), *ripgrep.FLAGS, "--no-filename", "--text", *flags, f"--regexp={pattern}", "-"]
    done = subprocess.run(argv, input=TEXT, capture_output=True, check=False)
    if done.returncode > 1:
        return None
    return [int(line.split(b":")[0]) for line in done.stdout.split(b"\n")[:-1]]


@pytest.mark.parametrize("pattern", SAME)
def test_an_expression_finds_what_ripgrep_finds(pattern: str) -> None:
    """In text with other alphabets, and with bytes that are no UTF-8."""
    assert ours(pattern) == theirs(pattern) is not None


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_ripgrep_refuses_is_refused(pattern: str) -> None:
    """No pattern has two meanings."""
    assert ours(pattern) is theirs(pattern) is None


@pytest.mark.parametrize(
    "pattern", [r"\p{L}", "[a&&b]", "[[:^alpha:]]", "(?x) a", "(?U)a+", r"[\D]", "[[a]b]", r"(?-u)\xff"]
)
def test_what_python_does_not_have_is_refused_with_the_remedy(pattern: str) -> None:
    """Rather than answered differently."""
    with pytest.raises(BadPattern, match="ripgrep"):
        compiled(pattern, literal=False, ignore_case=False)


@settings(max_examples=3000 if crash.TORTURE else 40, deadline=None)
@given(pattern=RANDOM, ignore_case=st.booleans())
def test_any_expression_finds_what_ripgrep_finds_or_is_refused(pattern: str, ignore_case: bool) -> None:
    """Composed at random."""
    found = ours(pattern, ignore_case=ignore_case)
    if found is not None:
        assert found == theirs(pattern, *(["--ignore-case"] if ignore_case else []))


@settings(max_examples=500 if crash.TORTURE else 15, deadline=None)
@given(pattern=st.text("aBc.*+?()[]{}|^$\\-é ", min_size=1, max_size=6))
def test_a_literal_pattern_is_itself(pattern: str) -> None:
    """Whatever signs it has."""
    assert ours(pattern, literal=True) == theirs(pattern, "--fixed-strings")


def test_a_line_is_counted_and_placed_across_blocks(tmp_path: Path) -> None:
    """The offset is in bytes, whatever the text is."""
    wanted = compiled("hit", literal=False, ignore_case=False)
    data = "".join(f"漢字 {number}\n" + ("hit é\n" if number % 7 == 0 else "") for number in range(500)).encode()
    for hit in plain_grep.hits(data, wanted, 1, 0):
        line, offset, text = hit.rstrip(b"\n").split(b":", 2)
        assert data[int(offset) :].startswith(text + b"\n")
        assert data.split(b"\n")[int(line) - 1] == text
