"""BM25 over lines of memory: what fits best comes first."""

from __future__ import annotations

from harness.base import ranking

LINES = [
    "the tests need a running database",
    "npm ci in parallel corrupts the cache",
    "npm needs the cache folder: npm config set cache",
    "数据库迁移之前先备份",
    "use the cache",
]


def best(words: str, most: int = 9) -> list[str]:
    """The lines, best first."""
    return ranking.best(lambda: ((line, line) for line in LINES), words, most)


def test_a_rare_word_counts_more_than_a_common_one_and_twice_more_than_once() -> None:
    """A line needs not have all words."""
    assert best("npm cache")[0] == LINES[2]
    assert best("npm cache")[1] == LINES[1]
    assert best("the database")[0] == LINES[0]
    assert best("NPM", most=1) == [LINES[2]]


def test_chinese_is_found_by_pairs_and_by_a_single_character() -> None:
    """Its words are not divided by blanks."""
    assert best("备份") == best("数据库") == best("库") == [LINES[3]]
    assert ranking.terms("a数据库b") == ["a", "数据", "据库", "b"]


def test_what_no_line_has_is_not_found_and_a_part_of_a_word_is_no_word() -> None:
    """No line is given for nothing."""
    assert best("kubernetes") == best("data") == best("") == []


def test_of_equal_lines_the_later_comes_first() -> None:
    """The newest note."""
    rows = [("same words", number) for number in range(5)]
    assert ranking.best(lambda: rows, "same", 3) == [4, 3, 2]
