"""The third step of a run: start the first agent that can answer, and record its events."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from itertools import islice

from harness.agents.base import Agent, AgentEvent, AgentSuccess, ExecutionContext
from harness.base import clock, console, redaction
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.memory import tables
from harness.mission import features, lease, runs
from harness.mission.open_run import OpenRun, Outcome
from harness.mission.transcript import MIB, RecentTexts, RunTranscript
from harness.mission.usage import Usage
from harness.process import temporary
from harness.process.confine import Confinement
from harness.process.timeouts import STARTUP
from harness.run import closing
from harness.run.opening import AgentChoice
from harness.run.requests import verbs
from harness.state import names
from harness.state.layout import command
from harness.workplace import confine, environment, home_layer
from harness.workplace.inbox import Inbox

NEEDS_HELP = ("auth", "config")
RETRYABLE = ("limit", *NEEDS_HELP)
STARTUP_SECONDS = 120.0
HANGS = 3  # runs in a row without a first sign of life of their agent, after which the mission ends
SILENT = (
    "{agent} gave no sign of life, {runs} runs in a row: {reason}\n"
    "Look for a login window, a proxy, or a question at its first start: {remedy}"
)
MARK_SECONDS = 30.0
PRINTED = ("output", "waits")  # written to the transcript as output
READ = ("output", "said", "whole")  # may mention a withheld variable
TAIL_CHARS = 4096
UNWRITTEN = ("tick", "saying", "whole", *PRINTED)  # nothing to write, or written by pieces
LOOKED_BACK = 50  # runs; many of them use no agent
UNSTATED_SECONDS = 300  # time to skip a rate-limited agent without retry-after, if another can answer


def think(run: OpenRun, agents: AgentChoice, text: str, stable_bytes: int) -> None:
    """Run the agents in turn until one answers. The first `stable_bytes` of the prompt are the same from run to run."""
    outcome, told = run.outcome, agents.workspace is not None and agents.workspace.told
    refused = [Refusal(agent=name, outcome="not available") for name in agents.missing if agents.available]
    outcome.answer.waits = _remembered(run)
    waiting = _waiting(outcome, [name for name, _ in agents.available])
    recorder, above = Recorder(run), temporary.create("agent", run.tag)
    room = temporary.below(above, "own")  # its siblings are folders that agents cannot move: see builtin.conversation
    tables.hold()  # so that an update of the harness during the run does not mix versions
    try:
        with Inbox(run.paths.inbox, verbs.of(run)):
            for name, agent in agents.available:
                if name in waiting:
                    refused.append(Refusal(agent=name, outcome="limit", until=waiting[name], reason="still waited for"))
                    continue
                recorder.begin(name)
                context = context_of_agent(run, agent, room, stable_bytes).replace(told=told)
                _listen(outcome, agent, text, recorder, context)
                outcome.reason = redaction.received(outcome.reason)
                recorder.explain(agent.needs, context.confinement)
                if outcome.ended not in RETRYABLE:
                    outcome.answer.waits.pop(name, 0)
                    break
                refused.append(
                    Refusal(agent=name, outcome=outcome.ended, reason=outcome.reason, until=outcome.answer.until)
                )
    finally:
        recorder.close()
        temporary.remove(above)
    if len(refused) > (outcome.ended in RETRYABLE):
        _report_refusals(outcome, refused)
    before = [*islice((one.outcome for one in runs.finished(run.layout) if one.agent), HANGS - 1)]
    if outcome.ended == STARTUP and before == [STARTUP] * (HANGS - 1):
        outcome.ended, outcome.reason = (
            "config",
            SILENT.format(
                agent=outcome.agent, runs=HANGS, reason=outcome.reason, remedy=command("doctor agents --try")
            ),
        )


class Refusal(Record):
    """An agent that could not answer: why, and until when, in unix seconds (0: not stated)."""

    agent: str
    outcome: str
    reason: str = ""
    until: int = 0


def _waiting(outcome: Outcome, names: list[str]) -> dict[str, int]:
    """{agent: unix seconds} of agents with a limit from an earlier run, to be skipped until then."""
    known = {name: until for name, until in outcome.answer.waits.items() if name in names}
    return known if len(known) < len(names) else {}  # if all are rate limited, all are tried


def _remembered(run: OpenRun) -> dict[str, int]:
    """The unexpired rate limits recorded by the newest run with an agent."""
    last = next((result for result in islice(runs.finished(run.layout), LOOKED_BACK) if result.agents), None)
    now = clock.now()
    return {name: until for name, until in last.waits.items() if runs.waits(last.ended, until, now)} if last else {}


def _report_refusals(outcome: Outcome, refused: list[Refusal]) -> None:
    """Record which agent answered, and which could not. If none answered and one is rate limited, the run ends as limit."""
    answered = outcome.ended not in RETRYABLE
    limits = {one.agent: one.until for one in refused if one.outcome == "limit"}
    now = clock.now()
    for name, until in limits.items():
        outcome.answer.waits[name] = min(
            until if until > now else now + UNSTATED_SECONDS, now + runs.MAX_STATED_SECONDS
        )
    if limits and not answered:  # without a future time, a back-off follows
        outcome.ended, outcome.answer.until = "limit", min(until if until > now else 0 for until in limits.values())
    words = list(filter(None, (f"{outcome.agent} answered", outcome.reason))) if answered else []
    remedies = []
    for one in refused:
        reason, _, remedy = one.reason.partition("\n")
        words.append(f"{one.agent}: {', '.join(filter(None, (one.outcome, reason)))}")
        remedies += [remedy] if remedy and outcome.ended in NEEDS_HELP else []
    outcome.reason = "\n".join(["; ".join(words), *remedies])


class Recorder:
    """Writes the events of a run to stream.jsonl, stderr.log and the spinner, and collects usage and messages."""

    def __init__(self, run: OpenRun) -> None:
        self.run, self.outcome, self.action, self.reported = run, run.outcome, "", False
        self.counted, self.marked, self.output = "", 0.0, ""
        quarter = run.settings.max_log_mb * MIB // 4
        folder = run.transcripts or run.paths.folder
        self.stream = RunTranscript(f"{folder}/{names.STREAM}", 3 * quarter)
        self.stderr = RunTranscript(f"{folder}/{names.STDERR}", quarter)
        self.said = RecentTexts(run.outcome.messages)
        self.spinner = console.Spinner(f"{run.role.name} {run.context.feature}".strip(), self._progress)

    def begin(self, agent: str) -> None:
        """Attribute the following events to this agent."""
        self.outcome.answer.usages.append(Usage(agent=agent))
        self.counted = self.output = ""
        self.stream.book(self.run.seconds(), "agent", agent)

    def note(self, event: AgentEvent) -> None:
        """Write one event to its files."""
        if event.kind in READ:
            self.output = (self.output + event.text)[-TAIL_CHARS:]
        if event.kind in PRINTED:
            self.stream.piece(self.run.seconds(), "output", event.text)
            self.stderr.log(event.text)
        if event.kind in ("did", "waits"):
            self.action = event.text
        if event.kind == "saying":
            self.stream.piece(self.run.seconds(), "said", event.text)
            self.action = next((line for line in reversed(event.text.splitlines()) if line.strip()), self.action)
        if event.kind in ("said", "whole"):
            self.said.add(event.text)
        at = self.run.seconds()
        if event.kind == "usage":
            self.outcome.answer.usages[-1] = Usage(**json.loads(event.text))
            self.counted, self.reported = event.text, True
            closing.reserve_used(self.run)
        elif event.kind not in UNWRITTEN:
            self.stream.row(at, event.kind, event.text)
        if event.kind == "usage" or at - self.marked >= MARK_SECONDS:  # a lower bound for the duration of a killed run
            self.stream.book(at, "usage" if self.counted else "time", self.counted)
            self.marked = at
        self.spinner.draw(self.action)

    def explain(self, needs: tuple[str, ...], known: Confinement | None) -> None:
        """Report withheld variables and a hidden path that the end of the agent's output mentions; add them to the reason of a
        failure."""
        outcome, passed = self.outcome, self.run.settings.passed
        outcome.answer.not_passed = environment.mentioned(self.output, os.environ, passed, needs, known)
        if outcome.ended not in runs.GOOD:
            outcome.take_not_passed()

    def _progress(self) -> str:
        """What the other lanes do, the number of passed features, and the cost so far, including this run's."""
        layout, found = self.run.layout, self.outcome.features
        with suppress(BrokenFile):  # the agent may have damaged it
            found = features.load(layout)
        others = [f"{one.role} {one.feature}".strip() for one in lease.alive(layout) if one.run != self.run.id]
        done = f"{len(features.passed(found))} of {len(found)} features" if found else ""
        return ", ".join(filter(None, [*others, done, closing.cost_so_far(self.run)]))

    def overspent(self) -> str:
        """The cap exhausted by usage reported since the last call, in words, or ""."""
        reported, self.reported = self.reported, False
        return closing.overspent(self.run) if reported else ""

    def close(self) -> None:
        """Make the files durable."""
        self.spinner.clear()
        self.stream.close()
        self.stderr.close()


