"""Promises of harness/filesystem/keyvalue.py: the contract over a store in memory, and what keys add to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.filesystem import stored_files
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileFault, Filesystem, Listing, LocalFolder, Shell
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


def test_listings_and_globs_read_keys_only() -> None:
    """With sizes and times; a grep reads the files that it searches."""
    store = Meddling()
    files = KeyValueFiles(store)
    upload(files, {"a.py": b"", "d/b.py": b"123", "d/e/c.txt": b""})
    store.seen.clear()
    found = files.ls("d")
    assert isinstance(found, Listing)
    assert [(one.path, one.size, one.changed > 1e9) for one in found.entries] == [
        ("d/b.py", 3, True),
        ("d/e", 0, False),
    ]
    assert names(files.glob("**/*.txt")) == ["d/e/c.txt"]
    assert store.seen == []
    assert names(files.glob("d/*.py")) == ["d/b.py"]
    files.grep("x", glob="*.py")
    assert store.seen == [("a.py",), ("d", "b.py")]


class Counting(MemoryStore):
    """A store that counts its calls, and the bytes that it returns and takes."""

    calls = moved = 0

    def get(self, key: Key) -> Value | None:
        """As any store."""
        found = super().get(key)
        self.calls, self.moved = self.calls + 1, self.moved + (len(found.data) if found else 0)
        return found

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """As any store."""
        self.calls, self.moved = self.calls + 1, self.moved + len(data)
        return super().put(key, data, expect)

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        """As any store."""
        self.calls += 1
        return super().list(prefix, after, limit)

    def delete(self, key: Key, expect: str) -> None:
        """As any store."""
        self.calls += 1
        super().delete(key, expect)

    def cost(self, act: Callable[[], object]) -> tuple[int, int]:
        """(calls, bytes) of an action that is no fault."""
        self.calls = self.moved = 0
        assert not isinstance(act(), FileFault)
        return self.calls, self.moved


def test_no_verb_reads_more_than_it_needs() -> None:
    """In calls of the store, and bytes: 100 lines of a large file are in one part of it."""
    store = Counting()
    files = KeyValueFiles(store, ("f",))
    upload(files, {f"many/{number:04}": b"" for number in range(5000)})
    big = b"".join(b"line %07d of a large file\n" % number for number in range(100_000))
    upload(files, {"big": big, "small": b"x\n"})
    assert store.cost(lambda: files.ls("many"))[0] <= 3
    assert store.cost(lambda: files.glob("*9", "many"))[0] <= 4
    for offset in (0, 50_000, 99_950):
        calls, moved = store.cost(partial(files.read, "big", offset, 100))
        assert (calls, moved <= 2 * 2**20) == (2, True)
        assert content(files.read("big", offset, 100)).data == b"".join(
            big.splitlines(keepends=True)[offset : offset + 100]
        )
    assert store.cost(lambda: files.read("small"))[0] == 1
    assert store.cost(lambda: files.stat("big"))[0] == 1
    assert store.cost(lambda: files.write("new/a", b"x", create=True))[0] <= 10
    assert store.cost(lambda: files.write("small", b"y"))[0] <= 5
    calls, moved = store.cost(lambda: files.edit("small", [change("y", "z")]))
    assert (calls <= 5, moved < 1000) == (True, True)


@pytest.mark.parametrize("limit", [0, 1, 3, 100])
def test_a_file_in_parts_reads_as_one(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """From any line on, with lines over several parts, and a last line without an end."""
    data = b"".join(b"%d " % number + b"x" * (number * 7 % 40) + b"\n" * (number % 3) for number in range(60)) + b"last"
    flat, files = KeyValueFiles(MemoryStore()), KeyValueFiles(Counting())
    written(flat.write("f", data))
    monkeypatch.setattr(stored_files, "CHUNK", 64)
    written(files.write("f", data))
    for offset in range(70):
        for most in (10, 200, 10**6):
            wanted, found = (content(one.read("f", offset, limit, most=most)) for one in (flat, files))
            assert found.replace(version="", digest="") == wanted.replace(version="", digest="")
    assert content(files.read("f")).digest == encoding.digest(data)
    written(files.edit("f", [change("last", "end\n")]))
    written(files.move("f", "d/g"))
    assert (content(files.read("d/g")).data, files.store.list(("f",))) == (data[:-4] + b"end\n", [])
    written(files.delete("d"))
    assert files.store.list(()) == []


def test_what_a_killed_writer_left_is_not_seen() -> None:
    """Parts without a head, of a file that is there, or is not; sizes are those of the content."""
    store = MemoryStore()
    files = KeyValueFiles(store)
    written(files.write("f", b"123"))
    for name in ("/f/", "/ghost/"):
        store.put((name, "5-99-abc-0"), b"", ABSENT)
    listed = files.ls()
    assert isinstance(listed, Listing)
    assert [(one.path, one.size) for one in listed.entries] == [("f", 3)]
    assert names(files.glob("**")) == ["f"]
    written(files.delete("f"))
    assert names(files.ls()) == []


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
