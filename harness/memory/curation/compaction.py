"""Compacts raw entries: each is gated, joins a lesson or replaces one, and gets exactly one disposition. Pure.

MEMORY.md shows the most valuable lessons within its lines; people's lines stay, and lessons that they deleted are
forgotten. The pages are derived only from the lessons, so that deriving them twice gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.base.record import Record
from harness.memory import archive, edits, gates, lessons, pages
from harness.memory.archive import ArchiveEntry, LessonChange
from harness.memory.curation.growth import Evidence, Graduation
from harness.memory.lessons import DECISION, FORGOTTEN, RETIRED, Lesson, Lessons
from harness.memory.pages import CurationProgress, PageItem
from harness.state import raw
from harness.state.raw import RawEntry

KINDS = {"TRICK": "lesson", "AVOID": "avoid", "DECISION": DECISION, "CONTEXT": "context", "FAIL": "fail", "-": "other"}
MARKS = {"avoid": pages.AVOID_MARK, "fail": pages.FAIL_MARK}
PAGE, SUMMARY = "MEMORY.md", "summary.md"
PERSON = "person"
NO_ROOM = f"no room in {pages.MEMORY_LINES} lines"
SAID = "a person's line says it"
RED_CLAIM = re.compile(r"\b[A-Z][A-Z0-9]*-[\w-]+ is (?:red|unproven|flaky|broken|not proven|refuted)\b")
VOICES_OF_AVOID = 2  # a failure with this many authors is something to avoid

# Lines of MEMORY.md reserved for each section; the rest is shared in this order.
FLOORS = {pages.DECISIONS: 60, pages.LESSONS: 70, pages.CONTEXT: 25, pages.HISTORY: 15}


class Inputs(Record):
    """All inputs of a plan. `waiting`: the entries from number `curated.folded` on, up to byte `end` of raw.md (`crc`:
    the checksum before it); unless it is the last batch, more wait. `known`: the mission's lessons. `identities`: text
    by role. `project_names`: paths and ids of this project; `symbols` filters names that its code defines. `counted`:
    whether counts alone move a lesson to an identity. `forgotten`: (role, text) that a person removed from the
    identities. `places`: the shown paths of MEMORY.md and summary.md."""

    mission: str
    run: str
    today: str
    waiting: list[RawEntry]
    curated: CurationProgress
    known: Lessons
    end: int = 0
    crc: int = 0
    is_last: bool = True
    memory: str | None = None
    summary: str | None = None
    evidence: list[Evidence] = []
    identities: dict[str, str] = {}
    project_names: frozenset[str] = frozenset()
    symbols: Callable[[list[str]], set[str]]
    counted: bool = False
    forgotten: list[tuple[str, str]] = []
    places: tuple[str, str] = ("memory/MEMORY.md", "memory/summary.md")


class Occurrence(Record):
    """A new occurrence of a lesson; `again`: the lesson was in memory before, and a different run notes it."""

    entry: RawEntry
    text: str
    lesson: int
    again: bool = False


class Compaction:
    """A compaction in progress: pages, lessons, the disposition of every waiting entry, and changes. `alone`: entries
    that are separate lessons, or repeat one verbatim."""

    def __init__(self, before: Inputs, alone: frozenset[int] = frozenset()) -> None:
        self.before, self.lessons, self.alone = before, before.known, alone
        self.dispositions: dict[int, tuple[str, int, str]] = {}
        self.changes: list[tuple[int, LessonChange]] = []
        self.taken = 0
        self.said: list[Occurrence] = []
        self.page, self.short = edits.pages_of(before.memory, before.summary, before.places)
        deleted, self.there, self.told = edits.take(self.page, self.short, self.lessons)
        for lesson_id in deleted:
            lesson = self.lessons.all[lesson_id]
            lesson.state = FORGOTTEN
            self.change("forgotten", lesson, "a person deleted its line")
        self.shown: dict[int, str] = {}
        self.worthy: list[int] = []
        self.said_by_people: set[int] = set()
        self.merged: dict[int, int] = {}
        self.marked: set[int] = set()  # lessons that an agent marked for an identity
        self.candidates: list[Graduation] = []  # candidates that wait for an agent or a person

    def change(self, what: str, lesson: Lesson, why: str, by: int = -1) -> None:
        """Record a change of a lesson, after the compacted entries."""
        self.note(what, lesson.id, lesson.text, why, by)

    def note(self, what: str, lesson: int, text: str, why: str, by: int = -1) -> None:
        """Record a change of a text, of a lesson by number or -1, after the compacted entries."""
        made = LessonChange(change=what, lesson=lesson, text=text, by=by, why=why, run=self.before.run)
        self.changes.append((self.taken, made))

    # ---- entries

    def take(self, entry: RawEntry) -> None:
        """Compact one entry."""
        self.taken += 1
        note, kind = note_of(entry), kind_of(entry)
        reason = gates.gated(entry.text)
        if reason:
            self.dispositions[entry.seq] = ("gated", -1, reason)
        elif entry.role == raw.CURATOR:
            self.dispositions[entry.seq] = ("dropped", -1, "an entry of the compacting role")
        elif not entry.tag or not note:
            self.dispositions[entry.seq] = ("dropped", -1, "no entry")
        elif kind == "other":
            self._take_untagged(entry, note)
        elif kind != "avoid" and gates.is_report(note, entry.tag):
            self.dispositions[entry.seq] = ("dropped", -1, "a status report")
        else:
            self._take_note(entry, kind, note)

    def _take_untagged(self, entry: RawEntry, note: str) -> None:
        """Handle an untagged entry, or one of a red claim: one line per feature, with the newest wording."""
        if gates.is_report(note, "-") and entry.tag == "-" and entry.role != "validator":
            self.dispositions[entry.seq] = ("dropped", -1, "a status report")
            return
        lesson = self.lessons.all.get(self.lessons.others.get(other_key(entry, note), -1))
        if lesson is None or not lesson.holds:
            lesson = self.lessons.add(entry.seq, "other", note)
            self.lessons.others[other_key(entry, note)] = entry.seq
        else:
            self.lessons.say(lesson, "other", note)
        self._count(lesson, entry, note)

    def _take_note(self, entry: RawEntry, kind: str, note: str) -> None:
        """Handle a tagged note: it repeats a known lesson, replaces others, or is new."""
        same, older = self.lessons.relations(kind, note)
        lesson = self.lessons.all[same] if same is not None else None
        if lesson is not None and lesson.state == FORGOTTEN and entry.role != PERSON:
            self.dispositions[entry.seq] = ("dropped", lesson.id, archive.DELETED)
            return
        if not self.lessons.has_words(kind, note):
            lesson = None  # also of a person, where it looks like a deleted one
        older = [] if entry.seq in self.alone else older
        if lesson is None:
            self.lessons.make_room()
            lesson = self.lessons.add(entry.seq, kind, note)
        else:
            self.lessons.say(lesson, kind, note)
            self.lessons.retag(lesson, kind)
        self._count(lesson, entry, note)
        for number in older:
            replaced = self.lessons.all.get(number)
            if replaced is not None:  # it may just have been dropped to make room
                self.supersede(replaced, lesson, f"entry {entry.seq} is newer")

    def merge(self, gone: Lesson, into: Lesson, why: str) -> None:
        """Merge two lessons. The archive keeps the entries of `gone` under its number, and the change."""
        self.change("merged", gone, why, into.id)
        self.lessons.merge(gone, into)
        self.merged[gone.id] = into.id
        self.said = [one.replace(lesson=into.id) if one.lesson == gone.id else one for one in self.said]

    def lesson_of(self, number: int) -> Lesson | None:
        """The present lesson of this number; None if there is none."""
        while number in self.merged:
            number = self.merged[number]
        return self.lessons.all.get(number)

    def supersede(self, older: Lesson, newer: Lesson, why: str) -> None:
        """Replace the older lesson by the newer one."""
        self.lessons.supersede(older, newer)
        self.change("superseded", older, why, newer.id)

    def _count(self, lesson: Lesson, entry: RawEntry, note: str) -> None:
        """Count an occurrence of a lesson."""
        again = lesson.id in self.there and lessons.voice_of(entry) not in lesson.voices[-1:]
        self.said.append(Occurrence(entry=entry, text=note, lesson=lesson.id, again=again))
        why = archive.OF_ITS_OWN if entry.seq in self.alone else ""
        self.dispositions[entry.seq] = ("merged" if lesson.count else "kept", lesson.id, why)
        lesson.hear(entry)

    # ---- MEMORY.md

    def worth(self, lesson: Lesson) -> tuple[float, int]:
        """The worth of a lesson: the runs that noted it and an agent's rank, then its newest entry. Larger is better."""
        return lesson.heard + lesson.rank, lesson.last

    def lay_out(self) -> None:
        """Put the most valuable lessons on MEMORY.md. `shown`: these with their lines; `worthy`: those that would be
        shown if people had written nothing."""
        self.lessons.prune()
        offers: dict[str, list[Lesson]] = {title: [] for title in pages.MEMORY_TITLES}
        mine = edits.hand_index(self.page)
        for lesson in self.lessons.all.values():
            if lesson.state == FORGOTTEN:
                continue
            if edits.is_said(mine, lesson):
                self.said_by_people.add(lesson.id)
            else:
                offers[title_of(lesson)].append(lesson)
        for title, found in offers.items():
            by = (lambda one: (float(one.last), one.last)) if title == pages.HISTORY else self.worth
            found.sort(key=by, reverse=True)
        room = pages.MEMORY_LINES - edits.prepare(self.page, pages.MEMORY_TITLES)
        counts = {title: len(found) for title, found in offers.items()}
        for title, count in shares(counts, pages.MEMORY_LINES - 2 * len(counts)).items():
            self.worthy += sorted(lesson.id for lesson in offers[title][:count])
        for title, count in shares(counts, room).items():
            chosen = [one for group in self.lessons.neighbours(offers[title][:count]) for one in group]
            items = [self._item(lesson) for lesson in chosen]
            edits.place(self.page, title, items)
            self.shown |= {lesson.id: pages.render_item(item) for lesson, item in zip(chosen, items, strict=True)}
        edits.spaced(self.page)
        older = sum(map(len, offers.values())) - len(self.shown)
        self.page.section(pages.MEMORY_TITLES[0]).heading += pages.older_lines(older)
        for number in sorted(self.there - self.shown.keys() & self.lessons.all.keys()):
            if self.lessons.all[number].state != FORGOTTEN:
                self.change("left", self.lessons.all[number], self._why_not(number))
        self.lessons.written["memory"] = {line: number for number, line in self.shown.items()}

    def _why_not(self, number: int) -> str:
        """Why a lesson is not on MEMORY.md."""
        return SAID if number in self.said_by_people else NO_ROOM

    def _item(self, lesson: Lesson) -> PageItem:
        where = [name for name in lesson.where if name != "-"]
        return PageItem(
            date=lesson.date or self.before.today, text=line_of(lesson), where=where, count=max(1, lesson.count)
        )

    def archived(self, promoted: set[int], graduated: set[int]) -> list[ArchiveEntry | LessonChange]:
        """Every waiting entry with its disposition, each change after the entry that caused it."""
        rows: list[ArchiveEntry | LessonChange] = []
        waiting = iter(self.changes)
        place, change = next(waiting, (-1, None))
        for number, entry in enumerate([*self.before.waiting, None]):
            while change is not None and place <= number:
                rows.append(change)
                place, change = next(waiting, (-1, None))
            rows += [self._archived(entry, promoted, graduated)] if entry else []
        return rows

    def _why_retired(self, lesson: Lesson) -> str:
        """The disposition and reason of a lesson that is retired like one never noted."""
        found = [change.why for _, change in self.changes if (change.change, change.lesson) == ("retired", lesson.id)]
        return found[-1] if found else "retired"

    def _archived(self, entry: RawEntry, promoted: set[int], graduated: set[int]) -> ArchiveEntry:
        what, number, why = self.dispositions[entry.seq]
        lesson = self.lesson_of(number)
        target, line = "", entry.line()
        if what in ("kept", "merged") and lesson:
            page = PAGE if lesson.id in self.shown else SUMMARY if lesson.id in promoted else ""
            target = f"{page}#{title_of(lesson)}" if page else ""
            if lesson.state == RETIRED:
                what, why = "dropped", self._why_retired(lesson)
            elif not lesson.holds:
                what, why = "superseded", f"lesson {lesson.by} holds instead"
            elif not target:
                what, why = "dropped", self._why_not(lesson.id)
            elif number in self.merged:
                what = "merged"
            elif what == "kept":
                what = "graduated" if number in graduated else "promoted" if number in promoted else "kept"
        elif what in ("kept", "merged"):
            what, why = "dropped", NO_ROOM
        elif what == "gated":
            line = archive.masked_line(entry, why)
        return ArchiveEntry(
            seq=entry.seq, entry=line, disposition=what, target=target, run=self.before.run, why=why, lesson=number
        )


