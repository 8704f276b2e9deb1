"""Temporary folders: new, private, and removed with all content."""

from __future__ import annotations

import os
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
