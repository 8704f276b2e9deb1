"""Reconciles after an unconfined agent: state has one writer, so foreign changes are refused, kept and reported.

An honest agent's mistakes are undone without loss; deliberate forgery is out of scope (docs/threat-model.md). The
reference is the committed state of all runs and commands so far (`state/committed_copy.py`). raw.md must keep its old
bytes. config.toml, roles, STOP, PAUSE, STEER.md and repository.md belong to a person, and identities to no mission.
"""

from __future__ import annotations

import os

from harness.base.errors import BrokenFile
from harness.git import new_secrets, refs, repository
from harness.git.checkouts import worktrees
from harness.mission import lease
from harness.mission.open_run import OpenRun, Outcome, StartedRun
from harness.state import committed_copy, files, journal, names, objects, raw
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import workplace
from harness.workspace import grants

PEOPLES = ("STOP", "PAUSE", "STEER.md", names.REPOSITORY)
OWN = (
    *("memory", "runs", "objects", "snapshots", "checkpoints", "escalations", "bin", "journal", "locks", "cache"),
    *("replays", "hooks", "roles", ".git", "git-config", "ledger.json", ".ignore"),
    *(names.ARCHIVED, names.ARCHIVING, names.RESTORING, names.ORIGIN),
)
JOURNAL_RECORD = "journal/record"
TEMPORARY = ".tmp"
PATCH = "working-folder.patch"
KEPT_OUT = "kept-out"  # the folder for files with secrets


def accept_edits(layout: Layout) -> None:
    """Accept people's manual changes of the state, except while an unconfined run is open, since its agent could have
    made them."""
    with State(layout).lock("state"):
        journal.finish_journal(layout)
        if all(one.sealed for one in lease.alive(layout)):
            before = journal.read_ledger(layout)
            for name, row in journal.adopt(layout).items():
                data = State(layout).data(name) if name in names.MANAGED and before.get(name) != row else None
                if data is not None:
                    objects.put(layout, data)  # so that the mission can be replayed


def keep_committed(layout: Layout) -> None:
    """Keep committed content from now on, before an agent starts that could overwrite the state."""
    with State(layout).lock("state"):
        journal.finish_journal(layout)
        committed_copy.begin(layout)


def state(run: StartedRun, outcome: Outcome) -> None:
    """Restore the committed state; outcome.refused lists refused changes, and a change of state ends the run as `refused`."""
    layout, restored = run.layout, list[str]()
    with State(layout).lock("state"):
        if committed_copy.is_kept(layout):
            restored = _records(run)
            if not isinstance(run, OpenRun):
                committed_copy.catch_up(layout)
            restored += [*_managed(run), *_append_only(run), *_raw(run)]
        if restored:
            journal.adopt(layout)
            grants.adopt(layout)
    found = [*restored, *_strays(run)]
    outcome.work.refused += [name for name in dict.fromkeys(found) if name not in outcome.work.refused]
    if restored:
        outcome.ended = "refused"
        outcome.reason = f"The agent changed state that only the harness writes: {', '.join(restored)}."


def _refuse(run: StartedRun, name: str, data: bytes) -> None:
    """Keep refused bytes; an empty file stands for a deleted one."""
    State(run.layout).put(names.of_run(run.id, f"{names.REFUSED}/{name}"), data)


def _records(run: StartedRun) -> list[str]:
    """Finish the journal of an interrupted command. A journal or ledger that does not parse is refused."""
    layout, broken = run.layout, []
    for name, look in ((JOURNAL_RECORD, journal.finish_journal), (names.LEDGER, journal.read_ledger)):
        try:
            look(layout)
        except BrokenFile:
            _refuse(run, name, files.read(f"{layout.state}/{name}") or b"")
            files.remove(f"{layout.state}/{name}")
            broken.append(name)
    return broken


def _managed(run: StartedRun) -> list[str]:
    found, state = [], State(run.layout)
    for name in names.MANAGED:
        data, known = state.data(name), committed_copy.read(run.layout, name)
        if data == known or (name == names.CONFIG and data is not None):
            continue
        _refuse(run, name, data or b"")
        files.remove(state.path(name)) if known is None else files.replace(state.path(name), known)
        found.append(name)
    return found


def _append_only(run: StartedRun) -> list[str]:
    found, state = [], State(run.layout)
    for name in names.APPEND_ONLY:
        known, length, holds = (
            committed_copy.length(run.layout, name),
            state.length(name),
            committed_copy.holds(run.layout, name),
        )
        if holds and length == known:
            continue
        _refuse(run, name, state.part(name, known, length - known) if holds else state.data(name) or b"")
        files.cut(state.path(name), known) if holds else committed_copy.put_back(run.layout, name)
        found.append(name)
    return found


