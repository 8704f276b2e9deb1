"""A run in progress: how it opened, which is fixed, and its outcome, which it writes at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Self

from harness.base import clock, encoding
from harness.base.errors import UsageFault
from harness.base.record import Json, Record
from harness.mission import contract, features, runs
from harness.mission.check_environment import CheckEnvironment, RemoteChecks
from harness.mission.config import Config
from harness.mission.contract import Claim, Contract
from harness.mission.features import Feature
from harness.mission.lease import Lease
from harness.mission.mission import Mission
from harness.mission.receipts import Receipt
from harness.mission.roles import Role
from harness.mission.runs import RunContext
from harness.mission.usage import Usage
from harness.process.confine import BUBBLEWRAP, Confinement
from harness.state import names, raw
from harness.state.layout import Layout, RunLayout
from harness.state.state import Changes, State

Verbs = dict[str, Callable[..., Iterable[str]]]  # of an inbox; each function yields texts for the agent's screen

MAX_NOTES = 10


class StartedRun(Record, frozen=True):
    """A started run, alive or dead: the layout of its mission, and its context."""

    layout: Layout
    context: RunContext

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.context.run

    @property
    def paths(self) -> RunLayout:
        """The files of the run."""
        return self.layout.run(self.context.run)

    @property
    def capability(self) -> str:
        """The capability for recovery, which reads the tree of a dead run only if its feature is in progress."""
        return "commits"

    @property
    def entered(self) -> bool:
        """Whether a person works in it, instead of an agent."""
        return self.context.trigger == runs.ENTERED

    @property
    def sealed(self) -> bool:
        """Whether the run's programs cannot have changed the mission's state."""
        return self.entered or self.context.confined == BUBBLEWRAP

    @property
    def checkout(self) -> str:
        """The git working folder of the run: its worktree, or for an older harness possibly the project's repository."""
        return self.context.folder or self.layout.folders.top

    @property
    def workplace(self) -> str:
        """The folder in which the agent works and checks run: the project's place in the checkout."""
        return self.layout.folders.within(self.checkout)

    @property
    def changes_tree(self) -> bool:
        """Whether the role may change the working directory."""
        return self.capability in ("commits", "answers")


class OpenRun(StartedRun, frozen=True):
    """A live run, its inputs and its outcome; also the argument of a role's script. `claims` are those of the feature at
    opening. `started` (monotonic), and the seconds `left` for its checks. `confinement`: of checks and services, None for none;
    `home`: their HOME, "" for the user's. `transcripts`: the folder of its transcripts, "" for that of the run. `mark`: the tag
    of its processes, "" for its id. `machine`: where it thinks and checks, None for here. `verbs`: more of its
    inbox, functions of the run and of a request's texts."""

    mission: Mission
    settings: Config
    role: Role
    claims: list[Claim]
    lease: Lease
    outcome: Outcome
    started: float
    left: float = float("inf")
    confinement: Confinement | None = None
    home: str = ""
    transcripts: str = ""
    mark: str = ""
    machine: RemoteChecks | None = None
    verbs: Verbs = {}

    @property
    def tag(self) -> str:
        """The tag of every process that this run starts."""
        return self.mark or f"{self.mission.id}/{self.id}"

    @property
    def capability(self) -> str:
        """The capability of its role, one of roles.CAPABILITIES or ""."""
        return self.role.capability

    @property
    def opened(self) -> OpenRun:
        """This run, whose fields cannot be assigned; for scripts of roles."""
        return self

    @property
    def reply(self) -> dict[str, Json] | None:
        """The reply of the agent; None if there is none."""
        return self.outcome.reply

    @property
    def keep(self) -> list[int]:
        """The descriptors of its lease, which its guardians inherit."""
        return self.lease.descriptors

    def place(self) -> CheckEnvironment:
        """The working folder as the check environment of this run. No time limit of the run ends checks of what an agent did."""
        made = place_of(self.layout, self.context, self.tag, self.settings, self.keep)
        made.until = made.until if self.outcome.agent else self.started + self.left
        return made.replace(confinement=self.confinement, home=self.home, machine=self.machine)

    def note(self, tag: str, text: str, feature: str = "") -> None:
        """Add an entry of this role for raw.md, written with the outcome; too long a line is shortened."""
        text = raw.one_line(text)
        if len(text) > raw.MAX_NOTE_CHARS:
            text = text[: raw.MAX_NOTE_CHARS - 1] + "…"
        entry = raw.rendered(self.role.name, feature or self.context.feature, [(tag, text)])
        self.outcome.changes.append(names.RAW, entry)

    def seconds(self) -> float:
        """The duration of the run so far."""
        return clock.elapsed(self.started)


class PromptFacts(Record):
    """What settling must know of the prompt: the SPEC.md in it, the ids of people's requests in it that a plan answers,
    and the computed operations that its agent is asked to confirm."""

    spec: str = ""
    requests: list[str] = []
    offer: str = ""


class AgentAnswer(Record):
    """What the agents of a run brought: the usage of each in turn; `until`: unix seconds when the vendor accepts requests
    again, 0 if unknown; {agent: unix seconds} of rate limits; why the only reply was refused; withheld variables that the
    output mentions, in words; the first line with which all commands failed."""

    usages: list[Usage] = []
    until: int = 0
    waits: dict[str, int] = {}
    reply_fault: str = ""
    not_passed: str = ""
    failing: str = ""


class TreeResult(Record):
    """The work of a run: its workplace as a `tree`; the paths `changed` by its commit, None if unknown; paths `kept_out` of
    the commit, `secrets` in words; names of `refused` changes; new files that git `ignored`, by rule."""

    tree: str = ""
    changed: list[str] | None = None
    kept_out: list[str] = []
    secrets: list[str] = []
    refused: list[str] = []
    ignored: list[str] = []


