"""What every filesystem promises, whatever it is made of: a backend gets under it by a class of three lines.

    class TestLocal(Contract):
        def made(self, tmp_path: Path) -> Filesystem:
            return Local(str(tmp_path))

Only the verbs of the interface are used. What a backend promises beyond them is in its own tests; ShellContract is for one whose
commands can be run.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given, settings

from harness.base import encoding
from harness.base.errors import Unavailable
from harness.filesystem.protocol import (
    FAULTS,
    CommandResult,
    FileContent,
    FileEntry,
    FileFault,
    Filesystem,
    Listing,
    Matches,
    Replacement,
    Shell,
    WriteResult,
)
from harness.filesystem.transfer import download, exists, upload
from tests import crash
from tests.filesystem import model

LATIN = "Käse\r\nWürste".encode("latin-1")
ODD_CONTENTS = (
    b"",
    b"\n",
    b"\0\1\2",
    b"\xef\xbb\xbfwith BOM\r\n",
    LATIN,
    b"\r\n\r\n",
    "漢字\n".encode(),
    bytes(range(256)) * 40,
)
GOOD_NAMES = (
    "a..b",
    "..a",
    "a..",
    "...",
    "a b",
    "~",
    "-rf",
    "$HOME",
    "*",
    "a'b\"c",
    "#x#",
    "漢字.txt",
    "é",
    "%2e%2e",
    "con",
)


def content(answer: FileContent | FileFault) -> FileContent:
    """A read that succeeded."""
    assert isinstance(answer, FileContent), answer
    return answer


def written(answer: WriteResult | FileFault) -> WriteResult:
    """A change that succeeded."""
    assert isinstance(answer, WriteResult), answer
    return answer


def entry(answer: FileEntry | FileFault) -> FileEntry:
    """What is at a path."""
    assert isinstance(answer, FileEntry), answer
    return answer


def names(answer: Listing | FileFault) -> list[str]:
    """The paths of a listing."""
    assert isinstance(answer, Listing), answer
    return [entry.path for entry in answer.entries]


def lines(answer: Matches | FileFault) -> list[tuple[str, int, bytes]]:
    """What a grep found."""
    assert isinstance(answer, Matches), answer
    return [(match.path, match.line, match.text) for match in answer.matches]


def kind(answer: object) -> str:
    """The kind of a fault, which says in a whole sentence what is wrong."""
    assert isinstance(answer, FileFault), answer
    assert answer.kind in FAULTS
    assert answer.text.endswith((".", "…")) or answer.kind == "bad_pattern", answer.text
    return answer.kind


def change(old: str | bytes, new: str | bytes, *, everywhere: bool = False) -> Replacement:
    """A Change of texts."""
    old, new = (one.encode() if isinstance(one, str) else one for one in (old, new))
    return Replacement(old=old, new=new, everywhere=everywhere)


class Contract:
    """What holds for every backend."""

    def made(self, tmp_path: Path) -> Filesystem:
        """An empty filesystem; it may use this empty folder."""
        raise NotImplementedError

    @pytest.fixture
    def files(self, tmp_path: Path) -> Filesystem:
        """The one of a test."""
        return self.made(tmp_path)

    def put(self, files: Filesystem, contents: dict[str, bytes]) -> None:
        """Files to work with."""
        assert all(isinstance(answer, WriteResult) for answer in upload(files, contents).values())

    # paths

    @pytest.mark.parametrize("name", GOOD_NAMES)
    def test_a_name_is_a_name_whatever_it_looks_like(self, files: Filesystem, name: str) -> None:
        """Nothing is expanded, decoded, or refused for what it begins with; what is listed can be read by the listed path."""
        path = f"d/{name}"
        written(files.write(path, b"x\n"))
        assert names(files.ls("d")) == [path]
        assert content(files.read(path)).data == b"x\n"
        written(files.delete(path))
        assert names(files.ls("d")) == []

    @pytest.mark.parametrize("path", ["a/b.txt", "/a/b.txt", "./a//b.txt", "a/./b.txt", "a/c/../b.txt"])
    def test_one_file_is_found_under_each_way_to_write_its_path(self, files: Filesystem, path: str) -> None:
        """A leading slash is the root; dots and doubled slashes mean what they mean everywhere."""
        self.put(files, {"a/b.txt": b"here", "a/c/d": b""})
        assert content(files.read(path)).data == b"here"
        assert exists(files, path)
        assert files.resolve(path) == files.resolve(path, follow=False) == "a/b.txt"
        assert entry(files.stat(path)).path == "a/b.txt"

    @pytest.mark.parametrize("path", [".", "/", "./", "a/.."])
    def test_the_root_is_a_folder_that_stays(self, files: Filesystem, path: str) -> None:
        """It can be listed, and neither be deleted, moved nor written."""
        self.put(files, {"a/b": b""})
        assert names(files.ls(path)) == ["a"]
        assert kind(files.delete(path)) == "invalid"
        assert kind(files.move(path, "x")) == "invalid"
        assert kind(files.write(path, b"")) in ("invalid", "is_folder")
        assert kind(files.read(path)) == "is_folder"
        assert names(files.ls()) == ["a"]

    @pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/../etc/passwd", "a/b/../../../x"])
    def test_no_path_leads_out(self, files: Filesystem, path: str) -> None:
        """Every verb answers with the same kind of fault, and `exists` with no."""
        self.put(files, {"a/b/c": b"x"})
        answers: list[object] = [
            files.ls(path),
            files.read(path),
            files.write(path, b""),
            files.edit(path, [change("a", "b")]),
        ]
        answers += [files.delete(path), files.move(path, "y"), files.move("a/b/c", path), files.grep("x", path)]
        answers += [files.glob("*", path), upload(files, {path: b""})[path], download(files, [path])[path]]
        answers += [files.resolve(path), files.resolve(path, follow=False), files.stat(path), files.mkdir(path)]
        assert {kind(answer) for answer in answers} == {"outside"}
        assert not exists(files, path)
        assert content(files.read("a/b/c")).data == b"x"

    @pytest.mark.parametrize("create", [False, True])
    @pytest.mark.parametrize("path", ["a/x/../b", "x/../a/b", "a/../x/../b", "x/../b"])
    def test_up_from_a_folder_that_is_not_there_is_nowhere(self, files: Filesystem, path: str, create: bool) -> None:
        """For every verb alike, so what does not exist is not said to be there when it is written; and nothing is made."""
        self.put(files, {"a/b": b"x", "b": b"y"})
        answers: list[object] = [files.write(path, b"z", create=create), files.read(path), files.move("b", path)]
        answers += [files.edit(path, [change("x", "y")]), files.delete(path), upload(files, {path: b""})[path]]
        assert {kind(answer) for answer in answers} == {"missing"}
        assert not exists(files, path)
        assert (names(files.ls()), names(files.ls("a"))) == (["a", "b"], ["a/b"])

    @pytest.mark.parametrize("path", ["a/../n/b", "a/c/../n/b", "a/../c"])
    def test_up_from_a_folder_that_is_there_folders_are_made(self, files: Filesystem, path: str) -> None:
        """One wins of those who create the file, however they name it."""
        self.put(files, {"a/c/d": b""})
        written(files.write(path, b"z", create=True))
        plain = {"a/../n/b": "n/b", "a/c/../n/b": "a/n/b", "a/../c": "c"}[path]
        assert content(files.read(plain)).data == content(files.read(path)).data == b"z"
        assert kind(files.write(plain, b"", create=True)) == kind(files.write(path, b"", create=True)) == "exists"

    @pytest.mark.parametrize("path", ["", "a\0b"])
    def test_what_is_no_path_is_invalid(self, files: Filesystem, path: str) -> None:
        """An empty one, and one with a NUL."""
        answers = [files.ls(path), files.read(path), files.write(path, b""), files.delete(path), files.move(path, "x")]
        assert {kind(answer) for answer in [*answers, files.grep("x", path), files.glob("*", path)]} == {"invalid"}
        assert not exists(files, path)

    @pytest.mark.parametrize("name", ["a\\b", "a\nb", "a\tb", "a\x1b[0m", "e\u0301", "n" * 300])
    def test_no_new_file_gets_a_name_that_harms(self, files: Filesystem, name: str) -> None:
        """A backslash, a control character, an accent apart from its letter, more than 255 bytes: also in a folder's name."""
        assert kind(files.write(name, b"")) == "invalid"
        assert kind(files.write(f"{name}/x", b"")) == "invalid"
        written(files.write("ok", b""))
        assert kind(files.move("ok", name)) == kind(files.mkdir(name)) == kind(files.mkdir(f"{name}/x")) == "invalid"
        assert names(files.ls()) == ["ok"]

    def test_an_absent_file_is_missing_and_a_file_is_no_folder(self, files: Filesystem) -> None:
        """Two answers, for every verb that needs what is not there."""
        self.put(files, {"file": b"x"})
        for path, answer in (("absent", "missing"), ("absent/x", "missing"), ("file/x", "not_folder")):
            assert kind(files.ls(path)) == answer
            assert kind(files.read(path)) == answer
            assert kind(files.edit(path, [change("a", "b")])) == answer
            assert kind(files.delete(path)) == answer
            assert kind(files.move(path, "y")) == answer
            assert kind(files.grep("x", path)) == answer
            assert kind(files.glob("*", path)) == answer
            assert kind(files.stat(path)) == answer
            assert not exists(files, path)
        assert kind(files.write("file/x", b"")) == "not_folder"
        assert kind(files.ls("file")) == "not_folder"
        assert kind(files.glob("*", "file")) == "not_folder"

    # reading

    @pytest.mark.parametrize("data", ODD_CONTENTS)
    def test_every_byte_comes_back(self, files: Filesystem, data: bytes) -> None:
        """No decoding, no change of line ends, no sentence in the place of an empty file."""
        made = written(files.write("d/f", data))
        assert (made.size, made.digest) == (len(data), encoding.digest(data))
        found = content(files.read("d/f"))
        assert (found.data, found.size, found.digest, found.ends) == (data, len(data), made.digest, True)
        assert download(files, ["d/f"]) == {"d/f": data}

    @pytest.mark.parametrize(
        ("data", "count"),
        [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"a\nb\n", 2), (b"\n", 1), (b"a\r\nb\x0c\x85\n", 2)],
    )
    def test_a_newline_ends_a_line_and_begins_none(self, files: Filesystem, data: bytes, count: int) -> None:
        """So a file that ends with a newline has no empty line more; nothing else ends a line."""
        written(files.write("f", data))
        found = content(files.read("f"))
        assert (found.lines, found.total_lines, found.first, found.ends) == (count, count, 1, True)

    def test_a_part_is_whole_lines_and_knows_where_it_is(self, files: Filesystem) -> None:
        """Offset 0-based, first line 1-based; `ends` only with the last line."""
        written(files.write("f", b"".join(b"line %d\n" % number for number in range(10))))
        found = content(files.read("f", 3, 2))
        assert (found.data, found.first, found.lines, found.ends) == (b"line 3\nline 4\n", 4, 2, False)
        found = content(files.read("f", 8, 2))
        assert (found.data, found.first, found.ends, found.total_lines) == (b"line 8\nline 9\n", 9, True, 10)
        assert content(files.read("f", 8, 50)).data == b"line 8\nline 9\n"
        assert content(files.read("f", 9)).data == b"line 9\n"

    @pytest.mark.parametrize(("data", "offset"), [(b"", 0), (b"", 5), (b"a\n", 1), (b"a\nb", 2), (b"a\n", 99)])
    def test_at_and_behind_the_end_there_is_nothing_and_no_fault(
        self, files: Filesystem, data: bytes, offset: int
    ) -> None:
        """A reader that goes on page by page ends so."""
        written(files.write("f", data))
        found = content(files.read("f", offset, 10))
        assert (found.data, found.lines, found.ends) == (b"", 0, True)
        assert found.total_lines == len(data.splitlines())

    def test_a_version_is_that_of_one_content(self, files: Filesystem) -> None:
        """Equal for every part; different after a change, also of equal length. None if it is unknown."""
        written(files.write("f", b"one\ntwo\n"))
        first = {content(files.read("f", offset, limit)).version for offset, limit in ((0, 0), (1, 1), (9, 1))}
        written(files.write("f", b"one\nTWO\n"))
        assert len(first) == 1
        assert first == {""} or first != {content(files.read("f")).version}

    def test_reading_on_by_lines_gives_the_whole(self, files: Filesystem) -> None:
        """Every part begins where the one before ended, also over long lines."""
        data = b"".join(b"%d " % number + b"x" * (number * 37 % 5000) + b"\n" for number in range(2000)) + b"last"
        written(files.write("f", data))
        parts, at = [], 0
        while not (part := content(files.read("f", at, 97))).ends:
            parts.append(part.data)
            at += part.lines
        assert b"".join([*parts, part.data]) == data

    def test_download_answers_for_each_path(self, files: Filesystem) -> None:
        """One that fails does not keep back the others."""
        self.put(files, {"a": b"1", "d/b": b"2"})
        found = download(files, ["a", "absent", "d/b", "d"])
        assert (found["a"], found["d/b"]) == (b"1", b"2")
        assert (kind(found["absent"]), kind(found["d"])) == ("missing", "is_folder")

    # writing

    def test_a_write_makes_folders_and_replaces_what_is_there(self, files: Filesystem) -> None:
        """Whole: nothing of a longer content is left."""
        written(files.write("a/b/c", b"long content\n"))
        written(files.write("a/b/c", b"short"))
        assert content(files.read("a/b/c")).data == b"short"
        assert names(files.ls("a")) == ["a/b"]
        assert kind(files.write("a/b", b"")) == "is_folder"

    def test_creating_never_replaces(self, files: Filesystem) -> None:
        """Neither a file nor a folder."""
        written(files.write("d/f", b"first", create=True))
        assert kind(files.write("d/f", b"second", create=True)) == "exists"
        assert kind(files.write("d", b"second", create=True)) == "exists"
        assert content(files.read("d/f")).data == b"first"

    def test_of_many_creators_one_wins(self, files: Filesystem) -> None:
        """And the file is the winner's."""
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda number: files.write("f", b"%d" % number, create=True), range(24)))
        winners = [number for number, answer in enumerate(answers) if isinstance(answer, WriteResult)]
        assert len(winners) == 1
        assert {kind(answer) for answer in answers if isinstance(answer, FileFault)} == {"exists"}
        assert content(files.read("f")).data == b"%d" % winners[0]

    def test_a_write_that_expects_another_content_changes_nothing(self, files: Filesystem) -> None:
        """Compare and set, by the digest that a read gave."""
        written(files.write("f", b"one"))
        digest = content(files.read("f")).digest
        made = written(files.write("f", b"two", expect=digest))
        assert kind(files.write("f", b"three", expect=digest)) == "changed"
        assert content(files.read("f")).data == b"two"
        written(files.write("f", b"three", expect=made.digest))
        assert kind(files.write("absent", b"", expect=digest)) == "changed"
        assert not exists(files, "absent")

    def test_upload_answers_for_each_file(self, files: Filesystem) -> None:
        """Written in their order; one that fails does not keep back the others."""
        answers = upload(files, {"a": b"1", "a/b": b"2", "../c": b"3", "d/e": b"4"})
        assert list(answers) == ["a", "a/b", "../c", "d/e"]
        assert (written(answers["a"]).size, written(answers["d/e"]).size) == (1, 1)
        assert (kind(answers["a/b"]), kind(answers["../c"])) == ("not_folder", "outside")

    # editing

    def test_an_edit_replaces_what_is_there_once(self, files: Filesystem) -> None:
        """Or everywhere, where that is asked for; the count says how often."""
        written(files.write("f", b"one two two\n"))
        assert written(files.edit("f", [change("one", "1")])).count == 1
        assert kind(files.edit("f", [change("two", "2")])) == "not_unique"
        made = written(files.edit("f", [change("two", "2", everywhere=True)]))
        assert (made.count, made.digest) == (2, encoding.digest(b"1 2 2\n"))
        assert kind(files.edit("f", [change("two", "2")])) == "not_found"
        assert content(files.read("f")).data == b"1 2 2\n"

    def test_an_edit_of_nothing_is_refused_at_once(self, files: Filesystem) -> None:
        """An empty text to replace, the same text twice, no change at all."""
        written(files.write("f", b"x"))
        assert kind(files.edit("f", [change("", "y")])) == "invalid"
        assert kind(files.edit("f", [change("", "y", everywhere=True)])) == "invalid"
        assert kind(files.edit("f", [change("x", "x")])) == "invalid"
        assert kind(files.edit("f", [])) == "invalid"
        assert content(files.read("f")).data == b"x"

    def test_of_several_changes_all_are_made_or_none(self, files: Filesystem) -> None:
        """Each in what those before it left."""
        written(files.write("f", b"a b"))
        assert kind(files.edit("f", [change("a", "1"), change("nowhere", "2")])) == "not_found"
        assert content(files.read("f")).data == b"a b"
        assert written(files.edit("f", [change("a", "x y"), change("x", "1")])).count == 2
        assert content(files.read("f")).data == b"1 y b"

    @pytest.mark.parametrize(
        "data", [b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n", b"one\r\ntwo\nthree\r", LATIN + b"\none\0\xff\xfe"]
    )
    def test_an_edit_keeps_every_other_byte(self, files: Filesystem, data: bytes) -> None:
        """BOM, line ends and bytes that are no UTF-8."""
        written(files.write("f", data))
        written(files.edit("f", [change("one", "1")]))
        assert content(files.read("f")).data == data.replace(b"one", b"1")

    def test_lines_are_replaced_with_the_line_ends_of_the_file(self, files: Filesystem) -> None:
        """A model writes bare newlines, whatever the file has."""
        written(files.write("f", b"one\r\ntwo\r\nthree\r\n"))
        written(files.edit("f", [change("one\ntwo\n", "1\n1.5\n2\n")]))
        assert content(files.read("f")).data == b"1\r\n1.5\r\n2\r\nthree\r\n"

    @pytest.mark.parametrize(
        ("data", "old", "new", "wanted"),
        [
            (b"a\r\nb\r\nc\r\n", b"\nb", b"\nx", b"a\r\nx\r\nc\r\n"),
            (b"a\r\nb\r\nc\r\n", b"\nb\n", b"\n", b"a\r\nc\r\n"),
            (b"a\r\nb\nc\r\nd\r\n", b"a\nb\nc\nd", b"1\n2", b"1\r\n2\r\n"),
            (b"a\r\nb\r\nc\n", b"c", b"c\nd", b"a\r\nb\r\nc\r\nd\n"),
            (b"a\nb\nc\r\n", b"a\nb", b"1\n2", b"1\n2\nc\r\n"),
        ],
    )
    def test_a_newline_in_an_edit_is_any_line_end_of_the_file(
        self, files: Filesystem, data: bytes, old: bytes, new: bytes, wanted: bytes
    ) -> None:
        """Also at the edge of a text, and in a file of mixed line ends; a new line ends as most do."""
        written(files.write("f", data))
        assert written(files.edit("f", [change(old, new)])).digest == encoding.digest(wanted)
        assert content(files.read("f")).data == wanted

    def test_lines_that_differ_in_their_line_ends_alone_are_the_same_text(self, files: Filesystem) -> None:
        """So which of them is meant is not guessed; everywhere takes them all."""
        written(files.write("f", b"a\r\nb\r\na\nb\r\n"))
        assert kind(files.edit("f", [change("a\nb", "x")])) == "not_unique"
        assert written(files.edit("f", [change("a\nb", "x", everywhere=True)])).count == 2
        assert content(files.read("f")).data == b"x\r\nx\r\n"

    def test_an_edit_that_expects_another_content_changes_nothing(self, files: Filesystem) -> None:
        """Even where the text to replace is still there."""
        written(files.write("f", b"one two"))
        digest = content(files.read("f")).digest
        written(files.edit("f", [change("one", "1")], expect=digest))
        assert kind(files.edit("f", [change("two", "2")], expect=digest)) == "changed"
        assert content(files.read("f")).data == b"1 two"

    def test_edits_at_once_lose_none(self, files: Filesystem) -> None:
        """Each finds what the others made, or is told that the file changed and tries again."""
        written(files.write("f", b"begin\nend\n"))

        def edit(number: int) -> None:
            while isinstance(answer := files.edit("f", [change("end\n", f"line {number}\nend\n")]), FileFault):
                assert answer.kind in ("changed", "busy")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(edit, range(40)))
        found = content(files.read("f")).data.split(b"\n")
        assert sorted(found) == sorted([b"begin", b"end", b"", *(b"line %d" % number for number in range(40))])

    def test_edits_that_expect_what_they_read_lose_none(self, files: Filesystem) -> None:
        """Compare and set, again and again."""
        written(files.write("f", b"0"))

        def count_on(_: int) -> None:
            while True:
                read = content(files.read("f"))
                answer = files.write("f", b"%d" % (int(read.data) + 1), expect=read.digest)
                if isinstance(answer, WriteResult):
                    return
                assert answer.kind in ("changed", "busy")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(count_on, range(20)))
        assert content(files.read("f")).data == b"20"

    # listing, moving, deleting

    def test_one_path_says_what_it_is(self, files: Filesystem) -> None:
        """The same as its folder's listing says; the root is a folder."""
        self.put(files, {"d/f": b"123", "d/e/g": b""})
        listed = files.ls("d")
        assert isinstance(listed, Listing)
        assert [files.stat(one.path) for one in listed.entries] == listed.entries
        found = entry(files.stat("d/f"))
        assert (found.path, found.kind, found.size, abs(found.changed - time.time()) < 600) == ("d/f", "file", 3, True)
        assert [(one.path, one.kind) for one in map(entry, map(files.stat, (".", "/", "d")))] == [
            (".", "folder"), (".", "folder"), ("d", "folder"),
        ]  # fmt: skip

    def test_a_folder_is_made_with_its_parents_and_stays_when_it_is_empty(self, files: Filesystem) -> None:
        """One that is there is no fault; a file in its place is one."""
        for path in ("a/b", "a/b", "a", ".", "a/../c"):
            written(files.mkdir(path))
        assert (names(files.ls()), names(files.ls("a")), names(files.ls("a/b"))) == (["a", "c"], ["a/b"], [])
        written(files.write("a/b/f", b"1"))
        written(files.delete("a/b/f"))
        assert entry(files.stat("a/b")).kind == "folder"
        written(files.write("f", b"1"))
        assert (kind(files.mkdir("f")), kind(files.mkdir("f/x"))) == ("exists", "not_folder")
        written(files.move("a", "m/n"))
        assert names(files.ls("m/n")) == ["m/n/b"]
        assert written(files.delete("m")).count == 0
        assert names(files.ls()) == ["c", "f"]

    def test_a_listing_is_sorted_and_says_what_each_is(self, files: Filesystem) -> None:
        """One level, hidden names too; what the limit leaves out is counted."""
        self.put(files, {"d/b": b"12", "d/a/x": b"", "d/.h": b"1", "d/C": b"", "e": b""})
        found = files.ls("d")
        assert isinstance(found, Listing)
        assert [(one.path, one.kind, one.size) for one in found.entries] == [
            ("d/.h", "file", 1), ("d/C", "file", 0), ("d/a", "folder", 0), ("d/b", "file", 2),
        ]  # fmt: skip
        assert all(abs(one.changed - time.time()) < 600 for one in found.entries if one.kind == "file")
        short = files.ls("d", most=3)
        assert isinstance(short, Listing)
        assert (len(short.entries), short.more) == (3, 1)

    def test_a_folder_is_deleted_with_all_that_is_in_it(self, files: Filesystem) -> None:
        """The count is of files."""
        self.put(files, {"d/a": b"", "d/e/b": b"", "d/e/f/c": b"", "x": b""})
        assert written(files.delete("d")).count == 3
        assert (names(files.ls()), exists(files, "d/e")) == (["x"], False)
        assert kind(files.delete("d")) == "missing"

    def test_a_move_never_replaces(self, files: Filesystem) -> None:
        """Of a file or a folder, with the folders of the target; neither onto a file nor a folder, nor into itself."""
        self.put(files, {"a": b"1", "b": b"2", "d/x": b"3", "e/y": b"4"})
        written(files.move("a", "new/deep/a"))
        assert (content(files.read("new/deep/a")).data, exists(files, "a")) == (b"1", False)
        written(files.move("d", "new/d"))
        assert content(files.read("new/d/x")).data == b"3"
        for target in ("b", "e", "e/y", "new/deep/a"):
            assert kind(files.move("new/deep/a", target)) == "exists"
        assert kind(files.move("e", "b")) == "exists"
        assert kind(files.move("e", "e/inner")) == "invalid"
        assert (content(files.read("b")).data, content(files.read("e/y")).data) == (b"2", b"4")

    def test_a_move_keeps_the_bytes(self, files: Filesystem) -> None:
        """And so the digest."""
        for number, data in enumerate(ODD_CONTENTS):
            digest = written(files.write(f"{number}", data)).digest
            written(files.move(f"{number}", f"moved/{number}"))
            assert content(files.read(f"moved/{number}")).digest == digest

    @pytest.mark.parametrize(
        "path", [".git/config", "sub/.git/hooks/x", ".GIT/config", ".harness/features.json", ".ssh/id", "a/.harness"]
    )
    def test_the_folders_of_git_and_the_harness_are_not_changed(self, files: Filesystem, path: str) -> None:
        """By no verb, wherever they are, in upper or lower case."""
        answers = [files.write(path, b""), files.write(path, b"", create=True), upload(files, {path: b""})[path]]
        self.put(files, {"x": b"x"})
        assert {kind(answer) for answer in [*answers, files.move("x", path), files.mkdir(path)]} == {"read_only"}
        assert names(files.ls()) == ["x"]

    def test_random_calls_answer_as_a_model_of_a_tree(self, tmp_path: Path) -> None:
        """Whatever is called in whatever order: the same answers, and the same tree in the end."""
        count = iter(range(10**9))

        @settings(max_examples=1500 if crash.TORTURE else 40, deadline=None, database=None)
        @given(calls=model.CALLS)
        def check(calls: list[Any]) -> None:
            folder = tmp_path / f"example{next(count)}"
            folder.mkdir()
            model.drive(self.made(folder), calls)
            shutil.rmtree(folder)

        check()

    # searching

    def test_a_glob_finds_files_by_their_path(self, files: Filesystem) -> None:
        """A name at any depth, or a path from where it begins; folders are no hits."""
        self.put(
            files,
            {"a.py": b"", "b.txt": b"", "src/c.py": b"", "src/deep/d.py": b"", "src/deep/e.pyi": b"", "t[1].py": b""},
        )

        def found(pattern: str, path: str = ".") -> list[str]:
            return sorted(names(files.glob(pattern, path)))

        assert found("*.py") == ["a.py", "src/c.py", "src/deep/d.py", "t[1].py"]
        assert found("/*.py") == ["a.py", "t[1].py"]
        assert found("**/*.py") == ["a.py", "src/c.py", "src/deep/d.py", "t[1].py"]
        assert found("src/*.py") == ["src/c.py"]
        assert found("src/**") == ["src/c.py", "src/deep/d.py", "src/deep/e.pyi"]
        assert found("src/**/*.py") == ["src/c.py", "src/deep/d.py"]
        assert found("*.{py,pyi}", "src") == ["src/c.py", "src/deep/d.py", "src/deep/e.pyi"]
        assert found("?.py") == ["a.py", "src/c.py", "src/deep/d.py"]
        assert found("[ab].*") == ["a.py", "b.txt"]
        assert found("[!a].txt") == ["b.txt"]
        assert found("t\\[1\\].py") == ["t[1].py"]
        assert found("deep") == []
        assert kind(files.glob("{a,b")) == kind(files.glob("[a")) == kind(files.glob("")) == "bad_pattern"

    def test_a_glob_that_names_something_hidden_finds_it_and_a_slash_at_its_end_finds_folders(
        self, files: Filesystem
    ) -> None:
        """The folders of git and the harness stay out, and so does what .gitignore names."""
        self.put(
            files,
            dict.fromkeys((".github/ci.yml", ".github/.a/x", "src/deep/.env.x", "src/.h/y", "src/f", "gone/z"), b"x"),
        )
        self.put(files, {".gitignore": b"gone\n"})

        def found(pattern: str, path: str = ".") -> list[tuple[str, str]]:
            answer = files.glob(pattern, path)
            assert isinstance(answer, Listing), answer
            return sorted((one.path, one.kind) for one in answer.entries)

        assert found(".github/**") == [(".github/.a/x", "file"), (".github/ci.yml", "file")]
        assert found("**/.env.x") == [("src/deep/.env.x", "file")]
        assert found("src/*/") == [("src/deep", "folder")]
        assert found("*/") == [("src", "folder")]
        assert found("*/", "src") == found("**/", "src") == [("src/deep", "folder")]
        assert found("**/.*/") == [(".github", "folder"), (".github/.a", "folder"), ("src/.h", "folder")]
        assert found("{src/*/,src/*}") == [("src/deep", "folder"), ("src/f", "file")]
        assert found("src/f/") == found("src/deep") == []

    def test_a_glob_is_newest_first_and_bounded(self, files: Filesystem) -> None:
        """What the limit leaves out is counted."""
        for name in ("b", "c", "a"):
            written(files.write(name, b""))
            time.sleep(0.02)
        found = files.glob("*", most=2)
        assert isinstance(found, Listing)
        assert (names(found), found.more) == (["a", "c"], 1)

    def test_what_gitignore_names_and_what_is_hidden_is_not_searched(self, files: Filesystem) -> None:
        """By globs and greps alike, also where a search begins below; a path that is named is searched."""
        self.put(files, {
            ".gitignore": b"*.log\n/build/\n!keep.log\n", "src/.gitignore": b"gen/\n", "a.log": b"hit\n", "keep.log": b"hit\n",
            "build/x": b"hit\n", "src/build/x": b"hit\n", "src/gen/y": b"hit\n", "src/z.log": b"hit\n", ".hidden/x": b"hit\n",
            "src/.h": b"hit\n", ".git-like": b"hit\n",
        })  # fmt: skip
        assert sorted(names(files.glob("**"))) == ["keep.log", "src/build/x"]
        assert [path for path, _, _ in lines(files.grep("hit"))] == ["keep.log", "src/build/x"]
        assert [path for path, _, _ in lines(files.grep("hit", "src"))] == ["src/build/x"]
        assert names(files.glob("**", "src")) == ["src/build/x"]
        assert [path for path, _, _ in lines(files.grep("hit", hidden=True))] == [
            ".git-like", ".hidden/x", "keep.log", "src/.h", "src/build/x",
        ]  # fmt: skip
        assert names(files.glob(".hidden/*")) == names(files.glob("*", ".hidden")) == [".hidden/x"]
        assert [path for path, _, _ in lines(files.grep("hit", glob=".hidden/*"))] == [".hidden/x"]
        assert [path for path, _, _ in lines(files.grep("hit", "build"))] == ["build/x"]
        assert [path for path, _, _ in lines(files.grep("hit", "a.log"))] == ["a.log"]

    def test_a_grep_says_path_line_and_text(self, files: Filesystem) -> None:
        """By path, then line; a last line without a newline counts, an empty one behind the last newline does not."""
        self.put(files, {"b/x.txt": b"one\ntwo one\n", "b.txt": b"One\none", "a/y.py": b"none\n\n"})
        assert lines(files.grep("one")) == [
            ("a/y.py", 1, b"none"), ("b/x.txt", 1, b"one"), ("b/x.txt", 2, b"two one"), ("b.txt", 2, b"one"),
        ]  # fmt: skip
        assert lines(files.grep("^one$", ignore_case=True)) == [
            ("b/x.txt", 1, b"one"), ("b.txt", 1, b"One"), ("b.txt", 2, b"one"),
        ]  # fmt: skip
        assert lines(files.grep("^", "a")) == [("a/y.py", 1, b"none"), ("a/y.py", 2, b"")]
        assert lines(files.grep("absent")) == []

    def test_a_grep_of_one_file_searches_that_file(self, files: Filesystem) -> None:
        """And no other in its folder."""
        self.put(files, {"d/a": b"hit 1\nno\nhit 2\n", "d/b": b"hit\n"})
        assert lines(files.grep("hit", "d/a")) == [("d/a", 1, b"hit 1"), ("d/a", 3, b"hit 2")]

    def test_a_pattern_is_an_expression_unless_it_is_literal(self, files: Filesystem) -> None:
        """Quotes, brackets and backslashes are signs as others."""
        self.put(files, {"f": b'a.b("x") \\d\naxb 7 -e\n'})
        assert [line for _, line, _ in lines(files.grep("a.b"))] == [1, 2]
        assert [line for _, line, _ in lines(files.grep("a.b", literal=True))] == [1]
        assert [line for _, line, _ in lines(files.grep('a.b("x") \\d', literal=True))] == [1]
        assert [line for _, line, _ in lines(files.grep(r"\d|\(\"x\"\)"))] == [1, 2]
        assert [line for _, line, _ in lines(files.grep("-e"))] == [2]
        assert lines(files.grep("(", literal=True)) == [("f", 1, b'a.b("x") \\d')]

    @pytest.mark.parametrize("pattern", ["(a", "a)", "[a", "*", "a\nb", "a\0", "\\"])
    def test_a_pattern_that_is_none_is_a_fault(self, files: Filesystem, pattern: str) -> None:
        """No exception, and no empty answer."""
        self.put(files, {"f": b"a\n"})
        assert kind(files.grep(pattern)) == kind(files.grep(pattern, "f")) == "bad_pattern"

    def test_a_grep_is_bounded_in_lines_and_in_their_length(self, files: Filesystem) -> None:
        """The first by path and line are shown; the others are counted."""
        self.put(files, dict.fromkeys("abc", b"hit " + b"x" * 5000 + b"\nhit\n"))
        found = files.grep("hit", most=3, longest=10)
        assert [(path, line, len(text)) for path, line, text in lines(found)] == [
            ("a", 1, 10),
            ("a", 2, 3),
            ("b", 1, 10),
        ]
        assert isinstance(found, Matches)
        assert (found.more, found.files) == (3, 3)

    def test_a_grep_takes_a_glob(self, files: Filesystem) -> None:
        """With the same meaning as that of a glob."""
        self.put(files, {"a.py": b"hit\n", "src/b.py": b"hit\n", "src/c.ts": b"hit\n", "src/d.txt": b"hit\n"})
        self.put(files, {".h.py": b"hit\n", "src/.h/e.py": b"hit\n", ".gitignore": b"!*.py\n"})

        def found(glob: str) -> list[str]:
            return [path for path, _, _ in lines(files.grep("hit", glob=glob))]

        assert found("") == ["a.py", "src/b.py", "src/c.ts", "src/d.txt"]
        assert found("*.py") == ["a.py", "src/b.py"]
        assert found("src/*.{py,ts}") == ["src/b.py", "src/c.ts"]
        assert found("{a.py,src/**}") == ["a.py", "src/b.py", "src/c.ts", "src/d.txt"]
        assert found("/*.py") == ["a.py"]
        assert kind(files.grep("hit", glob="{")) == "bad_pattern"

    def test_text_that_is_no_utf8_is_searched_and_binary_files_are_not(self, files: Filesystem) -> None:
        """Bytes come back as they are; a file with a NUL is binary, wherever the NUL is."""
        wanted = [("bom", 1, b"\xef\xbb\xbfW\r"), ("latin", 2, LATIN.split(b"\n")[1])]
        self.put(
            files, {"latin": LATIN, "nul": b"W\0", "bom": b"\xef\xbb\xbfW\r\n", "a": b"W\n" + b"x\n" * 70_000 + b"\0"}
        )
        assert lines(files.grep("W")) == wanted
        written(files.write("late", (b"W\n" + b"x\n" * 99) * 700 + b"\0"))
        assert lines(files.grep("W")) == wanted
        alone = files.grep("W", "late")
        assert isinstance(alone, Matches)
        assert (alone.matches, alone.skipped) == ([], {"late": "binary"})


