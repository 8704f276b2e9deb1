"""The commands about the workspace, as a person reads them."""

from __future__ import annotations

import json

from tests.missions import House
from tests.workspace.workspaces import FOREIGN, RULES, person, ran, skill


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


def test_what_a_repository_has_for_other_agents_is_shown_and_accepted(house: House) -> None:
    """Within the one budget; servers and skills with files once they are accepted; what is not read is named."""
    for name, text in FOREIGN.items():
        house.write(name, text or "")
    house.git("add", "-A")
    house.git("commit", "-qm", "theirs")
    lines = house.harness("workspace", "show", "--sizes").out.split("\n")
    parts = [line.split("  ")[-1] for line in lines if "bytes" in line]
    assert [one.split(" ")[0] for one in parts] == ["AGENTS.md", "CLAUDE.md", "docs/style.md", "**/AGENTS.md", "skills"]
    assert any(line.endswith("tokens of at most 8000") for line in lines)
    assert any(line.startswith("not read   .claude/agents, .cursor: not one of the files that count") for line in lines)
    assert [line.split()[1] for line in lines if line.startswith("skill ")] == ["deploy", "review"]
    assert not any(line.startswith("server ") for line in lines)
    [waits] = [line for line in lines if "not used until you accept it" in line]
    assert "MCP server maps: ours; MCP server docs: http://d; skill fix: run.sh" in waits
    assert house.harness("workspace", "accept").code == 0
    lines = house.harness("workspace", "show", "--sizes").out.split("\n")
    assert [line.split()[1] for line in lines if line.startswith("server ")] == ["maps", "docs"]
    assert [line.split()[1] for line in lines if line.startswith("skill ")] == ["deploy", "fix", "review"]


def test_what_does_not_count_is_named_in_twelve_lines_or_all_of_it(house: House) -> None:
    """Grouped by reason, in `show` and at `accept`; what waits for the person comes first."""
    wrong: dict[str, str | None] = {f"skills/{name}/SKILL.md": "no front matter" for name in "abcdefghijk"}
    person(
        house,
        {**wrong, **{f"skills/in/deep{at}/SKILL.md": skill("x") for at in range(7)}, "packages/web/CLAUDE.md": "w"},
    )
    house.write(".mcp.json", '{"mcpServers": {"maps": {"command": "ours"}}}')
    house.git("add", "-A")
    house.git("commit", "-qm", "theirs")
    left = [
        line
        for line in house.harness("workspace", "show", "--sizes").out.split("\n")
        if line[:8] in ("left out", "not read")
    ]
    assert len(left) == 12 and "until you accept it" in left[0] and left[-1].startswith("not read   3 lines more: ")
    every = house.harness("workspace", "show", "--sizes", "-v").out
    assert all(f"not read   skills/in/deep{at}/SKILL.md: a skill is a folder" in every for at in range(7))
    said = house.harness("workspace", "accept").out
    assert said.startswith("accepted: MCP server maps") and "left out   skills/a/SKILL.md, line 1" in said
    person(house, dict.fromkeys(wrong))
    said = house.harness("workspace", "accept").out
    assert (
        "deep4/SKILL.md and 2 more: a skill is a folder" in said
        and "packages/web/CLAUDE.md: only the CLAUDE.md at" in said
    )
