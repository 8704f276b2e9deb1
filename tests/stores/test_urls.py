"""Stores by URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import HarnessAgent, SimulatedModel
from harness.base.errors import UsageFault
from harness.stores.store import ANY
from harness.stores.urls import open_store


@pytest.mark.parametrize("form", ["{}", "file://{}", "sqlite://{}/store.db"])
def test_a_url_names_one_place(tmp_path: Path, form: str) -> None:
    """Every store of it has the same values, and says where they are."""
    url = form.format(tmp_path)
    open_store(url).put(("alice", "k"), b"v", ANY)
    known = open_store(url).get(("alice", "k"))
    assert known is not None and known.data == b"v"
    assert open_store(url).describe(("alice", "k")).endswith(f"{url.removeprefix('file://')}/alice/k")


def test_a_store_in_memory_is_new_each_time() -> None:
    """Its name is for people."""
    open_store("memory:").put(("k",), b"v", ANY)
    assert open_store("memory:").get(("k",)) is None
    assert open_store("memory:mine").describe(("k",)) == "mine:k"


@pytest.mark.parametrize("url", ["ftp://host/x", "sqlite://host/x.db", "sqlite:x.db", "file://x", "sqlite:///x?y=1"])
def test_what_names_no_store_is_said_with_what_to_write(url: str) -> None:
    """Nothing is made."""
    with pytest.raises(UsageFault, match="///"):
        open_store(url)


def test_an_agent_keeps_its_sessions_where_a_url_says(tmp_path: Path) -> None:
    """Another process that names it goes on there."""
    for number in (1, 2):
        model = SimulatedModel("Hello.")
        with HarnessAgent("assistant", model, workspace=str(tmp_path), store=f"sqlite://{tmp_path}/s.db") as agent:
            assert agent.call_sync("Hi.").call == number
    assert not (tmp_path / ".harness").exists()
