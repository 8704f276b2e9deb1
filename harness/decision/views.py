"""Read-only snapshots of a mission for decisions and commands: no lock is taken, nothing is repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from harness.base import clock, encoding, faults
from harness.base.errors import BrokenFile, UsageFault
from harness.decision import rules
from harness.decision.rules import Doubt, PendingCheckpoints, View
from harness.memory import backlog, pages
from harness.mission import config, contract, features, issues, lease, mission, receipts, roles, runs
from harness.mission.config import Config
from harness.mission.features import Feature
from harness.mission.runs import RunResult
from harness.state import names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace.recovery import unsettled_runs

SWEEPS_BACK = 50
WHY_CHARS = 80


def gather(layout: Layout, known: list[Feature] | None = None) -> View:
    """The view that `decide` needs; raises BrokenFile for a file that does not parse. `known`: the features, if the caller
    has just written them."""
    unsettled_runs.require_books(layout)
    state = State(layout)
    settings = config.load(layout)
    held = {claim: one.run for one in lease.alive(layout) for claim in one.claims}  # before the queue: what settles
    found = queue(layout) if known is None else known  # in between counts as held, not as due again
    newest = list(islice(unsettled_runs.believed(layout), rules.EQUAL_DECISIONS))
    since, until, why = _wait(layout, settings, newest)
    answered = runs.answered(layout)
    done = bool(found) and all(feature.status == "passed" for feature in found) and swept(layout)
    unlanded = _unlanded(layout, newest, answered) if done else ""
    curated = pages.curated(layout)
    totals = runs.totals_of(next(iter(newest), None), answered)
    return View(
        stop=state.exists(names.STOP),
        pause=state.exists(names.PAUSE),
        escalation=escalation_kind(layout),
        limits=limits_of(settings, layout),
        totals=totals,
        wait_since=since,
        wait_until=until,
        wait_why=why,
        roles=roles.due(layout),
        features=found,
        spec_changed=mission.spec_changed(layout) and _asks(layout),
        uncurated=backlog.uncurated(layout, curated, settings.curate_after),
        curate_after=settings.curate_after,
        serious=[issue.id for issue in issues.serious(issues.load(layout))],
        swept=done and unlanded is not None,
        unlanded=unlanded or "",
        doubts=_doubts(layout, answered) if done and unlanded == "" else [],
        newest=newest,
        answered=answered,
        set_aside=_set_aside(layout, found, totals.since_green),
        over=_over(layout, settings.max_cost_usd_feature),
        mark=mark(layout) if _alike(newest) else "",
        held=held,
        asks=_checkpoints(layout, settings, found, totals.cost_usd, done and unlanded == ""),
    )


def since_proven(layout: Layout, most: int) -> Iterator[RunResult]:
    """The newest runs counted by `since_green`: without curations and runs that failed without a fault of their work."""
    blamed = (one for one in runs.finished(layout) if one.outcome not in runs.FREE_OF_BLAME)
    return islice((one for one in blamed if roles.capability_of(layout, one.role) != "curates"), most)


def _set_aside(layout: Layout, found: list[Feature], since: int) -> dict[str, str]:
    """{feature: its last fault} of the features set aside in the newest `since` runs, newest first."""
    left = {one.id for one in found if rules.is_set_aside(one)}
    newest: dict[str, str] = {}
    for one in since_proven(layout, since) if left else ():
        if one.feature in left and one.feature not in newest:
            newest[one.feature] = _fault(layout, one)
    return newest


def _fault(layout: Layout, one: RunResult) -> str:
    """The fault of a run's first red check, with its command unless it is a fault of the machine; else that of its reason."""
    red = next((receipt for receipt in receipts.of_run(layout, one.run) if not receipt.green), None)
    if red is None or red.exit == receipts.NOT_FIRED or faults.of_machine(red.fault):
        return red.fault if red else faults.first(one.reason)
    check = " ".join(red.command.split())
    return red.fault if check in red.fault else f"{red.fault}, in {check}"


