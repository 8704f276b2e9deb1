"""Promises of harness/process/supervise.py: whatever a child does and however its run ends, no descendant survives."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.base import errors
from harness.process import _guardian, supervise, tree

ADVERSARY = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "adversary.py")]
FOUR = {"plain", "session", "daemon", "ignorer"}
PATIENCE_SECONDS = 60.0
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


@pytest.fixture
def tag(tmp_path: Path) -> Iterator[str]:
    """A tag for what a test starts, so that a failing test leaves nothing behind either."""
    name = f"test-{os.getpid()}-{tmp_path.name}"
    yield name
    supervise.sweep(name)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Where the adversary's processes write their pids."""
    made = tmp_path / "pids"
    made.mkdir()
    return str(made)


def eventually(met: Callable[[], bool]) -> bool:
    """Whether it becomes true before the timeout."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not met():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def lives(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    fields = tree.stat(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def read_pid(folder: str, name: str) -> int:
    """The pid that one of the adversary's processes wrote."""
    return int(Path(folder, name).read_text(encoding="ascii"))


def survivors(folder: str) -> set[str]:
    """The adversary's processes that are alive."""
    names = (FOUR | {"child"}) & set(os.listdir(folder))
    return {name for name in names if lives(read_pid(folder, name))}


def all_there(folder: str) -> bool:
    """Whether the adversary has started all its processes."""
    return FOUR | {"child"} <= set(os.listdir(folder))


def start(argv: list[str], *, tag: str = "", wall_seconds: float = 60.0, grace_seconds: float = 0.2) -> supervise.Child:
    """A supervised child in / with short grace."""
    env = ENV | ({supervise.TAG: tag} if tag else {})
    return supervise.Child(argv, cwd="/", env=env, wall_seconds=wall_seconds, grace_seconds=grace_seconds)


def finish(child: supervise.Child) -> tuple[supervise.ChildEnd, bytes]:
    """Read a child to its end: how it ended, and its output of both streams."""
    got = b"".join(chunk for _, chunk in child.output())
    assert child.ended is not None
    return child.ended, got


def shell(script: str, *, wall_seconds: float = 60.0, grace_seconds: float = 0.2) -> tuple[supervise.ChildEnd, bytes]:
    """Run a shell script to its end under supervision."""
    with start(["sh", "-c", script], wall_seconds=wall_seconds, grace_seconds=grace_seconds) as child:
        return finish(child)


# --- nothing survives ---------------------------------------------------------------------------------------------------


def test_nothing_survives_a_child_that_exits_cleanly(folder: str, tag: str) -> None:
    """Four processes in sessions of their own, one ignores TERM, all hold stdout: ended, counted, and nothing hangs."""
    ended, got = finish(start([*ADVERSARY, "spawn", folder, "exit"], tag=tag))
    assert (ended.exit, ended.signal, ended.cause, ended.killed, ended.left) == (0, None, "exit", 4, 0)
    assert got == b"ready\n"
    assert survivors(folder) == set()


def test_nothing_survives_the_wall_limit(folder: str, tag: str) -> None:
    """The limit ends the whole tree, and there is no exit code."""
    ended, _ = finish(start([*ADVERSARY, "spawn", folder, "stay"], tag=tag, wall_seconds=1.0))
    assert all_there(folder)
    assert (ended.exit, ended.cause, ended.killed, ended.left) == (None, "wall", 4, 0)
    assert survivors(folder) == set()


def test_nothing_survives_when_the_guardian_is_killed(folder: str, tag: str) -> None:
    """We adopt its orphans and end them."""
    with start([*ADVERSARY, "spawn", folder, "stay"], tag=tag) as child:
        for _ in child.output():
            if all_there(folder):
                os.kill(int(tree.stat(child.pid)[1]), signal.SIGKILL)
                break
        assert child.ended is not None, "closing the output waits for the end"
    assert (child.ended.signal, child.ended.killed) == (signal.SIGKILL, 4)
    assert survivors(folder) == set()


