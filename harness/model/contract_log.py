"""contract-log.jsonl: every claim or check that was added, changed, dropped, aimed or accepted; append-only, one line each."""

from __future__ import annotations

from harness.base import schema
from harness.base.record import Record
from harness.base.schema import Odd
from harness.model.contract import Check, Claim
from harness.store import files, json_lines
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ADD, CHANGE, DROP, DROP_FEATURE, AIM, ACCEPT = VERBS = ("add", "change", "drop", "drop feature", "aim", "accept")
REMEDY = "Mend that line, or take it out: then what it told of its claim is lost."

if TYPE_CHECKING:
    Verb = str
else:
    Verb = schema.one_of(VERBS, told=True)


class Entry(Record):
    """What was done to a claim (`drop feature`: to the feature of that id), when, by which run or person, and why.

    `old` and `new` are the claim before and after, where a planner added, changed or dropped it; `check` is the one that a
    validator aimed; `commit` is what a person looked at who accepted a manual claim.
    """

    verb: Verb
    claim: str
    why: str
    at: str = ""
    by: str = ""
    old: Claim | None = None
    new: Claim | None = None
    check: Check | None = None
    commit: str = ""

    @property
    def weakens(self) -> bool:
        """Whether the claim lost a check that had stood in the contract, or went itself."""
        if self.verb != CHANGE or self.old is None or self.new is None:
            return self.verb == DROP
        kept = all(check in self.new.checks for check in self.old.checks)
        return not kept or (self.new.manual and not self.old.manual)


def load(layout: Layout) -> list[Entry]:
    """The mission's log, oldest first, as `parse` gives it."""
    return parse(files.read(layout.contract_log), layout.contract_log)


def parse(data: bytes | None, path: str) -> list[Entry]:
    """The entries, oldest first; [] where the file is absent. A torn last line is passed over; BrokenFile names any other."""
    return json_lines.parse(data, path, _entry, "the line is no JSON", REMEDY)


def _entry(row: Any) -> Entry:
    """The entry in a line; raises Odd with all that is wrong with it."""
    row = _converted(row) if isinstance(row, dict) else row
    found = schema.faults(row, "the entry", Entry)
    if not found and row["verb"] == CHANGE and None in (row.get("old"), row.get("new")):
        raise Odd("a change has the old and the new claim")
    if found:
        raise Odd("; ".join(found))
    return schema.trusted(Entry, row)


def _converted(row: dict[str, Any]) -> dict[str, Any]:
    """A row as we write it now: earlier, `new` was the aimed check or the commit that was looked at."""
    if row.get("verb") == AIM and row.get("check") is None:
        return {**row, "new": None, "check": row.get("new")}
    if row.get("verb") == ACCEPT and isinstance(row.get("new"), str):
        return {**row, "new": None, "commit": row["new"]}
    return row


def render(entries: list[Entry]) -> bytes:
    """The lines of these entries; `parse` gives the same entries back."""
    return b"".join(files.dump_json(schema.plain(entry)) for entry in entries)


def retired(entries: list[Entry]) -> set[str]:
    """Ids of features and claims that were dropped once; they are never used again."""
    return {entry.claim for entry in entries if entry.verb in (DROP, DROP_FEATURE)}


def weakened(entries: list[Entry]) -> set[str]:
    """Claims of which a check was changed or dropped after it had stood in the contract, and claims that were dropped."""
    return {entry.claim for entry in entries if entry.weakens}


def accepted(entries: list[Entry]) -> set[str]:
    """Manual claims for which a person has given a receipt."""
    return {entry.claim for entry in entries if entry.verb == ACCEPT}
