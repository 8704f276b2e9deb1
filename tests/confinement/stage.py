"""A stage for attempts to break out: a child, confined as an agent is, attempts all that is forbidden, in a mission of its own.

    python stage.py FOLDER TIER

prints a line for each attempt, and ends with 1 if something worked that this tier refuses.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))  # also started as a program

from harness.base import clock, encoding
from harness.base.errors import NEEDS_PERSON, USAGE, HarnessError, Unavailable
from harness.base.record import Record
from harness.commands.setup import agent_probe
from harness.commands.setup.agent_probe import Finding
from harness.git import dotgit, repository
from harness.git.checkouts import worktrees
from harness.mission import config, contract, features, mission, runs
from harness.mission.contract import Claim, Contract
from harness.mission.features import Feature
from harness.process import supervise, temporary, tree
from harness.process.confine import BUBBLEWRAP, Confinement
from harness.run import starting
from harness.run.requests import verbs
from harness.state import files, names, raw
from harness.state.layout import Layout, identity_file
from harness.workplace import confine, environment, home_layer, inbox, workplace
from tests.confinement import attempts, forbidden
from tests.confinement.forbidden import Attempt, Stage

REFUSALS = (f"exit {USAGE}", f"exit {NEEDS_PERSON}")  # 11: it cannot read the state folder of its person
ALL_SECONDS = 600.0
GONE_SECONDS = 10.0  # half of what they would live
SECRET = b"of another mission\n"


class Answer(Record):
    """What became of an attempt: the program's own words, and the device of the folder that it changed, 0 for none."""

    number: int
    worked: bool
    why: str
    device: int


class Report(Record):
    """All answers by the number of their attempt, how long survivors lived after the end (None: longer than they may), and
    the paths of state and git folder that are not as they were."""

    answers: dict[int, Answer]
    gone_seconds: float | None
    changed: list[str]


def tried(folder: str, how: str, trust: str = "workspace", hole: str = "") -> list[Finding]:
    """A line for each attempt of an agent of this trust, behind this tier; `hole`: what of the mission's
    state it may write all the same."""
    trees: list[str] = []
    try:
        there = begin(os.path.join(folder, "try"))
        with Set(there, trees) as made:
            stage = made.stage
            glass = confine.of_mission(there, config.load(there).replace(trust=trust), stage.tree, how)
            assert glass is not None, "there is a tier"
            home = [] if trust == "full" else [confine.home_of_agent(there.folders.top, stage.tree)]
            writable = [stage.tree, stage.room, *home, *([os.path.join(there.state, hole)] if hole else [])]
            glass = confine.of_agent(there, glass, writable, trust, ())
            todo, report = carry_out(stage, glass, trust)
            return [*judged(todo, report, how), _own_git(stage)]
    finally:
        for path in trees:
            temporary.remove(path)


def begin(project: str) -> Layout:
    """A mission with something to do for each of a person's commands."""
    claim = Claim(id=forbidden.MANUAL, text="It looks right", manual=True)
    blocked = [Feature(id=name, title="Try", claims=[claim.id], status="blocked") for name in forbidden.BLOCKED]
    there = agent_probe.begin(project)
    files.replace(there.folders.asked_spec, b"# Try\n")
    starting.start(there)
    files.replace(there.path(names.SPEC), b"# Try\n")
    files.replace(there.path(names.CONTRACT), contract.render(Contract(claims=[claim])).encode())
    files.replace(there.path(names.FEATURES), features.render(blocked))
    verbs.issue(there, {"title": "Try", "severity": "minor"}, "person")
    raw.append(there, "person", "", [("CONTEXT", "a note before the trial")])
    line = f"- [2026-04-24] {forbidden.KNOWN} (missions: try · 1x)\n"
    files.replace(identity_file(forbidden.identity_of(there), "try"), f"# try\n{line}".encode())
    return there


