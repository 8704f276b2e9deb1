"""The tools of servers as ours: names, results, failures, and what is left out; with a server from the index of packages, too."""

from __future__ import annotations

import json
import sys
import threading
import time
from base64 import b64decode
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import CallContext
from harness.builtin.mcp import _connection
from harness.builtin.mcp.exposed_tools import LONGEST_NAME, ExposedTools, name_of, parameters
from harness.builtin.tools.tool import READS, RUNS
from harness.workspace.tools import McpServer
from tests.agents.strict import schema_faults
from tests.builtin.mcp.program import PIXEL
from tests.builtin.mcp.served import over_http
from tests.builtin.mcp.serving import BENCH, called, ours, where


def test_a_server_from_the_index_works(tmp_path: Path) -> None:
    """Its tools have the server's name before theirs, its hints, its schemas; its errors are failed results."""
    pytest.importorskip("mcp_server_time", reason="it is in the dev extra: make setup")
    server = McpServer(name="time", transport="stdio", command=sys.executable, args=["-m", "mcp_server_time"])
    offer = ExposedTools([server], where(tmp_path))
    assert ([tool.name for tool in offer.tools], offer.faults) == (["time_get_current_time", "time_convert_time"], [])
    assert offer.tools[0].effects == READS and "timezone" in offer.tools[0].parameters["properties"]
    said = called(offer, "time_convert_time", source_timezone="Asia/Tokyo", time="12:00", target_timezone="Etc/UTC")
    assert not said.failed and "03:00" in said.text
    assert called(offer, "time_get_current_time", timezone="No/Where").failed


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_both_transports_give_texts_and_images(tmp_path: Path, transport: str) -> None:
    """As the tools say them; a name that models do not take is written in another way."""
    with over_http("secret-token") as url:
        header = {"Authorization": "Bearer ${TOKEN}"}
        server = ours() if transport == "stdio" else McpServer(name="own", transport="http", url=url, headers=header)
        offer = ExposedTools([server], where(tmp_path, {"TOKEN": "secret-token"}))
        assert offer.faults == []
        effects = {tool.name: tool.effects for tool in offer.tools}
        assert (effects["own_look"], effects["own_long"]) == (READS, RUNS)
        assert called(offer, "own_long", count=2).text == "line 0\nline 1"
        assert called(offer, "own_pixel_one").images == [("image/png", b64decode(PIXEL))]
        offer.close()


def test_a_server_gets_the_context_of_the_call_as_metadata(tmp_path: Path) -> None:
    """The ids, and the attributes that are JSON; outside a call none."""
    offer = ExposedTools([ours()], where(tmp_path))
    with CallContext(user="ann", session="s", agent="a", attributes={"tenant": 7, "database": object()}).entered():
        found = json.loads(called(offer, "own_look", name="_meta").text)
    assert found["harness"] == {"user": "ann", "session": "s", "agent": "a", "attributes": {"tenant": 7}}
    assert "harness" not in (json.loads(called(offer, "own_look", name="_meta").text) or {})
    offer.close()


def test_what_fails_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """Not there, ends at once, nobody listens, a variable that is missing, a token that is wrong and is not shown."""
    with over_http("other") as url:
        header = {"Authorization": "Bearer ${TOKEN}"}
        servers = [
            McpServer(name="absent", transport="stdio", command="no-such-program"),
            McpServer(name="ends", transport="stdio", command="bash", args=["-c", "echo ${TOKEN} is bad >&2; exit 3"]),
            McpServer(name="closed", transport="http", url="http://127.0.0.1:9/mcp"),
            McpServer(name="unset", transport="stdio", command="x", env={"A": "${UNSET_ONE}"}),
            McpServer(name="refuses", transport="http", url=url, headers=header),
            ours(),
        ]
        offer = ExposedTools(servers, where(tmp_path, {"TOKEN": "very-secret"}))
    said = {fault.split()[3]: fault for fault in offer.faults}
    assert list(said) == ["absent", "ends", "closed", "unset", "refuses"], offer.faults
    assert "cannot be started" in said["absent"]
    assert "exit 3" in said["ends"] and "${TOKEN} is bad" in said["ends"] and "very-secret" not in str(said)
    assert "env.A has ${UNSET_ONE}, which is not set here" in said["unset"]
    assert offer.tools[0].name == "own_look"


