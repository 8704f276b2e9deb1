"""Promises of tests/versions.py: which Pythons it finds, and which files it ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import versions
from tests.missions import CHECKOUT


def place(folder: Path, name: str, script: str) -> Path:
    """Write a program."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return folder / name


def test_those_that_work_are_found_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those on the PATH come first; no empty shim, no old version, no file with another name."""
    first, second, alone = (tmp_path / name for name in ("first", "second", "alone"))
    kept = tmp_path / "home" / ".pyenv/versions/3.14.1/bin"
    place(first, "python3.13", "exit 127")
    place(first, "python3.10", "echo 3 10")
    place(first, "python3.15-config", "echo 3 15")
    wanted = {
        12: place(alone, "python3", "echo 3 12"),
        13: place(second, "python3.13", "echo 3 13"),
        14: place(kept, "python3.14", "echo 3 14"),
    }
    place(second, "python3", "echo 3 13")
    place(kept, "python3.13", "echo 3 13")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{first}:{second}:{tmp_path / 'gone'}:{alone}")
    assert versions.found() == wanted


@pytest.mark.parametrize("minor", [10, 11])
def test_the_newest_is_asked_for_where_it_is_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], minor: int
) -> None:
    """Otherwise there is nothing to do."""
    place(tmp_path, "python3.11", f"echo 3 {minor}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert versions.main(["newest"]) == 0
    assert capsys.readouterr().out == "there is no newer Python here\n"


def test_what_differs_by_version_is_there() -> None:
    """A folder that has moved would be run on no other Python, and nobody would see it."""
    assert [name for name in versions.DIFFERING if not (CHECKOUT / name).exists()] == []
