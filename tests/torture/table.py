"""What a sweep found, and the one table of all sweeps."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

HEADS = (
    "operation",
    "points tried",
    "faults injected",
    "states to DONE",
    "entries written",
    "lost",
    "torn files",
    "manual repairs",
    "seconds",
)
KINDS = {  # a fault belongs to the first of these that it matches; the others are named below the table
    "lost": r"a note is there 0 times|\blost\b|is gone",
    "torn": r"\btorn\b|\bhalf\b",
    "repairs": r"doctor: |init ended with|to move away",
}


@dataclasses.dataclass
class Row:
    """One line of the table. `tried` of `points` places were struck, `injected` times; `states`: distinct states that were
    recovered to, each taken to DONE; `faults`: all that was found, a text each; `skipped`: why the sweep could not be made."""

    name: str
    tried: int = 0
    points: int = 0
    injected: int = 0
    states: int = 0
    written: int = 0
    seconds: float = 0.0
    faults: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    skipped: str = ""

    def count(self, kind: str) -> int:
        """How many faults are of this kind."""
        return sum(kind_of(fault) == kind for fault in self.faults)

    def cells(self) -> list[str]:
        """The cells below HEADS."""
        if self.skipped:
            return [self.name, f"skipped: {self.skipped}", *[""] * (len(HEADS) - 2)]
        tried = f"{self.tried} of {self.points}" if self.points else "-"
        counts = [self.injected, self.states, self.written, *(self.count(kind) for kind in KINDS), round(self.seconds)]
        return [self.name, tried, *map(str, counts)]


def kind_of(fault: str) -> str:
    """The column in which a fault is counted; "" for one that is only named."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, fault)), "")


def render(rows: Iterable[Row]) -> str:
    """The table, as Markdown that is readable as it is; then every fault."""
    rows = list(rows)
    lines = [list(HEADS), *(row.cells() for row in rows)]
    widths = [
        max(len(line[number]) for line in lines if len(line[1]) < 40 or number != 1) for number in range(len(HEADS))
    ]
    shown = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    shown.insert(1, "-|-".join("-" * width for width in widths))
    text = "".join(f"| {line} |\n" for line in shown)
    found = [(row.name, fault) for row in rows for fault in row.faults]
    text += "".join(f"\nnote: {row.name}: {note}" for row in rows for note in row.notes)
    return text + "".join(f"\n{name}: {fault}" for name, fault in found) + f"\n{len(found)} faults\n"
