"""A whole run of the built-in agent in this process, with what a workspace gives it: skills, subagents, rules, servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.builtin._order import ChildOrder
from harness.builtin._run import run
from harness.builtin.loop import turns
from harness.builtin.loop.turns import Log
from harness.mission import tasks
from harness.mission.tasks import Task
from harness.state.layout import Layout
from harness.workspace import snapshot
from harness.workspace.skills import Skill
from harness.workspace.snapshot import WorkspaceSnapshot
from harness.workspace.subagents import Subagent
from harness.workspace.tools import ToolsFile
from tests.agents.modelserver import Reply, serving
from tests.agents.wires import Call, Exchange
from tests.builtin.talking import MODELS, RUN

CHILD = "Another agent started you, as its subagent "


def agent(name: str, **more: Any) -> Subagent:
    """The declaration of a subagent."""
    return Subagent(
        **{"id": name, "description": f"It is the {name}.", "prompt": f"Be a {name}.", "mode": "shared", **more}
    )


def calls(*replies: Reply | tuple[str, dict[str, Any]]) -> Callable[[Exchange], Reply]:
    """A brain that calls these tools in turn, and then says what came of the last; a Reply stands for itself."""

    def answer(exchange: Exchange) -> Reply:
        if exchange.turns >= len(replies):
            return Reply(f"Done: {exchange.results[-1] if exchange.results else ''}")
        one = replies[exchange.turns]
        return one if isinstance(one, Reply) else Reply("", call=Call(*one))

    return answer


def minds(parent: Callable[[Exchange], Reply], **children: Callable[[Exchange], Reply]) -> Callable[[Exchange], Reply]:
    """The brain of a run, and of its subagents by id."""

    def answer(exchange: Exchange) -> Reply:
        if CHILD not in exchange.text:
            return parent(exchange)
        name = exchange.text.split(CHILD, 1)[1].split(":", 1)[0]
        return children[name](exchange)

    return answer


@dataclass
class Ran:
    """What came of a run."""

    rows: list[dict[str, Any]]
    layout: Layout
    tree: Path

    @property
    def end(self) -> dict[str, Any]:
        """Its last row."""
        return self.rows[-1]

    def log(self, task: str = "") -> Log:
        """The turns of the run, or of a subagent."""
        found = turns.read(self.layout.turns(RUN, task))
        assert found is not None
        return found

    def results(self, task: str = "") -> list[str]:
        """The texts of the results of its calls."""
        return [one["text"] for one in self.log(task).messages() if one["role"] == "tool"]

    @property
    def tasks(self) -> dict[str, Task]:
        """The records of its subagents."""
        return {one.id: one for one in tasks.of_run(self.layout.run(RUN).tasks)}


def ran(top: Path, brain: Callable[[Exchange], Reply], *, skills: list[Skill] | None = None,
        agents: list[Subagent] | None = None, tools: ToolsFile | None = None, **order: Any) -> Ran:  # fmt: skip
    """One run in an empty tree, to its end."""
    layout, tree = Layout(str(top / "project")), top / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    Path(layout.run(RUN).folder).mkdir(parents=True, exist_ok=True)
    kept = WorkspaceSnapshot(
        user="", commit="", sections=[], memory=None, told=False, left_out=[], skills=skills or [],
        subagents=agents or [], tools=tools, waiting=[],
    )  # fmt: skip
    snapshot.keep(layout, RUN, kept)
    rows: list[dict[str, Any]] = []
    with serving(brain) as server:
        asked = ChildOrder(
            parameters={"model": MODELS["chat"], "base_url": f"{server.url}/v1"}, key_env=["NO_KEY"],
            directory=str(tree), project=layout.folders.project, state=layout.state, run=RUN, role="worker", **order,
        )  # fmt: skip
        run(asked, b"Do it.", rows.append)
    return Ran(rows, layout, tree)
