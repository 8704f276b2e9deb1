"""State has one writer, the harness: what an agent changed besides is put back, kept, and named.

What is put back comes from `PreImages`, in memory, because an agent can write every file, the ledger and our copies too. Of
a run that died only recovery evidence is left, which is held against itself.
Of raw.md the old bytes must be there and well-formed new lines stay, from any writer; issues and orders may have grown by
commands, which the ledger tells.
"""

from __future__ import annotations

import os
from itertools import islice

from harness.base.errors import BrokenFile
from harness.git import dotgit, repository
from harness.integrity import misplaced, mission_lock, recovery_evidence
from harness.integrity.recovery_evidence import Evidence
from harness.memory import raw
from harness.model import runs
from harness.model.open_run import PreImages
from harness.store import files, journal, objects
from harness.store.layout import Layout, identity_file, identity_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.model.open_run import Begun, OpenRun, Outcome

    Before = PreImages | Evidence

SPEC = "SPEC.md"
OWN = (
    *("memory", "runs", "objects", "snapshots", "checkpoints", "escalations", "bin", "journal", "locks", "cache"),
    *("replays", "hooks", "roles", ".git", "ledger.json", ".ignore"),
)
SEALS_LOOKED_AT = 10
PATCH = "working-folder.patch"


def keep_copies(run: OpenRun) -> None:
    """Hold what can be tampered with; for recovery copy append-only files beside the run, managed files as objects."""
    layout, contents = run.layout, run.before.contents
    for path in (*layout.grown(), layout.raw):
        data = files.read(path)
        if data is not None:
            contents[path] = data
            files.replace_quickly(recovery_evidence.copy_of(run.paths, path), data)
    for path in layout.live():
        data = files.read(path)
        if data is not None:
            contents[path] = data
            objects.put(layout, data)
    for path in (*_code(layout), *_identity_paths(), run.paths.context):
        contents[path] = files.read(path) or b""
    run.before.stamps.update(_stamps(run))


def hold_own(run: OpenRun) -> None:
    """Hold what was just written of the run itself: a prompt that fired can be rebuilt for ever."""
    for path in (run.paths.manifest, run.paths.prompt, run.paths.receipts):
        data = files.read(path)
        if data is not None:
            run.before.contents[path] = data


def drop_copies(run: Begun) -> None:
    """Remove what `keep_copies` laid beside the run."""
    folder = os.path.join(run.paths.folder, recovery_evidence.COPIES)
    for name in files.names(folder):
        files.remove(os.path.join(folder, name))
    if os.path.isdir(folder):
        os.rmdir(folder)


def state(run: Begun, outcome: Outcome, before: Before, locks: list[files.Lock]) -> None:
    """Put the mission's state and the identities back; what was refused is in outcome.refused, a managed file makes
    `refused`. `locks`: those that the run holds."""
    moved = misplaced.clear_way(run.layout, run.paths)
    aside = [name for name in moved if not misplaced.is_mere(name)]
    if SPEC in (*moved, *outcome.refused) and not os.path.lexists(run.layout.asked_spec):
        _spec_back(run)
    files.make_folder(run.layout.locks)
    unlocked = [_name(run, path) for path in mission_lock.put_back(locks) if path != run.layout.state]
    with files.Lock(run.layout.state_lock):
        ledger, broken = _ledger(run, before)
        put_back = [*_live(run, before, ledger), *_grown(run, before, ledger), *_raw(run, before)]
        tampered = [*aside, *broken, *put_back, *_identities(run, before), *_held_besides(run, before)]
        tampered = list(dict.fromkeys(tampered))
        if tampered or isinstance(before, Evidence):
            journal.adopt(run.layout)
    _forget_parsed(run, before)
    sealed = _sealed(run)
    strays = _strays(run)
    found = tampered + sealed + strays + unlocked + [name for name in moved if name not in aside]
    outcome.refused += [name for name in dict.fromkeys(found) if name not in outcome.refused]
    if tampered or sealed:
        outcome.ended = "refused"
        outcome.reason = f"The agent changed state that only the harness writes: {', '.join(tampered + sealed)}."


def _spec_back(run: Begun) -> None:
    """SPEC.md as it was at open, where something that is no file stood in its place."""
    edited = run.context.dirty.get(SPEC)
    if edited:
        files.replace(run.layout.asked_spec, objects.get(run.layout, edited))
    elif SPEC in repository.tracked_names(run.layout.project):
        repository.put_back(run.layout.project, run.context.head, [SPEC])


