"""Receipts: what a check really did, when, and at which commit. One JSON line each, in receipts.jsonl of the run."""

from __future__ import annotations

from harness.base import schema
from harness.base.record import Record
from harness.store import files, json_lines
from harness.store.layout import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEAD_BYTES = 1024
TAIL_BYTES = 3072
FLAKY = "flaky: "

if TYPE_CHECKING:
    Seconds = float
else:
    Seconds = schema.NUMBER.part("a number of seconds, 0 or above", lambda value: 0 <= value < 1e15)


class Receipt(Record):
    """One run of one check. `phase`: before, after, blame or sweep; `exit` None where the time ran out.

    `flaky`: it was red the first time and green when it ran once more. `notes`: what a reader must know beside it, such
    as signs of gaming in the diff, or what a fresh worktree lacks.
    """

    claim: str
    command: str
    phase: str
    exit: int | None
    seconds: Seconds
    output: str
    output_sha256: str
    head: str
    tree: str
    by: str
    host: str
    at: str
    guard: bool = False
    flaky: bool = False
    notes: list[str] = []

    @property
    def green(self) -> bool:
        """Whether the check held."""
        return self.exit == 0

    @property
    def signs(self) -> list[str]:
        """The signs of gaming among the notes: what a validation of the claim's own feature saw in the diff."""
        own = self.notes[:-1] if self.flaky else self.notes  # behind them stands how it was flaky
        return own if self.phase == "after" else []

    @property
    def verdict(self) -> str:
        """`green`, `red (exit 1)` or `red (timed out)`."""
        if self.green:
            return "green (flaky)" if self.flaky else "green"
        return "red (timed out)" if self.exit is None else f"red (exit {self.exit})"


def shortened(head: bytes, tail: bytes, length: int) -> str:
    """Head and tail of an output of `length` bytes as text, with what was left out between them named."""
    left_out = length - len(head) - len(tail)
    gap = f"\n[… {left_out} bytes left out …]\n".encode() if left_out else b""
    return (head + gap + tail).decode("utf-8", "replace")


def load(path: str) -> list[Receipt]:
    """The receipts of one run; [] where it has none. A torn last line is passed over; BrokenFile names any other."""

    def made(row: Any) -> Receipt:
        return schema.record(Receipt, row, "a check leaves")

    remedy = f"See: {command('doctor')}"
    return json_lines.parse(files.read(path), path, made, "the line is no receipt", remedy)


def render(receipts: list[Receipt]) -> bytes:
    """The bytes of receipts.jsonl."""
    return b"".join(files.dump_json(receipt.asdict()) for receipt in receipts)
