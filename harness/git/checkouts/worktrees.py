"""Persistent worktrees outside the project folder, in which runs work: create, repair, reset and remove them.

A tree is a linked git worktree, so an agent's own git works in it. The harness writes git's administrative files
itself, by gitrepository-layout(5): this avoids races between two `git worktree add`, and trusts nothing that was left
in the tree or its git folder. The harness's git calls use an index beside the tree, which agents do not write.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from harness.base import console, encoding
from harness.git import dotgit, repository, settings
from harness.git.checkouts import _sparse, commit_excludes, placement
from harness.git.repository import BRANCHES, GitFailed
from harness.process import temporary
from harness.state import files

LENGTHS, DIGITS = (40, 64), frozenset("0123456789abcdef")  # of a commit id
PREFIX = "harness-"  # of the git folders of the harness's trees
OURS = ("HEAD", "commondir", "gitdir", "locked", "index")
SPARED = (*OURS, "logs")
LARGE_FILE_BYTES = 1024 * 1024
MANY_PATHS = 1000
MAX_RULES, MAX_NAMES = 6, 3  # of ignored files, in a message
IGNORED = ("status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=all", "-uall", "--ignored=matching")
LOCKED = b"a mission of harness works here\n"


def ensure(project: str, folder: str, commit: str, *, keep: bool = False) -> list[str]:
    """Make `folder` a worktree of `project`, detached at `commit` with its tracked files and the mission's folder.
    Untracked files are removed, unless `keep`; ignored ones (caches, results of setup) stay. Repairs tree, index and
    git folder after a crash or an agent. Requires `settings.use` for the project, and the tree's lease. Afterwards
    functions of `repository` take `folder`, and `index(folder)` for its index. Returns the kept untracked files. 1 call
    if nothing has changed, else 3; one more for a sparse checkout, which the tree then has too.
    """
    with settings.HeldLock(folder + ".lock"):
        laid = _sparse.laid(_git_folder(project, folder))
        own = _administer(project, folder, commit)
        patterns_changed = _sparse.laid(own) != laid
        if patterns_changed and not _sparse.laid(own):
            files.remove(index(folder))  # git keeps a sparse index's marks even without patterns
        _make_below(folder)
        _drop_nested(folder)
        files.remove(index(folder) + ".lock")  # left by a killed git of the harness: the caller holds the tree's lease
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
    """(whether index and tracked files match HEAD, the untracked files); (False, []) if git cannot tell."""
    if not os.path.exists(index(folder)):
        return False, []
    try:
        return repository.survey(folder, {"GIT_INDEX_FILE": index(folder)})
    except GitFailed:
        return False, []


def lay(folder: str, commit: str) -> None:
    """Give the tree the tracked files of another commit, as if they had been written there; its HEAD stays. 1-2 calls."""
    with settings.HeldLock(folder + ".lock"):
        _check_out(folder, commit)


def commit(project: str, folder: str, paths: Sequence[str], parent: str, message: str) -> str:
    """A commit with these files and the tracked ones of a tree as they are there, ignored ones too. 5-7 calls."""
    join(project, folder, parent)
    extra, words = {"GIT_INDEX_FILE": index(folder)}, ("--add", "--remove", "--replace", "-z", "--stdin")
    files.remove(index(folder) + ".lock")  # as in `ensure`
    known = repository.run(folder, "ls-files", "-z", extra=extra)
    repository.run(folder, "update-index", *words, stdin=known + repository.as_input(paths), extra=extra)
    tree = repository.run(folder, "write-tree", extra=extra).decode().strip()
    return repository.commit_tree(project, tree, [parent], message)


def holders(project: str, branch: str) -> Iterator[str]:
    """A person's working folders that have the branch checked out, or will when a rebase or bisect there ends."""
    own, common = dotgit.folders(project)
    trees = os.path.join(common, "worktrees")
    places = {own: project} | ({common: os.path.dirname(os.path.abspath(common))} if common != own else {})
    for name in files.names(trees):
        link = os.path.join(trees, name, "gitdir")
        if not name.startswith(PREFIX) and os.path.isfile(link):
            places.setdefault(
                os.path.join(trees, name), os.path.dirname(os.fsdecode(files.read(link) or b"").rstrip("\n"))
            )
    for place, folder in places.items():
        heads = [
            files.read(os.path.join(place, name)) or b"" for name in ("HEAD", "rebase-merge/head-name", "BISECT_START")
        ]
        said = {head.strip().removeprefix(b"ref: ").removeprefix(BRANCHES.encode()) for head in heads}
        if os.fsencode(branch) in said and os.path.isdir(folder):
            yield folder


