"""A HOME of a tree's own: what a person has in theirs is seen read-only, what tools write there stays with the tree.

It is a folder of links to the person's files; works without mounts. Keys and logins are left out. Four kinds are no links:

*FRESH*: caches and locks that tools rewrite anywhere below; each layer begins its own. *COPIED*: settings that tools
rewrite in place, a copy as new as the person's. *SHIMS*: pyenv's, which name their root: copies that name the layer's.
*OPENED*: folders of the layer with links below, because tools add entries to them:

.config, .local, .local/share, .local/state, .local/share/uv (tools, python): settings and data of any new tool;
.local/bin, .local/lib (python*, site-packages): `uv tool install`, `pip install --user`;
.npm: logs and caches; .bun, .yarn, .gradle, .m2: the same beside settings of the person;
.cargo, bin, registry (cache, src, each by host), git (db, checkouts): crates, `cargo install`, and their locks;
.cargo/registry/index: a copy of each host's, made once, because cargo rewrites its entries;
.rustup, toolchains, update-hashes: a toolchain that a project pins;
.pyenv, shims, versions: `pyenv rehash` (after each `pip install` by a shim), `pyenv virtualenv`;
go, go/bin: `go install`; modules are a fresh cache.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from harness.base import encoding
from harness.store import files

KEYS = (
    *(
        ".ssh",
        ".aws",
        ".gnupg",
        ".netrc",
        ".git-credentials",
        ".pypirc",
        ".azure",
        ".kube",
        ".docker",
        ".password-store",
    ),
    *(".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".local/share/keyrings", ".mozilla", ".vault-token"),
)  # what an agent has no use for, and may not read; also hidden behind glass at its own place
FRESH = (
    *(".cache", ".npm/_cacache", ".npm/_locks", ".npm/_logs", ".npm/_npx", ".npm/_update-notifier-last-checked"),
    *(
        ".cargo/.package-cache",
        ".cargo/.package-cache-mutate",
        ".cargo/.global-cache",
        ".rustup/tmp",
        ".rustup/downloads",
    ),
    *(".ccache", ".gradle/caches", ".gradle/daemon", ".m2/repository", "go/pkg", ".pyenv/cache"),
)
COPIED = (".gitconfig", ".cargo/.crates.toml", ".cargo/.crates2.json", ".rustup/settings.toml")
SHIMS = ".pyenv/shims"
INDEXES = ".cargo/registry/index"
OPENED = (
    *(".config", ".local", ".local/share", ".local/state", ".local/bin", ".local/lib", ".npm", ".gradle", ".m2"),
    *(".local/share/uv", ".local/share/uv/tools", ".local/share/uv/python"),
    *(
        ".cargo",
        ".cargo/bin",
        ".cargo/registry",
        ".cargo/git",
        ".rustup",
        ".rustup/toolchains",
        ".rustup/update-hashes",
    ),
    *(INDEXES, ".cargo/registry/cache", ".cargo/registry/src", ".cargo/git/db", ".cargo/git/checkouts"),
    *("go", "go/bin", ".bun", ".yarn", ".pyenv", SHIMS, ".pyenv/versions"),
)
EACH_BELOW = (".cargo/registry/cache", ".cargo/registry/src", ".cargo/git/checkouts", ".local/lib")  # a host, a Python
PLACES = {  # variables that say where such a folder is, if not below HOME
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "GOPATH": "go",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
}
UNSET = (  # without these a tool uses its default below HOME; the runtime folder holds sockets, which are not there
    *("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CCACHE_DIR", "GOCACHE"),
    *("GOMODCACHE", "npm_config_cache", "NPM_CONFIG_CACHE", "PYTHONUSERBASE"),
)
LFS = ".git-lfs"  # a storage of git-lfs: `git status` of a changed large file adds one, and the project's git is read-only


def make(
    folder: str, home: str, hidden: tuple[str, ...] = KEYS, env: Mapping[str, str] | None = None, git: str = ""
) -> str:
    """The layer in `folder` over the person's `home`, made or brought up to date; what was written there stays. Its path.

    `env` names folders outside HOME (PLACES); `git` is the project's common git folder, whose large files are linked.
    """
    elsewhere = _elsewhere(env or {}, home)
    sources, mark = {"": home, **elsewhere}, folder + ".stamp"
    if os.path.isdir(folder) and files.read(mark) == _stamp(folder, sources, git):
        return folder
    files.make_folder(folder)
    for below, theirs in sources.items():
        _own_folder(folder, below)
        _open(folder, theirs, below, frozenset((*hidden, *elsewhere)))
    if git:
        _own_folder(folder, LFS)
        _link_large_files(folder, os.path.join(git, "lfs", "objects"))
    files.replace_quickly(mark, _stamp(folder, sources, git))
    return folder


def _stamp(folder: str, sources: Mapping[str, str], git: str) -> bytes:
    """When each folder that the layer mirrors, and its own, last got or lost an entry, and each copied file its content."""
    names = ("", *OPENED, *COPIED)
    paths = [os.path.join(top, name) for top in (folder, sources[""]) for name in names]
    paths += [*(theirs for below, theirs in sources.items() if below), os.path.join(git, "lfs", "objects")]
    return encoding.dump_json([_changed(path) for path in paths])


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:  # it is not there
        return 0


def variables(env: Mapping[str, str], folder: str, home: str) -> dict[str, str]:
    """The environment of a process whose HOME is the layer in `folder` over `home`: nothing in it leads a tool around it."""
    moved = {name: os.path.join(folder, below) for name, below in PLACES.items() if name in env}
    places = {**_elsewhere(env, home), "": home}
    path = [_moved(entry, places, folder) for entry in env.get("PATH", os.defpath).split(os.pathsep)]
    kept = {name: value for name, value in env.items() if name not in UNSET}
    storage = _large_files(env, folder) if os.path.isdir(os.path.join(folder, LFS)) else {}
    return {**kept, **moved, **storage, "PATH": os.pathsep.join(path), "HOME": folder}


def keys(home: str, env: Mapping[str, str]) -> list[str]:
    """Where keys and logins are outside: what is hidden behind glass."""
    found = [os.path.join(home, name) for name in KEYS]
    for below, theirs in _elsewhere(env, home).items():
        found += [theirs + name.removeprefix(below) for name in KEYS if name.startswith(below + "/")]
    return found


def _elsewhere(env: Mapping[str, str], home: str) -> dict[str, str]:
    """{folder of the layer: the folder outside HOME that it opens}."""
    named = {below: env.get(name, "") for name, below in PLACES.items()}
    return {
        below: theirs.rstrip("/")
        for below, theirs in named.items()
        if os.path.isabs(theirs) and os.path.isdir(theirs) and theirs.rstrip("/") != os.path.join(home, below)
    }


def _moved(entry: str, places: Mapping[str, str], folder: str) -> str:
    """An entry of PATH, or the folder of the layer that is opened in its place."""
    for below, theirs in places.items():
        if entry.startswith(theirs + "/"):
            path = os.path.join(below, entry.removeprefix(theirs + "/").rstrip("/"))
            return os.path.join(folder, path) if path in OPENED else entry
    return entry


def _large_files(env: Mapping[str, str], folder: str) -> dict[str, str]:
    """One more setting for git: where git-lfs keeps its files."""
    count = env.get("GIT_CONFIG_COUNT", "")
    at = int(count) if count.isdigit() else 0
    setting = {f"GIT_CONFIG_KEY_{at}": "lfs.storage", f"GIT_CONFIG_VALUE_{at}": os.path.join(folder, LFS)}
    return {"GIT_CONFIG_COUNT": str(at + 1), **setting}


def _open(layer: str, source: str, below: str, hidden: frozenset[str]) -> None:
    """Fill the layer's folder `below` with what stands in `source`, and go down where a folder is the layer's own."""
    _forget_gone(os.path.join(layer, below), source)
    for name in files.names(source):
        path = f"{below}/{name}" if below else name
        theirs = os.path.join(source, name)
        if path not in hidden and theirs != layer and not layer.startswith(theirs + "/harness/"):
            _place(layer, theirs, path, hidden)


def _place(layer: str, theirs: str, path: str, hidden: frozenset[str]) -> None:
    """Put one file or folder of the person's into the layer, in the way of its kind."""
    mine, below = os.path.join(layer, path), os.path.dirname(path)
    if path in COPIED or below == SHIMS:
        if os.path.isfile(theirs):
            _copy(mine, theirs)
    elif below == INDEXES and os.path.isdir(theirs):
        _copy_once(mine, theirs)
    elif path in FRESH:
        if os.path.isdir(theirs):
            _own_folder(layer, path)
    elif _is_opened(path, below) and os.path.isdir(theirs):
        _own_folder(layer, path)
        _open(layer, theirs, path, hidden)
    elif not os.path.lexists(mine):
        os.symlink(theirs, mine)


