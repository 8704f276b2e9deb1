"""The tables beside this module: rules and words, a line each, in sections. They are data, which people can read and extend.

A rule is a regular expression. The rules of a section are compiled when a text is first compared with them.
"""

from __future__ import annotations

import functools
import os
import re

from harness.store import files

WORDS, GATES = FILES = ("words.txt", "gates.txt")
PART = "part "  # how the name of a section begins that is a part of rules, and none itself
PARTS_WITHIN_PARTS = 3


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


def hold() -> None:
    """Keep all tables as they are now."""
    for name in FILES:
        sections(name)


# ---- rules


@functools.cache
def sources(name: str) -> list[str]:
    """The regular expressions of a section, with their parts in place."""
    known = sections(GATES)

    def part(found: re.Match[str]) -> str:
        lines = known.get(PART + found[1])
        return found[0] if lines is None else f"(?:{'|'.join(lines)})" if len(lines) > 1 else lines[0]

    made = []
    for source in known[name]:
        for _ in range(PARTS_WITHIN_PARTS):
            source = re.sub(r"<([a-z_]+)>(?!:)", part, source)
        made.append(source)
    return made


@functools.cache
def pattern(name: str) -> re.Pattern[str]:
    """The rules of a section as one pattern."""
    return re.compile("|".join(sources(name)), re.IGNORECASE)


def matches(name: str, text: str) -> bool:
    """Whether a rule of a section matches somewhere in a text."""
    return bool(pattern(name).search(text))
