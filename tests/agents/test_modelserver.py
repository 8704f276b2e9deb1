"""The model server for tests of real CLIs speaks four formats, and its brain takes a mission to DONE."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import small_mission
from tests.agents.modelserver import Reply, Server, serving, shell_call
from tests.agents.wires import PROMPT, TOKENS, Exchange
from tests.missions import CHECKOUT, House, surroundings

TOOL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
ASKED = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "go"}, {"role": "tool", "content": "out"}],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": TOOL}}],
    },
    "/v1/responses": {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "function_call_output", "output": "out"},
        ],
        "tools": [{"type": "function", "name": "bash", "parameters": TOOL}],
    },
    "/v1/messages": {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "out"}]}]},
        ],
        "tools": [{"name": "bash", "input_schema": TOOL}],
    },
    "/v1beta/models/m:generateContent": {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": "out"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": TOOL}]}],
    },
}
CLIENT = """
import json, subprocess, sys, urllib.request
messages = [{"role": "user", "content": sys.stdin.read()}]
schema = {"type": "object", "properties": {"command": {"type": "string"}}}
while True:
    body = {"messages": messages, "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}]}
    asked = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", json.dumps(body).encode())
    said = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]
    messages.append(said)
    if "tool_calls" not in said:
        break
    for call in said["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr})
print(said["content"])
"""


def brain(exchange: Exchange) -> Reply | None:
    """Repeat the request, and run a command."""
    return Reply(f"{exchange.text.strip()} after {len(exchange.results)}", "ls -l")


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that runs during the test."""
    with serving(brain) as made:
        yield made


def ask(server: Server, path: str, body: dict[str, Any]) -> str:
    """The answer's text."""
    asked = urllib.request.Request(server.url + path, json.dumps(body).encode())
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("path", ASKED)
def test_every_format_gives_text_a_tool_call_and_usage(server: Server, path: str) -> None:
    """Whole answers: the brain's text, the command in the tool's own parameter, tokens that are not zero."""
    said = ask(server, path, ASKED[path])
    assert "go after 1" in said
    assert "ls -l" in said
    assert f": {TOKENS['read']}" in said


@pytest.mark.parametrize("path", ASKED)
def test_streams_are_server_sent_events_that_hold_the_same(server: Server, path: str) -> None:
    """Every data line is JSON; OpenAI's chat ends with its end marker."""
    streamed = path.replace(":generate", ":streamGenerate") + "?alt=sse"
    said = ask(server, streamed, {**ASKED[path], "stream": True})
    lines = [line[6:] for line in said.split("\n") if line.startswith("data: ")]
    assert [json.loads(line) for line in lines if line != "[DONE]"]
    assert "go after 1" in said
    assert "ls -l" in said
    assert server.seen[-1].exchange is not None
    assert server.seen[-1].exchange.stream


def test_a_request_for_a_title_does_not_use_up_the_script(server: Server) -> None:
    """A CLI's side requests get a harmless answer in the requested form."""
    title = {
        "messages": [{"role": "system", "content": "You are a title generator."}, {"role": "user", "content": "go"}]
    }
    assert "go after" not in ask(server, "/v1/chat/completions", title)
    form = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    asked = {**ASKED["/v1beta/models/m:generateContent"], "generationConfig": {"responseJsonSchema": form}}
    said = json.loads(ask(server, "/v1beta/models/m:generateContent", asked))
    assert json.loads(said["candidates"][0]["content"]["parts"][0]["text"]) == {"score": 1}
    assert [seen.kind for seen in server.seen] == ["background", "background"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [("rate_limit", 429), ("quota", 429), ("plan_limit", 429), ("auth", 401), ("server", 500), ("overloaded", 529)],
)
def test_the_next_requests_fail_on_order_and_then_no_more(server: Server, kind: str, status: int) -> None:
    """Once; a rate limit states when to retry."""
    server.fail(kind, 1)
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(server, "/v1/messages", ASKED["/v1/messages"])
    assert caught.value.code == status
    assert bool(caught.value.headers["retry-after"]) == (kind == "rate_limit")
    assert "error" in json.loads(caught.value.read())
    assert "go after 1" in ask(server, "/v1/messages", ASKED["/v1/messages"])


def test_models_are_listed_and_tokens_counted(server: Server) -> None:
    """CLIs ask for both before they begin."""
    with urllib.request.urlopen(server.url + "/v1/models", timeout=10) as answer:
        assert json.load(answer)["data"]
    assert json.loads(ask(server, "/v1/messages/count_tokens?beta=true", {}))["input_tokens"] == PROMPT


def test_the_shell_tool_is_filled_by_its_schema() -> None:
    """Its own name for the command, a list if it wants one, and values for its other required parameters."""
    wants = {"properties": {"cmd": {"type": "array"}, "why": {"type": "string"}, "n": {"type": "integer"}}}
    called = shell_call("ls", {"view": {}, "exec_command": {**wants, "required": ["cmd", "why", "n"]}})
    assert called is not None
    assert called.name == "exec_command"
    assert called.arguments == {"cmd": ["bash", "-lc", "ls"], "why": "small step", "n": 1}
    assert shell_call("ls", {"view": {}}) is None


def test_the_brain_takes_a_mission_to_done(tmp_path: Path) -> None:
    """A client of twenty lines with only a shell tool: planner, worker, validator and curator all reply through it."""
    house = House(tmp_path, surroundings(tmp_path))
    house.project.mkdir()
    house.git("init", "-q", "-b", "main", "--template=")
    house.write("SPEC.md", small_mission.SPEC)
    with serving(small_mission.brain) as server:
        house.program("init")
        words = json.dumps([sys.executable, "-c", CLIENT, server.url])
        (house.state / "config.toml").write_text(f'agent = "it"\n[agents.it]\ncommand = {words}\n')
        done = house.run([str(CHECKOUT / "run.sh")])
    assert done.code == 0, done
    assert "DONE" in done.out + done.err
    assert (house.project / "greeting.txt").read_text() == small_mission.GREETING + "\n"
    assert small_mission.TRICK in house.read("memory/raw.md")
