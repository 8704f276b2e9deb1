"""A pure function of the evidence decides what recovery will do; a reader sees its result in advance."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.decision import views
from harness.mission import runs
from harness.mission.runs import RunContext
from harness.state import files, journal, names
from harness.workplace.recovery import recovery_plan
from harness.workplace.recovery.recovery_plan import (
    COMPLETE,
    FORGET,
    KILL,
    PUT_AWAY,
    RELEASE,
    TIDY,
    DeadRun,
    RecoveryStep,
)
from tests.missions import House, differences, listing
from tests.planned import feature
from tests.run.test_recover import killed, recovered

AT_WORK = feature("F-001", status="in_progress")


def context(house: House, before: str = "todo") -> RunContext:
    """How a worker's run on F-001 opened."""
    return runs.context(house.layout, house.work({"say": "nothing"})["run"]).replace(before=before)


def test_a_run_that_closed_or_never_began_moves_no_feature() -> None:
    """Its lock is removed, with an empty folder; a feature that stays in progress belongs to no run."""
    died = [DeadRun(run="1", closed=True), DeadRun(run="2", began=False)]
    assert recovery_plan.plan(died, []) == [RecoveryStep(do=TIDY, run="1"), RecoveryStep(do=FORGET, run="2")]
    assert recovery_plan.plan(died, [AT_WORK])[2] == RecoveryStep(do=RELEASE, feature="F-001", move="back to todo")


@pytest.mark.parametrize(
    ("left", "do", "move", "takes_tree"),
    [
        ({}, KILL, "back to failing", True),
        ({"commit": "a"}, COMPLETE, "implemented", False),
        ({"commit": "a", "cut": True}, PUT_AWAY, "back to failing", False),
    ],
)
def test_what_a_worker_left_decides_where_its_feature_goes(
    house: House, left: dict[str, object], do: str, move: str, takes_tree: bool
) -> None:
    """Its commit counts; uncommitted work in its tree is taken."""
    one = DeadRun(run="1", context=context(house, "failing"), **left)  # type: ignore[arg-type]  # of a table
    step = recovery_plan.plan([one], [AT_WORK])[0]
    assert (step.do, step.feature, step.move, step.takes_tree) == (do, "F-001", move, takes_tree)


def test_the_project_folder_is_not_taken(house: House) -> None:
    """A run of an older harness worked there, and a person may since; its feature goes back once."""
    died = [DeadRun(run=name, context=context(house).replace(folder="")) for name in ("1", "2")]
    first, second = recovery_plan.plan(died, [AT_WORK])
    assert (first.takes_tree, first.move) == (False, "back to todo")
    assert (second.takes_tree, second.move) == (False, "")


def test_a_run_of_which_nothing_tells_is_settled_without_a_feature() -> None:
    """The run had begun; its feature is released separately."""
    first, second = recovery_plan.plan([DeadRun(run="1")], [AT_WORK.replace(attempts=2)])
    assert (first.do, first.feature) == (KILL, "")
    assert second == RecoveryStep(do=RELEASE, feature="F-001", move="back to failing")


def test_a_feature_on_which_a_run_lives_is_not_released() -> None:
    """While a worker works, every reader sees the feature in progress."""
    assert recovery_plan.plan([], [AT_WORK], ["F-001"]) == []


def test_what_was_forged_by_a_run_that_died_is_not_shown(unconfined: House) -> None:
    """The view shows features as recovery restores them, and writes nothing."""
    run_id = killed(unconfined)
    path = Path(unconfined.layout.path(names.FEATURES))
    path.write_text(path.read_text().replace("in_progress", "passed"))
    before = listing(unconfined.project, ".harness/cache")
    assert [one.status for one in views.queue(unconfined.layout)] == ["todo", "todo"]
    assert differences(before, listing(unconfined.project, ".harness/cache")) == []
    assert recovered(unconfined) == [f"{run_id} was killed"]
    assert [one.status for one in views.queue(unconfined.layout)] == ["todo", "todo"]


def test_a_journal_that_waits_to_be_finished_is_seen_as_finished(house: House) -> None:
    """The power failed between the journal's commit and its end: `next` reports what the next start finds."""
    killed(house)
    changes = journal.Journal(house.layout)
    steps: list[list[object]] = []
    done = files.read(house.layout.path(names.FEATURES)) or b""
    files.make_folder(house.layout.path(names.JOURNAL))
    changes._stage(steps, house.layout.path(names.FEATURES), "replace", done.replace(b"in_progress", b"validating"))
    files.replace(house.layout.path(names.JOURNAL) + "/record", files.dump_json(steps))
    assert [one.status for one in views.queue(house.layout)] == ["validating", "todo"]
