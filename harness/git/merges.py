"""Merges a person's commits with those of runs; commits a person's edits in their name, only where they ask for it.

Working folders stay as they are; a person's index changes only as their own `git commit -a` would change it.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from harness.base.encoding import few, shell_word
from harness.base.record import Record
from harness.git import landing, refs, repository, settings
from harness.git.repository import BRANCHES, GitFailed
from harness.state import files, names


class PersonEdits(Record):
    """`commit`: the person's edits, or ""; `note`: which files, or why they were not taken."""

    commit: str = ""
    note: str = ""


class MergeCommit(Record):
    """`commit` contains both sides; "" if `conflicts` lists what a person must decide."""

    commit: str
    conflicts: list[str] = []


def take_edits(project: str, branch: str) -> PersonEdits:
    """Commit a person's changes to tracked files of the mission's folder on the mission's branch, in their name;
    SPEC.md gets its own commit. Changes elsewhere in the repository stay uncommitted. Like `git commit -a`: untracked
    files stay untracked, nothing stays staged, and no file is written. Takes nothing if another branch is checked out,
    or during a merge, rebase or bisect. 12-14 calls, 2 without edits; 5 more if SPEC.md has changed too.
    """
    note, ref = landing.finish(project), BRANCHES + branch
    if not landing.is_here(project, branch):
        return PersonEdits(note=f"Edits wait while another branch is checked out: git switch {shell_word(branch)}")
    if landing.unfinished(project) or not _edited(project):
        return PersonEdits(note=note)
    with landing.IndexLock(project) as lock:  # from here on the person's git cannot switch or commit
        tip, busy = landing.tip(project, branch), landing.under_way(project)
        if repository.run(project, "ls-files", "-u", "-z"):
            busy = busy or "a merge with conflicts"
        busy = busy or ("" if lock.taken else f"a git of yours, {lock.path} exists,")
        if busy:
            return PersonEdits(note=f"Edits in {project} are not taken: {busy} is under way. End it first.")
        made = _commit(project, ref, tip, lock) if tip and landing.is_here(project, branch) else ""
    if made:
        paths = [path for _, path in repository.changed(project, tip, made)]
        note = "; ".join(filter(None, [note, f"taken into the mission, your uncommitted edits of: {', '.join(paths)}"]))
    return PersonEdits(commit=made, note=note)


def words(project: str, branch: str, commit: str, how: str = "") -> str:
    """The command that merges the commit into the branch, for a person. 0 calls."""
    return f"{'' if landing.is_here(project, branch) else f'git switch {shell_word(branch)} && '}git merge {how}{commit[:12]}"


def _edited(project: str) -> bool:
    below = settings.prefix(project)
    return bool(landing.under_way(project)) or any(name.startswith(below) for name in repository.dirty(project))


def spec_of(project: str) -> str:
    """The name of the mission's SPEC.md in this working folder."""
    return settings.prefix(project) + names.ASKED_SPEC


def _commit(project: str, ref: str, tip: str, lock: landing.IndexLock) -> str:
    """Commit the edits and return the last commit, or ""; replaces the index once the branch has them."""
    extra, spec, at = lock.copy(), spec_of(project), tip
    rows = repository.stage_tracked(project, extra, settings.prefix(project))
    for some in ([row for row in rows if row[0] == spec], [row for row in rows if row[0] != spec]):
        if some:
            tree = _tree_with(project, at, b"\0".join(row for _, row in some))
            at = _advance(project, ref, at, tree, sorted(path for path, _ in some))
    lock.install()
    return at if at != tip else ""


def _advance(project: str, ref: str, tip: str, tree: str, paths: list[str]) -> str:
    """Put a person's commit on top of the branch if the tree differs; returns the branch's commit."""
    if tree == repository.tree_of(project, tip):
        return tip
    made = _commit_edits(project, tree, tip, paths)
    refs.move(project, (ref, made, tip), why="harness: edits of a person")
    return made


def _commit_edits(project: str, tree: str, parent: str, paths: list[str]) -> str:
    """Commit a person's changes to these files in their name; no ref moves. 2-3 calls."""
    subject = " ".join(f"Edits in the project folder: {few(paths)}".split())
    return repository.commit_tree(project, tree, [parent], subject + "\n", settings.person(project))


def _tree_with(project: str, commit: str, rows: bytes) -> str:
    """The tree of a commit with some files replaced: `rows` as from `git ls-files -s -z`, mode 0 removes. 3 calls."""
    index = os.path.join(settings.private(project), "spec-index")
    files.remove(index + ".lock")  # left by a killed git of the harness
    extra = {"GIT_INDEX_FILE": index}
    repository.run(project, "read-tree", commit, extra=extra)
    repository.run(project, "update-index", "-z", "--index-info", stdin=rows + b"\0", extra=extra)
    return repository.run(project, "write-tree", extra=extra).decode().strip()


