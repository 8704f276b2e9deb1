"""What git and files say about a repository: counts and well-known names. Runs nothing of the project, quotes no other names."""

from __future__ import annotations

import os
import re
import stat

from harness.git import dotgit, repository, settings
from harness.state import files
from harness.state.layout import Layout

POINTER = b"version https://git-lfs"
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "pre-push")
ENDS = r"\.([cm]?[jt]s|json|ya?ml)"  # a short list: no repository makes these lines long
RULES = rf"\.pre-commit-config\.ya?ml|\.?lefthook\.ya?ml|\.gitlint|\.commitlintrc({ENDS})?|commitlint\.config{ENDS}"
RULES += rf"|\.husky/({'|'.join(HOOKS)})"
MANIFESTS = r"pyproject\.toml|setup\.py|requirements\.txt|package\.json|go\.mod|Cargo\.toml|pom\.xml|Makefile"
MANIFESTS += r"|CMakeLists\.txt|meson\.build|build\.gradle(\.kts)?|Gemfile|composer\.json|mix\.exs"


def text(layout: Layout) -> str:
    """A line for each thing that there is to say, at most seven, about the tracked files that are there. 2 git calls."""
    top, prefix, size, modules, large, pointers = layout.folders.top, layout.folders.prefix, 0, 0, False, 0
    paths = [name for name in repository.tracked_names(top) if os.path.lexists(os.path.join(top, name))]
    for path in (os.path.join(top, name) for name in paths):
        there = os.lstat(path)
        if stat.S_ISREG(there.st_mode) and os.access(path, os.R_OK):
            size += there.st_size
            large |= path.endswith("/.gitattributes") and b"filter=lfs" in (files.read(path) or b"")
            pointers += 100 < there.st_size < 200 and files.read_from(path, 0, len(POINTER)) == POINTER
        modules += stat.S_ISDIR(there.st_mode)
    named = settings.values(top).get("core.hookspath") or os.path.join(dotgit.folders(top)[1], "hooks")
    at = os.path.join(top, os.path.expanduser(named))  # that of husky, `.husky/_`, has every hook, in use or not
    below = [name.removeprefix(prefix) for name in paths if name.startswith(prefix or "//")]
    found = {
        "tracked files": f"{len(paths) - modules}, {size / 1e6:.1f} MB",
        "submodules": str(modules or ""),
        "LFS": f"{pointers} pointer files, whose contents are not here" if pointers else "in use" if large else "",
        "hooks": ", ".join(one for one in HOOKS if os.access(f"{at}/{one}", os.X_OK) and not at.endswith("/_")),
        "commit rules": ", ".join(name for name in paths if re.fullmatch(RULES, name)),
        "manifests": ", ".join(name for name in paths if re.fullmatch(MANIFESTS, name)),
        "manifests in the mission's folder": ", ".join(name for name in below if re.fullmatch(MANIFESTS, name)),
    }
    return "".join(f"{about}: {words}\n" for about, words in found.items() if words)
