"""Starts programs with default signals and only the descriptors that the caller passes; errors name the program.

`capture` runs a short trusted program (git) within a time limit; supervise.py builds supervised children from the same parts.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from harness.base import errors

CHUNK_BYTES = 65536
STANDARD_SIGNALS = range(1, 32)
FOREVER_SECONDS = 14 * 24 * 3600.0
TERM_SECONDS = 2.0
HELD_FROM = 64  # the first descriptor number of a passed lock


class SignalsBlocked:
    """Blocks all signals inside the `with` block, so that no handler raises between a fork and the code that records it."""

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an inherited SIG_IGN would lose exit codes
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, STANDARD_SIGNALS)

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


def start(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: str | int,
    stdout: int,
    stderr: int,
    session: bool = False,
    keep: Sequence[int] = (),
    called: str = "",
) -> int:
    """Start a program and return its pid: default signals, only these three descriptors, in a new session if `session`.
    `keep` are lock descriptors that the program holds too: the locks stay taken if it outlives this process. `stdin`
    may be a path. `called` replaces the program's name in errors. `env` gives the PATH for the lookup. Raises
    Unavailable when the program, `cwd` or the input is missing. This process changes into `cwd` for a moment (a fork that
    does so costs 3 ms more), which other threads would notice; with "" it stays where it is, and threads may do so at once.
    """
    where, before, source, held = f"in the folder {cwd}", -1, -1, list[int]()
    try:
        if isinstance(stdin, str):  # non-blocking: opening a FIFO would block forever
            where = f"with the input {stdin}"
            source = stdin = high(os.open(stdin, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
        where = f"in the folder {cwd}"
        if cwd:
            before = high(os.open(".", getattr(os, "O_PATH", os.O_RDONLY)))
            os.chdir(cwd)
        for fd in keep:  # sources above all targets: a duplicate must not close what is duplicated next
            held.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HELD_FROM + len(keep)))
        where = "(is it installed, and on PATH?)"
        return os.posix_spawn(
            program(argv[0], env),
            list(argv),
            env,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate((stdin, stdout, stderr))),
                *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()),
                *((os.POSIX_SPAWN_DUP2, fd, HELD_FROM + number) for number, fd in enumerate(held)),
            ],
            setsid=session,
            setsigmask=(),
            setsigdef=set(STANDARD_SIGNALS) - {signal.SIGKILL, signal.SIGSTOP},
        )
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else str(fault)
        raise errors.Unavailable(f"{called or argv[0]} cannot be started {where}: {reason}.") from fault
    finally:
        if before >= 0:
            os.fchdir(before)
        close({before, source, *held} - {-1})


def outside(path: str, trees: Collection[str]) -> str:
    """A value of PATH without relative folders and folders in these trees, where an agent may have written programs."""
    return os.pathsep.join(one for one in path.split(os.pathsep) if os.path.isabs(one) and not is_in(one, trees))


def is_in(path: str, trees: Collection[str]) -> bool:
    """Whether the path leads into one of these folders."""
    return (os.path.realpath(path) + "/").startswith(tuple(tree + "/" for tree in trees))


def program(name: str, env: Mapping[str, str]) -> str:
    """The path of a program: unchanged if it has a slash, else the first executable file on PATH. Raises
    FileNotFoundError."""
    if "/" in name:
        return name
    for folder in env.get("PATH", os.defpath).split(os.pathsep):  # not os.get_exec_path: a guardian must not import
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _descriptors() -> list[int]:
    """The descriptors that may be open in this process."""
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:  # a bare chroot has no /dev/fd
        return list(range(os.sysconf("SC_OPEN_MAX")))


def _inheritable() -> list[int]:
    """Descriptors above 2 that an exec would pass on, such as a lock that a shell opened for this process."""
    return [fd for fd in _descriptors() if fd > 2 and _passes_exec(fd)]


def _passes_exec(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the descriptor of the listing itself, closed by now
        return False


def fork(then: Callable[[], object]) -> int:
    """Fork; the child runs `then`, which must exec or exit and never returns into the caller's code."""
    pid = os.fork()
    if pid == 0:
        try:
            then()
        finally:
            os._exit(70)
    return pid


def pipe() -> tuple[int, int]:
    """(reading end, writing end); neither takes the number of a closed standard stream."""
    reading, writing = os.pipe()
    return high(reading), high(writing)


def one_way() -> tuple[int, int]:
    """As `pipe`, but nobody can read what was written by opening the writing end in /proc."""
    import socket  # loaded for few children

    reading, writing = socket.socketpair()
    reading.shutdown(socket.SHUT_WR)
    return high(reading.detach()), high(writing.detach())


def filled_pipe(content: bytes) -> int:
    """The reading end of a pipe that holds these few bytes and then ends."""
    reading, writing = pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def high(fd: int) -> int:
    """The same file at a descriptor above 2."""
    if fd > 2:
        return fd
    above = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return above


