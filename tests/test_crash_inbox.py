"""kill -9 of a run, its inbox and its guardian while its agent notes: each acknowledged note is in raw.md once, none is half
there, and no process is left. HARNESS_TORTURE=1 makes it long."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness.base.errors import STOPPED
from harness.mission import mission
from harness.process import tree
from harness.process.confine import BUBBLEWRAP, available
from harness.state import files, names, raw
from harness.workplace import workplace
from tests.crash import TORTURE
from tests.missions import House, tagged, until
from tests.test_crash_state import paused

ROUNDS = 60 if TORTURE else 3
TEXT = "x" * 200  # a note that is cut short is not whole
WHOLE = re.compile(rf"(\d+-\d-\d+) {TEXT}")
NOTES = """
for writer in 1 2 3 4; do
    (
        number=0
        while number=$((number + 1)); harness note --tag CONTEXT "{turn}-$writer-$number {text}"; do
            echo "{turn}-$writer-$number" >> acknowledged.$writer
        done
    ) 2>/dev/null &
done
wait
"""


def acknowledged(house: House) -> list[str]:
    """The notes that `harness note` ended with 0 for, as the agent wrote them down."""
    folder = Path(workplace.folder_of(mission.load(house.layout).id))
    return [line for path in folder.glob("acknowledged.*") for line in path.read_text().split("\n")[:-1]]


def command_line(pid: int) -> bytes:
    """What a process was started as; empty when it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def parts(run: int) -> dict[str, int]:
    """The processes of a run: itself, the guardian of its agent (its child is another program), and the listener."""
    children = [pid for pid in tree.descendants(run, deep=False) if command_line(pid) == command_line(run)]
    guardians = [
        pid
        for pid in children
        if any(command_line(one) not in (b"", command_line(run)) for one in tree.descendants(pid, deep=False))
    ]
    listeners = [pid for pid in children if pid not in guardians and tree.stat(pid)[3:4] == [str(pid).encode()]]
    found = {"run": [run], "guardian": guardians, "inbox": listeners}
    return {name: pids[0] for name, pids in found.items() if pids}


def noting(house: House, turn: int) -> dict[str, int]:
    """Start a run whose agent notes from four processes; its parts, once a note of this turn is acknowledged."""
    house.lay(house.feature().replace(status="todo", attempts=0), house.feature("F-002"))
    house.script("worker", {"run": NOTES.format(turn=turn, text=TEXT)})
    role = house.begin_role("worker", "F-001", session=True)
    mark = f"{turn}-"
    until(lambda: any(name.startswith(mark) for name in acknowledged(house)))
    return parts(role.pid)


def strike(found: dict[str, int], dice: random.Random) -> list[str]:
    """SIGKILL for some of the parts, in any order, at moments of their own; their names."""
    names = dice.sample(sorted(found), dice.randint(1, len(found)))
    for name in names:
        time.sleep(dice.random() * 0.2)
        with suppress(ProcessLookupError):
            os.kill(found[name], signal.SIGKILL)
    return names


def faults(house: House, known: list[str]) -> list[str]:
    """Lines of raw.md that are no whole note, notes that are there twice, and acknowledged ones that are not there."""
    entries = [one for one in raw.parse(Path(house.layout.path(names.RAW)).read_bytes(), 0) if one.role == "worker"]
    matches = [(one.text, WHOLE.fullmatch(one.text)) for one in entries if one.tag == "CONTEXT"]
    there = [found[1] for _, found in matches if found]
    half = [f"half: {text[:20]}" for text, found in matches if not found]
    half += [
        f"no entry: {one.text[:20]}"
        for one in raw.parse(Path(house.layout.path(names.RAW)).read_bytes(), 0)
        if not one.tag
    ]
    twice = [f"twice: {name}" for name in set(there) if there.count(name) > 1]
    return half + twice + [f"lost: {name}" for name in set(known) - set(there)]


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
def test_kill_loses_no_acknowledged_note_and_leaves_no_process(house: House) -> None:
    """At any moment, any of run, listener and guardian, alone or together; then the next start, or a person's repair."""
    dice = random.Random(11)
    known: set[str] = set()
    struck: set[str] = set()
    for turn in range(ROUNDS):
        hit = strike(noting(house, turn), dice)
        struck |= set(hit)
        house.begun[-1].wait(60)
        until(
            lambda: files.is_free(house.layout.path(names.MISSION_LOCK))
        )  # else its guardian still ends what it started
        until(lambda: tagged(mission.load(house.layout).id) == [])
        known |= set(acknowledged(house))
        repaired = house.harness("doctor", "--fix") if turn % 2 else paused(house)
        assert (repaired.code, "moved away" in repaired.out) == (0 if turn % 2 else STOPPED, False), (
            turn,
            names,
            repaired,
        )
        assert faults(house, sorted(known)) == [], (turn, names)
    assert len(known) >= ROUNDS
    assert struck == {"run", "guardian", "inbox"}


def test_a_note_that_is_lost_doubled_or_half_there_is_noticed(house: House) -> None:
    """The check of the loop above is no check that cannot fail."""
    layout = house.layout
    for text in (f"1-1-1 {TEXT}", f"1-1-2 {TEXT}", f"1-1-2 {TEXT}", f"1-1-3 {TEXT[:50]}"):
        raw.append(layout, "worker", "F-001", [("CONTEXT", text)])
    assert faults(house, ["1-1-1", "1-1-2", "1-1-4"]) == [f"half: 1-1-3 {TEXT[:14]}", "twice: 1-1-2", "lost: 1-1-4"]
