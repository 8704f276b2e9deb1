"""The state of proof of all claims: an index over all receipts, cached beside the digest of the run log it was made from.

A check that is no guard proves its claim where it was red at one tree and its newest receipt is green at another. Both at the
same tree is a check that remembers, or depends on chance. A guard proves nothing by itself. Receipts of a run whose files have
changed since it closed count as none. Of receipts at commits that are not in the mission's branch, as after `snapshot restore`,
one thing counts: that the check can be red. The index is derived: if deleted, it is rebuilt from runs.jsonl and the receipts.
The receipts of checks that a person brought are in the contract log, and join it at each look.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.base import encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Record
from harness.base.schema import Whole
from harness.git import repository
from harness.mission import contract, contract_log, mission, receipts, runs
from harness.mission.contract import Claim, Contract
from harness.mission.contract_log import ContractChange
from harness.mission.features import Feature
from harness.mission.receipts import Receipt
from harness.state import documents, json_lines, names
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import workplace

NAME = "proofs"
GREENS_KEPT = 20
GUARDED, PROVEN, UNPROVEN, MANUAL = WORDS = "guarded", "proven", "unproven", "manual"
NAMES = ", which a check of "  # in a sign about one claim, before the claim's id


class CheckHistory(Record):
    """The history of one check over all runs: newest red and green as [run, commit, at], the trees at which it was red, the
    newest at which it was green (oldest first), the number of flaky results, and the reward-hacking signals from the
    validations of its feature."""

    red: list[str] = []
    green: list[str] = []
    red_at: list[str] = []
    green_at: list[str] = []
    last_green: bool = False
    last_at: str = ""
    flaky: int = 0
    signs: list[str] = []

    @property
    def remembers(self) -> str:
        """The tree at which it was red, and also green, so that its newest green proves nothing; "" if there is none."""
        if self.green_at and self.green_at[-1] in self.red_at:
            return self.green_at[-1]
        only_red = set(self.red_at).difference(self.green_at)
        return self.red_at[-1] if self.red_at and not only_red else ""


if TYPE_CHECKING:  # a type here, at run time the kind of a field
    HistoryRow = dict[str, Any]
else:
    HistoryRow = schema.row_of(CheckHistory)


class IndexCache(Record):
    """What the cache keeps: the trails, length and digest of the lines of the run log that they were made from, the mission's
    position then, the commits with receipts that were not in its branch, the runs that did not count because files of theirs
    were changed, and what the files of these, and of those that the trails name, looked like."""

    tips: str = ""
    outside: list[str] = []
    log: str = ""
    size: Whole = 0
    digest: str = ""
    changed: list[str] = []
    looks: str = ""
    trails: dict[str, HistoryRow] = {}


FIELDS = (*IndexCache.fields, *CheckHistory.fields)


class ClaimStatus(Record):
    """The status of a claim: `word` is proven, guarded, unproven or manual; `marks` of flaky, weakened, changed, signs and
    accepted; `reason`: why it is not proven."""

    claim: str
    word: str
    marks: list[str] = []
    red: list[str] = []
    green: list[str] = []
    reason: str = ""


class Proofs(Record):
    """The contract, its log, the history of each check, and the status of each claim, in the order of the contract. Every command
    that says what is proven, or which features passed, has it from here."""

    contract: Contract
    log: list[ContractChange]
    histories: dict[str, CheckHistory]
    statuses: list[ClaimStatus]

    @property
    def proven(self) -> set[str]:
        """The claims that are proven."""
        return {one.claim for one in self.statuses if one.word == PROVEN}

    @property
    def red(self) -> set[str]:
        """The claims of which a check is red."""
        return {one.claim for one in self.statuses if one.reason == RED}

    def shown(self, found: list[Feature]) -> list[Feature]:
        """The features as commands show and count them: a passed one with a red claim is failing."""
        red = self.red
        broken = {one.id for one in found if one.status == "passed" and not red.isdisjoint(one.claims)}
        return [one.replace(status="failing") if one.id in broken else one for one in found]


def load(layout: Layout) -> dict[str, CheckHistory]:
    """{claim + newline + command: check history}, complete up to the newest finished run."""
    log, held, tips = _look(layout.run_log), _held(layout), _tips(layout)
    if log != held.log or tips != held.tips:
        held = _complete(layout, held, log, tips)
    trails = {key: CheckHistory(**row) for key, row in held.trails.items()}
    for receipt in contract_log.fired(contract_log.load(layout)):
        _join(trails, receipt)
    return trails


def _tips(layout: Layout) -> str:
    """The commits of the mission's position and of its branch; "" where there is none to compare with: then every receipt
    counts. 0 git calls."""
    if not State(layout).exists(names.MISSION):
        return ""
    made = mission.read(layout)
    return " ".join(filter(None, (workplace.tip_commit(layout, made), workplace.branch_commit(layout, made))))


def _branch(layout: Layout, tips: str) -> set[str]:
    """The commits of the mission's branch and their trees, from the first that a run found. One git call."""
    if not tips:
        return set()
    base = mission.read(layout).base_commit
    before = ["--not", f"{base}^@"] if base else []
    return set(repository.run(layout.top, "rev-list", "--format=%H %T", *tips.split(), *before).decode().split())


