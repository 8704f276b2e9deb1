"""The suite on all cores, in processes that have one thread: `python tests/cores.py [what pytest takes]`.

One process of pytest collects everything, which takes seconds, and forks before the first test: each of its forks takes the
next free file. It is not pytest-xdist, whose workers receive their orders in a second thread: the tested code forks, and a
fork beside a thread may leave the child with a lock that is never released (Python >= 3.12 warns of it). So such a fork is a
fault of ours here, and fails the run.

What is made for many threads (conversations, subagents, servers) is tested in one more process beside the others, since its
threads stay: those of an event loop, of a server in the test's own process.

Tests wait for children and for the disk about half of their time. So there is one process more than cores, and the folders
of the tests are in memory where that can be had: root on Linux may mount it where only these processes see it.
"""

from __future__ import annotations

import compileall
import ctypes
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

PROCESSES = min(os.cpu_count() or 1, 8) + 1  # beside the one for THREADED
THREADED = (
    *("tests/builtin", "tests/peers", "tests/base/test_call_context.py", "tests/formats/test_s1.py"),
    *("tests/cli/test_ask.py", "tests/cli/test_init.py", "tests/cli/test_mission_verbs.py"),
    *("tests/cli/test_terminal.py", "tests/cli/test_turn_view.py", "tests/run/notice/test_otlp.py"),
    *("tests/cli/test_team.py", "tests/cli/test_team_turn.py"),
    "tests/stores/test_s3.py",
)
NEW_MOUNTS = 0x20000  # CLONE_NEWNS of unshare(2)
MEMORY_BYTES = 4 << 30  # of a machine whose memory may hold the folders of the tests: they take 0.2 GB at once
LONG = (
    *("test_run_sh", "test_gallery", "test_crash", "test_kills", "test_stage", "test_recover", "test_landing"),
    "test_signals",
)
PLAIN = (
    *("-o", "console_output_style=classic", "-o", "tmp_path_retention_policy=failed"),
    *("-p", "no:cacheprovider"),
)
GONE_SECONDS = 5
GUARDIAN = "Child._launch"  # forks what takes no lock and imports nothing: tests/process/test_confine.py
COUNTED = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


