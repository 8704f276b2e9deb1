"""Temporary folders: new, private, and removed with all content."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.process import temporary


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_new_empty_and_private(place: Path) -> None:
    """Two calls with the same words make two folders."""
    one, two = (Path(temporary.create("check", "mission/run")) for _ in range(2))
    assert one != two
    assert (one.parent, one.stat().st_mode & 0o777, list(one.iterdir())) == (place, 0o700, [])


def test_a_temporary_folder_that_is_not_there_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR often names a missing folder; /tmp is the fallback."""
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    made = temporary.create("check")
    assert made.startswith("/tmp/")
    temporary.remove(made)


def test_a_folder_goes_with_what_is_in_it(place: Path) -> None:
    """Read-only folders, as package caches make them, and links, whose targets stay."""
    outside = place / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    made = Path(temporary.create("check"))
    (made / "deep").mkdir()
    (made / "deep" / "file").touch()
    (made / "link").symlink_to(outside)
    (made / "deep").chmod(0o500)
    temporary.remove(str(made))
    temporary.remove(str(made))
    assert os.listdir(place) == ["outside"]
    assert os.listdir(outside) == ["kept"]


def test_only_the_folders_of_one_run_go(place: Path) -> None:
    """By tag; a run with a similar name keeps its own."""
    for tag in ("m/1-worker", "m/1-worker", "m/2-worker"):
        temporary.create("agent", tag)
    temporary.remove_tagged("m/1-worker")
    assert [name.rpartition("-")[0] for name in os.listdir(place)] == ["harness-m-2-worker-agent"]


def test_a_run_that_had_another_temporary_folder_leaves_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal has one of its own, and cron has none."""
    other, here = tmp_path / "other", tmp_path / "here"
    for folder in (other, here):
        folder.mkdir()
        monkeypatch.setenv("TMPDIR", str(folder))
        temporary.create("check", "m/1-worker")
        temporary.create("check", "m/2-worker")
    temporary.remove_tagged("m/1-worker", str(other))
    temporary.remove_tagged("m/1-worker", str(tmp_path / "gone"))
    assert [len(os.listdir(folder)) for folder in (other, here)] == [1, 1]


def test_what_a_command_that_was_killed_left_is_found_by_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live command keeps its folders, and so do programs with other names for theirs."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.Popen(["true"])
    done.wait()
    for tag in (
        temporary.of_process("m/check"),
        f"m/check-{done.pid}",
        f"n/check-{done.pid}",
        "m/check-run",
        "m/check",
    ):
        temporary.create("check", tag)
    temporary.remove_abandoned("m/check", "verify")
    left = sorted(name.rpartition("-")[0] for name in os.listdir(tmp_path))
    ours = f"harness-m-check-{os.getpid()}-check"
    assert left == sorted(
        [ours, f"harness-n-check-{done.pid}-check", "harness-m-check-run-check", "harness-m-check-check"]
    )
