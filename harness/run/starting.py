"""Starts a mission in a folder: all preconditions are checked first, and `.harness/format` is written last."""

from __future__ import annotations

import os
import sys
from collections import Counter

import harness
from harness.agents import registry, spenders
from harness.base import clock, console, encoding
from harness.base.errors import BrokenFile, NeedsPerson, UsageFault
from harness.decision import gaps, rules
from harness.git import dotgit, first_commit, merges, refs, repository
from harness.git.checkouts import commit_excludes, submodules
from harness.git.landing import HELD
from harness.git.repository import Position
from harness.mission import config, mission, roles, runs
from harness.mission.mission import Mission
from harness.process import temporary
from harness.run import _archiving, recover
from harness.state import documents, files, names
from harness.state.layout import Layout, command, home, repository_of, state_home
from harness.state.state import Changes, State
from harness.workplace import environment, mission_lock, workplace
from harness.workplace.recovery import recovery_evidence, unsettled_runs
from harness.workspace import grants
from harness.workspace.places import PLAYBOOKS

ANSWERS = "answers"  # the branch of a mission whose runs only answer
ANNOUNCED = "announced"  # cache of shown notes, those about money without numbers
EXAMPLES = ("todo", "bug-fix", "short-links")  # folders of examples/
IGNORE_LINE = "/{prefix}.harness"
STATES = (
    "the repository holds {folders}: a mission started there runs the programs that these name. Look at them before"
)
IN_PART = "The mission was copied in part. Copy all of .harness, or move this one away."
UNSEEN = "runs do not see {files}; commit {them}{where} to include {them}"
UNSEARCHED = (
    *(names.ARCHIVED, names.RUNS, names.OBJECTS, names.SNAPSHOTS),
    *(names.JOURNAL, names.CACHE, names.REPLAYS, names.LOCKS),
)
IGNORE_NOTE = "# Searches pass by what an agent never needs; memory and the state can be found.\n"
IGNORED = IGNORE_NOTE + "".join(f"/{name}/\n" for name in UNSEARCHED)
SHIM = """#!/bin/sh
# The harness command of this mission, as agents find it on their PATH.
export HARNESS_HOME={home} HARNESS_PROJECT={project} HARNESS_CALLED=harness
exec {python} -P {program} "$@"
"""


def start(layout: Layout) -> Mission:
    """The mission of this folder, created if missing; settles dead runs first, if no run is alive. Raises
    UsageFault (no repository, no or empty SPEC.md) or NeedsPerson (detached HEAD) with nothing written."""
    _settle_in(layout)
    if unsettled_runs.needs_recovery(layout) or unsettled_runs.cut_short(layout):
        for line in recover.recover_dead(layout):
            console.print_line(f"  {line}")
    found(layout)
    made = mission.load(layout)
    temporary.remove_abandoned(f"{made.id}/check", f"{made.id}/replay", "verify", "try")
    return made


def _settle_in(layout: Layout) -> None:
    """Make again what names the machine, folder or clone that the mission was carried from (`place`: the paths that its trees
    name). Raises BrokenFile or NeedsPerson if a part of it, or a commit, is not here; a line names incomplete runs."""
    _finish_archiving(layout)
    if not mission.exists(layout):
        left = files.names(layout.path(names.OBJECTS)) or os.path.exists(layout.path(names.FEATURES))
        if left and not unsettled_runs.needs_recovery(layout):
            raise BrokenFile(layout.path(names.FORMAT), "it is missing beside the rest of a mission", remedy=IN_PART)
        return
    files.make_folder(layout.path(names.LOCKS))
    write_generated(layout)
    made, last = mission.load(layout), next((one for one in runs.finished(layout) if one.commit), None)
    if last and not dotgit.commit_of(layout.folders.top, keep := refs.KEEP + last.run):
        here = workplace.position(layout).head
        if not refs.is_ancestor(layout.folders.top, last.commit, here):
            lacks = f"{made.branch} lacks {last.commit[:10]}, the work of the run {last.run}. If it was pushed:"
            without = f"To go on without it: git update-ref {keep} {here[:12]}"
            raise NeedsPerson(f"{lacks} {workplace.fetching(made)}   {without}")
    place, paths = workplace.folder_of(made.id, "place"), os.fsencode(f"{state_home()}\n{os.path.expanduser('~')}\n")
    if files.read(place) == paths or runs.open_runs(layout):
        return
    for name in sorted({names.GIT_RECORD, names.SPEC, *names.APPEND_ONLY} & recovery_evidence.ledger(layout).keys()):
        if name != names.RUN_LOG and not os.path.exists(layout.path(name)):
            raise BrokenFile(layout.path(name), "it is missing", remedy=IN_PART)
    if broken := runs.broken_seals(layout, sys.maxsize):
        console.print_line(f"  runs with missing or changed files, whose receipts do not count: {encoding.few(broken)}")
    workplace.remove_trees(layout, made.id)
    files.replace(place, paths)


