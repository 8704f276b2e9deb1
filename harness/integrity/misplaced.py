"""Misplaced objects: a folder, pipe, socket or link at the path of a state file.

Each is moved whole into the run's refused/, before anything opens or follows it. The state file is then absent, and
reconcile restores it. Links that people may make (to their own files and folders) stay where their target is of the right kind.
"""

from __future__ import annotations

import os
import stat
from itertools import count

from harness.store import files
from harness.store.layout import Layout, RunLayout, identity_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PEOPLES = ("STOP", "PAUSE", "STEER.md")
MERE = ("stream.jsonl", "stderr.log", "notes.jsonl", "index", "index.lock")


def found(layout: Layout, run: RunLayout) -> list[str]:
    """Paths of misplaced objects, each folder before its content; nothing is moved."""
    own = [path for path in _folders(layout) if not _is(path, stat.S_ISDIR, follow=True)]
    own += [path for path in _run_folders(run) if not _is(path, stat.S_ISDIR)]
    of_files = (layout.locks, layout.journal, layout.cache, os.path.join(run.folder, "open"))
    plain = (*_written(layout, run), *_paths(*of_files))
    own += [path for path in plain if not _is(path, stat.S_ISREG)]
    own += [path for path in _peoples(layout) if not _is(path, stat.S_ISREG, follow=True)]
    code = _paths(layout.roles, layout.hooks)
    own += [path for path in code if not _is(path, stat.S_ISREG, stat.S_ISDIR, follow=True)]
    return list(dict.fromkeys(own))


def clear_way(layout: Layout, run: RunLayout) -> list[str]:
    """Move misplaced objects into refused/ of the run; returns their names below .harness."""
    aside: dict[str, str] = {}
    for path in found(layout, run):
        if os.path.lexists(path):  # it may have moved with its folder
            aside[name_of(layout, path)] = _free(path + ".aside")
            files.move(path, aside[name_of(layout, path)])
    folders = {name_of(layout, path) for path in (*_folders(layout), *_run_folders(run))}
    for name, path in aside.items():  # refused/NAME of a folder later receives its refused files: keep that path free
        move(run, name + ".moved" if name in folders else name, path)
    return list(aside)


def is_mere(name: str) -> bool:
    """Whether no decision depends on this file below .harness: a transcript or a cache."""
    return name.startswith("cache/") or (name.startswith("runs/") and os.path.basename(name) in MERE)


def move(run: RunLayout, name: str, path: str) -> None:
    """Move the object at `path` (a link itself) to refused/`name` of the run; a taken name gets a number."""
    files.move(path, _free(os.path.join(run.refused, name)))


def name_of(layout: Layout, path: str) -> str:
    """The name of a path in `refused`."""
    folder = identity_folder()
    if path.startswith(folder + "/"):
        return "identity/" + path[len(folder) + 1 :]
    return "SPEC.md" if path == layout.asked_spec else os.path.relpath(path, layout.state)


def _free(path: str) -> str:
    names = (f"{path}-{number}" if number > 1 else path for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def _is(path: str, *kinds: Callable[[int], bool], follow: bool = False) -> bool:
    """Whether the object at `path` is of one of the kinds, or absent."""
    try:
        mode = os.stat(path, follow_symlinks=follow).st_mode
    except NotADirectoryError:
        return True  # its folder is reported by itself
    except OSError:
        return not os.path.lexists(path)
    return any(kind(mode) for kind in kinds)


def _folders(layout: Layout) -> list[str]:
    names = "memory objects snapshots journal locks cache checkpoints escalations bin roles"
    return [os.path.join(layout.state, name) for name in names.split()]


def _run_folders(run: RunLayout) -> list[str]:
    return [run.folder, run.refused, run.inbox, os.path.join(run.folder, "open")]


def _written(layout: Layout, run: RunLayout) -> list[str]:
    """Files that only the harness writes, never through a link."""
    own = [path for name, path in vars(run).items() if name not in ("folder", "lock", "refused", "inbox")]
    besides = (layout.raw, layout.ledger, layout.ignore, layout.shim)
    snapshot = os.path.join(layout.snapshots, os.path.basename(run.folder) + ".json")
    work = [os.path.join(run.folder, name) for name in ("index", "index.lock")]
    return [*own, *besides, *layout.append_only(), snapshot, *work]


def _peoples(layout: Layout) -> list[str]:
    """Files that may be links to files of people."""
    texts = [path for path in _paths(identity_folder()) if path.endswith((".md", ".jsonl", ".json"))]
    return [layout.asked_spec, *layout.managed(), *(os.path.join(layout.state, name) for name in PEOPLES), *texts]


def _paths(*folders: str) -> list[str]:
    there = [folder for folder in folders if os.path.isdir(folder)]
    return [os.path.join(folder, name) for folder in there for name in files.names(folder)]
