"""Compacts raw entries into MEMORY.md: notes with the same meaning are grouped; every entry gets a disposition. Pure.

An entry becomes a new item, adds an occurrence to an item, or gives an item newer words. Groups include the newest archived
entries (`curator.gather` has the bound; in most missions these are all), so that a note that was dropped for lack of room
returns with all its occurrences when it is noted again.
"""

from __future__ import annotations

import re

from harness.base.record import Record
from harness.memory import pages, raw, similarity
from harness.memory.archive import Archived, Move
from harness.memory.identity import Evidence
from harness.memory.pages import Curated, Item
from harness.memory.raw import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = {"TRICK": "lesson", "AVOID": "avoid", "DECISION": "decision", "CONTEXT": "context", "FAIL": "fail"}
TITLES = {"lesson": pages.LESSONS, "avoid": pages.LESSONS, "decision": pages.DECISIONS, "context": pages.CONTEXT}
TITLES |= {"fail": pages.HISTORY, "other": pages.HISTORY}
MARKS = {"avoid": pages.AVOID_MARK, "fail": pages.FAIL_MARK}
PAGE = "MEMORY.md"
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
FEATURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Inputs(Record):
    """All inputs of a plan. `waiting` are entries number `curated.folded` and on; behind the byte `end` of raw.md (`crc`: the
    checksum before it) more wait, unless it is the last batch. `archive`: the newest archived entries. `known`: the items of
    MEMORY.md before this run's first batch, None if this is it. `ours`: notes on the summary that only older entries have.
    `identities`: text by role. `project_names`: paths and ids of this project. `places`: the shown paths of MEMORY.md and
    summary.md."""

    mission: str
    run: str
    today: str
    waiting: list[Entry]
    curated: Curated
    end: int = 0
    crc: int = 0
    is_last: bool = True
    known: frozenset[str] | None = None
    memory: str | None = None
    summary: str | None = None
    archive: list[Archived] = []
    ours: frozenset[str] = frozenset()
    evidence: list[Evidence] = []
    identities: dict[str, str] = {}
    project_names: frozenset[str] = frozenset()
    places: tuple[str, str] = ("memory/MEMORY.md", "memory/summary.md")


class Occurrence(Record):
    """One occurrence of a note; compacted by `run`, `is_new` in this compaction."""

    entry: Entry
    text: str
    run: str
    is_new: bool


class Group(Record):
    """Occurrences with the same meaning, the first of them in `text`. `was_known`: in MEMORY.md before this run."""

    kind: str
    text: str
    occurrences: list[Occurrence] = []
    item: Item | None = None
    was_known: bool = False


class Groups:
    """All notes of the mission, grouped by kind and meaning."""

    def __init__(self) -> None:
        self.by_kind: dict[str, tuple[similarity.Index, list[Group]]] = {
            kind: (similarity.Index(), []) for kind in TITLES
        }

    def place(self, kind: str, text: str) -> Group:
        """The group with the same meaning; a new one if there is none."""
        index, groups = self.by_kind[kind]
        number = index.place(text)
        if number == len(groups):
            groups.append(Group(kind=kind, text=text))
        return groups[number]

    def of(self, *kinds: str) -> list[Group]:
        """The groups of these kinds, in the order of their first note."""
        return [group for kind in kinds for group in self.by_kind[kind][1]]


