"""Several runs at once: what a run claims is its own while it lives, and what others wrote meanwhile stands."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.base.errors import LockBusy
from harness.mission import lease, runs
from harness.mission.lease import Lease, Terms
from harness.state import names, raw
from harness.state.layout import Layout
from tests.helpers import mission
from tests.missions import House, until

WAIT = "touch begun-{0}; for i in $(seq 1200); do [ -e '{1}/go' ] && break; sleep 0.05; done; rm begun-{0}"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder exists and is empty."""
    return mission(tmp_path)


def taken(layout: Layout, run_id: str, *claims: str) -> Lease:
    """The lease of a run with these claims."""
    os.makedirs(layout.run(run_id).folder)
    own = Lease(layout, Terms(run=run_id, role="worker", pid=1, since="now", claims=list(claims)))
    own.take()
    return own


def waits(house: House, number: str) -> dict[str, str]:
    """A worker's step that makes its file and waits for the file `go` in the project folder."""
    return {"run": f"echo {number} > {number}.txt; " + WAIT.format(number, house.project)}


def until_begun(house: House, number: str) -> None:
    """Wait until the agent with this number works."""
    until(lambda: [*house.tree.parent.glob(f"tree-*/begun-{number}")] != [])


def at_once(house: House) -> list[str]:
    """Two workers that work now, each on a feature of its own; the trees in which they do."""
    for number in ("1", "2"):
        house.script("worker", waits(house, number))
        house.begin_role("worker", f"F-00{number}")
        until_begun(house, number)
    return [next(house.tree.parent.glob(f"tree-*/begun-{number}")).parent.name for number in ("1", "2")]


def go(house: House) -> None:
    """Let the workers end, and wait for them."""
    (house.project / "go").touch()
    assert [role.wait(60) for role in house.begun] == [0] * len(house.begun)


def test_a_claim_has_one_live_holder_and_says_who(layout: Layout) -> None:
    """Another one is told which run it is; when the process is gone, so is its claim."""
    own = taken(layout, "7-worker", "feature F-001", "tree tree-1")
    assert [one.claims for one in lease.alive(layout)] == [["feature F-001", "tree tree-1"]]
    with pytest.raises(LockBusy, match="Another run holds feature F-001: run 7-worker, pid 1, since now"):
        lease.require_free(lease.alive(layout), "feature F-001")
    lease.require_free(lease.alive(layout), "feature F-002")
    own.release()
    assert lease.alive(layout) == []
    assert runs.is_dead(layout, "7-worker")


def test_a_lease_lives_as_long_as_a_guardian_has_its_descriptors(layout: Layout) -> None:
    """Any copy of one of them is enough."""
    own = taken(layout, "7-worker")
    kept = [os.dup(descriptor) for descriptor in own.descriptors]
    own.release()
    assert len(kept) == 2
    for descriptor in kept:
        assert not runs.is_dead(layout, "7-worker")
        os.close(descriptor)
    assert runs.is_dead(layout, "7-worker")


def test_a_lease_file_that_nobody_can_read_still_has_a_holder(layout: Layout) -> None:
    """The lock says who lives; the file only says what for."""
    own = taken(layout, "7-worker", "the plan")
    Path(layout.run("7-worker").lock).write_text("{")
    assert lease.alive(layout) == [Terms(run="7-worker", role="", pid=0, since="")]
    own.release()


