"""tasks/<id>/ below the folder of a run: `task.json` says what a subagent was asked and how it ended; beside it its turns."""

from __future__ import annotations

import os
from typing import Any

from harness.base import clock, encoding, redaction, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.state import files, names

RUNNING, OK, CANCELLED, ENDED = "running", "ok", "cancelled", "ended"
"""How a task stands, besides the outcomes of runs: at work; answered; ended by whoever started it; ended with that."""
MAX_TEXT_CHARS = 100_000  # characters of a task or an answer that are kept


class Task(Record):
    """One task. `parent`: the task that it was started by, "" for the run itself; `depth` of a task of the run: 1; `mode` and
    `folder`: where it worked; `asked`: the task, then what was said to it later; `status`: how it stands, or ended, and why;
    `turns`: the requests; `usage`: its own, which the run's has, too; `log`: the digest of its turns.jsonl."""

    id: str
    agent: str
    parent: str
    depth: int
    mode: str
    folder: str
    model: str
    asked: list[str]
    at: str
    background: bool = False
    status: str = RUNNING
    reason: str = ""
    reply: str = ""
    ended: str = ""
    seconds: float = 0.0
    turns: int = 0
    usage: dict[str, Any] = {}
    log: str = ""


def path_of(folder: str, task: str) -> str:
    """The record of a task below the folder of tasks."""
    return os.path.join(folder, task, names.TASK)


def keep(folder: str, task: Task) -> None:
    """Write the record, whole and durable."""
    row = {**task.asdict(), "asked": [text[:MAX_TEXT_CHARS] for text in task.asked]}
    data = encoding.dump_json(redaction.received_value(row))
    files.make_folder(os.path.join(folder, task.id))
    files.replace(path_of(folder, task.id), data, files.PRIVATE)


def of_run(folder: str) -> list[Task]:
    """The tasks below the folder of tasks of a run, in the order of their beginning. Raises BrokenFile."""
    found = [task for name in files.names(folder) if (task := _read(folder, name)) is not None]
    return sorted(found, key=lambda task: (task.at, number_of(task.id)))


def _read(folder: str, name: str) -> Task | None:
    row = files.read_json(path_of(folder, name))
    try:
        return None if row is None else schema.record(Task, row, "a task has")
    except (TypeError, schema.InvalidField) as fault:
        raise BrokenFile(path_of(folder, name), str(fault), line=1, remedy="Restore it from a copy.") from None


def end_all(folder: str) -> None:
    """The run has ended, and none of its tasks works any more: those that a kill left at work are recorded as ended. A file that
    is no record stays as it is."""
    for name in files.names(folder):
        try:
            found = _read(folder, name)
        except BrokenFile:
            continue
        if found is not None and found.status == RUNNING:
            keep(folder, found.replace(status=ENDED, reason="its run was cut off", ended=clock.stamp(clock.now())))


def number_of(task: str) -> int:
    """The number at the end of a task's id; 0 for none."""
    last = task.rpartition("-")[2]
    return int(last) if last.isdecimal() else 0
