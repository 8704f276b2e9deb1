"""tasks/<id>/ below a run's folder: `task.json` records a subagent's task and result, next to its turns."""

from __future__ import annotations

import os

from harness.base import clock, encoding, redaction, schema
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.state import files, names

RUNNING, OK, CANCELLED, ENDED = "running", "ok", "cancelled", "ended"
"""States of a task besides the outcomes of runs: working; answered; ended by its parent; ended with its parent."""
MAX_TEXT_CHARS = 100_000  # characters of a stored task or answer


class Task(Record):
    """One task. `parent`: the task that started it, "" for the run; `depth`: 1 for a task of the run; `mode` and
    `folder`: where it worked; `asked`: the task, then later messages to it; `status`: its state or end, and why;
    `turns`: the number of requests; `usage`: its own, included in the run's; `log`: the digest of its turns.jsonl."""

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
    usage: dict[str, Json] = {}
    log: str = ""


def path_of(folder: str, task: str) -> str:
    """The record of a task below the folder of tasks."""
    return os.path.join(folder, task, names.TASK)


def dumped(task: Task) -> bytes:
    """The record as JSON, without secrets."""
    row = {**task.asdict(), "asked": [text[:MAX_TEXT_CHARS] for text in task.asked]}
    return encoding.dump_json(redaction.received_value(row))


def of_run(folder: str) -> list[Task]:
    """The tasks in a run's folder of tasks, in starting order. Raises BrokenFile."""
    found = [task for name in files.names(folder) if (task := _read(folder, name)) is not None]
    return sorted(found, key=lambda task: (task.at, number_of(task.id)))


def _read(folder: str, name: str) -> Task | None:
    row = files.read_json(path_of(folder, name))
    try:
        return None if row is None else schema.record(Task, row, "a task has")
    except (TypeError, schema.InvalidField) as fault:
        raise BrokenFile(path_of(folder, name), str(fault), line=1, remedy="Restore it from a copy.") from None


def end_all(folder: str) -> None:
    """Record tasks that a kill left working as ended, once their run has ended. Invalid files stay as they are."""
    for name in files.names(folder):
        try:
            found = _read(folder, name)
        except BrokenFile:
            continue
        if found is not None and found.status == RUNNING:
            ended = found.replace(status=ENDED, reason="its run was cut off", ended=clock.stamp(clock.now()))
            files.replace(path_of(folder, name), dumped(ended), files.PRIVATE)


def number_of(task: str) -> int:
    """The number at the end of a task's id; 0 without one."""
    last = task.rpartition("-")[2]
    return int(last) if last.isdecimal() else 0
