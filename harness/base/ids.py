"""Maps ids that people and programs choose (users, sessions) to file names, without collisions on any disk."""

from __future__ import annotations

from harness.base import encoding
from harness.base.errors import UsageFault

PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
WITHIN = PLAIN | frozenset(b"-_")  # not first: a program could read it as an option
MAX_CHARS = 100  # characters: many file systems allow 255 bytes, including a writer's suffix
ESCAPE = "="


def encoded(name: str) -> str:
    """A file name for an id, unique even on disks that fold case or Unicode forms.

    Lower-case ASCII stays as it is; every other UTF-8 byte becomes `=` and two hex digits. A name that would be too
    long becomes `==` and the SHA-256 of the id; no escaped name begins that way. Raises UsageFault for an empty id."""
    if not name:
        raise UsageFault("The id is empty. Name a user or a session, or omit the option.")
    data = name.encode("utf-8", "surrogatepass")
    made = "".join(_byte(byte, first=at == 0) for at, byte in enumerate(data))
    return made if len(made) <= MAX_CHARS else ESCAPE * 2 + encoding.digest(data)


def _byte(byte: int, *, first: bool) -> str:
    return chr(byte) if byte in (PLAIN if first else WITHIN) else f"{ESCAPE}{byte:02x}"
