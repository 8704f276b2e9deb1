"""Separates people's lines on memory pages from the curator's, which `lessons.jsonl` records.

A line that the curator did not write is a person's, and never dropped or rewritten. A missing line of the curator was
deleted by a person: its lesson is forgotten. A person's addition to summary.md moves to MEMORY.md, marked `(pinned)`;
pinned lines always stay on the summary. A person's own section, or text before the first heading, is on both pages.
"""

from __future__ import annotations

import re

from harness.base.errors import BrokenFile
from harness.memory import pages
from harness.memory._similarity import Index
from harness.memory._words import plain
from harness.memory.lessons import FORGOTTEN, Lesson, Lessons, compared
from harness.memory.pages import MemoryPage, PageItem, PageSection

PINNED = pages.PINNED
PERSONS = -1  # in `written`, instead of a lesson: a pinned line
MAX_SUMMARY_LINE_CHARS = 240  # characters of a text on the summary
ENDINGS = (re.compile(r" \(superseded by entry [0-9]+\)$"), re.compile(r" \(retired\)$"))
DATED = re.compile(r"^- (?:\[[0-9]{4}-[0-9]{2}-[0-9]{2}\] )?")  # before a text on the summary
MOVES_TO = {pages.LESSONS: pages.LESSONS, pages.CURRENT: pages.DECISIONS, pages.AVOID: pages.LESSONS}


def pages_of(memory: str | None, summary: str | None, places: tuple[str, str]) -> tuple[MemoryPage, MemoryPage]:
    """Parse MEMORY.md and summary.md; raises BrokenFile with the line of a repeated standard heading."""
    return _page(memory, pages.MEMORY_TITLES, places[0]), _page(summary, pages.SUMMARY_TITLES, places[1])


def _page(text: str | None, titles: tuple[str, ...], path: str) -> MemoryPage:
    page, seen, number = pages.parse_page(text or "", ()), set[str](), 1
    for section in page.sections:
        if section.title in titles and section.title in seen:
            fault = f"has the heading '## {section.title}' twice"
            raise BrokenFile(path, fault, line=number, remedy="Merge the two sections.")
        seen.add(section.title)
        number += len(section.lines) + bool(section.heading)
    return page


def take(page: MemoryPage, short: MemoryPage, known: Lessons) -> tuple[list[int], set[int], set[int]]:
    """Leave only people's lines on both pages, and move those of the summary to MEMORY.md. Returns (lessons whose lines
    were deleted, lessons that were on MEMORY.md, lessons that were on summary.md)."""
    _unpin(page, short, known.written.get("summary") or {})
    gone, there = _strip(page, pages.MEMORY_TITLES, known, "memory")
    untold, told = _strip(short, pages.SUMMARY_TITLES, known, "summary")
    gone |= untold
    for section in short.sections:
        if section.title in MOVES_TO:
            section.heading = f"## {section.title}"
        move = _pin if section.title in (*MOVES_TO, *pages.MEMORY_TITLES) else _pin_own
        move(page, section.title, [str(line).rstrip() for line in section.lines])
        section.lines = []
    return sorted(number for number in gone if number in known.all and known.all[number].holds), there, told


def _unpin(page: MemoryPage, short: MemoryPage, written: dict[str, int]) -> None:
    """Unpin lines that a person deleted from the summary; MEMORY.md keeps them like any line of a person."""
    there = {str(line).rstrip() for section in short.sections for line in section.lines}
    gone = {line for line, number in written.items() if number == PERSONS and line.rstrip() not in there}
    for section in page.sections if there and gone else ():
        section.lines = [
            str(line).rstrip().removesuffix(PINNED) if as_pinned(str(line), section.title) in gone else line
            for line in section.lines
        ]


def _strip(page: MemoryPage, titles: tuple[str, ...], known: Lessons, name: str) -> tuple[set[int], set[int]]:
    """Remove the curator's lines from the page; returns (lessons without a line, lessons that had one)."""
    written = known.written.get(name)
    by_line = None if written is None else {line.rstrip(): number for line, number in written.items()}
    texts = _texts(known) if by_line is None else {}
    found: set[int] = set()
    for section in page.sections:
        if section.title in titles:
            kept: list[PageItem | str] = []
            for line in section.lines:
                number = _of_lesson(str(line), texts, name) if by_line is None else by_line.get(str(line).rstrip())
                if number is not None:
                    found.add(number)
                else:
                    kept.append(line)
            section.lines = _trimmed(kept)
    if by_line is not None:
        found |= _strip_elsewhere(
            page, titles, {line: one for line, one in by_line.items() if one not in found or one == PERSONS}
        )
    is_empty = not any(line for section in page.sections for line in (section.heading, *section.lines)) and not found
    before = found if written is None else set(written.values())
    return set() if is_empty else before - found, before


def _strip_elsewhere(page: MemoryPage, titles: tuple[str, ...], by_line: dict[str, int]) -> set[int]:
    """Remove the curator's lines from other sections, where a person moved them or inserted a heading above. Returns
    their lessons. A copy of a line that is still in its place counts as a person's."""
    found: set[int] = set()
    for section in page.sections if by_line else ():
        if section.title not in titles:
            found |= {by_line[line] for one in section.lines if (line := str(one).rstrip()) in by_line}
            section.lines = [line for line in section.lines if str(line).rstrip() not in by_line]
    return found


def _texts(known: Lessons) -> dict[str, int]:
    """{text: lesson} of the lines that the curator may have written, for state without a record of them."""
    held = (lesson for lesson in known.all.values() if lesson.state != FORGOTTEN)
    texts = ((text, lesson.id) for lesson in held for text in (*lesson.texts, lesson.said) if text)
    return {form: number for text, number in texts for form in (text, shown(text))}


