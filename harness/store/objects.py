"""Content-addressed copies of all parts of prompts: objects/ab/cdef…, named by the SHA-256 of the bytes."""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile
from harness.store import files
from harness.store.layout import Layout


def path_of(layout: Layout, name: str) -> str:
    """The path of an object."""
    return os.path.join(layout.objects, name[:2], name[2:])


def put(layout: Layout, data: bytes) -> str:
    """Store `data` durably, once, and return its name."""
    name = files.digest(data)
    path = path_of(layout, name)
    if not os.path.exists(path):
        files.replace(path, data, files.PRIVATE)
    return name


def get(layout: Layout, name: str) -> bytes:
    """The bytes of an object; raises BrokenFile if it is missing or its digest is not its name."""
    path = path_of(layout, name)
    data = files.read(path)
    if data is None:
        raise BrokenFile(path, "the object is missing", remedy="Restore it from a copy of the mission.")
    if files.digest(data) != name:
        raise BrokenFile(path, "the object's bytes are not what its name says", remedy="Restore it from a copy.")
    return data
