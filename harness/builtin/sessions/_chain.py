"""The chain of a session's log: each row ends with its number, the digest of the row before, and its own.

So a row that was changed, removed or added by anybody else is seen by whoever reads the log.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from harness.base import encoding
from harness.base.errors import BrokenFile

DIGEST_CHARS = 32  # of a SHA-256: 128 bits
REMEDY = (
    "Nothing was changed. `harness sessions repair` keeps what can be read; or restore the log from a copy, or move the"
    " session's folder away."
)
_END = re.compile(rb',"row":(\d+),"after":"([0-9a-f]*)","sum":"([0-9a-f]{32})"\}')


class Link(NamedTuple):
    """A row in the chain: its number from 1, and its digest."""

    number: int = 0
    digest: str = ""


START = Link()


def linked(row: dict[str, Any], before: Link) -> tuple[bytes, Link]:
    """The line of a row behind that one, and its link."""
    return _line(encoding.dump_json(row)[:-2], before)


def _line(begun: bytes, before: Link) -> tuple[bytes, Link]:
    body = begun + f',"row":{before.number + 1},"after":"{before.digest}"'.encode()
    link = Link(before.number + 1, _digest(body))
    return body + f',"sum":"{link.digest}"}}\n'.encode(), link


def _digest(body: bytes) -> str:
    return encoding.digest(body)[:DIGEST_CHARS]


def links(data: bytes, where: str, before: Link | None) -> list[Link]:
    """The links of whole lines behind `before`, None where that is not known. Raises BrokenFile with the first line that is not
    the next of the chain."""
    found: list[Link] = []
    for line in data.split(b"\n")[:-1]:
        link = _link(line, before)
        if link is None:
            number = before.number + 1 if before else 1
            raise BrokenFile(where, "the row is not what was written there", line=number, remedy=REMEDY)
        found.append(link)
        before = link
    return found


def _link(line: bytes, before: Link | None) -> Link | None:
    """The link of a line; None if it is not the one behind `before`."""
    end = _END.search(line, max(0, line.rfind(b',"row":')))
    if end is None or end.end() != len(line):
        return None
    link = Link(int(end[1]), end[3].decode())
    if _digest(line[: line.rfind(b',"sum":')]) != link.digest:
        return None
    return link if before is None or (link.number, end[2].decode()) == (before.number + 1, before.digest) else None


def last(data: bytes) -> Link:
    """The link of the last whole line, for a log that only this program reads."""
    line = data[:-1].rpartition(b"\n")[2]
    return _link(line, None) or START


def intact(data: bytes) -> int:
    """How many bytes of the data, from its beginning, are rows of one chain."""
    before, size = START, 0
    for line in data.split(b"\n")[:-1]:
        link = _link(line, before)
        if link is None:
            break
        before, size = link, size + len(line) + 1
    return size


def is_chained(data: bytes) -> bool:
    """Whether the rows are links; False for those of format 1."""
    line, _, _ = data.partition(b"\n")
    return not line or _END.search(line) is not None


def chained(data: bytes) -> bytes:
    """The whole lines of format 1 as a chain; blank lines and zeros of a power cut go."""
    before, lines = START, []
    for line in data.split(b"\n")[:-1]:
        if line.strip(b"\0 \r"):
            made, before = _line(line.strip(b"\0 \r")[:-1], before)
            lines.append(made)
    return b"".join(lines)
