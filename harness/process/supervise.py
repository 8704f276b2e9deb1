"""Supervises a child process: however it ends, none of its descendants survives.

This process forks a guardian, and the guardian forks the child. The guardian is a subreaper, so it adopts the child's
orphans. It polls a pipe that only this process holds open, and ends the process tree when the child exits, on request, or
when this process dies. This process is a subreaper too: it ends the orphans of a killed guardian. When both are killed, the
next start calls `sweep`. Without /proc (not Linux) process groups and `ps` replace this; a daemon in a new session escapes.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.base import errors, exits
from harness.base.record import Record
from harness.process import _write_order, spawn, tree
from harness.process._guardian import Guardian, GuardianPlan
from harness.process._write_order import OrderedPoller
from harness.process.confine import Confinement
from harness.process.spawn import capture
from harness.process.timeouts import Timeouts, TimeoutWatch
from harness.process.tree import KILL_SECONDS, TAG, pid_record, sweep, tagged_ancestor

__all__ = [
    "TAG",
    "Child",
    "ChildEnd",
    "Timeouts",
    "capture",
    "end_with_parent",
    "pid_record",
    "require_parent",
    "run",
    "spare",
    "sweep",
    "tagged_ancestor",
    "unspare",
]

TICK_SECONDS = 0.2
_guardians: set[int] = set()  # guardians that this process started and has not reaped
_spared: set[int] = set()  # other children of this process, which are not orphans of a guardian
_forking = [threading.Lock()]  # held from a fork until the child is known: else another thread ends it as an orphan
_required_parent: list[int] = []  # pid of the parent that this process must not outlive


def end_with_parent(parent: int) -> None:
    """Tie this process to `parent` (its parent): when that dies, `output` raises Interruption once and children end.
    So a run does not outlive its killed loop. The check polls 5 times a second and needs neither signals nor ctypes. 0
    unties a fork of such a process.
    """
    _required_parent[:] = [parent] if parent else []


def fork_spared(then: Callable[[], object]) -> int:
    """As spawn.fork, for a child that is not a guardian's orphan; call `unspare` once it is reaped."""

    def first() -> None:
        _forking[0] = threading.Lock()  # the old one is held by a thread that the fork lacks
        then()

    with _forking[0]:
        pid = spawn.fork(first)
        spare(pid)
    return pid


def spare(pid: int) -> None:
    """Exempt this child from the end of a guardian's orphans; call `unspare` once it is reaped."""
    _spared.add(pid)


def unspare(pid: int) -> None:
    """Forget a child that was reaped."""
    _spared.discard(pid)


def require_parent() -> None:
    """Raise Interruption if the parent given to `end_with_parent` has died; only once, so that the cleanup can finish."""
    if _required_parent and os.getppid() != _required_parent[0]:
        _required_parent.clear()
        raise errors.Interruption(signal.SIGTERM)


class ChildEnd(Record):
    """How a child ended. `exit`: None when a signal or a limit ended it; `cause`: "exit", "stopped", or the limit's name.

    `killed` counts the descendants (without the child) that had to be ended. `left` counts those that survived SIGKILL until
    the timeout: processes of another user, or stuck in the kernel.
    """

    exit: int | None
    signal: int | None
    cause: str
    seconds: float
    killed: int
    left: int = 0


