"""The last step of a run: its result, its line in the books, a snapshot; then what a person must be told, if anything."""

from __future__ import annotations

import os
from itertools import islice, takewhile

from harness.agents import registry
from harness.base import clock
from harness.decision import rules, views
from harness.git import repository
from harness.integrity import reconcile
from harness.memory.raw import CURATOR
from harness.model import contract, features, issues, runs, usage
from harness.model.runs import Result, Totals
from harness.store import files, journal, objects
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.open_run import Run
    from harness.model.usage import Usage

PLANNER = "planner"
FIRST_WAIT, LONGEST_WAIT, LONGEST_STATED = 60, 3600, 8 * 24 * 3600
JITTER, MOST_JITTER = 0.1, 60
REASON_CHARS = 200
PAID = ("cost", "tokens")
LEAST_COST = 0.0001  # USD; less is written as 0, which programs take for no cap, or for a mistake


def close(run: Run) -> Result:
    """Everything that the run changed lands in one journal with its result; durable on return."""
    files.make_folder(run.paths.folder)
    reconcile.drop_copies(run)
    head, seconds = run.commit or run.context.head, run.seconds()
    used = _used(run)
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
        usage=used.asdict() if used else None,
        kept_out=run.kept_out,
        refused=run.refused,
        mark=views.mark_of(run.layout, run.journal.contents, head),
        seal=runs.seal(run.paths),
        totals=_totals(run, seconds, used).asdict(),
        until=let_in(run) if run.outcome == "limit" else 0,
        waits=run.waits,
        agents=[one.agent for one in run.usages],
        version=run.context.version,
    )
    line = files.dump_json(result.asdict())
    run.journal.replace(run.paths.result, line)
    run.journal.append(run.layout.books, line)
    _land(run)
    keep_parsed(run)
    snapshot(run.layout, run.id, head, run.context.at)
    return result


def _land(run: Run) -> None:
    """Commit the run's journal; what it saw of issues is numbered here, while nobody else can add one."""
    with files.Lock(run.layout.state_lock):
        journal.finish_journal(run.layout)
        if run.seen:
            made = issues.new(issues.load(run.layout), run.seen, run.id)
            run.journal.append(run.layout.issues, issues.render(made))
        run.journal.commit(locked=True)


def keep_parsed(run: Run) -> None:
    """Lay the contract, where this run wrote it, parsed into the cache, so that the next start need not parse it."""
    text = run.journal.contents.get(run.layout.contract)
    if text is not None:
        contract.remember(run.layout, text.decode(), run.contract)


def crossed(run: Run, result: Result) -> list[str]:
    """The caps that this run brought near their end, each in words."""
    limits = views.limits_of(run.settings)
    after = rules.near(limits, result.total())
    if not after:
        return []
    earlier = next((one for one in runs.books(run.layout) if one.run != result.run), None)
    known = {cap.name for cap in rules.near(limits, earlier.total() if earlier else Totals())}
    return [cap.words for cap in after if cap.name not in known]


def overspent(run: Run) -> str:
    """The cap on cost or tokens that this run's agents have used up by now, in words, "" while there is room. A cap that was
    used up before is a person's business, who started the run by hand."""
    limits = views.limits_of(run.settings)
    before = {cap.name for cap in rules.spent(limits, runs.totals(run.layout))}
    now = rules.spent(limits, _totals(run, run.seconds(), _used(run)))
    return next((cap.words for cap in now if cap.name in PAID and cap.name not in before), "")


def cost_left(run: Run) -> float | None:
    """How many USD may be spent until the cap is reached; None where there is none, or it was reached before."""
    most = run.settings.max_cost_usd
    left = 0.0 if most is None else most - (runs.totals(run.layout).cost_usd or 0.0)
    return max(left, LEAST_COST) if left > 0 else None