def _complete(layout: Layout, held: IndexCache, log: str, tips: str) -> IndexCache:
    """The index with the lines of the run log that it lacks, and kept so; made again from the start where its lines are others
    by now, or the branch lost or got back commits with receipts."""
    data = State(layout).data(names.RUN_LOG) or b""
    data = data[: data.rfind(b"\n") + 1]
    branch = _branch(layout, tips)
    moved = not branch.issuperset(held.tips.split()) or not branch.isdisjoint(held.outside)
    if moved or encoding.digest(data[: held.size]) != held.digest:
        held = IndexCache()
    trails, changed = {key: CheckHistory(**row) for key, row in held.trails.items()}, list(held.changed)
    outside = set(held.outside)
    for number, line in json_lines.whole(data[held.size :]):
        run_id, seal = _fired(layout, line, data[: held.size].count(b"\n") + number)
        if run_id and seal in ("", runs.seal(layout.run(run_id))):  # "": a run of format 1
            for receipt in receipts.of_run(layout, run_id):
                if not tips or receipt.head in branch or receipt.tree in branch:
                    _take(trails, run_id, receipt)
                else:
                    _take_red(trails, receipt)
                    outside.add(receipt.head)
        elif run_id:
            changed.append(run_id)
    rows = {key: trail.asdict() for key, trail in trails.items()}
    made = IndexCache(
        tips=tips,
        outside=sorted(outside),
        log=log if log == _look(layout.run_log) else "",
        size=len(data),
        digest=encoding.digest(data),
        changed=changed,
        looks=_looks(layout, rows, changed),
        trails=rows,
    )
    documents.keep(layout.cache, NAME, "", made.asdict(), FIELDS)
    return made


def _join(trails: dict[str, CheckHistory], receipt: Receipt) -> None:
    """Take a receipt of a person's new check, where runs have fired the same one before or since."""
    trail = trails.setdefault(key(receipt.claim, receipt.command), CheckHistory())
    place = [receipt.by, receipt.head, receipt.at]
    newest = receipt.at > trail.last_at  # of the same second, a run's is the later one
    if newest:
        trail.last_green, trail.last_at = receipt.green, receipt.at
    if receipt.green:
        trail.green = max(trail.green, place, key=lambda known: known[-1:])
        older = [receipt.tree] * (receipt.tree not in trail.green_at)
        trail.green_at = _newest(trail.green_at, receipt.tree) if newest else [*older, *trail.green_at]
    else:
        trail.red = max(trail.red, place, key=lambda known: known[-1:])
    if receipt.flaky or not receipt.green:
        trail.red_at = [receipt.tree, *(one for one in trail.red_at if one != receipt.tree)]


def _held(layout: Layout) -> IndexCache:
    """The index as it is kept, where no file of the runs that it names was touched since; else an empty one."""
    row = documents.recall(layout.cache, NAME, "", FIELDS)
    try:
        held = schema.record(IndexCache, row, "we leave")
    except (TypeError, ValueError):
        return IndexCache()
    return held if _looks(layout, held.trails, held.changed) == held.looks else IndexCache()


def _look(path: str) -> str:
    """Size, times and number of a file: nobody can set the time of a change. "-" where it is not there."""
    try:
        one = os.stat(path)
    except OSError:
        return "-"
    return f"{one.st_size} {one.st_mtime_ns} {one.st_ctime_ns} {one.st_ino}"


def _looks(layout: Layout, trails: Mapping[str, Mapping[str, Any]], changed: Iterable[str]) -> str:
    """A digest of how the files look of the runs that brought the newest red and green of each check, and of those that were
    changed. What older runs brought was read while their digest held."""
    named = {place[0] for row in trails.values() for place in (row["red"], row["green"]) if place}
    found = (_look(f"{layout.runs}/{run_id}/{name}") for run_id in sorted(named.union(changed)) for name in runs.SEALED)
    return encoding.digest("\n".join(found).encode())


