"""Checks the arguments of a call against the schema of its tool: unambiguous arguments are accepted, otherwise one sentence
names the fault.

It understands the part of JSON Schema that the built-in tools use: object, array, string, integer, number, boolean, enum,
minimum, maximum."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from typing import Any

from harness.base import encoding

WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
LONGEST_SHOWN = 60
HUGE = float("inf")


class Unfit(ValueError):
    """Arguments that the schema does not allow; the text is a sentence or two for the model."""


def fitted(schema: dict[str, Any], given: Any) -> dict[str, Any]:
    """The arguments as the schema wants them; raises Unfit. An argument that is null counts as not given."""
    return _object(schema, _parsed(given) if isinstance(given, str) else given, "")


def whole(given: Any) -> dict[str, Any]:
    """The unchecked arguments, for a tool that checks them itself; raises Unfit if they are not an object."""
    value = _parsed(given) if isinstance(given, str) else given
    if not isinstance(value, dict):
        raise Unfit(f"The arguments must be an object, not {_shown(value)}.")
    return value


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, "" where none is; the order of its words counts little."""
    sorted_words = {_sorted_words(one): one for one in known}
    found = difflib.get_close_matches(_sorted_words(name), list(sorted_words), 1, 0.5)
    return sorted_words[found[0]] if found else ""


def _sorted_words(name: str) -> str:
    return "_".join(sorted(word.rstrip("s") for word in name.lower().split("_")))


def _fit(schema: dict[str, Any], value: Any, name: str) -> Any:
    kind = schema["type"]
    value = CONVERTERS[kind](value)
    if not FITS[kind](value):
        raise Unfit(f"'{name}' must be {WORDS[kind]}, not {_shown(value)}.")
    if kind == "object":
        return _object(schema, value, name)
    if kind == "array":
        return [_fit(schema["items"], item, f"{name}[{index}]") for index, item in enumerate(value)]
    return _bounded(schema, value, name)


def _object(schema: dict[str, Any], given: Any, inside: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Unfit(f"The arguments must be an object, not {_shown(given)}.")
    known, under = schema["properties"], f"{inside}." if inside else ""
    there = {name: value for name, value in given.items() if value is not None}
    for name in there:
        if name not in known:
            near = nearest(str(name), known)
            meant = f" Did you mean '{under}{near}'?" if near else ""
            raise Unfit(f"There is no argument '{under}{name}'.{meant} There are: {', '.join(known) or 'none'}.")
    for name in schema.get("required", ()):
        if name not in there:
            raise Unfit(f"The argument '{under}{name}' is missing.")
    return {name: _fit(known[name], value, under + name) for name, value in there.items()}


def _bounded(schema: dict[str, Any], value: Any, name: str) -> Any:
    if "enum" in schema and value not in schema["enum"]:
        found = [one for one in schema["enum"] if str(one).lower() == str(value).strip().lower()]
        if not found:
            raise Unfit(f"'{name}' must be one of {', '.join(schema['enum'])}, not {_shown(value)}.")
        return found[0]
    if value < schema["minimum"] if "minimum" in schema else False:
        raise Unfit(f"'{name}' must be at least {schema['minimum']}, not {value}.")
    if value > schema["maximum"] if "maximum" in schema else False:
        raise Unfit(f"'{name}' must be at most {schema['maximum']}, not {value}.")
    return value


def _whole(value: Any) -> Any:
    value = _number(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(value: Any) -> Any:
    try:
        found = json.loads(value.strip()) if isinstance(value, str) else value
    except ValueError:
        return value
    return found if FITS["number"](found) else value


def _text(value: Any) -> Any:
    return str(value) if type(value) in (int, float) else value


def _truth(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _parsed(value: Any) -> Any:
    """A list or an object that came as the text of its JSON."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, list | dict) else value


def _shown(value: Any) -> str:
    try:
        text = encoding.compact(value)
    except (ValueError, TypeError, RecursionError):
        text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "integer": _whole,
    "number": _number,
    "boolean": _truth,
    "array": _parsed,
    "object": _parsed,
}
FITS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float) and -HUGE < value < HUGE,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
