"""The first step of a run: find every fault before anything is written, then create the run's folder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.agents import registry
from harness.base import clock, console, encoding
from harness.base.errors import LockBusy, UsageFault
from harness.base.record import Record
from harness.decision import rules
from harness.git.checkouts import worktrees
from harness.memory import pages
from harness.mission import config, contract, contract_log, features, issues, lease, mission, order_log, roles, runs
from harness.mission.config import Config
from harness.mission.contract import Claim
from harness.mission.features import Feature
from harness.mission.lease import Lease, Terms
from harness.mission.open_run import LandingResult, OpenRun, Outcome, Verbs
from harness.mission.roles import Role
from harness.mission.runs import RunContext
from harness.process import supervise, temporary
from harness.process.confine import BUBBLEWRAP, NONE
from harness.run import reconcile, recover, reservations, starting, workspace_inputs
from harness.run.machines import lane as lanes
from harness.run.machines.lane import MachineAgent
from harness.run.notice import hooks
from harness.run.requests import orders
from harness.state import journal, names, objects
from harness.state.files import PRIVATE
from harness.state.layout import Layout, command
from harness.state.state import Changes, State
from harness.workplace import confine, lane_turn, mission_lock, run_detection, workplace
from harness.workplace.workplace import Tree
from harness.workspace.snapshot import WorkspaceSnapshot
from harness.workspace.tools import ToolsFile

UNCONFINED = "not confined: programs of this run can read and write all that you can (docs/confinement.md)"


class RunRequest(Record):
    """The request for a run: L0, from the environment and the command line. `again`: rework a feature of any status;
    `looping`: run.sh continues with what is due then, for `left` seconds; `program`: of a person who enters the run, instead of
    an agent; `agents`: instead of the configured ones; `verbs`: see OpenRun, of who asks for a run of the role that answers."""

    layout: Layout
    role: str
    feature: str = ""
    wish: str = ""
    trigger: str = ""
    reason: str = ""
    again: bool = False
    looping: bool = False
    left: float = float("inf")
    program: list[str] = []
    agents: list[str] = []
    verbs: Verbs = {}

    @property
    def event(self) -> str:
        """The transition of the feature of a role that commits."""
        return "enter" if self.trigger == runs.ENTERED else "start"


class AgentChoice(Record):
    """The agents to try in turn ([]: code only), the names of configured ones that are not installed, and their `workspace`."""

    available: list[tuple[str, registry.Agent]]
    missing: list[str]
    workspace: WorkspaceSnapshot | None = None


def asked(role: str, feature: str = "", *, again: bool = False) -> RunRequest:
    """L0 from the environment; raises UsageFault inside a run of the same mission, and for a malformed id."""
    env = os.environ
    layout = Layout(env.get("HARNESS_PROJECT") or os.getcwd(), env.get("HARNESS_STATE", ""))
    run_detection.refuse(layout, f"run {role}")
    named = {"feature": "FEATURE_ID", "wish": "HARNESS_RUN_ID", "trigger": "TRIGGER", "reason": "REASON"}
    given: dict[str, Any] = {name: env.get(variable, "") for name, variable in named.items()}
    if given["wish"]:
        runs.require_id(given["wish"])
    if feature or again:
        given["feature"] = feature
    again = again and given["trigger"] != runs.ENTERED  # a playback starts a role
    given["left"] = clock.span(env.get("HARNESS_LEFT", "")) or float("inf")
    return RunRequest(layout=layout, role=role, again=again, looping=bool(env.get("HARNESS_LOOP")), **given)


def open_run(want: RunRequest) -> tuple[OpenRun, AgentChoice]:
    """Settle dead runs, check everything, claim the work, prepare the tree, and open the run. Raises a fault with
    nothing changed, LockBusy if another run holds a claim."""
    layout = want.layout
    workspace_inputs.check_state(layout)
    try:
        run, agents, tree = _claim(want)
    finally:
        lane_turn.pass_on()
    try:
        if run.settings.on:
            terms = run.lease.terms
            about = {"run": terms.run, "role": terms.role, "feature": terms.feature, "trigger": want.trigger}
            hooks.ask(layout, run.settings, about)
        run, agents = _in_tree(want, run, agents, tree)
        _begin(run, want)
    except BaseException:
        run.lease.release()
        recover.recover_dead(layout)  # release the claim; nothing has begun
        raise
    return run, agents


def _claim(want: RunRequest) -> tuple[OpenRun, AgentChoice, Tree]:
    """Settle dead runs, apply orders, and claim, under the mission lock."""
    layout = want.layout
    starting.found(layout)
    with mission_lock.take(layout):
        workplace.use(layout)
        for line in recover.recover(layout):
            console.print_line(f"  {line}")
        if order_log.pending(layout):
            orders.apply_pending(layout)
        return _claimed(want)


def _claimed(want: RunRequest) -> tuple[OpenRun, AgentChoice, Tree]:
    """Find every fault, then claim; the caller holds the mission lock. The run records the state that it decided on, which
    other runs may change afterwards."""
    layout = want.layout
    live = lease.alive(layout)
    made = mission.load(layout)
    settings = config.require(layout)
    role = roles.load(layout, want.role)
    queue = features.load(layout)
    feature = _feature(want, role, queue, live)
    wanted = lease.claims_of(role.capability, feature.id if feature else "")
    for claim in wanted:
        lease.require_free(live, claim)
    tier = confine.tier(layout, settings)
    configured = [registry.PERSON] if want.trigger == runs.ENTERED else want.agents or roles.agents_of(settings, role)
    if role.plans:
        contract_log.load(layout)  # else a fault would only appear after the agent was paid
    claims = _validated(layout, feature, queue if role.judges and not feature else [])
    _report_update(layout)
    agents = _agents(want, role, configured, settings, feature)
    reserved = reservations.reserve(layout, settings, live, role.name, [name for name, _ in agents.available])
    starting.write_generated(layout)
    name = workplace.free_tree([one.tree for one in live])
    tree = workplace.bring(layout, made, name)
    for line in filter(None, [*tree.notes, tree.unlanded]):
        console.print_line(f"  {line}")
    tree.notes.clear()
    reconcile.accept_edits(layout)
    reserved |= {"machine": _machine(want, role, settings, feature)}
    own = _leased(want, feature, role, wanted, name, tier, reserved)
    context = _context(want, own.terms, configured, feature, tree)
    outcome = Outcome.begun(layout, context.tree)
    outcome.landing = LandingResult(unlanded=tree.unlanded, conflicts=tree.conflicts, theirs=tree.theirs)
    outcome.take_queue(queue, context.feature)
    run = OpenRun(
        layout=layout,
        context=context.replace(confined="" if tier == NONE or want.trigger == runs.ENTERED else tier),
        mission=made,
        settings=settings,
        role=role,
        claims=claims,
        lease=own,
        outcome=outcome,
        started=time.monotonic(),
        left=min(want.left, max(3600 * settings.max_hours - runs.totals(layout).seconds, 0) or float("inf")),
        verbs=want.verbs,
    )
    return run, agents, tree


def _leased(
    want: RunRequest,
    feature: Feature | None,
    role: Role,
    claims: list[str],
    tree: str,
    tier: str,
    reserved: dict[str, Any],
) -> Lease:
    """The folder and the lease of the new run."""
    layout, about = want.layout, feature.id if feature else ""
    run_id, _ = runs.make(layout, want.wish or runs.new_id(role.name, about, clock.now()))
    terms = Terms(
        run=run_id,
        role=role.name,
        pid=os.getpid(),
        since=clock.stamp(clock.now()),
        feature=about,
        tree=tree,
        claims=[*claims, lease.tree(tree)],
        sealed=tier == BUBBLEWRAP or want.trigger == runs.ENTERED,
        **reserved,
    )
    own = Lease(layout, terms)
    own.take()
    if not terms.sealed:
        reconcile.keep_committed(layout)
    return own


def _in_tree(want: RunRequest, run: OpenRun, agents: AgentChoice, tree: Tree) -> tuple[OpenRun, AgentChoice]:
    """The run in its prepared tree, with the agents that this tree permits."""
    layout, settings, tier = run.layout, run.settings, confine.tier(run.layout, run.settings)
    workplace.prepare(layout, tree, settings.carry)
    modules = starting.submodules_of(layout, tree.position.head, tree.folder)
    tree.notes += [f"warning: {one}" for one in modules if one.fault]
    for line in [*_unconfined(layout, tier), *tree.notes]:
        console.print_line(f"  {line}")
    available = [name for name, _ in agents.available]
    found = workspace_inputs.look(layout, settings, tree.position.head, tree.folder, run.role.reads, available)
    for line in found.faults if found else ():
        console.print_line(f"  left out: {line}")
    tools, held = found.tools if found else None, workspace_inputs.playbooks(layout, tree.position.head)
    if (tools and tools.restricts) or held:  # excludes agents that cannot enforce it, and uses a person's own playbooks
        agents = _agents(want, run.role, run.context.agent, settings, run.outcome.feature, tools, held)
    run = run.replace(
        context=run.context.replace(untracked=worktrees.digests(tree.folder, tree.untracked)),
        confinement=confine.of_mission(layout, settings, tree.folder, tier),
        home=confine.home_of_checks(layout.folders.top, tree.folder + ".home", settings.home),
        started=time.monotonic(),
    )
    if run.lease.terms.machine:
        there = [agent for _, agent in agents.available if isinstance(agent, MachineAgent)]
        run = run.replace(machine=lanes.opened(run, there))
    return run, agents.replace(workspace=found)


def _unconfined(layout: Layout, tier: str) -> list[str]:
    """A line for the first of consecutive unconfined runs."""
    last = next(iter(runs.finished(layout)), None)
    return [UNCONFINED] if tier == NONE and (last is None or last.confined) else []


def _recorded(layout: Layout) -> dict[str, list[Any]]:
    """The ledger; stores objects for managed files that people changed since the last snapshot."""
    rows, state = journal.read_ledger(layout), State(layout)
    for name, (digest, _) in rows.items():
        if digest and not os.path.exists(objects.path_of(layout, digest)):
            objects.put(layout, state.data(name) or b"")
    return rows


def _begin(run: OpenRun, want: RunRequest) -> None:
    """Record the opening of the run; for a role that commits, the feature is now in progress, if wanted again with attempts
    reset."""
    outcome = run.outcome
    layout = run.layout
    objects.keep(layout, run.context.live)
    State(layout).put(names.of_run(run.id, names.CONTEXT), encoding.dump_json(run.context.asdict()), mode=PRIVATE)
    with mission_lock.held(layout) as lock:
        lock.sign({"pid": os.getpid(), "run": run.id, "since": run.context.at})
        if not (outcome.feature and run.changes_tree):
            return
        outcome.begin_changes()
        feature = features.find(outcome.features, run.context.feature)
        if want.again:
            features.restart(feature, "retry", outcome.at, "worked on again")
        features.move(feature, want.event)
        outcome.save()
        State(layout).commit(outcome.changes)
    outcome.changes = Changes()


def _report_update(layout: Layout) -> None:
    """Print a line if the last run used another version of the harness."""
    last, now = next(runs.finished(layout), None), starting.version()
    if last and last.version not in ("", now):
        console.print_line(f"  the harness was updated: the last run had {last.version}, from here on it is {now}")


def _validated(layout: Layout, feature: Feature | None, swept: list[Feature]) -> list[Claim]:
    """The feature's claims; raises BrokenFile if any source of a prompt or a decision does not parse."""
    contract.require(layout, [feature] if feature else swept)
    issues.load(layout)
    runs.totals(layout)
    pages.curated(layout)
    mission.asked_spec_text(layout)
    for name in (names.SPEC, names.SUMMARY, names.STEER, names.REPOSITORY):
        State(layout).text(name)
    return contract.load(layout).of(feature.claims) if feature else []


