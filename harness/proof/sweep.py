"""The final sweep: every check in a fresh worktree with a fresh HOME, so that DONE means that a fresh clone passes."""

from __future__ import annotations

import os

from harness.git import repository, worktrees
from harness.integrity import confine
from harness.model.check_environment import CheckEnvironment
from harness.model.contract import Contract
from harness.model.receipts import Receipt
from harness.process import temporary
from harness.proof import fire, services

SHOWN = 12
NO_SETUP = "the contract has no setup: a fresh clone is checked as it is"


def sweep(
    project: str, contract: Contract, place: CheckEnvironment, path: str, *, kept: bool = False
) -> tuple[list[Receipt], str]:
    """Setup, services and all checks in that worktree: (receipts, output of a failed setup).

    A red receipt lists the files that only the working folder has, as a possible cause.
    """
    folder = temporary.create("sweep", place.tag)
    target = os.path.join(folder, os.path.basename(project))
    notes = [] if contract.setup else [NO_SETUP]
    differs = repository.not_in_index(place.directory)
    if differs:
        more = f" and {len(differs) - SHOWN} more" if len(differs) > SHOWN else ""
        notes.append(f"only in the working folder, not in a clone: {', '.join(differs[:SHOWN])}{more}")
    try:
        if kept:
            worktrees.ensure(project, target, place.head)
        else:
            repository.add_worktree(project, target, place.head)
        home = confine.home_of_checks(project, os.path.join(folder, "home")) if place.home else ""
        fresh = place.replace(directory=target, home=home, notes=[*place.notes, *notes])
        fault = fire.setup_fault(contract, fresh)
        if fault:
            return [], fault
        with services.Running(contract.services, fresh) as up:
            return list(fire.fire_all(contract.claims, "sweep", up, path)), ""
    finally:
        if kept:
            worktrees.remove(project, target)
        else:
            repository.remove_worktree(project, target)
        temporary.remove(folder)
