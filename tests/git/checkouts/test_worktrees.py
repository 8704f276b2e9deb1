"""A kept worktree is what its commit says, whatever a crash, an agent or a person left in it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.git import repository, settings
from harness.git.checkouts import worktrees
from tests import crash
from tests.git_repository import Repository, new


class Tree:
    """A project with a kept tree outside it."""

    def __init__(self, repo: Repository, base: Path) -> None:
        self.repo, self.project = repo, repo.project
        self.folder = base / "state" / "tree-1"
        self.private = str(base / "private")
        settings.use(self.project, settings.record(self.project), self.private)

    def ensure(self, commit: str = "", *, keep: bool = False) -> None:
        """As a run does at open."""
        worktrees.ensure(self.project, str(self.folder), commit or self.repo.head(), keep=keep)

    def git(self, *args: str) -> str:
        """What the agent's git says in the tree."""
        return Repository(self.folder).run(*args)

    def files(self) -> dict[str, str]:
        """The files in the tree, `.git` not."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and path.name != ".git")
        return {str(path.relative_to(self.folder)): path.read_text() for path in found}

    def admin(self) -> Path:
        """What git keeps of the tree."""
        return next((self.repo.folder / ".git/worktrees").iterdir())

    def assert_right(self, commit: str) -> None:
        """The tree is the commit, for the agent's git and for ours, and the project folder is as it was."""
        assert self.git("rev-parse", "HEAD") == commit
        assert self.git("status", "--porcelain", "--branch") == "## HEAD (no branch)"
        own = {"GIT_INDEX_FILE": worktrees.index(str(self.folder))}
        assert repository.run(str(self.folder), "write-tree", extra=own).decode().strip() == repository.tree_of(
            self.project, commit
        )
        assert str(self.folder) in self.repo.run("worktree", "list")
        assert self.repo.run("status", "--porcelain", "--untracked-files=no") == ""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with two files, one in a folder, and an ignored name."""
    made = new(tmp_path, monkeypatch)
    made.save(**{"a": "1\n", "d/b": "2\n", ".gitignore": "cache/\n.env\n"})
    return made


@pytest.fixture
def tree(repo: Repository, tmp_path: Path) -> Tree:
    """The tree, made."""
    made = Tree(repo, tmp_path)
    made.ensure()
    return made


def test_a_tree_is_a_worktree_of_the_project_at_the_commit(tree: Tree) -> None:
    """An agent's git works there; the branch of the person is not touched."""
    tree.assert_right(tree.repo.head())
    assert tree.files() == {"a": "1\n", "d/b": "2\n", ".gitignore": "cache/\n.env\n"}
    assert tree.repo.run("branch", "--show-current") == "main"


def test_a_tree_follows_to_the_next_commit_and_back(tree: Tree) -> None:
    """Changed, new and removed files; a folder that becomes a file."""
    first = tree.repo.head()
    tree.repo.run("rm", "-q", "-r", "d")
    second = tree.repo.save(d="a file now", a="3\n", new="x")
    tree.ensure(second)
    tree.assert_right(second)
    assert tree.files() == {"a": "3\n", "d": "a file now", "new": "x", ".gitignore": "cache/\n.env\n"}
    tree.ensure(first)
    tree.assert_right(first)
    assert "new" not in tree.files()


def test_what_a_run_left_goes_and_what_is_ignored_stays(tree: Tree) -> None:
    """Caches and what setup made are kept; edits, staged files, untracked files and nested repositories are not."""
    (tree.folder / "cache").mkdir()
    for name in ("cache/x", ".env", "new", "a"):
        (tree.folder / name).write_text("left")
    (tree.folder / "nested").mkdir()
    tree.git("init", "-q", "nested")
    tree.git("add", "new")
    tree.ensure()
    tree.assert_right(tree.repo.head())
    assert tree.files() == {"a": "1\n", "d/b": "2\n", ".gitignore": "cache/\n.env\n", "cache/x": "left", ".env": "left"}


def test_untracked_files_can_be_kept(tree: Tree) -> None:
    """A run that goes on where another was cut short finds its new files."""
    (tree.folder / "new").write_text("left")
    tree.ensure(keep=True)
    assert tree.files()["new"] == "left"


def test_a_folder_without_permissions_is_no_hindrance(tree: Tree) -> None:
    """Package managers make their caches read-only."""
    (tree.folder / "left/in").mkdir(parents=True)
    (tree.folder / "left/in/x").write_text("")
    (tree.folder / "left/in").chmod(0o500)
    tree.ensure()
    assert not (tree.folder / "left").exists()


def _removed(tree: Tree) -> None:
    shutil.rmtree(tree.folder)
    shutil.rmtree(tree.admin())
    tree.repo.run("worktree", "prune")


