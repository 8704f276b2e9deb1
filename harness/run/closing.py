"""The last step of a run: its result, its line in the books, a snapshot; then what a person must be told, if anything."""

from __future__ import annotations

import os
from itertools import islice, takewhile

from harness.agents import registry
from harness.base import clock
from harness.decision import rules, views
from harness.integrity import reconcile
from harness.model import contract, features, issues, roles, runs, usage
from harness.model.runs import Result, Totals
from harness.store import files, journal, objects
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.config import Config
    from harness.model.open_run import Begun, OpenRun, Outcome
    from harness.model.usage import Usage

TAKEN = ("reason", "verdict", "agent", "at", "commit", "newly_green", "accepted", "sweep", "refused", "waits")
FIRST_WAIT, LONGEST_WAIT, LONGEST_STATED = 60, 3600, 8 * 24 * 3600
JITTER, MOST_JITTER = 0.1, 60
REASON_CHARS = 200
PAID = ("cost", "tokens")
LEAST_COST = 0.0001  # USD; less is written as 0, which programs take for no cap, or for a mistake


def close(run: Begun, outcome: Outcome, settings: Config, seconds: float) -> Result:
    """Everything that the run changed lands in one journal with its result; durable on return."""
    files.make_folder(run.paths.folder)
    reconcile.drop_copies(run)
    head, used = outcome.commit or run.context.head, _used(outcome, settings)
    result = Result(
        **{name: getattr(run.context, name) for name in ("run", "role", "feature", "trigger")},
        **{name: getattr(outcome, name) for name in TAKEN},
        outcome=outcome.ended,
        kept_out=outcome.kept_out,
        seconds=seconds,
        head=head,
        usage=used.asdict() if used else None,
        mark=views.mark_of(run.layout, outcome.journal.contents, head),
        seal=runs.seal(run.paths),
        totals=_totals(run, outcome, settings, seconds).asdict(),
        until=let_in(run.layout, outcome.until) if outcome.ended == "limit" else 0,
        agents=[one.agent for one in outcome.usages],
        version=run.context.version,
    )
    line = files.dump_json(result.asdict())
    outcome.journal.replace(run.paths.result, line)
    outcome.journal.append(run.layout.books, line)
    _land(run, outcome)
    keep_parsed(outcome)
    snapshot(run.layout, run.id, head, run.context.at)
    return result


def _land(run: Begun, outcome: Outcome) -> None:
    """Commit the run's journal; what it saw of issues is numbered here, while nobody else can add one."""
    with files.Lock(run.layout.state_lock):
        journal.finish_journal(run.layout)
        if outcome.issues:
            made = issues.new(issues.load(run.layout), outcome.issues, run.id)
            outcome.journal.append(run.layout.issues, issues.render(made))
        outcome.journal.commit(locked=True)


def keep_parsed(outcome: Outcome) -> None:
    """Lay the contract, where this run wrote it, parsed into the cache, so that the next start need not parse it."""
    layout = outcome.journal.layout
    text = outcome.journal.contents.get(layout.contract)
    if text is not None:
        contract.remember(layout, text.decode(), outcome.contract)


def crossed(run: OpenRun, result: Result) -> list[str]:
    """The caps that this run brought near their end, each in words."""
    limits = views.limits_of(run.settings)
    after = rules.near(limits, result.total())
    if not after:
        return []
    earlier = next((one for one in runs.books(run.layout) if one.run != result.run), None)
    known = {cap.name for cap in rules.near(limits, earlier.total() if earlier else Totals())}
    return [cap.words for cap in after if cap.name not in known]


def overspent(run: OpenRun, outcome: Outcome) -> str:
    """The cap on cost or tokens that this run's agents have used up by now, in words, "" while there is room. A cap that was
    used up before is a person's business, who started the run by hand."""
    limits = views.limits_of(run.settings)
    before = {cap.name for cap in rules.spent(limits, runs.totals(run.layout))}
    now = rules.spent(limits, _totals(run, outcome, run.settings, run.seconds()))
    return next((cap.words for cap in now if cap.name in PAID and cap.name not in before), "")


def cost_left(run: OpenRun) -> float | None:
    """How many USD may be spent until the cap is reached; None where there is none, or it was reached before."""
    most = run.settings.max_cost_usd
    left = 0.0 if most is None else most - (runs.totals(run.layout).cost_usd or 0.0)
    return max(left, LEAST_COST) if left > 0 else None


def let_in(layout: Layout, until: int) -> int:
    """When to ask the vendor again, in unix seconds: when it said (`until`), else after a back-off that doubles with each
    limit in a row; a little later than that, so that not everybody comes at once."""
    now = clock.now()
    wait = min(until - now, LONGEST_STATED)
    if wait <= 0:
        row = takewhile(lambda result: result.outcome == "limit", runs.books(layout))
        wait = min(FIRST_WAIT * 2 ** len(list(islice(row, 6))), LONGEST_WAIT)
    chance = int.from_bytes(os.urandom(4), "big") / 2**32  # `random` costs 5 ms to import
    return now + wait + round(chance * min(wait * JITTER, MOST_JITTER))


def _used(outcome: Outcome, settings: Config) -> Usage | None:
    """What the run's agents told that they used, with costs from the price table where their vendor tells none."""
    return usage.total(usage.priced(one, settings.prices) for one in outcome.usages if one.raw)


def _totals(run: Begun, outcome: Outcome, settings: Config, seconds: float) -> Totals:
    """The running totals with this run in them."""
    before, used, free = runs.totals(run.layout), _used(outcome, settings), outcome.ended in runs.FREE_OF_BLAME
    no_plan = (
        run.capability == "plans" and outcome.ended not in runs.GOOD and not free
    )  # limits, logins and kills do not count
    return Totals(
        runs=before.runs + 1,
        seconds=round(before.seconds + seconds, 3),
        cost_usd=usage.plus(before.cost_usd, used.cost_usd if used else None),
        tokens=usage.plus(before.tokens, used.tokens if used else None),
        since_green=0 if outcome.newly_green else before.since_green + (run.capability != "curates" and not free),
        rejected=0 if outcome.accepted else before.rejected + (outcome.accepted is False or no_plan),
        uncounted=before.uncounted + _uncounted(outcome, settings, used),
    )


def _uncounted(outcome: Outcome, settings: Config, used: Usage | None) -> bool:
    """Whether the run cost something that its usage does not tell whole: it used tokens without a cost, or an agent that is
    not free answered and told nothing."""
    if used and (used.tokens or used.cost_usd is not None):
        return used.cost_source == usage.UNKNOWN
    answered = outcome.agent if outcome.ended not in ("limit", "auth", "config") else ""
    return bool(answered and registry.costs(answered, settings.agents.get(answered, {})))


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
    blamed = (one for one in runs.books(layout) if one.outcome not in runs.FREE_OF_BLAME)
    counted = (one for one in blamed if roles.capability_of(layout, one.role) != "curates")
    return islice(counted, max(view.totals.since_green, len(view.newest)))


def _run_line(result: Result) -> str:
    what = " ".join(part for part in (result.role, result.feature, result.said) if part)
    return f"- run {result.run}: {what}  {result.reason.split(chr(10))[0][:REASON_CHARS]}".rstrip()


WHY = {
    "stuck": "No feature can be worked on any more, and not all have passed.",
    "stalled": "Run after run brought nothing newly proven.",
    "plan": "Three runs in a row brought no acceptable plan.",
    "setup": "The contract's setup is red.",
}


def _last_word(feature: features.Feature) -> str:
    texts = [note["text"] for note in feature.notes if note.get("text")]
    return texts[-1] if texts else feature.title
