"""The folders of a lane on its machine: a clone, its state and its tree, mounted at the same paths as at home."""

from __future__ import annotations

import os
import time
from typing import Any

import harness
from harness.agents import registry
from harness.agents.base import Settings
from harness.base import clock, encoding
from harness.base.errors import LockBusy, Unavailable
from harness.git import dotgit, repository
from harness.git.checkouts import clones, worktrees
from harness.git.repository import Position
from harness.mission import lease
from harness.mission.config import Config
from harness.mission.mission import Mission
from harness.mission.open_run import OpenRun, Outcome
from harness.mission.roles import Role
from harness.mission.runs import RunContext
from harness.process import confine as tiers
from harness.process import supervise, temporary, tree
from harness.run import starting
from harness.run.machines import _travel
from harness.state import files, journal, names
from harness.state.layout import Layout, identity_file, state_home
from harness.state.state import State
from harness.workplace import confine, workplace

# A root of its own keeps these folders of the machine's root whole.
SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "usr")
TOP, TREE, IDENTITIES = "clone", "tree-1", "identity"
MESSAGE = "The work of a run\n"


def folder_of(where: dict[str, str]) -> str:
    """The folder of a lane of a mission on this machine."""
    parts = where["lane"].split("/")
    if not {"", ".", ".."}.isdisjoint(parts):
        raise Unavailable(f"{where['lane']!r} is not the name of a lane.")
    return os.path.join(state_home(), "machines", *parts)


def lacks(version: str, agents: dict[str, Settings], wanted: str, where: dict[str, str]) -> list[str]:
    """What this machine lacks for the work, one line each."""
    found = []
    if version != harness.__version__:
        found.append(f"the harness {version} of home: it has {harness.__version__}")
    if wanted == "off" or tiers.available() != tiers.BUBBLEWRAP:
        found.append('bubblewrap, which mounts the tree at its path (confine = "off" works only at home)')
    found += [f"a place for {path}" for path in _mounted(where) if not _can_be_mounted(path)]
    found += _lacks_folder(where)
    for name, settings in agents.items():
        try:
            if name not in registry.EMBEDDED:
                registry.make(name, settings)
        except Unavailable as fault:
            found.append(f"{name}: {fault}")
    return found


def _lacks_folder(where: dict[str, str]) -> list[str]:
    """Why the lane can have no folder here."""
    folder = os.path.realpath(folder_of(where))
    if inside := [one for one in _mounted(where) if folder.startswith(os.path.realpath(one) + "/")]:
        return [f"a HOME (or XDG_STATE_HOME) outside {inside[0]}, which a mount hides: {folder} is below"]
    try:
        files.make_folder(folder)
    except OSError as fault:
        return [f"a folder for its lanes: {fault.strerror} at {fault.filename}"]
    return []


def _mounted(where: dict[str, str]) -> list[str]:
    """The paths at which folders are mounted, in the order of mounts."""
    found = [where["top"], where["tree"], where["identity"]]
    return found + ([] if (where["state"] + "/").startswith(where["top"] + "/") else [where["state"]])


def _can_be_mounted(path: str) -> bool:
    """Whether bubblewrap finds or can create a mount point there, if necessary in a root of its own."""
    return os.path.isdir(path) or _top(path) not in SYSTEM


def root_for(paths: list[str]) -> list[str]:
    """The folders of this machine that a new root shows, so that each path can be a mount point; [] if no new root is needed."""
    hidden = [*tiers.PRIVATE, os.path.expanduser("~"), state_home()]
    free = tuple(os.path.realpath(one) + "/" for one in hidden if os.path.isdir(one))
    new = {_top(path) for path in paths if not (os.path.isdir(path) or (os.path.realpath(path) + "/").startswith(free))}
    return [f"/{name}" for name in sorted(os.listdir("/")) if name not in {*new, "dev", "proc"}] if new else []


def _top(path: str) -> str:
    return os.path.realpath(path).split("/")[1]


def commits(where: dict[str, str]) -> list[str]:
    """The commit that this machine has from an earlier run of the lane."""
    top = os.path.join(folder_of(where), TOP)
    return [one for one in [dotgit.commit(top)] if one] if os.path.isdir(top + "/.git") else []


