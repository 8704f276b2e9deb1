"""What was committed, kept outside the project folder where runs are not behind glass and may overwrite the state by mistake.

It has a copy of each managed and append-only file, from the first such run on (`begin`); every commit keeps them up to date.
raw.md, which every writer may extend, has a copy of what was there when the last such run began.
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
    """From here on committed content is kept. The caller holds the state lock, and the ledger has what is on disk."""
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
    """The copy of a file."""
    return f"{layout.committed}/{os.path.basename(name)}"


def read(layout: Layout, name: str) -> bytes | None:
    """The committed content of a file; None where there is none, or none is kept."""
    return files.read(copy_of(layout, name))


def length(layout: Layout, name: str) -> int:
    """The length of the committed content of a file; 0 where there is none."""
    return files.length(copy_of(layout, name))


def _keep(layout: Layout, name: str, data: bytes | None) -> None:
    if data is None:
        files.remove(copy_of(layout, name))
    elif files.read(copy_of(layout, name)) != data:
        files.replace(copy_of(layout, name), data)


def intact(layout: Layout, tails: dict[str, bytes]) -> dict[str, bytes]:
    """Those of the appends whose file is as long as its copy now: what is added to another one is refused with it."""
    return {name: tails[name] for name in tails if files.length(f"{layout.state}/{name}") == length(layout, name)}


def follow(layout: Layout, contents: dict[str, bytes | None], tails: dict[str, bytes], replaced: Iterable[str]) -> None:
    """The copies after a commit: these contents, and these lines appended; what was `replaced` by blocks is copied."""
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
    """The copies after a process died between a commit and them: what is as the ledger has it was committed. The caller holds
    the state lock."""
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
    """The copy gets what the file has more."""
    path, copy = f"{layout.state}/{name}", copy_of(layout, name)
    start = files.length(copy)
    if start < files.length(path):
        with open(files.open_regular(copy, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb", buffering=0) as file:
            for block in files.blocks(path, start, BLOCK):
                files.write_all(file.fileno(), block)
            os.fsync(file.fileno())


def holds(layout: Layout, name: str) -> bool:
    """Whether an append-only file begins with its copy, read block by block."""
    path, copy = f"{layout.state}/{name}", copy_of(layout, name)
    if files.length(path) < files.length(copy):
        return False
    pairs = zip(files.blocks(copy, size=BLOCK), files.blocks(path, size=BLOCK), strict=False)
    return all(there.startswith(ours) for ours, there in pairs)


def put_back(layout: Layout, name: str) -> None:
    """The append-only file is its copy again, block by block; atomic and durable."""
    path = f"{layout.state}/{name}"
    if os.path.exists(copy_of(layout, name)):
        files.replace(path, files.blocks(copy_of(layout, name), size=BLOCK))
    else:
        files.remove(path)
