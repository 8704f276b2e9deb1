"""The git calls of the harness, against real repositories in throw-away folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.git import repository
from tests.git_repository import Repository, conflict

ODD = ["with space", "-dash", "new\nline", "gl*b[a]?", "ünï/çødé", 'quo"te', "back\\slash", ":(top)x", "tab\t"]


# the state of the repository


def test_nothing_is_done_in_a_repository_above(repo: Repository) -> None:
    """A git call in a subfolder never works on the repository above it."""
    (repo.folder / "sub" / ".git").mkdir(parents=True)
    with pytest.raises(repository.GitFailed, match="not a git repository"):
        repository.state(repo.project + "/sub")


def test_before_the_first_commit_everything_is_empty(empty: Repository) -> None:
    """An unborn branch has a name and no commit."""
    empty.write("new")
    here = repository.Position(head="", branch="main", tree="")
    assert repository.state(empty.project) == repository.RepositoryState(standing=here, dirty=[], untracked=["new"])
    assert repository.position(empty.project) == here
    assert not repository.position(empty.project).head
    assert repository.default_branch(empty.project) is None


def test_standing_names_commit_branch_and_tree(repo: Repository) -> None:
    """One call gives the same as the whole state; a detached HEAD has no branch."""
    repo.run("switch", "-q", "-c", "harness/my-mission")
    here = repository.position(repo.project)
    tree = repo.run("rev-parse", "HEAD^{tree}")
    assert (
        here
        == repository.Position(head=repo.head(), branch="harness/my-mission", tree=tree)
        == repository.state(repo.project).standing
    )
    repo.run("checkout", "-q", "--detach")
    assert repository.position(repo.project) == here.replace(branch="") == repository.state(repo.project).standing
    assert repository.position(repo.project).head


def test_a_damaged_branch_is_not_taken_for_an_unborn_one(repo: Repository) -> None:
    """Broken and absent are different results."""
    repo.write(".git/refs/heads/main", "")
    for ask in (repository.position, repository.state):
        with pytest.raises(repository.GitFailed):
            ask(repo.project)


def test_every_kind_of_change_is_dirty(repo: Repository) -> None:
    """Changed, staged, deleted, renamed, with a new mode, newly added: each must be settled before a run starts."""
    repo.save(**{name: name for name in ("mode", "gone", "old", "staged")})
    repo.write("a", "other")
    (repo.folder / "mode").chmod(0o755)
    (repo.folder / "gone").unlink()
    repo.run("mv", "old", "new")
    repo.write("staged", "other")
    repo.run("add", "staged")
    assert sorted(repository.dirty(repo.project)) == ["a", "gone", "mode", "new", "old", "staged"]


def test_conflicts_are_dirty(repo: Repository) -> None:
    """A half-done merge stops the next run."""
    conflict(repo)
    assert repository.dirty(repo.project) == ["a"]


def test_untracked_names_come_back_as_they_are(repo: Repository) -> None:
    """With any characters; without ignored files and our state; a nested repository ends in a slash."""
    for name in (*ODD, "ignored/x", ".harness/x"):
        repo.write(name)
    repo.write(".gitignore", "ignored/\n")
    repo.run("init", "-q", "inner")
    repo.write("inner/x")
    assert sorted(repository.untracked(repo.project)) == sorted([*ODD, ".gitignore", "inner/"])
    assert sorted(repository.other_names(repo.project, 99)) == sorted([*ODD, ".gitignore", "inner/"])
    assert len(repository.other_names(repo.project, 2)) == 2
    repo.run("add", "--", *(f":(literal){name}" for name in ODD))
    assert sorted(repository.tracked_names(repo.project)) == sorted([*ODD, "a", "b"])


def test_the_environment_cannot_redirect_us(repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """run.sh may be started from a hook, which sets GIT_DIR and GIT_INDEX_FILE."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    assert repository.state(repo.project).dirty == []


def test_the_default_branch_is_found(repo: Repository) -> None:
    """Configured, else main or master, else the only one; origin's HEAD has priority."""
    repo.run("branch", "trunk")
    assert repository.default_branch(repo.project) == "main"
    repo.run("config", "init.defaultBranch", "trunk")
    assert repository.default_branch(repo.project) == "trunk"
    repo.run("update-ref", "refs/remotes/origin/live", "HEAD")
    repo.run("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/live")
    assert repository.default_branch(repo.project) == "live"


def test_the_only_branch_is_the_default(repo: Repository) -> None:
    """Two branches without a default give none."""
    repo.run("branch", "-m", "only")
    assert repository.default_branch(repo.project) == "only"
    repo.run("branch", "second")
    assert repository.default_branch(repo.project) is None


