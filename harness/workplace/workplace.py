"""The workplace of a run: a persistent worktree of the mission outside the project folder.

The mission's own position is the ref `refs/harness/<mission>/tip`. The project folder and its branch belong to a person:
their commits are merged into the tip before a run, and the branch follows the tip (`landing`) unless they conflict. No run
sees their uncommitted edits, and the folder stays behind if the work changes the same files. `refs/harness/<mission>/landed`
records where the harness left the branch, to detect a person's reset.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from itertools import count

from harness.base import encoding, schema
from harness.base.errors import RESTORE, BrokenFile, NeedsPerson
from harness.base.record import Record
from harness.git import contents, dotgit, landing, merges, refs, repository, settings
from harness.git.checkouts import worktrees
from harness.git.repository import BRANCHES, GitFailed, Position
from harness.git.settings import RecordedSettings
from harness.mission import config, mission, runs
from harness.mission.mission import Mission
from harness.mission.open_run import LandingResult, StartedRun
from harness.process import temporary
from harness.state import files, names
from harness.state.layout import Layout, command, state_home
from harness.state.state import State

TREES = "tree-"
NOWHERE = Position(head="", branch="", tree="")


class Tree(Record):
    """The workplace at the start of a run: its tree's folder, the mission's position, and unignored untracked files
    (git paths). `notes`: lines for a person; `unlanded`: why the branch is not at the mission's position, or "";
    `conflicts`: the paths that both a person, in their commit `theirs`, and runs changed."""

    folder: str
    position: Position
    untracked: list[str]
    unlanded: str = ""
    notes: list[str] = []
    conflicts: list[str] = []
    theirs: str = ""


def folder_of(mission_id: str, name: str = TREES + "1") -> str:
    """The folder of a tree of the mission, whether it exists or not."""
    return os.path.join(state_home(), mission_id, name)


def free_tree(taken: Collection[str]) -> str:
    """The name of the first unclaimed tree."""
    return next(name for number in count(1) if (name := f"{TREES}{number}") not in taken)


def remove_trees(layout: Layout, mission_id: str) -> None:
    """Remove and unregister the mission's trees, which can be recreated while the mission exists."""
    top = os.path.dirname(folder_of(mission_id))
    for one in files.names(top):
        if one.removeprefix(TREES).isdigit():
            worktrees.remove(layout.folders.top, os.path.join(top, one))
    temporary.remove(top)


def record(layout: Layout) -> bytes:
    """The present git configuration of the project for the file `git.json`, read before any agent runs."""
    return encoding.dump_json(settings.record(layout.folders.top).replace(prefix=layout.folders.prefix).asdict())


def use(layout: Layout) -> None:
    """Make git calls in the project read only the recorded configuration; without a record nothing changes. For an
    archived mission, whose files do not change, the record of the present one counts, if there is one."""
    here = Layout(layout.folders.project)
    if known := recorded(here) or recorded(layout):
        if bool(known.prefix) != bool(layout.folders.prefix):
            now = "has a .git of its own by now. Remove that" if known.prefix else "has lost its .git. Put it back"
            raise NeedsPerson(f"{layout.folders.project} {now}, or move {layout.state} away to begin another mission.")
        unconfined = config.load(layout).confine == "off"
        settings.use(layout.folders.top, known, here.path(names.GIT_PRIVATE), layout.folders.prefix, unconfined)


def recorded(layout: Layout) -> RecordedSettings | None:
    """The git configuration of the project as it was at init; None without a record."""
    value = State(layout).json(names.GIT_RECORD)
    if value is None:
        return None
    if faults := schema.faults(value, "the record", RecordedSettings):
        raise BrokenFile(layout.path(names.GIT_RECORD), f"no git configuration ({'; '.join(faults)})", remedy=RESTORE)
    return RecordedSettings(**value)


def _ref(mission_id: str, name: str) -> str:
    return f"refs/harness/{mission_id}/{name}"


