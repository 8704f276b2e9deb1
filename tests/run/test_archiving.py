"""A second mission in one repository: the first one is archived whole, and a kill in between loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.mission import contract, features, mission, runs
from harness.mission.contract import Contract
from harness.mission.mission import Mission
from harness.run import starting
from harness.state import names, objects
from harness.state.layout import Layout
from harness.workplace import workplace
from tests import crash
from tests.missions import House, listing, until
from tests.planned import accept_all, claim, due, feature, lay, reply
from tests.run.played import to_done

DERIVED = ("cache", "locks", "git-config")
DID = {"run": "echo done > made"}


@pytest.fixture
def ours(unbegun: House) -> House:
    """A mission that is DONE, on a branch of its own."""
    unbegun.begin()
    lay(unbegun, [feature("F-001")], Contract(claims=[claim("VAL-001", "test -f made")]))
    accept_all(unbegun)
    unbegun.script("planner", reply(features=[], contract=[]))
    unbegun.script("worker", DID, reply(status="implemented"))
    unbegun.script("validator", reply(checks=[]))
    unbegun.script("curator")
    to_done(unbegun)
    return unbegun


def merged(house: House) -> Mission:
    """The person merges the mission into main, and writes the next SPEC.md there; the mission that was."""
    made = mission.load(house.layout)
    house.git("switch", "-q", "main")
    house.git("merge", "-q", made.branch)
    house.write("SPEC.md", "# Another program\n")
    return made


def archived(house: House, made: Mission) -> Layout:
    """The archived mission."""
    return Layout(str(house.project), str(house.state / "archive" / made.id))


def prompts(layout: Layout) -> dict[str, bytes]:
    """{run: its prompt, rebuilt from its manifest}."""
    found = {}
    for run in runs.finished(layout):
        rows = json.loads(Path(layout.run(run.run).manifest).read_text())
        found[run.run] = b"".join(
            row["text"].encode() if "text" in row else objects.get(layout, row["object"]) for row in rows
        )
    return found


def assert_whole(house: House, made: Mission, before: dict[str, bytes]) -> None:
    """Nothing is missing, and each of its prompts is rebuilt byte for byte."""
    there = archived(house, made)
    after = listing(Path(there.state))
    passed_over = ("cache", "locks", "bin", "git-config", "journal", ".git", ".ignore", "origin")
    assert {name: data for name, data in before.items() if not name.startswith(passed_over)} == after
    assert mission.load(there) == made
    assert [one.status for one in features.load(there)] == ["passed"]
    assert [one.id for one in contract.load(there).claims] == ["VAL-001"]
    assert runs.broken_seals(there, 100) == []
    found = prompts(there)
    assert len(found) == len(list(runs.finished(there))) > 3
    assert all(Path(there.run(run).prompt).read_bytes() == text for run, text in found.items())


@pytest.mark.parametrize("stays", [False, True])
def test_a_second_mission_begins_where_the_first_is_done(ours: House, stays: bool) -> None:
    """With an id, a branch and a state of its own, also where the first one's branch is still checked out. It goes to DONE,
    and a third can follow it."""
    old = mission.load(ours.layout) if stays else merged(ours)
    before, config = listing(ours.state), ours.read("config.toml")
    assert ours.tree.exists()
    done = ours.program("init", "--new")
    assert done.code == 0, done
    new = mission.load(ours.layout)
    assert f"Started the mission {new.id}, working on the branch {new.branch}." in done.out
    assert (new.id != old.id, new.branch) == (True, f"harness/{new.id}")
    assert ours.git("branch", "--show-current") == new.branch
    assert new.base_commit == ours.git("rev-parse", old.branch)
    assert_whole(ours, old, before)
    assert ours.read("config.toml") == config
    assert not Path(workplace.folder_of(old.id)).parent.exists()
    assert ours.git("worktree", "list").count("\n") == 0
    assert ours.git("rev-parse", f"refs/harness/{old.id}/tip") == ours.git("rev-parse", old.branch)
    assert ours.git("status", "--porcelain").strip() == ("" if stays else "M SPEC.md")
    assert due(ours) == "NEXT planner"
    assert ours.program("doctor").code == 0
    assert_goes_to_done(ours)
    assert ours.program("init", "--new").code == 0
    assert sorted(os.listdir(ours.state / "archive")) == sorted([old.id, new.id])


def assert_goes_to_done(ours: House) -> None:
    """From a plan of its own, for the SPEC.md that is there; its runs count from nothing."""
    plan = {"id": "F-001", "title": "Another", "claims": ["VAL-A"]}
    made = {"id": "VAL-A", "claim": "It is there", "checks": ["test -f another"]}
    ours.script("planner", reply(features=[plan], contract=[made]))
    ours.script("worker", {"run": "cp SPEC.md another"}, reply(status="implemented"))
    to_done(ours)
    assert ours.git("show", "HEAD:another") == (ours.project / "SPEC.md").read_text().rstrip("\n")
    assert ours.ran()[0]["totals"]["runs"] == 1


def test_a_mission_that_is_not_done_is_not_put_away(house: House) -> None:
    """Exit 64 with the reason and both remedies; with --abandon it is archived as it is."""
    old, before = mission.load(house.layout), listing(house.state, *DERIVED)
    done = house.program("init", "--new")
    assert done.code == 64
    assert "0 of 2 features passed" in done.err
    assert "init --new --abandon" in done.err
    assert listing(house.state, *DERIVED) == before
    done = house.program("init", "--new", "--abandon")
    assert done.code == 0, done
    assert f"note: SPEC.md is still that of {old.id}" in done.out
    assert [one.id for one in features.load(archived(house, old))] == ["F-001", "F-002"]
    assert due(house) == "NEXT planner"


def test_what_stops_the_next_mission_stops_it_before(ours: House) -> None:
    """Without a SPEC.md or a branch nothing is put away, nor where a worker was here again and no sweep since. Then work that
    is not merged is named: the next mission begins without it, at what is checked out."""
    (ours.project / "SPEC.md").write_text("")
    before = listing(ours.state, *DERIVED)
    assert ours.program("init", "--new").code == 64
    ours.git("checkout", "-q", "--detach")
    ours.git("checkout", "-q", "SPEC.md")
    assert ours.program("init", "--new").code == 11
    assert listing(ours.state, *DERIVED) == before
    old = mission.load(ours.layout)
    ours.git("switch", "-q", old.branch)
    ours.script("worker", {"run": "echo more > made"}, reply(status="implemented"))
    ours.role("worker", "F-001", "--again")
    ours.role("validator", "F-001")
    done = ours.program("init", "--new")
    assert (done.code, "the final sweep is not green since" in done.err) == (64, True)
    ours.role("validator")
    ours.git("switch", "-q", "main")
    done = ours.program("init", "--new")
    assert done.code == 0, done
    assert f"git merge {ours.git('rev-parse', old.branch)[:12]}" in done.out
    assert mission.load(ours.layout).base_commit == ours.git("rev-parse", "main")


def test_where_there_is_no_mission_new_begins_one(unbegun: House) -> None:
    """As `init` does."""
    assert unbegun.program("init", "--new").code == 0
    assert not (unbegun.state / "archive").exists()


def test_while_a_run_lives_it_is_75_and_one_that_died_is_settled_before(house: House) -> None:
    """Nothing is archived; then the result of the run that died is in the archive."""
    house.script("worker", {"run": "touch begun; sleep 60"})
    started = house.begin_role("worker", "F-001")
    until((house.tree / "begun").exists)
    done = house.program("init", "--new", "--abandon")
    assert (done.code, "worker-F-001" in done.err) == (75, True)
    old = mission.load(house.layout)
    started.kill()
    started.wait()
    until(lambda: house.program("init", "--new", "--abandon").code == 0)
    (result,) = runs.finished(archived(house, old))
    assert result.outcome == "killed"
    assert due(house) == "NEXT planner"


@pytest.mark.parametrize("lane", ["", "3"])
def test_while_run_sh_loops_it_is_75(house: House, lane: str) -> None:
    """Also between runs, and where only another lane is left."""
    words = ["bash", "-c", f"exec 9>>'{house.layout.path(names.LOOP_LOCK)}{lane}'; flock 9; echo held; sleep 60"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None
        held.stdout.readline()
        done = house.program("init", "--new", "--abandon")
        held.kill()
    assert (done.code, "looping" in done.err) == (75, True)
    assert mission.exists(house.layout)


def test_killed_at_any_moment_the_next_start_has_the_old_mission_or_the_new_one(ours: House) -> None:
    """Whole, in its place or in the archive; what was begun is finished."""
    old = merged(ours)
    starting.start(ours.layout)
    kept = ours.folder / "kept"
    subprocess.run(["cp", "-a", str(ours.project), str(kept)], check=True)
    before = listing(ours.state)

    def new() -> None:
        starting.put_away(ours.layout, abandon=False)
        starting.start(ours.layout)

    ends = set()
    for _ in crash.kills(new, 7):
        done = ours.program("init", "--quietly")
        assert done.code == 0, done
        now = mission.load(ours.layout)
        ends.add(now.id == old.id)
        if now.id != old.id:
            assert_whole(ours, old, before)
            assert not (ours.state / "archiving").exists()
        assert due(ours) == "NEXT planner"
        subprocess.run(["rm", "-rf", str(ours.project)], check=True)
        subprocess.run(["cp", "-a", str(kept), str(ours.project)], check=True)
    assert ends == {True, False}


def test_a_marker_that_names_no_mission_is_65(house: House) -> None:
    """It is not followed out of the archive."""
    Path(house.layout.path(names.ARCHIVING)).write_text('{"id": "../../elsewhere"}\n')
    done = house.program("init", "--quietly")
    assert (done.code, "archiving" in done.err) == (65, True)