def _feature(want: RunRequest, role: Role, queue: list[Feature], live: list[Terms]) -> Feature | None:
    """The requested feature; without one, for a role that commits, the next ready unclaimed one."""
    if role.answers and not want.verbs:
        raise UsageFault(f"A {role.name} answers in a thread of a team: {command('team run THREAD MESSAGE')}")
    if role.judges and not queue:
        raise UsageFault(f"There is no plan yet, so nothing can be judged. Go on with: {command()}")
    if want.again and not (role.commits and want.feature):
        raise UsageFault(f"--again is for a role that commits, and one feature: {command('ROLE FEATURE --again')}")
    if want.feature:
        feature = features.find(queue, want.feature)
        if role.commits or role.judges:
            lease.require_free(live, lease.feature(feature.id))
        if role.commits and feature.status not in features.TRANSITIONS[want.event] and not want.again:
            now = f"{command(role.name)} {feature.id} --again"
            raise (LockBusy if want.looping else UsageFault)(  # a loop decides again after the change
                f"{feature.id} is '{feature.status}': a {role.name} takes what is todo or failing. "
                f"To have it worked on again: {now}   or when its turn comes: {command('feature retry')} {feature.id}"
            )
        return feature
    if not role.commits:
        return None
    able = [one for one in rules.ready(queue) if not lease.holder(live, lease.feature(one.id))]
    if not able:
        raise UsageFault(f"No feature is ready for a {role.name}. See: {command('status')}")
    return able[0]


