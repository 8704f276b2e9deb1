"""Reconcile after an agent that was not confined: state has one writer, so what others changed is refused, kept and reported.

An honest agent's mistakes are undone without loss; forgery by one that knows the harness is not the aim (docs/threat-model.md).
The state before a live run is in memory (`PreImages`), that before a dead one is what the ledger records. raw.md must keep
its old bytes. Commands may append to issues and orders meanwhile; the ledger records that.
"""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.git import dotgit, repository, worktrees
from harness.integrity import recovery_evidence, workplace
from harness.memory import raw
from harness.model.open_run import PreImages
from harness.store import files, journal, objects
from harness.store.layout import Layout, identity_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.integrity.recovery_evidence import Ledger
    from harness.model.open_run import Begun, OpenRun, Outcome

SPEC = "SPEC.md"
PEOPLES = ("STOP", "PAUSE", "STEER.md")
OWN = (
    *("memory", "runs", "objects", "snapshots", "checkpoints", "escalations", "bin", "journal", "locks", "cache"),
    *("replays", "hooks", "roles", ".git", "git-config", "ledger.json", ".ignore"),
)
PATCH = "working-folder.patch"


class Recorded(Record):
    """The state before a run that died, as the ledger records it. A file that cannot be restored raises BrokenFile, or is
    added to `yielded` and kept."""

    ledger: Ledger
    yielded: list[str] | None = None


if TYPE_CHECKING:
    Before = PreImages | Recorded


def keep_copies(run: OpenRun) -> None:
    """Keep pre-images of all state in memory, and managed files as objects too, from which recovery restores them."""
    layout, contents = run.layout, run.before.contents
    managed = layout.managed()
    for path in (*layout.append_only(), layout.raw, *managed):
        data = files.read(path)
        if data is None:
            continue
        contents[path] = data
        if path in managed:
            objects.put(layout, data)
    for path in _identity_paths():
        contents[path] = files.read(path) or b""


def state(run: Begun, outcome: Outcome, before: Before) -> None:
    """Restore the mission's state and the identities; outcome.refused names what was refused, and a change of state ends the
    run as `refused`."""
    files.make_folder(run.layout.locks)
    with files.Lock(run.layout.state_lock):
        ledger, broken = _ledger(run, before)
        restored = [*_managed(run, before, ledger), *_append_only(run, before, ledger), *_raw(run, before)]
        tampered = list(dict.fromkeys([*broken, *restored, *_identities(run, before)]))
        if tampered or isinstance(before, Recorded):
            journal.adopt(run.layout)
    found = tampered + _strays(run)
    outcome.refused += [name for name in dict.fromkeys(found) if name not in outcome.refused]
    if tampered:
        outcome.ended = "refused"
        outcome.reason = f"The agent changed state that only the harness writes: {', '.join(tampered)}."


def _refuse(run: Begun, name: str, data: bytes) -> None:
    """Keep refused bytes; an empty file stands for a deleted one."""
    files.replace(os.path.join(run.paths.refused, name), data)


def _restore(run: Begun, path: str, data: bytes | None, known: bytes | None) -> str:
    """Keep `data`, what an agent made of a file, and write the `known` bytes back; returns the file's name."""
    _refuse(run, _name(run, path), data or b"")
    if known is None:
        files.remove(path)
    else:
        files.replace(path, known)
    return _name(run, path)


def _name(run: Begun, path: str) -> str:
    return os.path.relpath(path, run.layout.state)


def _ledger(run: Begun, before: Before) -> tuple[Ledger, list[str]]:
    """The ledger, after the journal of an interrupted command is finished. A journal or ledger that does not parse is refused."""
    layout, broken = run.layout, []
    for path, look in ((layout.journal + "/record", journal.finish_journal), (layout.ledger, journal.read_ledger)):
        try:
            look(layout)
        except BrokenFile:
            _refuse(run, _name(run, path), files.read(path) or b"")
            files.remove(path)
            broken.append(_name(run, path))
    found = dict(journal.read_ledger(layout))
    if isinstance(before, PreImages):
        return found, broken
    return found or before.ledger or dict(journal.adopt(layout)), broken  # without any, the files on disk are accepted


