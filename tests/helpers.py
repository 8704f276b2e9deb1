"""Helpers that several test files share: a mission's folder, text that is hard to handle, and a full disk."""

from __future__ import annotations

import os
import random
from pathlib import Path

from harness.model.features import NOTES, Feature
from harness.store.layout import Layout

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
    os.makedirs(layout.locks)
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
    values = {"text": text, "features": list(names), "claims": list(names), "run": names[0] if names else "r"}
    feature.note(at, "r", kind, **{name: values[name] for name in NOTES[kind].fields if name in values})
    return feature
