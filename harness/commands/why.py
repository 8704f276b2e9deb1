"""The evidence for a feature or a claim: receipts with commits, history, and the runs that worked on it."""

from __future__ import annotations

from itertools import islice
from typing import Any

from harness.base import faults, schema
from harness.base.errors import UsageFault
from harness.commands import delivery
from harness.decision import escalations, views
from harness.mission import contract_log, receipts, runs, tasks
from harness.mission.contract import Check, Claim
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.proof import index
from harness.proof.index import CheckHistory, ClaimStatus, Proofs
from harness.state.layout import Layout, command

RUNS_SHOWN = 8
MIN_ID_CHARS = 7  # of a commit
MAX_CHECK_LINES = 8  # of a check, after its first line
LAST_LINES = 8  # of a red output
SINCE = ", red since before the plan"
WIDTH, CONTINUED = 90, " " * 11  # of these lines; indent of continuation lines


def explain(layout: Layout, name: str) -> list[str]:
    """One screen about a feature, a claim, the setup, a service or a commit that was landed; raises UsageFault for an unknown
    name."""
    head, name = _landed(layout, name)
    known, queue = index.proofs(layout), views.queue(layout)
    if head:
        return [*head, *(explain(layout, name) if name else [])]
    if blocks := _block(known.log, queue, name):
        return [blocks[-1].block, *blocks[-1].new_block.rstrip("\n").split("\n"), *map(_entry, blocks)]
    feature, claims, ids = _found(known, queue, name)
    tries = "try" if feature and feature.attempts == 1 else "tries"
    lines = [f"{feature.id} {feature.title}: {feature.status} after {feature.attempts} {tries}"] if feature else []
    for claim, status in claims:
        lines += _claim(layout, claim, status, known)
    return lines + _worked(layout, ids)


def _landed(layout: Layout, name: str) -> tuple[list[str], str]:
    """(a line for each commit with this old or new id, the feature of its run or ""); ([], name) for any other name."""
    rows = [(old, new, one.branch) for one in delivery.load(layout) for old, new in one.commits.items()]
    found = [row for row in rows if len(name) >= MIN_ID_CHARS and any(one.startswith(name) for one in row[:2])]
    of = {one.commit: one.feature for one in runs.finished(layout)} if found else {}
    lines = [f"{old[:10]} is {new[:10]} on {branch}" for old, new, branch in found]
    return lines, next((of[old] for old, _, _ in found if old in of), "" if found else name)


def _block(log: list[ContractChange], queue: list[Feature], name: str) -> list[ContractChange]:
    """The log entries of the setup or service of this name; [] for a feature or claim, which take precedence."""
    found = [entry for entry in log if entry.block and name in (entry.block, entry.claim or entry.block)]
    return [] if any(name in (one.id, *one.claims) for one in queue) else found


def _found(
    known: Proofs, queue: list[Feature], name: str
) -> tuple[Feature | None, list[tuple[Claim, ClaimStatus]], list[str]]:
    """The feature of this name, if it is one, the claims with their status, and the features that they belong to."""
    feature = next((one for one in known.shown(queue) if one.id == name), None)
    statuses = {one.claim: one for one in known.statuses}
    claims = [(one, statuses[one.id]) for one in known.contract.of(feature.claims if feature else [name])]
    if feature is None and not claims:
        see = f"{command('status')}, {command('feature show')} FEATURE"
        raise UsageFault(f"There is no feature and no claim '{name}'. See: {see}")
    return feature, claims, [feature.id] if feature else [one.id for one in queue if name in one.claims]


def claims(layout: Layout) -> list[dict[str, Any]]:
    """Every claim with its text, checks, features and proof, as plain values: for the keys see docs/contract.md."""
    known, queue = index.proofs(layout), views.queue(layout)
    by_person = contract_log.set_by_person(known.log)
    return [
        {
            **schema.plain(one),
            "features": [feature.id for feature in queue if one.id in feature.claims],
            **{key: getattr(status, key) for key in ("word", "reason", "marks", "red", "green")},
            "set_by_person": one.id in by_person,
        }
        for one, status in zip(known.contract.claims, known.statuses, strict=True)
    ]


def value(layout: Layout, name: str) -> dict[str, Any]:
    """The same as plain values: for the keys see docs/contract.md."""
    name = _landed(layout, name)[1] or name
    known, queue = index.proofs(layout), views.queue(layout)
    if blocks := _block(known.log, queue, name):
        return {"name": blocks[-1].block, "block": blocks[-1].new_block, "log": blocks}
    feature, claims, ids = _found(known, queue, name)
    rows = []
    for claim, status in claims:
        checks = [
            {**check.asdict(), "red": history.red, "green": history.green, "flaky": history.flaky}
            for check in claim.checks
            for history in [known.histories.get(index.key(claim.id, check.run), CheckHistory())]
        ]
        rows.append({**status.asdict(), "text": claim.text, "checks": checks, "log": _entries(claim, known.log)})
    mine = (result for result in runs.finished(layout) if result.feature in ids)
    return {"feature": feature, "claims": rows, "runs": list(islice(mine, RUNS_SHOWN))[::-1]}


