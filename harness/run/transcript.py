"""What a run said, kept within bounds: secrets masked, a line at most 1 MiB, a file at most what its caller gives it.

What is cut says so where it was cut. A secret that comes in two pieces is masked too: an unfinished line, and a private
key without its end, are held back in memory (1 MiB at most) until the rest is there or the transcript is closed.
"""

from __future__ import annotations

import re
import sys

from harness.base import redaction, schema
from harness.base.record import Record
from harness.model import usage
from harness.model.usage import Usage
from harness.store import files, json_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 1024 * 1024
LONGEST_LINE = MIB
LONGEST_KEY = 64 * 1024
MARGIN = 16 * 1024
MARK_BYTES = 256
BOOK_SECONDS = 5.0
MOST_SAID_BYTES = 16 * MIB
CUT = "[… {} bytes cut …]"
LONGEST_STREAM = 256 * MIB
MOST_SECONDS = 1e9
KINDS = ("agent", "said", "did", "output", "usage", "time", "raw", "cut")


if TYPE_CHECKING:
    Seconds = float
    RowKind = str
else:
    Seconds = schema.NUMBER.part("a number, 0 or above", lambda value: 0 <= value < MOST_SECONDS)
    RowKind = schema.one_of(KINDS)


class Row(Record):
    """One line of stream.jsonl: `at` in seconds since the run began, a `kind` of KINDS and its `text`. Beside the kinds of an
    agent's events: `agent` (who answers from here on), `time` (nothing was used yet) and `cut` (the bound is reached)."""

    at: Seconds
    kind: RowKind
    text: str


def parse(line: bytes) -> Row | None:
    """The row in a line; None where it is none: torn by a crash, or written by somebody else."""
    try:
        return schema.record(Row, json_lines.value(line), "a run writes")
    except (ValueError, TypeError):
        return None


class Heard(Record):
    """What a run's transcript tells of who was asked, in turn: what each told last of what it used (nothing: its name
    alone), and when the last row was written, in seconds since the run's start."""

    usages: list[Usage] = []
    seconds: float = 0.0


def heard(path: str) -> Heard:
    """What the transcript at `path` tells of agents and usage; a torn or foreign line is passed over, and so is what lies
    behind LONGEST_STREAM."""
    found = Heard()
    for row in filter(None, map(parse, _lines(path))):
        found.seconds = max(found.seconds, row.at)
        if row.kind == "agent":
            found.usages.append(Usage(agent=row.text))
        elif row.kind == "usage" and found.usages and (newer := usage.parse(row.text)):
            found.usages[-1] = newer.replace(agent=found.usages[-1].agent)
    return found


def _lines(path: str, block: int = MIB) -> Iterator[bytes]:
    """The transcript's whole lines that are no longer than LONGEST_LINE: those of agents and usage, and each block's last."""
    rest, offset = b"", 0
    while offset < LONGEST_STREAM and (data := files.read_from(path, offset, block)):
        offset += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield from (line for line in lines[:-1] if b'"kind":"agent"' in line or b'"kind":"usage"' in line)
        yield from lines[-1:]
        rest = rest if len(rest) <= LONGEST_LINE else b"?" * LONGEST_LINE


