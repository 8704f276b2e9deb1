"""Tables of rules and words next to a module: one per line, in sections, as data that people can read and extend.

A rule is a regular expression. The rules of a section are compiled on first use.
"""

from __future__ import annotations

import functools
import re

PART = "part "  # prefix of a section that holds a fragment of rules, not rules
PARTS_WITHIN_PARTS = 3


@functools.cache
def sections(path: str) -> dict[str, list[str]]:
    """{section: its lines} of a table; `= name` begins a section, `# ` a comment. Raises OSError without the file."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    with open(path, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if line.startswith("= "):
                lines = found.setdefault(line[2:], [])
            elif line and not line.startswith("# "):
                lines.append(line)
    return found


@functools.cache
def sources(path: str, name: str) -> list[str]:
    """The regular expressions of a section, with their fragments substituted."""
    known = sections(path)

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
def pattern(path: str, name: str) -> re.Pattern[str]:
    """The rules of a section as one case-insensitive pattern."""
    return re.compile("|".join(sources(path, name)), re.IGNORECASE)