def _is_opened(path: str, below: str) -> bool:
    """Whether the layer has this folder of its own; below .local/lib/python* that is site-packages."""
    return path in OPENED or below in EACH_BELOW or os.path.dirname(below) == ".local/lib"


def _own_folder(layer: str, path: str) -> str:
    """A folder of the layer, and those above it, in the place of links and files: tools may have put anything there."""
    own = layer
    for name in filter(None, path.split("/")):
        own = os.path.join(own, name)
        if os.path.islink(own) or not os.path.isdir(own):
            files.remove(own)
            os.mkdir(own)
    return own


def _copy(mine: str, theirs: str) -> None:
    """A copy that is as new as the person's file; a shim names the root that it is in."""
    if not os.path.islink(mine) and os.path.isfile(mine) and os.stat(mine).st_mtime_ns >= os.stat(theirs).st_mtime_ns:
        return
    data = files.read(theirs) or b""
    if os.path.dirname(mine).endswith("/" + SHIMS):
        root, own = (os.path.dirname(os.path.dirname(path)) for path in (theirs, mine))
        data = data.replace(os.fsencode(root), os.fsencode(own))
    files.replace_quickly(mine, data)
    os.chmod(mine, os.stat(theirs).st_mode & 0o700 | 0o600)


def _copy_once(mine: str, theirs: str) -> None:
    """A copy of a folder without the history that old versions of cargo keep there; a part of it is enough for a cache."""
    if not os.path.lexists(mine):
        shutil.copytree(theirs, mine, symlinks=True, ignore=shutil.ignore_patterns(".git"))


def _link_large_files(layer: str, theirs: str) -> None:
    """Link each file that git-lfs keeps for the project, at the same place below the layer's objects."""
    for first in files.names(theirs):
        for second in files.names(os.path.join(theirs, first)):
            own = _own_folder(layer, f"{LFS}/objects/{first}/{second}")
            for name in files.names(os.path.join(theirs, first, second)):
                if not os.path.lexists(os.path.join(own, name)):
                    os.symlink(os.path.join(theirs, first, second, name), os.path.join(own, name))


def _forget_gone(own: str, theirs: str) -> None:
    """Remove links to what the person has removed; what tools made in the layer stays."""
    for name in files.names(own):
        path = os.path.join(own, name)
        gone = os.path.join(theirs, name)
        if os.path.islink(path) and os.readlink(path) == gone and not os.path.lexists(gone):
            os.unlink(path)