class LandingResult(Record):
    """How the work reached the mission: its `commit`; why the mission's branch is behind; paths there that a person, in their
    commit `theirs`, and runs changed; paths of this work that conflict with what landed meanwhile; workspace paths that a
    person must accept."""

    commit: str = ""
    unlanded: str = ""
    conflicts: list[str] = []
    theirs: str = ""
    clashes: list[str] = []
    unaccepted: list[str] = []


class CheckResults(Record):
    """What the checks of a run showed: receipts, signs of reward hacking, and why the contract's setup is red."""

    receipts: list[Receipt] = []
    signs: list[str] = []
    setup_fault: str = ""


class RoleDecision(Record):
    """What a role decided: the validator's verdict, newly proven claims and the state that a sweep judged; whether the
    planner's plan is accepted."""

    verdict: str = ""
    newly_green: int = 0
    sweep: dict[str, str] | None = None
    accepted: bool | None = None


class RoleFinding(Record):
    """The base of what a role finds out before it settles, one class per role that does."""


class Outcome(Record):
    """The outcome of a run, alive or dead. All changes land with the result, in `changes`: `features` (`feature` is the one of
    this run) by `save`, the contract when it is assigned, `issues` with their numbers. While the agent works, `features` are
    those at opening; `begin_changes` takes them as they are when the run settles.

    `ended` and `reason` go into the result; `idle`: the run died before anything ran, so no cap counts it. `messages` and
    `reply` come from the agent. Each of the other fields is the result of one step."""

    layout: Layout
    changes: Changes
    features: list[Feature] = []
    feature: Feature | None = None
    ended: str = "ok"
    reason: str = ""
    idle: bool = False
    issues: list[dict[str, Json]] = []
    messages: list[str] = []
    reply: dict[str, Json] | None = None
    prompt: PromptFacts
    answer: AgentAnswer
    work: TreeResult
    landing: LandingResult
    checks: CheckResults
    decision: RoleDecision
    finding: RoleFinding | None = None
    _contract: Contract | None = None
    _at: str = ""
    _queue_version: str = ""

    @classmethod
    def begun(cls, layout: Layout, tree: str) -> Self:
        """The outcome of a run that has done nothing yet; `tree`: its workplace."""
        return cls(
            layout=layout,
            changes=Changes(),
            prompt=PromptFacts(),
            answer=AgentAnswer(),
            work=TreeResult(tree=tree),
            landing=LandingResult(),
            checks=CheckResults(),
            decision=RoleDecision(),
        )

    @property
    def agent(self) -> str:
        """The last agent; "" if there was none."""
        return self.answer.usages[-1].agent if self.answer.usages else ""

    @property
    def contract(self) -> Contract:
        """The current contract, read once."""
        if self._contract is None:
            self._contract = contract.load(self.layout)
        return self._contract

    @contract.setter
    def contract(self, value: Contract) -> None:
        """Set the contract as of the end of the run."""
        self._contract = value
        self.changes.put(names.CONTRACT, contract.render(value).encode())

    def take_not_passed(self) -> None:
        """Move `not_passed` into the first line of the reason."""
        if self.answer.not_passed not in self.reason:
            first, *rest = self.reason.split("\n")
            self.reason = "\n".join(["; ".join(filter(None, [first, self.answer.not_passed])), *rest])

    def begin_changes(self) -> None:
        """Reset the changes, and read queue and contract from disk."""
        self.changes, self._contract, self._at = Changes(), None, clock.stamp(clock.now())
        found = State(self.layout).read(names.FEATURES)
        self._queue_version = found.version
        self.take_queue(
            features.parse(found.data, self.layout.path(names.FEATURES)), self.feature.id if self.feature else ""
        )

    @property
    def at(self) -> str:
        """The timestamp for everything that one settle writes, the same as in a replay."""
        return self._at or clock.stamp(clock.now())

    def take_queue(self, queue: list[Feature], feature: str) -> None:
        """Use these features; the one with this id, if any, is the feature of the run."""
        self.features, self.feature = queue, next((one for one in queue if one.id == feature), None)

    def save(self) -> None:
        """Stage the current features; the commit fails if they changed on disk since `begin_changes`."""
        self.changes.put(names.FEATURES, features.render(self.features), expect=self._queue_version or None)


def place_of(layout: Layout, context: RunContext, tag: str, settings: Config, keep: list[int]) -> CheckEnvironment:
    """The check environment of the run with this context, in its working folder."""
    run = StartedRun(layout=layout, context=context)
    environment = CheckEnvironment(directory=run.workplace, tag=tag, seconds=settings.check_seconds, keep=keep)
    environment.checkout = run.checkout if layout.folders.prefix else ""
    environment.passed, environment.writes, environment.needs = settings.passed, settings.writes, settings.needs
    return environment.replace(head=context.head, tree=context.tree, by=context.run, shown=settings.home)


def add_notes(layout: Layout, context: RunContext, notes: list[tuple[str, str]]) -> None:
    """Append an agent's notes to raw.md, and to the run's list, which limits their number. Raises UsageFault."""
    if not notes:
        return
    state, name = State(layout), names.of_run(context.run, names.NOTES)
    with state.lock_of(name):  # agents may add notes in parallel
        before = (state.data(name) or b"").count(b"\n")
        if before + len(notes) > MAX_NOTES:
            limit = f"A run may add {MAX_NOTES} notes; it has {before}"
            raise UsageFault(f"{limit}. Keep those most useful to the next run.")
        checked = [(tag, raw.checked(tag, text, in_run=True)) for tag, text in notes]
        raw.append(layout, context.role, context.feature, checked)
        state.add(name, b"".join(encoding.dump_json({"tag": tag, "text": text}) for tag, text in checked))
