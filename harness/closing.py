"""The last step of a run: its result, its line in the books, a snapshot; then what a person must be told, if anything."""

from __future__ import annotations

import os

from harness import clock, contract, decide, features, files, git, journal, objects, reconcile, runs, views
from harness.layout import Layout
from harness.raw import CURATOR
from harness.runs import Result, Totals
from harness.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.current import Run

PLANNER = "planner"


def close(run: Run) -> Result:
    """Everything that the run changed lands in one journal with its result; durable on return."""
    files.make_folder(run.paths.folder)
    reconcile.drop_copies(run)
    head, seconds = run.commit or run.context.head, run.seconds()
    result = Result(
        run=run.id,
        role=run.role.name,
        feature=run.context.feature,
        trigger=run.context.trigger,
        outcome=run.outcome,
        reason=run.reason,
        verdict=run.verdict,
        agent=run.agent,
        at=clock.stamp(clock.now()),
        seconds=seconds,
        commit=run.commit,
        head=head,
        newly_green=run.newly_green,
        accepted=run.accepted,
        sweep=run.sweep,
        usage=_usage(run),
        kept_out=run.kept_out,
        refused=run.refused,
        mark=views.mark_of(run.layout, run.journal.contents, head),
        seal=runs.seal(run.paths),
        totals=_totals(run, seconds).asdict(),
    )
    line = files.dump_json(result.asdict())
    run.journal.replace(run.paths.result, line)
    run.journal.append(run.layout.books, line)
    run.journal.commit()
    keep_parsed(run)
    snapshot(run.layout, run.id, head, run.context.at)
    return result


def keep_parsed(run: Run) -> None:
    """Lay the contract, where this run wrote it, parsed into the cache, so that the next start need not parse it."""
    text = run.journal.contents.get(run.layout.contract)
    if text is not None:
        contract.remember(run.layout, text.decode(), run.contract)


def _totals(run: Run, seconds: float) -> Totals:
    """The running totals with this run in them."""
    before = runs.totals(run.layout)
    judging = run.role.name != CURATOR and run.outcome not in runs.FREE_OF_BLAME
    usage = next((one for one in reversed(run.usages) if one.raw), Usage())
    tokens = _added(before.tokens, usage.tokens)
    rejected = 0 if run.accepted else before.rejected + _brought_no_plan(run)
    return Totals(
        runs=before.runs + 1,
        seconds=round(before.seconds + seconds, 3),
        cost_usd=_added(before.cost_usd, usage.cost_usd),
        tokens=None if tokens is None else int(tokens),
        since_green=0 if run.newly_green else before.since_green + judging,
        rejected=rejected,
    )


def _usage(run: Run) -> dict[str, object] | None:
    told = [usage for usage in run.usages if usage.raw]
    return told[-1].asdict() if told else None


def _brought_no_plan(run: Run) -> bool:
    """Whether a planner ended without an accepted plan, and is to blame: limits, logins and kills do not count."""
    return run.accepted is False or (run.role.name == PLANNER and run.outcome not in (*runs.GOOD, *runs.FREE_OF_BLAME))


def _added(known: float | None, more: float | None) -> float | None:
    if known is None or more is None:
        return known if more is None else more
    return known + more


def snapshot(layout: Layout, run_id: str, head: str, at: str) -> None:
    """The live set by digest, grown files and raw.md by length and digest, and the commit: enough to go back to."""
    ledger = journal.read_ledger(layout)
    live = {}
    for path in layout.live():
        data = files.read(path)
        if data is not None:
            live[os.path.relpath(path, layout.state)] = objects.put(layout, data)
    grown = {
        os.path.relpath(path, layout.state): ledger.get(os.path.relpath(path, layout.state)) for path in layout.grown()
    }
    raw = files.read(layout.raw) or b""
    value = {
        "run": run_id,
        "at": at,
        "commit": head,
        "live": live,
        "grown": grown,
        "raw": [len(raw), files.digest(raw)],
    }
    files.replace(os.path.join(layout.snapshots, run_id + ".json"), files.dump_json(value))


def escalate(layout: Layout, known: list[features.Feature], now: int) -> None:
    """Where a person is needed from here on, say so in escalation.md, once. `known`: the features as just written."""
    view = views.gather(layout, known)
    decision = decide.decide(view, now)
    if decision.word != "ESCALATE" or os.path.exists(layout.escalation):
        return
    lines = ["---", f"kind: {decision.what}", "---", WHY.get(decision.what, "The mission cannot go on by itself."), ""]
    for feature in view.features:
        if feature.status != "passed":
            lines.append(f"- {feature.id} {feature.status} after {feature.attempts} tries: {_last_word(feature)}")
    for result in view.newest:
        lines.append(f"- run {result.run}: {result.outcome} {result.reason}".rstrip())
    lines += ["", 'Answer with: harness escalation answer "what to do"', ""]
    changes = journal.Journal(layout)
    changes.replace(layout.escalation, "\n".join(lines).encode())
    changes.commit()


WHY = {
    "stuck": "No feature can be worked on any more, and not all have passed.",
    "stalled": "Run after run brought nothing newly proven.",
    "plan": "Three planner runs in a row brought no acceptable plan.",
    "setup": "The contract's setup is red.",
}


def _last_word(feature: features.Feature) -> str:
    texts = [note["text"] for note in feature.notes if note["text"]]
    return texts[-1] if texts else feature.title


def head_moved(run: Run) -> bool:
    """Whether somebody moved HEAD or the branch since the run opened."""
    now = git.standing(run.layout.project)
    return (now.head, now.branch) != (run.context.head, run.context.branch)
