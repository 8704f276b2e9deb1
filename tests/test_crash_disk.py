"""Disks that are full or fail: every fault is raised, nothing is half written, and the next process continues."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.state import files, journal, names
from harness.state.journal import Journal
from harness.state.layout import Layout
from tests.crash import TORTURE, contents, lay_out, recorded
from tests.helpers import mission, put
from tests.journalled import change, finish, ledger_is_wrong, old_state, state
from tests.missions import CHECKOUT, House

ROOT = str(Path(__file__).resolve().parent.parent)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder is empty."""
    return mission(tmp_path)


@contextmanager
def disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of this size at `folder`, which it makes."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("a small file system needs root and the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Layout]:
    """A mission on a disk of 64 KiB."""
    with disk(tmp_path / "small", "64k"):
        yield mission(tmp_path / "small")


@pytest.mark.parametrize("room", [0, 1, 2, 3, 4, 5])
def test_a_disk_that_fills_up_leaves_all_or_nothing_and_goes_on_with_room(small: Layout, room: int) -> None:
    """Pages run out at each place in turn; every fault is raised."""
    old_state(small)
    put(small.path(names.ISSUES), b"one\n" * 1000)
    journal.adopt(small)
    before = [files.read(path) for path in (small.path(names.FEATURES), small.path(names.ISSUES))]
    changes = Journal(small)
    changes.replace(small.path(names.FEATURES), b"new" * 100)
    changes.append(small.path(names.ISSUES), b"x" * 9000 + b"\n")
    fill_but(small, room)
    with pytest.raises(OSError, match="No space left"):
        changes.commit()
    with pytest.raises(OSError, match="No space left"):
        journal.append(small, small.path(names.RAW), b"y" * 30_000 + b"\n")
    os.unlink(small.folders.project + "/filler")
    journal.append(small, small.path(names.RAW), b"next\n")
    after = [b"new" * 100, b"one\n" * 1000 + b"x" * 9000 + b"\n"]
    assert [files.read(path) for path in (small.path(names.FEATURES), small.path(names.ISSUES))] in (before, after)
    assert files.read(small.path(names.RAW)) == b"kept\nnext\n"
    assert not ledger_is_wrong(small)


def test_starts_that_die_of_a_full_disk_use_up_no_run(bare: House) -> None:
    """cron starts it every minute of a night, and nothing is asked: in the morning all of `max_runs` is there still."""
    with disk(bare.project, "8m"):
        bare.repository()
        bare.begin()
        bare.script("worker", {"run": "touch begun"})
        for room in range(4, 24, 2):
            fill_but(bare.layout, room)
            done = bare.run([str(CHECKOUT / "run.sh"), "--once"])
            os.unlink(bare.project / "filler")
            if (bare.tree / "begun").exists():
                break
            assert (done.code, "Nothing is lost" in done.err or "git" in done.err) == (11, True), done
        bare.script("worker", {"run": "touch 1.txt"})
        assert bare.run([str(CHECKOUT / "run.sh"), "--once"]).code == 0
        ran = [one for one in bare.ran() if one["role"] == "worker"]
        asked = [one for one in ran if os.path.exists(bare.layout.run(one["run"]).stream)]
        assert len(ran) > len(asked) > 0
        assert {one["outcome"] for one in ran if one not in asked} == {"killed"}
        assert ran[-1]["totals"]["runs"] == len(asked)


def fill_but(layout: Layout, pages: int) -> None:
    """Fill the disk except for this many pages of 4 KiB."""
    held = os.statvfs(layout.folders.project)
    Path(layout.folders.project, "filler").write_bytes(b"x" * (held.f_bavail - pages) * held.f_bsize)


SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from harness.state import journal, names
from harness.state.layout import Layout
layout = Layout({project!r})
changes = journal.Journal(layout)
changes.replace(layout.path(names.FEATURES), b"new\\n")
changes.replace(layout.path(names.CURATED), b"{{}}\\n")
changes.remove(layout.path(names.ESCALATION))
changes.append(layout.path(names.ISSUES), b"two\\nthree\\n")
changes.append(layout.path(names.RUN_LOG), b"run\\n")
try:
    changes.commit()
except OSError:
    sys.exit(5)
"""


def under_strace(script: str, failing: int) -> int:
    """Run Python under strace with the n-th fsync failing; returns its exit status. Skips if strace cannot run."""
    words = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fsync"]
    words += ["-e", f"inject=fsync:error=EIO:when={failing}"]
    if not shutil.which("strace") or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace with fault injection is not here")
    return subprocess.run([*words, sys.executable, "-I", "-S", "-c", script], check=False).returncode


def test_a_failing_fsync_is_raised_and_leaves_nothing_half(layout: Layout) -> None:
    """Whichever fsync fails: it is not retried, and the next process finishes what was committed."""
    old_state(layout)
    before = contents(layout.state)
    lay_out(layout.state, before)
    total = sum(row[0].startswith("fsync") for row in recorded(layout.state, lambda: change(layout)))
    script = SCRIPT.format(root=ROOT, project=layout.folders.project)
    for failing in range(1, total + 2, 1 if TORTURE else 3):
        lay_out(layout.state, before)
        assert under_strace(script, failing) == (5 if failing <= total else 0)
        finish(layout)
        assert state(layout) in ("old", "new")
