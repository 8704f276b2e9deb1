"""What lies in the places of a workspace and does not count: each file, link and empty folder, by reason."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from harness.workspace import disk_reader, places
from harness.workspace._reader import WorkspaceReader

SHAPES = {
    "instructions": "blank, or without room in [workspace] max_tokens",
    places.KNOWLEDGE: "the folder counts only with a KNOWLEDGE.md",
    places.SKILLS: "a skill is a folder directly in that of skills, with a valid, accepted SKILL.md, and no other of its name",
    places.SUBAGENTS: "a subagent is a file ID.md directly in that of subagents, not README.md, and no other of its name",
}
ADD = "name it in [workspace] additional_context, or import it in CLAUDE.md"


def _entries(reader: WorkspaceReader) -> Iterator[tuple[str, str]]:
    """(path, its place or "") of each entry in the commit, on disk, and in the layers outside."""
    project, own = reader.layout.folders.project, [reader.of_user] if reader.of_user else []
    tops, above = [*reader.tops, *own], {*map(os.path.dirname, reader.tops)}
    opened = [one for one in sorted(above) if disk_reader.is_folder(os.path.join(project, one))]
    below = [os.path.join(at, one) for at in opened for one in sorted(os.listdir(os.path.join(project, at)))]
    folded = {one.casefold() for one in (*tops, *above)}
    there = [one for one in below if one.casefold() in folded and one not in opened]
    found = [path for one in [*there, *own] for path in disk_reader.leaves(project, one)]
    others = [one for one in places.NOT_READ if os.path.lexists(os.path.join(project, one))]
    for path in [*reader.paths, *reader.more, *found, *disk_reader.nested(project), *others]:
        yield path, next((top for top in tops if f"{path}/".casefold().startswith(f"{top}/".casefold())), "")
    for top in (os.path.join(folder, name) for _, folder in places.outer() for name in places.LAYERED):
        yield from ((path, top) for path in disk_reader.leaves("", top, follow=2))


def unused(
    reader: WorkspaceReader, used: Collection[str], named: Collection[str], off: Collection[str]
) -> dict[str, list[str]]:
    """{reason: paths} of what is neither `used` nor `named` elsewhere; `off`: kinds that are switched off."""
    found, project = dict[str, list[str]](), os.path.realpath(reader.layout.folders.project)
    names = dict.fromkeys("/".join([*reader.tops, places.ENTRY, places.SKILL]).split("/"))
    for path, place in dict(_entries(reader)).items():
        kind = places.kind_of(path, reader.more) or os.path.basename(place)
        if path in named or (any(f"{one}/".startswith(f"{path}/") for one in used) and kind not in off):
            continue
        at, parts, below = os.path.join(project, path), path.split("/"), path[len(place) :].strip("/").split("/")
        inside = not os.path.isabs(path)
        proper = [one for one in names for part in parts if part != one and part.casefold() == one.casefold()]
        is_linked = place and inside and os.path.relpath(os.path.realpath(at), project) != path
        is_empty = os.path.isdir(at) or (os.path.isfile(at) and not os.path.getsize(at))
        reasons = {
            f"not one of the files that count: {ADD}": path in places.NOT_READ,
            f"[workspace] {kind} = false": kind in off,
            f"in a folder of dependencies: {ADD}": not place and not {*places.PACKAGES}.isdisjoint(parts),
            f"counts only as {', '.join(proper)}": proper,
            "additional_context names it, and it is no file": path in reader.more and not os.path.isfile(at),
            "a link, or behind one: what it leads to counts only where it is": os.path.islink(at) or is_linked,
            "empty, or a submodule, whose files do not count: copy them": is_empty,
            "only the CLAUDE.md at the top counts: import it there": not place and parts[-1] == places.IMPORTING,
            "not committed in this repository": reader.commit and inside and path not in reader.paths,
            "its name begins with . or _": any(one[:1] == "." for one in below) or (below[0][:1] == "_" and not inside),
            SHAPES.get(kind, f"no part of a workspace: {ADD}"): True,
        }
        found.setdefault(next(reason for reason, holds in reasons.items() if holds), []).append(path)
    return found
