"""A mission whose memory is curated in a throw-away folder, for tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from harness.memory import archive, backlog, identity, pages
from harness.memory.archive import ArchiveEntry
from harness.run.settle.curator import CurationPlan
from harness.state import files, journal, names, raw
from harness.state.layout import Layout
from tests import compacting
from tests.helpers import mission, put

TODAY = "2026-04-24"
SERVER = "The dev server must be stopped before running the e2e tests, both bind port 3000"
SERVER_TOO = "stop the dev server before you run e2e tests: they also need port 3000"


class Mission:
    """A mission, `name`, with the folder of its identities."""

    def __init__(self, tmp_path: Path, name: str = "m-1", folder: str = "") -> None:
        self.layout, self.name, self.run = mission(tmp_path / name), name, 0
        self.folder = folder or str(tmp_path / "identity")

    def note(self, tag: str, text: str, feature: str = "F-001", role: str = "worker") -> None:
        """One entry, as `harness note` appends it."""
        raw.append(self.layout, role, feature, [(tag, text)])

    def line(self, text: str, tag: str = "TRICK", feature: str = "F-001", role: str = "worker") -> None:
        """One line, appended by hand: nothing is masked or checked."""
        mark = tag if tag == "-" else tag + ":"
        line = f"[2026-04-24T10:05:12Z] {role} {feature} {mark} {text}\n"
        journal.append(self.layout, self.layout.path(names.RAW), line.encode("utf-8", "surrogatepass"))

    def fold(self, names: tuple[str, ...] = (), **options: Any) -> CurationPlan:
        """One compaction, by a run of its own, and a check of what it leaves. Without `rows` an agent lets all that may go to an
        identity go there."""
        self.run += 1
        options = {"rows": marks(self.layout), **options}
        made = compacting.compact(self.layout, self.folder, self.name, f"run-{self.run}", TODAY, names, **options)
        accounted(self.layout)
        return made

    @property
    def memory(self) -> str:
        """The text of MEMORY.md."""
        return files.read_text(self.layout.path(names.MEMORY)) or ""

    @property
    def summary(self) -> str:
        """The text of summary.md."""
        return files.read_text(self.layout.path(names.SUMMARY)) or ""

    def bytes(self) -> dict[str, bytes | None]:
        """Every file of the memory, and of the identities."""
        folder = os.path.dirname(self.layout.path(names.MEMORY))
        paths = [os.path.join(place, name) for place in (folder, self.folder) for name in files.names(place)]
        return {path: files.read(path) for path in paths}

    def edit(self, page: str, old: str, new: str) -> None:
        """A person replaces some text of a page, which must be there."""
        path = self.layout.path(names.MEMORY) if page == "memory" else self.layout.path(names.SUMMARY)
        text = files.read_text(path) or ""
        assert old in text
        put(path, text.replace(old, new))

    def add(self, title: str, line: str) -> None:
        """A person adds a line under a heading of the summary, as the first one."""
        heading = next(one for one in self.summary.split("\n") if one.startswith(f"## {title}"))
        self.edit("summary", heading + "\n", f"{heading}\n{line}\n")

    def lines(self, title: str, page: str = "memory") -> list[str]:
        """The lines under a heading, without blank ones."""
        text = self.memory if page == "memory" else self.summary
        found = [one for one in pages.parse_page(text, ()).sections if one.title == title]
        return [str(line) for section in found for line in section.lines if line]

    def rows(self) -> list[dict[str, Any]]:
        """Every line of archive.jsonl."""
        text = files.read_text(self.layout.path(names.ARCHIVE)) or ""
        return [json.loads(line) for line in text.split("\n") if line]

    def dispositions(self) -> list[str]:
        """The disposition of every archived entry, in order."""
        return [row["disposition"] for row in self.rows() if "seq" in row]

    def changes(self) -> list[tuple[str, str]]:
        """(change, text) of every change of a lesson."""
        return [(row["change"], row["text"]) for row in self.rows() if "change" in row]

    def identities(self, role: str = "worker") -> list[tuple[str, list[str], int]]:
        """(text, missions, count) for each lesson of a role."""
        found = identity.parse(identity.text(self.folder, role)).items("")
        return [(item.text, item.where, item.count) for item in found]


def marks(layout: Layout) -> list[dict[str, Any]]:
    """The operations of an agent that lets all that waits go to an identity, if it may."""
    curated, whole = (
        pages.parse_curated(files.read(layout.path(names.CURATED))),
        files.read(layout.path(names.RAW)) or b"",
    )
    numbers = range(curated.folded, curated.first_seq + whole.count(b"\n"))
    return [{"do": "identity", "entries": [number]} for number in numbers]


def accounted(layout: Layout, *, cut: bool = False) -> list[str]:
    """Archive = 0..folded-1, each with one disposition; raw = max(0, folded-10)..end, and the window's lines are those of the
    archive. A curator that was `cut` off between batches has neither shortened raw.md yet nor masked what it gated. Returns every
    line."""
    curated = pages.parse_curated(files.read(layout.path(names.CURATED)))
    rows = [*archive.backwards(layout.path(names.ARCHIVE), curated.folded)][::-1]
    kept = (files.read(layout.path(names.RAW)) or b"").decode("utf-8", "replace").split("\n")
    window = curated.folded - curated.first_seq
    shortest = min(raw.WINDOW, curated.folded)
    assert window >= shortest if cut else window == shortest
    assert curated.crc == (backlog.checksum(layout.path(names.RAW), curated.offset) if curated.offset else 0)
    for row, line in zip(rows[curated.first_seq :], kept[:window], strict=True):
        assert row.entry == line or (cut and row.disposition == "gated")
    assert all(reasoned(row) for row in rows)
    return [row.entry for row in rows] + kept[window:-1]


def reasoned(row: ArchiveEntry) -> bool:
    """Whether the disposition is one of ours, and has a reason where the entry is on no page."""
    return row.disposition in archive.DISPOSITIONS and (
        bool(row.why) if row.disposition in ("gated", "dropped", "superseded") else bool(row.target)
    )
