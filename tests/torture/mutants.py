"""Tests of the tests: bugs that are planted in a copy of the project, each of which at least one sweep must find."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.missions import CHECKOUT, surroundings
from tests.torture.table import Row

COPIED = ("harness", "roles", "tests", "identity", "examples", "run.sh", "pyproject.toml")
RED = 1  # exit code of pytest where a test failed; any other is no answer
LONGEST = 240  # seconds


class Mutant(NamedTuple):
    """A planted bug: in `path`, `old` becomes `new`, once."""

    path: str
    old: str
    new: str


SWEEPS = {  # quick versions of the sweeps, as pytest takes them
    "crash states": ["tests/test_crash_journal.py", "tests/torture/test_states.py"],
    "rivals": ["tests/torture/test_rivals.py"],
    "kills": ["tests/test_crash_writers.py"],
    "machines": ["tests/torture/test_machines.py"],
}
FIRST = {  # which sweep is asked first
    **dict.fromkeys(("no lock", "no inode check", "stale write-back", "compare without swap"), "rivals"),
    **dict.fromkeys(("no generation check", "lease not rechecked"), "machines"),
}
NOT_ITS_OWN = ["-k", "not find and not planted"]  # the planted bugs of these files themselves
MUTANTS = {
    "no lock": Mutant(
        "harness/state/files.py",
        "            fcntl.flock(self.descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))\n",
        "            pass\n",
    ),
    "no inode check": Mutant(  # ours is the order: the file is opened under the lock
        "harness/state/journal.py",
        """    with files.Lock(layout.path(names.STATE_LOCK)):
        finish_journal(layout)
        descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
""",
        """    descriptor = files.open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    with files.Lock(layout.path(names.STATE_LOCK)):
        finish_journal(layout)
""",
    ),
    "no fsync": Mutant(
        "harness/state/journal.py",
        "    try:\n        os.fsync(descriptor)\n    finally:\n        os.close(descriptor)\n    return offset\n",
        "    os.close(descriptor)\n    return offset\n",
    ),
    "no folder fsync": Mutant(
        "harness/state/files.py",
        "    descriptor = os.open(path, os.O_RDONLY)\n    try:\n        os.fsync(descriptor)\n",
        "    descriptor = os.open(path, os.O_RDONLY)\n    try:\n        pass\n",
    ),
    "rewrite in place": Mutant(
        "harness/state/files.py",
        "        staged = stage(temporary, data, mode, quickly=quickly, stamp=stamp)\n        os.replace(temporary, path)\n",
        "        staged = stage(path, data, mode, quickly=quickly, stamp=stamp)\n",
    ),
    "stale write-back": Mutant(
        "harness/run/settle/curator.py",
        "changes.put_blocks(names.RAW, chain(kept.blocks(), rest))",
        "changes.put_blocks(names.RAW, chain(kept.blocks(), [] if rest else []))",
    ),
    "no tail repair": Mutant(
        "harness/state/files.py",
        '        if size and os.pread(descriptor, 1, size - 1) != b"\\n":\n            data = b"\\n" + data\n',
        "",
    ),
    "archive synced late": Mutant(
        "harness/state/journal.py",
        "        files.stage(staged, data)\n        steps.append([verb, path, staged, offset])\n",
        '        files.stage(staged, data, quickly=verb == "append")\n        steps.append([verb, path, staged, offset])\n',
    ),
    "no generation check": Mutant(
        "harness/run/settle/curator.py",
        "    if now.generation != before.curated.generation:\n",
        "    if now.generation < before.curated.generation:\n",
    ),
    "lease not rechecked": Mutant(
        "harness/mission/lease.py",
        "    found = holder(live, claim)\n    if found:\n",
        "    found = holder(live, claim)\n    if found and not found.claims:\n",
    ),
    "compare without swap": Mutant(
        "harness/state/state.py",
        """        if locked:
            self._commit(changes)
        else:
            journal.require_folders(self.layout)
            with self.lock("state"):
                self._commit(changes)
""",
        """        if locked:
            self._commit(changes)
        else:
            for name, version in changes.expected.items():
                if self.version(name) != version:
                    raise VersionConflict(self.layout.folders.relative(self.path(name)))
            changes.expected.clear()
            os.sched_yield()
            with self.lock("state"):
                self._commit(changes)
""",
    ),
}


def planted(folder: Path, name: str) -> Path:
    """A copy of the project with this bug; raises AssertionError where the code has no place for it any more."""
    target, bug = folder / name.replace(" ", "-"), MUTANTS[name]
    target.mkdir()
    for one in COPIED:
        subprocess.run(["cp", "-a", CHECKOUT / one, target], check=True)
    for cache in [*target.rglob("__pycache__")]:
        shutil.rmtree(cache)
    path = target / bug.path
    text = path.read_text()
    assert text.count(bug.old) == 1, f"{bug.path} has no place for: {name}"
    path.write_text(text.replace(bug.old, bug.new))
    return target


def is_caught(copy: Path, sweep: str) -> bool:
    """Whether a sweep is red on this copy; raises AssertionError where it is neither red nor green."""
    home = copy.parent / "home"
    home.mkdir(exist_ok=True)
    words = [
        sys.executable,
        "-P",
        "-c",
        "import sys; sys.path.insert(0, '.'); import pytest; sys.exit(pytest.main(sys.argv[1:]))",
    ]
    words += ["-q", "-x", "-p", "no:cacheprovider", "--basetemp", str(copy / "base"), *NOT_ITS_OWN, *SWEEPS[sweep]]
    env = surroundings(home) | {"TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    try:
        done = subprocess.run(words, cwd=copy, env=env, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return True  # it waits for ever for what the bug lost
    assert done.returncode in (0, RED), f"{sweep}: {done.returncode}\n{done.stdout[-800:]}{done.stderr[-400:]}"
    return done.returncode == RED


def caught_by(folder: Path, name: str, *, every: bool = True) -> list[str]:
    """The sweeps that find a planted bug: all, or the first one that does."""
    copy, found = planted(folder, name), list[str]()
    try:
        for sweep in sorted(SWEEPS, key=lambda sweep: sweep != FIRST.get(name, "crash states")):
            found += [sweep] if (every or not found) and is_caught(copy, sweep) else []
        return found
    finally:
        shutil.rmtree(copy)


def sweep(folder: Path, full: bool, until: float, show: Callable[[str], object]) -> list[Row]:
    """A row for each planted bug: which sweeps find it; one that none finds is a fault, and so is a sweep that is red without."""
    rows = []
    for name in MUTANTS:
        begun, row = time.monotonic(), Row(f"planted: {name}", points=len(SWEEPS))
        if begun > until:
            row.skipped = "the time is up"
        else:
            found = caught_by(folder, name, every=full)
            row.tried, row.notes = len(found) or len(SWEEPS), [f"found by {', '.join(found) or 'none'}"]
            row.faults = [] if found else ["no sweep finds it"]
            show(f"{row.name}: {row.notes[0]}")
        row.seconds = time.monotonic() - begun
        rows.append(row)
    return rows
