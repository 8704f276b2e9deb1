"""Sparse checkouts and partial clones: a tree has what the person's working folder has, and fetches nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.git import repository, settings
from harness.git.checkouts import _sparse, clones, worktrees
from tests.git_repository import Repository, new


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A partial clone, sparse with the folder `app` alone, of a repository with `app`, `lib` and `big`."""
    origin = new(tmp_path, monkeypatch)
    origin.save(**{"top.txt": "top\n", "app/a.txt": "a\n", "lib/l.txt": "l\n", "big/b.txt": "b\n"})
    origin.run("config", "uploadpack.allowFilter", "true")
    origin.run("config", "uploadpack.allowAnySHA1InWant", "true")
    made = Repository(tmp_path / "clone")
    origin.run("clone", "-q", "--filter=blob:none", "--sparse", f"file://{origin.folder}", str(made.folder))
    made.run("sparse-checkout", "set", "app")
    settings.use(made.project, settings.record(made.project), str(tmp_path / "private"))
    return made


def names(folder: Path) -> list[str]:
    """The files of a working folder."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return sorted(str(path.relative_to(folder)) for path in found)


def missing(repo: Repository) -> int:
    """How many objects the partial clone has not fetched."""
    listed = repo.run("rev-list", "--objects", "--all", "--missing=print").split("\n")
    return len([line for line in listed if line.startswith("?")])


def tree_at(repo: Repository, tmp_path: Path, commit: str = "") -> Path:
    """A kept tree, as a run finds it."""
    folder = tmp_path / "state" / "tree-1"
    worktrees.ensure(repo.project, str(folder), commit or repo.head(), keep=True)
    return folder


def work(folder: Path, commit: str) -> list[str]:
    """The files of the tree object that a run in this folder brings."""
    index = worktrees.index(str(folder))
    made = repository.working_tree(str(folder), index=index, parent=commit, leave=[])
    return Repository(folder).names(made.tree)


def test_a_tree_takes_over_the_patterns_and_fetches_nothing(repo: Repository, tmp_path: Path) -> None:
    """For our git and for that of the agent; what lies outside is in every commit as it was."""
    before = missing(repo)
    folder = tree_at(repo, tmp_path)
    assert names(folder) == ["app/a.txt", "top.txt"]
    assert Repository(folder).run("status", "--porcelain") == ""
    (folder / "app" / "new.txt").write_text("new\n")
    (folder / "app" / "a.txt").unlink()
    assert work(folder, repo.head()) == ["app/new.txt", "big/b.txt", "lib/l.txt", "top.txt"]
    assert missing(repo) == before > 0


def test_a_lost_index_deletes_nothing_outside(repo: Repository, tmp_path: Path) -> None:
    """Files that are not checked out are not taken for deleted ones."""
    folder = tree_at(repo, tmp_path)
    os.remove(worktrees.index(str(folder)))
    assert work(folder, repo.head()) == ["app/a.txt", "big/b.txt", "lib/l.txt", "top.txt"]


def test_a_tree_follows_the_patterns_of_the_person(repo: Repository, tmp_path: Path) -> None:
    """Wider, without patterns at all, and narrow again, while a new file of an agent stays."""
    folder = tree_at(repo, tmp_path)
    (folder / "untracked.txt").write_text("kept\n")
    for words, expected in (
        (("add", "lib"), ["app/a.txt", "lib/l.txt", "top.txt", "untracked.txt"]),
        (("disable",), ["app/a.txt", "big/b.txt", "lib/l.txt", "top.txt", "untracked.txt"]),
        (("set", "big"), ["big/b.txt", "top.txt", "untracked.txt"]),
    ):
        repo.run("sparse-checkout", *words)
        tree_at(repo, tmp_path)
        assert names(folder) == expected, words


def test_files_that_the_mission_made_are_there_wherever_they_lie(repo: Repository, tmp_path: Path) -> None:
    """In every later tree and clone, also outside the patterns, with signs that a pattern would take for its own."""
    folder = tree_at(repo, tmp_path)
    for name in ("src/[x]*.py", "src/end "):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("made\n")
    index = worktrees.index(str(folder))
    made = repository.working_tree(str(folder), index=index, parent=repo.head(), leave=[]).tree
    commit = repository.commit_tree(repo.project, made, [repo.head()], "work\n")
    other = tmp_path / "state" / "tree-2"
    worktrees.ensure(repo.project, str(other), commit)
    assert names(other) == ["app/a.txt", "src/[x]*.py", "src/end ", "top.txt"]


def test_a_fresh_clone_of_a_partial_clone_stays_partial(repo: Repository, tmp_path: Path) -> None:
    """With objects of its own, the history, and the files that the person has."""
    before, recorded, home = missing(repo), settings.record(repo.project), tmp_path / "home"
    home.mkdir()
    target = tmp_path / "room" / "repo"
    target.parent.mkdir()
    clones.make(repo.project, str(target), repo.head(), recorded, clones.configuration(recorded, str(home)))
    assert names(target) == ["app/a.txt", "top.txt"]
    assert Repository(target).run("log", "--format=%s") == Repository(repo.folder).run("log", "--format=%s")
    packs = list((target / ".git" / "objects" / "pack").iterdir())
    assert packs and not any(path.is_symlink() or path.stat().st_nlink > 1 for path in packs)
    assert missing(repo) == before > 0


def test_without_patterns_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that is checked out whole has no patterns."""
    plain = new(tmp_path, monkeypatch)
    plain.save(a="a\n")
    assert _sparse.of(plain.project, "", plain.head()) is None
    assert _sparse.options(None) == []
