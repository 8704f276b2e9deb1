"""The validator's run: checks are fired first; only if all are green is an agent asked for adversarial checks."""

from __future__ import annotations

import os
import time

from harness.base import schema
from harness.base.record import Record
from harness.decision import views
from harness.git import repository
from harness.mission import contract_log, features, receipts, runs
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Claim, Contract
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.mission.open_run import OpenRun, Outcome, RoleFinding
from harness.mission.receipts import Receipt
from harness.proof import check_runs, index, inputs, reward_hacking, services, sweep, tampering
from harness.run.settle import _plan, planner
from harness.state import names
from harness.state.state import State
from harness.workplace import workplace

ADVERSARIAL_ROUNDS = 2
FLAKY_MAKES_ISSUE = 3
COMMITS_LOOKED_AT = 10


def prepare(run: OpenRun) -> bool:
    """Run the deciding checks; returns whether to ask an agent for adversarial checks."""
    outcome = run.outcome
    place, known, path = run.place(), outcome.contract, run.paths.receipts
    if outcome.feature is None:
        outcome.finding = Validation(judged=views.proof_state(run.layout, run.context.tree))
        outcome.checks.receipts, outcome.checks.setup_fault = sweep.sweep(
            run.layout, known, place, path, workplace.recorded(run.layout)
        )
        return False
    place = tampering.watched(place, known)
    outcome.checks.setup_fault = check_runs.setup_once(run.layout, known, place)
    if known.setup:
        workplace.leave_untracked(run)
    if outcome.checks.setup_fault:
        return False
    outcome.checks.signs = _signs(run)
    place.notes = outcome.checks.signs
    with services.RunningServices(known.services, place) as up:
        outcome.checks.receipts = list(check_runs.fire_all(known.of(outcome.feature.claims), "after", up, path))
        if all(receipt.green for receipt in outcome.checks.receipts):
            outcome.checks.receipts += _regression_checks(run, up)
    aimed = sum(note["kind"] == "aimed" for note in outcome.feature.notes)
    return all(receipt.green for receipt in outcome.checks.receipts) and aimed < ADVERSARIAL_ROUNDS


def _regression_checks(run: OpenRun, place: CheckEnvironment) -> list[Receipt]:
    """Run the checks of passed features too, for at most sweep_seconds: guards first, then the least recently run. A
    red one was broken by this feature."""
    outcome = run.outcome
    histories = index.load(run.layout)
    mine = set(outcome.feature.claims) if outcome.feature else set()
    others = [claim for feature in outcome.features if feature.status == "passed" for claim in feature.claims]
    pairs = [(claim, check) for claim in outcome.contract.of(others) if claim.id not in mine for check in claim.checks]

    def turn(pair: tuple[Claim, Check]) -> tuple[bool, str]:
        history = histories.get(index.key(pair[0].id, pair[1].run))
        return (not pair[1].guard, history.last_at if history else "")

    until = time.monotonic() + run.settings.sweep_seconds
    found: list[Receipt] = []
    for receipt in check_runs.fire_each(sorted(pairs, key=turn), "blame", place, run.paths.receipts):
        found.append(receipt)
        if not receipt.green or time.monotonic() > until:
            break
    return found


def _signs(run: OpenRun) -> list[str]:
    """Reward-hacking signals in the commits of the feature's workers since it last passed, about any claim's checks."""
    found: list[str] = []
    own: set[str] = set()
    trees = os.path.dirname(workplace.folder_of(run.mission.id))
    places = list(
        dict.fromkeys(path for one in (run.layout.folders.top, trees) for path in (one, os.path.realpath(one)))
    )
    for commit in _commits(run):
        changed = repository.changed(run.layout.folders.top, commit + "^", commit)
        patch = repository.patch_between(run.layout.folders.top, commit + "^", commit).decode("utf-8", "replace")
        made = repository.show(run.layout.folders.top, commit, run.layout.folders.prefix + "Makefile") or b""
        more = inputs.included(made.decode("utf-8", "replace"))
        found += reward_hacking.signs(
            changed, patch, run.outcome.contract.claims, places, run.layout.folders.prefix, own, more
        )
        own |= {path for letter, path in changed if letter == "A"}
    return list(dict.fromkeys(found))


