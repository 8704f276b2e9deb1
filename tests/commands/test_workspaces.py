"""`workspace show` says what a run would have in its prompt, and no secret of a server."""

from __future__ import annotations

import json

from harness.commands import workspaces
from tests.missions import House
from tests.workspace.workspaces import RULES, person, ran, shown, skill

MCP = {"command": "x", "env": {"KEY": "hidden-value"}}
FILES: dict[str, str | None] = {
    "AGENTS.md": RULES,
    "skills/x/SKILL.md": skill("x"),
    "tools.json": json.dumps({"deny": ["web_search"], "mcpServers": {"maps": MCP, "off": {**MCP, "disabled": True}}}),
}


def test_it_shows_what_the_next_prompt_has(house: House) -> None:
    """Each part with its text, source, layer and size; for a role that reads none of it nothing."""
    person(house, FILES)
    found = workspaces.show(house.layout, "worker", None)
    prompt = ran(house)
    assert [one["source"] for one in found["parts"]] == ["AGENTS.md", "skills"]
    assert all(one["text"] in prompt and one["bytes"] == len(one["text"].encode()) for one in found["parts"])
    assert found["tokens"] == sum(one["tokens"] for one in found["parts"]) <= found["most_tokens"] == 8000
    assert found["tools"] == {
        "allow": None,
        "ask": [],
        "deny": ["web_search"],
        "servers": [{"name": "maps", "transport": "stdio"}],
        "disabled": ["off"],
    }
    assert "hidden-value" not in json.dumps(found)
    assert "server     off (disabled)" in house.harness("workspace", "show").out
    assert workspaces.show(house.layout, "curator", None)["parts"] == []
    assert [one["name"] for one in shown(house)["skills"]] == ["x"]


def test_without_any_file_it_says_so(house: House) -> None:
    """Nothing is given, nothing waits."""
    found = workspaces.show(house.layout, "", None)
    assert (found["parts"], found["skills"], found["tools"], found["waiting"], found["tokens"]) == ([], [], None, [], 0)
    assert workspaces.skill_list(house.layout) == []
    assert house.harness("skill", "x").code == 64


def test_before_there_is_a_mission_what_is_on_disk_is_shown(unbegun: House) -> None:
    """And nothing is begun by it."""
    unbegun.write("AGENTS.md", "Use make.\n")
    done = unbegun.harness("workspace", "show")
    assert (done.code, "Use make." in done.out) == (0, True), done
    assert not unbegun.state.exists()
