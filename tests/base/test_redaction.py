"""Secrets are masked, lookalikes are not; the two lists in tests/base/redaction/ test every rule."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from harness.base import redaction
from tests.helpers import is_linear

FOLDER = Path(__file__).resolve().parent / "redaction"
AROUND = re.compile("⟦(.*?)⟧", re.DOTALL)


def lines(name: str) -> list[str]:
    """The corpus of that name without its header and marks; § keeps code hosts from taking it for live tokens."""
    text = (FOLDER / name).read_text(encoding="utf-8").replace("§", "")
    return [line.replace("␤", "\n") for line in text.split("\n") if line and not line.startswith("# ")]


HITS = [line.split("\t", 1) for line in lines("hits.txt")]
LOOKALIKES = lines("lookalikes.txt")
PLAIN = [re.sub("[⟦⟧]", "", text) for _, text in HITS]


@pytest.mark.parametrize(("rule", "text"), HITS)
def test_a_secret_is_masked_and_nothing_else(rule: str, text: str) -> None:
    """Exactly the text between the brackets is masked, by the named rule."""
    plain = re.sub("[⟦⟧]", "", text)
    assert redaction.mask(plain) == AROUND.sub(f"[masked: {rule}]", text)
    assert redaction.found(plain) == [rule]


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    """Digests, ids, images, lock files, code, stand-ins and prose."""
    assert redaction.mask(text) == text
    assert redaction.found(text) == []


def test_the_corpus_covers_every_rule() -> None:
    """At least two matches per rule; at least 100 secrets and 150 lookalikes in all."""
    counts = [sum(rule == name for rule, _ in HITS) for name in redaction.RULES]
    assert min(counts) >= 2
    assert len(HITS) >= 100
    assert len(LOOKALIKES) >= 150
    assert {rule for rule, _ in HITS} == redaction.RULES.keys()


@pytest.mark.parametrize(("rule", "text"), HITS)
def test_every_secret_is_given_with_its_line_and_none_looks_typed(rule: str, text: str) -> None:
    """Random values stay secrets; a rule's form makes them certain, or it does not."""
    plain = "first\n" + re.sub("[⟦⟧]", "", text)
    wanted = [(rule, ("first\n" + text[: found.start()]).count("\n") + 1, found[1]) for found in AROUND.finditer(text)]
    assert redaction.secrets(plain) == wanted
    certain = rule in redaction.CERTAIN - {"private-key", "stripe-key"}  # these differ by length and kind
    assert [redaction.is_certain(rule, one) for _, _, one in wanted if certain] == [True] * len(wanted) * certain
    assert not any(redaction.is_made_up(one) for _, _, one in wanted if certain)


@pytest.mark.parametrize("value", ["abcdef", "x9ZYXWVUq8", "AKIA000000Q3ZZ", "aabbaabb"])
def test_what_somebody_typed_is_made_up(value: str) -> None:
    """Rows of the alphabet or of digits, up or down, repetitions, few characters."""
    assert redaction.is_made_up(value)


WITHOUT_A_PREFIX = (
    *("assignment", "option", "authorization", "bearer", "basic", "url-password", "database-url"),
    *("cookie", "user-option", "docker-login", "netrc", "mysql-option"),
)


def test_no_line_of_the_corpus_is_a_live_looking_token_in_the_file() -> None:
    """With the marks, no rule matches a token that has a prefix."""
    text = (FOLDER / "hits.txt").read_text(encoding="utf-8")
    known = set(redaction.found(text)) - set(WITHOUT_A_PREFIX)
    assert known == set()


