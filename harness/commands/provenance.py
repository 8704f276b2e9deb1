"""`memory why`: the entries of raw.md behind a line of memory, and the search for a line by its text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.memory import archive, lessons, pages, rebuild
from harness.memory.archive import ArchiveEntry, LessonChange
from harness.memory.lessons import Lesson, Lessons
from harness.memory.pages import CurationProgress
from harness.mission import mission
from harness.state import names, raw
from harness.state.layout import Layout
from harness.state.state import State

AGREED = tuple(name for name in Lesson.fields if name != "evidenced")  # of lessons.jsonl, from the archive alone
MAX_NAMED_LINES = 3  # lines in a fault
LIKE = 0.4  # min similarity of two texts, by difflib
MAX_LINE_CHARS = 100  # characters of a line in a fault
MARKS = re.compile(
    r"^-(?: |$)|^\[\d{4}-\d\d-\d\d\] | \((?:missions: )?(?:[\w.-]+(?:, [\w.-]+)* · )?\d+x\)$| \(pinned\)$"
    r"| \(superseded by entry -?\d+\)$| \(retired\)$|^(?:Avoid|Failed): |…$"
)


class MemoryLine(Record):
    """A line of memory: its text, its place ("" for a wording on no page), and its lesson, -1 for a person's line."""

    text: str
    place: str = ""
    lesson: int = -1

    @property
    def key(self) -> tuple[int, str]:
        """The meaning: equal for two lines of one lesson."""
        return (self.lesson, "") if self.lesson >= 0 else (-1, self.text.casefold())


def plain(line: str) -> str:
    """The text of a line without date, counts and marks."""
    text, before = " ".join(line.split()), ""
    while text != before:
        before, text = text, MARKS.sub("", text).strip()
    return text


def select(asked: str, *groups: list[MemoryLine]) -> list[MemoryLine]:
    """The lines that equal the text, or else start with it, of the first group with any. Raises UsageFault if their meanings
    differ, or if there is none."""
    wanted = plain(asked).casefold()
    if not wanted:
        raise UsageFault("Give the line, or its beginning.")
    for lines in groups:
        for fits in (str.__eq__, str.startswith):
            found = [one for one in lines if fits(one.text.casefold(), wanted)]
            if len({one.key for one in found}) == 1:
                return found
            if found:
                raise UsageFault(f"Several lines begin with '{_short(asked)}': {_named(found)}. Give more of the line.")
    near = _nearest(wanted, [one for lines in groups for one in lines if one.place])
    raise UsageFault(f"No line reads '{_short(asked)}'.{f' Did you mean {_named(near)}?' if near else ''}")


def _nearest(wanted: str, lines: list[MemoryLine]) -> list[MemoryLine]:
    """The most similar lines."""
    there = {one.text.casefold(): one for one in lines}
    return [there[text] for text in difflib.get_close_matches(wanted, list(there), MAX_NAMED_LINES, LIKE)]


def _named(lines: Iterable[MemoryLine]) -> str:
    texts = list(dict.fromkeys(_short(one.text) for one in lines))
    more = f" and {len(texts) - MAX_NAMED_LINES} more" if len(texts) > MAX_NAMED_LINES else ""
    return " or ".join(f"'{text}'" for text in texts[:MAX_NAMED_LINES]) + more


def _short(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"


# ---- lessons


def of_mission(layout: Layout) -> Lessons:
    """The lessons from lessons.jsonl, or rebuilt from the archive."""
    curated = pages.curated(layout)
    known = lessons.parse(State(layout).data(names.LESSONS), curated.folded, curated.generation)
    return rebuild.lessons(layout.path(names.ARCHIVE), curated) if known is None else known


def differs(layout: Layout, curated: CurationProgress) -> str:
    """The difference of lessons.jsonl to the archive, "" for none. Raises BrokenFile for a broken archive."""
    known = lessons.parse(State(layout).data(names.LESSONS), curated.folded, curated.generation)
    if known is None:
        return "does not parse, or belongs to another state of the archive"
    anew = rebuild.lessons(layout.path(names.ARCHIVE), curated)
    pruned = len(known.all) >= lessons.MAX_LESSONS
    if not pruned and (apart := sorted(known.all.keys() ^ anew.all.keys())):
        side = "has no lesson" if apart[0] in anew.all else "has a lesson"
        return f"{side} {apart[0]}, and the archive {'has' if apart[0] in anew.all else 'has none'}"
    for number in sorted(known.all.keys() & anew.all.keys()):
        one, other = known.all[number], anew.all[number]
        for name in AGREED:
            if getattr(one, name) != getattr(other, name):
                return f"has {getattr(one, name)!r} as {name} of lesson {number}, the archive gives {getattr(other, name)!r}"
    return ""


# ---- memory why


def why(layout: Layout, asked: str) -> dict[str, Any]:
    """The evidence for a line of summary.md or MEMORY.md, or for a lesson that left them: for the keys see docs/contract.md.
    Raises UsageFault if no line or several lines match."""
    mission.check_format(layout)
    known = of_mission(layout)
    on_pages, wordings = _on_pages(layout, known), _wordings(known)
    found = select(asked, on_pages, wordings)
    lesson = known.all.get(found[0].lesson)
    places = [one.place for one in on_pages if one.key == found[0].key]
    entries, changes = _behind(layout, lesson) if lesson else ([], [])
    text = lesson.text if lesson else found[0].text
    return {"line": text, "places": places, "lesson": lesson, "entries": entries, "changes": changes}


def _wordings(known: Lessons) -> list[MemoryLine]:
    return [
        MemoryLine(text=plain(text), lesson=one.id)
        for one in known.all.values()
        for text in filter(None, (*one.texts, one.said))
    ]


def _on_pages(layout: Layout, known: Lessons) -> list[MemoryLine]:
    """The lines of summary.md and MEMORY.md, with the lessons of the curator's lines."""
    texts = {plain(one.text).casefold(): one.id for one in known.all.values()}
    found = []
    for page, name in (("summary", names.SUMMARY), ("memory", names.MEMORY)):
        written, path = known.written.get(page), layout.folders.relative(State(layout).path(name))
        for number, line in enumerate((State(layout).text(name) or "").split("\n"), 1):
            text = plain(line)
            if text and not line.startswith("#"):
                lesson = texts.get(text.casefold(), -1) if written is None else written.get(line, -1)
                found.append(MemoryLine(text=text, place=f"{path}:{number}", lesson=lesson))
    return found


def _behind(layout: Layout, lesson: Lesson) -> tuple[list[dict[str, Any]], list[LessonChange]]:
    """The archived entries of a lesson and of those merged into it, and the changes of and by it, in order."""
    rows: dict[int, list[ArchiveEntry]] = {}
    changes: list[LessonChange] = []
    for row in archive.forwards(layout.path(names.ARCHIVE)):
        if isinstance(row, ArchiveEntry):
            rows.setdefault(row.lesson, []).append(row)
        elif isinstance(row, LessonChange):
            changes.append(row)
    ids = {lesson.id}
    for change in reversed(changes):
        if change.change == "merged" and change.by in ids:
            ids.add(change.lesson)
    mine = sorted((row for number in ids for row in rows.get(number, [])), key=lambda row: row.seq)
    return [_entry(row) for row in mine], [one for one in changes if one.lesson in ids or one.by in ids]


def _entry(row: ArchiveEntry) -> dict[str, Any]:
    entry = raw.parse_line(row.entry, row.seq)
    return {**entry.asdict(), "run": row.run, "disposition": row.disposition, "target": row.target, "why": row.why}
