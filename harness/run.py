"""One run: open -> compose -> think -> reconcile -> settle -> close. Six steps, no seventh; what all roles share."""

from __future__ import annotations

import gc
import json
import os
import sys

from harness import (
    clock,
    closing,
    console,
    environment,
    errors,
    files,
    masking,
    material,
    objects,
    opening,
    process,
    prompt,
    reconcile,
    replies,
    runs,
    work,
)
from harness.agents import Desk
from harness.agents.base import Event, Finished
from harness.current import Run
from harness.errors import Interrupted, Refused, UsageFault
from harness.guarded import guarded, listen
from harness.opening import Opened
from harness.raw import CURATOR
from harness.record import Record
from harness.runs import Result
from harness.transcript import MIB, Recent, Transcript
from harness.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.agents.base import Agent

NEEDS_HELP = ("auth", "config")
RETRYABLE = ("limit", *NEEDS_HELP)
LOOP = "HARNESS_LOOP"
REASON_CHARS = 90
STARTUP_SECONDS = 120.0
UNSTATED_SECONDS = 300  # an agent that met a limit without a time is passed over for so long, where another can answer


def main(
    role: str,
    settle: Callable[[Run], None],
    prepare: Callable[[Run], bool] | None = None,
    *,
    agent_optional: bool = False,
) -> int:
    """What every role script ends in: one run of the role, and its exit code."""
    listen()
    loop = int(os.environ.get(LOOP) or 0)
    if loop and os.getppid() != loop:
        return errors.TERMINATED  # the loop was killed before we began
    if loop:
        process.live_with(loop)  # and when it is killed later, it takes its run with it
    return guarded(lambda: _main(role, settle, prepare, agent_optional))


def _main(role: str, settle: Callable[[Run], None], prepare: Callable[[Run], bool] | None, agent_optional: bool) -> int:
    if len(sys.argv) > 2:
        raise UsageFault(f"A role takes at most one feature: run.sh {role} [FEATURE]")
    feature = sys.argv[1] if len(sys.argv) > 1 else ""
    opened = opening.open_run(opening.asked(role, feature, agent_optional))
    try:
        result, signum = _steps(opened, settle, prepare)
    finally:
        for lock in reversed(opened.locks):
            lock.release()
    closing.escalate(opened.run.layout, opened.run.features, clock.now())
    console.say("\n".join([line_of(result), *(f"  warning: {line}" for line in closing.crossed(opened.run, result))]))
    return errors.signal_code(signum) if signum else exit_code(result)


def _steps(opened: Opened, settle: Callable[[Run], None], prepare: Callable[[Run], bool] | None) -> tuple[Result, int]:
    """Steps two to six; gives the result and the signal that cut the run short, if one did."""
    run, signum = opened.run, 0
    try:
        wanted = prepare(run) if prepare else True
        text = compose(run)
        if wanted:
            think(opened, text)
    except Interrupted as signalled:
        signum = signalled.signum
        run.outcome, run.reason = "killed", f"interrupted by signal {signum}"
    reconcile.state(run)
    reconcile.tree(run)
    take_reply(run)
    settled(run, settle)
    result = closing.close(run)
    files.remove(run.paths.lock)
    return result, signum


def compose(run: Run) -> str:
    """The prompt, made durable with its manifest: an ordered list of texts and objects whose concatenation it is."""
    gathered = material.gather(run)
    parts = prompt.compose(gathered)
    run.stable_bytes = len(prompt.text_of(prompt.stable(gathered)))
    rows = [
        {"object": objects.put(run.layout, part.data), "source": run.layout.relative(part.source)}
        if part.source
        else {"text": part.data.decode()}
        for part in parts
    ]
    data = prompt.text_of(parts)
    files.replace(run.paths.manifest, files.dump_json(rows), files.PRIVATE)
    files.replace(run.paths.prompt, data, files.PRIVATE)
    reconcile.hold_own(run)
    return data.decode()