def test_a_new_branch_takes_the_folder_as_it_is(repo: Repository) -> None:
    """No file changes; a taken name is refused."""
    repo.write("a", "mine")
    repository.switch_new(repo.project, "harness/m-1")
    assert repository.position(repo.project).branch == "harness/m-1"
    assert (repo.folder / "a").read_text() == "mine"
    with pytest.raises(repository.GitFailed, match="already exists"):
        repository.switch_new(repo.project, "harness/m-1")


def test_a_new_branch_before_the_first_commit(empty: Repository) -> None:
    """There is no commit, and still the mission gets its branch."""
    repository.switch_new(empty.project, "harness/m-1")
    assert repository.position(empty.project).branch == "harness/m-1"


# the working folder as a tree


def test_nothing_changed_is_the_same_tree(repo: Repository) -> None:
    """Runs compare trees, so an unchanged folder must give the same tree."""
    opened = repo.open()
    assert repo.work(opened) == repository.WorkingTree(tree=opened.standing.tree, kept_out=[])


def test_all_that_an_agent_may_do_to_files_is_in_the_tree(repo: Repository) -> None:
    """Changed, deleted, renamed, made executable, linked, and names of every kind."""
    repo.save(old="same text", mode="", gone="")
    opened = repo.open()
    repo.write("a", "changed")
    (repo.folder / "gone").unlink()
    (repo.folder / "old").rename(repo.folder / "new")
    (repo.folder / "mode").chmod(0o755)
    (repo.folder / "link").symlink_to("nowhere")
    for name in ODD:
        repo.write(name, "1")
    tree = repo.work(opened).tree
    assert sorted(repo.names(tree)) == sorted([*ODD, "a", "b", "link", "mode", "new"])
    changed = {path: letter for letter, path in repository.changed(repo.project, opened.standing.head, tree)}
    assert changed == dict.fromkeys([*ODD, "new", "link"], "A") | {"a": "M", "mode": "M", "gone": "D", "old": "D"}
    assert repository.changed(repo.project, tree, tree) == []


def test_files_and_folders_may_change_places(repo: Repository) -> None:
    """A folder becomes a link to another, a file a folder, a folder a file."""
    repo.save(**{"d/a": "1", "f": "1", "g/x": "1"})
    opened = repo.open()
    for name in ("d/a", "f", "g/x"):
        (repo.folder / name).unlink()
    for name in ("d", "g"):
        (repo.folder / name).rmdir()
    repo.write("f/a")
    repo.write("g")
    (repo.folder / "d").symlink_to("f")
    assert repo.names(repo.work(opened).tree) == ["a", "b", "d", "f/a", "g"]


def test_the_agents_own_commits_and_staging_do_not_matter(repo: Repository) -> None:
    """The tree is the folder, by the same rules, also when the agent committed, staged or switched branches."""
    repo.write(".gitignore", "built/\nmine.txt\n")
    repo.save()
    repo.write("theirs")
    repo.write("mine.txt")
    opened = repo.open()
    repo.write("built/x")
    repo.write("built/.env")
    repo.save(new="1\n", a="2\n")
    repo.run("checkout", "-q", "--detach")
    repo.write("staged")
    repo.run("add", "staged")
    repo.run("rm", "-q", "--cached", "b")
    done = repo.work(opened)
    expected = [".gitignore", "a", "b", "built/x", "mine.txt", "new", "staged"]
    assert (repo.names(done.tree), repo.run("show", done.tree + ":a")) == (expected, "2")
    assert done.kept_out == ["built/.env (on the exclude list, it may hold a secret)"]


def test_a_persons_untracked_file_stays_out_even_when_changed(repo: Repository) -> None:
    """Even when the agent changed, staged or committed it; and it keeps its content."""
    repo.write("mine.txt", "mine")
    opened = repo.open()
    repo.save(**{"mine.txt": "touched", "work": "1"})
    assert repo.names(repo.settle(opened)) == ["a", "b", "work"]
    assert repository.untracked(repo.project) == ["mine.txt"]
    assert (repo.folder / "mine.txt").read_text() == "touched"


