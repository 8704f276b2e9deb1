"""Changes that belong together are written together, and the ledger always matches what was written."""

from __future__ import annotations

import os
import random
import resource
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.state import files, journal, names
from harness.state.journal import Journal
from harness.state.layout import Layout
from tests.crash import RAISED, in_child
from tests.helpers import mission, put


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder is empty."""
    return mission(tmp_path)


def ledger_faults(layout: Layout) -> list[str]:
    """Paths of managed and append-only files whose ledger entry differs from the disk."""
    ledger = journal.read_ledger(layout)
    found = []
    for path in (*layout.managed(), *layout.append_only()):
        data = files.read(path)
        grows = path in layout.append_only()
        fits = None if data is None else ["" if grows else files.digest(data), len(data)]
        if ledger.get(os.path.relpath(path, layout.state)) != fits:
            found.append(path)
    return found


def test_an_append_says_where_its_lines_begin(layout: Layout) -> None:
    """Offsets serve readers that continue where they were."""
    assert [
        journal.append(layout, layout.path(names.RAW), line) for line in (b"one\n", b"two\nthree\n", b"four\n")
    ] == [0, 4, 14]
    assert files.read(layout.path(names.RAW)) == b"one\ntwo\nthree\nfour\n"


def test_an_append_takes_whole_lines_only(layout: Layout) -> None:
    """Half a line would be torn from the start."""
    with pytest.raises(ValueError, match="whole lines"):
        journal.append(layout, layout.path(names.RAW), b"half")
    assert files.read(layout.path(names.RAW)) is None


def test_an_append_closes_a_torn_line_and_keeps_it(layout: Layout) -> None:
    """Text torn by a power cut stays as a line of its own; NUL bytes after it are removed."""
    put(layout.path(names.RAW), b"whole\ntorn\0\0\0")
    assert journal.append(layout, layout.path(names.RAW), b"next\n") == 11
    assert files.read(layout.path(names.RAW)) == b"whole\ntorn\nnext\n"


def test_nothing_is_touched_before_the_commit(layout: Layout) -> None:
    """A dropped journal has no effect."""
    changes = Journal(layout)
    changes.replace(layout.path(names.FEATURES), b"x")
    changes.append(layout.path(names.ISSUES), b"y\n")
    assert sorted(os.listdir(layout.state)) == ["locks", "memory"]


def test_an_empty_journal_writes_nothing(layout: Layout) -> None:
    """Without lines there is no change and no write."""
    changes = Journal(layout)
    changes.append(layout.path(names.ISSUES), b"")
    changes.commit()
    assert sorted(os.listdir(layout.state)) == ["locks", "memory"]


def test_a_commit_replaces_removes_and_appends(layout: Layout) -> None:
    """The last change of a file counts; lines add up; nothing stays in the journal's folder."""
    put(layout.path(names.ESCALATION), "answered")
    put(layout.path(names.ISSUES), "one\n")
    changes = Journal(layout)
    changes.replace(layout.path(names.FEATURES), b"first word")
    changes.replace(layout.path(names.FEATURES), b"last word")
    changes.remove(layout.path(names.ESCALATION))
    changes.append(layout.path(names.ISSUES), b"two\n")
    changes.append(layout.path(names.ISSUES), b"three\n")
    changes.commit()
    assert files.read(layout.path(names.FEATURES)) == b"last word"
    assert not os.path.exists(layout.path(names.ESCALATION))
    assert files.read(layout.path(names.ISSUES)) == b"one\ntwo\nthree\n"
    assert os.listdir(layout.path(names.JOURNAL)) == []


@pytest.mark.parametrize(
    ("old", "healed"),
    [
        (b'{"torn\0\0', b""),
        (b'{"a":1}\n{"torn', b'{"a":1}\n'),
        (b'{"whole":1}\0', b'{"whole":1}\n'),
        (b'{"a":1}\n\0\0', b'{"a":1}\n'),
    ],
)
def test_a_commit_heals_a_torn_last_line(layout: Layout, old: bytes, healed: bytes) -> None:
    """A line that lacks only its newline gets it, any other is removed: no broken line remains. The ledger has the length."""
    put(layout.path(names.ISSUES), old)
    changes = Journal(layout)
    changes.append(layout.path(names.ISSUES), b"next\n")
    changes.commit()
    assert files.read(layout.path(names.ISSUES)) == healed + b"next\n"
    journal.adopt(layout)
    assert ledger_faults(layout) == []


