"""A planner's reply: linted, then merged by id into features and contract. Pure, except `settle`, which writes it."""

from __future__ import annotations

import contextlib
import re
from graphlib import CycleError, TopologicalSorter
from typing import Any

from harness.base import redaction, schema
from harness.base.errors import BrokenFile, RequestRefused
from harness.base.record import Record
from harness.decision import escalations
from harness.mission import contract as contracts
from harness.mission import contract_log, issues, receipts, runs
from harness.mission import features as queue
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Claim, Contract, Service
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.mission.open_run import OpenRun, RoleFinding
from harness.mission.receipts import Receipt
from harness.proof import check_runs, services, tampering
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State

ABSOLUTE = re.compile(r"(^|[\s\"'=:<>(,])(/home/|/Users/|/root/)")
REFUSED_FORMS = (
    (
        re.compile(r"\|\|\s*(true|:)(?![\w./=-])"),
        "hides a failure with '|| true' or '|| :'",
        "let the exit status decide",
    ),
    (
        re.compile(r"(?<![&>\\])&\s*$", re.MULTILINE),
        "leaves something running with a trailing '&'",
        "declare a service",
    ),
    (re.compile(r"(^|[\s;&|(])sudo\s", re.MULTILINE), "uses sudo", "checks run without rights"),
    (ABSOLUTE, "names an absolute path of this machine", "use relative paths or $TMPDIR"),
    (
        re.compile(r"\|&?\s*[efz]?grep\s+(-[-\w=]+\s+)*(-[a-zA-Z]*q|--quiet|--silent)"),
        "ends a pipe with 'grep -q', which stops reading, so that under pipefail what writes into it fails",
        "write grep x >/dev/null",
    ),
)


BEFORE_SECONDS = 60
PASSED = "belongs to a feature that has passed and cannot be changed"
SET_BY_PERSON = "was set by a person and stays as it is: leave it out of the plan"
EARLY = "make it a guard, or test what the feature brings; sent again as it is, it lands and its claim stays unproven"


class SetupRed(RequestRefused):
    """The contract's setup is red on the present tree."""


class Draft(Record):
    """The mission with the plan applied: features, contract, lines for the log, and checks to try."""

    features: list[Feature]
    contract: Contract
    log: list[ContractChange] = []
    new_checks: list[str] = []

    def untried(self, done: set[tuple[str, str]]) -> list[tuple[Claim, Check]]:
        """The new checks with their claims, except those in `done`, given as (claim, command)."""
        new = set(self.new_checks)
        pairs = [(claim, check) for claim in self.contract.claims for check in claim.checks]
        return [(claim, check) for claim, check in pairs if check.run in new and (claim.id, check.run) not in done]


def draft(
    reply: dict[str, Any], features: list[Feature], contract: Contract, log: list[ContractChange]
) -> tuple[Draft, list[str]]:
    """(the plan merged into features and contract, all its faults). `log`: the contract log so far. The inputs stay
    unchanged."""
    faults: list[str] = []
    fixed = {claim for feature in features if feature.status == "passed" for claim in feature.claims}
    gone = {row["id"]: row["reason"] for row in reply.get("drop", [])}
    made = Draft(features=[], contract=Contract(setup=contract.setup, services=contract.services))
    fixed_why = dict.fromkeys(contract_log.set_by_person(log), SET_BY_PERSON) | dict.fromkeys(fixed, PASSED)
    _lay_claims(made, reply, contract, fixed_why, gone, faults)
    _lay_features(made, reply, features, gone, faults)
    made.contract.setup = reply.get("setup", contract.setup).rstrip("\n")
    if "services" in reply:
        made.contract.services = [Service(**{**row, "run": row["run"].strip("\n")}) for row in reply["services"]]
    names = [row["id"] for row in reply["features"]] + [row["id"] for row in reply["contract"]]
    used = {name.lower() for name in (*contract_log.retired(log), *gone)}
    faults += [f"the id '{name}' was dropped before; ids are never reused" for name in names if name.lower() in used]
    old, new = contract_log.blocks(contract), contract_log.blocks(made.contract)
    moved = [name for name, block in old.items() if block and new.get(name) != block]
    added = (name for name, block in new.items() if old.get(name) != block)
    faults += [f"{name} {why}" for name in added if (why := redaction.unfit(new[name]))]
    if moved and not reply.get("reason", "").strip():
        faults.append(f"{', '.join(moved)} of the contract is changed or gone; say why in the plan's 'reason'")
    there = {*(one.id for one in features), *(one.id for one in contract.claims)}
    faults += [f"'{name}' cannot be dropped: there is none" for name in gone if name not in there]
    faults += _lint(made)
    return made, list(dict.fromkeys(faults))


