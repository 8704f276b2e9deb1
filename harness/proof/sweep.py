"""The final sweep: every check in a fresh clone with a fresh HOME, so that DONE means that any clone passes."""

from __future__ import annotations

from harness.git import repository
from harness.git.settings import RecordedSettings
from harness.mission import receipts
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Contract
from harness.mission.receipts import Receipt
from harness.proof import check_runs, fresh_clone, services, tampering
from harness.state.layout import Layout

MAX_SHOWN_PATHS = 12
OUTSIDE_SETUP = "it passes only inside the harness, and with a plain environment "
NO_SETUP = "the contract has no setup: a fresh clone is checked as it is"


def sweep(
    layout: Layout, contract: Contract, place: CheckEnvironment, path: str, known: RecordedSettings | None = None
) -> tuple[list[Receipt], str]:
    """Setup, services and all checks in a clone with the configuration `known`, and, if all are green, in a plain one:
    (receipts, output of a failed setup).

    A red receipt lists the files that only the working folder has, as a possible cause.
    """
    if place.machine:
        there = place.machine.sweep(contract)
        check_runs.keep(there[0], path)
        return there
    notes = [] if contract.setup else [NO_SETUP]
    differs = repository.not_in_index(place.root)
    if differs:
        more = f" and {len(differs) - MAX_SHOWN_PATHS} more" if len(differs) > MAX_SHOWN_PATHS else ""
        notes.append(f"only in the working folder, not in a clone: {', '.join(differs[:MAX_SHOWN_PATHS])}{more}")
    found, fault = _fired(layout, contract, place.replace(notes=[*place.notes, *notes]), "sweep", path, known)
    if fault or not all(receipt.green for receipt in found):
        return found, fault
    plain = place.replace(plain=True)
    again, fault = _fired(layout, contract, plain, receipts.OUTSIDE, path, known)
    return [*found, *again], f"{OUTSIDE_SETUP}{fault}" if fault else ""


def _fired(
    layout: Layout, contract: Contract, place: CheckEnvironment, phase: str, path: str, known: RecordedSettings | None
) -> tuple[list[Receipt], str]:
    with fresh_clone.cloned(layout, place, "sweep", known) as clone:
        clone = tampering.watched(clone, contract)
        fault = check_runs.setup_fault(contract, clone)
        if fault:
            return [], fault
        with services.RunningServices(contract.services, clone) as up:
            return list(check_runs.fire_all(contract.claims, phase, up, path)), ""
