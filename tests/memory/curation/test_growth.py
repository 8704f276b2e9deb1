"""How an identity grows: who leaves where there is no room."""

from __future__ import annotations

from harness.memory import identity
from harness.memory.curation import growth
from harness.memory.curation.growth import Graduation


def up(text: str, count: int = 1) -> Graduation:
    """A note that graduates."""
    return Graduation(role="worker", text=text, tag="TRICK", missions=["a-1"], count=count)


def grow(content: str, *notes: Graduation, most: int = 3) -> tuple[list[str], list[str], list[str]]:
    """What is there, what found no room, and what left."""
    page = identity.parse(content)
    crowded, gone = growth.grow(page, [*notes], [], "2026-05-01", most)
    there = [item.text for item in page.items("")]
    return there, [one.text for one in crowded], [item.text for item in gone]


LINES = "# worker\n- [2026-04-24] run setup first (2x)\n- [2026-04-23] psql reads PGHOST (2x)\n"


def test_the_rarest_line_leaves_and_the_older_before_the_newer() -> None:
    """What comes may be what finds no room."""
    assert grow(LINES, up("the linter needs node")) == (
        ["run setup first", "psql reads PGHOST"],
        ["the linter needs node"],
        [],
    )
    assert grow(LINES, up("the linter needs node", 3)) == (
        ["run setup first", "the linter needs node"],
        [],
        ["psql reads PGHOST"],
    )


def test_growing_again_changes_nothing() -> None:
    """Of notes that are as frequent and of one day, those that are there stay."""
    notes = [up(text) for text in ("run setup first", "psql reads PGHOST", "the linter needs node")]
    page = identity.parse("# worker\n")
    for _ in range(2):
        crowded, gone = growth.grow(page, notes, [], "2026-05-01", 3)
        assert ([one.text for one in crowded], gone) == (["the linter needs node"], [])


def test_an_identity_that_people_filled_takes_nothing() -> None:
    """Their lines stay."""
    content = "mine\n" * 4 + "- [2026-04-24] run setup first (9x)\n"
    assert grow(content, up("the linter needs node")) == ([], ["the linter needs node"], ["run setup first"])


def test_a_failure_and_a_trick_of_the_same_words_are_two_items() -> None:
    """A failure is something to avoid."""
    assert growth.shown_text("FAIL", "run setup first") == "Avoid: run setup first"
    index = growth.ItemIndex(identity.parse(LINES).items(""))
    assert index.find("Avoid: run setup first") is None
    assert index.find("run setup first") is not None