def close(fds: Iterable[int]) -> None:
    """Close each descriptor."""
    for fd in fds:
        os.close(fd)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor of this process that is not in `kept`."""
    for fd in _descriptors():
        if fd not in kept:
            os.closerange(fd, fd + 1)  # the listing's own descriptor is closed already; closerange ignores that


def read(fd: int) -> bytes | None:
    """Read one chunk of a non-blocking descriptor: b"" at the end, None if no data is available now."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        return None


def exit_descriptor(pid: int) -> int:
    """A descriptor that becomes readable when the process ends; -1 if the system does not support it."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def capture(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    wall_seconds: float | None = None,
    keep: Sequence[int] = (),
) -> tuple[int, bytes, bytes]:
    """Run a short trusted program without supervision: (exit code or -signal, stdout, stderr).

    `env` None means this process's environment, `keep` is as in `start`. Raises Unavailable when the program or `cwd`
    is missing, TimeoutError after `wall_seconds`. When an exception interrupts the call, the program's process group
    gets TERM, then KILL. Leftover processes of its group are ended; a daemon in a session of its own is not.
    """
    (out, out_end), (err, err_end) = pipe(), pipe()
    feed_end, feed = pipe() if stdin else (-1, -1)
    ours, theirs, pid = {out, err, feed} - {-1}, {out_end, err_end, feed_end} - {-1}, 0
    source, until = feed_end if stdin else os.devnull, time.monotonic() + (wall_seconds or FOREVER_SECONDS)
    given = os.environ if env is None else env
    try:
        with SignalsBlocked():
            try:
                pid = start(
                    argv, cwd=cwd, env=given, stdin=source, stdout=out_end, stderr=err_end, session=True, keep=keep
                )
            finally:
                close(theirs)
        got = _exchange(pid, (out, err), feed, stdin, ours, until)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        ended, pid = pid, 0
        return _reap_group(ended), bytes(got[out]), bytes(got[err])
    finally:
        close(ours)
        if pid:
            os.killpg(pid, signal.SIGTERM)
            _wait_briefly(pid)
            _reap_group(pid)


def _wait_briefly(pid: int) -> None:
    """Give a program time to end."""
    until = time.monotonic() + TERM_SECONDS
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < until:
        time.sleep(0.01)


def attend(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], keep: Sequence[int]) -> int:
    """Give this terminal to a person's program until it ends; returns its exit code or -signal. `keep` is as in `start`.
    Ctrl-C is for the program alone; when a signal interrupts this process, the program gets HUP, then KILL."""
    for one in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(one, lambda *_: None)  # from here on: what follows takes moments
    pid = start(argv, cwd=cwd, env=env, stdin=0, stdout=1, stderr=2, keep=keep)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except errors.Interruption:
        os.kill(pid, signal.SIGHUP)
        _wait_briefly(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _reap_group(pid: int) -> int:
    """End the rest of the program's process group and reap the program; returns its exit code or -signal."""
    try:  # noqa: SIM105 - contextlib costs a launch 5 ms
        os.killpg(pid, signal.SIGKILL)  # not reaped yet, so the pid is not reused
    except (ProcessLookupError, PermissionError):  # macOS, if the group consists of a zombie
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _exchange(
    pid: int, outs: tuple[int, int], feed: int, stdin: bytes, ours: set[int], until: float
) -> dict[int, bytearray]:
    """Feed and read until both outputs close or the program exits; a daemon that keeps them open does not block the call."""
    got, todo, wake = {fd: bytearray() for fd in outs}, memoryview(stdin), exit_descriptor(pid)
    ours |= {wake} - {-1}
    poller, open_outs = select.poll(), set(outs)
    for fd in ours & {*outs, feed, wake}:
        os.set_blocking(fd, False)
        poller.register(fd, select.POLLOUT if fd == feed else select.POLLIN)
    ready: list[int] = []
    while open_outs and wake not in ready:
        ready = [fd for fd, _ in poller.poll(max(0, until - time.monotonic()) * 1000)]
        if not ready and time.monotonic() >= until:
            raise TimeoutError
        for fd in open_outs & set(ready):
            chunk = read(fd)
            got[fd] += chunk or b""
            if chunk == b"":
                open_outs.discard(fd)
                poller.unregister(fd)
        if feed in ready:
            todo = _feed(feed, todo)
            if not todo:
                poller.unregister(feed)
                ours.discard(feed)
                os.close(feed)
    for fd in open_outs:
        while chunk := read(fd):
            got[fd] += chunk
    return got


def _feed(fd: int, todo: memoryview) -> memoryview:
    """Write what the pipe takes now and return the rest; an empty rest when the reader is gone."""
    try:
        return todo[os.write(fd, todo[:CHUNK_BYTES]) :]
    except BrokenPipeError:
        return todo[:0]
