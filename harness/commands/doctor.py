"""What is wrong with a mission's folder, line by line; mending is recovery, which every run does first anyway."""

from __future__ import annotations

import os
import sys

from harness.agents import registry
from harness.base.errors import BrokenFile, HarnessError, Unavailable
from harness.commands import config_check, try_agent
from harness.commands.try_agent import Finding
from harness.git import repository
from harness.integrity import inside, mission_lock, recovery_evidence, unsettled
from harness.memory import pages, raw
from harness.model import config, contract, contract_log, features, issues, mission, roles, runs
from harness.run import orders, recover
from harness.store import files, journal, json_lines, migrations, objects
from harness.store.layout import Layout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def examine(layout: Layout) -> list[Finding]:
    """Everything that can be looked at without changing anything."""
    found = [_ok("Python", sys.version.split()[0])]
    for what, look in LOOKS[:2] if migrations.is_due(layout) else LOOKS:
        try:
            found += look(layout)
        except HarnessError as fault:
            found.append(Finding(state="bad", what=f"{what}: {fault}"))
    return found


def agents_here(layout: Layout) -> list[Finding]:
    """The agents that we know or that are configured, a line each; nothing is spent."""
    return [*try_agent.known(layout), *_unused(layout)]


def try_agents(layout: Layout) -> Iterator[Finding]:
    """One small real call of each agent that is configured, a line for each thing it did."""
    inside.refuse(layout, "doctor agents --try")
    settings = config.load(layout)
    own = [name for table in settings.roles.values() for name in config.names(table.get("agent"))]
    for name in dict.fromkeys([*registry.choose(settings.agent, layout.project, layout.relative(layout.config)), *own]):
        yield from try_agent.attempt(layout, name)


def fix(layout: Layout) -> list[str]:
    """Recover what died and apply what waits, as the next run would, and let stand what cannot be put back; gives one line
    for each thing done."""
    inside.refuse(layout, "doctor --fix")
    lock = mission_lock.take(layout) if os.path.isdir(layout.state) else None
    try:
        done = recover.recover(layout, yielding=True) if unsettled.needs_recovery(layout) else []
        mission.check_format(layout)
        done += _ledger_anew(layout)
        done += [line for path in layout.grown() for line in _heal(layout, path)]
        done += recover.recover(layout)
        done += [f"order {name}: {said}" for name, said in orders.apply_pending(layout).items()]
        journal.adopt(layout)
    finally:
        if lock:
            lock.release()
    return done


def _ledger_anew(layout: Layout) -> list[str]:
    """A ledger that does not parse is made anew from what is on disk."""
    try:
        journal.read_ledger(layout)
    except BrokenFile:
        files.remove(layout.ledger)
        journal.adopt(layout)
        return [f"made {layout.relative(layout.ledger)} anew from what is on disk"]
    return []


def _heal(layout: Layout, path: str) -> list[str]:
    """A torn last line of a grown file: closed where it is whole but for its end, else cut off and told."""
    data = files.read(path) or b""
    torn, mended, name = data.rpartition(b"\n")[2], json_lines.healed(data), layout.relative(path)
    if not torn:
        return []
    how = f"closed the torn last line of {name}"
    if len(mended) < len(data.rstrip(b"\0")):
        text = torn.rstrip(b"\0").decode("utf-8", "replace")
        how = f"cut off the torn last line of {name}: {text[:200]}"
    with files.Lock(layout.state_lock):
        files.replace(path, mended)
    return [how]


def _ok(what: str, how: str) -> Finding:
    return Finding(state="ok", what=f"{what}: {how}")


def _repository(layout: Layout) -> Iterator[Finding]:
    repository.require_top(layout.project)
    repository.require_version(layout.project)
    state = repository.state(layout.project)
    yield _ok("repository", f"branch {state.standing.branch or 'detached'} at {state.standing.head[:10]}")
    if state.dirty:
        yield Finding(state="note", what=f"tracked files differ from the last commit: {', '.join(state.dirty[:5])}")


def _mission(layout: Layout) -> Iterator[Finding]:
    yield _ok("mission", mission.load(layout).id)


def _ledger(layout: Layout) -> Iterator[Finding]:
    try:
        yield _ok("ledger", f"{len(journal.read_ledger(layout))} files")
    except BrokenFile:
        yield Finding(
            state="bad",
            what=f"{layout.relative(layout.ledger)} does not parse; {command('doctor --fix')} makes it anew",
        )