class ShelledFiles(Filesystem, Shell, Protocol):
    """Files with a shell at the same place."""


class ShellContract:
    """What holds for every filesystem whose commands can be run."""

    def made(self, tmp_path: Path) -> ShelledFiles:
        """An empty filesystem with a shell; it may use this empty folder."""
        raise NotImplementedError

    @pytest.fixture
    def files(self, tmp_path: Path) -> ShelledFiles:
        """The one of a test."""
        return self.made(tmp_path)

    def done(self, answer: CommandResult | FileFault) -> CommandResult:
        """A command that ran."""
        assert isinstance(answer, CommandResult), answer
        return answer

    def test_a_command_runs_where_the_files_are(self, files: ShelledFiles) -> None:
        """What it writes can be read, and the other way round; in a folder, if one is named."""
        written(files.write("d/in", b"hello\n"))
        assert self.done(files.execute("cat d/in; echo made > d/out")).output == b"hello\n"
        assert content(files.read("d/out")).data == b"made\n"
        assert self.done(files.execute("cat in", folder="d")).output == b"hello\n"
        assert kind(files.execute("true", folder="absent")) == "missing"
        assert kind(files.execute("true", folder="..")) == "outside"
        assert kind(files.execute(" ")) == kind(files.execute("a\0b")) == "invalid"

    def test_a_command_says_how_it_ended(self, files: ShelledFiles) -> None:
        """Both streams as they came, each apart, and the exit status."""
        found = self.done(files.execute("echo out; echo err >&2; exit 3"))
        assert (found.output, found.exit, found.cause, found.lost) == (b"out\nerr\n", 3, "exit", 0)
        assert (found.stdout, found.stderr) == (b"out\n", b"err\n")
        assert self.done(files.execute("kill -9 $$")).exit == -9
        assert self.done(files.execute("read x; echo got $?")).output == b"got 1\n"

    def test_much_output_neither_hangs_nor_fills_the_memory(self, files: ShelledFiles) -> None:
        """Its beginning and end are kept; what is left out is counted."""
        found = self.done(
            files.execute("echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last", most=1000)
        )
        assert found.output.startswith(b"first\nxxx")
        assert found.output.endswith(b"xxx\nlast\n")
        assert len(found.output) < 1100
        assert found.lost == 30000000 + 12 - 1000
        assert b"%d bytes left out" % found.lost in found.output

    def test_output_is_in_the_order_in_which_it_was_written(self, files: ShelledFiles) -> None:
        """Also where a command changes between its streams faster than anybody reads, and behind much output each is whole."""
        said = "i=0; while [ $i -lt 300 ]; do echo a$i; echo b$i; echo c$i >&2; echo d$i >&2; i=$((i+1)); done"
        found = self.done(files.execute(said))
        assert found.output == b"".join(b"a%d\nb%d\nc%d\nd%d\n" % (i, i, i, i) for i in range(300))
        assert found.stdout == b"".join(b"a%d\nb%d\n" % (i, i) for i in range(300))
        assert found.stderr == b"".join(b"c%d\nd%d\n" % (i, i) for i in range(300))
        found = self.done(files.execute("seq 100000 >&2; seq 200000; echo end >&2", most=4_000_000))
        assert found.stdout == b"".join(b"%d\n" % i for i in range(1, 200_001))
        assert found.stderr == b"".join(b"%d\n" % i for i in range(1, 100_001)) + b"end\n"
        assert len(found.output) == len(found.stdout) + len(found.stderr)

    def test_the_timeout_is_exact_and_leaves_nothing(self, files: ShelledFiles) -> None:
        """Also for what ignores the signal, runs in the background, or keeps the output open."""
        begun = time.monotonic()
        one, other = lasting(), lasting()
        found = self.done(files.execute(f"echo on; (trap '' TERM; {one}) & setsid {other} & wait", seconds=1.5))
        assert found.cause == "timeout"
        assert found.output == b"on\n"
        assert time.monotonic() - begun >= 1.5
        assert not runs(one) | runs(other)

    def test_what_a_command_leaves_running_ends_with_it(self, files: ShelledFiles) -> None:
        """At once, though the output is still open."""
        left = lasting()
        assert self.done(files.execute(f"{left} & echo done")).output == b"done\n"
        assert not runs(left)

    def test_a_command_can_be_cancelled(self, files: ShelledFiles) -> None:
        """From outside, while it runs."""
        under_way = lasting()
        found = self.done(files.execute(f"echo on; {under_way}", stop=lambda: runs(under_way)))
        assert (found.cause, found.output) == ("cancelled", b"on\n")

    def test_a_command_has_the_variables_that_it_is_given(self, files: ShelledFiles) -> None:
        """Besides those of the shell."""
        assert self.done(files.execute("echo $GIVEN", variables={"GIVEN": "a b"})).output == b"a b\n"
        assert kind(files.execute("true", variables={"A=B": "x"})) == "invalid"

    def test_the_place_has_a_name_that_stays(self, files: ShelledFiles) -> None:
        """As long as its files are the same."""
        assert files.id() == files.id() == files.confined(None, {}, "no").id() != ""

    def test_a_shell_can_be_given_an_environment_and_be_refused(self, files: ShelledFiles) -> None:
        """Without a change of the shell itself."""
        other = files.confined(None, {"PATH": os.environ["PATH"], "GIVEN": "x"}, "")
        assert self.done(other.execute("echo $GIVEN")).output == b"x\n"
        with pytest.raises(Unavailable, match="no tier"):
            files.confined(None, None, "no tier").execute("true")
        assert self.done(files.execute("echo $GIVEN")).output == b"\n"

    def test_a_command_in_the_background_is_read_page_by_page(self, files: ShelledFiles) -> None:
        """It runs on between two looks, and its end is known later."""
        job = files.start("echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4")
        assert not isinstance(job, FileFault)
        assert waited(lambda: job.page().size == 4)
        page = job.page()
        assert (page.data, page.offset, page.next) == (b"one\n", 0, 4)
        assert job.status() is None
        written(files.write("go", b""))
        assert waited(lambda: job.status() is not None)
        assert job.page(page.next).data == b"two\n"
        assert job.page(-3).data == b"wo\n"
        found = self.done(job.cancel())
        assert (found.exit, found.cause, found.output) == (4, "exit", b"one\ntwo\n")

    def test_a_command_in_the_background_can_be_cancelled(self, files: ShelledFiles) -> None:
        """With all that it started, and with more output than is kept."""
        left = lasting()
        job = files.start(f"{left} & yes")
        assert not isinstance(job, FileFault)
        assert waited(lambda: job.page().size > 1_000_000)
        found = job.cancel()
        assert (found.cause, found.output[:4]) == ("cancelled", b"y\ny\n")
        assert found.lost > 0
        assert not runs(left)

    def test_a_command_in_the_background_has_its_time_and_its_folder(self, files: ShelledFiles) -> None:
        """As one in the foreground."""
        job = files.start("sleep 7164.5", seconds=0.2)
        assert not isinstance(job, FileFault)
        assert waited(lambda: job.status() is not None)
        assert job.cancel().cause == "timeout"
        assert kind(files.start("true", folder="absent")) == "missing"
        assert kind(files.start("")) == "invalid"


def lasting() -> str:
    """A command that lasts for hours, and that no other test has."""
    return f"sleep {random.randrange(10**4, 10**5)}.{random.randrange(10**8)}"


def runs(command: str) -> bool:
    """Whether such a command runs on this machine."""
    listed = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return command in listed.split("\n")


def waited(met: Callable[[], bool]) -> bool:
    """Whether it becomes true before a timeout."""
    until = time.monotonic() + 60
    while not met():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
