"""The outcome of each file that a turn changed, as rows that are written before and after each write to a store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.base import encoding, schema
from harness.base.record import Record
from harness.state import files

ACCEPTED, MERGED, CONFLICT, REFUSED, QUARANTINED = "accepted", "merged", "conflict", "refused", "quarantined"
INTENDED = "intended"  # of a row before a write


class FileOutcome(Record):
    """`path`: in the workspace; `outcome`: one of the above; `why`: the reason for a person and the next prompt, "" if the store
    has the file; `digest`: of its content; of an INTENDED row, of the content that goes to the store."""

    path: str
    outcome: str
    why: str = ""
    digest: str = ""

    @property
    def shown(self) -> str:
        """The path on one line."""
        return self.path if self.path.isprintable() else repr(self.path)


class OutcomeLog:
    """The rows of one finalize, in an append-only file."""

    def __init__(self, path: str) -> None:
        self.path, self.settled, self.intended = path, dict[str, FileOutcome](), dict[str, str]()
        for line in (files.read(path) or b"").split(b"\n"):
            if line.endswith(b"}"):
                self._take(schema.record(FileOutcome, encoding.parse_json(line, path), "a finalize writes"))

    def _take(self, row: FileOutcome) -> None:
        if row.outcome == INTENDED:
            self.intended[row.path] = row.digest
        else:
            self.settled[row.path] = row

    def add(self, row: FileOutcome) -> None:
        """Write a row durably."""
        files.make_folder(self.path.rpartition("/")[0])
        files.add_line(self.path, json.dumps(row.asdict()).encode() + b"\n")
        self._take(row)


def prompt_lines(outcomes: Sequence[FileOutcome]) -> list[str]:
    """One line for the next prompt about each file that the store did not accept as it is."""
    return [f"{one.shown}: {one.outcome}. {one.why}" for one in outcomes if one.why]
