"""`forget` removes a run for good and leaves a tombstone; what others need stays, and a kill in between loses nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.mission import mission, runs
from harness.replay.upkeep import deletion
from harness.state import names, objects
from harness.state.files import Lock
from tests import kill_sweep
from tests.crash import TORTURE
from tests.kill_sweep import RUN_SH, Sweep, Template
from tests.missions import Done, House, listing

SECRET = "only-in-this-steer"


def two(house: House) -> tuple[str, str]:
    """Two runs; the first alone was told a secret."""
    Path(house.layout.path(names.STEER)).write_text(f"{SECRET}\n")
    first = house.work({"say": SECRET, "run": "echo 1 > 1.txt"}, feature="F-001")["run"]
    Path(house.layout.path(names.STEER)).unlink()
    return first, house.work({"run": "echo 2 > 2.txt"}, feature="F-002")["run"]


def having(house: House, text: str) -> list[str]:
    """The files of the state that have this text."""
    found = listing(house.state, "locks", "cache")
    return [name for name, data in found.items() if text.encode() in data]


def test_a_run_is_removed_and_named_where_it_is_missed(house: House) -> None:
    """Its files and what its prompt alone held are gone; replay, runs show and doctor say when and by whom, without a fault."""
    first, second = two(house)
    assert having(house, SECRET)
    kept = house.read(f"runs/{second}/prompt.md")
    done = house.program("forget", first, "--yes")
    assert (done.code, "forgotten on" in done.out) == (0, True), done
    assert having(house, SECRET) == []
    assert os.listdir(house.layout.run(first).folder) == ["result.json"]
    words = runs.forgotten(house.layout)[first].words
    for command, code in (("replay", 64), ("features at", 64), ("memory at", 64), ("export --to x", 64)):
        said = house.harness(*command.split(), first)
        assert (said.code, words in said.err) == (code, True), said
    said = house.harness("replay", "--all")
    assert (said.code, f"{first}: {words}" in said.out, "1 of 2 runs" in said.out) == (0, True, True)
    assert words in house.harness("runs", "show", first).out
    shown = json.loads(house.harness("runs", "show", first, "--json").out)
    assert (shown["state"], shown["result"]["run"]) == ("forgotten", first)
    said = house.program("doctor")
    assert (said.code, f"the run {first}: {words}" in said.out) == (0, True), said
    assert house.harness("replay", second, "--explain").code == 0
    assert house.read(f"runs/{second}/prompt.md") == kept
    assert len(house.ran()) == 2
    assert house.harness("next").code == 0


def test_it_is_asked_first_and_refused_where_it_must_be(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal --yes is needed; inside a run, of a live run and of an unknown one nothing is removed."""
    first, second = two(house)
    before = listing(house.state, "locks", "cache")
    done = house.program("forget", first)
    assert (done.code, "--yes" in done.err) == (64, True)
    assert house.program("forget", first, "no-run", "--yes").code == 64
    lease = Lock(house.layout.run(second).lock)
    lease.take()
    Path(house.layout.run(second).result).rename(house.folder / "result.json")
    assert house.harness("forget", second, "--yes").code == 75
    (house.folder / "result.json").rename(house.layout.run(second).result)
    lease.release()
    Path(house.layout.run(second).lock).unlink()
    monkeypatch.setenv("HARNESS_INSIDE", second)
    assert house.harness("forget", first, "--yes").code == 64
    assert listing(house.state, "locks", "cache") == before


def test_receipts_that_count_keep_their_run(house: House) -> None:
    """The validation of a passed feature stays, and the refusal says which feature."""
    house.work({"run": "echo 1 > 1.txt"})
    house.script("validator", {"reply": {"checks": []}})
    done = house.role("validator", "F-001")
    run_id = house.result()["run"]
    assert house.feature().status == "passed", done
    said = house.program("forget", run_id, "--yes")
    assert (said.code, "F-001" in said.err) == (64, True)
    assert house.harness("replay", run_id).code == 0


def test_after_a_kill_the_same_call_or_gc_goes_on(house: House) -> None:
    """Before the tombstone nothing is gone; behind it the run is forgotten, doctor names what is left, and it goes."""
    first, _ = two(house)
    (row,) = deletion._bury(house.layout, [first])
    assert having(house, SECRET)
    said = house.program("doctor")
    assert (said.code, f"{first} is forgotten, but some of its files remain" in said.out) == (10, True), said
    assert house.harness("replay", "--all").code == 0
    assert house.harness("gc").code == 0
    assert having(house, SECRET) == []
    assert house.program("doctor").code == 0
    assert house.program("forget", first, "--yes").code == 0
    assert list(runs.forgotten(house.layout).values()) == [row]


def test_an_object_that_anybody_else_needs_stays(house: House) -> None:
    """Also one that only a snapshot has; every prompt that is left is rebuilt."""
    first, second = two(house)
    names = [one["object"] for one in json.loads(house.read(f"runs/{second}/manifest.json")) if "object" in one]
    live = json.loads(house.read(f"snapshots/{first}.json"))["live"].values()
    house.program("forget", first, "--yes")
    assert all(objects.get(house.layout, name) for name in (*names, *live))


def test_a_run_of_the_archive_is_forgotten_there(house: House) -> None:
    """By its id; the tombstone is in that mission."""
    first, _ = two(house)
    old = mission.load(house.layout).id
    assert house.program("init", "--new", "--abandon").code == 0
    assert house.program("forget", first, "--yes").code == 0
    assert having(house, SECRET) == []
    assert first in (house.state / "archive" / old / "forgotten.jsonl").read_text()
    assert house.harness("replay", "--all").code == 0


def test_who_forgot_is_named_even_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number of the user."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert deletion.who()


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
@pytest.mark.skipif(bool(kill_sweep.why_not()), reason=kill_sweep.why_not() or "strace works")
def test_a_kill_at_any_point_is_completed_by_the_same_call(house: House) -> None:
    """Whatever was removed by then; the other run is as it was."""
    first, second = two(house)
    template = Template(house.folder, ("my project", "state", "identity"), house.folder / "kept")
    sweep = Sweep([RUN_SH, "forget", first, "--yes"], template.restore, where=house.project, env=house.env)
    kept = listing(Path(house.layout.run(second).folder))

    def recovered(done: Done) -> tuple[list[str], str]:
        said = house.program("replay", "--all")
        gone = first in runs.forgotten(house.layout)
        wrong = [] if said.code == 0 else [f"replay: {said}, {done}"]
        return wrong, f"{gone} {len(having(house, SECRET))} {sorted(os.listdir(house.layout.run(first).folder))}"

    def again() -> list[str]:
        done = house.program("forget", first, "--yes")
        wrong = [f"again: {done}"] if done.code or having(house, SECRET) else []
        wrong += [f"doctor: {said}"] if (said := house.program("doctor")).code else []
        return wrong + ([] if listing(Path(house.layout.run(second).folder)) == kept else ["the other run changed"])

    report = sweep.run(sweep.points(), recovered, again)
    assert (report.faults, bool(report.points)) == ([], True), report
