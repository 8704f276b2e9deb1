"""Sixteen writers and kill -9: every acknowledged entry is on disk, whole and once.

The same test runs on appends with a planted bug, and must find it. HARNESS_TORTURE=1 makes it long.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.state import files, journal, names
from harness.state.journal import Journal
from harness.state.layout import Layout
from tests.crash import TORTURE, end, start
from tests.helpers import mission
from tests.journalled import ledger_is_wrong

Append = Callable[[Layout, str, bytes], object]
ENTRIES = 300 if TORTURE else 15
JOURNALS = 100 if TORTURE else 4
KILLS = 400 if TORTURE else 12


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder is empty."""
    return mission(tmp_path)


def without_lock(_: Layout, path: str, data: bytes) -> None:
    """Planted: it reads, changes and replaces the file without a lock."""
    old = files.read(path) or b""
    os.sched_yield()
    files.replace(path, old + data)


def in_two_writes(_: Layout, path: str, data: bytes) -> None:
    """Planted: one line, two writes."""
    with open(path, "ab", buffering=0) as file:
        file.write(data[: len(data) // 2])
        os.sched_yield()
        file.write(data[len(data) // 2 :])


def entry(writer: int, number: int) -> str:
    """A line whose length shows whether it is whole."""
    return f"{writer}.{number} " + "x" * (writer * 131 + number * 37 % 900)


def write_entries(layout: Layout, append: Append, acks: Path, writer: int, count: int) -> None:
    """Append entries; each one is acknowledged in the writer's own file once its append returns."""
    for number in range(count):
        line = entry(writer, number).encode() + b"\n"
        append(layout, layout.path(names.RAW), line)
        with open(acks / str(writer), "ab", buffering=0) as file:
            file.write(line)


def faults(layout: Layout, acks: Path) -> set[str]:
    """Faults of the entries: lost, doubled, torn, or cut (a partial entry, as a kill may leave it)."""
    lines = (files.read_text(layout.path(names.RAW)) or "").split("\n")
    kinds = [kind(line) for line in lines[:-1]]
    found = set(kinds) - {"whole"} | ({"cut"} if lines[-1] else set())
    acknowledged = {line for path in acks.iterdir() for line in path.read_text().split("\n")[:-1]}
    whole = [line for line, word in zip(lines, kinds, strict=False) if word == "whole"]
    found |= {"lost"} if acknowledged - set(whole) else set()
    return found | ({"doubled"} if len(set(whole)) != len(whole) else set())


def kind(line: str) -> str:
    """`whole`, `cut` for the beginning of an entry, or `torn`."""
    writer, _, number = line.split(" ")[0].partition(".")
    if not (writer + number).isdigit():
        return "torn"
    expected = entry(int(writer), int(number or 0))
    return "whole" if line == expected else "cut" if expected.startswith(line) else "torn"


def sixteen(layout: Layout, append: Append, acks: Path, count: int) -> set[str]:
    """Sixteen processes append at once, released at the same time; returns the faults."""
    gate = files.Lock(layout.path(names.LOCKS) + "/gate")
    gate.take()

    def write(writer: int) -> None:
        gate.release()  # the descriptor inherited through fork would keep the gate shut
        with files.Lock(gate.path):
            pass
        write_entries(layout, append, acks, writer, count)

    children = [start(functools.partial(write, writer)) for writer in range(16)]
    gate.release()
    codes = [end(child) for child in children]
    return faults(layout, acks) | ({f"codes {codes}"} if any(codes) else set())


@pytest.fixture
def acks(tmp_path: Path) -> Path:
    """Where writers note what was acknowledged."""
    folder = tmp_path / "acks"
    folder.mkdir()
    return folder


def test_torture_sixteen_writers_lose_tear_and_double_nothing(layout: Layout, acks: Path) -> None:
    """Every entry is there once, whole."""
    assert sixteen(layout, journal.append, acks, ENTRIES) == set()
    assert len((files.read(layout.path(names.RAW)) or b"").split(b"\n")) == 16 * ENTRIES + 1


def test_torture_finds_a_missing_lock(layout: Layout, acks: Path) -> None:
    """A planted bug."""
    assert sixteen(layout, without_lock, acks, 15)


def test_torture_finds_lines_in_two_writes(layout: Layout, acks: Path) -> None:
    """A planted bug."""
    assert "torn" in sixteen(layout, in_two_writes, acks, 15)


def test_torture_journals_and_appends_get_along(layout: Layout, acks: Path) -> None:
    """Eight processes write journals over several files, eight append; nothing is lost and the ledger matches."""

    def write(writer: int) -> None:
        if writer % 2:
            write_entries(layout, journal.append, acks, writer, ENTRIES)
            return
        for number in range(JOURNALS):
            changes = Journal(layout)
            changes.replace(layout.path(names.FEATURES), b"%d\n" % number)
            changes.append(layout.path(names.ISSUES), entry(writer, number).encode() + b"\n")
            changes.commit()

    children = [start(functools.partial(write, writer)) for writer in range(16)]
    assert [end(child) for child in children] == [0] * 16
    assert faults(layout, acks) == set()
    lines = (files.read_text(layout.path(names.ISSUES)) or "").split("\n")[:-1]
    assert sorted(lines) == sorted(entry(writer, number) for writer in range(0, 16, 2) for number in range(JOURNALS))
    assert not ledger_is_wrong(layout)


def test_torture_kill_loses_no_acknowledged_entry(layout: Layout, acks: Path) -> None:
    """Four writers; again and again one is killed at a random moment and another replaces it.

    A kill can tear the line being written (16 of 400, where it crosses a page); that line is closed and kept.
    """
    dice = random.Random(3)
    fresh = itertools.count()
    children: list[int] = []
    for _ in range(KILLS):
        while len(children) < 4:
            writer = next(fresh)
            children.append(start(functools.partial(write_entries, layout, journal.append, acks, writer, 9999)))
        time.sleep(dice.random() * 0.03)
        victim = children.pop(dice.randrange(4))
        os.kill(victim, 9)
        assert end(victim) == -9
    for child in children:
        os.kill(child, 9)
        end(child)
    assert faults(layout, acks) - {"cut"} == set()