def position(layout: Layout) -> Position:
    """The mission's position: its tip, or its branch before the first run."""
    use(layout)
    made = mission.load(layout)
    refs_here = (_ref(made.id, "tip"), BRANCHES + made.branch)
    known = refs.positions(layout.folders.top, *refs_here)
    found = next((known[ref] for ref in refs_here if ref in known), None)
    if found is None:
        raise NeedsPerson(_gone(layout, made))
    return found.replace(branch=made.branch)


def _gone(layout: Layout, made: Mission) -> str:
    gone = f"The mission's branch {made.branch} is not in {layout.folders.top}. If it was pushed: {fetching(made)}"
    again = f"git branch {encoding.shell_word(made.branch)} {made.base_commit[:12]}"
    return f"{gone}   To begin again from its base: {again}   or with another: {command('init --new --abandon')}"


def fetching(made: Mission) -> str:
    """The command that fetches what another clone pushed of a mission."""
    return f"git fetch origin '+refs/harness/*:refs/harness/*' {encoding.shell_word(f'{made.branch}:{made.branch}')}"


def branch_commit(layout: Layout, made: Mission) -> str:
    """The commit of the mission's branch; "" if it is gone. 0 git calls."""
    return dotgit.commit_of(layout.folders.top, BRANCHES + made.branch)


def tip_commit(layout: Layout, made: Mission) -> str:
    """The commit of the mission's tip; "" if it is gone. 0 git calls."""
    return dotgit.commit_of(layout.folders.top, _ref(made.id, "tip")) or branch_commit(layout, made)


def move_to(layout: Layout, made: Mission, commit: str) -> None:
    """Set the mission's position, and the recorded position of its branch, to this commit."""
    refs.set_all(layout.folders.top, {_ref(made.id, "tip"): commit, _ref(made.id, "landed"): commit})


def take_in(layout: Layout, folder: str, paths: Sequence[str]) -> None:
    """Make these files of a tree, as they are, the mission's position and branch."""
    made, top = mission.load(layout), layout.folders.top
    use(layout)
    commit = worktrees.commit(top, folder, paths, tip_commit(layout, made), "Begin a turn\n")
    refs.set_all(top, dict.fromkeys((_ref(made.id, "tip"), _ref(made.id, "landed"), BRANCHES + made.branch), commit))


def landed(layout: Layout) -> bool:
    """Whether the mission's branch has the files of the mission's position."""
    made = mission.load(layout)
    commit, at = branch_commit(layout, made), tip_commit(layout, made)
    return commit != "" and (commit == at or position(layout).tree == repository.tree_of(layout.folders.top, commit))


def asked_spec(layout: Layout) -> bytes | None:
    """The person's SPEC.md for the mission, or None. 0 git calls if its branch is checked out, or nothing has changed."""
    found, accepted = mission.asked_spec(layout), State(layout).data(names.SPEC)
    if found and mission.asks(layout, found) and not on_branch(layout, made := mission.read(layout)):
        use(layout)
        top, tip = layout.folders.top, tip_commit(layout, made)
        at = next((one.head for one in runs.finished(layout) if one.accepted), "")  # where the accepted one was planned
        if at and refs.is_ancestor(top, at, tip) and merges.had_spec(top, at, found):  # an older one, of another branch
            committed = repository.show(top, tip, merges.spec_of(top)) or found
            return accepted if merges.had_spec(top, at, committed) else committed
    return found


def on_branch(layout: Layout, made: Mission) -> bool:
    """Whether the project folder has the mission's branch checked out. 0 git calls."""
    return landing.is_here(layout.folders.top, branch_of_folder(layout, made))


def branch_of_folder(layout: Layout, made: Mission) -> str:
    """The branch on which a person works for the mission: its own, or that of a held folder."""
    return held if landing.is_here(layout.folders.top, held := made.branch + landing.HELD) else made.branch


def is_held(layout: Layout) -> bool:
    """Whether a person's folder stays behind, until they accept changes that their tools would execute, or because of their
    edits. 0 git calls."""
    return branch_of_folder(layout, made := mission.read(layout)) != made.branch


