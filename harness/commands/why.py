"""The evidence for a feature or a claim: receipts with commits, history, and the runs that worked on it."""

from __future__ import annotations

from itertools import islice

from harness.base.errors import UsageFault
from harness.decision import views
from harness.model import contract, contract_log, receipts, runs
from harness.model.contract import Claim
from harness.model.contract_log import Entry
from harness.proof import index
from harness.proof.index import CheckHistory, ClaimStatus
from harness.store.layout import Layout, command

RUNS_SHOWN = 8


def explain(layout: Layout, name: str) -> list[str]:
    """One screen about a feature or a claim; UsageFault if there is neither."""
    known, log = contract.load(layout), contract_log.load(layout)
    blocks = [entry for entry in log if entry.block and name in (entry.block, entry.claim or entry.block)]
    if blocks and not any(name in (one.id, *one.claims) for one in views.queue(layout)):
        return [blocks[-1].block, *blocks[-1].new_block.rstrip("\n").split("\n"), *map(_entry, blocks)]
    features = views.queue(layout)
    feature = next((one for one in features if one.id == name), None)
    owners = [one for one in features if name in one.claims]
    if feature is None and not any(claim.id == name for claim in known.claims):
        see = f"{command('status')}, {command('feature show')} FEATURE"
        raise UsageFault(f"There is no feature and no claim '{name}'. See: {see}")
    lines = [f"{feature.id} {feature.title}: {feature.status} after {feature.attempts} tries"] if feature else []
    claims = known.of(feature.claims) if feature else [known.claim(name)]
    histories = index.load(layout)
    for claim, status in zip(claims, index.statuses(layout, claims, log), strict=True):
        lines += _claim(claim, status, histories, log)
    ids = [feature.id] if feature else [one.id for one in owners]
    return lines + _worked(layout, ids)


def _claim(claim: Claim, status: ClaimStatus, histories: dict[str, CheckHistory], log: list[Entry]) -> list[str]:
    reason = f": {status.reason}" if status.reason else ""
    lines = ["", f"{claim.id}: {claim.text}", f"  {', '.join([status.word, *status.marks])}{reason}"]
    for check in claim.checks:
        history = histories.get(index.key(claim.id, check.run), CheckHistory())
        first = check.run.strip().split("\n")[0]
        lines.append(f"  {'guard' if check.guard else 'check'}  {first[:90]}")
        lines += [f"    red    {_place(history.red)}", f"    green  {_place(history.green)}"]
    return lines + [_entry(entry) for entry in log if entry.claim == claim.id and not entry.block]


def _entry(entry: Entry) -> str:
    return f"  {entry.at} {entry.verb} by {entry.by}{': ' + entry.why if entry.why else ''}"


def _place(place: list[str]) -> str:
    return f"at {place[1][:10] or 'no commit'} in {place[0]}, {place[2]}" if place else "never"


def _worked(layout: Layout, ids: list[str]) -> list[str]:
    mine = (result for result in runs.finished(layout) if result.feature in ids)
    newest = list(islice(mine, RUNS_SHOWN))[::-1]
    lines = ["", "runs"] if newest else []
    for result in newest:
        lines.append(f"  {result.at} {result.run} {result.verdict or result.outcome} {result.commit[:10]}".rstrip())
        notes = [note for receipt in receipts.load(layout.run(result.run).receipts) for note in receipt.notes]
        lines += [f"    look twice: {note}" for note in dict.fromkeys(notes)]
    return lines
