"""langgraph's conformance suite for checkpointers, over each store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

pytest.importorskip(
    "langgraph.checkpoint.conformance", reason="it is in the extra for the peers' suites: make test-peers"
)

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import BASE_CAPABILITIES

from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store
from tests.peers.checkpointer import StoreSaver

BASE_CASES = 58  # of 0.0.2


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_the_base_suite_passes(kind: str, tmp_path: Path) -> None:
    """Checkpoints and their writes are kept, listed and deleted as every user of langgraph expects."""
    store: Store = MemoryStore() if kind == "memory" else DiskStore(str(tmp_path))

    async def made() -> AsyncGenerator[StoreSaver, None]:
        yield StoreSaver(store)

    report = asyncio.run(
        validate(checkpointer_test(name=kind)(made), capabilities={one.value for one in BASE_CAPABILITIES})
    )
    assert [text for one in report.results.values() for text in one.failures] == []
    assert report.passed_all_base() and sum(one.tests_passed for one in report.results.values()) >= BASE_CASES
