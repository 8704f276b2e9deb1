"""One conversation of a run, a subagent or a session: opened, at work, and closed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from harness.base import encoding
from harness.base.record import Json, Record
from harness.builtin.hooks import Hooks
from harness.builtin.loop.exchange import RULES, Model
from harness.builtin.loop.loop import CHECKS, Budget, Loop, Prepare, Report
from harness.builtin.loop.message_history import MessageHistory
from harness.builtin.loop.turns import Log
from harness.builtin.tool_environment import RESULTS, ToolEnvironment, confined, described, files_of, reach
from harness.builtin.tools import permissions, registry
from harness.builtin.tools.tool import Question, Tool, ToolSession
from harness.filesystem.local import Mount
from harness.process.variables import passing
from harness.state import files
from harness.stores.store import StoreKey
from harness.workspace import grants
from harness.workspace.rules import ToolRules
from harness.workspace.snapshot import WorkspaceSnapshot
from harness.workspace.tools import STDIO

if TYPE_CHECKING:  # of the extra: only their types are meant
    from harness.builtin.mcp.exposed_tools import ExposedTools

SCRATCH = ".tasks"  # where a conversation sees the folders of its subagents
LIBRARY = "mcp"
NO_LIBRARY = "No MCP server is available: their library is not installed ({package})."
LEFT_OUT = "Not available now: {faults}"
KEY_CHARS = 32  # of the key for the prompt's prefix, a field that servers other than the vendor's may refuse


class ConversationSpec(Record):
    """What a conversation is opened with. `name`: how its system text names it; `system`: the part of that which many
    conversations share; `parameters`: of each request; `history`: the messages so far, and where they are recorded. `model`:
    closed by whoever made it.

    `workspace`: skills, subagents, rules and servers; `rules`: more rules; `ask`: asks a person, in the thread of the call
    (None: nobody is there); `more`: tools besides those of the registry; `hooks`: of a program; `threads`: where tool calls run
    (None: in this thread, unless there are subagents). Its subagents have their records below `tasks` (None: it starts none),
    and `head` and `instructions` in their system texts. The file of its plan is in the folder `plans` ("": it has none).

    `supervisor`: what starts its subagents. `parent`: of a subagent, the conversation that started it, with the id of its
    `task`; `only`: the tools that it may use (None: those of its parent)."""

    name: str
    environment: ToolEnvironment
    history: MessageHistory
    model: Model
    parameters: dict[str, Json]
    system: str
    budget: Budget
    report: Report
    workspace: WorkspaceSnapshot | None = None
    rules: ToolRules = ToolRules()
    ask: Callable[[Question], str] | None = None
    more: list[Tool] = []
    hooks: Hooks = Hooks()
    threads: Executor | None = None
    tasks: StoreKey | None = None
    head: str = ""
    instructions: str = ""
    plans: str = ""
    supervisor: Callable[[Conversation], Supervisor] | None = None
    parent: Conversation | None = None
    task: str = ""
    only: Sequence[str] | None = None


class Supervisor(Protocol):
    """Starts the subagents of a conversation, and of those."""

    @property
    def threads(self) -> Executor:
        """Where tool calls run: those of the subagents, and its own."""

    def enlist(self, one: Conversation) -> None:
        """Let a conversation start subagents, where it may."""

    async def close(self) -> None:
        """End all of them."""


class Conversation:
    """Everything that a conversation works with. `session`: shared by its tools; `faults`: unavailable things, in sentences for
    the model and for people; `about_servers`: a part of the system text; `budget` and `report`: of the running call;
    `subagents`: None if it can start none."""

    def __init__(self, spec: ConversationSpec) -> None:
        self.spec, self.history, self.budget, self.report = spec, spec.history, spec.budget, spec.report
        self.faults = list(spec.workspace.faults) if spec.workspace else []
        self.environment, self.scratch = spec.environment, ""
        if spec.parent is None:
            self._prepare()
        self._servers = self._started_servers()
        self.about_servers: str = self._servers.about if self._servers else ""
        self.session = self._tool_session()
        self.stable = spec.system.rstrip("\n")
        key = "" if spec.parameters.get("base_url") else encoding.digest(self.stable.encode())[:KEY_CHARS]
        more = {"cache_key": key, "stable_chars": len(self.stable), "rules": RULES}
        self.model = spec.model.another({**spec.parameters, **more})
        self.subagents: Supervisor | None = spec.parent.subagents if spec.parent else None

    @classmethod
    async def open(cls, spec: ConversationSpec) -> Conversation:
        """The conversation, confined, with the permissions of its workspace and of its parent, its servers and its subagents.
        Raises Unavailable where the repository brings a `.harness` that no person has accepted."""
        made = cls(spec) if spec.parent else await asyncio.to_thread(cls, spec)  # servers take time to start
        made.session.loop = asyncio.get_running_loop()
        agents = spec.workspace.subagents if spec.workspace else []
        starts = spec.supervisor and spec.tasks and spec.parent is None and agents
        if (
            spec.supervisor and starts and made.environment.has_shell and not made.environment.is_elsewhere
        ):  # theirs are here
            made.subagents = spec.supervisor(made)
        if made.subagents:
            made.subagents.enlist(made)
        return made

    def _prepare(self) -> None:
        """Confine a conversation outside a run as the config.toml of its workspace says, as far as a person has accepted that; a
        run is confined already."""
        known = self.environment
        if known.home and not known.run:
            grants.check_state(known.home)
            tools = self.spec.workspace.tools if self.spec.workspace else None
            starts = known.has_shell and not known.is_elsewhere
            known = confined(known, starts or bool(tools and tools.servers))
        self.faults += [known.refusal] if known.refusal else []
        self.scratch = self._scratch_folder(known)
        if self.scratch:
            known = known.replace(also={**known.also, SCRATCH: Mount(path=self.scratch)})
            if held := known.confinement:
                glass = held.glass.replace(readable=[*held.glass.readable, self.scratch])
                known = known.replace(confinement=held.replace(glass=glass))
        self.environment = known

    def _scratch_folder(self, known: ToolEnvironment) -> str:
        """The folder of the folders of isolated subagents; "" where none needs one. It is beside the temporary folder: an agent
        could put a link in place of one that is in it."""
        agents = self.spec.workspace.subagents if self.spec.workspace else []
        above = (known.variables or os.environ).get("TMPDIR", "")
        if not above or not any(one.mode == "isolated" and not one.folder for one in agents):
            return ""
        made = above.rstrip("/") + SCRATCH if known.confinement else os.path.join(above, SCRATCH.lstrip("."))
        files.make_folder(made)
        return made

    def _started_servers(self) -> ExposedTools | None:
        """The MCP servers of the workspace; a subagent uses those of its parent."""
        given, known = self.spec.workspace, self.environment
        if self.spec.parent or given is None or given.tools is None or not given.tools.servers:
            return None
        if find_spec(LIBRARY) is None:
            self.faults.append(NO_LIBRARY.format(package=LIBRARY))
            return None
        from harness.builtin.mcp.exposed_tools import ExposedTools  # of the extra
        from harness.builtin.mcp.server_pool import ServerPlace  # as above

        servers = [one for one in given.tools.servers if not (known.refusal and one.transport == STDIO and one.confine)]
        variables = passing(os.environ) if known.variables is None else known.variables
        where = ServerPlace(user=given.user, folder=known.folder, environment=variables, variables=dict(os.environ),
                            confinement=known.confinement)  # fmt: skip
        made = ExposedTools(servers, where)
        self.faults += made.faults
        return made

    def _tool_session(self) -> ToolSession:
        """The shared state of the tools: files, permissions, skills. A mission's state is mounted read-only as `.harness`; long
        results are in `.results`."""
        spec, known, parent = self.spec, self.environment, self.spec.parent
        if known.results:
            files.make_folder(known.results)
        results = RESULTS if known.shows_results else ""
        made = ToolSession(known.filesystem or files_of(known), layout=known.layout, run_id=known.run, results=results)
        made.state, made.workspace, made.ask, made.memory = self.history.state, spec.workspace, spec.ask, known.memory
        made.home, made.around_hook = known.home or known.layout, spec.hooks.around_tool
        made.reach_text = reach(known)
        made.plans = spec.plans
        made.in_project = bool(known.run or (made.home and known.root == made.home.folders.project))
        if parent is None:
            made.extra_tools = [*spec.more, *(self._servers.tools if self._servers else ())]
            made.rules = _rules(spec)
            return made
        above, self.about_servers = parent.session, parent.about_servers
        made.extra_tools, made.ask, made.in_run = above.extra_tools, above.ask, above.in_run
        made.in_project = above.in_project and known.root == parent.environment.root
        made.rules = permissions.rules_of(above).narrowed(spec.only)
        made.reads_only = lambda: permissions.planning(above) or above.reads_only()
        return made

    @property
    def heads(self) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
        """The parts of requests besides messages: the present system text, tools, parameters. The place comes last in the text,
        so that the beginning is the same in many conversations."""
        place = described(self.environment, self.spec.name)
        system = "\n\n".join(filter(None, [self.stable, self.about_servers, place]))
        return system, self.tools, self.model.parameters

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools of the next request."""
        return registry.described(self.session)

    def begin(self, prompt: str) -> None:
        """Begin with this prompt."""
        self.history.set_heads(*self.heads)
        self.history.begin(prompt)

    def go_on(self, log: Log, prompt: str, *, run: str, why: str) -> list[str]:
        """Go on with the conversation of a run that was cut off; see MessageHistory."""
        self.history.set_heads(*self.heads)
        return self.history.go_on(log, self.model, prompt, run=run, why=why)

    def loop(self, *, steps: int | None = None, prepare: Prepare | None = None, piece: Callable[[str], None] | None = None,
             check: Callable[[str], str] | None = None, checks: int = CHECKS) -> Loop:  # fmt: skip
        """The loop that continues the conversation; see Loop."""
        threads = self.spec.threads or (self.subagents.threads if self.subagents else None)
        known = (self.history, self.model, self.session, self.budget, self.report)
        return Loop(*known, steps=steps, threads=threads, prepare=prepare, piece=piece, check=check, checks=checks)

    def note(self) -> str:
        """The text about `faults` for the model; "" for none."""
        return LEFT_OUT.format(faults=" ".join(self.faults)) if self.faults else ""

    def take_over(self, results: str) -> None:
        """Copy the results of an earlier part of the conversation from their folder, since its messages refer to them."""
        for name in files.names(results):
            data = files.read(os.path.join(results, name)) or b""
            files.replace(os.path.join(self.environment.results, name), data)

    async def close(self, *, last: bool = False) -> None:
        """End what runs: subagents first, then commands; servers are given back, and ended where this was the `last` conversation
        of the process. A folder without results goes, unless the next process of a session may have it open."""
        if self.subagents and self.spec.parent is None:
            await self.subagents.close()
        self.session.close()
        results, alone = self.environment.results, self.environment.run or self.spec.parent
        if results and alone and not files.names(results):
            os.rmdir(results)
        if self._servers is not None:
            self._servers.close(servers=last)
        await self.model.close()


def _rules(spec: ConversationSpec) -> ToolRules:
    """The rules of the workspace, and those of the conversation."""
    own = spec.workspace.tools.rules if spec.workspace and spec.workspace.tools else ToolRules()
    return own.replace(**{name: [*getattr(own, name), *getattr(spec.rules, name)] for name in own.fields})