def shares(offers: dict[str, int], room: int) -> dict[str, int]:
    """{section: its lines of `room`}: each gets its floor first (History after all decisions); the rest is given in the
    order of FLOORS."""
    given, history = dict.fromkeys(offers, 0), pages.HISTORY
    for most in (FLOORS | {history: 0}, FLOORS | {pages.DECISIONS: room, history: 0}, FLOORS, offers):
        for title in FLOORS:
            more = max(0, min(offers[title], most[title]) - given[title])
            more = min(more, max(0, room))
            given[title] += more
            room -= more
    return given


def title_of(lesson: Lesson) -> str:
    """The section of MEMORY.md that shows a lesson."""
    if not lesson.holds or lesson.kind == "other" or (lesson.kind == "fail" and len(lesson.voices) < VOICES_OF_AVOID):
        return pages.HISTORY
    return {DECISION: pages.DECISIONS, "context": pages.CONTEXT}.get(lesson.kind, pages.LESSONS)


def line_of(lesson: Lesson) -> str:
    """The line of a lesson on MEMORY.md, with the mark of its kind."""
    if not lesson.holds:
        return f"{lesson.text} (superseded by entry {lesson.by})" if lesson.by >= 0 else f"{lesson.text} (retired)"
    if is_avoid(lesson):
        return pages.AVOID_MARK + lesson.text
    return (pages.FAIL_MARK if lesson.kind == "fail" else "") + lesson.text


def is_avoid(lesson: Lesson) -> bool:
    """Whether a lesson is something to avoid."""
    return lesson.kind == "avoid" or (lesson.kind == "fail" and title_of(lesson) == pages.LESSONS)


def kind_of(entry: RawEntry) -> str:
    """The kind of an entry's note, "" for an invalid one. A red claim is history, like an untagged line."""
    text = raw.one_line(entry.text)
    if entry.tag == "TRICK" and text.casefold().startswith(pages.AVOID_MARK.casefold()):
        return "avoid"
    if entry.tag == "FAIL" and RED_CLAIM.search(text):
        return "other"
    return KINDS.get(entry.tag, "")


def note_of(entry: RawEntry) -> str:
    """The note of an entry, on one readable line and without the mark of its kind."""
    kind, text = "fail" if entry.tag == "FAIL" else kind_of(entry), raw.one_line(entry.text)
    mark = MARKS.get(kind, "")
    return raw.readable(text[len(mark) :] if text.casefold().startswith(mark.casefold()) else text)


def other_key(entry: RawEntry, note: str) -> str:
    """The grouping key of an untagged line: its feature, else its text."""
    return f"{entry.tag} {(lessons.features_of([entry]) or [note])[0]}"
