"""Reads the configuration files of a CLI, to find entries that can only be disabled by name."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from harness.agents.base import ExecutionContext, Settings
from harness.state import files


def known(settings: Settings, context: ExecutionContext) -> dict[str, str]:
    """The environment of the agent."""
    return {**context.environment, **settings.table.get("env", {})}


def config_names(settings: Settings, context: ExecutionContext, paths: Sequence[str], table: str) -> list[str]:
    """The keys of a table in a CLI's own configuration files: TOML, or JSON with comments; unparsable files are skipped.

    `$NAME` in a path is a variable of the agent's environment; other paths are relative to the working folder.
    """
    env, found = known(settings, context), list[str]()
    for path in paths:
        name = re.match(r"\$(\w+)", path)
        if name and not env.get(name[1]):
            continue
        place = os.path.join(context.directory, env[name[1]] + path[name.end() :] if name else path)
        named = parsed(files.read_text(place) or "", place).get(table) if os.path.isfile(place) else None
        found += [key for key in named if key not in found] if isinstance(named, dict) else []
    return found


def in_project(context: ExecutionContext, names: Sequence[str]) -> dict[str, Any]:
    """The configuration of a CLI in files of these names in the working folder, without unparsable ones."""
    paths = (os.path.join(context.directory, name) for name in names)
    found: dict[str, Any] = {}
    for path in filter(os.path.isfile, paths):
        found |= parsed(files.read_text(path) or "", path)
    return found


def switched_off(content: dict[str, Any], table: str, names: Sequence[str]) -> dict[str, Any]:
    """The configuration with `enabled = false` for these entries of a table, and for those already in it."""
    mine = content.get(table) or {}
    return {**content, table: {name: {**mine.get(name, {}), "enabled": False} for name in (*names, *mine)}}


def parsed(text: str, path: str = "") -> dict[str, Any]:
    """A configuration as an object; empty if the CLI could not read it either."""
    try:
        if path.endswith(".toml"):
            return tomllib.loads(text)
        plain = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', r"\1", text, flags=re.DOTALL)
        value = json.loads(re.sub(r",(\s*[}\]])", r"\1", plain) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
