"""Promises of harness/filesystem/_python_grep.py: as a program it answers as `rg --json` does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from harness.filesystem import _ripgrep


def asked(folder: Path, pattern: str, *paths: str, literal: bool = False) -> subprocess.CompletedProcess[bytes]:
    """The answer to a question."""
    argv = [*_ripgrep.argv("", pattern, literal=literal, ignore_case=False), *paths]
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)


class Answer(_ripgrep.Stream):
    """An output that is there."""

    def __init__(self, output: bytes) -> None:
        self.output = output

    def chunks(self) -> list[bytes]:  # type: ignore[override]  # a list is all that a reader needs
        """The output as one."""
        return [self.output]


def test_it_writes_the_records_that_ripgrep_writes(tmp_path: Path) -> None:
    """Path, line, offset, text, bytes as they are; and that a file is binary."""
    for name, data in {"b\udcff": b"no\nhit 1\nhit\xff", "x": b"hit\r\n", "bin": b"hit\nno\0"}.items():
        (tmp_path / name).write_bytes(data)
    done = asked(tmp_path, "hit", "./b\udcff", "./x", "./bin")
    assert (done.returncode, done.stderr) == (0, b"")
    found = list(_ripgrep.records(Answer(done.stdout), most=9, longest=9))
    assert found == [("b\udcff", [(2, 3, b"hit 1"), (3, 9, b"hit\xff")]), ("x", [(1, 0, b"hit\r")])]
    assert [json.loads(row)["data"].get("binary_offset") for row in done.stdout.splitlines()] == [None] * 6 + [6]


def test_a_pattern_that_is_none_is_its_own_status(tmp_path: Path) -> None:
    """With the reason; as a literal it is text."""
    done = asked(tmp_path, "(", "/dev/null")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.strip()
    assert asked(tmp_path, "a\nb", "/dev/null").returncode == 2
    assert asked(tmp_path, "(", "/dev/null", literal=True).returncode == 0


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_searched(tmp_path: Path) -> None:
    """As ripgrep says it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("hit\n")
    done = asked(tmp_path, "hit", "./a", "./b")
    assert b"rg: ./a: Is a directory (os error 21)" in done.stderr
    assert done.stdout.count(b"\n") == 2
