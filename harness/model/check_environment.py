"""The environment in which checks run."""

from __future__ import annotations

from harness.base.record import Record
from harness.process.confine import Confinement


class CheckEnvironment(Record):
    """Where checks run: the folder, `checkout` (the working folder of git that it is a part of, "" where it is the whole), the
    commit and tree in it, the run they belong to, and their timeout. `keep`: lock
    descriptors that guardians inherit. `ports`: the port of each service that is up. `fault`: why no check can run here (a
    service is not ready); every receipt is then red with this reason. `notes` go into every receipt. `passed`: the
    variables with keys that checks get; `shown`: what of a person's HOME is there besides the list. `confinement`: what its
    programs may touch besides the folder, None for all; `home`: their HOME, "" for the user's; `git`: the only configuration
    file that their git reads besides the repository's, "" for the user's."""

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
    shown: list[str] = []

    @property
    def root(self) -> str:
        """The working folder of git."""
        return self.checkout or self.directory

    def confined(self, *folders: str) -> Confinement | None:
        """The confinement of a program that writes in the working folder of git, in its HOME and in these."""
        own = [folder for folder in (self.root, self.home) if folder]
        return self.confinement and self.confinement.opened(*own, *folders)