def _lay_claims(
    made: Draft,
    reply: dict[str, Any],
    contract: Contract,
    fixed: dict[str, str],
    gone: dict[str, str],
    faults: list[str],
) -> None:
    given = {row["id"]: row for row in reply["contract"]}
    faults += schema.name_faults((row["id"] for row in reply["contract"]), "claim")
    for claim in contract.claims:
        row = given.pop(claim.id, None)
        if claim.id in fixed and (claim.id in gone or (row and _claim(row) != claim)):
            faults.append(f"{claim.id} {fixed[claim.id]}")
        elif claim.id in gone:
            made.log.append(ContractChange(verb=contract_log.DROP, claim=claim.id, why=gone[claim.id], old=claim))
            continue
        elif row and _claim(row) != claim:
            new, reason = _claim(row), row.get("reason", "").strip()
            if not reason and any(check not in new.checks for check in claim.checks):
                faults.append(f"{claim.id}: a check of the contract is changed or gone; say why in 'reason'")
            elif not reason and new.text != claim.text:
                faults.append(f"{claim.id}: the sentence of the claim is changed; say why in 'reason'")
            why = reason or "replanned"
            made.log.append(ContractChange(verb=contract_log.CHANGE, claim=claim.id, why=why, old=claim, new=new))
            made.new_checks += [check.run for check in new.checks if check not in claim.checks]
            made.contract.claims.append(new)
            continue
        made.contract.claims.append(claim)
    for row in given.values():
        claim = _claim(row)
        made.log.append(ContractChange(verb=contract_log.ADD, claim=claim.id, why="planned", new=claim))
        made.new_checks += [check.run for check in claim.checks]
        made.contract.claims.append(claim)


def _claim(row: dict[str, Any]) -> Claim:
    checks = [Check(run=check) if isinstance(check, str) else Check(**check) for check in row.get("checks", [])]
    for check in checks:
        check.run = check.run.strip("\n")
    return Claim(id=row["id"], text=" ".join(row["claim"].split()), checks=checks, manual=row.get("manual", False))


def _lay_features(
    made: Draft, reply: dict[str, Any], features: list[Feature], gone: dict[str, str], faults: list[str]
) -> None:
    given = {row["id"]: row for row in reply["features"]}
    faults += schema.name_faults((row["id"] for row in reply["features"]), "feature")
    for feature in features:
        row = given.pop(feature.id, None)
        theirs = feature.set_by_person  # a planner may repeat the spec; a person's text stands
        changed = feature.replace(**{key: value for key, value in (row or {}).items() if key not in theirs})
        if feature.status == "passed" and (feature.id in gone or changed != feature):
            faults.append(f"{feature.id} has passed and cannot be changed")
        elif feature.id in gone:
            made.log.append(ContractChange(verb=contract_log.DROP_FEATURE, claim=feature.id, why=gone[feature.id]))
            continue
        made.features.append(changed)
    made.features += [Feature(**row) for row in given.values()]


def _lint(made: Draft) -> list[str]:
    """Every fault of the resulting mission."""
    faults: list[str] = []
    claims = {claim.id for claim in made.contract.claims}
    ids = {feature.id for feature in made.features}
    owned: set[str] = set()
    faults += schema.name_faults((feature.id for feature in made.features), "feature")
    faults += schema.name_faults((claim.id for claim in made.contract.claims), "claim")
    if not made.features:
        faults.append("the plan has no feature")
    for feature in made.features:
        owned.update(feature.claims)
        if not feature.claims:
            faults.append(f"{feature.id} has no claim: nothing would show that it works")
        unknown = [claim for claim in feature.claims if claim not in claims]
        faults += [f"{feature.id} names the claim '{claim}', which does not exist" for claim in unknown]
        missing = [other for other in feature.depends_on if other not in ids]
        faults += [f"{feature.id} depends on '{other}', which does not exist" for other in missing]
    faults += [f"no feature has the claim {claim}" for claim in sorted(claims - owned)]
    doubtful = [claim.id for claim in made.contract.claims if claim.manual == bool(claim.checks)]
    faults += [f'{claim} needs checks, or "manual": true, not both or neither' for claim in doubtful]
    if circle := _circle(made.features):
        faults.append(f"features depend on each other in a circle: {', '.join(circle)}")
    return faults + [fault for check in made.new_checks for fault in form_faults(check)]


def form_faults(check: str, *folders: str) -> list[str]:
    """The refused shell forms in a check, each with an alternative; `folders`: paths that it must not name."""
    shown = redaction.received(check if len(check) < 80 else check[:77] + "…")
    found = [f"the check `{shown}` {fault}: {remedy}" for form, fault, remedy in REFUSED_FORMS if form.search(check)]
    found += [f"the check `{shown}` {why}" for why in [redaction.unfit(check)] if why]
    if any(folder in check for folder in folders) and not ABSOLUTE.search(check):
        found.append(f"the check `{shown}` names this folder, where no clone is: use relative paths")
    return found


