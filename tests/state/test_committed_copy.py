"""Where agents may overwrite the state, what was committed can be had again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.state import committed_copy, files, journal, names
from harness.state.layout import Layout
from harness.state.state import Changes, State
from tests.helpers import mission, put


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A mission with a queue, an issue and a note, whose committed content is kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    made = mission(tmp_path)
    state = State(made)
    state.put(names.FEATURES, b"one")
    state.append(names.ISSUES, b"{}\n")
    state.append(names.RAW, b"a note\n")
    with state.lock("state"):
        committed_copy.begin(made)
    return made


def test_nothing_is_kept_before_it_is_asked_for(tmp_path: Path) -> None:
    """A confined program cannot overwrite the state, so no copy is needed."""
    made = mission(tmp_path)
    State(made).put(names.FEATURES, b"one")
    assert not committed_copy.is_kept(made)
    assert State(made).list(names.OBJECTS) == []


def test_every_later_commit_can_be_had_again(layout: Layout) -> None:
    """Whole files and lines."""
    changes = Changes()
    changes.put(names.FEATURES, b"two")
    changes.append(names.ISSUES, b"[]\n")
    State(layout).commit(changes)
    put(layout.path(names.FEATURES), "forged")
    put(layout.path(names.ISSUES), "forged")
    assert committed_copy.read(layout, names.FEATURES) == b"two"
    assert not committed_copy.holds(layout, names.ISSUES)
    committed_copy.put_back(layout, names.ISSUES)
    assert files.read(layout.path(names.ISSUES)) == b"{}\n[]\n"


def test_lines_added_to_an_overwritten_file_are_no_part_of_the_copy(layout: Layout) -> None:
    """They were numbered after what is not there; the file goes back to its copy, and they are kept with what is refused."""
    put(layout.path(names.ISSUES), "")
    State(layout).append(names.ISSUES, b"[]\n")
    assert files.read(committed_copy.copy_of(layout, names.ISSUES)) == b"{}\n"


def test_a_commit_that_a_crash_cut_short_is_in_the_copies_once_it_is_finished(layout: Layout) -> None:
    """The copies catch up with what is as the ledger has it: changes, additions and removals, and nothing else."""
    State(layout).put(names.ESCALATION, b"ask")
    changes = journal.Journal(layout)
    changes.replace(layout.path(names.FEATURES), b"two")
    changes.append(layout.path(names.ISSUES), b"[]\n")
    changes.remove(layout.path(names.ESCALATION))
    changes.commit()
    put(layout.path(names.SUMMARY), "forged")
    with State(layout).lock("state"):
        committed_copy.catch_up(layout)
    assert (committed_copy.read(layout, names.FEATURES), committed_copy.read(layout, names.ESCALATION)) == (
        b"two",
        None,
    )
    assert (committed_copy.read(layout, names.ISSUES), committed_copy.read(layout, names.SUMMARY)) == (
        b"{}\n[]\n",
        None,
    )


def test_without_a_ledger_the_copies_stay(layout: Layout) -> None:
    """What is gone from the disk with it was removed by others."""
    put(layout.path(names.LEDGER), "{}")
    files.remove(layout.path(names.FEATURES))
    committed_copy.catch_up(layout)
    assert committed_copy.read(layout, names.FEATURES) == b"one"


def test_a_copy_holds_where_the_file_begins_with_it(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared block by block; a longer file holds, a shorter or different one does not."""
    monkeypatch.setattr(committed_copy, "BLOCK", 2)
    assert committed_copy.holds(layout, names.RAW)
    put(layout.path(names.RAW), "a note\nanother\n")
    assert committed_copy.holds(layout, names.RAW)
    put(layout.path(names.RAW), "a not")
    assert not committed_copy.holds(layout, names.RAW)
    put(layout.path(names.RAW), "a nota\nanother\n")
    assert not committed_copy.holds(layout, names.RAW)


def test_a_curation_begins_the_copy_of_what_it_shortens_anew(layout: Layout) -> None:
    """raw.md is the only append-only file that shrinks."""
    changes = Changes()
    changes.put(names.RAW, b"left\n")
    State(layout).commit(changes)
    assert files.read(committed_copy.copy_of(layout, names.RAW)) == b"left\n"


def test_a_copy_that_does_not_fit_is_made_again_at_the_next_start(layout: Layout) -> None:
    """A person may have edited an append-only file while nothing ran."""
    put(layout.path(names.ISSUES), "edited\n")
    with State(layout).lock("state"):
        journal.adopt(layout)
        committed_copy.begin(layout)
    assert files.read(committed_copy.copy_of(layout, names.ISSUES)) == b"edited\n"


def test_a_file_that_was_never_there_is_put_back_as_absent(layout: Layout) -> None:
    """Nothing was committed, so nothing is there."""
    put(layout.path(names.ORDERS), "forged\n")
    committed_copy.put_back(layout, names.ORDERS)
    assert files.read(layout.path(names.ORDERS)) is None
