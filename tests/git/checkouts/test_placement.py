"""A file is placed where it belongs, through no link and over nothing of anybody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.git.checkouts import placement


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder with a file, a folder, and a link that leads out."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "top/d").mkdir(parents=True)
    (tmp_path / "top/f").write_text("1")
    (tmp_path / "top/out").symlink_to(tmp_path / "outside")
    return tmp_path / "top"


def test_nothing_is_placed_through_a_link(top: Path) -> None:
    """Neither new, nor moved away, nor removed."""
    (top.parent / "outside/f").write_text("theirs")
    assert placement.fingerprint(str(top), "out/f") is None
    with pytest.raises(OSError, match="Not a directory"):
        placement.put(str(top / "f"), str(top), "out/g")
    with pytest.raises(OSError, match="Not a directory"):
        placement.move_away(str(top), "out/f", str(top.parent / "moved"))
    placement.drop_empty(str(top), "out/x/y")
    assert os.listdir(top.parent / "outside") == ["f"]
    assert placement.blocked(str(top), "out/f") == "Not a directory"
    assert placement.blocked(str(top), "none/f") == placement.blocked(str(top), "d/f") == ""


def test_nothing_is_overwritten(top: Path) -> None:
    """A name that is taken is a fault, also by a link or a folder."""
    (top.parent / "new").write_text("2")
    for name in ("f", "d", "out"):
        with pytest.raises(FileExistsError):
            placement.put(str(top.parent / "new"), str(top), name)
    placement.put(str(top.parent / "new"), str(top), "d/e/f")
    assert ((top / "d/e/f").read_text(), (top / "f").read_text()) == ("2", "1")


def test_a_fingerprint_tells_every_save_and_survives_a_rename(top: Path) -> None:
    """A folder and an absent file have none."""
    before = placement.fingerprint(str(top), "f")
    placement.move_away(str(top), "f", str(top / "d/f"))
    assert placement.fingerprint(str(top), "d/f") == before != placement.fingerprint(str(top), "f")
    (top / "d/f").write_text("2")
    assert placement.fingerprint(str(top), "d/f") != before
    assert placement.fingerprint(str(top), "d") is placement.fingerprint(str(top), "f") is None


def test_empty_folders_go_and_others_stay(top: Path) -> None:
    """As git removes them with their last file."""
    (top / "d/e").mkdir()
    placement.drop_empty(str(top), "d/e/f")
    assert not (top / "d").exists()
    (top / "d/e").mkdir(parents=True)
    (top / "d/mine").write_text("")
    placement.drop_empty(str(top), "d/e/f")
    assert os.listdir(top / "d") == ["mine"]
