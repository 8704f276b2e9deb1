"""Results of replays: `.harness/replays/<id>/`, with a folder per sample.

They do not count in the mission: no decision, receipt or cap reads them. `usage` shows their cost under a separate heading.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.base import clock, encoding, schema
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.mission import transcript, usage
from harness.mission.usage import Usage
from harness.process import temporary
from harness.state import files, names
from harness.state.layout import Layout
from harness.state.state import State

ABOUT = "replay.json"
KEPT = (ABOUT, names.RESULT)  # gc keeps these: the cost
SAMPLE_FORM = "a replay writes"


class ReplayRecord(Record):
    """The replay in replay.json. `mounted`: mounts led the prompt's original paths to the temporary place; `swaps` as on the
    command line; `digest` of the prompt sent."""

    id: str
    run: str
    role: str
    feature: str
    agent: str
    model: str
    at: str
    times: int
    swaps: list[str]
    mounted: bool
    digest: str
    prompt_bytes: int


class Sample(Record):
    """One sample: result.json. `checks`: [claim, verdict] of each check in the clone afterwards; `fault`: why there are none.
    `uncounted`: 1 if part of its cost is unknown. `changed`: the number of files that differ from the commit."""

    number: int
    agent: str
    outcome: str
    reason: str
    seconds: float
    usage: dict[str, Json] | None
    uncounted: int
    at: str
    verdict: str = ""
    checks: list[list[str]] = []
    fault: str = ""
    changed: int = 0
    notes: list[str] = []

    @property
    def passed(self) -> int:
        """The number of green checks."""
        return sum(verdict == "green" for _, verdict in self.checks)

    @property
    def tokens(self) -> int | None:
        """All tokens reported by the vendor."""
        return self.used.tokens if self.usage else None

    @property
    def cost(self) -> float | None:
        """The known cost in USD."""
        return self.used.cost_usd if self.usage else None

    @property
    def used(self) -> Usage:
        """The usage; empty if none was reported."""
        return Usage(**(self.usage or {}))


def begin(layout: Layout, run_id: str) -> str:
    """Create the folder of a new replay exclusively; returns its name, which is the replay's id."""
    state, wish, number = State(layout), f"{clock.now()}-{run_id}", 1
    name = wish
    while not state.claim_folder(f"{names.REPLAYS}/{name}"):
        number += 1
        name = f"{wish}-{number}"
    return name


def folder_of(layout: Layout, replay: str, number: int) -> str:
    """Create the folder of one sample; returns its path."""
    path = f"{layout.path(names.REPLAYS)}/{replay}/{number}"
    files.make_folder(path)
    return path


def keep(folder: str, name: str, data: bytes) -> None:
    """Write a file of a replay durably."""
    files.replace(os.path.join(folder, name), data, files.PRIVATE)


def samples(layout: Layout) -> Iterator[Sample]:
    """Every sample; that of a killed replay has the usage in its transcript. Raises BrokenFile for an invalid result."""
    state = State(layout)
    for replay in state.list(names.REPLAYS):
        for number in state.list(f"{names.REPLAYS}/{replay}"):
            if number.isdigit():
                yield _sample(layout, f"{names.REPLAYS}/{replay}/{number}", int(number))


def _sample(layout: Layout, name: str, number: int) -> Sample:
    state = State(layout)
    row = state.json(f"{name}/{names.RESULT}")
    if row is None:
        return _killed(state.path(f"{name}/{names.STREAM}"), number)
    try:
        found = schema.record(Sample, row, SAMPLE_FORM)
        if invalid := schema.invalid_field(Usage, found.usage or {}):
            raise TypeError(f"'usage: {invalid}' is not what a replay writes there")
    except (TypeError, schema.InvalidField) as fault:
        raise BrokenFile(
            state.path(f"{name}/{names.RESULT}"), str(fault), line=1, remedy="Remove that replay."
        ) from None
    return found


def _killed(stream: str, number: int) -> Sample:
    """The known facts of a sample that did not end."""
    said = transcript.reported(stream)
    used = usage.total(said.usages)
    known = used if used and used.raw else None
    return Sample(
        number=number,
        agent=said.usages[-1].agent if said.usages else "",
        outcome="killed",
        reason="the replay was killed, or is still at work",
        seconds=said.seconds,
        usage=known.asdict() if known else None,
        uncounted=int(bool(said.usages) and not (known and known.cost_usd is not None)),
        at="",
    )


def spent(layout: Layout) -> tuple[float, int]:
    """The known (USD, tokens) of all replays."""
    cost, tokens = 0.0, 0
    for one in samples(layout):
        cost, tokens = cost + (one.cost or 0.0), tokens + (one.tokens or 0)
    return cost, tokens


def prune(layout: Layout, before: int, *, dry_run: bool) -> tuple[int, list[str]]:
    """Remove the replays that started before then, except for their records and costs: (bytes, their ids)."""
    state, size, gone = State(layout), 0, list[str]()
    for replay in state.list(names.REPLAYS):
        path = state.path(f"{names.REPLAYS}/{replay}")
        word = replay.partition("-")[0]
        if not (word.isdigit() and int(word) < before and os.path.isdir(path)):
            continue
        found = list(_prunable(path))
        if not found:
            continue
        gone.append(replay)
        size += sum(map(files.size_below, found))
        if not dry_run:
            _settle_killed(layout, replay)
            for one in found:
                temporary.remove(one) if os.path.isdir(one) and not os.path.islink(one) else files.remove(one)
    return size, gone


def _prunable(folder: str) -> Iterator[str]:
    """The files to remove: all but KEPT of the replay and of each sample."""
    for name in files.names(folder):
        path = os.path.join(folder, name)
        if name.isdigit() and os.path.isdir(path):
            yield from _prunable(path)
        elif name not in KEPT:
            yield path


def _settle_killed(layout: Layout, replay: str) -> None:
    """Record the usage of a killed replay before its transcript is removed."""
    for number in State(layout).list(f"{names.REPLAYS}/{replay}"):
        path = f"{layout.path(names.REPLAYS)}/{replay}/{number}"
        if number.isdigit() and not os.path.exists(f"{path}/{names.RESULT}"):
            found = _killed(f"{path}/{names.STREAM}", int(number))
            keep(path, names.RESULT, encoding.dump_json(found.asdict()))