class Compaction:
    """A compaction in progress: the new page, the groups, and the disposition of every waiting entry."""

    def __init__(self, before: Inputs) -> None:
        self.before = before
        self.page = pages.parse_page(before.memory, pages.MEMORY_TITLES)
        self.groups = Groups()
        self.untagged: dict[str, Item] = {}
        self.new: dict[str, list[Item]] = {title: [] for title in pages.MEMORY_TITLES}
        self.titles: dict[int, str] = {}
        self.dispositions: dict[int, tuple[str, Item | None]] = {}
        self.recurred: dict[int, Item] = {}
        self.authors: dict[int, int] = {}
        self.moves: list[Move] = []
        self.ours: set[str] = {*before.ours}
        for row in before.archive:
            self._add_to_group(raw.parse_line(row.entry, row.seq), row.run, is_new=False)
        for title in pages.MEMORY_TITLES:
            for item in self.page.items(title):
                self._add_known(title, item)

    def _add_to_group(self, entry: Entry, run: str, *, is_new: bool) -> Group | None:
        """Add an entry with a note to its group; None for other entries."""
        text, kind = note_of(entry), _kind_of_entry(entry)
        self.ours.add(text)
        if not kind or not text or entry.role == raw.CURATOR:
            return None
        group = self.groups.place(kind, text)
        group.occurrences.append(Occurrence(entry=entry, text=text, run=run, is_new=is_new))
        return group

    def _add_known(self, title: str, item: Item) -> None:
        """Add an item that is already in MEMORY.md."""
        kind = _kind_of_item(title, item.text)
        self.titles[id(item)] = title
        self.ours.add(item.text.removeprefix(MARKS.get(kind, "")))
        if kind == "other":
            self.untagged.setdefault(item.where[0] if len(item.where) == 1 else item.text, item)
            return
        group = self.groups.place(kind, item.text.removeprefix(MARKS.get(kind, "")))
        group.item = group.item or item
        known = self.before.known
        group.was_known = group.was_known or known is None or item.text in known

    def take(self, entry: Entry) -> None:
        """Compact one entry."""
        group = self._add_to_group(entry, self.before.run, is_new=True)
        if group:
            self._count(group, entry)
            if group.kind == "fail" and len(group.occurrences) > 1:
                self._recur(group, entry)
        elif entry.role == raw.CURATOR:
            self.dispositions[entry.seq] = (raw.CURATOR, None)
        elif not entry.tag or not note_of(entry):
            self.dispositions[entry.seq] = ("malformed", None)
        else:
            self._take_untagged(entry)

    def _count(self, group: Group, entry: Entry) -> None:
        """Count an occurrence: a new item, or one more for the present item; a decision takes its newest words."""
        item = group.item
        if item is None:
            group.item = self._new_item(group.kind, entry, group.occurrences)
            return
        _add_occurrence(item, entry, self.before.today)
        if group.kind == "decision" and item.text != group.occurrences[-1].text:
            self._reword(item, entry, group.occurrences[-1].text, "superseded", f"superseded by entry {entry.seq}")
        else:
            self.dispositions[entry.seq] = ("merged", item)

    def _recur(self, group: Group, entry: Entry) -> None:
        """Turn a repeated failure into an item to avoid."""
        avoid = self.groups.place("avoid", group.text)
        if avoid.item is None:
            avoid.item = self._add("avoid", group.text, group.occurrences + avoid.occurrences)
            self.recurred.update({one.entry.seq: avoid.item for one in group.occurrences})
        else:
            _add_occurrence(avoid.item, entry, self.before.today)
        self.recurred[entry.seq] = avoid.item

    def _take_untagged(self, entry: Entry) -> None:
        """Compact an untagged entry: one line per feature, in its newest words."""
        key = next(iter(features_of([entry])), "") or note_of(entry)
        item = self.untagged.get(key)
        if item is None:
            first = Occurrence(entry=entry, text=note_of(entry), run=self.before.run, is_new=True)
            self.untagged[key] = self._new_item("other", entry, [first])
            return
        _add_occurrence(item, entry, self.before.today)
        if item.text == note_of(entry):
            self.dispositions[entry.seq] = ("merged", item)
        else:
            self._reword(item, entry, note_of(entry), "merged", f"entry {entry.seq} is newer")

    def _reword(self, item: Item, entry: Entry, text: str, old_disposition: str, why: str) -> None:
        """Give the item new words; the archive records the old ones."""
        author = self.authors.get(id(item))
        if author is not None:
            self.dispositions[author] = (old_disposition, item)
        else:
            self.moves.append(self._move(item, why))
        item.text = text
        self.authors[id(item)] = entry.seq
        self.dispositions[entry.seq] = ("item", item)

    def _new_item(self, kind: str, entry: Entry, occurrences: list[Occurrence]) -> Item:
        item = self._add(kind, occurrences[-1].text, occurrences)
        self.authors[id(item)] = entry.seq
        self.dispositions[entry.seq] = ("item", item)
        return item

    def _add(self, kind: str, text: str, occurrences: list[Occurrence]) -> Item:
        where = features_of(one.entry for one in occurrences)[-pages.MOST_NAMED :]
        date = max(_day_of(one.entry, self.before.today) for one in occurrences)
        item = Item(date=date, text=MARKS.get(kind, "") + text, where=where, count=len(occurrences))
        self.new[TITLES[kind]].append(item)
        self.titles[id(item)] = TITLES[kind]
        return item

    def _move(self, item: Item, why: str) -> Move:
        origin = f"{PAGE}#{self.titles[id(item)]}"
        return Move(moved=item.text, origin=origin, to="archive.jsonl", run=self.before.run, why=why)

    def lay_out(self) -> list[Archived]:
        """Put the new items on the page, cut it to its bound, and give every entry its disposition."""
        new = {id(item) for items in self.new.values() for item in items}
        for title in pages.MEMORY_TITLES:
            pages.add_items(self.page.section(title), self.new[title])
        gone = pages.fit(self.page, pages.MEMORY_LINES, pages.memory_first_to_go, self.before.places[0])
        why = f"no room in {pages.MEMORY_LINES} lines"
        self.moves += [self._move(item, why) for item in gone if id(item) not in new]
        lost = {id(item) for item in gone}
        return [self._archived(entry, lost) for entry in self.before.waiting]

    def _archived(self, entry: Entry, lost: set[int]) -> Archived:
        disposition, item = self.dispositions[entry.seq]
        if item is not None and id(item) in lost:
            item = self.recurred.get(entry.seq)
            disposition = "merged" if item is not None and id(item) not in lost else "no_room"
        target = ""
        if item is not None and disposition != "no_room":
            target = f"{PAGE}#{self.titles[id(item)]}" + ("" if disposition == "item" else f": {item.text}")
        return Archived(seq=entry.seq, entry=entry.line(), disposition=disposition, target=target, run=self.before.run)


