"""What comes back from a machine is checked before it counts; submodules and LFS objects do not travel."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import NeedsPerson
from harness.mission import config, lease, mission, roles
from harness.mission.open_run import OpenRun, Outcome
from harness.mission.runs import RunContext
from harness.process import supervise
from harness.run.machines import _travel
from harness.workplace import workplace
from harness.workplace.workplace import Tree
from tests.missions import House


def run_of(house: House) -> OpenRun:
    """A run of a worker whose tree is prepared."""
    layout = house.layout
    workplace.use(layout)
    position = workplace.position(layout)
    tree = workplace.folder_of(mission.load(layout).id)
    workplace.prepare(layout, Tree(folder=tree, position=position, untracked=[]), ())
    named: dict[str, Any] = dict.fromkeys(("trigger", "reason", "at", "before"), "")
    context = RunContext(
        run="1-worker", role="worker", feature="F-001", agent=[], attempt=1, **position.asdict(), folder=tree, untracked={},
        live={}, raw=[0, ""], process=supervise.pid_record(), **named,
    )  # fmt: skip
    terms = lease.Terms(run="1-worker", role="", pid=0, since="")
    return OpenRun(
        layout=layout, context=context, mission=mission.load(layout), settings=config.load(layout),
        role=roles.load(layout, "worker"), claims=[], lease=lease.Lease(layout, terms),
        outcome=Outcome.begun(layout, position.tree), started=time.monotonic(),
    )  # fmt: skip


def work(house: House, parent: str, path: str, data: str = "x") -> tuple[str, bytes]:
    """A commit elsewhere with this one file on a parent, and its pack."""
    other = house.folder / f"other-{len(list(house.folder.iterdir()))}"
    subprocess.run(["git", "clone", "-q", str(house.project), str(other)], check=True, env=house.env)

    def git(*words: str, given: str = "") -> str:
        named = ["git", "-c", "user.name=x", "-c", "user.email=x", *words]
        return subprocess.run(
            named, cwd=other, check=True, env=house.env, capture_output=True, text=True, input=given
        ).stdout.strip()

    blob = git("hash-object", "-w", "--stdin", given=data)
    parts, tree = path.split("/"), ""
    entry = f"100644 blob {blob}"
    for name in reversed(parts):
        tree = git("mktree", given=f"{entry}\t{name}\n")
        entry = f"040000 tree {tree}"
    commit = git("commit-tree", tree, *(["-p", parent] if parent else []), "-m", "x")
    return commit, _travel.pack_commit(str(other), commit, [parent] if parent else [])


def test_work_comes_into_the_tree(house: House) -> None:
    """Its files, as if an agent here had written them; HEAD stays."""
    run = run_of(house)
    _travel.apply_work(run, *work(house, house.head(), "new/1.txt"))
    assert sorted(os.listdir(house.tree)) == [".git", ".harness", "new"]
    assert (house.tree / "new/1.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".harness/memory/raw.md", "no path of the tree"),
        ("a/.git/config", "git does not take"),
        ("a/../b", "git does not take"),
    ],
)
def test_paths_that_no_tree_may_have_are_refused(house: House, path: str, why: str) -> None:
    """And the tree stays as it was."""
    run = run_of(house)
    with pytest.raises(_travel.ResultRefused, match=why):
        _travel.apply_work(run, *work(house, house.head(), path))
    assert (house.tree / "main.py").exists()


def test_history_stays_and_nonsense_is_refused(house: House) -> None:
    """A commit without the run's as its parent, bytes that are no pack, a name that is no commit, and too many bytes."""
    run, head = run_of(house), house.head()
    commit, pack = work(house, "", "1.txt")
    for given in (
        (commit, pack),
        (commit, b"PACK nonsense"),
        ("--help", pack),
        (head, pack),
        (commit, bytes(_travel.MAX_WORK_BYTES + 1)),
    ):
        with pytest.raises(_travel.ResultRefused):
            _travel.apply_work(run, *given)
    assert (house.tree / "main.py").exists()


def test_records_of_a_run_have_the_names_of_records(house: House) -> None:
    """No other file of the run is written by a machine."""
    run = run_of(house)
    _travel.keep_records(run, {"turns.jsonl": b"{}\n", "tasks/a/turns.jsonl": b"{}\n"})
    assert (Path(run.paths.tasks) / "a/turns.jsonl").read_text() == "{}\n"
    for name in ("receipts.jsonl", "tasks/../receipts.jsonl", "/etc/passwd", "turns.jsonl/x", "tasks"):
        with pytest.raises(_travel.ResultRefused):
            _travel.keep_records(run, {name: b"{}"})


def test_one_changed_file_in_five_thousand_is_a_small_journey(house: House) -> None:
    """Against the commit that the machine has: at most 100 KB, the state included."""
    for number in range(5000):
        house.write(f"many/{number % 50}/{number}.txt", f"{number}\n" * 20)
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "many")
    old = house.head()
    house.write("many/7/7.txt", "changed\n")
    house.git("commit", "-q", "-a", "-m", "one")
    run = run_of(house)
    sent = len(_travel.pack_commit(str(house.project), house.head(), [old])) + len(
        _travel.compress(_travel.state_files(run))
    )
    assert sent <= 100_000


def test_submodules_and_large_files_are_named(house: House) -> None:
    """The person reads which ones keep the run here."""
    house.git("update-index", "--add", "--cacheinfo", f"160000,{house.head()},vendored")
    house.write("art/.gitattributes", "*.png filter=lfs\n")
    house.git("add", "art")
    house.git("commit", "-q", "-m", "both")
    with pytest.raises(NeedsPerson, match=r"vendored, art/\.gitattributes"):
        _travel.require_portable(str(house.project), house.head())
