"""The list of sessions: derived, and made again from the logs."""

from __future__ import annotations

from pathlib import Path

from harness.builtin.sessions import index
from harness.builtin.sessions.store import keys
from tests.agents.modelserver import serving
from tests.builtin.sessions.talking import echo, said, store


def test_the_list_is_the_same_when_it_is_made_again(tmp_path: Path) -> None:
    """The newest first; a torn line of it is passed over, and what was used is in it."""
    with serving(echo) as server:
        said(tmp_path, server, "hello", session="a", user="Alice")
        said(tmp_path, server, "hi", "and again", session="b", user="Alice")
    owner = keys("Alice", "a").top.partition("/")[0]
    before = {one.session: one for one in index.of_user(store(tmp_path), owner)}
    assert {name: (one.calls, one.words, one.outcome) for name, one in before.items()} == {
        "a": (1, "hello", "ok"),
        "b": (2, "and again", "ok"),
    }
    assert before["b"].used["output"] == 100
    path = Path(store(tmp_path).where(keys("Alice", "a").index))
    path.unlink()
    again = {one.session: one for one in index.of_user(store(tmp_path), owner)}
    assert {name: one.replace(used={}) for name, one in before.items()} == {
        name: one.replace(used={}) for name, one in again.items()
    }
    other = path.read_bytes().split(b"\n")[0].replace(b'"ended":"', b'"ended":5,"agent":"')
    path.write_bytes(path.read_bytes() + other + b'\n{"user":"Al')
    assert len(index.of_user(store(tmp_path), owner)) == 2
    assert index.owners(store(tmp_path)) == [owner]