class Transcript:
    """One file of a run, mode 0600, of at most `most_bytes`; what a file that was there already holds is counted.

    `dropped` counts the bytes that came after the bound was reached. Nothing is durable before `close`. What the books need
    has a reserve of its own (`book`): a run that is killed must not have cost less because it talked a lot.
    """

    def __init__(self, path: str, most_bytes: int) -> None:
        self.most_bytes, self.dropped = most_bytes, 0
        self._file = files.Transcript(path)
        self._size = files.length(path)
        last = files.read_from(path, max(0, self._size - MARK_BYTES), MARK_BYTES)
        self._full = self._bound.encode() in last
        if last and not last.endswith(b"\n"):
            self._size += 1
            self._file.write(b"\n")
        self._lines, self._at, self._kind = Lines(), 0.0, ""
        self._reserve = min(most_bytes // 16, MIB)
        self._booked_at, self._latest = -BOOK_SECONDS, b""

    @property
    def _bound(self) -> str:
        return f"the transcript reached its bound of {self.most_bytes / MIB:g} MiB; what follows is not kept"

    def row(self, at: float, kind: str, text: str) -> None:
        """One Row. Too long a text is cut, and says how many bytes went."""
        if self._full:
            self.dropped += _bytes(text)
            return
        data = _row(at, kind, _masked(text))
        self._write(data, _row(at, "cut", self._bound))

    def book(self, at: float, kind: str, text: str) -> None:
        """A row that replaces those of its kind before it; behind the bound one in BOOK_SECONDS is kept, and the last one."""
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
        """Text that comes in pieces, as rows of whole lines."""
        if self._full:
            self.dropped += _bytes(text)
            return
        self._at, self._kind = at, kind
        if ready := self._lines.take(text):
            self.row(at, kind, ready)

    def log(self, text: str) -> None:
        """Plain text that comes in pieces, written by whole lines."""
        if self._full:
            self.dropped += _bytes(text)
            return
        self._log(self._lines.take(text))

    def close(self) -> None:
        """Write what was held back, make all durable, and end."""
        rest = self._lines.rest()
        if rest and self._kind:
            self.row(self._at, self._kind, rest)
        elif rest:
            self._log(rest)
        self._book()
        self._file.close()

    def _log(self, ready: str) -> None:
        data = _utf8(ready)
        if len(data) > LONGEST_LINE:
            data = b"\n".join(_utf8(_cut(line, lambda kept: len(_utf8(kept)) + 1)) for line in ready.split("\n"))
        self._write(data, f"[{self._bound}]\n".encode())

    def _write(self, data: bytes, last: bytes) -> None:
        if self._full or self._size + len(data) > self.most_bytes - MARK_BYTES - self._reserve:
            self.dropped += len(data)
            data = b"" if self._full else last
            self._full = True
        self._file.write(data)
        self._size += len(data)


class Lines:
    """What comes in pieces, as whole lines with secrets masked; a line ends with LF or CR. Too long a line is cut."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._bytes = 0
        self._cut_bytes = 0

    def take(self, text: str) -> str:
        """One more piece; gives what has become whole, perhaps nothing."""
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        if not end:
            self._hold(text)
            return ""
        first = min(place for place in (text.find("\n"), text.find("\r")) if place >= 0)
        if self._cut_bytes or self._bytes + first > LONGEST_LINE:
            self._hold(text[:first])
            start, whole = self.rest(), text[first:end]
        else:
            start, whole = "", "".join(self._pieces) + text[:end]
        self._pieces, self._bytes = [], 0
        at = redaction.open_key(whole)
        if len(whole) - at > LONGEST_KEY:
            at = len(whole)
        self._hold(whole[at:] + text[end:])
        return start + redaction.mask(whole[:at])

    def rest(self) -> str:
        """What was held back."""
        text = redaction.mask("".join(self._pieces))
        if self._cut_bytes:
            kept = text[:-MARGIN]  # half a secret may stand at its end
            text = kept + CUT.format(self._cut_bytes + _bytes(text) - _bytes(kept))
        self._pieces, self._bytes, self._cut_bytes = [], 0, 0
        return text

    def _hold(self, text: str) -> None:
        size = _bytes(text)
        if self._cut_bytes:
            self._cut_bytes += size
            return
        if self._bytes + size > LONGEST_LINE:
            kept = text[: LONGEST_LINE - self._bytes]
            self._cut_bytes = size - _bytes(kept)
            text = kept
        if text:
            self._pieces.append(text)
            self._bytes += size


class Recent:
    """Bounds a list of texts: the oldest go once all together take more than `most_bytes` of memory."""

    def __init__(self, texts: list[str], most_bytes: int = MOST_SAID_BYTES) -> None:
        self.texts, self.most_bytes = texts, most_bytes
        self._bytes = sum(map(sys.getsizeof, texts))

    def add(self, text: str) -> None:
        """Append a text; of one that is too long by itself the end stays."""
        if sys.getsizeof(text) > self.most_bytes:
            text = text[-(self.most_bytes // 4) :]
        self.texts.append(text)
        self._bytes += sys.getsizeof(text)
        while self._bytes > self.most_bytes and len(self.texts) > 1:
            self._bytes -= sys.getsizeof(self.texts.pop(0))


def _masked(text: str) -> str:
    """`text` with secrets masked; no more of it is read than a line can hold."""
    if len(text) <= LONGEST_LINE + MARGIN:
        return redaction.mask(text)
    kept = redaction.mask(text[: LONGEST_LINE + MARGIN])[:-MARGIN]  # half a secret may stand at its end
    return kept + CUT.format(_bytes(text[LONGEST_LINE:]))


def _row(at: float, kind: str, text: str) -> bytes:
    def data(kept: str) -> bytes:
        return files.dump_json(Row(at=at, kind=kind, text=kept).asdict())

    return data(_cut(text, lambda kept: len(data(kept))))


def _cut(text: str, size: Callable[[str], int]) -> str:
    """The longest beginning of `text` whose `size` fits into a line, with what was cut; all of it where that fits."""
    if size(text) <= LONGEST_LINE:
        return text
    earlier = re.search(CUT.format(r"(\d+)").replace("[", r"\["), text[-MARK_BYTES:])
    gone = int(earlier[1]) if earlier else 0
    text = text[: -len(earlier[0])] if earlier else text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if size(text[:middle]) <= LONGEST_LINE - MARK_BYTES:
            fits = middle
        else:
            too_long = middle
    return text[:fits] + CUT.format(gone + _bytes(text[fits:]))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
