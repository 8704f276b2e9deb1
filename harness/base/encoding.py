"""Bytes and what they mean: SHA-256, UTF-8, JSON and words of a shell, with faults that name file and line. Touches no disk."""

from __future__ import annotations

from harness.base import lean
from harness.base.errors import BrokenFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


PLAIN = str.maketrans("/._-+:=@%,", "aaaaaaaaaa")  # besides letters and digits, what no shell takes for anything else
REMEMBERED, LARGE = 4, range(16 * 1024, 1024 * 1024)
_digests: list[tuple[bytes, str]] = []  # of the last few files of that size, which a run reads and writes several times


def digest(data: bytes) -> str:
    """SHA-256 of `data`, 64 hex digits."""
    if len(data) not in LARGE:
        return lean.sha256(data)
    known = next((made for same, made in _digests if same == data), "")
    if not known:
        known = lean.sha256(data)
        _digests[REMEMBERED - 1 :] = []
        _digests.insert(0, (data, known))
    return known


def decode(data: bytes, path: str) -> str:
    """`data` as UTF-8 text; raises BrokenFile with the line of the first bad byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise BrokenFile(path, "not UTF-8 text", line=line, remedy="Save the file as UTF-8.") from None


def parse_json(data: bytes, path: str, remedy: str = "") -> Any:
    """`data` as JSON; raises BrokenFile with the line; `remedy`: besides correcting it."""
    try:
        return lean.loads(decode(data, path))
    except (ValueError, RecursionError) as fault:
        if bad := lean.bad_line(fault):
            raise BrokenFile(
                path, f"not JSON ({bad[1]})", line=bad[0], remedy=f"Correct that line. {remedy}".rstrip()
            ) from None
        raise BrokenFile(
            path, f"not JSON that can be read ({fault})", line=1, remedy=f"Correct it. {remedy}".rstrip()
        ) from None


def dump_json(value: object) -> bytes:
    """Compact JSON on one line, with its newline."""
    try:
        return lean.dumps(value).encode() + b"\n"
    except UnicodeEncodeError:  # a file name that is not UTF-8: escapes preserve it
        return lean.dumps(value, ascii_only=True).encode() + b"\n"


def shell_word(text: str) -> str:
    """`text` as one word of a shell command, in quotes where it needs them."""
    if text and text.isascii() and text.translate(PLAIN).isalnum():
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"
