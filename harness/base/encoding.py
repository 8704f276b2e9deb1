"""Encodes and decodes SHA-256, UTF-8, JSON, shell words and lists of names; errors name file and line. Touches no disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from harness.base.errors import BrokenFile

PLAIN = str.maketrans("/._-+:=@%,", "aaaaaaaaaa")  # characters that need no shell quoting, besides letters and digits
MAX_NAMES = 5
MAX_REMEMBERED, REMEMBERED_BYTES = 4, range(16 * 1024, 1024 * 1024)
_digests: list[tuple[bytes, str]] = []  # of the last few large files, which a run reads and writes several times


def digest(data: bytes) -> str:
    """SHA-256 of `data`, 64 hex digits."""
    if len(data) not in REMEMBERED_BYTES:
        return hashlib.sha256(data).hexdigest()
    known = next((made for same, made in _digests if same == data), "")
    if not known:
        known = hashlib.sha256(data).hexdigest()
        _digests[MAX_REMEMBERED - 1 :] = []
        _digests.insert(0, (data, known))
    return known


def plain(data: bytes) -> bytes:
    """`data` without what an editor of another system adds: a byte order mark, and CR before each line feed."""
    return data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def decode(data: bytes, path: str) -> str:
    """`data` as `plain` UTF-8 text; raises BrokenFile with the line of the first bad byte."""
    try:
        return plain(data).decode("utf-8")
    except UnicodeDecodeError as fault:
        line = fault.object.count(b"\n", 0, fault.start) + 1
        other = "UTF-16, " if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise BrokenFile(path, f"{other}not UTF-8 text", line=line, remedy="Save the file as UTF-8.") from None


def parse_json(data: bytes, path: str, remedy: str = "") -> Any:
    """`data` as JSON; raises BrokenFile with the line; `remedy`: an alternative to correcting it."""
    try:
        return json.loads(decode(data, path))
    except json.JSONDecodeError as fault:
        raise BrokenFile(
            path, f"not JSON ({fault.msg})", line=fault.lineno, remedy=f"Correct that line. {remedy}".rstrip()
        ) from None
    except (ValueError, RecursionError) as fault:
        raise BrokenFile(
            path, f"not JSON that can be read ({fault})", line=1, remedy=f"Correct it. {remedy}".rstrip()
        ) from None


def compact(value: object, *, ascii_only: bool = False) -> str:
    """The most compact JSON of a value; raises what `json.dumps` raises."""
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))


def dump_json(value: object) -> bytes:
    """Compact JSON on one line, with its newline."""
    try:
        return compact(value).encode() + b"\n"
    except UnicodeEncodeError:  # a file name that is not UTF-8: escapes preserve it
        return compact(value, ascii_only=True).encode() + b"\n"


def shell_word(text: str) -> str:
    """`text` as one word of a shell command, in quotes where it needs them."""
    if text and text.isascii() and text.translate(PLAIN).isalnum():
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def few(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """The first of these names for a message, and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
