"""Line ends in edits: a model writes `\\n` for each, whatever the file has, and new lines end as most lines of the file do."""

from __future__ import annotations

import re
from collections.abc import Sequence

LF, CRLF = b"\n", b"\r\n"
ANY = rb"\r?\n"


def found(data: bytes, old: bytes) -> list[re.Match[bytes]]:
    """Where a text is in this content. If some lines end with CRLF, each line end of the text matches any line end."""
    parts = re.split(ANY, old) if CRLF in data else [old]
    return list(re.finditer(ANY.join(map(re.escape, parts)), data))


def as_most(data: bytes, new: bytes) -> bytes:
    """A new text with CRLF as its line ends, if most lines of the content have it; else as it is."""
    return re.sub(ANY, CRLF, new) if 2 * data.count(CRLF) > data.count(LF) else new


def replaced(data: bytes, places: Sequence[re.Match[bytes]], new: bytes) -> bytes:
    """The content with a new text in all these places."""
    starts = [0, *(place.end() for place in places)]
    ends = [*(place.start() for place in places), len(data)]
    return new.join(data[start:end] for start, end in zip(starts, ends, strict=True))
