"""A journal or an append stopped at any call, and every disk that a power cut may leave of it.

The same enumeration runs on variants with a planted bug, and must find it. HARNESS_TORTURE=1 makes it long.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile
from harness.state import files, journal, names
from harness.state.journal import Journal
from harness.state.layout import Layout
from tests.crash import TORTURE, contents, in_child, lay_out, power_cuts, recorded, stop_at, stops
from tests.helpers import mission, put
from tests.journalled import change, finish, ledger_is_wrong, old_state, state

Append = Callable[[Layout, str, bytes], object]


@pytest.fixture
def layout() -> Iterator[Layout]:
    """A mission whose folder is empty; in memory if possible, because this model involves no disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield mission(Path(folder))


def rewrite_in_place(layout: Layout, path: str, data: bytes) -> None:
    """Planted: it rewrites the whole file in place, under the lock."""
    with files.Lock(layout.path(names.STATE_LOCK)):
        files.stage(path, (files.read(path) or b"") + data)
        files.sync_folder(os.path.dirname(path))


def plain_append(_: Layout, path: str, data: bytes) -> None:
    """Planted: it never closes a torn line."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)
    files.sync_folder(os.path.dirname(path))


def without_fsync(layout: Layout, path: str, data: bytes) -> None:
    """Planted: it acknowledges before the data is durable."""
    with files.Lock(layout.path(names.STATE_LOCK)):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        files.add_lines(descriptor, data)
        os.close(descriptor)
    files.sync_folder(os.path.dirname(path))


def without_folder_fsync(_: Layout, path: str, data: bytes) -> None:
    """Planted: the bytes of a new file are durable, its name is not."""
    files.add_line(path, data)


class WithoutRecord(Journal):
    """Planted: it replaces each file atomically, one after the other."""

    def _commit(self) -> None:
        ledger = journal.read_ledger(self.layout)
        for path, tail in self.tails.items():
            self.contents[path] = (files.read(path) or b"") + tail
        for path, data in self.contents.items():
            files.remove(path) if data is None else files.replace(path, data)
            journal.note_in_ledger(self.layout, ledger, path, data)
        files.replace(self.layout.path(names.LEDGER), files.dump_json(ledger))


class WithoutSync(Journal):
    """Planted: it renames the record into place before the files it names are durable."""

    def _stage(self, steps: list[list[Any]], path: str, verb: str, data: bytes | None, offset: int = 0) -> None:
        real = os.fsync
        setattr(os, "fsync", abs)  # noqa: B010 - does nothing; a plain assignment does not pass the type checker
        super()._stage(steps, path, verb, data, offset)
        os.fsync = real


def stopped_everywhere(layout: Layout, kind: type[Journal]) -> Iterator[str]:
    """The journal stopped at each call in turn; returns the state after recovery."""
    old_state(layout)
    before = contents(layout.state)
    for _ in stops(lambda: change(layout, kind)):
        finish(layout)
        yield state(layout)
        lay_out(layout.state, before)


def test_a_journal_killed_at_any_call_leaves_all_or_nothing(layout: Layout) -> None:
    """Before the commit nothing, after it everything; the ledger matches in both cases."""
    states = list(stopped_everywhere(layout, Journal))
    assert len(states) > 15
    assert [word for word, _ in itertools.groupby(states)] == ["old", "new"]


def test_crashes_find_a_journal_without_record(layout: Layout) -> None:
    """A planted bug."""
    assert any(word not in ("old", "new") for word in stopped_everywhere(layout, WithoutRecord))


def stopped_change(layout: Layout, number: int) -> None:
    """The journal, stopped at one call."""
    stop_at(number)
    change(layout)


def test_recovery_killed_at_any_call_can_be_repeated(layout: Layout) -> None:
    """Killed at its n-th call and finished by the next recovery, and once more: always the same result."""
    old_state(layout)
    before = contents(layout.state)
    for first in range(1, 40, 1 if TORTURE else 4):
        lay_out(layout.state, before)
        if in_child(functools.partial(stopped_change, layout, first)) == 0:
            break
        crashed = contents(layout.state)
        ends = set()
        for _ in stops(lambda: finish(layout)):
            finish(layout)
            assert finish(layout) is False
            ends.add(state(layout))
            lay_out(layout.state, crashed)
        assert ends in ({"old"}, {"new"})


def test_what_others_append_between_a_crash_and_the_recovery_is_kept(layout: Layout) -> None:
    """Every append finishes the journal first, also in the files that the journal changes."""
    old_state(layout)
    before = contents(layout.state)
    for _ in stops(lambda: change(layout)):
        journal.append(layout, layout.path(names.RAW), b"other\n")
        changes = Journal(layout)
        changes.append(layout.path(names.ISSUES), b"other\n")
        changes.commit()
        finish(layout)
        assert files.read(layout.path(names.RAW)) == b"kept\nother\n"
        assert files.read(layout.path(names.ISSUES)) in (b"one\nother\n", b"one\ntwo\nthree\nother\n")
        assert not ledger_is_wrong(layout)
        lay_out(layout.state, before)


def cut_journals(layout: Layout, kind: type[Journal]) -> Iterator[tuple[bool, str]]:
    """For every disk: whether the commit had returned, and the state after recovery."""
    old_state(layout)
    before = contents(layout.state)
    log = recorded(layout.state, lambda: change(layout, kind))
    for returned, disk in power_cuts(before, log):
        lay_out(layout.state, disk)
        try:
            finish(layout)
            yield returned, state(layout)
        except BrokenFile:
            yield returned, "broken"


def test_a_power_cut_leaves_all_or_nothing_of_a_journal_and_all_once_it_returned(layout: Layout) -> None:
    """`crash.py` models what a disk may have kept."""
    found = set(cut_journals(layout, Journal))
    assert found == {(False, "old"), (False, "new"), (True, "new")}


@pytest.mark.parametrize("kind", [WithoutRecord, WithoutSync])
def test_power_cuts_find_planted_bugs_in_a_journal(layout: Layout, kind: type[Journal]) -> None:
    """Half a change, or an empty file."""
    assert any(found not in {(False, "old"), (False, "new"), (True, "new")} for found in cut_journals(layout, kind))


def cut_appends(layout: Layout, append: Append, before: bytes | None) -> set[str]:
    """What goes wrong when an append is interrupted anywhere and another one follows."""
    if before is not None:
        put(layout.path(names.RAW), before)
    disks = contents(layout.state)
    log = recorded(layout.state, lambda: append(layout, layout.path(names.RAW), b"second\n"))
    found = set()
    for returned, disk in power_cuts(disks, log):
        lay_out(layout.state, disk)
        os.makedirs(os.path.dirname(layout.path(names.RAW)), exist_ok=True)
        append(layout, layout.path(names.RAW), b"third\n")
        lines = (files.read(layout.path(names.RAW)) or b"").split(b"\n")
        found |= {"first lost"} if before and lines[0] != b"first" else set()
        found |= {"second lost"} if returned and b"second" not in lines else set()
        found |= {"third glued"} if lines[-2:] != [b"third", b""] else set()
        found |= {"NUL"} if b"\0" in b"".join(lines) else set()
    return found


@pytest.mark.parametrize("before", [None, b"first\n"])
def test_a_power_cut_loses_no_acknowledged_entry(layout: Layout, before: bytes | None) -> None:
    """In a new file and in an existing one; a torn line stays as a line of its own."""
    assert cut_appends(layout, journal.append, before) == set()


@pytest.mark.parametrize(
    ("append", "before", "fault"),
    [
        (rewrite_in_place, b"first\n", "first lost"),
        (plain_append, b"first\n", "third glued"),
        (without_fsync, b"first\n", "second lost"),
        (without_folder_fsync, None, "second lost"),
    ],
)
def test_power_cuts_find_planted_bugs_in_an_append(
    layout: Layout, append: Append, before: bytes | None, fault: str
) -> None:
    """Each shows up as a user would see it."""
    assert fault in cut_appends(layout, append, before)


class Stop(BaseException):
    """Represents a writer that died."""


def die() -> None:
    """End this append, not the process: the next one follows in it."""
    raise Stop


def test_a_writer_that_dies_in_its_first_append_takes_nobodys_entry_along(layout: Layout) -> None:
    """The next writer's acknowledged entry survives a power cut, although that writer did not create the file."""
    for number in range(1, 4):
        lay_out(layout.state, {})
        os.makedirs(layout.state + "/memory")

        def two(at: int = number) -> None:
            stop_at(at, die)
            with contextlib.suppress(Stop):
                journal.append(layout, layout.path(names.RAW), b"first\n")
            journal.append(layout, layout.path(names.RAW), b"second\n")

        for returned, disk in power_cuts({}, recorded(layout.state, two)):
            assert not returned or b"second\n" in disk.get(layout.path(names.RAW), b"")
