"""State has one writer, the harness: what an agent changed besides is put back, kept, and named.

While the run's process lives it knows the state from before the agent by heart (`run.held`), because every file can be
written by the agent, the ledger and our copies too. Only recovery, in another process, goes by what `witness` finds.
Of raw.md the old bytes must stand and well-formed new lines do stand, whoever appended them; issues and orders may have
grown through their doors, which the ledger tells.
"""

from __future__ import annotations

import os
from itertools import islice

from harness.base.errors import BrokenFile
from harness.git import dotgit, repository
from harness.integrity import misplaced, mission_lock, recovery_evidence
from harness.memory import raw
from harness.model import runs
from harness.store import files, journal, objects
from harness.store.layout import Layout, identity_file, identity_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.model.open_run import Run

SPEC = "SPEC.md"
OWN = (
    *("memory", "runs", "objects", "snapshots", "checkpoints", "escalations", "bin", "journal", "locks", "cache"),
    *("replays", "hooks", "roles", ".git", "ledger.json", ".ignore"),
)
SEALS_LOOKED_AT = 10
PATCH = "working-folder.patch"


def keep_copies(run: Run) -> None:
    """Hold what can be tampered with; for recovery copy growing files beside the run, live files as objects."""
    layout = run.layout
    for path in (*layout.grown(), layout.raw):
        data = files.read(path)
        if data is not None:
            run.held[path] = data
            files.replace_quickly(recovery_evidence.copy_of(run.paths, path), data)
    for path in layout.live():
        data = files.read(path)
        if data is not None:
            run.held[path] = data
            objects.put(layout, data)
    for path in (*_code(layout), *_identity_paths(), run.paths.context):
        run.held[path] = files.read(path) or b""
    run.parsed = _stamps(run)


def hold_own(run: Run) -> None:
    """Hold what was just written of the run itself: a prompt that fired can be rebuilt for ever."""
    for path in (run.paths.manifest, run.paths.prompt, run.paths.receipts):
        data = files.read(path)
        if data is not None:
            run.held[path] = data


def drop_copies(run: Run) -> None:
    """Remove what `keep_copies` laid beside the run."""
    folder = os.path.join(run.paths.folder, recovery_evidence.COPIES)
    for name in files.names(folder):
        files.remove(os.path.join(folder, name))
    if os.path.isdir(folder):
        os.rmdir(folder)


def state(run: Run) -> None:
    """Put the mission's state and the identities back; what was refused is in run.refused, a live file makes `refused`."""
    moved = misplaced.clear_way(run.layout, run.paths)
    aside = [name for name in moved if not misplaced.is_mere(name)]
    if SPEC in (*moved, *run.refused) and not os.path.lexists(run.layout.asked_spec):
        _spec_back(run)
    files.make_folder(run.layout.locks)
    unlocked = [_name(run, path) for path in mission_lock.put_back(run.locks) if path != run.layout.state]
    with files.Lock(run.layout.state_lock):
        ledger, broken = _ledger(run)
        tampered = (
            aside
            + broken
            + _live(run, ledger)
            + _grown(run, ledger)
            + _raw(run)
            + _identities(run)
            + _held_besides(run)
        )
        tampered = list(dict.fromkeys(tampered))
        if tampered or not run.held:
            journal.adopt(run.layout)
    _forget_parsed(run)
    sealed = _sealed(run)
    strays = _strays(run)
    found = tampered + sealed + strays + unlocked + [name for name in moved if name not in aside]
    run.refused += [name for name in dict.fromkeys(found) if name not in run.refused]
    if tampered or sealed:
        run.outcome = "refused"
        run.reason = f"The agent changed state that only the harness writes: {', '.join(tampered + sealed)}."


def _spec_back(run: Run) -> None:
    """SPEC.md as it was at open, where something that is no file stood in its place."""
    edited = run.context.dirty.get(SPEC)
    if edited:
        files.replace(run.layout.asked_spec, objects.get(run.layout, edited))
    elif SPEC in repository.tracked_names(run.layout.project):
        repository.put_back(run.layout.project, run.context.head, [SPEC])