def let_in(run: Run) -> int:
    """When to ask the vendor again, in unix seconds: when it said, else after a back-off that doubles with each limit in a
    row; a little later than that, so that not everybody comes at once."""
    now = clock.now()
    wait = min(run.until - now, LONGEST_STATED)
    if wait <= 0:
        row = takewhile(lambda result: result.outcome == "limit", runs.books(run.layout))
        wait = min(FIRST_WAIT * 2 ** len(list(islice(row, 6))), LONGEST_WAIT)
    chance = int.from_bytes(os.urandom(4), "big") / 2**32  # `random` costs 5 ms to import
    return now + wait + round(chance * min(wait * JITTER, MOST_JITTER))


def _used(run: Run) -> Usage | None:
    """What the run's agents told that they used, with costs from the price table where their vendor tells none."""
    return usage.total(usage.priced(one, run.settings.prices) for one in run.usages if one.raw)


def _totals(run: Run, seconds: float, used: Usage | None) -> Totals:
    """The running totals with this run in them."""
    before = runs.totals(run.layout)
    judging = run.role.name != CURATOR and run.outcome not in runs.FREE_OF_BLAME
    rejected = 0 if run.accepted else before.rejected + _brought_no_plan(run)
    return Totals(
        runs=before.runs + 1,
        seconds=round(before.seconds + seconds, 3),
        cost_usd=usage.plus(before.cost_usd, used.cost_usd if used else None),
        tokens=usage.plus(before.tokens, used.tokens if used else None),
        since_green=0 if run.newly_green else before.since_green + judging,
        rejected=rejected,
        uncounted=before.uncounted + _uncounted(run, used),
    )


def _uncounted(run: Run, used: Usage | None) -> bool:
    """Whether the run cost something that its usage does not tell whole: it used tokens without a cost, or an agent that is
    not free answered and told nothing."""
    if used and (used.tokens or used.cost_usd is not None):
        return used.cost_source == usage.UNKNOWN
    answered = run.agent if run.outcome not in ("limit", "auth", "config") else ""
    return bool(answered and registry.costs(answered, run.settings.agents.get(answered, {})))


def _brought_no_plan(run: Run) -> bool:
    """Whether a planner ended without an accepted plan, and is to blame: limits, logins and kills do not count."""
    return run.accepted is False or (run.role.name == PLANNER and run.outcome not in (*runs.GOOD, *runs.FREE_OF_BLAME))


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
    decision = rules.decide(view, now)
    if decision.word != "ESCALATE" or os.path.exists(layout.escalation):
        return
    lines = ["---", f"kind: {decision.what}", "---", WHY.get(decision.what, "The mission cannot go on by itself."), ""]
    for feature in view.features:
        if feature.status != "passed":
            lines.append(f"- {feature.id} {feature.status} after {feature.attempts} tries: {_last_word(feature)}")
    lines += [_run_line(result) for result in _told_of(layout, view)]
    lines += ["", f'Answer with: {command("escalation answer")} "what to do"', ""]
    changes = journal.Journal(layout)
    changes.replace(layout.escalation, "\n".join(lines).encode())
    changes.commit()


def _told_of(layout: Layout, view: rules.View) -> Iterator[Result]:
    """The runs that a person should look at, newest first: those since the last newly proven claim, at least the last."""
    counted = (result for result in runs.books(layout) if result.role != CURATOR)
    blamed = (result for result in counted if result.outcome not in runs.FREE_OF_BLAME)
    return islice(blamed, max(view.totals.since_green, len(view.newest)))


def _run_line(result: Result) -> str:
    what = " ".join(part for part in (result.role, result.feature, result.said) if part)
    return f"- run {result.run}: {what}  {result.reason.split(chr(10))[0][:REASON_CHARS]}".rstrip()


WHY = {
    "stuck": "No feature can be worked on any more, and not all have passed.",
    "stalled": "Run after run brought nothing newly proven.",
    "plan": "Three planner runs in a row brought no acceptable plan.",
    "setup": "The contract's setup is red.",
}


def _last_word(feature: features.Feature) -> str:
    texts = [note["text"] for note in feature.notes if note.get("text")]
    return texts[-1] if texts else feature.title


def head_moved(run: Run) -> bool:
    """Whether somebody moved HEAD or the branch since the run opened."""
    now = repository.standing(run.layout.project)
    return (now.head, now.branch) != (run.context.head, run.context.branch)
