"""Files of JSON lines: one reader, one rule for a torn last line.

A last line without its newline is still being written, or was torn by a crash: readers pass it over, and the next writer
under the lock heals it. A broken line before it is named with file, number and remedy.
"""

from __future__ import annotations

import json

from harness.base.errors import BrokenFile
from harness.base.schema import Odd
from harness.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    T = TypeVar("T")


def whole(data: bytes | None) -> Iterator[tuple[int, bytes]]:
    """Each whole line that is not empty, with its number."""
    lines = (data or b"").split(b"\n")
    return ((number, line) for number, line in enumerate(lines[:-1], start=1) if line.strip(b"\0 \r"))


def value(line: bytes) -> Any:
    """The JSON value in a line; raises ValueError, also where it is too deep for a parser."""
    try:
        return json.loads(line)
    except RecursionError as fault:
        raise ValueError(str(fault)) from None


def parse(
    data: bytes | None,
    path: str,
    make: Callable[[Any], T],
    none: str,
    remedy: str,
    read: Callable[[bytes], Any] = value,
) -> list[T]:
    """What `make` gives for each line, oldest first; [] where the file is absent. BrokenFile says of a line `none` (that it
    is no such thing), or what `make` says of it as an Odd. `read` gives a line's value, or raises ValueError."""
    found = []
    for number, line in whole(data):
        try:
            found.append(make(read(line)))
        except (ValueError, TypeError, KeyError, RecursionError) as fault:
            said = str(fault) if isinstance(fault, Odd) else none
            raise BrokenFile(path, said, line=number, remedy=remedy) from None
    return found


def backwards(path: str, block: int = 65536, most: int | None = None) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file (or of its first `most` bytes), last first, each with where it begins; it is read only as far
    as the caller asks."""
    start = files.length(path) if most is None else min(files.length(path), most)
    rest, torn = b"", True
    while start > 0:
        size = min(block, start)
        start -= size
        first, *lines = (files.read_from(path, start, size) + rest).split(b"\n")
        end = start + len(first) + 1 + sum(len(line) + 1 for line in lines)
        for line in reversed(lines):
            end -= len(line) + 1
            if line and not torn:
                yield end, line
            torn = False
        rest = first
    if rest and not torn:
        yield 0, rest


def healed(data: bytes) -> bytes:
    """What an append goes on from: a last line that lacks only its newline gets it, a torn one and NUL bytes are cut off."""
    kept = data.rstrip(b"\0")
    head, newline, last = kept.rpartition(b"\n")
    try:
        return kept + b"\n" if last and value(last) is not None else kept
    except ValueError:
        return head + newline
