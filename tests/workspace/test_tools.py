"""tools.json: what it permits, and that a broken one is never "no restrictions"."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import BrokenFile
from harness.workspace import tools
from harness.workspace.tools import McpServer, ToolsFile, merged, parse, substituted

SERVER = {"command": "python", "args": ["-m", "${MODULE:-server}"], "env": {"KEY": "${KEY}"}}


def test_a_deny_wins_over_an_allow_and_holds_for_servers_too() -> None:
    """Names may hold a star."""
    said = parse('{"allow": ["read_file", "execute", "maps_*"], "deny": ["execute", "maps_delete*"]}', "tools.json")
    permitted = [
        name for name in ("read_file", "execute", "maps_find", "maps_delete_all", "other") if said.rules.offers(name)
    ]
    assert permitted == ["read_file", "maps_find"]
    assert said.restricts


def test_absent_and_empty_are_two_answers() -> None:
    """No list of what is allowed allows all; an empty one allows nothing."""
    assert parse("{}", "t").rules.offers("execute")
    assert not parse("{}", "t").restricts
    assert not parse('{"allow": []}', "t").rules.offers("execute")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        (" \n", 1, "empty"),
        ('{\n  "deny": ["execute"],\n}', 2 if sys.version_info >= (3, 13) else 3, "not JSON"),  # 3.13 names the comma
        ('{\n  // no\n  "deny": []\n}', 2, "not JSON"),
        ('{\n  "deny": ["execute"],\n  "deny": []\n}', 3, "'deny' appears twice"),
        ('{\n  "denny": ["execute"]\n}', 2, "unknown key 'denny'"),
        ('{\n "allow": [],\n "deny": "execute"\n}', 3, "'deny' must be a list of names of tools"),
        ('{"deny": [" "]}', 1, "list of names"),
        ('{"deny": ["execute(git push"]}', 1, "list of names"),
        ('{"ask": ["execute()"]}', 1, "list of names"),
        ('{"ask": ["write_file({a,b)"]}', 1, "list of names"),
        ("[]", 1, "must be an object"),
        ("[" * 100_000, 1, "nested"),
    ],
)
def test_a_broken_file_is_named_with_its_line_and_the_way_out(text: str, line: int, words: str) -> None:
    """Whatever is wrong with it; never is it taken for a file without rules."""
    with pytest.raises(BrokenFile) as caught:
        parse(text, "tools.json")
    assert (caught.value.line, caught.value.code) == (line, 65)
    assert words in str(caught.value)
    assert "[workspace] tools = false" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"mcpServers": {\n  "maps": {"cmd": "x"}\n}}', 2, "unknown key 'cmd'"),
        ('{"mcpServers": {\n  "maps": {}\n}}', 2, "has no 'command'"),
        ('{"mcpServers": {\n  "maps": {"type": "http", "command": "x"}\n}}', 2, "has no 'url'"),
        ('{"mcpServers": {\n  "a b": {"command": "x"}\n}}', 2, "no name"),
    ],
)
def test_an_invalid_server_is_left_out_with_one_line(text: str, line: int, words: str) -> None:
    """It restricts nothing; the other servers and the rules stay."""
    rest = f'"deny": ["execute"], {text[1:-2]}, "good": {{"command": "x"}}}}}}'
    found = parse("{" + rest, "tools.json")
    assert [one.name for one in found.servers] == ["good"] and found.deny == ["execute"]
    assert (
        len(found.faults) == 1 and found.faults[0].startswith(f"tools.json, line {line}: ") and words in found.faults[0]
    )


def test_variables_are_substituted_after_parsing() -> None:
    """A value with quotes and braces stays a value; one that is missing is named with its key, unless it has a default."""
    said = parse(json.dumps({"deny": ["${KEY}"], "mcpServers": {"maps": SERVER}}), "t")
    assert said.deny == ["${KEY}"], "no variable becomes a rule"
    made, left = substituted(said.servers[0], {"KEY": '", "deny": [], "x": "{MODULE}'})
    assert (made.env["KEY"], made.args, left) == ('", "deny": [], "x": "{MODULE}', ["-m", "server"], [])
    assert substituted(said.servers[0], {})[1] == ["env.KEY has ${KEY}"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(("$", "{", "}", "${", "${input:login}", "${A}", "${B:-${C}}", "x")), max_size=6).map(
        "".join
    )
)
def test_no_text_with_a_placeholder_is_ever_sent(text: str) -> None:
    """Of an editor, of a variable that is not set, in a value: in each key of a server."""
    keys: dict[str, Any] = {"command": text, "args": [text], "env": {"E": text}, "url": text, "headers": {"H": text}}
    made, left = substituted(McpServer(name="s", transport="http", **keys), {"A": "{value", "E": ""})
    names = [one.partition(" has ")[0] for one in left]
    assert names == (["command", "args", "env.E", "url", "headers.H"] if "${" in made.url else [])
    assert "value" not in str(left)


def test_the_transport_follows_from_what_a_server_has() -> None:
    """With the field's other words for it."""
    rows = {"a": {"command": "x"}, "b": {"url": "https://x"}, "c": {"transport": "streamableHttp", "url": "https://x"}}
    said = parse(json.dumps({"mcpServers": rows}), "t")
    assert [one.transport for one in said.servers] == ["stdio", "http", "http"]


