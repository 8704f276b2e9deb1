"""A turn of a team as a run: of the role that answers, in a mission of the thread's own, so by any agent, here or elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from harness.base import clock, errors
from harness.base.errors import Interruption, LockBusy, UsageFault
from harness.decision import person_notes
from harness.mission import lease, runs
from harness.mission.open_run import OpenRun
from harness.run import starting, steps
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State
from harness.team.turn import TurnTask
from harness.workplace import inbox, workplace

MISSION, STATUS = "mission", "status"  # the folder of the mission, and the verb of its inbox


class TurnRun:
    """The run of one turn. `home`: whose config.toml counts; `agents`: instead of those that it names; `by`: who asks."""

    def __init__(self, home: Layout, agents: list[str], by: str) -> None:
        self.config, self.agents, self.by = State(home).data(names.CONFIG) or b"", agents, by
        self.layout, self.code, self.run = home, errors.DONE, ""

    def workspace(self, folder: str) -> str:
        """The tree of the mission in a thread's folder; a run that died there is settled. Raises LockBusy until it has ended."""
        self.layout = Layout(f"{folder}/{MISSION}")
        starting.found_apart(self.layout, os.path.basename(folder))
        made = starting.start(self.layout)
        if alive := lease.alive(self.layout):
            raise LockBusy(f"The run {alive[0].run} of this thread has not ended. Wait for its end, then try again.")
        return workplace.folder_of(made.id)

    def answer(self, task: TurnTask) -> str:
        """Let an agent answer in the workspace. Raises Interruption if that was interrupted."""
        layout = self.layout
        State(layout).put(names.CONFIG, self.config)
        workplace.take_in(layout, task.folder, task.paths)
        if task.prompt not in [row.text for row in person_notes.waiting(layout)]:  # of a turn that died
            person_notes.add(layout, task.prompt, self.by, clock.stamp(clock.now()))
        self.code, text = steps.answer(
            layout, self.agents, {STATUS: partial(_carried_out, {one.__name__: one for one in task.tools})}
        )
        if self.code >= errors.SIGNALLED:
            raise Interruption(self.code - errors.SIGNALLED)
        self.run = next(runs.finished(layout)).run
        return text


def _carried_out(known: dict[str, Callable[..., Any]], run: OpenRun, tool: str, given: str) -> Iterator[str]:
    """What the inbox of the run does for `ask`: a verb on the thread's status, with its arguments as JSON."""
    if tool not in known:
        raise UsageFault(f"Inside of a turn there are {', '.join(known)}, and not {tool}.")
    yield json.dumps(known[tool](**json.loads(given)))


def ask(layout: Layout, run: str, kind: str, verb: str, given: dict[str, str]) -> dict[str, Any]:
    """Let the turn that this process is in carry out a verb; returns the row. Raises as the verb."""
    tool = f"{kind}_{'add' if verb == 'add' else 'status'}"
    words = given if verb == "add" else {kind: given.pop("name", ""), "verb": verb, **given}
    (text,) = inbox.ask(layout, run, STATUS, tool, json.dumps(words))
    return {name: one for name, one in json.loads(text).items() if name != "files"}
