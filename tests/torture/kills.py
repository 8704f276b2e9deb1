"""The sweep of kills: an operation is killed at its disk calls, or they fail, one after another, and what is left recovers."""

from __future__ import annotations

import functools
import itertools
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.base.errors import EXIT_CODES
from tests import kill_sweep
from tests.kill_sweep import CALLS, Point, Report, Sweep
from tests.missions import Done, House, enter
from tests.torture import operations
from tests.torture.gits import GitSweep
from tests.torture.operations import Operation
from tests.torture.table import Row
from tests.torture.whole import KNOWN

FEWEST = 10  # points of a settle; a sweep with fewer has not seen what it settles
NEEDS_SPACE = ("write", "pwrite64", "fsync", "mkdir", "mkdirat", "rename", "renameat", "symlink", "link", "linkat")
ERRORS = {  # which calls fail so
    "ENOSPC": NEEDS_SPACE,
    "EIO": CALLS,
    "EROFS": tuple(call for call in CALLS if call not in ("write", "pwrite64", "fsync", "fdatasync")),
}
SHOWN = 400  # characters of a fault, from each end
NO_GIT = ("append", "replace", "curate")
NOT_OURS = re.compile(r"Traceback|a bug in the harness")


class Effort(NamedTuple):
    """How much a sweep may do: kill points and failing calls, at most so many of each; up to which moment; how it chooses."""

    points: int
    failures: int
    until: float
    seed: str = "torture"


class Failing:
    """An operation in which one call failed: it says so, ends with a documented code, and what it leaves recovers."""

    def __init__(self, one: Operation, sweep: Sweep) -> None:
        self.one, self.sweep = one, sweep

    def recover(self, done: Done) -> tuple[list[str], str]:
        """The faults of how it ended, and of what it left."""
        found, state = self.one.recover(done)
        if any(call in self.struck() for call in ("unlink", "rmdir")):  # what could not be removed is there
            found = [fault for fault in found if not fault.startswith("left over")]
        return self.ended(done) + found, state

    def struck(self) -> str:
        """The call that failed, as strace shows it."""
        lines = self.sweep.trace.read_text(errors="replace").split("\n")
        return next((line for line in lines if "(INJECTED)" in line), "")

    def ended(self, done: Done) -> list[str]:
        """What is wrong with the end of the program."""
        mute = re.search(r"\bwrite\([12],", self.struck())  # the message itself could not be written
        found = [] if done.code in EXIT_CODES else [f"exit code {done.code}: {done}"]
        found += [f"no clear error: {done}"] if NOT_OURS.search(done.err) else []
        return found + (
            [f"it says nothing: {done}"] if done.code and not (done.err + done.out).strip() and not mute else []
        )


def errors(points: Sequence[Point]) -> list[tuple[str, Point]]:
    """Each point with one error that its call can have, in turn."""
    names = list(ERRORS)
    found = []
    for number, point in enumerate(points):
        able = [name for name in names[number % 3 :] + names[: number % 3] if point.call in ERRORS[name]]
        found.append((able[0], point))
    return found


def shortened(fault: str) -> str:
    """The beginning and the end of a long fault."""
    return fault if len(fault) <= 2 * SHOWN else f"{fault[:SHOWN]} … {fault[-SHOWN:]}"


def sweep(name: str, folder: Path, effort: Effort, show: Callable[[str], object], base: tuple[str, ...] = ()) -> Row:
    """Interrupt one operation, in a folder of its own; `base`: lines of its config.toml."""
    begun = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        one = operations.made(name, House(folder, enter(patch, folder)), base)
        try:
            row = swept(name, one, effort, lambda line: show(f"{name}: {line}"))
        finally:
            operations.leave(one)
    row.seconds = time.monotonic() - begun
    return row


def shuffled(found: Sequence[tuple[str, Point]]) -> list[tuple[str, Point]]:
    """In an order that is no longer by the call, the same each time."""
    return random.Random(len(found)).sample(found, len(found))


def _show(show: Callable[[str], object], error: str, line: str) -> None:
    show(f"{error} {line}")


class Struck:
    """One operation, and each way to interrupt it."""

    def __init__(self, one: Operation) -> None:
        self.one = one
        self.kill = self.sweep(kill_sweep.KILL)
        self.git = GitSweep(one.words, one.prepare, where=one.where, env=one.house.env, meanwhile=one.meanwhile)

    def sweep(self, fault: str) -> Sweep:
        """The sweep with this fault."""
        one = self.one
        return Sweep(one.words, one.prepare, where=one.where, env=one.house.env, fault=fault, meanwhile=one.meanwhile)

    def strike(self, error: str, point: Point, number: int, show: Callable[[str], object], found: Report) -> None:
        """Kill it at this point, a process or a git, or let the call fail with this error."""
        made, recover = self.kill, self.one.recover
        if error:
            made = self.sweep(f"error={error}")
            recover = Failing(self.one, made).recover
        elif point.call.startswith("git "):
            made, self.git.both = self.git, number % 3 > 0
        made.run([point], recover, self.one.go_on, functools.partial(_show, show, error), found=found)


def swept(name: str, one: Operation, effort: Effort, show: Callable[[str], object]) -> Row:
    """Kill its processes, kill its gits, and let calls fail, by turns: so a sample that ends early has some of each."""
    struck, found, killed = Struck(one), Report(), 0
    outer = struck.kill.points()
    inner = struck.git.points() if name not in NO_GIT else []
    lists = [
        [("", point) for point in kill_sweep.sample(outer, effort.points, effort.seed + name)],
        [("", point) for point in kill_sweep.sample(inner, effort.points, effort.seed + name + " git")],
        errors(kill_sweep.sample(outer, effort.failures, effort.seed + name + " fails")),
    ]
    strikes = [one for turn in itertools.zip_longest(*map(shuffled, lists)) for one in turn if one]
    for number, (error, point) in enumerate(strikes):
        if time.monotonic() > effort.until:
            show(f"the time is up after {number} of {len(strikes)}")
            break
        before = len(found.points)
        struck.strike(error, point, number, show, found)
        killed += len(found.points) - before if not error else 0
    every = [*outer, *inner]
    few = operations.is_settle(name) and len(every) < FEWEST
    return Row(
        name=name,
        tried=killed,
        points=len(every),
        injected=len(found.points) - killed,
        states=len(found.states),
        written=one.written,
        faults=[shortened(fault) for fault in found.unexpected(KNOWN)]
        + ([f"only {len(every)} kill points"] if few else []),
        notes=[f"{len(found.missed)} points were not reached again"] if found.missed else [],
    )
