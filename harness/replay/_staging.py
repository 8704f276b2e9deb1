"""A temporary place to resend a past prompt: a clone at the run's commit with the state of that time, and a kept tree of it.
With bubblewrap, tree and clone are mounted at the paths in the prompt, so the prompt is unchanged and nothing in it leads to
the mission; otherwise the Runtime context names the real paths of tree and state.
"""

from __future__ import annotations

import os

from harness.base import encoding
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.git import refs
from harness.git.checkouts import clones, worktrees
from harness.git.repository import GitFailed, Position
from harness.git.settings import RecordedSettings
from harness.mission import roles, runs
from harness.mission.config import Config
from harness.process import temporary
from harness.process.confine import BUBBLEWRAP, PRIVATE, Confinement
from harness.proof import fresh_clone
from harness.replay.resends import state_at_run
from harness.replay.resends.state_at_run import RunAtOpen
from harness.run import prompt, starting
from harness.run.prompt import Part
from harness.state import files, names, objects
from harness.state.layout import Layout, identity_folder, state_home
from harness.workplace import confine, workplace

REPOSITORY, TREE, IDENTITIES = "clone", "tree-1", "identity"
WORKS, STATE_AT = "- Working directory: ", "- State directory: "


class ReplicaFolder(Record):
    """A replica of the mission in a temporary folder: its layout, the kept tree of its run, and its folder of identities."""

    layout: Layout
    tree: str
    identities: str


class Stage(Record):
    """A prepared place. `parts`: the prompt; `mounted`: the prompt is unchanged, and its paths lead here; `notes`: deviations
    from the original run."""

    place: ReplicaFolder
    parts: list[Part]
    mounted: bool
    confinement: Confinement | None
    notes: list[str]


def place_in(folder: str, prefix: str) -> ReplicaFolder:
    """The paths of a replica in `folder`; creates nothing."""
    top, tree, identities = (os.path.join(os.path.realpath(folder), name) for name in (REPOSITORY, TREE, IDENTITIES))
    return ReplicaFolder(layout=Layout(os.path.join(top, prefix)), tree=tree, identities=identities)


def make(layout: Layout, past: RunAtOpen, settings: Config, folder: str) -> Stage:
    """Prepare the place in the empty `folder`. Raises UsageFault if the commit is gone."""
    place = place_in(folder, layout.folders.prefix)
    staged = place.layout
    record = _clone(layout, past, os.path.join(os.path.realpath(folder), REPOSITORY))
    if os.path.lexists(staged.state):  # tracked in that commit
        temporary.remove(staged.state)
    starting.lay_out(staged)
    notes = state_at_run.write(past, staged, place.identities)
    files.replace_quickly(staged.path(names.GIT_RECORD), encoding.dump_json(record.asdict()))
    role = roles.load(layout, past.context.role)
    state_at_run.begun(staged, past.context.feature, changes=role.commits)
    how, tree = confine.tier(layout, settings), past.context.folder or layout.folders.top
    mounted = how == BUBBLEWRAP and _fits(layout, past, tree)
    known = confine.of_mission(layout, settings, place.tree, how)
    if mounted and known:
        known = confine.moved(layout, known, _mounts(layout, place, tree))
    starting.write_generated(staged, layout.folders.project if mounted else staged.folders.project)
    notes += _make_tree(layout, past, settings, place)
    parts = state_at_run.parts_of(past)
    if not mounted:
        named = {STATE_AT: staged.state, WORKS: staged.folders.within(place.tree)}
        last = parts[-1].data.decode()
        parts[-1] = parts[-1].replace(data=_led(last, past, tree, place.tree, named).encode())
        for old in (line.removeprefix(STATE_AT) for line in last.split("\n") if line.startswith(STATE_AT + "/")):
            old, new = os.fsencode(old), os.fsencode(staged.state)  # parts before it name files of the state
            parts = [part.replace(data=part.data.replace(old + b"/", new + b"/")) for part in parts]
    return Stage(place=place, parts=parts, mounted=mounted, confinement=known, notes=notes)


