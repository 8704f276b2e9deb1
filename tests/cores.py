"""The suite on all cores, in small processes that have one thread: `python tests/cores.py [what pytest takes]`.

The files of a folder are a batch, which a fork of this process collects and runs: a process that had collected all tests
would have 240 MB, and most tests fork, which takes 16 ms there and 3 ms in a batch. It is not pytest-xdist, whose workers
receive their orders in a second thread: the tested code forks, and a fork beside a thread may leave the child with a lock
that is never released (Python >= 3.12 warns of it). So such a fork is a fault of ours here, and fails the run, except in
THREADED: what is made for many threads (conversations, subagents, servers) is tested by processes of its own.

Tests wait for children and for the disk about half of their time. So there are two processes more than cores, and the folders
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
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

PROCESSES = min(os.cpu_count() or 1, 8) + 2
THREADED = (
    *("tests/builtin", "tests/peers", "tests/base/test_call_context.py", "tests/formats/test_s1.py"),
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


class Watch:
    """The plugin of a batch: notes forks beside a thread, and saves the numbers of its tests in `folder`."""

    def __init__(self, folder: Path, *, has_threads: bool) -> None:
        self.folder, self.has_threads = folder, has_threads
        self.forks: list[str] = []
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

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the forks, and save the numbers for the sum."""
        for test in self.forks:
            terminalreporter.write_line(f"FORKED BESIDE A THREAD {test}")
        counts = {key: len(terminalreporter.stats.get(key, ())) for key in COUNTED}
        (self.folder / "counts").write_text(json.dumps({**counts, "forks": len(self.forks)}))


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

    def end(self, code: int) -> Counter[str]:
        """The numbers of its tests, after its process has ended with this exit code; shows its output if that is bad."""
        path, known = self.folder / "counts", Counter[str](batches=1)
        known.update(json.loads(path.read_text()) if path.exists() else {"lost": 1})
        bad = code not in (0, NOTHING) or known["forks"] or known["lost"]
        if bad:
            sys.stdout.write((self.folder / "out").read_text(errors="replace"))
        said = ", ".join(f"{known[key]} {key}" for key in COUNTED if known[key]) or "nothing"
        sys.stdout.write(f"{self.name}: {said} in {time.monotonic() - self.since:.0f} s\n")
        sys.stdout.flush()
        return known


def divided(words: list[str]) -> tuple[list[str], list[Batch]]:
    """(pytest's options, the batches of the files that are asked for, those that take long first)."""
    asked = [word for word in words if Path(word.partition("::")[0]).exists()]
    options = [word for word in words if word not in asked]
    groups = defaultdict[tuple[str, bool, str], list[str]](list)
    for word in asked or ["tests" if Path("tests").is_dir() else "."]:
        for one in sorted(map(str, Path(word).rglob("test_*.py"))) if Path(word).is_dir() else [word]:
            path, folder = Path(one.partition("::")[0]), str(Path(one).parent)
            own = one if path.stem.startswith(ALONE) else ""
            groups[folder, one.startswith(THREADED), own].append(one)
    batches = []
    for (folder, _, _), found in groups.items():
        size = BATCH_FILES if folder == "tests" else len(found)
        for at in range(0, len(found), size):
            batches.append(Batch(found[0] if len(found) == 1 else folder, found[at : at + size]))
    return options, sorted(batches, key=lambda one: one.order, reverse=True)


def play(folder: Path, options: list[str], batches: list[Batch]) -> tuple[list[int], Counter[str]]:
    """Run the batches, as many at once as there are PROCESSES; returns exit codes and numbers."""
    waiting, running = batches[::-1], dict[int, Batch]()
    codes, counts = list[int](), Counter[str]()
    signal.signal(signal.SIGINT, lambda *_: waiting.clear())  # they receive it too, and their last output is awaited
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            batch = waiting.pop()
            running[batch.begin(folder / str(len(codes) + len(running)), options)] = batch
        pid, status = os.wait()
        if pid in running:
            codes.append(os.waitstatus_to_exitcode(status))
            counts += running.pop(pid).end(codes[-1])
    return [code for code in codes if code != NOTHING] or codes, counts


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
    codes, counts = play(folder, *divided(words))
    code = next((abs(code) for code in codes if code), int(counts["lost"] > 0 or counts["forks"] > 0))
    if counts["lost"]:
        sys.stdout.write(
            f"{counts['lost']} of {counts['batches']} batches ended before their tests: exit codes {codes}\n"
        )
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
