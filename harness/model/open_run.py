"""The run that is under way: what it was opened with, what happened to it, and what it will write when it settles."""

from __future__ import annotations

import os
import time

from harness.base import clock
from harness.base.errors import UsageFault
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
from harness.store import files, journal
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harness.model.check_environment import Place
    from harness.store.files import Lock

MOST_NOTES = 10


class Run:
    """One run. Role scripts read `feature`, `features`, `contract`, `receipts` and change them; what they change is
    written by `save`, in the one journal with which the run closes. `claims` are the feature's as they were at open.
    `held` and `parsed` are what reconcile knows of the state from before the agent, contents by path and stamps of the
    cache; no agent can write them. `usages`: what each agent that was asked told that it used, in turn; `until`: when a
    vendor that lets nobody in said to come back, in unix seconds, 0 where it did not say. `setup_fault`: why the contract's
    setup is red; `seen`: issues that get their numbers when the run closes. `locks` are held while it lives, by `keep` also in
    its guardians. `yielded`: None, or names of what could not be put back after it died, and that a person lets stand.
    """

    def __init__(
        self,
        layout: Layout,
        mission: Mission,
        settings: Config,
        role: Role,
        context: Context,
        queue: list[Feature] | None = None,
    ) -> None:
        self.layout, self.mission, self.settings, self.role, self.context = layout, mission, settings, role, context
        self.id = context.run
        self.paths = layout.run(context.run)
        self.features: list[Feature] = features.load(layout) if queue is None else queue
        self.feature = features.find(self.features, context.feature) if context.feature and self.features else None
        self.journal = journal.Journal(layout)
        self.locks: list[Lock] = []
        self.keep: list[int] = []
        self.yielded: list[str] | None = None
        self.held: dict[str, bytes] = {}
        self.parsed: dict[str, list[int]] = {}
        self.started = time.monotonic()
        self.agent = ""
        self.outcome, self.reason, self.verdict, self.commit = "ok", "", "", ""
        self.newly_green = 0
        self.accepted: bool | None = None
        self.sweep: dict[str, str] | None = None
        self.usages: list[Usage] = []
        self.until = 0
        self.waits: dict[str, int] = {}
        self.stable_bytes = 0
        self.kept_out: list[str] = []
        self.refused: list[str] = []
        self.receipts: list[Receipt] = []
        self.messages: list[str] = []
        self.reply: dict[str, Any] | None = None
        self.signs: list[str] = []
        self.setup_fault = ""
        self.seen: list[dict[str, Any]] = []
        self.tree = context.tree
        self.claims: list[Claim] = []
        self._contract: Contract | None = None

    @property
    def contract(self) -> Contract:
        """The contract as it stands, read once."""
        if self._contract is None:
            self._contract = contract.load(self.layout)
        return self._contract

    @contract.setter
    def contract(self, value: Contract) -> None:
        """The contract as it will stand once the run has closed."""
        self._contract = value
        self.journal.replace(self.layout.contract, contract.render(value).encode())

    @property
    def tag(self) -> str:
        """What marks every process that this run starts."""
        return f"{self.mission.id}/{self.id}"

    @property
    def changes_tree(self) -> bool:
        """Whether the working directory is this role's to change."""
        return self.role.commits

    @property
    def at(self) -> str:
        """Now, as it is written."""
        return clock.stamp(clock.now())

    def place(self) -> Place:
        """The working folder as a place for checks, for this run."""
        return place_of(self.layout, self.context, self.tag, self.settings.check_seconds, self.keep)

    def save(self) -> None:
        """Put the features as they now stand into the journal."""
        self.journal.replace(self.layout.features, features.render(self.features))

    def note(self, tag: str, text: str, feature: str = "") -> None:
        """Append one entry to raw.md in this role's name; too long a line is shortened."""
        text = raw.one_line(text)
        if len(text) > raw.LONGEST:
            text = text[: raw.LONGEST - 1] + "…"
        raw.append(self.layout, self.role.name, feature or self.context.feature, [(tag, text)])

    def noted(self, notes: list[tuple[str, str]]) -> None:
        """Append an agent's notes; raises UsageFault where there would be more than MOST_NOTES in this run."""
        add_notes(self.layout, self.context, notes)

    def add_issues(self, given: list[dict[str, Any]]) -> None:
        """Issues that a reply carries, or that the run saw itself: on disk with its result."""
        self.seen += given

    def seconds(self) -> float:
        """How long the run has taken."""
        return round(time.monotonic() - self.started, 3)


def place_of(layout: Layout, context: Context, tag: str, seconds: int, keep: list[int]) -> Place:
    """The working folder as a place for checks, as the run with this context saw it at open."""
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
