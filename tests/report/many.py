"""A mission with many finished runs, made of records without running anything: for what must stay small and fast."""

from __future__ import annotations

import random
from pathlib import Path

from harness.base import clock
from harness.memory import archive
from harness.memory.archive import ArchiveEntry
from harness.mission import features, receipts, runs
from harness.mission import mission as missions
from harness.mission.features import Feature
from harness.mission.receipts import Receipt
from harness.mission.runs import RunContext, RunResult, Totals
from harness.mission.usage import Usage
from harness.state import files, names
from harness.state.layout import Layout

ROLES = ("planner", "worker", "validator", "curator")
BEGAN = 1_777_000_000
LANES = 3
LESSON = "- [2026-04-24] the suite is green only with a test in it, so run it with -s tests (F-001 · 1x)\n"


def mission(layout: Layout, count: int) -> None:
    """Add so many finished runs to a begun mission: four roles, three trees, costs, red receipts, notes, replies, a memory."""
    chance, totals, rows = random.Random(7), Totals(), list[ArchiveEntry]()
    log = []
    queue = [Feature(id=f"F-{at:03}", title=f"Part {at} of the program", claims=["VAL-1"]) for at in range(1, 41)]
    for at in range(count):
        role, feature = ROLES[at % 4], queue[at // 8 % 40]
        feature.attempts, feature.status = at % 8 // 4 + 1, "passed" if at < count - 60 else "todo"
        made = _run(layout, at, role, feature.id if role in ("worker", "validator") else "", chance)
        totals = _added(totals, made)
        made.totals = totals.asdict()
        made.seal = runs.seal(layout.run(made.run))
        Path(layout.run(made.run).result).write_bytes(files.dump_json(made.asdict()))
        log.append(files.dump_json(made.asdict()))
        if role == "curator":
            entry = "[2026-04-24T10:05:12Z] worker F-001 TRICK: use make"
            for _ in range(5):
                row = {"entry": entry, "disposition": chance.choice(("kept", "promoted", "merged", "dropped"))}
                rows.append(ArchiveEntry(seq=len(rows), target="MEMORY.md", run=made.run, lesson=len(rows), **row))
    Path(layout.path(names.RUN_LOG)).write_bytes(b"".join(log))
    Path(layout.path(names.FEATURES)).write_bytes(features.render(queue))
    files.replace_quickly(layout.path(names.ARCHIVE), b"".join(map(archive.render, rows)))
    files.replace_quickly(layout.path(names.MEMORY), ("## Lessons\n" + LESSON * 150).encode())
    folded = {"generation": count // 4, "first_seq": max(len(rows) - 10, 0), "folded": len(rows)}
    files.replace_quickly(layout.path(names.CURATED), files.dump_json(folded))


def _run(layout: Layout, at: int, role: str, feature: str, chance: random.Random) -> RunResult:
    began = BEGAN + at * 900 + chance.randrange(400)
    seconds = float(chance.randrange(20, 1500))
    run_id = runs.new_id(role, feature, began)
    paths = layout.run(run_id)
    red = role == "validator" and chance.random() < 0.35
    Path(paths.folder).mkdir(parents=True)
    tree = f"{layout.folders.project}/tree-{at % LANES + 1}"
    _context(paths.context, run_id, role, feature, began, tree)
    if role == "validator":
        fired = [
            _receipt(run_id, missions.read(layout).base_commit, number, red and number == 1, chance)
            for number in range(1, 9)
        ]
        Path(paths.receipts).write_bytes(receipts.render(fired))
    Path(paths.prompt).write_text("Do what is due.\n" * 400)
    Path(paths.reply).write_text("It is done, and here is what I found on the way. " * 200)
    note = {"tag": "TRICK", "text": "the suite is green only with a test in it <b>&amp;"}
    Path(paths.notes).write_bytes(files.dump_json(note))
    used = Usage(agent="mine", model="m-1", input=chance.randrange(90_000), cache_read=200_000, output=4_000)
    used.cost_usd, used.cost_source = round(chance.random(), 4), "reported"
    return RunResult(
        run=run_id,
        role=role,
        feature=feature,
        trigger="",
        outcome="ok",
        agent="mine",
        reason="VAL-1 is red (exit 1): < 2 > 3" if red else "",
        accepted=None,
        sweep=None,
        seal="",
        verdict=("red" if red else "green") if role == "validator" else "",
        at=clock.stamp(began + seconds),
        seconds=seconds,
        commit="a" * 40,
        head="b" * 40,
        newly_green=0,
        kept_out=[],
        refused=[],
        mark="",
        totals={},
        usage=None if role == "curator" else used.asdict(),
        confined="bubblewrap",
    )


def _context(path: str, run_id: str, role: str, feature: str, began: int, tree: str) -> None:
    made = RunContext(
        run=run_id,
        role=role,
        feature=feature,
        trigger="",
        reason="",
        agent=["mine"],
        attempt=1,
        before="todo",
        head="b" * 40,
        branch="harness/m",
        tree="c" * 40,
        untracked={},
        live={},
        raw=[0, "0"],
        identity={},
        process={},
        folder=tree,
        at=clock.stamp(began),
    )
    Path(path).write_bytes(files.dump_json(made.asdict()))


def _receipt(run_id: str, head: str, number: int, red: bool, chance: random.Random) -> Receipt:
    return Receipt(
        claim=f"VAL-{number}",
        command=f"test -f {number}.txt",
        phase="after",
        exit=int(red),
        seconds=chance.random(),
        output_sha256="",
        head=head,
        tree=("d" if red else "c") * 40,
        by=run_id,
        host="here",
        at="2026-04-24T10:05:12Z",
        output="AssertionError: <script>alert(1)</script>\n" * 60 if red else "ok\n",
    )


def _added(before: Totals, made: RunResult) -> Totals:
    used = made.usage or {}
    cost, tokens = used.get("cost_usd") or 0.0, sum(used.get(name) or 0 for name in ("input", "cache_read", "output"))
    return before.replace(
        runs=before.runs + 1,
        seconds=before.seconds + made.seconds,
        cost_usd=round((before.cost_usd or 0.0) + cost, 6),
        tokens=(before.tokens or 0) + tokens,
    )