DEEP: dict[str, Any] = reduce(lambda inner, _: {"anyOf": [{"properties": {"a": inner}}]}, range(60), dict[str, Any]())
HOLES: dict[str, dict[str, Any]] = {
    "no items": {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"], "items": [{}]}}},
    "no properties": {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["b"]},
    "another root": {"type": "array"},
    "nothing": {},
    "nulls": {"properties": {"a": None, "b": True}, "required": None, "description": None, "additionalProperties": None},
    "unknown types": {"properties": {"a": {"type": "any"}, "b": {"type": "string", "minLength": "1", "enum": []}}},
    "no such definition": {"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "https://example.org/b.json"}}},
    "deep": {"properties": {"a": DEEP}},
    "alternatives": {"oneOf": [{"properties": {"a": {"type": "array"}}}, {"$ref": "#/$defs/B"}], "$defs": {"B": {}}},
}  # fmt: skip


@pytest.mark.parametrize("hole", HOLES)
def test_a_schema_with_holes_is_one_that_vendors_take(hole: str) -> None:
    """Through all levels; what it says of arguments stays."""
    assert [*schema_faults(HOLES[hole])] and not [*schema_faults(made := parameters(HOLES[hole]))]
    assert {*HOLES[hole].get("properties", ())} <= {*made["properties"]}


def test_a_schema_without_holes_stays_as_it_is() -> None:
    """Also with arguments that are called like words of schemas, a definition, and a definition as the root."""
    person = {"type": "object", "properties": {"name": {"type": "string"}, "friends": {"$ref": "#/$defs/all"}}}
    schema = {
        "type": "object",
        "properties": {"properties": {"type": "string"}, "type": {"enum": ["a"]}, "who": {"$ref": "#/$defs/person"}},
        "required": ["type"],
        "$defs": {"person": person, "all": {"type": "array", "items": {"$ref": "#/$defs/person"}}},
    }
    assert parameters(schema) == schema
    root = parameters({"$ref": "#/$defs/person", "$defs": schema["$defs"]})
    assert root == {"type": "object", "properties": person["properties"], "$defs": schema["$defs"]}


WORDS = st.sampled_from(
    ("type", "items", "properties", "required", "enum", "$ref", "anyOf", "oneOf", "$defs", "a", "minimum")
)
VALUES = st.sampled_from((None, True, 1, "array", "object", "any", "a", "#/$defs/a", "#/properties/a", "#"))
JUNK = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=25
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(WORDS, JUNK, max_size=6))
def test_whatever_a_server_says_is_a_schema_then(schema: dict[str, Any]) -> None:
    """Words of schemas in any place; once it is one it stays."""
    made = parameters(schema)
    assert not [*schema_faults(made)] and parameters(made) == made


def test_only_the_tools_that_are_named_are_offered(tmp_path: Path) -> None:
    """By their own names, which may hold a star."""
    offer = ExposedTools([ours(tools=["lo*", "pixel.one"])], where(tmp_path))
    assert [tool.name for tool in offer.tools] == ["own_look", "own_long", "own_pixel_one"]


def test_more_tools_than_a_request_takes_are_all_there(tmp_path: Path) -> None:
    """The registry says which of them are offered."""
    offer = ExposedTools([ours(env={"THINGS": "100"})], where(tmp_path))
    assert (len(offer.tools), offer.faults) == (107, [])


def test_what_a_server_says_of_itself_is_quoted_and_bounded(tmp_path: Path) -> None:
    """As its words; nothing where no server says anything."""
    says = {"SAYS": "Use look first.\n# Obey\x1b ${TOKEN}\n" + "x" * 5000}
    offer = ExposedTools([ours("one", env=says), ours("two")], where(tmp_path, {"TOKEN": "very-secret"}))
    assert "\n\n## one\n\n> Use look first.\n> # Obey\\x1b ${TOKEN}\n> xxx" in offer.about
    assert len(offer.about) < 2400 and "two" not in offer.about and "very-secret" not in offer.about
    assert ExposedTools([ours("two")], where(tmp_path)).about == ""


def test_resources_are_listed_and_read(tmp_path: Path) -> None:
    """Of servers that have some; a failure is the server's words."""
    servers = [ours("one", env={"RESOURCES": "a b"}), ours("none", env={"RESOURCES": ""}), ours("two")]
    offer = ExposedTools(servers, where(tmp_path))
    tool = offer.tools[-1]
    assert tool.effects == READS and tool.parameters["properties"]["server"]["enum"] == ["one"]
    listed = called(offer, "read_resource", server="one").text
    assert listed == "2 resources:\n- file:///a: a. a file\n- file:///b: b. a file"
    assert called(offer, "read_resource", server="one", uri="file:///b").text == "[file:///b]\nIt is b."
    wrong = called(offer, "read_resource", server="one", uri="file:///c")
    assert wrong.failed and wrong.text == "The MCP server one did not give it: Method not found."
    assert "read_resource" not in {one.name for one in ExposedTools(servers[1:], where(tmp_path)).tools}


def test_one_that_ends_is_told_and_started_anew_for_the_next_call(tmp_path: Path) -> None:
    """The call that it ended in is not repeated."""
    offer = ExposedTools([ours()], where(tmp_path))
    said = called(offer, "own_die")
    assert said.failed and "its result is unknown" in said.text and "it was time" in said.text
    assert called(offer, "own_long", count=1).text == "line 0"


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the timeout of the server's definition; one that does not answer afterwards either is ended, too."""
    monkeypatch.setattr(_connection, "ANSWER_SECONDS", 0.3)
    offer = ExposedTools([ours(seconds=1)], where(tmp_path))
    said = called(offer, "own_slow", seconds=30)
    assert said.failed and "its result is unknown" in said.text and "starts it again" in said.text
    assert called(offer, "own_long", count=1).text == "line 0"


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_call_that_timed_out_was_sent_and_its_result_is_unknown(tmp_path: Path, transport: str) -> None:
    """Also where the server goes on and answers the next call: only the server itself can say that it refused."""
    with over_http() as url:
        server = (
            ours(seconds=1) if transport == "stdio" else McpServer(name="own", transport="http", url=url, seconds=1)
        )
        offer = ExposedTools([server], where(tmp_path))
        said = called(offer, "own_slow", seconds=3)
        assert said.failed and "was sent" in said.text and "its result is unknown" in said.text
        assert "did not carry it out" not in said.text
        offer.close()


def test_a_conversation_that_is_interrupted_does_not_wait(tmp_path: Path) -> None:
    """For a server that takes its time; the server goes on for others."""
    offer = ExposedTools([ours()], where(tmp_path))
    threading.Timer(0.3, lambda: setattr(BENCH, "stopping", True)).start()
    begun = time.monotonic()
    said = called(offer, "own_slow", seconds=8)
    BENCH.stopping = False
    assert said.failed and "interrupted" in said.text and time.monotonic() - begun < 7.5
    assert called(offer, "own_long", count=1).text == "line 0"


def test_names_are_what_models_take() -> None:
    """Short enough, and different where the beginnings are the same."""
    long = [name_of("s", "x" * 80 + end) for end in "ab"]
    assert len({*long}) == 2 and max(map(len, long)) == LONGEST_NAME
    assert name_of("a.b", "c/d e") == "a_b_c_d_e"
