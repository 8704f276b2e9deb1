"""The implementations that the contract of stores is played over: a new one is named here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store
from harness.stores.urls import open_store


class Implementation(NamedTuple):
    """How a store is opened over a folder of its own; `outlives`: its values are there for other processes, also after a kill."""

    open: Callable[[Path], Store]
    outlives: bool


IMPLEMENTATIONS = {
    "memory": Implementation(lambda folder: MemoryStore(), outlives=False),
    "disk": Implementation(lambda folder: DiskStore(str(folder / "deep" / "store")), outlives=True),
    "sqlite": Implementation(lambda folder: open_store(f"sqlite://{folder}/deep/store.db"), outlives=True),
}
OUTLIVING = [name for name, one in IMPLEMENTATIONS.items() if one.outlives]


class Place:
    """One place with values: every store that is opened here has the same."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.outlives = name, folder, IMPLEMENTATIONS[name].outlives
        self.first = self._opened()

    def open(self) -> Store:
        """A store for another writer: one of its own, where that can be had."""
        return self._opened() if self.outlives else self.first

    def _opened(self) -> Store:
        return IMPLEMENTATIONS[self.name].open(self.folder)
