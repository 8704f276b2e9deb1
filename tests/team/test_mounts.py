"""Promises of harness/team/_mounts.py: one table for compose, the live filesystem and reconcile."""

from __future__ import annotations

import re
from pathlib import Path

from harness.filesystem.protocol import FileFault
from harness.filesystem.transfer import read_whole
from harness.stores.memory import MemoryStore
from harness.stores.urls import open_store
from harness.team import _mounts
from harness.team._mounts import live_filesystem, mounts_of
from tests.team.workspaces import SOURCES, Machine, read, team

PAGE = Path(__file__).parents[2] / "docs/team.md"


def test_the_page_has_the_table() -> None:
    """docs/team.md lists the rows of MOUNTS in their order."""
    rows = re.findall(r"^\| `(.*?)` \| (\w+) \| `(.*?)` \| (\w+) \|", PAGE.read_text(), re.M)
    assert [
        (prefix.removeprefix("./"), kind, below.removeprefix("./"), mode) for prefix, kind, below, mode in rows
    ] == [*_mounts.MOUNTS]


def test_the_live_filesystem_shows_and_permits_what_a_turn_does(tmp_path: Path) -> None:
    """The same files and the same rights, over the store itself; a write is in the source at once."""
    store = team(open_store(str(tmp_path / "store")))
    machine = Machine(tmp_path / "machine", store)
    machine.begin()
    files, shown = live_filesystem(store, mounts_of("acme", SOURCES)), machine.shown()
    for path, text in shown.items():
        found = read_whole(files, path)
        assert not isinstance(found, FileFault), path
        assert found.data.decode() == text
    writable = {path for path in shown if (machine.at / path).stat().st_mode & 0o222}
    assert {path for path in shown if isinstance(files.write(path, b"new\n"), FileFault)} == shown.keys() - writable
    assert read(store, "users/ada/memory/style.md") == "new\n"
    assert read(store, "agents/scribe/memory/style.md") == "Short sentences.\n"
    assert isinstance(files.read("Space/hidden.md"), FileFault)


def test_what_has_no_access_is_not_shown_live_either() -> None:
    """And nothing of the agent takes its place."""
    store = team(MemoryStore())
    files = live_filesystem(
        store, mounts_of("acme", SOURCES, lambda kind, _: {"space": "", "user": "read"}.get(kind, "write"))
    )
    for path in ("Space/CONTEXT.md", "Space/hidden.md"):
        assert isinstance(files.read(path), FileFault)
    assert isinstance(files.write("USER.md", b"new\n"), FileFault)
    assert not isinstance(files.read("memory/birds.md"), FileFault)