def had_spec(project: str, commit: str, text: bytes) -> bool:
    """Whether the commit, or an ancestor, has exactly this SPEC.md. 2 calls."""
    words = ("log", "--full-history", "--format=", "--raw", "--no-abbrev", commit, "--", spec_of(project))
    rows = [line.split() for line in repository.run(project, *words).split(b"\n") if line.startswith(b":")]
    blob = repository.run(project, "hash-object", f"--path={spec_of(project)}", "--stdin", stdin=text).strip()
    return blob in {row[3] for row in rows}


def merge(project: str, ours: str, theirs: str, message: str) -> MergeCommit:
    """A commit that contains the runs' side (`ours`) and the person's (`theirs`); no ref or file changes.
    It is one of the two if that contains the other. 1-5 calls.
    """
    base = settings.call(project, "merge-base", ours, theirs)[1].decode().strip()
    if theirs in (base, ours) or base == ours:
        return MergeCommit(commit=ours if theirs in (base, ours) else theirs)
    joined = tree_of(project, ours, theirs, "--allow-unrelated-histories")
    if joined.conflicts:
        return MergeCommit(commit="", conflicts=joined.conflicts)
    return MergeCommit(commit=repository.commit_tree(project, joined.tree, [ours, theirs], message.rstrip("\n") + "\n"))


class MergeTree(Record):
    """The `tree` that contains both sides; "" if `conflicts` lists paths that both changed, which `marked` has with marks."""

    tree: str
    conflicts: list[str] = []
    marked: str = ""


def tree_of(project: str, ours: str, theirs: str, *words: str) -> MergeTree:
    """The tree of a merge of two commits, without any change on disk. 1 call. `words`: more options of git merge-tree."""
    asked = ("merge-tree", "--write-tree", "-z", "--no-messages", *words, ours, theirs)
    code, out, err = settings.call(project, *asked)
    if code not in (0, 1):
        raise GitFailed(f"git merge-tree failed in {project} (exit {code}): {err.decode('utf-8', 'replace').strip()}")
    tree, *entries = os.fsdecode(out).split("\0")
    if code == 0:
        return MergeTree(tree=tree)
    paths = dict.fromkeys(entry.split("\t", 1)[1] for entry in entries if entry)
    return MergeTree(tree="", conflicts=[*paths], marked=tree)


def settled(project: str, ours: str, theirs: str, known: Collection[str]) -> str:
    """The tree of a merge whose conflicts in `known` paths are settled as in `ours`; "" if others conflict. 1-5 calls."""
    joined = tree_of(project, ours, theirs, "--allow-unrelated-histories")
    if not joined.conflicts or not {*joined.conflicts} <= {*known}:
        return joined.tree
    kept = repository.run(project, "ls-tree", "-z", ours, "--", *joined.conflicts).split(b"\0")[:-1]
    rows = {path: head.split(b" ") for head, _, path in (row.partition(b"\t") for row in kept)}
    none = [b"0", b"", b"0" * len(joined.marked)]
    found = ((rows.get(path, none), path) for path in map(os.fsencode, joined.conflicts))
    return _tree_with(
        project, joined.marked, b"\0".join(b"%b %b 0\t%b" % (row[0], row[2], path) for row, path in found)
    )


def sides(project: str, ours: str, theirs: str) -> tuple[str, str]:
    """Unified diffs, since the merge base of two commits, of the files that both changed; "" for none. 5 calls."""
    base = repository.run(project, "merge-base", ours, theirs).decode().strip()
    mine, others = ([path for _, path in repository.changed(project, base, one)] for one in (ours, theirs))
    both = [path for path in mine if path in others]
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")

    def diff(commit: str) -> str:
        words = ("--literal-pathspecs", "diff", *plain, base, commit, "--", *both)
        return repository.run(project, *words).decode("utf-8", "replace") if both else ""

    return diff(ours), diff(theirs)


def merged_file(ours: str, base: str, theirs: str) -> bytes | None:
    """The content of a file with the changes that two sides made since `base`, all three given by their paths; None if
    they conflict, or it is no text. 1 call."""
    folder = os.path.dirname(os.path.abspath(ours))
    code, out, _ = settings.call(folder, "merge-file", "-p", "-q", "--", ours, base, theirs)
    return out if code == 0 else None
