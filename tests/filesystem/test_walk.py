"""Promises of harness/filesystem/_walk.py: what is ignored is what ripgrep and git ignore, and no link is followed."""

from __future__ import annotations

import gc
import os
import subprocess
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.filesystem._root import Root
from harness.filesystem._walk import DEEPEST, order, walk
from tests import crash

PATHS = [
    f"{folder}{name}"
    for folder in ("", "a/", "b/", "a/b/", "a/b/c/", "b/a/")
    for name in ("x", "y.log", "z.txt", "x.d/q", "keep.log")
]
LINES = [
    *(
        "*.log",
        "!keep.log",
        "*.txt",
        "*.txt ",
        "/x",
        "x",
        "c/",
        "/b/",
        "x.d/",
        "a/b/",
        "/a/b",
        "**/q",
        "a/*.txt",
        "b/a/x",
    ),
    *("[xy]*", "?.txt", "k*", "[!x].txt", "# a", "", r"\!a", "[a", "!", "\\"),
]
RULES = st.lists(st.sampled_from(LINES), max_size=4)


def resolve_dots(root: Path, path: str = ".", *, hidden: bool = False) -> list[str]:
    """The files of a walk."""
    walked = walk(Root(str(root)), [name for name in path.split("/") if name != "."], {}, hidden=hidden)
    return sorted((found.path + one.name for found in walked for one in found.files), key=order)


def shown(output: str) -> list[str]:
    """The files of a list, sorted, without hidden ones."""
    return sorted(
        (name for line in output.splitlines() if (name := line.removeprefix("./"))[0] != "." and "/." not in name),
        key=order,
    )


def lay(root: Path, rules: dict[str, list[str]]) -> None:
    """The tree, with these lines for the .gitignore of each folder."""
    for path in PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("hit\n")
    for folder in ("", "a/", "a/b/"):
        (root / folder / ".gitignore").write_text("\n".join(rules.get(folder, [])) + "\n")


@settings(
    max_examples=500 if crash.TORTURE else 12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(top=RULES, below=RULES, deep=RULES)
def test_what_is_ignored_is_what_git_ignores(tmp_path: Path, top: list[str], below: list[str], deep: list[str]) -> None:
    """For lines as people write them, in any folder, from the root on."""
    root = tmp_path / "root"
    if not (root / ".git").exists():
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    lay(root, {"": top, "a/": below, "a/b/": deep})
    git = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert resolve_dots(root) == shown(git)


def test_a_walk_begins_anywhere_and_the_rules_above_hold(tmp_path: Path) -> None:
    """A folder that is itself ignored is walked where it is named, with the rules in it alone."""
    lay(tmp_path, {"": ["*.log", "/b/", "/a/b/c/x"], "a/": ["!keep.log"]})
    assert resolve_dots(tmp_path, "a/b") == [
        "a/b/c/keep.log",
        "a/b/c/x.d/q",
        "a/b/c/z.txt",
        "a/b/keep.log",
        "a/b/x",
        "a/b/x.d/q",
        "a/b/z.txt",
    ]
    (tmp_path / "b/a/.gitignore").write_text("*.d/\n")
    assert resolve_dots(tmp_path, "b") == sorted(
        (path for path in PATHS if path.startswith("b/") and path != "b/a/x.d/q"), key=order
    )


def test_links_pipes_and_hidden_names_are_left_out(tmp_path: Path) -> None:
    """And `.git` and `.harness` always."""
    for path in ("a", "d/.h/x", ".git/x", ".harness/x", ".e/f"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "out").symlink_to("/")
    (tmp_path / "round").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    assert resolve_dots(tmp_path) == ["a"]
    assert resolve_dots(tmp_path, hidden=True) == [".e/f", "a", "d/.h/x"]


def test_a_gitignore_that_is_no_file_says_nothing(tmp_path: Path) -> None:
    """A pipe blocks nobody; a link is not followed."""
    (tmp_path / "a").write_text("")
    os.mkfifo(tmp_path / ".gitignore")
    assert resolve_dots(tmp_path) == ["a"]
    (tmp_path / ".gitignore").unlink()
    (tmp_path / "rules").write_text("a\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    assert resolve_dots(tmp_path) == ["a", "rules"]


def test_paths_are_sorted_name_by_name() -> None:
    """So that what is in a folder stays together."""
    assert sorted(["a.b", "a/c", "a", "a-b"], key=order) == ["a", "a/c", "a-b", "a.b"]


def test_a_walk_that_is_given_up_leaves_nothing_open(tmp_path: Path) -> None:
    """Its folders are closed with it."""
    (tmp_path / "a/b/c").mkdir(parents=True)
    gc.collect()  # what other tests left
    before = len(os.listdir("/dev/fd"))
    walked = walk(Root(str(tmp_path)), [], {})
    for count, _ in enumerate(walked):
        if count:
            break
    del walked, _
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before


def test_a_tree_that_is_too_deep_is_named_and_not_walked_on(tmp_path: Path) -> None:
    """So a circular mount ends."""
    deep = "d/" * DEEPEST
    (tmp_path / deep / "d").mkdir(parents=True)
    (tmp_path / deep / "a").write_text("")
    (tmp_path / deep / "d/b").write_text("")
    skipped = dict[str, str]()
    found = [one.name for folder in walk(Root(str(tmp_path)), [], skipped) for one in folder.files]
    assert (found, skipped) == (["a"], {f"{deep}d": "too deep"})
