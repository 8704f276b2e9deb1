"""Unified diffs, as files with added and removed lines. Pure."""

from __future__ import annotations

import re

from harness.base.record import Record

CODED = re.compile(r'\\([0-7]{3}|[abfnrtv"\\])')
LETTERS = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, '"': 34, "\\": 92}
LONG, OVERLAP = 500, 100  # characters: lines are cut into pieces, since a pattern may take quadratic time


class FilePatch(Record):
    """One file of a diff: its path, the added and removed lines, and `after`: the shown lines of the new file. `old`
    and `new`: the shown lines of both files, uncut."""

    path: str
    added: list[str] = []
    removed: list[str] = []
    after: list[str] = []
    old: list[str] = []
    new: list[str] = []


def parse(patch: str) -> list[FilePatch]:
    """Every file of a diff without renames; a binary file has no lines."""
    found: list[FilePatch] = []
    inside = False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            found.append(FilePatch(path=_path(line.removeprefix("diff --git "))))
            inside = False
        elif line.startswith("@@"):
            inside = True
        elif found and inside:
            _take(found[-1], line)
    return found


def _take(file: FilePatch, line: str) -> None:
    kind, text = line[:1], line[1:].rstrip("\r")
    pieces = [text[start : start + LONG] for start in range(0, max(len(text), 1), LONG - OVERLAP)]
    file.old += [text] if kind in ("-", " ") else []
    file.new += [text] if kind in ("+", " ") else []
    if kind == "-":
        file.removed += pieces
    elif kind == "+":
        file.added += pieces
        file.after += pieces
    elif kind == " ":
        file.after += pieces


def _path(names: str) -> str:
    """The path in `a/PATH b/PATH`; both have equal length, since renames are disabled."""
    name = names[len(names) // 2 + 1 :]
    if name.startswith('"'):  # git's C style
        data = CODED.sub(lambda found: chr(LETTERS.get(found[1]) or int(found[1], 8)), name[1:-1])
        name = data.encode("latin-1", "replace").decode("utf-8", "replace")
    return name.removeprefix("b/")
