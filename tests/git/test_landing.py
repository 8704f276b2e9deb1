"""A landed feature reaches the mission's branch and the person's folder, and nothing of theirs is overwritten or lost."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.git import landing, merges, repository, settings
from harness.git.checkouts import placement, worktrees
from tests import crash
from tests.git.test_merges import commit, files
from tests.git_repository import Repository, new

BRANCH = "harness/m"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A person's repository on the mission's branch."""
    made = new(tmp_path, monkeypatch)
    made.save(a="1\n", b="2\n", gone="3\n", **{"d/c": "4\n", ".gitignore": "ignored\n"})
    made.run("switch", "-q", "-c", BRANCH)
    settings.use(made.project, settings.record(made.project), str(tmp_path / "private"))
    return made


def feature(repo: Repository, tmp_path: Path) -> str:
    """A commit of a run with every kind of change, made in a tree."""
    folder = tmp_path / "tree"
    worktrees.ensure(repo.project, str(folder), repo.head())
    (folder / "a").write_text("landed\n")
    (folder / "b").chmod(0o755)
    (folder / "gone").unlink()
    (folder / "d/c").unlink()
    (folder / "d").rmdir()
    (folder / "d").write_text("a file now\n")
    (folder / "n/e/w").mkdir(parents=True)
    (folder / "n/e/w/f").write_text("new\n")
    (folder / "link").symlink_to("a")
    tree = repository.working_tree(str(folder), index=worktrees.index(str(folder)), parent=repo.head(), leave=()).tree
    return repository.commit_tree(repo.project, tree, [repo.head()], "feature\n")


def assert_landed(repo: Repository, made: str, status: str = "") -> None:
    """Ref, index and files are the commit's."""
    assert (repo.run("rev-parse", BRANCH), repo.run("status", "--porcelain")) == (made, status)
    assert (repo.folder / "a").read_text() == "landed\n"
    assert os.access(repo.folder / "b", os.X_OK)
    assert (repo.folder / "d").read_text() == "a file now\n"
    assert (repo.folder / "n/e/w/f").read_text() == "new\n"
    assert (repo.folder / "link").readlink() == Path("a")
    assert not (repo.folder / "gone").exists()
    assert_tidy(repo)


def assert_tidy(repo: Repository) -> None:
    """No lock and no file of ours is left in the person's git folder."""
    names = set(os.listdir(repo.folder / ".git"))
    assert not {"index.lock", "harness-index", "harness-landing"} & names


def test_the_folder_the_index_and_the_branch_go_forward(repo: Repository, tmp_path: Path) -> None:
    """Every kind of change; what a person has untracked or ignored stays."""
    repo.write("SPEC.md")
    repo.write("ignored")
    made = feature(repo, tmp_path)
    for _ in range(2):
        assert landing.land(repo.project, BRANCH, made) == ""
        assert_landed(repo, made, "?? SPEC.md")
    assert (repo.folder / "a").stat().st_nlink == 1


def test_what_a_person_has_elsewhere_is_not_in_the_way(repo: Repository, tmp_path: Path) -> None:
    """Edits and staged files that the feature does not touch stay as they are."""
    repo.save(mine="1\n", staged="1\n")
    made = feature(repo, tmp_path)
    repo.write("mine", "edited\n")
    repo.write("staged", "edited\n")
    repo.run("add", "staged")
    assert landing.land(repo.project, BRANCH, made) == ""
    assert_landed(repo, made, " M mine\nM  staged")


def _edit(repo: Repository) -> None:
    repo.write("a", "mine\n")


def _stage(repo: Repository) -> None:
    _edit(repo)
    repo.run("add", "a")
    repo.write("a", "1\n")


def _delete(repo: Repository) -> None:
    (repo.folder / "gone").unlink()


def _link(repo: Repository) -> None:
    (repo.folder / "d").rename(repo.folder / "e")
    (repo.folder / "d").symlink_to("e")


def _hide(repo: Repository, flag: str) -> None:
    repo.run("update-index", flag, "a")
    _edit(repo)


def _stage_new(repo: Repository) -> None:
    repo.write("n/e/w/f", "mine")
    repo.run("add", "n")


def _bisect(repo: Repository) -> None:
    repo.run("bisect", "start")