def _asks(layout: Layout) -> bool:
    """Whether a SPEC.md that differs from the accepted one is a person's change, not that of an older branch."""
    from harness.workplace import workplace  # only where it differs

    return mission.asks(layout, workplace.asked_spec(layout))


def _wait(layout: Layout, settings: Config, newest: list[RunResult]) -> tuple[int, int, str]:
    """(since, until, reason) of a wait because the newest run was rate limited. (0, 0, "") without one, or if its role
    now has an agent that this run did not have."""
    last = next(iter(newest), None)
    if last is None or last.outcome != "limit" or not last.until or _other_agents(layout, settings, last):
        return 0, 0, ""
    return last.ended, last.until, faults.first(last.reason, WHY_CHARS)


def _other_agents(layout: Layout, settings: Config, last: RunResult) -> bool:
    """Whether the run's role has a new agent since; the run's files may be absent."""
    try:
        known = runs.context(layout, last.run).agent
        return not set(roles.agents_of(settings, roles.load(layout, last.role))).issubset(known)
    except UsageFault:
        return False


def limits_of(settings: Config, layout: Layout | None = None, feature: str = "") -> rules.Caps:
    """The caps of a configuration; with the mission also that of the present day, and of a feature that is named."""
    found = rules.Caps(**{name: getattr(settings, name) for name in rules.Caps.fields if hasattr(settings, name)})
    if layout and settings.max_cost_usd_day is not None:
        today = clock.stamp(clock.now())[:10]
        before = next((one.total().cost_usd for one in runs.finished(layout) if one.at[:10] < today), 0.0)
        found.before_today_usd = before or 0.0
    if layout and feature and settings.max_cost_usd_feature is not None:
        found.elsewhere_usd = (runs.totals(layout).cost_usd or 0.0) - runs.costs(layout).get(feature, 0.0)
    return found


def _over(layout: Layout, most: float | None) -> dict[str, float]:
    """{feature: its USD} of the features at their cap."""
    return {} if most is None else {name: usd for name, usd in runs.costs(layout).items() if name and usd >= most}


def _alike(newest: list[RunResult]) -> bool:
    """Whether the last runs look alike, so that the costly fingerprint is needed."""
    return len(newest) == rules.EQUAL_DECISIONS and len({(run.role, run.feature, run.mark) for run in newest}) == 1


def queue(layout: Layout) -> list[Feature]:
    """The features, as recovery will leave them after a dead run, and with the latest claims of live runs applied."""
    mission.check_format(layout)
    found, opened = features.load(layout), runs.open_runs(layout)
    if opened or any(feature.status == "in_progress" for feature in found):
        found = _as_recovered(layout)
    done = features.passed(found)
    for feature in found:
        needs = feature.last_note("needs")
        if feature.status == "blocked" and needs and needs["features"] and done.issuperset(needs["features"]):
            feature.status = "todo"
    return found


def _as_recovered(layout: Layout) -> list[Feature]:
    from harness.workplace.recovery import recovery_plan  # only if a run is open or died

    found, steps = recovery_plan.foreseen(layout)
    for step in steps:
        if step.move:
            features.move(features.find(found, step.feature), step.move)
    begun = {one.feature for one in lease.alive(layout) if roles.capability_of(layout, one.role) == "commits"}
    for feature in found:
        if feature.id in begun and feature.status in features.TRANSITIONS["start"]:
            features.move(feature, "start")
    return found


def _checkpoints(
    layout: Layout, settings: Config, found: list[Feature], cost_usd: float | None, swept: bool
) -> PendingCheckpoints:
    """The waiting checkpoints; checks cheaply whether there can be any."""
    state = State(layout)
    if not (settings.checkpoint or state.exists(names.CHECKPOINT_LOG) or state.list(names.CHECKPOINTS)):
        return PendingCheckpoints()
    from harness.decision import checkpoints  # few missions have one

    return checkpoints.find(layout, settings, found, cost_usd, swept=swept)


