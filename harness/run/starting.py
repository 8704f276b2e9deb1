"""Starting a mission in a folder: everything that must be so is looked at first, `.harness/format` is written last."""

from __future__ import annotations

import os
import sys

import harness
from harness.base import clock, console
from harness.base.errors import NeedsPerson, UsageFault
from harness.git import dotgit, repository
from harness.integrity import mission_lock, unsettled
from harness.model import mission
from harness.model.mission import Mission
from harness.store import files, journal, migrations
from harness.store.layout import Layout, home

IGNORE_LINE = ".harness/"
UNSEARCHED = ("runs", "objects", "snapshots", "journal", "cache", "replays", "locks")
IGNORED = "# Searches pass by what an agent never needs; memory and the state can be found.\n" + "".join(
    f"/{name}/\n" for name in UNSEARCHED
)
SHIM = """#!/bin/sh
# The harness command of this mission, as agents find it on their PATH.
export HARNESS_HOME={home} HARNESS_PROJECT={project}
exec {python} -P {program} "$@"
"""


def start(layout: Layout) -> Mission:
    """The mission of this folder, started where there was none; what died in it is settled first, where nobody is at work.

    Raises UsageFault (no repository, no or empty SPEC.md) or NeedsPerson (detached HEAD) with the disk as it was.
    """
    if unsettled.needs_recovery(layout):
        from harness.run import recover  # only where a run died

        for line in recover.recover_dead(layout):
            console.say(console.plain(f"  {line}"))
    if migrations.is_due(layout):
        mission_lock.take(layout).release()  # raises Busy where a run of an older harness is under way
    found(layout)
    return mission.load(layout)


def found(layout: Layout) -> None:
    """Start a mission where there is none; where a run died there is one, whatever that run left of it."""
    if mission.exists(layout) or unsettled.needs_recovery(layout):
        return
    repository.require_top(layout.project)
    repository.require_version(layout.project)
    require_spec(layout)
    standing = repository.standing(layout.project)
    if not standing.branch:
        raise NeedsPerson(f"HEAD of {layout.project} is detached. Check out a branch first: git switch NAME")
    made = Mission(
        id=mission.new_id(layout.project),
        created=clock.stamp(clock.now()),
        host=os.uname().nodename,
        branch=standing.branch,
        base_commit=standing.head,
    )
    _lay_out(layout)
    if not standing.head:
        made.base_commit = _first_commit(layout, standing.branch)
    if repository.default_branch(layout.project) == made.branch:
        made.branch = f"harness/{made.id}"
        repository.switch_new(layout.project, made.branch)
    changes = journal.Journal(layout)
    changes.replace(layout.mission, files.dump_json(made.asdict()))
    changes.replace(layout.format, f"{migrations.FORMAT}\n".encode())
    changes.commit()


def announcement(layout: Layout) -> list[str]:
    """What a person should know about money before it is spent: agents that cost and have no cap, or that nobody counts,
    and runs so far that a cap does not see."""
    from harness.agents import registry
    from harness.decision import rules
    from harness.model import config, roles, runs, usage  # none of it is needed where a run opens

    settings = config.load(layout)
    named = {
        (name, str(settings.roles.get(role, {}).get("model") or settings.agents.get(name, {}).get("model") or ""))
        for role in roles.known(layout)
        for name in roles.agents_of(settings, roles.load(layout, role))
    }
    kinds = {name: registry.costs(name, settings.agents.get(name, {})) for name in sorted({name for name, _ in named})}
    costly = [name for name, kind in kinds.items() if kind]
    silent = {name for name, kind in kinds.items() if kind == "uncounted"}
    without = {name for name, model in named if not any(usage.price_of(one, settings.prices) for one in (model, name))}
    hidden = sorted(silent & without)
    cap = "max_cost_usd in [limits]" if costly and settings.max_cost_usd is None else ""
    tables = " and ".join(f"[prices.{name}]" for name in hidden)
    prices = f"{tables}, for {', '.join(hidden)} {'tells' if len(hidden) == 1 else 'tell'} no cost" if hidden else ""
    wanted = " and ".join(filter(None, (cap, prices)))
    found = [f"note: {', '.join(costly)} may cost money: set {wanted} (config.toml)"] if wanted else []
    unseen = runs.totals(layout).uncounted if costly and settings.max_cost_usd is not None else 0
    return found + ([f"note: max_cost_usd does not see all: {rules.counted(unseen)} so far"] if unseen else [])


def require_spec(layout: Layout) -> None:
    """Raises UsageFault where SPEC.md is absent or says nothing."""
    text = files.read_text(layout.asked_spec)
    if text is None:
        raise UsageFault(
            f"There is no SPEC.md in {layout.project}. Write down there what the mission must bring about."
        )
    if not text.strip():
        raise UsageFault(f"{layout.asked_spec} is empty. Write down there what the mission must bring about.")


def _lay_out(layout: Layout) -> None:
    """Folders, the hint that hides them from git, and a minimal .git of their own, so that `git clean` passes them by."""
    dotgit.exclude(layout.project, IGNORE_LINE)
    for folder in (layout.runs, layout.locks, layout.objects, layout.snapshots, os.path.dirname(layout.raw)):
        files.make_folder(folder)
    for name in ("objects", "refs"):
        files.make_folder(os.path.join(layout.git, name))
    files.replace(os.path.join(layout.git, "HEAD"), b"ref: refs/heads/none\n")
    shim(layout)
    ignore(layout)


def _first_commit(layout: Layout, branch: str) -> str:
    """A repository without a commit gets an empty one: a person's files are theirs to commit, and stay staged."""
    index = os.path.join(layout.locks, "first-index")
    persons = [*repository.untracked(layout.project), *repository.tracked_names(layout.project)]
    tree = repository.work(layout.project, index=index, parent="", leave=persons).tree
    files.remove(index)
    own = os.path.join(dotgit.folders(layout.project)[0], "index")
    staged = files.read(own)
    made = repository.commit(layout.project, tree=tree, parent="", branch=branch, message="Start\n")
    if staged is not None:
        files.replace(own, staged)
    return made


def version() -> str:
    """Which harness this is: `0.1.0`, and in a checkout the commit that it is at: `0.1.0 4012c96a1b2c`. No call of git."""
    checkout = os.path.dirname(os.path.dirname(harness.__file__))
    return f"{harness.__version__} {dotgit.commit(checkout)[:12]}".strip()


def shim(layout: Layout) -> None:
    """The `harness` command that an agent finds on its PATH: this mission, this interpreter; mended when either moved."""
    main = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
    python, program, where, checkout = (_quoted(text) for text in (sys.executable, main, layout.project, home()))
    data = SHIM.format(python=python, program=program, project=where, home=checkout).encode()
    if files.read(layout.shim) != data:
        files.replace(layout.shim, data, 0o755)


def ignore(layout: Layout) -> None:
    """The file that keeps an agent's own searches out of transcripts and copies; mended when it is not as it should be."""
    data = IGNORED.encode()
    if files.read(layout.ignore) != data:
        files.replace(layout.ignore, data)


def _quoted(text: str) -> str:
    """`text` as one word of a shell."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