def _clone(layout: Layout, past: RunAtOpen, target: str) -> RecordedSettings:
    """Clone the run's commit, with its branch and the refs of runs that had ended by then, and no later ones. Returns the git
    configuration of the clone."""
    workplace.use(layout)
    context, known = past.context, workplace.recorded(layout) or fresh_clone.recorded(layout.folders.top)
    wanted = {f"refs/heads/{context.branch or 'main'}": context.head, **_refs(layout, past)}
    config = [pair for pair in known.config if not str(pair[0]).startswith("remote.")]  # no remotes: no push
    bare = known.replace(config=config)
    try:
        with clones.persons(bare, target) as theirs:
            clones.make(layout.folders.top, target, context.head, bare, theirs, layout.folders.prefix, wanted)
    except GitFailed as fault:
        raise UsageFault(f"The commit {context.head[:12]} of the run cannot be cloned any more: {fault}") from None
    return bare.replace(git_dir=".git", common=".git", commondir="", alternates="", prefix=layout.folders.prefix)


def _make_tree(layout: Layout, past: RunAtOpen, settings: Config, place: ReplicaFolder) -> list[str]:
    """Create the kept tree of the run at its commit, with the present versions of the ignored files that config.toml carries into
    trees; a line for each missing file."""
    context, staged = past.context, place.layout
    workplace.use(staged)
    position = Position(head=context.head, branch=context.branch, tree=context.tree)
    workplace.prepare(staged, workplace.Tree(folder=place.tree, position=position, untracked=[]), ())
    for path, name in context.dirty.items():  # a person's uncommitted changes during an old run
        whole = os.path.join(place.tree, path)
        files.replace_quickly(whole, objects.get(past.where, name)) if name else files.remove(whole)
    starting.submodules_of(layout, context.head, place.tree)
    left = worktrees.carry(layout.folders.top, place.tree, settings.carry, layout.folders.prefix)
    return [f"not carried into the tree: {line}" for line in left]


def _refs(layout: Layout, past: RunAtOpen) -> dict[str, str]:
    """{ref: commit} of interrupted work kept before the run."""
    size = past.heads(names.RUN_LOG)
    ended = {result.run for result in runs.finished(past.where, size)}
    found = refs.positions(layout.folders.top, "refs/harness/partial")
    return {name: at.head for name, at in found.items() if name.rpartition("/")[2] in ended}


def _fits(layout: Layout, past: RunAtOpen, tree: str) -> bool:
    """Whether the prompt names this mission's folders, and each of them can be a mount point."""
    lines = str(past.rows[-1].get("text", "")).split("\n")
    named = f"{STATE_AT}{layout.state}" in lines and f"{WORKS}{layout.folders.within(tree)}" in lines
    return named and all(map(_can_be_mounted, (tree, layout.folders.top)))


def _can_be_mounted(path: str) -> bool:
    real = os.path.realpath(path)
    free = [os.path.realpath(one) for one in (*PRIVATE, *([state_home()] if os.path.isdir(state_home()) else []))]
    return os.path.isdir(path) or any(real.startswith(one + "/") for one in free)


def _mounts(layout: Layout, place: ReplicaFolder, tree: str) -> list[tuple[str, str, bool]]:
    """(path inside, folder, writable) of each mount: the new tree at the old tree's path, the clone with the past state at the
    project's path, and the identities."""
    found = {
        os.path.realpath(layout.folders.top): (place.layout.folders.top, False),
        os.path.realpath(tree): (place.tree, True),
    }
    identities = os.path.realpath(identity_folder())
    found |= {identities: (place.identities, False)} if _can_be_mounted(identities) else {}
    return [(inside, folder, write) for inside, (folder, write) in found.items()]


def _led(text: str, past: RunAtOpen, old: str, tree: str, named: dict[str, str]) -> str:
    """The Runtime context with the paths of the place instead of the original ones."""
    if not text.startswith(prompt.RUNTIME):
        raise UsageFault(f"The prompt of {past.context.run} does not end in its {prompt.RUNTIME[3:]}.")
    for line in text.split("\n"):
        for begin, path in named.items():
            if line.startswith(begin):
                text = text.replace(line[len(begin) :], path)
    return text.replace(old, tree)


def changed(patch: bytes) -> int:
    """The number of files that a patch changes."""
    return patch.count(b"\ndiff --git ") + patch.startswith(b"diff --git ")
