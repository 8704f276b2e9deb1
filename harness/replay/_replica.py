"""A temporary copy of a mission as it was at its start: a separate repository, state, identity and clock.

It is below one temporary folder. The process that works in it is started with the variables of the copy (`variables`), so that
nothing reaches the mission itself: another project, another state, other trees, another identity.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from harness.base import clock, encoding
from harness.base.errors import HarnessError
from harness.git import refs, repository
from harness.git.checkouts import clones
from harness.git.repository import BRANCHES
from harness.mission import issues, mission, receipts, roles
from harness.process import spawn, supervise
from harness.replay import rebuild
from harness.replay._records import PERSON, RESTORE, UNKNOWN, PersonAction, RecordedRun, Records, length_of
from harness.replay.upkeep import restoration
from harness.run import starting
from harness.run.requests import orders, verbs
from harness.state import files, names, objects, raw
from harness.state.layout import Layout, home
from harness.state.state import State
from harness.workplace import workplace

OURS = ("HARNESS_", "FEATURE_ID", "TRIGGER", "REASON", "PROCESS_TAG")
KEPT = ("HARNESS_HOME", "HARNESS_PYTHON", "HARNESS_DEBUG", "HARNESS_CALLED")
NETWORK = ("remote.", "url.", "http.", "credential.")  # sections of git's configuration that name other repositories
MERGED = "what a person did there"  # in the message of a merge by the harness
EDITED = (names.SPEC, names.SUMMARY, names.MEMORY, names.CONTRACT, names.FEATURES)  # a person may edit these


def variables(folder: str, recorded: Layout, known: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that works in the copy of a mission below `folder`; `known`: that of this process."""
    layout = _layout(folder, recorded)
    kept = {name: value for name, value in known.items() if not name.startswith(OURS) or name in KEPT}
    places = {"HARNESS_PROJECT": layout.folders.project, "HARNESS_STATE": layout.state, "PYTHONPATH": home()}
    own = {name: os.path.join(folder, word) for name, word in _FOLDERS.items()}
    return {**kept, **places, **own}


def _layout(folder: str, recorded: Layout) -> Layout:
    top = os.path.join(folder, os.path.basename(recorded.folders.top))
    return Layout(os.path.join(top, recorded.folders.prefix).rstrip("/"))


