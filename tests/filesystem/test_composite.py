"""Promises of harness/filesystem/composite.py: the contract through mounts, and what mounts add to it."""

from __future__ import annotations

from pathlib import Path
from posixpath import normpath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import UsageFault
from harness.filesystem.composite import Composite
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileFault, Filesystem, Shell, WriteResult
from harness.filesystem.shell import LocalShell
from harness.filesystem.transfer import exists, upload
from harness.stores.memory import MemoryStore
from tests import crash
from tests.filesystem import model
from tests.filesystem.contract import Contract, ShellContract, content, entry, kind, lines, names, written
from tests.filesystem.delegating import DelegatingFiles


def memory() -> KeyValueFiles:
    """Files in memory."""
    return KeyValueFiles(MemoryStore())


class TestComposite(Contract):
    """Mounts that the contract does not name: everything happens in the default."""

    def made(self, tmp_path: Path) -> Filesystem:
        """A mount that a listing shows would be in the way, so it is one absent file."""
        return Composite(Local(str(tmp_path)), {"mounted.txt": memory()})


class TestShellOfComposite(ShellContract):
    """Commands run where the default is."""

    def made(self, tmp_path: Path) -> Any:
        """Beside a mount."""
        return Composite(LocalShell(str(tmp_path), grace_seconds=0.2), {"m/": memory()})


NAMES = st.sampled_from(["m", "deep", "x", "a", "b"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join) | st.sampled_from(
    [
        "..",
        ".",
        "m/..",
        "m/deep/x/../a",
        "m/deep/../../a",
        ".git/x",
        "m/.git/x",
        "m/deep/x/a",
        "m/deep/x",
        "m/a",
        "m",
        "one.txt",
        "one.txt",
    ]
)

CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PATHS, model.DATA, st.booleans()),
        st.tuples(st.just("edit"), PATHS, model.TEXT, model.TEXT, st.booleans()),
        st.tuples(st.just("move"), PATHS, PATHS),
        st.tuples(st.just("delete"), PATHS),
        st.tuples(st.just("read"), PATHS, st.integers(0, 3), st.integers(0, 3)),
        *(st.tuples(st.just(name), PATHS) for name in ("ls", "stat", "mkdir")),
        st.tuples(st.just("glob"), st.sampled_from(["**", "*", "m/**", "**/x", "m/*/", "*/", "a*", "{m/**,a}"]), PATHS),
        st.tuples(st.just("grep"), st.just("x"), PATHS),
    ),
    max_size=25,
)


def answer(files: Filesystem, name: str, *given: Any) -> object:
    """As `model.asked`, for searches too."""
    if name == "grep":
        matches = files.grep(*given)
        if isinstance(matches, FileFault):
            return matches.kind
        return [(normpath(path), line, text) for path, line, text in lines(matches)]
    found = model.asked(files, name, *given)
    return sorted(found) if name == "glob" and isinstance(found, list) else found


def test_random_calls_answer_as_one_folder_does(tmp_path: Path) -> None:
    """Whatever is called in whatever order, through folders that mounts make, and across mounts; only the mounts stay."""
    count = iter(range(10**9))

    @settings(max_examples=1500 if crash.TORTURE else 60, deadline=None, database=None)
    @given(calls=CALLS)
    def check(calls: list[Any]) -> None:
        plain, mount = (tmp_path / f"{name}{next(count)}" for name in "pm")
        (plain / "m/deep/x").mkdir(parents=True)
        mount.mkdir()
        flat = Local(str(plain))
        files = Composite(memory(), {"m/": memory(), "m/deep/x/": Local(str(mount)), "one.txt": memory()})
        for name, *values in calls:
            found = answer(files, name, *values)
            if found == "read_only" or (values[0] == "one.txt" and name == "mkdir"):
                continue
            if values[1:2] == ["one.txt"] and found == "invalid":
                continue
            assert found == answer(flat, name, *values), (name, values)
        assert lines(files.grep("", hidden=True)) == lines(flat.grep("", hidden=True))

    check()


def test_the_longest_prefix_wins_and_listings_show_mounts_at_any_depth() -> None:
    """Also where the default has no such folder; what a mount hides is seen by no verb."""
    default, outer, inner, one = memory(), memory(), memory(), memory()
    upload(default, {"a/d/hidden": b"hit\n", "a/e": b"hit\n", "own": b"hit\n", "MEMORY.md": b"hit hidden\n"})
    upload(outer, {"s/hidden": b"hit\n", "f": b"hit\n"})
    upload(inner, {"g": b"hit\n"})
    upload(one, {"MEMORY.md": b"hit\n", "other": b"hit\n"})
    files = Composite(default, {"a/d/": outer, "/a/d/s/": inner, "x/y/z/": inner, "MEMORY.md": one})
    assert names(files.ls()) == ["MEMORY.md", "a", "own", "x"]
    assert (names(files.ls("a/d")), names(files.ls("x/y")), names(files.ls("x/y/z"))) == (
        ["a/d/f", "a/d/s"],
        ["x/y/z"],
        ["x/y/z/g"],
    )
    assert [path for path, _, _ in lines(files.grep("hit"))] == [
        *("MEMORY.md", "a/d/f", "a/d/s/g", "a/e", "own", "x/y/z/g"),
    ]
    assert [path for path, _, _ in lines(files.grep("hit", "a", glob="d/**"))] == ["a/d/f", "a/d/s/g"]
    assert sorted(names(files.glob("**"))) == ["MEMORY.md", "a/d/f", "a/d/s/g", "a/e", "own", "x/y/z/g"]
    assert sorted(names(files.glob("x/**/"))) == ["x/y", "x/y/z"]
    assert sorted(names(files.glob("s/*", "a/d"))) == ["a/d/s/g"]
    assert content(files.read("MEMORY.md")).data == b"hit\n"


