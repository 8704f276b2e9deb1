"""Every disk that a power cut may leave of the protocols above the journal: a replaced file, a curation, an archived mission.

The journal itself and the append are in tests/test_crash_journal.py. The suite looks at a sample of the disks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.memory import identity
from harness.memory.backlog import BatchLimit
from harness.run import _archiving
from harness.state import files, journal, names, raw
from harness.state.layout import Layout
from tests import compacting
from tests.crash import TORTURE, contents, lay_out, power_cuts, recorded
from tests.helpers import mission, put
from tests.memory.curating import TODAY, accounted
from tests.torture.rivals import entries_of

MOST = 100_000 if TORTURE else 60  # disks that are looked at
TRICK = "stop the dev server before you run e2e tests: they also need port 3000"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where that can be had: this model involves no disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as made:
        yield Path(made)


def disks(root: Path, action: Callable[[], object]) -> Iterator[tuple[bool, Callable[[], None]]]:
    """Of every disk, or of some: whether the action had returned, and what lays the disk out."""
    before = contents(str(root))
    found = list(power_cuts(before, recorded(str(root), action)))
    assert len(found) > 5
    step = max(1, len(found) // MOST)
    for returned, disk in [*found[::step], *(one for one in found[-3:] if one[0])]:
        yield returned, lambda disk=disk: lay_out(str(root), disk)  # type: ignore[misc] # a default binds the loop's value


def test_a_replaced_file_is_the_old_one_or_the_new_one_and_the_new_one_once_acknowledged(folder: Path) -> None:
    """Whole, whatever reached the disk."""
    path = folder / "root" / "file"
    put(str(path), b"old" * 100)
    for returned, lay in disks(folder / "root", lambda: files.replace(str(path), b"new" * 100)):
        lay()
        assert path.read_bytes() in ([b"new" * 100] if returned else [b"new" * 100, b"old" * 100])


def test_a_curation_keeps_every_entry_under_its_number(folder: Path) -> None:
    """In several batches, with the identities; the next curation continues, and counts no lesson twice."""
    root = folder / "root"
    layout, home = mission(root), str(root / "identity")
    for number in range(14):
        text = TRICK if number % 2 else f"word{number} is another thing"
        raw.append(layout, "worker", f"F-{number}", [("TRICK", text)])
    whole = (files.read_text(layout.path(names.RAW)) or "").split("\n")[:-1]

    def curate(run: str) -> None:
        compacting.compact_all(layout, home, "m-1", run, TODAY, bound=BatchLimit(entries=6, bytes=10**6))

    for number, (_, lay) in enumerate(disks(root, lambda: curate("run-1"))):
        lay()
        os.makedirs(layout.path(names.LOCKS), exist_ok=True)
        with files.Lock(layout.path(names.STATE_LOCK)):
            journal.finish_journal(layout)
        assert entries_of(layout) == whole
        if number % 5 == 0:
            curate("run-2")
            assert accounted(layout) == whole
            seen = [(said.mission, said.seq) for said in identity.evidence(home)]
            assert len(seen) == len({*seen})


def test_a_mission_that_is_put_away_is_here_or_there_and_nothing_of_it_is_lost(folder: Path) -> None:
    """Each file of it is whole, and once the next start went on, all of them are in the archive."""
    layout = mission(folder / "root")
    state = {"format": b"2\n", "features.json": b"{}\n", "runs.jsonl": b"", "runs/r-1/result.json": b"{}\n"}
    state |= {"memory/raw.md": b"one\n", "memory/archive.jsonl": b"{}\n", "config.toml": b'agent = "x"\n'}
    for name, data in state.items():
        put(f"{layout.state}/{name}", data)

    def away() -> None:
        files.replace(layout.path(names.ARCHIVING), b'{"id":"m-1"}\n')
        _archiving._move(layout, "m-1")

    for returned, lay in disks(folder / "root", away):
        lay()
        Path(layout.path(names.LOCKS)).mkdir(parents=True, exist_ok=True)
        if finished(layout):
            _archiving.go_on(layout)
        target = Path(layout.archive_of("m-1"))
        there = {name for name in state if (target / name).exists()}
        here = {name for name in state if Path(layout.state, name).exists()}
        assert there == {*state} or (not returned and not there and here == {*state}), (there, here)
        top = target if there else Path(layout.state)
        assert {name: (top / name).read_bytes() for name in state} == state


def finished(layout: Layout) -> bool:
    """Whether a move has begun, that the next start must go on with."""
    return files.read(layout.path(names.ARCHIVING)) is not None
