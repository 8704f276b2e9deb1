"""One budget for all sections: it holds, small ones stay whole, and what is cut says so."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.tokens import estimated
from harness.workspace.budget import HEAD, NEWEST, ROWS, WorkspaceSection, fit


def section(text: str, keep: str = HEAD) -> WorkspaceSection:
    """A section with this text."""
    return WorkspaceSection(
        kind="k", title="## T", text=text, source="FILE.md", layer="project", keep=keep, rest="see FILE.md"
    )


def test_what_fits_is_whole() -> None:
    """And unchanged, byte for byte."""
    found = fit([section("one\n"), section("two\n")], 100)
    assert [one.text for one in found] == ["one\n", "two\n"]


def test_a_long_section_leaves_the_small_ones_whole() -> None:
    """Instructions of a megabyte cost the others nothing."""
    found = fit([section("word " * 50_000 + "\n"), section("small\n"), section("- a: b\n", ROWS)], 1000)
    assert [one.tokens < one.whole_tokens for one in found] == [True, False, False]
    assert "see FILE.md" in found[0].text and 800 < found[0].tokens <= 1000


def test_a_list_is_cut_between_its_rows() -> None:
    """With the number of those that are left out."""
    rows = [f"- skill-{number}: does things, at length and in detail" for number in range(100)]
    [found] = fit([section("\n".join(rows) + "\n", ROWS)], 200)
    *kept, note = found.text.rstrip("\n").split("\n")
    assert kept == rows[: len(kept)] and len(kept) > 3
    assert f"{100 - len(kept)} more" in note


def test_of_the_memory_the_newest_stays() -> None:
    """By date, wherever it stands; below its heading; a line of a person without a date is never the first to go."""
    rows = ["## Decisions", "- [2026-01-02] old 古い古い", "- [2026-09-01] new 新しい", "", "## Lessons", "- mine"]
    rows += [f"- [2026-02-{day:02}] filler that takes room, a lot of it" for day in range(1, 28)]
    [found] = fit([section("\n".join(rows) + "\n", NEWEST)], 80)
    assert "## Decisions\n- [2026-09-01] new 新しい\n## Lessons\n- mine\n" in found.text
    assert "2026-01-02" not in found.text and "2026-02-27" in found.text
    assert found.tokens <= 80


TEXTS = st.text(alphabet=st.sampled_from("ab 漢字한\n-#é🙂[]20:"), max_size=2000)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.sampled_from([HEAD, ROWS, NEWEST])), max_size=6), st.integers(1, 600))
def test_the_budget_holds_for_any_texts(texts: list[tuple[str, str]], most: int) -> None:
    """Whatever the alphabet; also where there is room for nothing."""
    found = fit([section(text, keep) for text, keep in texts], most)
    assert sum(estimated(one.text) for one in found) <= most
    assert [one.title for one in found] == ["## T"] * len(texts)
