"""Commits as a person's own git makes them: their key, their hook, their configuration, in their terminal."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness.base.errors import NeedsPerson
from harness.git import repository


def make(
    project: str, tree: str, parent: str, message: str, author: Mapping[str, str], *, sign: bool, hooks: bool
) -> str:
    """Create a commit, after the repository's commit-msg hook with `hooks`, signed with `sign`; returns its id. Raises
    NeedsPerson with git's words, or the hook's."""
    if hooks:
        message = _hooked(project, message)
    if not sign:
        return repository.commit_tree(project, tree, [parent], message, author)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(message)
        file.flush()
        return _git(
            project, "commit-tree", tree, "-p", parent, "-S", "-F", file.name, why="git cannot sign", env=author
        )


def _hooked(project: str, message: str) -> str:
    """The message after the commit-msg hook, which may change it."""
    subject = message.partition("\n")[0]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="COMMIT_EDITMSG-") as file:
        file.write(message)
        file.flush()
        why = f"The commit-msg hook refuses '{subject}'"
        _git(project, "hook", "run", "--ignore-missing", "commit-msg", "--", file.name, why=why, env={})
        return Path(file.name).read_text(encoding="utf-8", errors="replace")  # by name: an editor may replace the file


def _git(project: str, *words: str, why: str, env: Mapping[str, str]) -> str:
    """The stdout of a person's own git."""
    done = subprocess.run(
        ["git", *words], cwd=project, env={**os.environ, **env}, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        said = (done.stderr + done.stdout).strip() or f"it printed nothing, exit {done.returncode}"
        raise NeedsPerson(f"{why}; nothing was landed:\n{said}")
    return done.stdout.strip()
