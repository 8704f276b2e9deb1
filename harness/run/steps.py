"""One run in six steps, the same for all roles: open -> compose -> think -> reconcile -> settle -> close."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from harness.base import clock, console, errors, faults, redaction
from harness.base.errors import GuardianKilled, Interruption, RequestRefused, RunCut, UsageFault, VersionConflict
from harness.base.exits import guarded, handle_signals
from harness.base.record import Record
from harness.decision import checkpoints, gaps, rules, views
from harness.mission import config, order_log, replies, roles, runs
from harness.mission.open_run import OpenRun, Outcome, Verbs, add_notes
from harness.mission.runs import RunResult
from harness.process import supervise
from harness.proof import check_runs
from harness.run import _inputs, closing, opening, prompt, reconcile, thinking, workspace_inputs
from harness.run.notice import hooks
from harness.run.opening import AgentChoice, RunRequest
from harness.run.requests import orders
from harness.run.settle import worker
from harness.state import manifests, names
from harness.state.files import PRIVATE
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import confine, mission_lock, workplace
from harness.workspace.snapshot import WorkspaceSnapshot

LOOP = "HARNESS_LOOP"
MAX_PID_DIGITS = 20
REASON_CHARS = 140
AGAIN = "--again"
DRY = "--dry"  # only check that the script starts
ATTEMPTS = 5  # to settle on files that a person is editing


def main(
    role: str,
    settle: Callable[[OpenRun], None],
    prepare: Callable[[OpenRun], bool] | None = None,
    examine: Callable[[OpenRun], object] | None = None,
) -> int:
    """One run of a role, and its exit code. Every role script ends in this call.

    `prepare` precedes the prompt, and returns whether to ask an agent. `examine` may take long (checks of the reply).
    `settle` is quick: it holds the mission lock, and works on the present queue and contract.
    """
    if DRY in sys.argv[1:]:
        return errors.DONE
    console.go_on_unread()
    handle_signals()
    return guarded(lambda: _live_with_loop() or _main(role, RoleSteps(settle=settle, prepare=prepare, examine=examine)))


class RoleSteps(Record):
    """The role-specific functions of the steps."""

    settle: Callable[[OpenRun], None]
    prepare: Callable[[OpenRun], bool] | None
    examine: Callable[[OpenRun], object] | None


def _live_with_loop() -> int:
    """Tie this process to the looping run.sh that started it; returns an exit code if that is gone, else 0."""
    word = os.environ.get(LOOP) or "0"
    if not (word.isascii() and word.isdigit() and len(word) < MAX_PID_DIGITS):
        raise UsageFault(
            f"{LOOP} is '{word[:40]}', which is not a process id. Only run.sh sets it; remove it: unset {LOOP}"
        )
    if not int(word):
        return errors.DONE
    if os.getppid() != int(word):
        return errors.TERMINATED
    supervise.end_with_parent(int(word))  # a later kill of run.sh ends the run too
    return errors.DONE


def _main(role: str, steps: RoleSteps) -> int:
    named = [word for word in sys.argv[1:] if word != AGAIN]
    if len(named) > 1 or any(word[:1] == "-" for word in named):
        near = errors.suggestion(named[0], [AGAIN])
        raise UsageFault(f"A role takes at most one feature: run.sh {role} [FEATURE] [{AGAIN}].{near}")
    return _live(opening.asked(role, *named, again=AGAIN in sys.argv[1:]), steps)


def enter(layout: Layout, feature: str, program: list[str]) -> int:
    """One run in which a person works on the feature with this program, instead of a worker's agent; returns the exit
    code."""
    role = roles.due(layout)["commits"]
    want = RunRequest(layout=layout, role=role, feature=feature, trigger=runs.ENTERED, program=program)
    return _live(want, RoleSteps(settle=worker.settle, prepare=None, examine=None))


def answer(layout: Layout, agents: list[str], more: Verbs) -> tuple[int, str]:
    """One run of the role that answers the waiting notes of people: its exit code, and its answer or why there is none. `agents`:
    instead of the configured; `more`: verbs of its inbox. Raises NeedsPerson at a cap on cost or tokens."""
    said, limits = list[str](), views.limits_of(config.load(layout), layout)
    if spent := [cap.words for cap in rules.spent(limits, runs.totals(layout)) if cap.name in closing.PAID]:
        raise errors.NeedsPerson(f"A cap in config.toml is reached: {spent[0]}.")
    want = RunRequest(layout=layout, role=roles.due(layout)["answers"], agents=agents, verbs=more)
    code = _live(want, RoleSteps(settle=lambda run: said.extend(run.outcome.messages[-1:]), prepare=None, examine=None))
    return code, redaction.received(said[-1]) if said else next(runs.finished(layout)).reason


def _live(want: RunRequest, steps: RoleSteps) -> int:
    """All steps of a run, and its exit code."""
    run, agents = opening.open_run(want)
    if lane := os.environ.get(console.LANE):  # with several lanes, run.sh cannot know which one claims the work
        where = run.lease.terms.machine and f"on {run.lease.terms.machine}"
        console.print_line(f"> lane {lane}: {' '.join(filter(None, (want.role, run.context.feature, where)))}")
    try:
        result, signum = _carry_out(run, agents, steps)
    finally:
        run.lease.release()
    if run.capability != "answers":
        closing.escalate(run.layout, run.outcome.features, clock.now())
    warnings = [*result.secrets, *closing.crossed(run, result)]
    warnings += [f"not in your commit: {path}" for path in result.kept_out] if run.entered else []
    warnings += workspace_inputs.words(run.outcome.landing.unaccepted)
    if result.accepted:
        warnings += gaps.find(run.outcome.prompt.spec, run.outcome.features)
    lines = [line_of(result), *(console.sanitise(f"  warning: {line}") for line in warnings)]
    console.print_line("\n".join(lines))
    if hooks.every(run.settings) and not signum:
        for line in hooks.after_run(run.layout, run.settings):
            console.print_line(f"  warning: {line}")
    if signum == signal.SIGKILL:
        return errors.SIGNALLED + signum if os.environ.get(LOOP) else errors.BUSY
    return errors.signal_code(signum) if signum else exit_code(result)


def _carry_out(run: OpenRun, agents: AgentChoice, steps: RoleSteps) -> tuple[RunResult, int]:
    """Steps two to six; returns the result and the signal that interrupted the run, if any."""
    try:
        signum = _work(run, agents, steps)
    finally:
        if run.machine:
            run.machine.close()
    clock.await_settling()
    run.outcome.work.refused += confine.disarm(run.checkout)
    return _settle_and_close(run, steps), signum


def _work(run: OpenRun, agents: AgentChoice, steps: RoleSteps) -> int:
    """The steps that may take long; returns the signal that interrupted the run, if any."""
    outcome, signum = run.outcome, 0
    try:
        wanted = steps.prepare(run) if steps.prepare else _set_up(run)
        text, stable_bytes = compose(run, agents.workspace)
        if wanted:
            thinking.think(run, agents, text, stable_bytes)
    except (Interruption, GuardianKilled) as fault:
        signum = _cut(outcome, fault)
    if not run.sealed:
        reconcile.state(run, outcome)
    reconcile.tree(run, outcome)
    take_reply(run)
    if steps.examine and outcome.ended in runs.GOOD:
        try:
            steps.examine(run)
        except GuardianKilled as fault:
            signum = _cut(outcome, fault)
    return signum


def _cut(outcome: Outcome, fault: Interruption | GuardianKilled) -> int:
    """End the run as killed; returns the signal, 0 if the lane goes on."""
    if isinstance(fault, RunCut):
        outcome.ended, outcome.reason = "killed", str(fault)
        return 0
    signum = fault.signum if isinstance(fault, Interruption) else signal.SIGKILL
    outcome.ended = "killed"
    outcome.reason = str(fault) if signum == signal.SIGKILL else f"interrupted by signal {signum}"
    return signum


def _settle_and_close(run: OpenRun, steps: RoleSteps) -> RunResult:
    """Apply the run's outcome to the present state and close it, in one commit under the mission lock. If a person
    changes a file by hand meanwhile, it starts over on the new content."""
    outcome = run.outcome
    ended, reason = outcome.ended, outcome.reason
    with mission_lock.held(run.layout):
        for attempt in range(ATTEMPTS):
            outcome.ended, outcome.reason = ended, reason
            outcome.begin_changes()
            settled(run, steps.settle)
            worker.hand_conflict(run, outcome)
            if outcome.landing.commit:
                outcome.landing.unlanded = workplace.land(run.layout, run.mission, outcome.landing.commit)
            try:
                result = closing.close(run, outcome, run.settings, run.seconds())
                break
            except VersionConflict:
                if attempt == ATTEMPTS - 1:
                    raise
        State(run.layout).remove(f"{names.LOCKS}/{runs.LEASE}{run.id}")
        if order_log.pending(run.layout):
            orders.apply_pending(run.layout)
    return result


def _set_up(run: OpenRun) -> bool:
    """Run the contract's setup in the tree of a role that commits, once per commit; a red one is shown to its agent."""
    if run.changes_tree:
        run.outcome.checks.setup_fault = check_runs.setup_once(run.layout, run.outcome.contract, run.place())
        workplace.leave_untracked(run)
    return True


