"""Refs and commits by name: look up, compare, and move several atomically. Calls as in `repository`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.base.encoding import shell_word
from harness.git import dotgit, settings
from harness.git.repository import BRANCHES, GitFailed, Position, run

# Followed by the run's id. KEEP: its commit, set when the mission's position moves to it, or that of its snapshot, to
# protect it from git gc. PARTIAL: its unfinished work.
KEEP, PARTIAL = "refs/harness/keep/", "refs/harness/partial/"
IN_THE_WAY = "The branch {branch} has no place beside your branch {name}. Rename yours: git branch -m {word} NEWNAME"


def position_of(project: str, name: str) -> Position | None:
    """Commit and tree of a ref or a commit, without a branch; None if absent. 1 call."""
    code, out, _ = settings.call(project, "rev-parse", "-q", "--verify", f"{name}^{{commit}}")
    if code:
        return None
    head = out.decode().strip()
    return Position(head=head, branch="", tree=run(project, "rev-parse", f"{head}^{{tree}}").decode().strip())


def positions(project: str, *prefixes: str) -> dict[str, Position]:
    """{ref: its position, without a branch} of the refs that are, or lie below, one of `prefixes` (full names). 1 call."""
    out = run(project, "for-each-ref", "--format=%(objectname) %(tree) %(refname)", *prefixes)
    rows = [line.split(" ", 2) for line in out.decode("utf-8", "replace").split("\n") if line]
    return {name: Position(head=head, branch="", tree=tree) for head, tree, name in rows}


def require_free(project: str, branch: str) -> None:
    """Raise GitFailed if a branch, perhaps one without a commit, has a name above or below that of `branch`. 1 call."""
    head = os.fsdecode(dotgit.head(project)).removeprefix("ref: ")
    for ref in (*positions(project, BRANCHES + branch.partition("/")[0]), head):
        name = ref.removeprefix(BRANCHES)
        if name.startswith(f"{branch}/") or branch.startswith(f"{name}/"):
            raise GitFailed(IN_THE_WAY.format(branch=branch, name=name, word=shell_word(name)))


def is_ancestor(project: str, older: str, newer: str) -> bool:
    """Whether `newer` contains the commit `older`. 1 call."""
    return settings.call(project, "merge-base", "--is-ancestor", older, newer)[0] == 0


def set_all(project: str, wanted: Mapping[str, str]) -> None:
    """Set these refs (full names) to these commits, atomically and durably. 1 call."""
    move(project, *wanted.items())


def set_one(project: str, ref: str, commit: str) -> None:
    """Set `ref` (full name, refs/…) to `commit`, durably. 1 call."""
    move(project, (ref, commit))


def move(project: str, *rows: tuple[str, ...], why: str = "") -> None:
    """Move refs atomically and durably: rows of (full name, new) or (full name, new, expected old); `why` is for their
    logs. Stale locks of killed git processes are removed first. 1 call."""
    words = ("update-ref", *(("-m", why) if why else ()), "--stdin")
    names, lines = [row[0] for row in rows], "".join(f"update {' '.join(row)}\n" for row in rows)
    try:
        run(project, *words, stdin=os.fsencode(lines))
    except GitFailed:
        if not any(dotgit.ref_locks(project, name) for name in names):
            raise
        dotgit.clear_unheld(project, names)
        run(project, *words, stdin=os.fsencode(lines))
    dotgit.sync(project, *names)


def swap(project: str, ref: str, new: str, old: str, *also: str) -> bool:
    """Move a ref (full name) from `old` to `new`, and set `also` to it, atomically and durably; False if it is no
    longer at `old` (compare-and-set). 1 call."""
    try:
        move(project, (ref, new, old), *((one, new) for one in also))
    except GitFailed:
        if dotgit.commit_of(project, ref) == old:  # a different fault
            raise
        return False
    return True
