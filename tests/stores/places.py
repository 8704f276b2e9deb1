"""The implementations that the contract of stores is played over: a new one is named here, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness.stores.store import Store, encoded
from harness.stores.urls import open_store


class Implementation(NamedTuple):
    """The URL of a store of its own, given FOLDER and, where it needs a SERVER, that. `outlives`: its values are there for other
    processes, also after a kill; `forks`: a process that has used one may be forked."""

    url: str
    outlives: bool = True
    forks: bool = True

    @property
    def in_folder(self) -> bool:
        """Whether the values are in the folder, and nowhere else."""
        return "FOLDER" in self.url


IMPLEMENTATIONS = {
    "memory": Implementation("memory:", outlives=False),
    "disk": Implementation("file://FOLDER/deep/store"),
    "sqlite": Implementation("sqlite://FOLDER/deep/store.db"),
    "redis": Implementation("SERVER?prefix=UNIQUE"),
    "postgres": Implementation("SERVER?prefix=UNIQUE"),
    "s3": Implementation("SERVER", forks=False),  # obstore has threads
}
OUTLIVING = [name for name, one in IMPLEMENTATIONS.items() if one.outlives and one.in_folder]


class Place:
    """One place with values: every store that is opened here has the same. `server`: the URL of what the values are on."""

    def __init__(self, name: str, folder: Path, server: str = "") -> None:
        self.name, self.folder, self.server = name, folder, server
        self.outlives = IMPLEMENTATIONS[name].outlives
        self.forks = self.outlives and IMPLEMENTATIONS[name].forks
        self.first = self._opened()

    def open(self) -> Store:
        """A store for another writer: one of its own, where that can be had."""
        return self._opened() if self.outlives else self.first

    @property
    def url(self) -> str:
        """The URL of the place."""
        unique = encoded((str(self.folder),))
        url = (
            IMPLEMENTATIONS[self.name].url.replace("SERVER", self.server).replace("PREFIX", unique.replace("%2F", "-"))
        )
        return url.replace("FOLDER", str(self.folder)).replace("UNIQUE", unique.replace("%2F", "-"))

    def _opened(self) -> Store:
        return open_store(self.url)
