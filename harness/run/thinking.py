"""The third step of a run: let the first agent of the list that can answer think, and write down what happens meanwhile."""

from __future__ import annotations

import gc
import json
import os
from itertools import islice

from harness.agents.base import WAITS, Desk, Event, Finished
from harness.base import clock, console, redaction
from harness.base.record import Record
from harness.integrity import environment
from harness.model import runs
from harness.model.usage import Usage
from harness.process import temporary
from harness.run import closing
from harness.run.transcript import MIB, Recent, Transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.agents.base import Agent
    from harness.model.open_run import OpenRun, Outcome
    from harness.run.opening import Opened

NEEDS_HELP = ("auth", "config")
RETRYABLE = ("limit", *NEEDS_HELP)
STARTUP_SECONDS = 120.0
MARK_SECONDS = 30.0
LOAD_AFTER_SECONDS = 0.5
LOADED_LATE = ("harness.agents.clis", "harness.memory.identity", "harness.model.check_environment")
LOOKED_BACK = 50  # runs; in many of them nobody is asked
UNSTATED_SECONDS = 300  # an agent that met a limit without a time is passed over for so long, where another can answer


def think(opened: Opened, text: str, stable_bytes: int) -> None:
    """Let the first agent that can answer; the next one is tried on limit, auth and what is not available. `stable_bytes`
    of the prompt's beginning are the same from run to run."""
    run, outcome = opened.run.opened, opened.run.outcome
    refused = [Refusal(agent=name, outcome="not available") for name in opened.missing if opened.thinkers]
    outcome.waits = _remembered(run)
    waiting = _waiting(outcome, [name for name, _ in opened.thinkers])
    gc.enable()  # an agent may think for hours
    pens, room = Pens(run, outcome), temporary.new("agent", run.tag)
    try:
        for name, agent in opened.thinkers:
            if name in waiting:
                refused.append(Refusal(agent=name, outcome="limit", until=waiting[name], reason="still waited for"))
                continue
            pens.begin(name)
            _listen(outcome, agent, text, pens, desk_of(run, room, stable_bytes))
            outcome.reason = redaction.mask(outcome.reason)
            if outcome.ended not in RETRYABLE:
                outcome.waits.pop(name, 0)
                break
            refused.append(Refusal(agent=name, outcome=outcome.ended, reason=outcome.reason, until=outcome.until))
    finally:
        pens.close()
        temporary.clear(room)
    if len(refused) > (outcome.ended in RETRYABLE):
        _who_answered(outcome, refused)


class Refusal(Record):
    """An agent that could not answer: why, and until when, in unix seconds (0: it did not say)."""

    agent: str
    outcome: str
    reason: str = ""
    until: int = 0


def _waiting(outcome: Outcome, names: list[str]) -> dict[str, int]:
    """The agents of a list that met a limit in an earlier run and need not be asked before {agent: unix seconds}."""
    known = {name: until for name, until in outcome.waits.items() if name in names}
    return known if len(known) < len(names) else {}  # where all are waited for, asking is all that is left


def _remembered(run: OpenRun) -> dict[str, int]:
    """What the newest run that asked anybody knew of agents that let nobody in, as far as it still holds."""
    last = next((result for result in islice(runs.books(run.layout), LOOKED_BACK) if result.agents), None)
    now = clock.now()
    return {name: until for name, until in (last.waits if last else {}).items() if until > now}


def _who_answered(outcome: Outcome, refused: list[Refusal]) -> None:
    """Say who answered, and which agents could not. Where none did and one met a limit, that one is waited for."""
    answered = outcome.ended not in RETRYABLE
    limits = {one.agent: one.until for one in refused if one.outcome == "limit"}
    now = clock.now()
    for name, until in limits.items():
        outcome.waits[name] = min(until if until > now else now + UNSTATED_SECONDS, now + closing.LONGEST_STATED)
    if limits and not answered:  # one that told no time, or one that is over, is asked again after a back-off
        outcome.ended, outcome.until = "limit", min(until if until > now else 0 for until in limits.values())
    words = [f"{outcome.agent} answered", *([outcome.reason] if outcome.reason else [])] if answered else []
    remedies = []
    for one in refused:
        reason, _, remedy = one.reason.partition("\n")
        words.append(f"{one.agent}: {', '.join(filter(None, (one.outcome, reason)))}")
        remedies += [remedy] if remedy and outcome.ended in NEEDS_HELP else []
    outcome.reason = "\n".join(["; ".join(words), *remedies])


