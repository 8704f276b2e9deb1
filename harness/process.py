"""A child process that leaves nothing behind: after its run, however that ended, no descendant of it lives.

We fork a guardian, the guardian forks the child. The guardian is a subreaper, so whatever the child leaves behind becomes
the guardian's; it watches a pipe whose other end only we hold, and ends the tree when the child exits, when we ask, or
when we die. We are a subreaper too: when the guardian is killed its orphans are ours to end. When both are killed, the next
start calls `sweep`. Without /proc (not Linux) process groups and `ps` stand in, which a daemon in its own session escapes.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import time

from harness import errors, kin, spawn
from harness.kin import KILL_SECONDS, TAG, pid_record, sweep, tagged_ancestor
from harness.record import Record
from harness.spawn import capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["TAG", "Child", "Ended", "capture", "pid_record", "run", "sweep", "tagged_ancestor"]

TICK_SECONDS = 0.2
_guardians: set[int] = set()  # the living guardians that this process started


class Ended(Record):
    """How a child ended: `exit` is None when a signal or a limit ended it; `cause` is exit, wall or stopped.

    `killed` counts the descendants (without the child) that had to be ended, `left` those that even SIGKILL did not end
    in time: another user's, or stuck in the kernel.
    """

    exit: int | None
    signal: int | None
    cause: str
    seconds: float
    killed: int
    left: int = 0


class Child:
    """One supervised child; use it as a context manager, leaving it ends the whole tree and waits until it is gone.

    `stdin` is the path of a regular file (None: /dev/null); `keep` are lock descriptors that the guardian holds until it
    has reaped everything; `merge` sends stderr into stdout. Raises Unavailable when the program or `cwd` is missing.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        stdin: str | None = None,
        wall_seconds: float,
        grace_seconds: float = 5.0,
        keep: Sequence[int] = (),
        merge: bool = False,
        term_first: bool = True,
    ) -> None:
        self.pid = 0
        self.ended: Ended | None = None
        self._guardian = 0
        self._wall_seconds, self._grace_seconds = wall_seconds, grace_seconds if term_first else 0.0
        self._cause, self._answer_by, self._hurried = "", 0.0, False
        self._control, self._report, self._told = -1, -1, b""
        self._ours: list[int] = []
        self._streams: dict[int, str] = {}
        self._poller = select.poll()
        kin.adopt_orphans()
        self._started = time.monotonic()
        plan = _Plan(
            argv=argv,
            cwd=cwd,
            env=env,
            stdin=stdin or os.devnull,
            merge=merge,
            keep=keep,
            grace_seconds=self._grace_seconds,
        )
        try:
            with spawn.Quiet():
                self._launch(plan)
            self._await_start(argv[0])
        except BaseException:
            self.close()
            raise

    def _launch(self, plan: _Plan) -> None:
        """Make the pipes and fork the guardian."""
        ends: list[int] = []
        try:
            for _ in range(3 if plan.merge else 4):
                ends += spawn.pipe()
            heard, self._control, self._report, report, out, out_end = ends[:6]
            err, err_end = ends[6:] or (-1, out_end)
            guardian = _Guardian(plan, heard, report)
            self._guardian = spawn.fork(lambda: guardian.guard(out_end, err_end))
        except OSError as fault:
            spawn.close(ends)
            raise errors.Unavailable(f"{plan.argv[0]} cannot be started: {fault.strerror}.") from fault
        _guardians.add(self._guardian)
        spawn.close({report, out_end, err_end})
        self._streams = {out: "stdout"} if plan.merge else {out: "stdout", err: "stderr"}
        self._ours = [heard, self._control, self._report]  # `heard`: asking a dead guardian raises no SIGPIPE
        for fd in (self._report, *self._streams):
            os.set_blocking(fd, fd == self._report)
            self._poller.register(fd, select.POLLIN)

    def _await_start(self, program: str) -> None:
        """The guardian's first line is the child's pid, or why there is none."""
        while b"\n" not in self._told and (news := os.read(self._report, 4096)):
            self._told += news
        pid, _, self._told = self._told.partition(b"\n")
        if not pid.isdigit():
            killed = f"{program} cannot be started: its guardian was killed; try again."
            raise errors.Unavailable(os.fsdecode(pid) or killed)
        self.pid = int(pid)

    def output(self) -> Iterator[tuple[str, bytes]]:
        """("stdout" | "stderr", at most 64 KiB), and ("", b"") about 5 times a second while nothing comes.

        Ends when the tree is gone, with `ended` set; closing the generator ends the tree.
        """
        try:
            while self.ended is None:
                yield from self._step() or [("", b"")]
        finally:
            self.close()

    def stop(self) -> None:
        """Ask for the end of the tree (cause "stopped") and return at once; `output` or leaving the context waits."""
        self._ask("stopped")

    def close(self) -> None:
        """End the tree and wait until it is gone; a signal that comes meanwhile cuts the grace short, and is raised after."""
        if not self._guardian or self.ended is not None:
            return
        with spawn.Quiet():
            self._ask("stopped")
            while self.ended is None:
                self._step()
                if not self._hurried and signal.sigpending() & {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}:
                    self._order()
                    self._hurried = True

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """A forgotten child ends too: its guardian sees the pipe closed."""
        self._release()

    def _release(self) -> None:
        ours, self._ours, self._streams = (*self._ours, *self._streams), [], {}
        spawn.close(ours)

    def _ask(self, cause: str) -> None:
        if self._guardian and not self._cause and self.ended is None:
            self._cause = cause
            self._answer_by = time.monotonic() + self._grace_seconds + KILL_SECONDS + 5.0
            self._order()

    def _order(self) -> None:
        if self.ended is None:
            os.write(self._control, b".")

    def _overdue(self, now: float) -> tuple[str, float]:
        """The limit that has run out, or "", and the seconds until one may; a further limit is a further line here."""
        wall = self._started + self._wall_seconds - now
        return ("wall" if wall <= 0 else "", wall)

    def _step(self) -> list[tuple[str, bytes]]:
        """Keep the limits, wait at most one tick, and take what came."""
        now = time.monotonic()
        limit, wait_seconds = self._overdue(now)
        if limit:
            self._ask(limit)
        if self._cause and now > self._answer_by:
            os.kill(self._guardian, signal.SIGKILL)  # somebody stopped it; its tree then falls to us
        wait_seconds = TICK_SECONDS if self._cause else min(TICK_SECONDS, wait_seconds)
        ready = [fd for fd, _ in self._poller.poll(0 if self._told else max(1, int(wait_seconds * 1000)))]
        found = [(self._streams[fd], chunk) for fd in ready if fd in self._streams and (chunk := self._take(fd))]
        if self._report in ready or self._told:
            news = self._told or os.read(self._report, 4096)  # a line comes at once, so whole; empty: it was killed
            self._told = next((line for line in news.split(b"\n") if line.count(b" ") == 3), b"")
            if self._told or not news:  # else it was a first line that an interrupted caller had not taken
                found += self._settle()
        return found

    def _take(self, fd: int) -> bytes:
        """One chunk; nothing when there is none now, and at the end, after which the stream is forgotten."""
        chunk = spawn.read(fd)
        if chunk == b"":
            self._poller.unregister(fd)
            del self._streams[fd]
            os.close(fd)
        return chunk or b""

    def _settle(self) -> list[tuple[str, bytes]]:
        """The guardian has ended: reap it, do its work if it was killed, set `ended`; returns the rest of the output."""
        if self._told:
            os.waitpid(self._guardian, 0)
            status, killed, left, asked = map(int, self._told.split())
        else:
            status, killed, left = self._bury()
            asked = self._cause != ""
        _guardians.discard(self._guardian)
        rest = []
        for fd, name in list(self._streams.items()):
            for _ in range(64):  # a bound, for a writer that could not be ended
                if not (chunk := self._take(fd)):
                    break
                rest.append((name, chunk))
        self._release()
        cause = self._cause if asked else "exit"
        self.ended = Ended(
            exit=status if status >= 0 and cause == "exit" else None,
            signal=-status if status < 0 else None,
            cause=cause,
            seconds=time.monotonic() - self._started,
            killed=killed,
            left=left,
        )
        return rest

    def _bury(self) -> tuple[int, int, int]:
        """The guardian was killed: end and reap the orphans that fell to us; returns (exit or -signal, killed, left)."""
        born = int((kin.stat(self._guardian) or [b"0"] * 20)[19])
        os.waitpid(self._guardian, 0)  # its children are handed over before this returns
        _guardians.discard(self._guardian)
        status, killed, until = -int(signal.SIGKILL), set[int](), time.monotonic() + KILL_SECONDS
        while fallen := kin.fallen(born, spared=_guardians, group=self.pid):
            if time.monotonic() > until:
                break
            for root, fields in fallen.items():
                killed |= kin.kill({root: fields, **kin.family(root)})
                code = kin.reap(root)
                if root == self.pid and code is not None:
                    status = os.waitstatus_to_exitcode(code)
            time.sleep(0.002)
        return status, len(killed - {self.pid}), len(fallen)


