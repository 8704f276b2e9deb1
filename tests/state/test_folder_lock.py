"""A folder has one holder, for as long as a process has it open."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from harness.state import folder_lock
from harness.state.folder_lock import FolderLock


def test_a_folder_has_one_holder(tmp_path: Path) -> None:
    """It is free after the holder releases it; a look at it takes nothing."""
    own = FolderLock(str(tmp_path))
    assert own.take()
    assert not FolderLock(str(tmp_path)).take()
    assert not folder_lock.is_free(str(tmp_path))
    own.release()
    assert folder_lock.is_free(str(tmp_path))
    assert FolderLock(str(tmp_path)).take()


def test_what_is_no_folder_is_free(tmp_path: Path) -> None:
    """A run whose folder is gone holds nothing by it."""
    (tmp_path / "file").touch()
    assert folder_lock.is_free(str(tmp_path / "file"))
    assert folder_lock.is_free(str(tmp_path / "absent"))


def test_a_file_system_that_locks_no_folders_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file beside it is locked as always. There is no such file system here, so the call is replaced."""

    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert FolderLock(str(tmp_path)).take()
    assert folder_lock.is_free(str(tmp_path))
