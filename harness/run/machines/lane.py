"""The home side of a lane on a machine: it sends a run's thinking and checks there, and takes the results.

A note of an agent there is durable here before its command ends. Results are untrusted: they are checked, and accepted or refused
as a whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice, takewhile
from typing import Any, TypeVar

import harness
from harness.agents import registry
from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings, Thinking
from harness.base import clock, schema
from harness.base.errors import DONE, USAGE, HarnessError, LockBusy, MachineGone, RunCut, Unavailable, UsageFault
from harness.base.record import Json, Record
from harness.mission import machine_table, mission, roles, runs
from harness.mission.check_environment import RemoteChecks
from harness.mission.config import Config
from harness.mission.contract import Check, Claim, Contract, Service
from harness.mission.open_run import OpenRun
from harness.mission.receipts import Receipt
from harness.mission.roles import Role
from harness.mission.usage import Usage
from harness.process import supervise
from harness.process.variables import passing
from harness.proof import check_runs
from harness.run.machines import _travel
from harness.run.machines._pipe import CommandPipe, Pipe, beat, command_of
from harness.run.requests import verbs
from harness.state import files, names
from harness.state.layout import Layout, identity_folder
from harness.state.state import State
from harness.workplace import inbox, workplace

R = TypeVar("R", bound=Record)
MACHINE = "HARNESS_MACHINE"  # environment variable that run.sh sets: the machine of the lane
TICK_SECONDS = 0.2
MAX_LOOKED_BACK = 40  # runs
COLLECT_SECONDS = 30.0  # limit for the work of an ended agent to arrive
ANSWER_SECONDS = 600.0  # for the first answer, and for the work of an agent after its time limit
KINDS = ("said", "saying", "whole", "did", "result", "output", "waits", "usage", "raw")
ASKED = ("note", "issue", "reply", "answer", "status")
LIMITS = ("seconds", "idle_seconds", "startup_seconds", "cost_left_usd", "tokens_left", "told")
REFUSED = f"{names.REFUSED}/machine.pack"
PROGRAM = "harness"  # the command on a machine
LOST_RUNS = 3  # runs lost in a row after which a machine rests
REST_BEATS, MAX_REST_BEATS = 12, 720  # how long it rests: a minute to an hour
RESTS = "The machine {name} has lost {count} runs in a row, the last: {reason}. It is tried again {when}."


class MachineRequest(Record):
    """A request of a program on a machine to the mission; `ask`: its number."""

    ask: int
    verb: str
    arguments: list[str]


class Work(Record):
    """The end of an agent on a machine, with its commit, the objects of that, what is left out or ignored, its records."""

    end: dict[str, Json]
    work: str
    pack: bytes
    kept_out: list[str]
    ignored: list[str]
    records: dict[str, bytes]


class Swept(Record):
    """What a sweep on a machine found: receipts, and why the setup is red."""

    receipts: list[Receipt]
    fault: str


def wanted(settings: Config, role: Role, one: bool) -> str:
    """The machine of a run, "" for here: turns of a team and runs on `one` feature travel, and the final sweep if it may.
    Raises what machine_table.table_of raises."""
    if name := os.environ.get(MACHINE, ""):
        machine_table.table_of(settings.machines, name)
    return name if role.answers or ((one or settings.sweep != "home") and (role.commits or role.judges)) else ""


def opened(run: OpenRun, agents: Sequence[MachineAgent]) -> MachineLane:
    """The lane of the run on its machine, to which its agents and checks go; raises what MachineLane.open raises."""
    name = run.lease.terms.machine
    _require_rested(run.layout, name)
    lane = MachineLane(name, machine_table.table_of(run.settings.machines, name))
    try:
        lane.open(run, {agent.name: agent.settings for agent in agents})
    except BaseException:
        lane.close()
        raise
    for agent in agents:
        agent.lane = lane
    return lane


def _require_rested(layout: Layout, name: str) -> None:
    """Raise LockBusy for a machine that has just lost its last runs, twice as long for each more: else it could use up a cap."""
    mine = f"the machine {name}"
    lost = [*takewhile(lambda one: one.outcome == "killed", islice(runs.finished(layout), MAX_LOOKED_BACK))]
    lost = [one for one in lost if one.reason.startswith(mine)]
    if len(lost) < LOST_RUNS:
        return
    rest = min(REST_BEATS * 2 ** (len(lost) - LOST_RUNS), MAX_REST_BEATS) * beat()
    until = lost[0].ended + rest
    if clock.now() < until:
        when = clock.local(until, clock.now())
        raise LockBusy(RESTS.format(name=name, count=len(lost), reason=lost[0].reason, when=f"from {when} on"))


def lacking(layout: Layout, settings: Config, name: str) -> list[str]:
    """What this machine lacks for the mission, one line each, before anything is spent; also that it cannot be reached."""
    known = {agent for role in roles.known(layout) for agent in roles.agents_of(settings, roles.load(layout, role))}
    agents = {agent: registry.settings_of(layout, settings, agent, "") for agent in sorted(known)}
    where = _where(layout, workplace.folder_of(mission.load(layout).id))
    try:
        with closing(MachineLane(name, machine_table.table_of(settings.machines, name))) as lane:
            return lane.greet(agents, settings.confine, where)
    except (MachineGone, UsageFault, Unavailable) as fault:
        return [str(fault)]


def _where(layout: Layout, tree: str) -> dict[str, str]:
    """The folders of a run at home, by which its machine knows the lane and mounts its own."""
    top, lane = layout.folders.top, "/".join(tree.split("/")[-2:])
    where = {"top": top, "project": layout.folders.project, "state": layout.state, "tree": tree}
    return {**where, "identity": identity_folder(), "lane": lane}


class MachineLane(RemoteChecks):
    """The connection of one run to its machine; the process there ends with it. Methods raise MachineGone."""

    def __init__(self, name: str, table: dict[str, Any]) -> None:
        self.name = name
        self.pipe: Pipe = CommandPipe(name, command_of(table), table.get("program", PROGRAM))
        self.run: OpenRun | None = None

    def greet(self, agents: dict[str, Settings], confine: str, where: dict[str, str]) -> list[str]:
        """What the machine lacks for these agents in these folders, one line each."""
        told = {name: _plain(one) for name, one in agents.items()}
        asked = {"version": harness.__version__, "agents": told, "confine": confine, "where": where}
        found = self._call("hello", ANSWER_SECONDS, **asked)
        if not isinstance(found, dict) or not {*map(type, found.values())} <= {list}:
            raise MachineGone(f"the machine {self.name} does not answer as a machine")
        self.known = [str(one) for one in found.get("has", [])]
        return [str(line) for line in found.get("lacks", [])]

    def open(self, run: OpenRun, agents: dict[str, Settings]) -> None:
        """Send the run's commit and state there. Raises LockBusy with what the machine lacks, and NeedsPerson for content that
        cannot travel."""
        top, layout, context = run.layout.folders.top, run.layout, run.context
        self.run = run
        _travel.require_portable(top, context.head)
        if lacks := self.greet(agents, run.settings.confine, _where(layout, run.checkout)):
            raise LockBusy(f"The machine {self.name} lacks: {'; '.join(lacks).rstrip('.')}. The lane waits.")
        data = _travel.pack_commit(top, context.head, self.known)
        for at in range(0, len(data), _travel.CHUNK_BYTES):
            self.pipe.send({"do": "pack", "data": data[at : at + _travel.CHUNK_BYTES]})
        more = {name: getattr(run, name) for name in ("context", "mission", "settings", "role", "tag")}
        named = set(run.settings.passed) - passing(os.environ).keys()  # what passes anyway is the machine's own
        passed = {name: os.environ[name] for name in named if name in os.environ}
        state, carried = _travel.compress(_travel.state_files(run)), _travel.carried_files(run)
        self._call("begin", **more, files=state, passed=passed, carry=carried, shallow=_travel.shallow(top))

    def _call(self, verb: str, within: float = float("inf"), **more: Any) -> Any:
        """Ask the machine for one thing, and return its answer. Raises MachineGone, also for a fault there, and RunCut."""
        self.pipe.send({"do": verb, **{name: schema.plain(value) for name, value in more.items()}})
        return next(row["done"] for row in self._rows(within) if "done" in row)

    def _rows(self, seconds: float) -> Iterator[dict[str, Any]]:
        """What comes, and {} about 5 times a second while nothing does; requests for the mission are answered."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            supervise.require_parent()
            if self.run and time.monotonic() > self.run.place().until:
                raise RunCut(f"{check_runs.OUT_OF_TIME}, on the machine {self.name}")
            row = self.pipe.receive(TICK_SECONDS)
            if "fault" in row:
                raise MachineGone(f"the machine {self.name}: {row['fault']}")
            if "ask" in row:
                self.pipe.send({"answer": row["ask"], "rows": self._asked(self._made(MachineRequest, row))})
            else:
                yield row
        raise MachineGone(f"the machine {self.name} has not answered for {seconds:.0f} s")

    def _made(self, shape: type[R], row: Any) -> R:
        """The Record that a machine means; raises MachineGone for what is none."""
        if faults := schema.faults(row, "it", shape):
            raise MachineGone(f"the machine {self.name} sent an invalid result: {faults[0]}")
        return schema.trusted(shape, row)

    def _asked(self, asked: MachineRequest) -> list[dict[str, Any]]:
        """Carry out a request of a program there by the run's own inbox, which answers once it is durable."""
        run, verb, arguments = self.run, asked.verb, asked.arguments
        assert run is not None
        try:
            if verb == "checked" and len(arguments) == 2 and arguments[1].isdecimal() and len(arguments[1]) < 4:
                verbs.record(run, "check", arguments[:1], int(arguments[1]))
                return [{"code": DONE}]
            if verb not in ASKED:
                return [{"code": USAGE, "fault": f"A machine may ask for {', '.join(ASKED)}."}]
            return [*({"text": text} for text in inbox.ask(run.layout, run.id, verb, *arguments)), {"code": DONE}]
        except HarnessError as fault:
            return [{"code": fault.code, "fault": str(fault)}]

    def think(self, name: str, settings: Settings, prompt: str, context: ExecutionContext) -> Thinking:
        """Let an agent there work on the prompt; its work is in the run's own tree before the last item."""
        assert self.run is not None
        limits = {key: getattr(context, key) for key in LIMITS}
        state = _travel.compress(_travel.state_files(self.run, prompt))
        more = {"settings": _plain(settings), "limits": limits, "stable": context.stable_bytes, "files": state}
        self.pipe.send({"do": "think", "name": name, "prompt": prompt, **more})
        ended = False
        try:
            yield AgentEvent(kind="did", text=f"works on the machine {self.name}")
            for row in self._rows(context.seconds + ANSWER_SECONDS):
                if ended := "done" in row:
                    yield self._take_result(row["done"])
                    return
                yield self._event(row["event"]) if "event" in row else AgentEvent(kind="tick")
        except MachineGone:
            ended = True
            raise
        finally:
            if not ended:
                with suppress(MachineGone):
                    self._collect()

    def _collect(self) -> None:
        """End the agent there and take its work so far."""
        self.pipe.send({"do": "stop"})
        self._take_result(next(row["done"] for row in self._rows(COLLECT_SECONDS) if "done" in row))

    def _event(self, row: Any) -> AgentEvent:
        try:
            kind, text = row
            if kind not in KINDS or not isinstance(text, str):
                raise ValueError(f"{kind!r}")
            if kind == "usage":
                self._made(Usage, json.loads(text))
        except (ValueError, TypeError, RecursionError) as fault:
            raise MachineGone(f"the machine {self.name} sent an invalid event: {fault}") from None
        return AgentEvent(kind=kind, text=text)

    def _take_result(self, row: Any) -> AgentSuccess | AgentFailure:
        """Apply the work to the run's tree; an invalid result is refused with one line, and kept."""
        run, found = self.run, self._made(Work, row)
        assert run is not None
        failed = None if "reply" in found.end else self._made(AgentFailure, found.end)
        made = failed or self._made(AgentSuccess, found.end)
        try:
            if run.changes_tree:
                _travel.apply_work(run, found.work, found.pack)
                run.outcome.work.kept_out, run.outcome.work.ignored = found.kept_out, found.ignored
            _travel.keep_records(run, found.records)
        except (_travel.ResultRefused, ValueError, OSError) as fault:  # a record's name; a full disk shows again
            State(run.layout).put(names.of_run(run.id, REFUSED), found.pack, mode=files.PRIVATE)
            return AgentFailure(outcome="agent_error", reason=f"the result of {self.name} is refused: {fault}")
        if isinstance(made, AgentFailure) and made.outcome not in runs.OUTCOMES:
            return made.replace(outcome="agent_error")
        return made

    def setup(self, contract: Contract) -> str:
        """As check_runs.setup_once, in the tree there."""
        return str(self._call("setup", contract=contract))

    def watch(self, contract: Contract) -> None:
        """As tampering.watched, of the tree there."""
        self._call("watch", contract=contract)

    def start_services(self, services: list[Service]) -> str:
        """As services.RunningServices, in the tree there."""
        return str(self._call("start_services", services=services))

    def end_services(self) -> None:
        """End them there."""
        self._call("end_services")

    def sweep(self, contract: Contract) -> tuple[list[Receipt], str]:
        """As sweep.sweep, in clones there."""
        found = self._made(Swept, self._call("sweep", contract=contract))
        return [self._stamped(one) for one in found.receipts], found.fault

    def fire(self, check: Check, claim: Claim, phase: str, traced: bool) -> Receipt:
        """As check_runs.fire, in the tree there; stamped here."""
        made = self._made(Receipt, self._call("fire", check=check, claim=claim, phase=phase, traced=traced))
        return self._stamped(made).replace(claim=claim.id, command=check.run, phase=phase, guard=check.guard)

    def _stamped(self, made: Receipt) -> Receipt:
        """A receipt from there, stamped with the machine's name and the time here."""
        assert self.run is not None
        context = self.run.context
        stamps = {"host": self.name, "at": clock.stamp(clock.now()), "by": context.run}
        return made.replace(head=context.head, tree=context.tree, **stamps)

    def close(self) -> None:
        """End everything there."""
        self.pipe.close()


class MachineAgent:
    """An agent on the lane's machine, as an agent of this one. Raises Unavailable for an embedded one without a file for the
    run; what other agents need is there, and the machine is asked for it."""

    needs: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self.settings = name, registry.portable(name, settings)
        self.lane: MachineLane | None = None

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Work on the prompt there."""
        assert self.lane is not None
        return self.lane.think(self.name, self.settings, prompt, context)


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings of an agent as plain values."""
    return {**settings.asdict(), "prices": dict(settings.prices), "held": dict(settings.held)}
