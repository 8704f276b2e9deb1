"""Kept worktrees outside the project folder, where runs work: made, mended, brought to a commit, and removed.

A tree is a linked worktree of git's, so an agent's own git works in it. What git keeps of it is written by us, file by
file, as gitrepository-layout(5) says it: so there is no race between two `git worktree add`, and nothing that was left in
the tree or in its git folder is believed. Our own calls use an index beside the tree, which agents do not write.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from harness.base import encoding
from harness.git import dotgit, repository, settings
from harness.git.checkouts import _sparse, commit_excludes, placement
from harness.git.repository import GitFailed
from harness.process import temporary
from harness.state import files

LENGTHS, DIGITS = (40, 64), frozenset("0123456789abcdef")  # of a commit's id
PREFIX = "harness-"  # of the git folders of our trees
OURS = ("HEAD", "commondir", "gitdir", "locked", "index")
SPARED = (*OURS, "logs", "modules")  # submodules that setup fetched keep their repositories there
LARGE_FILE_BYTES = 1024 * 1024
MANY_PATHS = 1000
LOCKED = b"a mission of harness works here\n"


def ensure(project: str, folder: str, commit: str, *, keep: bool = False) -> list[str]:
    """`folder` is a worktree of `project`, detached at `commit`, and its tracked files are those of `commit`.

    The mission's folder is there.
    Untracked files go, unless `keep`; ignored ones (caches, what setup made) stay. Whatever a crash or an agent left of
    tree, index and git folder is made right. `settings.use` knows the project; only for who holds the tree's lease. From
    here on functions of `repository` take `folder`, and `index(folder)` for its index. Returns the untracked files that
    were kept. 1 call where nothing has changed, else 3; one more where the person's checkout is sparse, as the tree's is then.
    """
    with settings.HeldLock(folder + ".lock"):
        laid = _sparse.laid(_git_folder(project, folder))
        own = _administer(project, folder, commit)
        patterns_changed = _sparse.laid(own) != laid
        if patterns_changed and not _sparse.laid(own):
            files.remove(index(folder))  # git keeps the marks of a sparse index where no patterns apply
        _make_below(folder)
        _drop_nested(folder)
        files.remove(index(folder) + ".lock")  # left by a git of ours that was killed: we hold the tree's lock
        same, kept = _survey(folder)
        if not same or patterns_changed:
            _check_out(folder, commit)
            kept = _survey(folder)[1] if keep else []
        if not keep:
            _clean(folder)
        _make_below(folder)
        _copy_index(index(folder), own + "/index")
        return kept if keep else []


def _survey(folder: str) -> tuple[bool, list[str]]:
    """Whether index and tracked files are those of HEAD, and the untracked files; (False, []) where git cannot tell."""
    if not os.path.exists(index(folder)):
        return False, []
    try:
        return repository.survey(folder, {"GIT_INDEX_FILE": index(folder)})
    except GitFailed:
        return False, []


def clean_at(project: str, folder: str) -> str:
    """The commit of a tree without any change or untracked file; "" where it has one, or git cannot tell. 2 calls."""
    with settings.HeldLock(folder + ".lock"):
        own = _git_folder(project, folder)
        settings.share(project, folder, own, _sparse.options(_sparse.laid(own)))
        same, kept = _survey(folder)
        return _left_at(project, folder) if same and not kept else ""


def join(project: str, folder: str, commit: str) -> None:
    """Our git knows the tree again, whose files stay as somebody left them, and so does a commit that they made on top of
    `commit`, where the tree was. 0 calls, 1 where there is one."""
    with settings.HeldLock(folder + ".lock"):
        _administer(project, folder, _left_at(project, folder, commit) or commit)
        _drop_nested(folder)


def _left_at(project: str, folder: str, commit: str = "") -> str:
    """The commit at which somebody left the tree; "" where its git folder names none. 1 call, 0 where it is `commit`."""
    head = (files.read(_git_folder(project, folder) + "/HEAD") or b"").decode("utf-8", "replace").strip()
    named = dotgit.commit_of(project, head.removeprefix("ref: ")) if "/" in head else head
    is_commit = len(named) in LENGTHS and DIGITS.issuperset(named)
    known = named == commit or (is_commit and not settings.call(project, "cat-file", "-e", named + "^{commit}")[0])
    return named if known else ""


def index(folder: str) -> str:
    """Where our index of the tree lies: beside it."""
    return folder + ".index"


def _git_folder(project: str, folder: str) -> str:
    """What git keeps of the tree; the name follows from the tree's path, so it is never read from the tree."""
    name = f"{PREFIX}{encoding.digest(os.fsencode(os.path.realpath(folder)))[:12]}"
    return os.path.join(os.path.abspath(dotgit.folders(project)[1]), "worktrees", name)


