"""Temporary folders of a run: for checks, services and agents, below the system's own, gone with whoever asked for them."""

from __future__ import annotations

import os
from contextlib import suppress

from harness.store import files


def new(what: str, tag: str = "") -> str:
    """A new empty folder in the system's temporary folder; whoever asks removes it, or `clear_of` its run."""
    folder = f"{_begin(tag)}{what}-{os.urandom(5).hex()}"
    os.mkdir(folder, 0o700)
    return folder


def _begin(tag: str) -> str:
    named = f"{tag.replace('/', '-')}-" if tag else ""
    base = os.environ.get("TMPDIR", "")
    return os.path.join(base if os.path.isdir(base) else "/tmp", f"harness-{named}")


def clear_of(tag: str) -> None:
    """Remove the temporary folders that a run with this tag left behind when it was killed."""
    base, begin = os.path.split(_begin(tag))
    for name in files.names(base):
        if name.startswith(begin):
            clear(os.path.join(base, name))


def clear(folder: str) -> None:
    """Remove the folder with whatever was made in it, as far as we may: what belongs to another user, or is held by a
    mount, stays where it is. Nothing reads it again, so it changes neither a verdict nor how a run ends.
    """
    with suppress(OSError):
        if os.path.islink(folder):  # what it leads to is not ours
            files.remove(folder)
            return
    with suppress(OSError):
        os.rmdir(folder)  # mostly it is empty
        return
    import shutil  # 5 ms, where it is not

    _make_writable(folder)
    for top, folders, _ in os.walk(folder):
        for name in folders:
            _make_writable(os.path.join(top, name))
    shutil.rmtree(folder, ignore_errors=True)


def _make_writable(folder: str) -> None:
    """Package caches are made read-only, and what lies in a read-only folder cannot be removed."""
    with suppress(OSError):  # another user's, or gone meanwhile
        if not os.path.islink(folder):
            os.chmod(folder, 0o700)
