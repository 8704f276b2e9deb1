"""Reads files of JSON lines, with one rule for a torn last line.

A last line without a newline is still being written, or torn by a crash: readers skip it, and the next writer under the
lock repairs it. An error names any other broken line with file, number and remedy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from harness.base.errors import BrokenFile
from harness.base.schema import InvalidField
from harness.state import files

T = TypeVar("T")


def whole(data: bytes | None) -> Iterator[tuple[int, bytes]]:
    """Each whole line that is not empty, with its number."""
    lines = (data or b"").split(b"\n")
    return ((number, line) for number, line in enumerate(lines[:-1], start=1) if line.strip(b"\0 \r"))


def value(line: bytes) -> Any:
    """The JSON value in a line; raises ValueError, also if it is nested too deeply for the parser."""
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
    """The results of `make` for each line, oldest first; [] if the file is absent. Raises BrokenFile with the message
    `none`, or with that of the InvalidField that `make` raises. `read` returns a line's value, or raises ValueError."""
    found = []
    for number, line in whole(data):
        try:
            found.append(make(read(line)))
        except (ValueError, TypeError, KeyError, RecursionError) as fault:
            message = str(fault) if isinstance(fault, InvalidField) else none
            raise BrokenFile(path, message, line=number, remedy=remedy) from None
    return found


def backwards(path: str, block: int = 65536, most: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of the whole lines of a file (or of its first `most` bytes), last first; reads lazily."""
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


def number(path: str, offset: int) -> int:
    """The number of the line at this offset of a file."""
    found = 1
    for block in files.blocks(path):
        if offset <= len(block):
            return found + block.count(b"\n", 0, offset)
        found, offset = found + block.count(b"\n"), offset - len(block)
    return found


def healed(data: bytes) -> bytes:
    """The data repaired for an append: a complete last line gets its newline; a torn line and NUL bytes are cut off."""
    kept = data.rstrip(b"\0")
    head, newline, last = kept.rpartition(b"\n")
    try:
        return kept + b"\n" if last and value(last) is not None else kept
    except ValueError:
        return head + newline


def end_of(path: str, *, closes: bool = False) -> tuple[int, bytes]:
    """(offset of the next append, bytes that must precede it), by the rule of `healed`; reads only the last line.
    `closes`: the lines are not JSON, so a torn one is kept and gets its newline."""
    try:
        descriptor = files.open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return 0, b""
    with open(descriptor, "rb", buffering=0):
        start = end = files.healed_length(descriptor)
        last = b""
        while start and b"\n" not in last:
            start = max(0, start - 65536)
            last = os.pread(descriptor, end - start, start)
    last = last.rpartition(b"\n")[2]
    if not last or closes:
        return end, b"\n" if last else b""
    kept = healed(last)
    return (end, b"\n") if kept else (end - len(last), b"")
