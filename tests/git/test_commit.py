"""What repository.py writes: commits, refs, restored files, worktrees; and what it reads from commits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.git import first_commit, refs, repository
from tests.git_repository import Repository, conflict


def author(repo: Repository) -> str:
    """The author and the committer of HEAD."""
    return repo.run("log", "-1", "--format=%an <%ae> %cn <%ce>")


# commits


def test_a_commit_leaves_a_clean_folder(repo: Repository) -> None:
    """One commit on the branch, its message as given, nothing left to commit, and no file touched."""
    opened = repo.open()
    repo.write("new", "1")
    (repo.folder / "b").unlink()
    made = repo.settle(opened, "F-1: dö it\n\nHarness-Run: r-1")
    assert repository.state(repo.project) == repository.RepositoryState(
        standing=repository.Position(head=made, branch="main", tree=repository.tree_of(repo.project, made)),
        dirty=[],
        untracked=[],
    )
    assert repository.messages_between(repo.project, opened.standing.head, made) == ["F-1: dö it\n\nHarness-Run: r-1"]
    assert repo.run("rev-parse", "HEAD^") == opened.standing.head


def test_without_a_configured_name_the_author_is_ours(repo: Repository) -> None:
    """A fresh machine can commit too; half an identity counts as none."""
    repo.settle(repo.open())
    assert author(repo) == "harness <harness@localhost> harness <harness@localhost>"
    repo.run("config", "user.name", "Half")
    repo.settle(repo.open())
    assert author(repo) == "harness <harness@localhost> harness <harness@localhost>"


def test_a_configured_name_is_used(repo: Repository) -> None:
    """In a person's repository, the person is the author."""
    repo.run("config", "user.name", "Ünal")
    repo.run("config", "user.email", "u@example.com")
    repo.settle(repo.open())
    assert author(repo) == "Ünal <u@example.com> Ünal <u@example.com>"


def test_hooks_and_signing_do_not_stop_a_commit(repo: Repository) -> None:
    """Hooks that fail, a signing key that is not there, a monitor that is a program: none of them runs."""
    for name in ("pre-commit", "commit-msg", "reference-transaction", "post-checkout", "post-index-change", "monitor"):
        repo.write(f".git/hooks/{name}", '#!/bin/sh\ntouch "$GIT_DIR/ran" ./ran\nexit 1\n')
        (repo.folder / ".git/hooks" / name).chmod(0o755)
    for key, value in {
        "commit.gpgSign": "true",
        "user.signingKey": "none",
        "core.fsmonitor": ".git/hooks/monitor",
    }.items():
        repo.run("config", key, value)
    opened = repo.open()
    repo.write("new")
    made = repo.settle(opened)
    repository.switch_new(repo.project, "harness/m")
    assert repo.names(made) == ["a", "b", "new"]
    assert not (repo.folder / "ran").exists() and not (repo.folder / ".git/ran").exists()


def test_mixed_line_ends_do_not_stop_a_commit(repo: Repository) -> None:
    """core.safecrlf makes git itself refuse such a file."""
    repo.run("config", "core.safecrlf", "true")
    repo.run("config", "core.autocrlf", "input")
    opened = repo.open()
    (repo.folder / "new").write_bytes(b"1\r\n2\n")
    assert repo.names(repo.settle(opened)) == ["a", "b", "new"]


def test_the_agents_commits_become_one(repo: Repository) -> None:
    """Their messages are kept, oldest first."""
    opened = repo.open()
    first, last = repo.save(c="1"), repo.save(d="1")
    assert repository.messages_between(repo.project, opened.standing.head, last) == ["c", "d"]
    assert repository.log_lines(repo.project, opened.standing.head, last) == [f"{last[:7]} d", f"{first[:7]} c"]
    made = repo.settle(opened)
    assert repo.run("rev-list", f"{opened.standing.head}..main") == made
    assert (repo.names(made), repository.dirty(repo.project)) == (["a", "b", "c", "d"], [])


@pytest.mark.parametrize("move", [("switch", "-q", "-c", "mine"), ("checkout", "-q", "--detach")])
def test_an_agent_that_left_the_branch_is_brought_back(repo: Repository, move: tuple[str, ...]) -> None:
    """The commit has its work and is on the mission's branch."""
    opened = repo.open()
    repo.run(*move)
    repo.save(c="1")
    repo.run("branch", "-D", "main")
    made = repo.settle(opened)
    standing = repository.position(repo.project)
    assert (standing.branch, standing.head, repo.run("rev-parse", "HEAD^")) == ("main", made, opened.standing.head)
    assert (repo.names(made), repository.dirty(repo.project)) == (["a", "b", "c"], [])


def test_a_merge_that_was_left_half_done_is_dropped(repo: Repository) -> None:
    """The next commit of a person is no merge, and the folder is clean."""
    opened = repo.open()
    conflict(repo)
    made = repo.settle(opened)
    assert "<<<<<<<" in repo.run("show", f"{made}:a")
    assert repository.dirty(repo.project) == []
    assert not (repo.folder / ".git/MERGE_HEAD").exists()


def test_a_branch_that_moved_meanwhile_is_not_overwritten(repo: Repository) -> None:
    """Compare-and-set: a commit made meanwhile stays."""
    opened = repo.open()
    theirs = repo.save(c="1")
    with pytest.raises(repository.GitFailed, match=opened.standing.head):
        repository.commit(
            repo.project, tree=opened.standing.tree, parent="", branch="main", message="x", at=opened.standing.head
        )
    assert repo.head() == theirs


