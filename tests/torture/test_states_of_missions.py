"""Every disk that a power cut may leave of a mission's own protocols: it begins, claims, is photographed, goes back.

As in test_states, but with a repository beside it, whose state is as after the operation: what git writes, git fsyncs."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.mission import lease, mission, runs
from harness.mission.lease import Lease, Terms
from harness.replay import _past_state
from harness.replay.upkeep import restoration, snapshots
from harness.run import closing, starting
from harness.state import files, journal, names
from harness.state.state import State
from tests.crash import TORTURE, contents
from tests.missions import House
from tests.torture.test_states import disks

BACK = (*_past_state.PUT_BACK, *_past_state.CUT_BACK)
LOOKS = 1 if TORTURE else 30  # every so many disks, the whole mission is looked at as well


def finished(house: House) -> None:
    """The journal is carried out, as the next start does."""
    os.makedirs(house.layout.path(names.LOCKS), exist_ok=True)
    with files.Lock(house.layout.path(names.STATE_LOCK)):
        journal.finish_journal(house.layout)


def test_a_mission_has_begun_whole_or_begins_with_the_next_start(unbegun: House) -> None:
    """Whatever reached the disk, no person is needed; once the start had returned, it is the same mission."""
    layout, made = unbegun.layout, []

    def begin() -> None:
        starting.start(layout)

    for number, (returned, lay) in enumerate(disks(Path(layout.state), begin)):
        lay()
        finished(unbegun)
        there = mission.exists(layout)
        assert there or not returned
        found = starting.start(layout)
        made += [found.id] if there else []
        if number % LOOKS == 0:
            done = unbegun.program("doctor")
            assert not re.search(r"^bad +(?! |agents)", done.out, re.M), done.out
    assert len({*made}) == 1


def test_a_claim_that_a_power_cut_tore_holds_nobody_up(house: House) -> None:
    """The process that held it is gone with the power: the feature is free, the run is settled, whatever its file says."""
    layout = house.layout
    terms = Terms(
        run="20260424-120000-worker-F-001", role="worker", pid=1, since="now", claims=[lease.feature("F-001")]
    )
    os.makedirs(layout.run(terms.run).folder)

    held = Lease(layout, terms)
    held.take()
    assert lease.holder(lease.alive(layout), lease.feature("F-001"))
    held.release()
    path = Path(layout.run(terms.run).lock)
    whole = path.read_bytes()
    for torn in (whole, whole[: len(whole) // 2], b"", b"\0" * len(whole), None):
        path.unlink() if torn is None else path.write_bytes(torn)
        assert lease.alive(layout) == []
    done = house.work({"run": "echo 1 > 1.txt"})
    assert (done["outcome"], runs.open_runs(layout)) == ("ok", [])


def test_the_snapshot_of_a_run_is_whole_or_is_made_by_the_next_start(house: House) -> None:
    """Never a file of it that names bytes which are not there."""
    layout, run = house.layout, house.work({"run": "echo 1 > 1.txt"})["run"]
    path = Path(snapshots.path_of(layout, run))
    path.unlink()
    for name in contents(layout.path(names.OBJECTS)):
        if name not in objects_of_runs(house):
            Path(name).unlink()
    for returned, lay in disks(Path(layout.state), lambda: closing.snapshot(layout, run)):
        lay()
        finished(house)
        assert path.exists() or not returned
        closing.snapshot(layout, run)
        assert snapshots.is_whole(layout, snapshots.then(layout, snapshots.load(layout, run))) == []


def objects_of_runs(house: House) -> set[str]:
    """The files of the objects that prompts name: they were there before the snapshot."""
    layout = house.layout
    named = "".join(path.read_text() for path in Path(layout.path(names.RUNS)).glob("*/*.json"))
    return {name for name in contents(layout.path(names.OBJECTS)) if Path(name).name in named}


def test_a_restore_has_put_back_everything_or_nothing(house: House) -> None:
    """And what was there before it can be had back; the next start goes on from either."""
    layout = house.layout
    house.program("note", "the first note")
    first = house.work({"run": "echo 1 > 1.txt"})["run"]
    then = state_of(house)
    house.program("note", "the second note")
    house.program("feature", "set", "F-002", "title=Another")
    now = state_of(house)
    assert then != now

    def restore() -> None:
        restoration.restore(layout, first)

    for number, (returned, lay) in enumerate(disks(Path(layout.state), restore)):
        lay()
        finished(house)
        found = state_of(house)
        assert found == then if returned else found in (then, now)
        if found == then:
            (row,) = _past_state.restores(layout)
            kept = snapshots.then(layout, snapshots.load(layout, row.kept))
            assert {name: kept.known(name) for name in BACK} == now
        if number % LOOKS == 0:
            done = house.program("snapshot", "restore", first)
            assert (done.code, state_of(house)) == (0, then), done


def state_of(house: House) -> dict[str, bytes | None]:
    """The files that a restore puts back."""
    return {name: State(house.layout).data(name) for name in BACK}