def _refuse(run: Begun, name: str, data: bytes) -> None:
    """Keep what was refused; of what is gone an empty file tells, where nothing was moved there."""
    path = os.path.join(run.paths.refused, name)
    if data or not os.path.lexists(path):
        files.replace(path, data)


def _put_away(run: Begun, path: str, data: bytes | None) -> None:
    """Keep what an agent made of a file; a link itself, for what it leads to may be anybody's."""
    if os.path.islink(path):
        misplaced.move(run.paths, _name(run, path), path)
    else:
        _refuse(run, _name(run, path), data or b"")


def _name(run: Begun, path: str) -> str:
    return os.path.relpath(path, run.layout.state)


def _ledger(run: Begun, before: Before) -> tuple[recovery_evidence.Ledger, list[str]]:
    """The ledger after any journal that a door left; one of the two that does not parse is refused and forgotten."""
    layout, broken = run.layout, []
    for path, look in ((layout.journal + "/record", journal.finish_journal), (layout.ledger, journal.read_ledger)):
        try:
            look(layout)
        except BrokenFile:
            _refuse(run, _name(run, path), files.read(path) or b"")
            files.remove(path)
            broken.append(_name(run, path))
    if isinstance(before, PreImages):
        return dict(journal.read_ledger(layout)), broken
    if not broken and not os.path.exists(layout.ledger):
        broken.append(_name(run, layout.ledger))
    return recovery_evidence.ledger(layout, run.id) or dict(
        journal.adopt(layout)
    ), broken  # without any, what is on disk stands


def _live(run: Begun, before: Before, ledger: recovery_evidence.Ledger) -> list[str]:
    found = []
    for path in run.layout.live():
        name, data = _name(run, path), files.read(path)
        known = (
            before.contents.get(path) if isinstance(before, PreImages) else before.live(path, data, ledger.get(name))
        )
        if data == known:
            continue
        found.append(name)
        _put_away(run, path, data)
        if known is None:
            files.remove(path)
        else:
            files.replace(path, known)
    return found


def _grown(run: Begun, before: Before, ledger: recovery_evidence.Ledger) -> list[str]:
    found = []
    for path in run.layout.grown():
        name, data = _name(run, path), files.read(path) or b""
        row = ledger.get(name)
        good = before.grown(path, data, row) if isinstance(before, Evidence) else _good(run, before, path, data, row)
        if data == good:
            continue
        found.append(name)
        _refuse(run, name, data[len(good) :] if data.startswith(good) else data)
        files.replace(path, good)
    return found


def _good(run: Begun, before: PreImages, path: str, data: bytes, row: list[object] | None) -> bytes:
    """What may be in an append-only file: its old bytes, and what a command added."""
    old, doors = before.contents.get(path, b""), path in (run.layout.issues, run.layout.orders)
    told = data[: int(str(row[1]))] if row and doors else old
    return told if row and files.digest(told) == row[0] and told.startswith(old) else old


def _raw(run: Begun, before: Before) -> list[str]:
    data, died = files.read(run.layout.raw) or b"", isinstance(before, Evidence)
    old = before.raw(data) if isinstance(before, Evidence) else before.contents.get(run.layout.raw, b"")
    if data.startswith(old):
        new, refused = data[len(old) :], b""
    else:
        known = set(old.split(b"\n"))
        new = b"".join(line + b"\n" for line in data.split(b"\n") if line and line not in known)
        refused = data
    *lines, torn = new.split(b"\n")
    lines += (
        [torn] if torn and not died else []
    )  # where a run died a torn end is the power's doing: closed, not refused
    bad = [line for line in lines if line and not raw.parse_line(line.decode("utf-8", "replace"), 0).tag]
    known = {b"", *bad}
    kept = old + b"".join(line + b"\n" for line in lines if line not in known) + (torn if died else b"")
    if kept == data:
        return []
    _refuse(run, "memory/raw.md", refused or b"".join(line + b"\n" for line in bad))
    files.replace(run.layout.raw, kept)
    return ["memory/raw.md"]


