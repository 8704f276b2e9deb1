"""`@path` imports of CLAUDE.md, within the project folder: CLAUDE.md and the files that it brings, each once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from harness.base.errors import BrokenFile
from harness.state import documents
from harness.workspace import places
from harness.workspace._reader import WorkspaceReader

MAX_DEPTH = 5
IMPORT = re.compile(r"(?<!\S)@([\w.~/-][^\s@]*)")
PATH = re.compile(r"(\.{0,2}|~)/|.*\.\w")  # what is written like this is an import, also of a missing file
CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def read(reader: WorkspaceReader, left_out: list[str]) -> dict[str, str]:
    """{path: text} of CLAUDE.md, "" if it has only imports, and of what it imports, in that order; {} without CLAUDE.md.
    Adds a line to `left_out` for each file that is missing, unreadable or outside, or too many imports away."""
    found: dict[str, str] = {}
    level = {places.IMPORTING: ""} if places.IMPORTING in reader.paths else {}
    for depth in range(MAX_DEPTH + 1):
        reader.add(path for path in level if _is_inside(path))
        following: dict[str, str] = {}
        for path, named in level.items():
            text = _text(reader, path, named, left_out)
            if text is not None:
                found[path] = text
                following |= {new: f"{path}: @{written}" for new, written in _imports(reader, path, text)}
        level = {path: named for path, named in following.items() if path not in found}
        if depth == MAX_DEPTH:
            left_out += [f"{named} is more than {MAX_DEPTH} imports away" for named in level.values()]
    rest = found.get(places.IMPORTING, "")
    if not IMPORT.sub(lambda one: "" if _import(reader, places.IMPORTING, one) else one[0], rest).strip() and found:
        found[places.IMPORTING] = ""
    return found


def _text(reader: WorkspaceReader, path: str, named: str, left_out: list[str]) -> str | None:
    """The text of an imported file; None, with a line in `left_out`, if there is none."""
    fault = f"{named} is not a file of the project"
    try:
        text = reader.text(path) if _is_inside(path) else None
    except BrokenFile as broken:
        text, fault = None, broken.brief
    left_out += [fault] if text is None else []
    return text


def _is_inside(path: str) -> bool:
    return not path.startswith(("/", "~", ".."))


def _imports(reader: WorkspaceReader, path: str, text: str) -> Iterator[tuple[str, str]]:
    """(path in the project, path as written) of each import outside code."""
    for block in documents.blocks(text):
        if block.kind in ("heading", "paragraph"):
            yield from filter(None, (_import(reader, path, one) for one in IMPORT.finditer(CODE.sub("", block.text))))


def _import(reader: WorkspaceReader, path: str, match: re.Match[str]) -> tuple[str, str] | None:
    written = match[1].rstrip(".,;:!?)")
    found = os.path.normpath(os.path.join("" if written.startswith("~") else os.path.dirname(path), written))
    is_there = found in reader.paths or os.path.lexists(os.path.join(reader.layout.folders.project, found))
    return (found, written) if is_there or PATH.match(written) else None
