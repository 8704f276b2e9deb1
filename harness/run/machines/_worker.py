"""The process on a machine that runs agents and checks as home would, one request at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from harness.agents import registry
from harness.agents.base import AgentEvent, AgentFailure, Settings
from harness.base import frames, schema
from harness.base.errors import BUSY, DONE, BrokenFile, HarnessError, Interruption, LockBusy, Unavailable
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Claim, Contract, Service
from harness.mission.open_run import OpenRun
from harness.mission.receipts import Receipt
from harness.process import supervise, temporary
from harness.proof import check_runs, sweep, tampering
from harness.proof.services import RunningServices
from harness.run import thinking
from harness.run.machines import _pump, _site, _travel
from harness.run.machines._pump import Channel
from harness.run.machines._site import Site
from harness.run.requests import verbs
from harness.workplace import inbox, workplace
from harness.workplace.inbox import Inbox

SHAPES = {"contract": Contract, "check": Check, "claim": Claim}
NOBODY = "Nothing was written: the connection to the mission is gone."


class Worker:
    """Carries out requests: `do` and its arguments. `door`: the folder of the socket that connects to the mission's inbox."""

    def __init__(self, home: Channel, door: str) -> None:
        self.home, self.door, self.pack = home, door, bytearray()
        self.site: Site | None = None
        self.up: RunningServices | None = None
        self.place = CheckEnvironment(directory="")

    def serve(self) -> int:
        """Answer requests until the input ends, then end everything."""
        known = (self.hello, self.begin, self.setup, self.watch, self.start_services, self.end_services, self.fire)
        verbs: dict[str, Callable[..., Any]] = {one.__name__: one for one in (*known, self.sweep, self.think)}
        try:
            while row := self.home.receive():
                verb = row.pop("do")
                if verb == "pack":
                    self.pack += row["data"]
                elif verb != "stop":  # what it is for has ended by itself
                    self._answer(verbs[verb], row)
        finally:
            self.end_services()
            if self.site:
                self.site.close()
        return DONE

    def _answer(self, verb: Callable[..., Any], row: dict[str, Any]) -> None:
        for name in row.keys() & SHAPES.keys():
            row[name] = schema.trusted(SHAPES[name], row[name])
        try:
            self.home.send({"done": schema.plain(verb(**row))})
        except HarnessError as fault:
            self.home.send({"fault": " ".join(str(fault).split())})

    @property
    def run(self) -> OpenRun:
        """The run; home begins it first."""
        assert self.site is not None
        return self.site.run

    def hello(self, version: str, agents: dict[str, Any], confine: str, where: dict[str, str]) -> dict[str, Any]:
        """What this machine lacks, and which commits it has."""
        self.where = where
        known = {name: Settings.whole(one) for name, one in agents.items()}
        return {"lacks": _site.lacks(version, known, confine, where), "has": _site.commits(where)}

    def begin(self, **job: Any) -> str:
        """Prepare the run in its folders."""
        os.environ.update(job.pop("passed"))
        self.site = Site(self.where, job, bytes(self.pack))
        self.pack = bytearray()
        self.place = self.run.place()
        return ""

    def setup(self, contract: Contract) -> str:
        """Run the contract's setup, once for each commit; returns why it is red."""
        fault = check_runs.setup_once(self.run.layout, contract, self.place)
        workplace.leave_untracked(self.run)
        return fault

    def watch(self, contract: Contract) -> None:
        """Watch the tree's files from now on."""
        self.place = tampering.watched(self.place, contract)

    def start_services(self, services: list[dict[str, Any]]) -> str:
        """Start the services; returns why one is not ready."""
        self.up = RunningServices([schema.trusted(Service, one) for one in services], self.place)
        self.place = self.up.__enter__()
        return self.place.fault

    def end_services(self) -> None:
        """End the services."""
        if self.up:
            up, self.up = self.up, None
            up.__exit__(None, None, None)
            self.place = up.place

    def fire(self, check: Check, claim: Claim, phase: str, traced: bool) -> Receipt:
        """Run a check; returns its receipt."""
        return check_runs.fire(check, claim, phase, self.place, traced)

    def sweep(self, contract: Contract) -> dict[str, Any]:
        """Run all checks in fresh clones; the receipts, and why the setup is red."""
        layout, path = self.run.layout, self.run.paths.receipts
        found, fault = sweep.sweep(layout, contract, self.place, path, workplace.recorded(layout))
        return {"receipts": schema.plain(found), "fault": fault}

    def think(
        self, name: str, settings: dict[str, Any], prompt: str, limits: dict[str, Any], stable: int, files: bytes
    ) -> dict[str, Any]:
        """Let an agent work on the prompt; how it ended, with its work."""
        run = self.run
        assert self.site is not None
        self.site.write(_travel.decompress(files))
        above = temporary.create("agent", run.tag)
        end: dict[str, Any] = {"outcome": "killed", "reason": "ended by home", "usage": None, "until": 0}
        try:
            agent = registry.make(name, self.site.settings(settings))
            context = thinking.context_of_agent(run, agent, temporary.below(above, "own"), stable).replace(**limits)
            with Inbox(run.paths.inbox, self._verbs()):
                answering = agent.think(prompt, context)
                for event in answering:
                    if not isinstance(event, AgentEvent):
                        end = schema.plain(event)
                    elif event.kind != "tick":
                        self.home.send({"event": [event.kind, event.text]})
                    if self._is_stopped():
                        answering.close()
        except (Unavailable, BrokenFile) as fault:
            end = schema.plain(AgentFailure(outcome="config", reason=f"on the machine: {fault}"))
        finally:
            temporary.remove(above)
        return {**self.site.work(), "end": end, "records": _travel.read_records(run.paths.folder)}

    def _is_stopped(self) -> bool:
        """Whether home has asked to end the agent; raises Interruption at the end of the input."""
        supervise.require_parent()
        if (row := self.home.receive(0.0)) is None:
            raise Interruption(15)
        return row.get("do") == "stop"

    def _verbs(self) -> dict[str, Callable[..., Iterable[str]]]:
        """The verbs for programs of the run: home carries out notes and the like, checks run here."""
        there = {verb: partial(self._asked, verb) for verb in ("note", "issue", "reply", "answer")}
        return {**there, "check": self._checked, "status": self._status}

    def _status(self, *arguments: str) -> Iterator[str]:
        """Let home change the status of a team, then write the files that show it."""
        for text in self._asked("status", *arguments):
            assert self.site is not None
            files = json.loads(text)["files"].items()
            self.site.write({os.path.join(self.run.workplace, name): shown.encode() for name, shown in files})
            yield text

    def _asked(self, verb: str, *arguments: str) -> Iterator[str]:
        """Let home carry out a verb, durably. Raises what the verb raised, and LockBusy without a connection to home."""
        try:
            with inbox.in_folder(self.door, "connect") as client:
                client.sendall(frames.pack({"verb": verb, "arguments": arguments}))
                rows = _pump.receive(client)["rows"]
        except OSError:
            raise LockBusy(NOBODY) from None
        yield from (row["text"] for row in rows if "text" in row)
        if rows[-1]["code"] != DONE:
            raise inbox.AnsweredFault(rows[-1]["fault"], rows[-1]["code"])

    def _checked(self, name: str) -> Iterator[str]:
        """Run the checks that the agent requests; home records the request."""
        code = BUSY
        try:
            yield from verbs.check(self.run, name)
            code = DONE
        except HarnessError as fault:
            code = fault.code
            raise
        finally:
            list(self._asked("checked", name, str(code)))
