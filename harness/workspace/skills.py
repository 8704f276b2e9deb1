"""Skills by the Agent Skills specification: `NAME/SKILL.md` with front matter (name and description), and further files.

A prompt has names and descriptions. The body is loaded on demand, by the command `harness skill` or by a tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.state import documents

MAX_CHARS = {"description": 1024, "compatibility": 500}
OPTIONAL_KEYS = {"license": str, "compatibility": str, "allowed-tools": (str, list), "metadata": dict}
OFF = "To have no skills, write into config.toml: [workspace] skills = false"


class Skill(Record):
    """A skill that an agent may load. `path`: its SKILL.md as shown to people; `folder`: of its other `files`; `text`:
    the whole SKILL.md, stored in a record as `object` instead; `kept`: the objects of small `files`, in a record."""

    name: str
    description: str
    layer: str
    path: str
    folder: str
    files: list[str] = []
    text: str = ""
    object: str = ""
    kept: dict[str, str] = {}


def parse(text: str, path: str, name: str) -> dict[str, Any]:
    """{name, description, body, misnamed} of a SKILL.md in the folder `name`, whose name counts; `misnamed` is a line for
    another or none in the file, else "". Raises BrokenFile with the line. Keys outside the specification are ignored."""
    if not text.startswith("---\n"):
        raise _broken(path, "it has no front matter", 1)
    meta, body = documents.front_matter(text, path)
    if not isinstance(meta.get("description"), str) or not meta["description"].strip():
        raise _broken(path, "'description' must be text, and not empty", documents.line_in_front(text, "description"))
    for key, most in MAX_CHARS.items():
        if len(str(meta.get(key, ""))) > most:
            raise _broken(path, f"'{key}' has more than {most} characters", documents.line_in_front(text, key))
    for key, kind in OPTIONAL_KEYS.items():
        if key in meta and not isinstance(meta[key], kind):  # type: ignore[arg-type]  # a literal table of types
            raise _broken(path, f"'{key}' is not of the right kind", documents.line_in_front(text, key))
    if not name.isprintable():
        raise _broken(path, "the name of its folder has characters that cannot be shown", 1)
    said = f"its name {meta['name']!r} is not that of its folder" if "name" in meta else "it has no name"
    told = f"{path}, line {documents.line_in_front(text, 'name')}: {said}; the skill is loaded as '{name}'"
    made = {"name": name, "description": " ".join(meta["description"].split()), "body": body.lstrip("\n")}
    return {**made, "misnamed": "" if str(meta.get("name")) == name else told}


def _broken(path: str, fault: str, line: int) -> BrokenFile:
    return BrokenFile(path, fault, line=line, remedy=f"See https://agentskills.io/specification. {OFF}")


def index(found: Sequence[Skill]) -> str:
    """The skills for a prompt, one line each."""
    return "".join(f"- {one.name}: {one.description}\n" for one in found)


def shown(skill: Skill, text: str) -> str:
    """The body of a skill for an agent, with the location of its other files."""
    body = parse(text, skill.path, skill.name)["body"]
    rest = "".join(f"- {name}\n" for name in skill.files)
    more = f"\nFiles of this skill, in {skill.folder}:\n{rest}" if rest else ""
    return f"# Skill {skill.name} ({skill.path})\n\n{body.rstrip()}\n{more}"


def find(found: Sequence[Skill], name: str) -> Skill:
    """The skill of this name; raises UsageFault with the available names."""
    there = ", ".join(one.name for one in found) or "none"
    for one in found:
        if one.name == name:
            return one
    raise UsageFault(f"There is no skill '{name}'. There are: {there}.")
