"""The environment in which checks run."""

from __future__ import annotations

from typing import Protocol

from harness.base.record import Record
from harness.mission.contract import Check, Claim, Contract, Service
from harness.mission.receipts import Receipt
from harness.process.confine import Confinement


class CheckWatch(Protocol):
    """Watches the files of a check environment, which setup and checks may not change."""

    def begin(self) -> None:
        """Setup has ended: accept its files."""

    def begin_check(self, claim: str) -> None:
        """A check of this claim begins; "": the last one has ended."""

    def examined(self, receipt: Receipt) -> Receipt:
        """The receipt of the check that just ended, with the files that it changed."""


class RemoteChecks(Protocol):
    """Runs setup, services and checks on another machine, in the tree there. Methods raise MachineGone."""

    def setup(self, contract: Contract) -> str:
        """Run the contract's setup; why it is red, "" if it is green."""

    def watch(self, contract: Contract) -> None:
        """Watch the files there from now on."""

    def start_services(self, services: list[Service]) -> str:
        """Start the services; why one is not ready, "" if all are."""

    def end_services(self) -> None:
        """End the services."""

    def fire(self, check: Check, claim: Claim, phase: str, traced: bool) -> Receipt:
        """Run one check; its receipt, with its trace if `traced`."""

    def sweep(self, contract: Contract) -> tuple[list[Receipt], str]:
        """Run all checks in fresh clones: receipts, and why the setup is red."""

    def close(self) -> None:
        """End everything there."""


class CheckEnvironment(Record):
    """Where checks run: the folder, `checkout` (the git working folder that contains it, "" if it is the same), the
    commit and tree in it, their run, their timeout, and `until` when they may run (monotonic). `keep`: lock descriptors
    that guardians inherit. `ports`: the port of each service that is up. `fault`: why checks cannot run here (a service
    is not ready); every receipt is then red with this reason. `notes` go into every receipt. `passed`: the variables with
    keys that checks get; `shown`: additional visible paths of a person's HOME. `confinement`: of its programs, None for
    none; `home`: their HOME, "" for the user's; `git`: the only configuration file that their git reads besides the
    repository's, "" for the user's. `source`: the repository with the commit, which checks cannot write, "" for this one;
    `watch`: of its files, or None; `writes`: files that checks may change. `plain`: the environment does not reveal
    the harness, and has only variables that checks name or `needs` has. `machine`: where they run, None for here."""

    directory: str
    checkout: str = ""
    head: str = ""
    tree: str = ""
    by: str = "person"
    tag: str = "check"
    seconds: float = 600
    until: float = float("inf")
    keep: list[int] = []
    ports: dict[str, int] = {}
    fault: str = ""
    notes: list[str] = []
    confinement: Confinement | None = None
    home: str = ""
    git: str = ""
    passed: list[str] = []
    source: str = ""
    watch: CheckWatch | None = None
    writes: list[str] = []
    plain: bool = False
    needs: list[str] = []
    shown: list[str] = []
    machine: RemoteChecks | None = None

    @property
    def root(self) -> str:
        """The git working folder."""
        return self.checkout or self.directory

    def confined(self, *folders: str) -> Confinement | None:
        """The confinement of a program that writes in the git working folder, in its HOME and in these folders."""
        own = [folder for folder in (self.root, self.home) if folder]
        if self.confinement and self.plain:
            own = [*map(self.confinement.seen, own)]
        return self.confinement and self.confinement.opened(*own, *folders)
