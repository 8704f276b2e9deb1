"""Ids that people and programs choose (users, sessions), as names of files: no two ids ever meet on any disk."""

from __future__ import annotations

from harness.base import encoding
from harness.base.errors import UsageFault

PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
WITHIN = PLAIN | frozenset(b"-_")  # not at the beginning, where a program may take it for an option
MAX_CHARS = 100  # characters of a name; many systems take 255 bytes, with what a writer adds
ESCAPE = "="


def encoded(name: str) -> str:
    """A file name for an id, another one for every other id, on disks that fold case or Unicode forms, too.

    Lower-case ASCII names stay as they are. Every other byte of the UTF-8 is `=` and two digits; a name that would be too long
    is `==` and the SHA-256 of the id, which no escaped name begins with. Raises UsageFault for an empty id."""
    if not name:
        raise UsageFault("An id is empty. Name a user or a session, or leave the option out.")
    data = name.encode("utf-8", "surrogatepass")
    made = "".join(_byte(byte, first=at == 0) for at, byte in enumerate(data))
    return made if len(made) <= MAX_CHARS else ESCAPE * 2 + encoding.digest(data)


def _byte(byte: int, *, first: bool) -> str:
    return chr(byte) if byte in (PLAIN if first else WITHIN) else f"{ESCAPE}{byte:02x}"
