"""The lease of a run: what it claims while it lives, and what it reserves of the caps.

A claim (a feature, the plan, the curation, the sweep, a tree) has one live holder. The lease is a lock on a file of its own
and on the folder of the run, which no honest agent removes; the run's guardians inherit both, so it is gone when the last
process of the run is. The file says what is claimed. Leases are made under the mission lock only.
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
    """What a lease says: the run, its process, since when; its feature and its tree; what it claims; what it reserves of the
    caps on cost and tokens (at least what it has used already). `sealed`: nothing that the run starts can change the mission's
    state."""

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


class Lease:
    """The lease of this process's run. `descriptors` keep it while any copy of them is open."""

    def __init__(self, layout: Layout, terms: Terms) -> None:
        paths = layout.run(terms.run)
        self.layout, self.terms = layout, terms
        self.file, self.folder = files.Lock(paths.lock), FolderLock(paths.folder)

    def take(self) -> None:
        """Hold it; the folder of the run exists. What it claims can be read before anybody can find it free."""
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
        """Let go; guardians that still live keep it."""
        self.file.release()
        self.folder.release()


def feature(name: str) -> str:
    """The claim of a feature."""
    return f"feature {name}"


def tree(name: str) -> str:
    """The claim of a tree."""
    return f"tree {name}"


def alive(layout: Layout) -> list[Terms]:
    """The terms of the runs that live."""
    return [terms_of(layout, name) for name in runs.open_runs(layout) if not runs.is_dead(layout, name)]


def terms_of(layout: Layout, run_id: str) -> Terms:
    """What the lease of an open run says; the bare id where nothing can be read."""
    for _ in range(READS):
        try:
            row = json.loads(files.read(layout.run(run_id).lock) or b"")
            return Terms(**{"role": "", "pid": 0, "since": "", **row} | {"run": run_id})
        except (ValueError, TypeError, BrokenFile):
            time.sleep(READ_SECONDS)  # it is being written, or somebody spoilt it
    return Terms(run=run_id, role="", pid=0, since="")


def holder(live: Iterable[Terms], claim: str) -> Terms | None:
    """Who holds a claim; None where nobody does."""
    return next((one for one in live if claim in one.claims), None)


def require_free(live: Iterable[Terms], claim: str) -> None:
    """Raises Busy with who holds the claim, and since when."""
    found = holder(live, claim)
    if found:
        words = f"run {found.run}, pid {found.pid}, since {found.since}"
        raise LockBusy(f"Another run holds {claim}: {words}. Wait for it to end, or stop it, then try again.")


def is_alone(layout: Layout, run_id: str = "") -> bool:
    """Whether no run lives but this one."""
    return all(name == run_id or runs.is_dead(layout, name) for name in runs.open_runs(layout))


def claims_of(capability: str, feature_id: str) -> list[str]:
    """What a run of a role with this capability claims besides its tree."""
    if capability == "plans":
        return [PLAN]
    if capability == "curates":
        return [CURATION]
    if capability in ("commits", "judges"):
        return [feature(feature_id)] if feature_id else [SWEEP]
    return []
