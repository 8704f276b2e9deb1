"""The final sweep: every check in a fresh worktree with a fresh HOME, so that DONE means that a fresh clone passes."""

from __future__ import annotations

import os
from contextlib import contextmanager

from harness.git import repository, worktrees
from harness.integrity import confine
from harness.model.check_environment import CheckEnvironment
from harness.model.contract import Contract
from harness.model.receipts import Receipt
from harness.process import temporary
from harness.proof import fire, services

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN = 12
NO_SETUP = "the contract has no setup: a fresh clone is checked as it is"


def sweep(
    project: str, contract: Contract, place: CheckEnvironment, path: str, *, kept: bool = False
) -> tuple[list[Receipt], str]:
    """Setup, services and all checks in that worktree: (receipts, output of a failed setup).

    A red receipt lists the files that only the working folder has, as a possible cause.
    """
    notes = [] if contract.setup else [NO_SETUP]
    differs = repository.not_in_index(place.directory)
    if differs:
        more = f" and {len(differs) - SHOWN} more" if len(differs) > SHOWN else ""
        notes.append(f"only in the working folder, not in a clone: {', '.join(differs[:SHOWN])}{more}")
    with fresh(project, place.replace(notes=[*place.notes, *notes]), "sweep", kept=kept) as made:
        fault = fire.setup_fault(contract, made)
        if fault:
            return [], fault
        with services.Running(contract.services, made) as up:
            return list(fire.fire_all(contract.claims, "sweep", up, path)), ""


@contextmanager
def fresh(project: str, place: CheckEnvironment, what: str, *, kept: bool) -> Iterator[CheckEnvironment]:
    """A fresh worktree at `place.head`, with a fresh HOME where `place` has one of its own, as the check environment.

    `kept`: our own git makes it, as it makes the trees of runs; else git's, which believes the project's configuration.
    """
    folder = temporary.create(what, place.tag)
    target = os.path.join(folder, os.path.basename(project))
    try:
        if kept:
            worktrees.ensure(project, target, place.head)
        else:
            repository.add_worktree(project, target, place.head)
        home = confine.home_of_checks(project, os.path.join(folder, "home")) if place.home else ""
        yield place.replace(directory=target, home=home)
    finally:
        if kept:
            worktrees.remove(project, target)
        else:
            repository.remove_worktree(project, target)
        temporary.remove(folder)