def test_two_workers_of_different_features_work_at_once(house: House) -> None:
    """Each in a tree of its own, and a feature that one holds is refused with who it is, for a worker and a validator, by name or
    not; both end well, and the mission's branch has both, in one line of history."""
    assert at_once(house) == ["tree-1", "tree-2"]
    assert [house.feature(name).status for name in ("F-001", "F-002")] == ["in_progress", "in_progress"]
    held = next(one.run for one in lease.alive(house.layout) if one.feature == "F-001")
    for role in ("worker", "validator"):
        refused = house.role(role, "F-001")
        assert (refused.code, f"Another run holds feature F-001: run {held}" in refused.err) == (75, True), refused
    assert "No feature is ready" in house.role("worker").err
    go(house)
    assert [house.feature(name).status for name in ("F-001", "F-002")] == ["validating", "validating"]
    assert sorted(line["outcome"] for line in house.ran()) == ["ok", "ok"]
    assert house.git("ls-files").split() == ["1.txt", "2.txt", "SPEC.md", "main.py"]
    assert house.git("log", "--merges", "--format=%s") == ""
    assert [line["totals"]["runs"] for line in house.ran()] == [1, 2]
    for name in ("F-001", "F-002"):
        assert house.role("validator", name).code == 0
    assert house.feature().status == "passed"
    assert house.harness("doctor").code == 0
    assert runs.open_runs(house.layout) == []


def test_planner_validator_and_curator_run_while_a_worker_works(house: House) -> None:
    """What they decide stands when the worker settles; the curator needs no quiet mission."""
    house.work({"run": "echo 1 > 1.txt"})
    house.script("worker", waits(house, "2"))
    house.begin_role("worker", "F-002")
    until_begun(house, "2")
    house.harness("note", "--tag", "TRICK", "the port is 8123")
    assert house.role("validator", "F-001").code == 0
    assert house.role("curator").code == 0
    plan = {
        "features": [{"id": "F-003", "title": "Part three", "claims": ["VAL-3"]}],
        "contract": [{"id": "VAL-3", "claim": "Part three works", "checks": ["test -f 3.txt"]}],
    }
    house.script("planner", {"say": f"```json harness\n{json.dumps(plan)}\n```"})
    planned = house.role("planner")
    assert planned.code == 0, planned
    assert house.feature().status == "passed"
    go(house)
    assert [house.feature(f"F-00{n}").status for n in (1, 2, 3)] == ["passed", "validating", "todo"]
    assert "8123" in house.read("memory/MEMORY.md")
    assert house.harness("doctor").code == 0


def test_what_people_and_commands_write_meanwhile_stands(house: House) -> None:
    """Notes, issues, orders, config.toml and edits of the queue by hand: nothing is put back, nothing counts against the run."""
    house.script("worker", waits(house, "1"))
    house.begin_role("worker", "F-001")
    until_begun(house, "1")
    assert house.harness("issue", "a fault", "--severity", "major").code == 0
    assert house.harness("feature", "set", "F-002", "title=Another part").code == 0
    waiting = house.harness("feature", "block", "F-001", "--reason", "not now")
    assert "it is applied when the current run ends" in waiting.out, waiting
    path = Path(house.layout.path(names.FEATURES))
    path.write_text(path.read_text().replace('"priority":2', '"priority":7'))
    house.config('agent = "scripted"', "curate_after = 17")
    go(house)
    result = house.result()
    assert (result["outcome"], result["refused"]) == ("ok", [])
    assert (house.feature("F-002").title, house.feature("F-002").priority) == ("Another part", 7)
    assert "curate_after = 17" in house.read("config.toml")
    assert '"a fault"' in house.read("issues.jsonl")
    assert house.feature().status == "blocked"  # the order was applied once the run had settled


def test_work_that_conflicts_with_what_landed_meanwhile_goes_back_and_is_kept(house: House) -> None:
    """No try is charged; the next worker starts from what landed, and is told what conflicts and where the work is."""
    for number in ("1", "2"):
        house.script("worker", {"run": f"echo {number} >> main.py; " + waits(house, number)["run"]})
        house.begin_role("worker", f"F-00{number}")
        until_begun(house, number)
    (house.project / "go").touch()
    assert sorted(role.wait(60) for role in house.begun) == [0, 10]
    first, second = house.ran()
    assert (first["outcome"], second["outcome"]) == ("ok", "conflict")
    lost = house.feature(second["feature"])
    assert (lost.status, lost.attempts) == ("todo", 0)
    kept = f"refs/harness/partial/{second['run']}"
    assert "main.py" in second["reason"]
    assert kept in second["reason"]
    assert house.git("show", f"{kept}:main.py").endswith(second["feature"][-1])
    house.script("worker", {"run": "git log --oneline"})
    house.role("worker", second["feature"])
    assert kept in house.prompt()


