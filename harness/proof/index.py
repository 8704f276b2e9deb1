"""The state of proof of all claims: an index over all receipts, kept in the cache and updated from the run log.

A check is proven when its newest receipt is green and a check of the claim was red before: a check that never failed
proves nothing. A guard needs no red. The index is derived: if deleted, it is rebuilt from runs.jsonl and the receipts.
"""

from __future__ import annotations

import json

from harness.base.record import Record
from harness.model import receipts, runs
from harness.model.contract import Claim
from harness.store import documents, files
from harness.store.layout import Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "proofs"


class Trail(Record):
    """The history of one check over all runs: newest red and green as [run, commit, at], the number of flaky results, and
    the reward-hacking signals from the validations of its feature."""

    red: list[str] = []
    green: list[str] = []
    last_green: bool = False
    last_at: str = ""
    flaky: int = 0
    signs: list[str] = []


class Standing(Record):
    """The status of a claim: `word` is proven, unproven or manual; `marks` of flaky, weakened, signs, accepted."""

    claim: str
    word: str
    marks: list[str] = []
    red: list[str] = []
    green: list[str] = []


def load(layout: Layout) -> dict[str, Trail]:
    """{claim + newline + command: check history}, complete up to the newest finished run."""
    held = _cached(layout)
    size = files.length(layout.books)
    trails = {key: Trail(**row) for key, row in held["trails"].items()} if held["bytes"] <= size else {}
    start = held["bytes"] if trails else 0
    new = files.read_from(layout.books, start, size - start)
    whole = new[: new.rfind(b"\n") + 1]
    for line in whole.split(b"\n"):
        run_id = _fired(layout, line) if line else ""
        if run_id:
            _take(layout, trails, run_id)
    if whole:
        rows = {key: trail.asdict() for key, trail in trails.items()}
        documents.keep(layout.cache, NAME, "", {"bytes": start + len(whole), "trails": rows}, Trail.fields)
    return trails


def _cached(layout: Layout) -> dict[str, Any]:
    held = documents.recall(layout.cache, NAME, "", Trail.fields)
    return held if isinstance(held, dict) and held.keys() == {"bytes", "trails"} else {"bytes": 0, "trails": {}}


def _fired(layout: Layout, line: bytes) -> str:
    """The run of a line in the run log if its receipts count (it judged, or its plan landed), else "": an agent could have
    written those of other runs."""
    try:
        row = json.loads(line)
        return str(row["run"]) if row["verdict"] or row["accepted"] else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        raise runs.misread(layout, line, runs.NO_RUN) from None


def _take(layout: Layout, trails: dict[str, Trail], run_id: str) -> None:
    for receipt in receipts.load(layout.run(run_id).receipts):
        trail = trails.setdefault(key(receipt.claim, receipt.command), Trail())
        place = [run_id, receipt.head, receipt.at]
        trail.last_green, trail.last_at = receipt.green, receipt.at
        trail.flaky += receipt.flaky
        trail.signs += [sign for sign in receipt.signs if sign not in trail.signs]
        if receipt.green:
            trail.green = place
        else:
            trail.red = place


def key(claim_id: str, command: str) -> str:
    """The index's key of one check."""
    return f"{claim_id}\n{command}"


def standing(claim: Claim, trails: dict[str, Trail], weakened: set[str], accepted: set[str]) -> Standing:
    """The status of one claim from its receipts, the contract log and a person's decision."""
    mine = [trails.get(key(claim.id, check.run), Trail()) for check in claim.checks]
    green = bool(mine) and all(trail.last_green for trail in mine)
    red = [trail.red for trail in mine if trail.red]
    guards = bool(claim.checks) and all(check.guard for check in claim.checks)
    marks = ["flaky"] * any(trail.flaky for trail in mine) + ["weakened"] * (claim.id in weakened)
    marks += ["signs"] * any(trail.signs for trail in mine)
    marks += ["accepted"] * (claim.id in accepted)
    word = "manual" if claim.manual else "proven" if green and (red or guards) else "unproven"
    newest = [trail.green for trail in mine if trail.green]
    return Standing(
        claim=claim.id, word=word, marks=marks, red=red[-1] if red else [], green=newest[-1] if newest else []
    )