def _break_link(tree: Tree) -> None:
    (tree.folder / ".git").write_text(f"gitdir: {tree.repo.project}/.git\n")


def _link_folder(tree: Tree) -> None:
    (tree.folder / ".git").unlink()
    shutil.copytree(tree.repo.folder / ".git", tree.folder / ".git")


def _on_the_branch(tree: Tree) -> None:
    (tree.admin() / "HEAD").write_text("ref: refs/heads/main\n")


def _merging(tree: Tree) -> None:
    (tree.admin() / "MERGE_HEAD").write_text("0" * 40 + "\n")
    (tree.admin() / "rebase-merge").mkdir()


def _outside(tree: Tree) -> None:
    shutil.rmtree(tree.folder / "d")
    (tree.folder / "d").symlink_to(tree.repo.folder / "d")


def _replaced(tree: Tree) -> None:
    shutil.rmtree(tree.folder)
    tree.folder.symlink_to(tree.repo.folder)


def _unchanged(tree: Tree) -> None:
    tree.git("update-index", "--assume-unchanged", "a")
    (tree.folder / "a").write_text("x")


def _locked(tree: Tree) -> None:
    for path in (worktrees.index(str(tree.folder)) + ".lock", tree.admin() / "index.lock"):
        Path(path).write_text("")


