"""HarnessAgent: what a program relies on."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.base.errors import UsageFault
from harness.builtin.loop.loop import Limits
from harness.builtin.sessions.agent import AgentConfig, HarnessAgent
from harness.builtin.sessions.keys import session_keys
from harness.builtin.tool_environment import ToolEnvironment
from harness.filesystem.local import Local
from harness.state.layout import Layout
from tests.agents.modelserver import Reply, serving
from tests.agents.wires import Exchange
from tests.builtin.sessions.talking import agent, echo, file_of, home, said, state_of, store, texts, until
from tests.builtin.simulating import Program
from tests.builtin.talking import bodies, calling, steps
from tests.missions import CHECKOUT
from tests.missions import until as so_far

MANY = 110


def test_a_conversation_goes_on_in_another_process(tmp_path: Path) -> None:
    """What was said is in the next request, whoever sends it."""
    with serving(echo) as server:
        assert [str(one) for one in said(tmp_path, server, "My name is Ann.", "And yours?")] == ["answer 1", "answer 2"]
        again = said(tmp_path, server, "What is my name?")[0]
        assert (again.text, again.call, again.turns, again.outcome) == ("answer 3", 3, [3, 3], "ok")
        sent = bodies(server)[-1]["messages"]
        assert [one["content"] for one in sent if one["role"] == "user"] == [
            "My name is Ann.",
            "And yours?",
            "What is my name?",
        ]
        assert again.usage["output"] == 50
    assert state_of(tmp_path).agent == "helper"


def test_a_filesystem_that_lacks_a_verb_is_refused_with_its_name(tmp_path: Path) -> None:
    """Before anything is sent or written."""

    class Files:
        """A filesystem of an older version, which cannot say where a path leads."""

        def __getattr__(self, name: str) -> object:
            if name == "resolve":
                raise AttributeError(name)
            return None

    with serving(echo) as server:

        async def asked() -> None:
            made: Any = lambda user, session: Files()  # noqa: E731 - a mypy type of its own
            async with agent(tmp_path, server, filesystem=made) as one:
                with pytest.raises(UsageFault, match=r"The filesystem Files lacks resolve: see docs/filesystem.md"):
                    await one.call("hello", session_id="s", user_id="alice")

        asyncio.run(asked())
        assert server.seen == []


def test_skills_of_the_workspace_are_there_whatever_the_files(tmp_path: Path) -> None:
    """Those of a program, too; they are read from the workspace."""
    skill = tmp_path / "skills/deploy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: deploy\ndescription: how to\n---\nPush the button.\n")
    (tmp_path / "files").mkdir()
    with serving(steps(calling("load_skill", {"name": "deploy"}))) as server:
        said(tmp_path, server, "go", filesystem=lambda user, session: Local(str(tmp_path / "files")))
        [result] = [one["content"] for one in bodies(server)[-1]["messages"] if one["role"] == "tool"]
    assert "Push the button." in result


def test_users_do_not_see_each_other(tmp_path: Path) -> None:
    """Neither what another said, nor another's files, nor the same session id of another user."""
    brain = steps(calling("write_file", {"path": "mine.txt", "content": "xyzzy of alice"}))

    def either(exchange: Exchange) -> Reply:
        return brain(exchange) if "I am alice" in exchange.text else Reply(str("xyzzy" in exchange.text))

    with serving(either) as server:

        async def both() -> None:
            async with agent(tmp_path, server) as one:
                await one.call("I am alice", session_id="s", user_id="alice")
                answer = await one.call("I am bob", session_id="s", user_id="bob")
                assert answer.text == "False"

        asyncio.run(both())
    assert file_of(tmp_path, "mine.txt") == "xyzzy of alice"
    with pytest.raises(AssertionError, match="missing"):
        file_of(tmp_path, "mine.txt", user="bob")