def _agents(
    want: RunRequest,
    role: Role,
    configured: list[str],
    settings: Config,
    feature: Feature | None,
    tools: ToolsFile | None = None,
    held: Mapping[str, bytes | None] = MappingProxyType({}),
) -> AgentChoice:
    """The agents of the run; raises Unavailable if none is available, unless optional for the role."""
    if want.trigger == "leaving" or (role.agent_optional and configured == [registry.NONE]):
        return AgentChoice(available=[], missing=[])
    layout = want.layout
    asked = registry.choose(configured, layout.folders.project, layout.shown(names.CONFIG))

    def of(name: str) -> registry.Settings:
        found = registry.settings_of(layout, settings, name, role.name, feature, first=name == asked[0], held=held)
        found = _kept_to(tools, found)
        return found.replace(table={"program": want.program}) if want.program else found

    there = _machine(want, role, settings, feature)
    found, missing = registry.available(asked, of, MachineAgent if there else registry.make)
    if not found and not (role.agent_optional and registry.embedded(asked)):
        raise next(iter(missing.values()))
    return AgentChoice(available=found, missing=list(missing))


def _machine(want: RunRequest, role: Role, settings: Config, feature: Feature | None) -> str:
    """The machine of the run, "" for here. A person works here."""
    return "" if want.trigger == runs.ENTERED else lanes.wanted(settings, role, feature is not None)


