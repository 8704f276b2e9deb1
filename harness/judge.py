"""The validator's run: checks are fired first; only when all are green is an agent asked where else to aim."""

from __future__ import annotations

from harness import contract as contracts
from harness import features, files, plan, prove, receipts, runs, views
from harness.contract import Check, Claim, Contract
from harness.receipts import Receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.current import Run

AIM_ROUNDS = 2


def prepare(run: Run) -> bool:
    """Fire what decides; gives whether an agent should be asked for more checks."""
    place = place_of(run)
    if run.feature is None:
        run.receipts, fault = prove.sweep(run.layout.project, run.contract, place, run.paths.receipts)
        run.reason = fault
        return False
    run.reason = prove.setup_fault(run.contract, place)
    if run.reason:
        return False
    claims = run.contract.of(run.feature.claims)
    run.receipts = list(prove.fire_all(claims, "after", place, run.paths.receipts))
    aimed = sum(note["kind"] == "aimed" for note in run.feature.notes)
    return all(receipt.green for receipt in run.receipts) and aimed < AIM_ROUNDS


def place_of(run: Run) -> prove.Place:
    """The working folder as a place for checks, for this run."""
    return prove.Place(
        directory=run.layout.project,
        head=run.context.head,
        tree=run.context.tree,
        by=run.id,
        tag=run.tag,
        seconds=run.settings.check_seconds,
        keep=run.keep,
    )


def settle(run: Run) -> None:
    """The receipts decide: the feature passes or fails, or the sweep is green or sends features back."""
    if run.reason and run.reply is None:  # `prepare` said why; a reply's own faults have nothing to do with the setup
        run.verdict = "red"
        _escalate_setup(run)
    elif run.feature is None:
        _judge_sweep(run)
    else:
        _aim(run)
        _judge_feature(run)
    run.save()


def _escalate_setup(run: Run) -> None:
    text = f"---\nkind: setup\nrun: {run.id}\n---\nThe contract's setup is red at {run.context.head[:10]}.\n\n{run.reason}\n"
    run.journal.replace(run.layout.escalation, text.encode())


def _aim(run: Run) -> None:
    """Fire what the validator proposes: a red check joins the contract, a green one is dropped."""
    assert run.feature is not None
    proposed = (run.reply or {}).get("checks", [])
    if proposed:
        run.feature.note(run.at, run.id, "aimed", "")
    for aim in proposed:
        claim = next((claim for claim in run.contract.of(run.feature.claims) if claim.id == aim["claim"]), None)
        check = Check(run=aim["run"].strip("\n"))
        if claim is None or claim.manual or check in claim.checks or _unfit(run, claim, check):
            continue
        receipt = prove.fire(check, claim, "after", place_of(run))
        run.receipts.append(receipt)
        files.add_line(run.paths.receipts, receipts.render([receipt]))
        if not receipt.green:
            _join(run, claim, check, aim.get("why", ""))


def _unfit(run: Run, claim: Claim, check: Check) -> list[str]:
    """What would keep a plan with this check from landing."""
    alone = Contract(claims=[claim.replace(checks=[check])])
    return plan.form_faults(check.run, run.layout.project) or plan.write_faults(alone)


def _join(run: Run, claim: Claim, check: Check, why: str) -> None:
    old = contracts.from_value(contracts.to_value(run.contract))
    joined = next(other for other in old.claims if other.id == claim.id)
    joined.checks.append(check)
    run.contract = old
    row = {"at": run.at, "by": run.id, "verb": "aim", "claim": claim.id, "why": why, "old": None, "new": check.asdict()}
    run.journal.append(run.layout.contract_log, files.dump_json(row))


def _judge_feature(run: Run) -> None:
    feature = run.feature
    assert feature is not None
    red = [receipt for receipt in run.receipts if not receipt.green]
    run.verdict = "red" if red else "green"
    run.newly_green = _newly_green(run)
    if feature.status == "validating":
        features.judged(feature, run.at, run.id)
    if feature.status == "validating" or (feature.status == "passed" and red):
        features.move(feature, "refuted" if red else "proved")
    for claim, receipt in {receipt.claim: receipt for receipt in red}.items():
        run.note("FAIL", f"{claim} is {receipt.verdict}: {_why(receipt)}")
    if feature.status == "passed":
        run.note(
            "-",
            f"passed at {run.context.head[:10]}: {', '.join(dict.fromkeys(receipt.claim for receipt in run.receipts))}",
        )
        features.unblock(run.features, run.at, run.id)


def _why(receipt: Receipt) -> str:
    said = [line.strip() for line in receipt.output.split("\n") if line.strip()]
    return said[-1] if said else receipt.command.strip().split("\n")[0]


def _newly_green(run: Run) -> int:
    """How many claims are proven now and were not by the feature's validation before."""
    judged = run.feature is not None and run.feature.attempts > 0
    before = runs.last_receipts(run.layout, run.context.feature, run.role.name) if judged else []
    return len(_proven(run.receipts) - _proven(before))


def _proven(found: list[Receipt]) -> set[str]:
    return {receipt.claim for receipt in found} - {receipt.claim for receipt in found if not receipt.green}


def _judge_sweep(run: Run) -> None:
    red = {receipt.claim: receipt for receipt in run.receipts if not receipt.green}
    run.verdict = "red" if red else "green"
    passed = [feature for feature in run.features if feature.status == "passed"]
    run.sweep = views.proof_state(run.layout, run.context.tree)
    for claim, receipt in red.items():
        owners = [feature for feature in passed if claim in feature.claims]
        for feature in owners:
            if feature.status == "passed":
                features.move(feature, "refuted")
            feature.note(run.at, run.id, "reason", f"{claim} is red in a fresh worktree")
        run.note(
            "FAIL", f"{claim} is {receipt.verdict} in a fresh worktree: {_why(receipt)}", owners[0].id if owners else ""
        )
