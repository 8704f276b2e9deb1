"""Compares a run with its replay: outcome, checks, work, usage; and the spread of several samples."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from typing import Any

from harness.base.record import Record
from harness.git.checkouts import clones
from harness.git.repository import GitFailed
from harness.mission import receipts, runs
from harness.mission.runs import RunResult
from harness.mission.usage import Usage
from harness.replay import _staging
from harness.replay.resends import prompt_swap
from harness.replay.resends.replays import Sample
from harness.replay.resends.resend import SampleDetail
from harness.replay.resends.state_at_run import RunAtOpen
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State
from harness.workplace import workplace

UNKNOWN = "not known"
GREEN = "green"


class Side(Record):
    """One side of the comparison. `checks`: [claim, verdict]; `patch` None: its work is gone."""

    who: str
    outcome: str
    checks: list[list[str]]
    changed: int | None
    tokens: int | None
    cost_usd: float | None
    seconds: float
    patch: bytes | None
    reply: str


class SideComparison(Record):
    """Both sides; `work` and `replies` are the diffs of patches and of replies, as lines; [] if equal."""

    then: Side
    now: Side
    work: list[str]
    replies: list[str]


class Spread(Record):
    """The spread of several samples: the count of each outcome, then [min, median, max] of passed checks, tokens, cost and
    seconds; None if no sample has the number."""

    outcomes: dict[str, int]
    passed: list[float] | None
    tokens: list[float] | None
    cost_usd: list[float] | None
    seconds: list[float] | None


def before(layout: Layout, past: RunAtOpen) -> Side:
    """The original run."""
    result = runs.result(past.where, past.context.run)
    used = Usage(**(result.usage or {})) if result else Usage()
    known = bool(result and result.usage)
    patch = _patch(layout, result) if result else None
    return Side(
        who=" ".join(filter(None, [result.agent if result else "", used.model if known else ""])),
        outcome=result.outcome if result else "no result",
        checks=_receipts(past),
        changed=None if patch is None else _staging.changed(patch),
        tokens=used.tokens if known else None,
        cost_usd=used.cost_usd if known else None,
        seconds=result.seconds if result else 0.0,
        patch=patch,
        reply=(State(past.where).data(names.of_run(past.context.run, names.REPLY)) or b"").decode("utf-8", "replace"),
    )


def after(detail: SampleDetail, who: str) -> Side:
    """One sample of the replay."""
    one = detail.sample
    return Side(
        who=who,
        outcome=one.outcome,
        checks=one.checks,
        changed=one.changed,
        tokens=one.tokens,
        cost_usd=one.cost,
        seconds=one.seconds,
        patch=detail.patch,
        reply=detail.reply,
    )


def beside(then: Side, now: Side) -> SideComparison:
    """Both sides, with the diffs of their work and their replies."""
    work = (
        []
        if then.patch is None
        else prompt_swap.diff(_plain(then.patch), _plain(now.patch or b""), "work then", "work now")
    )
    replies = prompt_swap.diff(then.reply.encode(), now.reply.encode(), "reply then", "reply now")
    return SideComparison(then=then, now=now, work=work, replies=replies)


def _plain(patch: bytes) -> bytes:
    """A patch without the digests of its files, which differ with each byte."""
    return b"\n".join(line for line in patch.split(b"\n") if not line.startswith(b"index "))


def _patch(layout: Layout, result: RunResult) -> bytes | None:
    """The run's commit, or its partial work, as a patch; empty if it changed nothing, None if the commit is gone."""
    if not result.commit:
        return b""
    workplace.use(layout)
    try:
        return clones.patch(layout.folders.top, result.commit + "^", result.commit)
    except GitFailed:
        return None


def _receipts(past: RunAtOpen) -> list[list[str]]:
    """The verdicts on the work of the run: from its own checks, else from the next run that judged its feature."""
    own = receipts.of_run(past.where, past.context.run)
    if not own and past.context.feature:
        judge = ""
        for one in runs.finished(past.where):
            if one.run == past.context.run:
                break
            judge = one.run if one.feature == past.context.feature and one.verdict else judge
        own = receipts.of_run(past.where, judge) if judge else []
    return [[one.claim, one.verdict] for one in own if one.phase == "after"]


def spread(samples: list[Sample]) -> Spread:
    """The spread of these samples."""
    return Spread(
        outcomes=dict(Counter(one.outcome for one in samples)),
        passed=_three(samples, lambda one: one.passed if one.checks else None),
        tokens=_three(samples, lambda one: one.tokens),
        cost_usd=_three(samples, lambda one: one.cost),
        seconds=_three(samples, lambda one: one.seconds),
    )


def _three(samples: list[Sample], value: Callable[[Sample], float | None]) -> list[float] | None:
    found = [known for one in samples if (known := value(one)) is not None]
    return [min(found), statistics.median(found), max(found)] if found else None


def rows(value: SideComparison) -> list[tuple[str, str, str]]:
    """The rows of the table: name, then, now."""
    found: list[tuple[str, Callable[[Side], Any]]] = [
        ("agent", lambda side: side.who or "none"),
        ("outcome", lambda side: side.outcome),
        ("checks", lambda side: _of(side.checks)),
        ("files changed", lambda side: UNKNOWN if side.changed is None else side.changed),
        ("tokens", lambda side: UNKNOWN if side.tokens is None else f"{side.tokens:,}"),
        ("cost", lambda side: UNKNOWN if side.cost_usd is None else f"{side.cost_usd:.4f} USD"),
        ("seconds", lambda side: f"{side.seconds:.1f}"),
    ]
    made = [(name, str(tell(value.then)), str(tell(value.now))) for name, tell in found]
    for number, (claim, verdict) in enumerate(value.now.checks):
        was = value.then.checks[number] if number < len(value.then.checks) else [claim, UNKNOWN]
        if was != [claim, verdict]:
            made.append((f"  {claim}", was[1] if was[0] == claim else UNKNOWN, verdict))
    return made


def _of(checks: list[list[str]]) -> str:
    return f"{sum(verdict == GREEN for _, verdict in checks)} of {len(checks)} green" if checks else "none"