def _held_besides(run: Begun, before: Before) -> list[str]:
    """The run's own files, and code that would be run later: roles and hooks come from people, never from a run."""
    if isinstance(before, Evidence):
        return []
    held = before.contents
    own = (run.paths.context, run.paths.manifest, run.paths.prompt, run.paths.receipts)
    found = []
    for path in sorted({*_code(run.layout), *(path for path in held if _is_code(run.layout, path) or path in own)}):
        data, known = files.read(path), held.get(path)
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


def _stamps(run: Begun) -> dict[str, list[int]]:
    """{path: inode, bytes, change time} of the cache and of our copy of git's index: no one can write and keep these."""
    paths = [os.path.join(run.layout.cache, name) for name in files.names(run.layout.cache)]
    paths += [path for path in (_index_of(run),) if os.path.exists(path)]
    stats = {path: os.lstat(path) for path in paths}
    return {path: [stat.st_ino, stat.st_size, stat.st_ctime_ns] for path, stat in stats.items()}


def _forget_parsed(run: Begun, before: Before) -> None:
    """What can be made again and is not as it was is made again: an agent could have written anything there."""
    known = before.stamps if isinstance(before, PreImages) else {}
    for path, stamp in _stamps(run).items():
        if known.get(path) != stamp:
            files.remove(path)


def _index_of(run: Begun) -> str:
    return os.path.join(run.paths.folder, "index")


def _sealed(run: Begun) -> list[str]:
    """Finished runs that somebody changed, and that no run before was blamed for."""
    broken = [f"runs/{name}" for name in runs.broken_seals(run.layout, SEALS_LOOKED_AT)]
    for name in broken:
        misplaced.clear_way(run.layout, run.layout.run(os.path.basename(name)))
    if not broken:
        return []
    newest = islice(runs.books(run.layout), 2 * SEALS_LOOKED_AT)
    named = {name for result in newest for name in result.refused}
    return [name for name in broken if name not in named]


def _identities(run: Begun, before: Before) -> list[str]:
    """Identity files that differ from what missions wrote, back from what was held at open; new ones of nobody's go."""
    folder = identity_folder()
    if not files.names(folder):
        return []
    from harness.memory import identity  # costly to load, and many machines have no identity yet

    held = before.contents if isinstance(before, PreImages) else {}
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
            files.replace(path, held[path] if path in held else objects.get(run.layout, known))
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


def _strays(run: Begun) -> list[str]:
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


def tree(run: Begun, outcome: Outcome) -> None:
    """The working folder as a tree in outcome.tree; tracked files that were not the role's to change are put back and kept."""
    project, context = run.layout.project, run.context
    dotgit.clear_locks(project, os.stat(run.paths.context).st_mtime)
    index = _index_of(run)
    if run.changes_tree:
        done = repository.work(project, index=index, parent=context.head, leave=context.untracked)
        outcome.tree, outcome.kept_out = done.tree, done.kept_out
        if outcome.tree == context.tree:
            outcome.refused += _restore_head(run)
    else:
        outcome.refused += [*_restore_head(run), *_put_back(run)]
    for name in ("index", "index.lock"):
        files.remove(os.path.join(run.paths.folder, name))


def _restore_head(run: Begun) -> list[str]:
    now = repository.standing(run.layout.project)
    if (now.head, now.branch) == (run.context.head, run.context.branch):
        return []
    standing = repository.Standing(head=run.context.head, branch=run.context.branch, tree=run.context.tree)
    repository.set_ref(run.layout.project, f"refs/harness/refused/{run.id}", now.head)
    repository.restore_head(run.layout.project, standing)
    return [f"commits (kept as refs/harness/refused/{run.id})"]


def _put_back(run: Begun) -> list[str]:
    """Tracked files as they were at open: with the edits that a person had made before. SPEC.md is people's, always."""
    project, before = run.layout.project, run.context.dirty
    changed = [path for path in repository.dirty(project) if path not in before and path != SPEC]
    spoilt = [path for path, name in before.items() if path != SPEC and _object_of(run.layout, path) != name]
    if not changed and not spoilt:
        return []
    _refuse(run, PATCH, repository.patch(project, run.context.head))
    repository.put_back(project, run.context.head, changed)
    for path in spoilt:
        whole = os.path.join(project, path)
        mode = os.stat(whole).st_mode & 0o777 if os.path.exists(whole) else files.SHARED
        if before[path]:
            files.replace(whole, objects.get(run.layout, before[path]), mode)
        else:
            files.remove(whole)
    return changed + spoilt