def _callers() -> Iterator[str]:
    """The names of the functions under way, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_code.co_qualname
        frame = frame.f_back


def threads() -> int:
    """The threads of this process, also those that Python does not know."""
    known = "/proc/self/task"
    return len(os.listdir(known)) if os.path.isdir(known) else threading.active_count()


class Share:
    """The plugin: forks the processes, of which each runs the tests of the files that it takes; notes forks beside a thread."""

    def __init__(self, folder: Path, *, has_threads: bool) -> None:
        self.folder, self.has_threads = folder, has_threads
        self.taken: dict[str, bool] = {}
        self.forks: list[str] = []
        os.register_at_fork(before=self.look)

    def look(self) -> None:
        """Note the test that forks although this process has more than one thread. A guardian alone may be forked so."""
        if self.has_threads or GUARDIAN in _callers():
            return
        end = (
            time.monotonic() + GONE_SECONDS
        )  # the thread of a server that a test has ended takes its time on a busy machine
        while (more := threads() > 1) and time.monotonic() < end:
            time.sleep(0.001)
        if more:
            known = ", ".join(thread.name for thread in threading.enumerate())
            self.forks.append(f"{os.environ.get('PYTEST_CURRENT_TEST', 'the collection')}: {known}, {threads()} in all")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Files of whole missions first, then those with the most tests, so that all processes end at about the same time."""
        sizes = Counter(item.path for item in items)
        items.sort(key=lambda item: (not item.path.stem.startswith(LONG), -sizes[item.path], item.path))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run this process's files; after a collection error, pytest's own loop reports it."""
        if session.testsfailed or session.config.option.collectonly:
            return None
        self.divide(session.config, 1 if self.has_threads else PROCESSES)
        ours = (item for item in session.items if self.is_ours(item))
        item = next(ours, None)
        while item is not None:
            following = next(ours, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail or session.shouldstop:
                raise session.Interrupted(session.shouldfail or session.shouldstop)
            item = following
        return True

    def divide(self, config: pytest.Config, processes: int) -> None:
        """Fork the processes, and return in each of them; this one writes down how they ended, and ends."""
        gc.collect()
        gc.freeze()  # what was collected stays: no process looks through it once more
        sys.stdout.flush()
        begun = []
        for number in range(processes):
            begun.append(os.fork())
            if not begun[-1]:
                return self.stand_alone(config, number)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # they receive it too, and their last output is awaited
        ends = {pid: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in begun}
        (self.folder / "ends").write_text(json.dumps(ends))
        os._exit(0)

    def stand_alone(self, config: pytest.Config, number: int) -> None:
        """This fork gets folders, captured output and, but for the first, a standard output of its own."""
        capture = config.pluginmanager.getplugin("capturemanager")
        assert capture is not None
        capture.stop_global_capturing()
        if number or self.has_threads:
            out = os.open(self.folder / f"{number}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
            os.dup2(out, 1)
            os.close(out)
        capture.start_global_capturing()
        capture.suspend_global_capture()
        if number:
            self.forks.clear()  # the first one tells of the collection
        own = self.folder / str(number)
        own.mkdir()
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(own)  # pytest looks at it when it makes the first folder

    def is_ours(self, item: pytest.Item) -> bool:
        """Whether this process has taken the test's file, or takes it now: the first process to ask gets it."""
        name = item.nodeid.partition("::")[0].replace("/", ":")
        if name not in self.taken:
            try:
                (self.folder / name).touch(exist_ok=False)
                self.taken[name] = True
            except FileExistsError:
                self.taken[name] = False
        return self.taken[name]

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the forks, and save the numbers for the sum."""
        for test in self.forks:
            terminalreporter.write_line(f"FORKED BESIDE A THREAD {test}")
        counts = {key: len(terminalreporter.stats.get(key, ())) for key in COUNTED}
        (self.folder / f"{os.getpid()}.counts").write_text(json.dumps({**counts, "forks": len(self.forks)}))


def begin(folder: Path, words: list[str], *, has_threads: bool) -> int:
    """Fork the process that collects, and forks the others; returns its pid."""
    folder.mkdir(exist_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # pytest's rewriting of all tests takes 8 s, and is kept for the next time
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.pop("PYTEST_CURRENT_TEST", None)  # where a test runs this
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if has_threads:
            os.dup2(os.open(folder / "collecting.out", os.O_WRONLY | os.O_CREAT), 1)
        code = pytest.main([*PLAIN, *words], plugins=[Share(folder, has_threads=has_threads)])
        sys.stdout.flush()
    finally:
        os._exit(code)


def divided(words: list[str]) -> list[list[str]]:
    """What pytest is asked for by the processes with one thread, and by the one for THREADED, where there is something."""
    paths = [word for word in words if Path(word.partition("::")[0]).exists()]
    options, here = [word for word in words if word not in paths], [path for path in THREADED if Path(path).exists()]
    ours = [path for path in paths if not path.startswith(THREADED)]
    theirs = [path for path in paths if path not in ours]
    theirs += [one for one in here if not paths or any(Path(one).is_relative_to(path) for path in ours)]
    plain = [[*options, *ours, *(f"--ignore={path}" for path in here)]] if ours or not paths else []
    return [*plain, *([[*options, *theirs]] if theirs else [])]


def play(folder: Path, words: list[str]) -> tuple[list[int], Counter[str]]:
    """Run the processes, show the output of the first live and that of the others later; returns exit codes and numbers."""
    begun = {}
    for one in divided(words):
        has_threads = any(word.startswith(THREADED) for word in one)
        place = folder / ("threads" if has_threads else "plain")
        begun[begin(place, one, has_threads=has_threads)] = place
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # they receive it too, and their last output is awaited
    codes, counts = list[int](), Counter[str]()
    for pid, place in begun.items():
        ends = {str(pid): os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}
        if (place / "ends").exists():  # it has forked
            ends = json.loads((place / "ends").read_text())
        elif (place / "collecting.out").exists():
            sys.stdout.write((place / "collecting.out").read_text())
        for out in sorted(place.glob("[0-9]*.out")):
            sys.stdout.write(out.read_text())
        for pid_text in ends:
            left = place / f"{pid_text}.counts"
            counts.update(json.loads(left.read_text()) if left.exists() else {"lost": 1})
        codes += ends.values()
    nothing = int(pytest.ExitCode.NO_TESTS_COLLECTED)  # by a -k that names tests of one kind alone
    return [code for code in codes if code != nothing] or codes, counts


def put_into_memory(folder: Path) -> bool:
    """Mount a file system in memory at the folder, seen by this process and its children alone; False where that is refused."""
    if not sys.platform.startswith("linux") or os.geteuid():
        return False
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < MEMORY_BYTES:
        return False
    if ctypes.CDLL(None).unshare(NEW_MOUNTS):
        return False
    words = (
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "tmpfs", "-o", "mode=700", "harness-tests", str(folder)],
    )
    return all(subprocess.run(one, stderr=subprocess.DEVNULL, check=False).returncode == 0 for one in words)


def kept(folder: Path, is_memory: bool) -> Path:
    """The folder, on disk: what is in memory would go with this process."""
    if not is_memory:
        return folder
    copy = tempfile.mkdtemp(prefix="harness-tests-")
    subprocess.run(["cp", "-a", f"{folder}/.", copy], check=False)
    return Path(copy)


def main(words: list[str]) -> int:
    """Run all, add up, and keep the folders of the tests that failed."""
    folder = Path(tempfile.mkdtemp(prefix="harness-tests-"))
    is_memory = put_into_memory(folder)
    for name in ("harness", "roles"):  # each process that the tests start would compile what has changed, once more
        compileall.compile_dir(Path(__file__).parent.parent / name, quiet=2)
    codes, counts = play(folder, words)
    code = next((abs(code) for code in codes if code), int(counts["lost"] > 0 or counts["forks"] > 0))
    if counts["lost"]:
        sys.stdout.write(f"{counts['lost']} of {len(codes)} processes ended before their tests: exit codes {codes}\n")
    if code:
        sys.stdout.write(f"the folders of the tests that failed: {kept(folder, is_memory)}\n")
    if is_memory:
        subprocess.run(["umount", "-l", str(folder)], check=False)
    if is_memory or not code:
        shutil.rmtree(folder, ignore_errors=True)
    failed = counts["failed"] + counts["error"] + counts["xpassed"]
    sys.stdout.write(f"{counts['passed']} passed, {failed} failed, {counts['skipped'] + counts['xfailed']} skipped\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