def _fired(layout: Layout, line: bytes, number: int) -> tuple[str, str]:
    """The run of a line in the run log and its digest, if its receipts count (it judged, or its plan landed), else "": an agent
    could have written those of other runs."""
    try:
        row = json_lines.value(line)
        return (str(row["run"]), str(row.get("seal", ""))) if row["verdict"] or row["accepted"] else ("", "")
    except (ValueError, KeyError, TypeError):
        raise BrokenFile(layout.run_log, runs.NO_RUN, line=number, remedy=f"See: {command('doctor')}") from None


def _take(trails: dict[str, CheckHistory], run_id: str, receipt: Receipt) -> None:
    trail = _take_red(trails, receipt)
    place = [run_id, receipt.head, receipt.at]
    trail.last_green, trail.last_at = receipt.green, receipt.at
    trail.flaky += receipt.flaky
    trail.signs += [sign for sign in receipt.signs if sign not in trail.signs]
    if receipt.green:
        trail.green = place
        trail.green_at = _newest(trail.green_at, receipt.tree)[-GREENS_KEPT:]
    else:
        trail.red = place


def _take_red(trails: dict[str, CheckHistory], receipt: Receipt) -> CheckHistory:
    """The history of the check, which this receipt shows can be red, if it does: a flaky one was red first."""
    trail = trails.setdefault(key(receipt.claim, receipt.command), CheckHistory())
    if receipt.phase != receipts.OUTSIDE and (receipt.flaky or not receipt.green):
        trail.red_at = _newest(trail.red_at, receipt.tree)
    return trail


def _newest(trees: list[str], tree: str) -> list[str]:
    return [*(one for one in trees if one != tree), tree]


def key(claim_id: str, command: str) -> str:
    """The index's key of one check."""
    return f"{claim_id}\n{command}"


def signs_about(claim: Claim, trails: dict[str, CheckHistory]) -> list[str]:
    """The reward-hacking signals about this claim: those of any feature that name it, and those of its own that name none."""
    named = tuple(f"{NAMES}{claim.id} {verb}" for verb in ("names", "reads", "starts"))
    own = [trails.get(key(claim.id, check.run), CheckHistory()) for check in claim.checks]
    found = [sign for trail in own for sign in trail.signs if NAMES not in sign]
    found += [sign for trail in trails.values() for sign in trail.signs if sign.endswith(named)]
    return list(dict.fromkeys(found))


def claim_status(
    claim: Claim, trails: dict[str, CheckHistory], weakened: set[str], accepted: set[str], changed: Container[str] = ()
) -> ClaimStatus:
    """The status of one claim from its receipts, the contract log and a person's decision."""
    mine = [trails.get(key(claim.id, check.run), CheckHistory()) for check in claim.checks]
    own = [trail for check, trail in zip(claim.checks, mine, strict=True) if not check.guard]
    red = [trail.red for trail in own or mine if trail.red]
    marks = ["flaky"] * any(trail.flaky for trail in mine) + ["weakened"] * (claim.id in weakened)
    marks += ["changed"] * (claim.id in changed) + ["signs"] * bool(signs_about(claim, trails))
    marks += ["accepted"] * (claim.id in accepted)
    reason = "" if claim.manual else _doubt(mine, own)
    guards = bool(claim.checks) and not own
    word = MANUAL if claim.manual else UNPROVEN if reason else GUARDED if guards else PROVEN
    newest = [trail.green for trail in mine if trail.green]
    return ClaimStatus(
        claim=claim.id,
        word=word,
        marks=marks,
        red=red[-1] if red else [],
        green=newest[-1] if newest else [],
        reason=ONLY_GUARDS if word == GUARDED else reason,
    )


RED = "a check is red"
ONLY_GUARDS = "its checks are guards, which may be green without the work"


def _doubt(every: list[CheckHistory], own: list[CheckHistory]) -> str:
    """Why the checks of a claim do not prove it; "" if they do, or where all are green and all are guards. `own`: those that
    are no guards."""
    if not every or not all(trail.last_green for trail in every):
        red = any(trail.last_at and not trail.last_green for trail in every)
        return RED if red else "a check has not run on work that counts"
    remembers = [trail.remembers for trail in own if trail.remembers]
    if remembers:
        return f"a check was red and green at the same tree {remembers[0][:10]}: it remembers, or depends on chance"
    return "" if not own or any(trail.red_at for trail in own) else "no check of it was ever red"


def proofs(layout: Layout, also: Sequence[ContractChange] = ()) -> Proofs:
    """What is proven; raises BrokenFile. `also`: lines that the contract log is about to get."""
    known, log, histories = contract.load(layout), [*contract_log.load(layout), *also], load(layout)
    marks = contract_log.weakened(log), contract_log.accepted(log), contract_log.changed(log)
    statuses = [claim_status(claim, histories, *marks) for claim in known.claims]
    return Proofs(contract=known, log=log, histories=histories, statuses=statuses)
