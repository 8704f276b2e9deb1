"""What a finished run leaves: a result, a line in the books, a snapshot, and word to a person where one is needed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from missions import House

from harness import closing, features, files, objects, runs
from harness.features import Feature

USAGE = {"usage": {"cost_usd": 0.25, "tokens": 1000}}


def put(house: House, **changes: object) -> None:
    """Change F-001 as a run would have."""
    house.lay(house.feature().replace(**changes), house.feature("F-002"))


# the result and the books


def test_the_line_in_the_books_is_the_result(house: House) -> None:
    """Byte for byte, so that either can be made from the other."""
    result = house.work({"run": "echo 1 > 1.txt"})
    assert house.read("runs.jsonl").encode() == Path(house.layout.run(result["run"]).result).read_bytes()
    assert (result["commit"], result["head"]) == (house.head(), house.head())
    assert (result["role"], result["feature"], result["agent"]) == ("worker", "F-001", "scripted")


def test_a_finished_run_is_sealed(house: House) -> None:
    """Any later change of its prompt, manifest, context, reply or receipts breaks the seal."""
    result = house.work({"say": "words"})
    run = house.layout.run(result["run"])
    assert result["seal"] == runs.seal(run)
    for name in runs.SEALED:
        path = Path(run.folder, name)
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(b"lie")
        assert runs.broken_seals(house.layout, 1) == [result["run"]]
        path.unlink() if before is None else path.write_bytes(before)
    assert runs.broken_seals(house.layout, 1) == []


def test_totals_run_on_from_line_to_line(house: House) -> None:
    """Runs, seconds, cost and tokens; what no agent told stays unknown."""
    house.work({"say": "nothing"})
    assert (house.result()["totals"]["cost_usd"], house.result()["totals"]["tokens"]) == (None, None)
    for _ in range(2):
        put(house, status="todo")
        house.work(USAGE, {"say": "nothing"})
    totals = [line["totals"] for line in house.ran()]
    assert [row["runs"] for row in totals] == [1, 2, 3]
    assert [row["cost_usd"] for row in totals] == [None, 0.25, 0.5]
    assert totals[2]["tokens"] == 2000
    assert totals[2]["seconds"] == pytest.approx(sum(line["seconds"] for line in house.ran()))


def test_runs_without_a_newly_proven_claim_are_counted(house: House) -> None:
    """Until a validation proves one."""
    house.work({"run": "echo 1 > 1.txt"})
    assert house.result()["totals"]["since_green"] == 1
    house.script("validator", {"say": "nothing to add"})
    house.role("validator", "F-001")
    assert (house.result()["newly_green"], house.result()["totals"]["since_green"]) == (1, 0)


def test_rejected_plans_are_counted_in_a_row(house: House) -> None:
    """An accepted one begins anew; other roles change nothing."""
    house.script("planner", {"say": "no plan"})
    house.role("planner")
    house.role("planner")
    house.work({"say": "nothing"})
    assert [line["totals"]["rejected"] for line in house.ran()] == [1, 2, 2]
    plan = {
        "features": [{"id": "F-003", "title": "Three", "claims": ["VAL-3"]}],
        "contract": [{"id": "VAL-3", "claim": "x", "checks": ["test -f 3"]}],
    }
    house.script("planner", {"say": f"```json harness\n{json.dumps(plan)}\n```"})
    house.role("planner")
    assert (house.result()["accepted"], house.result()["totals"]["rejected"]) == (True, 0)


def test_nothing_of_the_opening_stays_behind(house: House) -> None:
    """Copies, index and lock are gone; the folder has what docs/layout.md names."""
    result = house.work({"run": "echo 1 > 1.txt"})
    assert set(os.listdir(house.layout.run(result["run"]).folder)) == {
        *("context.json", "manifest.json", "prompt.md", "stream.jsonl", "stderr.log", "result.json"),
    }
    assert runs.open_runs(house.layout) == []


# the snapshot


def test_a_snapshot_has_all_that_is_needed_to_go_back(house: House) -> None:
    """The live set by digest, what grows by length and digest, raw.md, and the commit; each object is there."""
    house.harness("note", "hello")
    result = house.work({"run": "echo 1 > 1.txt; harness issue slow"})
    value = json.loads(house.read(f"snapshots/{result['run']}.json"))
    assert (value["run"], value["commit"]) == (result["run"], house.head())
    for name, digest in value["live"].items():
        assert objects.get(house.layout, digest) == (house.state / name).read_bytes()
    assert {"features.json", "validation-contract.md", "config.toml", "mission.json", "format", "spec.md"} == set(
        value["live"]
    )
    for name in ("runs.jsonl", "issues.jsonl"):
        data = (house.state / name).read_bytes()
        assert value["grown"][name] == [files.digest(data), len(data)]
    data = Path(house.layout.raw).read_bytes()
    assert value["raw"] == [len(data), files.digest(data)]


# escalations


def escalate(house: House) -> str:
    """What a person is told after a run, "" where nothing."""
    closing.escalate(house.layout, features.load(house.layout), 0)
    return files.read_text(house.layout.escalation) or ""


def test_where_no_one_is_needed_nothing_is_written(house: House) -> None:
    """A worker is due."""
    assert escalate(house) == ""


def test_a_stuck_mission_says_which_features_wait_and_why(house: House) -> None:
    """Kind stuck, the last word on each, the last runs, and the command."""
    feature = house.feature().replace(status="blocked")
    feature.note("2026-04-24T10:05:12Z", "person", "person", "the vendor is down")
    house.lay(feature, house.feature("F-002").replace(status="passed"))
    text = escalate(house)
    assert text.startswith("---\nkind: stuck\n---\nNo feature can be worked on any more")
    assert "- F-001 blocked after 0 tries: the vendor is down\n" in text
    assert "F-002" not in text
    assert text.endswith('Answer with: harness escalation answer "what to do"\n')


def test_a_stalled_mission_stops_after_the_run_that_reached_the_cap(house: House) -> None:
    """The run itself writes it; once."""
    house.config('agent = "scripted"', "[limits]", "stall_after = 1")
    result = house.work({"say": "nothing"})
    text = house.read("escalation.md")
    assert text.startswith("---\nkind: stalled\n---\nRun after run brought nothing newly proven.\n")
    assert f"- run {result['run']}: no_op\n" in text
    assert escalate(house) == text
    assert (house.harness("next").out, house.harness("next").code) == ("ESCALATE stalled\n", 3)


def test_three_plans_without_one_accepted_are_the_kind_plan(house: House) -> None:
    """Exit code 7."""
    house.script("planner", {"say": "no plan"})
    for _ in range(3):
        house.role("planner")
    assert "kind: plan\n" in house.read("escalation.md")
    assert house.harness("next").code == 7


def test_a_red_setup_is_the_kind_setup_with_what_it_said(house: House) -> None:
    """Every check would be red: a person looks first."""
    path = Path(house.layout.contract)
    path.write_text(path.read_text().replace("### VAL-1", "```sh setup\necho no network; false\n```\n\n### VAL-1", 1))
    put(house, status="validating")
    house.script("validator", {"say": "nothing"})
    assert house.role("validator", "F-001").code == 10
    text = house.read("escalation.md")
    assert "kind: setup\n" in text
    assert "no network" in text
    assert house.feature().attempts == 0
    assert house.harness("next").out == "ESCALATE setup\n"


def test_a_finished_feature_is_no_reason_to_stop(house: House) -> None:
    """All passed: a sweep is due, not a person."""
    house.lay(Feature(id="F-001", title="x", claims=["VAL-1"], status="passed"))
    assert escalate(house) == ""
