"""What a commit has below some paths, and who changed a path last."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.git import contents
from harness.git.repository import GitFailed
from tests import git_repository

RUN = "F-001: work\n\nHarness-Run: r1\nHarness-Outcome: implemented\n"
OURS = "Merge branch 'main'\n\nwhat a person did there\n"


def test_files_below_paths_are_listed_and_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with any characters, taken literally; nothing where there is nothing."""
    made = git_repository.new(tmp_path, monkeypatch)
    head = made.save(**{"a/b c.md": "one\n", "a/*": "star\n", "d": "", "e/f": "no\n"})
    found = contents.entries(made.project, head, ["a", "d", "none"])
    assert [(path, one.size) for path, one in found.items()] == [("a/*", 5), ("a/b c.md", 4), ("d", 0)]
    assert [*contents.entries(made.project, head, ["a/*"])] == ["a/*"]
    read = contents.blobs(made.project, [one.blob for one in found.values()])
    assert [read[one.blob] for one in found.values()] == [b"star\n", b"one\n", b""]
    assert contents.entries(made.project, head, []) == contents.blobs(made.project, []) == {}
    with pytest.raises(GitFailed, match="no longer"):
        contents.blobs(made.project, ["1" * 40])


def test_a_partial_clone_is_listed_without_a_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git would fetch each file that it lacks, one by one."""
    made = git_repository.new(tmp_path, monkeypatch)
    head = made.save(a="a\n", b="b\n")
    made.run("config", "uploadpack.allowFilter", "true")
    clone = str(tmp_path / "clone")
    made.run("clone", "-q", "--bare", "--filter=blob:none", f"file://{made.project}", clone)
    assert [*contents.entries(clone, head, ["."], sizes=False)] == ["a", "b"]
    assert made.run("-C", clone, "rev-list", "--objects", "--missing=print", head).count("?") == 2


def test_files_of_one_name_are_found_below_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any depth, but not at its top."""
    made = git_repository.new(tmp_path, monkeypatch)
    head = made.save(**{"n.md": "1", "a/n.md": "2", "a/b/n.md": "3", "a b/n.md": "4", "a/xn.md": "5"})
    assert contents.named(made.project, head, "n.md", "") == ["a b/n.md", "a/b/n.md", "a/n.md"]
    assert contents.named(made.project, head, "n.md", "a/") == ["a/b/n.md", "a/n.md"]


def test_the_last_change_says_whose_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person's, a run's, or a merge of ours in which both sides' lines were joined."""
    made = git_repository.new(tmp_path, monkeypatch)
    made.save(a="".join(f"{n}\n" for n in range(20)), b="b\n")
    base = made.head()
    changed = contents.last_change(made.project, base, "a")
    assert changed and not changed.by_run and not changed.merge_of_ours
    made.write("a", "run\n" + "".join(f"{n}\n" for n in range(1, 20)))
    made.run("commit", "-qam", RUN)
    ran = contents.last_change(made.project, made.head(), "a")
    assert ran and ran.by_run and ran.parents == [base]
    made.run("switch", "-qc", "person", base)
    made.write("a", "".join(f"{n}\n" for n in range(19)) + "person\n")
    made.run("commit", "-qam", "mine")
    mine = made.head()
    made.run("switch", "-q", "-")
    made.run("merge", "-q", "--no-ff", "-m", OURS, "person")
    merged = contents.last_change(made.project, made.head(), "a")
    assert merged and merged.merge_of_ours and merged.parents[1] == mine
    assert contents.last_change(made.project, made.head(), "none") is None