def _refuse(run: Run, name: str, data: bytes) -> None:
    """Keep what was refused; of what is gone an empty file tells, where nothing was moved there."""
    path = os.path.join(run.paths.refused, name)
    if data or not os.path.lexists(path):
        files.replace(path, data)


def _put_away(run: Run, path: str, data: bytes | None) -> None:
    """Keep what an agent made of a file; a link itself, for what it leads to may be anybody's."""
    if os.path.islink(path):
        misplaced.move(run.paths, _name(run, path), path)
    else:
        _refuse(run, _name(run, path), data or b"")


def _name(run: Run, path: str) -> str:
    return os.path.relpath(path, run.layout.state)


def _ledger(run: Run) -> tuple[recovery_evidence.Ledger, list[str]]:
    """The ledger after any journal that a door left; one of the two that does not parse is refused and forgotten."""
    layout, broken = run.layout, []
    for path, look in ((layout.journal + "/record", journal.finish_journal), (layout.ledger, journal.read_ledger)):
        try:
            look(layout)
        except BrokenFile:
            _refuse(run, _name(run, path), files.read(path) or b"")
            files.remove(path)
            broken.append(_name(run, path))
    if run.held:
        return dict(journal.read_ledger(layout)), broken
    if not broken and not os.path.exists(layout.ledger):
        broken.append(_name(run, layout.ledger))
    return recovery_evidence.ledger(layout, run.id) or dict(
        journal.adopt(layout)
    ), broken  # without any, what is on disk stands


def _live(run: Run, ledger: recovery_evidence.Ledger) -> list[str]:
    found = []
    for path in run.layout.live():
        name, data = _name(run, path), files.read(path)
        known = run.held.get(path) if run.held else recovery_evidence.live(run, path, data, ledger.get(name))
        if data == known:
            continue
        found.append(name)
        _put_away(run, path, data)
        if known is None:
            files.remove(path)
        else:
            files.replace(path, known)
    return found


def _grown(run: Run, ledger: recovery_evidence.Ledger) -> list[str]:
    found = []
    for path in run.layout.grown():
        name, data = _name(run, path), files.read(path) or b""
        good = (_good if run.held else recovery_evidence.grown)(run, path, data, ledger.get(name))
        if data == good:
            continue
        found.append(name)
        _refuse(run, name, data[len(good) :] if data.startswith(good) else data)
        files.replace(path, good)
    return found


def _good(run: Run, path: str, data: bytes, row: list[object] | None) -> bytes:
    """What may stand in a grown file: its old bytes, and what came through a door."""
    old, doors = run.held.get(path, b""), path in (run.layout.issues, run.layout.orders)
    told = data[: int(str(row[1]))] if row and doors else old
    return told if row and files.digest(told) == row[0] and told.startswith(old) else old


def _raw(run: Run) -> list[str]:
    data = files.read(run.layout.raw) or b""
    old = run.held.get(run.layout.raw, b"") if run.held else _raw_before(run, data)
    if data.startswith(old):
        new, refused = data[len(old) :], b""
    else:
        known = set(old.split(b"\n"))
        new = b"".join(line + b"\n" for line in data.split(b"\n") if line and line not in known)
        refused = data
    *lines, torn = new.split(b"\n")
    lines += (
        [torn] if torn and run.held else []
    )  # in recovery a torn end is the power's doing, and is closed, not refused
    bad = [line for line in lines if line and not raw.parse_line(line.decode("utf-8", "replace"), 0).tag]
    known = {b"", *bad}
    kept = old + b"".join(line + b"\n" for line in lines if line not in known) + (b"" if run.held else torn)
    if kept == data:
        return []
    _refuse(run, "memory/raw.md", refused or b"".join(line + b"\n" for line in bad))
    files.replace(run.layout.raw, kept)
    return ["memory/raw.md"]