@pytest.mark.on_disk
def test_a_long_result_is_kept_where_its_session_can_read_it(tmp_path: Path) -> None:
    """Below `.results`, and not among the user's files."""
    wide = "".join(f"{number} {'x' * 395}\n" for number in range(300))
    brain = steps(
        calling("write_file", {"path": "w.txt", "content": wide}), calling("grep_files", {"pattern": "x", "limit": 300})
    )
    with serving(brain) as server:
        said(tmp_path, server, "look", session="s", user="alice")
    (kept,) = (home(tmp_path).parent / "s" / "results").iterdir()
    assert kept.read_text().startswith("w.txt:1:0 xxx")
    assert any(f".results/{kept.name}" in str(body) for body in bodies(server))


def test_a_user_cannot_reach_the_files_of_another_by_any_path(tmp_path: Path) -> None:
    """Paths that lead out are refused, whatever they look like."""
    said_by: list[str] = []
    paths = [
        "../../alice/_files/mine.txt",
        "../_memory.md",
        ".harness/../../alice/s/log.jsonl",
        str(tmp_path / "AGENTS.md"),
    ]
    (tmp_path / "AGENTS.md").write_text("Rules.\n")
    with serving(steps(*(calling("read_file", {"path": path}) for path in paths))) as server:
        said(tmp_path, server, "look", user="alice")
        said(tmp_path, server, "look", user="bob")
        said_by = [one["content"] for body in bodies(server) for one in body["messages"] if one["role"] == "tool"]
    assert said_by and not any("role" in text or "Rules." in text for text in said_by)


def test_a_stream_has_the_pieces_as_they_come_and_ends_with_the_reply(tmp_path: Path) -> None:
    """Text, calls, results, usage; then the end."""
    with serving(steps(calling("list_files", {}))) as server:

        async def streamed() -> list[str]:
            async with agent(tmp_path, server) as one:
                return [event.type async for event in one.stream("look", session_id="s")]

        kinds = asyncio.run(streamed())
    assert kinds == ["usage", "call", "result", "text", "usage", "end"]


def test_threads_of_a_program_without_an_event_loop_may_call_at_once(tmp_path: Path) -> None:
    """One instance, several threads, a session each; each gets its own answers."""
    with serving(lambda exchange: Reply(exchange.text[-6:])) as server, agent(tmp_path, server) as one:
        with ThreadPoolExecutor(4) as pool:
            names = [f"user-{number}" for number in range(4)]
            found = list(pool.map(lambda name: one.call_sync(name, session_id="s", user_id=name).text, names))
        assert found == names


def test_after_its_end_no_thread_and_no_descriptor_of_it_is_left(tmp_path: Path) -> None:
    """A program that forks later, or that makes one for each request, goes on as before."""
    before, descriptors = {*threading.enumerate()}, list[int]()
    for _ in range(2):
        with serving(lambda exchange: Reply("an answer")) as server, agent(tmp_path, server) as one:
            assert one.call_sync("hello", session_id="s").text == "an answer"
        so_far(lambda: {*threading.enumerate()} <= before)  # the server's end a moment later
        descriptors.append(len(os.listdir("/dev/fd")))
    assert descriptors[0] == descriptors[1]


def test_no_session_waits_for_the_model_of_another(tmp_path: Path) -> None:
    """Also where more requests are under way than an HTTP client has connections by itself."""
    go = threading.Event()

    def brain(exchange: Exchange) -> Reply:
        if exchange.text.endswith("wait"):
            go.wait(60)
        return Reply("an answer")

    with serving(brain) as server:

        async def many() -> None:
            async with agent(tmp_path, server) as one:
                calls = [one.call("wait", session_id=f"s{number}") for number in range(MANY)]
                work = [asyncio.ensure_future(call) for call in calls]
                await until(lambda: server.answered >= MANY or any(one.done() for one in work), 600)
                assert (await one.call("at once", session_id="other")).text == "an answer"
                go.set()
                assert {reply.outcome for reply in await asyncio.gather(*work)} == {"ok"}

        asyncio.run(many())


