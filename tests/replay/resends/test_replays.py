"""What replays leave: kept apart, summed up, pruned, and never taken for whole where they are not."""

from __future__ import annotations

import json
import os
from pathlib import Path

from harness.base import clock
from harness.replay.resends import replays
from harness.state import names
from tests.missions import House

USAGE = {"usage": {"input": 100, "output": 10, "cost_usd": 0.5, "model": "m", "raw": [{}]}}


def old(house: House) -> Path:
    """A replay that began long ago."""
    run = house.work({"say": "hello"})["run"]
    house.script("worker", USAGE, {"say": "again"})
    assert house.program("replay", run, "--agent", "scripted").code == 0
    (made,) = (house.state / "replays").iterdir()
    return made.rename(made.parent / f"{clock.now() - 40 * 86400}-{run}")


def test_gc_leaves_what_an_old_replay_was_and_what_it_cost(house: House) -> None:
    """Its transcript, its prompt and its work go; a dry run only says so."""
    folder = old(house)
    would = json.loads(house.program("gc", "--dry-run", "--json").out)
    assert would["replays"] == [folder.name] and (folder / "prompt.md").exists()
    done = json.loads(house.program("gc", "--json").out)
    assert {**done, "dry_run": True} == would and done["bytes"] > 0
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == ["1", "1/result.json", "replay.json"]
    assert replays.spent(house.layout) == (0.5, 110)
    assert json.loads(house.program("gc", "--json").out)["replays"] == []
    assert "older replays" not in house.program("gc").out


def test_one_that_was_killed_counts_what_it_had_reported(house: House) -> None:
    """From its transcript, and after gc from the result that gc wrote."""
    folder = old(house)
    (folder / "1" / "result.json").unlink()
    (one,) = replays.samples(house.layout)
    assert (one.outcome, one.agent, one.cost, one.tokens) == ("killed", "scripted", 0.5, 110)
    house.program("gc")
    assert json.loads((folder / "1" / "result.json").read_text())["outcome"] == "killed"
    assert not (folder / "1" / "stream.jsonl").exists()
    assert replays.spent(house.layout) == (0.5, 110)


def test_a_result_that_is_none_is_named(house: House) -> None:
    """65 with the file: a cost that cannot be read is not zero."""
    path = old(house) / "1" / "result.json"
    whole = path.read_text()
    for text in ("[]", "{", whole.replace('"cost_usd":0.5', '"cost_usd":"much"')):
        path.write_text(text)
        done = house.program("usage")
        assert (done.code, str(path) in done.err) == (65, True), done


def test_two_at_once_have_folders_of_their_own(house: House) -> None:
    """Also in one second."""
    made = [replays.begin(house.layout, "run") for _ in range(3)]
    assert len(set(made)) == 3
    assert all(os.path.isdir(f"{house.layout.path(names.REPLAYS)}/{name}") for name in made)
