"""`snapshot restore` puts state and code back, all or nothing, after a snapshot of now; a kill at any point is safe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.mission import mission, runs
from harness.replay import _past_state
from harness.replay.upkeep import restoration, snapshots
from harness.state import names
from harness.state.files import Lock
from harness.state.state import State
from harness.workplace import workplace
from tests import kill_sweep
from tests.crash import TORTURE
from tests.kill_sweep import RUN_SH, Sweep, Template
from tests.missions import Done, House, listing

BACK = (*_past_state.PUT_BACK, *_past_state.CUT_BACK)


def back(house: House) -> dict[str, bytes | None]:
    """The files that a restore puts back."""
    return {name: State(house.layout).data(name) for name in BACK}


def lived(house: House) -> tuple[str, str, dict[str, bytes | None]]:
    """A mission that went on after its first run: (that run, the newest, the state behind the first)."""
    Path(house.layout.path(names.SUMMARY)).write_text("## Lessons\n- the first\n")
    house.program("note", "the first note")
    house.program("issue", "the first issue")
    first = house.work({"run": "echo 1 > 1.txt"}, feature="F-001")["run"]
    then = back(house)
    Path(house.layout.path(names.SUMMARY)).write_text("## Lessons\n- the second\n")
    Path(house.layout.path(names.MEMORY)).write_text("## Lessons\n- more\n")
    house.program("note", "the second note")
    house.program("issue", "the second issue")
    house.program("feature", "set", "F-002", "title=Another")
    return first, house.work({"run": "echo 2 > 2.txt"}, feature="F-002")["run"], then


def tip(house: House) -> str:
    """The commit of the mission's position."""
    return workplace.tip_commit(house.layout, mission.load(house.layout))


def test_state_and_code_go_back_and_forth_again(house: House) -> None:
    """In a new branch; nothing of runs, run log, objects, identity, config or the person's folder changes; doctor finds no fault,
    and the mission goes on. The snapshot of now takes all of it back."""
    first, second, then = lived(house)
    was, tips, branch = back(house), (house.result(first)["head"], tip(house)), mission.load(house.layout).branch
    stays = listing(house.state, "locks", "cache", "journal", "git-config")
    commits = house.git("rev-parse", branch)
    done = house.program("snapshot", "restore", first)
    assert done.code == 0, done
    assert back(house) == then
    assert tip(house) == tips[0]
    made = mission.load(house.layout)
    assert (made.branch, house.git("rev-parse", made.branch)) == (f"{branch}-at-{first}", tips[0])
    assert (house.git("rev-parse", branch), house.git("branch", "--show-current")) == (commits, branch)
    now = listing(house.state, "locks", "cache", "journal", "git-config")
    kept = ("runs/", "objects/", "snapshots/", "runs.jsonl", "config.toml", "orders.jsonl")
    assert {name: data for name, data in stays.items() if name.startswith(kept) and now.get(name) != data} == {}
    assert house.program("doctor").code == 0
    assert house.harness("next").out == "NEXT validator F-001\n"
    (row,) = _past_state.restores(house.layout)
    assert (row.to, row.commit) == (first, tips[0])
    assert house.work({"run": "echo again > 2.txt"}, feature="F-002")["outcome"] == "ok"
    assert house.program("doctor").code == 0
    assert house.program("snapshot", "restore", row.kept).code == 0
    assert (back(house), tip(house)) == (was, tips[1])
    assert house.program("snapshot", "restore", second).code == 0
    assert (back(house), tip(house)) == (was, tips[1])
    assert house.program("doctor").code == 0


def test_snapshots_from_before_a_restore_stay_exact(house: House) -> None:
    """Append-only files that were truncated and grew again do not affect older records of them."""
    first, second, _ = lived(house)
    wanted = {one: _past_state.at(house.layout, one).files for one in (first, second)}
    found = snapshots.then(house.layout, snapshots.load(house.layout, second)).files
    assert house.program("snapshot", "restore", first).code == 0
    house.program("issue", "an issue of another time, longer than before")
    house.program("note", "a note of another time")
    third = house.work({"run": "echo 3 > 3.txt"}, feature="F-002")["run"]
    assert snapshots.then(house.layout, snapshots.load(house.layout, second)).files == found
    assert {one: _past_state.at(house.layout, one).files for one in (first, second)} == wanted
    assert b"another time" in _past_state.at(house.layout, third).files[names.ISSUES]