def test_a_session_goes_on_after_its_subagent_ended(tmp_path: Path) -> None:
    """So do the others of the process; a subagent with a model of its own asks that one. Its record is where the session is."""
    reader = "---\ndescription: reads\nmodel: own-model\nworkspace: {mode: shared}\n---\nRead.\n"
    (tmp_path / "subagents").mkdir()
    (tmp_path / "subagents" / "reader.md").write_text(reader)

    def brain(exchange: Exchange) -> Reply:
        if "as its subagent" in exchange.text:
            return Reply(f"asked {exchange.model}")
        found = calling("agent_spawn", {"agent": "reader", "task": "Find it."})
        return Reply(exchange.results[-1]) if exchange.results or "find" not in exchange.text else found

    with serving(brain) as server:
        here = Layout(str(tmp_path))

        async def calls() -> list[str]:
            in_folder = ToolEnvironment(folder=str(tmp_path), home=here)
            async with agent(tmp_path, server, filesystem=lambda user, name: in_folder) as one:
                return [str(await one.call(text, session_id="s")) for text in ("find it", "and now?")]

        assert ["asked own-model" in text for text in asyncio.run(calls())] == [True, True]
    records = store(tmp_path).list(session_keys("default", "s").tasks)
    assert {one[4] for one in records if one[3] == "reader-1"} == {"task.json", "turns.jsonl"}


def test_in_plan_mode_subagents_only_read(tmp_path: Path) -> None:
    """As whoever started them."""
    (tmp_path / "subagents").mkdir()
    reader = "---\ndescription: reads\nworkspace: {mode: shared}\n---\nRead.\n"
    (tmp_path / "subagents" / "reader.md").write_text(reader)
    begin = [calling("plan_enter", {}), calling("agent_spawn", {"agent": "reader", "task": "Find it."})]

    def brain(exchange: Exchange) -> Reply:
        if "as its subagent" in exchange.text:
            return Reply(exchange.results[-1]) if exchange.results else calling("execute", {"command": "touch no"})
        return Reply(exchange.results[-1]) if exchange.turns == 2 else begin[exchange.turns]

    with serving(brain) as server:
        in_folder = ToolEnvironment(folder=str(tmp_path), home=Layout(str(tmp_path)))
        (reply,) = said(tmp_path, server, "plan", filesystem=lambda user, name: in_folder)
    assert "only reading is possible" in reply.text and not (tmp_path / "no").exists()


def test_what_a_call_may_use_has_an_end(tmp_path: Path) -> None:
    """Tokens and requests of a call; the next call may use as much again."""
    with serving(steps(*[calling("list_files", {})] * 9)) as server:
        first = said(tmp_path, server, "look", limits=Limits(tokens=1200))[0]
        assert (first.outcome, first.usage["turns"]) == ("killed", 2)
        assert "all that was left of max_tokens" in first.reason
        second = said(tmp_path, server, "go on", limits=Limits(max_steps=2))[0]
        assert (second.outcome, second.usage["turns"]) == ("agent_error", 2)


def test_wrong_ids_models_and_messages_are_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    with pytest.raises(UsageFault, match="invalid model"):
        HarnessAgent("helper", "unheard-of", workspace=str(tmp_path))
    with serving(echo) as server:
        for message, session in (("", "s"), ("hello", "")):
            with pytest.raises(UsageFault):
                said(tmp_path, server, message, session=session)
        said(tmp_path, server, "hello")
        with (
            pytest.raises(UsageFault, match="is with helper"),
            agent(tmp_path, server, name="other") as other,
        ):
            other.call_sync("hello", session_id="s", user_id="alice")
    assert texts(tmp_path) == ["hello"]


