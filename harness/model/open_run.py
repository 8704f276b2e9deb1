"""A run under way: how it opened, which does not change, and its outcome, which it writes when it closes."""

from __future__ import annotations

import os
import time

from harness.base import clock
from harness.base.errors import UsageFault
from harness.base.record import Record
from harness.memory import raw
from harness.model import contract, features, runs
from harness.model.config import Config
from harness.model.contract import Claim, Contract
from harness.model.features import Feature
from harness.model.mission import Mission
from harness.model.receipts import Receipt
from harness.model.roles import Role
from harness.model.runs import Context
from harness.model.usage import Usage
from harness.store import files
from harness.store.files import Lock
from harness.store.journal import Journal
from harness.store.layout import Layout, RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harness.model.check_environment import Place

MOST_NOTES = 10


class PreImages(Record, frozen=True):
    """The state before the agent, in memory, where no agent can write: contents by path, and of files that can be made
    again `stamps` (inode, bytes, change time)."""

    contents: dict[str, bytes] = {}
    stamps: dict[str, list[int]] = {}


class Begun(Record, frozen=True):
    """A run that has begun, alive or dead: its mission's folder, and how it opened."""

    layout: Layout
    context: Context

    @property
    def id(self) -> str:
        """The run's id."""
        return self.context.run

    @property
    def paths(self) -> RunLayout:
        """The run's own files."""
        return self.layout.run(self.context.run)

    @property
    def capability(self) -> str:
        """A dead run's tree is looked at only where its feature is in progress, as a role that commits leaves it."""
        return "commits"

    @property
    def changes_tree(self) -> bool:
        """Whether the working directory is this role's to change."""
        return self.capability == "commits"


class OpenRun(Begun, frozen=True):
    """A run that lives, and what it was opened with. `claims` are the feature's as they were at open. `locks` are held while
    it lives, by `keep` (their descriptors) also in its guardians; `started` is on the monotonic clock."""

    mission: Mission
    settings: Config
    role: Role
    claims: list[Claim]
    locks: list[Lock]
    keep: list[int]
    before: PreImages
    started: float

    @property
    def tag(self) -> str:
        """What marks every process that this run starts."""
        return f"{self.mission.id}/{self.id}"

    @property
    def capability(self) -> str:
        """What its role may do, one of roles.CAPABILITIES or ""."""
        return self.role.capability

    def place(self) -> Place:
        """The working folder as the environment of checks, for this run."""
        return place_of(self.layout, self.context, self.tag, self.settings.check_seconds, self.keep)

    def note(self, tag: str, text: str, feature: str = "") -> None:
        """Append one entry to raw.md in this role's name; too long a line is shortened."""
        text = raw.one_line(text)
        if len(text) > raw.LONGEST:
            text = text[: raw.LONGEST - 1] + "…"
        raw.append(self.layout, self.role.name, feature or self.context.feature, [(tag, text)])

    def seconds(self) -> float:
        """How long the run has taken."""
        return round(time.monotonic() - self.started, 3)


class Outcome(Record):
    """What becomes of a run, alive or dead. All that it changes lands with its result, in `journal`: `features` (`feature`
    is the run's own, one of them) by `save`, the contract when it is assigned, `issues` with their numbers.

    `ended` and what follows it go into the result. `usages`: what each agent that was asked used, in turn; `until`: when
    to ask the vendor again, in unix seconds, 0 where it did not say. `tree`: the working folder as a tree. `messages` and
    `reply` come from the agent, `receipts`, `signs` and `setup_fault` (why the contract's setup is red) from checks.
    """

    journal: Journal
    features: list[Feature] = []
    feature: Feature | None = None
    ended: str = "ok"
    reason: str = ""
    verdict: str = ""
    commit: str = ""
    newly_green: int = 0
    accepted: bool | None = None
    sweep: dict[str, str] | None = None
    usages: list[Usage] = []
    until: int = 0
    waits: dict[str, int] = {}
    kept_out: list[str] = []
    refused: list[str] = []
    tree: str = ""
    issues: list[dict[str, Any]] = []
    messages: list[str] = []
    reply: dict[str, Any] | None = None
    receipts: list[Receipt] = []
    signs: list[str] = []
    setup_fault: str = ""
    _contract: Contract | None = None

    @property
    def agent(self) -> str:
        """The agent that was asked last; "" where none was."""
        return self.usages[-1].agent if self.usages else ""

    @property
    def contract(self) -> Contract:
        """The contract as it is, read once."""
        if self._contract is None:
            self._contract = contract.load(self.journal.layout)
        return self._contract

    @contract.setter
    def contract(self, value: Contract) -> None:
        """The contract as it will be once the run has closed."""
        self._contract = value
        self.journal.replace(self.journal.layout.contract, contract.render(value).encode())

    @property
    def at(self) -> str:
        """Now, as it is written."""
        return clock.stamp(clock.now())

    def take_queue(self, queue: list[Feature], feature: str) -> None:
        """Take these features, and the one with this id as the run's own, where it is among them."""
        self.features, self.feature = queue, next((one for one in queue if one.id == feature), None)

    def save(self) -> None:
        """Put the features as they now are into the journal."""
        self.journal.replace(self.journal.layout.features, features.render(self.features))


class Run(Record, frozen=True):
    """What a role's script is given: what the run was opened with, and the outcome that the script decides."""

    opened: OpenRun
    outcome: Outcome

    @property
    def reply(self) -> dict[str, Any] | None:
        """The agent's reply; None where there is none."""
        return self.outcome.reply


def place_of(layout: Layout, context: Context, tag: str, seconds: int, keep: list[int]) -> Place:
    """The working folder as the environment of checks, as the run with this context found it at open."""
    from harness.model.check_environment import Place  # only runs that fire checks pay for it

    return Place(
        directory=layout.project,
        head=context.head,
        tree=context.tree,
        by=context.run,
        tag=tag,
        seconds=seconds,
        keep=keep,
    )


def add_notes(layout: Layout, context: Context, notes: list[tuple[str, str]]) -> None:
    """Append notes that an agent makes in its run: to raw.md, and to the run's own list, which counts them."""
    if not notes:
        return
    path = layout.run(context.run).notes
    with files.Lock(path):  # of agents that note in parallel each must be counted
        before = (files.read(path) or b"").count(b"\n")
        if before + len(notes) > MOST_NOTES:
            raise UsageFault(
                f"A run may note {MOST_NOTES} entries; {before} are noted. Keep what the next stranger needs most."
            )
        checked = [(tag, raw.checked(tag, text, in_run=True)) for tag, text in notes]
        raw.append(layout, context.role, context.feature, checked)
        rows = b"".join(files.dump_json({"tag": tag, "text": text}) for tag, text in checked)
        files.add_line(path, rows)


def live_context(layout: Layout, run_id: str) -> Context:
    """The context of a run that is under way; UsageFault where it is over or never was."""
    context = runs.context(layout, run_id)
    if os.path.exists(layout.run(run_id).result):
        raise UsageFault(f"The run {run_id} is over: nothing can be added to it.")
    return context
