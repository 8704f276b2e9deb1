"""Shapes of plain data: closed sets of keys with their kinds, and faults in words.

One small checker serves features, replies, config, front matter and contracts, so that "unknown key" reads the same
everywhere.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")

WORDS = {
    "str": "text",
    "int": "a whole number",
    "number": "a number",
    "bool": "true or false",
    "names": "a list of names, such as [one, two]",
    "strs": "a list of texts",
    "texts": "an object of texts",
    "plain": "text without NUL or carriage return",
    "line": "one line of text without NUL",
    "seconds": "a whole number above 0",
    "dict": "an object",
    "list": "a list",
    "any": "anything",
}


def fits(value: object, kind: str) -> bool:
    """Whether `value` is of the kind, a key of WORDS."""
    match kind:
        case "str":
            return isinstance(value, str)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bool":
            return isinstance(value, bool)
        case "names":
            return isinstance(value, list) and all(isinstance(item, str) and NAME.match(item) for item in value)
        case "strs":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "texts":
            return isinstance(value, dict) and all(isinstance(item, str) for pair in value.items() for item in pair)
        case "plain":
            return isinstance(value, str) and not re.search(r"[\0\r]", value)
        case "line":
            return isinstance(value, str) and not re.search(r"[\0\r\n]", value)
        case "seconds":
            return isinstance(value, int) and not isinstance(value, bool) and value > 0
        case "dict":
            return isinstance(value, dict)
        case "list":
            return isinstance(value, list)
    return True


def faults(value: object, where: str, required: Mapping[str, str], optional: Mapping[str, str] = {}) -> list[str]:
    """What is wrong with an object that must have the `required` keys, may have the `optional` ones, and no others."""
    if not isinstance(value, dict):
        return [f"{where} must be an object"]
    known = {**required, **optional}
    found = [f"{where} has the unknown key '{key}' (known: {', '.join(known)})" for key in value if key not in known]
    found += [f"{where} lacks '{key}'" for key in required if key not in value]
    for key, kind in known.items():
        if key in value and not fits(value[key], kind):
            found.append(f"{where}: '{key}' must be {WORDS[kind]}")
    return found


def name_faults(names: Iterable[Any], what: str) -> list[str]:
    """What is wrong with names that must be unique without case and match NAME."""
    found: list[str] = []
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not NAME.match(name):
            found.append(
                f"{what} '{name}' is no name: letters, digits, '.', '_', '-', at most 64, starting with one of the first two"
            )
        elif name.lower() in seen:
            found.append(f"{what} '{name}' stands twice")
        else:
            seen.add(name.lower())
    return found
