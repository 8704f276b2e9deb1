"""Which programs a shell text calls, as far as its words tell, and whether a PATH has them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

BEFORE = re.compile(
    r"(?:^|\|\|?|&&?|;|\$\(|\(|\{|`|!\s|\b(?:if|then|else|elif|while|until|do|time|exec|env)\s)\s*", re.MULTILINE
)
ASSIGNED = re.compile(r"(?:[A-Za-z_]\w*=\S*\s+)*")
NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*(?=[\s;|&)]|$)")


def called(texts: Iterable[str]) -> list[str]:
    """Names at the place of a command, each once. Some are words of the shell or its functions: no PATH has those."""
    found: dict[str, None] = {}
    for text in texts:
        for place in BEFORE.finditer(text):
            assigned = ASSIGNED.match(text, place.end())
            if name := NAME.match(text, assigned.end() if assigned else place.end()):
                found[name[0]] = None
    return [*found]


def on(path: str, name: str) -> bool:
    """Whether a PATH has a program of this name."""
    places = (os.path.join(folder, name) for folder in path.split(os.pathsep) if folder)
    return any(os.path.isfile(place) and os.access(place, os.X_OK) for place in places)
