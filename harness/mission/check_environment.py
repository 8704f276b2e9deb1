"""The environment in which checks run."""

from __future__ import annotations

from typing import Any

from harness.base.record import Record
from harness.process.confine import Confinement


class CheckEnvironment(Record):
    """Where checks run: the folder, `checkout` (the git working folder that contains it, "" if it is the same), the
    commit and tree in it, their run, their timeout, and `until` when they may run (monotonic). `keep`: lock descriptors
    that guardians inherit. `ports`: the port of each service that is up. `fault`: why checks cannot run here (a service
    is not ready); every receipt is then red with this reason. `notes` go into every receipt. `passed`: the variables with
    keys that checks get; `shown`: additional visible paths of a person's HOME. `confinement`: of its programs, None for
    none; `home`: their HOME, "" for the user's; `git`: the only configuration file that their git reads besides the
    repository's, "" for the user's. `source`: the repository with the commit, which checks cannot write, "" for this one;
    `watch`: the watcher of files, or None; `writes`: files that checks may change. `plain`: the environment does not reveal
    the harness, and has only variables that checks name or `needs` has. `machine`: the lane's, where they run, or None."""

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
    watch: Any = None
    writes: list[str] = []
    plain: bool = False
    needs: list[str] = []
    shown: list[str] = []
    machine: Any = None

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
