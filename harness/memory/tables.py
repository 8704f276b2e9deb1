"""The tables beside this module: rules and words, a line each, in sections. They are data, which people can read and extend."""

from __future__ import annotations

import functools
import os

from harness.store import files

WORDS, GATES = FILES = ("words.txt", "gates.txt")
PART = "part "  # how the name of a section begins that is a part of rules, and none itself


def path(name: str) -> str:
    """The file of a table."""
    return os.path.join(os.path.dirname(__file__), name)


@functools.cache
def sections(name: str) -> dict[str, list[str]]:
    """The lines of each section of a table; `= name` begins one, and `# ` a comment."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (files.read_text(path(name)) or "").split("\n"):
        if line.startswith("= "):
            lines = found.setdefault(line[2:], [])
        elif line and not line.startswith("# "):
            lines.append(line)
    return found


def words(name: str, section: str) -> frozenset[str]:
    """The words of a section, any number a line."""
    return frozenset(word for line in sections(name)[section] for word in line.split())