@pytest.mark.parametrize("step", ["guard", "start"])
def test_a_guardian_that_is_killed_before_its_program_starts_is_not_the_programs_fault(
    monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """At its first step, and when all is prepared for the program; no process is left."""

    def killed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(_guardian.Guardian, step, killed)  # in the fork that becomes the guardian
    before = {*tree.descendants(os.getpid())}  # of other tests
    with pytest.raises(errors.GuardianKilled):
        start(["true"])
    assert eventually(lambda: {*tree.descendants(os.getpid())} <= before)


SPARED = """import os, signal, time
from harness.base import errors
from harness.process import supervise
for _ in range(40):
    pid = os.fork()
    if not pid:
        os.setsid()
        time.sleep(60)
    supervise.spare(pid)
    try:
        supervise.Child(["no-such-program"], cwd="/", env={"PATH": "/bin"}, wall_seconds=9)
    except errors.Unavailable:
        pass
    assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None, "it was ended"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    supervise.unspare(pid)
"""


def test_a_child_of_ours_is_spared_where_a_program_does_not_start() -> None:
    """It is in another session and as young as the guardian (a clock tick is 10 ms), as orphans of a guardian are."""
    env = {**ENV, "PYTHONPATH": str(Path(supervise.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", SPARED], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_killing_one_guardian_spares_what_other_guardians_keep(folder: str, tag: str) -> None:
    """Of two children at once, one loses its guardian; the other is not affected."""
    with (
        start(["sh", "-c", "setsid sleep 60 & wait"]) as other,
        start([*ADVERSARY, "spawn", folder, "stay"], tag=tag) as one,
    ):
        bystander = subprocess.Popen(["sleep", "60"])
        assert eventually(lambda: all_there(folder))
        os.kill(int(tree.stat(one.pid)[1]), signal.SIGKILL)
        with pytest.raises(errors.GuardianKilled, match="guardian of"):
            finish(one)
        assert survivors(folder) == set()
        assert lives(other.pid)
        assert bystander.poll() is None
        bystander.kill()
        bystander.wait()
    assert other.ended is not None
    assert (other.ended.cause, other.ended.killed) == ("stopped", 1)


@pytest.fixture
def supervisor(folder: str, tag: str) -> Iterator[Callable[[float], subprocess.Popen[bytes]]]:
    """Start a supervisor as a process of its own, with a run of the adversary in progress."""
    started = []

    def begin(grace_seconds: float) -> subprocess.Popen[bytes]:
        argv = [*ADVERSARY, "supervise", folder, f"{folder}/lock", str(grace_seconds)]
        started.append(subprocess.Popen(argv, env=ENV | {supervise.TAG: tag}))
        assert eventually(lambda: all_there(folder) and os.path.exists(f"{folder}/guardian"))
        return started[-1]

    yield begin
    for each in started:
        each.kill()
        each.wait()


Begin = Callable[[float], "subprocess.Popen[bytes]"]


def test_nothing_survives_a_supervisor_that_gets_sigterm(supervisor: Begin, folder: str) -> None:
    """Our handler only raises; the tree is gone when our program is."""
    program = supervisor(0.2)
    program.terminate()
    assert program.wait(PATIENCE_SECONDS) == errors.TERMINATED
    assert survivors(folder) == set()


def test_a_second_signal_cuts_the_grace_short_and_leaves_nothing(supervisor: Begin, folder: str) -> None:
    """A second Ctrl-C skips the rest of the grace and leaves no orphans."""
    program = supervisor(10 * PATIENCE_SECONDS)
    program.terminate()
    assert eventually(lambda: survivors(folder) == {"ignorer"})
    program.terminate()
    assert program.wait(PATIENCE_SECONDS) == errors.TERMINATED
    assert survivors(folder) == set()


def test_a_signal_that_is_ignored_cuts_no_grace_short(tmp_path: Path) -> None:
    """Such as a hang-up under nohup: the kernel keeps it while it is blocked."""
    slow = "import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(0.8), open('whole', 'w'), sys.exit()))"
    program = f"import os; os.chdir({str(tmp_path)!r}); {slow}; print('begun', flush=True); time.sleep(60)"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with start([sys.executable, "-c", program], grace_seconds=60) as child:
            said = child.output()
            assert next(chunk for _, chunk in said if chunk) == b"begun\n"
            hang_up = subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -HUP {os.getpid()}"])
        hang_up.wait()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (tmp_path / "whole").exists()


def test_a_lock_that_is_kept_is_free_only_when_nothing_survives_sigkill(supervisor: Begin, folder: str) -> None:
    """The supervisor dies by kill -9: its guardian ends the tree, and holds the lock until it has."""
    program = supervisor(2.0)
    lock = os.open(f"{folder}/lock", os.O_RDWR)

    def free() -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    assert not free()
    program.kill()
    program.wait()
    assert not free(), "the guardian holds it through the grace"
    assert eventually(free)
    assert survivors(folder) == set()
    os.close(lock)


def test_the_sweep_ends_what_outlives_supervisor_and_guardian(supervisor: Begin, folder: str, tag: str) -> None:
    """Orphans remain only when both are killed, and the next start finds them by their tag."""
    program, guardian = supervisor(0.2), read_pid(folder, "guardian")
    os.kill(program.pid, signal.SIGSTOP)
    os.kill(guardian, signal.SIGKILL)
    program.kill()
    program.wait()
    assert survivors(folder) == FOUR | {"child"}
    expected = {read_pid(folder, name) for name in FOUR | {"child"}}
    assert set(supervise.sweep(tag)) - {guardian} == expected  # on a busy machine it may still be dying
    assert survivors(folder) == set()


def test_a_stopped_process_is_ended_too() -> None:
    """SIGSTOP is no protection from the limit; CONT follows TERM, so TERM takes effect before the grace is over."""
    ended, got = shell("trap 'echo bye; exit 1' TERM; kill -STOP $$", wall_seconds=0.2, grace_seconds=60.0)
    assert (ended.cause, got) == ("wall", b"bye\n")


def test_closing_the_output_or_forgetting_the_child_ends_the_tree() -> None:
    """A dropped generator and a child outside a `with` block leave no process behind."""
    child = start(["sleep", "60"])
    output = child.output()
    next(output)
    del output
    assert child.ended is not None
    assert not lives(child.pid)
    forgotten = start(["sleep", "60"])
    pid = forgotten.pid
    del forgotten
    assert eventually(lambda: not lives(pid))


def test_a_signal_between_the_end_and_its_bookkeeping_is_heard_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guardian is waited for once, and how the child ended is known."""

    def handler(signum: int, _: object) -> None:
        raise errors.Interruption(signum)

    def waited(pid: int, options: int) -> tuple[int, int]:
        found = wait(pid, options)
        signal.raise_signal(signal.SIGALRM)
        return found

    wait, before = os.waitpid, signal.signal(signal.SIGALRM, handler)
    try:
        with start(["sh", "-c", "exit 3"]) as child:
            monkeypatch.setattr(os, "waitpid", waited)  # after the start: the guardian has its own, which is real
            with pytest.raises(errors.Interruption):
                finish(child)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert child.ended is not None
    assert (child.ended.exit, child.ended.cause) == (3, "exit")


def test_a_child_that_bursts_into_sessions_is_ended() -> None:
    """64 processes, nearly each in its own session, each ignores TERM."""
    script = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(6):
    os.fork() or os.setsid()
os.write(1, b".")
time.sleep(60)
"""
    got = b""
    with start([sys.executable, "-I", "-S", "-c", script]) as child:
        for _, chunk in child.output():
            got += chunk
            if len(got) == 64:
                child.stop()
    assert child.ended is not None
    assert (child.ended.cause, child.ended.killed, child.ended.left) == ("stopped", 63, 0)


# --- what is reported ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code", "number"), [("exit 0", 0, None), ("exit 7", 7, None), ("kill -9 $$", None, 9)]
)
def test_exit_codes_and_signals_are_reported(script: str, code: int | None, number: int | None) -> None:
    """An exit stays an exit and a signal a signal, never 128 + n."""
    ended, _ = shell(script)
    assert (ended.exit, ended.signal, ended.cause, ended.killed) == (code, number, "exit", 0)


def test_stop_delivers_the_last_output() -> None:
    """The cause is "stopped", and output after TERM still arrives."""
    with start(["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done"]) as child:
        got = b""
        for _, chunk in child.output():
            got += chunk
            if chunk == b"up\n":
                child.stop()
                child.stop()
    assert child.ended is not None
    assert (child.ended.exit, child.ended.cause) == (None, "stopped")
    assert b"bye\n" in got, "beside what the shell says of its sleep, which got TERM too"
    child.stop()


def test_a_child_that_was_done_before_the_order_counts_as_done() -> None:
    """A late stop changes nothing."""
    with start(["sh", "-c", "exit 3"]) as child:
        assert eventually(lambda: not lives(child.pid))
        child.stop()
        assert finish(child)[0].exit == 3


def test_the_caller_gets_ticks_while_nothing_comes() -> None:
    """About five per second, enough to draw a spinner."""
    with start(["sleep", "0.7"]) as child:
        ticks = [item for item in child.output() if item == ("", b"")]
    assert 2 <= len(ticks) <= 7


def test_fifty_megabytes_arrive_whole_in_chunks_of_at_most_64_kib() -> None:
    """Nothing is lost between the last write and the exit."""
    sizes: list[int] = []
    script = "head -c 50000000 /dev/zero; printf end"
    ended = supervise.run(
        ["sh", "-c", script], cwd="/", env=ENV, wall_seconds=60, sink=lambda stream, chunk: sizes.append(len(chunk))
    )
    assert ended.exit == 0
    assert sum(sizes) == 50_000_003
    assert max(sizes) <= 65536


def test_streams_are_kept_apart_or_merged_as_asked() -> None:
    """`run` merges by default, which keeps the order of lines."""
    script, got = "echo out; echo err >&2; echo out", list[tuple[str, bytes]]()
    with start(["sh", "-c", script]) as child:
        apart = [item for item in child.output() if item[1]]
    assert b"".join(chunk for name, chunk in apart if name == "stderr") == b"err\n"
    supervise.run(["sh", "-c", script], cwd="/", env=ENV, wall_seconds=60, sink=lambda *item: got.append(item))
    assert b"".join(chunk for _, chunk in got) == b"out\nerr\nout\n"


# --- what the child gets --------------------------------------------------------------------------------------------------


def test_stdin_is_at_its_end_or_a_file(tmp_path: Path) -> None:
    """No child ever waits for input from a person."""
    assert shell("cat")[1] == b""
    words = tmp_path / "words"
    words.write_bytes(b"hello")
    with supervise.Child(["cat"], cwd="/", env=ENV, stdin=str(words), wall_seconds=60) as child:
        assert finish(child)[1] == b"hello"


def test_sigint_is_restored_for_the_child_of_a_caller_that_ignores_it() -> None:
    """A program that a script starts with & ignores SIGINT; its children must not."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended, _ = shell("kill -INT $$; exit 7")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.signal == signal.SIGINT


def test_exit_codes_arrive_although_our_parent_ignored_sigchld() -> None:
    """Some init programs and cron daemons pass that on."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert shell("exit 7")[0].exit == 7
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_the_child_gets_no_descriptor_but_the_three(tmp_path: Path) -> None:
    """Neither the kept lock nor a descriptor that a shell opened for us."""
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(lock, True)
    listing = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
    argv = [sys.executable, "-I", "-S", "-c", listing]
    with supervise.Child(argv, cwd="/", env=ENV, wall_seconds=60, keep=[lock]) as child:
        assert finish(child)[1] == b"[0, 1, 2, 3]\n", "3 is the listing itself"
    os.close(lock)


def test_a_missing_program_folder_or_input_is_named(tmp_path: Path) -> None:
    """Unavailable names the cause, and the attempt leaves nothing behind."""
    gone, before = str(tmp_path / "gone"), (set(os.listdir("/proc/self/fd")), set(tree.descendants(os.getpid())))
    for argv, cwd, stdin, named in [
        (["no-such-program"], "/", None, "no-such-program"),
        (["true"], gone, None, f"in the folder {gone}"),
        (["true"], "/", gone, f"with the input {gone}"),
    ]:
        with pytest.raises(errors.Unavailable, match=named):
            supervise.Child(argv, cwd=cwd, env=ENV, stdin=stdin, wall_seconds=60)
    assert (set(os.listdir("/proc/self/fd")), set(tree.descendants(os.getpid()))) == before


def test_many_runs_leave_no_descriptor_and_no_zombie() -> None:
    """A mission of days starts thousands of children."""
    before = (set(os.listdir("/proc/self/fd")), set(tree.descendants(os.getpid())))
    for _ in range(20):
        shell("true & exit 0")
    assert (set(os.listdir("/proc/self/fd")), set(tree.descendants(os.getpid()))) == before


BOUND = """
import os, sys
sys.path.insert(0, sys.argv[1])
from harness.base import errors
from harness.process import supervise
supervise.end_with_parent(int(sys.argv[2]))
try:
    supervise.run(["sleep", "600"], cwd="/", env=dict(os.environ), wall_seconds=500, sink=print)
except errors.Interruption as fault:
    print("interrupted", fault.signum)
supervise.run(["true"], cwd="/", env=dict(os.environ), wall_seconds=50, sink=print)
print("in order")
"""


def test_a_process_bound_to_a_parent_ends_its_children_when_the_parent_dies() -> None:
    """With Interrupted raised once, so that the process can clean up."""
    checkout = Path(__file__).resolve().parents[2]
    parent = f"'{sys.executable}' -c \"$0\" '{checkout}' $$ & sleep 0.7; kill -9 $$"
    done = subprocess.run(["bash", "-c", parent, BOUND], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted 15\nin order\n", done.stderr


def test_one_that_cannot_start_takes_nothing_from_other_threads(tmp_path: Path) -> None:
    """A process with many conversations starts many at once, and some of them are not there."""

    def one(number: int) -> str:
        argv = ["no-such-program"] if number % 2 else ["bash", "-c", "sleep 0.02; exit 5"]
        try:
            with supervise.Child(argv, cwd=str(tmp_path), env=ENV, wall_seconds=20) as child:
                for _ in child.output():
                    pass
        except errors.Unavailable:
            return "absent"
        return f"exit {child.ended.exit}" if child.ended else "?"

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(one, range(120)))
    assert found == ["exit 5", "absent"] * 60
