"""What a person did meanwhile and what runs did become one: a person's edits as a commit of theirs, then a merge.

No working folder is touched, and a person's index only as their own `git commit -a` would do it.
"""

from __future__ import annotations

import os

from harness.base.record import Record
from harness.git import dotgit, landing, repository, settings
from harness.git.repository import BRANCHES, GitFailed

SHOWN = 3


class Taken(Record):
    """`tip`: where the mission's branch is; `commit`: the person's edits, "" for none; `note`: why they were not taken."""

    tip: str
    commit: str = ""
    note: str = ""


class Merged(Record):
    """`commit` holds both sides, "" where `conflicts` names what a person must decide."""

    commit: str
    conflicts: list[str] = []


def take_edits(project: str, branch: str) -> Taken:
    """What a person changed in tracked files of the project folder is a commit on the mission's branch, with their name.

    As `git commit -a`: untracked files stay untracked, afterwards nothing is staged, and no file is written. Nothing is
    taken where another branch is checked out, nor in the middle of a merge, a rebase or a bisect. 5-8 calls, 2 for none.
    """
    note, ref = landing.finish(project), BRANCHES + branch
    if not _is_here(project, ref) or landing.unfinished(project) or not _edited(project):
        return Taken(tip=landing.tip(project, branch), note=note)
    with landing.IndexLock(project) as lock:  # from here on no git of theirs switches or commits
        tip, busy = landing.tip(project, branch), landing.under_way(project)
        if repository.run(project, "ls-files", "-u", "-z"):
            busy = busy or "a merge with conflicts"
        busy = busy or ("" if lock.taken else f"a git of yours, {lock.path} exists,")
        if busy:
            return Taken(tip=tip, note=f"Edits in {project} are not taken: {busy} is under way. End it first.")
        made = _commit(project, ref, tip, lock) if tip and _is_here(project, ref) else ""
        return Taken(tip=made or tip, commit=made, note=note)


def _is_here(project: str, ref: str) -> bool:
    """Whether the project folder has the branch checked out. 0 calls."""
    return dotgit.head(project) == os.fsencode(f"ref: {ref}")


def _edited(project: str) -> bool:
    return bool(landing.under_way(project) or repository.dirty(project))


def _commit(project: str, ref: str, tip: str, lock: landing.IndexLock) -> str:
    """The edits as a commit, "" for none; the new index takes the old one's place once the branch has it."""
    extra, names, made = lock.copy(), repository.dirty(project), ""
    tree = repository.stage_tracked(project, extra)
    if tree != repository.tree_of(project, tip):
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        subject = " ".join(f"Edits in the project folder: {', '.join(names[:SHOWN])}{more}".split())
        made = repository.commit_tree(project, tree, [tip], subject + "\n", settings.person(project))
        repository.run(project, "update-ref", "-m", "harness: edits of a person", ref, made, tip)
        dotgit.sync(project, ref)
    lock.install()
    return made


def merge(project: str, ours: str, theirs: str, message: str) -> Merged:
    """One commit that holds what runs did (`ours`) and what is on the person's side (`theirs`); no ref and no file changes.

    It is one of the two where that holds the other. 1-5 calls.
    """
    base = settings.call(project, "merge-base", ours, theirs)[1].decode().strip()
    if theirs in (base, ours) or base == ours:
        return Merged(commit=ours if theirs in (base, ours) else theirs)
    joined = tree_of(project, ours, theirs, "--allow-unrelated-histories")
    if joined.conflicts:
        return Merged(commit="", conflicts=joined.conflicts)
    return Merged(commit=repository.commit_tree(project, joined.tree, [ours, theirs], message.rstrip("\n") + "\n"))


class Joined(Record):
    """The `tree` that holds both sides, "" where `conflicts` names the paths that both changed."""

    tree: str
    conflicts: list[str] = []


def tree_of(project: str, ours: str, theirs: str, *words: str) -> Joined:
    """The tree of a merge of two commits; nothing is changed. 1 call. `words`: more options of git merge-tree."""
    asked = ("merge-tree", "--write-tree", "-z", "--no-messages", *words, ours, theirs)
    code, out, err = settings.call(project, *asked)
    if code not in (0, 1):
        raise GitFailed(f"git merge-tree failed in {project} (exit {code}): {err.decode('utf-8', 'replace').strip()}")
    tree, *entries = os.fsdecode(out).split("\0")
    if code == 0:
        return Joined(tree=tree)
    return Joined(tree="", conflicts=list(dict.fromkeys(entry.split("\t", 1)[1] for entry in entries if entry)))
