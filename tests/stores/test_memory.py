"""The store in memory."""

from __future__ import annotations

from harness.stores.memory import MemoryStore
from harness.stores.store import ABSENT


def test_each_store_has_values_of_its_own_and_a_name() -> None:
    """Two of them in one process share nothing."""
    store = MemoryStore("own")
    store.put(("k",), b"ab", ABSENT)
    assert MemoryStore().get(("k",)) is None and store.describe(("k",)) == "own:k"
