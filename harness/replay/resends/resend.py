"""Sends the prompt of a past run again: unchanged, to any agent, in a temporary place, any number of times.

A resend is a run whose project, state and inbox are elsewhere, so the steps of a live run execute it. Nothing of it reaches
the mission.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from harness.base import clock, encoding
from harness.base.errors import GuardianKilled, HarnessError, Interruption, NeedsPerson, RequestRefused
from harness.base.record import Record
from harness.decision import rules, views
from harness.git.checkouts import clones
from harness.mission import config, contract, features, lease, mission, roles, runs
from harness.mission.config import Config
from harness.mission.lease import Lease, Terms
from harness.mission.open_run import OpenRun, Outcome
from harness.process import supervise, temporary, tree
from harness.proof import check_runs
from harness.replay import _staging
from harness.replay._staging import ReplicaFolder, Stage
from harness.replay.resends import prompt_swap, replays, state_at_run
from harness.replay.resends.prompt_swap import PromptSwap
from harness.replay.resends.replays import ReplayRecord, Sample
from harness.replay.resends.state_at_run import RunAtOpen
from harness.run import closing, opening, prompt, reconcile, reservations, steps, thinking, workspace_inputs
from harness.run.opening import AgentChoice
from harness.run.requests import verbs
from harness.state import files, journal, names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import confine, run_detection, workplace

PATCH = "work.patch"
NO_REPLICA = "the place cannot be read after the agent"
COPIED = (names.REPLY, names.REPLY_FAULT, names.NOTES)  # from the folder of the resent run


class ResendRequest(Record):
    """A request: a run of the mission or of an archived one (`where`), agent and model, swaps, the number of samples."""

    layout: Layout
    where: Layout
    run: str
    agent: str
    model: str = ""
    swaps: list[PromptSwap] = []
    words: list[str] = []
    times: int = 1


class SampleDetail(Record):
    """A sample with its patch and its reply, for the comparison."""

    sample: Sample
    patch: bytes
    reply: str


def previewed(order: ResendRequest) -> list[str]:
    """The difference that the swaps make to the prompt, without a resend."""
    past, folder = state_at_run.of_run(order.where, order.run), temporary.create("swap")
    try:
        place = _staging.place_in(folder, order.layout.folders.prefix)
        state_at_run.write(past, place.layout, place.identities)
        old = state_at_run.parts_of(past)
        new = _swapped(order, past, place, old)
        return prompt_swap.diff(prompt.text_of(old), prompt.text_of(new))
    finally:
        temporary.remove(folder)


def _swapped(
    order: ResendRequest, past: RunAtOpen, place: ReplicaFolder, parts: list[prompt.Part]
) -> list[prompt.Part]:
    for swap in order.swaps:
        parts = prompt_swap.swapped(past, place.layout, place.identities, parts, swap)
    return parts


def fire_again(order: ResendRequest) -> Iterator[ReplayRecord | SampleDetail]:
    """Send it again: yields the replay's record, then each sample as it ends. Raises UsageFault inside a run, NeedsPerson if a
    cap of the mission is used up, Unavailable if the agent cannot start."""
    layout = order.layout
    run_detection.refuse(layout, "replay --agent")
    made, past = mission.load(layout), state_at_run.of_run(order.where, order.run)
    settings = config.load(layout)
    tag = temporary.of_process(f"{made.id}/replay")
    temporary.remove_abandoned(f"{made.id}/replay")
    capped(layout, settings)
    given = workspace_inputs.kept_of(past.where, past.context.run)
    # This raises Unavailable before anything is written.
    opening.agent_again(layout, settings, past.context, None, order.agent, order.model, given)
    replay = replays.begin(layout, order.run)
    for number in range(1, order.times + 1):
        limits = capped(layout, settings)
        kept, folder = replays.folder_of(layout, replay, number), temporary.create("replay", tag)
        try:
            stage = _staging.make(layout, past, settings, folder)
            stage.parts = _swapped(order, past, stage.place, stage.parts)
            if number == 1:
                yield _about(order, past, replay, stage)
            yield _sample(
                _SampleJob(order=order, past=past, stage=stage, settings=limits, number=number, kept=kept, tag=tag)
            )
        finally:
            tree.sweep(tag)
            temporary.remove(folder)


def capped(layout: Layout, settings: Config) -> Config:
    """The settings with the mission's remaining caps, less live runs and earlier replays. Raises NeedsPerson if nothing
    remains."""
    cost, tokens = replays.spent(layout)
    totals = reservations.with_reserved(runs.totals(layout), lease.alive(layout))
    sums = totals.replace(cost_usd=(totals.cost_usd or 0.0) + cost, tokens=(totals.tokens or 0) + tokens)
    gone = [cap for cap in rules.spent(views.limits_of(settings, layout), sums) if cap.name in closing.PAID]
    if gone:
        raise NeedsPerson(
            f"Nothing is sent: {gone[0].words}, replays counted. Raise it in {layout.shown(names.CONFIG)}."
        )
    left = {"max_cost_usd": sums.cost_usd, "max_tokens": sums.tokens}
    return settings.replace(
        **{name: most - (spent or 0) for name, spent in left.items() if (most := getattr(settings, name)) is not None}
    )


def _about(order: ResendRequest, past: RunAtOpen, replay: str, stage: Stage) -> ReplayRecord:
    """Record the replay."""
    data, context = prompt.text_of(stage.parts), past.context
    made = ReplayRecord(
        id=replay,
        run=order.run,
        role=context.role,
        feature=context.feature,
        agent=order.agent,
        model=order.model,
        at=clock.stamp(clock.now()),
        times=order.times,
        swaps=order.words,
        mounted=stage.mounted,
        digest=encoding.digest(data),
        prompt_bytes=len(data),
    )
    folder = f"{order.layout.path(names.REPLAYS)}/{replay}"
    replays.keep(folder, names.PROMPT, data)
    replays.keep(folder, replays.ABOUT, encoding.dump_json(made.asdict()))
    return made


class _SampleJob(Record):
    """One sample job: the request, the place, the remaining caps, the folder of its results, the tag of its processes."""

    order: ResendRequest
    past: RunAtOpen
    stage: Stage
    settings: Config
    number: int
    kept: str
    tag: str

    @property
    def staged(self) -> Layout:
        """The layout of the mission in the place."""
        return self.stage.place.layout


def _sample(one: _SampleJob) -> SampleDetail:
    """Open the run in its place, let the agent work, and evaluate the result; an interruption is raised again at the end."""
    run, agents = _open(one)
    outcome, cut = run.outcome, None
    notes, patch = list(one.stage.notes), b""
    try:
        notes += _set_up(run)
        data = prompt.text_of(one.stage.parts)
        State(run.layout).put(names.of_run(run.id, names.PROMPT), data, mode=files.PRIVATE)
        thinking.think(run, agents, data.decode(), _stable_bytes(one.stage))
    except (Interruption, GuardianKilled) as fault:
        cut, outcome.ended, outcome.reason = fault, "killed", "interrupted"
    except OSError as fault:
        outcome.ended, outcome.reason = "agent_error", f"{NO_REPLICA}: {fault}"
    try:
        checks, fault_words = ([], "interrupted") if cut else _looked_at(run)
        patch = clones.patch(run.layout.folders.top, run.context.head, outcome.work.tree) if outcome.work.tree else b""
        notes += [f"reverted: {name}" for name in outcome.work.refused if name not in one.past.context.dirty]
    except (HarnessError, OSError) as fault:
        checks, fault_words = [], f"{NO_REPLICA}: {fault}"
    finally:
        run.lease.release()
    detail = _kept(one, run, checks, fault_words, patch, notes)
    if cut:
        raise cut
    return detail


def _open(one: _SampleJob) -> tuple[OpenRun, AgentChoice]:
    """The open run; project, state and inbox are those of the place."""
    staged, past, layout = one.staged, one.past, one.order.layout
    role, queue = roles.load(layout, past.context.role), features.load(staged)
    feature = next((known for known in queue if known.id == past.context.feature), None)
    claims = contract.load(staged).of(feature.claims) if feature else []
    files.make_folder(staged.run(past.context.run).folder)
    sealed = one.stage.confinement is not None and one.stage.mounted
    terms = Terms(run=past.context.run, role=role.name, pid=os.getpid(), since=clock.stamp(clock.now()), sealed=sealed)
    own = Lease(staged, terms)
    own.take()
    before = runs.totals(staged)
    settings = one.settings.replace(
        **{
            name: (spent or 0) + left
            for name, spent in (("max_cost_usd", before.cost_usd), ("max_tokens", before.tokens))
            if (left := getattr(one.settings, name)) is not None
        },
    )
    known = one.stage.confinement
    run = OpenRun(
        layout=staged,
        context=_context(one, known.tier if known else ""),
        mission=mission.load(staged),
        settings=settings,
        role=role,
        claims=claims,
        lease=own,
        outcome=Outcome.begun(staged, ""),
        started=time.monotonic(),
        confinement=known,
        home=confine.home_of_checks(staged.folders.top, one.stage.place.tree + ".home", settings.home),
        transcripts=one.kept,
        mark=one.tag,
    )
    run.outcome.take_queue(queue, past.context.feature)
    order, given = one.order, workspace_inputs.again(past.where, past.context.run, staged)
    agent = opening.agent_again(order.layout, one.settings, past.context, feature, order.agent, order.model, given)
    return run, AgentChoice(available=[(order.agent, agent)], missing=[], workspace=given)


def _context(one: _SampleJob, tier: str) -> runs.RunContext:
    """The original context, in the tree of the place."""
    staged, context = one.staged, one.past.context
    made = context.replace(
        at=clock.stamp(clock.now()),
        agent=[one.order.agent],
        untracked={},
        live=journal.read_ledger(staged),
        raw=[State(staged).length(names.RAW), context.raw[1]],
        process=supervise.pid_record(),
        dirty={},
        folder=one.stage.place.tree,
        confined=tier,
        temporary=temporary.base(),
    )
    State(staged).put(names.of_run(context.run, names.CONTEXT), encoding.dump_json(made.asdict()), mode=files.PRIVATE)
    return made


def _set_up(run: OpenRun) -> list[str]:
    """Run the contract's setup if the role commits; files untracked after it are not the agent's work."""
    outcome = run.outcome
    if run.changes_tree and outcome.contract.setup:
        outcome.checks.setup_fault = check_runs.setup_fault(outcome.contract, run.place())
    workplace.leave_untracked(run)
    return [f"the setup is red: {outcome.checks.setup_fault}"] if outcome.checks.setup_fault else []


def _stable_bytes(stage: Stage) -> int:
    """The length of the prefix that is the same from run to run: up to the memory."""
    size = 0
    for part in stage.parts:
        if part.data.startswith(prompt.MEMORY.encode()):
            return size
        size += len(part.data)
    return 0


def _looked_at(run: OpenRun) -> tuple[list[list[str]], str]:
    """Evaluate the run: its work as a tree, its reply, and [claim, verdict] of each check of that time in the clone, or why there
    are none."""
    reconcile.tree(run, run.outcome)
    steps.take_reply(run)
    if not run.claims:
        return [], ""
    try:
        fired = list(verbs.fired(run.layout, run.context.feature, run.place()))
    except RequestRefused as fault:  # the setup is red
        return [], str(fault)
    return [[receipt.claim, receipt.verdict] for receipt in fired], ""


def _kept(
    one: _SampleJob, run: OpenRun, checks: list[list[str]], fault: str, patch: bytes, notes: list[str]
) -> SampleDetail:
    """Write the result, the work, the reply and the notes to their lasting folder."""
    outcome = run.outcome
    used = closing.used_by(outcome, run.settings)
    sample = Sample(
        number=one.number,
        agent=one.order.agent,
        outcome=outcome.ended,
        reason=outcome.reason,
        seconds=run.seconds(),
        usage=used.asdict() if used else None,
        uncounted=int(closing.uncounted(outcome, run.settings, used)),
        at=run.context.at,
        verdict=str((outcome.reply or {}).get("outcome") or (outcome.reply or {}).get("verdict") or ""),
        checks=checks,
        fault=fault,
        changed=_staging.changed(patch),
        notes=notes,
    )
    state, reply = State(run.layout), ""
    for name in COPIED:
        data = state.data(names.of_run(run.id, name))
        if data is not None:
            replays.keep(one.kept, name, data)
            reply = data.decode("utf-8", "replace") if name == names.REPLY else reply
    replays.keep(one.kept, PATCH, patch)
    replays.keep(one.kept, names.RESULT, encoding.dump_json(sample.asdict()))
    return SampleDetail(sample=sample, patch=patch, reply=reply)


def hint(run_id: str) -> str:
    """The command that sends a run's prompt again, with a placeholder for the agent."""
    return f"{command('replay')} {run_id} --agent NAME"