@pytest.mark.parametrize("old", [b"a much longer old content\n", b"", b"torn"])
@pytest.mark.parametrize("new", [b"1\n", b"1", None])
def test_lines_go_behind_a_replacement_in_the_same_journal(layout: Layout, old: bytes, new: bytes | None) -> None:
    """Never at the offset where the old content ended."""
    put(layout.path(names.ISSUES), old)
    changes = Journal(layout)
    if new is None:
        changes.remove(layout.path(names.ISSUES))
    else:
        changes.replace(layout.path(names.ISSUES), new)
    changes.append(layout.path(names.ISSUES), b"line\n")
    changes.commit()
    assert files.read(layout.path(names.ISSUES)) == ((new or b"").rstrip(b"\n") + b"\n").lstrip(b"\n") + b"line\n"
    assert ledger_faults(layout) == []


def test_a_commit_under_the_callers_lock_does_not_wait_for_itself(layout: Layout) -> None:
    """`locked` means that the caller holds the state lock."""
    changes = Journal(layout)
    changes.replace(layout.path(names.FEATURES), b"x")
    with files.Lock(layout.path(names.STATE_LOCK)):
        changes.commit(locked=True)
    assert files.read(layout.path(names.FEATURES)) == b"x"


def shuffled_commit(layout: Layout, dice: random.Random) -> None:
    """One journal of a few random changes."""
    changes = Journal(layout)
    for _ in range(dice.randrange(1, 6)):
        data = bytes(dice.choice(b"ab\n") for _ in range(dice.randrange(30))) + b"\n"
        match dice.randrange(4):
            case 0:
                changes.remove(dice.choice(layout.managed()))
            case 1 | 2:
                changes.replace(dice.choice(layout.managed()), data)
            case _:
                changes.append(dice.choice(layout.append_only()), data)
    changes.commit()


def test_the_ledger_fits_after_any_sequence_of_journals(layout: Layout) -> None:
    """Reconcile restores whatever differs from the ledger: the ledger must include every write of ours."""
    dice = random.Random(11)
    for _ in range(60):
        shuffled_commit(layout, dice)
        assert ledger_faults(layout) == []


def test_the_ledger_keeps_nothing_but_live_and_grown_files(layout: Layout) -> None:
    """raw.md is open to every writer, and a run's own files have their run digest."""
    changes = Journal(layout)
    for path in (layout.path(names.RAW), layout.run("r").result, layout.path(names.FEATURES)):
        changes.replace(path, b"x\n")
    changes.commit()
    assert list(journal.read_ledger(layout)) == ["features.json"]


def test_what_people_changed_between_runs_is_adopted(layout: Layout) -> None:
    """A ledger that already matches is left alone."""
    put(layout.path(names.CONFIG), 'agent = "playbook"\n')
    put(layout.path(names.ISSUES), "{}\n")
    assert journal.adopt(layout) == journal.read_ledger(layout)
    assert ledger_faults(layout) == []
    before = os.stat(layout.path(names.LEDGER)).st_ino
    journal.adopt(layout)
    assert os.stat(layout.path(names.LEDGER)).st_ino == before


def test_without_a_record_there_is_nothing_to_finish(layout: Layout) -> None:
    """Leftovers of a journal that was never committed are not applied."""
    put(layout.path(names.JOURNAL) + "/0", "staged")
    with files.Lock(layout.path(names.STATE_LOCK)):
        assert journal.finish_journal(layout) is False
    put(layout.path(names.FEATURES), "old")
    changes = Journal(layout)
    changes.replace(layout.path(names.CURATED), b"x")
    changes.commit()
    assert (files.read(layout.path(names.FEATURES)), files.read(layout.path(names.CURATED))) == (b"old", b"x")


