"""The formats of a mission's memory: curated.json, and the pages summary.md (L2) and MEMORY.md (L3).

A page is headings and lines. A line `- [2026-04-24] text (F-023, F-031 · 2x)` under a standard heading is an item: the
harness counts, moves and drops it. Every other line is a person's and kept verbatim. Pages are split only at "\\n" and
`## `, so that an agent's text cannot move a boundary. Rendering a parsed page gives the same lines, each ending in LF.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from harness.base import encoding, schema
from harness.base.errors import RESTORE, BrokenFile
from harness.base.record import Record
from harness.base.schema import Whole
from harness.state import names
from harness.state.layout import Layout
from harness.state.raw import WINDOW
from harness.state.state import State

DECISIONS, CONTEXT, HISTORY, LESSONS = "Decisions", "Context", "History", "Lessons"
CURRENT, AVOID = "Decisions (current)", "Avoid"
MEMORY_TITLES = (DECISIONS, CONTEXT, HISTORY, LESSONS)
SUMMARY_TITLES = (LESSONS, CURRENT, AVOID)
OURS = {title.casefold(): title for title in (*MEMORY_TITLES, *SUMMARY_TITLES)}
MEMORY_LINES = 200
SUMMARY_LINES = 40
SUMMARY_TOKENS = 800
IDENTITY_LINES = 60
MISSIONS = "missions: "  # before the names of an item in an identity
AVOID_MARK = "Avoid: "
FAIL_MARK = "Failed: "
PINNED = " (pinned)"
MORE_IN_MEMORY = " · more in MEMORY.md: "  # after the first heading of the summary
POINTER = re.compile(rf"{re.escape(MORE_IN_MEMORY)}.*| · [0-9]+ older lines?: memory_search\s*$", re.IGNORECASE)
MAX_NAMED = 8

NEEDED = ("generation", "first_seq", "folded")  # in curated.json of every version
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


class CurationProgress(Record):
    """The curator's progress: entries 0..folded-1 are archived, `first_seq` is the number of raw.md's first line.

    Entry number `folded` begins at byte `offset`; `crc` is the checksum of the bytes before it (backlog.py). Both are
    0, and absent in the file, if unknown.
    """

    generation: Whole = 0
    first_seq: Whole = 0
    folded: Whole = 0
    offset: Whole = 0
    crc: Whole = 0


class PageItem(Record):
    """A dated line of the harness: `where` names features (missions in an identity), `count` is its occurrences."""

    date: str
    text: str
    where: list[str] = []
    count: int = 1


class PageSection(Record):
    """A heading as written ("" before the first) and its lines: the harness's items and people's lines."""

    heading: str
    lines: list[PageItem | str] = []

    @property
    def title(self) -> str:
        """The heading without its marks and the pointer to other lines; "" before the first."""
        return title_of(self.heading)

    def items(self) -> list[PageItem]:
        """The harness's items, in order."""
        return [line for line in self.lines if isinstance(line, PageItem)]


def older_lines(count: int) -> str:
    """What the first heading says of lines that had no room; "" for none."""
    return f" · {count} older line{'s' * (count != 1)}: memory_search" if count else ""


def title_of(line: str) -> str:
    """The title in a heading's line; a standard title is matched without case."""
    title = POINTER.sub("", line[3:]).strip()
    return OURS.get(title.casefold(), title)


class MemoryPage(Record):
    """A page of memory; the first section is the text before the first heading."""

    sections: list[PageSection]

    def section(self, title: str) -> PageSection:
        """The first section with this title; appended if missing."""
        for section in self.sections:
            if section.heading and section.title == title:
                return section
        last = self.sections[-1].lines
        if len(self.sections) > 1 and (not last or last[-1] != ""):
            last.append("")
        self.sections.append(PageSection(heading="## " + title))
        return self.sections[-1]

    def items(self, title: str) -> list[PageItem]:
        """The items under all headings with this title."""
        return [item for section in self.sections if section.title == title for item in section.items()]

    def size(self) -> int:
        """The number of lines."""
        return sum(len(section.lines) + bool(section.heading) for section in self.sections)


# ---- curated.json


def first_seq(folded: int) -> int:
    """The number of raw.md's first line after it is cut at `folded` archived entries: the last WINDOW of them stay."""
    return max(0, folded - WINDOW)


def curated(layout: Layout) -> CurationProgress:
    """Read curated.json; raises as `parse_curated`."""
    return parse_curated(State(layout).data(names.CURATED), layout.path(names.CURATED))


