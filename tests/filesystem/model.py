"""A tree of files as a dict, and a filesystem driven beside it by random calls: both must answer the same and end the same."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from harness.filesystem.protocol import FileContent, FileEntry, FileFault, Filesystem, Listing, Replacement, WriteResult

NAMES = st.sampled_from(["a", "b", "a..b", ".c", "d e"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join) | st.sampled_from(
    ["..", "../a", ".", "a/..", ".git/x", "a/../b", "a/../b/a", "b/a/../b"]
)
DATA = st.sampled_from([b"", b"x", b"x\n", b"x\r\ny\r\n", b"xx\ny", b"\0\xff", b"\xef\xbb\xbfx\n"])
TEXT = st.sampled_from([b"", b"x", b"y", b"x\n", b"\r\n", b"z"])
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PATHS, DATA, st.booleans()),
        st.tuples(st.just("edit"), PATHS, TEXT, TEXT, st.booleans()),
        st.tuples(st.just("move"), PATHS, PATHS),
        st.tuples(st.just("delete"), PATHS),
        st.tuples(st.just("read"), PATHS, st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("ls"), PATHS),
        st.tuples(st.just("stat"), PATHS),
        st.tuples(st.just("mkdir"), PATHS),
    ),
    max_size=25,
)


class Refusal(Exception):
    """The kind of fault that is due."""


class Model:
    """{path: content, or None for a folder}; the verbs answer plain values, or raise Refusal."""

    def __init__(self) -> None:
        self.tree: dict[str, bytes | None] = {"": None}

    def find(self, path: str, *, make: bool = False) -> str:
        """The path in the tree; the folders that it goes through are there, or made."""
        found: list[str] = []
        names = [name for name in path.split("/") if name != "."]
        if make and ".git" in names:
            raise Refusal("read_only")
        for number, name in enumerate(names, start=1):
            if name == "..":
                if not found:
                    raise Refusal("outside")
                found.pop()
                continue
            found.append(name)
            here = "/".join(found)
            if number < len(names):
                if here not in self.tree:
                    raise Refusal("missing")
                if self.tree[here] is not None:
                    raise Refusal("not_folder")
        return "/".join(found)

    def place(self, path: str, *, make: bool = False) -> str:
        """The path of something that may be changed; its folders are made."""
        try:
            where = self.find(path)
        except Refusal as refusal:
            if not make or str(refusal) != "missing":
                raise
            where = self.made(path)
        if not where:
            raise Refusal("invalid")
        if ".git" in where.split("/"):
            raise Refusal("read_only")
        return where

    def made(self, path: str) -> str:
        """The path, after its folders were made."""
        self.find(path, make=True) if ".git" in path.split("/") else None
        names = path.split("/")
        begin = len(names) - names[::-1].index("..") if ".." in names else 1
        for count in range(begin, len(names)):
            here = self.find("/".join(names[:count]))
            self.tree.setdefault(here, None)
        return self.find(path)

    def write(self, path: str, data: bytes, create: bool) -> int:
        where = self.place(path, make=True)
        if where in self.tree and create:
            raise Refusal("exists")
        if where in self.tree and self.tree[where] is None:
            raise Refusal("is_folder")
        self.tree[where] = data
        return len(data)

    def edit(self, path: str, old: bytes, new: bytes, everywhere: bool) -> int:
        where = self.place(path)
        if where not in self.tree:
            raise Refusal("missing")
        data = self.tree[where]
        if data is None:
            raise Refusal("is_folder")
        if not old or old == new:
            raise Refusal("invalid")
        known = old.replace(b"\r\n", b"\n").replace(b"\n", b"\r?\n") if b"\r\n" in data else old
        if data.count(b"\r\n") > data.count(b"\n") / 2:
            new = new.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        after, count = re.subn(known, new, data)
        if not count:
            raise Refusal("not_found")
        if count > 1 and not everywhere:
            raise Refusal("not_unique")
        self.tree[where] = after
        return count

    def below(self, where: str) -> list[str]:
        """What is at a place, and below it."""
        return [path for path in self.tree if path == where or path.startswith(where + "/")]

    def move(self, path: str, target: str) -> None:
        where = self.place(path)
        if where not in self.tree:
            raise Refusal("missing")
        to = self.place(target, make=True)
        if to in self.tree:
            raise Refusal("exists")
        if (to + "/").startswith(where + "/"):
            raise Refusal("invalid")
        for one in self.below(where):
            self.tree[to + one.removeprefix(where)] = self.tree.pop(one)

    def delete(self, path: str) -> int:
        where = self.place(path)
        if where not in self.tree:
            raise Refusal("missing")
        return len([one for one in self.below(where) if self.tree.pop(one) is not None])

    def read(self, path: str, offset: int, limit: int) -> bytes:
        where = self.find(path)
        if where not in self.tree:
            raise Refusal("missing")
        data = self.tree[where]
        if data is None:
            raise Refusal("is_folder")
        rows = [row for row in data.replace(b"\n", b"\n\1").split(b"\1") if row]
        return b"".join(rows[offset : offset + limit] if limit else rows[offset:])

    def ls(self, path: str) -> list[str]:
        where = self.find(path)
        if where not in self.tree:
            raise Refusal("missing")
        if self.tree[where] is not None:
            raise Refusal("not_folder")
        return sorted(one for one in self.tree if one and one.rpartition("/")[0] == where)

    def stat(self, path: str) -> tuple[str, str]:
        where = self.find(path)
        if where not in self.tree:
            raise Refusal("missing")
        return where or ".", "folder" if self.tree[where] is None else "file"

    def mkdir(self, path: str) -> int:
        try:
            if self.stat(path)[1] == "folder":
                return 0
        except Refusal as refusal:
            if str(refusal) != "missing":
                raise
        where = self.place(path, make=True)
        if self.tree.setdefault(where, None) is not None:
            raise Refusal("exists")
        return 0


def asked(files: Filesystem, name: str, *given: Any) -> object:
    """The answer of a filesystem in the words of the model."""
    if name == "write":
        answer: object = files.write(given[0], given[1], create=given[2])
    elif name == "edit":
        answer = files.edit(given[0], [Replacement(old=given[1], new=given[2], everywhere=given[3])])
    else:
        answer = getattr(files, name)(*given)
    if isinstance(answer, FileFault):
        return answer.kind
    if isinstance(answer, Listing):
        return [entry.path for entry in answer.entries]
    if isinstance(answer, FileEntry):
        return answer.path, answer.kind
    if isinstance(answer, FileContent):
        return answer.data
    if isinstance(answer, WriteResult):
        return {"write": answer.size, "move": None}.get(name, answer.count)
    return answer


def drive(files: Filesystem, calls: list[Any]) -> None:
    """Make the calls of both, and compare each answer, and all that is there in the end."""
    model = Model()
    for name, *given in calls:
        try:
            wanted = getattr(model, name)(*given)
        except Refusal as refusal:
            wanted = str(refusal)
        assert asked(files, name, *given) == wanted, (name, given)
    for path, data in model.tree.items():
        assert asked(files, *(("ls", path or ".") if data is None else ("read", path, 0, 0))) == (
            model.ls(path or ".") if data is None else data
        )
