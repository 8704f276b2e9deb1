"""Which programs a shell text calls, judged by its words, and whether they are on a PATH."""

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
    """Names in command position, each once. Some are shell builtins or functions, which are not on any PATH."""
    found: dict[str, None] = {}
    for text in texts:
        for place in BEFORE.finditer(text):
            assigned = ASSIGNED.match(text, place.end())
            if name := NAME.match(text, assigned.end() if assigned else place.end()):
                found[name[0]] = None
    return [*found]


def on(path: str, name: str) -> bool:
    """Whether a program of this name is on a PATH."""
    places = (os.path.join(folder, name) for folder in path.split(os.pathsep) if folder)
    return any(os.path.isfile(place) and os.access(place, os.X_OK) for place in places)
