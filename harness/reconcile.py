"""State has one writer, the harness: what an agent changed besides is put back, kept, and named.

The live set is restored from the copies made at open; append-only files are cut to the length that the ledger knows;
of raw.md the old bytes must stand and well-formed new lines do stand, whoever appended them.
"""

from __future__ import annotations

import os

from harness import files, git, journal, objects, raw, runs
from harness.layout import Layout, identity_file, identity_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.current import Run

PEOPLES = ("STOP", "PAUSE", "STEER.md")
OWN = (
    *("memory", "runs", "objects", "snapshots", "checkpoints", "escalations", "bin", "journal", "locks", "cache"),
    *("replays", "hooks", "roles", ".git", "ledger.json"),
)
SEALS_LOOKED_AT = 10
PATCH = "working-folder.patch"


def copies_folder(run: Run) -> str:
    """Copies of the growing files as they were at open; gone when the run is closed."""
    return os.path.join(run.paths.folder, "open")


def keep_copies(run: Run) -> None:
    """Copy what can be tampered with: growing files beside the run, live files and identity as objects."""
    for path in (*run.layout.grown(), run.layout.raw):
        data = files.read(path)
        if data is not None:
            files.replace_quickly(_copy_of(run, path), data)
    for path in run.layout.live():
        data = files.read(path)
        if data is not None:
            objects.put(run.layout, data)


def _copy_of(run: Run, path: str) -> str:
    return os.path.join(copies_folder(run), os.path.basename(path))


def drop_copies(run: Run) -> None:
    """Remove what `keep_copies` laid beside the run."""
    folder = copies_folder(run)
    for name in files.names(folder):
        files.remove(os.path.join(folder, name))
    if os.path.isdir(folder):
        os.rmdir(folder)


def state(run: Run) -> None:
    """Put the mission's state and the identities back; what was refused is in run.refused, a live file makes `refused`."""
    with files.Lock(run.layout.state_lock):
        journal.finish_journal(run.layout)
        tampered = _live(run) + _grown(run) + _raw(run) + _identities(run)
    sealed = [f"runs/{name}" for name in runs.broken_seals(run.layout, SEALS_LOOKED_AT)]
    strays = _strays(run)
    run.refused += tampered + sealed + strays
    if tampered or sealed:
        run.outcome = "refused"
        run.reason = f"The agent changed state that only the harness writes: {', '.join(tampered + sealed)}."


def _refuse(run: Run, name: str, data: bytes) -> None:
    files.replace(os.path.join(run.paths.refused, name), data)


def _live(run: Run) -> list[str]:
    ledger = journal.read_ledger(run.layout)
    found = []
    for path in run.layout.live():
        name = os.path.relpath(path, run.layout.state)
        known = ledger.get(name)
        data = files.read(path)
        if (files.digest(data) if data is not None else None) == (known[0] if known else None):
            continue
        found.append(name)
        _refuse(run, name, data if data is not None else b"")
        if known:
            files.replace(path, objects.get(run.layout, known[0]))
        else:
            files.remove(path)
    return found


def _grown(run: Run) -> list[str]:
    ledger = journal.read_ledger(run.layout)
    found = []
    for path in run.layout.grown():
        name = os.path.relpath(path, run.layout.state)
        digest, size = ledger.get(name, [files.digest(b""), 0])
        data = files.read(path) or b""
        if files.digest(data[:size]) != digest:
            _refuse(run, name, data)
            files.replace(path, files.read(_copy_of(run, path)) or b"")
            found.append(name)
        elif len(data) > size:
            _refuse(run, name, data[size:])
            files.replace(path, data[:size])
            found.append(name)
    return found


def _raw(run: Run) -> list[str]:
    size, digest = run.context.raw
    data = files.read(run.layout.raw) or b""
    old, new = data[:size], data[size:]
    broken = files.digest(old) != digest
    if broken:
        old = files.read(_copy_of(run, run.layout.raw)) or b""
        known = set(old.split(b"\n"))
        new = b"".join(line + b"\n" for line in data.split(b"\n") if line and line not in known)
    lines = [line for line in new.split(b"\n") if line]
    good = [line for line in lines if raw.parse_line(line.decode("utf-8", "replace"), 0).tag]
    kept = old + b"".join(line + b"\n" for line in good)
    if kept == data:
        return []
    _refuse(run, "memory/raw.md", data if broken else b"\n".join(line for line in lines if line not in good) + b"\n")
    files.replace(run.layout.raw, kept)
    return ["memory/raw.md"]


def _identities(run: Run) -> list[str]:
    """Identity files that differ from what missions wrote: back from the copy made at open, where there is one."""
    folder = identity_folder()
    found: list[str] = []
    if not files.names(folder):
        return found
    from harness import identity  # costly to load, and many machines have no identity yet

    for name in identity.tampered(folder):
        path = os.path.join(folder, name)
        _refuse(run, f"identity/{name}", files.read(path) or b"")
        known = run.context.identity.get(name)
        if known:
            files.replace(path, objects.get(run.layout, known))
        found.append(f"identity/{name}")
    return found


def identity_copies(layout: Layout) -> dict[str, str]:
    """{file name: object} of the identity files as they are now."""
    folder = identity_folder()
    names = [name for name in files.names(folder) if name.endswith((".md", ".jsonl")) and name != "README.md"]
    found = {name: files.read(os.path.join(folder, name)) for name in names}
    return {name: objects.put(layout, data) for name, data in found.items() if data is not None}


def identity_text(role: str) -> tuple[str, str]:
    """(text, path) of a role's identity; "" where it has none yet."""
    path = identity_file(identity_folder(), role)
    return files.read_text(path) or "", path


def _strays(run: Run) -> list[str]:
    """New files where none belongs are moved out; the outcome stands."""
    known = {
        os.path.relpath(path, run.layout.state) for path in (*run.layout.live(), *run.layout.grown(), run.layout.raw)
    }
    found = [name for name in files.names(run.layout.state) if name not in (*known, *OWN, *PEOPLES)]
    found += [
        f"memory/{name}" for name in files.names(os.path.dirname(run.layout.raw)) if f"memory/{name}" not in known
    ]
    for name in found:
        files.move(os.path.join(run.layout.state, name), os.path.join(run.paths.refused, name))
    return found


def tree(run: Run) -> None:
    """The working folder as a tree in run.tree; tracked files that were not the role's to change are put back and kept."""
    project, context = run.layout.project, run.context
    git.clear_locks(project, os.stat(run.paths.context).st_mtime)
    index = os.path.join(run.paths.folder, "index")
    if run.changes_tree:
        done = git.work(project, index=index, parent=context.head, leave=context.untracked)
        run.tree, run.kept_out = done.tree, done.kept_out
        if run.tree == context.tree:
            _restore_head(run)
    else:
        _restore_head(run)
        _put_back(run)
    for name in ("index", "index.lock"):
        files.remove(os.path.join(run.paths.folder, name))


def _restore_head(run: Run) -> None:
    now = git.standing(run.layout.project)
    if (now.head, now.branch) != (run.context.head, run.context.branch):
        standing = git.Standing(head=run.context.head, branch=run.context.branch, tree=run.context.tree)
        git.set_ref(run.layout.project, f"refs/harness/refused/{run.id}", now.head)
        git.restore_head(run.layout.project, standing)
        run.refused.append(f"commits (kept as refs/harness/refused/{run.id})")


def _put_back(run: Run) -> None:
    changed = git.dirty(run.layout.project)
    if changed:
        _refuse(run, PATCH, git.patch(run.layout.project, run.context.head))
        git.put_back(run.layout.project, run.context.head, changed)
        run.refused += changed
