"""A copy of the committed state outside the project folder, for unconfined runs, which may overwrite the state by mistake.

It holds each managed and append-only file from the first such run on (`begin`); every commit updates it. The copy of
raw.md, which any program may extend, is that of the start of the last such run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from harness.base import encoding
from harness.state import files, journal, names
from harness.state.layout import Layout

BLOCK = 1024 * 1024
GROWS = (*names.APPEND_ONLY, names.RAW)


def begin(layout: Layout) -> None:
    """Start to keep committed content. The caller holds the state lock, and the ledger matches the disk."""
    files.make_folder(layout.committed)
    for name in names.MANAGED:
        _keep(layout, name, files.read(f"{layout.state}/{name}"))
    for name in GROWS:
        if not holds(layout, name):
            files.remove(copy_of(layout, name))
        _catch_up(layout, name)


def is_kept(layout: Layout) -> bool:
    """Whether committed content is kept."""
    return os.path.isdir(layout.committed)


def copy_of(layout: Layout, name: str) -> str:
    """The path of the copy of a file."""
    return f"{layout.committed}/{os.path.basename(name)}"


def read(layout: Layout, name: str) -> bytes | None:
    """The committed content of a file; None if it is absent or not kept."""
    return files.read(copy_of(layout, name))


def length(layout: Layout, name: str) -> int:
    """The length in bytes of the committed content of a file; 0 if absent."""
    return files.length(copy_of(layout, name))


def _keep(layout: Layout, name: str, data: bytes | None) -> None:
    if data is None:
        files.remove(copy_of(layout, name))
    elif files.read(copy_of(layout, name)) != data:
        files.replace(copy_of(layout, name), data)


def intact(layout: Layout, tails: dict[str, bytes]) -> dict[str, bytes]:
    """The appends whose file is still as long as its copy; others are refused with the foreign change."""
    return {name: tails[name] for name in tails if files.length(f"{layout.state}/{name}") == length(layout, name)}


def follow(layout: Layout, contents: dict[str, bytes | None], tails: dict[str, bytes], replaced: Iterable[str]) -> None:
    """Update the copies after a commit: write these contents, append these tails, copy the files `replaced` by blocks."""
    for name, data in contents.items():
        if name in names.MANAGED:
            _keep(layout, name, data)
    for name in (*(name for name in contents if name in GROWS), *replaced):
        files.remove(copy_of(layout, name))
        _catch_up(layout, name)
    for name, lines in tails.items():
        if name in names.APPEND_ONLY and name not in contents:
            files.add_line(copy_of(layout, name), lines)


def catch_up(layout: Layout) -> None:
    """Update the copies after a crash between commit and `follow`: a file that matches the ledger was committed. The
    caller holds the state lock."""
    if is_kept(layout):
        rows = journal.read_ledger(layout)
        for name in names.MANAGED if rows else ():
            data = files.read(f"{layout.state}/{name}")
            if rows.get(name, [None])[0] == (None if data is None else encoding.digest(data)):
                _keep(layout, name, data)
        for name in names.APPEND_ONLY:
            if holds(layout, name) and files.length(f"{layout.state}/{name}") == rows.get(name, ["", 0])[1]:
                _catch_up(layout, name)


def _catch_up(layout: Layout, name: str) -> None:
    """Append to the copy what the file has beyond it."""
    path, copy = f"{layout.state}/{name}", copy_of(layout, name)
    start = files.length(copy)
    if start < files.length(path):
        with open(files.open_regular(copy, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb", buffering=0) as file:
            for block in files.blocks(path, start, BLOCK):
                files.write_all(file.fileno(), block)
            os.fsync(file.fileno())


def holds(layout: Layout, name: str) -> bool:
    """Whether an append-only file begins with its copy; reads block by block."""
    path, copy = f"{layout.state}/{name}", copy_of(layout, name)
    if files.length(path) < files.length(copy):
        return False
    pairs = zip(files.blocks(copy, size=BLOCK), files.blocks(path, size=BLOCK), strict=False)
    return all(there.startswith(ours) for ours, there in pairs)


def put_back(layout: Layout, name: str) -> None:
    """Restore an append-only file from its copy, block by block; atomic and durable."""
    path = f"{layout.state}/{name}"
    if os.path.exists(copy_of(layout, name)):
        files.replace(path, files.blocks(copy_of(layout, name), size=BLOCK))
    else:
        files.remove(path)