def test_mounts_stay_and_faults_name_the_path_that_was_asked_for() -> None:
    """A folder that holds one stays, too; nothing is created below a mount that is one file."""
    files = Composite(memory(), {"x/m/": memory(), "x/one": memory()})
    for path in ("x", "x/m"):
        assert kind(files.delete(path)) == kind(files.move(path, "y")) == "read_only"
        assert kind(files.write(path, b"")) == kind(files.read(path)) == "is_folder"
        written(files.mkdir(path))
    assert kind(files.mkdir("x/one")) == "exists"
    assert kind(files.write("x/one/y", b"")) == "not_folder"
    fault = files.read("x/m/none")
    assert isinstance(fault, FileFault)
    assert (fault.path, fault.text.split(". ")[0]) == ("x/m/none", "There is no x/m/none")
    for bad in (
        {"a": memory(), "a/b/": memory()},
        {"a/": memory(), "/a": memory()},
        {"/": memory()},
        {"../a/": memory()},
    ):
        with pytest.raises(UsageFault, match="prefix"):
            Composite(memory(), bad)


def test_a_link_to_a_mount_leads_there(tmp_path: Path) -> None:
    """Never to what the mount hides; deleting the link deletes the link."""
    (tmp_path / "m").mkdir()
    (tmp_path / "m/f").write_text("hidden")
    (tmp_path / "l").symlink_to("m")
    files = Composite(Local(str(tmp_path)), {"m/": memory()})
    assert kind(files.read("l/f")) == "missing"
    written(files.write("l/f", b"in the mount"))
    assert content(files.read("m/f")).data == b"in the mount"
    assert (files.resolve("l/f"), files.resolve("l/f", follow=False)) == ("m/f", "l/f")
    written(files.delete("l"))
    assert (exists(files, "l"), content(files.read("m/f")).data) == (False, b"in the mount")


class Torn(DelegatingFiles):
    """Files whose third write is changed by somebody else at once."""

    count = 0

    def write(self, path: str, data: bytes, **more: Any) -> WriteResult | FileFault:
        """Ours, then theirs."""
        done = super().write(path, data, **more)
        self.count += 1
        if self.count == 3:
            super().write(path, b"theirs")
        return done


def test_a_move_across_that_fails_leaves_the_source_and_no_copy(tmp_path: Path) -> None:
    """Where the copy is another one, the source may not be deleted, or it has a link, which leads nowhere elsewhere."""
    for target, more in ((Torn(memory()), {}), (memory(), {".git/x": b""}), (memory(), {"link": b""})):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name in ("d/.git", "d/e"):
            (folder / name).mkdir(parents=True)
        for name in ("a", "b", "e/c"):
            (folder / "d" / name).write_bytes(bytes(range(256)))
        if "link" in more:
            (folder / "d/link").symlink_to("a")
        if ".git/x" not in more:
            (folder / "d/.git").rmdir()
        files = Composite(Local(str(folder)), {"m/": target})
        assert kind(files.move("d", "m/d")) in ("changed", "read_only", "invalid")
        assert names(files.ls("m")) == []
        assert {"d/a", "d/b", "d/e"} <= set(names(files.ls("d")))
        assert written(files.move("d/a", "m/new/a")).size == 256
        assert (exists(files, "d/a"), content(files.read("m/new/a")).data) == (False, bytes(range(256)))


def test_it_is_a_shell_only_if_its_default_is(tmp_path: Path) -> None:
    """Commands cannot see mounts, and say so."""
    plain: Any = Composite(Local(str(tmp_path)), {"m/": memory()})
    shell: Any = Composite(LocalShell(str(tmp_path)), {"m/": memory()})
    assert (isinstance(plain, Shell), isinstance(shell, Shell)) == (False, True)
    assert plain.folder() == str(tmp_path)
    assert kind(shell.execute("true", folder="m")) == "invalid"
    confined = shell.confined(None, None, "no tier")
    written(confined.write("m/f", b"x"))
    assert content(shell.read("m/f")).data == b"x"
    assert entry(Composite(memory(), {"a/m/": memory()}).stat("a")).kind == "folder"
