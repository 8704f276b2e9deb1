"""The logins of agent CLIs according to their files, without a call: when they end, and whether they changed."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from harness.agents.clis import ABOUT
from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.mission.config import Config
from harness.process.variables import matches
from harness.state import files, names
from harness.state.layout import Layout

MILLISECONDS_FROM = 10**11  # a larger time is in milliseconds, as in JavaScript


class Login(Record):
    """A login that ends: its file, its end (unix seconds), and whether it renews itself until a vendor refuses."""

    path: str
    until: int
    renews: bool


def ending(name: str, env: Mapping[str, str]) -> list[Login]:
    """The logins of a CLI that end; none for keys, key chains and files without an end."""
    found = []
    for path in ABOUT[name].logins_in(env):
        try:
            value = files.read_json(path)
        except (BrokenFile, OSError):  # the vendor's file: its program reports faults
            continue
        ends = [until for place in ABOUT[name].expires for one in _at(value, place.split(".")) if (until := _time(one))]
        renews = any(one for place in ABOUT[name].renews for one in _at(value, place.split(".")))
        found += [Login(path=path, until=min(ends), renews=renews)] if ends else []
    return found


def _at(value: Any, keys: list[str]) -> Iterator[Any]:
    """The values at this place; `*` is any key."""
    if not keys:
        yield value
    elif isinstance(value, dict):
        for name in value if keys[0] == "*" else [keys[0]]:
            yield from _at(value.get(name), keys[1:])


def _time(value: Any) -> int:
    """Unix seconds of a time, or of the end of a JSON Web Token; 0 for anything else."""
    if isinstance(value, str) and value.count(".") == 2:
        value = _claims(value).get("exp")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**15:
        return 0
    return int(value / 1000 if value > MILLISECONDS_FROM else value)


def _claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    try:
        value = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode())
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def fingerprint(where: Layout, settings: Config, agents: list[str], env: Mapping[str, str]) -> str:
    """A digest of everything that logins of these agents depend on: config.toml, keys, and login files."""
    parts = [encoding.digest(files.read(where.path(names.CONFIG)) or b"")]
    for name in (one for one in agents if one in ABOUT):
        own = {**env, **{key: str(value) for key, value in settings.agents.get(name, {}).get("env", {}).items()}}
        needs = ABOUT[name].needs_in(own)
        parts += [f"{key}={own[key]}" for key in sorted(own) if matches(key, needs)]
        parts += [f"{path} {_changed(path)}" for path in ABOUT[name].logins_in(own)]
    return encoding.digest("\0".join(parts).encode("utf-8", "surrogateescape"))


def _changed(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns} {found.st_size}"
