"""Services: servers for checks; a run starts each once on its own port and ends its process tree."""

from __future__ import annotations

import os
import shlex
import time
from types import TracebackType

from harness.base import console
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Service
from harness.process import supervise, temporary, tree
from harness.proof import check_runs
from harness.proof._outputs import OutputDigest
from harness.state import files
from harness.workplace import environment

POLL_SECONDS = 0.1
ASK_SECONDS = 5.0
UP_SECONDS = 24 * 3600.0
TAIL_CHARS = 2000
TAIL_BYTES = 64 * 1024  # enough for TAIL_CHARS characters among control sequences


class RunningServices:
    """Runs the services of a contract during the `with` block; returns the check environment with their ports.

    If one is not ready in time, the environment has a `fault`: every check in it is red, with the tail of the service's log.
    """

    def __init__(self, services: list[Service], place: CheckEnvironment) -> None:
        self.services, self.place = services, place
        self.children: list[supervise.Child] = []
        self.folder = ""

    def __enter__(self) -> CheckEnvironment:
        if self.place.watch:
            self.place.watch.begin()
        if self.place.machine:  # also without services: the files there are watched from now on
            return self.place.replace(fault=self.place.machine.start_services(self.services))
        if not self.services:
            return self.place
        self.folder = temporary.create("services", self.place.tag, ordinary=self.place.plain)
        try:
            return self._up()
        except BaseException:
            self._down()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._down()
        if self.place.machine and kind is None:
            self.place.machine.end_services()
        if self.place.watch:
            self.place.watch.begin_check("")

    def _up(self) -> CheckEnvironment:
        ports = {service.name: check_runs.free_port() for service in self.services}
        place = self.place.replace(ports=ports)
        for service in self.services:
            own = place.replace(ports={service.name: ports[service.name], **ports})
            child = self._start(service, own)
            fault = self._await(service, own, child)
            if fault:
                return place.replace(fault=fault)
        return place

    def _start(self, service: Service, place: CheckEnvironment) -> supervise.Child:
        logged = f"exec >{shlex.quote(self._log(service))} 2>&1\n"
        start = check_runs.start_of(service.run, place, self.folder, logged)
        child = supervise.Child(**start, wall_seconds=UP_SECONDS, merge=True)
        self.children.append(child)
        return child

    def _await(self, service: Service, place: CheckEnvironment, child: supervise.Child) -> str:
        """Run `ready` until it is green; else the reason: out of time, or the service has exited."""
        until = time.monotonic() + service.seconds
        while (left := until - time.monotonic()) > 0:
            probe = check_runs.run_shell(service.ready, place, min(left, ASK_SECONDS), OutputDigest())
            if probe.cause == "exit" and probe.exit == 0:
                return ""
            if not tree.lives(child.pid):
                return f"the service {service.name} ended before it was ready; its log:\n{self._tail(service)}"
            time.sleep(POLL_SECONDS)
        return f"the service {service.name} was not ready within {service.seconds} s; its log:\n{self._tail(service)}"

    def _log(self, service: Service) -> str:
        return os.path.join(self.folder, f"{service.name}.log")

    def _tail(self, service: Service) -> str:
        path, place = self._log(service), self.place.replace(confinement=self.place.confined(self.folder))
        data = files.read_from(path, max(0, files.length(path) - TAIL_BYTES), TAIL_BYTES)
        return environment.explained(console.plain(data.decode("utf-8", "replace"))[-TAIL_CHARS:], place)

    def _down(self) -> None:
        for child in reversed(self.children):
            child.close()
        self.children = []
        if self.folder:
            temporary.remove(self.folder)