def put_away(layout: Layout, *, abandon: bool, starts: bool = True) -> list[str]:
    """Archive the mission of this folder, if any, so that `start` begins another; returns messages. Raises the faults
    of `archive`, and if it `starts` those of `start`, with nothing changed."""
    _finish_archiving(layout)
    if not mission.exists(layout):
        return []
    if starts:
        _require_startable(layout)
    return _archiving.archive(layout, abandon=abandon)


def _finish_archiving(layout: Layout) -> None:
    if os.path.exists(layout.path(names.ARCHIVING)) and (said := _archiving.go_on(layout)):
        console.print_line(f"  {said}")


def _require_startable(layout: Layout) -> tuple[Position, bool]:
    """The position of the repository, and whether a mission gets a branch of its own; raises the fault that prevents one."""
    first_commit.require(layout.folders.project)
    first_commit.require_version(layout.folders.top)
    require_spec(layout)
    now = repository.position(layout.folders.top)
    if not now.branch:
        raise NeedsPerson(f"HEAD of {layout.folders.project} is detached. Check out a branch first: git switch NAME")
    earlier = map(_own_branch, files.names(layout.path(names.ARCHIVED)))
    own = now.branch.removesuffix(HELD) in (repository.default_branch(layout.folders.top), *earlier) or not now.head
    if own:
        refs.require_free(layout.folders.top, _own_branch(mission.new_id(layout.folders.project)))
    return now, own


def found(layout: Layout) -> None:
    """Start a mission if there is none. A dead run proves that there is one, even if its files are gone."""
    _settle_in(layout)
    if mission.exists(layout) or unsettled_runs.needs_recovery(layout):
        if os.path.isdir(state_home()):
            os.chmod(state_home(), 0o700)
        return
    now, own = _require_startable(layout)
    name, branch = mission.new_id(layout.folders.project), now.branch
    created, host = clock.stamp(clock.now()), os.uname().nodename
    lay_out(layout)
    base = now.head or _first_commit(layout, branch)
    made = Mission(id=name, created=created, host=host, branch=branch, base_commit=base)
    if own:
        made.branch = _own_branch(made.id)
        repository.switch_new(layout.folders.top, made.branch)
    write(layout, made, workplace.record(layout))


def found_apart(layout: Layout, name: str) -> None:
    """Start a mission of this name whose runs only answer, unless it is there: in a repository of its own, without a SPEC.md."""
    if mission.exists(layout):
        return
    top = layout.folders.project
    files.make_folder(top)
    repository.init(top)
    lay_out(layout)
    base = dotgit.commit_of(top, repository.BRANCHES + ANSWERS) or _first_commit(layout, ANSWERS)
    repository.check_out(top, repository.BRANCH)  # the files are in the tree of the runs alone
    now, host = clock.stamp(clock.now()), os.uname().nodename
    made = Mission(id=mission.new_id(name), created=now, host=host, branch=ANSWERS, base_commit=base)
    write(layout, made, workplace.record(layout))


def write(layout: Layout, made: Mission, git_record: bytes) -> None:
    """Write the initial files of a mission, in existing folders."""
    changes = Changes()
    changes.put(names.MISSION, encoding.dump_json(made.asdict()))
    changes.put(names.GIT_RECORD, git_record)
    changes.put(names.FORMAT, f"{mission.FORMAT}\n".encode())
    State(layout).commit(changes)


def _own_branch(mission_id: str) -> str:
    """The branch of a mission that did not begin on a person's branch."""
    return f"harness/{mission_id}"


