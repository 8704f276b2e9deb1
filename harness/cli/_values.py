"""Prints results as JSON (`--json`): one value on standard output, whose keys are in docs/contract.md; or as lines."""

from __future__ import annotations

import json
from collections.abc import Iterable

from harness.base import console
from harness.base.record import Record


def echo(value: object) -> None:
    """Print a value as JSON, records as objects. Control characters are escaped, so that the value round-trips."""
    text = json.dumps(_plain(value), ensure_ascii=False, indent=1)
    console.print_line("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def show(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a value as JSON, or these lines for a person."""
    if as_json:
        echo(value)
        return
    for line in lines:
        console.print_line(line)


def _plain(value: object) -> object:
    if isinstance(value, Record):
        return _plain(value.asdict())
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
