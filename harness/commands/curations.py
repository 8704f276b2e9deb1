"""The effect of a curation, from the archive: `memory diff`, and the lines of `status` about gated notes and full pages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from harness.base import tokens
from harness.base.errors import BrokenFile, UsageFault
from harness.memory import archive, pages
from harness.memory.archive import ArchiveEntry, LessonChange
from harness.mission import mission, runs
from harness.state import files, json_lines, names, raw
from harness.state.layout import Layout, command, identity_folder
from harness.state.raw import RawEntry
from harness.state.state import State

MAX_ARCHIVE_LINES = 2000  # lines of the archive that `status` reads


def uncurated(layout: Layout) -> list[RawEntry]:
    """The entries of raw.md that no curation has taken yet."""
    return list(raw.entries(layout.path(names.RAW), pages.curated(layout).first_seq))


def diff(layout: Layout, run_id: str) -> dict[str, Any]:
    """The changes by a curation, by default the newest: `run`, `entries` and `changes` as archived, in order, and the texts that
    `left` summary.md; `why` if there are none. Raises UsageFault for an unknown run."""
    mission.check_format(layout)
    if run_id:
        runs.context(layout, run_id)
    rows = list(_of_run(archive.rows_backwards(layout.path(names.ARCHIVE)), run_id))[::-1]
    changes = [row for row in rows if not isinstance(row, ArchiveEntry)]
    nothing = f"{run_id} curated nothing" if run_id else "nothing was curated yet"
    return {
        "run": rows[0].run if rows else run_id,
        "why": "" if rows else nothing,
        "entries": [row for row in rows if isinstance(row, ArchiveEntry)],
        "changes": changes,
        "left": [row.text for row in changes if row.change == "demoted"],
    }


def _of_run(rows: Iterable[ArchiveEntry | LessonChange], run_id: str) -> Iterator[ArchiveEntry | LessonChange]:
    """The consecutive lines of one run; "" selects the run of the first line."""
    found = False
    for row in rows:
        run_id = run_id or row.run
        if row.run == run_id:
            found = True
            yield row
        elif found:
            return


def gated(layout: Layout) -> dict[str, Any]:
    """{run, reasons}: the newest curation, and the number of notes that it gated, by reason. Reads at most MAX_ARCHIVE_LINES
    lines, up to a broken one, which `doctor` reports."""
    reasons: dict[str, int] = {}
    run_id = ""
    try:
        for row in _of_run(islice(archive.rows_backwards(layout.path(names.ARCHIVE)), MAX_ARCHIVE_LINES), ""):
            run_id = row.run
            if isinstance(row, ArchiveEntry) and row.disposition == "gated":
                reasons[row.why] = reasons.get(row.why, 0) + 1
    except BrokenFile:
        pass  # the newest rows count
    return {"run": run_id, "reasons": reasons}


def gated_words(found: dict[str, Any]) -> str:
    """The result of `gated` as text; "" for nothing."""
    reasons = found["reasons"]
    if not reasons:
        return ""
    counted = ", ".join(f"{count} {why}" for why, count in sorted(reasons.items(), key=lambda one: (-one[1], one[0])))
    total = sum(reasons.values())
    notes = "1 note was" if total == 1 else f"{total} notes were"
    return f"{notes} kept out of memory by the newest curation: {counted}   ({command('memory diff')})"


def filled(layout: Layout) -> list[str]:
    """A line for each page and identity in which people's lines leave the curator no room."""
    return [*_filled_pages(layout), *_filled_identities()]


def _filled_identities() -> Iterator[str]:
    try:
        folder = identity_folder()
    except UsageFault:
        return  # `doctor` reports it
    for name in files.names(folder):
        text = files.read_text(os.path.join(folder, name)) or "" if name.endswith(".md") else ""
        if text.count("\n") < pages.IDENTITY_LINES or name == "README.md":
            continue  # short, like most identities
        page = pages.parse_page(text, ("",), pages.MISSIONS)
        hand = page.size() - len(page.items(""))
        if hand >= pages.IDENTITY_LINES:
            yield f"{name} is full of lines by people ({hand} lines, of {pages.IDENTITY_LINES}): no lesson is added"


def _filled_pages(layout: Layout) -> list[str]:
    written = _written(layout)
    if written is None:
        return []
    found = []
    for page, name, most in (
        ("memory", names.MEMORY, (pages.MEMORY_LINES, 0)),
        ("summary", names.SUMMARY, (pages.SUMMARY_LINES, pages.SUMMARY_TOKENS)),
    ):
        ours = written.get(page, {})
        lines = (State(layout).text(name) or "").split("\n")
        hand = [line for line in lines if line.strip() and ours.get(line.rstrip(), -1) < 0]
        words = [f"{len(hand)} lines, of {most[0]}"] if len(hand) >= most[0] else []
        size = tokens.estimated("\n".join(hand)) if most[1] else 0
        words += [f"{size} tokens, of {most[1]}"] if most[1] and size >= most[1] else []
        found += [
            f"{layout.folders.relative(State(layout).path(name))} is full of lines by people ({one}): no lesson is added"
            for one in words[:1]
        ]
    return found


def _written(layout: Layout) -> dict[str, dict[str, int]] | None:
    """{page: its lines by the curator}; None if unknown."""
    head = (State(layout).data(names.LESSONS) or b"").partition(b"\n")[0]
    try:
        found = json_lines.value(head)["written"]
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, dict) and found else None
