"""The tables beside this module: rules and words, a line each, in sections. They are data, which people can read and extend.

A rule is a regular expression, which matches only a text that has one of some literals; most notes have none of any rule.
`hints.json` has those literals, which `bench/gate_hints.py` reads off the rules, so that a rule is compiled and tried only where
it can match. Where gates.txt was changed and that was not done, every rule is tried: slower, and as exact.
"""

from __future__ import annotations

import functools
import json
import os
import re
import zlib
from itertools import chain

from harness.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    Hint = tuple[str, list[tuple[str, int]]]  # and of which rules it is one: section and place

WORDS, GATES = FILES = ("words.txt", "gates.txt")
HINTS = os.path.join(os.path.dirname(__file__), "hints.json")
PART = "part "  # how the name of a section begins that is a part of rules, and none itself
PARTS_WITHIN_PARTS = 3
BEGINNING = 3  # characters
FOLDED = str.maketrans({"\u0131": "i", "\u017f": "s", "\u0307": None})  # as patterns without regard to case take them


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
    _file()


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
    return _compiled("|".join(sources(name)))


@functools.cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


def matches(name: str, text: str) -> bool:
    """Whether a rule of a section matches somewhere in a text."""
    return any(_compiled(sources(name)[number]).search(text) for number in able(name, text))


def able(name: str, text: str) -> Collection[int]:
    """The rules of a section that can match somewhere in a text, by their place."""
    return _able(text).get(name, ())


@functools.lru_cache(256)
def _able(text: str) -> dict[str, set[int]]:
    """The same of each section that has one. Hints are found by their beginnings: there are a thousand of them."""
    low = text.lower() if text.isascii() else text.lower().translate(FOLDED)
    by_beginning, short = _hints()
    begun = by_beginning.keys() & {low[place : place + BEGINNING] for place in range(len(low) - BEGINNING + 1)}
    found = {name: {*numbers} for name, numbers in _unhinted().items()}
    for hint, places in chain(short, *map(by_beginning.__getitem__, begun)):
        if hint in low:
            for name, number in places:
                found.setdefault(name, set()).add(number)
    return found


@functools.cache
def _hints() -> tuple[dict[str, list[Hint]], list[Hint]]:
    """All hints by their beginnings, and those that are too short to have one."""
    listed: dict[str, list[tuple[str, int]]] = {}
    for name, rules in _file().items():
        for number, hints in enumerate(rules):
            for hint in hints:
                listed.setdefault(hint, []).append((name, number))
    by_beginning: dict[str, list[Hint]] = {}
    for hint, places in listed.items():
        if len(hint) >= BEGINNING:
            by_beginning.setdefault(hint[:BEGINNING], []).append((hint, places))
    return by_beginning, [(hint, places) for hint, places in listed.items() if len(hint) < BEGINNING]


@functools.cache
def _unhinted() -> dict[str, set[int]]:
    """The rules of each section that have no hint, and are always tried."""
    found = {}
    for name, lines in sections(GATES).items():
        known = dict(enumerate(_file().get(name, ())))
        found[name] = {number for number in range(len(lines)) if not known.get(number)}
    return {name: numbers for name, numbers in found.items() if numbers and not name.startswith(PART)}


@functools.cache
def _file() -> dict[str, list[list[str]]]:
    """The hints of each rule of each section; {} where they are those of another gates.txt."""
    made = json.loads(files.read(HINTS) or b"{}")
    return made["rules"] if made.get("gates") == checksum() else {}


@functools.cache
def checksum() -> int:
    """That of gates.txt."""
    return zlib.crc32(files.read(path(GATES)) or b"")
