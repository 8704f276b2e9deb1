"""Refs by name: where they are, which commits hold which, and several moved at once or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.git import dotgit, refs
from harness.git.repository import GitFailed
from tests.git_repository import Repository, new


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one commit."""
    made = new(tmp_path, monkeypatch)
    made.save(a="1\n")
    return made


def test_a_ref_and_a_commit_tell_commit_and_tree(repo: Repository) -> None:
    """By a whole name, a short id or through a tag; a name that is not there is no fault."""
    head, tree = repo.head(), repo.run("rev-parse", "HEAD^{tree}")
    repo.run("tag", "-a", "-m", "first", "v1")
    for name in ("refs/heads/main", head, head[:10], "refs/tags/v1"):
        found = refs.position_of(repo.project, name)
        assert found is not None, name
        assert (found.head, found.branch, found.tree) == (head, "", tree), name
    for name in ("refs/heads/other", "0" * 40, "refs/heads/main:a"):
        assert refs.position_of(repo.project, name) is None, name


def placed(repo: Repository, prefix: str = "refs/harness/m") -> dict[str, str]:
    """{end of the name: commit} of the refs below a prefix."""
    found = refs.positions(repo.project, prefix)
    assert all(one.tree == repo.run("rev-parse", f"{one.head}^{{tree}}") for one in found.values())
    return {name.removeprefix(prefix + "/"): one.head for name, one in found.items()}


def test_refs_below_a_prefix_are_listed_with_commit_and_tree(repo: Repository) -> None:
    """Loose or packed; those of another mission, whose name only begins alike, are not among them."""
    first, second = repo.head(), repo.save(b="2\n")
    wanted = {"tip": second, "landed": first, "partial/run": first}
    for name, commit in wanted.items():
        repo.run("update-ref", f"refs/harness/m/{name}", commit)
    repo.run("update-ref", "refs/harness/m-2/tip", first)
    assert placed(repo) == wanted
    repo.run("pack-refs", "--all")
    assert placed(repo) == wanted
    assert placed(repo, "refs/harness/none") == {}


def test_a_commit_is_held_by_itself_and_by_what_follows(repo: Repository) -> None:
    """Not by what came before, nor by a line of its own."""
    first, second = repo.head(), repo.save(b="2\n")
    repo.run("switch", "-q", "--orphan", "else")
    alone = repo.save(c="3\n")
    assert [refs.is_ancestor(repo.project, first, newer) for newer in (first, second, alone)] == [True, True, False]
    assert not refs.is_ancestor(repo.project, second, first)


def test_several_refs_move_together_or_not_at_all(repo: Repository) -> None:
    """New ones are made, known ones moved; one that cannot be set leaves the others where they were."""
    first, second = repo.head(), repo.save(b="2\n")
    refs.set_all(repo.project, {"refs/harness/m/tip": first})
    refs.set_all(repo.project, {"refs/harness/m/tip": second, "refs/harness/m/landed": first})
    assert placed(repo) == {"tip": second, "landed": first}
    with pytest.raises(GitFailed):
        refs.set_all(repo.project, {"refs/harness/m/tip": first, "refs/harness/m/tip/below": first})
    assert placed(repo) == {"tip": second, "landed": first}


def test_a_lock_that_a_killed_git_left_on_a_ref_does_not_keep_it_from_moving(repo: Repository) -> None:
    """Of this run or of another: it is removed once it has stayed as it is, and the ref is set."""
    head, ref = repo.head(), "refs/harness/m/tip"
    lock = Path(repo.project, ".git", f"{ref}.lock")
    for move in (
        lambda: refs.set_one(repo.project, ref, head),
        lambda: refs.swap(repo.project, ref, head, head),
    ):
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
        move()
        assert (dotgit.commit_of(repo.project, ref), lock.exists()) == (head, False)
