"""A kill at any disk call of an operation loses nothing: a point of each in the suite; all of them with `make torture FULL=1`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.state import names
from tests import kill_sweep
from tests.crash import sampled
from tests.kill_sweep import RUN_SH, Point, Report, Sweep
from tests.missions import Done, enter
from tests.torture import kills, operations, table
from tests.torture.gits import GitSweep
from tests.torture.operations import Append, Archive, Commit, Curate, Leased, Merge, Operation, Role
from tests.torture.table import Row
from tests.torture.whole import KNOWN, Missions

pytestmark = pytest.mark.skipif(bool(kill_sweep.why_not()), reason=kill_sweep.why_not() or "strace works")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Missions]]:
    """Makes missions; this process gets the environment of the last one."""
    with pytest.MonkeyPatch.context() as patch:

        def make(*numbers: int, last: str = "", base: tuple[str, ...] = ()) -> Missions:
            folder = tmp_path_factory.mktemp("whole")
            return Missions(folder, enter(patch, folder), *numbers, last=last, base=base)

        yield make


@pytest.fixture(scope="module")
def missions(here: Callable[..., Missions]) -> Missions:
    """A mission with one feature, from its plan to its last curation."""
    return here(1)


@pytest.fixture(scope="module")
def pair(here: Callable[..., Missions]) -> Missions:
    """A mission with two independent features."""
    return here(1, 2, last="worker F-001")


def struck(one: Operation, point: Point, *, goes_on: bool, fault: str = kill_sweep.KILL) -> None:
    """One interruption, from which the next start recovers; there are at least as many points as its number."""
    words = {"where": one.where, "env": one.house.env, "meanwhile": one.meanwhile}
    make = GitSweep if point.call.startswith("git ") else Sweep
    sweep = make(one.words, one.prepare, **words)  # type: ignore[arg-type] # the words that both take
    sweep.fault = fault
    recover = one.recover if fault == kill_sweep.KILL else kills.Failing(one, sweep).recover
    found = sweep.run([point], recover, one.go_on if goes_on else list, found=Report())
    operations.leave(one)
    assert found.points == [point], "the program does not come to that call any more"
    assert found.unexpected(KNOWN) == [], found


SETTLES = {  # each run, and its point in the suite: such a point proves that there are as many before it
    "planner": Point("fsync", 60),
    "worker F-001": Point("rename", 17),
    "validator F-001": Point("fsync", 35),
    "validator": Point("rename", 13),
    "curator": Point("fsync", 22),
}


@pytest.mark.parametrize("name", sampled(SETTLES, "worker F-001".__eq__))
def test_a_run_that_is_killed_at_any_disk_call_loses_nothing(missions: Missions, name: str) -> None:
    """Whichever process dies at it, the next start settles the run, and the mission goes on to DONE."""
    assert SETTLES[name].number >= kills.FEWEST
    struck(Role(missions, name), SETTLES[name], goes_on=name == "curator")


@pytest.mark.parametrize(
    ("make", "point", "goes_on"),
    sampled(
        [
            (Append, Point("fsync", 1), False),
            (Commit, Point("rename", 3), False),
            (Curate, Point("rename", 6), False),
            (Archive, Point("rename", 9), True),
        ],
        lambda row: row[0] in (Append, Commit),
    ),
)
def test_a_command_that_is_killed_loses_nothing(
    missions: Missions, make: type[Operation], point: Point, goes_on: bool
) -> None:
    """What was acknowledged is there, and what was not is there whole or not at all."""
    struck(make(missions), point, goes_on=goes_on)


@pytest.mark.parametrize(
    ("make", "point"),
    sampled([(Leased, Point("rename", 17)), (Merge, Point("rename", 12))], lambda row: row[0] is Leased),
)
def test_a_lane_that_is_killed_leaves_the_other_lane_alone(pair: Missions, make: type[Operation], point: Point) -> None:
    """Its lease, its tree and what it landed are untouched."""
    struck(make(pair), point, goes_on=False)


def test_a_git_that_is_killed_while_it_moves_the_branch_leaves_no_lock_in_the_way(missions: Missions) -> None:
    """It is chosen among all gits of the run by its number: the last but one that renames, before the one that keeps the run's
    commit. The work lands with the next start."""
    role = Role(missions, "worker F-001")
    found = [point for point in kills.Struck(role).git.points() if point.call.endswith("rename")]
    struck(role, found[-2], goes_on=True)


@pytest.mark.parametrize(
    ("error", "point"),
    sampled([("ENOSPC", Point("fsync", 20)), ("EROFS", Point("rename", 9))], lambda row: row[0] == "ENOSPC"),
)
def test_a_call_that_fails_is_a_clear_error_and_the_old_state_is_intact(
    missions: Missions, error: str, point: Point
) -> None:
    """With a documented exit code."""
    struck(Role(missions, "worker F-001"), point, goes_on=False, fault=f"error={error}")


def test_a_start_on_a_feature_that_a_run_has_claimed_says_who_holds_it(pair: Missions) -> None:
    """Exit 75; the run that holds it goes on."""
    one = Leased(pair)
    one.prepare()
    done = pair.house.run([RUN_SH, "worker", "F-002"])
    assert (done.code, one.beside.run in done.err) == (75, True), done
    assert one.beside.ended() == []
    operations.leave(one)


# ---- tests of the tests


class Lossy(Append):
    """A note that the recovery loses."""

    def recover(self, done: Done) -> tuple[list[str], str]:
        """It counts as acknowledged, and its line is gone."""
        Path(self.house.layout.path(names.RAW)).write_bytes(b"")
        return super().recover(done)


def test_a_lost_note_a_torn_file_and_a_state_that_needs_repair_are_counted(missions: Missions) -> None:
    """In the columns of the table, each by itself; and a settle with few points is a fault."""
    one = Lossy(missions)
    one.prepare()
    (one.house.state / "ledger.json").write_text("{")
    done = one.house.run(one.words)
    faults, _ = one.recover(Done(0, done.out, done.err))
    row = Row("append", faults=faults)
    assert (row.count("lost") > 0, row.count("torn"), row.count("repairs")) == (True, 1, 1), faults
    text = table.render([row])
    assert f"{len(faults)} faults" in text


def test_a_sweep_without_time_says_so_and_tries_nothing(missions: Missions) -> None:
    """The number of points is there all the same."""
    row = kills.swept("replace", operations.Replace(missions), kills.Effort(5, 5, -math.inf), lambda line: None)
    assert (row.tried, row.points > 3, row.faults) == (0, True, [])


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    """And in the order of the points."""
    points = [Point("write", number) for number in range(100)]
    chosen = kill_sweep.sample(points, 10, "seed")
    assert chosen == kill_sweep.sample(points, 10, "seed") == sorted(chosen)
    assert kill_sweep.sample(points, 1000, "seed") == points