def test_a_leftover_lock_is_named_with_the_remedy(repo: Repository) -> None:
    """Once it is cleared, the commit succeeds."""
    opened = repo.open()
    repo.write(".git/index.lock", "")
    with pytest.raises(repository.GitFailed, match=r"index\.lock.*File exists.*remove the file manually"):
        repo.settle(opened)
    (repo.folder / ".git/index.lock").unlink()
    repo.settle(opened)


def test_a_linked_worktree_is_a_project_like_any_other(repo: Repository) -> None:
    """Its branch, its index, its commits; the main folder is not touched."""
    main = repository.state(repo.project)
    repo.run("worktree", "add", "-q", "-b", "side", "../side")
    side = Repository(repo.folder.parent / "side")
    first_commit.require(side.project)
    opened = side.open()
    side.write("new")
    side.run("switch", "-q", "-c", "elsewhere")
    made = side.settle(opened)
    assert side.names(made) == ["a", "b", "new"]
    assert repository.position(side.project).branch == "side"
    assert (repository.dirty(side.project), repository.state(repo.project)) == ([], main)


def test_what_a_commit_needs_is_on_the_disk_when_it_returns(repo: Repository, tmp_path: Path) -> None:
    """Git fsyncs objects, index and ref; we fsync HEAD and the ref's folder."""
    log = tmp_path / "trace"
    opened = repo.open()
    repo.write("new")
    given = f"{repo.project!r}, tree={repo.work(opened).tree!r}, parent={repo.head()!r}, branch='main', message='x'"
    trace = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", str(log)]
    try:
        subprocess.run([*trace, "true"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("strace is missing or may not trace here")
    words = [*trace, sys.executable, "-c", f"from harness.git import repository; repository.commit({given})"]
    subprocess.run(words, cwd=Path(repository.__file__).parents[2], check=True)
    synced = log.read_text()
    for end in ("/.git/objects/", "/.git/index.lock>", "/refs/heads/main.lock>", "/.git/HEAD>", "/.git/refs/heads>"):
        assert end in synced, synced


# refs, and restoring


def test_refs_are_set_and_deleted(repo: Repository) -> None:
    """Deleting an absent ref is no error."""
    refs.set_one(repo.project, "refs/harness/partial/r-1", repo.head())
    assert repo.run("rev-parse", "refs/harness/partial/r-1") == repo.head()
    for _ in range(2):
        repository.delete_ref(repo.project, "refs/harness/partial/r-1")
    assert repo.run("for-each-ref", "refs/harness") == ""


def test_what_was_put_back_can_be_applied_again(repo: Repository) -> None:
    """The patch holds text, binary content, modes, deleted and staged files."""
    head = repo.save(mode="", text="1\n")
    repo.write("text", "2\n")
    repo.run("config", "diff.noprefix", "true")
    (repo.folder / "mode").chmod(0o755)
    (repo.folder / "a").write_bytes(bytes(range(256)))
    (repo.folder / "b").unlink()
    before, patch = repository.dirty(repo.project), repository.patch(repo.project, head)
    repo.run("reset", "-q", "--hard", head)
    subprocess.run(["git", "-c", "diff.noprefix=false", "apply"], cwd=repo.folder, input=patch, check=True)
    assert repository.dirty(repo.project) == before
    assert (repo.folder / "a").read_bytes() == bytes(range(256))
    assert repository.patch(repo.project, head) == patch


# reading commits


def test_a_file_of_a_commit_is_shown(repo: Repository) -> None:
    """None for an absent file; a commit that does not exist is an error."""
    head = repo.save(**{"d/ü *": "1"})
    assert repository.show(repo.project, head, "d/ü *") == b"1"
    assert repository.show(repo.project, head, "d") is repository.show(repo.project, head, "none") is None
    with pytest.raises(repository.GitFailed):
        repository.show(repo.project, "0" * 40, "a")


def test_differences_are_reported(repo: Repository) -> None:
    """From a commit, or from nothing at all."""
    old = repo.head()
    new = repo.save(a="1\n2\n", ü="1")
    assert repository.changed(repo.project, old, new) == [("M", "a"), ("A", "ü")]
    assert repository.changed(repo.project, "", old) == [("A", "a"), ("A", "b")]
    stat = repository.diff_stat(repo.project, old, new)
    assert " ü | 1 +" in stat and "2 files changed, 2 insertions(+)" in stat
    assert repository.log_lines(repo.project, new, new) == repository.messages_between(repo.project, new, new) == []
    assert len(repository.log_lines(repo.project, "", new)) == 2


def test_no_attribute_hides_a_line_of_a_patch(repo: Repository) -> None:
    """Neither one that calls a file binary, nor a program that shows it otherwise, nor a zero byte in it."""
    old = repo.head()
    repo.run("config", "diff.other.textconv", "echo nothing")
    repo.save(**{".gitattributes": "x -diff\ny diff=other\n", "x": "exit 0\n", "y": "exit 1\n", "z": "\0exit 2\n"})
    text = repository.patch_between(repo.project, old, repo.head())
    assert [line for line in text.split(b"\n") if b"exit" in line] == [b"+exit 0", b"+exit 1", b"+\0exit 2"]
