"""What the model's calls are carried out with: the files of a conversation, its shell, and the tools over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.base.record import Record
from harness.builtin.tools import registry
from harness.builtin.tools.tool import Question, Tool, ToolResult, Workbench
from harness.filesystem.local import Mount
from harness.filesystem.protocol import Filesystem
from harness.filesystem.shell import LocalShell
from harness.process.confine import Confinement
from harness.state import files
from harness.state.layout import Layout
from harness.workspace.rules import ToolRules
from harness.workspace.snapshot import WorkspaceSnapshot

STATE = ".harness"  # how a prompt names the mission's state
RESULTS = ".results"


class Place(Record):
    """Where the calls of a conversation work: the folder, the environment of commands (None: an allow-list of this process's),
    what they may touch (None: all). `layout` and `run`: the mission and its run, None and "" outside one; `home`: the project
    whose workspace counts, None for that of the mission. `results`: the folder for results that are too long, "" for that of the
    run, or none; `scratch`: where subagents get folders of their own, "" for TMPDIR of the environment; `memory`: what
    memory_save adds to outside a run; `also`: further folders to be seen, by name; `refusal`: why no program may be started, ""
    where they may."""

    folder: str
    layout: Layout | None = None
    run: str = ""
    environment: Mapping[str, str] | None = None
    confinement: Confinement | None = None
    home: Layout | None = None
    results: str = ""
    scratch: str = ""
    memory: str = ""
    also: Mapping[str, Mount] = {}
    refusal: str = ""


class Powers(Record):
    """What a conversation may do besides: what its workspace gave it (`given`: skills, subagents, tools.json), the rules, by
    default those of `given`; `ask`: asks a person, from the thread of the call, None where nobody is there; `more`: tools from
    outside the registry."""

    given: WorkspaceSnapshot | None = None
    rules: ToolRules | None = None
    ask: Callable[[Question], str] | None = None
    more: list[Tool] = []

    @property
    def obeyed(self) -> ToolRules:
        """The rules."""
        if self.rules is not None:
            return self.rules
        return self.given.tools.rules if self.given and self.given.tools else ToolRules()


class ToolSession:
    """See loop.Hands. Calls of several conversations may come from several threads, each to its own Hands. Of a mission the state
    is `.harness` at the root, to be read; results that are too long are in `.results`. `elsewhere`: files in the place of those
    of the folder, with or without a shell."""

    def __init__(self, place: Place, powers: Powers | None = None, elsewhere: Filesystem | None = None) -> None:
        layout, powers = place.layout, powers or Powers()
        self.place, self.powers = place, powers
        self.results = place.results or (layout.run(place.run).results if layout and place.run else "")
        if self.results:
            files.make_folder(self.results)
        shown = bool(self.results) and elsewhere is None
        found = elsewhere or self._shell(place)
        self.bench = Workbench(found, layout=layout, run_id=place.run, results=RESULTS if shown else "")
        self.bench.given, self.bench.home = powers.given, place.home or layout
        self.bench.rules, self.bench.ask, self.bench.memory = powers.obeyed, powers.ask, place.memory
        self.tools: list[Tool] = []
        self.offer(powers.more)

    def _shell(self, place: Place) -> LocalShell:
        also = {**place.also}
        if place.layout and STATE not in also:
            also[STATE] = Mount(path=place.layout.state, mode="read")
        if self.results:
            also[RESULTS] = Mount(path=self.results, mode="write")
        return LocalShell(
            place.folder,
            also=also,
            homes=[place.layout.folders.project] if place.layout else [],
            environment=place.environment,
            confine=place.confinement,
            refusal=place.refusal,
        )

    def offer(self, more: Sequence[Tool] = ()) -> None:
        """Take up these tools, too; before the conversation begins, since it names its tools once."""
        self.bench.more += more
        self.tools = registry.offered(self.bench)

    def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Carry one call out."""
        return registry.call(self.bench, name, arguments)

    def stop(self) -> None:
        """See loop.ToolRunner."""
        self.bench.stopping = True

    def reminder(self) -> str:
        """See loop.Hands."""
        return self.bench.team.reminder() if self.bench.team else ""

    def take_over(self, results: str) -> None:
        """What an earlier part of the conversation refers to is here, too: the files of its folder of results."""
        for name in files.names(results):
            files.replace(os.path.join(self.results, name), files.read(os.path.join(results, name)) or b"")

    def close(self) -> None:
        """End the commands in the background; a folder without results goes."""
        self.bench.close()
        if self.results and not files.names(self.results):
            os.rmdir(self.results)