def _listen(outcome: Outcome, agent: Agent, text: str, recorder: Recorder, context: ExecutionContext) -> None:
    outcome.ended, outcome.reason, outcome.answer.until = "agent_error", "the agent ended without output", 0
    answering = agent.think(text, context)
    for event in answering:
        if isinstance(event, AgentEvent):
            recorder.note(event)
            if event.kind == "did" and (cap := recorder.overspent()):  # only an action shows that the agent continues
                outcome.ended, outcome.reason = "killed", f"ended at its cap: {cap}"
                answering.close()
            continue
        outcome.answer.usages[-1] = event.usage or outcome.answer.usages[-1]
        if isinstance(event, AgentSuccess):
            outcome.ended, outcome.reason = "timeout_after_result" if event.late else "ok", event.remark
            outcome.answer.failing = redaction.received(event.failing)
            if event.reply and outcome.messages[-1:] != [event.reply]:  # it came only in the result
                recorder.said.add(event.reply)
        else:
            outcome.ended, outcome.reason, outcome.answer.until = event.outcome, event.reason, event.until


def context_of_agent(run: OpenRun, agent: Agent, room: str, stable_bytes: int) -> ExecutionContext:
    """The execution context of the run's agent, but for `told`; `room` is its temporary folder."""
    own = run.confinement is not None and run.settings.trust != "full"
    places = (*agent.writable, *agent.readable)
    home = confine.home_of_agent(run.layout.folders.top, run.checkout, run.home, places) if own else ""
    table, keys = run.settings.roles.get(run.role.name, {}), (run.settings.passed, agent.needs)
    return ExecutionContext(
        directory=run.workplace,
        prompt_path=run.paths.prompt,
        seconds=60 * table.get("minutes", run.role.minutes),
        environment=_environment(run, agent, home) | {"TMPDIR": room},
        keep=run.keep,
        idle_seconds=60 * table.get("idle_minutes", run.role.idle_minutes),
        startup_seconds=STARTUP_SECONDS,
        stable_bytes=stable_bytes,
        cost_left_usd=closing.cost_left(run),
        tokens_left=closing.tokens_left(run),
        confinement=_confinement(run, agent, [run.checkout, room, *([home] if home else [])]),
        withheld=environment.withheld(os.environ, *keys),
    )


def _confinement(run: OpenRun, agent: Agent, folders: list[str]) -> Confinement | None:
    if run.confinement is None:
        return None
    trust, known = run.settings.trust, run.confinement
    return confine.of_agent(run.layout, known, folders, trust, agent.writable, agent.readable)


def _environment(run: OpenRun, agent: Agent, home: str) -> dict[str, str]:
    """The environment of the agent, with the HOME of its tree if it has one."""
    made = environment.of_agent(os.environ, run.tag, run.layout, run.id, run.settings.passed, agent.needs)
    return home_layer.variables(made, home, os.path.expanduser("~")) if home else made
