"""What is proven, and which features passed. Every command that shows either reads it here.

A claim is proven by receipts of commits in the mission's branch. A feature passed if its status is so and no claim of it is red.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.record import Record
from harness.model import contract, contract_log
from harness.model.contract import Contract
from harness.model.contract_log import Entry
from harness.model.features import Feature
from harness.proof import index
from harness.proof.index import CheckHistory, ClaimStatus
from harness.store.layout import Layout


class Proofs(Record):
    """The contract, its log, the history of each check, and the status of each claim, in the order of the contract."""

    contract: Contract
    log: list[Entry]
    histories: dict[str, CheckHistory]
    statuses: list[ClaimStatus]

    @property
    def proven(self) -> set[str]:
        """The claims that are proven."""
        return {one.claim for one in self.statuses if one.word == index.PROVEN}

    @property
    def red(self) -> set[str]:
        """The claims of which a check is red."""
        return {one.claim for one in self.statuses if one.reason == index.RED}

    def shown(self, found: list[Feature]) -> list[Feature]:
        """The features as commands show and count them: a passed one with a red claim is failing."""
        red = self.red
        return [
            one.replace(status="failing") if one.status == "passed" and not red.isdisjoint(one.claims) else one
            for one in found
        ]


def load(layout: Layout, also: Sequence[Entry] = ()) -> Proofs:
    """The proofs of a mission; raises BrokenFile. `also`: lines that the contract log is about to get."""
    known, log, histories = contract.load(layout), [*contract_log.load(layout), *also], index.load(layout)
    statuses = index.statuses(histories, known.claims, log)
    return Proofs(contract=known, log=log, histories=histories, statuses=statuses)
