"""The planner's run: its plan lands whole, or goes back with every reason."""

from __future__ import annotations

from typing import Any

from harness.base.errors import BrokenFile, RequestRefused
from harness.decision import escalations, rules
from harness.mission import contract as contracts
from harness.mission import contract_log, issues, receipts, replies, runs
from harness.mission import features as queue
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract_log import ContractChange
from harness.mission.open_run import OpenRun, RoleFinding
from harness.mission.receipts import Receipt
from harness.proof import check_runs, services, tampering
from harness.run.settle import _plan
from harness.run.settle._plan import Draft
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import home_layer

BEFORE_SECONDS = 60
NO_REPLY = "The planner gave no reply"
EARLY = "make it a guard, or test what the feature brings"
IN_FORCE = "The contract's "
BROUGHT = "The plan is rejected for the setup that it brings; leave it out if no check needs it. Its "


def examined(layout: Layout, reply: dict[str, Any], place: CheckEnvironment, spec: str = "") -> Draft:
    """The plan of this spec as it would land; raises RequestRefused with every fault, after checks ran in an empty folder."""
    features = queue.load(layout)
    made, faults = _plan.draft(reply, features, contracts.load(layout), contract_log.load(layout))
    faults += _plan.ref_faults(reply, features, spec)
    known = set(faults)
    folders = (layout.folders.project, layout.folders.top, place.root)
    forms = [fault for check in made.new_checks for fault in _plan.form_faults(check, *folders)]
    faults += [fault for fault in forms if fault not in known]
    faults += _plan.long_faults([check for _, check in made.untried(set())], place.seconds)
    faults = faults or _plan.write_faults(made.contract)
    if not faults:
        faults = [
            f"the check `{command}` {check_runs.GREEN_ON_NOTHING}"
            for command in check_runs.green_in_empty_folder(made.new_checks, place)
        ]
    _refuse(faults)
    return made


def _refuse(faults: list[str]) -> None:
    if faults:
        raise RequestRefused("The plan is rejected:\n" + "\n".join(f"- {fault}" for fault in faults))


def red_first(
    layout: Layout, made: Draft, place: CheckEnvironment, path: str, role: str, reported: frozenset[str] | None = None
) -> None:
    """Red before green: run every new check on the present tree, once per run; the receipts (phase before) go to
    `path`. Raises RequestRefused for a red setup, and for checks other than guards that are green already. A check
    `reported` in this run (None: the agent still works), or in the last run of `role`, is accepted when repeated; its
    claim stays unproven.
    """
    fired = receipts.load(path)
    known = {*(reported or ()), *(receipt.command for receipt in [*fired, *_last_round(layout, role)] if receipt.green)}
    done = {(receipt.claim, receipt.command) for receipt in fired}
    place = place if reported is None else tampering.watched(place, made.contract)
    fault = check_runs.setup_once(layout, made.contract, place)
    if fault:
        same = made.contract.setup == contracts.load(layout).setup
        raise RequestRefused((IN_FORCE if same else BROUGHT) + fault)
    if made.contract.setup and place.home and reported is not None and not contracts.load(layout).claims:
        home_layer.take_packages(place.home, home_layer.packages_of(place.home))  # before the first worker
    pairs = [
        (claim, check.replace(seconds=min(check.seconds or place.seconds, BEFORE_SECONDS)))
        for claim, check in made.untried(done)
    ]
    if pairs:
        short = [service.replace(seconds=min(service.seconds, BEFORE_SECONDS)) for service in made.contract.services]
        with services.RunningServices(short, place) as up:
            fired += check_runs.fire_each(pairs, "before", up, path)
    early = [receipt for receipt in fired if receipt.green and not receipt.guard and receipt.command not in known]
    _refuse([f"a check of {one.claim} is green already, on today's tree: {EARLY}\n    {one.command}" for one in early])


def _last_round(layout: Layout, role: str) -> list[Receipt]:
    """Receipts of the role's newest run, if its plan was refused: its agent has seen them."""
    newest = runs.last(layout, role=role)
    refused = newest is not None and newest.accepted is False
    return receipts.load(layout.run(newest.run).receipts) if newest and refused else []


def _reported(run: OpenRun) -> frozenset[str]:
    """Commands that `harness reply` found green in this run. Removes its receipts, which the planner's agent could have
    written: every check that lands runs again after the agent has ended."""
    try:
        fired = receipts.load(run.paths.receipts)
    except BrokenFile:
        fired = []  # the agent wrote it
    State(run.layout).remove(names.of_run(run.id, names.RECEIPTS))
    return frozenset(receipt.command for receipt in fired if receipt.green)


def escalate_setup(run: OpenRun, setup: str, fault: str) -> None:
    """Escalate a red setup; it never costs an attempt."""
    outcome = run.outcome
    text = escalations.of_setup(run.id, run.context.head, setup, fault, in_force=not fault.startswith(BROUGHT))
    outcome.changes.put(names.ESCALATION, text.encode())


