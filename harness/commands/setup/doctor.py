"""Finds the faults in a mission's folder, a line each. `fix` runs the recovery that precedes every run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from harness.agents import logins, registry
from harness.base import encoding, errors
from harness.base.errors import BrokenFile, HarnessError, Unavailable
from harness.commands import provenance
from harness.commands.setup import agent_probe, config_check, removal
from harness.commands.setup.agent_probe import Finding
from harness.decision import doubts
from harness.git import first_commit, repository
from harness.git import settings as git_settings
from harness.memory import archive, backlog, edits, identity, pages
from harness.mission import config, contract, contract_log, features, issues, mission, order_log, roles, runs
from harness.run import reconcile, recover, starting, steps
from harness.run.machines import lane
from harness.run.requests import orders
from harness.state import files, journal, json_lines, manifests, names, raw
from harness.state.layout import Layout, command, home, identity_folder
from harness.state.state import State
from harness.workplace import mission_lock, run_detection, workplace
from harness.workplace.recovery import recovery_evidence, unsettled_runs

START_SECONDS = 60


def examine(layout: Layout) -> list[Finding]:
    """Examine everything without a change."""
    found = [_ok("Python", sys.version.split()[0])]
    for what, look in LOOKS:
        try:
            found += look(layout)
        except HarnessError as fault:
            found.append(_bad(f"{what}: {fault}"))
    return found


def agents_here(layout: Layout) -> list[Finding]:
    """Known and configured agents, a line each; costs nothing."""
    return [*agent_probe.known(layout), *_unused(layout)]


def try_agents(layout: Layout) -> Iterator[Finding]:
    """One small real call of each configured agent, a line for each ability."""
    run_detection.refuse(layout, "doctor agents --try")
    settings = config.load(layout)
    chosen = registry.choose(settings.agent, layout.folders.project, layout.shown(names.CONFIG))
    for name in dict.fromkeys([*chosen, *config.every_agent(settings)]):
        yield from agent_probe.attempt(layout, name)


def machines(layout: Layout) -> list[Finding]:
    """A line for each machine of config.toml: ready, or what it lacks. Nothing is spent."""
    settings, found = config.load(layout), []
    for name in settings.machines:
        lacks = lane.lacking(layout, settings, name)
        found.append(_bad(f"{name}: {'; '.join(lacks)}") if lacks else _ok(name, "ready"))
    return found or [Finding(state="note", what="config.toml names no machines: docs/machines.md")]


def fix(layout: Layout) -> list[str]:
    """Settle dead runs and apply pending orders, like the next run, and accept files that cannot be restored; returns a line
    for each action."""
    run_detection.refuse(layout, "doctor --fix")
    lock = mission_lock.take(layout) if os.path.isdir(layout.state) else None
    try:
        done = recover.recover(layout, yielding=True) if unsettled_runs.needs_recovery(layout) else []
        mission.check_format(layout)
        done += _new_ledger(layout)
        done += [line for path in layout.append_only() for line in _heal(layout, path)]
        done += recover.recover(layout)
        done += _mend_raw(layout) + _remove_lessons(layout)
        done += recover.restore_objects(layout) if manifests.lost(layout) else []
        done += [f"order {name}: {result}" for name, result in orders.apply_pending(layout).items()]
        reconcile.accept_edits(layout)
    finally:
        if lock:
            lock.release()
    return done


def _new_ledger(layout: Layout) -> list[str]:
    """Rebuild an unreadable ledger from the files on disk."""
    try:
        journal.read_ledger(layout)
    except BrokenFile:
        files.remove(layout.path(names.LEDGER))
        journal.adopt(layout)
        return [f"rebuilt {layout.shown(names.LEDGER)} from the files on disk"]
    return []


def _heal(layout: Layout, path: str) -> list[str]:
    """Complete the torn last line of an append-only file if only its end is missing, else cut it off and show it."""
    data = files.read(path) or b""
    torn, healed, name = data.rpartition(b"\n")[2], json_lines.healed(data), layout.folders.relative(path)
    if not torn:
        return []
    how = f"closed the torn last line of {name}"
    if len(healed) < len(data.rstrip(b"\0")):
        text = torn.rstrip(b"\0").decode("utf-8", "replace")
        how = f"cut off the torn last line of {name}: {text[:200]}"
    with State(layout).lock("state"):
        files.replace(path, healed)
    return [how]


def _ok(what: str, how: str) -> Finding:
    return Finding(state="ok", what=f"{what}: {how}")


def _bad(what: str) -> Finding:
    return Finding(state="bad", what=what)


def _repository(layout: Layout) -> Iterator[Finding]:
    workplace.use(layout)
    first_commit.require(layout.folders.project)
    first_commit.require_version(layout.folders.top)
    state = repository.state(layout.folders.top)
    yield _ok("repository", f"branch {state.standing.branch or 'detached'} at {state.standing.head[:10]}")
    known = workplace.recorded(layout)
    if unheeded := git_settings.later(layout.folders.top, known) if known else []:
        fault = "git settings made since init, which the harness's own git does not read"
        yield Finding(state="note", what=f"{fault}: {', '.join(unheeded[:5])}")
    if state.dirty:
        yield Finding(state="note", what=f"tracked files differ from the last commit: {', '.join(state.dirty[:5])}")


def _mission(layout: Layout) -> Iterator[Finding]:
    made = mission.load(layout)
    yield _ok("mission", made.id)
    found = starting.submodules_of(layout)  # raises a fault if the branch is gone
    yield from (Finding(state="warn" if one.fault else "ok", what=str(one)) for one in found)


def _ledger(layout: Layout) -> Iterator[Finding]:
    try:
        yield _ok("ledger", f"{len(journal.read_ledger(layout))} files")
    except BrokenFile:
        yield _bad(f"{layout.shown(names.LEDGER)} does not parse; {command('doctor --fix')} rebuilds it")


def _names(layout: Layout) -> Iterator[Finding]:
    yield from (_bad(f"names: {fault}") for fault in config_check.unknown(layout))
    yield from _unused(layout)


def _unused(layout: Layout) -> Iterator[Finding]:
    yield from (Finding(state="warn", what=f"names: {line}") for line in config_check.unused(layout))


def _agents(layout: Layout) -> Iterator[Finding]:
    settings, path = config.load(layout), layout.shown(names.CONFIG)
    chosen = registry.choose(settings.agent, layout.folders.project, path)
    for name in chosen:
        if name not in config_check.agents_here(settings):
            continue  # `_names` reports it with its line
        try:
            agent_probe.require(layout, settings, name)
            yield _ok("agents", name)
        except Unavailable as fault:
            own = registry.embedded([name])  # it may lack a playbook only for this role
            yield _ok("agents", name) if own else _bad(f"agent {name}: {fault}")
    yield from (Finding(state="warn", what=line) for line in logins.ending(settings, os.environ))


def _state(layout: Layout) -> Iterator[Finding]:
    found = features.load(layout)
    yield _ok("features", str(len(found)))
    contract.require(layout, found)
    yield _ok("claims", str(len(contract.load(layout).claims)))
    log = contract_log.load(layout)
    yield _ok("contract log", str(len(log)))
    if names := doubts.edited(contract.load(layout), log):
        yield _bad(
            f"the contract differs from its log: {encoding.few(names)}; {command('claim adopt')} accepts it as it is"
        )
    yield _ok("issues", str(len(issues.load(layout))))
    yield _ok("pending orders", str(len(order_log.pending(layout))))


def _roles(layout: Layout) -> Iterator[Finding]:
    """Whether run.sh can start the scripts of one built-in role and of all custom ones; each ends before its run starts, so
    this costs nothing."""
    known = [roles.load(layout, name).name for name in roles.known(layout)]
    own = [name for name in known if os.path.exists(os.path.join(layout.path(names.ROLES), f"{name}.py"))]
    tried = [*own, *[name for name in known if name not in own][:1]]
    faults = {name: fault for name in tried if (fault := _no_start(layout, name))}
    yield from (_bad(f"the role {name} does not start: {fault}") for name, fault in faults.items())
    if not faults:
        yield _ok("roles", ", ".join(known))


def _no_start(layout: Layout, role: str) -> str:
    """The error of a role's script that cannot start, else ""."""
    env = {**os.environ, "HARNESS_PROJECT": layout.folders.project, "HARNESS_PYTHON": sys.executable}
    words = ["bash", os.path.join(home(), "run.sh"), role, steps.DRY]
    try:
        done = subprocess.run(
            words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not finished within {START_SECONDS} s"
    return "" if done.returncode == errors.DONE else done.stderr.strip() or f"exit {done.returncode}"


def _memory(layout: Layout) -> Iterator[Finding]:
    curated = pages.curated(layout)
    count, invalid, first = 0, 0, ""
    for entry in raw.entries(layout.path(names.RAW), curated.first_seq):
        count += 1
        if not entry.tag:
            invalid, first = invalid + 1, first or archive.harmless(entry).text[:60]
    if backlog.start(layout, curated) is None:
        fault = f"{layout.shown(names.RAW)} does not start with the last compacted lines"
        yield _bad(f"{fault}; {command('doctor --fix')} restores them from the archive")
    else:
        yield _ok("raw.md", f"{count} entries from number {curated.first_seq}")
    if invalid:
        yield Finding(state="note", what=f"raw.md has {invalid} invalid lines, the first: {first!r}")
    try:
        found = Counter(row.disposition for row in archive.backwards(layout.path(names.ARCHIVE), curated.folded))
        ends = ", ".join(f"{found[name]} {name}" for name in sorted(found))
        yield _ok("archive", f"{curated.folded} entries{f', each with one disposition: {ends}' if ends else ''}")
        yield from _lessons(layout, curated)
    except BrokenFile as fault:
        yield _bad(str(fault))


def _pages(layout: Layout) -> Iterator[Finding]:
    """The other files that the curator reads, which people also edit."""
    folder, places = identity_folder(), (layout.shown(names.MEMORY), layout.shown(names.SUMMARY))
    reads: tuple[Callable[[], object], ...] = (
        lambda: edits.pages_of(files.read_text(layout.path(names.MEMORY)), None, places),
        lambda: edits.pages_of(None, files.read_text(layout.path(names.SUMMARY)), places),
        lambda: identity.texts(folder),
        lambda: identity.evidence(folder),
        lambda: identity.forgotten(folder),
    )
    broken = False
    for read in reads:
        try:
            read()
        except BrokenFile as fault:
            broken = True
            yield _bad(str(fault))
    if not broken:
        yield _ok("pages and identities", "valid")


def _lessons(layout: Layout, curated: pages.CurationProgress) -> Iterator[Finding]:
    """Whether lessons.jsonl equals the archive; the next curation rebuilds an absent one."""
    if not State(layout).exists(names.LESSONS):
        return
    fault = provenance.differs(layout, curated)
    if not fault:
        yield _ok("lessons", "equal to the archive")
        return
    yield _bad(
        f"{layout.shown(names.LESSONS)} {fault}; {command('doctor --fix')} removes it; the next curation rebuilds it"
    )


def _mend_raw(layout: Layout) -> list[str]:
    """Restore archived lines that were removed from the head of raw.md."""
    with State(layout).lock("state"):
        curated = pages.curated(layout)
        if backlog.start(layout, curated) is not None:
            return []
        files.replace(layout.path(names.RAW), backlog.mended(layout, curated))
    fault = "no line can be restored: archive.jsonl lacks them" if backlog.start(layout, curated) is None else ""
    return [f"restored the archived lines of {layout.shown(names.RAW)}{f'; {fault}' if fault else ''}"]


def _remove_lessons(layout: Layout) -> list[str]:
    """Remove a lessons.jsonl that differs from the archive; with a broken archive it stays."""
    if not State(layout).exists(names.LESSONS):
        return []
    try:
        fault = provenance.differs(layout, pages.curated(layout))
    except BrokenFile:
        return []
    if fault:
        State(layout).remove(names.LESSONS)
    return [f"removed {layout.shown(names.LESSONS)}: it {fault}"] if fault else []


def _tails(layout: Layout) -> Iterator[Finding]:
    for path in (*layout.append_only(), layout.path(names.RAW)):
        size = files.length(path)
        if size and files.read_from(path, size - 1, 1) != b"\n":
            yield _bad(f"{layout.folders.relative(path)} ends in a torn line; {command('doctor --fix')} closes it")


def _open_runs(layout: Layout) -> Iterator[Finding]:
    dead = unsettled_runs.unsettled(layout)
    for run_id in dict.fromkeys([*runs.open_runs(layout), *dead]):
        if run_id in dead:
            yield _bad(f"the run {run_id} died; {command('doctor --fix')} settles it")
        else:
            yield Finding(state="note", what=f"the run {run_id} is under way")
    if os.path.exists(layout.path(names.JOURNAL) + "/record"):
        yield _bad(f"a journal is not finished; {command('doctor --fix')} finishes it")
    for run_id in dead:
        if os.path.exists(layout.run(run_id).context) and recovery_evidence.context(layout, run_id) is None:
            runs.context(layout, run_id)  # raises a fault: recovery knows little about such a run


def _seals(layout: Layout) -> Iterator[Finding]:
    restores = f"{command('doctor --fix')} restores it if a prompt contains it"
    wrong = [
        *(f"the finished run {name} was changed afterwards" for name in runs.broken_seals(layout, sys.maxsize)),
        *(f"the run {name} has a result and no line in runs.jsonl" for name in unsettled_runs.unbooked(layout)),
        *(f"the object {name} is missing, or does not match its digest; {restores}" for name in manifests.lost(layout)),
    ]
    gone = runs.forgotten(layout)
    wrong += [
        f"the run {name} is forgotten, but some of its files remain; {command('gc')} removes them"
        for name in gone
        if {names.MANIFEST, names.CONTEXT, names.PROMPT} & {*State(layout).list(f"{names.RUNS}/{name}")}
    ]
    yield from map(_bad, wrong)
    yield from (_ok(f"the run {one.run}", one.words) for one in gone.values())
    if not wrong:
        yield _ok("finished runs and objects", "unchanged")


def _leftovers(layout: Layout) -> Iterator[Finding]:
    for one in removal.leftovers():
        what = f"left by the mission {one.mission}, which is gone: {one.words}. To remove it: {command('remove')} {one.mission}"
        yield Finding(state="note", what=what)


LOOKS: tuple[tuple[str, Callable[[Layout], Iterator[Finding]]], ...] = (
    ("repository", _repository),
    ("mission", _mission),
    ("ledger", _ledger),
    ("names", _names),
    ("agents", _agents),
    ("state", _state),
    ("roles", _roles),
    ("memory", _memory),
    ("pages", _pages),
    ("tails", _tails),
    ("runs", _open_runs),
    ("seals", _seals),
    ("leftovers", _leftovers),
)
