"""The environment in which checks run."""

from __future__ import annotations

from harness.base.record import Record


class CheckEnvironment(Record):
    """Where checks run: the folder, the commit and tree in it, the run they belong to, and their timeout. `keep`: lock
    descriptors that guardians inherit. `ports`: the port of each service that is up. `fault`: why no check can run here (a
    service is not ready); every receipt is then red with this reason. `notes` go into every receipt. `passed`: the
    variables with keys that checks get."""

    directory: str
    head: str = ""
    tree: str = ""
    by: str = "person"
    tag: str = "check"
    seconds: float = 600
    keep: list[int] = []
    ports: dict[str, int] = {}
    fault: str = ""
    notes: list[str] = []
    passed: list[str] = []
