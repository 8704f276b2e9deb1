"""Where the tools of a person's session work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.builtin.sessions import _places, folder
from harness.builtin.sessions.keys import memory_of, session_keys
from harness.builtin.tool_environment import ToolEnvironment, confined
from harness.filesystem.shell import LocalShell
from harness.state.layout import Layout
from harness.stores.disk import DiskStore
from harness.stores.store import Value
from harness.workspace import budget
from tests.builtin.sessions.talking import disk
from tests.builtin.talking import at, use
from tests.filesystem.delegating import DelegatingFiles, DelegatingShell

pytestmark = pytest.mark.on_disk


def test_tools_see_the_folder_and_of_the_sessions_only_their_own(tmp_path: Path) -> None:
    """Not those of another user, nor of another session, also in a mission."""
    (tmp_path / "a.txt").write_text("mine\n")
    other = tmp_path / ".harness/sessions/bob/s/log.jsonl"
    other.parent.mkdir(parents=True)
    other.write_text("secret\n")
    (tmp_path / ".harness/format").write_text("2\n")
    talk = at(_places.of_folder(disk(tmp_path), Layout(str(tmp_path)), session_keys("alice", "s")).replace(home=None))
    try:
        assert "mine" in use(talk, "read_file", path="a.txt").text
        for path in (
            ".harness/sessions/bob/s/log.jsonl",
            f"{tmp_path}/.harness/sessions/bob/s/log.jsonl",
            ".harness/format",
        ):
            assert use(talk, "read_file", path=path).failed
        assert use(talk, "grep_files", pattern="secret").text.startswith("No line")
        assert use(talk, "execute", command="cat a.txt").text.endswith("mine")
    finally:
        asyncio.run(talk.close())


@pytest.mark.parametrize("delegates", [False, True])
def test_the_commands_of_a_shell_elsewhere_are_confined_in_its_own_folder(tmp_path: Path, delegates: bool) -> None:
    """Whatever class it is of, and without a change of the shell that the caller has."""
    for name in ("project", "own"):
        (tmp_path / name).mkdir()
    shell = LocalShell(str(tmp_path / "own"))
    layout, made = Layout(str(tmp_path / "project")), DelegatingShell(shell) if delegates else shell
    where = confined(ToolEnvironment(filesystem=made, home=layout), True)
    files = where.filesystem
    assert where.folder == str(tmp_path / "own")
    found = files.inner if isinstance(files, DelegatingShell) else files
    assert isinstance(found, LocalShell)
    assert (shell.confine, shell.refusal) == (None, "")
    assert (found.confine, found.refusal) == (where.confinement, where.refusal) != (None, "")
    plain = DelegatingFiles(shell)
    known = ToolEnvironment(filesystem=plain, home=layout)
    assert confined(known, known.has_shell) is known


def test_what_is_kept_is_of_its_user(tmp_path: Path) -> None:
    """A part of the system text; without a value there is none. On this disk it is a file."""
    store = DiskStore(str(tmp_path / ".harness/sessions"))
    assert _places.section(store.get(memory_of("Alice")), "x") is None
    path = tmp_path / ".harness/sessions/=41lice/_memory.md"
    path.parent.mkdir(parents=True)
    path.write_text("- [2026-01-01] tea\n")
    found = _places.section(store.get(memory_of("Alice")), "x")
    assert found is not None and "tea" in found.text
    assert _places.section(store.get(memory_of("alice")), "x") is None
    layout = Layout(str(tmp_path))
    assert folder.agent_of(layout, "Alice", "s") == ""
    assert folder.store(layout).get(session_keys("Alice", "s").state) is None


def test_where_there_is_no_room_for_all_that_is_kept_the_tool_that_finds_it_is_named() -> None:
    """The newest lines stay."""
    rows = "".join(f"- [2026-01-{day:02}] line {day} {'word ' * 20}\n" for day in range(1, 29))
    whole = _places.section(Value(rows.encode(), "1"), "x")
    assert whole is not None
    cut = budget.fit([whole], 200)[0].text
    assert "line 28" in cut and "line 1 " not in cut and "memory_search" in cut