def test_an_open_question_is_answered_by_it_and_the_counts_begin_again(house: House) -> None:
    """The escalation goes to those that are answered."""
    first, _, _ = lived(house)
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stalled\n---\nwhat now?\n")
    assert house.program("snapshot", "restore", first).code == 0
    assert not Path(house.layout.path(names.ESCALATION)).exists()
    assert [name for name in (house.state / "escalations").iterdir() if name.name.endswith("-stalled.md")]
    assert first in runs.answers(house.layout)[-1].text


def test_it_is_refused_inside_a_run_and_beside_a_live_one(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 and 75, with nothing changed; 75 too while run.sh loops."""
    first, second, _ = lived(house)
    before = listing(house.state, "locks", "cache", "journal", "git-config")
    for lane in ("", "2"):  # a lane goes on where the first one was killed
        loop = Lock(house.layout.path(names.LOOP_LOCK) + lane)
        loop.take()
        assert house.harness("snapshot", "restore", first).code == 75
        loop.release()
    lease = Lock(house.layout.run(second).lock)
    lease.take()
    assert house.program("snapshot", "restore", first).code == 75
    lease.release()
    Path(house.layout.run(second).lock).unlink()
    monkeypatch.setenv("HARNESS_INSIDE", second)
    assert house.harness("snapshot", "restore", first).code == 64
    assert listing(house.state, "locks", "cache", "journal", "git-config") == before


def test_a_snapshot_whose_commit_is_gone_or_whose_format_is_older_is_refused(house: House) -> None:
    """With its file, and nothing changed."""
    first, _, _ = lived(house)
    path = Path(snapshots.path_of(house.layout, first))
    row = json.loads(path.read_text())
    before = back(house)
    path.write_text(json.dumps({**row, "commit": "1" * 40}))
    done = house.program("snapshot", "restore", first)
    assert (done.code, "is gone" in done.err, path.name in done.err) == (65, True, True)
    path.write_text(json.dumps({**row, "live": {**row["live"], names.FORMAT: row["live"][names.SUMMARY]}}))
    assert house.program("snapshot", "restore", first).code == 64
    assert back(house) == before


def test_a_branch_that_a_kill_left_is_used_again(house: House) -> None:
    """One with work on it is not."""
    first, _, _ = lived(house)
    commit, name = house.result(first)["head"], mission.load(house.layout).branch + mission.AT + first
    house.git("branch", name, commit)
    lock = house.project / f".git/refs/heads/{name}.lock"
    lock.touch()  # and a git that was killed
    assert restoration._branch(house.layout, name, commit) == name
    assert not lock.exists()
    house.git("branch", "-f", name, "main")
    assert restoration._branch(house.layout, name, commit) == f"{name}-2"


@pytest.mark.skipif(bool(kill_sweep.why_not()), reason=kill_sweep.why_not() or "strace works")
def test_a_kill_at_any_point_leaves_the_one_state_or_the_other(house: House) -> None:
    """Whole, with its code; the next start finishes it, doctor finds nothing, and the restore can be made again."""
    first, _, then = lived(house)
    was, tips = back(house), (house.result(first)["head"], tip(house))
    template = Template(house.folder, ("my project", "state", "identity"), house.folder / "kept")
    sweep = Sweep([RUN_SH, "snapshot", "restore", first], template.restore, where=house.project, env=house.env)

    def recovered(done: Done) -> tuple[list[str], str]:
        fixed = house.program("doctor", "--fix")
        now, at = back(house), tip(house)
        wrong = [] if (now, at) in ((was, tips[1]), (then, tips[0])) else [f"a mixture, {done}"]
        wrong += [f"doctor: {fixed}"] if fixed.code or house.program("doctor").code else []
        return wrong, str(at)

    def again() -> list[str]:
        done = house.program("snapshot", "restore", first)
        return [] if done.code == 0 and back(house) == then and tip(house) == tips[0] else [f"again: {done}"]

    points = sweep.points()
    report = sweep.run(points if TORTURE else points[len(points) // 3 :: len(points) // 3 + 1], recovered, again)
    assert report.faults == [], report
    assert report.points
