"""The lease of a run: its claims while it is open, and its reservations of the caps.

A claim (a feature, the plan, the curation, the sweep, a tree) has one live holder. The lease is a lock on its own file
and on the run's folder, which no honest agent removes; the run's guardians inherit both, so it ends with the last
process of the run. The file lists the claims. Leases are made only under the mission lock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from harness.base.errors import BrokenFile, LockBusy
from harness.base.record import Record
from harness.mission import runs
from harness.state import files
from harness.state.folder_lock import FolderLock
from harness.state.layout import Layout

READS, READ_SECONDS = 5, 0.002
PLAN, CURATION, SWEEP = "the plan", "the curation", "the final sweep"


class Terms(Record):
    """The content of a lease: the run, its process and start; its feature and tree; its claims; its reservations of the caps
    on cost and tokens (at least what it has used). `sealed`: the run's programs cannot change the mission's state. `machine`:
    where it works, "" for here."""

    run: str
    role: str
    pid: int
    since: str
    feature: str = ""
    tree: str = ""
    claims: list[str] = []
    cost_usd: float = 0.0
    tokens: int = 0
    sealed: bool = True
    machine: str = ""


class Lease:
    """The lease of this process's run. `descriptors` keep it while any copy of them is open."""

    def __init__(self, layout: Layout, terms: Terms) -> None:
        paths = layout.run(terms.run)
        self.layout, self.terms = layout, terms
        self.file, self.folder = files.Lock(paths.lock), FolderLock(paths.folder)

    def take(self) -> None:
        """Take the lease; the run's folder exists. Its claims are readable before any process can find it free."""
        self.file.take(wait=True)
        self.folder.take(wait=True)
        self.sign()

    def sign(self, **changed: Any) -> None:
        """Write the terms, with these changed."""
        self.terms = self.terms.replace(**changed)
        self.file.sign(self.terms.asdict())

    @property
    def descriptors(self) -> list[int]:
        """The descriptors for guardians."""
        return [one for one in (self.file.descriptor, self.folder.descriptor) if one >= 0]

    def release(self) -> None:
        """Release the lease; live guardians keep it."""
        self.file.release()
        self.folder.release()


def feature(name: str) -> str:
    """The claim of a feature."""
    return f"feature {name}"


def tree(name: str) -> str:
    """The claim of a tree."""
    return f"tree {name}"


def alive(layout: Layout) -> list[Terms]:
    """The terms of the live runs."""
    return [terms_of(layout, name) for name in runs.open_runs(layout) if not runs.is_dead(layout, name)]


def terms_of(layout: Layout, run_id: str) -> Terms:
    """The terms of an open run; only the id if they are unreadable."""
    for _ in range(READS):
        try:
            row = json.loads(files.read(layout.run(run_id).lock) or b"")
            return Terms(**{"role": "", "pid": 0, "since": "", **row} | {"run": run_id})
        except (ValueError, TypeError, BrokenFile):
            time.sleep(READ_SECONDS)  # it is being written, or damaged
    return Terms(run=run_id, role="", pid=0, since="")


def holder(live: Iterable[Terms], claim: str) -> Terms | None:
    """The holder of a claim, or None."""
    return next((one for one in live if claim in one.claims), None)


def require_free(live: Iterable[Terms], claim: str) -> None:
    """Raise LockBusy with the holder of the claim, and since when."""
    found = holder(live, claim)
    if found:
        words = f"run {found.run}, pid {found.pid}, since {found.since}"
        raise LockBusy(f"Another run holds {claim}: {words}. Wait for it to end, or stop it, then try again.")


def is_alone(layout: Layout, run_id: str = "") -> bool:
    """Whether no other run is open."""
    return all(name == run_id or runs.is_dead(layout, name) for name in runs.open_runs(layout))


def claims_of(capability: str, feature_id: str) -> list[str]:
    """The claims of a run of a role with this capability, besides its tree."""
    if capability in ("plans", "specifies"):
        return [PLAN]
    if capability == "curates":
        return [CURATION]
    if capability in ("commits", "judges"):
        return [feature(feature_id)] if feature_id else [SWEEP]
    return []
