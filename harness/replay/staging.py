"""The throw-away place where a past prompt is fired again: a clone at the commit of then, the state of then, and what a
program inside sees at the paths that the prompt names.

Where bubblewrap runs, clone and state are mounted at those paths, so that the prompt is the same and nothing in it leads to the
mission; elsewhere the Runtime context names the clone and the state where they are.
"""

from __future__ import annotations

import os

from harness.base import encoding
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.git import clones, refs, repository, worktrees
from harness.git.repository import GitFailed
from harness.git.settings import Recorded
from harness.integrity import confine, workplace
from harness.model import roles, runs
from harness.model.config import Config
from harness.process import temporary
from harness.process.confine import BUBBLEWRAP, PRIVATE
from harness.proof import fresh
from harness.replay import then
from harness.replay.then import Past
from harness.run import prompt, starting
from harness.run.prompt import Part
from harness.store import files, names, objects
from harness.store.layout import Layout, RunLayout, identity_folder, state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harness.process.confine import Confinement

CLONE, STATE, IDENTITIES = "clone", "state", "identity"
WORKS, STATE_AT = "- Working directory: ", "- State directory: "


class Staged(Layout):
    """The mission of then in the throw-away folder; what its run says and prints is written into the folder `kept`."""

    def __init__(self, folder: str, prefix: str, run_id: str, kept: str) -> None:
        self.folder, self.clone, self.run_id, self.kept = folder, os.path.join(folder, CLONE), run_id, kept
        self.identities = os.path.join(folder, IDENTITIES)
        super().__init__(os.path.join(self.clone, prefix), os.path.join(folder, STATE))
        self._top = self.clone

    def run(self, run_id: str) -> RunLayout:
        """The files of a run; those of the run that is fired again survive the folder."""
        made = super().run(run_id)
        if run_id == self.run_id:
            made.stream, made.stderr = (f"{self.kept}/{name}" for name in (names.STREAM, names.STDERR))
        return made


class Stage(Record):
    """A place made ready. `parts`: the prompt; `mounted`: it is the same byte for byte, and its paths lead here; `notes`: what is
    not as it was then."""

    layout: Staged
    parts: list[Part]
    mounted: bool
    confinement: Confinement | None
    notes: list[str]


def make(layout: Layout, past: Past, settings: Config, kept: str, folder: str) -> Stage:
    """Make the place in `folder`, which is empty. Raises UsageFault where git has the commit no more."""
    staged = Staged(os.path.realpath(folder), layout.prefix, past.context.run, kept)
    notes = then.write(past, staged, staged.identities)
    _clone(layout, past, staged)
    role = roles.load(layout, past.context.role)
    then.begun(staged, past.context.feature, changes=role.commits)
    how, tree = confine.tier(layout, settings), past.context.folder or layout.top
    mounted = how == BUBBLEWRAP and _fits(layout, past, tree)
    known = confine.of_mission(layout, settings, staged.clone, how)
    if mounted and known:
        known = confine.moved(layout, known, _mounts(layout, staged, tree))
    _lead_to_state(layout, staged, mounted=mounted)
    parts = [Part(data=_data(past.where, row), source=str(row.get("source", ""))) for row in past.rows]
    if not mounted:
        named = {STATE_AT: staged.state, WORKS: staged.project}
        parts[-1] = parts[-1].replace(data=_led(parts[-1].data.decode(), past, tree, staged, named).encode())
    notes += [f"not carried into the clone: {line}" for line in _carried(layout, staged, settings)]
    return Stage(layout=staged, parts=parts, mounted=mounted, confinement=known, notes=notes)


def _data(where: Layout, row: dict[str, object]) -> bytes:
    return objects.get(where, str(row["object"])) if "object" in row else str(row["text"]).encode()


