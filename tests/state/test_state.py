"""State is read by name with its version, and changed all or nothing, and only where it is as expected."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, VersionConflict
from harness.state import files, journal, names
from harness.state.layout import Layout
from harness.state.state import ABSENT, Changes, State
from tests.helpers import mission, put


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission whose folder is empty."""
    return mission(tmp_path)


@pytest.fixture
def state(layout: Layout) -> State:
    """Its state."""
    return State(layout)


def test_absent_empty_and_broken_are_three_answers(layout: Layout, state: State) -> None:
    """None without a version; no bytes with one; an error with the path."""
    assert tuple(state.read(names.FEATURES)) == (None, ABSENT)
    put(layout.path(names.FEATURES), "")
    assert tuple(state.read(names.FEATURES)) == (b"", files.digest(b""))
    os.unlink(layout.path(names.FEATURES))
    os.mkdir(layout.path(names.FEATURES))
    with pytest.raises(BrokenFile, match=r"features\.json"):
        state.read(names.FEATURES)
    put(layout.path(names.CONFIG), b"\xff")
    with pytest.raises(BrokenFile, match="not UTF-8"):
        state.text(names.CONFIG)


def test_a_version_is_a_digest_or_a_length_with_the_curation(layout: Layout, state: State) -> None:
    """A managed file has that of its content; an append-only one needs not be read; raw.md can shrink, and its version tells."""
    state.put(names.FEATURES, b"one\n")
    assert state.version(names.FEATURES) == files.digest(b"one\n")
    state.append(names.ISSUES, b"{}\n")
    assert (state.version(names.ISSUES), state.read(names.ISSUES).version) == ("3", "3")
    state.append(names.RAW, b"a note\n")
    before = state.version(names.RAW)
    put(layout.path(names.CURATED), json.dumps({"generation": 4}))
    assert (before, state.version(names.RAW), state.version(names.ARCHIVE)) == ("7.0", "7.4", ABSENT)


def test_a_change_lands_only_where_the_name_is_as_expected(state: State) -> None:
    """Compare-and-set: the second of two who read the same does not land, and changes nothing else either."""
    state.put(names.FEATURES, b"one")
    _, version = state.read(names.FEATURES)
    state.put(names.FEATURES, b"two", expect=version)
    changes = Changes()
    changes.put(names.FEATURES, b"three", expect=version)
    changes.append(names.ISSUES, b"{}\n")
    with pytest.raises(VersionConflict, match=r"features\.json changed during the operation"):
        state.commit(changes)
    assert (state.data(names.FEATURES), state.data(names.ISSUES)) == (b"two", None)
    with pytest.raises(VersionConflict):
        state.put(names.ESCALATION, b"second", expect=state.version(names.FEATURES))
    state.put(names.ESCALATION, b"first", expect=ABSENT)
    with pytest.raises(VersionConflict):
        state.put(names.ESCALATION, b"second", expect=ABSENT)


def test_a_person_who_edits_by_hand_is_somebody_else_too(layout: Layout, state: State) -> None:
    """They take no lock; their content differs, and that is enough."""
    state.put(names.FEATURES, b"one")
    version = state.version(names.FEATURES)
    put(layout.path(names.FEATURES), "by hand")
    with pytest.raises(VersionConflict):
        state.put(names.FEATURES, b"two", expect=version)
    assert state.data(names.FEATURES) == b"by hand"


def test_changes_land_together_and_the_ledger_has_them(layout: Layout, state: State) -> None:
    """What a run's own files hold is in the same commit, and has no row."""
    changes = Changes()
    changes.put(names.FEATURES, b"queue")
    changes.put(names.of_run("7-worker", names.RESULT), b"{}\n")
    changes.append(names.RUN_LOG, b"{}\n")
    changes.append(names.RUN_LOG, b"[]\n")
    changes.append(names.RAW, b"a note\n")
    state.commit(changes)
    assert state.data(names.of_run("7-worker", names.RESULT)) == b"{}\n"
    assert (state.data(names.RUN_LOG), state.data(names.RAW)) == (b"{}\n[]\n", b"a note\n")
    assert journal.read_ledger(layout) == {"features.json": [files.digest(b"queue"), 5], "runs.jsonl": ["", 6]}
    state.remove(names.FEATURES)
    assert list(journal.read_ledger(layout)) == ["runs.jsonl"]
    assert state.list("") == ["journal", "ledger.json", "locks", "memory", "runs", "runs.jsonl"]


def test_a_note_of_a_commit_goes_behind_lines_that_others_wrote_meanwhile(layout: Layout, state: State) -> None:
    """A person's editor takes no lock: the line that came between staging and applying stays, and the note follows, once."""
    put(layout.path(names.RAW), "old\n")
    os.makedirs(layout.path(names.JOURNAL))
    put(f"{layout.path(names.JOURNAL)}/0", "note\n")
    steps = [["append", layout.path(names.RAW), f"{layout.path(names.JOURNAL)}/0", 4]]
    put(f"{layout.path(names.JOURNAL)}/record", json.dumps(steps))
    put(layout.path(names.RAW), "old\nby hand\n")
    with state.lock("state"):
        assert journal.finish_journal(layout)
    assert state.data(names.RAW) == b"old\nby hand\nnote\n"
    put(f"{layout.path(names.JOURNAL)}/0", "note\n")
    put(f"{layout.path(names.JOURNAL)}/record", json.dumps(steps))
    with state.lock("state"):
        assert journal.finish_journal(layout)
    assert state.data(names.RAW) == b"old\nby hand\nnote\n"


def add_ten(layout: Layout) -> None:
    """Ten times one more, by compare-and-set."""
    state = State(layout)
    for _ in range(10):
        while True:
            data, version = state.read(names.FEATURES)
            try:
                state.put(names.FEATURES, str(int(data) + 1).encode(), expect=version)
                break
            except VersionConflict:
                continue


def test_no_update_of_several_writers_is_lost(layout: Layout, state: State) -> None:
    """Four processes count to forty in one file."""
    state.put(names.FEATURES, b"0")
    writers = [multiprocessing.Process(target=add_ten, args=(layout,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert state.data(names.FEATURES) == b"40"
