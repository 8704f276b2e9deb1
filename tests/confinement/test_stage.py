"""All that is forbidden to a program of a run is refused on this machine, behind each tier that is there."""

from __future__ import annotations

import pytest

from harness.process import landlock
from harness.process.confine import BUBBLEWRAP, LANDLOCK, available
from tests import crash
from tests.confinement import stage
from tests.confinement.forbidden import Attempt
from tests.confinement.stage import Answer, Report
from tests.confinement.test_attempts import furnish
from tests.missions import House
from tests.other_user import BECOME, OtherUser, give

needs_bubblewrap = pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")


def lines(bare: House, how: str, **more: str) -> dict[str, list[str]]:
    """{state: its lines} of all attempts behind this tier."""
    found = stage.tried(str(bare.folder), how, **more)
    return {state: [one.what for one in found if one.state == state] for state in ("ok", "note", "bad")}


@needs_bubblewrap
def test_behind_bubblewrap_everything_is_refused(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the reason; nothing of a person's is changed."""
    furnish(bare, monkeypatch)
    found = lines(bare, BUBBLEWRAP)
    assert (found["bad"], found["note"]) == ([], [])
    said = found["ok"]
    assert "refused: write .harness/memory/raw.md (Read-only file system)" in said
    assert "refused: read ~/.ssh (No such file or directory)" in said
    assert "refused: trace its guardian (it is not seen)" in said
    assert any(line.startswith("gone ") for line in said)
    assert "state and git folder are as they were before" in said
    assert "refused: programs configured in its tree's git folder (our git ran none)" in said
    assert len(said) > 80
    assert (bare.folder / "home" / ".gitconfig").read_text() == "of a person\n"


@pytest.mark.skipif(not crash.TORTURE, reason="takes longer than 3 s: HARNESS_TORTURE=1 runs it")
@needs_bubblewrap
def test_so_it_is_for_a_user_without_rights(bare: House, nobody: OtherUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a user namespace."""
    furnish(bare, monkeypatch)
    give(bare.folder)
    program = nobody.home / "tests" / "confinement" / "stage.py"
    words = [*BECOME, nobody.python, "-P", str(program), str(bare.folder), BUBBLEWRAP]
    done = bare.run(words, where=bare.folder, env=nobody.env)
    assert (done.code, "\nbad" in done.out) == (0, False), done
    assert "refused: mount -o remount,bind,rw / (Operation not permitted)" in done.out
    assert "refused: read ~/.ssh (No such file or directory)" in done.out


@needs_landlock
def test_behind_landlock_writes_and_reads_are_refused_and_the_rest_is_said(
    bare: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line claims a refusal that this tier does not give."""
    furnish(bare, monkeypatch)
    found = lines(bare, LANDLOCK)
    assert found["bad"] == []
    assert "not refused on this tier: kill the run" in found["note"]
    assert "refused: read ~/.ssh (Permission denied)" in found["ok"]
    assert "refused: write .harness/memory/raw.md (Permission denied)" in found["ok"]
    assert "refused: trace the run (Operation not permitted)" in found["ok"]


@pytest.mark.skipif(not crash.TORTURE, reason="takes longer than 3 s: HARNESS_TORTURE=1 runs it")
@needs_bubblewrap
def test_full_trust_opens_nothing_that_is_forbidden(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are not there either."""
    furnish(bare, monkeypatch)
    found = lines(bare, BUBBLEWRAP, trust="full")
    assert (found["bad"], found["note"]) == ([], [])
    assert "refused: read ~/.ssh (it is empty)" in found["ok"]


@pytest.mark.skipif(not crash.TORTURE, reason="takes longer than 3 s: HARNESS_TORTURE=1 runs it")
@needs_bubblewrap
def test_what_gets_through_is_bad(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A glass with a hole in it: the mission's state."""
    furnish(bare, monkeypatch)
    bad = lines(bare, BUBBLEWRAP, hole=".")["bad"]
    assert "worked: write .harness/features.json" in bad
    assert not [what for what in bad if "git" in what]


def test_an_answer_that_is_missing_or_a_survivor_is_bad() -> None:
    """A program that was ended has not been refused."""
    todo = [Attempt(what="one", words=["end", "1", "1"]), Attempt(what="left", words=["survive"], allowed=True)]
    answer = Answer(number=1, worked=True, why="", device=0)
    report = Report(answers={1: answer}, gone_seconds=None, changed=["/a/features.json"])
    found = list(stage.judged(todo, report, LANDLOCK))
    assert [one.state for one in found] == ["bad", "bad", "bad"]
    assert [one.what.split(":")[0] for one in found] == ["no answer", "alive 10 s after the end", "changed"]
