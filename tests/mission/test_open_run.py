"""The open run: what it may note, and what it writes when it settles."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from harness.base import clock
from harness.mission import config, features, mission, roles, runs
from harness.mission.lease import Lease, Terms
from harness.mission.open_run import OpenRun, Outcome
from harness.state import names, raw
from harness.state.state import State
from tests.missions import House


def noted(house: House) -> list[str]:
    """The texts in raw.md."""
    path = Path(house.layout.path(names.RAW))
    return [entry.text for entry in raw.entries(str(path), 0)]


def again(house: House, run_id: str) -> OpenRun:
    """A run on disk, opened once more as it was."""
    context = runs.context(house.layout, run_id)
    made = OpenRun(
        layout=house.layout,
        context=context,
        mission=mission.load(house.layout),
        settings=config.load(house.layout),
        role=roles.load(house.layout, context.role),
        claims=[],
        lease=Lease(house.layout, Terms(run=run_id, role=context.role, pid=0, since="")),
        outcome=Outcome.begun(house.layout, context.tree),
        started=time.monotonic(),
    )
    made.outcome.take_queue(features.load(house.layout), context.feature)
    return made


def shell(house: House, *lines: str) -> dict[str, object]:
    """A worker's run whose agent gives these commands; a failing command does not stop it."""
    return house.work({"run": "\n".join(f"{line} || true" for line in lines)})


def test_the_checks_of_a_run_get_what_config_toml_passes(house: House) -> None:
    """Its time limit and its keys, as they are written now."""
    run_id = house.work({"run": "touch 1.txt"})["run"]
    house.config('agent = "scripted"', "check_seconds = 7", "[env]", 'pass = ["A_TOKEN"]')
    place = again(house, run_id).place()
    assert (place.seconds, place.passed) == (7, ["A_TOKEN"])


def test_notes_given_in_parallel_are_counted_too(house: House) -> None:
    """Ten of twenty-four are stored, each whole, and each of the others is refused with a message."""
    out = house.tree / "said"
    house.work({"run": f"for n in $(seq 24); do harness note number $n 2>> '{out}' & done; wait"})
    assert len(noted(house)) == 10
    assert out.read_text().count("it has 10.") == 14


def test_notes_of_a_reply_count_with_the_others(house: House) -> None:
    """One by command and ten by reply: the ten are refused together, and the run's outcome stays."""
    notes = [{"tag": "TRICK", "text": f"number {n}"} for n in range(10)]
    said = json.dumps({"status": "implemented", "notes": notes})
    result = house.work({"run": "harness note first"}, {"say": f"```json harness\n{said}\n```"})
    assert noted(house) == ["first"]
    assert (result["outcome"], "it has 1" in result["reason"]) == ("no_op", True)


def test_a_note_in_a_run_has_at_most_three_hundred_characters(house: House) -> None:
    """Exactly 300 are stored; 301 are refused; a person may write more."""
    out = house.tree / "said"
    shell(house, f"harness note {'x' * 300}", f"harness note {'y' * 301} 2> '{out}'")
    assert noted(house) == ["x" * 300]
    assert "The note has 301 characters; the limit is 300" in out.read_text()
    assert house.harness("note", "z" * 301).code == 0


def test_a_note_carries_role_feature_and_tag(house: House) -> None:
    """A reader sees where it came from; a newline becomes a space."""
    shell(house, "harness note --tag=AVOID $'two\\nlines'")
    line = house.read("memory/raw.md")
    assert line[23:] == "worker F-001 AVOID: two lines\n"


def test_a_roles_own_note_is_shortened_to_one_line(house: House) -> None:
    """Receipts can be long; raw.md is not the place for them."""
    made = again(house, house.work({"say": "nothing"})["run"])
    made.note("FAIL", "x" * 400)
    assert noted(house) == []
    State(house.layout).commit(made.outcome.changes)
    assert noted(house) == ["x" * 299 + "…"]


def test_what_a_role_changes_is_written_only_when_its_journal_is(house: House) -> None:
    """Until then a crash leaves the disk unchanged."""
    outcome = again(house, house.work({"say": "nothing"})["run"]).outcome
    before = house.read("features.json"), house.read("validation-contract.md")
    assert outcome.feature is not None
    outcome.feature.title = "Another"
    outcome.contract = outcome.contract.__class__(setup="true", claims=outcome.contract.claims)
    outcome.save()
    assert (house.read("features.json"), house.read("validation-contract.md")) == before
    State(house.layout).commit(outcome.changes)
    assert house.feature().title == "Another"
    assert "```sh setup\ntrue\n```" in house.read("validation-contract.md")


def test_issues_of_a_reply_land_with_the_result(house: House) -> None:
    """This is for agents that run no commands."""
    reply = '{"status":"implemented","issues":[{"title":"slow","severity":"nit"}]}'
    result = house.work({"say": f"```json harness\n{reply}\n```"})
    assert f'"by":"{result["run"]}","title":"slow"' in house.read("issues.jsonl")


def test_a_run_is_known_by_mission_and_id(house: House) -> None:
    """The tag finds left-over processes; only a worker changes the tree."""
    run = again(house, house.work({"say": "nothing"})["run"])
    assert run.tag == f"{mission.load(house.layout).id}/{run.id}"
    assert run.changes_tree
    assert run.seconds() >= 0


def test_how_a_run_opened_cannot_be_changed(house: House) -> None:
    """A role's script decides the outcome, and nothing else."""
    run = again(house, house.work({"say": "nothing"})["run"])
    for thing, name in (
        (run, "context"),
        (run, "settings"),
    ):
        with pytest.raises(AttributeError, match=f"{name} cannot be assigned: it is frozen"):
            setattr(thing, name, None)
    run.outcome.reply = {"status": "implemented"}
    assert run.reply == {"status": "implemented"}


def test_all_that_one_settle_writes_has_the_same_time(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a second ends meanwhile: a playback's clock stands still while a run settles."""
    shown = house.folder / "clock"
    monkeypatch.setenv(clock.RECORDED, str(shown))
    shown.write_bytes(clock.shown(100, 0.0, clock.SETTLES))
    outcome = Outcome.begun(house.layout, "")
    outcome.begin_changes()
    shown.write_bytes(clock.shown(101, 0.0, clock.SETTLES))
    assert outcome.at == clock.stamp(100)
    outcome.begin_changes()
    assert outcome.at == clock.stamp(101)
