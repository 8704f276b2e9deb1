"""Reconcile after an agent that was not confined: state has one writer, so what others changed is refused, kept and reported.

An honest agent's mistakes are undone without loss; forgery by one that knows the harness is not the aim (docs/threat-model.md).
What is right is what was committed, by this run, by others and by commands, up to now: for a live run as for a dead one.
raw.md must keep its old bytes.
"""

from __future__ import annotations

import os
from typing import Any

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.git import new_secrets, refs, repository, worktrees
from harness.integrity import lease, recovery_evidence, workplace
from harness.integrity.recovery_evidence import Ledger
from harness.memory import identity, raw
from harness.model import config
from harness.model.open_run import Begun, OpenRun, Outcome
from harness.store import committed, files, journal, names, objects
from harness.store.layout import Layout, identity_folder
from harness.store.state import State

PEOPLES = ("STOP", "PAUSE", "STEER.md")
OWN = (
    *("memory", "runs", "objects", "snapshots", "checkpoints", "escalations", "bin", "journal", "locks", "cache"),
    *("replays", "hooks", "roles", ".git", "git-config", "ledger.json", ".ignore"),
    *(names.ARCHIVED, names.ARCHIVING, names.RESTORING),
)
JOURNAL_RECORD = "journal/record"
TEMPORARY = ".tmp"
PATCH = "working-folder.patch"
KEPT_OUT = "kept-out"  # the folder for files with secrets


def accept_edits(layout: Layout) -> None:
    """What people changed by hand in the state since is accepted; not while a run is open that is not behind glass, because
    nobody can tell them from its agent."""
    with State(layout).lock("state"):
        journal.finish_journal(layout)
        if all(one.sealed for one in lease.alive(layout)):
            before = journal.read_ledger(layout)
            for name, row in journal.adopt(layout).items():
                data = State(layout).data(name) if name in names.MANAGED and before.get(name) != row else None
                if data is not None:
                    objects.put(layout, data)  # so that the mission can be played back


def keep_committed(layout: Layout) -> None:
    """From here on every commit can be restored: an agent begins that could overwrite the state."""
    with State(layout).lock("state"):
        journal.finish_journal(layout)
        committed.begin(layout)


def state(run: Begun, outcome: Outcome, yielded: list[str] | None = None) -> None:
    """Restore the mission's state as it was committed, and the identities; outcome.refused names what was refused, and a change
    of state ends the run as `refused`. A file that cannot be restored raises BrokenFile, or is added to `yielded` and kept."""
    layout = run.layout
    with State(layout).lock("state"):
        ledger, broken = _ledger(run)
        restored = [*_managed(run, ledger, yielded), *_append_only(run, ledger, yielded), *_raw(run)]
        tampered = list(dict.fromkeys([*broken, *restored, *_identities(run)]))
        if tampered:
            journal.adopt(layout)
    found = tampered + _strays(run)
    outcome.refused += [name for name in dict.fromkeys(found) if name not in outcome.refused]
    if tampered:
        outcome.ended = "refused"
        outcome.reason = f"The agent changed state that only the harness writes: {', '.join(tampered)}."


def accept_config(run: Begun) -> str:
    """Accept a valid config.toml that was changed since a run that died had opened: it is a person's file. What to say of it."""
    layout = run.layout
    ledger = recovery_evidence.ledger(layout) or dict(run.context.live)
    row, data = ledger.get(names.CONFIG), State(layout).data(names.CONFIG)
    if data is None or row is None or row[0] == encoding.digest(data):
        return ""
    try:
        config.parse(encoding.decode(data, layout.config), layout.config)
    except BrokenFile:
        return "; config.toml does not parse and was put back, yours is under refused/ of the run"
    objects.put(layout, data)
    journal.note_in_ledger(layout, ledger, layout.config, data)
    files.replace(layout.ledger, encoding.dump_json(ledger))
    return "; config.toml was changed since the run began, and stands"


def _refuse(run: Begun, name: str, data: bytes) -> None:
    """Keep refused bytes; an empty file stands for a deleted one."""
    State(run.layout).put(names.of_run(run.id, f"{names.REFUSED}/{name}"), data)


def _ledger(run: Begun) -> tuple[Ledger, list[str]]:
    """The ledger, after the journal of an interrupted command is finished. A journal or ledger that does not parse is refused;
    then the ledger is that of when the run opened."""
    layout, broken = run.layout, []
    for name, look in ((JOURNAL_RECORD, journal.finish_journal), (names.LEDGER, journal.read_ledger)):
        try:
            look(layout)
        except BrokenFile:
            _refuse(run, name, files.read(f"{layout.state}/{name}") or b"")
            files.remove(f"{layout.state}/{name}")
            broken.append(name)
    copied = committed.ledger(layout) if isinstance(run, OpenRun) else {}
    known = journal.read_ledger(layout) or copied or run.context.live
    return dict(known or journal.adopt(layout)), broken  # without any, the files on disk are accepted


