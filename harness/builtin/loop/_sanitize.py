"""Makes values acceptable to every vendor: no half surrogate pairs, no infinite numbers, valid tool names. So a conversation
can continue, whatever a model, a person, a command or a server said."""

from __future__ import annotations

import json
import math
import re
from typing import Any

BYTE = re.compile("[\udc80-\udcff]")  # of a text that is no UTF-8, as Python keeps it
UNNAMED = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64


def value(known: Any) -> Any:
    """The JSON value, unchanged if it can be sent as it is."""
    try:
        json.dumps(known, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return _mended(known)
    return known


def _mended(known: Any) -> Any:
    if isinstance(known, str):
        found = BYTE.sub(lambda one: f"\\x{ord(one[0]) - 0xDC00:02x}", known)
        return found.encode("utf-8", "backslashreplace").decode()
    if isinstance(known, dict):
        return {_mended(name): _mended(one) for name, one in known.items()}
    if isinstance(known, list):
        return [_mended(one) for one in known]
    return None if isinstance(known, float) and not math.isfinite(known) else known


def name(known: str) -> str:
    """The name of a tool in a call, as every vendor takes it back, also where the model made it up."""
    return UNNAMED.sub("_", known)[:LONGEST_NAME] or "_"