def _of_lesson(line: str, texts: dict[str, int], name: str) -> int | None:
    """The lesson of a line by the curator; None for a person's line."""
    item = pages.parse_item(line)
    if item is None:
        return texts.get(DATED.sub("", line)) if name == "summary" and line.startswith("- ") else None
    text = item.text.removeprefix(pages.AVOID_MARK).removeprefix(pages.FAIL_MARK)
    for ending in ENDINGS:
        text = ending.sub("", text)
    return texts.get(text)


def shown(text: str) -> str:
    """The text of a lesson on the summary."""
    return text if len(text) <= MAX_SUMMARY_LINE_CHARS else text[: MAX_SUMMARY_LINE_CHARS - 1].rstrip() + "…"


def _trimmed(lines: list[PageItem | str]) -> list[PageItem | str]:
    while lines and not str(lines[-1]).strip():
        lines.pop()
    while lines and not str(lines[0]).strip():
        lines.pop(0)
    return lines


def _pin(page: MemoryPage, title: str, lines: list[str]) -> None:
    """Move a person's lines below a standard heading of the summary to MEMORY.md."""
    section = page.section(MOVES_TO.get(title, title)) if lines else PageSection(heading="")
    for one in lines:
        text = one.strip().removeprefix("- ").removesuffix(PINNED).strip()
        mark = pages.AVOID_MARK if title == pages.AVOID and not text.startswith(pages.AVOID_MARK) else ""
        if text:
            _put(section, f"- {mark}{text}", section.lines)


def _pin_own(page: MemoryPage, title: str, lines: list[str]) -> None:
    """Copy a person's own section of the summary to MEMORY.md verbatim; "" is the text before the first heading."""
    section = page.section(title) if title else page.sections[0]
    before = [*section.lines]
    for line in lines:
        if line:
            _put(section, line.removesuffix(PINNED), before)


def _put(section: PageSection, line: str, known: list[PageItem | str]) -> None:
    """Add a pinned line to a section, or mark the equal line that is already there."""
    if line in known and line in section.lines:
        section.lines[section.lines.index(line)] = line + PINNED
    elif line + PINNED not in known:
        section.lines.append(line + PINNED)


def pinned(page: MemoryPage) -> dict[str, list[str]]:
    """{heading of the summary: its pinned lines as shown there}."""
    found: dict[str, list[str]] = {title: [] for title in pages.SUMMARY_TITLES}
    for section in page.sections:
        for line in section.lines:
            if shown_there := as_pinned(str(line), section.title):
                found.setdefault(_heading_of(str(line), section.title), []).append(shown_there)
    return found


def _heading_of(line: str, title: str) -> str:
    """The heading of the summary for a pinned line in this section of MEMORY.md."""
    if title not in pages.MEMORY_TITLES:
        return title
    if line.startswith(f"- {pages.AVOID_MARK}"):
        return pages.AVOID
    return pages.CURRENT if title == pages.DECISIONS else pages.LESSONS


def as_pinned(line: str, title: str) -> str:
    """The summary's form of a pinned line in this section of MEMORY.md; "" for any other line."""
    text = line.rstrip()
    if not text.endswith(PINNED):
        return ""
    text = text.removesuffix(PINNED).rstrip()
    if title not in pages.MEMORY_TITLES:
        return text
    return "- " + text[2:].removeprefix(pages.AVOID_MARK) if text.startswith("- ") else ""


def place(page: MemoryPage, title: str, items: list[PageItem]) -> None:
    """Put the curator's lines into a section, before people's lines, and a blank line after it."""
    section = page.section(title)
    section.lines = [*items, *_trimmed(section.lines)]


def place_lines(page: MemoryPage, title: str, lines: list[str]) -> None:
    """Replace the content of a section by these lines."""
    section = page.section(title) if title else page.sections[0]
    section.lines = [*lines]


def dense(page: MemoryPage) -> None:
    """Remove blank lines between sections, and empty sections of a person."""
    page.sections[1:] = [one for one in page.sections[1:] if one.lines or one.title in pages.SUMMARY_TITLES]
    for section in page.sections:
        section.lines = _trimmed(section.lines)


def spaced(page: MemoryPage) -> None:
    """Put one blank line between sections."""
    for section in page.sections[:-1]:
        section.lines = [*_trimmed(section.lines)]
        if section.lines or section.heading:
            section.lines.append("")
    page.sections[-1].lines = _trimmed(page.sections[-1].lines)


def hand_index(page: MemoryPage) -> Index:
    """An index of people's lines."""
    index = Index()
    for section in page.sections:
        for line in section.lines:
            item = pages.parse_item(str(line))
            text = item.text if item else DATED.sub("", str(line)).removesuffix(PINNED).strip()
            is_avoid = section.title == pages.AVOID or text.startswith(pages.AVOID_MARK)
            if text:
                index.add(compared("avoid" if is_avoid else "lesson", text.removeprefix(pages.AVOID_MARK)), 0)
    return index


def is_said(index: Index, lesson: Lesson) -> bool:
    """Whether a person's line already states the lesson."""
    return plain(compared(lesson.kind, lesson.text)) in index.exact


def prepare(page: MemoryPage, titles: tuple[str, ...]) -> int:
    """Add missing standard sections; returns the number of lines without the curator's."""
    for title in titles:
        page.section(title)
    for section in page.sections:
        section.lines = _trimmed(section.lines)
        section.heading = pages.POINTER.sub("", section.heading)
    return page.size() + len(titles)