def _raw_before(run: Run, data: bytes) -> bytes:
    size, digest = run.context.raw
    if files.digest(data[:size]) == digest:
        return data[:size]
    return files.read(recovery_evidence.copy_of(run.paths, run.layout.raw)) or b""


def _held_besides(run: Run) -> list[str]:
    """The run's own files, and code that would be run later: roles and hooks come from people, never from a run."""
    if not run.held:
        return []
    own = (run.paths.context, run.paths.manifest, run.paths.prompt, run.paths.receipts)
    found = []
    for path in sorted({*_code(run.layout), *(path for path in run.held if _is_code(run.layout, path) or path in own)}):
        data, known = files.read(path), run.held.get(path)
        if data == known:
            continue
        found.append(_name(run, path))
        _put_away(run, path, data)
        if known is None:
            files.remove(path)
        else:
            files.replace(path, known, files.PRIVATE if path in own else files.SHARED)
    return found


def _code(layout: Layout) -> list[str]:
    """The files directly in roles/ and hooks/."""
    paths = [os.path.join(folder, name) for folder in (layout.roles, layout.hooks) for name in files.names(folder)]
    return [path for path in paths if os.path.isfile(path)]


def _is_code(layout: Layout, path: str) -> bool:
    return path.startswith((layout.roles + "/", layout.hooks + "/"))


def _stamps(run: Run) -> dict[str, list[int]]:
    """{path: inode, bytes, change time} of the cache and of our copy of git's index: no one can write and keep these."""
    paths = [os.path.join(run.layout.cache, name) for name in files.names(run.layout.cache)]
    paths += [path for path in (_index_of(run),) if os.path.exists(path)]
    stats = {path: os.lstat(path) for path in paths}
    return {path: [stat.st_ino, stat.st_size, stat.st_ctime_ns] for path, stat in stats.items()}


def _forget_parsed(run: Run) -> None:
    """What can be made again and is not as it was is made again: an agent could have written anything there."""
    for path, stamp in _stamps(run).items():
        if run.parsed.get(path) != stamp:
            files.remove(path)


def _index_of(run: Run) -> str:
    return os.path.join(run.paths.folder, "index")


def _sealed(run: Run) -> list[str]:
    """Finished runs that somebody changed, and that no run before was blamed for."""
    broken = [f"runs/{name}" for name in runs.broken_seals(run.layout, SEALS_LOOKED_AT)]
    for name in broken:
        misplaced.clear_way(run.layout, run.layout.run(os.path.basename(name)))
    if not broken:
        return []
    newest = islice(runs.books(run.layout), 2 * SEALS_LOOKED_AT)
    named = {name for result in newest for name in result.refused}
    return [name for name in broken if name not in named]


def _identities(run: Run) -> list[str]:
    """Identity files that differ from what missions wrote, back from what was held at open; new ones of nobody's go."""
    folder = identity_folder()
    if not files.names(folder):
        return []
    from harness.memory import identity  # costly to load, and many machines have no identity yet

    found: list[str] = []
    changed, new = identity.tampered(folder), identity.strays(folder)
    if not os.path.exists(os.path.join(folder, "ledger.json")):
        new = [
            os.path.basename(path) for path in _identity_paths() if os.path.basename(path) not in run.context.identity
        ]
    for name in (*changed, *new):
        path, known = os.path.join(folder, name), run.context.identity.get(name)
        _refuse(run, f"identity/{name}", files.read(path) or b"")
        if name in new:
            files.remove(path)
        elif known:
            files.replace(path, run.held[path] if path in run.held else objects.get(run.layout, known))
        found.append(f"identity/{name}")
    return found


def _identity_paths() -> list[str]:
    folder = identity_folder()
    names = [name for name in files.names(folder) if name.endswith((".md", ".jsonl")) and name != "README.md"]
    return [os.path.join(folder, name) for name in names]


