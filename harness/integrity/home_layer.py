"""A HOME of a tree's own: what a person has in theirs is seen read-only, what tools write there stays with the tree.

It is a folder of links to the person's files. Folders that tools write into (caches, registries, settings) are folders of
the layer with links below, so that a new file lands in the layer. Keys and logins are left out. Works without mounts.
"""

from __future__ import annotations

import os

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
FRESH = (".cache", ".npm/_cacache", ".npm/_locks", ".npm/_logs", ".ccache", ".gradle/caches", ".gradle/daemon")
OPENED = (  # folders that are made in the layer, with links to what the person's folder holds
    *(
        ".config",
        ".local",
        ".local/share",
        ".local/state",
        ".local/bin",
        ".npm",
        ".cargo",
        ".cargo/registry",
        ".cargo/git",
    ),
    *(".cargo/registry/index", ".cargo/registry/cache", ".cargo/registry/src", ".cargo/git/db", ".cargo/git/checkouts"),
    *(
        ".rustup",
        ".gradle",
        ".m2",
        ".m2/repository",
        "go",
        "go/pkg",
        "go/pkg/mod",
        ".bun",
        ".yarn",
        ".pyenv",
        ".pyenv/shims",
    ),
)
ONE_BELOW = (
    ".cargo/registry/index",
    ".cargo/registry/cache",
    ".cargo/registry/src",
    ".cargo/git/db",
)  # a folder a host


def make(folder: str, home: str, hidden: tuple[str, ...] = KEYS) -> str:
    """The layer in `folder` over the person's `home`, made or brought up to date; what was written there stays. Its path."""
    files.make_folder(folder)
    _open(folder, home, "", frozenset(hidden))
    return folder


def _open(layer: str, home: str, below: str, hidden: frozenset[str]) -> None:
    """Link what stands in `home`/`below`, and go down where a folder is the layer's own."""
    own = os.path.join(layer, below)
    _forget_gone(own, os.path.join(home, below))
    for name in files.names(os.path.join(home, below)):
        path = f"{below}/{name}" if below else name
        mine, theirs = os.path.join(layer, path), os.path.join(home, path)
        if path in hidden or theirs == layer or layer.startswith(theirs + "/harness/"):
            continue
        if path in FRESH or _is_opened(path, below, theirs):
            if os.path.islink(mine):
                os.unlink(mine)
            os.makedirs(mine, exist_ok=True)
            if path not in FRESH:
                _open(layer, home, path, hidden)
        elif not os.path.lexists(mine):
            os.symlink(theirs, mine)


def _is_opened(path: str, below: str, theirs: str) -> bool:
    return (path in OPENED or below in ONE_BELOW) and os.path.isdir(theirs)


def _forget_gone(own: str, theirs: str) -> None:
    """Remove links to what the person has removed; what tools made in the layer stays."""
    for name in files.names(own):
        path = os.path.join(own, name)
        if (
            os.path.islink(path)
            and os.readlink(path) == os.path.join(theirs, name)
            and not os.path.lexists(os.readlink(path))
        ):
            os.unlink(path)
