"""Promises of harness/filesystem/_root.py: whatever is exchanged on the way, nothing outside the root is read or written."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.filesystem._root import Root, split
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileContent, FileFault, Matches, WriteResult
from tests import crash
from tests.filesystem.contract import change

TRIES = 10_000 if crash.TORTURE else 1_500
WRITES = 10_000 if crash.TORTURE else 150


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder `d` in a root, and beside the root a folder with the same names and a secret."""
    for folder in ("root/d", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "root/d/f").write_bytes(b"inside\n")
    (tmp_path / "outside/f").write_bytes(b"secret\n")
    return tmp_path / "root"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the race needs a rename that exchanges two names")


def exchange(root: Path, what: str = "d") -> int:
    """A process that exchanges the folder `d`, or a file in it, and a link that leads out, as fast as it can; its pid."""
    target = root.parent / "outside" / what.removeprefix("d").strip("/")
    (root / "link").symlink_to(target)
    call = ctypes.CDLL(None).renameat2
    folder, link, both = os.fsencode(root / what), os.fsencode(root / "link"), 2  # RENAME_EXCHANGE

    def loop() -> None:
        parent, chance = os.getppid(), [random.randrange(300) for _ in range(99)]
        while os.getppid() == parent:
            if not os.path.islink(folder) and not os.path.islink(
                link
            ):  # a writer put a file in its place, as it should
                os.symlink(target, root / "again")
                os.rename(root / "again", link)
            for pause in chance:
                assert call(-100, folder, -100, link, both) == 0
                for _ in range(pause):  # each state lasts up to some microseconds, at random
                    pass

    return crash.start(loop)


def stop(pid: int) -> None:
    """End the process, which lives still."""
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def tries(count: int, enough: Callable[[], bool]) -> Iterator[int]:
    """At least so many, and on until enough of them were in time: where others work too, one state may last long."""
    number, until = 0, time.monotonic() + 60
    while number < count or (not enough() and time.monotonic() < until):
        yield number
        number += 1


def naive(root: Path) -> bytes:
    """How others open a file: look where the path leads, then open it."""
    path = root / "d/f"
    try:
        if os.path.realpath(path).startswith(f"{root}/"):
            return path.read_bytes()
    except OSError:
        pass
    return b""


