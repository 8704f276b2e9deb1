"""Where the files of a workspace are; a mission without one pays for a few looks at the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.state import names
from harness.state.layout import Layout
from harness.workspace import places
from tests.helpers import steps
from tests.missions import House


def seen(house: House) -> bool:
    """Whether this project, for alice, has anything of a workspace."""
    layout = house.layout
    return places.is_there(layout, str(house.project), "alice", ["docs/STYLE.md"], layout.path(names.WORKSPACE_LOG))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("AGENTS.md", "instructions"),
        ("docs/STYLE.md", "instructions"),
        ("docs/AGENTS.md", "instructions"),
        ("knowledge/AGENTS.md", "knowledge"),
        ("CLAUDE.md", "instructions"),
        ("docs/CLAUDE.md", ""),
        (".mcp.json", "tools"),
        ("docs/.mcp.json", ""),
        (".claude/skills/x/SKILL.md", "skills"),
        (".agents/skills/x/AGENTS.md", "skills"),
        (".claude/settings.json", ""),
        ("tools.json", "tools"),
        ("src/tools.json", ""),
        ("knowledge/a/b.md", "knowledge"),
        ("skills/x/SKILL.md", "skills"),
        ("skills/x/scripts/run.sh", "skills"),
        ("skills/README.md", ""),
        ("subagents/one.md", "subagents"),
        ("subagents/one.py", ""),
        ("users/alice/skills/x/SKILL.md", "skills"),
        ("users/alice/tools.json", "tools"),
        ("users/alice/knowledge/x.md", ""),
        ("users/alice.py", ""),
        ("playbooks/worker.md", "playbooks"),
        ("playbooks/site.yml", ""),
        ("playbooks/roles/web.md", ""),
        ("main.py", ""),
    ],
)
def test_what_a_path_is_follows_from_its_place(path: str, kind: str) -> None:
    """The same names elsewhere in a project are the project's own."""
    assert places.kind_of(path, ["docs/STYLE.md"]) == kind


def test_a_mission_without_a_workspace_pays_next_to_nothing(house: House) -> None:
    """The whole look is a few hundred steps."""
    assert not seen(house)
    assert steps(lambda: seen(house)) < 1000


@pytest.mark.parametrize(
    "name",
    [
        *("AGENTS.md", "tools.json", "knowledge/x", "skills/x", "subagents/x", "users/alice/x", "docs/STYLE.md"),
        *("CLAUDE.md", ".mcp.json", ".claude/skills/x", ".agents/skills/x"),
    ],
)
def test_any_file_of_one_is_seen(bare: House, name: str) -> None:
    """So is what a person keeps for all projects, and a log of changes where a run removed everything."""
    assert not seen(bare)
    bare.write(name)
    assert seen(bare)


def test_the_layers_outside_are_seen(bare: House) -> None:
    """Those of a person, in ~/.config/harness."""
    layout = Layout(str(bare.project))
    Path(bare.env["HOME"], ".config/harness/skills").mkdir(parents=True)
    assert places.is_there(layout, str(bare.project), "", [], layout.path(names.WORKSPACE_LOG))


def test_a_folder_is_a_skill_or_knowledge_by_one_file() -> None:
    """Without it what lies there is the project's own."""
    assert places.anchor("a/skills/x/run.sh", "a/") == "a/skills/x/SKILL.md"
    assert places.anchor("users/al/skills/x/run.sh", "") == "users/al/skills/x/SKILL.md"
    assert places.anchor("a/.claude/skills/x/y/run.sh", "a/") == "a/.claude/skills/x/SKILL.md"
    assert places.anchor("knowledge/x.csv", "") == "knowledge/KNOWLEDGE.md"
    assert places.anchor("AGENTS.md", "") == places.anchor("subagents/x.md", "") == ""


def test_the_nearest_nested_file_counts() -> None:
    """Of the folders above a file; that of the top, or of a skill, is none of them."""
    found = places.nested(
        ["AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "skills/x/AGENTS.md", "a/NOT-AGENTS.md", "vendor/AGENTS.md"]
    )
    assert found == ["a/AGENTS.md", "a/b/AGENTS.md"]
    wanted = {"a/b/c/x.py": "a/b/AGENTS.md", "a/x.py": "a/AGENTS.md", "ab/x.py": "", "x.py": ""}
    assert {path: places.nearest(found, path) for path in wanted} == wanted