@pytest.mark.parametrize("name", ["journal/record", "ledger.json"])
def test_a_record_or_ledger_that_does_not_parse_is_named(layout: Layout, name: str) -> None:
    """It is never treated as absent."""
    put(f"{layout.state}/{name}", "{\n[")
    changes = Journal(layout)
    changes.replace(layout.path(names.FEATURES), b"x")
    with pytest.raises(BrokenFile, match=rf"{name}, line 2"):
        changes.commit()


def limited(size: int, action: Callable[[], object]) -> int:
    """Run `action` in a child whose files cannot grow above `size` bytes."""

    def attempt() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        action()

    return in_child(attempt)


def test_a_disk_that_is_full_before_the_commit_changes_nothing(layout: Layout) -> None:
    """The fault is raised, nothing stays in the journal's folder, and the next journal succeeds."""
    changes = Journal(layout)
    changes.replace(layout.path(names.FEATURES), b"x")
    changes.replace(layout.path(names.SPEC), b"x" * 5000)
    assert limited(1000, changes.commit) == RAISED
    assert files.read(layout.path(names.FEATURES)) is None
    assert os.listdir(layout.path(names.JOURNAL)) == []
    changes.commit()
    assert files.length(layout.path(names.SPEC)) == 5000


def test_a_disk_that_is_full_after_the_commit_is_reported_and_finished_later(layout: Layout) -> None:
    """The record stays until every line is complete: no line stays half written."""
    put(layout.path(names.ISSUES), b"x" * 999 + b"\n")
    changes = Journal(layout)
    changes.replace(layout.path(names.FEATURES), b"new")
    changes.append(layout.path(names.ISSUES), b"y" * 499 + b"\n")
    assert limited(1200, changes.commit) == RAISED
    assert limited(1200, lambda: journal.append(layout, layout.path(names.RAW), b"z\n")) == RAISED
    journal.append(layout, layout.path(names.RAW), b"now there is room\n")
    assert files.read(layout.path(names.ISSUES)) == b"x" * 999 + b"\n" + b"y" * 499 + b"\n"
    assert files.read(layout.path(names.FEATURES)) == b"new"
    assert ledger_faults(layout) == []


def test_an_append_that_does_not_fit_is_taken_back(layout: Layout) -> None:
    """No half line remains, and the lock is free."""
    journal.append(layout, layout.path(names.RAW), b"whole\n")
    assert limited(20, lambda: journal.append(layout, layout.path(names.RAW), b"x" * 99 + b"\n")) == RAISED
    assert files.read(layout.path(names.RAW)) == b"whole\n"
    assert files.is_free(layout.path(names.STATE_LOCK))


def test_what_a_kill_left_before_the_record_is_gone_with_the_next_write(layout: Layout) -> None:
    """Also where the record was removed and its contents were not; what lies there besides is not ours."""
    for name in ("0", "7", "record.tmp", "notes"):
        put(f"{layout.path(names.JOURNAL)}/{name}", "half")
    os.mkdir(layout.path(names.JOURNAL) + "/3")
    journal.append(layout, layout.path(names.RAW), b"one\n")
    assert files.names(layout.path(names.JOURNAL)) == ["3", "notes"]


def test_a_file_is_replaced_by_blocks_that_are_read_from_itself(layout: Layout) -> None:
    """One block after another, at the commit; a file that the ledger covers is refused."""
    block = b"x" * 2**20 + b"\n"
    put(layout.path(names.RAW), b"head\n" + block * 40)
    changes = Journal(layout)
    changes.replace_by(layout.path(names.RAW), files.blocks(layout.path(names.RAW), 5))
    changes.replace(layout.path(names.CURATED), b"{}\n")
    journal.append(layout, layout.path(names.RAW), b"tail\n")
    tracemalloc.start()
    changes.commit()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert files.digest(files.read(layout.path(names.RAW)) or b"") == files.digest(block * 40 + b"tail\n")
    assert peak < 3 * 2**20
    assert files.names(layout.path(names.JOURNAL)) == []
    for path in (layout.path(names.CURATED), layout.path(names.ARCHIVE)):
        with pytest.raises(ValueError, match="whole content"):
            changes.replace_by(path, [])