def _circle(features: list[Feature]) -> list[str]:
    """The features in a dependency cycle, or depending on one."""
    needs = {feature.id: feature.depends_on for feature in features}
    order = TopologicalSorter({name: needs.keys() & others for name, others in needs.items()})
    with contextlib.suppress(CycleError):  # features outside the cycle are yielded anyway
        order.prepare()
    while met := order.get_ready():
        order.done(*met)
        for name in met:
            del needs[name]
    return list(needs)


def examined(layout: Layout, reply: dict[str, Any], place: CheckEnvironment) -> Draft:
    """The plan as it would land; raises RequestRefused with every fault, after trying new checks in an empty folder."""
    features = queue.load(layout)
    made, faults = draft(reply, features, contracts.load(layout), contract_log.load(layout))
    known = set(faults)
    folders = (layout.folders.project, layout.folders.top, place.root)
    forms = [fault for check in made.new_checks for fault in form_faults(check, *folders)]
    faults += [fault for fault in forms if fault not in known]
    faults = faults or write_faults(made.contract)
    if not faults:
        faults = [
            f"the check `{command}` {check_runs.GREEN_ON_NOTHING}"
            for command in check_runs.green_in_empty_folder(made.new_checks, place)
        ]
    _refuse(faults)
    return made


def write_faults(known: Contract) -> list[str]:
    """The fault of a contract that does not read back as written, which would stop or mislead later runs."""
    text, remedy = contracts.render(known), "write names without spaces, and no control characters"
    try:
        text.encode()
        again = contracts.parse(text, "the contract")
    except (BrokenFile, UnicodeEncodeError) as fault:
        return [f"the contract cannot be written down: {fault} In short: {remedy}"]
    differ = [claim.id for claim, read in zip(known.claims, again.claims, strict=False) if claim != read]
    where = ", ".join(differ) or "setup or services"
    return [] if again == known else [f"the contract cannot be written down ({where}): {remedy}"]


def _refuse(faults: list[str]) -> None:
    if faults:
        raise RequestRefused("The plan is rejected:\n" + "\n".join(f"- {fault}" for fault in faults))


def red_first(
    layout: Layout, made: Draft, place: CheckEnvironment, path: str, role: str, reported: frozenset[str] | None = None
) -> None:
    """Red before green: run every new check on the present tree, once per run; the receipts (phase before) go to
    `path`. Raises SetupRed for a red setup, and RequestRefused for checks other than guards that are green already. A
    check `reported` in this run (None: the agent still works), or in the last run of `role`, is accepted when repeated;
    its claim stays unproven.
    """
    fired = receipts.load(path)
    known = {*(reported or ()), *(receipt.command for receipt in [*fired, *_last_round(layout, role)] if receipt.green)}
    done = {(receipt.claim, receipt.command) for receipt in fired}
    place = place if reported is None else tampering.watched(place, made.contract)
    fault = check_runs.setup_once(layout, made.contract, place)
    if fault:
        raise SetupRed(fault)
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


def escalate_setup(run: OpenRun) -> None:
    """Escalate a red setup; it never costs an attempt."""
    outcome = run.outcome
    outcome.reason = outcome.checks.setup_fault
    asked = (outcome.reply or {}).get("setup", outcome.contract.setup)
    text = escalations.of_setup(run.id, run.context.head, asked, outcome.reason)
    outcome.changes.put(names.ESCALATION, text.encode())


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
        return PlanReview(refusal=outcome.answer.reply_fault or "The planner gave no reply")
    try:
        made = examined(run.layout, outcome.reply, run.place())
        red_first(run.layout, made, run.place(), run.paths.receipts, run.role.name, reported)
    except RequestRefused as fault:
        outcome.checks.setup_fault = str(fault) if isinstance(fault, SetupRed) else ""
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
    elif outcome.checks.setup_fault:
        escalate_setup(run)
    elif review.refusal:
        outcome.reason = review.refusal
    else:
        try:
            _land(run, _as_of_now(run, review))
        except RequestRefused as fault:
            outcome.reason = str(fault)


def _as_of_now(run: OpenRun, review: PlanReview) -> Draft:
    """The plan merged into the present queue and contract; raises RequestRefused if changes meanwhile make it faulty,
    or add checks that did not run."""
    outcome = run.outcome
    log = contract_log.load(run.layout)
    made, faults = draft(outcome.reply or {}, outcome.features, outcome.contract, log)
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
