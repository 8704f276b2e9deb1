"""Locates the files of a workspace, and checks cheaply whether there are any."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from harness.base import ids
from harness.state.layout import Layout, home

INSTRUCTIONS, TOOLS, MODULES = "AGENTS.md", "tools.json", ".gitmodules"
IMPORTING, SERVERS = "CLAUDE.md", ".mcp.json"  # of another format, as are its skills, lowest first
FOREIGN_SKILLS = (".claude/skills", ".agents/skills")
NOT_READ = (  # of other formats, which `workspace show` names
    *("CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/agents", ".claude/commands", ".claude/rules", "GEMINI.md"),
    *(".cursor", ".cursorrules", ".github/copilot-instructions.md", ".github/instructions", ".vscode/mcp.json"),
    *(".windsurf", ".windsurfrules", ".clinerules", ".roo", ".junie", ".opencode", "MEMORY.md"),
)
PACKAGES = ("node_modules", "site-packages", "vendor", "third_party", ".venv")  # folders of dependencies
KNOWLEDGE, SKILLS, SUBAGENTS, USERS, PLAYBOOKS = "knowledge", "skills", "subagents", "users", "playbooks"
ENTRY, SKILL, DECLARATION = "KNOWLEDGE.md", "SKILL.md", ".md"
ROOTS = (INSTRUCTIONS, IMPORTING, TOOLS, SERVERS, KNOWLEDGE, SKILLS, *FOREIGN_SKILLS, SUBAGENTS)
LAYERED = (SKILLS, SUBAGENTS)  # a lower layer is shadowed by name
OF_USERS = (*LAYERED, TOOLS)
SHIPPED, HOME, PROJECT, OF_USER = "shipped", "home", "project", "user"  # the layers, lowest first


def folder_of_user(user: str) -> str:
    """The folder of a user's files in the project; "" without a user."""
    if not user:
        return ""

    return f"{USERS}/{ids.encoded(user)}"


def tops(of_user: str, more: Iterable[str]) -> list[str]:
    """The files and folders of a project that can belong to a workspace, but for those in any folder."""
    return [*ROOTS, *more, *([f"{of_user}/{name}" for name in OF_USERS] if of_user else [])]


def outer() -> list[tuple[str, str]]:
    """(layer, folder) of the layers outside the project, lowest first: shipped with the harness, then the person's own."""
    named = os.environ.get("XDG_CONFIG_HOME", "")
    config = named if os.path.isabs(named) else os.path.expanduser("~/.config")
    return [(SHIPPED, os.path.join(home(), "workspace")), (HOME, os.path.join(config, "harness"))]


def is_there(layout: Layout, folder: str, user: str, more: Iterable[str], log: str) -> bool:
    """Whether the checkout `folder` at its top, an outer layer, or the log of changes has any workspace files. Does not
    call git."""
    at = layout.folders.within(folder)
    of_user = folder_of_user(user)
    inside = [*ROOTS, *more, *([of_user] if of_user else [])]
    outside = [os.path.join(where, name) for _, where in outer() for name in LAYERED]
    return any(map(os.path.lexists, [log, *(f"{at}/{name}" for name in inside), *outside]))


def kind_of(path: str, more: Sequence[str]) -> str:
    """The kind of a path of the project (relative to its folder): `instructions`, `tools`, `knowledge`, `skills`,
    `subagents` or `playbooks`; "" if it is not part of a workspace."""
    if path in (INSTRUCTIONS, IMPORTING) or path in more:
        return "instructions"
    parts = _own(path).split("/")
    of_users = parts[0] == USERS and len(parts) > 2
    if of_users:
        parts = parts[2:]
    if parts == [TOOLS] or path == SERVERS:
        return "tools"
    if parts[0] == SUBAGENTS and len(parts) == 2 and path.endswith(DECLARATION):
        return SUBAGENTS
    if parts[0] == PLAYBOOKS and len(parts) == 2 and path.endswith(DECLARATION) and not of_users:
        return PLAYBOOKS
    if parts[0] == SKILLS and len(parts) > 2:
        return SKILLS
    if parts[0] == KNOWLEDGE and len(parts) > 1 and not of_users:
        return KNOWLEDGE
    return "instructions" if parts[-1] == INSTRUCTIONS else ""


def _own(path: str) -> str:
    """The path that a skill of another format would have among ours."""
    return next((SKILLS + path[len(one) :] for one in FOREIGN_SKILLS if path.startswith(f"{one}/")), path)


def nested(paths: Iterable[str]) -> list[str]:
    """Those of the paths that are the AGENTS.md of a folder, but of no dependency."""
    found = (path for path in paths if path.endswith(f"/{INSTRUCTIONS}") and {*PACKAGES}.isdisjoint(path.split("/")))
    return [path for path in found if kind_of(path, ()) == "instructions"]


def nearest(paths: Collection[str], path: str) -> str:
    """The AGENTS.md among `paths` whose folder is the nearest above a file; "" for none."""
    folder = os.path.dirname(path)
    while folder and f"{folder}/{INSTRUCTIONS}" not in paths:
        folder = os.path.dirname(folder)
    return f"{folder}/{INSTRUCTIONS}" if folder else ""


def anchor(path: str, prefix: str) -> str:
    """The file (git path) that makes a path part of a skill or of the knowledge; "" if it needs none."""
    name = path[len(prefix) :]
    parts = _own(name).split("/")
    own = parts[:2] if parts[0] == USERS else []
    below = parts[len(own) :]
    if below[0] == SKILLS and len(below) > 2:
        return prefix + "/".join([*name.split("/")[: 2 + len(own) + name.startswith(FOREIGN_SKILLS)], SKILL])
    return f"{prefix}{KNOWLEDGE}/{ENTRY}" if below[0] == KNOWLEDGE and not own else ""


def watched(layout: Layout, changed: Iterable[str], more: Sequence[str], read_by_clis: Sequence[str]) -> list[str]:
    """The changed git paths that belong to a workspace, or that a CLI reads by itself."""
    below, own = layout.folders.prefix, tuple(read_by_clis)
    inside = [path for path in changed if path.startswith(below)]
    return [path for path in inside if kind_of(name := path[len(below) :], more) or _is_of_cli(name, (*own, MODULES))]


def _is_of_cli(name: str, own: Sequence[str]) -> bool:
    return any(name == one or (one.endswith("/") and name.startswith(one)) for one in own)
