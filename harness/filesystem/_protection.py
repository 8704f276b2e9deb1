"""What may be read only: the folders of git and of the harness, logins, private keys, and what the maker of a filesystem adds.

A name counts wherever it is in a path, in upper or lower case: a filesystem may not tell them apart. A pattern with a `/` counts
from the root. What such a pattern names is guarded with all that is below it; a new file with the name of a key may be made.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

FOLDERS = (".git", ".harness", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker")
KEYS = (
    *(".env", ".env.local", ".env.production", ".netrc", ".pgpass", ".git-credentials", ".pypirc", ".npmrc"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx"),
)


class ProtectedNames:
    """The names and patterns of one filesystem. `more`: further ones, of files or folders that nothing may be made in either."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self.names = frozenset(FOLDERS)
        self.anchored = [one.strip("/").casefold().split("/") for one in more if "/" in one.strip("/")]
        self.patterns = [one.strip("/").casefold() for one in more if "/" not in one.strip("/")]

    def folder(self, names: Sequence[str]) -> bool:
        """Whether nothing at this place may be made or changed."""
        low = [name.casefold() for name in names]
        return (
            not self.names.isdisjoint(low)
            or any(fnmatch.fnmatchcase(name, one) for one in self.patterns for name in low)
            or any(_begins(low, one) for one in self.anchored)
        )

    def file(self, name: str) -> bool:
        """Whether a file of this name, where it is there, may not be changed."""
        low = name.casefold()
        return any(fnmatch.fnmatchcase(low, one) for one in KEYS)


def _begins(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the path is what the pattern names, or below it."""
    return len(names) >= len(pattern) and all(
        fnmatch.fnmatchcase(name, one) for name, one in zip(names, pattern, strict=False)
    )
