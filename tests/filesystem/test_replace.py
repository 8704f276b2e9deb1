"""Promises of harness/filesystem/_replace.py: a name has the old content or the new, on any kind of filesystem."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.filesystem import _replace


@pytest.fixture(params=["all", "no nameless files", "no hard links", "no exchange-safe rename"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a filesystem may lack: the calls answer as there."""
    lacks = str(request.param)
    if lacks != "all":
        monkeypatch.setattr(_replace, "_nameless", lambda folder: None)
    if lacks in ("no hard links", "no exchange-safe rename"):

        def refused(*_: object, **__: object) -> None:
            raise OSError(errno.EPERM, "no hard links here")

        monkeypatch.setattr(os, "link", refused)
    if lacks == "no exchange-safe rename":
        monkeypatch.setattr(_replace, "_calls", [None])
    return lacks


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """A descriptor of an empty folder."""
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_a_new_name_gets_its_content_and_a_taken_one_stays(system: str, folder: int, tmp_path: Path) -> None:
    """And nothing else is left in the folder."""
    _replace.put(folder, "a", b"1")
    with pytest.raises(FileExistsError):
        _replace.put(folder, "a", b"2")
    assert ((tmp_path / "a").read_bytes(), os.listdir(tmp_path)) == (b"1", ["a"])


def test_a_content_is_replaced_with_its_mode(system: str, folder: int, tmp_path: Path) -> None:
    """The old one is another file, which who has it open keeps."""
    _replace.put(folder, "a", b"old")
    (tmp_path / "a").chmod(0o640)
    with open(tmp_path / "a", "rb") as before, _replace.LockedFile(folder, "a") as held:
        assert held.unchanged()
        _replace.put(folder, "a", b"new", held.at_first)
        assert before.read() == b"old"
        assert not held.unchanged()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a"]


def test_a_move_finds_the_name_taken_or_free(system: str, folder: int, tmp_path: Path) -> None:
    """Of files and folders."""
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    _replace.put(folder, "a", b"1")
    for name, target in (("a", "d"), ("d", "a"), ("d", "e")):
        with pytest.raises(FileExistsError):
            _replace.move(folder, name, folder, target)
    _replace.move(folder, "a", folder, "b")
    _replace.move(folder, "d", folder, "f")
    assert sorted(os.listdir(tmp_path)) == ["b", "e", "f"]


def test_a_folder_goes_with_all_that_is_in_it(folder: int, tmp_path: Path) -> None:
    """However wide and deep; a link goes, what it leads to stays."""
    for number in range(50):
        (tmp_path / f"d/{number}/x/y").mkdir(parents=True)
        (tmp_path / f"d/{number}/x/f").write_text("")
    deep = tmp_path / "d/deep"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("n", dir_fd=here)
        below = os.open("n", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (tmp_path / "kept").write_text("x")
    (tmp_path / "d/link").symlink_to(tmp_path / "kept")
    before = len(os.listdir("/dev/fd"))
    assert _replace.remove(folder, "d") == 51
    assert len(os.listdir("/dev/fd")) == before
    assert os.listdir(tmp_path) == ["kept"]
    with pytest.raises(FileNotFoundError):
        _replace.remove(folder, "d")


def test_a_file_that_another_program_changed_is_not_what_it_was(folder: int, tmp_path: Path) -> None:
    """Written in place, replaced or removed, by a program that takes no lock."""
    for act in (
        lambda: (tmp_path / "a").write_bytes(b"longer"),
        lambda: os.replace(tmp_path / "b", tmp_path / "a"),
        lambda: (tmp_path / "a").unlink(),
    ):
        (tmp_path / "a").write_bytes(b"1")
        (tmp_path / "b").write_bytes(b"1")
        with _replace.LockedFile(folder, "a") as held:
            assert held.unchanged()
            act()
            assert not held.unchanged()
