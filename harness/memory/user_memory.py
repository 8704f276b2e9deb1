"""The memory of a user: lines that later conversations shall know, curated as the lessons of a mission are.

Lines `- [2026-01-31] text` of the memory are merged, replaced and bounded; a new line stands before the one that it looks like.
What leaves goes to the archive beside it, with the reason, and the heading counts it. Any other line is a person's, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.base import clock, redaction
from harness.base.errors import VersionConflict
from harness.memory import gates
from harness.memory.lessons import RETIRED, Lessons
from harness.memory.pages import POINTER, older_lines
from harness.stores.store import ABSENT, StoreKey

HEAD, ARCHIVE_HEAD = "# Memory\n\n", "# Lines that left the memory\n\n"
MOST_LINES = 200  # of the memory; the oldest move to the archive
KIND = "lesson"  # how lines are compared
REPLACED, MOVED = " (replaced ", " (moved "  # behind a line in the archive
DATED = re.compile(r"- \[(\d{4}-\d\d-\d\d)\] (.*)")


def archive_of(memory: StoreKey) -> StoreKey:
    """The key of the lines that left a memory."""
    *above, name = memory.key
    return StoreKey(memory.store, (*above, f"{name.removesuffix('.md')}_archive.md"))


def texts(memory: StoreKey) -> dict[str, str]:
    """{name: text} of the memory and its archive, as far as they are there."""
    found = {at.key[-1]: at.store.get(at.key) for at in (memory, archive_of(memory))}
    return {name: known.data.decode("utf-8", "replace") for name, known in found.items() if known}


def remember(memory: StoreKey, facts: Sequence[str]) -> list[str]:
    """Add each fact, a text of one line, with the date of today; returns for each why the gates refuse it, "" if they do not.
    Of two writers at once, neither loses a line. Raises BrokenFile and OSError as the store does."""
    refused = [gates.gated(fact) for fact in facts]
    today = clock.day(clock.now())
    rows = [f"- [{today}] {redaction.mask(fact)}" for fact, why in zip(facts, refused, strict=True) if not why]
    tried: dict[str, None] = {}
    while rows:
        lines, version = _read(memory, HEAD)
        kept, gone = curated(lines, rows, today)
        tried |= dict.fromkeys(_archive(archive_of(memory), gone))  # first: after a crash a line is in both
        wrong = [one for one in tried if one not in gone and _is_of(one, kept)]
        try:
            memory.store.put(memory.key, _bytes(_headed(kept, archive_of(memory), wrong)), version)
        except VersionConflict:
            continue
        _take_back(archive_of(memory), wrong)
        _archive(archive_of(memory), [one for one in wrong if not _is_of(one, _read(memory, HEAD)[0])])  # left since
        break
    return refused


def curated(lines: Sequence[str], rows: Sequence[str], today: str) -> tuple[list[str], list[str]]:
    """(the lines with the new rows, the lines that leave with the reason). A row takes the place of a line that it repeats and of
    those that it says no longer hold; it is left out if a person's line says it."""
    known, there, gone = Lessons(), dict(enumerate(lines)), list[str]()
    for number, line in there.items():
        if text := _text(line):
            known.add(number, KIND, text)
    for number, row in enumerate(rows, start=len(there)):
        text = _text(row)
        same, older = known.relations(KIND, text)
        if same in there and not DATED.match(there[same]):
            continue
        if same in there:
            there.pop(same)
            known.all[same].state = RETIRED
        newer = known.add(number, KIND, text)
        for one in (one for one in older if one in there and DATED.match(there[one])):
            known.supersede(known.all[one], newer)
            gone.append(f"{there.pop(one)}{REPLACED}{today} by: {text})")
        near = {one for one in known.near(KIND, text) if one in there and DATED.match(there[one])}
        order = [*there]
        order.insert(next((place for place, one in enumerate(order) if one in near), len(order)), number)
        there[number] = row
        there = {one: there[one] for one in order}
    return _bounded(there, gone, today)


def _bounded(there: dict[int, str], gone: list[str], today: str) -> tuple[list[str], list[str]]:
    dated = sorted((found[1], number) for number, line in there.items() if (found := DATED.match(line)))
    over = sum(bool(line.strip()) for line in there.values()) - MOST_LINES
    for _, number in dated[: min(max(0, over), len(dated) - 1)]:
        gone.append(f"{there.pop(number)}{MOVED}{today}: more than {MOST_LINES} lines)")
    return [*there.values()], gone


def _text(line: str) -> str:
    """What a line says; "" for a heading and an empty one."""
    found = DATED.match(line)
    return found[2].strip() if found else "" if line.startswith("#") else line.strip().removeprefix("- ")


def _read(at: StoreKey, head: str) -> tuple[list[str], str]:
    """The lines of a value, those of `head` where there are none, and its version."""
    known = at.store.get(at.key)
    text = known.data.decode("utf-8", "surrogateescape") if known else ""
    return (text or head).removesuffix("\n").split("\n"), known.version if known else ABSENT


def _bytes(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _headed(lines: Sequence[str], archive: StoreKey, wrong: Sequence[str]) -> list[str]:
    """The lines, of which the first heading says how many are in the archive, without the `wrong` ones."""
    there = _read(archive, ARCHIVE_HEAD)[0]
    older = older_lines(sum(bool(DATED.match(line)) and line not in wrong for line in there))
    head = next((line for line in lines if line.startswith("# ")), None)
    return [POINTER.sub("", line.rstrip()) + older if line is head else line for line in lines]


def _is_of(archived: str, lines: Sequence[str]) -> bool:
    """Whether one of these lines is the archived one."""
    return any(archived.startswith((line + REPLACED, line + MOVED)) for line in lines)


def _archive(at: StoreKey, gone: Sequence[str]) -> list[str]:
    """Add lines behind those that are there; returns the new ones."""
    while gone:
        lines, version = _read(at, ARCHIVE_HEAD)
        added = [line for line in dict.fromkeys(gone) if line not in lines]
        try:
            at.store.put(at.key, _bytes([*lines, *added]), version)
        except VersionConflict:
            continue
        return added
    return []


def _take_back(at: StoreKey, wrong: Sequence[str]) -> None:
    """Remove lines that an attempt added to the archive and that did not leave."""
    while wrong:
        lines, version = _read(at, ARCHIVE_HEAD)
        try:
            at.store.put(at.key, _bytes([line for line in lines if line not in wrong]), version)
        except VersionConflict:
            continue
        break
