"""A real repository in a throw-away folder, for tests that act as a person or an agent."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.git import dotgit, repository


class Repository:
    """A repository; `index` is the path of a run's copy of the index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = str(folder)
        self.index = str(folder.parent / "copies" / "index")

    def run(self, *args: str) -> str:
        """The output of git, with a configured name."""
        words = ["git", "-c", "user.name=p", "-c", "user.email=p@localhost", "-c", "protocol.file.allow=always", *args]
        done = subprocess.run(words, cwd=self.folder, check=True, capture_output=True)
        return os.fsdecode(done.stdout).rstrip("\n")

    def write(self, name: str, text: str = "text\n") -> None:
        """Write a file and its folders."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def save(self, **texts: str) -> str:
        """Write the files, add everything, commit; returns the commit id."""
        for name, text in texts.items():
            self.write(name, text)
        self.run("add", "-A", "-f", ".")
        self.run("commit", "-q", "--allow-empty", "-m", " ".join(texts) or "nothing")
        return self.head()

    def head(self) -> str:
        """The id of HEAD's commit."""
        return self.run("rev-parse", "HEAD")

    def open(self) -> repository.RepositoryState:
        """The position that a run notes when it opens."""
        dotgit.copy_index(self.project, self.index)
        return repository.state(self.project)

    def work(self, opened: repository.RepositoryState) -> repository.WorkingTree:
        """The folder as a tree at the end of the run."""
        parent = opened.standing.head
        return repository.working_tree(self.project, index=self.index, parent=parent, leave=opened.untracked)

    def settle(self, opened: repository.RepositoryState, message: str = "done") -> str:
        """Commit the work of a run; returns the commit id."""
        here = opened.standing
        tree = self.work(opened).tree
        return repository.commit(self.project, tree=tree, parent=here.head, branch=here.branch, message=message)

    def names(self, tree: str) -> list[str]:
        """The files of a tree or commit."""
        return [name for name in self.run("ls-tree", "-r", "-z", "--name-only", tree).split("\0") if name]


def new(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A new repository on `main` without a commit, in a folder with a space; no name is configured."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    repository = Repository(folder / "my project")
    repository.folder.mkdir()
    repository.run("init", "-q", "-b", "main")
    return repository


def conflict(repo: Repository) -> None:
    """Leave a merge with a conflict in `a`."""
    repo.run("switch", "-q", "-c", "other")
    repo.save(a="theirs")
    repo.run("switch", "-q", "main")
    repo.save(a="ours")
    with pytest.raises(subprocess.CalledProcessError):
        repo.run("merge", "other")
