"""The live view's looks: read-only, cheap however large the files are, and patient with whatever becomes of the mission."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from harness.base import clock
from harness.decision import checkpoints
from harness.mission import config
from harness.report.glance import Glance, Watcher
from harness.state import files, names
from tests.decision.test_red_claims import done as sweep
from tests.missions import CHECKOUT, House, differences, listing, until
from tests.report import many

ROW = {"at": 1.0, "kind": "said", "text": "the last words"}
PROGRAM = """import fcntl, os, sys
sys.path.insert(0, {home!r})
sys.dont_write_bytecode = True
from harness.report import screen
from harness.report.glance import Watcher
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
REFUSED = ("fcntl.lockf", "os.mkdir", "os.rename", "os.remove", "os.truncate", "os.link", "os.symlink",
           "subprocess.Popen", "os.fork", "os.posix_spawn", "socket.connect")
def hook(event, args):
    held = event == "fcntl.flock" and args[1] & fcntl.LOCK_EX
    if event in REFUSED or held or (event == "open" and isinstance(args[2], int) and args[2] & WRITES):
        os.write(2, f"it did {{event}} {{args}}".encode())
        os._exit(1)
sys.addaudithook(hook)
watcher = Watcher({project!r})
for _ in range(3):
    found = watcher.look()
print(chr(10).join(screen.plain(found)))
"""


def look(house: House) -> Glance:
    """One look."""
    return Watcher(str(house.project)).look()


def change_last(house: House, **changed: object) -> None:
    """Change the last line of the run log."""
    rows = house.ran()
    rows[-1] |= changed
    Path(house.layout.path(names.RUN_LOG)).write_bytes(b"".join(map(files.dump_json, rows)))


def slow_run(house: House) -> None:
    """A run under way whose agent has said one thing."""
    house.script("worker", {"say": "I begin"}, {"sleep": 60})
    house.begin_role("worker", "F-001")
    until(lambda: any("I begin" in row.text for lane in look(house).lanes for row in lane.rows))


def test_it_only_reads(house: House) -> None:
    """Where the index of proofs is up to date, no file is opened for writing, no program is started, and no lock is taken but
    shared ones, to see which runs live; while a run is under way."""
    slow_run(house)
    many.mission(house.layout, 8)
    checkpoint = ("[[checkpoint]]", 'name = "plan"', 'when = "after-plan"')
    house.config('agent = "scripted"', *checkpoint)
    assert house.harness("status").code == 0
    program = PROGRAM.format(home=str(CHECKOUT), project=str(house.project))
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False, env=house.env
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "I begin" in done.stdout


def test_a_run_under_way_has_its_lane(house: House) -> None:
    """Role, feature, tree, try, and what its agent said; its feature is not in the queue."""
    slow_run(house)
    found = look(house)
    assert [(lane.role, lane.feature, Path(lane.tree).name, lane.attempt, lane.dead) for lane in found.lanes] == [
        ("worker", "F-001", "tree-1", 1, False)
    ]
    assert (found.word, found.state) == ("run", "1 run under way")
    assert [one.id for one in found.ready] == ["F-002"]
    house.begun[0].kill()
    house.begun[0].wait()
    found = look(house)
    assert found.word == "halt"
    assert [lane.dead for lane in found.lanes] == [True]


def bytes_read() -> int:
    """What this process has read until now, in bytes: proc_pid_io(5)."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_a_transcript_of_a_gigabyte_costs_no_more_than_a_small_one(house: House) -> None:
    """Only its end is read."""
    slow_run(house)
    lane = look(house).lanes[0]
    path = Path(house.layout.run(lane.run).stream)
    with path.open("ab") as file:
        file.truncate(2**30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + json.dumps(ROW).encode() + b"\n")
    watcher = Watcher(str(house.project))
    tracemalloc.start()
    before = bytes_read()
    found = watcher.look()
    read, peak = bytes_read() - before, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.lanes[0].rows[-1].text == "the last words"
    assert read < 8 * 2**20
    assert peak < 8 * 2**20


def test_a_long_row_is_found(house: House) -> None:
    """One that is longer than what is read first."""
    slow_run(house)
    path = Path(house.layout.run(look(house).lanes[0].run).stream)
    with path.open("ab") as file:
        file.write(json.dumps({**ROW, "text": "x" * 900_000 + "end"}).encode() + b"\n")
    assert look(house).lanes[0].rows[-1].text.endswith("end")


def test_a_long_run_log_is_read_from_its_end(house: House) -> None:
    """The newest runs, the totals, the newest receipts and notes."""
    many.mission(house.layout, 40)
    house.harness("note", "--tag", "TRICK", "use make")
    found = look(house)
    rows = house.ran()
    assert [one.run for one in found.newest] == [row["run"] for row in reversed(rows)][: len(found.newest)]
    assert found.totals.runs == 40
    assert found.receipts[0].claim == "VAL-8"
    assert found.notes[0].text == "use make"


