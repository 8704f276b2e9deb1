"""Receipts: the result of a check, with its time and commit. One JSON line each, in receipts.jsonl of the run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harness.base import encoding, faults, redaction, schema
from harness.base.record import Record
from harness.state import files, json_lines
from harness.state.layout import Layout, command

HEAD_BYTES = 1024
TAIL_BYTES = 3072
MIDDLE_BYTES = 2048  # around the first line between them that explains a failure
FLAKY = "flaky: "
NOT_FIRED = 69  # exit code of a check that could not run; its output begins with the reason
OWN_FOLDER = "names a folder of the mission: "
REWRITTEN = " while a check ran, and it is again as it was"  # suffix of a sign about a file that decides a check
WARNING = "warning: "  # prefix of a note that is not a sign
TRACED = "its commands, when it ran again:"
OUTSIDE = "outside"  # the phase of the second sweep, in a plain environment
INSIDE_ONLY = (  # after "VAL-001 is red (exit 1)"
    "with a plain environment in a fresh clone, so it passes only inside the harness ([checks] needs in config.toml names "
    "variables that a project's own tests require)"
)

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Seconds = float
else:
    Seconds = schema.NUMBER.part("a number of seconds, 0 or above", lambda value: 0 <= value < 1e15)


class Receipt(Record):
    """One run of one check. `phase`: before, after, blame, sweep or outside; `exit` None: a timeout. `flaky`: red at first, green
    when repeated, whatever the last result. `notes`: context such as reward-hacking signals in the diff, or what a fresh clone
    lacks. `reason`: why it is red regardless of its exit; "" if the exit decides. `trace`: of a red check, the last commands
    of its shell when it ran again, one per line as `set -x` prints them; a number is the status of the command before."""

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
    reason: str = ""
    trace: str = ""

    @property
    def green(self) -> bool:
        """Whether the check passed."""
        return self.exit == 0 and not self.reason

    @property
    def signs(self) -> list[str]:
        """The reward-hacking signals among the notes: a validation of the claim's own feature saw them in the diff."""
        own = self.notes[:-1] if self.flaky else self.notes  # the last note of a flaky receipt describes the flakiness
        if self.phase == "after":
            return [note for note in own if not note.startswith(WARNING)]
        # The other notes say what a clone lacks.
        return [note for note in own if note.startswith(OWN_FOLDER) or note.endswith(REWRITTEN)]

    @property
    def verdict(self) -> str:
        """`green`, `red (exit 1)`, `red (timed out)` or `red (changed files)`."""
        if self.green:
            return "green (flaky)" if self.flaky else "green"
        if self.exit == 0:
            return "red (changed files)"
        return "red (timed out)" if self.exit is None else f"red (exit {self.exit})"

    @property
    def fault(self) -> str:
        """The failure of a red check on one line: from its output, else the last command of its trace that came after a good
        one, else the check itself; check and output if that has only the name of an exception."""
        if self.reason or self.exit == NOT_FIRED:
            return self.reason or faults.first(self.output)
        said, check = faults.of_output(self.output), " ".join(self.command.split())
        bare = said.replace(".", "").isidentifier()
        traced = [line[2:] for line in self.trace.split("\n") if line.startswith("+ ")]
        return f"{said}, in {check}" if said and bare else said or (traced or [check])[-1]

    @property
    def remarks(self) -> str:
        """What people and agents read below its output: the trace under its heading, and the notes; "" without any."""
        trace = f"{TRACED}\n{self.trace}\n" if self.trace else ""
        return trace + "".join(f"note: {note}\n" for note in self.notes)


def shortened(head: bytes, middle: bytes, tail: bytes, length: int) -> str:
    """Head and tail of an output of `length` bytes as clean text; between them the number of omitted bytes, and `middle`."""
    left_out = length - len(head) - len(middle) - len(tail)
    gap = f"\n[… {left_out} bytes left out …]\n".encode() if left_out else b""
    kept = middle + "\n[…]\n".encode() if middle else b""
    return redaction.received((head + gap + kept + tail).decode("utf-8", "replace"))


def load(path: str) -> list[Receipt]:
    """The receipts of one run; [] if it has none. A torn last line is skipped; BrokenFile names any other bad line."""
    make = partial(schema.record, Receipt, wrote="a check leaves")
    return json_lines.parse(files.read(path), path, make, "the line is not a receipt", f"See: {command('doctor')}")


def of_run(layout: Layout, run_id: str) -> list[Receipt]:
    """The receipts of a run, as `load`."""
    return load(layout.run(run_id).receipts)


def render(receipts: list[Receipt]) -> bytes:
    """The bytes of receipts.jsonl."""
    return b"".join(encoding.dump_json(receipt.asdict()) for receipt in receipts)
