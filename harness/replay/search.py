"""Searches a mission: runs and prompts newest first, memory by relevance. Bounded, and without an index."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from harness.base import clock, ranking
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.mission import mission, run_lookup, runs, transcript
from harness.replay import query
from harness.replay.query import Query
from harness.state import files, json_lines, names, raw
from harness.state.layout import Layout, identity_folder
from harness.state.state import State

RUN_FILES = {"prompts": ("prompt.md",), "runs": ("stream.jsonl", "reply.md", "receipts.jsonl", "stderr.log")}
REMEMBERED = ("raw", "memory", "identity")
PER_FILE = 3
SHOWN_CHARS, SHOWN_CHARS_BEFORE = 160, 50  # shown characters of a hit, and how many precede it
MAX_LINE_BYTES = 1024 * 1024
UNITS = {"m": 60, "h": 3600, "d": 86400}


class Filter(Record):
    """Selects runs and notes by role, feature, and time: `since` is a stamp or its prefix; "" selects all."""

    role: str = ""
    feature: str = ""
    since: str = ""

    def counts(self, role: str, feature: str, at: str) -> bool:
        """Whether the filter selects this role, feature and time."""
        return self.role in ("", role) and self.feature in ("", feature) and at >= self.since


class Hit(Record):
    """A line: its file (below `.harness`, or the path of an identity), and the run that wrote it, if known."""

    place: str
    file: str
    line: int
    text: str
    run: str = ""
    at: str = ""


class SearchResult(Record):
    """The best hits of memory, then the newest of runs. `more`: the result is truncated; `faults`: what was not searched."""

    memory: list[Hit] = []
    runs: list[Hit] = []
    more: bool = False
    faults: list[str] = []


class _Ran(Record):
    """A run to search."""

    run: str
    at: str


def since(text: str) -> str:
    """The prefix of a stamp, from a date, a time in UTC (`2026-04-24`, `2026-04-24T10:05`), or an age (`30m`, `12h`, `3d`);
    raises UsageFault for anything else."""
    if not text:
        return ""
    if (age := re.fullmatch(r"(\d{1,6})([mhd])", text)) is not None:
        return clock.stamp(max(0, clock.now() - int(age[1]) * UNITS[age[2]]))
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\dZ?)?)?)?", text):
        return text.replace(" ", "T")
    raise UsageFault(
        f"invalid time '{text}'. Give a date or a time in UTC (2026-04-24T10:05), or an age: 30m, 12h, 3d."
    )


def search(layout: Layout, asked: Query, places: Iterable[str], only: Filter, most: int) -> SearchResult:
    """At most `most` hits in memory, and as many in runs."""
    mission.check_format(layout)
    wanted, found = set(places), SearchResult()
    if "all" in wanted:
        wanted = {*REMEMBERED, *RUN_FILES}
    kinds = wanted.intersection(REMEMBERED)
    if kinds:
        found.memory = ranked(lambda: remembered(layout, kinds, only), asked, most + 1)
    kept = [name for place, listed in RUN_FILES.items() if place in wanted for name in listed]
    if kept:
        found.runs = list(islice(_in_runs(layout, asked, kept, only, found.faults), most + 1))
    found.more = len(found.memory) > most or len(found.runs) > most
    found.memory, found.runs = found.memory[:most], found.runs[:most]
    return found


# memory


def ranked(lines: Callable[[], Iterable[Hit]], asked: Query, most: int) -> list[Hit]:
    """Rank by BM25; for a regular expression or a query without words, the newest lines first."""
    wanted = " ".join(asked.words)
    if not asked.pattern and ranking.terms(wanted):
        return ranking.best(lambda: ((hit.text, hit) for hit in lines()), wanted, most)
    hits = deque((hit for hit in lines() if asked.at(hit.text) >= 0), maxlen=most)
    return list(hits)[::-1]


def remembered(layout: Layout, kinds: Collection[str], only: Filter) -> Iterator[Hit]:
    """Every selected line of memory, the raw notes last. A line of a page is selected by the date and the features in it."""
    if "identity" in kinds:
        for name in files.names(identity_folder()):
            if name.endswith(".md") and name != "README.md":
                yield from _page(f"{identity_folder()}/{name}", "identity", only, name[:-3])
    if "memory" in kinds:
        for name in (names.MEMORY, names.SUMMARY):
            yield from _page(State(layout).path(name), "memory", only, "", name)
    if "raw" in kinds:
        for number, (line, _) in enumerate(raw.lines(layout.path(names.ARCHIVE)), start=1):
            row = _row(line)
            yield from _entry(names.ARCHIVE, number, str(row.get("entry", "")), only, str(row.get("run", "")))
        for number, (line, size) in enumerate(raw.lines(layout.path(names.RAW)), start=1):
            yield from _entry(names.RAW, number, raw.parse_bytes(line, size, 0).line(), only)


def _page(path: str, place: str, only: Filter, role: str, name: str = "") -> Iterator[Hit]:
    for number, line in enumerate((files.read_text(path) or "").split("\n"), start=1):
        day = line[3:13] if line.startswith("- [") else ""
        features = [only.feature] if only.feature and re.search(rf"\b{re.escape(only.feature)}\b", line) else [""]
        if line.strip() and only.counts(role, features[0], day if only.since else ""):
            yield Hit(place=place, file=name or path, line=number, text=line, at=day)


def _entry(name: str, number: int, text: str, only: Filter, run: str = "") -> Iterator[Hit]:
    entry = raw.parse_line(text, 0)
    if text and only.counts(entry.role, entry.feature, entry.at):
        yield Hit(place="raw", file=name, line=number, text=text, run=run, at=entry.at)


def _row(line: bytes) -> dict[str, Any]:
    try:
        value = json_lines.value(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


# runs


def _in_runs(layout: Layout, asked: Query, kept: list[str], only: Filter, faults: list[str]) -> Iterator[Hit]:
    """Hits in the files of runs, newest run first; archived missions come last."""
    for where in run_lookup.missions(layout):
        for one in _ran(where, only, faults):
            for name in kept:
                yield from _in_file(where, one, names.of_run(one.run, name), asked, faults)


def _ran(layout: Layout, only: Filter, faults: list[str]) -> Iterator[_Ran]:
    """The open runs, then the finished ones, newest first."""
    for run_id in runs.open_runs(layout):
        row = _row(State(layout).data(names.of_run(run_id, names.CONTEXT)) or b"")
        if row and only.counts(str(row.get("role")), str(row.get("feature")), str(row.get("at"))):
            yield _Ran(run=run_id, at=str(row.get("at")))
    for start, line in json_lines.backwards(layout.path(names.RUN_LOG)):
        row = _row(line)
        run_id = str(row.get("run", ""))
        if not runs.is_id(run_id):
            faults.append(str(runs.misread(layout, start, runs.NO_RUN)))
        elif only.counts(str(row.get("role")), str(row.get("feature")), str(row.get("at"))):
            yield _Ran(run=run_id, at=str(row.get("at")))


def _in_file(layout: Layout, one: _Ran, name: str, asked: Query, faults: list[str]) -> Iterator[Hit]:
    """The first hits in one file of a run."""
    path, place = State(layout).path(name), "prompts" if name.endswith(names.PROMPT) else "runs"
    try:
        found = islice(_hits(path, asked, name.endswith(".jsonl")), PER_FILE)
        for offset, text in found:
            line = json_lines.number(path, offset)
            title, shown = run_lookup.title(layout, one.run), layout.folders.relative(path).removeprefix(".harness/")
            yield Hit(place=place, file=shown, line=line, text=text, run=title, at=one.at)
    except BrokenFile as fault:
        faults.append(str(fault))


def _hits(path: str, asked: Query, escaped: bool) -> Iterator[tuple[int, str]]:
    """(offset of the line in the file, the matching line of its text)."""
    needle = asked.needle
    for offset, line in query.lines(path):
        if needle not in line:
            continue
        for text in _decoded(line) if escaped else [line.decode("utf-8", "replace")]:
            at = asked.at(text)
            if at >= 0:
                yield offset, snippet(text, at)
                break


def _decoded(line: bytes) -> list[str]:
    """The readable text lines of a row of a transcript or a receipt; an invalid row unchanged."""
    row = _row(line) if len(line) <= MAX_LINE_BYTES * 2 else {}
    if row.get("kind") in transcript.FOR_MACHINES:
        return []
    text = row.get("text", f"{row.get('command', '')}\n{row.get('output', '')}" if "command" in row else None)
    return text.split("\n") if isinstance(text, str) else line.decode("utf-8", "replace").split("\n")


def snippet(text: str, at: int) -> str:
    """An extract of the line around a hit."""
    start = max(0, at - SHOWN_CHARS_BEFORE) if len(text) > SHOWN_CHARS else 0
    end = start + SHOWN_CHARS
    return f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"