def _managed(run: Begun, before: Before, ledger: Ledger) -> list[str]:
    found = []
    for path in run.layout.managed():
        data, row = files.read(path), ledger.get(_name(run, path))
        if isinstance(before, PreImages):
            known = before.contents.get(path)
        else:
            known = recovery_evidence.managed(run.layout, path, data, row, before.yielded)
        if data != known:
            found.append(_restore(run, path, data, known))
    return found


def _append_only(run: Begun, before: Before, ledger: Ledger) -> list[str]:
    found = []
    for path in run.layout.append_only():
        name, data = _name(run, path), files.read(path) or b""
        row = ledger.get(name)
        if isinstance(before, PreImages):
            good = _good(run, before, path, data, row)
        else:
            good = recovery_evidence.grown(run.layout, path, data, row, before.yielded)
        if data == good:
            continue
        found.append(name)
        _refuse(run, name, data[len(good) :] if data.startswith(good) else data)
        files.replace(path, good)
    return found


def _good(run: Begun, before: PreImages, path: str, data: bytes, row: list[object] | None) -> bytes:
    """The accepted content of an append-only file: its old bytes, and what a command added."""
    old, commands = before.contents.get(path, b""), path in (run.layout.issues, run.layout.orders)
    known = data[: int(str(row[1]))] if row and commands else old
    return known if row and files.digest(known) == row[0] and known.startswith(old) else old


def _raw(run: Begun, before: Before) -> list[str]:
    """raw.md keeps its old bytes, and every well-formed new line, from any writer."""
    data, died = files.read(run.layout.raw) or b"", isinstance(before, Recorded)
    old = _old_raw(run, data) if isinstance(before, Recorded) else before.contents.get(run.layout.raw, b"")
    if data.startswith(old):
        new, refused = data[len(old) :], b""
    else:
        known = set(old.split(b"\n"))
        new = b"".join(line + b"\n" for line in data.split(b"\n") if line and line not in known)
        refused = data
    *lines, torn = new.split(b"\n")
    lines += [torn] if torn and not died else []  # after a crash a torn last line is closed, not refused
    bad = [line for line in lines if line and not raw.parse_line(line.decode("utf-8", "replace"), 0).tag]
    known = {b"", *bad}
    kept = old + b"".join(line + b"\n" for line in lines if line not in known) + (torn if died else b"")
    if kept == data:
        return []
    _refuse(run, "memory/raw.md", refused or b"".join(line + b"\n" for line in bad))
    files.replace(run.layout.raw, kept)
    return ["memory/raw.md"]


def _old_raw(run: Begun, data: bytes) -> bytes:
    """The beginning of raw.md that the run found, where it is left; else what is there."""
    size, digest = run.context.raw
    return data[:size] if files.digest(data[:size]) == digest else data


def _index_of(run: Begun) -> str:
    return worktrees.index(run.workplace) if run.kept else os.path.join(run.paths.folder, "index")


def _identities(run: Begun, before: Before) -> list[str]:
    """Restore identity files that no mission wrote, from their content at open; remove new ones that no mission made."""
    folder = identity_folder()
    if not files.names(folder):
        return []
    from harness.memory import identity  # costly to load, and many machines have no identity yet

    kept = before.contents if isinstance(before, PreImages) else {}
    found: list[str] = []
    changed, new = identity.tampered(folder), identity.strays(folder)
    if not os.path.exists(os.path.join(folder, "ledger.json")):
        new = [name for name in map(os.path.basename, _identity_paths()) if name not in run.context.identity]
    for name in (*changed, *new):
        path, known = os.path.join(folder, name), run.context.identity.get(name)
        _refuse(run, f"identity/{name}", files.read(path) or b"")
        if name in new:
            files.remove(path)
        elif known:
            files.replace(path, kept[path] if path in kept else objects.get(run.layout, known))
        found.append(f"identity/{name}")
    return found


def _identity_paths() -> list[str]:
    folder = identity_folder()
    names = [name for name in files.names(folder) if name.endswith((".md", ".jsonl")) and name != "README.md"]
    return [os.path.join(folder, name) for name in names]


def identity_copies(layout: Layout) -> dict[str, str]:
    """{file name: object} of the identity files as they are now; their ledger accepts them, since people may edit them."""
    found = {os.path.basename(path): files.read(path) for path in _identity_paths()}
    if found:
        from harness.memory import identity  # costly to load, and many machines have no identity yet

        identity.adopt(identity_folder())
    return {name: objects.put(layout, data) for name, data in found.items() if data is not None}


