"""The state as it was before a run, from what the records hold; what they do not hold is said, never taken for absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.memory import pages
from harness.memory.pages import CurationProgress
from harness.replay import _past_state
from harness.state import names, objects
from harness.state.state import Changes, State
from tests.missions import House


def state_of(house: House) -> dict[str, bytes]:
    """Every file that a moment has."""
    found = {name: State(house.layout).data(name) for name in _past_state.EVERY}
    return {name: data for name, data in found.items() if data is not None}


def test_the_state_before_each_run_is_made_again_byte_for_byte(house: House) -> None:
    """Also what a person changed by hand, and the notes and orders between two runs."""
    before = {}
    for feature in ("F-001", "F-002"):
        Path(house.layout.path(names.SUMMARY)).write_text(f"## Lessons\n- as of {feature}\n")
        house.program("note", f"before {feature}")
        house.program("feature", "set", "F-002", "priority=3")
        now = state_of(house)
        before[house.work({"run": "harness note inside"}, feature=feature)["run"]] = now
    assert len(before) == 2
    for run_id, wanted in before.items():
        then = _past_state.at(house.layout, run_id)
        assert (then.unknown, then.inexact) == ({}, {})
        assert {name: data for name, data in then.files.items() if wanted.get(name) != data} == {}
        assert wanted.keys() == then.files.keys()


def test_raw_is_made_again_after_it_was_cut(house: House) -> None:
    """From the archive; with masked entries the others are exact, and it is said."""
    for number in range(4):
        house.program("note", f"note {number}")
    run_id, then = house.work()["run"], house.read("memory/raw.md")
    raw = house.read("memory/raw.md").splitlines(keepends=True)
    for masked in (False, True):
        rows: list[dict[str, Any]] = [
            {"seq": n, "entry": line.rstrip("\n"), "disposition": "dropped", "target": "", "run": "c"}
            for n, line in enumerate(raw)
        ]
        if masked:
            rows[1]["entry"] = rows[1]["entry"].replace("note 1", "[masked: x]")
        changes = Changes()
        changes.put(names.ARCHIVE, b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        changes.put(names.RAW, b"")
        changes.put(
            names.CURATED, pages.render_curated(CurationProgress(generation=1, first_seq=0, folded=len(raw), offset=1))
        )
        State(house.layout).commit(changes)
        found = _past_state.at(house.layout, run_id, (names.RAW,))
        assert found.files[names.RAW].decode() == (then.replace("note 1", "[masked: x]") if masked else then)
        assert bool(found.inexact) == masked


def test_what_is_not_recorded_is_named(house: House) -> None:
    """A lost object is unknown with its path, others are there; a broken context.json is a fault of that file."""
    run_id = house.work()["run"]
    house.program("feature", "set", "F-002", "priority=3")
    row = json.loads(house.read(f"runs/{run_id}/context.json"))
    Path(objects.path_of(house.layout, row["live"][names.FEATURES][0])).unlink()
    then = _past_state.at(house.layout, run_id)
    assert list(then.unknown) == [names.FEATURES]
    assert "objects/" in then.unknown[names.FEATURES]
    with pytest.raises(BrokenFile, match="not recorded"):
        then.known(names.FEATURES)
    assert house.harness("features", "at", run_id).code == 65
    assert house.harness("memory", "at", run_id).code == 0
    Path(house.layout.run(run_id).context).write_text("{")
    assert "context.json" in house.harness("features", "at", run_id).err