DAMAGE: dict[str, Callable[[Tree], object]] = {
    "folder removed": lambda tree: shutil.rmtree(tree.folder),
    "git folder removed": lambda tree: shutil.rmtree(tree.admin()),
    "removed and pruned": _removed,
    ".git of the tree leads to the project": _break_link,
    ".git of the tree is a repository": _link_folder,
    ".git of the tree is gone": lambda tree: (tree.folder / ".git").unlink(),
    "git folder leads elsewhere": lambda tree: (tree.admin() / "commondir").write_text("/tmp\n"),
    "back link is torn": lambda tree: (tree.admin() / "gitdir").write_text(""),
    "on the person's branch": _on_the_branch,
    "in a merge and a rebase": _merging,
    "our index is torn": lambda tree: Path(worktrees.index(str(tree.folder))).write_text("DIRC"),
    "our index is gone": lambda tree: os.unlink(worktrees.index(str(tree.folder))),
    "its index is torn": lambda tree: (tree.admin() / "index").write_text("DIRC"),
    "a folder leads out of the tree": _outside,
    "the tree is a link to the project": _replaced,
    "marked as unchanged": _unchanged,
    "stale locks": _locked,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_tree_is_made_right(tree: Tree, damage: str) -> None:
    """Whatever a crash or an agent left; the project's own files are not touched."""
    DAMAGE[damage](tree)
    tree.ensure()
    tree.assert_right(tree.repo.head())
    assert tree.files() == {"a": "1\n", "d/b": "2\n", ".gitignore": "cache/\n.env\n"}
    assert (tree.repo.folder / "d/b").read_text() == "2\n"


def test_an_agent_that_commits_moves_no_branch_of_the_person(tree: Tree) -> None:
    """Its commits are its own; the next run begins at the commit that is asked for."""
    head = tree.repo.head()
    (tree.folder / "a").write_text("x")
    tree.git("commit", "-q", "-a", "-m", "mine")
    assert (tree.repo.head(), tree.repo.run("rev-parse", "main")) == (head, head)
    tree.ensure()
    tree.assert_right(head)


def test_the_work_of_a_tree_becomes_a_commit_without_touching_the_person(tree: Tree) -> None:
    """`repository.working_tree` takes the tree as it takes a project, with our index."""
    (tree.folder / "new").write_text("x")
    (tree.folder / "a").write_text("2\n")
    where = str(tree.folder)
    done = repository.working_tree(where, index=worktrees.index(where), parent=tree.repo.head(), leave=())
    assert sorted(path for _, path in repository.changed(where, tree.repo.head(), done.tree)) == ["a", "new"]
    assert tree.repo.run("status", "--porcelain") == ""


def test_a_removed_tree_leaves_nothing_and_may_be_made_again(tree: Tree) -> None:
    """Twice is no fault."""
    for _ in range(2):
        worktrees.remove(tree.project, str(tree.folder))
    assert tree.repo.run("worktree", "list").count("\n") == 0
    assert [path.name for path in tree.folder.parent.iterdir()] == ["tree-1.lock"]
    tree.ensure()
    tree.assert_right(tree.repo.head())


def test_a_person_who_prunes_does_not_remove_a_tree(tree: Tree) -> None:
    """Also while its disk is not there."""
    shutil.move(tree.folder, str(tree.folder) + ".away")
    tree.repo.run("worktree", "prune")
    shutil.move(str(tree.folder) + ".away", tree.folder)
    tree.assert_right(tree.repo.head())


def test_two_at_once_both_have_their_tree(tree: Tree) -> None:
    """The same tree one after the other, others beside it."""
    second = str(tree.folder.parent / "tree-2")
    head = tree.repo.head()
    pids = [crash.start(lambda: worktrees.ensure(tree.project, str(tree.folder), head)) for _ in range(3)]
    pids += [crash.start(lambda: worktrees.ensure(tree.project, second, head)) for _ in range(3)]
    assert [crash.end(pid) for pid in pids] == [0] * 6
    tree.assert_right(head)
    assert (Path(second) / "a").read_text() == "1\n"


# killed anywhere


@pytest.mark.parametrize("count", crash.sampled([2, 50], lambda count: count == 50))
def test_killed_at_any_moment_and_done_again_the_tree_is_right(repo: Repository, tmp_path: Path, count: int) -> None:
    """At every git call and every rename, for the first making and for the way to another commit."""
    first = repo.save(**{f"f{number}": "1\n" for number in range(count)})
    second = repo.save(**{f"f{number}": "2\n" for number in range(1, count)}, g="new")
    tree = Tree(repo, tmp_path)

    def attempt() -> None:
        tree.ensure(first)
        tree.ensure(second)

    for _ in crash.kills(attempt):
        tree.ensure(second)
        tree.assert_right(second)
        worktrees.remove(tree.project, str(tree.folder))


# what git ignores


def ignoring(tree: Tree, *rules: str) -> list[str]:
    """A tree whose commit has these rules in .gitignore: what git ignores there."""
    tree.repo.save(**{".gitignore": "".join(f"{rule}\n" for rule in rules)})
    tree.ensure()
    return [*worktrees.ignored(str(tree.folder))]


def written(tree: Tree, before: list[str], *names: str) -> list[str]:
    """What is said after these files, or folders of many files, were written."""
    for name in names:
        path = tree.folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        for one in [path / str(number) for number in range(5)] if name.endswith("/") else [path]:
            one.write_text("")
    return worktrees.ignored_since(str(tree.folder), before)


def test_what_git_ignores_is_named_by_its_rule_files_before_folders(tree: Tree) -> None:
    """A folder of few files goes by them; what was there before is not named, unless the folder got another file."""
    assert ignoring(tree, "/*", "!/src/", "*.log") == []
    assert written(tree, [], "tools/gen.sh", "src/x", "src/deep/y.log") == [
        'ignored by .gitignore:3 "*.log": src/deep/y.log',
        'ignored by .gitignore:1 "/*": tools/gen.sh',
    ]
    before = [*worktrees.ignored(str(tree.folder))]
    assert written(tree, before) == []
    assert written(tree, before, "build/", "tools/more.sh") == ['ignored by .gitignore:1 "/*": tools/more.sh, build/']
    assert worktrees.ignored_since(str(tree.folder), None) == [], "nobody looked before"


def test_three_names_a_rule_and_six_rules_are_shown_and_the_rest_counted(tree: Tree) -> None:
    """However much a run wrote, the lines stay few and short."""
    before = ignoring(tree, *(f"{letter}.*" for letter in "cdefghij"))
    found = written(tree, before, *(f"{letter}.{number}" for letter in "cdefghij" for number in range(5)))
    assert found[0] == 'ignored by .gitignore:1 "c.*": c.0, c.1, c.2 and 2 more'
    assert (len(found), found[-1]) == (7, "ignored by 2 more rules")


def test_packages_and_caches_are_not_named(tree: Tree) -> None:
    """No commit takes the packages, and a tool can make the caches again: both would hide what counts."""
    before = ignoring(tree, "node_modules", "__pycache__/", "/.*_cache/", "lib/")
    made = ("node_modules/x/index.js", "pkg/__pycache__/b.pyc", ".x_cache/CACHEDIR.TAG", ".x_cache/deep/y")
    assert written(tree, before, *made, "lib/real.py") == ['ignored by .gitignore:4 "lib/": lib/real.py']


ODD = (
    "\n",
    "\t",
    " ",
    '"',
    "'",
    "\\",
    "\x1b[31m",
    "\x7f",
    "\r",
    ":",
    "!",
    "*",
    "#",
    ", ",
    "\udcff",
    "\u202e",
    "\ufeff",
    "é",
    "\U000e0041",
)


def test_every_name_of_an_ignored_file_is_shown_safely_on_its_line(tree: Tree) -> None:
    """Line breaks, quotes, bytes that are not UTF-8, control and hidden characters, what git takes for a pattern: first, within
    and last in a name."""
    before = ignoring(tree, "/*")
    for name in (form.format(odd) for odd in ODD for form in ("{}a", "a{}b", "a{}")):
        (line,) = written(tree, before, name)
        assert line.startswith('ignored by .gitignore:1 "/*": '), name
        assert line.encode().decode().replace("\t", " ").isprintable(), name
        (tree.folder / name).unlink()


# what is carried


def test_named_ignored_files_are_copied_with_their_mode(tree: Tree) -> None:
    """And copied again when they changed."""
    for text in ("KEY=1", "KEY=2"):
        tree.repo.write(".env", text)
        (tree.repo.folder / ".env").chmod(0o600)
        tree.repo.write("cache/deep/x", text)
        assert worktrees.carry(tree.project, str(tree.folder), [".env", "cache/deep/x"]) == []
        assert (tree.folder / ".env").read_text() == (tree.folder / "cache/deep/x").read_text() == text
    assert (tree.folder / ".env").stat().st_mode & 0o777 == 0o600
    tree.assert_right(tree.repo.head())
    assert worktrees.carry(tree.project, str(tree.folder), []) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../x", "not the name"),
        ("/etc/passwd", "not the name"),
        (".git/config", "not to be copied"),
        ("a", "git does not ignore it"),
        ("cache/none", "No such file"),
        ("cache/link", "symbolic links"),
        ("cache/pipe", "it is not a file"),
        ("cache/folder", "it is not a file"),
        ("cache/in/x", "Not a directory"),
    ],
)
def test_what_cannot_be_carried_is_named(tree: Tree, tmp_path: Path, name: str, why: str) -> None:
    """Links lead nowhere, on neither side."""
    (tmp_path / "x").write_text("outside")
    tree.repo.write("cache/x")
    (tree.repo.folder / "cache/link").symlink_to(tmp_path / "x")
    (tree.repo.folder / "cache/in").symlink_to(tmp_path)
    os.mkfifo(tree.repo.folder / "cache/pipe")
    (tree.repo.folder / "cache/folder").mkdir()
    (line,) = worktrees.carry(tree.project, str(tree.folder), [name])
    assert line.startswith(f"{name}: ")
    assert why in line


