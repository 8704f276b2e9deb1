"""The operations inside `.git` without git work in a plain repository and in a linked worktree."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.git import dotgit
from tests import crash
from tests.git_repository import Repository, new


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit."""
    repository = new(tmp_path, monkeypatch)
    repository.save(a="1\n")
    return repository.folder


@pytest.fixture
def linked(project: Path) -> Path:
    """A linked worktree of the project, on the branch `side`."""
    Repository(project).run("worktree", "add", "-q", "-b", "side", "../linked")
    return project.parent / "linked"


def test_a_line_is_excluded_once_whatever_the_file_holds(project: Path) -> None:
    """The person's own lines stay, also a last one without its newline."""
    path = project / ".git" / "info" / "exclude"
    path.write_text("mine")
    left = path.with_name("exclude.999999999.tmp")  # of a start that was killed
    left.touch()
    for _ in range(2):
        dotgit.exclude(str(project), "/.harness/")
    assert path.read_text() == "mine\n/.harness/\n"
    assert not left.exists()


def test_an_exclude_file_is_made_where_there_is_none(project: Path) -> None:
    """A repository made from an empty template has no info folder."""
    path = project / ".git" / "info" / "exclude"
    path.unlink()
    path.parent.rmdir()
    dotgit.exclude(str(project), "/.harness/")
    assert path.read_text() == "/.harness/\n"


def test_a_linked_worktree_shares_the_excludes(project: Path, linked: Path) -> None:
    """Git reads info/exclude from the folder that all worktrees share, and so do we."""
    dotgit.exclude(str(linked), "/.harness/")
    (linked / ".harness").mkdir()
    (linked / ".harness" / "x").write_text("")
    assert Repository(linked).run("status", "--porcelain") == ""
    assert "/.harness/" in (project / ".git" / "info" / "exclude").read_text()


def test_head_is_the_worktrees_own(project: Path, linked: Path) -> None:
    """Each worktree has its own HEAD."""
    assert (dotgit.head(str(project)), dotgit.head(str(linked))) == (
        b"ref: refs/heads/main",
        b"ref: refs/heads/side",
    )


def test_the_commit_is_read_as_git_reads_it(project: Path, linked: Path) -> None:
    """From a ref's own file, from packed refs, of a detached HEAD; in a worktree its own."""
    Repository(linked).save(b="2\n")
    for folder in (project, linked):
        repository = Repository(folder)
        for words in (["status"], ["pack-refs", "--all"], ["checkout", "-q", "--detach"]):
            repository.run(*words)
            assert dotgit.commit(str(folder)) == repository.head(), words
    assert dotgit.commit(str(project)) != dotgit.commit(str(linked))


def test_where_there_is_no_commit_there_is_none(tmp_path: Path) -> None:
    """No repository, and one before its first commit: an installed package has neither."""
    assert dotgit.commit(str(tmp_path)) == ""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert dotgit.commit(str(tmp_path)) == ""


def test_the_copy_of_the_index_keeps_content_and_time(project: Path, linked: Path, tmp_path: Path) -> None:
    """The time tells git which files may have changed in the same tick."""
    for place, index in ((project, project / ".git" / "index"), (linked, project / ".git/worktrees/linked/index")):
        target = tmp_path / "copies" / "index"
        dotgit.copy_index(str(place), str(target))
        assert target.read_bytes() == index.read_bytes()
        assert target.stat().st_mtime_ns == index.stat().st_mtime_ns


def test_without_an_index_there_is_no_copy(project: Path, tmp_path: Path) -> None:
    """A copy of an earlier run does not count for this one."""
    target = tmp_path / "index"
    target.write_text("old")
    (project / ".git" / "index").unlink()
    dotgit.copy_index(str(project), str(target))
    assert not target.exists()


def test_sync_takes_refs_that_have_no_folder(project: Path) -> None:
    """A packed ref has no file, and a detached HEAD no branch."""
    Repository(project).run("pack-refs", "--all")
    dotgit.sync(str(project), "refs/harness/partial/r-1")


def test_only_a_lock_that_stays_as_it_is_is_one_that_nobody_holds(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that lives lets it go, or writes it, meanwhile; locks on other refs are somebody else's."""
    monkeypatch.setattr(dotgit, "LOCK_SECONDS", 0.2)
    left, other, held = (project / f".git/{name}.lock" for name in ("refs/heads/main", "refs/heads/side", "HEAD"))
    for path in (left, other, held):
        path.touch()

    def write() -> None:
        time.sleep(0.05)
        held.write_text("ref: refs/heads/side")

    begun = crash.start(write)
    dotgit.clear_unheld(str(project), ["refs/heads/main"])
    crash.end(begun)
    assert [path.exists() for path in (left, other, held)] == [False, True, True]


def test_a_link_exists_while_its_target_does(tmp_path: Path) -> None:
    """A target that appears is linked, one that is gone is not; what is no link is moved aside."""
    path, target = tmp_path / "own", tmp_path / "theirs"
    for there in (False, True, True, False):
        if there != target.exists():
            target.touch() if there else target.unlink()
        dotgit.link(str(path), str(target))
        assert (path.is_symlink(), path.exists()) == (there, there)
    path.write_text("forged")
    dotgit.link(str(path), str(target))
    assert not path.exists()
    assert [one.read_text() for one in tmp_path.glob("own.*.aside")] == ["forged"]
