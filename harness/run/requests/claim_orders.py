"""A person's edits of claims: the edit, its new checks run red before green, and the order that applies it.
Checks run before the order is written, without a lock, in a fresh clone at the mission's position, confined like those
of a run. The order carries their receipts, so that they count whenever it is applied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.base import schema
from harness.base.errors import RequestRefused, UsageFault
from harness.base.record import Record
from harness.git import refs
from harness.git.checkouts import worktrees
from harness.git.repository import Position
from harness.mission import config, contract, contract_log, features, mission, runs
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Claim, Contract
from harness.mission.contract_log import PERSON, ContractChange
from harness.mission.features import Feature
from harness.mission.order_log import OrderContext
from harness.mission.receipts import Receipt
from harness.process import supervise, temporary
from harness.proof import check_runs, fresh_clone, index, services, tampering
from harness.run import recover
from harness.run.settle import _plan, planner
from harness.state import names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import confine, run_detection, workplace


class CheckSwap(Record):
    """A present check and its replacement, or None."""

    old: Check
    new: Check | None = None


class ClaimEdit(Record):
    """A person's edit of a claim: another text ("" keeps it), replaced checks, additional ones."""

    text: str = ""
    swaps: list[CheckSwap] = []
    added: list[Check] = []


def edit(
    claim: Claim,
    *,
    text: str = "",
    run: str | None = None,
    number: int | None = None,
    add: bool = False,
    remove: bool = False,
    guard: bool | None = None,
    seconds: int | None = None,
) -> ClaimEdit:
    """The edit of this claim by a command's arguments; raises UsageFault if they are invalid or contradictory."""
    made, about_check = (
        ClaimEdit(text=" ".join(text.split())),
        run is not None or guard is not None or seconds is not None,
    )
    if run is not None and not run.strip():
        raise UsageFault("The check is empty.")
    if (add or remove) and (add == remove or (run is None) == add):
        raise UsageFault("Give one of: a check to add (--add --check TEXT), or one to take away (--remove --number N).")
    if not (text.strip() or about_check or remove):
        raise UsageFault(f"Name what to set, such as: {command('claim set')} {claim.id} --check 'make test'")
    if run is not None and (add or not claim.checks):
        made.added = [Check(run=run.strip("\n"), guard=bool(guard), seconds=seconds)]
    elif about_check or remove:
        old = _numbered(claim, number)
        changed = {"guard": guard, "seconds": seconds, "run": None if run is None else run.strip("\n")}
        new = old.replace(**{key: value for key, value in changed.items() if value is not None})
        made.swaps = [CheckSwap(old=old, new=None if remove else new)]
    if merged(claim, made) == claim:
        raise UsageFault(f"{claim.id} already has that value. See: {command('claim show')} {claim.id}")
    return made


def _numbered(claim: Claim, number: int | None) -> Check:
    if not claim.checks:
        raise UsageFault(f"{claim.id} is manual: it has no check yet.")
    if number is None and len(claim.checks) > 1:
        raise UsageFault(f"{claim.id} has {len(claim.checks)} checks. Choose one: --number 1 to {len(claim.checks)}")
    if not 1 <= (number or 1) <= len(claim.checks):
        raise UsageFault(f"{claim.id} has no check {number}; it has 1 to {len(claim.checks)}.")
    return claim.checks[(number or 1) - 1]


def merged(claim: Claim, wanted: ClaimEdit) -> Claim:
    """The claim with this edit, keeping additions of others. Raises UsageFault if a check to replace is gone, or none
    would be left."""
    checks = list(claim.checks)
    for swap in wanted.swaps:
        if swap.old not in checks:
            raise UsageFault(f"A check of {claim.id} has changed since. See: {command('claim show')} {claim.id}")
        place = checks.index(swap.old)
        checks[place : place + 1] = [swap.new] if swap.new else []
    checks += [check for check in wanted.added if check not in checks]
    if not checks and not claim.manual:
        raise UsageFault(f"{claim.id} would have no check left. To drop it: {command('claim drop')} {claim.id}")
    return claim.replace(text=wanted.text or claim.text, checks=checks, manual=not checks)


def words(claim_id: str, wanted: ClaimEdit, fired: list[Receipt], reason: str) -> list[str]:
    """The arguments of the order `claim set`."""
    receipts = [receipt.asdict() for receipt in fired]
    return [claim_id, json.dumps(schema.plain(wanted)), json.dumps(receipts), reason]


# red before green


