"""New, unignored files that commits of the harness exclude: packages, keys, large files, nested repositories.

These rules apply only to new files; a tracked file stays tracked. Commits never include the state of a mission
(`.harness`, at any depth), since it names programs that a mission starts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from harness.git import settings

STATE = ".harness"
MAX_FILE_BYTES = 5 * 1024 * 1024
EXCLUDED_FOLDERS = {"node_modules", ".venv", "venv", "__pycache__", ".env"}
EXCLUDED_NAMES = {".netrc", ".pypirc", ".git-credentials"}
EXCLUDED_STARTS = (".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
EXCLUDED_ENDS = (".pem", ".key", ".p12", ".pfx")
OF_MISSION = "the state of a mission, which runs must not change"
TEMPLATES = (".example", ".sample", ".template", ".dist")  # .env.example has no secret, and a fresh clone needs it


def state_in(path: str) -> str:
    """The part of the path down to the state of a mission, compared without case as on some file systems; or ""."""
    parts = path.split("/")
    depth = next((depth for depth, part in enumerate(parts, 1) if part.casefold() == STATE), 0)
    return "/".join(parts[:depth])


def split_new_files(
    project: str, names: list[str], leave: Collection[str], state: str = STATE
) -> tuple[list[str], list[str]]:
    """Split sorted new names into (names to take, excluded names with the reason); an excluded folder appears once."""
    left = {state, *leave}
    folders = (state + "/", *(name for name in left if name.endswith("/")))
    take, out, last = [], [], "\0"
    for name in names:
        if name in left or name.startswith((*folders, last)):
            continue
        shown, why = _exclusion(project, name)
        if why:
            out.append(f"{shown} ({why})")
            last = shown if shown.endswith("/") else last
        else:
            take.append(name)
    return take, out


def _exclusion(project: str, name: str) -> tuple[str, str]:
    """(name to show, reason why the new file stays out); the reason is "" for a file that may be committed."""
    *above, last = name.split("/")
    if state := state_in(name):
        return state + ("" if state == name else "/"), OF_MISSION
    for depth, folder in enumerate(above, 1):
        path = "/".join(above[:depth])
        if folder in EXCLUDED_FOLDERS or (folder == "target" and _is_build(os.path.join(project, path))):
            return path + "/", "on the exclude list"
    if not last:
        return name, "a repository of its own"
    if _is_secret(last.lower()):
        return name, "on the exclude list, it may hold a secret"
    try:
        found = os.lstat(os.path.join(project, name))
    except FileNotFoundError:  # an editor's temporary file; git ignores the name
        return name, ""
    if found.st_size > MAX_FILE_BYTES and not _is_for_lfs(project, name):
        return name, f"{found.st_size / 1024 / 1024:.1f} MiB, over {MAX_FILE_BYTES // 1024 // 1024} MiB"
    readable = not stat.S_ISREG(found.st_mode) or os.access(os.path.join(project, name), os.R_OK)
    return name, "" if readable else "not readable"


def _is_for_lfs(project: str, name: str) -> bool:
    """Whether git-lfs stores this file, so that a commit has only a three-line pointer. 2 calls."""
    asked = settings.call(project, "check-attr", "-z", "filter", "--", name)[1].split(b"\0")
    words = ("config", "--get-regexp", r"^filter\.lfs\.(clean|process)$")
    return asked[2:3] == [b"lfs"] and settings.call(project, *words)[0] == 0


def is_file(project: str, path: str) -> bool:
    """Whether `path` is a file or link of the project itself, not something behind a linked folder."""
    parts = path.split("/")
    behind = any(os.path.islink(os.path.join(project, *parts[:depth])) for depth in range(1, len(parts)))
    whole = os.path.join(project, path)
    return not behind and (os.path.islink(whole) or os.path.isfile(whole))


def _is_build(folder: str) -> bool:
    """Whether a folder named `target` is Cargo's build folder."""
    tag, manifest = os.path.join(folder, "CACHEDIR.TAG"), os.path.join(os.path.dirname(folder), "Cargo.toml")
    return os.path.exists(tag) or os.path.exists(manifest)


def _is_secret(name: str) -> bool:
    listed = name in EXCLUDED_NAMES or name.startswith(EXCLUDED_STARTS) or name.endswith(EXCLUDED_ENDS)
    return listed and not name.endswith(TEMPLATES)
