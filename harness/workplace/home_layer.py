"""A private HOME per worktree: visible parts of the person's HOME are read-only, files that tools write stay with the tree.

It is a folder of links to the paths of home.txt, PATH, variables and config.toml (`_home_list`), and works without
mounts. Instead of links it has copies of settings (tools rewrite them in place) without credentials, rewritten shims of
pyenv (they name their root), and its own folders with links below (tools add entries to them).
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence

from harness.base import encoding
from harness.git.checkouts import clones
from harness.process import temporary
from harness.state import files
from harness.workplace import _home_list, _logins
from harness.workplace._home_list import COPY, FRESH, GIT, GIT_FILES, LOGIN, MOVED, OPENED, SETTINGS, UNSET, Person
from harness.workplace._logins import Pairs

SHIMS = ".pyenv/shims"
INDEXES = ".cargo/registry/index"
FORMAT = 2  # of a layer; one of another format is made again
PACKAGES = (  # what pip, npm, go and cargo downloaded
    ".cache/pip", "Library/Caches/pip", ".npm/_cacache", "go/pkg/mod/cache/download",
    ".cargo/registry/cache", ".cargo/registry/index",
)  # fmt: skip
LFS = ".git-lfs"  # a storage of git-lfs: `git status` of a changed large file adds one, and the project's git is read-only


def make(folder: str, person: Person, git: str = "", packages: str = "") -> str:
    """Create or update the layer in `folder` over the person's HOME, keeping files written there; returns its path.
    `git` is the project's common git folder, whose large files are linked. A new layer begins with a copy of `packages`.
    """
    mark = folder + ".stamp"
    if os.path.isdir(folder) and files.read(mark) == _stamp(folder, person, git):
        return folder
    if os.path.isdir(packages) and not os.path.lexists(folder):
        take_packages(packages, folder)
    files.make_folder(folder)
    tops = [*person.seen, *(entry.path for entry in _home_list.entries(COPY, SETTINGS))]
    for below in sorted({above for path in tops for above in _home_list.above(path)}):
        _forget(folder, person, below)
    for path in tops:
        if os.path.exists(person.at(path)):
            _own_folder(folder, os.path.dirname(path))
            _place(folder, person, path, git)
    if git:
        _own_folder(folder, LFS)
        _link_large_files(folder, os.path.join(git, "lfs", "objects"))
    files.replace_quickly(mark, _stamp(folder, person, git))
    return folder


def packages_of(layer: str) -> str:
    """The folder with the packages of a mission, beside each of its layers."""
    return os.path.join(os.path.dirname(layer), "packages")


def take_packages(home: str, target: str) -> None:
    """Copy the package caches in this HOME, without links that lead out of it, to `target`, which the copy replaces."""
    top, new = os.path.realpath(home), target + ".new"
    temporary.remove(new)
    try:
        files.make_folder(new)
        for theirs in (os.path.join(top, path) for path in PACKAGES):
            if os.path.isdir(theirs) and os.path.realpath(theirs) == theirs:
                shutil.copytree(theirs, new + theirs[len(top) :], symlinks=True, copy_function=shutil.copyfile)
    except OSError:  # the disk is full, or a program left something that is no file: packages come from the network
        temporary.remove(new)
        return
    temporary.remove(target)
    os.rename(new, target)


def link(layer: str, home: str, paths: Iterable[str]) -> None:
    """Link these paths below HOME, those of an agent's program, in the layer."""
    for path in paths:
        below = path.removeprefix(home + "/")
        folder, name = os.path.split(os.path.join(layer, below))
        if below != path and (
            not os.path.exists(folder) or os.path.realpath(folder) == folder
        ):  # else a link leads to it
            mine = os.path.join(_own_folder(layer, os.path.dirname(below)), name)
            if os.path.isdir(mine) and not os.path.islink(mine):
                shutil.rmtree(mine)
            files.link(mine, path)


def _stamp(folder: str, person: Person, git: str) -> bytes:
    """A stamp of the layer: modification times of mirrored and own folders, contents of copied files, and the visible
    paths."""
    below = [entry.path for entry in _home_list.entries(OPENED, COPY, SETTINGS) if "*" not in entry.path]
    paths = [os.path.join(folder, name) for name in ("", *below)]
    paths += [person.at(name) for name in ("", *below, *GIT_FILES)]
    times = [_changed(path) for path in [*paths, os.path.join(git, "lfs", "objects")]]
    return encoding.dump_json([FORMAT, times, *map(list, (person.seen, person.shown, person.hidden))])


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:  # it is absent
        return 0


def variables(env: Mapping[str, str], folder: str, home: str) -> dict[str, str]:
    """The environment of a process whose HOME is the layer in `folder` over `home`; no variable bypasses the layer."""
    known = _home_list.entries(OPENED, MOVED)
    named = {name[1:]: entry.path for entry in known for name in entry.variables if name[0] == "="}
    moved = {name: os.path.join(folder, below) for name, below in named.items() if name in env}
    places = {**_home_list.elsewhere(env, home), "": home}
    path = [_moved(entry, places, folder) for entry in env.get("PATH", os.defpath).split(os.pathsep)]
    gone = {name for entry in _home_list.entries(UNSET) for name in entry.variables}
    kept = {name: value for name, value in env.items() if name not in gone}
    storage = _large_files(env, folder) if os.path.isdir(os.path.join(folder, LFS)) else {}
    return {**kept, **moved, **storage, "PATH": os.pathsep.join(path), "HOME": folder}