def dirty_copies(layout: Layout, paths: list[str]) -> dict[str, str]:
    """{tracked path: object} of a person's uncommitted changes at open; "" where the file is deleted."""
    return {path: _object_of(layout, path, keep=True) for path in paths}


def _object_of(layout: Layout, path: str, *, keep: bool = False) -> str:
    """The object name of a file in the working folder; "" where there is no plain file."""
    whole = os.path.join(layout.project, path)
    data = files.read(whole) if os.path.isfile(whole) and not os.path.islink(whole) else None
    if data is None:
        return ""
    return objects.put(layout, data) if keep else files.digest(data)


def _strays(run: Begun) -> list[str]:
    """Move files that the layout does not know out of the state; the outcome stays as it is."""
    layout = run.layout
    known = {_name(run, path) for path in (*layout.managed(), *layout.append_only(), layout.raw)}
    found = [name for name in files.names(layout.state) if name not in (*known, *OWN, *PEOPLES)]
    memory = [f"memory/{name}" for name in files.names(os.path.dirname(layout.raw))]
    found += [name for name in memory if name not in known]
    for name in found:
        files.move(os.path.join(layout.state, name), os.path.join(run.paths.refused, name))
    return found


def tree(run: Begun, outcome: Outcome) -> None:
    """Write the workplace as a tree, into outcome.tree. Where the role may not change it, restore it."""
    if not workplace.join(run):
        return  # somebody removed the tree; nothing of the run is left in it
    project, index = run.workplace, _index_of(run)
    if not run.kept:
        dotgit.clear_locks(project, os.stat(run.paths.context).st_mtime)
    if run.changes_tree:
        done = repository.working_tree(project, index=index, parent=run.context.head, leave=run.context.untracked)
        outcome.tree, outcome.kept_out = done.tree, done.kept_out
        if outcome.tree == run.context.tree:
            outcome.refused += _keep_commits(run) if run.kept else _restore_head(run)
    else:
        outcome.refused += _restore_tree(run) if run.kept else [*_restore_head(run), *_restore_tracked(run)]
    if not run.kept:
        for name in ("index", "index.lock"):
            files.remove(os.path.join(run.paths.folder, name))


def _restore_tree(run: Begun) -> list[str]:
    """The kept tree as it was at open; what the agent changed in tracked files stays as a patch, its commits under a ref."""
    changed = repository.dirty(run.workplace)
    if changed:
        _refuse(run, PATCH, repository.patch(run.workplace, run.context.head))
    commits = _keep_commits(run)
    workplace.restore(run)
    return commits + changed


def _keep_commits(run: Begun) -> list[str]:
    """A ref keeps where an agent that was not confined left the tree's HEAD, where that is another commit than at open."""
    now = run.context.head if run.sealed else repository.position(run.workplace).head
    return [] if now == run.context.head else _keep_commit(run, now)


def _keep_commit(run: Begun, commit: str) -> list[str]:
    repository.set_ref(run.layout.project, f"refs/harness/refused/{run.id}", commit)
    return [f"commits (kept as refs/harness/refused/{run.id})"]


def _restore_head(run: Begun) -> list[str]:
    now = repository.position(run.layout.project)
    if (now.head, now.branch) == (run.context.head, run.context.branch):
        return []
    opened = repository.Position(head=run.context.head, branch=run.context.branch, tree=run.context.tree)
    kept = _keep_commit(run, now.head)
    repository.restore_head(run.layout.project, opened)
    return kept


def _restore_tracked(run: Begun) -> list[str]:
    """Tracked files as they were at open, with a person's earlier edits. SPEC.md always belongs to people."""
    project, before = run.layout.project, run.context.dirty
    changed = [path for path in repository.dirty(project) if path not in before and path != SPEC]
    edited = [path for path, name in before.items() if path != SPEC and _object_of(run.layout, path) != name]
    if not changed and not edited:
        return []
    _refuse(run, PATCH, repository.patch(project, run.context.head))
    repository.restore_files(project, run.context.head, changed)
    for path in edited:
        whole = os.path.join(project, path)
        mode = os.stat(whole).st_mode & 0o777 if os.path.exists(whole) else files.SHARED
        if before[path]:
            files.replace(whole, objects.get(run.layout, before[path]), mode)
        else:
            files.remove(whole)
    return changed + edited
