"""A grep with Python's `re`, for when the package ripgrep is not installed. A separate program, so that a slow pattern
can be stopped; it writes the records of `rg --json` that `_ripgrep.records` reads."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from typing import TextIO

BAD_PATTERN = 2
LITERAL, IGNORE_CASE = "F", "i"


def main(options: str, pattern: str, paths: list[str]) -> int:
    """Search these files; returns ripgrep's exit status."""
    try:
        wanted = compiled(pattern, literal=LITERAL in options, ignore_case=IGNORE_CASE in options)
    except (re.error, RecursionError, OverflowError) as fault:
        os.write(2, f"{fault}\n".encode("utf-8", "surrogateescape"))
        return BAD_PATTERN
    with open(1, "w", encoding="ascii", closefd=False) as out:
        for path in paths:
            try:
                search(path, wanted, out)
            except OSError as fault:
                os.write(2, os.fsencode(f"rg: {path}: {fault.strerror} (os error {fault.errno})\n"))
    return 0


def compiled(pattern: str, *, literal: bool, ignore_case: bool) -> re.Pattern[str]:
    """The pattern; raises re.error, RecursionError or OverflowError."""
    if "\n" in pattern or "\0" in pattern:
        raise re.error("a pattern matches within one line and has neither line break nor NUL")
    return re.compile(re.escape(pattern) if literal else pattern, re.IGNORECASE if ignore_case else 0)


def fits(line: bytes, wanted: re.Pattern[str]) -> bool:
    """Whether a line, with or without its newline, matches."""
    return bool(wanted.search(line.removesuffix(b"\n").decode("utf-8", "surrogateescape")))


def search(path: str, wanted: re.Pattern[str], out: TextIO) -> None:
    """Write a record for each matching line of a file, and one at the end, which says whether the file is binary."""
    offset, binary = 0, None
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if b"\0" in line:
                binary = offset + line.index(b"\0")
                break
            if fits(line, wanted):
                _write(out, "match", path, lines=_bytes(line), line_number=number, absolute_offset=offset)
            offset += len(line)
    _write(out, "end", path, binary_offset=binary)


def _write(out: TextIO, kind: str, path: str, **data: object) -> None:
    record = {"type": kind, "data": {"path": _bytes(path.encode("utf-8", "surrogateescape")), **data}}
    out.write(json.dumps(record) + "\n")


def _bytes(data: bytes) -> dict[str, str]:
    return {"bytes": base64.b64encode(data).decode("ascii")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
