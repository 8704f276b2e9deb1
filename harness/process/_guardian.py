"""The guardian: a process between supervisor and child that starts the child, adopts its orphans and ends its tree.

The guardian is a subreaper: the child's orphans become its own children. It polls a pipe that only the supervisor holds
open. It ends the tree when the child exits, when the supervisor asks, or when the supervisor dies. supervise.py forks it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import time
from collections.abc import Mapping, Sequence

from harness.base import errors
from harness.base.record import Record
from harness.process import spawn, tree
from harness.process.confine import BUBBLEWRAP, Confinement
from harness.process.tree import KILL_SECONDS

NAMESPACE_SECONDS = 0.5  # a large namespace takes longer; it is then killed like any other tree


class GuardianPlan(Record):
    """The guardian's input: the program, its environment, the locks to hold, and the seconds from TERM to KILL.
    `argv` starts the program, confined as `confine` says; errors use `name`.
    """

    name: str
    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdin: str | int
    merge: bool
    keep: Sequence[int]
    grace_seconds: float
    confine: Confinement | None = None


class Guardian:
    """Supervises one child from its own process. All signals stay blocked in it, and it ends with `os._exit`."""

    def __init__(self, plan: GuardianPlan, control: int, report: int) -> None:
        self.plan, self.control, self.report = plan, control, report
        self.child = 0
        self.status: int | None = None
        self.stop_ordered = self.hurry = False
        self.killed: set[int] = set()
        self.poller = select.poll()

    def guard(self, stdout: int, stderr: int) -> None:
        """Start the child, wait for its exit or an order, end the tree, report. Runs in the fork, which then exits."""
        gc.disable()  # collecting the parent's objects would close descriptors that this process now uses
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        given = {self.plan.stdin} if isinstance(self.plan.stdin, int) else set[int]()
        spawn.close_all_but({0, 1, 2, self.control, self.report, stdout, stderr, *given, *self.plan.keep})
        tree.adopt_orphans()
        try:
            self.start(stdout, stderr)
            self.send(str(self.child))
            self.watch()
        except (errors.Unavailable, TypeError) as fault:
            self.send(str(fault).replace("\n", " "))
            return
        finally:
            stopped = self.stop_ordered and self.status is None
            left = self.end()
        status = -signal.SIGKILL if self.status is None else self.status
        self.send(f"{int(status)} {len(self.killed - {self.child})} {left} {int(stopped)}")

    def send(self, line: str) -> None:
        """Report to the supervisor. Ignores a dead supervisor: the tree must end anyway."""
        try:  # noqa: SIM105 - contextlib costs a launch 5 ms
            os.write(self.report, os.fsencode(line) + b"\n")
        except BrokenPipeError:
            pass

    def start(self, stdout: int, stderr: int) -> None:
        """Start the child, then close its streams and leave its folder."""
        plan = self.plan
        for fd in plan.keep:
            os.set_inheritable(fd, False)
        held = plan.confine.held() if plan.confine else []
        if plan.confine:
            plan.confine.confine_this_process()
        self.child = spawn.start(
            plan.argv,
            cwd=plan.cwd,
            env=plan.env,
            stdin=plan.stdin,
            stdout=stdout,
            stderr=stderr,
            session=True,
            keep=held,
            called=plan.name,
        )
        given = {plan.stdin} if isinstance(plan.stdin, int) else set[int]()
        spawn.close({stdout, stderr, *held, *given})
        os.chdir("/")

    def watch(self) -> None:
        """Wait until the child exits or an order comes; reap orphans meanwhile, at least once a second."""
        wake = spawn.exit_descriptor(self.child)
        for fd in {self.control, wake} - {-1}:
            self.poller.register(fd, select.POLLIN)
        while not self.reap() and self.status is None and not self.stop_ordered:
            self.listen(1.0 if wake >= 0 else 0.01)
        self.reap()

    def listen(self, seconds: float) -> None:
        """Wait for an order: the first ends the tree, a second skips the grace; a closed pipe means a dead supervisor."""
        for fd, _ in self.poller.poll(int(seconds * 1000)):
            order = os.read(fd, 1) if fd == self.control else b""
            if not order:
                self.poller.unregister(fd)
            if fd == self.control:
                self.stop_ordered, self.hurry = True, self.hurry or (self.stop_ordered and order != b"")

    def reap(self) -> bool:
        """Reap ended processes; True when no descendant is left."""
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return tree.on_linux() or not self.descendants()
            if pid == 0:
                return False
            if pid == self.child:
                self.status = os.waitstatus_to_exitcode(code)

    def descendants(self) -> dict[int, list[bytes]]:
        """All descendants, alive or zombie."""
        return tree.descendants(os.getpid(), group=self.child)

    def wrapped(self) -> bool:
        """Whether the child is bubblewrap, with the program in a PID namespace below it."""
        return self.plan.confine is not None and self.plan.confine.tier == BUBBLEWRAP

    def namespace_ended(self) -> bool:
        """Whether the namespace is gone, which the kernel ends with bubblewrap within about a millisecond."""
        until = time.monotonic() + NAMESPACE_SECONDS
        while not (gone := self.reap()) and (seconds := until - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, seconds)
        return gone

    def end(self) -> int:
        """End the tree: TERM once to each process, then KILL until none is left; returns how many survive.

        During the grace bubblewrap is spared: on TERM it would end at once, with its namespace.
        """
        if self.reap() or (self.wrapped() and self.status is not None and self.namespace_ended()):
            return 0
        signalled = {self.child} if self.wrapped() else set[int]()
        pause_seconds, now = 0.001, time.monotonic()
        kill_from = now + self.plan.grace_seconds
        while now < kill_from + KILL_SECONDS:
            family = self.descendants()
            if now < kill_from and not self.hurry:
                self.killed |= tree.terminate({pid: fields for pid, fields in family.items() if pid not in signalled})
                signalled.update(family)
            else:
                self.killed |= tree.kill(family)
            if self.reap():
                return 0
            self.listen(pause_seconds)
            now = time.monotonic()
            pause_seconds = min(pause_seconds * 2, 0.05 if now < kill_from else 0.002)  # keeps up with a fork loop
        return len(self.descendants())
