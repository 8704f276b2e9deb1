"""What stands in the place of a state file and is none: a folder, a pipe, a socket, a link that an agent left there.

It is moved whole into the run's refused/, so that nobody waits for it, follows it, or stumbles over it; what belongs there
is then absent, and reconcile puts it back. Links that people may have made (their files and folders) stay where they
lead to what belongs there.
"""

from __future__ import annotations

import os
import stat

from harness.store import files
from harness.store.layout import Layout, RunLayout, identity_folder

PEOPLES = ("STOP", "PAUSE", "STEER.md")
MERE = ("stream.jsonl", "stderr.log", "notes.jsonl", "index", "index.lock")


def found(layout: Layout, run: RunLayout) -> list[str]:
    """What would be moved away for this run, without moving it: paths, folders before what may be in them."""
    own = [path for path in _folders(layout) if not _is(path, stat.S_ISDIR, follow=True)]
    own += [path for path in _run_folders(run) if not _is(path, stat.S_ISDIR)]
    own += [path for path in (*_written(layout, run), *_inside(layout, run)) if not _is(path, stat.S_ISREG)]
    own += [path for path in _peoples(layout) if not _is(path, stat.S_ISREG, follow=True)]
    own += [path for path in _code(layout) if not _is(path, _file_or_folder, follow=True)]
    return list(dict.fromkeys(own))


def clear_way(layout: Layout, run: RunLayout) -> list[str]:
    """Move all that into refused/ of the run; gives names below .harness."""
    aside: dict[str, str] = {}
    for path in found(layout, run):
        if os.path.lexists(path):  # what held it may have gone before it
            aside[name_of(layout, path)] = _free(path + ".aside")
            files.move(path, aside[name_of(layout, path)])
    folders = {name_of(layout, path) for path in (*_folders(layout), *_run_folders(run))}
    for name, path in aside.items():  # what was refused of a folder is kept below its name, so that must lead nowhere
        move(run, name + ".moved" if name in folders else name, path)
    return list(aside)


def is_mere(name: str) -> bool:
    """Whether nothing is decided by the file of this name below .harness: a transcript, a cache."""
    return name.startswith("cache/") or (name.startswith("runs/") and os.path.basename(name) in MERE)


def move(run: RunLayout, name: str, path: str) -> None:
    """Move `path` itself, whatever it is, to refused/`name` of the run, or beside what stands there already."""
    files.move(path, _free(os.path.join(run.refused, name)))


def name_of(layout: Layout, path: str) -> str:
    """How a path is named in `refused`."""
    folder = identity_folder()
    if path.startswith(folder + "/"):
        return "identity/" + path[len(folder) + 1 :]
    return "SPEC.md" if path == layout.asked_spec else os.path.relpath(path, layout.state)


def _free(path: str) -> str:
    number, name = 1, path
    while os.path.lexists(name):
        number += 1
        name = f"{path}-{number}"
    return name


def _is(path: str, kind: object, *, follow: bool = False) -> bool:
    """Whether what stands there is of the kind; nothing at all is no fault."""
    try:
        mode = os.lstat(path).st_mode
        if follow and stat.S_ISLNK(mode):
            mode = os.stat(path).st_mode
    except NotADirectoryError:
        return True  # what holds it is told by itself
    except OSError:
        return not os.path.lexists(path)
    return bool(kind(mode)) if callable(kind) else False


def _file_or_folder(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _folders(layout: Layout) -> list[str]:
    names = "memory objects snapshots journal locks cache checkpoints escalations bin roles"
    return [os.path.join(layout.state, name) for name in names.split()]


def _run_folders(run: RunLayout) -> list[str]:
    return [run.folder, run.refused, os.path.join(run.folder, "open")]


def _written(layout: Layout, run: RunLayout) -> list[str]:
    """Files that the harness alone writes, and never through a link."""
    own = [
        run.context,
        run.manifest,
        run.prompt,
        run.stream,
        run.stderr,
        run.reply,
        run.notes,
        run.receipts,
        run.result,
    ]
    besides = (layout.raw, layout.ledger, layout.ignore, layout.shim)
    snapshot = os.path.join(layout.snapshots, os.path.basename(run.folder) + ".json")
    work = [os.path.join(run.folder, name) for name in ("index", "index.lock")]
    return [*own, *besides, *layout.grown(), snapshot, *work]


def _inside(layout: Layout, run: RunLayout) -> list[str]:
    """What lies in the folders that hold plain files only."""
    folders = (layout.locks, layout.journal, layout.cache, os.path.join(run.folder, "open"))
    return [path for folder in folders for path in _paths(folder)]


def _peoples(layout: Layout) -> list[str]:
    """Files that people may keep elsewhere."""
    texts = [path for path in _paths(identity_folder()) if path.endswith((".md", ".jsonl", ".json"))]
    return [layout.asked_spec, *layout.live(), *(os.path.join(layout.state, name) for name in PEOPLES), *texts]


def _code(layout: Layout) -> list[str]:
    return [*_paths(layout.roles), *_paths(layout.hooks)]


def _paths(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in files.names(folder)]
    except OSError:  # no folder, and told by itself
        return []
