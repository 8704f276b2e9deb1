"""The suite on all cores, in small processes that have one thread: `python tests/cores.py [--again] [what pytest takes]`.

The files of a folder are a batch, which a fork of this process collects and runs: a process that had collected all tests
would have 240 MB, and most tests fork, which takes 16 ms there and 3 ms in a batch. It is not pytest-xdist, whose workers
receive their orders in a second thread: the tested code forks, and a fork beside a thread may leave the child with a lock
that is never released (Python >= 3.12 warns of it). So such a fork is a fault of ours here, and fails the run, except in
THREADED: what is made for many threads (conversations, subagents, servers) is tested by processes of its own.

Tests wait for children and for the disk about half of their time. So there are two processes more than cores, and the folders
of the tests are in memory where that can be had: root on Linux may mount it where only these processes see it.

With --again, tests that failed run three times more, two of these times beside a busy loop on each core. If all three pass,
the test is flaky: the last lines name it, and the run has passed. More than MOST_FLAKY failures are faults, and so is that of a
test with the marker `once`.
"""

from __future__ import annotations

import compileall
import ctypes
import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

PROCESSES = min(os.cpu_count() or 1, 8) + 2
THREADED = (
    *("tests/builtin", "tests/peers", "tests/base/test_call_context.py", "tests/formats/test_s3.py"),
    *("tests/cli/test_ask.py", "tests/cli/test_init.py", "tests/cli/test_mission_verbs.py"),
    *("tests/cli/test_terminal.py", "tests/cli/test_turn_view.py", "tests/run/notice/test_otlp.py"),
    *("tests/cli/test_team.py", "tests/cli/test_team_turn.py"),
    "tests/stores/test_s3.py",
)
NEW_MOUNTS = 0x20000  # CLONE_NEWNS of unshare(2)
MEMORY_BYTES = 4 << 30  # of a machine whose memory may hold the folders of the tests: they take 0.2 GB at once
ALONE = (  # files of whole missions, each a batch; they begin first, so that all processes end at about the same time
    *("test_run_sh", "test_gallery", "test_crash", "test_kills", "test_stage", "test_recover", "test_landing"),
    *("test_signals", "test_installed", "test_lanes", "test_machines", "test_set_aside"),
)
BATCH_FILES = 6  # of the top folder, which has files of all kinds
PLAIN = (
    *("-o", "console_output_style=classic", "-o", "tmp_path_retention_policy=failed"),
    *("-p", "no:cacheprovider"),
)
GONE_SECONDS = 5
GUARDIAN = "Child._launch"  # forks what takes no lock and imports nothing: tests/process/test_confine.py
AGAIN = "--again"
MOST_FLAKY = 3
LONG_SECONDS = 3.0  # of CPU: a test that takes more has the marker `long`
BESIDE_LOAD = (False, True, True)  # of each further time that a test runs
COUNTED = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
NOTHING = int(pytest.ExitCode.NO_TESTS_COLLECTED)  # by a -k that names tests of other batches


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


class Failure(NamedTuple):
    """Why a test failed; `once`: it is never run again."""

    text: str
    once: bool


class Outcome:
    """What became of the tests of one batch or of many: their numbers, exit codes of pytest, and what failed."""

    def __init__(self) -> None:
        self.codes, self.counts = list[int](), Counter[str]()
        self.failures, self.dear, self.missed = dict[str, Failure](), list[str](), list[str]()

    def add(self, code: int, saved: dict[str, Any]) -> None:
        """Add a batch that has ended with this exit code and saved this."""
        self.codes.append(code)
        self.counts.update(saved.get("counts", {"lost": 1}))
        self.failures |= {name: Failure(*one) for name, one in saved.get("failures", {}).items()}
        self.dear += saved.get("dear", [])

    @property
    def code(self) -> int:
        """0 if all is well, else the exit code of the first batch that failed; NOTHING if no batch had a test."""
        bad = [abs(code) for code in self.codes if code not in (0, NOTHING)]
        if self.codes and set(self.codes) == {NOTHING}:
            return NOTHING
        return bad[0] if bad else int(self.counts["lost"] > 0 or self.counts["forks"] > 0)

    def is_luck_possible(self) -> bool:
        """Whether a few tests failed, none of which must never fail, and nothing else went wrong."""
        others = (
            self.counts["lost"]
            or self.counts["forks"]
            or {*self.codes} - {0, NOTHING, int(pytest.ExitCode.TESTS_FAILED)}
        )
        return (
            not others and 0 < len(self.failures) <= MOST_FLAKY and not any(one.once for one in self.failures.values())
        )