class Site:
    """A run in the folders of its lane. Raises LockBusy while an earlier run there has not ended."""

    def __init__(self, where: dict[str, str], job: dict[str, Any], pack: bytes) -> None:
        self.where, self.folder = where, folder_of(where)
        files.make_folder(self.folder)
        self.lock, self.role = files.Lock(self.folder + ".lock"), job["role"]["name"]
        if not self.lock.take():
            raise LockBusy("an earlier run of this lane has not ended there")
        self.home = Layout(where["project"], where["state"], where["top"])
        top, self.tree = os.path.join(self.folder, TOP), os.path.join(self.folder, TREE)
        tree.sweep(job["tag"])
        context = RunContext(**job["context"])
        _clone(top, context.head, pack, job["shallow"])
        self.layout = Layout(os.path.join(top, self.home.folders.prefix))
        settings = Config(**job["settings"])
        self._lay_out(_travel.decompress(job["files"]), context.run)
        self._make_tree(context, job["carry"])
        self.run = self._open_run(job, context, settings)

    def _lay_out(self, found: dict[str, bytes], run: str) -> None:
        """Create the state as at home, without other runs."""
        temporary.remove(self.layout.path(names.RUNS))
        temporary.remove(self.layout.path(names.LOCKS))
        files.make_folder(self.layout.folders.project)
        starting.lay_out(self.layout)
        files.make_folder(self.layout.run(run).folder)
        self.write(found)
        State(self.layout).put(names.GIT_RECORD, workplace.record(self.layout))
        starting.write_generated(self.layout, self.home.folders.project)
        workplace.use(self.layout)

    def write(self, found: dict[str, bytes]) -> None:
        """Write files of the state by name, other files by path, and the identity."""
        identity = identity_file(os.path.join(self.folder, IDENTITIES), self.role)
        files.make_folder(os.path.dirname(identity))
        for name, data in found.items():
            path = identity if name == _travel.IDENTITY else os.path.join(self.layout.state, name)
            files.replace_quickly(path, data)
        journal.adopt(self.layout)

    def _make_tree(self, context: RunContext, carried: dict[str, tuple[int, bytes]]) -> None:
        position = Position(head=context.head, branch=context.branch, tree=context.tree)
        tree = workplace.Tree(folder=self.tree, position=position, untracked=[])
        workplace.prepare(self.layout, tree, ())
        if tree.untracked:  # of a dead run, or of refused work; setup runs again, because they may be its own
            worktrees.ensure(self.layout.folders.top, self.tree, context.head)
            os.utime(self.tree + "/.git")
        for name, (mode, data) in carried.items():
            files.replace(os.path.join(self.layout.folders.within(self.tree), name), data, mode, quickly=True)

    def _open_run(self, job: dict[str, Any], context: RunContext, settings: Config) -> OpenRun:
        layout = self.layout
        how = confine.tier(layout, settings)
        known = confine.of_mission(self.home, settings, self.tree, how)
        assert known is not None
        known = confine.moved(self.home, known, self._mounts())
        known = known.replace(glass=known.glass.replace(root=root_for(_mounted(self.where))))
        terms = lease.Terms(run=context.run, role=context.role, pid=os.getpid(), since=clock.stamp(clock.now()))
        own = lease.Lease(layout, terms)
        own.take()
        more = {"untracked": {}, "live": journal.read_ledger(layout), "folder": self.tree, "confined": how}
        context = context.replace(**more, process=supervise.pid_record(), temporary=temporary.base())
        State(layout).put(names.of_run(context.run, names.CONTEXT), encoding.dump_json(context.asdict()))
        return OpenRun(
            layout=layout, context=context, mission=Mission(**job["mission"]), settings=settings, role=Role(**job["role"]),
            claims=[], lease=own, outcome=Outcome.begun(layout, ""), started=time.monotonic(),
            confinement=known, mark=job["tag"],
            home=confine.home_of_checks(layout.folders.top, self.tree + ".home", settings.home),
        )  # fmt: skip

    def _mounts(self) -> list[tuple[str, str, bool]]:
        """(path inside, folder, writable) of each mount."""
        folders = [self.layout.folders.top, self.tree, os.path.join(self.folder, IDENTITIES), self.layout.state]
        pairs = zip(_mounted(self.where), folders, strict=False)
        return [(os.path.realpath(inside), folder, folder == self.tree) for inside, folder in pairs]

    def settings(self, given: dict[str, Any]) -> Settings:
        """The settings of an agent, for the project here."""
        return Settings.whole(given).replace(project=self.layout.folders.project)

    def work(self) -> dict[str, Any]:
        """The files of the tree as a commit on top of the run's, its objects, and the paths left out of it, with why."""
        run = self.run
        if not run.changes_tree or not workplace.join(run):
            return {"work": "", "pack": b"", "kept_out": [], "ignored": []}
        spec = run.layout.folders.prefix + names.ASKED_SPEC
        index, head = worktrees.index(run.checkout), run.context.head
        done = repository.working_tree(run.checkout, index=index, parent=head, leave={*run.context.untracked, spec})
        commit = repository.commit_tree(run.layout.folders.top, done.tree, [head], MESSAGE, {})
        data = _travel.pack_commit(run.layout.folders.top, commit, [head])
        data = data[: _travel.MAX_WORK_BYTES + 1]  # home refuses more
        found = worktrees.ignored_since(run.checkout, run.context.ignored)
        return {"work": commit, "pack": data, "kept_out": done.kept_out, "ignored": found}

    def close(self) -> None:
        """Release the lane."""
        confine.disarm(self.tree)
        self.run.lease.release()
        self.lock.release()


def _clone(top: str, commit: str, pack: bytes, shallow: bytes) -> None:
    """Create or move a repository to this commit."""
    if not os.path.isdir(top + "/.git/objects"):
        files.make_folder(top)
        form = "sha256" if len(commit) == 64 else "sha1"
        repository.run(top, "init", "-q", "-b", "main", "--template=", f"--object-format={form}")
    if shallow:
        files.replace_quickly(top + "/.git/shallow", shallow)
    _travel.store_pack(top, pack)
    clones.move(top, commit)