def _names(layout: Layout) -> Iterator[Finding]:
    yield from (Finding(state="bad", what=f"names: {fault}") for fault in config_check.strangers(layout))
    yield from _unused(layout)


def _unused(layout: Layout) -> Iterator[Finding]:
    yield from (Finding(state="warn", what=f"names: {line}") for line in config_check.unused(layout))


def _agents(layout: Layout) -> Iterator[Finding]:
    settings, path = config.load(layout), layout.relative(layout.config)
    for name in registry.choose(settings.agent, layout.project, path):
        if name not in config_check.agents_here(settings):
            continue  # told by `_names`, with its line
        try:
            registry.make(name, registry.settings_of(layout, settings, name, roles.due(layout)["commits"]))
            yield _ok("agents", name)
        except Unavailable as fault:
            own = registry.embedded([name])  # a playbook for this role may be missing, and for others there
            yield _ok("agents", name) if own else Finding(state="bad", what=f"agent {name}: {fault}")


def _nouns(layout: Layout) -> Iterator[Finding]:
    found = features.load(layout)
    yield _ok("features", str(len(found)))
    contract.require(layout, found)
    yield _ok("claims", str(len(contract.load(layout).claims)))
    yield _ok("contract log", str(len(contract_log.load(layout))))
    yield _ok("issues", str(len(issues.load(layout))))
    yield _ok("orders waiting", str(len(orders.pending(layout))))
    yield _ok("roles", ", ".join(roles.load(layout, name).name for name in roles.known(layout)))


def _memory(layout: Layout) -> Iterator[Finding]:
    folds = pages.parse_curated(files.read(layout.curated), layout.curated)
    entries = raw.parse(files.read(layout.raw) or b"", folds.first_seq)
    yield _ok("raw.md", f"{len(entries)} entries from number {folds.first_seq}")
    odd = [entry for entry in entries if not entry.tag]
    if odd:
        yield Finding(
            state="note", what=f"raw.md has {len(odd)} lines that are no entries, the first: {odd[0].text[:60]!r}"
        )


def _tails(layout: Layout) -> Iterator[Finding]:
    for path in (*layout.grown(), layout.raw):
        size = files.length(path)
        if size and files.read_from(path, size - 1, 1) != b"\n":
            yield Finding(
                state="bad", what=f"{layout.relative(path)} ends in a torn line; {command('doctor --fix')} closes it"
            )


def _open_runs(layout: Layout) -> Iterator[Finding]:
    dead = unsettled.unsettled(layout)
    for run_id in dict.fromkeys([*runs.open_runs(layout), *dead]):
        state, how = (
            ("bad", f"died; {command('doctor --fix')} settles it") if run_id in dead else ("note", "is under way")
        )
        yield Finding(state=state, what=f"the run {run_id} {how}")
    if os.path.exists(layout.journal + "/record"):
        yield Finding(state="bad", what=f"a journal waits to be finished; {command('doctor --fix')} does it")
    for run_id in dead:
        if os.path.exists(layout.run(run_id).context) and recovery_evidence.context(layout, run_id) is None:
            runs.context(layout, run_id)  # says what is wrong with it: of such a run recovery knows little


def _seals(layout: Layout) -> Iterator[Finding]:
    broken, unbooked = runs.broken_seals(layout, sys.maxsize), unsettled.unbooked(layout)
    yield from (Finding(state="bad", what=f"the finished run {name} was changed afterwards") for name in broken)
    yield from (
        Finding(state="bad", what=f"the run {name} has a result and no line in runs.jsonl") for name in unbooked
    )
    wrong = [
        name for name in _object_names(layout) if files.digest(files.read(objects.path_of(layout, name)) or b"") != name
    ]
    yield from (Finding(state="bad", what=f"the object {name} is not what its name says") for name in wrong)
    if not broken and not wrong and not unbooked:
        yield _ok("finished runs and objects", "as they were sealed")


def _object_names(layout: Layout) -> list[str]:
    folders = [name for name in files.names(layout.objects) if len(name) == 2]
    return [
        folder + name
        for folder in folders
        for name in files.names(os.path.join(layout.objects, folder))
        if len(name) == 62
    ]


LOOKS: tuple[tuple[str, Callable[[Layout], Iterator[Finding]]], ...] = (
    ("repository", _repository),
    ("mission", _mission),
    ("ledger", _ledger),
    ("names", _names),
    ("agents", _agents),
    ("state", _nouns),
    ("memory", _memory),
    ("tails", _tails),
    ("runs", _open_runs),
    ("seals", _seals),
)