def think(opened: Opened, text: str) -> None:
    """Let the first agent that can answer; the next one is tried on limit, auth and what is not available."""
    run = opened.run
    refused = [Refusal(agent=name, outcome="not available") for name in opened.missing if opened.thinkers]
    waiting = _waiting(run, [name for name, _ in opened.thinkers])
    gc.enable()  # an agent may think for hours
    pens = Pens(run)
    try:
        for name, agent in opened.thinkers:
            if name in waiting:
                refused.append(Refusal(agent=name, outcome="limit", until=waiting[name], reason="still waited for"))
                continue
            pens.begin(name)
            _listen(run, agent, text, pens)
            run.reason = masking.mask(run.reason)
            if run.outcome not in RETRYABLE:
                break
            refused.append(Refusal(agent=name, outcome=run.outcome, reason=run.reason, until=run.until))
    finally:
        pens.close()
    if len(refused) > (run.outcome in RETRYABLE):
        _who_answered(run, refused)


class Refusal(Record):
    """An agent that could not answer: why, and until when, in unix seconds (0: it did not say)."""

    agent: str
    outcome: str
    reason: str = ""
    until: int = 0


def _waiting(run: Run, names: list[str]) -> dict[str, int]:
    """The agents of a list that met a limit in an earlier run and need not be asked before {agent: unix seconds}."""
    if len(names) < 2:
        return {}
    last = next((result for result in runs.books(run.layout) if result.role != runs.PERSON), None)
    now = clock.now()
    known = {name: until for name, until in (last.waits if last else {}).items() if until > now and name in names}
    return known if len(known) < len(names) else {}  # where all are waited for, asking is all that is left


def _who_answered(run: Run, refused: list[Refusal]) -> None:
    """Say who answered, and which agents could not. Where none did and one met a limit, that one is waited for."""
    answered = run.outcome not in RETRYABLE
    limits = {one.agent: one.until for one in refused if one.outcome == "limit"}
    run.waits = {name: until or clock.now() + UNSTATED_SECONDS for name, until in limits.items()}
    if limits and not answered:
        run.outcome, run.until = "limit", min(filter(None, limits.values()), default=0)
    words = [f"{run.agent} answered", *([run.reason] if run.reason else [])] if answered else []
    remedies = []
    for one in refused:
        reason, _, remedy = one.reason.partition("\n")
        words.append(f"{one.agent}: {', '.join(filter(None, (one.outcome, reason)))}")
        remedies += [remedy] if remedy and run.outcome in NEEDS_HELP else []
    run.reason = "\n".join(["; ".join(words), *remedies])


class Pens:
    """Where the events of a run are written down: stream.jsonl, stderr.log, the spinner, and what the run counts."""

    def __init__(self, run: Run) -> None:
        self.run, self.action, self.told = run, "", False
        quarter = run.settings.max_log_mb * MIB // 4
        self.stream, self.stderr = Transcript(run.paths.stream, 3 * quarter), Transcript(run.paths.stderr, quarter)
        self.said = Recent(run.messages)
        self.spinner = console.Spinner(f"{run.role.name} {run.context.feature}".strip())

    def begin(self, agent: str) -> None:
        """From here on this agent answers."""
        self.run.agent = agent
        self.run.usages.append(Usage(agent=agent))
        self._row("agent", agent)

    def note(self, event: Event) -> None:
        """Write one event down where it belongs."""
        if event.kind == "output":
            self.stream.piece(self.run.seconds(), "output", event.text)
            self.stderr.log(event.text)
        if event.kind == "did":
            self.action = event.text
        if event.kind == "said":
            self.said.add(event.text)
        if event.kind == "usage":
            self.run.usages[-1] = Usage(**json.loads(event.text))
            self.told = True
        if event.kind not in ("tick", "output"):
            self._row(event.kind, event.text)
        self.spinner.draw(self.action)

    def overspent(self) -> str:
        """The cap that the usage told since the last call has used up, in words, else ""."""
        told, self.told = self.told, False
        return closing.overspent(self.run) if told else ""

    def _row(self, kind: str, text: str) -> None:
        self.stream.row(self.run.seconds(), kind, text)

    def close(self) -> None:
        """Make what was written durable."""
        self.spinner.clear()
        self.stream.close()
        self.stderr.close()


