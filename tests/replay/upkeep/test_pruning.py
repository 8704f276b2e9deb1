"""`gc` frees room, and takes nothing that rebuilds a prompt, proves a claim or is not merged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from harness.base import clock
from harness.git.checkouts import worktrees
from harness.mission import mission
from harness.state import journal
from harness.workplace import workplace
from tests.missions import House, listing

OLD = clock.stamp(clock.now() - 40 * 86400)


def aged(house: House, run_id: str) -> Path:
    """The run ended long ago; its folder, with a refused file."""
    folder = house.state / "runs" / run_id
    lines = [json.loads(line) for line in house.read("runs.jsonl").split("\n") if line]
    for row in lines:
        row["at"] = OLD if row["run"] == run_id else row["at"]
    text = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in lines]
    (house.state / "runs.jsonl").write_text("".join(text))
    (folder / "result.json").write_text(next(row for row in text if run_id in row))
    journal.adopt(house.layout)
    (folder / "refused" / "kept-out").mkdir(parents=True)
    (folder / "refused" / "kept-out" / "file").write_text("x" * 1000)
    (folder / "stderr.log").write_text("y" * 1000)
    return folder


def freed(house: House, *words: str) -> dict[str, Any]:
    """What gc says."""
    done = house.program("gc", *words, "--json")
    assert (done.code, done.err) == (0, ""), done
    return dict(json.loads(done.out))


def test_old_transcripts_go_and_all_that_rebuilds_and_proves_stays(house: House) -> None:
    """Every byte but three names of the old run is as before; its prompt is rebuilt, its seal holds; a second call frees none."""
    old, new = house.work({"say": "old"})["run"], house.work({"say": "new"}, feature="F-002")["run"]
    folder = aged(house, old)
    before = listing(house.state, "locks", "cache")
    would = freed(house, "--dry-run")
    assert (listing(house.state, "locks", "cache"), would["runs"]) == (before, 1)
    size = sum(len(data) for name, data in before.items() if name.startswith(f"runs/{old}/{('s', 'r')[0]}"))
    assert would["bytes"] == size + 1000
    assert freed(house) == {**would, "dry_run": False}
    after = listing(house.state, "locks", "cache")
    gone = {name.split("/")[2] for name in before.keys() - after.keys()}
    assert gone == {"stream.jsonl", "stderr.log", "refused"}
    assert all(f"runs/{old}/" in name for name in before.keys() - after.keys())
    assert {name: after[name] for name in before.keys() & after.keys()} == {
        n: before[n] for n in before.keys() & after.keys()
    }
    assert house.harness("replay", "--all").out == "2 of 2 runs: the prompt is rebuilt byte for byte\n"
    assert "finished runs and objects: unchanged" in house.harness("doctor").out
    assert "its transcript is gone: gc removed it" in house.harness("log", old).out
    assert "new" in house.harness("log", new).out
    assert folder.is_dir() and freed(house)["bytes"] == 0


def test_days_are_counted_and_the_words_are_for_people(house: House) -> None:
    """A run of 40 days ago stays with 50 and goes with 30; --dry-run says `would`."""
    aged(house, house.work({"say": "old"})["run"])
    assert freed(house, "--keep-days", "50", "--dry-run")["runs"] == 0
    assert house.harness("gc", "--dry-run").out.startswith("would free 0.0 MB: transcripts")
    assert house.harness("gc").out.startswith("freed 0.0 MB: ")
    assert house.harness("gc", "--keep-days", "-1").code == 64


def test_an_agent_cannot_have_anything_removed(house: House) -> None:
    """64 inside a run."""
    house.work({"run": "harness gc --keep-days 0 > out 2>&1 || echo $? >> out"})
    assert house.git("show", "HEAD:out").endswith("\n64")


def test_a_spare_tree_goes_and_one_with_work_in_it_stays(house: House) -> None:
    """Only old, clean and merged ones; the first stays always."""
    house.work({"say": "hello"})
    made = mission.load(house.layout)
    workplace.use(house.layout)
    spare, dirty, late = (Path(workplace.folder_of(made.id, f"tree-{number}")) for number in (2, 3, 4))
    for folder in (spare, dirty, late):
        worktrees.ensure(str(house.project), str(folder), house.head())
    (dirty / "work").write_text("not committed\n")
    long_ago = clock.now() - 40 * 86400
    for folder in (house.tree, spare, dirty):
        os.utime(f"{folder}.index", (long_ago, long_ago))
    assert freed(house)["trees"] == [str(spare)]
    assert [folder.is_dir() for folder in (house.tree, spare, dirty, late)] == [True, False, True, True]
    assert house.work({"say": "again"}, feature="F-002")["outcome"] in ("ok", "no_op")
