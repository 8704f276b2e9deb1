"""The proof state of all claims: an index over all receipts, cached with the digest of the run log it was made from.

A check other than a guard proves its claim if it was red at one tree and its newest receipt is green at another. Red
and green at the same tree means that the check keeps state or is flaky. A guard proves nothing by itself. Receipts of a
run whose files have changed since it closed do not count. Receipts at commits outside the mission's branch, as after
`snapshot restore`, only show that the check can be red. The index is derived: if deleted, it is rebuilt from runs.jsonl
and the receipts. Receipts of a person's new checks come from the contract log at each load.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.base import encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.base.schema import Whole
from harness.git import repository
from harness.mission import config, contract, contract_log, mission, receipts, runs
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
ACCEPTED, GUARDS = "accepted", "guards"  # marks of a claim that counts without a proof
NAMES = ", which a check of "  # in a sign about one claim, before the claim's id


class CheckHistory(Record):
    """The history of one check over all runs: newest red and green as [run, commit, at], the trees at which it was red,
    the newest trees at which it was green (oldest first), the number of flaky results, and the reward-hacking signals
    from the validations of its feature."""

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
        """A tree at which it was both red and green, so that its newest green proves nothing; "" if there is none."""
        if self.green_at and self.green_at[-1] in self.red_at:
            return self.green_at[-1]
        only_red = set(self.red_at).difference(self.green_at)
        return self.red_at[-1] if self.red_at and not only_red else ""


if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    HistoryRow = dict[str, Json]
else:
    HistoryRow = schema.row_of(CheckHistory)


class IndexCache(Record):
    """The cached index: the trails, length and digest of the underlying lines of the run log, the mission's position
    then, the commits with receipts outside its branch, the runs excluded for changed files, and the stat digest of the
    files of these runs and of those in the trails."""

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
    """The status of a claim: `word` is proven, guarded, unproven or manual; `marks` of flaky, weakened, changed, signs,
    accepted and guards (`[proof] guards` accepts it); `reason`: why it is not proven."""

    claim: str
    word: str
    marks: list[str] = []
    red: list[str] = []
    green: list[str] = []
    reason: str = ""

    @property
    def counts(self) -> bool:
        """Whether its feature passes by it: it is proven, or a person accepts it as it is."""
        return self.word == PROVEN or not {ACCEPTED, GUARDS}.isdisjoint(self.marks)


class Proofs(Record):
    """The contract, its log, the history of each check, and the status of each claim, in the order of the contract.
    Every command that reports proven claims or passed features uses it."""

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
        """The claims with a red check."""
        return {one.claim for one in self.statuses if one.reason == RED}

    def shown(self, found: list[Feature]) -> list[Feature]:
        """The features as commands show and count them: a passed one with a red claim is failing, one without a claim
        that counts is unproven."""
        red, counting = self.red, {one.claim for one in self.statuses if one.counts}
        bare = {one.id: UNPROVEN for one in found if counting.isdisjoint(one.claims)}
        broken = bare | {one.id: "failing" for one in found if not red.isdisjoint(one.claims)}
        return [one.replace(status=broken.get(one.id, "passed")) if one.status == "passed" else one for one in found]


def load(layout: Layout) -> dict[str, CheckHistory]:
    """{claim + newline + command: check history}, complete up to the newest finished run."""
    log, held, tips = _look(layout.path(names.RUN_LOG)), _held(layout), _tips(layout)
    if log != held.log or tips != held.tips:
        held = _complete(layout, held, log, tips)
    trails = {key: CheckHistory(**row) for key, row in held.trails.items()}
    for receipt in contract_log.fired(contract_log.load(layout)):
        _join(trails, receipt)
    return trails


def _tips(layout: Layout) -> str:
    """The commits of the mission's position and its branch; "" if there is none, then every receipt counts. 0 git calls."""
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
    return set(
        repository.run(layout.folders.top, "rev-list", "--format=%H %T", *tips.split(), *before).decode().split()
    )


