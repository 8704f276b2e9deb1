"""A mission begins in a repository that is meant; a new one gets a first commit of the files that are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.git import first_commit, repository
from tests.git_repository import Repository, new
from tests.missions import House


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with a commit."""
    made = new(tmp_path, monkeypatch)
    made.save(a="1\n")
    return made


def test_a_folder_without_a_repository_is_told_what_to_do(tmp_path: Path) -> None:
    """The message names the command."""
    with pytest.raises(UsageFault, match="git init"):
        first_commit.require(str(tmp_path))


def test_the_version_is_accepted(repo: Repository) -> None:
    """No error with a git that is new enough."""
    first_commit.require_version(repo.project)


def test_the_top_and_a_folder_below_it_are_accepted(repo: Repository) -> None:
    """Also a new folder, of which the repository has nothing yet."""
    (repo.folder / "services/new one").mkdir(parents=True)
    for folder in (repo.folder, repo.folder / "services/new one"):
        first_commit.require(str(folder))


def test_no_mission_begins_where_the_repository_above_is_not_meant(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ignores the folder, it is that of a person's home, or what lies in between only looks like one."""
    repo.write(".gitignore", "/out\n")
    for name in ("out/new", "sub", "odd/below"):
        (repo.folder / name).mkdir(parents=True)
    with pytest.raises(UsageFault, match=f"is ignored by the repository {repo.project}.* Run `git init`"):
        first_commit.require(f"{repo.project}/out/new")
    (repo.folder / "odd/.git").mkdir()
    with pytest.raises(UsageFault, match=r"odd, whose \.git is not a repository"):
        first_commit.require(f"{repo.project}/odd/below")
    monkeypatch.setenv("HOME", repo.project)
    with pytest.raises(UsageFault, match="the repository of your home"):
        first_commit.require(f"{repo.project}/sub")


def test_the_first_commit_has_these_files_and_nothing_else(bare: House) -> None:
    """Other files are unchanged; a person without a name in git's settings gets the harness's."""
    for name in ("SPEC.md", "sub/one.md", "mine.txt"):
        bare.write(name)
    repository.init(str(bare.project))
    first_commit.first_commit(str(bare.project), ["SPEC.md", "sub/one.md"], "Begin")
    assert bare.git("show", "--name-only", "--format=%s %an").split() == ["Begin", "harness", "SPEC.md", "sub/one.md"]
    assert bare.git("status", "--porcelain") == "?? mine.txt"
    assert bare.git("branch", "--show-current") == "main"
