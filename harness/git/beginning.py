"""A repository that is new: whether a folder needs one, and its first commit."""

from __future__ import annotations

import os

from harness.git import repository


def is_inside(folder: str) -> bool:
    """Whether the folder lies in a repository, at its top or below. 0 calls."""
    above = [folder]
    while (parent := os.path.dirname(above[-1])) != above[-1]:
        above.append(parent)
    return any(os.path.lexists(os.path.join(one, ".git")) for one in above)


def first_commit(project: str, names: list[str], message: str) -> None:
    """Commit these files, and nothing else, on `main` of a repository without a commit. 6 calls."""
    repository.run(project, "add", "--", *names)
    tree = repository.run(project, "write-tree").decode().strip()
    repository.commit(project, tree=tree, parent="", branch="main", message=message)
