"""Moves the mission's branch to a commit, and the person's working folder with it unless they changed the same files.

A person may save a file, and this process may be killed, at any moment. So each old file is checked by its fingerprint and
moved aside, and the new one takes the free name (`placement`); old files are kept until the branch has moved. A journal,
written before the first file, allows `finish` to complete the landing, or to undo it if a person's file is in the way.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from harness.base import encoding
from harness.base.record import Record
from harness.git import _executables, dotgit, refs, repository, settings
from harness.git.checkouts import placement, worktrees
from harness.git.checkouts.placement import Fingerprint
from harness.git.repository import BRANCHES, GitFailed
from harness.process import temporary
from harness.state import files

GITLINK = "160000"
JOURNAL = "harness-landing.json"
HELD = "-held"
STAYS = (
    "your folder {folder} stays at {at}, on {held}: {why}. {branch} has the work. To have both: "
    "git stash -u && git switch {branch} && git stash pop   or commit yours, and the next run merges it"
)
UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}


class IndexLock:
    """Git's own lock on a person's index, as a context manager; `taken` is False if a git of theirs holds it.
    The lock is a hard link to a file of the harness, so that a lock left by a kill is recognised and removed. A lock on
    the git folder excludes other missions.
    """

    def __init__(self, project: str) -> None:
        own = dotgit.folders(project)[0]
        self.project, self.index, self.path = project, own + "/index", own + "/index.lock"
        self.ours, self.taken = own + "/harness-index", False
        self.next = os.path.join(settings.private(project), "next-index")
        self.mutex = settings.HeldLock(os.path.join(settings.private(project), "project.lock"), own)

    def __enter__(self) -> IndexLock:
        self.mutex.__enter__()
        if os.path.exists(self.ours) and os.path.exists(self.path) and os.path.samefile(self.ours, self.path):
            files.remove(self.path)
        files.remove(self.ours)  # first, because it may be a hard link to the person's index
        files.stage(self.ours, b"")
        try:
            placement.put(self.ours, os.path.dirname(self.path), os.path.basename(self.path))
            self.taken = True
        except FileExistsError:
            files.remove(self.ours)
        return self

    def copy(self) -> dict[str, str]:
        """Copy the index to work on; returns the variable for git calls."""
        files.remove(self.next + ".lock")
        dotgit.copy_index(self.project, self.next)
        return {"GIT_INDEX_FILE": self.next}

    def install(self) -> None:
        """Replace the index by the copy, durably, and release the lock."""
        made = os.stat(self.next).st_mtime_ns
        files.stage(self.ours, files.read(self.next) or b"")
        os.utime(self.ours, ns=(made, made))
        files.move(self.path, self.index)
        files.remove(self.ours)
        self.taken = False

    def __exit__(self, *_: object) -> None:
        if self.taken:
            files.remove(self.path)
            files.remove(self.ours)
        self.mutex.__exit__()


class Landing(Record):
    """The journal's content: the branch, its old and new commit, and (path, before, after) for each file. `follows`: the
    mission's branch, if `branch` is that of a held folder."""

    branch: str
    old: str
    new: str
    rows: list[tuple[str, Fingerprint | None, Fingerprint | None]]
    follows: str = ""


def under_way(project: str) -> str:
    """The unfinished git operation of a person in the project folder, or "". 0 calls."""
    own = dotgit.folders(project)[0]
    return next((what for name, what in UNDER_WAY.items() if os.path.lexists(os.path.join(own, name))), "")


def tip(project: str, branch: str) -> str:
    """The branch's commit, "" if it does not exist. 0 calls, 1 with another ref storage."""
    if found := dotgit.commit_of(project, BRANCHES + branch):
        return found
    code, out, _ = settings.call(project, "rev-parse", "-q", "--verify", BRANCHES + branch)
    return "" if code else out.decode().strip()


def is_here(project: str, branch: str) -> bool:
    """Whether the project folder has the branch checked out. 0 calls."""
    return dotgit.head(project) == os.fsencode(f"ref: {BRANCHES}{branch}")


