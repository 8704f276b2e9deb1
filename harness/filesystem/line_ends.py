"""Line ends in edits: a model always writes `\\n`, and new lines end as most lines of the file do."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

LF, CRLF = b"\n", b"\r\n"
ANY = rb"\r?\n"


def find_text(data: bytes, old: bytes) -> list[re.Match[bytes]]:
    """All matches of a text. If some lines of the content end with CRLF, a line end of the text matches any line end."""
    parts = re.split(ANY, old) if CRLF in data else [old]
    return list(re.finditer(ANY.join(map(re.escape, parts)), data))


def like_most(data: bytes, new: bytes) -> bytes:
    """The new text with CRLF line ends if most lines of the content have them; otherwise unchanged."""
    return re.sub(ANY, CRLF, new) if 2 * data.count(CRLF) > data.count(LF) else new


def like_file(data: bytes, new: bytes) -> bytes:
    """The whole new content of a file, with its byte order mark and its line ends; of both kinds, as `like_most`."""
    begin = codecs.BOM_UTF8 * (data.startswith(codecs.BOM_UTF8) and not new.startswith(codecs.BOM_UTF8))
    return begin + (new.replace(CRLF, LF) if LF in data and CRLF not in data else like_most(data, new))


def replace_matches(data: bytes, places: Sequence[re.Match[bytes]], new: bytes) -> bytes:
    """The content with these matches replaced by a new text."""
    starts = [0, *(place.end() for place in places)]
    ends = [*(place.start() for place in places), len(data)]
    return new.join(data[start:end] for start, end in zip(starts, ends, strict=True))
