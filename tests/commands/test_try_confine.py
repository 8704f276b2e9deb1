"""`doctor confine`: on this machine everything forbidden is refused, and what is not refused is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.commands import try_confine
from harness.commands.forbidden import Attempt
from harness.commands.try_confine import Answer, Report
from harness.integrity import confine
from harness.model import config
from harness.process import landlock
from harness.process.confine import BUBBLEWRAP, LANDLOCK, available
from tests import crash, other_user
from tests.commands.test_attempts import furnish
from tests.missions import Done, House
from tests.other_user import OtherUser

needs_bubblewrap = pytest.mark.skipif(available()[0] != BUBBLEWRAP, reason="bubblewrap cannot be used here")
needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")


def lines(done: Done, state: str) -> list[str]:
    """The lines of a state, without it."""
    return [line[6:] for line in done.out.split("\n") if line.startswith(state)]


def leftovers(house: House) -> list[Path]:
    """What a trial left behind."""
    places = (house.folder / "temporary", house.folder / "state" / "harness", house.folder / "runtime")
    return [path for place in places if place.is_dir() for path in place.iterdir()]


def without_bubblewrap(house: House) -> str:
    """A PATH that has every program but this one."""
    folder = house.folder / "programs"
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for path in Path(place).iterdir() if os.path.isdir(place) else ():
            if path.name != "bwrap":
                (folder / path.name).unlink(missing_ok=True)
                (folder / path.name).symlink_to(path)
    return str(folder)


@needs_bubblewrap
def test_behind_bubblewrap_everything_is_refused(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each forbidden thing has a line with the reason; nothing is left of the trial, and nothing of a person's is changed."""
    furnish(bare, monkeypatch)
    bare.project.mkdir()
    done = bare.program("doctor", "confine")
    assert (done.code, lines(done, "bad"), done.err) == (0, [], ""), done
    assert lines(done, "note") == ['on this machine: bubblewrap; an agent with trust = "workspace"']
    said = lines(done, "ok")
    assert "refused: write .harness/memory/raw.md (Read-only file system)" in said
    assert "refused: read ~/.ssh (it is empty)" in said
    assert "refused: trace its guardian (it is not seen)" in said
    assert [
        line for line in said if line.startswith("gone ")
    ] and "state and git folder are as they were before" in said
    assert "refused: programs configured in its tree's git folder (our git ran none)" in said
    assert len(said) > 80
    assert leftovers(bare) == [] and list(bare.project.iterdir()) == []
    assert (bare.folder / "home" / ".gitconfig").read_text() == "of a person\n"


@needs_bubblewrap
def test_so_it_is_for_a_user_without_rights(bare: House, nobody: OtherUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a user namespace."""
    furnish(bare, monkeypatch)
    other_user.give(bare.folder)
    done = bare.run(nobody.words("doctor", "confine"), where=bare.folder, env=nobody.env)
    assert (done.code, lines(done, "bad")) == (0, []), done
    assert "refused: mount -o remount,bind,rw / (Operation not permitted)" in lines(done, "ok")
    assert "refused: read ~/.ssh (it is empty)" in lines(done, "ok")
    assert leftovers(bare) == []


@needs_landlock
def test_behind_landlock_writes_are_refused_and_the_rest_is_said(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line claims a refusal that this tier does not give."""
    furnish(bare, monkeypatch)
    bare.project.mkdir()
    done = bare.program("doctor", "confine", PATH=without_bubblewrap(bare))
    assert (done.code, lines(done, "bad")) == (0, []), done
    first, *rest = lines(done, "note")
    assert first == 'on this machine: landlock; an agent with trust = "workspace"'
    assert {"not refused on this tier: read ~/.ssh", "not refused on this tier: kill the run"} <= set(rest)
    assert "refused: write .harness/memory/raw.md (Permission denied)" in lines(done, "ok")
    assert "refused: trace the run (Operation not permitted)" in lines(done, "ok")
    assert leftovers(bare) == []


@pytest.mark.skipif(not crash.TORTURE, reason="takes longer than 3 s: HARNESS_TORTURE=1 runs it")
@needs_bubblewrap
def test_the_settings_of_the_mission_are_tried(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full trust lets an agent read keys, which is said; the mission itself is untouched."""
    furnish(house, monkeypatch)
    house.config('agent = "scripted"', 'trust = "full"')
    before = (house.head(), house.ran(), house.read("features.json"))
    done = house.program("doctor", "confine")
    assert (done.code, lines(done, "bad")) == (0, []), done
    assert "not refused under full trust: read ~/.ssh" in lines(done, "note")
    assert (house.head(), house.ran(), house.read("features.json")) == before


@pytest.mark.parametrize("setting", ['confine = "off"', 'workplace = "project"'])
def test_without_confinement_it_says_so(house: House, setting: str) -> None:
    """Exit code 69, and nothing is attempted."""
    house.config('agent = "scripted"', setting)
    done = house.program("doctor", "confine")
    assert (done.code, done.out) == (69, "")
    assert f"config.toml says {setting}" in done.err
    assert leftovers(house) == []


@needs_bubblewrap
def test_what_gets_through_is_bad(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A glass with a hole in it: state and keys."""
    furnish(bare, monkeypatch)
    there = try_confine.begin(str(bare.folder / "try"))
    with try_confine.Set(there, []) as made:
        stage = made.stage
        glass = confine.of_mission(there, config.load(there), stage.tree, BUBBLEWRAP)
        assert glass is not None
        glass = confine.of_agent(there, glass, [stage.tree, stage.room, there.state], "full", ())
        todo, report = try_confine.carry_out(stage, glass, "workspace")
        bad = [one.what for one in try_confine.judged(todo, report, BUBBLEWRAP) if one.state == "bad"]
    assert "worked: write .harness/features.json" in bad and "worked: read ~/.ssh" in bad
    assert not [what for what in bad if "git" in what]


def test_an_answer_that_is_missing_or_a_survivor_is_bad() -> None:
    """A program that was ended has not been refused."""
    todo = [Attempt(what="one", words=["end", "1", "1"]), Attempt(what="left", words=["survive"], allowed=True)]
    answer = Answer(number=1, worked=True, why="", device=0)
    report = Report(answers={1: answer}, gone_seconds=None, changed=["/a/features.json"])
    found = list(try_confine.judged(todo, report, LANDLOCK))
    assert [one.state for one in found] == ["bad", "bad", "bad"]
    assert [one.what.split(":")[0] for one in found] == ["no answer", "alive 1 s after the end", "changed"]


def test_it_is_not_for_the_inside_of_a_run(house: House) -> None:
    """An agent starts no trial."""
    told = house.folder / "told"
    house.config('agent = "scripted"', 'workplace = "project"')
    house.work({"run": f"'{house.layout.shim}' doctor confine || echo $? > '{told}'"})
    assert told.read_text() == "64\n"
