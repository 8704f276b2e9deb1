"""write_file and edit_file: what the model did not see is not overwritten, and what it did not change stays byte for byte."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.builtin.tools import _read_digests
from harness.builtin.tools._write_files import preview
from harness.builtin.tools.tool import ToolResult
from harness.filesystem import _lines
from harness.filesystem.protocol import FileFault, Replacement, WriteResult
from tests.builtin.tools.benches import ELSEWHERE, STORED, Bench, TreePath
from tests.filesystem.delegating import DelegatingFiles

CODE = "def one():\n    return 1\n\n\ndef two():\n\treturn 2\n"


def ready(bench: Bench, data: bytes | str = CODE, name: str = "a.py") -> TreePath:
    """A file that the model has read."""
    path = bench.write(name, data)
    bench.said("read_file", path=name)
    return path


# writing


@pytest.mark.parametrize("settled", [True, False])
def test_a_part_of_a_large_file_is_known_without_reading_the_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    """Where nobody writes to it just now, the system says whether it changed: then only the part was read. Either way it can be
    edited, and what changed anywhere since, also to bytes of the same length, is not overwritten."""
    monkeypatch.setattr(_lines, "SETTLED_SECONDS", -60.0 if settled else 60.0)
    settled = bench.kind in STORED or (
        settled and bench.kind not in ELSEWHERE
    )  # a store gives each write its version at once
    whole = "".join(f"line {number:08d} of a file\n" for number in range(60_000))
    path = bench.write("big.log", whole)
    bench.said("read_file", path="big.log", offset=50_000, limit=3)
    assert bench.own.state[_read_digests.KEY]["big.log"].startswith(_read_digests.VERSION) == settled
    bench.said("edit_file", path="big.log", old_string="00050001 of", new_string="00050001 OF")
    bench.said("edit_file", path="big.log", old_string="00050002 of", new_string="00050002 OF")
    bench.said("read_file", path="big.log", offset=7, limit=3)
    path.write_text(whole.replace("00000001", "0000000x"))
    assert "changed since" in bench.refused("edit_file", path="big.log", old_string="00050000", new_string="x")
    assert "changed since" in bench.refused("write_file", path="big.log", content="x")
    assert path.read_text() == whole.replace("00000001", "0000000x")


def test_a_new_file_is_made_with_its_folders(bench: Bench) -> None:
    """And may be changed at once: the model knows what it wrote."""
    assert bench.said("write_file", path="a/b/c.txt", content="é\n") == "Created a/b/c.txt (1 line, 3 bytes)."
    assert bench.said("write_file", path="a/b/c.txt", content="") == "Replaced a/b/c.txt (empty, 0 bytes)."
    bench.said("write_file", path="a/b/c.txt", content="x = 1\n")
    bench.said("edit_file", path="/a/b/../b/c.txt", old_string="1", new_string="2")
    assert (bench.tree / "a/b/c.txt").read_text() == "x = 2\n"


ENDS = {"LF": b"\n", "CRLF": b"\r\n"}
MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("mark", [b"", MARK])
@pytest.mark.parametrize("end", ENDS)
def test_a_file_that_is_replaced_keeps_its_mark_and_its_line_ends(bench: Bench, mark: bytes, end: str) -> None:
    """As one that is edited; whichever ends the model writes, and the preview says the same."""
    path = ready(bench, mark + b"a;b" + ENDS[end] + b"1;2" + ENDS[end])
    new = "a;b\n1;3\n" if end == "CRLF" else "a;b\r\n1;3\r\n"
    shown = preview(bench.own, {"path": "a.py", "content": new})
    bench.said("write_file", path="a.py", content=new)
    assert path.read_bytes() == mark + b"a;b" + ENDS[end] + b"1;3" + ENDS[end]
    assert shown.split("\n")[3:] == [" " + mark.decode() + "a;b", "-1;2", "+1;3"]
    bench.said("write_file", path="a.py", content="x\n")
    assert path.read_bytes() == mark + b"x" + ENDS[end]
    bench.said("edit_file", path="a.py", old_string="x", new_string="y")
    assert path.read_bytes() == mark + b"y" + ENDS[end]


def test_a_file_that_is_replaced_keeps_its_mode(bench: Bench) -> None:
    """A script stays one that can be run."""
    path = ready(bench, "#!/bin/sh\n", "run.sh")
    path.chmod(0o750)
    bench.said("read_file", path="run.sh")
    bench.said("write_file", path="run.sh", content="#!/bin/sh\necho\n")
    assert path.stat().st_mode & 0o777 == 0o750


def test_an_existing_file_that_was_not_read_is_not_replaced(bench: Bench) -> None:
    """Also an empty one; the answer says what to do."""
    for data in ("precious\n", ""):
        path = bench.write("a.txt", data)
        assert "read_file" in bench.refused("write_file", path="a.txt", content="mine\n")
        assert "read_file" in bench.refused("edit_file", path="a.txt", old_string="precious", new_string="x")
        assert path.read_text() == data


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(bench: Bench) -> None:
    """Neither by writing nor by editing, until it is read again."""
    path = ready(bench)
    path.write_text(CODE + "# by a person\n")
    for name, more in (("write_file", {"content": "mine\n"}), ("edit_file", {"old_string": "1", "new_string": "3"})):
        said = bench.refused(name, path="a.py", **more)
        assert "changed since" in said and "read_file" in said
    assert path.read_text() == CODE + "# by a person\n"
    bench.said("read_file", path="a.py")
    bench.said("edit_file", path="a.py", old_string="return 1", new_string="return 3")
    assert path.read_text().endswith("# by a person\n")


def test_a_file_that_was_touched_but_not_changed_can_be_edited(bench: Bench) -> None:
    """The content counts, not the time."""
    path = ready(bench)
    os.utime(path, (1, 1))
    bench.said("edit_file", path="a.py", old_string="return 1", new_string="return 3")


def test_a_part_that_was_read_is_enough_and_a_change_elsewhere_is_noticed(bench: Bench) -> None:
    """A large file need not be read whole to be edited."""
    path = bench.write("big.txt", "".join(f"line {number}\n" for number in range(5000)))
    bench.said("read_file", path="big.txt", offset=4000, limit=10)
    bench.said("edit_file", path="big.txt", old_string="line 4001\n", new_string="line X\n")
    assert "line X\n" in path.read_text()
    path.write_text(path.read_text().replace("line 7\n", "line seven\n"))
    assert "changed since" in bench.refused("edit_file", path="big.txt", old_string="line X\n", new_string="line Y\n")


def test_what_was_seen_is_known_when_the_conversation_goes_on_in_another_process(bench: Bench, tmp_path: Path) -> None:
    """Its state is JSON that is saved with the conversation."""
    path = ready(bench)
    later = bench.again()
    later.own.state = json.loads(json.dumps(bench.own.state))
    later.said("edit_file", path="a.py", old_string="return 1", new_string="return 3")
    assert "return 3" in path.read_text()
    path.write_text("other\n")
    again = bench.again()
    again.own.state = json.loads(json.dumps(later.own.state))
    assert "changed since" in again.refused("write_file", path="a.py", content="x")


def test_of_many_who_edit_one_file_nobody_undoes_the_others(bench: Bench, tmp_path: Path) -> None:
    """Who comes late is told, reads again and succeeds."""
    path = bench.write("count.txt", "".join(f"{number}: no\n" for number in range(8)))
    told = list[str]()

    def edit(number: int) -> None:
        own = bench.again()
        while True:
            own.said("read_file", path="count.txt")
            found = own.call("edit_file", path="count.txt", old_string=f"{number}: no", new_string=f"{number}: yes")
            if not found.failed:
                return
            told.append(found.text)

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "".join(f"{number}: yes\n" for number in range(8))
    assert all("changed since" in text for text in told)


def test_content_that_was_seen_under_another_name_was_seen(bench: Bench) -> None:
    """A file that a command moved, and a file by its absolute path."""
    path = ready(bench)
    path.rename(bench.tree / "b.py")
    bench.said("edit_file", path="b.py", old_string="return 1", new_string="return 3")
    bench.said("read_file", path=bench.absolute("b.py"))
    bench.said("edit_file", path="b.py", old_string="return 3", new_string="return 4")


class Meddled(DelegatingFiles):
    """Files that somebody else changes in the moment before each change."""

    def write(self, path: str, data: bytes, **more: Any) -> WriteResult | FileFault:
        """Theirs, then ours."""
        self.inner.write(path, b"theirs\n")
        return super().write(path, data, **more)

    def edit(self, path: str, changes: Sequence[Replacement], expect: str = "") -> WriteResult | FileFault:
        """Theirs, then ours."""
        self.inner.write(path, b"return 1, theirs\n")
        return super().edit(path, changes, expect)


def test_a_change_in_the_very_moment_is_noticed_too(bench: Bench) -> None:
    """Between the look at a file and its change, or where a new one appears."""
    path = ready(bench)
    bench.own.files = Meddled(bench.files)
    assert "changed since" in bench.refused("write_file", path="a.py", content="mine\n")
    assert path.read_text() == "theirs\n"
    path.write_text(CODE)
    bench.said("read_file", path="a.py")
    assert "changed since" in bench.refused("edit_file", path="a.py", old_string="return 1", new_string="return 2")
    assert path.read_text() == "return 1, theirs\n"
    assert "not read it" in bench.refused("write_file", path="new.py", content="mine\n")
    assert (bench.tree / "new.py").read_text() == "theirs\n"


def test_of_many_who_create_one_file_one_does(bench: Bench, tmp_path: Path) -> None:
    """The others are told that it is there."""
    found: dict[tuple[int, str], ToolResult] = {}

    def create(number: int, who: str) -> None:
        found[number, who] = bench.again().call("write_file", path=f"{number}.txt", content=who)

    threads = [threading.Thread(target=create, args=(number, who)) for number in range(5) for who in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(5):
        (winner,) = (who for who in "abcdefgh" if not found[number, who].failed)
        assert (bench.tree / f"{number}.txt").read_text() == winner
    assert all("you have not read it" in one.text for one in found.values() if one.failed)


def test_what_is_no_text_may_be_replaced_once_it_was_looked_at(bench: Bench) -> None:
    """Its kind and size were told; not before, and not after it changed."""
    path = bench.write("logo.png", b"\x89PNG\r\n\x1a\n\0")
    other = bench.write("data.bin", b"\0\1\2")
    for name in ("logo.png", "data.bin"):
        bench.refused("write_file", path=name, content="x")
        bench.said("read_file", path=name)
    path.write_bytes(b"\x89PNG\r\n\x1a\n\1")
    assert "changed since" in bench.refused("write_file", path="logo.png", content="x")
    bench.said("write_file", path="data.bin", content="x")
    assert other.read_bytes() == b"x"


# editing


def test_an_edit_replaces_exactly_what_was_given_and_shows_the_lines_around_it(bench: Bench) -> None:
    """With their numbers, so that the model need not read again."""
    path = ready(bench)
    said = bench.said("edit_file", path="a.py", old_string="    return 1", new_string="    return 11")
    assert path.read_text() == CODE.replace("return 1", "return 11")
    assert said.startswith("Edited a.py: 1 replacement.\n") and "     2\t    return 11\n" in said


def test_a_text_that_is_there_several_times_is_not_guessed_at(bench: Bench) -> None:
    """The answer names the lines; replace_all takes them all."""
    path = ready(bench, "x\ny\nx\nx\n")
    assert "3 times (lines 1, 3, 4)" in bench.refused("edit_file", path="a.py", old_string="x", new_string="z")
    assert path.read_text() == "x\ny\nx\nx\n"
    bench.said("edit_file", path="a.py", old_string="x", new_string="z", replace_all="true")
    assert path.read_text() == "z\ny\nz\nz\n"


def test_several_edits_are_made_in_order_all_or_none(bench: Bench) -> None:
    """A later one sees what an earlier one wrote; the answer names the one that does not fit."""
    path = ready(bench)
    edits = [{"old_string": "one", "new_string": "uno"}, {"old_string": "def uno", "new_string": "def eins"}]
    bench.said("edit_file", path="a.py", edits=edits)
    assert path.read_text().startswith("def eins():")
    bad = [{"old_string": "two", "new_string": "zwei"}, {"old_string": "nowhere at all", "new_string": "x"}]
    said = bench.refused("edit_file", path="a.py", edits=bad)
    assert said.startswith("Edit 2 of 2 (nothing was written): ")
    assert "zwei" not in path.read_text()


def test_an_edit_that_changes_nothing_or_has_nothing_to_find_is_refused(bench: Bench) -> None:
    """An empty old_string ends at once; so do the same text twice, both forms at once, and none."""
    ready(bench)
    assert "is empty" in bench.refused("edit_file", path="a.py", old_string="", new_string="x")
    assert "the same" in bench.refused("edit_file", path="a.py", old_string="one", new_string="one")
    both = bench.refused(
        "edit_file", path="a.py", old_string="a", new_string="b", edits=[{"old_string": "a", "new_string": "b"}]
    )
    assert "not both" in both
    assert "Give old_string" in bench.refused("edit_file", path="a.py")


def test_other_line_ends_stay_and_new_lines_get_them(bench: Bench) -> None:
    """The model gives \\n, as it saw the lines; the byte order mark stays, too."""
    path = ready(bench, b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    bench.said("edit_file", path="a.py", old_string="one\ntwo\n", new_string="one\n1.5\ntwo\n")
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n1.5\r\ntwo\r\nthree\r\n"
    bench.said("edit_file", path="a.py", old_string="two", new_string="2\n2")
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n1.5\r\n2\r\n2\r\nthree\r\n"


def test_a_text_that_begins_with_a_line_end_keeps_that_whole(bench: Bench) -> None:
    """Whichever it is in the file; and the lines that an ambiguous text is on are named."""
    path = ready(bench, b"one\r\ntwo\r\nthree\n")
    bench.said("edit_file", path="a.py", old_string="\ntwo", new_string="\n2")
    assert path.read_bytes() == b"one\r\n2\r\nthree\n"
    ready(bench, b"one\r\none\nx\r\n")
    assert "2 times (lines 1, 2)" in bench.refused("edit_file", path="a.py", old_string="one\n", new_string="1\n")
    bench.said("edit_file", path="a.py", old_string="one\n", new_string="1\n", replace_all=True)
    assert path.read_bytes() == b"1\r\n1\r\nx\r\n"


def test_a_file_of_mixed_line_ends_keeps_each(bench: Bench) -> None:
    """Only the lines of the edit change; a new one ends as most do."""
    path = ready(bench, b"one\r\ntwo\nthree\nfour\r\n")
    bench.said("edit_file", path="a.py", old_string="two\nthree", new_string="2\n3")
    assert path.read_bytes() == b"one\r\n2\n3\nfour\r\n"
    ready(bench, b"one\r\ntwo\r\nthree\nfour\r\n")
    bench.said("edit_file", path="a.py", old_string="two", new_string="2\n2.5")
    assert path.read_bytes() == b"one\r\n2\r\n2.5\r\nthree\nfour\r\n"


PIECES = ["a", "é", "東", "\t", " ", "\\", "x = 1", "(", "\x0c", "\u2028"]
LINES = st.lists(
    st.tuples(
        st.lists(st.sampled_from([*(one.encode() for one in PIECES), b"\xe9", b"\xff"]), max_size=4), st.booleans()
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, st.booleans(), st.booleans(), st.integers(0, 7), st.integers(0, 3))
def test_what_read_file_shows_can_be_given_to_edit_file(
    bench: Bench, lines: list[tuple[list[bytes], bool]], mark: bool, ends: bool, first: int, more: int
) -> None:
    """Any lines of any file: with other line ends, mixed ones too, a byte order mark, bytes that are no UTF-8. All else stays."""
    rows = [b"%d:" % number + b"".join(pieces) for number, (pieces, _) in enumerate(lines)]
    breaks = [b"\r\n" if crlf else b"\n" for _, crlf in lines]
    if not ends:
        breaks[-1] = b""
    begin = min(first, len(rows) - 1)
    end = min(begin + more, len(rows) - 1)
    head = (b"\xef\xbb\xbf" if mark else b"") + b"".join(map(bytes.__add__, rows[:begin], breaks))
    tail = breaks[end] + b"".join(map(bytes.__add__, rows[end + 1 :], breaks[end + 1 :]))
    middle = b"".join(map(bytes.__add__, rows[begin:end], breaks[begin:])) + rows[end]
    path = bench.write("any.txt", head + middle + tail)
    shown = bench.said("read_file", path="any.txt").split("\n")[begin : end + 1]
    old = "\n".join(row.split("\t", 1)[1] for row in shown)
    bench.said("edit_file", path="any.txt", old_string=old, new_string="NEW")
    assert path.read_bytes() == head + b"NEW" + tail


def test_bytes_that_are_no_utf8_survive_and_can_be_edited_as_they_are_shown(bench: Bench) -> None:
    """A model may give \\xNN for such a byte."""
    path = ready(bench, "naïve café\nplain\n".encode("latin-1"))
    bench.said("edit_file", path="a.py", old_string="plain", new_string="simple")
    assert path.read_bytes() == "naïve café\nsimple\n".encode("latin-1")
    bench.said("edit_file", path="a.py", old_string="caf\\xe9", new_string="th\\xe9")
    assert path.read_bytes() == "naïve thé\nsimple\n".encode("latin-1")
    ready(bench, r"print('\xe9')" + "\n", "b.py")
    bench.said("edit_file", path="b.py", old_string=r"\xe9", new_string=r"\xe8")
    assert (bench.tree / "b.py").read_text() == r"print('\xe8')" + "\n"


def test_a_file_keeps_its_mode(bench: Bench) -> None:
    """A script stays a script."""
    path = ready(bench, "#!/bin/sh\necho 1\n", "run.sh")
    path.chmod(0o755)
    bench.said("edit_file", path="run.sh", old_string="1", new_string="2")
    bench.said("write_file", path="run.sh", content="#!/bin/sh\n")
    assert path.stat().st_mode & 0o777 == 0o755