def land(project: str, branch: str, commit: str, *also: str, accepted: bool = False) -> str:
    """Move the branch to `commit`, with index and files of the project folder if it is checked out there. The refs
    `also` move with the branch, atomically. `accepted`: the folder follows regardless of what changes, even a held one.
    Returns "", or one line that says why nothing, or only the branch, moved, and what to do by hand. Safe to repeat
    after a crash. 9-10 calls, 2 if the branch is not checked out.
    """
    note = finish(project)
    if unfinished(project):
        return note
    with IndexLock(project) as lock:
        old = tip(project, branch)
        if old != commit:
            if old and _is_ahead(project, old, commit):
                return f"{branch} is not moved: it has commits that {commit[:12]} lacks; the next run merges them."
            holders = list(worktrees.holders(project, branch))
            if [folder for folder in holders if folder != project]:
                other = next(folder for folder in holders if folder != project)
                return _by_hand(
                    other, branch, commit, "it is checked out there", f"git -C {encoding.shell_word(other)}"
                )
            if holders:
                return _land_here(project, Landing(branch=branch, old=old, new=commit, rows=[]), lock, also, accepted)
            _move_branch(project, branch, old, commit, *also)
        return _follow(project, branch, commit, lock, accepted)


def _is_ahead(project: str, one: str, other: str) -> bool:
    """Whether commit `one` has commits that `other` lacks. 1 call."""
    return bool(repository.run(project, "rev-list", "-1", one, f"^{other}"))


def _hold(project: str, landing: Landing, also: tuple[str, ...]) -> str:
    """Move the branch alone: the folder gets its own branch at the old commit. Neither files nor the index change, so
    `git status` shows a person's changes as before, and nothing of the work as a reversal. Returns "" or why not."""
    held, left = landing.branch + HELD, tip(project, landing.branch + HELD)
    if left and _is_ahead(project, left, landing.old):
        return _by_hand(project, landing.branch, landing.new, f"{held} has commits of its own")
    refs.set_one(project, BRANCHES + held, landing.old)
    repository.check_out(project, held)
    _move_branch(project, landing.branch, landing.old, landing.new, *also)
    return ""


def _stay(project: str, landing: Landing, why: str, also: tuple[str, ...]) -> str:
    """Move the branch alone, because a person's changes are in the way of the files; returns a line for them."""
    branch = landing.follows or landing.branch
    word, fault = encoding.shell_word(branch), "" if landing.follows else _hold(project, landing, also)
    return fault or STAYS.format(folder=project, at=landing.old[:12], held=branch + HELD, why=why, branch=word)


def drop_held(project: str, branch: str, commit: str) -> None:
    """Delete the branch of a folder that was held, if it is at `commit` and no folder has it checked out. 0-1 calls."""
    if not any(worktrees.holders(project, branch + HELD)):
        settings.call(project, "update-ref", "-d", BRANCHES + branch + HELD, commit)


def _follow(project: str, branch: str, commit: str, lock: IndexLock, accepted: bool) -> str:
    """Move a held folder to `commit` and to the branch, if that is accepted or changes no executables; returns "" or
    why not."""
    held, why = branch + HELD, ""
    if not is_here(project, held):
        return ""
    if (at := tip(project, held)) != commit:
        found = _executables.find(project, commit, [path for _, path in _changes(project, at, commit)])
        if found and not accepted:
            return _executables.waits(project, branch, held, at, found)
        if _is_ahead(project, at, commit):
            return f"{held} has commits that {commit[:12]} lacks; the next run merges them."
        follows = Landing(branch=held, old=at, new=commit, rows=[], follows=branch)
        why = _land_here(project, follows, lock, (), accepted=True)
    elif under_way(project) or not lock.taken:
        return ""
    if tip(project, held) == commit:
        repository.check_out(project, branch)
        settings.call(project, "update-ref", "-d", BRANCHES + held, commit)  # fails if a person commits just now
    return why


def _by_hand(folder: str, branch: str, commit: str, why: str, git: str = "git") -> str:
    return f"{branch} in {folder} stays behind ({why}). To have the work there: {git} merge --ff-only {commit[:12]}"


def _move_branch(project: str, branch: str, old: str, new: str, *also: str) -> None:
    rows = [(BRANCHES + branch, new, old or "0" * len(new)), *((ref, new) for ref in also)]
    refs.move(project, *rows, why="harness: landed")


