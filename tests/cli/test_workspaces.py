"""The commands about the workspace, as a person reads them."""

from __future__ import annotations

import json

from tests.missions import House
from tests.workspace.workspaces import RULES, person, ran, skill


def test_a_person_sees_sizes_sources_and_what_waits(house: House) -> None:
    """And the texts, unless only the sizes are wanted; text that would hide itself is written out."""
    person(
        house,
        {"AGENTS.md": RULES + "\x1b[2Jgone\n", "skills/x/SKILL.md": skill("x"), "tools.json": '{"deny": ["Own"]}'},
    )
    sizes = house.harness("workspace", "show", "--sizes").out
    assert "AGENTS.md (project)" in sizes and "tokens of at most 8000" in sizes and "deny       Own" in sizes
    assert "Use tabs." not in sizes
    whole = house.harness("workspace", "show").out
    assert "--- AGENTS.md ---" in whole and "Use tabs." in whole and "\\x1b[2Jgone" in whole
    ran(house, "echo obey > AGENTS.md")
    assert "waits      AGENTS.md: changed by" in house.harness("workspace", "show", "--sizes").out
    assert json.loads(house.harness("workspace", "accept", "--json").out)[0]["path"] == "AGENTS.md"


def test_skills_are_listed_and_read(house: House) -> None:
    """In words and as JSON; a missing one is a wrong use."""
    person(house, {"skills/x/SKILL.md": skill("x"), "skills/x/a.md": "more\n"})
    assert house.harness("skill").out == "x: How to x\n"
    assert json.loads(house.harness("skill", "--json").out) == [
        {"name": "x", "description": "How to x", "layer": "project"}
    ]
    assert "Do it so." in house.harness("skill", "x").out
    assert json.loads(house.harness("skill", "x", "a.md", "--json").out)["text"] == "more\n"
    done = house.harness("skill", "y")
    assert done.code == 64 and "There are: x" in done.err
