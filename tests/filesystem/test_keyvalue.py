"""Promises of harness/filesystem/keyvalue.py: the contract over a store in memory, and what keys add to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.local import Local
from harness.filesystem.protocol import Filesystem, LocalFolder, Shell
from harness.filesystem.transfer import upload
from harness.stores.memory import MemoryStore
from harness.stores.store import ABSENT, ANY, Key, Value
from tests.filesystem.contract import Contract, change, content, kind, lines, names, written
from tests.filesystem.delegating import DelegatingFiles


class TestKeyValueFiles(Contract):
    """Files in the memory of this process."""

    def made(self, tmp_path: Path) -> Filesystem:
        """Below a prefix, with other keys beside it."""
        store = MemoryStore()
        for key in (("a", "b"), ("files",), ("files2", "x")):
            store.put(key, b"", ABSENT)
        return KeyValueFiles(store, ("files",))


class TestDelegatingFiles(Contract):
    """A class of a user's own, without a local folder or a shell."""

    def made(self, tmp_path: Path) -> Filesystem:
        """Over a folder."""
        made = DelegatingFiles(Local(str(tmp_path)))
        assert not isinstance(made, Shell | LocalFolder)
        return made


class Meddling(MemoryStore):
    """A store in which somebody else writes just before a change, and that knows what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.others, self.later = list[tuple[Key, bytes]](), list[tuple[Key, bytes]]()
        self.seen = list[Key]()

    def get(self, key: Key) -> Value | None:
        """As any store."""
        self.seen.append(key)
        return super().get(key)

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """Theirs, then ours."""
        while self.others:
            super().put(*self.others.pop(), ANY)
        return super().put(key, data, expect)

    def delete(self, key: Key, expect: str) -> None:
        """Theirs, then ours."""
        while self.later:
            super().put(*self.later.pop(), ANY)
        super().delete(key, expect)


def stored(data: bytes) -> bytes:
    """The value of a file with this content."""
    store = MemoryStore()
    written(KeyValueFiles(store).write("f", data))
    found = store.get(("f",))
    assert found is not None
    return found.data


@pytest.mark.parametrize("expects", [True, False])
def test_a_change_of_another_writer_is_not_lost(expects: bool) -> None:
    """An edit begins again, or says that the file changed; so does a write that expects a content."""
    store = Meddling()
    files = KeyValueFiles(store)
    digest = written(files.write("f", b"ours\n")).digest if expects else ""
    written(files.write("f", b"ours\n"))
    store.others = [(("f",), stored(b"theirs\nours\n"))]
    answer = files.edit("f", [change("ours", "mine")], expect=digest)
    if expects:
        assert kind(answer) == "changed"
    assert content(files.read("f")).data == (b"theirs\nours\n" if expects else b"theirs\nmine\n")
    store.others = [(("f",), stored(b"theirs"))]
    assert kind(files.write("f", b"x", expect=content(files.read("f")).digest)) == "changed"
    store.others = [(("new",), stored(b"theirs"))]
    assert kind(files.write("new", b"x", create=True)) == "exists"


def test_what_is_written_during_a_move_goes_with_it() -> None:
    """The last content is at the target, and nothing is left behind."""
    store = Meddling()
    files = KeyValueFiles(store)
    written(files.write("d/f", b"old"))
    store.later = [(("d", "f"), stored(b"new"))]
    written(files.move("d/f", "g"))
    assert (content(files.read("g")).data, names(files.ls()), names(files.ls("d"))) == (b"new", ["d", "g"], [])


def test_a_search_reads_the_values_that_it_reports_alone() -> None:
    """A folder's listing those of its files, a glob those of its hits."""
    store = Meddling()
    files = KeyValueFiles(store)
    upload(files, {"a.py": b"", "d/b.py": b"", "d/e/c.txt": b""})
    store.seen.clear()
    assert names(files.ls("d")) == ["d/b.py", "d/e"]
    assert names(files.glob("**/*.txt")) == ["d/e/c.txt"]
    assert store.seen == [("d", "b.py"), ("d", "e", "c.txt")]


def test_a_value_that_is_no_file_is_said_to_be_broken() -> None:
    """By its place in the store; it is neither empty nor absent."""
    store = MemoryStore("here")
    store.put(("f",), b"?", ABSENT)
    with pytest.raises(BrokenFile, match="here:f"):
        KeyValueFiles(store).read("f")


def test_what_is_named_is_read_only_too_and_what_is_around_it_stays() -> None:
    """Keys that are there, also below a folder that goes."""
    store = MemoryStore()
    files = KeyValueFiles(store, read_only=["docs/fixed"])
    upload(KeyValueFiles(store), {"docs/fixed/x": b""})
    upload(files, {"docs/other": b"", "k/.env": b"KEY", "x": b"hit\n"})
    assert kind(files.write("docs/fixed/x", b"")) == kind(files.write("k/.env", b"")) == "read_only"
    assert kind(files.delete("docs")) == kind(files.move("docs", "d")) == "read_only"
    assert kind(files.delete("k")) == kind(files.move("k", "m")) == kind(files.move("x", ".git/x")) == "read_only"
    assert lines(files.grep("hit|KEY", hidden=True)) == [("k/.env", 1, b"KEY"), ("x", 1, b"hit")]
