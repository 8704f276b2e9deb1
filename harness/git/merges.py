"""What a person did meanwhile and what runs did become one: a person's edits as a commit of theirs, then a merge.

No working folder is touched, and a person's index only as their own `git commit -a` would do it.
"""

from __future__ import annotations

import os

from harness.base.record import Record
from harness.git import dotgit, landing, refs, repository, settings
from harness.git.repository import BRANCHES, GitFailed
from harness.state import files, names

MAX_SHOWN_PATHS = 3


class PersonEdits(Record):
    """`tip`: where the mission's branch is; `commit`: the person's edits, "" for none; `note`: why they were not taken."""

    tip: str
    commit: str = ""
    note: str = ""


class MergeCommit(Record):
    """`commit` holds both sides, "" where `conflicts` names what a person must decide."""

    commit: str
    conflicts: list[str] = []


def take_edits(project: str, branch: str) -> PersonEdits:
    """What a person changed in tracked files of the mission's folder is a commit on the mission's branch, with their name;
    SPEC.md is one of its own. What they changed elsewhere in the repository stays as it is.

    As `git commit -a`: untracked files stay untracked, afterwards nothing of it is staged, and no file is written. Nothing is
    taken where another branch is checked out, nor in the middle of a merge, a rebase or a bisect. 12-14 calls, 2 for none; 5
    more where SPEC.md has changed too.
    """
    note, ref = landing.finish(project), BRANCHES + branch
    if not landing.is_here(project, branch) or landing.unfinished(project) or not _edited(project):
        return PersonEdits(tip=landing.tip(project, branch), note=note)
    with landing.IndexLock(project) as lock:  # from here on no git of theirs switches or commits
        tip, busy = landing.tip(project, branch), landing.under_way(project)
        if repository.run(project, "ls-files", "-u", "-z"):
            busy = busy or "a merge with conflicts"
        busy = busy or ("" if lock.taken else f"a git of yours, {lock.path} exists,")
        if busy:
            return PersonEdits(tip=tip, note=f"Edits in {project} are not taken: {busy} is under way. End it first.")
        made = _commit(project, ref, tip, lock) if tip and landing.is_here(project, branch) else ""
    if made:
        paths = [path for _, path in repository.changed(project, tip, made)]
        note = "; ".join(filter(None, [note, f"taken into the mission, your uncommitted edits of: {', '.join(paths)}"]))
    return PersonEdits(tip=made or tip, commit=made, note=note)


def words(project: str, branch: str, commit: str, how: str = "") -> str:
    """The command with which a person merges the commit into the branch. 0 calls."""
    return f"{'' if landing.is_here(project, branch) else f'git switch {branch} && '}git merge {how}{commit[:12]}"


def _edited(project: str) -> bool:
    below = settings.prefix(project)
    return bool(landing.under_way(project)) or any(name.startswith(below) for name in repository.dirty(project))


def spec_of(project: str) -> str:
    """The name of the mission's SPEC.md in this working folder."""
    return settings.prefix(project) + names.ASKED_SPEC


def _commit(project: str, ref: str, tip: str, lock: landing.IndexLock) -> str:
    """The edits as commits, the last one of them, "" for none; the new index takes the old one's place once the branch has
    them."""
    extra, spec, at = lock.copy(), spec_of(project), tip
    rows = repository.stage_tracked(project, extra, settings.prefix(project))
    for some in ([row for row in rows if row[0] == spec], [row for row in rows if row[0] != spec]):
        if some:
            tree = _tree_with(project, at, b"\0".join(row for _, row in some))
            at = _advance(project, ref, at, tree, sorted(path for path, _ in some))
    lock.install()
    return at if at != tip else ""


def _advance(project: str, ref: str, tip: str, tree: str, paths: list[str]) -> str:
    """A commit of a person on top of the branch, where the tree is another one; where the branch is then."""
    if tree == repository.tree_of(project, tip):
        return tip
    made = _commit_edits(project, tree, tip, paths)
    refs.move(project, (ref, made, tip), why="harness: edits of a person")
    return made


def _commit_edits(project: str, tree: str, parent: str, paths: list[str]) -> str:
    """A commit with the person's name for what they changed in these files; no ref moves. 2-3 calls."""
    more = f" and {len(paths) - MAX_SHOWN_PATHS} more" if len(paths) > MAX_SHOWN_PATHS else ""
    subject = " ".join(f"Edits in the project folder: {', '.join(paths[:MAX_SHOWN_PATHS])}{more}".split())
    return repository.commit_tree(project, tree, [parent], subject + "\n", settings.person(project))


