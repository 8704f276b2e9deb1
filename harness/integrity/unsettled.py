"""Whether every run is accounted for: which died and were not settled, and whether the books are as long as they were.

Asked before a mission is started, before a run opens and before DONE is said, so nothing is hashed here.
"""

from __future__ import annotations

import os
import re

from harness.base.errors import BrokenFile
from harness.model import runs
from harness.store import files, journal, migrations
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model.runs import Result

BOOKED = re.compile(rb'^\{\s*"run"\s*:\s*"([^"]+)".*\n', re.M)  # a line that the power cut short is none


def unsettled(layout: Layout, books: bytes | None = None) -> list[str]:
    """Ids of runs that died and were not settled yet. Nobody holds their lock; or their lock is gone, and the `books` (by
    default those on disk, as far as the ledger knows them) do not have them."""
    opened, known = runs.open_runs(layout), booked(layout) if books is None else ids(books)
    dead = [name for name in opened if runs.is_dead(layout, name)]
    others = [name for name in files.names(layout.runs) if name not in known and name not in opened]
    begun = [name for name in others if os.path.lexists(layout.run(name).context)]
    return sorted({*dead, *begun, *({_last_signed(layout)} - {"", *known, *opened})})


def _last_signed(layout: Layout) -> str:
    """The run that signed the mission's lock last; "" where none did."""
    name = files.Lock(layout.mission_lock).holder().get("run")
    return name if isinstance(name, str) and runs.ID.fullmatch(name) else ""


def booked(layout: Layout) -> set[str]:
    """Ids of the runs that the books have, as far as the ledger knows them; none where they are no file."""
    size = _known_length(layout)
    try:
        data = files.read(layout.books) or b""
    except BrokenFile:
        return set()
    return ids(data if size is None else data[:size])


def ids(books: bytes) -> set[str]:
    """Ids of the runs that have a line in these books."""
    return {name.decode("utf-8", "replace") for name in BOOKED.findall(books)}


def _known_length(layout: Layout) -> int | None:
    """How long the ledger says that the books are; None where it does not."""
    try:
        row = journal.read_ledger(layout).get(os.path.basename(layout.books))
    except BrokenFile:  # whoever writes next tells of it
        return None
    return int(row[1]) if row else None


def believed(layout: Layout) -> Iterator[Result]:
    """Finished runs, last first, as far as they are believed: what lies behind the ledger's end while a run is there that
    died, and was not settled, may be that run's own invention."""
    died = any(runs.is_dead(layout, name) for name in runs.open_runs(layout))
    return runs.books(layout, _known_length(layout) if died else None)


def unbooked(layout: Layout) -> list[str]:
    """Ids of the runs that have a result in their folder, and no line in the books."""
    known = booked(layout)
    finished = [name for name in files.names(layout.runs) if os.path.exists(layout.run(name).result)]
    return [name for name in finished if name not in known]


def books_short(layout: Layout) -> bool:
    """Whether lines of the books are missing: they are shorter than the ledger knows them, and nothing is left of them, or
    a finished run has no line. Who mends a line by hand may make them shorter too."""
    known = _known_length(layout)
    if known is not None and files.length(layout.books) >= known:
        return False
    return bool(known and not booked(layout)) or bool(unbooked(layout))


def needs_recovery(layout: Layout) -> bool:
    """Whether a run died and was not settled, lines of the books are missing, or the format is an older one."""
    return bool(unsettled(layout)) or books_short(layout) or migrations.is_due(layout)


def require_books(layout: Layout) -> None:
    """Raises BrokenFile where lines of the books are missing: what was spent would seem to be less than it was."""
    if books_short(layout):
        fault = "it is shorter than the harness left it, so nobody can tell what was spent"
        raise BrokenFile(layout.books, fault, remedy="Start run.sh: it makes the file again, or says what to do.")
