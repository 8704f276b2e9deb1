"""Names of files for ids that others choose: two ids never meet, on no disk."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import UsageFault
from harness.base.ids import MAX_CHARS, encoded

HARD = [
    "..",
    ".",
    "a/b",
    "a",
    "a=2fb",
    "Alice",
    "alice",
    "ALICE",
    "-rf",
    "_x",
    "con",
    "a b",
    "\n",
    "\0",
    "~",
    "é",
    "e\u0301",
]
HARD += ["a" * 300, "a" * 299 + "b", "A" * 300, "🙂", "🙂" * 80, "=", "==", "==" + "a" * 64, "a.b", "a:b", "skills"]


def folded(name: str) -> str:
    """A name as the least careful disk compares it."""
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


def test_ids_that_are_easily_confused_have_folders_of_their_own(tmp_path: Path) -> None:
    """On disk, each a folder directly below the one of all users."""
    for name in HARD:
        (tmp_path / encoded(name)).mkdir()
    assert len(os.listdir(tmp_path)) == len(HARD)
    assert len({folded(encoded(name)) for name in HARD}) == len(HARD)


def test_a_plain_id_stays_as_it_is() -> None:
    """So a person finds the folder of alice."""
    assert [encoded(name) for name in ("alice", "a-1", "bob_2")] == ["alice", "a-1", "bob_2"]
    with pytest.raises(UsageFault, match="empty"):
        encoded("")


@settings(max_examples=300, deadline=None)
@given(st.text(min_size=1, max_size=400), st.text(min_size=1, max_size=400))
def test_any_two_ids_have_two_names(one: str, two: str) -> None:
    """And each name is a safe one: ASCII, short, no separator, no dot, nothing that folds."""
    names = [encoded(one), encoded(two)]
    assert (names[0] == names[1]) == (one == two)
    for name in names:
        assert name.isascii() and folded(name) == name and 0 < len(name) <= MAX_CHARS
        assert not set(name) & set("/\\.: \0") and name[0] not in "-_"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aAé=-_./2f", min_size=1, max_size=12), st.text(alphabet="aAé=-_./2f", min_size=1, max_size=12))
def test_no_id_looks_like_the_escape_of_another(one: str, two: str) -> None:
    """Among ids of the characters that the encoding itself uses."""
    assert (folded(encoded(one)) == folded(encoded(two))) == (one == two)
