"""Promises of harness.filesystem.layered.py: the contract above an empty template, and a full one that never changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.layered import Layered
from harness.filesystem.local import Local
from harness.filesystem.protocol import Filesystem
from harness.filesystem.transfer import upload
from harness.stores.memory import MemoryStore
from tests import crash
from tests.filesystem.contract import Contract, change, content, kind, lines, names, written
from tests.filesystem.test_composite import CALLS, answer

TEMPLATE = {"a": b"x\n", "m/a": b"x\r\ny\r\n", "m/deep/x/a": b"x", "m/deep/x/b": b"", "b/a": b"xx\ny", "m/b/a": b"x"}


def memory() -> KeyValueFiles:
    """Files in memory."""
    return KeyValueFiles(MemoryStore())


class TestLayered(Contract):
    """A folder above an empty one."""

    def made(self, tmp_path: Path) -> Filesystem:
        """Below it is nothing."""
        for name in ("upper", "lower"):
            (tmp_path / name).mkdir()
        return Layered(Local(str(tmp_path / "upper")), Local(str(tmp_path / "lower")))


class TestLayeredStore(Contract):
    """A store above a store."""

    def made(self, tmp_path: Path) -> Filesystem:
        """Below it is nothing."""
        return Layered(memory(), memory())


def tree(files: Filesystem) -> dict[str, bytes]:
    """All that is in a filesystem."""
    return {one: content(files.read(one)).data for one in names(files.glob("**", most=10**6))}


def test_random_calls_answer_as_one_folder_that_began_as_the_template(tmp_path: Path) -> None:
    """Whatever is called in whatever order; another look from a new object sees the same, and the template is what it was."""
    count = iter(range(10**9))

    @settings(max_examples=1500 if crash.TORTURE else 60, deadline=None, database=None)
    @given(calls=CALLS)
    def check(calls: list[Any]) -> None:
        flat, lower = (Local(str(tmp_path / f"{name}{next(count)}")) for name in "fl")
        for one in (flat, lower):
            Path(one.root).mkdir()
            upload(one, TEMPLATE)
        before, upper = tree(lower), memory()
        for name, *values in calls:
            assert answer(Layered(upper, lower), name, *values) == answer(flat, name, *values), (name, values)
        assert lines(Layered(upper, lower).grep("", hidden=True)) == lines(flat.grep("", hidden=True))
        assert tree(lower) == before

    check()


def made(contents: dict[str, bytes]) -> tuple[KeyValueFiles, Layered]:
    """(the upper filesystem, the whole) above a template with these files."""
    upper, lower = memory(), memory()
    upload(lower, contents)
    return upper, Layered(upper, lower)


def test_absent_shows_the_template_and_empty_hides_it() -> None:
    """A user may blank a file; one who never touched it sees the template."""
    upper, files = made({"AGENTS.md": b"rules\n", "skills/a/SKILL.md": b"hit\n", "skills/b/SKILL.md": b"hit\n"})
    assert content(files.read("AGENTS.md")).data == b"rules\n"
    written(files.write("AGENTS.md", b""))
    assert content(files.read("AGENTS.md")).data == b""
    written(files.edit("skills/a/SKILL.md", [change("hit", "mine hit")]))
    assert lines(files.grep("hit")) == [("skills/a/SKILL.md", 1, b"mine hit"), ("skills/b/SKILL.md", 1, b"hit")]
    assert names(upper.glob("**")) == ["skills/a/SKILL.md", "AGENTS.md"]


def test_a_deletion_is_remembered_also_when_something_new_is_there() -> None:
    """By whoever looks later; a new folder of the same name begins empty."""
    upper, files = made({"d/a": b"1", "d/b%0a": b"2", "e/f": b"3"})
    written(files.delete("d/b%0a"))
    assert written(files.delete("d")).count == 1
    written(files.write("d/new", b""))
    later = Layered(upper, files.lower)
    assert (names(later.ls()), names(later.ls("d"))) == (["d", "e"], ["d/new"])
    assert written(later.move("e", "d/e")).path == "d/e"
    assert (names(later.ls()), content(later.read("d/e/f")).data) == (["d"], b"3")
    for one in (later.read(".deleted"), later.stat(".deleted"), later.ls(".deleted"), later.grep("x", ".deleted")):
        assert kind(one) == "missing"
    assert kind(later.write(".deleted", b"")) == kind(later.mkdir(".deleted/x")) == "read_only"
    assert names(later.glob(".*")) == names(later.glob("*/.*")) == []


def test_a_change_of_the_template_expects_what_was_read() -> None:
    """Of two who copy a file of the template and change it, one is told; a key of the template stays."""
    upper, files = made({"f": b"one\n", "k/.env": b"KEY"})
    digest = content(files.read("f")).digest
    answers = [files.write("f", b"x", expect="0" * 64), files.edit("f", [change("one", "1")], expect="0" * 64)]
    assert [kind(one) for one in [*answers, files.write("f", b"", create=True)]] == ["changed", "changed", "exists"]
    written(files.write("f", b"two\n", expect=digest))
    assert kind(files.edit("f", [change("two", "x")], expect=digest)) == "changed"
    assert content(files.lower.read("f")).data == b"one\n"
    assert kind(files.write("k/.env", b"")) == kind(files.delete("k")) == kind(files.move("k", "m")) == "read_only"
    assert names(upper.ls()) == ["f"]


def test_a_link_of_the_template_leads_to_what_is_above(tmp_path: Path) -> None:
    """A file that was changed or deleted is so under its other name, too, and a rule about it holds."""
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        (tmp_path / "d" / name).write_text("template")
    (tmp_path / "l").symlink_to("d")
    files = Layered(memory(), Local(str(tmp_path)))
    written(files.write("d/a", b"changed"))
    written(files.delete("d/b"))
    assert content(files.read("l/a")).data == b"changed"
    assert (kind(files.read("l/b")), files.resolve("l/b"), files.resolve("l/a", follow=False)) == (
        "missing",
        "d/b",
        "l/a",
    )
    written(files.write("l/c", b"new"))
    assert names(files.ls("d")) == ["d/a", "d/c"]
    written(files.delete("l"))
    assert (names(files.ls()), (tmp_path / "l").is_symlink()) == (["d"], True)


def test_deletions_at_once_lose_none() -> None:
    """Each is remembered."""
    _, files = made({f"f{number}": b"" for number in range(24)})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: written(files.delete(f"f{number}")), range(24)))
    assert names(files.ls()) == []
