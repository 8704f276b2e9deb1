"""Content-addressed copies of everything a prompt was made of: objects/ab/cdef…, the name is the SHA-256 of the bytes."""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile
from harness.store import files
from harness.store.layout import Layout


def path_of(layout: Layout, name: str) -> str:
    """Where the object lies."""
    return os.path.join(layout.objects, name[:2], name[2:])


def put(layout: Layout, data: bytes) -> str:
    """Keep `data` durably (once, however often it is put) and give its name."""
    name = files.digest(data)
    path = path_of(layout, name)
    if not os.path.exists(path):
        files.replace(path, data, files.PRIVATE)
    return name


def get(layout: Layout, name: str) -> bytes:
    """The bytes of an object; BrokenFile where it is missing or is not what its name says."""
    path = path_of(layout, name)
    data = files.read(path)
    if data is None:
        raise BrokenFile(path, "the object is missing", remedy="Restore it from a copy of the mission.")
    if files.digest(data) != name:
        raise BrokenFile(path, "the object's bytes are not what its name says", remedy="Restore it from a copy.")
    return data