def try_out(layout: Layout, claim_id: str, wanted: ClaimEdit) -> Iterator[Receipt]:
    """Run the new checks of an edit like those of a plan: refused forms, and checks that pass in an empty folder, raise
    RequestRefused. One that is green already is also tried before the feature's work began: red there is red before green.
    """
    run_detection.refuse(layout, "claim set")
    recover.recover_dead(layout)
    known = contract.load(layout)
    old = known.claim(claim_id)
    claim = merged(old, wanted)
    new = [check for check in claim.checks if check.run not in {one.run for one in old.checks}]
    whole = known.replace(claims=[claim])
    _refuse(
        [fault for check in new for fault in _plan.form_faults(check.run, layout.folders.project, layout.folders.top)]
    )
    _refuse(_plan.write_faults(whole))
    limit = config.load(layout).check_seconds
    _refuse(_plan.long_faults([one for one in claim.checks if one not in old.checks], limit))
    if not new:
        return
    with State(layout).lock("claim"):  # one command at a time, so that leftovers can be removed
        _clear(layout)
        position = workplace.position(layout)
        green: list[Check] = []
        for receipt in _fired(layout, whole, new, position):
            yield receipt
            green += [check for check in new if check.run == receipt.command and receipt.green and not check.guard]
        owners = [one.id for one in features.load(layout) if claim_id in one.claims]
        before = _before_work(layout, owners) if green else None
        if before and before.head != position.head:
            yield from _red_before(layout, whole, green, before)


def try_new(layout: Layout, claim: Claim) -> Iterator[Receipt]:
    """Run the checks of a person's new claim, as `try_out` does; raises UsageFault before the first plan."""
    run_detection.refuse(layout, "feature add")
    recover.recover_dead(layout)
    known = contract.load(layout)
    if not known.claims:
        raise UsageFault("There is no plan yet. Without --check it is planned, and its checks with it.")
    whole = known.replace(claims=[claim])
    _refuse(
        [
            fault
            for check in claim.checks
            for fault in _plan.form_faults(check.run, layout.folders.project, layout.folders.top)
        ]
    )
    _refuse(_plan.write_faults(whole))
    with State(layout).lock("claim"):
        _clear(layout)
        yield from _fired(layout, whole, claim.checks, workplace.position(layout))


def _tag(layout: Layout) -> str:
    return f"{mission.load(layout).id}/{PERSON}"


def _clear(layout: Layout) -> None:
    """Remove processes, folders and worktree of a killed command."""
    tag = _tag(layout)
    supervise.sweep(tag)
    workplace.use(layout)
    worktrees.forget_below(layout.folders.top, temporary.begin(tag), empty=False)
    temporary.remove_tagged(tag)


def _refuse(faults: list[str]) -> None:
    if faults:
        raise RequestRefused("The check is not accepted:\n" + "\n".join(f"- {fault}" for fault in faults))


def _fired(layout: Layout, whole: Contract, checks: list[Check], at: Position) -> Iterator[Receipt]:
    """The receipts of these checks in a fresh clone at a position, after setup and with services."""
    (claim,) = whole.claims
    settings, tree = config.load(layout), workplace.folder_of(mission.load(layout).id)
    place = CheckEnvironment(
        directory=tree,
        head=at.head,
        tree=at.tree,
        tag=_tag(layout),
        seconds=settings.check_seconds,
        passed=settings.passed,
        writes=settings.writes,
        shown=settings.home,
        confinement=confine.of_mission(layout, settings, tree, confine.tier(layout, settings)),
    )
    with fresh_clone.cloned(layout, place, "claim", workplace.recorded(layout)) as clone:
        worktrees.carry(layout.folders.top, clone.root, settings.carry, layout.folders.prefix)
        empty = check_runs.green_in_empty_folder([check.run for check in checks], clone)
        _refuse([f"`{run}` {check_runs.GREEN_ON_NOTHING}" for run in empty])
        clone = tampering.watched(clone, whole)
        if fault := check_runs.setup_fault(whole, clone):
            raise RequestRefused(fault)
        short = [one.replace(seconds=min(one.seconds, planner.BEFORE_SECONDS)) for one in whole.services]
        limits = [min(check.seconds or place.seconds, planner.BEFORE_SECONDS) for check in checks]
        pairs = [(claim, check.replace(seconds=limit)) for check, limit in zip(checks, limits, strict=True)]
        with services.RunningServices(short, clone) as up:
            yield from check_runs.fire_each(pairs, "before", up)