def _listen(run: Run, agent: Agent, text: str, pens: Pens) -> None:
    run.outcome, run.reason, run.until = "agent_error", "the agent ended without a word", 0
    thinking = agent.think(text, desk_of(run))
    for event in thinking:
        if isinstance(event, Event):
            pens.note(event)
            if event.kind == "did" and (cap := pens.overspent()):  # it goes on: what is only said may be the end
                run.outcome, run.reason = "killed", f"ended at its cap: {cap}"
                thinking.close()
            continue
        run.usages[-1] = event.usage or run.usages[-1]
        if isinstance(event, Finished):
            run.outcome, run.reason = "timeout_after_result" if event.late else "ok", event.remark
        else:
            run.outcome, run.reason, run.until = event.outcome, event.reason, event.until


def desk_of(run: Run) -> Desk:
    """Where the run's agent works."""
    table = run.settings.roles.get(run.role.name, {})
    return Desk(
        directory=run.layout.project,
        prompt_path=run.paths.prompt,
        seconds=60 * table.get("minutes", run.role.minutes),
        environment=environment.of_agent(os.environ, run.tag, run.layout, run.id),
        writable=[run.layout.project, run.paths.folder],
        keep=run.keep,
        idle_seconds=60 * table.get("idle_minutes", run.role.idle_minutes),
        startup_seconds=STARTUP_SECONDS,
        stable_bytes=run.stable_bytes,
        cost_left_usd=closing.cost_left(run),
    )


def take_reply(run: Run) -> None:
    """The reply that `harness reply` kept, else the block in what the agent said; durable in reply.md.

    A reply that does not parse is the agent's failure, and its reason goes into the next prompt.
    """
    data = files.read(run.paths.reply)
    kept = None if data is None else data.decode("utf-8", "replace")  # the agent could write there by itself
    if kept is None and run.messages:
        files.replace(run.paths.reply, run.messages[-1].encode("utf-8", "replace"), files.PRIVATE)
    if run.outcome not in runs.GOOD:
        return
    try:
        run.reply = replies.find(run.role.name, [kept] if kept is not None else run.messages)
    except Refused as fault:
        run.outcome, run.reason = "agent_error", "; ".join(filter(None, [str(fault), run.reason]))


def settled(run: Run, settle: Callable[[Run], None]) -> None:
    """The role's own function applies the reply; a run that did not end well keeps a worker's tree and changes no more."""
    by_code = run.role.name == CURATOR and run.outcome not in ("killed", "refused")  # it folds whatever its agent did
    if run.outcome in runs.GOOD or by_code:
        _shared_parts(run)
        settle(run)
    elif run.feature is not None and run.changes_tree:
        work.cut_short(run)


def _shared_parts(run: Run) -> None:
    """Notes and issues that a reply carries, for agents that run no commands."""
    reply = run.reply or {}
    try:
        run.noted([(note["tag"], note["text"]) for note in reply.get("notes", [])])
    except UsageFault as fault:
        run.reason = str(fault)
    if reply.get("issues"):
        run.add_issues(reply["issues"])


def line_of(result: Result) -> str:
    """What run.sh prints of a run: one line; more where a person must mend the agent, for the reason is told whole."""
    what = " ".join(part for part in (result.role, result.feature) if part)
    words = [word for word in (result.said, result.commit[:10]) if word]
    first = result.reason.split("\n")[0]
    cut = f"{first[:REASON_CHARS]}{'…' if len(first) > REASON_CHARS else ''}"
    whole = result.reason.replace("\n", "\n    ")  # who must do something now reads all of it
    reason = "  " + (whole if result.outcome in NEEDS_HELP else cut) if first else ""
    return console.plain(f"  {what:<20} {' '.join(words):<20} {result.seconds:6.1f} s{reason}")


def exit_code(result: Result) -> int:
    """0 where the run settled; by hand a negative verdict is 10; 69 and 75 where no agent could answer."""
    if result.outcome in NEEDS_HELP:
        return errors.UNAVAILABLE
    if os.environ.get(LOOP):
        return errors.DONE
    if result.outcome == "limit":
        return errors.BUSY
    return errors.NEGATIVE if result.negative else errors.DONE
