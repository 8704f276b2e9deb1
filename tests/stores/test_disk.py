"""The store on disk: plain files that people read and edit."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, LockBusy, VersionConflict
from harness.stores import log
from harness.stores.disk import DiskStore
from harness.stores.store import ABSENT, ANY
from tests.crash import contents, lay_out, power_cuts, recorded
from tests.kill_sweep import why_not


def test_a_value_is_a_plain_file_at_its_names(tmp_path: Path) -> None:
    """For its owner alone, with nothing beside it."""
    DiskStore(str(tmp_path)).put(("alice", "s", "state.json"), b"{}", ABSENT)
    path = tmp_path / "alice/s/state.json"
    assert path.read_bytes() == b"{}" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["state.json"]


def test_an_edit_by_a_person_is_another_version(tmp_path: Path) -> None:
    """Also one that leaves the size as it was."""
    store = DiskStore(str(tmp_path))
    version = store.put(("page.md",), b"one", ABSENT)
    (tmp_path / "page.md").write_bytes(b"two")
    with pytest.raises(VersionConflict):
        store.put(("page.md",), b"three", version)
    known = store.get(("page.md",))
    assert known is not None and known.data == b"two"
    store.put(("page.md",), b"three", known.version)


def test_what_is_no_file_is_neither_absent_nor_empty(tmp_path: Path) -> None:
    """A folder in the place of a value."""
    (tmp_path / "k").mkdir()
    with pytest.raises(BrokenFile):
        DiskStore(str(tmp_path)).get(("k",))
    assert DiskStore(str(tmp_path)).get(("k", "below")) is None


def test_a_leftover_of_a_killed_write_is_no_key(tmp_path: Path) -> None:
    """It has the name of a temporary file."""
    store = DiskStore(str(tmp_path))
    store.put(("k",), b"", ANY)
    (tmp_path / "k.123.tmp").write_bytes(b"half")
    assert store.list(()) == [("k",)]


def test_a_torn_row_behind_the_known_end_is_cut_off_and_a_whole_one_is_a_conflict(tmp_path: Path) -> None:
    """The first is a crash's, the second another writer's."""
    store, path = DiskStore(str(tmp_path)), tmp_path / "log.jsonl"
    end = store.append(("log.jsonl",), b"1\n2\n", 0)
    with path.open("ab") as file:
        file.write(b"tor")
    end = store.append(("log.jsonl",), b"3\n", end)
    assert path.read_bytes() == b"1\n2\n3\n" and end == 6
    for wrong in (4, 8):
        with pytest.raises(VersionConflict):
            store.append(("log.jsonl",), b"4\n", wrong)
    assert path.read_bytes() == b"1\n2\n3\n"


@pytest.mark.parametrize("action", ["put", "delete", "append"])
def test_a_power_cut_at_any_moment_leaves_the_old_value_or_the_new_one(tmp_path: Path, action: str) -> None:
    """And the new one once the call returned; of an append whole rows, and the next one works."""
    root = tmp_path / "root"
    store = DiskStore(str(root))
    end = store.append(("a", "log"), b"1\n", 0)
    store.put(("a", "k"), b"old" * 99, ABSENT)
    acts: dict[str, Callable[[], object]] = {
        "put": lambda: [store.put(("a", "k"), b"new" * 99, ANY), store.put(("b", "c"), b"new", ABSENT)],
        "delete": lambda: store.delete(("a", "k"), ANY),
        "append": lambda: [store.append(("a", "log"), b"2\n", end), store.append(("b", "c"), b"new\n", 0)],
    }
    before = contents(str(root))
    for returned, disk in power_cuts(before, recorded(str(root), acts[action])):
        lay_out(str(root), disk)
        known, made = store.get(("a", "k")), store.get(("b", "c"))
        rows = log.read(store, ("a", "log"))
        found = (known and known.data, rows.data, made and made.data.rstrip(b"\n"))
        new = {
            "put": (b"new" * 99, b"1\n", b"new"),
            "delete": (None, b"1\n", None),
            "append": (b"old" * 99, b"1\n2\n", b"new"),
        }[action]
        assert found == new if returned else (found[0], found[1]) in {(b"old" * 99, b"1\n"), new[:2]}
        store.put(("a", "k"), b"next", ANY)
        log.append(store, ("a", "log"), b"next\n", rows.end)
        assert log.read(store, ("a", "log")).data == rows.data + b"next\n"


def test_a_writer_that_hangs_ends_the_others_in_busy(tmp_path: Path) -> None:
    """They do not wait for a stopped process for ever."""
    store = DiskStore(str(tmp_path), busy_seconds=0.05)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(LockBusy, match=re.escape(str(tmp_path))):
        store.put(("k",), b"", ANY)
    os.close(descriptor)
    store.put(("k",), b"", ANY)


def test_a_link_is_read_and_replaced_and_the_file_behind_it_stays(tmp_path: Path) -> None:
    """Also where the folder of the store is one."""
    (tmp_path / "far").write_bytes(b"far")
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "root")
    (tmp_path / "root/k").symlink_to(tmp_path / "far")
    store = DiskStore(str(tmp_path / "link"))
    known = store.get(("k",))
    assert known is not None and known.data == b"far"
    store.put(("k",), b"near", known.version)
    assert (tmp_path / "far").read_bytes() == b"far" and (tmp_path / "root/k").read_bytes() == b"near"


def test_what_is_no_key_is_not_listed_and_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    """Files of people and of editors beside the values."""
    store = DiskStore(str(tmp_path))
    store.put(("k",), b"", ANY)
    for name in ("my notes.txt", "k~", "%zz", "%2f", "k.1.tmp"):
        (tmp_path / name).touch()
    assert store.list(()) == [("k",)]
    with pytest.raises(BrokenFile, match="a folder belongs"):
        store.put(("k", "below"), b"", ANY)


def test_versions_differ_though_a_clock_stands_still_or_jumps_back(tmp_path: Path) -> None:
    """A file of the far future is replaced: each write is later than the one before."""
    store = DiskStore(str(tmp_path))
    store.put(("k",), b"A", ANY)
    os.utime(tmp_path / "k", ns=(2**62, 2**62))
    versions = [store.put(("k",), b"A", ANY) for _ in range(9)]
    assert len({version.split("-")[1] for version in versions}) == 9


def test_a_folder_that_cannot_be_locked_has_a_lock_file(tmp_path: Path) -> None:
    """As on NFS, where flock of a folder fails; the file is no key."""
    words = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=flock", "-e", "inject=flock:error=EBADF:when=1"]
    if why_not():
        pytest.skip("a flock that fails needs strace")
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    script += f"from harness.stores.disk import DiskStore\nDiskStore({str(tmp_path)!r}).put(('k',), b'x', '')"
    subprocess.run([*words, sys.executable, "-c", script], check=True)
    store = DiskStore(str(tmp_path))
    assert (tmp_path / ".folder.lock").exists() and store.list(()) == [("k",)]