def _kind_of_entry(entry: Entry) -> str:
    """The kind of an entry's note, "" if untagged; a trick that states something to avoid is an avoid."""
    if entry.tag == "TRICK" and raw.one_line(entry.text).startswith(pages.AVOID_MARK):
        return "avoid"
    return KINDS.get(entry.tag, "")


def note_of(entry: Entry) -> str:
    """The note of an entry, on one readable line and without the mark of its kind."""
    return raw.readable(raw.one_line(entry.text).removeprefix(MARKS.get(_kind_of_entry(entry), "")))


def _kind_of_item(title: str, text: str) -> str:
    """The kind of an item on MEMORY.md, by its heading and mark."""
    if title == pages.LESSONS:
        return "avoid" if text.startswith(pages.AVOID_MARK) else "lesson"
    if title == pages.HISTORY:
        return "fail" if text.startswith(pages.FAIL_MARK) else "other"
    return "decision" if title == pages.DECISIONS else "context"


def features_of(entries: Iterable[Entry]) -> list[str]:
    """The features of the entries, in order; invalid names are left out."""
    return list(dict.fromkeys(entry.feature for entry in entries if FEATURE.fullmatch(entry.feature)))


def _day_of(entry: Entry, today: str) -> str:
    """The day of an entry; today if its time is invalid."""
    return entry.at[:10] if DAY.match(entry.at) else today


def _add_occurrence(item: Item, entry: Entry, today: str) -> None:
    """Add one more occurrence to an item."""
    item.count += 1
    item.date = max(item.date, _day_of(entry, today))
    if entry.feature not in item.where:
        item.where = [*item.where, *features_of([entry])][-pages.MOST_NAMED :]