def lay_example(layout: Layout, name: str) -> list[str]:
    """Copy the files of one of EXAMPLES into this folder; without a repository, create one and commit them.
    Raises UsageFault, with nothing changed, if one of these files, or a mission, exists."""
    source = os.path.join(home(), "examples", name)
    found = [os.path.join(folder, one) for folder, _, left in os.walk(source) for one in left if one[-4:] != ".pyc"]
    wanted = sorted(os.path.relpath(path, source) for path in found)
    there = [name for name in wanted if os.path.lexists(os.path.join(layout.folders.project, name))]
    there += [os.path.basename(layout.state)] if mission.exists(layout) else []
    if there:
        fault = (
            f"There is {encoding.few(there)} in {layout.folders.project} already, and the example writes over nothing"
        )
        new = encoding.shell_word(f"{layout.folders.project}/example")
        raise UsageFault(f"{fault}. Begin in an empty folder: mkdir {new} && {command(f'-C {new} init --example')}")
    fresh = not repository_of(layout.folders.project)
    if fresh:
        repository.init(layout.folders.project)
    for name in wanted:
        files.replace(os.path.join(layout.folders.project, name), files.read(os.path.join(source, name)) or b"")
    if fresh:
        first_commit.first_commit(layout.folders.project, wanted, "A spec and its playbooks")
    written = Counter(name.partition("/")[0] + "/" * ("/" in name) for name in wanted)
    return ["wrote " + ", ".join(name if name[-1] != "/" else f"{name} ({many})" for name, many in written.items())]


def announcement(layout: Layout) -> list[str]:
    """Warnings before money is spent: agents without a cap or a known cost, and earlier runs of unknown cost."""
    (costly, hidden), settings = spenders.configured(layout), config.load(layout)
    cap = "max_cost_usd in [limits]" if costly and settings.max_cost_usd is None else ""
    tables = " and ".join(f"[prices.{name}]" for name in hidden)
    prices = f"{tables}, for {', '.join(hidden)} report{'s' * (len(hidden) == 1)} no cost" if hidden else ""
    wanted = " and ".join(filter(None, (cap, prices)))
    found = [f"note: {', '.join(costly)} may cost money: set {wanted} (config.toml)"] if wanted else []
    unseen = runs.totals(layout).uncounted if costly and settings.max_cost_usd is not None else 0
    return found + ([f"note: max_cost_usd does not see all: {rules.counted(unseen)} so far"] if unseen else [])


def withheld(layout: Layout) -> list[str]:
    """The names of variables that are withheld from checks and all configured agents."""
    settings = config.load(layout)
    known = (roles.agents_of(settings, roles.load(layout, role)) for role in roles.known(layout))
    names = {name for found in known for name in found}
    needs = [need for name in sorted(names) for need in registry.needs(name, settings.agents.get(name, {}))]
    return environment.withheld(os.environ, settings.passed, needs)


def announced(layout: Layout) -> list[str]:
    """The `announcement` and withheld variables that no earlier start of this mission has shown; marks them as shown."""
    said = documents.recall(layout.cache, ANNOUNCED, "")
    known = set(said) if isinstance(said, list) else set()
    found = {line.rpartition(": ")[0]: line for line in announcement(layout)}
    names = withheld(layout)
    found |= {" ".join(names): environment.not_passed(names)} if names else {}
    if found.keys() - known:
        documents.keep(layout.cache, ANNOUNCED, "", sorted(known | found.keys()))
    return [line for about, line in found.items() if about not in known]


def require_spec(layout: Layout) -> None:
    """Raise UsageFault if SPEC.md is absent or empty."""
    text = mission.asked_spec_text(layout)
    if text is None or not text.strip():
        fault = (
            f"There is no SPEC.md in {layout.folders.project}"
            if text is None
            else f"{layout.folders.asked_spec} is empty"
        )
        above = mission_above(layout)
        other = f" The mission in {above} is another one, which goes on from there." if above else ""
        raise UsageFault(f"{fault}. Describe there what the mission must achieve.{other}")


def mission_above(layout: Layout) -> str:
    """The nearest folder above the project, in its repository, with its own mission, or ""."""
    at = layout.folders.within(layout.folders.top)
    while at != layout.folders.top:
        at = os.path.dirname(at)
        if mission.exists(Layout(at)):
            return at
    return ""


def located(layout: Layout) -> list[str]:
    """Messages about a mission in a subfolder of a repository, about parts that it does not cover, and about committed
    states."""
    found = [f"note: {line}" for line in [*gaps.find(mission.asked_spec_text(layout) or ""), *_states(layout)]]
    found += [f"note: {one}" for one in submodules_of(layout)]
    if not layout.folders.prefix:
        return found
    above = mission_above(layout)
    rest = f" The mission in {above} is another one, and goes on beside it." if above else ""
    return [
        f"Its folder is {layout.folders.prefix} in the repository {layout.folders.top}; the branch is one of all of that.{rest}",
        *found,
    ]