def compose(run: OpenRun, workspace: WorkspaceSnapshot | None) -> tuple[str, int]:
    """Write the prompt and its manifest (its parts in order); returns the text and the length of its stable prefix."""
    workspace_inputs.keep(run, workspace)
    gathered = _inputs.gather(run, workspace)
    parts = prompt.compose(gathered)
    manifest = manifests.rendered(run.layout, [(part.data, part.source) for part in parts])
    data, state = prompt.text_of(parts), State(run.layout)
    state.put(names.of_run(run.id, names.MANIFEST), manifest, mode=PRIVATE)
    state.put(names.of_run(run.id, names.PROMPT), data, mode=PRIVATE)
    return data.decode(), len(prompt.text_of(prompt.stable(gathered)))


def take_reply(run: OpenRun) -> None:
    """Take the reply saved by `harness reply`, else the block in the agent's messages, with its notes and issues. An
    invalid one ends the run as agent_error, as does a run that changed nothing, whose commands all failed alike."""
    outcome = run.outcome
    state, name = State(run.layout), names.of_run(run.id, names.REPLY)
    data = state.data(name)
    kept = None if data is None else data.decode("utf-8", "replace")  # an agent can write this file directly
    if kept is None and outcome.messages:
        state.put(name, redaction.received(outcome.messages[-1]).encode(), mode=PRIVATE)
    if outcome.ended not in runs.GOOD:
        return
    refused = "" if kept is not None else state.text(names.of_run(run.id, names.REPLY_FAULT)) or ""
    try:
        outcome.reply = replies.find(run.capability, [kept] if kept is not None else outcome.messages)
    except RequestRefused as fault:
        outcome.ended, outcome.reason = "agent_error", "; ".join(filter(None, [str(fault), outcome.reason]))
        return
    if outcome.reply is None and refused:
        outcome.answer.reply_fault = redaction.received(f"{replies.REFUSED}{refused.strip()}")
        outcome.reason = "; ".join(filter(None, [outcome.answer.reply_fault, outcome.reason]))
    reply = outcome.reply or {}
    try:  # for agents that run no commands
        add_notes(run.layout, run.context, [(note["tag"], note["text"]) for note in reply.get("notes", [])])
    except UsageFault as fault:
        outcome.reason = str(fault)
    outcome.issues += reply.get("issues", [])
    idle = outcome.work.tree == run.context.tree and (not reply or reply.get("status") == "implemented")
    if outcome.answer.failing and idle and run.capability in ("plans", "commits", "specifies"):
        outcome.ended = "agent_error"
        outcome.reason = "; ".join(filter(None, [outcome.answer.failing, outcome.reason]))


