"""The last step of a run: its result, its line in the run log and a snapshot; then a due escalation."""

from __future__ import annotations

import os
from itertools import islice, takewhile
from typing import Any

from harness.agents import registry
from harness.base import clock, encoding
from harness.base.errors import BrokenFile, VersionConflict
from harness.decision import escalations, rules, views
from harness.git import dotgit, refs
from harness.memory import pages
from harness.mission import features, issues, runs, tasks, usage
from harness.mission.config import Config
from harness.mission.open_run import OpenRun, Outcome, StartedRun
from harness.mission.runs import RunResult, Totals
from harness.mission.usage import Usage
from harness.process.timeouts import STARTUP
from harness.run import reservations, workspace_inputs
from harness.state import journal, json_lines, names, objects
from harness.state.layout import Layout, identity_folder
from harness.state.state import ABSENT, State
from harness.workplace import inbox

MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 60, 3600
JITTER = 0.1
PAID = (*rules.MONEY, "tokens")
MIN_COST_USD = 0.0001  # USD; less would print as 0, which programs read as no cap or an error


def close(run: StartedRun, outcome: Outcome, settings: Config, seconds: float) -> RunResult:
    """Commit everything that the run changed in one journal with its result; durable on return."""
    inbox.remove(run.paths.inbox)
    if os.path.isdir(run.paths.tasks):
        tasks.end_all(run.paths.tasks)
    head, used = outcome.landing.commit or run.context.head, used_by(outcome, settings)
    result = RunResult(
        **{name: getattr(run.context, name) for name in ("run", "role", "feature", "trigger")},
        outcome=outcome.ended,
        reason=outcome.reason,
        at=outcome.at,
        **outcome.decision.asdict(),
        commit=outcome.landing.commit,
        unlanded=outcome.landing.unlanded,
        kept_out=outcome.work.kept_out,
        refused=outcome.work.refused,
        secrets=outcome.work.secrets,
        ignored=outcome.work.ignored,
        agent=outcome.agent,
        waits=outcome.answer.waits,
        seconds=seconds,
        head=head,
        usage=used.asdict() if used else None,
        mark=views.mark(run.layout, outcome.changes.contents),
        seal=runs.seal(run.paths),
        totals=_totals(run, outcome, settings, seconds).asdict(),
        until=retry_at(run.layout, outcome.answer.until) if outcome.ended == "limit" else 0,
        agents=[one.agent for one in outcome.answer.usages],
        version=run.context.version,
        confined=run.context.confined,
    )
    workspace_inputs.note_changes(run, outcome, settings)
    line = encoding.dump_json(result.asdict())
    outcome.changes.put(names.of_run(run.id, names.RESULT), line)
    outcome.changes.append(names.RUN_LOG, line)
    _commit(run, outcome)
    _snapshot(run.layout, run.id, head, result.at)
    return result


def _commit(run: StartedRun, outcome: Outcome) -> None:
    """Commit the run's changes, and number its new issues under the same lock."""
    state = State(run.layout)
    with state.lock("state"):
        journal.finish_journal(run.layout)
        if outcome.issues:
            made = issues.new(issues.load(run.layout), outcome.issues, run.id)
            outcome.changes.append(names.ISSUES, issues.render(made))
        state.commit(outcome.changes, locked=True)


def crossed(run: OpenRun, result: RunResult) -> list[str]:
    """The caps that this run has nearly exhausted, each in words."""
    limits = views.limits_of(run.settings, run.layout, run.context.feature)
    after = rules.near(limits, result.total())
    if not after:
        return []
    earlier = next((one for one in runs.finished(run.layout) if one.run != result.run), None)
    known = {cap.name for cap in rules.near(limits, earlier.total() if earlier else Totals())}
    return [cap.words for cap in after if cap.name not in known]


