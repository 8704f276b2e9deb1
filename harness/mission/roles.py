"""Roles: `<name>.md` (front matter and prompt) and `<name>.py` (the script), discovered in folders, not listed in code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from harness.base import schema
from harness.base.encoding import shell_word
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.base.schema import Names, SchemaFault
from harness.mission import config
from harness.mission.config import Agents, Config, MostNumber
from harness.state import documents, files, names
from harness.state.layout import Layout, home

CAPABILITIES = ("plans", "commits", "judges", "curates", "specifies", "answers")
MAY = frozenset((*CAPABILITIES, "agent_optional"))
READS = (
    *("spec", "plan", "contract", "feature", "claims", "findings", "issues", "raw", "steer"),
    *("instructions", "knowledge", "skills", "memory"),  # of the workspace
)


class FrontMatter(Record):
    """The front matter of a role. `plans`: its reply is a plan; `commits`: it takes a feature, and its changes to the tree
    become a commit; `judges`: its checks decide; `curates`: code compacts the notes, with or without an agent; `specifies`: its
    reply becomes SPEC.md; `answers`: its last message answers who asked, and takes what it changed. At most one of these.
    `agent_optional`: the role works without an agent's reply."""

    name: str
    summary: str
    reads: Names
    agent: Agents = None
    minutes: MostNumber = 60
    idle_minutes: MostNumber = 10
    plans: bool = False
    commits: bool = False
    judges: bool = False
    curates: bool = False
    specifies: bool = False
    answers: bool = False
    agent_optional: bool = False


class Role(FrontMatter):
    """A role as its file describes it; `words` is the exact body, `common` the exact text of common.md."""

    words: str
    common: str
    path: str
    script: str

    @property
    def capability(self) -> str:
        """Its capability, one of CAPABILITIES, or ""."""
        return next((name for name in CAPABILITIES if getattr(self, name)), "")


def folders(layout: Layout) -> list[str]:
    """The folders that may have roles, the mission's own first."""
    return [layout.path(names.ROLES), os.path.join(home(), "roles")]


def known(layout: Layout) -> list[str]:
    """Names of the roles that can run here: those with both files."""
    return sorted({name for folder in folders(layout) for name in _names(folder)})


def _names(folder: str) -> list[str]:
    here = set(files.names(folder))
    return sorted(name[:-3] for name in here if name.endswith(".md") and name[:-3] + ".py" in here)


def load(layout: Layout, name: str) -> Role:
    """The role; raises UsageFault if it does not exist, BrokenFile if its file is malformed."""
    value, path = _meta(layout, name)
    if not path:
        raise UsageFault(f"There is no role '{name}'. The roles here are: {', '.join(known(layout))}.")
    script = path[:-3] + ".py"
    if not os.path.exists(script):
        raise UsageFault(f"The role '{name}' has {path} but no {script}. Give it both files.")
    return Role(**value, common=_common(), path=path, script=script)


def words(layout: Layout, name: str) -> str:
    """The exact body of a role's file, which need not be runnable. Raises UsageFault if there is none, or BrokenFile."""
    value, _ = _meta(layout, name)
    if not value:
        raise UsageFault(
            f"There is no role '{name}': neither roles/{name}.md of the harness, nor one in {layout.path(names.ROLES)}."
        )
    return str(value["words"])


def due(layout: Layout) -> dict[str, str]:
    """{capability: the role that runs for it}: the first with it, built-in roles before the mission's, then by name."""
    found: dict[str, str] = {}
    for folder in reversed(folders(layout)):
        for name in _names(folder):
            found.setdefault(capability_of(layout, name), name)
        if not (lacking := [capability for capability in CAPABILITIES if capability not in found]):
            return found
    own = os.path.join(layout.path(names.ROLES), "NAME.md")
    raise UsageFault(f"No role here {lacking[0]}. Write '{lacking[0]}: true' into the front matter of one: {own}")


def capability_of(layout: Layout, name: str) -> str:
    """The capability of the role with this name; "" if it has none, or does not exist."""
    value, _ = _meta(layout, name)
    return next((capability for capability in CAPABILITIES if value.get(capability)), "")


def _meta(layout: Layout, name: str) -> tuple[dict[str, Any], str]:
    """(fields, path) of the role's file; ({}, "") if there is none. A file that replaces a built-in role without naming
    a capability inherits its capabilities."""
    found = list(_found(layout, name))
    if not found:
        return {}, ""
    (value, path), ours = found[0], found[-1][0]
    return value if value.keys() & MAY else {**{key: ours[key] for key in ours.keys() & MAY}, **value}, path


def _found(layout: Layout, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    for folder in folders(layout):
        path = os.path.join(folder, name + ".md")
        text = files.read_text(path) if schema.is_name(name) else None
        if text is not None:
            yield _parse(text, path, name), path


def agents_of(settings: Config, role: Role) -> list[str]:
    """Agent names for the role: from its table in config.toml, else its front matter, else the mission's."""
    table = settings.roles.get(role.name, {})
    return config.agent_names(table.get("agent")) or config.agent_names(role.agent) or settings.agent


def _common() -> str:
    """The text of common.md, which precedes every role's own; raises BrokenFile if it is missing."""
    path = os.path.join(home(), "roles", "common.md")
    text = files.read_text(path)
    if text is None:
        remedy = f"Restore it from the installed harness, or by: git -C {shell_word(home())} restore roles/common.md"
        raise BrokenFile(path, "the text shared by all roles is missing", remedy=remedy)
    return text


def _parse(text: str, path: str, name: str) -> dict[str, Any]:
    meta, body = documents.front_matter(text, path)
    found = schema.faults(meta, "the front matter", FrontMatter)
    if not found:
        unknown = [item for item in meta["reads"] if item not in READS]
        known = f"(known: {', '.join(READS)})"
        found += [SchemaFault.of(f"'reads' has the unknown '{item}' {known}", path, "reads") for item in unknown]
        other = meta["name"] != name
        found += [SchemaFault.of(f"'name' must be '{name}', the name of the file", path, "name")] * other
        does = [key for key in CAPABILITIES if meta.get(key)]
        words = " and ".join(f"'{key}'" for key in does)
        found += [SchemaFault.of(f"{words} exclude each other: choose one", path, does[0])] if len(does) > 1 else []
    if found:
        line = line_of(text, found[0].key)
        raise BrokenFile(path, "; ".join(found), line=line, remedy="docs/contract.md lists the keys.")
    return {**meta, "words": body}


def line_of(text: str, key: str) -> int:
    """The 1-based line of a key in the front matter; 1 if it is absent."""
    head = text.partition("\n---\n")[0].split("\n")
    return next((number for number, line in enumerate(head, start=1) if key and line.split(":")[0].strip() == key), 1)