def keys(home: str, env: Mapping[str, str], shown: Sequence[str] = ()) -> list[str]:
    """Paths of keys that programs of a run cannot read, at any trust, except `shown` ones."""
    person = _home_list.person(home, env, [_home_list.ALL, *shown])
    return [person.at(path) for path in person.hidden]


def _moved(entry: str, places: Mapping[str, str], folder: str) -> str:
    """An entry of PATH, or the layer's folder that replaces it."""
    opened = {entry.path for entry in _home_list.entries(OPENED)}
    for below, theirs in places.items():
        if entry.startswith(theirs + "/"):
            path = os.path.join(below, entry.removeprefix(theirs + "/").rstrip("/"))
            return os.path.join(folder, path) if path in opened else entry
    return entry


def _large_files(env: Mapping[str, str], folder: str) -> dict[str, str]:
    """A git setting for the storage of git-lfs."""
    count = env.get("GIT_CONFIG_COUNT", "")
    at = int(count) if count.isdigit() else 0
    setting = {f"GIT_CONFIG_KEY_{at}": "lfs.storage", f"GIT_CONFIG_VALUE_{at}": os.path.join(folder, LFS)}
    return {"GIT_CONFIG_COUNT": str(at + 1), **setting}


def _place(layer: str, person: Person, path: str, git: str) -> None:
    """Put one file or folder of the person into the layer, according to its kind."""
    theirs, mine, below, how = person.at(path), os.path.join(layer, path), os.path.dirname(path), person.how(path)
    if how in (FRESH, LOGIN):
        return
    if how in (COPY, SETTINGS) or below == SHIMS:
        if os.path.isfile(theirs):
            _copy(mine, theirs, lambda data: _rewritten(data, person, path, layer, git))
    elif below == INDEXES and os.path.isdir(theirs):
        _copy_once(mine, theirs)
    elif how == OPENED and os.path.isdir(theirs):
        _own_folder(layer, path)
        _forget(layer, person, path)
        for name in files.names(theirs):
            _place(layer, person, f"{path}/{name}" if path else name, git)
    elif not os.path.lexists(mine) and not _home_list.is_in(layer, theirs):
        os.symlink(theirs, mine)


def _rewritten(data: bytes, person: Person, path: str, layer: str, git: str) -> bytes:
    """The layer's content of a file: a shim with its root replaced, settings without credentials."""
    if os.path.dirname(path) == SHIMS:
        root = os.path.dirname(SHIMS)
        return data.replace(os.fsencode(person.at(root)), os.fsencode(os.path.join(layer, root)))
    if person.whole:
        return data
    if path in GIT_FILES:
        return clones.part(person.at(path), git or os.path.dirname(person.at(path)), public)
    return os.fsencode(_logins.without(os.fsdecode(data))) if person.how(path) == SETTINGS else data


def public(config: Pairs) -> list[list[str | None]]:
    """The (key, value) pairs of a person's git configuration that a run may see: the keys of home.txt, without
    credentials."""
    keys = [entry.path for entry in _home_list.entries(GIT)]
    kept = [pair for pair in config if any(fnmatch.fnmatchcase(str(pair[0]), key) for key in keys)]
    return _logins.without_in_git(kept)


def _own_folder(layer: str, path: str) -> str:
    """Create a folder of the layer with its parents, replacing links and files that tools may have put there."""
    own = layer
    for name in filter(None, path.split("/")):
        own = os.path.join(own, name)
        if os.path.islink(own) or not os.path.isdir(own):
            files.remove(own)
            os.mkdir(own)
    return own


def _copy(mine: str, theirs: str, rewritten: Callable[[bytes], bytes]) -> None:
    """Copy a file, if the person's is newer."""
    if not os.path.islink(mine) and os.path.isfile(mine) and os.stat(mine).st_mtime_ns >= os.stat(theirs).st_mtime_ns:
        return
    files.replace_quickly(mine, rewritten(files.read(theirs) or b""))
    os.chmod(mine, os.stat(theirs).st_mode & 0o700 | 0o600)


def _copy_once(mine: str, theirs: str) -> None:
    """Copy a folder once, without the git history of old cargo versions; a partial cache suffices."""
    if not os.path.lexists(mine):
        shutil.copytree(theirs, mine, symlinks=True, ignore=shutil.ignore_patterns(".git"))


def _link_large_files(layer: str, theirs: str) -> None:
    """Link each git-lfs file of the project below the layer's objects."""
    for first in files.names(theirs):
        for second in files.names(os.path.join(theirs, first)):
            own = _own_folder(layer, f"{LFS}/objects/{first}/{second}")
            for name in files.names(os.path.join(theirs, first, second)):
                if not os.path.lexists(os.path.join(own, name)):
                    os.symlink(os.path.join(theirs, first, second, name), os.path.join(own, name))


def _forget(layer: str, person: Person, below: str) -> None:
    """Remove links to removed or no longer visible paths; files of tools in the layer stay."""
    way = [os.path.join(layer, path) for path in (*_home_list.above(below)[1:], below) if path]
    own = way[-1] if way else layer
    if any(map(os.path.islink, way)) or not os.path.isdir(own):
        return
    for name in files.names(own):
        mine, path = os.path.join(own, name), f"{below}/{name}" if below else name
        ours = os.path.islink(mine) and os.readlink(mine) == person.at(path)
        if ours and not _is_linked(person, path):
            os.unlink(mine)


def _is_linked(person: Person, path: str) -> bool:
    seen = any(_home_list.is_in(path, top) for top in person.seen) and os.path.lexists(person.at(path))
    return seen and person.how(path) not in (FRESH, LOGIN, COPY, SETTINGS)