class Replica:
    """The copy below `folder`, as a context manager of a process that has its `variables`. `commits`: {recorded commit: the
    same one here}. `config`: a config.toml that takes the place of every recorded one."""

    def __init__(self, records: Records, folder: str, config: bytes | None = None) -> None:
        self.records, self.folder, self.config = records, folder, config
        self.layout = _layout(folder, records.layout)
        self.top, self.clock = (
            os.path.join(folder, os.path.basename(records.layout.folders.top)),
            os.environ[clock.RECORDED],
        )
        self.mission = records.mission()
        self.commits: dict[str, str] = {}
        self.followed = self.mission.base_commit  # the recorded position of the copy
        self.kept: dict[str, str] = {}  # {recorded snapshot before a restore: its counterpart}
        self.pids: dict[str, int] = {}
        self.acts = records.acts()
        self.missing: list[str] = []  # records that are missing; messages
        self.asked = b""  # a SPEC.md that is not committed

    def __enter__(self) -> Replica:
        try:
            self.show(clock.seconds_of(self.mission.created))
            clones.borrow(self.records.layout.folders.top, self.top, self.mission.branch, self.mission.base_commit)
            self._lay_out()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for run in list(self.pids):
            self.kill(run)

    # creation

    def _lay_out(self) -> None:
        layout, where = self.layout, self.records.where
        files.make_folder(layout.folders.project)
        starting.lay_out(layout)
        starting.write(layout, self.mission, self._git_record())
        for name in files.names(where.path(names.ROLES)) if os.path.isdir(where.path(names.ROLES)) else []:
            if data := files.read(os.path.join(where.path(names.ROLES), name)):
                files.replace(os.path.join(layout.path(names.ROLES), name), data)
        workplace.use(layout)
        self._lay_identity()

    def _git_record(self) -> bytes:
        """The recorded git configuration, with this repository's paths and without references to others."""
        own = json.loads(workplace.record(self.layout))
        known = self.records.state.json(names.GIT_RECORD) or {}
        kept = {name: known[name] for name in ("config", "attributes", "info_attributes", "persons") if name in known}
        for name in ("config", "persons"):
            kept[name] = [pair for pair in kept.get(name) or [] if not str(pair[0]).startswith(NETWORK)]
        return encoding.dump_json({**own, **kept})

    def _lay_identity(self) -> None:
        """Write the identity of each role as its first prompt showed it."""
        where, seen = self.records.where, set[str]()
        for past in self.records.runs:
            role = past.result.role
            if role in seen or not self.records.state.exists(names.of_run(past.run, names.MANIFEST)):
                continue
            seen.add(role)
            for row in rebuild.rows_of(where, past.run) or []:
                if str(row.get("source", "")).endswith(f"identity/{role}.md") and "object" in row:
                    path = os.path.join(os.environ["HARNESS_IDENTITY"], f"{role}.md")
                    files.replace(path, self.records.object(row["object"]) or b"")

    # time, and people's actions

    def show(self, at: int, seconds: float = 0.0, step: str = clock.SETTLES, run: str = "") -> None:
        """Set the clock of a run, or of this process."""
        files.replace_quickly(self.clock + (f"-{run}" if run else ""), clock.shown(at, seconds, step))

    def people(self, lengths: dict[str, Any], at: int) -> tuple[PersonAction, str] | None:
        """Repeat people's actions up to that time; returns the first refused one with its fault. `lengths`: of the files then."""
        era = self.records.era(lengths, at)
        for act in list(self.acts):
            by_now = act.end <= length_of(lengths, act.name) if act.name and lengths else act.at <= at
            if not (act.era < era or (act.era == era and by_now)):
                continue
            self.acts.remove(act)
            self.show(act.at)
            try:
                self._again(act)
            except HarnessError as fault:
                return act, str(fault)
        return None

    def _again(self, act: PersonAction) -> None:
        layout = self.layout
        if act.verb == RESTORE:
            self._restore(*act.texts)
        elif act.verb == "note":
            raw.append(layout, PERSON, "", [(act.texts[0], act.texts[1])])
        elif act.texts[0] == "report":
            verbs.issue(layout, json.loads(act.texts[1]), PERSON)
        elif act.texts[0] == "close":
            found = next(one for one in issues.load(layout) if one.id == act.texts[1])
            State(layout).append(names.ISSUES, issues.state_line(found, "closed", PERSON, act.texts[2]))
        else:
            if act.texts[0] == "accept":  # a refused file of the recorded run
                name = names.of_run(act.texts[1], f"{names.REFUSED}/{act.texts[2]}")
                State(layout).put(name, self.records.state.data(name) or b"")
            orders.place(layout, act.texts[0], act.texts[1:])

    def _restore(self, to: str, kept: str, commit: str) -> None:
        """Restore a snapshot in the copy, and check out its new branch."""
        made = restoration.restore(self.layout, self.kept.get(to, to))
        self.kept[kept], self.followed = made.kept, commit
        clones.check_out(self.top, made.branch)

    def edits(self, past: RecordedRun, before: RecordedRun | None) -> None:
        """Repeat people's edits of managed files and of SPEC.md before the run opened."""
        quiet = not self.pids and not _ordered(past, before)  # an opening run and an order also change the queue
        for name in EDITED if quiet else ():
            old, new = (known.get(name, [""])[0] for known in (before.after if before else {}, past.before))
            if old == new or (before and not before.after):
                continue
            data = self.records.object(new) if new else None
            if new and data is None:
                self.missing.append(f"{past.run}: {name} as a person had edited it before")
            else:
                self._write(name, data)
        spec = workplace.asked_spec(self.layout)
        rows = rebuild.rows_of(self.records.where, past.run) or []
        asked = next((row["object"] for row in rows if row.get("source") == names.ASKED_SPEC and "object" in row), "")
        self.asked = (self.records.object(asked) if asked else None) or self.asked
        if self.asked and self.asked != encoding.plain(spec or b""):  # not committed
            files.replace(self.layout.folders.asked_spec, self.asked)

    def configure_as(self, past: RecordedRun) -> bool:
        """Write the configuration as the run found it; returns whether it is recorded."""
        row = past.before.get(names.CONFIG)
        data = self.records.object(row[0]) if row else None
        self.configure(data)
        return row is None or data is not None or self.config is not None

    def configure(self, config: bytes | None) -> None:
        """Write the recorded configuration, or the given one instead of it."""
        self._write(names.CONFIG, self.config if self.config is not None else config)

    def object(self, digest: str) -> bytes:
        """The bytes of an object of the copy."""
        return objects.get(self.layout, digest)

    def _write(self, name: str, data: bytes | None) -> None:
        path = State(self.layout).path(name)
        if files.read(path) != data:
            files.remove(path) if data is None else files.replace(path, data)

    # commits

    def follow(self, head: str) -> None:
        """Move the mission's branch to where people had left it before the run with the recorded start commit `head`."""
        if head in ("", self.followed):
            return
        theirs = self._merged_in(head) or head
        clones.move(self.top, self.here(theirs))
        self.followed = head

    def _merged_in(self, head: str) -> str:
        """The person's parent of a merge by the harness; "" for any other commit."""
        lines = repository.run(self.top, "cat-file", "commit", head).decode("utf-8", "replace").split("\n")
        parents = [line.partition(" ")[2] for line in lines[:3] if line.startswith("parent ")]
        branches = [self.mission.branch, *(one.branch for one in self.records.restores)]
        ours = any(f"Merge branch '{name}'" in lines for name in branches) and MERGED in lines
        return parents[1] if ours and len(parents) == 2 else ""

    def here(self, commit: str) -> str:
        """The counterpart of a recorded commit: itself, unless a run's commit is among its ancestors."""
        known = [*self.commits, self.mission.base_commit]
        for made, *parents in clones.between(self.top, known, commit):
            moved = [self.commits.get(name, name) for name in parents]
            self.commits[made] = made if moved == parents else clones.copy(self.top, made, moved)
        return self.commits.get(commit, commit)

    def recorded_tip(self) -> str:
        """The recorded position of the mission."""
        top, made = self.records.layout.folders.top, mission.read(self.records.where)
        wanted = (f"refs/harness/{made.id}/tip", BRANCHES + made.branch)
        known = refs.positions(top, *wanted)
        return next((known[ref].head for ref in wanted if ref in known), "")

    # runs

    def start(self, past: RecordedRun) -> str:
        """Start the run again, and wait until it is about to settle; returns its output if it ends before that."""
        context, result = past.context, past.result
        assert context is not None and result.role != UNKNOWN
        path = os.path.join(self.folder, past.run)
        files.replace_quickly(path + ".json", encoding.dump_json(self.records.recording(past)))
        if patch := self.records.patch(past):
            files.replace_quickly(path + ".patch", patch)
        asked_alone = clock.seconds_of(context.at if result.agents else result.at)
        self.show(asked_alone, result.seconds, clock.OPENS, past.run)
        env = {**os.environ, clock.RECORDED: f"{self.clock}-{past.run}", "HARNESS_RECORDING": path + ".json"}
        env |= {"HARNESS_ROLE": result.role, "HARNESS_RUN_ID": past.run, "FEATURE_ID": result.feature}
        env |= {"TRIGGER": context.trigger, "REASON": context.reason}
        again = context.started == "again" or context.before not in ("", "todo", "failing")
        commits = roles.capability_of(self.layout, result.role) == "commits"
        words = [result.feature] * bool(result.feature) + ["--again"] * (again and commits)
        self.pids[past.run] = self._spawn([self._script(result.role), *words], env, path + ".out")
        while not os.path.exists(f"{self.clock}-{past.run}{clock.REACHED}"):
            if self._ended(past.run):
                return (files.read_text(path + ".out") or "").strip() or "it ended without output"
            time.sleep(clock.POLL_SECONDS)
        self._date(past.run)
        return ""

    def _date(self, run: str) -> None:
        """Set the times of a settling run's receipts to the recorded ones, by which later runs order checks."""
        path, times = self.layout.run(run).receipts, dict[tuple[str, ...], list[str]]()
        for one in receipts.of_run(self.records.where, run):
            times.setdefault((one.claim, one.phase, one.command), []).append(one.at)
        found = receipts.load(path)
        for one in found:
            known = times.get((one.claim, one.phase, one.command))
            one.at = known.pop(0) if known else one.at
        if found:
            files.replace(path, receipts.render(found), files.PRIVATE)

    def settle(self, past: RecordedRun) -> None:
        """Settle the run and wait for its end; a run that was killed is killed and settled as a dead one."""
        if past.died:
            self.kill(past.run)
            self.show(clock.seconds_of(past.result.at))
            env = {**os.environ}
            self.pids["init"] = self._spawn([_PROGRAM, "init", "--quietly"], env, os.path.join(self.folder, "init.out"))
            self._await("init")
            return
        self.show(clock.seconds_of(past.result.at), past.result.seconds, clock.SETTLES, past.run)
        self._await(past.run)

    def kill(self, run: str) -> None:
        """End the process of a run as a power cut does."""
        if run in self.pids and not self._ended(run):
            os.kill(self.pids[run], signal.SIGKILL)
            self._await(run)

    def _script(self, role: str) -> str:
        own = os.path.join(self.layout.path(names.ROLES), f"{role}.py")
        return own if os.path.exists(own) else os.path.join(home(), "roles", f"{role}.py")

    def _spawn(self, words: list[str], env: dict[str, str], out: str) -> int:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            argv = [sys.executable, "-P", *words]
            pid = spawn.start(
                argv, cwd=self.layout.folders.project, env=env, stdin=os.devnull, stdout=descriptor, stderr=descriptor
            )
        finally:
            os.close(descriptor)
        supervise.spare(pid)
        return pid

    def _ended(self, run: str) -> bool:
        if not os.waitpid(self.pids[run], os.WNOHANG)[0]:
            return False
        supervise.unspare(self.pids.pop(run))
        return True

    def _await(self, run: str) -> None:
        while run in self.pids and not self._ended(run):
            time.sleep(clock.POLL_SECONDS)


_FOLDERS = {"XDG_STATE_HOME": "state", "HARNESS_IDENTITY": "identity", clock.RECORDED: "clock"}
_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")


def _ordered(past: RecordedRun, before: RecordedRun | None) -> bool:
    """Whether a person gave an order or restored a snapshot between two runs."""
    both = (before.after if before else {}, past.before)
    return any(length_of(both[0], name) != length_of(both[1], name) for name in (names.ORDERS, names.RESTORES))