def _administer(project: str, folder: str, commit: str) -> str:
    """The tree's git folder as git would make it, and the `.git` file in the tree; all else that was in them is gone. Our git
    calls in the tree use it from here on."""
    own = _git_folder(project, folder)
    for path in (os.path.dirname(own), own, folder):
        if os.path.islink(path) or (os.path.lexists(path) and not os.path.isdir(path)):
            files.remove(path)
        files.make_folder(path)
    for name in files.names(own):
        path = os.path.join(own, name)
        if name not in SPARED or os.path.islink(path) or os.path.isdir(path) == (name in OURS):
            _remove(path)
    link = os.path.join(folder, ".git")
    if os.path.islink(link) or os.path.isdir(link):
        _remove(link)
    _write(own + "/gitdir", os.fsencode(link) + b"\n")  # first: it says whose folder this is after a kill
    _write(own + "/locked", LOCKED)
    _write(own + "/commondir", os.fsencode(_common(own)))
    _write(own + "/HEAD", commit.encode() + b"\n")
    _write(link, b"gitdir: " + os.fsencode(own) + b"\n")
    found = _sparse.of(project, settings.base(project), commit)
    if found:
        _sparse.lay(own, found)
    settings.share(project, folder, own, _sparse.options(found))
    return own


def _common(own: str) -> str:
    return os.path.dirname(os.path.dirname(own)) + "\n"


def _write(path: str, data: bytes) -> None:
    """The file has this content; one that is no plain file makes way."""
    if not os.path.isfile(path) or os.path.islink(path) or files.read(path) != data:
        if os.path.lexists(path) and not os.path.isfile(path):
            _remove(path)
        files.replace(path, data)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        temporary.remove(path)
    else:
        files.remove(path)


def _check_out(folder: str, commit: str) -> None:
    """Tracked files and our index are those of the commit; an index that git cannot read is made again."""
    extra, words = {"GIT_INDEX_FILE": index(folder)}, ("read-tree", "--reset", "-u", commit)
    code, _, err = settings.call(folder, *words, extra=extra)
    if code:
        files.remove(index(folder))
        _make_writable(folder)
        code, _, err = settings.call(folder, *words, extra=extra)
    if code:
        raise GitFailed(f"The tree {folder} cannot be brought to {commit}: {err.decode('utf-8', 'replace').strip()}")


def _clean(folder: str) -> None:
    """No untracked file, nor a repository of an agent's, is left; in a folder without write permission too."""
    extra, words = {"GIT_INDEX_FILE": index(folder)}, ("clean", "-q", "-ffd")
    if settings.call(folder, *words, extra=extra)[0]:
        _make_writable(folder)
        code, _, err = settings.call(folder, *words, extra=extra)
        if code:
            raise GitFailed(f"Files in {folder} cannot be removed: {err.decode('utf-8', 'replace').strip()}")


def discard(folder: str, name: str) -> None:
    """Remove an untracked file or folder of the tree; what lies behind a link stays."""
    if not placement.blocked(folder, name.rstrip("/")):
        _remove(os.path.join(folder, name.rstrip("/")))


def _make_below(folder: str) -> None:
    """The mission's folder is in the tree; a link or a file in its way is gone."""
    for at in _above(folder):
        if os.path.lexists(at) and (os.path.islink(at) or not os.path.isdir(at)):
            files.remove(at)
        files.make_folder(at)


def _drop_nested(folder: str) -> None:
    """No repository that an agent made hides the mission's folder from that of the tree."""
    for at in _above(folder):
        if os.path.islink(at):
            return
        if os.path.lexists(at + "/.git"):
            _remove(at + "/.git")


def _above(folder: str) -> list[str]:
    """The mission's folder in the tree, and those above it, the highest first; none where it is the whole tree."""
    parts = settings.prefix(folder).split("/")[:-1]
    return [os.path.join(folder, *parts[:depth]) for depth in range(1, len(parts) + 1)]


