"""What a machine may refuse: room on the disk, the size of a file, a disk that may be written, descriptors. A clear error, a
documented exit code, and afterwards everything goes on."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.base.errors import EXIT_CODES
from tests.missions import Done, enter
from tests.torture.kills import NOT_OURS, shortened
from tests.torture.operations import Append, Commit, Operation, Role
from tests.torture.table import Row
from tests.torture.whole import Missions

TMPFS_MIB = 96
PAGE = 4096


class Case(NamedTuple):
    """A limit: words before the program's own, and what is done before and after it."""

    name: str
    around: list[str]
    before: Callable[[], object] = lambda: None
    after: Callable[[], object] = lambda: None


def why_not() -> str:
    """Why no small file system can be had here; "" where one can."""
    if os.geteuid() or not shutil.which("mount"):
        return "a small file system needs root and the right to mount"
    return ""


@contextmanager
def small(folder: Path) -> Iterator[Path]:
    """A file system in memory, of this size."""
    top = folder / "small"
    top.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_MIB}m", "none", str(top)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip())
    try:
        yield top
    finally:
        subprocess.run(["umount", "-l", str(top)], check=True)


def fill_but(top: Path, pages: int) -> None:
    """Fill the disk except for so many pages."""
    free = os.statvfs(top)
    (top / "filler").write_bytes(b"x" * (free.f_bavail * free.f_bsize - pages * PAGE))


def remount(top: Path, how: str) -> None:
    """Make the disk `ro` or `rw`."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(top)], check=True)


def cases(top: Path, step: int) -> dict[str, list[Case]]:
    """The limits by the row of the table."""
    return {
        "a full disk": [
            Case(f"{pages} pages free", [], functools.partial(fill_but, top, pages), (top / "filler").unlink)
            for pages in range(0, 40, 4 * step)
        ],
        "a read-only disk": [Case("read-only", [], lambda: remount(top, "ro"), lambda: remount(top, "rw"))],
        "ulimit -f": [Case(f"{size} KiB", _ulimit("f", size)) for size in range(0, 12, 2 * step)],
        "few descriptors": [Case(f"{count}", _ulimit("n", count)) for count in range(6, 30, 4 * step)],
    }


def _ulimit(what: str, size: int) -> list[str]:
    return ["bash", "-c", f'ulimit -S{what} {size}; exec "$@"', "bash"]


def ended(done: Done) -> list[str]:
    """What is wrong with how a program ended."""
    found = [] if done.code in EXIT_CODES else [f"exit code {done.code}: {done}"]
    found += [f"no clear error: {done}"] if NOT_OURS.search(done.err) else []
    return found + ([f"it says nothing: {done}"] if done.code and not (done.err + done.out).strip() else [])


def swept(row: Row, limits: Iterable[Case], works: Iterable[Operation], until: float) -> None:
    """Each program under each limit; then, without the limit, the next start."""
    seen = set[str]()
    for case in limits:
        for one in works:
            if time.monotonic() > until:
                return
            one.prepare()
            case.before()
            try:
                done = one.house.run([*case.around, *one.words])
            finally:
                case.after()
            found, state = one.recover(done)
            found += one.go_on() if state not in seen else []
            seen.add(state)
            row.injected += 1
            row.states = len(seen)
            row.faults += [
                shortened(f"{case.name}, {' '.join(one.words[1:3])}: {fault}") for fault in ended(done) + found
            ]
            row.written += one.written
            one.written = 0


def sweep(folder: Path, step: int, until: float, show: Callable[[str], object]) -> list[Row]:
    """All limits; `step` 1 is all cases."""
    rows = []
    try:
        with small(folder) as top, pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(folder))
            missions = Missions(top, enter(patch, top), 1, last="worker F-001")
            works = [Append(missions), Commit(missions), Role(missions, "worker F-001")]
            for name, limits in cases(top, step).items():
                row, begun = Row(name), time.monotonic()
                swept(row, limits, works, until)
                row.seconds = time.monotonic() - begun
                show(f"{name}: {row.injected} times, {len(row.faults)} faults")
                rows.append(row)
    except OSError as fault:
        rows.append(Row("full, read-only and small disks", skipped=why_not() or f"it cannot be mounted here: {fault}"))
    return rows