def let_go(layout: Layout) -> str:
    """Make a held folder follow the mission's branch again, including a person's work; returns "" or why not. Requires
    the mission lock."""
    made = mission.load(layout)
    tree = bring(layout, made, TREES + "1")
    return tree.unlanded if tree.conflicts else land(layout, made, tree.position.head, accepted=True)


def _go_on_here(layout: Layout, made: Mission, tree: Tree) -> None:
    """Continue from another branch that is checked out and contains the mission's work, if a person changed SPEC.md there."""
    top, asked = layout.folders.top, asked_spec(layout)
    if mission.asks(layout, asked):
        here = dotgit.commit(top)
        if here not in ("", tree.position.head) and refs.is_ancestor(top, tree.position.head, here):
            refs.set_one(top, _ref(made.id, "tip"), here)
            tree.position = (refs.position_of(top, here) or NOWHERE).replace(branch=made.branch)


def bring(layout: Layout, made: Mission, name: str) -> Tree:
    """Merge a person's commits into the mission's position, for a run in this tree. Requires the mission lock."""
    note = landing.finish(layout.folders.top)
    theirs = landing.tip(layout.folders.top, made.branch)
    tree = _merged(layout, made, theirs, folder_of(made.id, name))
    if not on_branch(layout, made) and not tree.conflicts:
        _go_on_here(layout, made, tree)
    tree.notes += [note] if note else []
    commit = tree.position.head
    if (commit != theirs or is_held(layout)) and not tree.conflicts:
        tree.unlanded = land(layout, made, commit)
    return tree


def prepare(layout: Layout, tree: Tree, carry: Sequence[str]) -> None:
    """Reset the tree's folder to its position, and copy ignored files of the project and the person's SPEC.md into it.
    Requires the claim of the tree."""
    folder, asked = tree.folder, asked_spec(layout)
    tree.untracked = worktrees.ensure(layout.folders.top, folder, tree.position.head, keep=True)
    _link_state(layout, folder)
    spec = os.path.join(layout.folders.within(folder), names.ASKED_SPEC)
    if asked and os.path.isfile(spec) and not os.path.islink(spec) and files.read(spec) != asked:
        files.replace(spec, asked)
        tree.untracked.append(merges.spec_of(layout.folders.top))  # uncommitted, and so left out of commits
    left = worktrees.carry(layout.folders.top, folder, carry, layout.folders.prefix)
    tree.notes += [f"not carried into the tree: {line}" for line in left]


def _merged(layout: Layout, made: Mission, theirs: str, folder: str) -> Tree:
    """The mission's position with a person's commits in it, except where they conflict."""
    project, tree = layout.folders.top, Tree(folder=folder, position=NOWHERE, untracked=[])
    branches = [BRANCHES + made.branch, BRANCHES + made.branch + landing.HELD]
    known = refs.positions(project, _ref(made.id, "tip"), _ref(made.id, "landed"), *branches)
    tip, landed = (known.get(_ref(made.id, name), NOWHERE).head for name in ("tip", "landed"))
    if not (tip or theirs):
        raise NeedsPerson(_gone(layout, made))
    commit, side = tip or theirs, theirs
    if theirs and theirs not in (tip, landed):
        if landed and landed == tip and not refs.is_ancestor(project, landed, theirs):
            commit = theirs  # they removed commits, and no work of runs waits
        else:
            merged = merges.merge(project, commit, theirs, f"Merge branch '{made.branch}'\n\n{contents.MERGED}")
            tree.conflicts, commit = merged.conflicts, merged.commit or commit
    if branches[1] in known and not tree.conflicts:
        message = f"Merge branch '{made.branch}{landing.HELD}'\n\n{contents.MERGED}"
        side = known[branches[1]].head
        merged = merges.merge(project, commit, side, message)
        tree.conflicts, commit = merged.conflicts, merged.commit or commit
    if tree.conflicts:
        tree.unlanded, tree.theirs = _conflict(layout, made, commit, tree.conflicts), side
    behind = landed != tip and _moved_back(project, landed, theirs)
    _move(layout, made, tip, landed, commit, landed if tree.conflicts or behind else theirs)
    if branches[1] in known and not tree.conflicts:
        landing.drop_held(project, made.branch, side)
    at = next((one for one in known.values() if one.head == commit), None) or refs.position_of(project, commit)
    tree.position = (at or NOWHERE).replace(branch=made.branch)
    return tree


