"""The logins of agent CLIs that end tonight, according to the CLIs' own files, without a call."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from harness.agents.clis import ABOUT
from harness.base import clock
from harness.base.errors import BrokenFile
from harness.mission import config
from harness.mission.config import Config
from harness.state import files

NIGHT_SECONDS = 12 * 3600
MILLISECONDS_FROM = 10**11  # a larger time is in milliseconds, as in JavaScript


def ending(settings: Config, environment: Mapping[str, str]) -> Iterator[str]:
    """A line for each login of the agents of config.toml that ends within 12 hours or has ended, and that does not renew itself.
    An agent with a key in this environment needs no login."""
    now = clock.now()
    for name in (one for one in config.every_agent(settings) if one in ABOUT):
        table = settings.agents.get(name, {}).get("env", {})
        env = {**environment, **{key: str(value) for key, value in table.items()}}
        if any(env.get(key) for key in ABOUT[name].keys):
            continue
        for path, until in _ends(name, env):
            if until <= now + NIGHT_SECONDS:
                verb, when = "ended" if until <= now else "ends", clock.local(until, now)
                yield f"login: that of {name} {verb} at {when} ({path}); log in again: {ABOUT[name].login}"


def present(environment: Mapping[str, str]) -> list[str]:
    """The known agent CLIs with a key in this environment, or the file of a login."""
    found = ((name, [*map(environment.get, about.keys)], about.logins_in(environment)) for name, about in ABOUT.items())
    return [name for name, keys, paths in found if any(keys) or any(map(os.path.isfile, paths))]


def _ends(name: str, env: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """(file, its end in unix seconds) of each login that ends for good."""
    for path in ABOUT[name].logins_in(env):
        try:
            value = files.read_json(path)
        except (BrokenFile, OSError):  # the vendor's file: its program reports faults
            continue
        ends = [until for place in ABOUT[name].expires for one in _at(value, place.split(".")) if (until := _time(one))]
        renews = any(one for place in ABOUT[name].renews for one in _at(value, place.split(".")))
        if ends and not renews:
            yield path, min(ends)


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