def settled(run: OpenRun, settle: Callable[[OpenRun], None]) -> None:
    """Apply the reply with the role's function; an interrupted run only keeps its tree."""
    outcome = run.outcome
    by_code = run.role.curates and outcome.ended not in ("killed", "refused")  # compaction needs no agent
    if outcome.ended in runs.GOOD or by_code:
        settle(run)
        _ask_person(run)
        if outcome.feature and run.changes_tree and outcome.feature.status == "in_progress":
            worker.settle(run)  # so a user's own role need not do it
    elif run.context.feature and run.changes_tree:
        worker.cut_short(run, outcome)


def _ask_person(run: OpenRun) -> None:
    """Stage the checkpoint requested by the agent, and mark people's requests in its prompt as planned with its plan."""
    outcome, asked = run.outcome, (run.outcome.reply or {}).get("checkpoint")
    if not (asked or outcome.prompt.requests) or outcome.decision.accepted is False:
        return

    row = {"at": outcome.at, "by": run.id}
    lines = [
        checkpoints.line(**row, id=name, state="planned")
        for name in outcome.prompt.requests
        if outcome.decision.accepted
    ]
    if asked:
        words = {"name": asked["name"], "text": asked["text"][: checkpoints.MAX_TEXT_CHARS]}
        lines.append(checkpoints.line(**row, state="asked", cause=run.id, **words))
    outcome.changes.append(names.CHECKPOINT_LOG, b"".join(lines))


def line_of(result: RunResult) -> str:
    """The summary of a run: one line, or the whole reason if a person must repair the agent."""
    what = " ".join(part for part in (result.role, result.feature) if part)
    words = [word for word in (result.said, result.commit[:10]) if word]
    whole = result.reason.replace("\n", "\n    ") if result.outcome in thinking.NEEDS_HELP else ""
    reason = whole or faults.first(result.reason, REASON_CHARS)
    return console.sanitise(f"  {what:<20} {' '.join(words):<20} {result.seconds:6.1f} s  {reason}".rstrip())


def exit_code(result: RunResult) -> int:
    """0 for a settled run; 10 for a negative result of a run started by hand; 69 and 75 if no agent could answer."""
    if result.outcome in thinking.NEEDS_HELP:
        return errors.UNAVAILABLE
    if os.environ.get(LOOP):
        return errors.DONE
    if result.outcome == "limit":
        return errors.BUSY
    return errors.NEGATIVE if result.negative else errors.DONE
