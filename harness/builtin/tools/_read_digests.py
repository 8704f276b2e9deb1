"""Which files a conversation has seen, and with which content: what it did not see, it must not overwrite.

Kept in the state of the session, so a conversation that is continued in another process knows it, too.
"""

from __future__ import annotations

import posixpath

from harness.builtin.tools.tool import ToolSession
from harness.filesystem.protocol import FileFault

KEY = "seen"
UNREAD = "{path} is there, and you have not read it. Read it with read_file first, then decide."
CHANGED = "{path} is not as you read it: it has changed since. Read it again with read_file, then decide anew."
VERSION = "version "  # before that of a large file of which a part was seen
MOST = 500  # files; the one seen longest ago is forgotten first, and must then be read again


def key(path: str) -> str:
    """One name for each spelling of a path: `/a`, `a`, `./a`, `b/../a`."""
    return posixpath.normpath("/" + path).lstrip("/") or "."


def remember(session: ToolSession, path: str, digest: str) -> None:
    """The model has seen this file, or wrote it. `digest`: of its whole content, or VERSION and the file's; "" where the file is
    too large to know."""
    seen = session.state.setdefault(KEY, {})
    seen.pop(key(path), None)
    seen[key(path)] = digest
    while len(seen) > MOST:
        del seen[next(iter(seen))]


def refusal(session: ToolSession, path: str, digest: str) -> str:
    """Why a file with this content must not be changed now: it changed since the model saw it, or the model never did; "" where
    it may. Content that was seen under any name was seen: a file that was moved, or has two names, need not be read again."""
    seen = session.state.get(KEY, {})
    known = seen.get(key(path))
    if digest in seen.values() or known == "":
        return ""
    if str(known).startswith(VERSION) and known == VERSION + _version(session, path):
        return ""
    return (CHANGED if key(path) in seen else UNREAD).format(path=path)


def _version(session: ToolSession, path: str) -> str:
    """The version of the file now: where it is still that which was seen, so was the content that was read meanwhile."""
    found = session.files.read(path, 0, 1)
    return "" if isinstance(found, FileFault) else found.version