def load_rest() -> None:
    """Load what the steps behind this one may need: an update of the harness while an agent thinks must not mix two versions
    in one run. A run that is over at once does not pay for it."""
    for name in LOADED_LATE:
        __import__(name)


class Pens:
    """Where the events of a run are written down: stream.jsonl, stderr.log, the spinner, and what the run counts."""

    def __init__(self, run: OpenRun, outcome: Outcome) -> None:
        self.run, self.outcome, self.action, self.told = run, outcome, "", False
        self.counted, self.marked = "", 0.0
        quarter = run.settings.max_log_mb * MIB // 4
        self.stream, self.stderr = Transcript(run.paths.stream, 3 * quarter), Transcript(run.paths.stderr, quarter)
        self.said = Recent(outcome.messages)
        self.spinner = console.Spinner(f"{run.role.name} {run.context.feature}".strip())

    def begin(self, agent: str) -> None:
        """From here on this agent answers."""
        self.outcome.usages.append(Usage(agent=agent))
        self.counted = ""
        self.stream.book(self.run.seconds(), "agent", agent)

    def note(self, event: Event) -> None:
        """Write one event down where it belongs."""
        if event.kind == "output":
            self.stream.piece(self.run.seconds(), "output", event.text)
            self.stderr.log(event.text)
        if event.kind == "did" or (event.kind == "output" and event.text.startswith(WAITS)):
            self.action = event.text
        if event.kind == "said":
            self.said.add(event.text)
        at = self.run.seconds()
        if event.kind == "usage":
            self.outcome.usages[-1] = Usage(**json.loads(event.text))
            self.counted, self.told = event.text, True
        elif event.kind not in ("tick", "output"):
            self.stream.row(at, event.kind, event.text)
        if event.kind == "usage" or at - self.marked >= MARK_SECONDS:  # a killed run has taken at least until here
            self.stream.book(at, "usage" if self.counted else "time", self.counted)
            self.marked = at
        if at >= LOAD_AFTER_SECONDS:
            load_rest()
        self.spinner.draw(self.action)

    def overspent(self) -> str:
        """The cap that the usage told since the last call has used up, in words, else ""."""
        told, self.told = self.told, False
        return closing.overspent(self.run, self.outcome) if told else ""

    def close(self) -> None:
        """Make what was written durable."""
        self.spinner.clear()
        self.stream.close()
        self.stderr.close()


def _listen(outcome: Outcome, agent: Agent, text: str, pens: Pens, desk: Desk) -> None:
    outcome.ended, outcome.reason, outcome.until = "agent_error", "the agent ended without a word", 0
    answering = agent.think(text, desk)
    for event in answering:
        if isinstance(event, Event):
            pens.note(event)
            if event.kind == "did" and (cap := pens.overspent()):  # it goes on: what is only said may be the end
                outcome.ended, outcome.reason = "killed", f"ended at its cap: {cap}"
                answering.close()
            continue
        outcome.usages[-1] = event.usage or outcome.usages[-1]
        if isinstance(event, Finished):
            outcome.ended, outcome.reason = "timeout_after_result" if event.late else "ok", event.remark
            if event.reply and outcome.messages[-1:] != [event.reply]:  # told as the result alone
                pens.said.add(event.reply)
        else:
            outcome.ended, outcome.reason, outcome.until = event.outcome, event.reason, event.until


def desk_of(run: OpenRun, room: str, stable_bytes: int) -> Desk:
    """Where the run's agent works; `room` is its temporary folder."""
    table = run.settings.roles.get(run.role.name, {})
    return Desk(
        directory=run.layout.project,
        prompt_path=run.paths.prompt,
        seconds=60 * table.get("minutes", run.role.minutes),
        environment={**environment.of_agent(os.environ, run.tag, run.layout, run.id), "TMPDIR": room},
        keep=run.keep,
        idle_seconds=60 * table.get("idle_minutes", run.role.idle_minutes),
        startup_seconds=STARTUP_SECONDS,
        stable_bytes=stable_bytes,
        cost_left_usd=closing.cost_left(run),
    )
