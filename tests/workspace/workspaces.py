"""A mission with a workspace, for tests: a person commits its files, and runs are prompted."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.base.errors import BrokenFile
from harness.commands import workspaces
from harness.state import names
from harness.state.layout import Layout
from tests.missions import House
from tests.planned import role

RULES = "# Rules of the house\n\nUse tabs.\n"

FOREIGN: dict[str, str | None] = {  # what a repository has for several agents
    "AGENTS.md": "Run make.\n",
    "CLAUDE.md": "# For one agent\n\nSee @AGENTS.md, @docs/style.md and @docs/gone.md.\n",
    "docs/style.md": "No adverbs.\n",
    "sub/AGENTS.md": "Only pure functions here.\n",
    "sub/deep/x.py": "x = 1\n",
    "sub/y.py": "y = 1\n",
    "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: How we deploy\n---\nSo.\n",
    ".claude/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: How another deploys\n---\nNot so.\n",
    ".claude/skills/review/SKILL.md": "---\nname: review\ndescription: How to review\n---\nRead.\n",
    ".agents/skills/fix/SKILL.md": "---\nname: fix\ndescription: How to fix\n---\nFix.\n",
    ".agents/skills/fix/run.sh": "true\n",
    "tools.json": '{"mcpServers": {"maps": {"command": "ours"}}}',
    ".mcp.json": json.dumps(
        {"mcpServers": {"maps": {"command": "theirs"}, "docs": {"type": "http", "url": "http://d", "alwaysLoad": True}}}
    ),
    ".cursor/rules/a.mdc": "Use spaces.\n",
    ".claude/agents/one.md": "---\nname: one\n---\nYou are one.\n",
}


def skill(name: str, says: str = "Do it so.") -> str:
    """A SKILL.md."""
    return f"---\nname: {name}\ndescription: How to {name}\n---\n{says}\n"


def accepted(layout: Layout) -> None:
    """A person has accepted what the repository brings, if it can be read."""
    with suppress(BrokenFile):
        for one in workspaces.brought(layout):
            one.accept(layout)


def person(house: House, texts: dict[str, str | None], message: str = "mine") -> str:
    """A person commits these files, and accepts what they bring; None removes one."""
    for name, text in texts.items():
        if text is None:
            house.git("rm", "-q", name)
        else:
            house.write(name, text)
    house.git("add", "-A")
    house.git("commit", "-qm", message)
    accepted(house.layout)
    return house.head()


def ran(house: House, shell: str = "echo x >> 1.txt", feature: str = "F-001", name: str = "worker") -> str:
    """A worker's run that does this; its prompt."""
    house.script("worker", {"run": shell})
    words = [feature, "--again"] if house.feature(feature).status != "todo" else [feature]
    assert role(house, name, *words) in (0, 10)
    return house.prompt()


def log(house: House) -> list[dict[str, Any]]:
    """The lines of workspace.jsonl."""
    path = Path(house.layout.path(names.WORKSPACE_LOG))
    return [json.loads(line) for line in path.read_text().split("\n") if line] if path.exists() else []


def shown(house: House, *words: str) -> dict[str, Any]:
    """What `workspace show` says."""
    done = house.harness("workspace", "show", "--json", *words)
    assert done.code == 0, done
    found: dict[str, Any] = json.loads(done.out)
    return found
