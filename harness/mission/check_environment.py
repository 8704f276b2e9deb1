"""The environment in which checks run."""

from __future__ import annotations

from typing import Any

from harness.base.record import Record
from harness.process.confine import Confinement


class CheckEnvironment(Record):
    """Where checks run: the folder, `checkout` (the working folder of git that it is a part of, "" where it is the whole), the
    commit and tree in it, the run they belong to, and their timeout. `keep`: lock
    descriptors that guardians inherit. `ports`: the port of each service that is up. `fault`: why no check can run here (a
    service is not ready); every receipt is then red with this reason. `notes` go into every receipt. `passed`: the
    variables with keys that checks get; `shown`: what of a person's HOME is there besides the list. `confinement`: what its
    programs may touch besides the folder, None for all; `home`: their HOME, "" for the user's; `git`: the only configuration
    file that their git reads besides the repository's, "" for the user's. `source`: the repository that has the commit, and that
    no check can write, "" for this one; `watch`: what looks after the files, None where nothing does; `writes`: files that checks
    may change. `plain`: nothing says that the harness runs the checks, and of its variables there are only those that they name
    and those in `needs`."""

    directory: str
    checkout: str = ""
    head: str = ""
    tree: str = ""
    by: str = "person"
    tag: str = "check"
    seconds: float = 600
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

    @property
    def root(self) -> str:
        """The working folder of git."""
        return self.checkout or self.directory

    def confined(self, *folders: str) -> Confinement | None:
        """The confinement of a program that writes in the working folder of git, in its HOME and in these."""
        own = [folder for folder in (self.root, self.home) if folder]
        if self.confinement and self.plain:
            own = [*map(self.confinement.seen, own)]
        return self.confinement and self.confinement.opened(*own, *folders)