def _before_work(layout: Layout, owners: list[str]) -> Position | None:
    """The position before the first commit of these features; None without one."""
    commits = [one.commit for one in runs.finished(layout) if one.feature in owners and one.commit]
    return refs.position_of(layout.folders.top, f"{commits[-1]}^") if commits else None


def _red_before(layout: Layout, whole: Contract, checks: list[Check], at: Position) -> Iterator[Receipt]:
    """The receipts of the checks that are red at an earlier position; [] if they cannot run there."""
    try:
        found = list(_fired(layout, whole, checks, at))
    except RequestRefused:  # its setup was red then
        return
    note = "before the work of its feature began"
    yield from (
        one.replace(notes=[*one.notes, note]) for one in found if not one.green and one.exit != check_runs.NOT_FIRED
    )


# the orders


def set_claim(context: OrderContext, claim_id: str, wanted: str, fired: str, reason: str) -> str:
    """The order `claim set`: changes the claim and sends its features back to be proven again."""
    known = contract.load(context.layout)
    old = known.claim(claim_id)
    new = merged(old, schema.record(ClaimEdit, json.loads(wanted), "an order has"))
    receipts = [schema.record(Receipt, row, "a check leaves") for row in json.loads(fired)]
    moved = _prove_again(context, claim_id, f"a person set {claim_id}")
    known = known.replace(claims=[new if claim.id == claim_id else claim for claim in known.claims])
    _put(
        context,
        known,
        ContractChange(verb=contract_log.CHANGE, claim=claim_id, why=reason, old=old, new=new, fired=receipts),
    )
    return "\n".join([f"{claim_id} is set{moved}", *_unproven(context.layout, new, receipts)])


def drop_claim(context: OrderContext, claim_id: str, reason: str) -> str:
    """The order `claim drop`: removes the claim from the contract and its features; its id is never reused."""
    known = contract.load(context.layout)
    old = known.claim(claim_id)
    owners = [feature for feature in context.features if claim_id in feature.claims]
    for feature in owners:
        if feature.claims == [claim_id]:
            fault = f"{feature.id} has no other claim, and nothing would show that it works"
            raise UsageFault(f"{fault}. Set another check: {command('claim set')} {claim_id} --check TEXT")
    moved = _prove_again(context, claim_id, f"a person dropped {claim_id}", but=("passed",))
    for feature in owners:
        feature.claims = [name for name in feature.claims if name != claim_id]
    known = known.replace(claims=[claim for claim in known.claims if claim.id != claim_id])
    _put(context, known, ContractChange(verb=contract_log.DROP, claim=claim_id, why=reason, old=old))
    return f"{claim_id} is dropped{moved}"


def _put(context: OrderContext, known: Contract, entry: ContractChange) -> None:
    context.changes.put(names.CONTRACT, contract.render(known).encode())
    line = contract_log.render([entry.replace(at=context.at, by=PERSON)])
    context.changes.append(names.CONTRACT_LOG, line)


def _prove_again(context: OrderContext, claim_id: str, why: str, but: tuple[str, ...] = ()) -> str:
    """Send the features of the claim back with reset attempts; returns a message. One with work goes to validation; one
    that waits for a person or another feature stays. Raises OrderWaits if a live run claims one."""
    owners = [context.free(one.id) for one in context.features if claim_id in one.claims]
    moved = [one for one in owners if one.status not in but and not _waits_for_others(one)]
    for feature in moved:
        features.restart(feature, "claim set", context.at, why)
    return "".join(f"; {feature.id} is {feature.status}" for feature in moved)


def _waits_for_others(feature: Feature) -> bool:
    return feature.status == "blocked" and feature.blocked_by in ("needs", "person")


def _unproven(layout: Layout, claim: Claim, fired: list[Receipt]) -> list[str]:
    """The warning about a claim with guards only, or with green checks that were never red."""
    own = [check for check in claim.checks if not check.guard]
    if claim.checks and not own:
        ways = f"{command('claim set')} {claim.id} --add --check TEXT, or {command('claim accept')} {claim.id}"
        return [f"It has guards alone, which prove nothing by themselves, and DONE waits for a person: {ways}"]
    trails = index.load(layout)
    red = any(not one.green and not one.guard for one in fired)
    red = red or any(trail.red for check in own if (trail := trails.get(index.key(claim.id, check.run))))
    if red or not any(one.green and not one.guard for one in fired):
        return []
    first = "Green already, and never seen red, so it proves nothing by itself: the claim stays unproven"
    return [f"{first}. Test what the feature brings."]
