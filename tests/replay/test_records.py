"""What the records of a mission have for playing it back."""

from __future__ import annotations

import json
from pathlib import Path

from harness.replay._records import Records
from tests.missions import House
from tests.planned import reply

SAID = reply(status="implemented", notes=[{"tag": "AVOID", "text": "said in the reply"}])
ISSUE = "harness issue 'It is slow' --severity nit"


def records(house: House) -> Records:
    """The records of the mission in the folder."""
    return Records(house.layout, house.layout)


def test_a_run_s_recording_has_its_changes_what_it_asked_and_what_it_said(house: House) -> None:
    """In the order in which it happened, with the reply at the end."""
    steps = [{"run": "echo made > 1.txt"}, {"run": f"harness note first; {ISSUE}; harness reply nowhere || true"}, SAID]
    house.work(*steps)
    (past,) = (found := records(house)).runs
    made = found.recording(past)
    assert [row[0] for row in made["asked"]] == ["note", "issue"]
    assert made["said"][-1] == SAID["say"] and made["outcome"] == "ok"
    assert b"+++ b/1.txt" in found.patch(past)
    assert found.tree(past.result.commit) == house.git("rev-parse", "HEAD^{tree}")


def test_the_work_of_a_run_that_did_not_land_is_found_by_its_ref(house: House) -> None:
    """A run that was cut short, whose feature was then taken from it."""
    run = house.work({"run": "echo half > 1.txt"}, {"fail": "wall"})["run"]
    (past,) = (found := records(house)).runs
    assert b"+half" in found.patch(past.replace(result=past.result.replace(commit="")))
    house.git("update-ref", "-d", f"refs/harness/partial/{run}")
    assert found.patch(past.replace(result=past.result.replace(commit=""))) == b""


def test_what_people_did_is_in_the_order_of_its_files(house: House) -> None:
    """Orders, issues and notes; the length of the file is their place among the runs."""
    assert house.program("feature", "set", "F-002", "priority=7").code == 0
    house.work({"say": "hello"})
    assert house.program("issue", "It has no manual", "--severity", "nit").code == 0
    assert house.program("issue", "close", "I-001", "--why", "it has").code == 0
    assert house.program("note", "--tag", "CONTEXT", "by a person").code == 0
    found = records(house)
    acts = {(act.verb, *act.texts[:2]) for act in found.acts()}
    assert ("order", "feature set", "F-002") in acts and ("issue", "close", "I-001") in acts
    assert ("note", "CONTEXT", "by a person") in acts
    order = next(act for act in found.acts() if act.verb == "order")
    assert order.end <= found.runs[0].before["orders.jsonl"][1]
    issue = next(act for act in found.acts() if act.texts[0] == "report")
    assert "issues.jsonl" not in found.runs[0].after and issue.end > 0


def test_runs_that_were_open_at_once_are_told_from_those_that_followed(house: House) -> None:
    """By the lines of the run log behind which each opened."""
    house.work({"say": "one"})
    house.work({"say": "two"}, feature="F-002")
    assert [past.behind for past in records(house).runs] == [0, 1]
    context = Path(house.layout.run(house.result()["run"]).context)
    value = json.loads(context.read_text())
    value["live"].pop("runs.jsonl")
    context.write_text(json.dumps(value))
    assert [past.behind for past in records(house).runs] == [0, 0]
