"""What stands in the configuration files of a CLI: read only, for what can be switched off by its name alone."""

from __future__ import annotations

import json
import os
import re

from harness import files
from harness.agents.base import Desk, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def config_names(settings: Settings, desk: Desk, paths: Sequence[str], table: str) -> list[str]:
    """The keys of a table in a CLI's own configuration files: TOML, or JSON with comments; what does not parse has none.

    `$NAME` in a path is a variable of the agent's environment; a path without one lies in the working folder.
    """
    env, found = {**desk.environment, **settings.table.get("env", {})}, list[str]()
    for path in paths:
        name = re.match(r"\$(\w+)", path)
        place = env.get(name[1], "") + path[name.end() :] if name else os.path.join(desk.directory, path)
        value = _parsed(files.read_text(place) or "", place) if not name or env.get(name[1]) else {}
        named = value.get(table)
        found += [key for key in named if key not in found] if isinstance(named, dict) else []
    return found


def _parsed(text: str, path: str) -> dict[str, Any]:
    """A configuration as an object; empty where its own program could not read it either."""
    import tomllib  # 10 ms, for those agents only that need it

    try:
        if path.endswith(".toml"):
            return tomllib.loads(text)
        plain = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', r"\1", text, flags=re.DOTALL)
        value = json.loads(re.sub(r",(\s*[}\]])", r"\1", plain) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