def _kept_to(tools: ToolsFile | None, settings: registry.Settings) -> registry.Settings:
    """The settings of an agent that is kept to a tools.json; no person is there to answer."""
    return settings.replace(allow=tools.allow, deny=[*tools.deny, *tools.ask]) if tools else settings


def agent_again(
    layout: Layout,
    settings: Config,
    context: RunContext,
    feature: Feature | None,
    name: str,
    model: str,
    given: WorkspaceSnapshot | None,
) -> registry.Agent:
    """An agent, by the present configuration, to repeat a run that was `given` this workspace; raises Unavailable."""
    then = feature and feature.replace(attempts=context.attempt - 1)
    known = registry.settings_of(layout, settings, name, context.role, then)
    known = _kept_to(given.tools if given else None, known)
    known = known.replace(attempt=context.attempt, feature=context.feature, model=model or known.model)
    return registry.make(name, known)


def _context(want: RunRequest, terms: Terms, configured: list[str], feature: Feature | None, tree: Tree) -> RunContext:
    layout, state = want.layout, State(want.layout)
    return RunContext(
        run=terms.run,
        role=want.role,
        feature=feature.id if feature else "",
        trigger=want.trigger,
        reason=want.reason,
        at=terms.since,
        agent=configured,
        attempt=feature.attempts + 1 if feature else 1,
        before=feature.status if feature else "",
        **tree.position.asdict(),
        folder=tree.folder,
        untracked={},
        live=_recorded(layout),
        raw=[state.length(names.RAW), str(state.generation())],
        process=supervise.pid_record(),
        temporary=temporary.base(),
        version=starting.version(),
        started="again" if want.again else "loop" if want.looping else "hand",
    )
