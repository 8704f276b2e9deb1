"""The suite on all cores, in processes that have one thread: `python tests/cores.py [what pytest takes]`.

Several processes of pytest: all of them collect everything, and each takes the next free file. It is not
pytest-xdist, whose workers receive their orders in a second thread: the tested code forks, and a fork beside a thread may
leave the child with a lock that is never released (Python >= 3.12 warns of it). So such a fork is a fault of ours here,
and fails the run.

Tests wait for children and for the disk about half of their time. So there is one process more than cores, and the folders
of the tests are in memory where that can be had: root on Linux may mount it where only these processes see it.
"""

from __future__ import annotations

import compileall
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

PROCESSES = min(os.cpu_count() or 1, 8) + 1
NEW_MOUNTS = 0x20000  # CLONE_NEWNS of unshare(2)
MEMORY_BYTES = 4 << 30  # of a machine whose memory may hold the folders of the tests: they take 0.2 GB at once
LONG = ("test_run_sh", "test_gallery", "test_crash", "test_try_confine", "test_recover", "test_landing", "test_signals")
SHARE = "--share"  # marks a process as one of them
COUNTED = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


class Share:
    """The plugin of one process: runs the tests of the files that it takes, and notes forks beside a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.taken: dict[str, bool] = {}
        self.forks: list[str] = []
        os.register_at_fork(before=self.look)

    def look(self) -> None:
        """Note the test that forks although this process has more than one thread."""
        threads = "/proc/self/task"  # also threads that Python does not know
        if (len(os.listdir(threads)) if os.path.isdir(threads) else threading.active_count()) > 1:
            self.forks.append(os.environ.get("PYTEST_CURRENT_TEST", "something outside of the tests"))

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
        ours = (item for item in session.items if self.is_ours(item))
        item = next(ours, None)
        while item is not None:
            following = next(ours, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail or session.shouldstop:
                raise session.Interrupted(session.shouldfail or session.shouldstop)
            item = following
        return True

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


def play(folder: Path, words: list[str]) -> tuple[list[int], Counter[str]]:
    """Run the processes, show the output of the first live and that of the others later; returns exit codes and numbers."""
    begun = []
    for number in range(PROCESSES):
        with (folder / f"{number}.out").open("wb") as out:
            argv = [sys.executable, __file__, SHARE, str(folder), "--basetemp", str(folder / str(number)), *words]
            begun.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out if number else None))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # they receive it too, and their last output is awaited
    codes, counts = [process.wait() for process in begun], Counter[str]()
    for number in range(1, PROCESSES):
        sys.stdout.write((folder / f"{number}.out").read_text())
    for process in begun:
        left = folder / f"{process.pid}.counts"
        counts.update(json.loads(left.read_text()) if left.exists() else {"lost": 1})
    return codes, counts


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
        sys.stdout.write(f"{counts['lost']} of {PROCESSES} processes ended before their tests: exit codes {codes}\n")
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
    if sys.argv[1:2] == [SHARE]:
        # pytest's rewriting of all tests takes 8 s, and is kept for the next time; so is our bundle, for what tests start
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        plain = [
            "-o",
            "console_output_style=classic",
            "-o",
            "tmp_path_retention_policy=failed",
            "-p",
            "no:cacheprovider",
        ]
        raise SystemExit(pytest.main([*plain, *sys.argv[3:]], plugins=[Share(Path(sys.argv[2]))]))
    raise SystemExit(main(sys.argv[1:]))