def _land_here(project: str, landing: Landing, lock: IndexLock, also: tuple[str, ...], accepted: bool = False) -> str:
    """Land where the project folder has the branch checked out: first its files, then the branch, then the index."""
    branch, commit = landing.branch, landing.new
    busy = under_way(project) or ("" if lock.taken else f"a git of yours, {lock.path} exists")
    if busy:
        return _by_hand(project, branch, commit, f"{busy} is under way")
    changes = _changes(project, landing.old, commit)
    if not accepted and (found := _executables.find(project, commit, [path for _, path in changes])):
        return _hold(project, landing, also) or _executables.waits(project, branch, branch + HELD, landing.old, found)
    before = {path: placement.fingerprint(project, path) for _, path in changes}
    dirty = {*repository.dirty(project), *repository.hidden(project)}
    edited = [path for letter, path in changes if path in dirty or (before[path] is None) != (letter == "A")]
    if edited:
        return _stay(project, landing, _yours(edited), also)
    try:
        extra = _next_index(project, landing, lock)
    except GitFailed as fault:
        return _by_hand(project, branch, commit, str(fault))
    after = _stage(project, extra, [path for letter, path in changes if letter != "D"])
    order = sorted(changes, key=lambda change: "DMTA".index(change[0]))
    landing.rows = [(path, before[path], after.get(path)) for _, path in order]
    files.replace(_journal(project), encoding.dump_json(landing.asdict()), files.PRIVATE)
    return _forward(project, landing, lock, extra, *also)


def _yours(paths: list[str]) -> str:
    return f"{encoding.few(paths)} {'has' if len(paths) == 1 else 'have'} changes of yours"


def _changes(project: str, old: str, new: str) -> list[tuple[str, str]]:
    """(letter, path) of each difference; submodules count by their gitlink, not by their checkout. 1 call."""
    words = ("diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none", "--raw", old, new)
    fields = os.fsdecode(repository.run(project, *words)).split("\0")[:-1]
    rows = [(row.split(" "), path) for row, path in zip(fields[::2], fields[1::2], strict=True)]
    return [(row[4], path) for row, path in rows if GITLINK not in (row[0][1:], row[1])]


def _next_index(project: str, landing: Landing, lock: IndexLock) -> dict[str, str]:
    """Prepare a person's future index in a separate file; returns the variable for git calls. 1 call."""
    extra = lock.copy()
    repository.run(project, "read-tree", "-i", "-m", landing.old, landing.new, extra=extra)
    return extra


def _folder(project: str) -> str:
    """The folder of staged new and old files, on the disk of the git folder, usually that of the project."""
    return os.path.abspath(os.path.join(dotgit.folders(project)[0], "harness-landing"))


def _journal(project: str) -> str:
    return os.path.join(dotgit.folders(project)[0], JOURNAL)


def abandoned(project: str) -> list[str]:
    """Temporary files that dead writers of the journal left beside it."""
    journal = _journal(project)
    return [path for path in files.abandoned(os.path.dirname(journal)) if path.startswith(f"{journal}.")]


def _stage(project: str, extra: Mapping[str, str], paths: list[str]) -> dict[str, Fingerprint | None]:
    """Check out the new files from the index that `extra` names into the staging folder, durably; returns their
    fingerprints. 1 call."""
    folder = _folder(project)
    temporary.remove(folder)
    for name in ("new", "old", "undone"):
        files.make_folder(os.path.join(folder, name))
    words = ("checkout-index", "-q", "-f", f"--prefix={folder}/new/", "-z", "--stdin")
    repository.run(project, *words, stdin=repository.as_input(paths), extra=extra)
    for path in paths:
        whole = os.path.join(folder, "new", path)
        if stat.S_ISREG(os.lstat(whole).st_mode):
            files.sync_folder(whole)
    return {path: placement.fingerprint(folder + "/new", path) for path in paths}


def _forward(project: str, landing: Landing, lock: IndexLock, extra: Mapping[str, str], *also: str) -> str:
    """Move files, branch and index to the new commit; if a person's change is in the way, only the branch."""
    if tip(project, landing.branch) != landing.new:
        if why := _place_all(project, landing):
            _back(project, landing)
            return _stay(project, landing, why, also)
        try:
            _move_branch(project, landing.branch, landing.old, landing.new, *also)
        except GitFailed as fault:
            _back(project, landing)
            return _by_hand(project, landing.branch, landing.new, str(fault))
    settings.call(project, "update-index", "-q", "--refresh", extra=extra)
    lock.install()
    return _forget(project, landing)


