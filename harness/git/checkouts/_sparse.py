"""Sparse checkouts: a run's worktree, or a fresh clone, has the same files as the person's working folder.

Git keeps a working folder's patterns in `info/sparse-checkout` of its git folder; its configuration says whether they
apply and are cones (git-sparse-checkout(1)).
"""

from __future__ import annotations

import os

from harness.git import dotgit, repository, settings
from harness.state import files

PATTERNS = "info/sparse-checkout"
CONFIG = "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = {cone}\n"
SPECIAL = "\\*?[ "  # gitignore(5)
OWN_CONFIG = "config.worktree"  # read where extensions.worktreeConfig is set, as `git sparse-checkout` does


def of(project: str, base: str, commit: str) -> tuple[bytes, str] | None:
    """(patterns of a working folder at `commit`, git's Boolean for cones); None for a full checkout. They are the
    present patterns of the person's working folder, and the files that changed since `base` ("": none), which that
    folder has too. 0 calls; 1-2 if there is a file of patterns."""
    patterns = files.read(os.path.join(dotgit.folders(project)[0], PATTERNS))
    said = settings.values(project) if patterns is not None else {}
    if patterns is None or _truth(said, "core.sparsecheckout") == "false":
        return None
    changed = [path for letter, path in repository.changed(project, base, commit) if letter != "D"] if base else []
    plain = ("".join("\\" * (sign in SPECIAL) + sign for sign in path) for path in changed)
    lines = b"".join(b"/" + os.fsencode(path) + b"\n" for path in plain)
    return patterns + lines, "false" if lines else _truth(said, "core.sparsecheckoutcone")


def _truth(said: dict[str, str | None], key: str) -> str:
    """A Boolean of git's configuration; a key without a value is true."""
    value = said.get(key, "false")
    return "true" if value is None or value.lower() in ("true", "yes", "on", "1") else "false"


def lay(git_dir: str, found: tuple[bytes, str]) -> None:
    """Write these patterns into the git folder of a working folder, for the harness's git and the agent's."""
    files.replace_quickly(os.path.join(git_dir, PATTERNS), found[0])
    files.replace_quickly(os.path.join(git_dir, OWN_CONFIG), CONFIG.format(cone=found[1]).encode())


def laid(git_dir: str) -> tuple[bytes, str] | None:
    """The patterns that `lay` wrote there, or None."""
    patterns, config = (files.read(os.path.join(git_dir, name)) for name in (PATTERNS, OWN_CONFIG))
    cone = next((cone for cone in ("true", "false") if config == CONFIG.format(cone=cone).encode()), "")
    return (patterns, cone) if patterns is not None and cone else None


def options(found: tuple[bytes, str] | None) -> list[str]:
    """The options that make a git call apply the patterns; [] for a full checkout."""
    pairs = ("core.sparseCheckout=true", f"core.sparseCheckoutCone={found[1]}") if found else ()
    return [word for pair in pairs for word in ("-c", pair)]