def identity_copies(layout: Layout) -> dict[str, str]:
    """{file name: object} of the identity files as they are now, which their ledger takes in: people may have changed them."""
    found = {os.path.basename(path): files.read(path) for path in _identity_paths()}
    if found:
        from harness.memory import identity  # costly to load, and many machines have no identity yet

        identity.adopt(identity_folder())
    return {name: objects.put(layout, data) for name, data in found.items() if data is not None}


def dirty_copies(layout: Layout, paths: list[str]) -> dict[str, str]:
    """{tracked path: object} of what differs from the last commit before the run: a person's, "" where it is gone."""
    return {path: _object_of(layout, path, keep=True) for path in paths}


def _object_of(layout: Layout, path: str, *, keep: bool = False) -> str:
    """The object's name of a file of the working folder; "" where there is no plain file."""
    whole = os.path.join(layout.project, path)
    data = files.read(whole) if os.path.isfile(whole) and not os.path.islink(whole) else None
    if data is None:
        return ""
    return objects.put(layout, data) if keep else files.digest(data)


def identity_text(role: str) -> tuple[str, str]:
    """(text, path) of a role's identity; "" where it has none yet."""
    path = identity_file(identity_folder(), role)
    return files.read_text(path) or "", path


def _strays(run: Run) -> list[str]:
    """New files where none belongs are moved out; the outcome stands."""
    known = {
        os.path.relpath(path, run.layout.state) for path in (*run.layout.live(), *run.layout.grown(), run.layout.raw)
    }
    found = [name for name in files.names(run.layout.state) if name not in (*known, *OWN, *misplaced.PEOPLES)]
    found += [
        f"memory/{name}" for name in files.names(os.path.dirname(run.layout.raw)) if f"memory/{name}" not in known
    ]
    for name in found:
        files.move(os.path.join(run.layout.state, name), os.path.join(run.paths.refused, name))
    return found


def tree(run: Run) -> None:
    """The working folder as a tree in run.tree; tracked files that were not the role's to change are put back and kept."""
    project, context = run.layout.project, run.context
    dotgit.clear_locks(project, os.stat(run.paths.context).st_mtime)
    index = _index_of(run)
    if run.changes_tree:
        done = repository.work(project, index=index, parent=context.head, leave=context.untracked)
        run.tree, run.kept_out = done.tree, done.kept_out
        if run.tree == context.tree:
            _restore_head(run)
    else:
        _restore_head(run)
        _put_back(run)
    for name in ("index", "index.lock"):
        files.remove(os.path.join(run.paths.folder, name))


def _restore_head(run: Run) -> None:
    now = repository.standing(run.layout.project)
    if (now.head, now.branch) != (run.context.head, run.context.branch):
        standing = repository.Standing(head=run.context.head, branch=run.context.branch, tree=run.context.tree)
        repository.set_ref(run.layout.project, f"refs/harness/refused/{run.id}", now.head)
        repository.restore_head(run.layout.project, standing)
        run.refused.append(f"commits (kept as refs/harness/refused/{run.id})")


def _put_back(run: Run) -> None:
    """Tracked files as they were at open: with the edits that a person had made before. SPEC.md is people's, always."""
    project, before = run.layout.project, run.context.dirty
    changed = [path for path in repository.dirty(project) if path not in before and path != SPEC]
    spoilt = [path for path, name in before.items() if path != SPEC and _object_of(run.layout, path) != name]
    if not changed and not spoilt:
        return
    _refuse(run, PATCH, repository.patch(project, run.context.head))
    repository.put_back(project, run.context.head, changed)
    for path in spoilt:
        whole = os.path.join(project, path)
        mode = os.stat(whole).st_mode & 0o777 if os.path.exists(whole) else files.SHARED
        if before[path]:
            files.replace(whole, objects.get(run.layout, before[path]), mode)
        else:
            files.remove(whole)
    run.refused += changed + spoilt
