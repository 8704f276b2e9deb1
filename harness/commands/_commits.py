"""Commits as a person's own git makes them: their key, their hook, their configuration, in their terminal."""

import os
import subprocess
import tempfile
from collections.abc import Mapping

from harness.base.errors import NeedsPerson
from harness.git import repository


def make(project: str, tree: str, parent: str, text: str, author: Mapping[str, str], *, sign: bool, hooks: bool) -> str:
    """Create a commit, after the repository's commit-msg hook with `hooks`, signed with `sign`; returns its id. Raises
    NeedsPerson with git's words, or the hook's."""
    if not (sign or hooks):
        return repository.commit_tree(project, tree, [parent], text, author)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        env, why = {**os.environ, **author}, text.partition("\n")[0]
        hook = ("hook", "run", "--ignore-missing", "commit-msg", "--", file.name)
        for words in [hook] * hooks + [("commit-tree", tree, "-p", parent, *["-S"] * sign, "-F", file.name)]:
            why = f"The commit-msg hook refuses '{why}'" if words == hook else "git cannot make the commit"
            done = subprocess.run(["git", *words], cwd=project, env=env, capture_output=True, errors="replace")
            if done.returncode:
                said = (done.stderr + done.stdout).strip() or f"it printed nothing, exit {done.returncode}"
                raise NeedsPerson(f"{why}; nothing was landed:\n{said}")
    return done.stdout.strip()
