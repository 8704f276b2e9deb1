"""What is known of a run that died: its context, whether it had closed, and the state that the ledger records.

A confined run cannot have changed that state. For any other one the ledger and the objects say how the harness left it, and
the run log can be made again from the results of finished runs.
"""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile, UsageFault
from harness.model import runs
from harness.model.runs import Context
from harness.store import files, journal, objects
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Ledger = dict[str, list[Any]]


def context(layout: Layout, run_id: str) -> Context | None:
    """The run's context; None where it has none that can be read."""
    try:
        found = runs.context(layout, run_id)
    except (BrokenFile, UsageFault):
        return None
    return found if found.run == run_id else None


def began(layout: Layout, run_id: str) -> bool:
    """Whether a run without a context had begun: its folder is gone, or contains more than a crash leaves there."""
    paths = layout.run(run_id)
    left = [name for name in files.names(paths.folder) if not name.endswith(".tmp")]
    return bool(left or files.length(paths.lock)) or not os.path.isdir(paths.folder)


def closed(layout: Layout, run_id: str) -> bool:
    """Whether an unsettled run had closed: its line is the last that the ledger covers, and its files match its run digest."""
    row = ledger(layout).get(os.path.basename(layout.run_log))
    known = head(files.read(layout.run_log) or b"", row) if row else None
    line = (known or b"").rstrip(b"\n").rpartition(b"\n")[2] + b"\n"
    found, _ = runs.parse(line)
    if found is None or found.run != run_id or files.read(layout.run(run_id).result) != line:
        return False
    return found.seal == runs.seal(layout.run(run_id))


def ledger(layout: Layout) -> Ledger:
    """The ledger; {} where it does not parse."""
    try:
        return dict(journal.read_ledger(layout))
    except BrokenFile:
        return {}


def managed(
    layout: Layout, path: str, data: bytes | None, row: list[Any] | None, yielded: list[str] | None
) -> bytes | None:
    """The content of a managed file as the ledger records it; None where there was no file."""
    if row is None:
        return None
    if data is not None and files.digest(data) == row[0]:
        return data
    try:
        return objects.get(layout, str(row[0]))
    except BrokenFile:
        _lost(path, yielded)
        return data


def grown(layout: Layout, path: str, data: bytes, row: list[Any] | None, yielded: list[str] | None) -> bytes:
    """The content of an append-only file: its head that the ledger records; for the run log else its reconstruction."""
    if row is None:
        return b""
    candidates = [data, *([_rebuilt(layout)] if path == layout.run_log else [])]
    found = next((good for one in candidates if (good := head(one, row)) is not None), None)
    if found is not None:
        return found
    _lost(path, yielded)
    return salvaged(layout, data) if path == layout.run_log else data


def books(layout: Layout, yielded: list[str] | None) -> bytes:
    """The run log as the ledger records it. Where that is not left, raises BrokenFile, or adds its name to `yielded` and
    returns what can be salvaged."""
    data, row = files.read(layout.run_log) or b"", ledger(layout).get(os.path.basename(layout.run_log))
    return grown(layout, layout.run_log, data, row, yielded) if row else salvaged(layout, data)


def head(data: bytes, row: list[Any]) -> bytes | None:
    """The beginning of `data` that matches a row of the ledger; None where it does not."""
    beginning = data[: int(str(row[1]))]
    return beginning if files.digest(beginning) == row[0] else None


def _lost(path: str, yielded: list[str] | None) -> None:
    """A file that cannot be restored stops the mission until a person accepts it as it is."""
    if yielded is None:
        fault = "it is not as the harness left it, and no copy of that is left"
        remedy = f"Put it back from a copy of the mission, or go on with what is there: {command('doctor --fix')}"
        raise BrokenFile(path, fault, remedy=remedy)
    yielded.append(os.path.basename(path))


def _rebuilt(layout: Layout) -> bytes:
    """The run log, made from the results of finished runs."""
    return _in_order([files.read(layout.run(name).result) or b"" for name in files.names(layout.runs)])


def salvaged(layout: Layout, data: bytes) -> bytes:
    """What is left of the run log: the valid lines in `data`, and the finished runs that these lack."""
    return _in_order([*data.splitlines(keepends=True), *_rebuilt(layout).splitlines(keepends=True)])


def _in_order(lines: list[bytes]) -> bytes:
    """The lines that are finished runs, each once, ordered by their running totals."""
    places: dict[bytes, tuple[int, int]] = {}
    for line in lines:
        found, _ = runs.parse(line)
        if found is not None:
            places.setdefault(line.rstrip(b"\n") + b"\n", (found.total().runs, len(places)))
    return b"".join(line for _, line in sorted((place, line) for line, place in places.items()))