def clean_at(project: str, folder: str) -> str:
    """The commit of a tree without changes or untracked files; "" if it has any, or git cannot tell. 2 calls."""
    with settings.HeldLock(folder + ".lock"):
        own = _git_folder(project, folder)
        settings.share(project, folder, own, _sparse.options(_sparse.laid(own)))
        same, kept = _survey(folder)
        return _left_at(project, folder) if same and not kept else ""


def join(project: str, folder: str, commit: str) -> None:
    """Register an existing tree again, with its files as they are and any commit made on top of `commit`. 0 calls, 1
    with such a commit."""
    with settings.HeldLock(folder + ".lock"):
        _administer(project, folder, _left_at(project, folder, commit) or commit)
        _drop_nested(folder)


def _left_at(project: str, folder: str, commit: str = "") -> str:
    """The commit at which the tree was left; "" if its git folder names none. 1 call, 0 if it is `commit`."""
    head = (files.read(_git_folder(project, folder) + "/HEAD") or b"").decode("utf-8", "replace").strip()
    named = dotgit.commit_of(project, head.removeprefix("ref: ")) if "/" in head else head
    is_commit = len(named) in LENGTHS and DIGITS.issuperset(named)
    known = named == commit or (is_commit and not settings.call(project, "cat-file", "-e", named + "^{commit}")[0])
    return named if known else ""


def index(folder: str) -> str:
    """The path of the harness's index of the tree, beside it."""
    return folder + ".index"


def _git_folder(project: str, folder: str) -> str:
    """The tree's git folder; its name is derived from the tree's path, never read from the tree."""
    name = f"{PREFIX}{encoding.digest(os.fsencode(os.path.realpath(folder)))[:12]}"
    return os.path.join(os.path.abspath(dotgit.folders(project)[1]), "worktrees", name)


def _administer(project: str, folder: str, commit: str) -> str:
    """Write the tree's git folder as git would, and the `.git` file in the tree; anything else in them is removed. The
    harness's git calls in the tree use it from here on."""
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
    _write(own + "/gitdir", os.fsencode(link) + b"\n")  # first, so that the owner is known after a kill
    _write(own + "/locked", LOCKED)
    _write(own + "/commondir", os.fsencode(os.path.dirname(os.path.dirname(own))) + b"\n")
    _write(own + "/HEAD", commit.encode() + b"\n")
    _write(link, b"gitdir: " + os.fsencode(own) + b"\n")
    found = _sparse.of(project, settings.base(project), commit)
    if found:
        _sparse.lay(own, found)
    settings.share(project, folder, own, _sparse.options(found))
    return own


def _write(path: str, data: bytes) -> None:
    """Write a file; anything at its path that is not a regular file is replaced."""
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
    """Reset tracked files and index to the commit; an unreadable index is rebuilt."""
    extra, words = {"GIT_INDEX_FILE": index(folder)}, ("read-tree", "--reset", "-u", commit)
    code, _, err = settings.call(folder, *words, extra=extra)
    if code:
        files.remove(index(folder))
        _make_writable(folder)
        code, _, err = settings.call(folder, *words, extra=extra)
    if code:
        raise GitFailed(f"The tree {folder} cannot be brought to {commit}: {err.decode('utf-8', 'replace').strip()}")


