"""contract-log.jsonl: append-only, a line for every change of a claim, check, setup or service; a replay gives the
contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.base import encoding, schema
from harness.base.record import Record
from harness.base.schema import InvalidField
from harness.mission import contract
from harness.mission.contract import Check, Claim, Contract
from harness.mission.receipts import Receipt
from harness.state import json_lines, names
from harness.state.layout import Layout
from harness.state.state import State

ADD, CHANGE, DROP, DROP_FEATURE, AIM, ACCEPT = VERBS = ("add", "change", "drop", "drop feature", "aim", "accept")
SETUP, SERVICE = BLOCKS = ("setup", "service")
PERSON = "person"
REMEDY = "Correct that line, or remove it and lose its facts about the claim."

if TYPE_CHECKING:  # a type here, at run time the kind of a field
    Verb = str
else:
    Verb = schema.one_of((*VERBS, *BLOCKS), told=True)


class ContractChange(Record):
    """A change of a claim (`drop feature`: of the feature with that id), with its time, run or person, and reason. `old` and
    `new` are the claim before and after a planner's or a person's change; `check` is the adversarial check of a validator;
    `commit` is the one a person saw when accepting a claim; `fired` are the receipts of a person's new checks from
    before they counted. For `setup`, and `service` with its name in `claim`, `old_block` and `new_block` are its block
    in the contract, or ""."""

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
    old_block: str = ""
    new_block: str = ""

    @property
    def block(self) -> str:
        """The name of the entry's setup or service; "" for a claim or a feature."""
        return f"{self.verb} {self.claim}".strip() if self.verb in BLOCKS else ""

    @property
    def alters(self) -> bool:
        """Whether an agent changed the sentence of a claim, or an existing setup or service."""
        if self.by == PERSON:
            return False
        if self.verb in BLOCKS:
            return bool(self.old_block)
        return self.verb == CHANGE and self.old is not None and self.new is not None and self.old.text != self.new.text

    @property
    def weakens(self) -> bool:
        """Whether the contract lost the claim or a check of it without a person's decision."""
        if self.by == PERSON:
            return False
        if self.verb != CHANGE or self.old is None or self.new is None:
            return self.verb == DROP
        kept = all(check in self.new.checks for check in self.old.checks)
        return not kept or (self.new.manual and not self.old.manual)


def load(layout: Layout) -> list[ContractChange]:
    """The log of the mission, as `parse` returns it."""
    return parse(State(layout).data(names.CONTRACT_LOG), layout.path(names.CONTRACT_LOG))


def parse(data: bytes | None, path: str) -> list[ContractChange]:
    """The entries, oldest first; [] if the file is absent. A torn last line is skipped; BrokenFile names any other bad line."""
    return json_lines.parse(data, path, _entry, "the line is not JSON", REMEDY)


def _entry(row: Any) -> ContractChange:
    """The entry in a line; raises InvalidField with every fault."""
    row = _converted(row) if isinstance(row, dict) else row
    found = schema.faults(row, "the entry", ContractChange)
    if not found and row["verb"] == CHANGE and None in (row.get("old"), row.get("new")):
        raise InvalidField("a change needs the old and the new claim")
    if found:
        raise InvalidField("; ".join(found))
    return schema.trusted(ContractChange, row)


def _converted(row: dict[str, Any]) -> dict[str, Any]:
    """A row in today's shape: older versions put the adversarial check, or the accepted commit, into `new`."""
    if row.get("verb") == AIM and row.get("check") is None:
        return {**row, "new": None, "check": row.get("new")}
    if row.get("verb") == ACCEPT and isinstance(row.get("new"), str):
        return {**row, "new": None, "commit": row["new"]}
    return row


def render(entries: list[ContractChange]) -> bytes:
    """The lines of these entries; `parse` is the inverse."""
    return b"".join(encoding.dump_json(schema.plain(entry)) for entry in entries)


def retired(entries: list[ContractChange]) -> set[str]:
    """Ids of dropped features and claims; they are never used again."""
    return {entry.claim for entry in entries if entry.verb in (DROP, DROP_FEATURE)}


def weakened(entries: list[ContractChange]) -> set[str]:
    """Claims that were dropped, or lost a check, since a person last decided about their checks."""
    found: set[str] = set()
    for entry in entries:
        if entry.weakens:
            found.add(entry.claim)
        elif entry.by == PERSON and (entry.verb == DROP or _other_checks(entry)):
            found.discard(entry.claim)
    return found


