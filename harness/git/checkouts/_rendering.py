"""Renders a git configuration as the text of a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def rendered(config: Iterable[Sequence[str | None]]) -> str:
    """Render (key, value or None) pairs as a git configuration file."""
    lines = []
    for key, value in config:
        section, _, name = str(key).rpartition(".")
        first, dot, second = section.partition(".")
        head = f'{first} "{escaped(second)}"' if dot else first
        lines.append(f"[{head}]\n\t{name}" + ("" if value is None else f' = "{escaped(value)}"') + "\n")
    return "".join(lines)


def escaped(text: str) -> str:
    """`text` escaped for a quoted value in a configuration file."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