def _claim(layout: Layout, claim: Claim, status: ClaimStatus, known: Proofs) -> list[str]:
    reason = f": {status.reason}" if status.reason else ""
    lines = ["", f"{claim.id}: {claim.text}", f"  {', '.join([status.word, *status.marks])}{reason}"]
    for number, check in enumerate(claim.checks, start=1):
        history = known.histories.get(index.key(claim.id, check.run), CheckHistory())
        lines += _command(check, f" {number}" if len(claim.checks) > 1 else "", claim)
        old = check.guard and not history.green and _red_before(layout, claim, check, known.log)
        lines += [f"    red    {_place(history.red)}{SINCE * old}", f"    green  {_place(history.green)}"]
        lines += _red_output(layout, claim, check, history)
    lines += [f"  look twice: {sign}" for sign in index.signs_about(claim, known.histories)]
    return lines + [_entry(entry) for entry in _entries(claim, known.log)]


def _red_before(layout: Layout, claim: Claim, check: Check, log: list[ContractChange]) -> bool:
    """Whether the check was red in the run of the plan that brought it."""
    brought = next((one.by for one in _entries(claim, log) if one.new and check in one.new.checks), "")
    fired = receipts.of_run(layout, brought) if brought else []
    return any(one.command == check.run and one.phase == "before" and not one.green for one in fired)


def _entries(claim: Claim, log: list[ContractChange]) -> list[ContractChange]:
    return [entry for entry in log if entry.claim == claim.id and not entry.block]


def _entry(entry: ContractChange) -> str:
    return f"  {entry.at} {entry.verb} by {entry.by}{': ' + entry.why if entry.why else ''}"


def _command(check: Check, number: str, claim: Claim) -> list[str]:
    """A check with its number: whole, or its first lines and the first further line that no other check of the claim has."""
    head, *rest = _folded(check)
    lines = [
        f"  {'guard' if check.guard else 'check'}{number}  {head}",
        *(f"{CONTINUED}{line}" for line in rest[:MAX_CHECK_LINES]),
    ]
    if len(rest) <= MAX_CHECK_LINES:
        return lines
    others = {line for other in claim.checks if other is not check for line in _folded(other)}
    own = next((line for line in [head, *rest] if line not in others), "")
    left = f"{CONTINUED}… and {len(rest) - MAX_CHECK_LINES} more lines: {command('feature show')} FEATURE"
    return [*lines, left, *([f"{CONTINUED}only here: {own.strip()}"] if own in rest[MAX_CHECK_LINES:] else [])]


def _folded(check: Check) -> list[str]:
    """The lines of a check; long ones are split."""
    lines = check.run.strip("\n").split("\n")
    return [line[at : at + WIDTH] for line in lines for at in range(0, max(len(line), 1), WIDTH)]


def _red_output(layout: Layout, claim: Claim, check: Check, history: CheckHistory) -> list[str]:
    """The fault of the check's last red receipt, and the ends of its output and remarks."""
    found = receipts.of_run(layout, history.red[0]) if history.red else []
    for one in reversed(found):
        if (one.claim, one.command) == (claim.id, check.run) and not one.green:
            said = (one.output, one.remarks.removeprefix(f"{receipts.TRACED}\n"))
            ends = (escalations.last_lines(text, LAST_LINES) for text in said if text.strip())
            return [
                f"    last {one.verdict}: {faults.cut(one.fault, WIDTH)}",
                *(f"{CONTINUED}| {faults.cut(line, WIDTH)}" for lines in ends for line in lines),
            ]
    return []


def _place(place: list[str]) -> str:
    if not place:
        return "never"
    where = "before a person set it" if place[0] == contract_log.PERSON else f"in {place[0]}"
    return f"at {place[1][:10] or 'no commit'} {where}, {place[2]}"


def _worked(layout: Layout, ids: list[str]) -> list[str]:
    mine = (result for result in runs.finished(layout) if result.feature in ids)
    newest = list(islice(mine, RUNS_SHOWN))[::-1]
    lines, landed = ["", "runs"] if newest else [], [one.commits for one in delivery.load(layout)]
    for result in newest:
        commits = " = ".join(dict.fromkeys([result.commit[:10], *(new.get(result.commit, "")[:10] for new in landed)]))
        lines.append(f"  {result.at} {result.run} {result.verdict or result.outcome} {commits}".rstrip(" ="))
        lines += [f"    {line}" for line in result.ignored]
        lines += [
            f"    {one.id} {one.status}, {one.turns} requests" for one in tasks.of_run(layout.run(result.run).tasks)
        ]
        notes = [note for receipt in receipts.load(layout.run(result.run).receipts) for note in receipt.notes]
        lines += [f"    look twice: {note}" for note in dict.fromkeys(notes)]
    return lines