def _other_checks(entry: ContractChange) -> bool:
    return entry.old is not None and entry.new is not None and entry.old.checks != entry.new.checks


def set_by_person(entries: list[ContractChange]) -> set[str]:
    """Claims that a person changed and therefore owns."""
    return {entry.claim for entry in entries if entry.by == PERSON and entry.verb == CHANGE}


def fired(entries: list[ContractChange]) -> list[Receipt]:
    """The receipts of a person's new checks from before they counted."""
    return [receipt for entry in entries if entry.by == PERSON for receipt in entry.fired]


def accepted(entries: list[ContractChange]) -> set[str]:
    """Claims that a person accepted, and that have not changed since."""
    found: set[str] = set()
    for entry in entries:
        if entry.verb == ACCEPT:
            found.add(entry.claim)
        elif entry.verb in (CHANGE, DROP):
            found.discard(entry.claim)
    return found


def changed(entries: list[ContractChange]) -> set[str]:
    """Claims whose sentence changed, and `setup` and `service NAME` if changed, removed, or added by a later plan."""
    first = next((_plan_of(entry) for entry in entries if entry.verb == SETUP), None)
    later = [entry for entry in entries if entry.block and entry.new_block and _plan_of(entry) != first]
    return {one.block or one.claim for one in entries if one.alters} | {one.block for one in later if one.by != PERSON}


def _plan_of(entry: ContractChange) -> tuple[str, str, str]:
    """The key shared by one plan's entries for setup and services; the first is the setup, which may be empty."""
    return entry.at, entry.by, entry.why


def blocks(known: Contract) -> dict[str, str]:
    """{`setup` or `service NAME`: its block}, as the contract is written; a contract always has a setup, which may be empty."""
    setup = contract.setup_block(known) if known.setup else ""
    return {SETUP: setup, **{f"{SERVICE} {one.name}": contract.service_block(one) for one in known.services}}


def changes(old: dict[str, str], new: dict[str, str], why: str) -> list[ContractChange]:
    """The entries for the difference of two `blocks`; {} if nothing was ever logged."""
    found = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name, ""), new.get(name, "")
        if before != after or name not in old:
            verb, _, service = name.partition(" ")
            found.append(ContractChange(verb=verb, claim=service, why=why, old_block=before, new_block=after))
    return found


def replayed_blocks(entries: list[ContractChange]) -> dict[str, str]:
    """The `blocks` replayed from the log; {} for a log of an older version, which has none."""
    found = {entry.block: entry.new_block for entry in entries if entry.block}
    return {name: text for name, text in found.items() if text or name == SETUP} if SETUP in found else {}


def replayed(entries: list[ContractChange]) -> dict[str, Claim]:
    """{id: claim} replayed from the log."""
    found: dict[str, Claim] = {}
    for entry in entries:
        if entry.verb in (ADD, CHANGE) and entry.new:
            found[entry.claim] = entry.new
        elif entry.verb == DROP:
            found.pop(entry.claim, None)
        elif entry.verb == AIM and entry.check and entry.claim in found:
            claim = found[entry.claim]
            found[entry.claim] = claim.replace(checks=[*claim.checks, entry.check])
    return found


def missing(entries: list[ContractChange], known: Contract, why: str) -> list[ContractChange]:
    """The entries missing from the log for a replay to give this contract; [] for a log of an older version, which has
    no setup yet (see `begun`)."""
    old, now, logged = replayed_blocks(entries), {claim.id: claim for claim in known.claims}, replayed(entries)
    if not old:
        return []
    found = changes(old, blocks(known), why)
    for name in dict.fromkeys([*logged, *now]):
        before, after = logged.get(name), now.get(name)
        if before != after:
            verb = ADD if before is None else DROP if after is None else CHANGE
            found.append(ContractChange(verb=verb, claim=name, why=why, old=before, new=after))
    return found


def begun(entries: list[ContractChange], known: Contract) -> list[ContractChange]:
    """The entries that make the log of an older version replayable: the present contract, before a plan changes it."""
    if replayed_blocks(entries) or not known.claims:
        return []
    why, logged = "the contract when its log became complete", replayed(entries)
    claims = [claim for claim in known.claims if logged.get(claim.id) != claim]
    return [
        *changes({}, blocks(known), why),
        *(ContractChange(verb=ADD, claim=claim.id, why=why, new=claim) for claim in claims),
    ]
