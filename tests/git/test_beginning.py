"""A new repository gets a first commit of the files that are named."""

from __future__ import annotations

from pathlib import Path

from harness.git import beginning, repository
from tests.missions import House


def test_a_folder_below_a_repository_is_inside_it(bare: House, tmp_path: Path) -> None:
    """At any depth; a folder beside it is not."""
    bare.repository()
    assert beginning.is_inside(str(bare.project))
    assert beginning.is_inside(str(bare.project / "not" / "there"))
    assert not beginning.is_inside(str(tmp_path))


def test_the_first_commit_has_these_files_and_nothing_else(bare: House) -> None:
    """What else lies there stays as it is; whoever has no name in git's settings gets ours."""
    for name in ("SPEC.md", "sub/one.md", "mine.txt"):
        bare.write(name)
    repository.init(str(bare.project))
    beginning.first_commit(str(bare.project), ["SPEC.md", "sub/one.md"], "Begin")
    assert bare.git("show", "--name-only", "--format=%s %an").split() == ["Begin", "harness", "SPEC.md", "sub/one.md"]
    assert bare.git("status", "--porcelain") == "?? mine.txt"
    assert bare.git("branch", "--show-current") == "main"
