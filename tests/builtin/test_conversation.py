"""What a conversation is opened with: its files and what they hide, servers within the same rules, and what is missing."""

from __future__ import annotations

import ast
import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from harness.agents import builtin
from harness.agents._answer_state import AnswerState
from harness.base.errors import Unavailable
from harness.builtin.conversation import Conversation
from harness.builtin.mcp import server_pool
from harness.builtin.tool_environment import ToolEnvironment
from harness.builtin.tools import read_files
from harness.state.layout import Layout
from harness.workspace.snapshot import WorkspaceSnapshot
from harness.workspace.tools import McpServer, ToolsFile
from tests.builtin.crewed import agent, calls, minds, ran
from tests.builtin.mcp.serving import ours
from tests.builtin.talking import Bench, at, calling, serving, steps, use
from tests.missions import CHECKOUT

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


def test_servers_serve_outside_a_mission(tmp_path: Path) -> None:
    """A conversation needs no mission to have servers, skills and rules."""
    given = WorkspaceSnapshot(
        user="", commit="", sections=[], memory=None, told=False, left_out=[], skills=[], subagents=[],
        tools=ToolsFile(servers=[ours(tools=["look"])]), waiting=[],
    )  # fmt: skip
    made = at(ToolEnvironment(folder=str(tmp_path)), workspace=given)
    names = [tool["name"] for tool in made.tools]
    assert "own_look" in names and "execute" in names and "note" not in names
    assert use(made, "own_look", name="PATH").text.startswith("PATH is /")


@pytest.fixture
def talk(tmp_path: Path) -> Conversation:
    """That of a run."""
    bench = Bench(tmp_path)
    (bench.folder / "a.txt").write_text("in the tree\n")
    (Path(bench.layout.state) / "spec.md").write_text("# The spec\n")
    return at(bench.environment())


def test_paths_are_those_of_the_prompt(talk: Conversation, tmp_path: Path) -> None:
    """Relative to the tree, with the state as `.harness`; also as whole paths of the project."""
    assert "in the tree" in use(talk, "read_file", path="a.txt").text
    assert "The spec" in use(talk, "read_file", path=".harness/spec.md").text
    assert "The spec" in use(talk, "read_file", path=f"{tmp_path}/project/.harness/spec.md").text


def test_the_state_is_to_be_read_only(talk: Conversation) -> None:
    """What changes it are the verbs."""
    assert use(talk, "write_file", path=".harness/spec.md", content="mine").failed
    assert use(talk, "write_file", path=".harness/new.md", content="mine").failed


def test_a_long_result_is_a_file_that_can_be_read_on(talk: Conversation, tmp_path: Path) -> None:
    """Its head and tail are in the conversation; the rest is where the text says."""
    made = use(talk, "execute", command="seq 1 30000")
    assert len(made.text) < 10_000 and "29999" in made.text
    name = next(word.rstrip(";,.") for word in made.text.split() if word.startswith(".results/"))
    assert "15000" in use(talk, "grep_files", pattern="^15000$", path=name).text
    later = at(Bench(tmp_path).environment("2-worker-F-001"))
    later.take_over(talk.environment.results)
    assert "15000" in use(later, "grep_files", pattern="^15000$", path=name).text


def test_paths_of_a_conversation_that_went_on_twice_lead_to_files(talk: Conversation, tmp_path: Path) -> None:
    """Those of the first run and of the second, though each run has a folder of its own and earlier ones may be removed."""
    found, now = list[str](), talk
    for number in range(3):
        made = use(now, "execute", command=f"seq {number} 30000")
        found.append(next(word.rstrip(";,.") for word in made.text.split() if word.startswith(".results/")))
        assert all("15000" in use(now, "grep_files", pattern="^15000$", path=name).text for name in found)
        before, now = now, at(Bench(tmp_path).environment(f"{number + 2}-worker-F-001"))
        now.take_over(before.environment.results)
        asyncio.run(before.close())
        shutil.rmtree(before.environment.results)
    assert len(set(found)) == 3


def test_a_folder_without_results_goes(talk: Conversation) -> None:
    """Few runs have any."""
    use(talk, "execute", command="seq 1 10")
    asyncio.run(talk.close())
    assert not Path(talk.environment.results).exists()


def test_commands_have_the_given_environment_alone(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of this process's variables."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("LC_MINE", "of this process")
    said = use(at(talk.environment), "execute", command="env").text
    assert "sk-secret" not in said and "of this process" not in said


GONE = ["Where", "Place", "Means", "Powers", "Equipment", "Hands", "Workbench", "Bill", "Parts", "Engine"]


def test_a_conversation_is_put_together_in_one_place() -> None:
    """The ten classes of which it was put together in three places are gone, and one class is a loop."""
    texts = [path.read_text() for path in sorted((CHECKOUT / "harness/builtin").rglob("*.py"))]
    names = [node.name for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    assert len(names) > len(GONE) and [name for name in names if name in GONE] == []
    assert [name for name in names if name.endswith("Loop")] == ["Loop"]
    assert sum(text.count("Conversation.open(") for text in texts) == 3


def test_a_call_of_a_tool_passes_few_modules(tmp_path: Path) -> None:
    """From the loop to the function of the tool."""
    passed = list[str]()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        name, function = str(frame.f_globals.get("__name__")), frame.f_code.co_name
        if function == "_carry_out" and event == "call":
            passed.append(name)
        elif passed and passed[-1] != "end" and event == "call" and name.startswith("harness."):
            passed.append(name)
            if (name, function) == (read_files.__name__, "_read_file"):
                passed.append("end")

    bench = Bench(tmp_path)
    (bench.folder / "a.txt").write_text("text")
    with serving(steps(calling("read_file", {"path": "a.txt"}))) as server:
        sys.setprofile(watch)
        try:
            bench.talk(f"{server.url}/v1")
        finally:
            sys.setprofile(None)
    assert passed[-1] == "end" and len({*passed} - {"end"}) <= 7, passed


def test_what_nobody_accepted_is_refused_before_a_session_begins(tmp_path: Path) -> None:
    """A `.harness` of the repository, wherever the files of the session are."""
    (tmp_path / ".harness").mkdir()
    (tmp_path / ".harness/config.toml").write_text('confine = "off"\n')
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "-f", "-A"], [*who, "commit", "-qm", "theirs"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    with pytest.raises(Unavailable, match=r"has a \.harness of its own"):
        at(ToolEnvironment(folder=str(tmp_path), home=Layout(str(tmp_path))))
