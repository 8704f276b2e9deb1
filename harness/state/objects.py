"""Content-addressed copies of all parts of prompts: objects/ab/cdef…, named by the SHA-256 of the bytes, and read-only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.base.errors import BrokenFile
from harness.state import files, names
from harness.state.layout import Layout

RESTORING = ".restoring"  # exists while lost objects are restored, so that a kill in between is detected


def path_of(layout: Layout, name: str) -> str:
    """The path of an object."""
    return os.path.join(layout.path(names.OBJECTS), name[:2], name[2:])


def put(layout: Layout, data: bytes) -> str:
    """Store `data` durably, once, and return its name. An existing object is reused only if its bytes are equal."""
    name = files.digest(data)
    path = path_of(layout, name)
    if not _is_there(path, data):
        # temporary files of killed writers lie in one folder, which each recovery cleans
        files.replace(path, data, files.READ_ONLY, beside=os.path.join(layout.path(names.OBJECTS), name))
    return name


def _is_there(path: str, data: bytes) -> bool:
    try:
        return files.read(path) == data
    except (BrokenFile, PermissionError):  # not a regular file, or not readable: replace it
        return False


def keep(layout: Layout, ledger: Mapping[str, Sequence[object]]) -> None:
    """Store each managed file of this ledger as it is on disk, unless it is an object already: the state that a run found."""
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
        raise BrokenFile(path, "the object's digest is not its name", remedy="Restore it from a copy.")
    return data


def look(layout: Layout) -> tuple[set[str], list[str]]:
    """(names of the intact objects, names of the others)."""
    right, wrong = set(), []
    for folder in files.names(layout.path(names.OBJECTS)):
        for rest in files.names(os.path.join(layout.path(names.OBJECTS), folder)) if len(folder) == 2 else ():
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
    """Whether the folder exists, and no restoration of its objects was interrupted."""
    return os.path.isdir(layout.path(names.OBJECTS)) and not os.path.exists(_mark(layout))


def begin_restoring(layout: Layout) -> None:
    """Make `is_whole` false until `end_restoring`."""
    files.replace(_mark(layout), b"")


def end_restoring(layout: Layout) -> None:
    """Mark the restoration as complete."""
    files.remove(_mark(layout))


def _mark(layout: Layout) -> str:
    return os.path.join(layout.path(names.OBJECTS), RESTORING)
