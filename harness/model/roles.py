"""Roles: `<name>.md` (front matter, then the words) and `<name>.py` (what they then do), found, never listed in code."""

from __future__ import annotations

import os

from harness.base import schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.base.schema import Fault
from harness.model import config
from harness.store import documents, files
from harness.store.layout import Layout, home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harness.base.schema import Names
    from harness.model.config import Agents, Config, MostNumber
else:
    Agents, MostNumber = config.Agents, config.MostNumber

READS = ("spec", "plan", "contract", "feature", "claims", "findings", "issues", "raw", "steer")


class FrontMatter(Record):
    """What a role's file says before its words."""

    name: str
    summary: str
    reads: Names
    agent: Agents = None
    minutes: MostNumber = 60
    idle_minutes: MostNumber = 10


class Role(FrontMatter):
    """A role as its file describes it; `words` is the exact body, `common` the exact common.md before it."""

    words: str
    common: str
    path: str
    script: str


def folders(layout: Layout) -> list[str]:
    """Where roles are looked for, the mission's own first."""
    return [layout.roles, os.path.join(home(), "roles")]


def known(layout: Layout) -> list[str]:
    """Names of the roles that can be run here: those with both files."""
    found = set()
    for folder in folders(layout):
        here = set(files.names(folder))
        found |= {name[:-3] for name in here if name.endswith(".md") and name[:-3] + ".py" in here}
    return sorted(found)


def load(layout: Layout, name: str) -> Role:
    """The role; UsageFault where it does not exist, BrokenFile where its file is malformed."""
    for folder in folders(layout):
        path = os.path.join(folder, name + ".md")
        text = files.read_text(path) if schema.NAME.match(name) else None
        if text is not None:
            return _role(layout, name, path, text)
    raise UsageFault(f"There is no role '{name}'. The roles here are: {', '.join(known(layout))}.")


def agents_of(settings: Config, role: Role) -> list[str]:
    """Agent names for the role: its table in config.toml, then its front matter, then the mission's."""
    table = settings.roles.get(role.name, {})
    return config.names(table.get("agent")) or config.names(role.agent) or settings.agent


def _role(layout: Layout, name: str, path: str, text: str) -> Role:
    def parsed(text: str) -> dict[str, Any]:
        return _parse(text, path, name)

    value = documents.cached(layout.cache, f"role-{name}", text, parsed, Role.fields)
    script = path[:-3] + ".py"
    if not os.path.exists(script):
        raise UsageFault(f"The role '{name}' has {path} but no {script}. Give it both files.")
    return Role(**value, common=_common(), path=path, script=script)


def _common() -> str:
    """The words that every role begins with; without them an agent would know nothing of the rules that all share."""
    path = os.path.join(home(), "roles", "common.md")
    text = files.read_text(path)
    if text is None:
        remedy = "Put it back from the harness as it was installed; in a checkout: git restore roles/common.md"
        raise BrokenFile(path, "the words that all roles share are not there", remedy=remedy)
    return text


def _parse(text: str, path: str, name: str) -> dict[str, Any]:
    meta, body = documents.front_matter(text, path)
    found = schema.faults(meta, "the front matter", FrontMatter)
    if not found:
        unknown = [item for item in meta["reads"] if item not in READS]
        known = f"(known: {', '.join(READS)})"
        found += [Fault.of(f"'reads' has the unknown '{item}' {known}", path, "reads") for item in unknown]
        other = meta["name"] != name
        found += [Fault.of(f"'name' must be '{name}', as the file is called", path, "name")] * other
    if found:
        line = line_of(text, found[0].key)
        raise BrokenFile(path, "; ".join(found), line=line, remedy="The keys stand in docs/contract.md.")
    return {**meta, "words": body}


def line_of(text: str, key: str) -> int:
    """The 1-based line of a key of the front matter, the first where it has none."""
    head = text.partition("\n---\n")[0].split("\n")
    return next((number for number, line in enumerate(head, start=1) if key and line.split(":")[0].strip() == key), 1)