IN_THE_WAY: dict[str, Callable[[Repository], object]] = {
    "an edit": _edit,
    "a staged edit": _stage,
    "a removed file": _delete,
    "an edit that git takes for unchanged": lambda repo: _hide(repo, "--assume-unchanged"),
    "an edit that git skips": lambda repo: _hide(repo, "--skip-worktree"),
    "a renamed file": lambda repo: repo.run("mv", "a", "renamed"),
    "a staged new file": _stage_new,
    "an untracked file": lambda repo: repo.write("n/e/w/f", "mine"),
    "an untracked file for a folder": lambda repo: repo.write("n", "mine"),
    "an untracked folder for a file": lambda repo: repo.write("link/x", "mine"),
    "an untracked file in a folder that goes": lambda repo: repo.write("d/mine", "mine"),
    "a folder behind a link": _link,
    "a git at work": lambda repo: repo.write(".git/index.lock", ""),
    "a bisect": _bisect,
}


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_what_is_in_the_way_stops_the_folder(repo: Repository, tmp_path: Path, what: str) -> None:
    """Files, index and `git status` stay as they are; the branch moves, unless a git of the person's is at work. One line
    names what is in the way and the command."""
    made, head, busy = feature(repo, tmp_path), repo.head(), what in ("a git at work", "a bisect")
    IN_THE_WAY[what](repo)
    before, index, status = files(repo), repo.run("ls-files", "-s"), repo.run("status", "--porcelain")
    line = landing.land(repo.project, BRANCH, made)
    assert line.endswith(f"git merge --ff-only {made[:12]}") if busy else "git stash" in line
    assert "\n" not in line
    after = files(repo)
    assert {name: data for name, (_, data) in after.items()} == {name: data for name, (_, data) in before.items()}
    assert (repo.run("ls-files", "-s"), repo.run("status", "--porcelain")) == (index, status)
    assert (repo.run("rev-parse", BRANCH), repo.head()) == (head if busy else made, head)
    assert not landing.unfinished(repo.project)


def test_where_nobody_has_it_checked_out_only_the_branch_moves(repo: Repository, tmp_path: Path) -> None:
    """The person's files, index and branch stay."""
    made = feature(repo, tmp_path)
    repo.run("switch", "-q", "main")
    repo.write("a", "mine\n")
    before = files(repo)
    assert landing.land(repo.project, BRANCH, made) == ""
    assert (repo.run("rev-parse", BRANCH), files(repo)) == (made, before)
    assert repo.run("status", "--porcelain") == " M a"


def test_a_branch_that_is_not_there_is_made(repo: Repository, tmp_path: Path) -> None:
    """The first landing of a mission."""
    made = feature(repo, tmp_path)
    assert landing.land(repo.project, "harness/other", made) == ""
    assert repo.run("rev-parse", "harness/other") == made


