"""Read-only names: the folders of git and the harness, credentials, private keys, and the caller's additions.

A name matches anywhere in a path, without case, since a filesystem may ignore case. A pattern with a `/` is relative to
the root and covers everything below. A new file with the name of a key may be created.
"""

from __future__ import annotations

import fnmatch
import os
import unicodedata
from collections.abc import Iterable, Sequence

from harness.filesystem._faults import VerbRefusal

MAX_NAME_BYTES = 255

FOLDERS = (".git", ".harness", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker")
KEYS = (
    *(".env", ".env.local", ".env.production", ".netrc", ".pgpass", ".git-credentials", ".pypirc", ".npmrc"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx"),
)


class ProtectedNames:
    """The names and patterns of one filesystem. `more`: additional files or folders, in which nothing may be created
    either."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self.names = frozenset(FOLDERS)
        self.anchored = [one.strip("/").casefold().split("/") for one in more if "/" in one.strip("/")]
        self.patterns = [one.strip("/").casefold() for one in more if "/" not in one.strip("/")]

    def folder(self, names: Sequence[str]) -> bool:
        """Whether nothing at this path may be created or changed."""
        low = [name.casefold() for name in names]
        return (
            not self.names.isdisjoint(low)
            or any(fnmatch.fnmatchcase(name, one) for one in self.patterns for name in low)
            or any(_begins(low, one) for one in self.anchored)
        )

    def file(self, name: str) -> bool:
        """Whether an existing file of this name may not be changed."""
        low = name.casefold()
        return any(fnmatch.fnmatchcase(low, one) for one in KEYS)


def _begins(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the path matches the pattern, or is below a match."""
    return len(names) >= len(pattern) and all(
        fnmatch.fnmatchcase(name, one) for name, one in zip(names, pattern, strict=False)
    )


def check_name(name: str, path: str) -> None:
    """Raise VerbRefusal for the name of a new file that some systems, or listings, could not show."""
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        raise VerbRefusal("invalid", path, f"{path} has a name of more than {MAX_NAME_BYTES} bytes.")
    if "\\" in name or not name.isprintable():
        text = f"{path} has a name with a backslash or control character; separate folders with `/`."
        raise VerbRefusal("invalid", path, text)
    if not unicodedata.is_normalized("NFC", name):
        raise VerbRefusal("invalid", path, f"{path} has letters with separate combining accents (not NFC).")