def test_a_nearer_file_can_only_take_away() -> None:
    """Every deny counts, both must allow, and a server takes the place of one with its name."""
    far = ToolsFile(
        allow=["read_file", "execute", "x_*"], deny=["a"], servers=[McpServer(name="s", transport="stdio", command="1")]
    )
    near = ToolsFile(
        allow=["execute", "x_y", "z"], deny=["b"], servers=[McpServer(name="s", transport="stdio", command="2")]
    )
    both = merged([far, near])
    assert (both.allow, both.deny, [one.command for one in both.servers]) == (["execute", "x_y"], ["a", "b"], ["2"])


def test_a_server_can_be_switched_off() -> None:
    """In its own entry, or by a nearer file, which names it only; the nearest file counts."""
    on, off = {"command": "x"}, {"disabled": True}
    far = parse(json.dumps({"mcpServers": {"a": on, "b": {**on, **off}, "c": {**on, "disabled": False}}}), "t")
    near = parse(json.dumps({"mcpServers": {"a": off, "b": on}}), "t")
    assert ([one.name for one in far.servers], far.disabled, near.faults) == (["a", "c"], ["b"], [])
    both = merged([far, near])
    assert ([one.name for one in both.servers], both.disabled) == (["c", "b"], ["a"])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=20))
def test_what_it_says_survives_a_record(name: str, value: str) -> None:
    """A file that is accepted comes back from the record of a run as it was."""
    text = json.dumps({"deny": [f"x{name.strip()}"], "mcpServers": {"s": {"command": "c", "env": {"K": value}}}})
    try:
        said = parse(text, "t")
    except BrokenFile:
        assert any(map(str.isspace, name.strip())) or "(" in name
        return
    from harness.base import schema

    assert tools.of_json(json.loads(json.dumps(schema.plain(said)))) == said


def test_of_another_format_only_known_fields_count() -> None:
    """Each other one is left out with a line, rules too; a server that is off, or of a kind that we have not, is skipped."""
    rows = {
        "a": {"command": "x", "args": ["${A:-b}"], "timeout": 600000, "confine": False},
        "off": {"command": "x", "disabled": True},
        "old": {"type": "sse", "url": "http://x"},
    }
    found = parse(json.dumps({"mcpServers": rows, "allow": [], "inputs": []}), ".mcp.json", foreign=True)
    assert [one.name for one in found.servers if not getattr(one, "disabled", False)] == ["a"]
    assert found.servers[0].seconds == 60 and found.servers[0].confine and found.allow is None and not found.restricts
    assert found.unused[:2] == [f".mcp.json: '{key}' of the file is not used" for key in ("allow", "inputs")]
    assert ".mcp.json: 'timeout' of the server 'a' is not used" in found.unused
    assert any("the server 'old'" in line for line in found.faults)
    for text in ("[]", "", '{"mcpServers": []}', '{"mcpServers": {"a": 5}}'):
        with suppress(BrokenFile):
            assert parse(text, ".mcp.json", foreign=True).servers == []
