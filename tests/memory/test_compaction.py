"""One compaction: the place of each kind of entry, merged notes, newer words, and the disposition of every entry."""

from __future__ import annotations

from harness.memory import compaction, pages
from harness.memory.archive import Archived
from harness.memory.compaction import Compaction, Inputs
from harness.memory.pages import Curated
from harness.memory.raw import Entry

SERVER = "stop the dev server before you run e2e tests: they also need port 3000"
SERVER_TOO = "The dev server must be stopped before running the e2e tests, both bind port 3000"


def entry(seq: int, tag: str, text: str, feature: str = "F-001", role: str = "worker", day: int = 24) -> Entry:
    """One line of raw.md."""
    return Entry(seq=seq, at=f"2026-04-{day:02}T10:00:00Z", role=role, feature=feature, tag=tag, text=text)


def folded(
    *entries: Entry, page: str | None = None, archive: tuple[Archived, ...] = ()
) -> tuple[str, list[Archived], Compaction]:
    """MEMORY.md after a compaction, and the disposition of every entry."""
    before = Inputs(
        mission="m-1",
        run="r",
        today="2026-04-30",
        waiting=list(entries),
        curated=Curated(folded=len(archive)),
        memory=page,
        archive=list(archive),
    )
    made = Compaction(before)
    for one in entries:
        made.take(one)
    fates = made.lay_out()
    return pages.render_page(made.page), fates, made


def items(page: str, title: str) -> list[str]:
    """The harness's lines under a heading."""
    found = pages.parse_page(page, pages.MEMORY_TITLES).items(title)
    return [pages.render_item(item) for item in found]


def archived(*entries: Entry) -> tuple[Archived, ...]:
    """The entries as an earlier compaction archived them."""
    return tuple(Archived(seq=one.seq, entry=one.line(), disposition="item", target="", run="old") for one in entries)


def test_each_tag_has_its_place() -> None:
    """Tricks and things to avoid are lessons; a failure and an untagged line are history."""
    page, fates, _ = folded(
        entry(0, "TRICK", "run setup first"),
        entry(1, "AVOID", "deleting the cache"),
        entry(2, "DECISION", "plain files only"),
        entry(3, "CONTEXT", "there is one user"),
        entry(4, "FAIL", "VAL-1 is red"),
        entry(5, "-", "passed at abc"),
    )
    assert items(page, "Lessons") == [
        "- [2026-04-24] run setup first (F-001 · 1x)",
        "- [2026-04-24] Avoid: deleting the cache (F-001 · 1x)",
    ]
    assert items(page, "Decisions") == ["- [2026-04-24] plain files only (F-001 · 1x)"]
    assert items(page, "Context") == ["- [2026-04-24] there is one user (F-001 · 1x)"]
    assert items(page, "History") == [
        "- [2026-04-24] Failed: VAL-1 is red (F-001 · 1x)",
        "- [2026-04-24] passed at abc (F-001 · 1x)",
    ]
    assert {fate.disposition for fate in fates} == {"item"}
    assert [fate.target for fate in fates][:3] == ["MEMORY.md#Lessons", "MEMORY.md#Lessons", "MEMORY.md#Decisions"]


def test_the_same_in_other_words_is_counted_not_doubled() -> None:
    """In one compaction, with items in memory, and with notes that only the archive has."""
    page, fates, _ = folded(entry(0, "TRICK", SERVER), entry(1, "TRICK", SERVER_TOO, "F-002", day=26))
    assert items(page, "Lessons") == [f"- [2026-04-26] {SERVER} (F-001, F-002 · 2x)"]
    assert (fates[1].disposition, fates[1].target) == ("merged", f"MEMORY.md#Lessons: {SERVER}")
    again, _, _ = folded(entry(2, "TRICK", SERVER_TOO, "F-003"), page=page)
    assert items(again, "Lessons") == [f"- [2026-04-26] {SERVER} (F-001, F-002, F-003 · 3x)"]
    old = archived(entry(0, "TRICK", SERVER), entry(1, "TRICK", SERVER_TOO, "F-002"))
    back, _, _ = folded(entry(2, "TRICK", SERVER_TOO, "F-003"), archive=old)
    assert items(back, "Lessons") == [f"- [2026-04-24] {SERVER_TOO} (F-001, F-002, F-003 · 3x)"]


def test_kinds_are_never_merged_with_each_other() -> None:
    """A trick and something to avoid may use the same words."""
    page, _, _ = folded(entry(0, "TRICK", SERVER), entry(1, "AVOID", SERVER), entry(2, "CONTEXT", SERVER))
    assert len(items(page, "Lessons") + items(page, "Context")) == 3


def test_a_newer_decision_replaces_the_older() -> None:
    """The archive has the older words: as a move if they were in memory, as superseded within one compaction."""
    page, fates, made = folded(entry(0, "DECISION", SERVER), entry(1, "DECISION", SERVER_TOO))
    assert items(page, "Decisions") == [f"- [2026-04-24] {SERVER_TOO} (F-001 · 2x)"]
    assert [fate.disposition for fate in fates] == ["superseded", "item"]
    assert fates[0].target == f"MEMORY.md#Decisions: {SERVER_TOO}"
    assert made.moves == []
    page, _, made = folded(entry(2, "DECISION", SERVER), page=page)
    assert items(page, "Decisions") == [f"- [2026-04-24] {SERVER} (F-001 · 3x)"]
    assert [(move.moved, move.origin, move.to) for move in made.moves] == [
        (SERVER_TOO, "MEMORY.md#Decisions", "archive.jsonl")
    ]


