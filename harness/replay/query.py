"""Matches a search query: finds candidate lines by a literal that every hit contains, then tests the query on each.

Without an index: files are searched block by block as bytes, which only excludes lines; the query runs on decoded text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from harness.base import encoding
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.state import files

BLOCK = 256 * 1024
TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[\d,]+\}|.", re.DOTALL)  # of a regular expression
REPEAT = re.compile(r"\{[\d,]+\}")
CODED = re.compile(r"\\[xuUN\d]|\(\?#")  # characters by number or name, and comments: no literal
QUANTIFIERS, NOT_LITERAL = "*+?", "*+?().|"
MAX_PIECE_BYTES = 4 * 1024 * 1024  # a longer line is split into pieces of this size


class Query(Record):
    """Literal words that a line must all contain, or a regular expression. `literal`: the longest text that every hit contains,
    "" for none."""

    words: list[str]
    pattern: re.Pattern[str] | None = None
    literal: str = ""

    def at(self, text: str) -> int:
        """The start of the hit in a line of text; -1 if it does not match."""
        if self.pattern:
            found = self.pattern.search(text)
            return found.start() if found else -1
        return text.find(self.words[0]) if all(word in text for word in self.words) else -1

    def needles(self, escaped: bool) -> list[bytes]:
        """The byte strings of which a candidate line contains at least one; [] if every line is a candidate. `escaped`: the text
        is JSON, in which non-ASCII characters may be escaped."""
        if not self.literal:
            return []
        if not escaped:
            return [self.literal.encode("utf-8", "surrogateescape")]
        forms = (encoding.compact(self.literal, ascii_only=only)[1:-1] for only in (False, True))
        return [*dict.fromkeys(form.encode("utf-8", "surrogatepass") for form in forms)]


def query(words: Sequence[str], regex: bool) -> Query:
    """The query of a command line; raises UsageFault if it is empty or an invalid regular expression."""
    given = [word for word in words if word]
    if not given:
        raise UsageFault("Nothing to search for: give words that a line must contain, or -e and a regular expression.")
    if not regex:
        return Query(words=given, literal=max(given, key=len))
    try:
        pattern = re.compile(" ".join(given))
    except (re.error, RecursionError, OverflowError) as fault:
        raise UsageFault(f"invalid regular expression '{' '.join(given)}': {fault}.") from None
    return Query(words=given, pattern=pattern, literal=_mandatory(pattern))


def _mandatory(pattern: re.Pattern[str]) -> str:
    """The longest literal outside groups that every match contains; "" if case is ignored, or for none."""
    source = pattern.pattern
    if pattern.flags & (re.IGNORECASE | re.VERBOSE) or CODED.search(source):
        return ""
    found, depth = [""], 0
    for token in TOKENS.findall(source):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            return ""
        if token in QUANTIFIERS or REPEAT.fullmatch(token):
            found[-1] = found[-1][:-1]
        literal = token[-1] if len(token) == 1 or not token[1].isalnum() else ""
        if depth or len(token) > 2 or not literal or token in NOT_LITERAL:
            found.append("")
        elif token not in ("^", "$"):
            found[-1] += literal
    return max(found, key=len)


def lines(path: str, asked: Query, escaped: bool) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of each candidate line, in order, including a last line without a newline. Memory is bounded: the file is
    read into one buffer, behind the incomplete last line."""
    try:
        descriptor = files.open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    needles, buffer, kept, offset = asked.needles(escaped), bytearray(BLOCK), 0, 0
    with open(descriptor, "rb", buffering=0) as file:
        while size := file.readinto(memoryview(buffer)[kept:]):
            end = kept + size
            whole = buffer.rfind(b"\n", 0, end) + 1 or (end if end >= MAX_PIECE_BYTES else 0)
            yield from _candidates(buffer, whole, needles, offset)
            rest = bytes(buffer[whole:end])
            offset, kept = offset + whole, len(rest)
            if kept * 2 > len(buffer):
                buffer = bytearray(len(buffer) * 2)
            buffer[:kept] = rest
    yield from _candidates(buffer, kept, needles, offset)


def _candidates(data: bytearray, end: int, needles: list[bytes], offset: int) -> Iterator[tuple[int, bytes]]:
    """The candidate lines in data[:end]."""
    at, places = 0, dict.fromkeys(needles, -1)
    while at < end:
        for needle, place in list(places.items()):
            if place < at and (place := data.find(needle, at, end)) < 0:
                del places[needle]  # nor in the rest
            else:
                places[needle] = place
        if needles and not places:
            return
        first = min(places.values(), default=at)
        begin = data.rfind(b"\n", at, first) + 1 or at
        stop = data.find(b"\n", first, end)
        stop = end if stop < 0 else stop
        yield offset + begin, bytes(data[begin:stop])
        at = stop + 1


def number_of(path: str, offset: int) -> int:
    """The number of the line at this offset."""
    number, at = 1, 0
    for block in files.blocks(path, 0, BLOCK):
        if at + len(block) >= offset:
            return number + block.count(b"\n", 0, offset - at)
        number, at = number + block.count(b"\n"), at + len(block)
    return number