class Child:
    """One supervised child, as a context manager: leaving it ends the whole process tree and waits until it is gone.

    `stdin` is the path of a regular file, or a descriptor of the caller's (None: /dev/null). The guardian holds the
    lock descriptors `keep` until all is reaped. `merge` sends stderr to stdout; `ordered` keeps them apart and yields them in
    the order in which they were written, in pieces of at most 4 KB (on Linux); `sealed`: stderr is apart, and no program can
    read back what was written to it. `confine` confines it; bubblewrap reports the end by signal n as exit 128 + n. The
    caller reports events in the output to `watch`. Raises Unavailable when the program or `cwd` is missing, GuardianKilled
    when an external signal kills the guardian.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: str | int | None = None,
        wall_seconds: float,
        grace_seconds: float = 5.0,
        keep: Sequence[int] = (),
        merge: bool = False,
        ordered: bool = False,
        sealed: bool = False,
        timeouts: Timeouts | None = None,
        confine: Confinement | None = None,
    ) -> None:
        self.pid, self.name = 0, argv[0]
        self.ended: ChildEnd | None = None
        self._guardian = 0
        self._grace_seconds = grace_seconds
        self._cause, self._answer_by, self._hurried, self._bereft = "", 0.0, False, False
        self._refused = False
        self._control, self._report, self._received = -1, -1, b""
        self._ours: list[int] = []
        self._streams: dict[int, str] = {}
        self._poller: select.poll | OrderedPoller = select.poll()
        self._ordered, self._sealed = ordered and _write_order.AVAILABLE, sealed
        tree.adopt_orphans()
        self.watch = TimeoutWatch(wall_seconds, timeouts or Timeouts(), time.monotonic())
        plan = GuardianPlan(
            name=argv[0],
            argv=confine.words(argv, cwd=cwd, env=env) if confine else argv,
            cwd=cwd,
            env=env,
            stdin=os.devnull if stdin in (None, "") else stdin,
            merge=merge and not sealed,
            keep=keep,
            grace_seconds=self._grace_seconds,
            confine=confine,
        )
        try:
            with spawn.SignalsBlocked():
                self._launch(plan)
            self._await_start(argv[0])
        except BaseException:
            self.close()
            raise

    def _launch(self, plan: GuardianPlan) -> None:
        """Make the pipes and fork the guardian."""
        ends: list[int] = []
        try:
            for _ in range(3):
                ends += spawn.pipe()
            if not plan.merge:
                ends += spawn.one_way() if self._sealed else spawn.pipe()
            orders, self._control, self._report, report, out, out_end = ends[:6]
            err, err_end = ends[6:] or (-1, out_end)
            if self._ordered:
                self._poller = OrderedPoller({out: out_end, err: err_end})
            guardian = Guardian(plan, orders, report)
            with _forking[0]:
                self._guardian = spawn.fork(lambda: guardian.guard(out_end, err_end))
                _guardians.add(self._guardian)
        except OSError as fault:
            spawn.close(ends)
            raise errors.Unavailable(f"{plan.name} cannot be started: {fault.strerror}.") from fault
        self.watch.root = self._guardian
        spawn.close({report, out_end, err_end})
        self._streams = {out: "stdout"} if plan.merge else {out: "stdout", err: "stderr"}
        self._ours = [orders, self._control, self._report]  # `orders` stays open against SIGPIPE from a dead guardian
        for fd in (self._report, *self._streams):
            os.set_blocking(fd, fd == self._report)
            self._poller.register(fd, select.POLLIN)

    def _await_start(self, program: str) -> None:
        """Read the guardian's first line: the child's pid, or the reason why it did not start."""
        while b"\n" not in self._received and (news := os.read(self._report, 4096)):
            self._received += news
        pid, _, self._received = self._received.partition(b"\n")
        if not pid.isdigit():
            self._refused = bool(pid)
            raise errors.Unavailable(os.fsdecode(pid)) if pid else errors.GuardianKilled(program)
        self.pid = int(pid)

    def output(self) -> Iterator[tuple[str, bytes]]:
        """Yield ("stdout" | "stderr", at most 64 KiB), and ("", b"") about 5 times a second while there is no output.
        Ends when the tree is gone and `ended` is set; closing the generator ends the tree. Raises GuardianKilled if the
        guardian was killed: the child's result is then unknown.
        """
        try:
            while self.ended is None:
                require_parent()
                yield from self._step() or [("", b"")]
        finally:
            self.close()
        if self._bereft:
            raise errors.GuardianKilled(self.name)

    @property
    def silent(self) -> bool:
        """Whether standard output is closed, so that no more output can come."""
        return "stdout" not in self._streams.values()

    def stop(self) -> None:
        """Request the end of the tree (cause "stopped") and return at once; `output` or leaving the context waits."""
        self._ask("stopped")

    def close(self) -> None:
        """End the tree and wait until it is gone; a signal meanwhile cuts the grace short, and is raised afterwards."""
        if not self._guardian or self.ended is not None:
            return
        with spawn.SignalsBlocked():
            self._ask("stopped")
            while self.ended is None:
                self._step()
                waiting = signal.sigpending() & {*exits.ENDING}  # also ignored ones: they are blocked
                if not self._hurried and any(signal.getsignal(one) is not signal.SIG_IGN for one in waiting):
                    self._order()
                    self._hurried = True

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """A child that is garbage-collected ends too: its guardian sees the pipe close."""
        self._release()

    def _release(self) -> None:
        ours, self._ours, self._streams = (*self._ours, *self._streams), [], {}
        self._poller = select.poll()
        spawn.close(ours)

    def _ask(self, cause: str) -> None:
        if self._guardian and not self._cause and self.ended is None:
            self._cause = cause
            self._answer_by = time.monotonic() + self._grace_seconds + KILL_SECONDS + 5.0
            self._order()

    def _order(self) -> None:
        if self.ended is None:
            os.write(self._control, b".")

    def _step(self) -> list[tuple[str, bytes]]:
        """Check the limits, wait at most one tick, and return the output that came."""
        now = time.monotonic()
        limit, wait_seconds = self.watch.overdue(now)
        if limit:
            self._ask(limit)
        if self._cause and now > self._answer_by:
            os.kill(self._guardian, signal.SIGKILL)  # it is stopped (SIGSTOP); this process adopts its tree
        wait_seconds = TICK_SECONDS if self._cause else min(TICK_SECONDS, wait_seconds)
        ready = [fd for fd, _ in self._poller.poll(0 if self._received else max(1, int(wait_seconds * 1000)))]
        found = [(self._streams[fd], chunk) for fd in ready if fd in self._streams and (chunk := self._take(fd))]
        if found:
            self.watch.output_received(now)
            if isinstance(self._poller, OrderedPoller):
                self._poller.passed(sum(len(chunk) for _, chunk in found))
        if self._report in ready or self._received:
            news = self._received or os.read(self._report, 4096)  # one write, so one line; empty: it was killed
            self._received = next((line for line in news.split(b"\n") if line.count(b" ") == 3), b"")
            if self._received or not news:  # else it is the first line, unread after an interruption
                with spawn.SignalsBlocked():  # a signal before `ended` is set would make it wait for the guardian twice
                    found += self._settle()
        return found

    def _take(self, fd: int) -> bytes:
        """Read one chunk; b"" if no data is available, and at the end of the stream, which is then closed."""
        chunk = spawn.read(fd)
        if chunk == b"":
            self._poller.unregister(fd)
            del self._streams[fd]
            os.close(fd)
        return chunk or b""

    def _settle(self) -> list[tuple[str, bytes]]:
        """Reap the ended guardian, finish its work if it was killed, and set `ended`; returns the rest of the output."""
        if self._received:
            os.waitpid(self._guardian, 0)
            status, killed, left, asked = map(int, self._received.split())
        elif self._refused:  # the guardian ended by itself, after its tree
            os.waitpid(self._guardian, 0)
            status, killed, left, asked = -int(signal.SIGKILL), 0, 0, True
        else:
            status, killed, left = self._end_orphans()
            asked = self._cause != ""
            self._bereft = not asked
        _guardians.discard(self._guardian)
        rest = []
        for fd, name in list(self._streams.items()):
            for _ in range(64):  # bounded, for a writer that survived SIGKILL
                if not (chunk := self._take(fd)):
                    break
                rest.append((name, chunk))
        self._release()
        cause = self._cause if asked else "exit"
        self.ended = ChildEnd(
            exit=status if status >= 0 and cause == "exit" else None,
            signal=-status if status < 0 else None,
            cause=cause,
            seconds=time.monotonic() - self.watch.started,
            killed=killed,
            left=left,
        )
        return rest

    def _end_orphans(self) -> tuple[int, int, int]:
        """Replace a killed guardian: end and reap the orphans that this process adopted; (exit or -signal, killed, left)."""
        born = int((tree.stat(self._guardian) or [b"0"] * 20)[19])
        os.waitpid(self._guardian, 0)  # the kernel reparents its children before this returns
        _guardians.discard(self._guardian)
        status, killed, until = -int(signal.SIGKILL), set[int](), time.monotonic() + KILL_SECONDS
        while True:
            with _forking[0]:
                orphans = tree.adopted(born, spared=_guardians | _spared, group=self.pid)
                if not orphans or time.monotonic() > until:
                    break
                for root, fields in orphans.items():
                    killed |= tree.kill({root: fields, **tree.descendants(root)})
                    code = tree.reap(root)
                    if root == self.pid and code is not None:
                        status = os.waitstatus_to_exitcode(code)
            time.sleep(0.002)
        return status, len(killed - {self.pid}), len(orphans)


def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    wall_seconds: float,
    sink: Callable[[str, bytes], None],
    keep: Sequence[int] = (),
    stdin: str | None = None,
    grace_seconds: float = 5.0,
    merge: bool = True,
    sealed: bool = False,
    confine: Confinement | None = None,
) -> ChildEnd:
    """Run a child to its end and pass each chunk to `sink(stream, chunk)`; raises what Child raises."""
    with Child(
        argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        wall_seconds=wall_seconds,
        grace_seconds=grace_seconds,
        keep=keep,
        merge=merge,
        sealed=sealed,
        confine=confine,
    ) as child:
        for stream, chunk in child.output():
            if chunk:
                sink(stream, chunk)
    assert child.ended is not None, "output() ends only with the tree"
    return child.ended
