"""The words of a note: stems, identifiers and numbers."""

from __future__ import annotations

import random

import pytest

from harness.memory._words import MAX_TOKEN_CHARS, stem, words
from tests.helpers import is_linear, nasty


@pytest.mark.parametrize(
    "forms",
    [
        ("migrate", "migrates", "migrating", "migrated"),
        ("test", "tests", "testing", "tested"),
        ("stop", "stops", "stopped", "stopping"),
        ("policy", "policies"),
        ("box", "boxes"),
        ("fixture", "fixtures"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    """As far as endings tell."""
    assert len({stem(form) for form in forms}) == 1


def test_an_identifier_counts_as_written_and_in_its_parts() -> None:
    """Paths, flags, calls, camelCase, and what is in backticks; the value that a name sets is another."""
    found = words("run `npm ci` in src/web/App.tsx with --retry-all-errors, set LC_ALL=C and call openFile(x)")
    assert {"npm ci", "src/web/app.tsx", "--retry-all-errors", "lc_all", "openfile"} <= found.names
    assert {"web", "app", "retry", "error"} <= found.terms


def test_numbers_are_known_with_and_without_their_unit() -> None:
    """In digits and in words."""
    assert words("wait 30s, then 30 seconds, then five").numbers == {"30", "5"}
    assert words("API pages have 1,000 rows").numbers == {"1,000"}


def test_characters_without_spaces_are_taken_in_pairs() -> None:
    """Chinese, Japanese and Korean, with identifiers in between."""
    assert {"数据", "据库", "redis"} <= words("数据库用Redis").terms
    assert {"デー", "ータ"} <= words("データ").terms
    assert {"테스", "스트"} <= words("테스트").terms
    assert words("漢").terms == {"漢"}


def test_any_text_is_read_in_time_that_grows_with_its_length() -> None:
    """Whatever it is made of; a token of garbage is cut."""
    dice = random.Random(2)
    for _ in range(500):
        found = words(nasty(dice))
        assert found.names | found.numbers <= found.terms == {*found.order}
    for text in ("x", "a.b/", "`", "漢", "not "):
        assert is_linear(words, text * (10**5 // len(text))), text
    assert max(map(len, words("y" * 500).terms)) <= MAX_TOKEN_CHARS