def _clean(folder: str) -> None:
    """Remove untracked files and an agent's nested repositories, also from folders without write permission."""
    extra, words = {"GIT_INDEX_FILE": index(folder)}, ("clean", "-q", "-ffd")
    if settings.call(folder, *words, extra=extra)[0]:
        _make_writable(folder)
        code, _, err = settings.call(folder, *words, extra=extra)
        if code:
            raise GitFailed(f"Files in {folder} cannot be removed: {err.decode('utf-8', 'replace').strip()}")


def discard(folder: str, name: str) -> None:
    """Remove an untracked file or folder of the tree, without following links."""
    if not placement.blocked(folder, name.rstrip("/")):
        _remove(os.path.join(folder, name.rstrip("/")))


def _make_below(folder: str) -> None:
    """Create the mission's folder in the tree; a link or file in its way is removed."""
    for at in _above(folder):
        if os.path.lexists(at) and (os.path.islink(at) or not os.path.isdir(at)):
            files.remove(at)
        files.make_folder(at)


def _drop_nested(folder: str) -> None:
    """Remove repositories that an agent made between the tree's top and the mission's folder."""
    for at in _above(folder):
        if os.path.islink(at):
            return
        if os.path.lexists(at + "/.git"):
            _remove(at + "/.git")


def _above(folder: str) -> list[str]:
    """The mission's folder in the tree and its parents, topmost first; [] if it is the whole tree."""
    parts = settings.prefix(folder).split("/")[:-1]
    return [os.path.join(folder, *parts[:depth]) for depth in range(1, len(parts) + 1)]


def digests(folder: str, names: Sequence[str]) -> dict[str, str]:
    """{path: sha256} of untracked files; `size:mtime_ns` for large or unreadable ones, and after the first MANY."""
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
    """Restore permissions of folders, so that their content can be replaced or removed."""
    for top, folders, _ in os.walk(folder):
        for path in (os.path.join(top, name) for name in folders):
            if not os.path.islink(path) and os.lstat(path).st_uid == os.getuid():
                os.chmod(path, os.lstat(path).st_mode | 0o700)


def _copy_index(source: str, target: str) -> None:
    """Give the agent's git a copy of the index with its timestamp, which git compares with those of the files."""
    data, made = files.read(source) or b"", os.stat(source).st_mtime_ns
    if files.read(target) != data:
        files.replace(target, data)
    os.utime(target, ns=(made, made))


def carry(project: str, folder: str, names: Collection[str], below: str = "") -> list[str]:
    """Copy these ignored files of the project, named from `below` in it (such as `services/api/`), into the tree;
    returns `name: why` for each that is not copied. Files that git does not ignore in the tree are skipped: a commit
    would include them. Links are not followed. 1 call.
    """
    if not names:
        return []
    sides = (("", project), ("in the tree: ", folder))
    unfit = {name: _unfit(name) for name in names}
    for name in [name for name, why in unfit.items() if not why]:
        unfit[name] = next((place + why for place, top in sides if (why := placement.blocked(top, below + name))), "")
    fit = [name for name, why in unfit.items() if not why]
    known = {name for _, name in _rules(folder, [below + name for name in fit])}
    for name in fit:
        unfit[name] = (
            placement.copy(project, folder, below + name)
            if below + name in known
            else "git does not ignore it, so it would be committed"
        )
    return [f"{name}: {why}" for name, why in unfit.items() if why]


def _rules(folder: str, names: Collection[str], *more: str) -> list[tuple[str, str]]:
    """(`.gitignore:1 "/*"`, name) of each of these names that git ignores in the tree. 1 call, 0 without names."""
    extra = {"GIT_INDEX_FILE": index(folder), "GIT_LITERAL_PATHSPECS": "0"}  # check-ignore takes no literals
    asked, words = repository.as_input(f"./{name}" for name in names), ("check-ignore", "-z", "-v", "--stdin", *more)
    code, out, err = settings.call(folder, *words, stdin=asked, extra=extra) if names else (0, b"", b"")
    if code > 1:
        raise GitFailed(f"git check-ignore failed in {folder}: {err.decode('utf-8', 'replace').strip()}")
    said = os.fsdecode(out).split("\0")
    rows = zip(said[::4], said[1::4], said[2::4], said[3::4], strict=False)
    return [(f'{source}:{line} "{rule}"', name[2:]) for source, line, rule, name in rows if rule[:1] != "!"]