def _commits(run: OpenRun) -> list[str]:
    commits: list[str] = []
    for result in runs.finished(run.layout):
        if result.feature != run.context.feature or len(commits) == COMMITS_LOOKED_AT:
            continue
        if result.verdict == "green":
            break
        commits += [result.commit] if result.commit else []
    return commits[::-1]


class AdversarialResult(Record):
    """A check proposed by the validator's agent that was red both times."""

    claim: str
    check: Check
    why: str


class Validation(RoleFinding):
    """What a validator found: the proof state that a sweep `judged`, or the proposed checks that were red."""

    judged: dict[str, str] | None = None
    adversarial: list[AdversarialResult] = []


def examine(run: OpenRun) -> Validation:
    """Run the checks that the validator's agent proposes, red ones twice; decides nothing yet."""
    outcome = run.outcome
    found = outcome.finding = outcome.finding if isinstance(outcome.finding, Validation) else Validation()
    feature, proposed = outcome.feature, (outcome.reply or {}).get("checks", [])
    if feature is None or not proposed or outcome.checks.setup_fault or outcome.ended not in runs.GOOD:
        return found
    place = tampering.watched(run.place(), outcome.contract)
    with services.RunningServices(outcome.contract.services, place) as up:
        for row in proposed:
            claim = next((one for one in run.claims if one.id == row["claim"] and not one.manual), None)
            check = Check(run=row["run"].strip("\n"), guard=True)  # it proves nothing: its validator chose it
            if claim is None or check.run in [one.run for one in claim.checks] or _refused(run, claim, check):
                continue
            receipt = check_runs.fire_with_retry(check, claim, "after", up)
            if receipt.flaky:
                continue
            outcome.checks.receipts.append(receipt)
            State(run.layout).add(names.of_run(run.id, names.RECEIPTS), receipts.render([receipt]))
            if not receipt.green:
                found.adversarial.append(AdversarialResult(claim=claim.id, check=check, why=row.get("why", "")))
    return found


def settle(run: OpenRun) -> None:
    """Decide by the receipts: the feature passes or fails, or the sweep is green or sends features back."""
    outcome = run.outcome
    found = outcome.finding if isinstance(outcome.finding, Validation) else examine(run)
    if outcome.checks.setup_fault:
        outcome.decision.verdict = "red"
        outcome.reason = outcome.checks.setup_fault
        planner.escalate_setup(run, outcome.contract.setup, outcome.reason)
    elif not run.context.feature:
        _judge_sweep(run, found)
    elif outcome.feature is None or outcome.contract.of(outcome.feature.claims) != run.claims:
        outcome.reason = f"{run.context.feature} or its claims changed while it was judged, so nothing is decided"
    else:
        _join_aimed(run, outcome.feature, found)
        _judge_feature(run, outcome.feature)
    outcome.save()


def _join_aimed(run: OpenRun, feature: Feature, found: Validation) -> None:
    """Add the proposed checks that were red to the contract."""
    if (run.outcome.reply or {}).get("checks"):
        feature.note(run.outcome.at, run.id, "aimed")
    for aimed in found.adversarial:
        _join(run, aimed)


def _refused(run: OpenRun, claim: Claim, check: Check) -> list[str]:
    """The faults for which a plan with this check would be refused."""
    alone = Contract(claims=[claim.replace(checks=[check])])
    return _plan.form_faults(
        check.run, run.layout.folders.project, run.layout.folders.top, run.checkout
    ) or _plan.write_faults(alone)