class Set:
    """The stage of the attempts, as a context manager. `trees` gets the folders outside the project that are to be removed."""

    def __init__(self, there: Layout, trees: list[str]) -> None:
        self.there, self.trees = there, trees
        self.listener = -1
        self.socket = ""

    def __enter__(self) -> Set:
        made, folder = mission.load(self.there), os.path.dirname(self.there.folders.project)
        workplace.use(self.there)
        another = f"{workplace.folder_of(f'{made.id}-another')}/secret"
        self.trees += [os.path.dirname(workplace.folder_of(made.id)), os.path.dirname(os.path.dirname(another))]
        files.replace(another, SECRET)
        run_id, run = runs.make(self.there, runs.new_id("try", "", clock.now()))
        files.replace(run.prompt, b"Try.\n")
        files.replace(run.refused + "/features.json", files.read(self.there.path(names.FEATURES)) or b"")
        room = temporary.create("agent", f"try-{os.getpid()}")
        self.trees.append(room)
        tip = workplace.bring(self.there, made, workplace.TREES + "1")
        workplace.prepare(self.there, tip, ())
        self.stage = Stage(
            there=self.there,
            tree=tip.folder,
            room=room,
            run_id=run_id,
            another=another,
            socket=self._listen(),
            marker=os.path.join(folder, "marker"),
            fifo=os.path.join(room, "fifo"),
            crontab=_crontab(),
        )
        os.mkfifo(self.stage.fifo)
        common = dotgit.folders(self.there.folders.top)[1]
        for folder in (
            *(os.path.join(common, name) for name in ("hooks", "info", "objects/info")),
            self.there.path(names.ROLES),
        ):
            files.make_folder(folder)
        return self

    def _listen(self) -> str:
        """A socket where those of a person's services are; "" where this user may make none."""
        import socket

        for folder in filter(os.path.isdir, (os.environ.get("XDG_RUNTIME_DIR", ""), "/run")):
            path, listener = os.path.join(folder, f"harness-try-{os.getpid()}.sock"), socket.socket(socket.AF_UNIX)
            try:
                listener.bind(path)
            except OSError:
                listener.close()
                continue
            listener.listen()
            self.listener, self.socket = listener.detach(), path
            return path
        return ""

    def __exit__(self, *_: object) -> None:
        if self.socket:
            os.close(self.listener)
            files.remove(self.socket)


def _crontab() -> str | None:
    """The person's crontab, "" if it is empty; None without the program, or where it fails."""
    try:
        code, out, err = supervise.capture(["crontab", "-l"], cwd="/", wall_seconds=10)
    except (Unavailable, TimeoutError):
        return None
    return out.decode("utf-8", "surrogateescape") if code == 0 else "" if b"no crontab" in err else None


def _note(tag: str, text: str) -> Iterable[str]:
    return ()


