"""The rows of a session's log: each ends with its number and its digest, so that a reader notices a damaged or missing one."""

from __future__ import annotations

import re
from typing import Any

from harness.base import encoding
from harness.base.errors import BrokenFile

DIGEST_CHARS = 32  # of a SHA-256: 128 bits
REMEDY = (
    "Nothing was changed. `harness sessions repair SESSION --user USER` keeps what can be read; or restore the log from a"
    " copy, or move the session's folder away."
)
PART = b'{"part":'  # with which a row begins a part
# Rows of earlier sessions also have the digest of the row before them, `after`, which nothing reads.
_END = re.compile(rb',"row":(\d+)(?:,"after":"[0-9a-f]*")?,"sum":"([0-9a-f]{32})"\}')


def line_of(row: dict[str, Any], number: int) -> bytes:
    """The line of a row with this number."""
    return _line(encoding.dump_json(row)[:-2], number)


def _line(begun: bytes, number: int) -> bytes:
    body = begun + f',"row":{number}'.encode()
    return body + f',"sum":"{_digest(body)}"}}\n'.encode()


def _digest(body: bytes) -> str:
    return encoding.digest(body)[:DIGEST_CHARS]


def _number(line: bytes) -> int:
    """The number of a row, from 1; 0 if the line is damaged."""
    end = _END.search(line, max(0, line.rfind(b',"row":')))
    whole = end is not None and end.end() == len(line) and _digest(line[: line.rfind(b',"sum":')]).encode() == end[2]
    return int(end[1]) if end is not None and whole else 0


def last(data: bytes, where: str, before: int | None) -> int:
    """The number of the last of these whole rows, which follow the one with the number `before` (None: any). Raises BrokenFile
    with the first line that is not the next row."""
    for line in data.split(b"\n")[:-1]:
        number = _number(line)
        if not number or (before is not None and number != before + 1):
            fault = "the row is not what was written there"
            raise BrokenFile(where, fault, line=1 if before is None else before + 1, remedy=REMEDY)
        before = number
    return before or 0


def newest(data: bytes) -> int:
    """The number of the last whole row of a log that only this program reads."""
    return _number(data[:-1].rpartition(b"\n")[2])


def sound(data: bytes) -> tuple[bytes, bytes]:
    """(the undamaged rows, numbered from 1; the others). Rows after a damage are kept from the next row on that begins a part,
    which can be read without the earlier ones."""
    kept, lost, before = list[bytes](), list[bytes](), 0
    for line in data.split(b"\n")[:-1]:
        number = _number(line)
        if number and (number == before + 1 or (before < 0 and line.startswith(PART))):
            kept.append(line)
            before = number
        else:
            lost.append(line)
            before = -1
    if not lost:
        return data, b""
    begun = [line[: line.rfind(b',"row":')] for line in kept]
    return b"".join(map(_line, begun, range(1, len(begun) + 1))), b"".join(line + b"\n" for line in lost)