def _raw(run: StartedRun) -> list[str]:
    """raw.md keeps its old bytes, and every well-formed new line, from any writer."""
    state, died = State(run.layout), not isinstance(run, OpenRun)
    start, holds = committed_copy.length(run.layout, names.RAW), committed_copy.holds(run.layout, names.RAW)
    if holds:
        old, new, refused = b"", state.part(names.RAW, start, state.length(names.RAW)), b""
    else:
        old, refused = committed_copy.read(run.layout, names.RAW) or b"", state.data(names.RAW) or b""
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
    files.replace(run.layout.path(names.RAW), (state.part(names.RAW, 0, start) if holds else old) + kept)
    return [names.RAW]


def _strays(run: StartedRun) -> list[str]:
    """Move files unknown to the layout out of the state; the outcome stays as it is."""
    layout, state = run.layout, State(run.layout)
    known = {*names.MANAGED, *names.APPEND_ONLY, names.RAW}
    found = [name for name in state.list("") if name not in (*known, *OWN, *PEOPLES)]
    found += [name for one in state.list("memory") if (name := f"memory/{one}") not in known]
    found = [name for name in found if not name.endswith(TEMPORARY)]  # of a live writer
    for name in found:
        files.move(os.path.join(layout.state, name), os.path.join(run.paths.refused, name))
    return found


def tree(run: StartedRun, outcome: Outcome) -> None:
    """Write the workplace as a tree, into outcome.tree; restore it where the role may not change it, leave it where it
    answers."""
    if run.capability == "answers":
        return
    if not workplace.join(run):
        return  # the tree was removed, with the run's work
    if run.changes_tree:
        spec = run.layout.folders.prefix + names.ASKED_SPEC
        leave = {*run.context.untracked, *([] if run.entered else [spec])}  # SPEC.md is a person's
        index = worktrees.index(run.checkout)
        done = repository.working_tree(run.checkout, index=index, parent=run.context.head, leave=leave)
        outcome.work.tree, outcome.work.kept_out = done.tree, [*outcome.work.kept_out, *done.kept_out]
        _look_for_secrets(run, outcome, index)
        outcome.work.ignored += worktrees.ignored_since(run.checkout, run.context.ignored)
        if spec in done.left and not _as_found(run, spec):
            outcome.work.refused += _refuse_spec(run, spec)
        if outcome.work.tree == run.context.tree:
            outcome.work.refused += _keep_commits(run)
    else:
        outcome.work.refused += _restore_tree(run)


def _look_for_secrets(run: StartedRun, outcome: Outcome, index: str) -> None:
    """Move files with a secret out of the commit and the tree, to refused/ of the run."""
    if outcome.work.tree == run.context.tree:
        return

    found = new_secrets.keep_out(run.checkout, index=index, parent=run.context.head, tree=outcome.work.tree)
    outcome.work.tree, outcome.work.changed, state = found.tree, found.changed, State(run.layout)
    outcome.work.kept_out = [*outcome.work.kept_out, *found.kept_out]
    for path in found.out:
        data = files.read(os.path.join(run.checkout, path)) or b""
        state.put(names.of_run(run.id, f"{names.REFUSED}/{KEPT_OUT}/{path}"), data, mode=files.PRIVATE)
    new_secrets.put_back(run.checkout, index, found)
    where = f"; see {run.layout.folders.relative(run.paths.refused)}/{KEPT_OUT}/"
    outcome.work.secrets = [f"kept out of the commit: {line}{where}" for line in found.kept_out]
    outcome.work.secrets += [f"committed, and may be a secret: {line}" for line in found.doubtful]


def _as_found(run: StartedRun, path: str) -> bool:
    """Whether an uncommitted file is as the run found it, such as a person's SPEC.md."""
    return worktrees.digests(run.checkout, [path]).get(path, "") == run.context.untracked.get(path)


def _refuse_spec(run: StartedRun, spec: str) -> list[str]:
    """Keep an agent's changes of SPEC.md; the next run in the tree finds the person's version."""
    path = os.path.join(run.checkout, spec)
    _refuse(run, spec, (files.read(path) or b"") if os.path.isfile(path) and not os.path.islink(path) else b"")
    return [spec]


def _restore_tree(run: StartedRun) -> list[str]:
    """Restore the tree to its opening state; the agent's changes in tracked files stay as a patch, its commits under a
    ref."""
    changed = [path for path in repository.dirty(run.checkout) if not _as_found(run, path)]
    if changed:
        _refuse(run, PATCH, repository.patch(run.checkout, run.context.head))
    commits = _keep_commits(run)
    workplace.restore(run)
    return commits + changed


def _keep_commits(run: StartedRun) -> list[str]:
    """Keep a ref to the tree's HEAD if an unconfined agent moved it to another commit."""
    now = run.context.head if run.sealed else repository.position(run.checkout).head
    if now == run.context.head:
        return []
    refs.set_one(run.layout.folders.top, f"refs/harness/refused/{run.id}", now)
    return [f"commits (kept as refs/harness/refused/{run.id})"]
