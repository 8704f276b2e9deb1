"""The state of proof of all claims: an index over all receipts, cached beside the digest of the run log it was made from.

A check is proven when its newest receipt is green and a check of the claim was red before: a check that never failed
proves nothing. A guard needs no red. The index is derived: if deleted, it is rebuilt from runs.jsonl and the receipts. The
receipts of checks that a person brought are in the contract log, and join it at each look.
"""

from __future__ import annotations

from harness.base import encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.model import contract_log, receipts, runs
from harness.model.contract import Claim
from harness.model.receipts import Receipt
from harness.store import documents, json_lines, names
from harness.store.layout import Layout, command
from harness.store.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harness.base.schema import Whole

NAME = "proofs"
NAMES = ", which a check of "  # in a sign about one claim, before the claim's id


class CheckHistory(Record):
    """The history of one check over all runs: newest red and green as [run, commit, at], the number of flaky results, and
    the reward-hacking signals from the validations of its feature."""

    red: list[str] = []
    green: list[str] = []
    last_green: bool = False
    last_at: str = ""
    flaky: int = 0
    signs: list[str] = []


if TYPE_CHECKING:
    HistoryRow = dict[str, Any]
else:
    HistoryRow = schema.row_of(CheckHistory)


class Held(Record):
    """What the cache keeps: the trails, and length and digest of the lines of the books that they were made from."""

    size: Whole = 0
    digest: str = ""
    trails: dict[str, HistoryRow] = {}


class ClaimStatus(Record):
    """The status of a claim: `word` is proven, unproven or manual; `marks` of flaky, weakened, signs, accepted."""

    claim: str
    word: str
    marks: list[str] = []
    red: list[str] = []
    green: list[str] = []


def load(layout: Layout) -> dict[str, CheckHistory]:
    """{claim + newline + command: check history}, complete up to the newest finished run."""
    data = State(layout).data(names.RUN_LOG) or b""
    data = data[: data.rfind(b"\n") + 1]
    held = _held(layout, data)
    trails = {key: CheckHistory(**row) for key, row in held.trails.items()}
    for number, line in json_lines.whole(data[held.size :]):
        if run_id := _fired(layout, line, data[: held.size].count(b"\n") + number):
            _take(layout, trails, run_id)
    if len(data) != held.size:
        rows = {key: trail.asdict() for key, trail in trails.items()}
        made = Held(size=len(data), digest=encoding.digest(data), trails=rows)
        documents.keep(layout.cache, NAME, "", made.asdict(), CheckHistory.fields)
    for receipt in contract_log.fired(contract_log.load(layout)):
        _join(trails, receipt)
    return trails


def _join(trails: dict[str, CheckHistory], receipt: Receipt) -> None:
    """Take a receipt of a person's new check, where runs have fired the same one before or since."""
    trail = trails.setdefault(key(receipt.claim, receipt.command), CheckHistory())
    place = [receipt.by, receipt.head, receipt.at]
    if receipt.at > trail.last_at:  # of the same second, a run's is the later one
        trail.last_green, trail.last_at = receipt.green, receipt.at
    if receipt.green:
        trail.green = max(trail.green, place, key=lambda known: known[-1:])
    else:
        trail.red = max(trail.red, place, key=lambda known: known[-1:])


def _held(layout: Layout, data: bytes) -> Held:
    """The index as it is kept, where it was made from a beginning of these lines, byte for byte; else an empty one."""
    row = documents.recall(layout.cache, NAME, "", CheckHistory.fields)
    try:
        held = schema.record(Held, row, "we leave")
    except (TypeError, ValueError):
        return Held()
    return held if encoding.digest(data[: held.size]) == held.digest else Held()


def _fired(layout: Layout, line: bytes, number: int) -> str:
    """The run of a line in the run log if its receipts count (it judged, or its plan landed), else "": an agent could have
    written those of other runs."""
    try:
        row = json_lines.value(line)
        return str(row["run"]) if row["verdict"] or row["accepted"] else ""
    except (ValueError, KeyError, TypeError):
        raise BrokenFile(layout.run_log, runs.NO_RUN, line=number, remedy=f"See: {command('doctor')}") from None


def _take(layout: Layout, trails: dict[str, CheckHistory], run_id: str) -> None:
    for receipt in receipts.load(layout.run(run_id).receipts):
        trail = trails.setdefault(key(receipt.claim, receipt.command), CheckHistory())
        place = [run_id, receipt.head, receipt.at]
        trail.last_green, trail.last_at = receipt.green, receipt.at
        trail.flaky += receipt.flaky
        trail.signs += [sign for sign in receipt.signs if sign not in trail.signs]
        if receipt.green:
            trail.green = place
        else:
            trail.red = place


def key(claim_id: str, command: str) -> str:
    """The index's key of one check."""
    return f"{claim_id}\n{command}"


def signs_about(claim: Claim, trails: dict[str, CheckHistory]) -> list[str]:
    """The reward-hacking signals about this claim: those of any feature that name it, and those of its own that name none."""
    named, own = (
        f"{NAMES}{claim.id} names",
        [trails.get(key(claim.id, check.run), CheckHistory()) for check in claim.checks],
    )
    found = [sign for trail in own for sign in trail.signs if NAMES not in sign]
    found += [sign for trail in trails.values() for sign in trail.signs if sign.endswith(named)]
    return list(dict.fromkeys(found))


def claim_status(claim: Claim, trails: dict[str, CheckHistory], weakened: set[str], accepted: set[str]) -> ClaimStatus:
    """The status of one claim from its receipts, the contract log and a person's decision."""
    mine = [trails.get(key(claim.id, check.run), CheckHistory()) for check in claim.checks]
    green = bool(mine) and all(trail.last_green for trail in mine)
    red = [trail.red for trail in mine if trail.red]
    guards = bool(claim.checks) and all(check.guard for check in claim.checks)
    marks = ["flaky"] * any(trail.flaky for trail in mine) + ["weakened"] * (claim.id in weakened)
    marks += ["signs"] * bool(signs_about(claim, trails))
    marks += ["accepted"] * (claim.id in accepted)
    word = "manual" if claim.manual else "proven" if green and (red or guards) else "unproven"
    newest = [trail.green for trail in mine if trail.green]
    return ClaimStatus(
        claim=claim.id, word=word, marks=marks, red=red[-1] if red else [], green=newest[-1] if newest else []
    )
