"""contract-log.jsonl: every claim or check that was added, changed, dropped, aimed or accepted; append-only, one line each."""

from __future__ import annotations

import json

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.model.contract import Check, Claim
from harness.store import files
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ADD, CHANGE, DROP, DROP_FEATURE, AIM, ACCEPT = VERBS = ("add", "change", "drop", "drop feature", "aim", "accept")
REQUIRED = {**dict.fromkeys(("at", "by", "verb", "claim", "why"), "str"), "old": "any", "new": "any"}
OPTIONAL = {"check": "any", "commit": "str"}
CLAIM = {"id": "str", "text": "str", "checks": "list", "manual": "bool"}
CHECK = {"run": "str", "seconds": "any", "guard": "bool"}


class Entry(Record):
    """What was done to a claim (`drop feature`: to the feature of that id), when, by which run or person, and why.

    `old` and `new` are the claim before and after, where a planner added, changed or dropped it; `check` is the one that a
    validator aimed; `commit` is what a person looked at who accepted a manual claim.
    """

    verb: str
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
    """The entries, oldest first; [] where the file is absent. A last line without its end that does not parse is being
    written just now, and passed over; BrokenFile names any other."""
    found: list[Entry] = []
    lines = (data or b"").split(b"\n")
    for number, line in enumerate(lines, start=1):
        entry = _read(line) if line else None
        if isinstance(entry, Entry):
            found.append(entry)
        elif entry and number < len(lines):
            remedy = "Mend that line, or take it out: then what it told of its claim is lost."
            raise BrokenFile(path, entry, line=number, remedy=remedy)
    return found


def _read(line: bytes) -> Entry | str:
    """The entry in a line, or what is wrong with it."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return "the line is no JSON"
    found = schema.faults(row, "the entry", REQUIRED, OPTIONAL)
    if not found and row["verb"] not in VERBS:
        found = [f"the verb '{row['verb']}' is none of {', '.join(VERBS)}"]
    if not found:
        row.update(_converted(row))
        found = _faults(row)
    return "; ".join(found) or _entry(row)


def _faults(row: dict[str, Any]) -> list[str]:
    """What is wrong with the claims and the check of an entry."""
    found = [fault for key in ("old", "new") for fault in _claim_faults(row[key], f"'{key}'")]
    found += _check_faults(row["check"], "'check'") if row["check"] is not None else []
    if row["verb"] == CHANGE and None in (row["old"], row["new"]):
        found.append("a change has the old and the new claim")
    return found


def _converted(row: dict[str, Any]) -> dict[str, Any]:
    """A row as we write it now: earlier, `new` was the aimed check or the commit that was looked at."""
    new, check, commit = row["new"], row.get("check"), row.get("commit", "")
    if row["verb"] == AIM and check is None:
        new, check = None, new
    elif row["verb"] == ACCEPT and isinstance(new, str):
        new, commit = None, new
    return {"new": new, "check": check, "commit": commit}


def _claim_faults(value: Any, where: str) -> list[str]:
    found = schema.faults(value, where, CLAIM) if value is not None else []
    checks = value["checks"] if value is not None and not found else []
    return found + [fault for check in checks for fault in _check_faults(check, f"a check of {where}")]


def _check_faults(value: Any, where: str) -> list[str]:
    found = schema.faults(value, where, CHECK)
    odd = not found and value["seconds"] is not None and not schema.fits(value["seconds"], "seconds")
    return found + [f"{where}: 'seconds' must be {schema.WORDS['seconds']}"] * odd


def _entry(row: dict[str, Any]) -> Entry:
    old, new = (_claim(row[key]) if row[key] is not None else None for key in ("old", "new"))
    check = Check(**row["check"]) if row["check"] is not None else None
    return Entry(**{**row, "old": old, "new": new, "check": check})


def _claim(row: dict[str, Any]) -> Claim:
    return Claim(**{**row, "checks": [Check(**check) for check in row["checks"]]})


def render(entries: list[Entry]) -> bytes:
    """The lines of these entries; `parse` gives the same entries back."""
    return b"".join(files.dump_json(_row(entry)) for entry in entries)


def _row(entry: Entry) -> dict[str, Any]:
    row = {name: getattr(entry, name) for name in ("at", "by", "verb", "claim", "why")}
    old, new = (_plain(claim) if claim else None for claim in (entry.old, entry.new))
    return {
        **row,
        "old": old,
        "new": new,
        "check": entry.check.asdict() if entry.check else None,
        "commit": entry.commit,
    }


def _plain(claim: Claim) -> dict[str, Any]:
    return {**claim.asdict(), "checks": [check.asdict() for check in claim.checks]}


def retired(entries: list[Entry]) -> set[str]:
    """Ids of features and claims that were dropped once; they are never used again."""
    return {entry.claim for entry in entries if entry.verb in (DROP, DROP_FEATURE)}


def weakened(entries: list[Entry]) -> set[str]:
    """Claims of which a check was changed or dropped after it had stood in the contract, and claims that were dropped."""
    return {entry.claim for entry in entries if entry.weakens}


def accepted(entries: list[Entry]) -> set[str]:
    """Manual claims for which a person has given a receipt."""
    return {entry.claim for entry in entries if entry.verb == ACCEPT}