def test_a_feature_that_the_plan_dropped_meanwhile_takes_no_work(house: House) -> None:
    """The plan stands; what the worker did is kept under a ref, and not on the branch."""
    house.script("worker", waits(house, "2"))
    house.begin_role("worker", "F-002")
    until_begun(house, "2")
    head = house.head()
    dropped = [{"id": name, "reason": "not needed"} for name in ("F-002", "VAL-2", "VAL-LOOK")]
    plan = {"features": [], "contract": [], "drop": dropped}
    house.script("planner", {"say": f"```json harness\n{json.dumps(plan)}\n```"})
    planned = house.role("planner")
    assert planned.code == 0, planned
    go(house)
    result = house.result()
    assert "F-002 was dropped from the plan meanwhile; its work is kept" in result["reason"]
    assert house.head() == head
    assert house.git("show", f"refs/harness/partial/{result['run']}:2.txt") == "2"


def test_a_verdict_about_claims_that_changed_meanwhile_decides_nothing(house: House) -> None:
    """The feature waits for a validation of what is claimed now."""
    house.work({"run": "echo 1 > 1.txt"})
    contract = Path(house.layout.path(names.CONTRACT))
    changed = contract.read_text().replace("test -f 1.txt", "test -f 1.txt && test -f 9.txt")
    house.script(
        "validator", {"run": WAIT.format("judge", house.project)}, {"say": '```json harness\n{"checks":[]}\n```'}
    )
    house.begin_role("validator", "F-001")
    until_begun(house, "judge")
    contract.write_text(changed)
    go(house)
    assert (house.result()["verdict"], house.feature().status) == ("", "validating")


def test_a_runs_claims_end_with_its_last_process(house: House) -> None:
    """A run that is killed frees feature and tree; the other one is untouched, and so are its lease and its feature."""
    at_once(house)
    first = next(one for one in lease.alive(house.layout) if one.feature == "F-001")
    os.kill(first.pid, 9)
    until(lambda: runs.is_dead(house.layout, first.run))
    assert house.harness("next").out.strip() == "NEXT worker F-001"
    house.script("worker", {"run": "echo 1 > 1.txt"})
    again = house.role("worker", "F-001")
    assert (again.code, f"{first.run} was killed" in again.out) == (0, True), again
    assert house.feature("F-002").status == "in_progress"
    (house.project / "go").touch()
    assert house.begun[1].wait(60) == 0
    assert [house.feature(f"F-00{n}").status for n in (1, 2)] == ["validating", "validating"]


def test_an_agent_that_removes_leases_as_stale_frees_nothing(unconfined: House) -> None:
    """The folder of the run is locked too."""
    unconfined.script("worker", {"run": 'rm -r "${PATH%%/bin:*}"/locks; ' + waits(unconfined, "1")["run"]})
    unconfined.begin_role("worker", "F-001")
    until_begun(unconfined, "1")
    assert not runs.is_dead(unconfined.layout, os.listdir(unconfined.layout.path(names.RUNS))[0])
    assert unconfined.harness("doctor").code == 0
    go(unconfined)
    assert unconfined.feature().status == "validating"


def test_sixteen_notes_and_a_curation_at_once_lose_nothing(house: House) -> None:
    """While a worker works and the curator folds, everybody's notes are there once."""
    house.script("worker", waits(house, "1"))
    house.begin_role("worker", "F-001")
    until_begun(house, "1")
    for number in range(16):
        house.harness("note", f"note number {number} of many")
        if number % 8 == 4:
            assert house.role("curator").code == 0
    go(house)
    archived = Path(house.layout.path(names.ARCHIVE)).read_text()
    left = [entry.text for entry in raw.entries(house.layout.path(names.RAW), 0)]
    for number in range(16):
        assert f"note number {number} of many" in archived + "\n".join(left)
