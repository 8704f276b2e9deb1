"""Promises of harness/filesystem/_ripgrep.py: records are read as they come, and a search ends, at its time if need be."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from harness.base.errors import Unavailable
from harness.filesystem import _ripgrep
from harness.filesystem._faults import VerbRefusal
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileFault
from tests.filesystem.contract import kind


class Chunks(_ripgrep.Stream):
    """An output that comes in these pieces."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts

    def chunks(self) -> Iterator[bytes]:
        """The pieces."""
        yield from self.parts


OUTPUT = b"""{"type":"begin","data":{"path":{"text":"./a"}}}
{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"x:y\\n"},"line_number":1,"absolute_offset":0,"submatches":[]}}
{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"x\\n"},"line_number":2,"absolute_offset":4,"submatches":[]}}
{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"x\\n"},"line_number":9,"absolute_offset":40,"submatches":[]}}
{"type":"end","data":{"path":{"text":"./a"},"binary_offset":null}}
{"type":"match","data":{"path":{"text":"unfinished"},"lines":{"text":"x"},"line_number":1,"absolute_offset":0}}
{"type":"match","data":{"path":{"bytes":"Yv8="},"lines":{"bytes":"/w0K"},"line_number":2,"absolute_offset":5}}
{"type":"end","data":{"path":{"bytes":"Yv8="},"binary_offset":null}}
{"type":"match","data":{"path":{"text":"nul"},"lines":{"text":"x"},"line_number":1,"absolute_offset":0}}
{"type":"end","data":{"path":{"text":"nul"},"binary_offset":9}}
{"type":"summary","data":{}}
"""


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
def test_records_are_the_same_however_the_output_is_cut(size: int) -> None:
    """Also in the middle of a record. Left out are binary files, those whose reading failed, and lines beyond a limit."""
    parts = [OUTPUT[at : at + size] for at in range(0, len(OUTPUT), size)]
    found = list(_ripgrep.records(Chunks(*parts), most=2, longest=2))
    assert found == [("a", [(1, 0, b"x:"), (2, 4, b"x")]), ("b\udcff", [(2, 5, b"\xff\r")])]


def test_a_file_is_not_read_beyond_the_limit() -> None:
    """One with millions of matching lines would take until the timeout."""
    line = b'{"type":"match","data":{"path":{"text":"a"},"lines":{"text":"x"},"line_number":1,"absolute_offset":0}}\n'
    output = Chunks(line, line, b"no record, which is not parsed\n")
    assert next(_ripgrep.records(output, most=2, longest=2)) == ("a", [(1, 0, b"x")] * 2)


def test_a_search_ends_at_its_time() -> None:
    """And its process with it."""
    begun = time.monotonic()
    argv = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    with (
        pytest.raises(VerbRefusal, match="took longer than 60 s"),
        _ripgrep.Stream(argv, cwd="/", until=begun + 0.2) as stream,
    ):
        list(stream.chunks())
    assert stream.process.returncode == -9
    assert time.monotonic() - begun < 55


def test_a_pattern_without_end_ends_where_ripgrep_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's regular expressions may never end; the search does."""
    monkeypatch.setattr(_ripgrep, "SECONDS", 1.0)
    files = Local(str(tmp_path), with_rg=False)
    files.write("f", b"a" * 5000 + b"!\n")
    assert kind(files.grep(r"(a|a)*(a|a)*(a|a)*$")) == "timeout"


def test_a_search_reads_complaints_while_it_reads_records() -> None:
    """Neither pipe fills up and stops the other."""
    complaint = b"rg: x: Permission denied (os error 13)\nrg: y: No such file or directory (os error 2)\n"
    program = f"import os\nfor _ in range(2000): os.write(2, {complaint!r} * 9); os.write(1, b'y' * 999)"
    with _ripgrep.Stream([sys.executable, "-c", program], cwd="/", until=time.monotonic() + 60) as stream:
        assert sum(map(len, stream.chunks())) == 2000 * 999
        stream.check("p")
    assert stream.complaints() == {"x": "permission denied"}


def test_a_program_that_is_not_there_is_no_fault_of_the_model(tmp_path: Path) -> None:
    """It is raised, for a person."""
    files = Local(str(tmp_path))
    files.program = str(tmp_path / "none")
    with pytest.raises(Unavailable, match="cannot be started"):
        files.grep("x")


def test_settings_of_a_user_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither ripgrep's own configuration nor git's list for all repositories."""
    (tmp_path / "home/.config/git").mkdir(parents=True)
    (tmp_path / "home/.config/git/ignore").write_text("*\n")
    (tmp_path / "rc").write_text("--invert-match\n")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/f").write_text("hit\nother\n")
    (tmp_path / "root/.ignore").write_text("f\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    answer = Local(str(tmp_path / "root")).grep("hit")
    assert not isinstance(answer, FileFault)
    assert [match.text for match in answer.matches] == [b"hit"]


def test_it_is_the_one_of_the_package_and_never_one_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution's ripgrep is another version; and beside the system's Python it is on PATH, too."""
    (tmp_path / "rg").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    files = metadata.files("ripgrep")
    assert files, "the tests need ripgrep: make setup"
    installed = {os.path.realpath(str(file.locate())) for file in files}
    assert _ripgrep.program() in installed
    monkeypatch.setattr(_ripgrep, "PACKAGE", "no-such-package")
    assert _ripgrep.program() == ""


def test_paths_are_named_in_as_many_calls_as_they_need() -> None:
    """All of them once, in order; with none the pattern is checked all the same."""
    paths = [f"{number:05}{'x' * 200}" for number in range(2000)]
    made = list(_ripgrep.batches(paths))
    assert [path for batch in made for path in batch] == [f"./{path}" for path in paths]
    assert len(made) > 1
    assert max(sum(map(len, batch)) for batch in made) < 2 * _ripgrep.MAX_PATH_BYTES
    assert list(_ripgrep.batches([])) == [[os.devnull]]