def _managed(run: Begun, ledger: Ledger, yielded: list[str] | None) -> list[str]:
    found, state = [], State(run.layout)
    for name in names.MANAGED:
        data = state.data(name)
        alive = isinstance(run, OpenRun)  # recovery commits too, and knows the ledger for its own
        ledgers, copy = ([ledger, run.context.live], committed.read(run.layout, name)) if alive else ([ledger], None)
        known = recovery_evidence.managed(run.layout, name, data, ledgers, yielded, copy)
        if data != known:
            _refuse(run, name, data or b"")
            if known is None:
                files.remove(state.path(name))
            else:
                files.replace(state.path(name), known)
            found.append(name)
    return found


def _append_only(run: Begun, ledger: Ledger, yielded: list[str] | None) -> list[str]:
    layout, state, found = run.layout, State(run.layout), []
    for name in names.APPEND_ONLY:
        path, length = state.path(name), state.length(name)
        known, holds = _known(run, name, ledger.get(name))
        if holds and length == known:
            continue
        found.append(name)
        if holds:  # all is there, and something behind it
            _refuse(run, name, state.part(name, known, length - known))
            files.cut(path, known)
            continue
        _refuse(run, name, state.data(name) or b"")
        if isinstance(run, OpenRun):
            committed.put_back(layout, name)
        elif name == names.RUN_LOG:
            files.replace(path, recovery_evidence.books(layout, yielded))
        else:  # whoever mended it since is a person
            recovery_evidence.lost(path, yielded, layout.relative(committed.copy_of(layout, name)))
    return found


def _known(run: Begun, name: str, row: list[Any] | None) -> tuple[int, bool]:
    """The length of an append-only file as committed, and whether what is there begins so. A run that died may be one of an older
    harness, which kept no copy, and had a digest in the ledger."""
    layout, state = run.layout, State(run.layout)
    copied = os.path.exists(committed.copy_of(layout, name))
    if isinstance(run, OpenRun):
        return files.length(committed.copy_of(layout, name)), committed.holds(layout, name)
    length = int(row[1]) if row else 0
    holds = state.length(name) >= length and (not copied or committed.holds(layout, name))
    if holds and row and row[0]:
        holds = encoding.digest(state.part(name, 0, length)) == row[0]
    return length, holds


def _raw(run: Begun) -> list[str]:
    """raw.md keeps its old bytes, and every well-formed new line, from any writer."""
    state, died = State(run.layout), not isinstance(run, OpenRun)
    copied = os.path.exists(committed.copy_of(run.layout, names.RAW))
    start = files.length(committed.copy_of(run.layout, names.RAW)) if copied else int(run.context.raw[0])
    holds = committed.holds(run.layout, names.RAW)
    if holds:
        old, new, refused = b"", state.part(names.RAW, start, state.length(names.RAW)), b""
    else:
        old, refused = files.read(committed.copy_of(run.layout, names.RAW)) or b"", state.data(names.RAW) or b""
        known = set(old.split(b"\n"))
        new = b"".join(line + b"\n" for line in refused.split(b"\n") if line and line not in known)
    *lines, torn = new.split(b"\n")
    lines += [torn] if torn and not died else []  # after a crash a torn last line is closed, not refused
    bad = [line for line in lines if line and not raw.parse_bytes(line, len(line), 0).tag]
    gone = {b"", *bad}
    kept = b"".join(line + b"\n" for line in lines if line not in gone) + (torn if died else b"")
    if holds and kept == new:
        return []
    _refuse(run, names.RAW, b"".join(line + b"\n" for line in bad) if holds else refused)
    files.replace(run.layout.raw, (state.part(names.RAW, 0, start) if holds else old) + kept)
    return [names.RAW]


def _identities(run: Begun) -> list[str]:
    """Restore identity files that no mission wrote, as they were at open; remove new ones that no mission made."""
    folder = identity_folder()
    if not files.names(folder):
        return []

    found: list[str] = []
    changed, new = identity.tampered(folder), identity.strays(folder)
    if not os.path.exists(os.path.join(folder, "ledger.json")):
        new = [name for name in map(os.path.basename, _identity_paths()) if name not in run.context.identity]
    restored: dict[str, bytes] = {}
    for name in (*changed, *new):
        path, known = os.path.join(folder, name), run.context.identity.get(name)
        _refuse(run, f"identity/{name}", files.read(path) or b"")
        if name in new:
            files.remove(path)
        elif known:
            restored[path] = objects.get(run.layout, known)
        found.append(f"identity/{name}")
    if restored:
        identity.restore(folder, restored)
    return found


