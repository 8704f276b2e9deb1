"""Where checks are fired, for which run, and how they are bounded."""

from __future__ import annotations

from harness.base.record import Record


class CheckEnvironment(Record):
    """Where checks are fired: the folder, what is checked out in it, for which run, and how they are bounded.

    `keep`: lock descriptors that the guardians hold. `ports`: the port of each service that is up. `fault`: why nothing
    can be fired here (a service is not ready), so that every receipt is red and says it. `notes` go into every receipt.
    """

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