def _clone(layout: Layout, past: Past, staged: Staged) -> None:
    """Clone the commit of then: the branch stood there, and the refs of runs that had ended by then are there, and none later."""
    workplace.use(layout)
    context, known = past.context, workplace.recorded(layout) or fresh.recorded(layout.top)
    wanted = {f"refs/heads/{context.branch or 'main'}": context.head, **_refs(layout, past)}
    home = confine.home_of_clone(staged.clone + ".home")
    config = [pair for pair in known.config if not str(pair[0]).startswith("remote.")]  # it can be pushed nowhere
    bare = known.replace(config=config)
    try:
        clones.make(
            layout.top, staged.clone, context.head, bare, clones.configuration(bare, home), layout.prefix, wanted
        )
    except GitFailed as fault:
        raise UsageFault(f"The commit {context.head[:12]} of the run cannot be cloned any more: {fault}") from None
    own = bare.replace(git_dir=".git", common=".git", commondir="", alternates="", prefix=layout.prefix)
    _record(staged, own)
    for path, name in context.dirty.items():  # a person's uncommitted changes, where the run worked in place
        whole = os.path.join(staged.clone, path)
        files.replace_quickly(whole, objects.get(past.where, name)) if name else files.remove(whole)


def _record(staged: Staged, own: Recorded) -> None:
    """Our git in the clone reads this configuration alone."""
    files.replace_quickly(staged.git_record, encoding.dump_json(own.asdict()))


def _refs(layout: Layout, past: Past) -> dict[str, str]:
    """{ref: commit} of interrupted work that was kept before the run."""
    size = past.heads(names.RUN_LOG)
    ended = {result.run for result in runs.finished(past.where, size)}
    found = refs.positions(layout.top, "refs/harness/partial")
    return {name: at.head for name, at in found.items() if name.rpartition("/")[2] in ended}


def _fits(layout: Layout, past: Past, tree: str) -> bool:
    """Whether the prompt names this mission's own folders, and something can be mounted at each."""
    lines = str(past.rows[-1].get("text", "")).split("\n")
    named = f"{STATE_AT}{layout.state}" in lines and f"{WORKS}{layout.within(tree)}" in lines
    return named and all(map(_can_be_mounted, (tree, layout.top)))


def _can_be_mounted(path: str) -> bool:
    real = os.path.realpath(path)
    free = [os.path.realpath(one) for one in (*PRIVATE, *([state_home()] if os.path.isdir(state_home()) else []))]
    return os.path.isdir(path) or any(real.startswith(one + "/") for one in free)


def _mounts(layout: Layout, staged: Staged, tree: str) -> list[tuple[str, str, bool]]:
    """(path inside, folder, writable) of each mount: the clone in the place of the tree and of the project, then the state."""
    tops = list(dict.fromkeys(map(os.path.realpath, (tree, layout.top))))
    found = [(top, staged.clone, number == 0) for number, top in enumerate(tops)]
    found += [(os.path.join(layout.within(top), os.path.basename(layout.state)), staged.state, False) for top in tops]
    identities = os.path.realpath(identity_folder())
    return [*found, *([(identities, staged.identities, False)] if _can_be_mounted(identities) else [])]


def _lead_to_state(layout: Layout, staged: Staged, *, mounted: bool) -> None:
    """`.harness` in the clone is where the state is mounted, or a link to it; the harness command there is of this mission."""
    place = os.path.join(staged.project, os.path.basename(layout.state))
    if os.path.lexists(place):
        temporary.remove(place)
    if mounted:
        files.make_folder(place)
    else:
        files.link(place, staged.state)
    files.make_folder(staged.locks)
    starting.write_generated(staged, layout.project if mounted else staged.project)
    workplace.use(staged)


def _led(text: str, past: Past, tree: str, staged: Staged, named: dict[str, str]) -> str:
    """The Runtime context with the paths of the place in the place of those of then."""
    if not text.startswith(prompt.RUNTIME):
        raise UsageFault(f"The prompt of {past.context.run} does not end in its {prompt.RUNTIME[3:]}.")
    for line in text.split("\n"):
        for begin, path in named.items():
            if line.startswith(begin):
                text = text.replace(line[len(begin) :], path)
    return text.replace(tree, staged.clone)


def _carried(layout: Layout, staged: Staged, settings: Config) -> list[str]:
    """Ignored files that the configuration wants in each tree are in the clone, as they are now; those that are not."""
    return worktrees.carry(layout.top, staged.clone, settings.carry, layout.prefix)


def patch(project: str, old: str, new: str) -> bytes:
    """The difference of two commits or trees as a unified diff. 1 call."""
    words = (
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    )
    return repository.run(project, *words, old, new, "--")
