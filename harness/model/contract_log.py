"""contract-log.jsonl: append-only, a line for every claim or check that is added, changed, dropped, aimed or accepted."""

from __future__ import annotations

from harness.base import encoding, schema
from harness.base.record import Record
from harness.base.schema import InvalidField
from harness.model.contract import Check, Claim
from harness.model.receipts import Receipt
from harness.store import json_lines, names
from harness.store.layout import Layout
from harness.store.state import State

ADD, CHANGE, DROP, DROP_FEATURE, AIM, ACCEPT = VERBS = ("add", "change", "drop", "drop feature", "aim", "accept")
PERSON = "person"
REMEDY = "Correct that line, or remove it: then its facts about the claim are lost."

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Verb = str
else:
    Verb = schema.one_of(VERBS, told=True)


class Entry(Record):
    """A change of a claim (`drop feature`: of the feature with that id), with its time, run or person, and reason. `old` and
    `new` are the claim before and after a planner's or a person's change; `check` is the adversarial check of a validator;
    `commit` is the one a person saw when accepting a manual claim; `fired` are the receipts of a person's new checks, from
    before they counted."""

    verb: Verb
    claim: str
    why: str
    at: str = ""
    by: str = ""
    old: Claim | None = None
    new: Claim | None = None
    check: Check | None = None
    commit: str = ""
    fired: list[Receipt] = []

    @property
    def weakens(self) -> bool:
        """Whether the contract lost a check of the claim, or the claim, and no person wanted that."""
        if self.by == PERSON:
            return False
        if self.verb != CHANGE or self.old is None or self.new is None:
            return self.verb == DROP
        kept = all(check in self.new.checks for check in self.old.checks)
        return not kept or (self.new.manual and not self.old.manual)


def load(layout: Layout) -> list[Entry]:
    """The log of the mission, as `parse` returns it."""
    return parse(State(layout).data(names.CONTRACT_LOG), layout.contract_log)


def parse(data: bytes | None, path: str) -> list[Entry]:
    """The entries, oldest first; [] if the file is absent. A torn last line is skipped; BrokenFile names any other bad line."""
    return json_lines.parse(data, path, _entry, "the line is no JSON", REMEDY)


def _entry(row: Any) -> Entry:
    """The entry in a line; raises InvalidField with every fault."""
    row = _converted(row) if isinstance(row, dict) else row
    found = schema.faults(row, "the entry", Entry)
    if not found and row["verb"] == CHANGE and None in (row.get("old"), row.get("new")):
        raise InvalidField("a change has the old and the new claim")
    if found:
        raise InvalidField("; ".join(found))
    return schema.trusted(Entry, row)


def _converted(row: dict[str, Any]) -> dict[str, Any]:
    """A row in today's shape: older versions put the adversarial check, or the accepted commit, into `new`."""
    if row.get("verb") == AIM and row.get("check") is None:
        return {**row, "new": None, "check": row.get("new")}
    if row.get("verb") == ACCEPT and isinstance(row.get("new"), str):
        return {**row, "new": None, "commit": row["new"]}
    return row


def render(entries: list[Entry]) -> bytes:
    """The lines of these entries; `parse` is the inverse."""
    return b"".join(encoding.dump_json(schema.plain(entry)) for entry in entries)


def retired(entries: list[Entry]) -> set[str]:
    """Ids of dropped features and claims; they are never used again."""
    return {entry.claim for entry in entries if entry.verb in (DROP, DROP_FEATURE)}


def weakened(entries: list[Entry]) -> set[str]:
    """Claims that were dropped, or lost a check of the contract, since a person last decided about their checks."""
    found: set[str] = set()
    for entry in entries:
        if entry.weakens:
            found.add(entry.claim)
        elif entry.by == PERSON and (entry.verb == DROP or _other_checks(entry)):
            found.discard(entry.claim)
    return found


def _other_checks(entry: Entry) -> bool:
    return entry.old is not None and entry.new is not None and entry.old.checks != entry.new.checks


def set_by_person(entries: list[Entry]) -> set[str]:
    """Claims that a person changed: they are a person's from then on."""
    return {entry.claim for entry in entries if entry.by == PERSON and entry.verb == CHANGE}


def fired(entries: list[Entry]) -> list[Receipt]:
    """The receipts of checks that a person brought, from before they counted."""
    return [receipt for entry in entries if entry.by == PERSON for receipt in entry.fired]


def accepted(entries: list[Entry]) -> set[str]:
    """Manual claims that a person accepted."""
    return {entry.claim for entry in entries if entry.verb == ACCEPT}
