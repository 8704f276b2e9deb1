"""A mission's state before and after one journal over many files, for the tests that interrupt it."""

from __future__ import annotations

from harness.state import files, journal, names
from harness.state.journal import Journal
from harness.state.layout import Layout
from tests.helpers import put


def old_state(layout: Layout) -> None:
    """Content for every kind of file that the journal below changes."""
    put(layout.path(names.FEATURES), "old\n")
    put(layout.path(names.ESCALATION), "answered\n")
    put(layout.path(names.ISSUES), "one\n")
    put(layout.path(names.RAW), "kept\n")
    journal.adopt(layout)


def change(layout: Layout, kind: type[Journal] = Journal) -> None:
    """Replaces or creates two files, removes one, and adds lines to an existing file and to a missing one."""
    changes = kind(layout)
    changes.replace(layout.path(names.FEATURES), b"new\n")
    changes.replace(layout.path(names.CURATED), b"{}\n")
    changes.remove(layout.path(names.ESCALATION))
    changes.append(layout.path(names.ISSUES), b"two\nthree\n")
    changes.append(layout.path(names.RUN_LOG), b"run\n")
    changes.commit()


def ledger_is_wrong(layout: Layout) -> bool:
    """Whether the ledger differs from the disk."""
    ledger = journal.read_ledger(layout)
    return ledger != journal.adopt(layout)


def state(layout: Layout) -> str:
    """`old`, `new`, or a description of what is half done."""
    paths = (
        layout.path(names.FEATURES),
        layout.path(names.CURATED),
        layout.path(names.ESCALATION),
        layout.path(names.ISSUES),
        layout.path(names.RUN_LOG),
        layout.path(names.RAW),
    )
    found = [files.read(path) for path in paths]
    word = {
        (b"old\n", None, b"answered\n", b"one\n", None, b"kept\n"): "old",
        (b"new\n", b"{}\n", None, b"one\ntwo\nthree\n", b"run\n", b"kept\n"): "new",
    }.get(tuple(found), f"half: {found}")  # type: ignore[arg-type] # a list's length is not known
    return f"{word}, and the ledger is wrong" if ledger_is_wrong(layout) else word


def finish(layout: Layout) -> bool:
    """The first step of recovery."""
    with files.Lock(layout.path(names.STATE_LOCK)):
        return journal.finish_journal(layout)
