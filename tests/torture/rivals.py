"""Rivals: many processes at once on one mission. What each was told is there, is there, once, and in its order."""

from __future__ import annotations

import functools
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import LockBusy, VersionConflict
from harness.decision import doubts
from harness.memory import archive, pages
from harness.memory.backlog import BatchLimit
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.state import files, names, raw
from harness.state.layout import Layout
from harness.state.state import Changes, State
from tests import compacting, kill_sweep
from tests.crash import end, start
from tests.helpers import mission
from tests.missions import House, copied, enter
from tests.planned import accept_all, lay
from tests.torture.table import Row

WRITERS = 16
BATCH = BatchLimit(entries=2000, bytes=10**6)  # mostly all that waits: then raw.md itself is replaced
GENERATIONS, MOST = 12, 400  # so many compactions at least, and entries of a writer at most
QUEUE = names.FEATURES  # a managed file that many change


# ---- sixteen append while a curator compacts


def appenders(folder: Path, entries: int) -> tuple[int, list[str]]:
    """Sixteen processes append, a curator compacts in a loop; how many entries were acknowledged, and the faults."""
    layout, acks = mission(folder), folder / "acks"
    acks.mkdir()
    children = [start(functools.partial(_append, layout, acks, writer, entries)) for writer in range(WRITERS)]
    own = start(functools.partial(_compact, layout, str(folder / "identity"), children))
    codes = [end(child) for child in children]
    (folder / "enough").touch()
    codes.append(end(own))
    told = [line for path in acks.iterdir() for line in path.read_text().split("\n")[:-1]]
    return len(told), [f"codes {codes}"] * any(codes) + kept(layout, told)


def _append(layout: Layout, acks: Path, writer: int, entries: int) -> None:
    """Append; each entry is acknowledged in the writer's own file once its append has returned."""
    with open(acks / str(writer), "ab", buffering=0) as file:
        number = 0
        while number < MOST and (number < entries or State(layout).generation() < GENERATIONS):
            tag, text = ("CONTEXT", f"{writer}.{number} of things") if number % 9 == 0 else ("-", f"{writer}.{number}")
            raw.append(layout, "worker", f"F-{writer}", [(tag, text)])
            file.write(f"{text}\n".encode())
            number += 1


def _compact(layout: Layout, folder: str, writers: list[int]) -> None:
    """Compact what waits, again and again, until the writers have ended, and once more."""
    enough = Path(layout.folders.project).parent / "enough"
    last = False
    while not last:
        last, number = enough.exists(), State(layout).generation()
        try:
            compacting.compact_all(layout, folder, "m-1", f"run-{number}", "2026-04-24", bound=BATCH)
        except LockBusy:  # it says to try again, and nothing is lost
            last = False


def entries_of(layout: Layout) -> list[str]:
    """The lines of every entry by its sequence number; raises AssertionError where numbers and lines do not agree."""
    curated = pages.parse_curated(files.read(layout.path(names.CURATED)))
    rows = [*archive.backwards(layout.path(names.ARCHIVE), curated.folded)][::-1]
    assert [row.seq for row in rows] == list(range(curated.folded)), "torn: the archive's numbers"
    lines = (files.read(layout.path(names.RAW)) or b"").decode("utf-8", "replace").split("\n")
    window = curated.folded - curated.first_seq
    assert [row.entry for row in rows[curated.first_seq :]] == lines[:window], "torn: raw.md does not go on the archive"
    return [row.entry for row in rows] + lines[window:-1]


def kept(layout: Layout, told: list[str]) -> list[str]:
    """Faults of the entries: lost, doubled, torn, or in another order than their writer's."""
    try:
        texts = [raw.parse_line(line, 0).text for line in entries_of(layout)]
    except (AssertionError, ValueError) as fault:
        return [f"torn: {str(fault)[:300]}"]
    there = {text: number for number, text in enumerate(texts)}
    found = [f"lost: the entry {text}" for text in told if text not in there]
    found += [f"doubled: {len(texts) - len(there)} entries"] * (len(texts) != len(there))
    found += [f"torn: {text[:60]!r}" for text in texts if not re.fullmatch(r"\d+\.\d+( of things)?", text)]
    for writer in range(WRITERS):
        places = [there[text] for text in told if text.startswith(f"{writer}.") and text in there]
        found += [f"out of order: the entries of writer {writer}"] * (places != sorted(places))
    return found


# ---- the queue, by compare-and-set


