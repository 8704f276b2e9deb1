"""The tables next to this module: rules of the gates, and word lists (`harness/base/tables.py`)."""

from __future__ import annotations

import os
import re

from harness.base import passwords, tables

WORDS, GATES = FILES = ("words.txt", "gates.txt")


def path(name: str) -> str:
    """The path of a table."""
    return os.path.join(os.path.dirname(__file__), name)


def sections(name: str) -> dict[str, list[str]]:
    """The lines of each section of a table, see `harness/base/tables.py`."""
    return tables.sections(path(name))


def words(name: str, section: str) -> frozenset[str]:
    """The words of a section, any number per line."""
    return frozenset(word for line in sections(name)[section] for word in line.split())


def hold() -> None:
    """Load all tables now, including that of passwords, so that later edits have no effect."""
    passwords.hold()
    for name in FILES:
        sections(name)


def pattern(name: str) -> re.Pattern[str]:
    """The rules of a section as one pattern."""
    return tables.pattern(path(GATES), name)


def matches(name: str, text: str) -> bool:
    """Whether a rule of a section matches anywhere in a text."""
    return bool(pattern(name).search(text))
