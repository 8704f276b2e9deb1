"""Finding past runs: in the mission, in its archive, and with a remedy if there is none."""

from __future__ import annotations

import pytest

from harness.mission import run_lookup
from tests.missions import House


@pytest.mark.parametrize("words", [["replay"], ["replay", "--explain"], ["runs", "show", "--prompt"]])
def test_a_run_that_does_not_exist_says_what_to_do(house: House, words: list[str]) -> None:
    """64, the id that looks like it, and the command that lists them."""
    run_id = house.work({"say": "hello"})["run"]
    done = house.harness(*words, run_id[:-1])
    assert (done.code, done.out) == (64, "")
    assert f"There is no run '{run_id[:-1]}'. Did you mean '{run_id}'? See: run.sh runs list" in done.err
    assert house.harness(*words, "../../etc").code == 64


def test_a_feature_stands_for_its_newest_run(house: House) -> None:
    """As with `runs show`."""
    house.work({"say": "hello"})
    newest = house.work_again()["run"]
    assert house.harness("replay", "F-001").out.startswith(f"{newest}: ")


def test_without_a_mission_or_with_a_format_of_another_time_it_says_so(unbegun: House) -> None:
    """64 and 65, as every command."""
    assert unbegun.harness("replay", "--all").code == 64
    unbegun.harness("init")
    (unbegun.state / "format").write_text("99\n")
    done = unbegun.harness("replay", "--all")
    assert (done.code, "unknown format '99'" in done.err) == (65, True)


def test_earlier_runs_are_those_of_the_role_before_this_one(house: House) -> None:
    """The newest first; a run that has not ended comes after all."""
    ids = [house.work({"say": "hello"}, feature=name)["run"] for name in ("F-001", "F-002")]
    ids.append(house.work_again("F-002")["run"])
    assert list(run_lookup.before(house.layout, ids[2], "worker")) == [ids[1], ids[0]]
    assert list(run_lookup.before(house.layout, ids[0], "worker")) == []
    assert list(run_lookup.before(house.layout, ids[2], "planner")) == []
    (house.state / "runs" / "9-worker").mkdir()
    assert list(run_lookup.before(house.layout, "9-worker", "worker")) == ids[::-1]