def test_what_is_kept_out_is_named(repo: Repository) -> None:
    """Secrets, packages, six megabytes, repositories; our own state is left out silently."""
    opened = repo.open()
    for name in (".env", "node_modules/x/y", ".harness/memory/raw.md", "src/ok"):
        repo.write(name)
    repo.write(".gitattributes", "big filter=lfs\n")  # git-lfs is not configured
    with open(repo.folder / "big", "wb") as file:
        file.truncate(6 << 20)
    repo.run("init", "-q", "no commit")
    repo.run("init", "-q", "inner")
    Repository(repo.folder / "inner").save(x="")
    done = repo.work(opened)
    assert repo.names(done.tree) == [".gitattributes", "a", "b", "src/ok"]
    assert done.kept_out == [
        ".env (on the exclude list, it may hold a secret)",
        "big (6.0 MiB, over 5 MiB)",
        "inner/ (a repository of its own)",
        "no commit/ (a repository of its own)",
        "node_modules/ (on the exclude list)",
    ]


def test_what_is_tracked_stays_tracked(repo: Repository) -> None:
    """The exclude list is for new files: a tracked .env is the person's decision."""
    repo.save(**{".env": "1", "node_modules/x": "1"})
    opened = repo.open()
    repo.write(".env", "2")
    assert repository.changed(repo.project, opened.standing.head, repo.work(opened).tree) == [("M", ".env")]


def test_the_state_of_a_mission_stays_as_it_is_committed(repo: Repository) -> None:
    """Changed, deleted, replaced by a file, new, or committed by the agent; that of the mission itself is not named."""
    own, other, gone = ".harness/config.toml", "sub/.Harness/config.toml", "gone/.harness/hooks/x"
    repo.save(**{own: "1", other: "1", gone: "1"})
    opened = repo.open()
    (repo.folder / own).unlink()
    repo.save(**{other: "2", "sub/.Harness/new": "1", "new/.harness/config.toml": "1", "work": "1"})
    shutil.rmtree(repo.folder / "gone")
    repo.write("gone", "a file now")
    done = repo.work(opened)
    assert repository.changed(repo.project, opened.standing.head, done.tree) == [("A", "work")]
    assert [line.split(" (")[0] for line in done.kept_out] == ["new/.harness/", "sub/.Harness/", gone, other]


def test_before_the_first_commit_the_tree_is_what_is_new(empty: Repository) -> None:
    """There is no index to copy."""
    empty.write("mine")
    opened = empty.open()
    empty.write("new")
    made = empty.settle(opened)
    assert empty.names(made) == ["new"]
    assert empty.run("rev-list", "--parents", "main") == made


def test_a_lost_index_is_rebuilt(repo: Repository) -> None:
    """A power cut may lose the copy and may leave the lock of a killed git."""
    repo.save(**{".gitignore": "a\n", ".env": "tracked"})
    opened = repo.open()
    os.unlink(repo.index)
    Path(repo.index + ".lock").write_text("")
    assert repo.work(opened).tree == opened.standing.tree


def test_conflict_markers_are_the_files_content(repo: Repository) -> None:
    """A role that runs during a merge gets a tree, not an error."""
    conflict(repo)
    tree = repo.work(repo.open()).tree
    assert "<<<<<<<" in repo.run("show", tree + ":a")
    (repo.folder / "a").unlink()
    assert repo.names(repo.work(repo.open()).tree) == ["b"]


def test_a_change_in_the_same_tick_as_the_copy_is_seen(repo: Repository) -> None:
    """Same size, same time as at the last `git add`: git looks closer, if the copy is as old as the index."""
    repo.save(a="1\n")
    index = os.stat(repo.folder / ".git" / "index")
    os.utime(repo.folder / "a", ns=(index.st_mtime_ns, index.st_mtime_ns))
    repo.run("update-index", "--refresh")
    os.utime(repo.folder / ".git" / "index", ns=(index.st_mtime_ns, index.st_mtime_ns))
    opened = repo.open()
    with open(repo.folder / "a", "r+") as file:
        file.write("2\n")
    os.utime(repo.folder / "a", ns=(index.st_mtime_ns, index.st_mtime_ns))
    assert repo.run("show", repo.work(opened).tree + ":a") == "2"


def test_submodules_stay_as_they_are(repo: Repository, tmp_path: Path) -> None:
    """Neither a moved nor a dirty submodule stops a run or enters a commit."""
    library = Repository(tmp_path / "library")
    library.folder.mkdir()
    library.run("init", "-q", "-b", "main")
    library.save(x="1")
    repo.run("submodule", "--quiet", "add", "../library", "sub")
    repo.save()
    opened = repo.open()
    Repository(repo.folder / "sub").save(x="2")
    repo.write("sub/dirt")
    assert repository.dirty(repo.project) == []
    repo.save()
    assert repo.work(opened).tree == opened.standing.tree
    shutil.rmtree(repo.folder / "sub")
    assert repo.work(opened).tree == opened.standing.tree
