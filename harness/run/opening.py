"""The first step of a run: find every fault before anything is written, then make the run's folder."""

from __future__ import annotations

import os
import time

from harness.agents import registry
from harness.base import clock, console
from harness.base.errors import NeedsPerson, UsageFault
from harness.base.record import Record
from harness.decision import rules
from harness.git import dotgit
from harness.integrity import confine, inside, mission_lock, reconcile, workplace
from harness.integrity.workplace import Tree
from harness.memory import pages
from harness.model import config, contract, contract_log, features, issues, mission, roles, runs
from harness.model.config import Config
from harness.model.contract import Claim
from harness.model.features import Feature
from harness.model.open_run import OpenRun, Outcome, PreImages, Run
from harness.model.roles import Role
from harness.model.runs import Context
from harness.process import supervise
from harness.process.confine import BUBBLEWRAP, NONE
from harness.run import recover, starting
from harness.store import files, journal
from harness.store.layout import Layout, command


class Asked(Record):
    """The request for a run: L0, from the environment and the command line."""

    layout: Layout
    role: str
    feature: str = ""
    wish: str = ""
    trigger: str = ""
    reason: str = ""


class Opened(Record):
    """An open run, the agents to try in turn (none: the run is code alone), and the configured ones that are not installed."""

    run: Run
    agents: list[tuple[str, registry.Agent]]
    missing: list[str]


def asked(role: str, feature: str) -> Asked:
    """L0 from the environment; raises UsageFault inside a run of the same mission, and for a malformed id."""
    env = os.environ
    layout = Layout(env.get("HARNESS_PROJECT") or os.getcwd(), env.get("HARNESS_STATE", ""))
    inside.refuse(layout, f"run {role}")
    named = {"feature": "FEATURE_ID", "wish": "HARNESS_RUN_ID", "trigger": "TRIGGER", "reason": "REASON"}
    given = {name: env.get(variable, "") for name, variable in named.items()}
    if given["wish"]:
        runs.require_id(given["wish"])
    return Asked(layout=layout, role=role, **(given | ({"feature": feature} if feature else {})))


def open_run(want: Asked) -> Opened:
    """Take the mission lock, settle dead runs, check everything, and open the run. Raises a fault with nothing changed."""
    starting.found(want.layout)
    lock = mission_lock.take(want.layout)
    locks: list[files.Lock] = [lock]
    try:
        workplace.use(want.layout)
        for line in recover.recover(want.layout):
            console.print_line(console.sanitise(f"  {line}"))
        if files.length(want.layout.orders):
            from harness.run import orders  # only where an order exists

            orders.apply_pending(want.layout)
        workplace.adopt(want.layout)
        lock.sign({"pid": os.getpid(), "role": want.role, "since": clock.stamp(clock.now())})
        return _opened(want, locks)
    except BaseException:
        for held in reversed(locks):
            held.release()
        raise


def _opened(want: Asked, locks: list[files.Lock]) -> Opened:
    layout = want.layout
    made = mission.load(layout)
    settings = config.load(layout)
    role = roles.load(layout, want.role)
    queue = features.load(layout)
    feature = _feature(want, role, queue)
    tier = confine.tier(layout, settings)
    in_place = workplace.in_place(layout) if settings.workplace == "project" else None
    if in_place:
        _require_clean(made.branch, in_place, role, layout.project)
    configured = roles.agents_of(settings, role)
    if role.plans:
        contract_log.load(layout)  # a fault here would otherwise show only after its agent was paid
    claims = _validated(layout, feature, queue if role.judges and not feature else [])
    _report_update(layout)
    agents, missing = _agents(want, role, configured, settings, feature)
    starting.write_generated(layout)
    tree = in_place or workplace.bring(layout, made, settings.carry)
    for line in filter(None, [*tree.notes, tree.unlanded]):
        console.print_line(console.sanitise(f"  {line}"))
    name, paths = runs.make(layout, want.wish or runs.new_id(role.name, feature.id if feature else "", clock.now()))
    own = files.Lock(paths.lock)
    own.take(wait=True)
    locks.append(own)
    run = OpenRun(
        layout=layout,
        context=_context(want, name, feature, tree, tier, configured),
        mission=made,
        settings=settings,
        role=role,
        claims=claims,
        locks=locks,
        keep=mission_lock.descriptors(locks),
        before=PreImages(),
        started=time.monotonic(),
        confinement=confine.of_mission(layout, settings, tree.folder, tier) if tree.folder else None,
        home=confine.home_of_checks(layout.project, tree.folder + ".home") if tree.folder and tier != NONE else "",
    )
    outcome = Outcome(journal=journal.Journal(layout), tree=run.context.tree, unlanded=tree.unlanded)
    outcome.conflicts = tree.conflicts
    outcome.take_queue(queue, run.context.feature)
    _begin(run, outcome)
    return Opened(run=Run(opened=run, outcome=outcome), agents=agents, missing=missing)


