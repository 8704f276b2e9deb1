"""Bounded transcripts of a run: secrets are masked, a line has at most 1 MiB, and the caller limits the file size.

A cut is marked in place. To mask a secret that arrives in two pieces, an unfinished line and an open private key stay
in memory (1 MiB at most) until the rest arrives or the transcript closes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from harness.base import encoding, redaction, schema
from harness.base.record import Record
from harness.mission import usage
from harness.mission.usage import Usage
from harness.state import files, json_lines

MIB = 1024 * 1024
MAX_LINE_BYTES = MIB
MAX_KEY_BYTES = 64 * 1024
MARGIN = 16 * 1024
MARK_BYTES = 256
BOOK_SECONDS = 5.0
MAX_TEXT_BYTES = 16 * MIB
CUT = "[… {} bytes cut …]"
MAX_STREAM_BYTES = 256 * MIB
MAX_SECONDS = 1e9
KINDS = ("agent", "said", "did", "result", "output", "usage", "time", "raw", "cut")
FOR_MACHINES = ("agent", "raw", "usage", "time")  # not shown to people


if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Seconds = float
    RowKind = str
else:
    Seconds = schema.NUMBER.part("a number, 0 or above", lambda value: 0 <= value < MAX_SECONDS)
    RowKind = schema.one_of(KINDS)


class Row(Record):
    """One line of stream.jsonl, `at` seconds since the run began: an event, `agent` (following rows are of this agent), `time`
    (no usage yet) or `cut` (the bound is reached)."""

    at: Seconds
    kind: RowKind
    text: str


def parse(line: bytes) -> Row | None:
    """The row in a line; None for a torn or foreign line."""
    try:
        return schema.record(Row, json_lines.value(line), "a run writes")
    except (ValueError, TypeError):
        return None


class UsageReport(Record):
    """The last usage of each agent, in order (without usage only its name); `seconds`: from the run's start to the last
    row."""

    usages: list[Usage] = []
    seconds: float = 0.0


def reported(path: str) -> UsageReport:
    """Agents and usage in the transcript at `path`; skips torn and foreign lines."""
    found = UsageReport()
    for row in filter(None, map(parse, _lines(path))):
        found.seconds = max(found.seconds, row.at)
        if row.kind == "agent":
            found.usages.append(Usage(agent=row.text))
        elif row.kind == "usage" and found.usages and (newer := usage.parse(row.text)):
            found.usages[-1] = newer.replace(agent=found.usages[-1].agent)
    return found


def _lines(path: str, block: int = MIB) -> Iterator[bytes]:
    """Whole lines up to LONGEST_LINE: those of agents and usage, and the last of each block."""
    rest, offset = b"", 0
    while offset < MAX_STREAM_BYTES and (data := files.read_from(path, offset, block)):
        offset += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield from (line for line in lines[:-1] if b'"kind":"agent"' in line or b'"kind":"usage"' in line)
        yield from lines[-1:]
        rest = rest if len(rest) <= MAX_LINE_BYTES else b"?" * MAX_LINE_BYTES


class RunTranscript:
    """One file of a run, mode 0600, of at most `most_bytes` with what it already contains. Durable after `close`. Usage has a
    reserve of its own (`book`), so that a killed run with a long transcript still counts its cost."""

    def __init__(self, path: str, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._bound = f"the transcript reached its bound of {most_bytes / MIB:g} MiB; what follows is not kept"
        self._file = files.TranscriptFile(path)
        self._size = files.length(path)
        last = files.read_from(path, max(0, self._size - MARK_BYTES), MARK_BYTES)
        self._full = self._bound.encode() in last
        if last and not last.endswith(b"\n"):
            self._size += 1
            self._file.write(b"\n")
        self._lines: dict[str, MaskedLines] = {}  # {kind of row, "" for plain text: what is not complete yet}
        self._at: dict[str, float] = {}
        self._reserve = min(most_bytes // 16, MIB)
        self._booked_at, self._latest = -BOOK_SECONDS, b""

    def row(self, at: float, kind: str, text: str) -> None:
        """Write one Row. A text that is too long is cut, and states how many bytes are missing."""
        if not self._full:
            self._write(_row(at, kind, _masked(text)), _row(at, "cut", self._bound))

    def book(self, at: float, kind: str, text: str) -> None:
        """Write a row that replaces earlier ones of its kind; behind the bound only one in BOOK_SECONDS, and the last."""
        if not self._full:
            self.row(at, kind, text)
            return
        self._latest = _row(at, kind, _masked(text))
        if at - self._booked_at >= BOOK_SECONDS:
            self._booked_at = at
            self._book()

    def _book(self) -> None:
        if self._latest and self._size + len(self._latest) <= self.most_bytes:
            self._file.write(self._latest)
            self._size += len(self._latest)
        self._latest = b""

    def piece(self, at: float, kind: str, text: str) -> None:
        """Write text that arrives in pieces, as rows of whole lines; pieces of different kinds do not mix."""
        if self._full:
            return
        self._at[kind] = at
        if ready := self._open(kind).take(text):
            self.row(at, kind, ready)

    def log(self, text: str) -> None:
        """Write plain text that arrives in pieces, by whole lines."""
        if not self._full:
            self._log(self._open("").take(text))

    def _open(self, kind: str) -> MaskedLines:
        return self._lines.setdefault(kind, MaskedLines())

    def close(self) -> None:
        """Write the rest, and make everything durable."""
        for kind, lines in self._lines.items():
            rest = lines.rest()
            if rest and kind:
                self.row(self._at[kind], kind, rest)
            elif rest:
                self._log(rest)
        self._book()
        self._file.close()

    def _log(self, ready: str) -> None:
        ready = redaction.received(ready)  # a plain file, which people show on a terminal
        data = _utf8(ready)
        if len(data) > MAX_LINE_BYTES:
            data = b"\n".join(_utf8(_cut(line, lambda kept: len(_utf8(kept)) + 1)) for line in ready.split("\n"))
        self._write(data, f"[{self._bound}]\n".encode())

    def _write(self, data: bytes, last: bytes) -> None:
        if self._full:
            return
        if self._size + len(data) > self.most_bytes - MARK_BYTES - self._reserve:
            data, self._full = last, True
        self._file.write(data)
        self._size += len(data)


class MaskedLines:
    """Turns pieces of text into whole lines with secrets masked; a line ends with LF or CR. A line that is too long is cut."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._bytes = self._cut_bytes = 0

    def take(self, text: str) -> str:
        """Add a piece; returns the lines that are complete now, perhaps none."""
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        if not end:
            self._hold(text)
            return ""
        first = min(place for place in (text.find("\n"), text.find("\r")) if place >= 0)
        if self._cut_bytes or self._bytes + first > MAX_LINE_BYTES:
            self._hold(text[:first])
            start, whole = self.rest(), text[first:end]
        else:
            start, whole = "", "".join(self._pieces) + text[:end]
        self._pieces, self._bytes = [], 0
        at = redaction.open_key(whole)
        if len(whole) - at > MAX_KEY_BYTES:
            at = len(whole)
        self._hold(whole[at:] + text[end:])
        return start + redaction.mask(whole[:at])

    def rest(self) -> str:
        """The incomplete text."""
        text = redaction.mask("".join(self._pieces))
        if self._cut_bytes:
            kept = text[:-MARGIN]  # half a secret may be at its end
            text = kept + CUT.format(self._cut_bytes + _bytes(text) - _bytes(kept))
        self._pieces, self._bytes, self._cut_bytes = [], 0, 0
        return text

    def _hold(self, text: str) -> None:
        size = _bytes(text)
        if self._cut_bytes:
            self._cut_bytes += size
            return
        if self._bytes + size > MAX_LINE_BYTES:
            kept = text[: MAX_LINE_BYTES - self._bytes]
            self._cut_bytes = size - _bytes(kept)
            text = kept
        if text:
            self._pieces.append(text)
            self._bytes += size