def carry_out(stage: Stage, glass: Confinement | None, trust: str) -> tuple[list[Attempt], Report]:
    """Start the program confined as an agent, give it the attempts once there are processes to aim at, and collect."""
    plan, lines = os.path.join(stage.room, "plan"), bytearray()
    held = os.open(stage.fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    before = _state(stage)
    try:
        with (
            inbox.Inbox(stage.run.inbox, {"note": _note}) as listening,
            supervise.Child(
                [sys.executable, "-I", "-S", attempts.__file__, plan],
                cwd=stage.tree,
                env=surroundings(stage, trust),
                wall_seconds=ALL_SECONDS,
                grace_seconds=0.0,
                merge=True,
                confine=glass,
            ) as child,
        ):
            guardian = int(tree.stat(child.pid)[1])
            ours = {"the run": os.getpid(), forbidden.GUARDIAN: guardian, "its inbox": listening.pid}
            todo = forbidden.attempts(stage.replace(processes=ours), glass.tier if glass else BUBBLEWRAP)
            files.replace(plan, json.dumps([one.words for one in todo]).encode())
            for _, chunk in child.output():
                lines += chunk
                _save_when_asked(stage)
        gone = _gone_seconds(held)
    finally:
        os.close(held)
    changed = [name for name, digest in {**_state(stage), **before}.items() if _state(stage).get(name) != digest]
    return todo, Report(answers=_answers(bytes(lines)), gone_seconds=gone, changed=changed)


def surroundings(stage: Stage, trust: str) -> dict[str, str]:
    """The environment of an agent in this run."""
    tag = f"{mission.load(stage.there).id}/{stage.run_id}"
    made = environment.of_agent(os.environ, tag, stage.there, stage.run_id)
    if trust != "full":
        home = confine.home_of_agent(stage.there.folders.top, stage.tree)
        made = home_layer.variables(made, home, os.path.expanduser("~"))
    return {**made, "TMPDIR": stage.room}


def _save_when_asked(stage: Stage) -> None:
    """Replace a file of the project and git's configuration by a rename, as an editor and `git config` do."""
    go = os.path.join(stage.room, "go")
    if os.path.exists(os.path.join(stage.room, "ready")) and not os.path.exists(go):
        common = os.path.abspath(dotgit.folders(stage.there.folders.top)[1])
        for path in (stage.there.folders.asked_spec, common + "/config"):
            files.replace(path, files.read(path) or b"")
        files.replace(go, b"")


def _gone_seconds(held: int, most: float = GONE_SECONDS) -> float | None:
    """How long the FIFO is still held open by somebody; None where it is longer than it may be."""
    began, poller = time.monotonic(), select.poll()
    poller.register(held, select.POLLIN)
    while (waited := time.monotonic() - began) < most:
        if any(events & select.POLLHUP for _, events in poller.poll(50)):
            return waited
    return None


def _answers(lines: bytes) -> dict[int, Answer]:
    rows = (json.loads(line) for line in lines.split(b"\n") if line.startswith(b'{"number"'))
    return {row["number"]: Answer(**row) for row in rows}


def _state(stage: Stage) -> dict[str, str]:
    """{path: digest} of the files of the mission's state and of the git folder, without caches, locks and the inbox."""
    common, there = os.path.abspath(dotgit.folders(stage.there.folders.top)[1]), stage.there
    spared, found = (there.cache, there.path(names.LOCKS), stage.run.inbox), dict[str, str]()
    for top in (there.state, common):
        for folder, _, held in os.walk(top):
            paths = [] if folder in spared else [os.path.join(folder, name) for name in held]
            found |= {path: encoding.digest(files.read(path) or b"") for path in paths if os.path.isfile(path)}
    return found


def judged(todo: list[Attempt], report: Report, tier: str) -> Iterator[Finding]:
    """A line for each attempt, and for what can only be seen from outside."""
    for number, one in enumerate(todo):
        answer = report.answers.get(number)
        if answer is None:
            yield Finding(state="bad", what=f"no answer: {one.what}; the program that tries it ended before")
        elif one.words[0] == "survive" and answer.worked:
            yield _survived(one, report.gone_seconds)
        else:
            yield _judged(one, answer, tier)
    shown = ", ".join(report.changed[:5])
    yield Finding(
        state="bad" if shown else "ok",
        what=f"changed: {shown}" if shown else "state and git folder are as they were before",
    )


def _judged(one: Attempt, answer: Answer, tier: str) -> Finding:
    elsewhere = one.words[1:] and answer.device not in (0, _device(one.words[1]))
    worked = answer.worked and not elsewhere
    if one.allowed:
        return Finding(state="ok", what=f"allowed: {one.what}") if worked else _bad(f"not possible: {one.what}", answer)
    if not worked and one.words[0].startswith("order") and not answer.why.startswith(REFUSALS):
        return _bad(f"failed, and was not refused: {one.what}", answer)
    if not worked:
        why = "only in a folder that it alone sees" if elsewhere else answer.why
        return Finding(state="ok", what=f"refused: {one.what} ({why})")
    if tier in one.tiers:
        return _bad(f"worked: {one.what}", answer)
    return Finding(state="note", what=f"not refused on this tier: {one.what}")


def _bad(what: str, answer: Answer) -> Finding:
    return Finding(state="bad", what=what + (f" ({answer.why})" if answer.why else ""))


def _device(path: str) -> int:
    try:
        return os.stat(os.path.dirname(path)).st_dev
    except OSError:
        return 0


def _survived(one: Attempt, gone_seconds: float | None) -> Finding:
    if gone_seconds is None:
        return Finding(state="bad", what=f"alive {GONE_SECONDS:.0f} s after the end: {one.what}")
    return Finding(state="ok", what=f"gone {gone_seconds:.2f} s after the end: {one.what}")


def _own_git(stage: Stage) -> Finding:
    """What our git does with a tree whose git folder the child replaced."""
    project, head = stage.there.folders.top, workplace.position(stage.there).head
    try:
        worktrees.join(project, stage.tree, head)
        repository.untracked(stage.tree)
        worktrees.ensure(project, stage.tree, head, keep=True)
        repository.state(project)
    except HarnessError as fault:
        return Finding(state="bad", what=f"our git cannot work in the tree again: {fault}")
    if os.path.exists(stage.marker):
        return Finding(state="bad", what="our git ran a program that the child had configured in its tree")
    return Finding(state="ok", what="refused: programs configured in its tree's git folder (our git ran none)")


def main(folder: str, how: str) -> int:
    """As the text above says."""
    found = tried(folder, how)
    sys.stdout.write("".join(f"{one.state:<6}{one.what}\n" for one in found))
    return int(any(one.state == "bad" for one in found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