def _begin(run: OpenRun, outcome: Outcome) -> None:
    """Record how the run opened, and keep pre-images of what no agent may change."""
    layout, own = run.layout, run.locks[-1]
    own.sign({"pid": os.getpid(), "role": run.role.name, "feature": run.context.feature, "since": run.context.at})
    files.replace(run.paths.context, files.dump_json(run.context.asdict()), files.PRIVATE)
    if not run.kept:
        dotgit.copy_index(layout.project, os.path.join(run.paths.folder, "index"))
    run.locks[0].sign({"pid": os.getpid(), "run": run.id, "since": run.context.at})
    if outcome.feature and run.changes_tree:
        features.move(outcome.feature, "start")
        outcome.save()
        outcome.journal.commit()
        outcome.journal = journal.Journal(layout)
    if not run.sealed:
        reconcile.keep_copies(run)


def _report_update(layout: Layout) -> None:
    """Print a line where the last run used another version of the harness."""
    last, now = next(runs.finished(layout), None), starting.version()
    if last and last.version not in ("", now):
        console.print_line(f"  the harness was updated: the last run had {last.version}, from here on it is {now}")


def _validated(layout: Layout, feature: Feature | None, swept: list[Feature]) -> list[Claim]:
    """The feature's claims; raises BrokenFile where any source of a prompt or a decision does not parse."""
    contract.require(layout, [feature] if feature else swept)
    issues.load(layout)
    runs.totals(layout)
    pages.parse_curated(files.read(layout.curated), layout.curated)
    for path in (layout.asked_spec, layout.spec, layout.summary, layout.steer):
        files.read_text(path)
    return contract.load_some(layout, feature.claims if feature else [])


def _feature(want: Asked, role: Role, queue: list[Feature]) -> Feature | None:
    """The requested feature; without one, for a role that commits, the next that is ready."""
    if want.feature:
        feature = features.find(queue, want.feature)
        if role.commits and feature.status not in features.TRANSITIONS["start"]:
            raise UsageFault(
                f"{feature.id} is '{feature.status}': a {role.name} takes what is todo or failing. "
                f"To have it worked on again: {command('feature retry')} {feature.id}"
            )
        return feature
    if not role.commits:
        return None
    able = rules.ready(queue)
    if not able:
        raise UsageFault(f"No feature is ready for a {role.name}. See: {command('status')}")
    return able[0]


def _require_clean(branch: str, state: Tree, role: Role, project: str) -> None:
    """Raises NeedsPerson on another branch than the mission's, or with uncommitted changes where the role commits or judges."""
    if state.position.branch != branch:
        here = state.position.branch or "a detached HEAD"
        raise NeedsPerson(
            f"The mission works on the branch {branch}, but {project} is on {here}. Go back: git switch {branch}"
        )
    if (role.commits or role.judges) and state.dirty:
        shown = "\n".join(f"  {path}" for path in state.dirty[:10])
        more = f"\n  … and {len(state.dirty) - 10} more" if len(state.dirty) > 10 else ""
        raise NeedsPerson(
            f"Tracked files differ from the last commit, so nothing is started:\n{shown}{more}\n"
            f"Keep them: git commit -am 'your words'   or put them aside: git stash"
        )


def _agents(
    want: Asked, role: Role, configured: list[str], settings: Config, feature: Feature | None
) -> tuple[list[tuple[str, registry.Agent]], list[str]]:
    """The available agents and the names of missing ones; raises Unavailable without any, unless optional for the role."""
    if want.trigger == "leaving":
        return [], []
    layout = want.layout
    names = registry.choose(configured, layout.project, layout.relative(layout.config))

    def of(name: str) -> registry.Settings:
        return registry.settings_of(layout, settings, name, role.name, feature, first=name == names[0])

    found, missing = registry.available(names, of)
    if not found and not (role.agent_optional and registry.embedded(names)):
        raise next(iter(missing.values()))
    return found, list(missing)


def _context(want: Asked, name: str, feature: Feature | None, tree: Tree, tier: str, configured: list[str]) -> Context:
    layout = want.layout
    return Context(
        run=name,
        role=want.role,
        feature=feature.id if feature else "",
        trigger=want.trigger,
        reason=want.reason,
        at=clock.stamp(clock.now()),
        agent=configured,
        attempt=feature.attempts + 1 if feature else 1,
        before=feature.status if feature else "",
        **tree.position.asdict(),
        folder=tree.folder,
        confined="" if tier == NONE else tier,
        untracked=workplace.digests(tree.folder or layout.project, tree.untracked),
        live=journal.adopt(layout),
        raw=files.fingerprint(layout.raw),
        identity={} if tier == BUBBLEWRAP else reconcile.identity_copies(layout),
        process=supervise.pid_record(),
        dirty=reconcile.dirty_copies(layout, tree.dirty),
        version=starting.version(),
    )
