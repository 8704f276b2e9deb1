"""Files of a repository that a person's tools execute automatically: on a git command, in a shell's folder, in an editor.

Files that those call in turn (scripts of package.json, a Makefile), or that a person starts by name, are not included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from harness.base.encoding import few, shell_word
from harness.git import repository, settings
from harness.state.layout import command

FILES = {  # lower-case path pattern after a slash, where * also matches slashes: the executing tool
    "*/.husky": "git, as a hook",  # where it is a link
    "*/.husky/*": "git, as a hook",
    "*/.pre-commit-config.yaml": "pre-commit, at a commit",
    "*/lefthook.y*ml": "lefthook, as a hook of git",
    "*/.lefthook.y*ml": "lefthook, as a hook of git",
    "*/.envrc": "direnv, in its folder",
    "*/.vscode": "VS Code, in its folder",  # where it is a link
    "*/.vscode/tasks.json": "VS Code, when its folder is opened",
    "*/.vscode/settings.json": "VS Code, which starts programs that it names",
}
HOOKS, FILTER = "git, by core.hooksPath", "git, which starts the filter that it names"
WAITS = (
    "your folder {folder} stays at {at}, on {held}: {branch} changes files that your tools execute: {files}. "
    "Review: git diff HEAD...{branch}. Accept: {accept}   or git merge {branch}"
)
ATTRIBUTES, NAMES_FILTER = "*/.gitattributes", re.compile(rb"\sfilter=")


def find(project: str, commit: str, paths: Iterable[str]) -> list[str]:
    """The paths that a commit changes and a person's tools execute, each as `path (tool)`. 1-2 calls, one more per
    .gitattributes."""
    hooks = _hooks(project)
    reasons = {path: _reason(project, commit, path, hooks) for path in paths}
    return [f"{path} ({reason})" for path, reason in reasons.items() if reason]


def waits(project: str, branch: str, held: str, at: str, found: list[str]) -> str:
    """The message for a person whose folder stays at a commit because of these files."""
    about = {"folder": project, "at": at[:12], "held": held, "branch": shell_word(branch), "files": few(found)}
    return WAITS.format(**about, accept=command("workspace accept"))


def _reason(project: str, commit: str, path: str, hooks: str | None) -> str:
    name = "/" + path.casefold()
    if hooks is not None and (name + "/").startswith(f"{hooks}/"):
        return HOOKS
    if fnmatchcase(name, ATTRIBUTES):
        return FILTER if NAMES_FILTER.search(repository.show(project, commit, path) or b"") else ""
    return next((reason for pattern, reason in FILES.items() if fnmatchcase(name, pattern)), "")


def _hooks(project: str) -> str | None:
    """The folder of a person's hooks, in the form of `FILES`, if it is in the project; else None. 1 call."""
    named = settings.values(project).get("core.hookspath")
    top = os.path.realpath(project)
    folder = os.path.realpath(os.path.join(top, os.path.expanduser(named or "")))
    return folder[len(top) :].casefold() if named and folder.startswith(top + "/") else None
