"""Power cuts of a real file system: ext4 or xfs on a loop device is shut down under load, mounted again, and looked at.

FS_IOC_GOINGDOWN ends all writing at once, without what the journal of the file system still had in memory: what was not
fsynced may be gone, as after a power cut.
"""

from __future__ import annotations

import fcntl
import functools
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness.base.errors import LockBusy
from harness.mission import mission
from harness.state import files, journal, names, raw
from harness.state.journal import Journal
from harness.state.layout import Layout
from harness.state.state import State
from tests import compacting, kill_sweep
from tests.crash import end, start
from tests.journalled import ledger_is_wrong
from tests.kill_sweep import RUN_SH
from tests.missions import enter, tagged, until
from tests.torture.rivals import BATCH, kept
from tests.torture.table import Row
from tests.torture.whole import Missions

FS_IOC_GOINGDOWN, NO_FLUSH = 0x8004587D, b"\2\0\0\0"
SIZES = {"ext4": 256 << 20, "xfs": 320 << 20}  # bytes; the files are sparse
APPENDERS = 4
LONGEST_LOAD = 0.4  # seconds until the cut
LONGEST_RUN = 3.0  # seconds until the cut of a whole mission


def why_not(kind: str) -> str:
    """Why no such file system can be cut here; "" where one can."""
    if os.geteuid():
        return "only root may mount a file system and shut it down"
    missing = [name for name in (f"mkfs.{kind}", "mount", "losetup") if not shutil.which(name)]
    return f"{', '.join(missing)} is not installed" if missing else ""