def _judge_setup(run: OpenRun, refusal: str) -> None:
    """Escalate the red setup for which the plan was refused: the contract's at once, the plan's own with the last plan that
    may be rejected."""
    outcome, fault = run.outcome, refusal.removeprefix(replies.REFUSED)
    if fault.startswith(IN_FORCE):
        escalate_setup(run, outcome.contract.setup, fault)
    elif fault.startswith(BROUGHT) and runs.totals(run.layout).rejected + 1 >= rules.REJECTED_PLANS:
        escalate_setup(run, (outcome.reply or {}).get("setup", ""), fault)


class PlanReview(RoleFinding):
    """The new checks of a plan that ran, or why the plan is refused."""

    new_checks: list[str] = []
    refusal: str = ""


def examine(run: OpenRun) -> PlanReview:
    """Run the plan's checks: in an empty folder, and red before green."""
    run.outcome.finding = review = _review(run)
    return review


def _review(run: OpenRun) -> PlanReview:
    outcome = run.outcome
    reported = _reported(run)
    if outcome.reply is None:
        return PlanReview(refusal=outcome.answer.reply_fault or NO_REPLY)
    try:
        made = examined(run.layout, outcome.reply, run.place(), outcome.prompt.spec)
        red_first(run.layout, made, run.place(), run.paths.receipts, run.role.name, reported)
    except RequestRefused as fault:
        return PlanReview(refusal=str(fault))
    return PlanReview(new_checks=made.new_checks)


def settle(run: OpenRun) -> None:
    """Accept the whole plan, with the spec it was made from, or reject it with every reason."""
    outcome = run.outcome
    outcome.decision.accepted = False
    review = outcome.finding if isinstance(outcome.finding, PlanReview) else examine(run)
    if outcome.reply is None:
        outcome.ended = "agent_error"
        outcome.reason = "; ".join(filter(None, [review.refusal, "" if outcome.answer.reply_fault else outcome.reason]))
    elif review.refusal:
        outcome.reason = review.refusal
    else:
        try:
            _land(run, _as_of_now(run, review))
        except RequestRefused as fault:
            outcome.reason = str(fault)
    _judge_setup(run, review.refusal)


def _as_of_now(run: OpenRun, review: PlanReview) -> Draft:
    """The plan merged into the present queue and contract; raises RequestRefused if changes meanwhile make it faulty,
    or add checks that did not run."""
    outcome = run.outcome
    log = contract_log.load(run.layout)
    made, faults = _plan.draft(outcome.reply or {}, outcome.features, outcome.contract, log)
    unseen = [check for check in made.new_checks if check not in review.new_checks]
    faults += [f"the check `{check}` is new, since the contract changed" for check in unseen]
    _refuse(faults)
    return made


def _land(run: OpenRun, made: Draft) -> None:
    outcome = run.outcome
    outcome.decision.accepted = True
    _replanned(run, made)
    move_green(made, receipts.load(run.paths.receipts))
    outcome.features = made.features
    entries = [entry.replace(at=outcome.at, by=run.id) for entry in _entries(run, made)]
    outcome.contract = made.contract
    outcome.save()
    outcome.changes.append(names.CONTRACT_LOG, contract_log.render(entries))
    if outcome.prompt.spec:  # as in the prompt: a person's later edit makes a plan due again
        outcome.changes.put(names.SPEC, outcome.prompt.spec.encode())
    seen = issues.serious(issues.load(run.layout))
    outcome.changes.append(names.ISSUES, b"".join(issues.state_line(issue, "planned", run.id) for issue in seen))


def _entries(run: OpenRun, made: Draft) -> list[ContractChange]:
    """The entries for the contract log: changes of claims, setup and services, and those that an older log lacks."""
    outcome = run.outcome
    log, why = contract_log.load(run.layout), (outcome.reply or {}).get("reason", "").strip()
    held = outcome.contract.claims or contract_log.replayed_blocks(log)
    old = contract_log.blocks(outcome.contract) if held else {}
    moved = contract_log.changes(old, contract_log.blocks(made.contract), why or "planned")
    return [*contract_log.begun(log, outcome.contract), *made.log, *moved]


def move_green(made: Draft, fired: list[Receipt]) -> None:
    """Move a feature whose checks are all green before its first worker directly to validation."""
    green = {(receipt.claim, receipt.command) for receipt in fired if receipt.green}
    checks_of = {claim.id: [(claim.id, check.run) for check in claim.checks] for claim in made.contract.claims}
    for feature in made.features:
        checks = [check for claim in feature.claims for check in checks_of.get(claim, [])]
        if feature.status == "todo" and not feature.attempts and checks and green.issuperset(checks):
            queue.move(feature, "green already")


def _replanned(run: OpenRun, made: Draft) -> None:
    """Restart the planner's feature, and every feature whose claims or text it changed."""
    before = {feature.id: feature for feature in run.outcome.features}
    touched = {entry.claim for entry in made.log}
    for feature in made.features:
        old = before.get(feature.id)
        asked = feature.id == run.context.feature
        if old is None or feature.status not in queue.TRANSITIONS["replanned"]:
            continue
        if asked or old != feature or touched & set(feature.claims):
            queue.move(feature, "replanned")
            feature.replanned = feature.replanned or asked
            feature.note(run.outcome.at, run.id, "replanned")
