"""Decisions of a person before DONE, once everything has passed: unproven claims, a contract that differs from its log,
and changed or lost files of finished runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from harness.base.encoding import few
from harness.decision.rules import Doubt
from harness.mission import contract_log, features, runs
from harness.mission.contract import Contract
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.proof import index
from harness.proof.index import ClaimStatus
from harness.state import manifests
from harness.state.layout import Layout, command


def find(layout: Layout, answered: str, also: Sequence[ContractChange] = ()) -> list[Doubt]:
    """The obstacles to DONE, each with the command that resolves it. `answered`: the newest run at a person's last
    answer, up to which changed files of runs are accepted. `also`: pending lines of the log."""
    known = index.proofs(layout, also)
    unproven = [one for one in known.shown(features.load(layout)) if one.status == index.UNPROVEN]
    found = [*_claims(known.statuses, unproven), *_contract(known.contract, known.log)]
    newest = next(runs.finished(layout), None)
    return found if newest and newest.run == answered else [*found, *changed(layout)]


def _claims(found: list[ClaimStatus], unproven: list[Feature]) -> list[Doubt]:
    """Claims with guards only, those of unproven features, and, if no claim is proven, all that do not count."""
    left = {one.claim: one for one in found if not one.counts}
    texts, names = [f"none of {len(found)} claims is proven"], [*left]
    if any(one.word == index.PROVEN or index.GUARDS in one.marks for one in found):
        guarded = [name for name, one in left.items() if one.word == index.GUARDED]
        texts = [f"{few(guarded)}: {index.ONLY_GUARDS}"] * bool(guarded)
        texts += [f"{few([one.id for one in unproven])}: no claim is proven"] * bool(unproven)
        names = [name for name in left if name in guarded or any(name in one.claims for one in unproven)]
    remedy = f"{command('claim accept')} {' '.join(names)}"
    return [Doubt(text="; ".join(texts), remedy=remedy, outcome="a person believes what no check proves")] * bool(names)


def _contract(known: Contract, log: list[ContractChange]) -> list[Doubt]:
    names = edited(known, log)
    text = f"the contract differs from its log: {few(names)}"
    return [Doubt(text=text, remedy=command("claim adopt"), outcome="it is correct as it is")] if names else []


def edited(known: Contract, log: list[ContractChange]) -> list[str]:
    """The claims, setup and services in which the contract differs from its log, replayed."""
    return [entry.block or entry.claim for entry in contract_log.missing(log, known, "")]


def changed(layout: Layout) -> list[Doubt]:
    """Runs whose files changed after they closed, by their digests, and objects that are lost or changed. Reads all of them."""
    remedy = f'{command("escalation answer")} "it is all right"'
    broken, lost = runs.broken_seals(layout, sys.maxsize), manifests.lost(layout)
    found = []
    if broken:
        text = f"finished runs were changed afterwards, and their receipts do not count: {few(broken)}"
        found.append(Doubt(text=text, remedy=remedy, outcome="go on without these receipts"))
    if lost:
        text = f"{len(lost)} objects of prompts are missing or changed; {command('doctor --fix')} restores what prompts hold"
        found.append(Doubt(text=text, remedy=remedy, outcome="go on without them"))
    return found