def _join(run: OpenRun, aimed: AdversarialResult) -> None:
    outcome = run.outcome
    changed = schema.trusted(Contract, schema.plain(outcome.contract))
    changed.claim(aimed.claim).checks.append(aimed.check)
    outcome.contract = changed  # assigning it stages the file
    claim, why, check = aimed.claim, aimed.why, aimed.check
    entry = ContractChange(verb=contract_log.AIM, claim=claim, why=why, at=outcome.at, by=run.id, check=check)
    outcome.changes.append(names.CONTRACT_LOG, contract_log.render([entry]))


def _judge_feature(run: OpenRun, feature: Feature) -> None:
    outcome = run.outcome
    red = [receipt for receipt in outcome.checks.receipts if not receipt.green]
    outcome.decision.verdict = "red" if red else "green"
    outcome.decision.newly_green = _newly_green(run)
    if feature.status == "validating":
        features.judged(feature, outcome.at, run.id)
    if feature.status == "validating" or (feature.status == "passed" and red):
        features.move(feature, "refuted" if red else "proved")
    for claim, receipt in {receipt.claim: receipt for receipt in red}.items():
        broke = f"{feature.id} broke a neighbour: " if receipt.phase == "blame" else ""
        why = f"{broke}{claim} is {receipt.verdict}: {receipt.fault}"
        _say(outcome, why)
        run.note("FAIL", why)
    _report_flaky(run)
    if feature.status == "passed":
        proven = ", ".join(dict.fromkeys(receipt.claim for receipt in outcome.checks.receipts))
        run.note("-", f"passed at {run.context.head[:10]}: {proven}")
        features.unblock(outcome.features, outcome.at, run.id)


def _say(outcome: Outcome, why: str) -> None:
    """Put the first red claim before the agent's end in the reason of the run."""
    if " is red " not in outcome.reason:
        outcome.reason = "; ".join(filter(None, [why, outcome.reason]))


def _report_flaky(run: OpenRun) -> None:
    """Report a check that was flaky for the third time as an issue."""
    histories = index.load(run.layout)
    for receipt in run.outcome.checks.receipts:
        known = histories.get(index.key(receipt.claim, receipt.command))
        if receipt.flaky and (known.flaky if known else 0) + 1 >= FLAKY_MAKES_ISSUE:
            title = f"A check of {receipt.claim} is flaky"
            times = f"{FLAKY_MAKES_ISSUE} times or more"
            evidence = f"red, then green at the same commit, {times}: {receipt.command.strip()}"
            run.outcome.issues.append({"title": title, "severity": "minor", "evidence": evidence})


def _newly_green(run: OpenRun) -> int:
    """The number of claims that are proven now but were not in the feature's last validation."""
    outcome = run.outcome
    judged = outcome.feature is not None and outcome.feature.attempts > 0
    before = runs.last_receipts(run.layout, run.context.feature) if judged else []
    return len(_proven(outcome.checks.receipts) - _proven(before))


def _proven(found: list[Receipt]) -> set[str]:
    own = [receipt for receipt in found if receipt.phase == "after"]
    return {receipt.claim for receipt in own} - {receipt.claim for receipt in own if not receipt.green}


def _judge_sweep(run: OpenRun, found: Validation) -> None:
    outcome = run.outcome
    red = {receipt.claim: receipt for receipt in outcome.checks.receipts if not receipt.green}
    outcome.decision.verdict = "red" if red else "green"
    passed = [feature for feature in outcome.features if feature.status == "passed"]
    outcome.decision.sweep = found.judged
    _report_flaky(run)
    for claim, receipt in red.items():
        where = receipts.INSIDE_ONLY if receipt.phase == receipts.OUTSIDE else "in a fresh clone"
        owners = [feature for feature in passed if claim in feature.claims]
        for feature in owners:
            if feature.status == "passed":
                features.move(feature, "refuted")
            feature.note(outcome.at, run.id, "reason", text=f"{claim} is red {where}")
        why = f"{claim} is {receipt.verdict} {where}: {receipt.fault}"
        _say(outcome, why)
        run.note("FAIL", why, owners[0].id if owners else "")
