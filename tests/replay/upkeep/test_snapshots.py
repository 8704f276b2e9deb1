"""Snapshots: one a run, compared and shown; one that is broken is named, and stops only what needs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.state import names, objects
from harness.state.files import digest
from tests.missions import House


def rows_of(house: House, *words: str) -> list[dict[str, Any]]:
    """`snapshot list --json`."""
    return list(json.loads(house.harness("snapshot", "list", "--json", *words).out))


def test_each_run_leaves_one_with_the_commit_that_git_keeps(house: House) -> None:
    """Its commit survives a reset and a pruning of the repository; the identity is the one that the prompt showed."""
    house.identity.mkdir(exist_ok=True)
    (house.identity / "worker.md").write_text("# worker\n\n- one rule\n")
    first = house.work({"run": "echo 1 > 1.txt"}, feature="F-001")
    second = house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    assert [row["id"] for row in rows_of(house)] == [first["run"], second["run"]]
    assert [row["commit"] for row in rows_of(house)] == [first["head"], second["head"]]
    assert [row["id"] for row in rows_of(house, "-n", "1")] == [second["run"]]
    shown = json.loads(house.harness("snapshot", "show", first["run"], "--json").out)
    assert shown["identity"] == {"worker.md": digest((house.identity / "worker.md").read_bytes())}
    assert [row["status"] for row in shown["features"]] == ["validating", "todo"]
    for ref in house.git("for-each-ref", "--format=%(refname)", "refs/harness").split("\n"):
        if "/keep/" not in ref:
            house.git("update-ref", "-d", ref)
    house.git("reset", "-q", "--hard", first["head"] + "^")
    house.git("worktree", "remove", "-f", "-f", str(house.tree))
    house.git("reflog", "expire", "--expire=now", "--all")
    house.git("gc", "-q", "--prune=now")
    assert house.git("cat-file", "-t", first["head"]) == house.git("cat-file", "-t", second["head"]) == "commit"


def test_a_run_that_was_killed_before_its_snapshot_gets_one(house: House) -> None:
    """By the start that settles it."""
    run_id = house.work()["run"]
    path = house.state / "snapshots" / f"{run_id}.json"
    wanted = json.loads(path.read_text())
    path.unlink()
    Path(house.layout.run(run_id).lock).write_text("{}")
    assert house.harness("doctor", "--fix").code == 0
    assert json.loads(path.read_text()) == wanted


def test_the_difference_names_features_and_lines(house: House) -> None:
    """Between two snapshots, and up to now."""
    first = house.work({"run": "echo 1 > 1.txt"}, feature="F-001")["run"]
    second = house.work({"run": "echo 2 > 2.txt"}, feature="F-002")["run"]
    said = house.harness("snapshot", "diff", first, second)
    assert (said.code, "F-002: " in said.out, "status todo -> validating" in said.out) == (0, True, True)
    assert "code: git diff" in said.out
    assert "have the same spec, features" in house.harness("snapshot", "diff", second, second).out
    Path(house.layout.path(names.MEMORY)).write_text("# a person's line\n")
    assert "+# a person's line" in house.harness("snapshot", "diff", second).out


def test_what_is_broken_is_named_and_stops_only_what_needs_it(house: House) -> None:
    """A missing object, wrong bytes, a cut file: by name, with 65; never no difference."""
    first, second = (
        house.work({"run": "echo 1 > 1.txt"})["run"],
        house.work({"run": "echo 2 > 2.txt"}, feature="F-002")["run"],
    )
    live = json.loads(house.read(f"snapshots/{first}.json"))["live"]
    path = Path(objects.path_of(house.layout, live[names.FEATURES]))
    data = path.read_bytes()
    path.chmod(0o644)
    for wrong in (b"{}", None):
        path.unlink() if wrong is None else path.write_bytes(wrong)
        done = house.harness("snapshot", "diff", first)
        assert (done.code, path.name in done.err) == (65, True)
        assert house.harness("snapshot", "diff", second).code == 0
        listed = house.harness("snapshot", "list")
        assert (listed.code, path.name in listed.out, second in listed.out) == (65, True, True)
        assert house.harness("snapshot", "restore", first).code == 65
    path.write_bytes(data)
    (house.state / "snapshots" / f"{second}.json").write_text('{"run":')
    for words in (["show", second], ["diff", first, second], ["restore", second]):
        done = house.harness("snapshot", *words)
        assert (done.code, f"snapshots/{second}.json" in done.err) == (65, True)
    assert house.harness("snapshot", "show", first).code == 0
    assert house.harness("snapshot", "show", "nothing").code == 64


def test_what_was_known_and_due_when_a_run_was_asked(house: House) -> None:
    """`memory at` and `features at`, by a run or its feature; an older record without objects has the summary of the prompt."""
    Path(house.layout.path(names.SUMMARY)).write_text("## Lessons\n- the first lesson\n")
    run_id = house.work({"run": "echo 1 > 1.txt"}, feature="F-001")["run"]
    Path(house.layout.path(names.SUMMARY)).write_text("## Lessons\n- the second lesson\n")
    house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    said = house.harness("memory", "at", "F-001").out
    assert ("the first lesson" in said, "the second" in said, "(absent)" in said) == (True, False, True)
    said = house.harness("features", "at", run_id).out
    assert ("F-001  todo" in said, "due       worker F-001" in said) == (True, True)
    context = Path(house.layout.run(run_id).context)
    row = json.loads(context.read_text())
    row["live"][names.SUMMARY][0] = row["live"][names.MISSION][0][::-1]
    row["live"][names.MEMORY] = ["0" * 64, 3]
    context.write_text(json.dumps(row))
    said = house.harness("memory", "at", run_id).out
    assert ("the first lesson" in said, "not recorded" in said) == (True, True)