def _identity_paths() -> list[str]:
    folder = identity_folder()
    names = [name for name in files.names(folder) if name.endswith((".md", ".jsonl")) and name != "README.md"]
    return [os.path.join(folder, name) for name in names]


def identity_copies(layout: Layout) -> dict[str, str]:
    """{file name: object} of the identity files as they are now; their ledger accepts them, since people may edit them."""
    if _identity_paths():
        identity.adopt(identity_folder())
    found = {os.path.basename(path): files.read(path) for path in _identity_paths()}
    return {name: objects.put(layout, data) for name, data in found.items() if data is not None}


def _strays(run: Begun) -> list[str]:
    """Move files that the layout does not know out of the state; the outcome stays as it is."""
    layout, state = run.layout, State(run.layout)
    known = {*names.MANAGED, *names.APPEND_ONLY, names.RAW}
    found = [name for name in state.list("") if name not in (*known, *OWN, *PEOPLES)]
    found += [name for one in state.list("memory") if (name := f"memory/{one}") not in known]
    found = [name for name in found if not name.endswith(TEMPORARY)]  # of a writer who is at work
    for name in found:
        files.move(os.path.join(layout.state, name), os.path.join(run.paths.refused, name))
    return found


def tree(run: Begun, outcome: Outcome) -> None:
    """Write the workplace as a tree, into outcome.tree. Where the role may not change it, restore it."""
    if not workplace.join(run):
        return  # somebody removed the tree; nothing of the run is left in it
    if run.changes_tree:
        spec = run.layout.prefix + names.ASKED_SPEC
        leave = {*run.context.untracked, spec}  # SPEC.md is a person's: no commit of a run has a change of it
        index = worktrees.index(run.checkout)
        done = repository.working_tree(run.checkout, index=index, parent=run.context.head, leave=leave)
        outcome.tree, outcome.kept_out = done.tree, done.kept_out
        _look_for_secrets(run, outcome, index)
        if spec in done.left and spec not in run.context.untracked:
            outcome.refused += _refuse_spec(run, spec)
        if outcome.tree == run.context.tree:
            outcome.refused += _keep_commits(run)
    else:
        outcome.refused += _restore_tree(run)


def _look_for_secrets(run: Begun, outcome: Outcome, index: str) -> None:
    """Files with a secret stay out of the commit: below refused/ of the run, and no more in its kept tree."""
    if outcome.tree == run.context.tree:
        return

    found = new_secrets.keep_out(run.checkout, index=index, parent=run.context.head, tree=outcome.tree)
    outcome.tree, outcome.changed, state = found.tree, found.changed, State(run.layout)
    outcome.kept_out = [*outcome.kept_out, *found.kept_out]
    for path in found.out:
        data = files.read(os.path.join(run.checkout, path)) or b""
        state.put(names.of_run(run.id, f"{names.REFUSED}/{KEPT_OUT}/{path}"), data, mode=files.PRIVATE)
    new_secrets.put_back(run.checkout, index, found)
    where = f"; see {run.layout.relative(run.paths.refused)}/{KEPT_OUT}/"
    outcome.secrets = [f"kept out of the commit: {line}{where}" for line in found.kept_out]
    outcome.secrets += [f"committed, and may be a secret: {line}" for line in found.doubtful]


def _refuse_spec(run: Begun, spec: str) -> list[str]:
    """Keep what an agent wrote into SPEC.md of its tree; the tree's next run finds a person's there."""
    path = os.path.join(run.checkout, spec)
    _refuse(run, spec, (files.read(path) or b"") if os.path.isfile(path) and not os.path.islink(path) else b"")
    return [spec]


def _restore_tree(run: Begun) -> list[str]:
    """The kept tree as it was at open; what the agent changed in tracked files stays as a patch, its commits under a ref."""
    changed = repository.dirty(run.checkout)
    if changed:
        _refuse(run, PATCH, repository.patch(run.checkout, run.context.head))
    commits = _keep_commits(run)
    workplace.restore(run)
    return commits + changed


def _keep_commits(run: Begun) -> list[str]:
    """A ref keeps where an agent that was not confined left the tree's HEAD, where that is another commit than at open."""
    now = run.context.head if run.sealed else repository.position(run.checkout).head
    return [] if now == run.context.head else _keep_commit(run, now)


def _keep_commit(run: Begun, commit: str) -> list[str]:
    refs.set_one(run.layout.top, f"refs/harness/refused/{run.id}", commit)
    return [f"commits (kept as refs/harness/refused/{run.id})"]
