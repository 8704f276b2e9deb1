"""subagents/*.md: front matter that describes a subagent, and a body that is its prompt. The file's name is its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.state import documents

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Mode = str
    Steps = int
    Title = str
else:
    Mode = schema.one_of(("isolated", "shared"))
    Steps = schema.WORDS["Positive"]
    Title = schema.TEXT.part("text, and not empty", lambda text: bool(text.strip()))

OFF = "To have no subagents, write into config.toml: [workspace] subagents = false"
README = "README"


class _Place(Record):
    mode: Mode = "isolated"
    path: str = ""


class _FrontMatter(Record):
    description: Title
    name: str = ""
    model: str = ""
    tools: list[str] | None = None
    skills: list[str] | None = None
    steps: Steps = 0
    workspace: dict[str, Json] = {}


class Subagent(Record):
    """A subagent that an agent may start. `mode`: its own workspace (`isolated`, optionally in `folder`) or its parent's
    (`shared`); `tools` and `skills`: a subset of its parent's, None for all; `steps` 0 and `model` "": as its parent."""

    id: str
    description: str
    prompt: str
    layer: str = ""
    path: str = ""
    mode: str = "isolated"
    folder: str = ""
    model: str = ""
    tools: list[str] | None = None
    skills: list[str] | None = None
    steps: int = 0


def parse(text: str, path: str, name: str) -> dict[str, Any]:
    """The fields of a Subagent except layer and path; raises BrokenFile with the line."""
    meta, body = documents.front_matter(text, path)
    found = schema.faults(meta, "the front matter", _FrontMatter)
    place = meta.get("workspace", {})
    found += schema.faults(place, "'workspace'", _Place) if not found else []
    if not schema.is_name(name):
        found.append(schema.SchemaFault.of(f"invalid subagent name '{name}': use letters, digits, '.', '_', '-'", path))
    if not found and meta.get("name", name) != name:
        found.append(schema.SchemaFault.of(f"'name' must be '{name}', the name of the file", path, "name"))
    if not found and not body.strip():
        found.append(schema.SchemaFault.of("it has no body, which is the subagent's prompt", path))
    if found:
        line = documents.line_in_front(text, found[0].key)
        raise BrokenFile(path, "; ".join(found), line=line, remedy=f"docs/workspace.md. {OFF}")
    made = _FrontMatter(**meta)
    where = _Place(**place)
    same = {key: getattr(made, key) for key in ("model", "tools", "skills", "steps")}
    said = " ".join(made.description.split())
    return {
        "id": name,
        "description": said,
        "prompt": body.lstrip("\n"),
        "mode": where.mode,
        "folder": where.path,
        **same,
    }
