"""Matches a search query against the lines of a file, without an index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.state import files

BLOCK = 256 * 1024
MAX_PIECE_BYTES = 4 * 1024 * 1024  # a longer line is split into pieces of about this size


class Query(Record):
    """Literal words that a line must all contain, or a regular expression."""

    words: list[str]
    pattern: re.Pattern[str] | None = None

    @property
    def needle(self) -> bytes:
        """Bytes that each line with a hit has, also where it is JSON; b"" if none are known."""
        plain = (
            [] if self.pattern else [word for word in self.words if word.isascii() and word.replace(" ", "").isalnum()]
        )
        return max(plain, key=len, default="").encode()

    def at(self, text: str) -> int:
        """The start of the hit in a line of text; -1 if it does not match."""
        if self.pattern:
            found = self.pattern.search(text)
            return found.start() if found else -1
        return text.find(self.words[0]) if all(word in text for word in self.words) else -1


def query(words: Sequence[str], regex: bool) -> Query:
    """The query of a command line; raises UsageFault if it is empty or an invalid regular expression."""
    given = [word for word in words if word]
    if not given:
        raise UsageFault("Nothing to search for: give words that a line must contain, or -e and a regular expression.")
    if not regex:
        return Query(words=given)
    try:
        return Query(words=given, pattern=re.compile(" ".join(given)))
    except (re.error, RecursionError, OverflowError) as fault:
        raise UsageFault(f"invalid regular expression '{' '.join(given)}': {fault}.") from None


def lines(path: str) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of each line, in order, including a last line without a newline; none if the file is absent."""
    kept, offset = b"", 0
    for block in files.blocks(path, 0, BLOCK):
        *whole, kept = (kept + block).split(b"\n")
        for line in whole:
            yield offset, line
            offset += len(line) + 1
        if len(kept) >= MAX_PIECE_BYTES:
            yield offset, kept
            offset, kept = offset + len(kept), b""
    if kept:
        yield offset, kept