def test_another_worktree_of_the_person_is_in_the_way(repo: Repository, tmp_path: Path) -> None:
    """Also one that rebases the branch; our own trees and folders that are gone are not."""
    made, head = feature(repo, tmp_path), repo.head()
    repo.run("switch", "-q", "main")
    repo.run("worktree", "add", "-q", "../side", BRANCH)
    line = landing.land(repo.project, BRANCH, made)
    assert str(repo.folder.parent / "side") in line
    assert repo.run("rev-parse", BRANCH) == head
    side = Repository(repo.folder.parent / "side")
    side.run("checkout", "-q", "--detach")
    (repo.folder / ".git/worktrees/side/rebase-merge").mkdir()
    (repo.folder / ".git/worktrees/side/rebase-merge/head-name").write_text(f"refs/heads/{BRANCH}\n")
    assert landing.land(repo.project, BRANCH, made) == line
    os.rename(side.folder, side.project + ".gone")
    Repository(tmp_path / "tree").run("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    assert landing.land(repo.project, BRANCH, made) == ""
    assert repo.run("rev-parse", BRANCH) == made


def test_a_branch_with_other_commits_is_not_moved(repo: Repository, tmp_path: Path) -> None:
    """What a person committed meanwhile is merged by the next run first."""
    made = feature(repo, tmp_path)
    theirs = repo.save(b="mine\n")
    assert "the next run merges them" in landing.land(repo.project, BRANCH, made)
    assert repo.run("rev-parse", BRANCH) == theirs
    merged = merges.merge(repo.project, made, theirs, "m")
    assert merged.conflicts == []
    assert landing.land(repo.project, BRANCH, merged.commit) == ""
    assert (repo.folder / "b").read_text() == "mine\n"


def test_a_commit_that_only_moves_a_submodule_lands(repo: Repository) -> None:
    """As git does: what is checked out in it stays."""
    head = repo.head()
    index = {"GIT_INDEX_FILE": str(repo.folder.parent / "run-index")}
    repository.run(repo.project, "read-tree", head, extra=index)
    repository.run(repo.project, "update-index", "--add", "--cacheinfo", f"160000,{head},sub", extra=index)
    tree = repository.run(repo.project, "write-tree", extra=index).decode().strip()
    made = repository.commit_tree(repo.project, tree, [head], "sub\n")
    assert landing.land(repo.project, BRANCH, made) == ""
    assert repo.head() == made


# saved at that very moment


def _race(monkeypatch: pytest.MonkeyPatch, name: str, at: int, save: Callable[[], object]) -> None:
    """`save` happens right before the `at`th call of placing's `name`."""
    real, left = getattr(placement, name), [at]

    def racing(*args: str) -> object:
        left[0] -= 1
        if left[0] == 0:
            save()
        return real(*args)

    monkeypatch.setattr(placement, name, racing)


SAVES = itertools.product(("fingerprint", "move_away", "put"), ("in place", "by a rename"))


# each step and each way is in one of these rows; HARNESS_TORTURE=1 runs all
@pytest.mark.parametrize(
    ("name", "way"), crash.sampled(SAVES, lambda row: (row[0] == "move_away") == (row[1] == "in place"))
)
def test_a_file_that_a_person_saves_meanwhile_is_never_lost(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    """Before each step of ours: it is theirs, nothing landed, or it was saved after all was done."""
    made, head, at, saved, stopped = feature(repo, tmp_path), repo.head(), 0, True, 0

    def save() -> None:
        nonlocal saved
        saved = True
        if way == "in place":
            (repo.folder / "a").write_text("mine, longer\n")
        else:
            (repo.folder / "a.tmp").write_text("mine, longer\n")
            os.replace(repo.folder / "a.tmp", repo.folder / "a")

    while saved:
        at, saved = at + 1, False
        with monkeypatch.context() as patch:
            _race(patch, name, at, save)
            line = landing.land(repo.project, BRANCH, made)
        if saved:
            assert (repo.folder / "a").read_text() == "mine, longer\n", at
            assert repo.run("status", "--porcelain") == " M a"
            assert repo.head() == (head if "git stash" in line else made), at
            assert repo.run("rev-parse", BRANCH) == made, at
            stopped += repo.head() == head
        repo.run("switch", "-q", "-f", "-C", BRANCH, head)
        assert_tidy(repo)
    assert stopped > 2


def test_a_file_that_a_person_saves_while_all_goes_back_is_never_lost(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first save stops the landing; the next ones come right before each new file of ours is taken away again."""
    made, head, real, saved = feature(repo, tmp_path), repo.head(), placement.move_away, list[str]()

    def save(name: str) -> None:
        (repo.folder / "a.tmp").write_text("mine, longer\n")
        os.replace(repo.folder / "a.tmp", repo.folder / name)
        saved.append(name)

    def racing(top: str, name: str, target: str) -> None:
        if name == "a" or "undone" in target:
            save(name)
        real(top, name, target)

    monkeypatch.setattr(placement, "move_away", racing)
    assert "git stash" in landing.land(repo.project, BRANCH, made)
    assert len(saved) > 2
    assert {(repo.folder / name).read_text() for name in saved} == {"mine, longer\n"}
    assert repo.head() == head
    assert_tidy(repo)


# killed anywhere


@pytest.mark.parametrize("count", [2, 50] if crash.TORTURE else [50])
def test_killed_at_any_moment_and_done_again_it_is_landed(repo: Repository, tmp_path: Path, count: int) -> None:
    """At every git call, rename, link and removal; a person's untracked file and edit elsewhere stay."""
    repo.save(mine="1\n", **{f"f{number}": "1\n" for number in range(count)})
    start = repo.head()
    made = commit(repo, feature(repo, tmp_path), **{f"f{number}": "2\n" for number in range(count)})
    repo.write("SPEC.md", "mine\n")
    repo.write("mine", "edited\n")
    for step in crash.kills(lambda: landing.land(repo.project, BRANCH, made), 1 if count == 2 else 17):
        assert landing.land(repo.project, BRANCH, made) == "", step
        assert (repo.folder / "mine").read_text() == "edited\n", step
        assert_landed(repo, made, " M mine\n?? SPEC.md")
        repo.run("reset", "-q", "--hard", start)
        repo.run("clean", "-q", "-ffd")
        repo.write("SPEC.md", "mine\n")
        repo.write("mine", "edited\n")


def test_another_mission_in_the_folder_ends_what_was_killed(repo: Repository, tmp_path: Path) -> None:
    """It has a private folder of its own, and takes neither what lies half-landed for a person's nor their old files."""
    made, head, known = feature(repo, tmp_path), repo.head(), settings.record(repo.project)
    for step in crash.kills(lambda: landing.land(repo.project, BRANCH, made), 5):
        settings.use(repo.project, known, str(tmp_path / "another"))
        assert merges.take_edits(repo.project, BRANCH).commit == "", step
        assert (repo.run("status", "--porcelain"), repo.head() in (head, made)) == ("", True), step
        assert_tidy(repo)
        repo.run("reset", "-q", "--hard", head)
        settings.use(repo.project, known, str(tmp_path / "private"))


def test_what_a_person_edits_after_a_kill_is_theirs(repo: Repository, tmp_path: Path) -> None:
    """Half-landed files are taken back, an edit among them stays."""
    made, head = feature(repo, tmp_path), repo.head()
    for step in crash.kills(lambda: landing.land(repo.project, BRANCH, made), 1 if crash.TORTURE else 3):
        if (repo.folder / ".git/index.lock").exists():
            (repo.folder / ".git/index.lock").unlink()  # as git's message says
        repo.write("a", f"mine {step}\n")
        landing.finish(repo.project)
        assert (repo.folder / "a").read_text() == f"mine {step}\n"
        assert not landing.unfinished(repo.project)
        assert_tidy(repo)
        assert repo.run("status", "--porcelain") == " M a", (step, repo.head() == made)
        assert repo.head() in (head, made)
        repo.run("switch", "-q", "-f", "-C", BRANCH, head)
