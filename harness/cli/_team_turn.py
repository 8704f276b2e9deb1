"""A turn of a team as a run: the answering role works in a mission of the thread, with any agent, on any machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial

from harness.base import clock, errors
from harness.base.errors import Interruption, LockBusy, UsageFault
from harness.base.record import Json
from harness.decision import person_notes
from harness.mission import lease, runs
from harness.mission.open_run import OpenRun, Verbs
from harness.run import starting, steps
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State
from harness.team.turn import TurnTask
from harness.workplace import inbox, workplace

MISSION, STATUS = "mission", "status"  # the folder of the mission, and the verb of its inbox


class TurnRun:
    """The run of one turn. `home`: has the config.toml; `agents`: override those of config.toml; `by`: the caller."""

    def __init__(self, home: Layout, agents: list[str], by: str) -> None:
        self.config, self.agents, self.by = State(home).data(names.CONFIG) or b"", agents, by
        self.layout, self.code, self.run = home, errors.DONE, ""

    def workspace(self, folder: str) -> str:
        """The tree of the mission in a thread's folder; a dead run there is settled. Raises LockBusy while a run is open."""
        self.layout = Layout(f"{folder}/{MISSION}")
        starting.found_apart(self.layout, os.path.basename(folder))
        made = starting.start(self.layout)
        if alive := lease.alive(self.layout):
            raise LockBusy(f"The run {alive[0].run} of this thread has not ended. Wait until it ends, then try again.")
        return workplace.folder_of(made.id)

    def answer(self, task: TurnTask) -> str:
        """Let an agent answer in the workspace. Raises Interruption if a signal ended it."""
        layout = self.layout
        State(layout).put(names.CONFIG, self.config)
        workplace.take_in(layout, task.folder, task.paths)
        if task.prompt not in [row.text for row in person_notes.waiting(layout)]:  # a turn that died may have left it
            person_notes.add(layout, task.prompt, self.by, clock.stamp(clock.now()))
        verbs: Verbs = {STATUS: partial(_carry_out, {tool.__name__: tool for tool in task.tools})}
        self.code, text = steps.answer(layout, self.agents, verbs)
        if self.code >= errors.SIGNALLED:
            raise Interruption(self.code - errors.SIGNALLED)
        self.run = next(runs.finished(layout)).run
        return text


def _carry_out(known: dict[str, Callable[..., dict[str, Json]]], run: OpenRun, tool: str, given: str) -> Iterator[str]:
    """Carry out a verb on the thread's status for `ask`, in the inbox of the run; `given`: its arguments as JSON."""
    if tool not in known:
        raise UsageFault(f"Inside a turn there are {', '.join(known)}, and not {tool}.")
    yield json.dumps(known[tool](**json.loads(given)))


def ask(layout: Layout, run: str, kind: str, verb: str, given: dict[str, str]) -> dict[str, Json]:
    """Let the turn around this process carry out a verb; returns the row. Raises as the verb."""
    tool = f"{kind}_{'add' if verb == 'add' else 'status'}"
    words = given if verb == "add" else {kind: given.pop("name", ""), "verb": verb, **given}
    (text,) = inbox.ask(layout, run, STATUS, tool, json.dumps(words))
    return {name: one for name, one in json.loads(text).items() if name != "files"}