def overspent(run: OpenRun) -> str:
    """The cap on cost or tokens that this run has exhausted, including reservations of other runs, in words; "" below
    it, or if it was exhausted before the run."""
    limits = views.limits_of(run.settings, run.layout, run.context.feature)
    before = {cap.name for cap in rules.spent(limits, runs.totals(run.layout))}
    now = [cap for cap in _caps(run, _totals(run, run.outcome, run.settings, run.seconds())) if cap.spent >= cap.most]
    return next((cap.words for cap in now if cap.name in PAID and cap.name not in before), "")


def _caps(run: OpenRun, totals: Totals) -> list[rules.Cap]:
    """The caps with what other runs reserve, but for that of the feature, which is this run's alone."""
    limits, others = (
        views.limits_of(run.settings, run.layout, run.context.feature),
        reservations.others(run.layout, run.id),
    )
    reserved = [cap for cap in rules.caps(limits, reservations.with_reserved(totals, others)) if cap.name != "feature"]
    return reserved + [cap for cap in rules.caps(limits, totals) if cap.name == "feature"]


def cost_so_far(run: OpenRun) -> str:
    """The cost of the mission including this run so far, in words; "" if unknown."""
    totals = _totals(run, run.outcome, run.settings, run.seconds())
    least = "at least " if totals.uncounted else ""
    return "" if totals.cost_usd is None else f"{least}{totals.cost_usd:.2f} USD"


def reserve_used(run: OpenRun) -> None:
    """Raise the reservation of the run's lease to the cost and tokens used so far, if higher."""
    used, terms = used_by(run.outcome, run.settings), run.lease.terms
    if used and ((used.cost_usd or 0) > terms.cost_usd or (used.tokens or 0) > terms.tokens):
        run.lease.sign(cost_usd=max(used.cost_usd or 0, terms.cost_usd), tokens=max(used.tokens or 0, terms.tokens))


def cost_left(run: OpenRun) -> float | None:
    """The USD left below the closest cap; None without a cap, or above all."""
    known = runs.totals(run.layout)
    caps = _caps(run, known.replace(cost_usd=known.cost_usd or 0.0))
    left = [cap.most - cap.spent for cap in caps if cap.name in rules.MONEY and cap.spent < cap.most]
    return max(min(left), MIN_COST_USD) if left else None


def tokens_left(run: OpenRun) -> int | None:
    """The tokens left below the cap; None without a cap, or above it."""
    most = run.settings.max_tokens
    spent = reservations.with_reserved(runs.totals(run.layout), reservations.others(run.layout, run.id))
    left = 0 if most is None else most - (spent.tokens or 0)
    return left if left > 0 else None


def retry_at(layout: Layout, until: int) -> int:
    """The time to retry the vendor: its retry-after (`until`), else an exponential back-off; plus jitter."""
    now = clock.now()
    wait = min(until - now, runs.MAX_STATED_SECONDS)
    if wait <= 0:
        row = takewhile(lambda result: result.outcome == "limit", runs.finished(layout))
        wait = min(MIN_WAIT_SECONDS * 2 ** len(list(islice(row, 6))), MAX_WAIT_SECONDS)
    chance = int.from_bytes(os.urandom(4), "big") / 2**32  # `random` costs 5 ms to import
    return now + wait + round(chance * min(wait * JITTER, runs.MAX_JITTER_SECONDS))


def used_by(outcome: Outcome, settings: Config) -> Usage | None:
    """The usage reported by the run's agents, priced from the table if their vendor reports no cost."""
    return usage.total(usage.priced(one, settings.prices) for one in outcome.answer.usages if one.raw)


def _totals(run: StartedRun, outcome: Outcome, settings: Config, seconds: float) -> Totals:
    """The running totals with this run included. Limits, logins and kills do not count as failures."""
    before, used, free = runs.totals(run.layout), used_by(outcome, settings), outcome.ended in runs.FREE_OF_BLAME
    no_plan = run.capability == "plans" and outcome.ended not in (*runs.GOOD, STARTUP) and not free
    return Totals(
        runs=before.runs + (not outcome.idle),
        seconds=round(before.seconds + seconds * (not run.entered), 3),
        cost_usd=usage.plus(before.cost_usd, used.cost_usd if used else None),
        tokens=usage.plus(before.tokens, used.tokens if used else None),
        since_green=0
        if outcome.decision.newly_green
        else before.since_green + (run.capability != "curates" and not free),
        rejected=0 if outcome.decision.accepted else before.rejected + (outcome.decision.accepted is False or no_plan),
        uncounted=before.uncounted + uncounted(outcome, settings, used),
    )