def _move(layout: Layout, made: Mission, tip: str, landed: str, commit: str, branch: str) -> None:
    """Record the positions of the mission and its branch, in one git call, if either has changed."""
    wanted = {"tip": (tip, commit), "landed": (landed, branch)}
    changed = {_ref(made.id, name): new for name, (old, new) in wanted.items() if new and new != old}
    if changed:
        refs.set_all(layout.folders.top, changed)


def _conflict(layout: Layout, made: Mission, commit: str, paths: Sequence[str]) -> str:
    merge = merges.words(layout.folders.top, branch_of_folder(layout, made), commit)
    return f"your changes of {encoding.few(paths)} on {made.branch} conflict with the mission's. Settle it: {merge}"


def _moved_back(project: str, landed: str, branch: str) -> bool:
    """Whether a person removed commits of the mission from their branch, which was last at `landed`."""
    return bool(landed) and branch not in ("", landed) and refs.is_ancestor(project, branch, landed)


def land(layout: Layout, made: Mission, commit: str, *, accepted: bool = False) -> str:
    """Move the branch and a person's working folder to `commit`; returns "" or one line with the reason and remedy. The
    folder stays behind if a person's tools would execute changed files, unless `accepted`."""
    mark, old = _ref(made.id, "landed"), branch_commit(layout, made)
    if _moved_back(layout.folders.top, dotgit.commit_of(layout.folders.top, mark), old):
        without = f"git update-ref {_ref(made.id, 'tip')} {old[:12]}"
        left = f"you moved {made.branch} back to {old[:12]} while a run worked, so it is left there"
        merge = merges.words(layout.folders.top, made.branch, commit, "--ff-only ")
        return f"{left}. To have the work: {merge}. To go on without it: {without}"
    try:
        why = landing.land(layout.folders.top, made.branch, commit, mark, accepted=accepted)
    except GitFailed as fault:
        why = str(fault)
    if dotgit.commit_of(layout.folders.top, mark) != commit and (not why or branch_commit(layout, made) == commit):
        refs.set_one(layout.folders.top, mark, commit)
    return why


def finish_landing(layout: Layout) -> list[str]:
    """Complete or undo an interrupted landing; returns messages about it."""
    use(layout)
    return [landing.finish(layout.folders.top) or "finished a landing that a crash had cut short"]


def clear_ref_locks(layout: Layout, dead: Sequence[str], *, alone: bool = True) -> None:
    """Remove locks that a killed git left on refs of the mission and its dead runs. Not `alone`: other runs of it are at work."""
    made = mission.read(layout)
    branch, own = repository.BRANCHES + made.branch, f"refs/harness/{made.id}"
    shared = [branch, branch + landing.HELD, branch.partition(mission.AT)[0] + mission.AT + "*"]  # perhaps a person's
    left = [f"refs/harness/{kind}/{run}" for run in dead for kind in ("partial", "refused", "keep")]
    (left if alone else shared).append(own)
    for path in (path for name in left for path in dotgit.ref_locks(layout.folders.top, name)):
        files.remove(path)
    dotgit.clear_unheld(layout.folders.top, shared)


def abandoned(layout: Layout) -> list[str]:
    """The temporary files of dead writers of the harness: next to the trees, in them, and in git's folder."""
    top = os.path.dirname(folder_of(mission.read(layout).id))
    links, found = (".git.", os.path.basename(layout.state) + "."), files.abandoned(top)
    for tree in (os.path.join(top, name) for name in files.names(top) if name.removeprefix(TREES).isdigit()):
        places = dict.fromkeys([tree, layout.folders.within(tree)])
        beside = [path for place in places for path in files.abandoned(place)]
        found += [path for path in beside if os.path.basename(path).startswith(links)]
    return found + landing.abandoned(layout.folders.top)