def _tree_with(project: str, commit: str, rows: bytes) -> str:
    """The tree of a commit with other files: `rows` as `git ls-files -s -z` has them, with mode 0 for none. 3 calls."""
    index = os.path.join(settings.private(project), "spec-index")
    files.remove(index + ".lock")  # left by a git of ours that was killed
    extra = {"GIT_INDEX_FILE": index}
    repository.run(project, "read-tree", commit, extra=extra)
    repository.run(project, "update-index", "-z", "--index-info", stdin=rows + b"\0", extra=extra)
    return repository.run(project, "write-tree", extra=extra).decode().strip()


def had_spec(project: str, commit: str, text: bytes) -> bool:
    """Whether the commit, or one before it, has exactly this SPEC.md. 2 calls."""
    words = ("log", "--full-history", "--format=", "--raw", "--no-abbrev", commit, "--", spec_of(project))
    rows = [line.split() for line in repository.run(project, *words).split(b"\n") if line.startswith(b":")]
    return _blob(project, text) in {row[3] for row in rows}


def _blob(project: str, text: bytes, *words: str) -> bytes:
    """The id of this SPEC.md, as git would commit the file. 1 call."""
    return repository.run(project, "hash-object", *words, f"--path={spec_of(project)}", "--stdin", stdin=text).strip()


def take_spec(project: str, commit: str, text: bytes) -> str:
    """A commit of a person with this SPEC.md, for a mission at `commit`; no ref and no file changes. 7-10 calls.

    It is on top of the commit that is checked out in the project folder, where that holds `commit`, and may be that one. It is
    `commit` where that has no SPEC.md, or a link.
    """
    here = dotgit.commit(project)
    base = here if here and refs.is_ancestor(project, commit, here) else commit
    spec = spec_of(project)
    row = repository.run(project, "ls-tree", "-z", base, "--", spec)
    if not row.startswith(b"100"):
        return commit
    mode, blob = row.split(b" ", 1)[0], _blob(project, text, "-w")
    tree = _tree_with(project, base, b"%b %b 0\t%b" % (mode, blob, os.fsencode(spec)))
    same = tree == repository.tree_of(project, base)
    return base if same else _commit_edits(project, tree, base, [spec])


def merge(project: str, ours: str, theirs: str, message: str) -> MergeCommit:
    """One commit that holds what runs did (`ours`) and what is on the person's side (`theirs`); no ref and no file changes.

    It is one of the two where that holds the other. 1-5 calls.
    """
    base = settings.call(project, "merge-base", ours, theirs)[1].decode().strip()
    if theirs in (base, ours) or base == ours:
        return MergeCommit(commit=ours if theirs in (base, ours) else theirs)
    joined = tree_of(project, ours, theirs, "--allow-unrelated-histories")
    if joined.conflicts:
        return MergeCommit(commit="", conflicts=joined.conflicts)
    return MergeCommit(commit=repository.commit_tree(project, joined.tree, [ours, theirs], message.rstrip("\n") + "\n"))


class MergeTree(Record):
    """The `tree` that holds both sides, "" where `conflicts` names the paths that both changed."""

    tree: str
    conflicts: list[str] = []


def tree_of(project: str, ours: str, theirs: str, *words: str) -> MergeTree:
    """The tree of a merge of two commits; nothing is changed. 1 call. `words`: more options of git merge-tree."""
    asked = ("merge-tree", "--write-tree", "-z", "--no-messages", *words, ours, theirs)
    code, out, err = settings.call(project, *asked)
    if code not in (0, 1):
        raise GitFailed(f"git merge-tree failed in {project} (exit {code}): {err.decode('utf-8', 'replace').strip()}")
    tree, *entries = os.fsdecode(out).split("\0")
    if code == 0:
        return MergeTree(tree=tree)
    return MergeTree(tree="", conflicts=list(dict.fromkeys(entry.split("\t", 1)[1] for entry in entries if entry)))


def sides(project: str, ours: str, theirs: str) -> tuple[str, str]:
    """What each of two commits did since they parted to the files that both changed, as unified diffs; "" where there are none.
    5 calls."""
    base = repository.run(project, "merge-base", ours, theirs).decode().strip()
    mine, others = ([path for _, path in repository.changed(project, base, one)] for one in (ours, theirs))
    both = [path for path in mine if path in others]
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")

    def diff(commit: str) -> str:
        words = ("--literal-pathspecs", "diff", *plain, base, commit, "--", *both)
        return repository.run(project, *words).decode("utf-8", "replace") if both else ""

    return diff(ours), diff(theirs)
