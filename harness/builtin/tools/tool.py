"""A tool, what the tools of one conversation share, and the result of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from harness.base.record import Json, Record
from harness.filesystem.protocol import Filesystem
from harness.state.layout import Layout
from harness.stores.store import StoreKey
from harness.workspace.rules import ToolRules
from harness.workspace.snapshot import WorkspaceSnapshot

READS, WRITES, RUNS = "reads", "writes", "runs"
"""What a call may leave behind: nothing; changes of files or of the mission; whatever a command does."""

FILES, SHELL, MEMORY, RUN = "files", "shell", "memory", "run"
SKILLS, NOTES, SUBAGENTS, TALK = "skills", "notes", "subagents", "talk"
"""What a tool needs of its session: files; files where commands run; a mission, or the memory of a user; a run that is under
way; skills; a file of memory; subagents; that it is no conversation of a run."""


class ToolResult(Record):
    """The result of a call for the model. `text`: bounded by the registry; `failed`: the call was not carried out, and the text
    says what to do; `images`: (media type, bytes) of files for the model."""

    text: str
    failed: bool = False
    images: list[tuple[str, bytes]] = []


ToolFunction = Callable[["ToolSession", dict[str, Json]], ToolResult]


class Tool(Record):
    """A tool as models know it. `parameters`: a JSON schema (object); `effects`: READS, WRITES or RUNS; `run`: carries a call
    out, with arguments that the schema allows; it returns failures, and raises only for bugs. `needs`: one of those above; a
    session without it does not offer the tool. `about`: the argument that the patterns of rules match, "": all arguments as
    JSON; `foreign`: its provider checks the arguments; `server`: its MCP server; `preview`: what a call would change or may
    touch, for the person who decides about it."""

    name: str
    description: str
    parameters: dict[str, Json]
    effects: str
    run: ToolFunction
    needs: str = FILES
    about: str = ""
    foreign: bool = False
    server: str = ""
    preview: Callable[[ToolSession, dict[str, Json]], str] = lambda session, arguments: ""


class Question(Record):
    """A question to a person before a call: the tool, the subject of the call, its arguments, the rule that asks, and what the
    call would change (a diff) or may touch."""

    tool: str
    about: str
    arguments: dict[str, Json]
    rule: str
    preview: str = ""


YES, NO, ALWAYS = "yes", "no", "always"
"""What a person may answer; ALWAYS: and not to be asked about the same again in this conversation."""


class ToolSession:
    """What the tools of one conversation share. `files`: its filesystem; `layout` and `run_id`: the mission and the run whose
    verbs it may use, None and "" outside a mission; `results`: the folder, below the root of `files` or mounted in it, where
    results that are too long are kept; `state`: what tools keep between calls (todo, …) as JSON, saved with the conversation;
    `live`: what they keep that ends with this process (commands in the background). `close` ends those.

    `workspace`: its skills, read from the project at `home`; `rules`: what may be called; `ask`: asks a person, in the thread
    of the call, None where nobody is there; `extra_tools`: tools from outside the registry; `memory`: the text that memory_save
    adds to outside a run, None for none; `subagents`: who starts subagents; `reads_only`: whether a conversation above this one
    is in plan mode; `plans`: the folder for the file of a plan, "" for none; `loop`: the event loop of the program, for its
    async tools; `around_hook`: what carries a call out, given its name and arguments, with the hooks of the program;
    `reach_text`: what commands may touch, in words; `stopping`: a command in the foreground, and a wait for one in the
    background, shall end; `in_run`: it is that of a run, or of its subagent; `in_project`: whether `files` are those of the
    workspace's project, and its nested AGENTS.md are about them."""

    def __init__(self, files: Filesystem, *, layout: Layout | None = None, run_id: str = "", results: str = "") -> None:
        self.files, self.layout, self.run_id, self.results = files, layout, run_id, results
        self.state: dict[str, Any] = {}
        self.live: dict[str, Live] = {}
        self.workspace: WorkspaceSnapshot | None = None
        self.home: Layout | None = layout
        self.rules = ToolRules()
        self.ask: Callable[[Question], str] | None = None
        self.extra_tools: list[Tool] = []
        self.memory: StoreKey | None = None
        self.subagents: Subagents | None = None
        self.reads_only: Callable[[], bool] = lambda: False
        self.plans = ""
        self.stopping = self.in_project = False
        self.in_run = run_id != ""
        self.reach_text = ""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.around_hook: Callable[[str, dict[str, Any], Callable[[], ToolResult]], ToolResult] = lambda _, __, run: (
            run()
        )

    def close(self) -> None:
        """End what still runs in the background; the session can be used on."""
        for one in list(self.live.values()):
            one.close()


class Live:
    """Something of a tool that runs beside the conversation."""

    def close(self) -> None:
        """End it, and wait until it has ended."""
        raise NotImplementedError


class Subagents(Protocol):
    """Starts subagents and follows them; each answer is the text for the model. Raises UsageFault for a wrong call."""

    def spawn(self, agent: str, task: str, *, background: bool, seconds: float) -> ToolResult:
        """Give a task to a new subagent, and wait for its answer, at most so long, or not at all."""

    def send(self, name: str, message: str, *, background: bool, seconds: float) -> ToolResult:
        """Send a message to a running or finished task, which continues its conversation."""

    def agents(self) -> str:
        """Which subagents there are to be started."""

    def tasks(self) -> str:
        """Which were started, and how they stand."""

    def output(self, name: str, *, seconds: float) -> ToolResult:
        """How one stands, or what it answered."""

    def cancel(self, name: str) -> ToolResult:
        """End one."""

    def reminder(self) -> str:
        """Which work in the background and will end with this conversation; "" for none, and for those that were said."""
