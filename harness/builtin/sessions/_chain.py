"""The chain of a session's log: each row ends with its number, the digest of the row before it, and its own. So every reader
notices a row that somebody changed, removed or added."""

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
PART = b'{"part":'  # with which a row begins a part


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


def sound(data: bytes) -> tuple[bytes, bytes]:
    """(the undamaged rows, as a chain again; the others). Rows after a damage are kept from the next row on that begins a part,
    which can be read without the earlier ones."""
    kept, lost = list[bytes](), list[bytes]()
    before, whole = START, True
    for line in data.split(b"\n")[:-1]:
        link = _link(line, before) if whole else _link(line, None) if line.startswith(PART) else None
        whole = link is not None
        (kept if whole else lost).append(line)
        before = link or START
    if not lost:
        return data, b""
    return _chain([line[: line.rfind(b',"row":')] for line in kept]), b"".join(line + b"\n" for line in lost)


def _chain(begun: list[bytes]) -> bytes:
    """The lines of rows without their ends."""
    before, lines = START, []
    for one in begun:
        line, before = _line(one, before)
        lines.append(line)
    return b"".join(lines)