@pytest.mark.on_disk
def test_an_unknown_option_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    """Else the messages of two users would be in one session of the user `default`."""

    async def all_of(program: Program, wrong: dict[str, Any]) -> list[str]:
        async def streamed() -> None:
            async for _ in program.stream("hi", **wrong):
                pass

        ways = (
            program.call("hi", **wrong),
            streamed(),
            program.resume(**wrong),
            program.compact(**wrong),
            program.prepare(**wrong),
        )
        return [str(fault) for fault in await asyncio.gather(*ways, return_exceptions=True)]

    with Program(tmp_path, "an answer") as program:
        faults = asyncio.run(all_of(program, {"user": "ann"}))
        for call in (program.call_sync, program.resume_sync):
            with pytest.raises(TypeError) as caught:
                call(*["hi"] * (call == program.call_sync), user="ann")  # type: ignore[call-arg]  # wrong on purpose
            faults.append(str(caught.value))
        assert faults == ["unknown option user: did you mean user_id?"] * 7
        with pytest.raises(TypeError, match="unknown option images: did you mean session_id or user_id"):
            asyncio.run(program.prepare(images=[b""]))
        assert (program.simulated.requests, program.store.list(())) == ([], [])


def test_importing_harness_loads_nothing_of_it() -> None:
    """`harness.HarnessAgent` is there, and costs nothing until it is used."""
    assert harness.HarnessAgent is HarnessAgent and harness.Config is AgentConfig
    assert len(inspect.signature(HarnessAgent).parameters) <= 8
    nothing = "assert not [name for name in sys.modules if name.startswith('harness.')]"
    program = f"import harness, sys; {nothing}; harness.Config, harness.HarnessAgent"
    subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, check=True)
    with pytest.raises(AttributeError):
        getattr(harness, "nothing_of_this_name")  # noqa: B009 - that it raises is the test


def test_an_agent_speaks_with_the_words_of_its_role_and_of_the_workspace(tmp_path: Path, own_state: Path) -> None:
    """The page of all conversations, the role, then AGENTS.md; another file than that changes no byte before it."""
    (tmp_path / ".harness" / "roles").mkdir(parents=True)
    (own_state / "harness" / "origins").mkdir(parents=True)
    for path in (tmp_path / ".harness/origin", own_state / "harness/origins" / ("0" * 32)):
        path.write_text("0" * 32)  # so this user made it
    (tmp_path / ".harness/roles/helper.md").write_text(
        "---\nname: helper\nsummary: helps\nreads: [instructions]\n---\n# You are Hal\n"
    )
    (tmp_path / "AGENTS.md").write_text("Say please.\n")

    def system(exchange: Exchange) -> Reply:
        return Reply("ok")

    with serving(system) as server:
        said(tmp_path, server, "hello")
        sent = bodies(server)[0]["messages"][0]
    assert sent["role"] == "system"
    assert 0 < sent["content"].index("# You are Hal") < sent["content"].index("Say please.")


@pytest.mark.on_disk
def test_the_example_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/sessions.md begins with it; the address is that of a server that is there."""
    page = (CHECKOUT / "docs/sessions.md").read_text()
    program = page.split("```python\n", 1)[1].split("```", 1)[0]
    assert len([line for line in program.split("\n") if line.strip()]) <= 3
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with serving(lambda exchange: Reply("Hello.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        exec(program, {"__name__": "example"})
    assert capsys.readouterr().out == "Hello.\n"


def test_the_plan_of_a_session_is_a_file_of_its_tools(tmp_path: Path) -> None:
    """In the folder that the caller names; the state has its path."""
    brain = steps(calling("plan_enter", {}), calling("plan_write", {"content": "1. Look."}), calling("plan_exit", {}))
    for user, more, path in (("alice", {}, "plans/PLAN.md"), ("bob", {"plans": "notes"}, "notes/PLAN.md")):
        with serving(brain) as server:
            said(tmp_path, server, "plan it", user=user, **more)
        assert file_of(tmp_path, path, user=user) == "1. Look.\n"
        assert state_of(tmp_path, user=user).kept["plan"] == {"active": False, "text": "1. Look.", "path": path}