def _link_state(layout: Layout, folder: str) -> None:
    """Link `.harness` in the tree to the mission's state, so that paths are the same in every prompt."""
    link = os.path.join(layout.folders.within(folder), os.path.basename(layout.state))
    if os.path.islink(link) and os.readlink(link) == layout.state:
        return
    if os.path.isdir(link) and not os.path.islink(link):  # an agent made it
        temporary.remove(link)
    files.link(link, layout.state)


def join(run: StartedRun) -> bool:
    """Register the tree of this run as the run left it; False if the tree is gone."""
    if not os.path.isdir(run.checkout):
        return False
    use(run.layout)  # an unconfined agent may have removed files that git needs
    worktrees.join(run.layout.folders.top, run.checkout, run.context.head)
    return True


def leave_untracked(run: StartedRun) -> None:
    """Exempt the present untracked files of the tree (after setup) from commits and restores of the run. If it may change the
    tree, record what git ignores there; what earlier runs on its feature wrote counts as its own."""
    layout, context = run.layout, run.context
    found = [name for name in repository.untracked(run.checkout) if name not in context.untracked]
    context.untracked.update(worktrees.digests(run.checkout, found))
    if run.changes_tree:
        last = runs.last(layout, role=context.role, feature=context.feature)
        before = runs.context(layout, last.run) if last and os.path.exists(layout.run(last.run).context) else context
        known = before.ignored if before.folder == context.folder else None
        context.ignored = [*worktrees.ignored(run.checkout)] if known is None else known
    State(layout).put(names.of_run(run.id, names.CONTEXT), encoding.dump_json(context.asdict()), mode=files.PRIVATE)


def restore(run: StartedRun) -> None:
    """Restore the tree to the start of the run: tracked files as committed, without new untracked files."""
    for name in worktrees.ensure(run.layout.folders.top, run.checkout, run.context.head, keep=True):
        if name not in run.context.untracked:
            worktrees.discard(run.checkout, name)


class RunCommit(Record):
    """The commit of a run's work: `landed` on the mission's position, or, with `clashes` or unwanted, only `kept`."""

    landed: str
    kept: str = ""
    clashes: list[str] = []


def commit(
    run: StartedRun, tree: str, text: str, *, lands: bool = True, cut: bool = False, joins: LandingResult | None = None
) -> RunCommit:
    """Commit `tree` on the mission's position, merged with what other runs landed meanwhile; durable. The refs by which
    recovery finds the commit, and whether its work is `cut`, move with the position. One commit on top, for a linear
    history; it `joins` a person's commit if the work has settled the conflicts named there, and no others have come.
    3 calls; 2 more if another run was faster.
    """
    also = [refs.KEEP + run.id, *([refs.PARTIAL + run.id] if cut else [])]
    project, message = run.layout.folders.top, text.replace("\0", "").rstrip("\n") + "\n"
    person = settings.person(project) if run.entered else {}
    ours = repository.commit_tree(project, tree, [run.context.head], message, person)
    if not lands:
        return RunCommit(landed="", kept=ours)
    ref = _ref(mission.read(run.layout).id, "tip")
    while True:
        tip = dotgit.commit_of(project, ref) or run.context.head
        made = ours
        if tip != run.context.head:
            joined = merges.tree_of(project, tip, ours)
            if joined.conflicts:
                return RunCommit(landed="", kept=ours, clashes=joined.conflicts)
            made = repository.commit_tree(project, joined.tree, [tip], message, person)
        if joins and (both := merges.settled(project, made, joins.theirs, joins.conflicts)):
            made = repository.commit_tree(project, both, [tip, joins.theirs], message, person)
        if refs.swap(project, ref, made, tip, *also):
            return RunCommit(landed=made)