def test_a_failure_that_comes_back_is_something_to_avoid() -> None:
    """Once in history alone; from the second time on both count, across compactions too."""
    first = entry(0, "FAIL", "VAL-1 is red: exit 1")
    page, _, _ = folded(first)
    assert items(page, "Lessons") == []
    page, _, _ = folded(entry(1, "FAIL", "VAL-1 is red: exit 1", "F-002"), page=page, archive=archived(first))
    assert items(page, "Lessons") == ["- [2026-04-24] Avoid: VAL-1 is red: exit 1 (F-001, F-002 · 2x)"]
    assert items(page, "History") == ["- [2026-04-24] Failed: VAL-1 is red: exit 1 (F-001, F-002 · 2x)"]
    old = archived(first, entry(1, "FAIL", "VAL-1 is red: exit 1", "F-002"))
    page, _, _ = folded(entry(2, "FAIL", "VAL-1 is red: exit 1"), page=page, archive=old)
    assert items(page, "Lessons") == ["- [2026-04-24] Avoid: VAL-1 is red: exit 1 (F-001, F-002 · 3x)"]


def test_a_feature_has_one_untagged_line() -> None:
    """In the newest words; lines without a feature stay separate."""
    page, fates, _ = folded(
        entry(0, "-", "passed at a"),
        entry(1, "-", "passed at b"),
        entry(2, "-", "hello", "-"),
        entry(3, "-", "bye", "-"),
    )
    assert items(page, "History") == [
        "- [2026-04-24] passed at b (F-001 · 2x)",
        "- [2026-04-24] hello (1x)",
        "- [2026-04-24] bye (1x)",
    ]
    assert [fate.disposition for fate in fates] == ["merged", "item", "item", "item"]
    page, _, made = folded(entry(4, "-", "passed at c"), entry(5, "-", "passed at c"), page=page)
    assert items(page, "History")[0] == "- [2026-04-24] passed at c (F-001 · 4x)"
    assert [move.moved for move in made.moves] == ["passed at b"]


def test_curator_lines_and_malformed_lines_are_only_archived() -> None:
    """The curator's lines never enter memory; malformed lines are kept unchanged."""
    page, fates, _ = folded(
        entry(0, "TRICK", "from the curator", role="curator"),
        Entry(seq=1, at="", role="", feature="-", tag="", text="torn li\u2028ne"),
        entry(2, "TRICK", "  "),
    )
    assert page == "## Decisions\n\n## Context\n\n## History\n\n## Lessons\n"
    assert [(fate.disposition, fate.target) for fate in fates] == [
        ("curator", ""),
        ("malformed", ""),
        ("malformed", ""),
    ]
    assert fates[1].entry == "torn li\u2028ne"


def test_lines_that_agents_appended_by_hand_cannot_break_the_page() -> None:
    """An invalid feature name, an invalid time, tabs, a mark of the harness, and a heading in the text."""
    odd = Entry(seq=0, at="soonZ", role="worker", feature="F(1", tag="TRICK", text="Avoid: a\tb ## History")
    page, _, _ = folded(odd, odd.replace(seq=1))
    assert items(page, "Lessons") == ["- [2026-04-30] Avoid: a b ## History (2x)"]
    assert pages.render_page(pages.parse_page(page, pages.MEMORY_TITLES)) == page


def test_notes_without_room_are_archived_as_such() -> None:
    """New entries get `no_room`; items in memory leave by a move; a recurring failure may still be a lesson."""
    full = "".join(f"mine {n}\n" for n in range(192)) + "## History\n- [2026-04-01] old (1x)\n"
    page, fates, made = folded(entry(0, "FAIL", "red"), entry(1, "FAIL", "red"), entry(2, "-", "x"), page=full)
    assert page.count("\n") <= 200
    assert items(page, "Lessons") == ["- [2026-04-24] Avoid: red (F-001 · 2x)"]
    assert [fate.disposition for fate in fates] == ["merged", "merged", "no_room"]
    assert [fate.target for fate in fates] == ["MEMORY.md#Lessons: Avoid: red"] * 2 + [""]
    assert [move.moved for move in made.moves] == ["old"]
    assert all(f"mine {n}\n" in page for n in range(192))


def test_an_item_names_its_newest_features_only() -> None:
    """A line stays readable however often it occurs."""
    page, _, _ = folded(*(entry(n, "TRICK", "run setup first", f"F-{n:03}") for n in range(40)))
    (line,) = items(page, "Lessons")
    assert line.endswith("(" + ", ".join(f"F-{n:03}" for n in range(32, 40)) + " · 40x)")


def test_a_compaction_of_the_same_entries_gives_the_same_page() -> None:
    """It depends on no set order and no clock."""
    entries = [
        entry(n, ("TRICK", "AVOID", "FAIL", "-")[n % 4], f"say {n % 7} of {n % 5}", f"F-{n % 3}") for n in range(80)
    ]
    assert folded(*entries)[0] == folded(*entries)[0]
    assert compaction.note_of(entries[0]) == entries[0].text