@pytest.mark.parametrize("what", ["d", "d/f"])
@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_reader_never_gets_out_of_the_root(root: Path, by_kernel: bool, what: str) -> None:
    """Thousands of tries while a folder or the file becomes a link and back; who looks first and opens then does get out."""
    files = Local(str(root))
    files.beneath.by_kernel = by_kernel
    pid, found, escaped = exchange(root, what), list[bytes](), False
    try:
        for _ in tries(TRIES, lambda: len(found) > TRIES // 20):
            answer = files.read("d/f")
            if isinstance(answer, FileContent):
                assert answer.data == b"inside\n"
                found.append(answer.data)
            else:
                assert answer.kind in ("missing", "outside", "invalid", "not_folder")
        until = time.monotonic() + 60
        while not escaped and time.monotonic() < until:
            escaped = naive(root) == b"secret\n"
    finally:
        stop(pid)
    assert len(found) > TRIES // 20, "the folder was there sometimes"
    assert escaped, "the race is one"


@pytest.mark.parametrize("what", ["d", "d/f"])
def test_a_writer_never_gets_out_of_the_root(root: Path, what: str) -> None:
    """By writing, creating, editing, moving and deleting."""
    files = Local(str(root))
    pid, done = exchange(root, what), list[str]()
    try:
        for number in tries(WRITES, lambda: len(done) > WRITES // 10):
            answers = [
                files.write("d/f", b"inside\n"),
                files.write(f"d/new{number}", b"", create=True),
                files.edit("d/f", [change("inside\n", "inside\n\n")]) if number % 2 else files.write("d/sub/g", b""),
                files.move(f"d/new{number}", f"d/moved{number}"),
                files.delete(f"d/moved{number}"),
            ]
            done.extend(answer.path for answer in answers if isinstance(answer, WriteResult))
            assert {one.kind for one in answers if isinstance(one, FileFault)} <= {
                "missing", "outside", "invalid", "not_folder", "exists", "changed",
            }  # fmt: skip
    finally:
        stop(pid)
    outside = root.parent / "outside"
    assert (os.listdir(outside), (outside / "f").read_bytes()) == (["f"], b"secret\n")
    assert len(done) > WRITES // 10, "some were carried out"


@pytest.mark.parametrize("with_rg", [True, False])
def test_a_search_never_tells_of_what_is_outside(root: Path, with_rg: bool) -> None:
    """ripgrep opens paths by name; what it says is believed only of files beneath the root."""
    files = Local(str(root), with_rg=with_rg)
    pid = exchange(root)
    try:
        for _ in range(TRIES // (30 if with_rg else 150)):
            for path in (".", "d", "d/f"):
                found = files.grep("s", path)
                assert isinstance(found, FileFault) or {one.text for one in found.matches} <= {b"inside"}, found
            globbed = files.glob("**", "d")
            assert isinstance(globbed, FileFault) or {one.size for one in globbed.entries} <= {7}
    finally:
        stop(pid)


def test_what_ripgrep_says_is_proven(root: Path) -> None:
    """A ripgrep that was led out of the root, here by a program in its place, is not believed."""
    program = root.parent / "rg"
    said = [("d/f", "secret"), ("d/f", "inside"), ("d/gone", "x")]
    rows = [
        {"path": {"text": f"./{path}"}, "lines": {"text": text}, "line_number": 1, "absolute_offset": 0}
        for path, text in said
    ]
    ends = [{"path": row["path"], "binary_offset": None} for row in rows]
    records = "\n".join(
        json.dumps({"type": kind, "data": data})
        for row, end in zip(rows, ends, strict=True)
        for kind, data in (("match", row), ("end", end))
    )
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{records}\nEND\n")
    program.chmod(0o755)
    files = Local(str(root))
    files.program = str(program)
    found = files.grep("s")
    assert isinstance(found, Matches)
    assert [one.text for one in found.matches] == [b"inside"]


def test_both_ways_find_the_same_place(root: Path) -> None:
    """One system call, or name by name: the same names, and the same faults."""
    (root / "d/e").mkdir()
    (root / "l").symlink_to("d/e")
    (root / "out").symlink_to("..")
    kernel, walk = Root(str(root)), Root(str(root), by_kernel=False)

    def found(beneath: Root, path: str, follow: bool) -> tuple[list[str], int] | int | None:
        try:
            with beneath.place(split(path) or [], follow=follow) as place:
                return place.names, os.fstat(place.folder).st_ino
        except OSError as fault:
            return fault.errno

    for path in (
        "d",
        "d/f",
        "d/e",
        "d/e/..",
        "d/e/../f",
        "l",
        "l/x",
        "l/../f",
        "no",
        "no/x",
        "d/f/x",
        "out",
        "out/x",
        "..",
        ".",
    ):
        for follow in (True, False):
            assert found(kernel, path, follow) == found(walk, path, follow), path
    assert found(walk, "l/x", True) == (["d", "e", "x"], (root / "d/e").stat().st_ino)
    assert found(walk, "out/x", True) == errno.EXDEV


@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_root_that_moved_behind_a_link_is_not_followed(root: Path, by_kernel: bool) -> None:
    """That of a subagent may lie where its parent can move folders."""
    beneath = Root(str(root / "d"), by_kernel=by_kernel)
    os.close(beneath.opened(["f"]))
    (root.parent / "outside").rename(root.parent / "d")
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent)
    with pytest.raises(OSError) as caught:
        beneath.opened(["f"])
    assert caught.value.errno == errno.ELOOP


def test_no_descriptor_is_left_open(root: Path) -> None:
    """By no verb, whether it succeeds or not."""
    (root / "l").symlink_to("d")
    (root / "out").symlink_to("..")
    for by_kernel in (True, False):
        files = Local(str(root))
        files.beneath.by_kernel = by_kernel
        before = len(os.listdir("/dev/fd"))
        for path in ("d/f", "l/f", "no/f", "out/f", "d", "d/../d/f", "..", "d/f/x", ".git/x"):
            for act in (files.ls, files.read, files.stat, files.resolve, files.delete):
                act(path)
            files.write(path, b"inside\n")
            files.edit(path, [change("inside", "x")])
            files.grep("x", path)
            files.glob("*", path)
            files.move(path, "d/f")
            files.write("d/f", b"")
        assert len(os.listdir("/dev/fd")) == before


def test_a_path_is_split_as_an_agent_writes_it() -> None:
    """Names alone are left; a known absolute path counts from there."""
    assert split("/a//./b/") == ["a", "b"]
    assert split("a/../b") == ["a", "..", "b"]
    assert split("/home/me/x", ["/home/me"]) == split("x") == ["x"]
    assert split("/home/me") == ["home", "me"]
    assert split("/home/menu", ["/home/me"]) == ["home", "menu"]
    assert split(".") == split("/") == []
    assert split("") is split("a\0b") is None