class Disk:
    """A file system of this kind in the file `folder`/image, mounted at `folder`/disk."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.image, self.top = folder / "image", folder / "disk"
        self.top.mkdir()
        with self.image.open("wb") as file:
            file.truncate(SIZES[kind])
        subprocess.run([f"mkfs.{kind}", "-q", str(self.image)], check=True, capture_output=True)

    def mount(self) -> None:
        """What is on it is there."""
        done = subprocess.run(
            ["mount", "-o", "loop", str(self.image), str(self.top)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(done.stderr.strip())

    def cut(self) -> None:
        """The power goes."""
        descriptor = os.open(self.top, os.O_RDONLY)
        fcntl.ioctl(descriptor, FS_IOC_GOINGDOWN, NO_FLUSH)
        os.close(descriptor)

    def unmount(self) -> None:
        """It is gone, whether it was cut or not, once nobody uses it: mount namespaces of the dead go a moment later."""
        until(lambda: subprocess.run(["umount", str(self.top)], check=False, capture_output=True).returncode == 0)
        until(lambda: subprocess.check_output(["losetup", "-j", str(self.image)]) == b"")


@contextmanager
def mounted(folder: Path, kind: str) -> Iterator[Disk]:
    """A new, empty disk."""
    disk = Disk(folder, kind)
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()


def load(layout: Layout, acks: Path, folder: str) -> list[int]:
    """Writers of notes, of journals and of curations, as they are at work; each writes down what was acknowledged, elsewhere."""
    works: list[Callable[[], object]] = [functools.partial(_note, layout, acks, number) for number in range(APPENDERS)]
    works += [functools.partial(_commit, layout, acks), functools.partial(_compact, layout, folder)]
    return [start(one) for one in works]


def _note(layout: Layout, acks: Path, writer: int) -> None:
    with open(acks / f"notes-{writer}-{os.getpid()}", "ab", buffering=0) as told:
        for number in itertools.count():
            text = f"{writer}.{os.getpid()}{number:05}"
            raw.append(layout, "worker", f"F-{writer}", [("-", text)])
            told.write(f"{text}\n".encode())


def _commit(layout: Layout, acks: Path) -> None:
    """Two files and a line that belong together, again and again."""
    begun = int(json.loads(files.read(layout.path(names.FEATURES)) or b"0"))
    with open(acks / f"commits-{os.getpid()}", "ab", buffering=0) as told:
        for number in itertools.count(begun + 1):
            changes = Journal(layout)
            changes.replace(layout.path(names.FEATURES), b"%d\n" % number)
            changes.replace(layout.path(names.SPEC), b"%d\n" % number * 500)
            changes.append(layout.path(names.ISSUES), b"%d\n" % number)
            changes.commit()
            told.write(b"%d\n" % number)


def _compact(layout: Layout, folder: str) -> None:
    for number in itertools.count():
        with suppress(LockBusy):
            compacting.compact_all(layout, folder, "m-1", f"run-{os.getpid()}-{number}", "2026-04-24", bound=BATCH)


def told(acks: Path, what: str) -> list[str]:
    """What was acknowledged, oldest first for each writer."""
    paths = sorted(acks.glob(f"{what}-*"), key=lambda path: path.stat().st_mtime_ns)
    return [line for path in paths for line in path.read_text().split("\n")[:-1]]


def faults(layout: Layout, notes: list[str], commits: list[str]) -> list[str]:
    """What is wrong on the disk once the next start has finished its journal, of what was acknowledged before a cut."""
    with files.Lock(layout.path(names.STATE_LOCK)):
        journal.finish_journal(layout)
    found = kept(layout, notes)
    newest = max(map(int, commits), default=0)
    number = int(files.read(layout.path(names.FEATURES)) or b"0")
    lines = [*map(int, (files.read_text(layout.path(names.ISSUES)) or "").split())]
    found += [f"lost: the commit {newest}, {number} is there"] if number < newest else []
    found += [f"torn: {len(lines)} lines of {number} commits"] if lines != list(range(1, number + 1)) else []
    found += (
        ["torn: two files of one commit"]
        if number and files.read(layout.path(names.SPEC)) != b"%d\n" % number * 500
        else []
    )
    return found + (["torn: the ledger"] if ledger_is_wrong(layout) else [])


def sweep(folder: Path, kind: str, cuts: int, until: float, show: Callable[[str], object]) -> Row:
    """Cut the power so many times, at moments that the seed chooses, each time on what the last cut left."""
    begun, row, dice = time.monotonic(), Row(name=f"power cut, {kind}", points=cuts), random.Random(kind)
    row.skipped = why_not(kind)
    if row.skipped:
        return row
    notes, commits = list[str](), list[str]()
    try:
        with mounted(folder, kind) as disk:
            layout = Layout(str(disk.top / "project"))
            for path in (layout.path(names.LOCKS), os.path.dirname(layout.path(names.RAW))):
                files.make_folder(path)
            State(layout).put(names.FEATURES, b"0\n")
            while row.tried < cuts and not row.faults and time.monotonic() < until:
                acks = folder / f"acks-{row.tried}"
                acks.mkdir()
                children = load(layout, acks, str(disk.top / "identity"))
                time.sleep(dice.random() * LONGEST_LOAD)
                notes += told(
                    acks, "notes"
                )  # an fsync that the cut itself meets may return 0, of a bare file too (tried)
                commits += told(acks, "commits")
                disk.cut()
                for pid in children:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    end(pid)
                disk.unmount()
                disk.mount()
                row.tried += 1
                row.faults += faults(layout, notes, commits)
                show(f"{row.name}: {row.tried}/{cuts}, {len(notes)} notes acknowledged")
    except OSError as fault:
        row.skipped = f"the disk cannot be mounted here: {fault}"
    row.written = len(notes) + len(commits)
    row.injected, row.seconds = row.tried, time.monotonic() - begun
    return row


# ---- a whole mission, git included


def whole(folder: Path, kind: str, cuts: int, deadline: float, show: Callable[[str], object]) -> Row:
    """Cut the power while run.sh works on a mission and a person notes; each time from the beginning, and from there to DONE."""
    begun, row = time.monotonic(), Row(name=f"power cut of a mission, {kind}", points=cuts)
    row.skipped = why_not(kind)
    if row.skipped:
        return row
    try:
        with mounted(folder, kind) as disk, pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", None)  # it is remembered, and is on that disk from now on
            missions = Missions(disk.top, enter(patch, disk.top), 1, last="planner")
            row.states = len({_cut(disk, missions, row, show) for _ in _rounds(row, cuts, deadline)})
    except OSError as fault:
        row.skipped = f"the disk cannot be mounted here: {fault}"
    row.injected, row.seconds = row.tried, time.monotonic() - begun
    return row


def _rounds(row: Row, cuts: int, deadline: float) -> Iterator[None]:
    while row.tried < cuts and not row.faults and time.monotonic() < deadline:
        row.tried += 1
        yield


def ended(name: str, top: Path) -> list[int]:
    """Kill every process of the mission, those in a mount namespace of their own included; those that had not gone."""
    found, mark = tagged(name), os.fsencode(top)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            is_ours = mark in Path("/proc", pid, "environ").read_bytes() and int(pid) != os.getpid()
            found += [int(pid)] if is_ours else []
    for one in found:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    return found


def _cut(disk: Disk, missions: Missions, row: Row, show: Callable[[str], object]) -> str:
    """One cut, the recovery, and the way to DONE; the digest of what was recovered."""
    house = missions.house
    missions.kept["planner"].restore()
    os.sync()
    name, told = mission.load(house.layout).id, list[str]()
    wait = random.Random(f"{row.name} {row.tried}").uniform(0.1, LONGEST_RUN)
    loop, cut = house.loop(), time.monotonic() + wait
    while time.monotonic() < cut and loop.poll() is None:
        text = f"a person's note {len(told)}"
        told += [f"CONTEXT: {text}"] if house.program("note", "--tag", "CONTEXT", text).code == 0 else []
    disk.cut()
    loop.kill()
    loop.communicate()
    until(lambda: not ended(name, disk.top))
    disk.unmount()
    disk.mount()
    row.written += len(told)
    found = kill_sweep.recovered(house) + kill_sweep.faults(house, told, taken=False)
    state = kill_sweep.digest(house)
    done = house.run([RUN_SH])
    found += [f"run.sh ended with {done}"] if done.code else kill_sweep.faults(house, told, taken=False)
    found = [fault for fault in found if "/.harness/cache/" not in fault]  # derived again, so never fsynced
    row.faults += [f"cut after {wait:.2f} s: {fault}" for fault in found]
    show(f"{row.name}: {row.tried}/{row.points} after {wait:.2f} s, {len(told)} notes, {len(found)} faults")
    return state