def test_it_outlives_whatever_becomes_of_the_mission(unbegun: House) -> None:
    """Absent, started, archived, deleted: each poll shows it, and none ends the view."""
    watcher = Watcher(str(unbegun.project))
    assert "no mission" in watcher.look().state
    unbegun.begin()
    first = watcher.look()
    assert (first.id != "", len(first.features)) == (True, 2)
    assert unbegun.harness("init", "--abandon", "--quietly").code == 0
    second = watcher.look()
    assert (second.id != first.id, second.features) == (True, [])
    Path(unbegun.layout.state).rename(unbegun.folder / "away")
    assert "no mission" in watcher.look().state


@pytest.mark.parametrize(
    "name",
    [
        "features.json",
        "runs.jsonl",
        "config.toml",
        "mission.json",
        "escalation.md",
        "memory/raw.md",
        "format",
        "memory/curated.json",
    ],
)
def test_a_file_that_does_not_parse_is_said_and_ends_nothing(house: House, name: str) -> None:
    """The rest is shown; and again at the next look."""
    many.mission(house.layout, 4)
    path = Path(house.layout.state, name)
    path.write_bytes(b"\xff{nonsense\n")
    watcher = Watcher(str(house.project))
    for _ in range(2):
        found = watcher.look()
        assert found.project == str(house.project)
        if name not in ("memory/raw.md", "memory/curated.json"):
            assert found.faults, name


def test_how_it_stands_is_a_sentence(house: House) -> None:
    """Paused, stopped, a question, a checkpoint, a wait, a cap."""
    assert look(house).word == "halt"
    house.harness("pause", "--why", "lunch")
    assert "paused: pause by" in look(house).state
    house.harness("stop")
    assert "stopped" in look(house).state
    house.harness("resume")
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stuck\n---\nWhat now?\n")
    assert (look(house).word, look(house).state) == ("ask", "a person is needed: stuck")
    Path(house.layout.path(names.ESCALATION)).unlink()
    Path(house.layout.path(names.CHECKPOINTS)).mkdir(exist_ok=True)
    Path(house.layout.path(names.CHECKPOINTS), "plan.md").write_text("Read it.\n")
    assert look(house).state == "a person is needed: checkpoint plan"
    Path(house.layout.path(names.CHECKPOINTS), "plan.md").unlink()
    many.mission(house.layout, 4)
    house.config('agent = "scripted"', "[limits]", "max_runs = 4")
    assert look(house).state.startswith("a cap is reached: runs 4 of 4")
    house.config('agent = "scripted"')
    now = int(time.time())
    change_last(house, outcome="limit", at=clock.stamp(now), until=now + 600)
    Path(house.layout.run(house.ran()[-1]["run"]).context).unlink()  # of another agent than the mission has now
    assert look(house).word == "wait"


@pytest.mark.parametrize("when", ["before-feature:F-001", "every-cost-usd:1", "before-done", "after-plan"])
def test_a_checkpoint_that_is_due_is_said_and_nobody_is_told_to_start(house: House, when: str) -> None:
    """As `next` has it, whatever asks for it; until a person has answered, which the next look sees."""
    if when == "before-done":
        sweep(house)
        assert house.role("curator").code == 0
    else:
        many.mission(house.layout, 8)
        house.lay(*[house.feature(name).replace(status="todo", attempts=0) for name in ("F-001", "F-002")])
        change_last(house, accepted=when == "after-plan")
    house.config('agent = "scripted"', "[[checkpoint]]", 'name = "look"', f'when = "{when}"')
    watcher = Watcher(str(house.project))
    found = watcher.look()
    assert (found.word, found.state, found.faults) == ("ask", "a person is needed: checkpoint look", [])
    house.harness("feature", "add", "more tests")
    assert watcher.look().state.endswith("checkpoint look" if when in ("after-plan", "every-cost-usd:1") else "run.sh")
    asks = checkpoints.find(
        house.layout, config.load(house.layout), [house.feature()], found.totals.cost_usd, swept=True
    )
    denied = checkpoints.line(at=house.ran()[-1]["at"], by="me", state="denied", name="look", cause=asks.all[0].cause)
    with Path(house.layout.path(names.CHECKPOINT_LOG)).open("ab") as log:
        log.write(denied)
    found = watcher.look()
    assert (found.word, found.state) == ("halt", "nothing runs; to continue, start run.sh")


def test_looking_leaves_no_trace(house: House) -> None:
    """Not even in the cache, where that is up to date."""
    many.mission(house.layout, 4)
    assert house.harness("status").code == 0
    before = listing(house.project)
    watcher = Watcher(str(house.project))
    for _ in range(2):
        watcher.look()
    assert differences(before, listing(house.project)) == []