class RecentTexts:
    """Bounds a list of texts: the oldest are removed once all take more than `most_bytes` of memory."""

    def __init__(self, texts: list[str], most_bytes: int = MAX_TEXT_BYTES) -> None:
        self.texts, self.most_bytes = texts, most_bytes
        self._bytes = sum(map(sys.getsizeof, texts))

    def add(self, text: str) -> None:
        """Append a text; of one that is too long by itself only the end is kept."""
        if sys.getsizeof(text) > self.most_bytes:
            text = text[-(self.most_bytes // 4) :]
        self.texts.append(text)
        self._bytes += sys.getsizeof(text)
        while self._bytes > self.most_bytes and len(self.texts) > 1:
            self._bytes -= sys.getsizeof(self.texts.pop(0))


def _masked(text: str) -> str:
    """`text` with secrets masked, cut to what a line can hold."""
    if len(text) <= MAX_LINE_BYTES + MARGIN:
        return redaction.mask(text)
    kept = redaction.mask(text[: MAX_LINE_BYTES + MARGIN])[:-MARGIN]  # half a secret may be at its end
    return kept + CUT.format(_bytes(text[MAX_LINE_BYTES:]))


def _row(at: float, kind: str, text: str) -> bytes:
    def data(kept: str) -> bytes:
        return encoding.dump_json(Row(at=at, kind=kind, text=kept).asdict())

    return data(_cut(text, lambda kept: len(data(kept))))


def _cut(text: str, size: Callable[[str], int]) -> str:
    """`text`, or its longest beginning whose `size` fits into a line, with a mark for the cut."""
    if size(text) <= MAX_LINE_BYTES:
        return text

    earlier = re.search(CUT.format(r"(\d+)").replace("[", r"\["), text[-MARK_BYTES:])
    gone = int(earlier[1]) if earlier else 0
    text = text[: -len(earlier[0])] if earlier else text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if size(text[:middle]) <= MAX_LINE_BYTES - MARK_BYTES:
            fits = middle
        else:
            too_long = middle
    return text[:fits] + CUT.format(gone + _bytes(text[fits:]))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