def submodules_of(layout: Layout, commit: str = "", folder: str = "") -> list[submodules.Submodule]:
    """The submodules of a commit, by default of the mission's position, laid into `folder`; see `submodules.find`."""
    known, commit = workplace.recorded(layout), commit or workplace.position(layout).head
    return submodules.find(layout.folders.top, commit, known, folder) if known else []


def unseen(layout: Layout) -> list[str]:
    """A line about a person's uncommitted files, without those that a mission reads from the folder. 1 git call."""
    workplace.use(layout)
    made, below = mission.load(layout), layout.folders.prefix
    read = (f"{below}{names.ASKED_SPEC}/", f"{below}{PLAYBOOKS}/")
    found = [path for path in repository.edited(layout.folders.top) if not f"{path}/".startswith(read)]
    where, them = "" if workplace.on_branch(layout, made) else f" on {made.branch}", "it" if len(found) == 1 else "them"
    return [UNSEEN.format(files=encoding.few(found), them=them, where=where)] if found else []


def take_edits(layout: Layout) -> str:
    """Commit a person's edits of tracked files on the mission's branch, in their name; returns a line about them. Raises
    NeedsPerson if that is impossible now."""
    with mission_lock.take(layout):
        workplace.use(layout)
        taken = merges.take_edits(layout.folders.top, workplace.branch_of_folder(layout, mission.load(layout)))
    if taken.note and not taken.commit:
        raise NeedsPerson(taken.note)
    return taken.note or "there are no edits of tracked files to take"


def _states(layout: Layout) -> list[str]:
    """A line for the folders `.harness` in the repository, at any depth, that git does not ignore. 2 git calls."""
    paths = [*repository.tracked_names(layout.folders.top), *repository.untracked(layout.folders.top)]
    found = [*dict.fromkeys(filter(None, map(commit_excludes.state_in, paths)))]
    return [STATES.format(folders=encoding.few(found))] if found else []


def lay_out(layout: Layout) -> None:
    """Create the folders, and give them their own minimal .git, so that `git clean` skips them; then `write_generated`."""
    grants.begin(layout)
    for folder in (
        layout.path(names.RUNS),
        layout.path(names.LOCKS),
        layout.path(names.OBJECTS),
        layout.path(names.SNAPSHOTS),
        os.path.dirname(layout.path(names.RAW)),
    ):
        files.make_folder(folder)
    for name in ("objects", "refs"):
        files.make_folder(os.path.join(layout.path(names.GIT), name))
    files.replace(os.path.join(layout.path(names.GIT), "HEAD"), b"ref: refs/heads/none\n")
    write_generated(layout)


def _plain(letter: str) -> str:
    """A character of a path, escaped for a git pattern."""
    return "\\" + letter if letter in "\\*?[" else letter


def _first_commit(layout: Layout, branch: str) -> str:
    """Create an empty first commit; a person's files stay uncommitted, and staged as they are."""
    index = os.path.join(layout.path(names.LOCKS), "first-index")
    persons = [*repository.untracked(layout.folders.top), *repository.tracked_names(layout.folders.top)]
    tree = repository.working_tree(layout.folders.top, index=index, parent="", leave=persons).tree
    files.remove(index)
    own = os.path.join(dotgit.folders(layout.folders.top)[0], "index")
    staged = files.read(own)
    made = repository.commit(layout.folders.top, tree=tree, parent="", branch=branch, message="Start\n", at="")
    if staged is not None:
        files.replace(own, staged)
    return made


def version() -> str:
    """The version of the harness: `0.1.0`, in a checkout with its commit: `0.1.0 4012c96a1b2c`. Starts no git."""
    checkout = os.path.dirname(os.path.dirname(harness.__file__))
    return f"{harness.__version__} {dotgit.commit(checkout)[:12]}".strip()


def write_generated(layout: Layout, project: str = "") -> None:
    """Write two files if they differ: the `harness` command on an agent's PATH (this mission, this interpreter), and
    the .ignore that excludes transcripts and copies from agents' searches; and make git ignore the mission. `project`: the
    agent's path of the project, if different."""
    dotgit.exclude(layout.folders.top, IGNORE_LINE.format(prefix="".join(map(_plain, layout.folders.prefix))))
    main = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
    python, program, where, checkout = (
        encoding.shell_word(text) for text in (sys.executable, main, project or layout.folders.project, home())
    )
    shim = SHIM.format(python=python, program=program, project=where, home=checkout)
    for path, text, mode in (
        (layout.path(names.SHIM), shim, 0o755),
        (layout.path(names.IGNORE), IGNORED, files.SHARED),
    ):
        if files.read(path) != text.encode():
            files.replace(path, text.encode(), mode)
