"""All that is forbidden to a program of a run is refused on this machine, behind each tier that is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.process import landlock
from harness.process.confine import BUBBLEWRAP, LANDLOCK, available
from tests import crash
from tests.confinement import stage
from tests.confinement.forbidden import Attempt
from tests.confinement.stage import Answer, Report
from tests.confinement.test_attempts import furnish
from tests.helpers import passable
from tests.missions import House

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
needs_bubblewrap = pytest.mark.skipif(available()[0] != BUBBLEWRAP, reason="bubblewrap cannot be used here")
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
    assert "refused: read ~/.ssh (it is empty)" in said
    assert "refused: trace its guardian (it is not seen)" in said
    assert any(line.startswith("gone ") for line in said)
    assert "state and git folder are as they were before" in said
    assert "refused: programs configured in its tree's git folder (our git ran none)" in said
    assert len(said) > 80
    assert (bare.folder / "home" / ".gitconfig").read_text() == "of a person\n"


def interpreter(folder: Path) -> str:
    """An interpreter that any user can run, with the packages of this one; skips where there is none."""
    made = folder / "venv"
    name = f"python3.{sys.version_info.minor}"
    for python in (os.path.realpath(sys.executable), f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        words = [*NOBODY, "sh", "-c", '"$0" -c ""', python]  # the shell has lost the rights that setpriv starts it with
        if subprocess.run(words, capture_output=True, check=False).returncode == 0:
            subprocess.run([python, "-m", "venv", "--without-pip", str(made)], check=True)
            (made / "lib" / name / "site-packages" / "ours.pth").write_text(
                os.path.dirname(os.path.dirname(pytest.__file__))
            )
            return str(made / "bin" / "python")
    pytest.skip("no Python of this version is one that other users can run")


@pytest.mark.skipif(not crash.TORTURE, reason="takes longer than 3 s: HARNESS_TORTURE=1 runs it")
@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_so_it_is_for_a_user_without_rights(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a user namespace."""
    furnish(bare, monkeypatch)
    python = interpreter(bare.folder)
    passable(bare.folder)
    for path in (bare.folder, *bare.folder.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    words = [*NOBODY, python, "-P", stage.__file__, str(bare.folder), BUBBLEWRAP]
    done = bare.run(words, where=bare.folder)
    assert (done.code, "\nbad" in done.out) == (0, False), done
    assert "refused: mount -o remount,bind,rw / (Operation not permitted)" in done.out
    assert "refused: read ~/.ssh (it is empty)" in done.out


@needs_landlock
def test_behind_landlock_writes_are_refused_and_the_rest_is_said(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line claims a refusal that this tier does not give."""
    furnish(bare, monkeypatch)
    found = lines(bare, LANDLOCK)
    assert found["bad"] == []
    assert {"not refused on this tier: read ~/.ssh", "not refused on this tier: kill the run"} <= set(found["note"])
    assert "refused: write .harness/memory/raw.md (Permission denied)" in found["ok"]
    assert "refused: trace the run (Operation not permitted)" in found["ok"]


@pytest.mark.skipif(not crash.TORTURE, reason="takes longer than 3 s: HARNESS_TORTURE=1 runs it")
@needs_bubblewrap
def test_full_trust_opens_keys_and_nothing_else(bare: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is said."""
    furnish(bare, monkeypatch)
    found = lines(bare, BUBBLEWRAP, trust="full")
    assert found["bad"] == []
    assert "not refused under full trust: read ~/.ssh" in found["note"]


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
    assert [one.what.split(":")[0] for one in found] == ["no answer", "alive 1 s after the end", "changed"]