def uncounted(outcome: Outcome, settings: Config, used: Usage | None) -> bool:
    """Whether part of the run's cost is unknown: tokens without a cost, or no usage from an agent that costs."""
    if used and (used.tokens or used.cost_usd is not None):
        return used.cost_source == usage.UNKNOWN
    answered = outcome.agent if outcome.ended not in ("limit", "auth", "config") else ""
    return bool(answered and registry.costs(answered, settings.agents.get(answered, {})))


def snapshot(layout: Layout, run_id: str) -> None:
    """Write the missing snapshot of a closed run after a kill."""
    if not State(layout).exists(f"{names.SNAPSHOTS}/{run_id}.json"):
        result = runs.result(layout, run_id)
        if result:
            _snapshot(layout, run_id, result.head, result.at)


def _snapshot(layout: Layout, run_id: str, head: str, at: str) -> None:
    """Write the restorable state: managed files by digest, append-only files and raw.md by length, the commit (kept by
    a ref), and the identity shown in the prompt."""
    last = next(islice(runs.finished(layout), 1, None), None)
    if (
        head
        and (last is None or last.head != head)
        and dotgit.commit_of(layout.folders.top, refs.KEEP + run_id) != head
    ):
        refs.set_one(layout.folders.top, refs.KEEP + run_id, head)
    value = {**snapshot_of(layout, run_id, head, at), "identity": _identity(layout, run_id)}
    State(layout).put(f"{names.SNAPSHOTS}/{run_id}.json", encoding.dump_json(value))


def snapshot_of(layout: Layout, name: str, head: str, at: str) -> dict[str, Any]:
    """The snapshot of the present state; stores its objects."""
    state, ledger = State(layout), journal.read_ledger(layout)
    contents = {name: state.data(name) for name in names.MANAGED}
    return {
        "run": name,
        "at": at,
        "commit": head,
        "live": {name: objects.put(layout, data) for name, data in contents.items() if data is not None},
        "grown": {name: row for name in names.APPEND_ONLY if (row := ledger.get(name))},
        "raw": [state.length(names.RAW), str(state.generation())],
        "entries": _entries(state, contents[names.CURATED]),
    }


def _entries(state: State, data: bytes | None) -> int:
    """The number of entries that raw.md has ever had; -1 if curated.json lacks its start."""
    try:
        curated = pages.parse_curated(data)
    except BrokenFile:  # its readers report it
        return -1
    offset, before = (curated.offset, curated.folded) if curated.offset else (0, curated.first_seq)
    size = max(0, state.length(names.RAW) - offset)  # it may have been shortened
    return before + state.part(names.RAW, offset, size).count(b"\n")


def _identity(layout: Layout, run_id: str) -> dict[str, str]:
    """{file name: object} of the identity that the prompt of the run showed."""
    data, folder = State(layout).data(names.of_run(run_id, names.MANIFEST)) or b"", identity_folder()
    if os.fsencode(layout.folders.relative(folder)) not in data:
        return {}
    rows = json_lines.value(data)
    found = {str(row["source"]): str(row["object"]) for row in rows if "object" in row}
    return {
        os.path.basename(one): name
        for one, name in found.items()
        if os.path.dirname(one) == layout.folders.relative(folder)
    }


def escalate(layout: Layout, known: list[features.Feature], now: int) -> None:
    """Write escalation.md once, if a person is needed. `known`: the features as just written."""
    view = views.gather(layout, known)
    decision = rules.decide(view, now)
    if decision.word != "ESCALATE" or State(layout).exists(names.ESCALATION):
        return

    text = escalations.render(layout, view, decision.what)
    try:
        State(layout).put(names.ESCALATION, text.encode(), expect=ABSENT)
    except VersionConflict:
        return  # another run escalated concurrently
