"""What a run has besides its own tools: servers of tools.json, within the same rules, and what it is told of missing ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.agents import builtin
from harness.agents._answer_state import AnswerState
from harness.builtin.equipment import Equipment
from harness.builtin.mcp import server_pool
from harness.builtin.tool_session import Place, Powers
from harness.workspace.snapshot import WorkspaceSnapshot
from harness.workspace.tools import McpServer, ToolsFile
from tests.builtin.crewed import agent, calls, minds, ran
from tests.builtin.mcp.serving import ours

ABSENT = McpServer(name="maps", transport="stdio", command="no-such-program")


@pytest.fixture(autouse=True)
def servers() -> None:
    """None is left of the test before."""
    server_pool.shared().close()


def test_a_server_serves_a_run_within_its_rules(tmp_path: Path) -> None:
    """Its tools are offered by name and permitted like any others, to subagents, too; long results are files."""
    brain = minds(
        calls(
            ("own_look", {"name": "HOME"}),
            ("own_write", {"path": "a", "text": "no"}),
            ("own_long", {"count": 20_000}),
            ("own_slow", {"seconds": 0}),
            ("agent_spawn", {"agent": "scout", "task": "x"}),
            ("plan_enter", {}),
            ("own_long", {"count": 1}),
            ("own_look", {"name": "HOME"}),
        ),
        scout=calls(("own_long", {"count": 2}), ("own_write", {"path": "a", "text": "no"})),
    )
    tools = ToolsFile(deny=["own_write", "own_slow(*0*)"], servers=[ours()])
    made = ran(tmp_path, brain, tools=tools, agents=[agent("scout", tools=["own_*"])])
    said = made.results()
    assert said[0].endswith(f"in {made.tree}")
    assert "There is no tool 'own_write'" in said[1]
    assert "left out. All of it is in .results/" in said[2]
    assert "not permitted here, by the rule own_slow(*0*)" in said[3]
    assert made.results("scout-1")[0] == "line 0\nline 1" and "There is no tool" in made.results("scout-1")[1]
    assert "only reading is possible" in said[6] and "HOME is" in said[7]
    assert not (made.tree / "a").exists()


def test_a_missing_server_stops_nothing_and_everybody_is_told(tmp_path: Path) -> None:
    """The model before it begins, and a person in the line of the run."""
    made = ran(tmp_path, calls(), tools=ToolsFile(servers=[ABSENT]))
    assert made.end["outcome"] == "ok"
    first = made.log().messages()[0]["text"]
    assert first.startswith("Do it.\n\nNot available now: The MCP server maps is not available")
    answer = AnswerState("builtin")
    list(builtin.read(next(row for row in made.rows if row["type"] == "lacks"), answer))
    assert "The MCP server maps is not available" in answer.finished("Done.").remark


def test_the_equipment_serves_outside_a_mission(tmp_path: Path) -> None:
    """A conversation needs no mission to have servers, skills and rules."""
    given = WorkspaceSnapshot(
        user="", commit="", sections=[], memory=None, told=False, left_out=[], skills=[], subagents=[],
        tools=ToolsFile(servers=[ours(tools=["look"])]), waiting=[],
    )  # fmt: skip
    made = Equipment(Place(folder=str(tmp_path)), Powers(given=given))
    names = [tool.name for tool in made.hands.tools]
    assert "own_look" in names and "execute" in names and "note" not in names
    assert made.hands.call("own_look", {"name": "PATH"}).text.startswith("PATH is /")