def test_a_file_that_a_rule_excepts_is_not_carried(tree: Tree) -> None:
    """Git does not ignore it, though a rule matches."""
    ignoring(tree, "*.env", "!kept.env")
    tree.repo.write("kept.env")
    (line,) = worktrees.carry(tree.project, str(tree.folder), ["kept.env"])
    assert "git does not ignore it" in line


def test_a_link_in_the_tree_is_not_written_through(tree: Tree, tmp_path: Path) -> None:
    """An agent that lays one in the place of a carried file, or of its folder, gains nothing."""
    (tmp_path / "target").write_text("theirs")
    (tree.folder / ".env").symlink_to(tmp_path / "target")
    (tree.folder / "cache").symlink_to(tmp_path)
    tree.repo.write(".env", "KEY")
    tree.repo.write("cache/target", "KEY")
    (line,) = worktrees.carry(tree.project, str(tree.folder), [".env", "cache/target"])
    assert line.startswith("cache/target: in the tree: ")
    assert ((tmp_path / "target").read_text(), (tree.folder / ".env").read_text()) == ("theirs", "KEY")


# what it costs


@pytest.mark.skipif(not crash.TORTURE, reason="it is no promise but a measurement: HARNESS_TORTURE=1 runs it")
def test_an_unchanged_tree_of_five_thousand_files_is_cheap(
    repo: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, because a bound in seconds would measure the machine; no file is written again."""
    repo.save(**{f"d{number % 50}/f{number}": f"{number}\n" for number in range(5000)})
    tree = Tree(repo, tmp_path)
    begun = time.monotonic()
    tree.ensure()
    made = time.monotonic() - begun
    before = {path: path.stat().st_ino for path in tree.folder.rglob("f*")}
    begun = time.monotonic()
    tree.ensure()
    again = time.monotonic() - begun
    with capsys.disabled():
        sys.stdout.write(f"\n  ensure, 5,000 files: made in {made * 1000:.0f} ms, unchanged {again * 1000:.0f} ms\n")
    assert len(before) == 5000
    assert {path: path.stat().st_ino for path in tree.folder.rglob("f*")} == before


def test_trees_of_a_killed_run_are_forgotten_and_others_are_not(tree: Tree, tmp_path: Path) -> None:
    """Those whose path begins so, although git keeps them locked, and what a kill left before a path was written."""
    gone = tmp_path / "gone-1"
    worktrees.ensure(tree.project, str(gone / "sweep"), tree.repo.head())
    shutil.rmtree(gone)
    known = Path(tree.project, ".git", "worktrees")
    (known / "harness-0").mkdir()
    (known / "mine").mkdir()
    assert len(list(known.iterdir())) == 4
    worktrees.forget_below(tree.project, str(tmp_path / "gone-"), empty=True)
    assert sorted(path.name for path in known.iterdir() if path.name != "mine") == [
        Path(worktrees._git_folder(tree.project, str(tree.folder))).name
    ]
    assert (known / "mine").exists()
    tree.assert_right(tree.repo.head())
