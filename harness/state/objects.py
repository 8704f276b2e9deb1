"""Content-addressed copies of all parts of prompts: objects/ab/cdef…, named by the SHA-256 of the bytes, and read-only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.base.errors import BrokenFile
from harness.state import files
from harness.state.layout import Layout

RESTORING = ".restoring"  # there while lost objects are restored; so a kill in between is seen


def path_of(layout: Layout, name: str) -> str:
    """The path of an object."""
    return os.path.join(layout.objects, name[:2], name[2:])


def put(layout: Layout, data: bytes) -> str:
    """Store `data` durably, once, and return its name. What is there already is used only if its bytes are the same."""
    name = files.digest(data)
    path = path_of(layout, name)
    if not _is_there(path, data):
        # a temporary file that a kill leaves is in one folder, which each recovery looks through
        files.replace(path, data, files.READ_ONLY, beside=os.path.join(layout.objects, name))
    return name


def _is_there(path: str, data: bytes) -> bool:
    try:
        return files.read(path) == data
    except (BrokenFile, PermissionError):  # no plain file, or closed to us: it is replaced
        return False


def keep(layout: Layout, ledger: Mapping[str, Sequence[object]]) -> None:
    """Store each managed file that this ledger has, as it is on disk, where it is not an object yet: what a run found."""
    for name, (digest, _) in ledger.items():
        if digest and not os.path.exists(path_of(layout, str(digest))):
            data = files.read(f"{layout.state}/{name}")
            if data is not None:
                put(layout, data)


def get(layout: Layout, name: str) -> bytes:
    """The bytes of an object; raises BrokenFile if it is missing or its digest is not its name."""
    path = path_of(layout, name)
    data = files.read(path)
    if data is None:
        raise BrokenFile(path, "the object is missing", remedy="Restore it from a copy of the mission.")
    if files.digest(data) != name:
        raise BrokenFile(path, "the object's bytes are not what its name says", remedy="Restore it from a copy.")
    return data


def look(layout: Layout) -> tuple[set[str], list[str]]:
    """The names of the objects whose bytes are what their name says, and of the others."""
    right, wrong = set(), []
    for folder in files.names(layout.objects):
        for rest in files.names(os.path.join(layout.objects, folder)) if len(folder) == 2 else ():
            name = folder + rest
            if len(name) == 64:
                try:
                    data = files.read(path_of(layout, name))
                except (BrokenFile, PermissionError):
                    data = None
                if data is not None and files.digest(data) == name:
                    right.add(name)
                else:
                    wrong.append(name)
    return right, wrong


def is_whole(layout: Layout) -> bool:
    """Whether the folder is there, and nobody was killed while its objects were restored."""
    return os.path.isdir(layout.objects) and not os.path.exists(_mark(layout))


def begin_restoring(layout: Layout) -> None:
    """From here on `is_whole` is false, until `end_restoring`."""
    files.replace(_mark(layout), b"")


def end_restoring(layout: Layout) -> None:
    """All that can be restored is."""
    files.remove(_mark(layout))


def _mark(layout: Layout) -> str:
    return os.path.join(layout.objects, RESTORING)