class Watch:
    """The plugin of a batch: notes forks beside a thread and tests that fail, and saves them and the numbers in `folder`."""

    def __init__(self, folder: Path, *, has_threads: bool) -> None:
        self.folder, self.has_threads = folder, has_threads
        self.forks: list[str] = []
        self.failures: dict[str, Failure] = {}
        self.dear: list[str] = []
        os.register_at_fork(before=self.look)

    def look(self) -> None:
        """Note the test that forks although this process has more than one thread. A guardian alone may be forked so."""
        if self.has_threads or GUARDIAN in _callers():
            return
        end = time.monotonic() + GONE_SECONDS  # the thread of a server that a test has ended takes its time
        while (more := threads() > 1) and time.monotonic() < end:
            time.sleep(0.001)
        if more:
            known = ", ".join(thread.name for thread in threading.enumerate())
            self.forks.append(f"{os.environ.get('PYTEST_CURRENT_TEST', 'the collection')}: {known}, {threads()} in all")

    def pytest_collection_finish(self) -> None:
        """What was collected stays: no process looks through it once more."""
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what the test costs, and the programs that it has waited for."""
        before = sum(os.times()[:4])
        done = yield
        seconds = sum(os.times()[:4]) - before
        if seconds > LONG_SECONDS and not item.get_closest_marker("long"):
            self.dear.append(f"{item.nodeid} {seconds:.1f}")
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what failed, and why: the first of its setup, its call and its teardown."""
        if report.failed:
            self.failures.setdefault(report.nodeid, Failure(report.longreprtext, once="once" in report.keywords))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the forks, and save the numbers for the sum."""
        for test in self.forks:
            terminalreporter.write_line(f"FORKED BESIDE A THREAD {test}")
        counts = {key: len(terminalreporter.stats.get(key, ())) for key in COUNTED} | {"forks": len(self.forks)}
        saved = {"counts": counts, "failures": self.failures, "dear": self.dear}
        (self.folder / "outcome").write_text(json.dumps(saved))


class Batch:
    """Files, or tests of files, for one process; `name`: their folder, for people."""

    def __init__(self, name: str, words: list[str]) -> None:
        self.name, self.words = name, words
        self.has_threads = words[0].startswith(THREADED)
        paths = {Path(word.partition("::")[0]) for word in words}
        self.order = (any(path.stem.startswith(ALONE) for path in paths), sum(path.stat().st_size for path in paths))

    def begin(self, folder: Path, options: list[str]) -> int:
        """Fork the process that collects and runs these tests, with folders and an output of its own; returns its pid."""
        self.folder, self.since = folder, time.monotonic()
        folder.mkdir()
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            out = os.open(folder / "out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, out)):
                os.dup2(descriptor, number)
            # pytest's rewriting of all tests takes 8 s, and is kept for the next time
            sys.dont_write_bytecode = False
            for name in ("PYTHONDONTWRITEBYTECODE", "PYTEST_CURRENT_TEST"):  # the second where a test runs this
                os.environ.pop(name, None)
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
            code = pytest.main([*PLAIN, *options, *self.words], plugins=[Watch(folder, has_threads=self.has_threads)])
            sys.stdout.flush()
        finally:
            os._exit(code)

    def end(self, code: int) -> dict[str, Any]:
        """What it saved, after its process has ended with this exit code; shows its output if that is bad."""
        path = self.folder / "outcome"
        saved: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        counts = saved.get("counts", {})
        if code not in (0, NOTHING) or not counts or counts["forks"]:
            sys.stdout.write((self.folder / "out").read_text(errors="replace"))
        said = ", ".join(f"{counts[key]} {key}" for key in COUNTED if counts.get(key)) or "nothing"
        sys.stdout.write(f"{self.name}: {said} in {time.monotonic() - self.since:.0f} s\n")
        sys.stdout.flush()
        return saved


def divided(words: list[str]) -> tuple[list[str], list[Batch]]:
    """(pytest's options, the batches of the files that are asked for, those that take long first)."""
    asked = [word for word in words if Path(word.partition("::")[0]).exists()]
    options = [word for word in words if word not in asked]
    ignored = {word.removeprefix("--ignore=") for word in options}
    groups = defaultdict[tuple[str, bool, str], list[str]](list)
    for word in asked or ["tests" if Path("tests").is_dir() else "."]:
        for one in sorted(map(str, Path(word).rglob("test_*.py"))) if Path(word).is_dir() else [word]:
            if one in ignored:
                continue
            path, folder = Path(one.partition("::")[0]), str(Path(one).parent)
            own = one if path.stem.startswith(ALONE) else ""
            groups[folder, one.startswith(THREADED), own].append(one)
    batches = []
    for (folder, _, _), found in groups.items():
        size = BATCH_FILES if folder == "tests" else len(found)
        for at in range(0, len(found), size):
            batches.append(Batch(found[0] if len(found) == 1 else folder, found[at : at + size]))
    return options, sorted(batches, key=lambda one: one.order, reverse=True)


def play(folder: Path, options: list[str], batches: list[Batch], seconds: float = 0) -> Outcome:
    """Run the batches, as many at once as there are PROCESSES; after `seconds`, unless 0, those under way are ended."""
    waiting, running, outcome = batches[::-1], dict[int, Batch](), Outcome()

    def stop(number: int, _: object) -> None:
        outcome.missed += [batch.name for batch in waiting]
        waiting.clear()
        if number == signal.SIGALRM:  # of an interrupt they hear themselves, and their last output is awaited
            outcome.missed += [batch.name for batch in running.values() if batch.name not in outcome.missed]
            for pid in running:
                os.kill(pid, signal.SIGINT)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, GONE_SECONDS)
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            batch = waiting.pop()
            running[batch.begin(folder / str(len(outcome.codes) + len(running)), options)] = batch
        pid, status = os.wait()
        if pid in running:
            batch = running.pop(pid)
            saved = batch.end(code := os.waitstatus_to_exitcode(status))
            if batch.name in outcome.missed and not saved.get("failures"):
                code, saved = 0, {"counts": {}} | saved
            outcome.add(code, saved)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome


@contextmanager
def busy() -> Iterator[None]:
    """Keep each core busy."""
    pids = []
    for _ in range(os.cpu_count() or 1):
        pids.append(os.fork())
        if not pids[-1]:
            while os.getppid() != 1:
                pass
            os._exit(0)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def again(folder: Path, options: list[str], names: list[str]) -> list[str]:
    """Run each of these tests three times more, each time in a process of its own; returns those that passed every time."""
    flaky = list(names)
    for number, is_loaded in enumerate(BESIDE_LOAD, 2):
        with busy() if is_loaded else nullcontext():
            for at, name in enumerate(list(flaky)):
                sys.stdout.write(f"time {number}{' beside load' * is_loaded}: ")
                place = folder / f"again-{number}-{at}"
                place.mkdir()
                if play(place, options, [Batch(name, [name])]).code:
                    flaky.remove(name)
    return flaky


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


def run(options: list[str], batches: list[Batch], *, is_again: bool = False, seconds: float = 0) -> int:
    """Run all, add up, and keep the folders of the tests that failed; returns the exit code."""
    folder = Path(tempfile.mkdtemp(prefix="harness-tests-"))
    is_memory = put_into_memory(folder)
    for name in ("harness", "roles"):  # each process that the tests start would compile what has changed, once more
        compileall.compile_dir(Path(__file__).parent.parent / name, quiet=2)
    outcome = play(folder, options, batches, seconds)
    is_luck = is_again and outcome.is_luck_possible()
    flaky = again(folder, options, [*outcome.failures]) if is_luck else []
    code = 0 if flaky and len(flaky) == len(outcome.failures) else outcome.code
    if code:
        sys.stdout.write(f"the folders of the tests that failed: {kept(folder, is_memory)}\n")
    if is_memory:
        subprocess.run(["umount", "-l", str(folder)], check=False)
    if is_memory or not code:
        shutil.rmtree(folder, ignore_errors=True)
    report(outcome, flaky)
    return code


def report(outcome: Outcome, flaky: list[str]) -> None:
    """The last lines: what nobody sees in the output of the batches, and the numbers."""
    counts, used = outcome.counts, resource.getrusage(resource.RUSAGE_CHILDREN)
    if counts["lost"]:
        sys.stdout.write(
            f"{counts['lost']} of {len(outcome.codes)} batches ended before their tests: {outcome.codes}\n"
        )
    for test in outcome.dear:
        sys.stdout.write(f"more than {LONG_SECONDS:.0f} CPU s, and not marked as long: {test} s\n")
    for name in outcome.missed:
        sys.stdout.write(f"not reached: {name}\n")
    for name in outcome.failures:
        said = (
            "flaky" if name in flaky else "failed, and is never run again" if outcome.failures[name].once else "failed"
        )
        sys.stdout.write(f"{outcome.failures[name].text}\n" * (name in flaky) + f"{said}: {name}\n")
    failed = counts["failed"] + counts["error"] + counts["xpassed"] - len(flaky)
    sys.stdout.write(f"{used.ru_utime + used.ru_stime:.0f} CPU s\n")
    sys.stdout.write(f"{counts['passed']} passed, {failed} failed, {counts['skipped'] + counts['xfailed']} skipped")
    sys.stdout.write(f", {len(flaky)} flaky\n" if flaky else "\n")


if __name__ == "__main__":
    asked = [word for word in sys.argv[1:] if word != AGAIN]
    raise SystemExit(run(*divided(asked), is_again=AGAIN in sys.argv))