class _Plan(Record):
    """What the guardian must know: the program and its surroundings, the locks to hold, the seconds from TERM to KILL."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdin: str
    merge: bool
    keep: Sequence[int]
    grace_seconds: float


class _Guardian:
    """The process between us and the child. Every signal stays blocked in it, and it ends in `os._exit`."""

    def __init__(self, plan: _Plan, control: int, report: int) -> None:
        self.plan, self.control, self.report = plan, control, report
        self.child = 0
        self.status: int | None = None
        self.asked = self.hurry = False
        self.killed: set[int] = set()
        self.poller = select.poll()

    def guard(self, stdout: int, stderr: int) -> None:
        """Start the child, wait for its end or for an order, end the tree, report. Runs in the fork, which then exits."""
        gc.disable()  # collecting our parent's objects would close descriptors that are ours by now
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        spawn.close_all_but({0, 1, 2, self.control, self.report, stdout, stderr, *self.plan.keep})
        kin.adopt_orphans()
        try:
            self.start(stdout, stderr)
            self.tell(str(self.child))
            self.watch()
        except (errors.Unavailable, TypeError) as fault:
            self.tell(str(fault).replace("\n", " "))
            return
        finally:
            stopped = self.asked and self.status is None
            left = self.end()
        status = -signal.SIGKILL if self.status is None else self.status
        self.tell(f"{int(status)} {len(self.killed - {self.child})} {left} {int(stopped)}")

    def tell(self, line: str) -> None:
        """Report, if our parent is still there to hear it; when it is not, there is a tree to end all the same."""
        try:  # noqa: SIM105 - contextlib costs a launch 5 ms
            os.write(self.report, os.fsencode(line) + b"\n")
        except BrokenPipeError:
            pass

    def start(self, stdout: int, stderr: int) -> None:
        """Start the child, then let go of its streams and of the folder."""
        plan = self.plan
        for fd in plan.keep:
            os.set_inheritable(fd, False)
        self.child = spawn.start(
            plan.argv, cwd=plan.cwd, env=plan.env, stdin=plan.stdin, stdout=stdout, stderr=stderr, session=True
        )
        spawn.close({stdout, stderr})
        os.chdir("/")

    def watch(self) -> None:
        """Until the child has exited or somebody asks; what the child orphans meanwhile is reaped every second."""
        wake = spawn.exit_descriptor(self.child)
        for fd in {self.control, wake} - {-1}:
            self.poller.register(fd, select.POLLIN)
        while not self.reap() and self.status is None and not self.asked:
            self.listen(1.0 if wake >= 0 else 0.01)
        self.reap()

    def listen(self, seconds: float) -> None:
        """Wait for an order: the first asks for the end, a second for haste; a closed pipe says that our parent is dead."""
        for fd, _ in self.poller.poll(int(seconds * 1000)):
            order = os.read(fd, 1) if fd == self.control else b""
            if not order:
                self.poller.unregister(fd)
            if fd == self.control:
                self.asked, self.hurry = True, self.hurry or (self.asked and order != b"")

    def reap(self) -> bool:
        """Collect what has ended; True when no descendant is left."""
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return kin.on_linux() or not self.family()
            if pid == 0:
                return False
            if pid == self.child:
                self.status = os.waitstatus_to_exitcode(code)

    def family(self) -> dict[int, list[bytes]]:
        """All descendants that are left."""
        return kin.family(os.getpid(), group=self.child)

    def end(self) -> int:
        """End the tree: TERM once to each, then KILL until nothing is left; returns how many are left all the same."""
        if self.reap():
            return 0
        asked: set[int] = set()
        pause_seconds, now = 0.001, time.monotonic()
        kill_from = now + self.plan.grace_seconds
        while now < kill_from + KILL_SECONDS:
            family = self.family()
            if now < kill_from and not self.hurry:
                self.killed |= kin.terminate({pid: fields for pid, fields in family.items() if pid not in asked})
                asked.update(family)
            else:
                self.killed |= kin.kill(family)
            if self.reap():
                return 0
            self.listen(pause_seconds)
            now = time.monotonic()
            pause_seconds = min(pause_seconds * 2, 0.05 if now < kill_from else 0.002)  # keep up with what forks fast
        return len(self.family())


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
) -> Ended:
    """Run a child to its end and hand each chunk to `sink(stream, chunk)`; raises what Child raises."""
    with Child(
        argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        wall_seconds=wall_seconds,
        grace_seconds=grace_seconds,
        keep=keep,
        merge=merge,
    ) as child:
        for stream, chunk in child.output():
            if chunk:
                sink(stream, chunk)
    assert child.ended is not None, "output() ends only with the tree"
    return child.ended
