"""What was committed, kept beside the state where runs are not behind glass and may overwrite it by mistake.

A managed file's versions are objects; an append-only file has a copy in `committed/`, which grows with it. Both are made
from the first such run on (`begin`), and every commit keeps them up to date.
"""

from __future__ import annotations

import os

from harness.store import files, names, objects
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK = 1024 * 1024
COPIED = (*names.APPEND_ONLY, names.RAW)


def begin(layout: Layout, ledger: dict[str, list[object]]) -> None:
    """From here on committed content is kept. The caller holds the state lock, and the ledger has what is on disk."""
    files.make_folder(layout.committed)
    for name in names.MANAGED:
        row = ledger.get(name)
        if row and not os.path.exists(objects.path_of(layout, str(row[0]))):
            objects.put(layout, files.read(f"{layout.state}/{name}") or b"")
    for name in COPIED:
        if not holds(layout, name):
            files.remove(copy_of(layout, name))
        follow(layout, [name])


def is_kept(layout: Layout) -> bool:
    """Whether committed content is kept."""
    return os.path.isdir(layout.committed)


def copy_of(layout: Layout, name: str) -> str:
    """The copy of an append-only file."""
    return f"{layout.committed}/{os.path.basename(name)}"


def follow(layout: Layout, grown: Iterable[str]) -> None:
    """The copies of these append-only files get what was appended to the files; durable."""
    for name in grown:
        path, copy = f"{layout.state}/{name}", copy_of(layout, name)
        start, end = files.length(copy), files.length(path)
        if start < end:
            with open(files.open_regular(copy, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb", buffering=0) as file:
                for offset in range(start, end, BLOCK):
                    files.write_all(file.fileno(), files.read_from(path, offset, min(BLOCK, end - offset)))
                os.fsync(file.fileno())


def begin_anew(layout: Layout, replaced: Iterable[str]) -> None:
    """The copies of these append-only files, whose whole content was replaced."""
    for name in replaced:
        files.remove(copy_of(layout, name))
        follow(layout, [name])


def holds(layout: Layout, name: str) -> bool:
    """Whether an append-only file begins with its copy, read block by block."""
    path, copy = f"{layout.state}/{name}", copy_of(layout, name)
    end = files.length(copy)
    if files.length(path) < end:
        return False
    return all(
        files.read_from(path, offset, min(BLOCK, end - offset))
        == files.read_from(copy, offset, min(BLOCK, end - offset))
        for offset in range(0, end, BLOCK)
    )


def put_back(layout: Layout, name: str) -> None:
    """The append-only file is its copy again, block by block; atomic and durable."""
    path = f"{layout.state}/{name}"
    if os.path.exists(copy_of(layout, name)):
        files.replace(path, files.blocks(copy_of(layout, name), size=BLOCK))
    else:
        files.remove(path)
