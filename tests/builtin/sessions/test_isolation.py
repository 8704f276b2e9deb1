"""No user reads a byte of another, whatever their ids look like and whatever paths they try."""

from __future__ import annotations

import asyncio
import random
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base import ids
from harness.base.errors import UsageFault
from harness.builtin.conversation import Conversation
from harness.builtin.sessions import _placement, _places
from harness.builtin.sessions._sandboxes import Sandboxes
from harness.builtin.sessions._system_text import SystemTextSource
from harness.builtin.sessions.keys import SCOPES, SessionKeys, scoped, session_keys
from harness.builtin.tool_environment import ToolEnvironment
from harness.process import confine
from harness.state.layout import Layout
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.urls import open_store
from tests.builtin.talking import at, use
from tests.crash import TORTURE
from tests.filesystem.places import NO_BUBBLEWRAP

pytestmark = pytest.mark.on_disk

USERS = [
    "../x",
    "a/b",
    "nul\0",
    "x" * 300,
    "alice",
    "Alice",
    "\u0430lice",
    "%2e%2e",
]  # the last but one: a Cyrillic letter
CALLS = 10_000 if TORTURE else 240
Place = Callable[[SessionKeys], ToolEnvironment]


def of_disk(folder: Path) -> Place:
    """Users' folders on this disk."""
    store = DiskStore(str(folder / ".harness/sessions"))
    return lambda of: _places.of_user(store, Layout(str(folder)), of).replace(home=None)


def of_memory(folder: Path) -> Place:
    """A store in memory."""
    store = MemoryStore()
    return lambda of: _placement.of_store(store, Layout(str(folder)), of, ())


def of_database(folder: Path) -> Place:
    """A database."""
    store = open_store(f"sqlite://{folder}/db")
    return lambda of: _placement.of_store(store, Layout(str(folder)), of, ())


def of_sandbox(folder: Path, prefix: str = "") -> Place:
    """A sandbox for each user."""
    if not prefix and confine.available() != confine.BUBBLEWRAP:
        pytest.skip(reason=NO_BUBBLEWRAP)
    store = MemoryStore() if prefix else DiskStore(str(folder / ".harness/sessions"))
    made = Sandboxes(prefix, store, SystemTextSource(Layout(str(folder)), "helper", store), (), {})
    return lambda of: made.environment(of).replace(home=None)


def of_prefix(folder: Path) -> Place:
    """Folders behind a prefix, in which one user's commands are not kept from another's files: none are run."""
    return of_sandbox(folder, f"env HOME={folder}")


def tried(rng: random.Random, talk: Conversation, mine: str, *, runs: bool) -> str:
    """What a random call of a user says. `runs`: also a command's."""
    other = rng.choice(USERS)
    paths = ["a.txt", "deep/b.txt", f"../{other}/a.txt", f"../../{other}/_files/a.txt", f"/{other}/_files/a.txt", "../_memory.md",
             ".results/a.txt", f"../{other}/_memory.md", "a.txt\0", f"../../{ids.encoded(other)}.1/files/a.txt"]  # fmt: skip
    path = rng.choice(paths)
    command = rng.choice(
        ["cat {} ../*/*/a.txt", "grep -rs secret /workspace /tmp /home /run", "cp -r .. /tmp; cat a.txt"]
    )
    return {
        0: lambda: use(talk, "write_file", path=path, content=f"{mine}\n").text,
        1: lambda: use(talk, "read_file", path=path).text,
        2: lambda: use(talk, "grep_files", pattern="secret", path=rng.choice([".", "..", path])).text,
        3: lambda: use(talk, "glob_files", pattern=rng.choice(["**/*", "../**/*", f"../{other}/*"])).text,
        4: lambda: use(talk, "memory_save", text=f"The word of this person is {mine}.").text,
        5: lambda: use(talk, "memory_search", query="word person secret").text,
        6: lambda: use(talk, "execute", command=command.format(shlex.quote(path.replace("\0", "")))).text,
    }[rng.randrange(6 + runs)]()


@pytest.mark.parametrize("made", [of_disk, of_memory, of_database, of_sandbox, of_prefix])
def test_no_user_reads_a_byte_of_another(tmp_path: Path, made: Callable[[Path], Place]) -> None:
    """Random calls of eight users, over each place; of three where each user has a process, in the suite."""
    rng, place = random.Random(7), made(tmp_path)
    users, calls = (USERS, CALLS) if TORTURE or made not in (of_sandbox, of_prefix) else (USERS[2:5], CALLS // 2)
    secrets = {user: f"secret{number}s" for number, user in enumerate(users)}
    own, talks = 0, {user: at(place(session_keys(user, "s"))) for user in users}
    for _ in range(calls):
        user = rng.choice(users)
        said = tried(rng, talks[user], secrets[user], runs=made is of_sandbox)
        assert not [other for other in users if other != user and secrets[other] in said]
        own += secrets[user] in said
    assert own > calls / 20
    for talk in talks.values():
        asyncio.run(talk.close())


def test_a_missing_id_is_an_error() -> None:
    """Never a bucket that all share; and no two users have one key in any scope but those that they share."""
    for user, session in (("", "s"), ("ann", "")):
        with pytest.raises(UsageFault, match="from 1 to"):
            session_keys(user, session)
    for scope in SCOPES[:2]:
        tops = {scoped(session_keys(user, "s"), scope, "agent").files for user in USERS}
        assert len(tops) == len(USERS)
