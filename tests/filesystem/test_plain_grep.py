"""Promises of harness/filesystem/plain_grep.py: as a program it answers as ripgrep does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from harness.filesystem import plain_grep, ripgrep


def asked(folder: Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """The answer to a question."""
    question = {"names": [], "pattern": "hit", "literal": False, "ignore_case": False, "hidden": False, **more}
    return subprocess.run(
        ripgrep.plain(json.dumps(question)), cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )


def test_it_writes_the_records_that_ripgrep_writes(tmp_path: Path) -> None:
    """Path, NUL, line, offset, text; in the order of the paths."""
    for name, data in {"b": b"no\nhit 1\nhit\xff", "a/x": b"hit\n", "bin": b"hit\0", ".h": b"hit\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    done = asked(tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"a/x\0001:0:hit\nb\0002:3:hit 1\nb\0003:9:hit\xff\n"
    assert asked(tmp_path, names=["a"]).stdout == b"a/x\0001:0:hit\n"


def test_a_pattern_that_is_none_is_its_own_status(tmp_path: Path) -> None:
    """With the reason."""
    done = asked(tmp_path, pattern="(")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.strip()


def test_a_file_that_is_larger_than_a_block_is_searched_whole(tmp_path: Path) -> None:
    """Lines and offsets go on over the blocks; a NUL at the very end makes it binary."""
    row = b"x" * 99 + b"\n"
    data = row * (plain_grep.BLOCK // 100) + b"y" * 50 + b"\nhit\n" + row * 1000 + b"hit"
    (tmp_path / "f").write_bytes(data)
    records = asked(tmp_path).stdout.split(b"\n")[:-1]
    assert len(records) == 2
    for record in records:
        line, offset, text = record.partition(b"\0")[2].split(b":")
        assert data[int(offset) :].startswith(text)
        assert data.count(b"\n", 0, int(offset)) + 1 == int(line)
    (tmp_path / "f").write_bytes(data + b"\0")
    assert asked(tmp_path).stdout == b""
