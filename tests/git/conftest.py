"""Fixtures of many tests of git: a repository in a throw-away folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git_repository import Repository, new


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository without a commit."""
    return new(tmp_path, monkeypatch)


@pytest.fixture
def repo(empty: Repository) -> Repository:
    """A repository with the files a and b in its first commit."""
    empty.save(a="1\n", b="2\n")
    return empty
