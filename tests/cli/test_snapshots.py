"""The commands about snapshots and earlier times: what they print, and as JSON; reads are allowed inside a run."""

from __future__ import annotations

import json

import pytest

from tests.missions import House


def test_a_mission_without_a_run_has_none(house: House) -> None:
    """Which is said, and is no fault; as JSON an empty list."""
    said = house.harness("snapshot", "list")
    assert (said.code, said.out) == (0, "There are no snapshots yet; each run creates one at its end.\n")
    assert json.loads(house.harness("snapshot", "list", "--json").out) == []


@pytest.mark.parametrize(
    "words", ["snapshot show x", "snapshot restore x", "memory at x", "features at x", "forget x --yes"]
)
def test_what_does_not_exist_is_refused(house: House, words: str) -> None:
    """64, with where to look."""
    said = house.harness(*words.split())
    assert (said.code, "There is no" in said.err, "See: " in said.err) == (64, True, True)


def test_each_value_has_the_keys_that_contract_md_says(house: House) -> None:
    """`--json` of each."""
    run_id = house.work()["run"]
    (row,) = json.loads(house.harness("snapshot", "list", "--json").out)
    assert list(row) == ["id", "at", "what", "commit", "features", "fault"]
    shown = json.loads(house.harness("snapshot", "show", run_id, "--json").out)
    assert shown.keys() == {"id", "at", "commit", "identity", "files", "features", "faults"}
    assert json.loads(house.harness("snapshot", "diff", run_id, "--json").out).keys() == {"from", "to", "diff"}
    assert json.loads(house.harness("memory", "at", run_id, "--json").out).keys() == {"run", "at", "files", "unknown"}
    assert json.loads(house.harness("features", "at", run_id, "--json").out).keys() == {"run", "at", "due", "features"}
    made = json.loads(house.program("snapshot", "restore", run_id, "--json").out)
    assert made.keys() == {"to", "kept", "branch", "commit", "lines"}
    made = json.loads(house.program("forget", run_id, "--yes", "--json").out)
    assert made.keys() == {"runs", "bytes", "objects"}


def test_reads_are_allowed_inside_a_run(house: House) -> None:
    """An agent may look at what was known; it may not restore or forget."""
    before = house.work({"run": "echo 1 > 1.txt"})["run"]
    looks = [f"snapshot {one}" for one in ("list", f"show {before}", f"diff {before}")]
    looks += [f"memory at {before}", f"features at {before}"]
    script = "; ".join(f"harness {one} > /dev/null; echo $? >> codes" for one in looks)
    script += (
        f"; harness snapshot restore {before} || echo $? >> codes; harness forget {before} --yes || echo $? >> codes"
    )
    house.work({"run": script}, feature="F-002")
    assert (house.tree / "codes").read_text().split() == ["0"] * 5 + ["64"] * 2
