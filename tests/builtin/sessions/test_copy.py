"""Sessions, memories and files go from one store to another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.builtin.sessions._copy import COPIED, DIFFERENT, THERE, copied
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import ANY, Store
from harness.stores.urls import open_store
from tests.builtin.sessions.test_placement import calls
from tests.builtin.simulating import Program
from tests.missions import House

pytestmark = pytest.mark.on_disk


def filled(folder: Path, store: Store) -> None:
    """A session with a compaction, a memory and a file."""
    save = calls(
        ("memory_save", {"text": "They like tea very much."}),
        ("write_file", {"path": "a.txt", "content": "heron"}),
        ("write_file", {"path": "rows/d.jsonl", "content": "one\ntwo"}),
    )
    answers: list[Any] = [save, "one " * 300, "two " * 300, "three", "the summary", "four"]
    with Program(folder, *answers, store=store) as one:
        for message in "abc":
            one.call_sync(message)
        asyncio.run_coroutine_threadsafe(one.compact(), one._loop()).result()
        one.call_sync("d")


@pytest.mark.parametrize("back", [False, True])
def test_a_session_goes_on_in_another_kind_of_store(tmp_path: Path, back: bool) -> None:
    """From the disk to a database, and back: the same messages, memory and files; a second copy finds all there."""
    disk, other = DiskStore(str(tmp_path / "disk")), open_store(f"sqlite://{tmp_path}/db")
    source, target = (other, disk) if back else (disk, other)
    filled(tmp_path, source)
    planned = [one.what for one in copied(source, target, dry_run=True)]
    assert set(planned) == {COPIED} and not target.list(())
    assert [one.what for one in copied(source, target, dry_run=False)] == planned
    assert {one.what for one in copied(source, target, dry_run=False)} == {THERE}
    read = calls(("read_file", {"path": "a.txt"}), ("read_file", {"path": "rows/d.jsonl"}))
    with Program(tmp_path, read, "five", store=target) as one:
        before = [message.text for message in one.sessions.messages()]
        one.call_sync("e")
        assert [message.text for message in one.sessions.messages()][: len(before)] == before
        assert ["heron" in one.results()[-2], "two" in one.results()[-1]] == [True, True]
    assert "They like tea" in one.simulated.requests[0].system
    assert "the summary" in one.simulated.requests[0].messages[0]["text"]


def test_a_copy_that_was_cut_off_goes_on_and_what_differs_there_stays(tmp_path: Path) -> None:
    """A state comes last, so half a session is none."""
    source, target = DiskStore(str(tmp_path / "disk")), MemoryStore()
    filled(tmp_path, source)
    rows = copied(source, target, dry_run=False)
    for _ in range(3):
        next(rows)
    assert not [key for key in target.list(()) if key[-1] == "state.json"]
    key = next(key for key in source.list(()) if key[-1] == "_memory.md")
    target.put(key, b"mine\n", ANY)
    found = [one.what for one in copied(source, target, dry_run=False)]
    assert found.count(DIFFERENT) == 1 and COPIED in found and THERE in found
    assert (target.get(key) or (b"",))[0] == b"mine\n"


def test_the_command_copies_a_project_with_its_workspace(house: House) -> None:
    """Its AGENTS.md and skills lie over every folder then; what is no store is 64."""
    (house.project / "AGENTS.md").write_text("Be brief.\n")
    url = f"sqlite://{house.project}/db"
    done = house.harness("workspace", "copy", ".", url)
    assert done.code == 0 and "copied" in done.out
    assert open_store(url).get(("_workspace", "AGENTS.md"))
    assert "there already" in house.harness("workspace", "copy", ".", url).out
    assert house.harness("workspace", "copy", ".", "cloud://x").code == 64
