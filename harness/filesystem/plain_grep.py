"""A grep without ripgrep, as a program: takes its questions as JSON, answers as ripgrep does. See `search`."""

from __future__ import annotations

import os
import sys

from harness.base import lean
from harness.filesystem import expressions
from harness.filesystem.beneath import Beneath
from harness.filesystem.patterns import BadPattern
from harness.filesystem.walking import Walk, order, why

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from typing import Any

BLOCK = 4 * 1024 * 1024
FLUSHED = 256 * 1024
BAD_PATTERN = 2


def main(question: str) -> int:
    """Search, and write the answer: the status, as ripgrep's."""
    asked: dict[str, Any] = lean.loads(question)
    try:
        wanted = expressions.compiled(asked["pattern"], literal=asked["literal"], ignore_case=asked["ignore_case"])
    except BadPattern as fault:
        os.write(2, os.fsencode(f"{fault}\n"))
        return BAD_PATTERN
    if asked["names"] is None:
        _write(_records("<stdin>", 0, wanted))
        return 0
    beneath = Beneath(".")
    walk = Walk(beneath, asked["names"], hidden=asked["hidden"])
    paths = [folder + one.name for folder, entries in walk.files() for one in entries]
    for path in sorted(paths, key=order):
        try:
            fd = beneath.opened(path.split("/"))
        except FileNotFoundError:
            continue
        except OSError as fault:
            walk.skipped[path] = why(fault)
            continue
        try:
            _write(_records(path, fd, wanted))
        finally:
            os.close(fd)
    for path, reason in walk.skipped.items():
        os.write(2, os.fsencode(f"rg: {path}: {reason} (os error 0)\n"))
    return 0


def _write(records: list[bytes]) -> None:
    """Write the records of a file to the standard output."""
    rest = memoryview(b"".join(records))
    while rest:
        rest = rest[os.write(1, rest[:FLUSHED]) :]


def _records(path: str, fd: int, wanted: re.Pattern[str]) -> list[bytes]:
    """The records of the lines of an open file that match; none for a binary file."""
    found, head, line, at, rest = list[bytes](), os.fsencode(path) + b"\0", 1, 0, b""
    while block := os.read(fd, BLOCK):
        if b"\0" in block:
            return []
        data = rest + block
        end = data.rfind(b"\n") + 1
        data, rest = data[:end], data[end:]
        found += (head + record for record in hits(data, wanted, line, at))
        line, at = line + data.count(b"\n"), at + len(data)
    found += (head + record for record in hits(rest, wanted, line, at))
    return found


def hits(data: bytes, wanted: re.Pattern[str], line: int, at: int) -> Iterator[bytes]:
    """`line:offset:text` with a newline, of each line of these whole lines that matches."""
    text = data.decode("utf-8", "surrogateescape")
    begin, counted, size = 0, 0, len(text)
    while begin < size and (hit := wanted.search(text, begin)):
        if hit.start() == size and text.endswith("\n"):
            return
        start = text.rfind("\n", 0, hit.start()) + 1
        end = text.find("\n", hit.start())
        end = size if end < 0 else end
        line += text.count("\n", counted, start)
        at += len(text[counted:start].encode("utf-8", "surrogateescape"))
        counted = start
        yield f"{line}:{at}:{text[start:end]}\n".encode("utf-8", "surrogateescape")
        begin = end + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