def _place_all(project: str, landing: Landing) -> str:
    """Put every new file in place, durably; returns "" or why not."""
    for step in (_place, _spoilt):
        for number, row in enumerate(landing.rows):
            if why := step(project, number, *row):
                return why
    for folder in {os.path.dirname(os.path.join(project, path)) for path, _, _ in landing.rows}:
        if os.path.isdir(folder):
            files.sync_folder(folder)
    return ""


def _place(project: str, number: int, path: str, before: Fingerprint | None, after: Fingerprint | None) -> str:
    """Add, remove or replace one file; returns "" or why not. Skips the steps of an earlier attempt.
    A save between check and move is moved aside with the old file: `_spoilt` detects it there.
    """
    aside, now = os.path.join(_folder(project), "old", str(number)), placement.fingerprint(project, path)
    if after and now == after:
        return ""
    if now != (None if os.path.lexists(aside) else before):
        return _yours([path])
    try:
        if now:
            placement.move_away(project, path, aside)
        if after:
            placement.put(os.path.join(_folder(project), "new", path), project, path)
        else:
            placement.drop_empty(project, path)
    except OSError as fault:
        return f"{path}: {fault.strerror}"
    return ""


def _spoilt(project: str, number: int, path: str, before: Fingerprint | None, after: Fingerprint | None) -> str:
    """Why the file is not as expected: a person wrote into the old or the new one meanwhile; "" if they did not."""
    aside = os.path.join(_folder(project), "old", str(number))
    kept = placement.of(os.lstat(aside)) if os.path.lexists(aside) else None
    same = kept == before and placement.fingerprint(project, path) == after
    return "" if same else _yours([path])


def _back(project: str, landing: Landing) -> str:
    """Undo: remove the new files and restore the old ones where the name is free; a person's new content stays."""
    folder = _folder(project)
    for number, (path, _, after) in reversed(list(enumerate(landing.rows))):
        aside, undone = (os.path.join(folder, name, str(number)) for name in ("old", "undone"))
        try:
            if after and placement.fingerprint(project, path) == after and not os.path.lexists(undone):
                placement.move_away(project, path, undone)
                if placement.of(os.lstat(undone)) != after:
                    placement.put(undone, project, path)
                placement.drop_empty(project, path)
            if os.path.lexists(aside):
                placement.put(aside, project, path)
                files.remove(aside)
        except OSError:  # a person took the name meanwhile
            continue
    return _forget(project, landing)


def _forget(project: str, landing: Landing) -> str:
    """Remove the journal, then the folder; keep an old file that a person wrote into, and return a line that says where."""
    kept = []
    for number, (path, before, _) in enumerate(landing.rows):
        aside = os.path.join(_folder(project), "old", str(number))
        if os.path.lexists(aside) and placement.of(os.lstat(aside)) != before:
            target = os.path.join(dotgit.folders(project)[0], "harness-kept", f"{landing.new[:12]}-{number}")
            files.move(aside, target)
            kept.append(f"{path} as {target}")
    files.remove(_journal(project))
    temporary.remove(_folder(project))
    return f"Saved during the replacement, and kept: {', '.join(kept)}" if kept else ""


def finish(project: str) -> str:
    """Complete or undo a killed landing; returns "" or a line for the person. 0 calls without one.
    Called wherever a run or a recovery begins: until then a person's git reports that index.lock exists.
    """
    found = files.read_json(_journal(project))
    if found is None and not any(map(os.path.lexists, (IndexLock(project).ours, _folder(project)))):
        return ""
    with IndexLock(project) as lock:  # taking it removes the leftover lock
        if found is None:
            temporary.remove(_folder(project))
            return ""
        landing = Landing(**found)
        if not lock.taken:
            return _by_hand(project, landing.branch, landing.new, f"a git of yours, {lock.path} exists, is under way")
        here, at = dotgit.head(project), tip(project, landing.branch)
        if here == os.fsencode(f"ref: {BRANCHES}{landing.branch}") and at in (landing.old, landing.new):
            try:
                return _forward(project, landing, lock, _next_index(project, landing, lock))
            except GitFailed as fault:
                _back(project, landing)
                return _by_hand(project, landing.branch, landing.new, str(fault))
        return _forget(project, landing) if at == landing.new else _back(project, landing)


def unfinished(project: str) -> bool:
    """Whether a landing of any mission in the folder still waits for a person's git to end. 0 calls."""
    return os.path.exists(_journal(project))