def updaters(folder: Path, processes: int, updates: int) -> tuple[int, list[str]]:
    """Processes that read a managed file, change it and commit it with what they expect; updates made, and the faults."""
    layout = mission(folder)
    State(layout).put(QUEUE, b"{}\n")
    children = [start(functools.partial(_update, layout, one, updates)) for one in range(processes)]
    codes = [end(child) for child in children]
    found = json.loads(files.read(layout.path(names.FEATURES)) or b"{}")
    wrong = [
        f"lost: updates of {one}, {found.get(str(one))} of {updates}"
        for one in range(processes)
        if found.get(str(one)) != updates
    ]
    return sum(found.values()), [f"codes {codes}"] * any(codes) + wrong


def _update(layout: Layout, one: int, updates: int) -> None:
    """Count to `updates` in the file that the others count in, too."""
    done = 0
    while done < updates:
        data, version = State(layout).read(QUEUE)
        counts = json.loads(data or b"{}")
        os.sched_yield()
        changes = Changes()
        changes.put(QUEUE, json.dumps({**counts, str(one): counts.get(str(one), 0) + 1}).encode() + b"\n", version)
        try:
            State(layout).commit(changes)
            done += 1
        except VersionConflict:
            continue


# ---- lanes settle while people order


def lanes(folder: Path, template: Path, count: int) -> tuple[int, list[str]]:
    """As many lanes as features, and a person who notes, renames and adds meanwhile; notes taken, and the faults."""
    with pytest.MonkeyPatch.context() as patch:
        house = copied(template, folder, enter(patch, folder))
        numbers = [str(n) for n in range(1, count + 1)]
        claims = [Claim(id=f"VAL-{n}", text=f"Part {n} works", checks=[Check(run=f"test -f {n}.txt")]) for n in numbers]
        lay(
            house,
            [Feature(id=f"F-{n}", title=f"Part {n}", claims=[f"VAL-{n}"]) for n in numbers],
            Contract(claims=claims),
        )
        accept_all(house)
        for n in numbers:
            house.script(f"worker-F-{n}", {"run": f"echo {n} >{n}.txt; harness note --tag TRICK 'part {n} is a file'"})
        loop = house.loop("--lanes", str(count))
        told, titles = _order(house, numbers, lambda: loop.poll() is None)
        out, err = loop.communicate(timeout=120)
        found = [] if loop.returncode == 0 else [f"run.sh ended with {loop.returncode}: {out[-300:]}{err[-300:]}"]
        told += [f"TRICK: part {n} is a file" for n in numbers]
        found += kill_sweep.faults(house, told, taken=False)
        now = {one.id: one for one in house_features(house)}
        found += [f"lost: the order {name}, {title}" for name, title in titles.items() if now[name].title != title]
        found += [f"lost: {name} is {one.status}" for name, one in now.items() if one.status != "passed"]
        found += [f"the contract differs from its log: {name}" for name in doubts_of(house)]
        return len(told), found


def _order(house: House, numbers: list[str], lives: Callable[[], bool]) -> tuple[list[str], dict[str, str]]:
    """Orders and notes for as long as the lanes work; what was acknowledged of both."""
    told, titles, number = list[str](), dict[str, str](), 0
    while lives() and number < 200:
        number += 1
        name = f"F-{numbers[number % len(numbers)]}"
        if house.harness("note", "--tag", "CONTEXT", f"a person's note {number}").code == 0:
            told.append(f"CONTEXT: a person's note {number}")
        if house.harness("feature", "set", name, f"title=Title {number}").code == 0:
            titles[name] = f"Title {number}"
        time.sleep(0.02)
    return told, titles


def house_features(house: House) -> list[Feature]:
    """The queue."""
    return [house.feature(row["id"]) for row in json.loads(house.read("features.json"))["features"]]


def doubts_of(house: House) -> list[str]:
    """Claims whose log does not say what they are."""
    from harness.mission import contract, contract_log

    return list(doubts.edited(contract.load(house.layout), contract_log.load(house.layout)))


def sweep(folder: Path, template: Path, effort: int, show: Callable[[str], object]) -> list[Row]:
    """The three of them; `effort` is 1 for the suite."""
    rows = []
    bodies: tuple[tuple[str, Callable[[Path], tuple[int, list[str]]]], ...] = (
        ("16 append, a curator compacts", lambda place: appenders(place, 40 * effort)),
        ("8 change the queue at once", lambda place: updaters(place, 8, 15 * effort)),
        ("8 lanes settle, a person orders", lambda place: lanes(place, template, 8)),
    )
    for name, body in bodies:
        begun, place = time.monotonic(), folder / name.replace(" ", "-")
        place.mkdir()
        written, found = body(place)
        show(f"{name}: {written} acknowledged, {len(found)} faults")
        rows.append(Row(name=name, written=written, faults=found, seconds=time.monotonic() - begun))
    return rows