def escalation_kind(layout: Layout) -> str:
    """The kind of an unanswered escalation.md; "" if there is none."""
    text = State(layout).text(names.ESCALATION)
    if text is None:
        return ""
    kind = kind_of(text)
    if not kind:
        remedy = f"Answer it with: {command('escalation answer')} TEXT"
        raise BrokenFile(
            layout.path(names.ESCALATION), "it has no line 'kind: …' in its front matter", line=1, remedy=remedy
        )
    return kind


def kind_of(text: str) -> str:
    """The kind in the text of an escalation; "" without one."""
    return next((line[6:].strip() for line in text.split("\n") if line.startswith("kind: ")), "")


def proof_state(layout: Layout, tree: str) -> dict[str, str]:
    """The state that a final sweep is valid for: tree, contract and spec."""
    state = State(layout)
    contract, spec = (encoding.digest(state.data(name) or b"") for name in (names.CONTRACT, names.SPEC))
    return {"tree": tree, "contract": contract, "spec": spec}


def _tree(layout: Layout) -> str:
    from harness.workplace import workplace  # 5 ms of imports, and most decisions need no git

    return workplace.position(layout).tree


def swept(layout: Layout) -> bool:
    """Whether the newest final sweep was green at exactly this tree, contract and spec, without a red claim since.
    False while a dead run is unsettled, which may have written that line."""
    if unsettled_runs.unsettled(layout):
        return False
    for found in islice(runs.finished(layout), SWEEPS_BACK):
        if found.sweep is not None:
            from harness.proof import index  # `next` needs no receipts

            green = found.verdict == "green" and found.sweep == proof_state(layout, _tree(layout))
            return green and _has_receipts(layout, found) and not index.proofs(layout).red
    return False


def _unlanded(layout: Layout, newest: list[RunResult], answered: str) -> str | None:
    """Why the newest run could not put the work on the mission's branch; "" if it is there, None without an attempt
    since a person changed the branch or answered."""
    from harness.workplace import workplace  # only before DONE

    if workplace.landed(layout):
        return ""
    last = next(iter(newest), None)
    return last.unlanded or None if last and last.run != answered else None


def _doubts(layout: Layout, answered: str) -> list[Doubt]:
    from harness.decision import doubts  # only before DONE

    return doubts.find(layout, answered)


def _has_receipts(layout: Layout, found: RunResult) -> bool:
    """Whether the files of a final sweep match its run digest, with a green receipt for every check."""
    tree, line = (found.sweep or {}).get("tree"), State(layout).data(names.of_run(found.run, names.RESULT))
    if runs.parse(line or b"")[0] != found or runs.seal(layout.run(found.run)) != found.seal:
        return False
    fired = [
        one for one in receipts.of_run(layout, found.run) if one.phase == "sweep" and one.green and one.tree == tree
    ]
    wanted = {(claim.id, check.run) for claim in contract.load(layout).claims for check in claim.checks}
    return wanted <= {(one.claim, one.command) for one in fired}


def mark(layout: Layout, pending: Mapping[str, bytes | None] = {}) -> str:
    """The fingerprint of everything that decisions depend on, after the `pending` contents are written: features,
    contract, spec, memory's generation, the mission's position, and its branch."""
    from harness.workplace import workplace  # as in `_tree`

    state, made = State(layout), mission.read(layout)
    wanted = (names.FEATURES, names.CONTRACT, names.SPEC, names.CURATED)
    contents = [pending[name] if name in pending else state.data(name) for name in wanted]
    parts = [encoding.digest(data or b"-") for data in contents]
    heads = workplace.tip_commit(layout, made), workplace.branch_commit(layout, made)
    return encoding.digest("\0".join([*parts, *heads]).encode())