def ignored(folder: str) -> Iterator[str]:
    """What git ignores in the tree, a folder of more than a few files as `dir/`; without packages, which no commit takes, and
    what tools mark as a cache. 1 call."""
    rows = repository.run(folder, *IGNORED, extra={"GIT_INDEX_FILE": index(folder)}).split(b"\0")
    found = [os.fsdecode(row[2:]) for row in rows if row.startswith(b"! ")]
    above = {name[: at + 1] for name in found for at, letter in enumerate(name) if letter == "/"}
    caches = tuple(one for one in above if os.path.lexists(os.path.join(folder, one, "CACHEDIR.TAG")))
    for name in found:
        if commit_excludes.EXCLUDED_FOLDERS.isdisjoint(name.split("/")) and not name.startswith(caches):
            walk = ((at, one) for at, _, names in os.walk(os.path.join(folder, name)) for one in names)
            few = [os.path.relpath(os.path.join(*path), folder) for path in islice(walk, MAX_NAMES + 1)]
            yield from few if 0 < len(few) <= MAX_NAMES else [name]


def ignored_since(folder: str, before: Collection[str] | None) -> list[str]:
    """What is `ignored` and was not before, by rule: `ignored by .gitignore:1 "/*": a.sh`; [] if that is unknown. 0-2 calls."""
    found = [] if before is None else {*ignored(folder)}.difference(before)
    new, rules = sorted(found, key=lambda name: (name[-1] == "/", name)), dict[str, list[str]]()  # files come first
    for rule, name in _rules(folder, new, "--no-index"):  # by the index a file `*` would count as tracked
        rules.setdefault(rule, []).append(encoding.shell_word(name))
    lines = [f"ignored by {rule}: {encoding.few(names, MAX_NAMES)}" for rule, names in rules.items()]
    lines[MAX_RULES:] = [f"ignored by {len(lines) - MAX_RULES} more rules"] * (len(lines) > MAX_RULES)
    return [console.sanitise(line).replace("\n", "\\n") for line in lines]


def _unfit(name: str) -> str:
    parts = name.split("/")
    if name.startswith("/") or not set(parts).isdisjoint({"", ".", ".."}):
        return "not the name of a file below the project folder"
    return "not to be copied" if parts[0] in (".git", commit_excludes.STATE) else ""


def remove(project: str, folder: str) -> None:
    """Remove the tree with all its content, and unregister it; ignores an absent one. 0 calls."""
    with settings.HeldLock(folder + ".lock"):
        for path in (folder, index(folder), index(folder) + ".lock"):
            if os.path.lexists(path):
                _remove(path)
        _forget(_git_folder(project, folder))
        settings.forget(folder)


def forget_below(project: str, begin: str, *, empty: bool) -> None:
    """Unregister the harness's trees with this path prefix, such as those in a killed run's temporary folder, and with
    `empty` those whose path was not written yet. 0 calls."""
    known = os.path.dirname(_git_folder(project, project))
    for own in (os.path.join(known, name) for name in files.names(known) if name.startswith(PREFIX)):
        left = {os.path.join(own, name) for name in files.names(own)} - set(files.abandoned(own))
        if (files.read(own + "/gitdir") or b"").startswith(os.fsencode(begin)) or (empty and not left):
            _forget(own)


def _forget(own: str) -> None:
    """Remove a tree's git folder, `gitdir` last, so that a kill leaves nothing unidentified."""
    if os.path.isdir(own) and not os.path.islink(own):
        for name in sorted(files.names(own), key=lambda name: name == "gitdir"):
            _remove(os.path.join(own, name))
    if os.path.lexists(own):
        _remove(own)