def _complete(layout: Layout, held: IndexCache, log: str, tips: str) -> IndexCache:
    """Extend and cache the index with new lines of the run log; rebuild it if earlier lines changed, or the branch lost
    or regained commits with receipts."""
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
        if run_id and seal == runs.seal(layout.run(run_id)):
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
        log=log if log == _look(layout.path(names.RUN_LOG)) else "",
        size=len(data),
        digest=encoding.digest(data),
        changed=changed,
        looks=_looks(layout, rows, changed),
        trails=rows,
    )
    documents.keep(layout.cache, NAME, "", made.asdict(), FIELDS)
    return made


def _join(trails: dict[str, CheckHistory], receipt: Receipt) -> None:
    """Add a receipt of a person's new check to its history."""
    trail = trails.setdefault(key(receipt.claim, receipt.command), CheckHistory())
    place = [receipt.by, receipt.head, receipt.at]
    newest = receipt.at > trail.last_at  # in the same second, the run's receipt counts as later
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
    """The cached index if no file of the runs that it names was touched since; else an empty one."""
    row = documents.recall(layout.cache, NAME, "", FIELDS)
    try:
        held = schema.record(IndexCache, row, "we leave")
    except (TypeError, ValueError):
        return IndexCache()
    return held if _looks(layout, held.trails, held.changed) == held.looks else IndexCache()


def _look(path: str) -> str:
    """Size, times and inode of a file (programs cannot set ctime); "-" if absent."""
    try:
        one = os.stat(path)
    except OSError:
        return "-"
    return f"{one.st_size} {one.st_mtime_ns} {one.st_ctime_ns} {one.st_ino}"


def _looks(layout: Layout, trails: Mapping[str, Mapping[str, Any]], changed: Iterable[str]) -> str:
    """A stat digest of the files of the runs with the newest red and green of each check, and of excluded runs.
    Receipts of older runs were read while their digests matched."""
    named = {place[0] for row in trails.values() for place in (row["red"], row["green"]) if place}
    found = (
        _look(f"{layout.path(names.RUNS)}/{run_id}/{name}")
        for run_id in sorted(named.union(changed))
        for name in runs.SEALED
    )
    return encoding.digest("\n".join(found).encode())


def _fired(layout: Layout, line: bytes, number: int) -> tuple[str, str]:
    """(run, run digest) of a line in the run log, if its receipts count (it judged, or its plan landed), else "": an
    agent could have written those of other runs."""
    try:
        row = json_lines.value(line)
        return (str(row["run"]), str(row.get("seal", ""))) if row["verdict"] or row["accepted"] else ("", "")
    except (ValueError, KeyError, TypeError):
        raise BrokenFile(
            layout.path(names.RUN_LOG), runs.NO_RUN, line=number, remedy=f"See: {command('doctor')}"
        ) from None


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
    """The history of the receipt's check, updated if the receipt shows that it can be red; a flaky one was red first."""
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
    """The reward-hacking signals about this claim: those of any feature that name it, and those of its own feature that
    name no claim."""
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
    marks += [ACCEPTED] * (claim.id in accepted)
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
    """Why the checks of a claim do not prove it; "" if they do, or if all are green guards. `own`: the checks other
    than guards."""
    if not every or not all(trail.last_green for trail in every):
        red = any(trail.last_at and not trail.last_green for trail in every)
        return RED if red else "a check has not run on work that counts"
    remembers = [trail.remembers for trail in own if trail.remembers]
    if remembers:
        return f"a check was red and green at the same tree {remembers[0][:10]}: it remembers, or depends on chance"
    return "" if not own or any(trail.red_at for trail in own) else "no check of it was ever red"


def proofs(layout: Layout, also: Sequence[ContractChange] = ()) -> Proofs:
    """The proof state; raises BrokenFile. `also`: pending lines of the contract log."""
    known, log, histories = contract.load(layout), [*contract_log.load(layout), *also], load(layout)
    marks = contract_log.weakened(log), contract_log.accepted(log), contract_log.changed(log)
    statuses = [claim_status(claim, histories, *marks) for claim in known.claims]
    for one in statuses if config.load(layout).guards == "accept" else ():
        one.marks += [GUARDS] * (one.word == GUARDED and not one.counts)
    return Proofs(contract=known, log=log, histories=histories, statuses=statuses)