def digests(folder: str, names: Sequence[str]) -> dict[str, str]:
    """{path: sha256} of untracked files; `size:mtime_ns` for large or unreadable ones, and behind the first MANY."""
    found = {}
    for number, name in enumerate(names):
        path = os.path.join(folder, name)
        try:
            stat = os.lstat(path)
        except FileNotFoundError:
            continue
        small = (
            os.path.isfile(path)
            and not os.path.islink(path)
            and stat.st_size <= LARGE_FILE_BYTES
            and number < MANY_PATHS
        )
        data = files.read(path) if small and os.access(path, os.R_OK) else None
        found[name] = encoding.digest(data) if data is not None else f"{stat.st_size}:{stat.st_mtime_ns}"
    return found


def _make_writable(folder: str) -> None:
    """What lies in a folder without permissions can be neither replaced nor removed."""
    for top, folders, _ in os.walk(folder):
        for path in (os.path.join(top, name) for name in folders):
            if not os.path.islink(path) and os.lstat(path).st_uid == os.getuid():
                os.chmod(path, os.lstat(path).st_mode | 0o700)


def _copy_index(source: str, target: str) -> None:
    """The agent's git starts with our index; its time goes along, since git compares it with those of the files."""
    data, made = files.read(source) or b"", os.stat(source).st_mtime_ns
    if files.read(target) != data:
        files.replace(target, data)
    os.utime(target, ns=(made, made))


def carry(project: str, folder: str, names: Collection[str], below: str = "") -> list[str]:
    """The tree has a copy of these ignored files of the project, named from `below` in it (such as `services/api/`); returns
    `name: why` for each that it has not.

    What git does not ignore in the tree is not carried: it would enter a commit. Links are followed on neither side. 1 call.
    """
    if not names:
        return []
    sides = (("", project), ("in the tree: ", folder))
    unfit = {name: _unfit(name) for name in names}
    for name in [name for name, why in unfit.items() if not why]:
        unfit[name] = next((place + why for place, top in sides if (why := placement.blocked(top, below + name))), "")
    extra = {"GIT_INDEX_FILE": index(folder), "GIT_LITERAL_PATHSPECS": "0"}  # check-ignore refuses to be literal
    asked = b"".join(os.fsencode(f"./{below}{name}\0") for name, why in unfit.items() if not why)
    code, out, err = settings.call(folder, "check-ignore", "-z", "--stdin", stdin=asked, extra=extra)
    if code > 1:
        raise GitFailed(f"git check-ignore failed in {folder}: {err.decode('utf-8', 'replace').strip()}")
    ignored = set(os.fsdecode(out).split("\0"))
    for name in [name for name, why in unfit.items() if not why]:
        known = f"./{below}{name}" in ignored
        unfit[name] = (
            placement.copy(project, folder, below + name)
            if known
            else "git does not ignore it, so it would be committed"
        )
    return [f"{name}: {why}" for name, why in unfit.items() if why]


def _unfit(name: str) -> str:
    parts = name.split("/")
    if name.startswith("/") or not set(parts).isdisjoint({"", ".", ".."}):
        return "not the name of a file below the project folder"
    return "not to be copied" if parts[0] in (".git", commit_excludes.STATE) else ""


def remove(project: str, folder: str) -> None:
    """The tree is gone, whatever is in it, and git forgets it; no fault where there is none. 0 calls."""
    with settings.HeldLock(folder + ".lock"):
        for path in (folder, index(folder), index(folder) + ".lock"):
            if os.path.lexists(path):
                _remove(path)
        _forget(_git_folder(project, folder))
        settings.forget(folder)


def forget_below(project: str, begin: str, *, empty: bool) -> None:
    """Git forgets our trees whose path begins so, as those that a killed run had in its temporary folder, and with `empty`
    those of which not even the path was written yet. 0 calls."""
    known = os.path.dirname(_git_folder(project, project))
    for own in (os.path.join(known, name) for name in files.names(known) if name.startswith(PREFIX)):
        left = {os.path.join(own, name) for name in files.names(own)} - set(files.abandoned(own))
        if (files.read(own + "/gitdir") or b"").startswith(os.fsencode(begin)) or (empty and not left):
            _forget(own)


def _forget(own: str) -> None:
    """Remove what git keeps of a tree, `gitdir` last: a kill leaves nothing that nobody knows."""
    if os.path.isdir(own) and not os.path.islink(own):
        for name in sorted(files.names(own), key=lambda name: name == "gitdir"):
            _remove(os.path.join(own, name))
    if os.path.lexists(own):
        _remove(own)
