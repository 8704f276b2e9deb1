"""Helpers that several test files share: a mission's folder, text that is hard to handle, a full disk, and steps counted."""

from __future__ import annotations

import itertools
import math
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from harness.mission.features import NOTES, Feature
from harness.state import names
from harness.state.layout import Layout

NASTY = (
    "`",
    "``",
    "```",
    "````",
    "~~~",
    "```sh check\n",
    "```json harness\n",
    "\n",
    "\n\n",
    "\n---\n",
    "---",
    "...",
    " ",
    "    ",
    "\t",
    '"',
    "'",
    "\\",
    "\\n",
    "#",
    " #",
    "### X: y",
    "<!--",
    "-->",
    "<b>",
    "&amp;",
    ": ",
    "- ",
    "| ",
    "$(x)",
    "%",
    "{}",
    "[]",
    "é",
    "漢字",
    "🙂",
    "\u2028",
    "\u0085",
    "\x0c",
    "\u00a0",
    "\ufeff",
    "null",
    "true",
    "2026-04-24",
    "0x1f",
    "a",
    "word",
    "=",
    "manual",
)


def mission(tmp_path: Path) -> Layout:
    """The layout of a mission whose folder exists and is empty."""
    layout = Layout(str(tmp_path / "project"))
    os.makedirs(layout.state + "/memory")
    os.makedirs(layout.path(names.LOCKS))
    return layout


def put(path: str, data: str | bytes) -> None:
    """Write a file and its folders as another program would."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_bytes(data.encode() if isinstance(data, str) else data)


def nasty(dice: random.Random, most: int = 8) -> str:
    """A text made of sequences that break formats."""
    return "".join(dice.choice(NASTY) for _ in range(dice.randrange(most + 1)))


def passable(path: Path) -> None:
    """Let other users pass through the folders that lead to `path`: pytest's are private."""
    for folder in (path, *path.parents):
        mode = folder.stat().st_mode
        if mode & 0o055 != 0o055 and len(folder.parts) > 2:
            folder.chmod(mode | 0o055)


def noted(feature: Feature, kind: str, *names: str, text: str = "text", at: str = "2026-04-24T10:05:12Z") -> Feature:
    """The feature with a note of a kind: `names` are the features, claims or run that such a note carries."""
    values = {
        "text": text,
        "features": list(names),
        "claims": list(names),
        "run": names[0] if names else "r",
        "key": "title",
    }
    feature.note(at, "r", kind, **{name: values[name] for name in NOTES[kind].fields if name in values})
    return feature


class Name(str):
    """A text whose comparisons in Python lists are steps, too: `name in names` makes one for each."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)


def steps(body: Callable[[], object]) -> int:
    """The Python lines that a call executes, each turn of a loop or comprehension counted: its cost without a clock."""
    count, before = 0, sys.gettrace()

    def step(frame: FrameType, event: str, value: Any) -> Any:
        nonlocal count
        count += 1
        return step

    sys.settrace(step)
    try:
        body()
    finally:
        sys.settrace(before)
    return count


def growth(made: Callable[[int], Callable[[], object]], size: int = 100) -> float:
    """How many times the steps of `made(size)` a call of `made(4 * size)` takes: 4 if it is linear, 16 if quadratic."""
    made(2)()  # imports and caches of the first call
    few = steps(made(size))
    return steps(made(4 * size)) / few


def is_linear(body: Callable[[str], object], text: str) -> bool:
    """Whether four times the text takes far less than sixteen times the processor time: for work that is no Python steps, such
    as that of a pattern. The best of some tries is compared, and no try with a clock of the machine's. Each has another number
    of blanks before the text, so that no cache answers."""
    blanks = itertools.count()

    def seconds(copies: int) -> float:
        best = math.inf
        for _ in range(3):
            whole = " " * next(blanks) + text * copies
            begun = time.process_time()
            body(whole)
            best = min(best, time.process_time() - begun)
        return best

    return any(seconds(4) < 10 * seconds(1) + 0.01 for _ in range(3))
