"""Refs and commits by name: where they are, what lies between them, and moving several at once. Calls as in `repository`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.git import dotgit, settings
from harness.git.repository import GitFailed, Position, run

# With the run's id behind. KEEP: its commit, set as the mission's position moves to it, or that of its snapshot, which git gc
# then keeps. PARTIAL: its work where that is unfinished.
KEEP, PARTIAL = "refs/harness/keep/", "refs/harness/partial/"


def position_of(project: str, name: str) -> Position | None:
    """Commit and tree of a ref or a commit, without a branch; None where there is none. 1 call."""
    code, out, _ = settings.call(project, "rev-parse", "-q", "--verify", f"{name}^{{commit}}")
    if code:
        return None
    head = out.decode().strip()
    return Position(head=head, branch="", tree=run(project, "rev-parse", f"{head}^{{tree}}").decode().strip())


def positions(project: str, *prefixes: str) -> dict[str, Position]:
    """{ref: its position, without a branch} of the refs that are, or lie below, one of `prefixes` (whole names). 1 call."""
    out = run(project, "for-each-ref", "--format=%(objectname) %(tree) %(refname)", *prefixes)
    rows = [line.split(" ", 2) for line in out.decode("utf-8", "replace").split("\n") if line]
    return {name: Position(head=head, branch="", tree=tree) for head, tree, name in rows}


def is_ancestor(project: str, older: str, newer: str) -> bool:
    """Whether `newer` holds the commit `older`. 1 call."""
    return settings.call(project, "merge-base", "--is-ancestor", older, newer)[0] == 0


def set_all(project: str, wanted: Mapping[str, str]) -> None:
    """Set these refs (whole names) to these commits, all or none, durably. 1 call."""
    move(project, *wanted.items())


def set_one(project: str, ref: str, commit: str) -> None:
    """Set `ref` (whole name, refs/…) to `commit`, durably. 1 call."""
    move(project, (ref, commit))


def move(project: str, *rows: tuple[str, ...], why: str = "") -> None:
    """Move refs: (whole name, to) or (whole name, to, from where alone) each, all or none, durably; `why` is for their logs. A
    lock on one that a git left which was killed, of another run maybe, goes first. 1 call."""
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
    """Move a ref (whole name) from `old` to `new`, and set those of `also` to it, all or none, durably; False where it is
    elsewhere by now (compare-and-set). 1 call."""
    try:
        move(project, (ref, new, old), *((one, new) for one in also))
    except GitFailed:
        if dotgit.commit_of(project, ref) == old:  # another fault
            raise
        return False
    return True