def parse_curated(data: bytes | None, path: str = "curated.json") -> CurationProgress:
    """The file's content, all zero if absent; raises BrokenFile if it does not parse or is inconsistent."""
    if data is None:
        return CurationProgress()
    value = encoding.parse_json(data, path)
    remedy = f'Its form is {{"generation":N,"first_seq":N,"folded":N,"offset":N,"crc":N}}. {RESTORE}'
    if not isinstance(value, dict) or not set(NEEDED) <= value.keys() <= set(CurationProgress.fields):
        raise BrokenFile(path, "not exactly generation, first_seq, folded, offset and crc", remedy=remedy)
    if schema.invalid_field(CurationProgress, value):
        raise BrokenFile(path, "a value is not a whole number, 0 or above", remedy=remedy)
    curated = CurationProgress(**value)
    first = first_seq(curated.folded)
    if curated.first_seq > first or (curated.first_seq < first and not curated.offset):
        fault = f"first_seq is {curated.first_seq}, but with {curated.folded} folded it is {first}"
        raise BrokenFile(path, fault, remedy=remedy)
    return curated


def render_curated(curated: CurationProgress) -> bytes:
    """The bytes of the file."""
    return encoding.dump_json({name: value for name, value in curated.asdict().items() if value or name in NEEDED})


# ---- pages


def item_pattern(label: str) -> str:
    """The regular expression of an item's line; `label` comes before the names, such as `missions: `."""
    names = f"{label}({_NAME}(?:, {_NAME})*) · "
    return rf"- \[([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})\] (\S|\S.*\S) \((?:{names})?([1-9][0-9]{{0,8}})x\)"


def parse_item(line: str, label: str = "") -> PageItem | None:
    """The item in a line, or None for a person's line."""
    if not (line.startswith("- [") and line.endswith("x)")):
        return None
    found = re.fullmatch(item_pattern(label), line)
    if not found:
        return None
    date, text, names, count = found.groups()
    return PageItem(date=date, text=text, where=names.split(", ") if names else [], count=int(count))


def render_item(item: PageItem, label: str = "") -> str:
    """The item's line without its newline."""
    names = f"{label}{', '.join(item.where)} · " if item.where else ""
    return f"- [{item.date}] {item.text} ({names}{item.count}x)"


def parse_page(text: str | None, ours: tuple[str, ...], label: str = "") -> MemoryPage:
    """Parse a page; None is an empty one. Items are recognised under the headings `ours` ("" for the text before the
    first). Headings in code fences do not count."""
    page = MemoryPage(sections=[PageSection(heading="")])
    lines = (text or "").replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    fenced = _fenced(lines)
    for number, line in enumerate(lines):
        if line.startswith("## ") and number not in fenced:
            page.sections.append(PageSection(heading=line))
            continue
        section = page.sections[-1]
        item = parse_item(line, label) if section.title in ours else None
        section.lines.append(line if item is None else item)
    return page


def _fenced(lines: list[str]) -> set[int]:
    """The indexes of the lines in closed code fences."""
    found, start, fence = set[int](), 0, ""
    for number, line in enumerate(lines):
        text = line.strip().removesuffix(PINNED)
        mark = text[: len(text) - len(text.lstrip(text[0]))] if text.startswith(("```", "~~~")) else ""
        if fence and mark == text and mark.startswith(fence):
            found.update(range(start, number))
            fence = ""
        elif mark and not fence and "`" not in text[len(mark) :]:
            start, fence = number, mark
    return found


def render_page(page: MemoryPage, label: str = "") -> str:
    """The page's text; ends with a newline unless it is empty."""
    lines: list[str] = []
    for section in page.sections:
        if section.heading:
            lines.append(section.heading)
        lines.extend(render_item(line, label) if isinstance(line, PageItem) else line for line in section.lines)
    return "".join(line + "\n" for line in lines)


def add_items(section: PageSection, items: list[PageItem]) -> None:
    """Insert items after the last item of the section, else after its last non-blank line."""
    place = len(section.lines)
    while place and section.lines[place - 1] == "":
        place -= 1
    own = [index for index, line in enumerate(section.lines, 1) if isinstance(line, PageItem)]
    place = own[-1] if own else place
    section.lines[place:place] = items


def fit(page: MemoryPage, most: int, first_to_go: Callable[[PageItem], Any]) -> list[PageItem]:
    """Drop the harness's items until the page has at most `most` lines, the smallest `first_to_go(item)` first;
    people's lines always stay. Returns the dropped items."""
    over = page.size() - most
    if over <= 0:
        return []
    gone = sorted((item for section in page.sections for item in section.items()), key=first_to_go)[:over]
    dropped = {id(item) for item in gone}
    for section in page.sections:
        section.lines = [line for line in section.lines if id(line) not in dropped]
    return gone


def digests(memory: str | None, summary: str | None) -> dict[str, str]:
    """{page: digest of its text}, to detect edits."""
    texts = (("memory", memory), ("summary", summary))
    return {name: encoding.digest((text or "").encode("utf-8", "replace")) for name, text in texts}