def shape(value: Any) -> Any:
    """A JSON value without its texts."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_json_stays_json_of_the_same_shape(depth: int) -> None:
    """Whole lines, with secrets inside JSON inside JSON."""
    for text in [*PLAIN, *LOOKALIKES]:
        line: Any = {"a": [text, 1], "b": {"text": f"{text}\n{text}", "n": None}, "é": True}
        for _ in range(depth):
            line = {"text": json.dumps(line), "more": [1.5e10, "token=", ",x1", text]}
        dumped = json.dumps(line, separators=(",", ":"))
        assert shape(json.loads(redaction.mask(dumped))) == shape(line), text


def test_masking_twice_changes_nothing_more() -> None:
    """This also holds for adjacent secrets in any order, with anything between."""
    chance = random.Random(7)
    between = ["", " ", "\n", '"', "\\n", "=", ":", "@", "-", "_", "/", "[", "token=", "é", "'", "--key ", "a1"]
    for _ in range(1500):
        parts = chance.choices([*PLAIN, *LOOKALIKES], k=3)
        once = redaction.mask(chance.choice(between).join(parts))
        assert redaction.mask(once) == once


def test_text_that_is_not_quite_unicode_is_masked() -> None:
    """Lone surrogates, letters with a longer lower case, other alphabets; positions stay correct."""
    secret = PLAIN[0]
    for around in ("\ud800", "İİİ", "密码", "\0", "🔑"):
        masked = redaction.mask(f"{around} {secret} {around} TOKEN=a8Kd93jfLs02LqPz {around}")
        assert masked == f"{around} {redaction.mask(secret)} {around} TOKEN=[masked: assignment] {around}"


def test_a_token_of_a_vendor_is_masked_wherever_it_stands() -> None:
    """Between any texts that are not of its own characters."""
    chance = random.Random(12)
    tokens = [one[1] for rule, text in HITS if rule == "vendor-token" for one in AROUND.finditer(text)]
    behind = [*" \n\t\"'`,;()[]{}<>|&?/@é密"]
    before = [*behind, *"=:", "\\n", "\x1b[32m", "Bearer ", "see ", "key: ", '{"a":"', "https://x.test/?k="]
    for _ in range(500):
        token = chance.choice(tokens)
        text = "".join(chance.choices(before, k=3))
        masked = redaction.received(f"{text}{token}{chance.choice(behind)}end")
        assert token[8:] not in masked and "[masked: " in masked and masked.endswith("end"), (text, token)


EVIL = [
    "sk-",
    "gsk_",
    "hvs.",
    "dapi0",
    "nvapi-_",
    "eyJ-",
    "eyJ.",
    "token",
    "token=",
    "token=a1",
    'password="',
    "password='\\",
    "://a:b",
    "SK",
    ":AA",
    "--a-",
]
EVIL += [
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY----- abcd",
    "SG.a",
    "_key",
    "bearer ",
    "basic ",
    "IA",
    "gh",
]
EVIL += ["hooks.slack.com/a/b", "authorization:", "secret_access_key=", "x", "\\", "\\\\n", "key:a|b", "npm_", "://@:@"]


@pytest.mark.parametrize("word", EVIL)
def test_no_text_makes_it_slow(word: str) -> None:
    """The time grows linearly."""
    assert is_linear(redaction.mask, word * (10_000 // len(word)))


def test_base64_is_read_in_linear_time() -> None:
    """One line without a space."""
    line = base64.b64encode(random.Random(1).randbytes(196_608)).decode()
    assert redaction.mask(line) == line
    assert is_linear(redaction.mask, line)


GITHUB = "gh" + "p_a8Kd93jfLs02LqPz7Xc1Vb5Nm4Qw6Er8Ty2Ui0"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\r\nb\rc\u2028d\x85e", "a\nb\nc\nd\ne"),
        ("\x1b[1;31mred\x1b[0m \x9b1mbold \x1b]8;;https://x\x1b\\link\x07", "red bold link"),
        ("turned \u202e hid\u200bden \U000e0041 \ud800 bell\x07 tab\t", "turned  hidden   bell tab\t"),
        ("שלום 👩\u200d👩 naïve 数据", "שלום 👩\u200d👩 naïve 数据"),
        (f"x\x1b[0m{GITHUB} {GITHUB[:9]}\u200b{GITHUB[9:]}", "x[masked: github-token] [masked: github-token]"),
    ],
)
def test_what_an_agent_said_is_kept_without_what_steers_hides_or_is_a_secret(text: str, kept: str) -> None:
    """A token that such characters part is one; other scripts and joined emojis stay; a second time changes nothing."""
    assert redaction.received(text) == kept == redaction.received(kept)


def test_a_value_of_an_agent_is_kept_but_for_its_commands() -> None:
    """At any depth, keys too; a title is one line."""
    value = {"title": "a\nb", "checks": ["x\x07", {"run": "y\x07", "why": "z\x07"}], f"k {GITHUB}": [1, None, "\x07"]}
    kept = redaction.received_value(value, ("run", "checks"))
    assert kept == {
        "title": "a b",
        "checks": ["x\x07", {"run": "y\x07", "why": "z"}],
        "k [masked: github-token]": [1, None, ""],
    }
