"""What a finished run leaves: a result, a line in the run log, a snapshot, and a message to the user where one is needed."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from harness.mission import features, runs
from harness.mission.features import Feature
from harness.run import closing
from harness.state import files, names, objects
from tests.missions import House
from tests.planned import due, stalled

USAGE = {"usage": {"cost_usd": 0.25, "input": 1000}}


def put(house: House, **changes: object) -> None:
    """Change F-001 as a run does."""
    house.lay(house.feature().replace(**changes), house.feature("F-002"))


# the result and the run log


def test_the_line_in_the_books_is_the_result(house: House) -> None:
    """The line equals the result byte for byte, so either can be rebuilt from the other."""
    result = house.work({"run": "echo 1 > 1.txt"})
    assert house.read("runs.jsonl").encode() == Path(house.layout.run(result["run"]).result).read_bytes()
    assert (result["commit"], result["head"]) == (house.head(), house.head())
    assert (result["role"], result["feature"], result["agent"]) == ("worker", "F-001", "scripted")


def test_a_finished_run_is_sealed(house: House) -> None:
    """Any later change to its prompt, manifest, context, reply or receipts breaks the run digest."""
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
    """Runs, seconds, cost and tokens are summed; what no agent reported stays unknown."""
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
    """The count grows until a validation proves a claim."""
    house.work({"run": "echo 1 > 1.txt"})
    assert house.result()["totals"]["since_green"] == 1
    house.script("validator", {"say": "nothing to add"})
    house.role("validator", "F-001")
    assert (house.result()["newly_green"], house.result()["totals"]["since_green"]) == (1, 0)


def test_rejected_plans_are_counted_in_a_row(house: House) -> None:
    """An accepted plan resets the count; other roles do not change it."""
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


@pytest.mark.parametrize("outcome", runs.FREE_OF_BLAME)
def test_what_is_nobodys_fault_is_no_rejected_plan_no_stall_and_no_judgement(house: House, outcome: str) -> None:
    """A planner or validator has not failed if its vendor failed or if it was killed."""
    house.script("planner", {"fail": outcome})
    house.role("planner")
    put(house, status="validating")
    house.write("1.txt")  # green, so that the validator's agent runs
    house.git("add", "1.txt")
    house.git("commit", "-q", "-m", "part one")
    house.script("validator", {"fail": outcome})
    house.role("validator", "F-001")
    assert [line["outcome"] for line in house.ran()] == [outcome] * 2
    totals = house.result()["totals"]
    assert (totals["rejected"], totals["since_green"]) == (0, 0)
    assert (house.feature().status, house.feature().attempts) == ("validating", 0)


def test_nothing_of_the_opening_stays_behind(house: House) -> None:
    """Copies, index and lock are removed; the run folder holds what docs/layout.md lists."""
    result = house.work({"run": "echo 1 > 1.txt"})
    assert set(os.listdir(house.layout.run(result["run"]).folder)) == {
        *("context.json", "manifest.json", "prompt.md", "stream.jsonl", "stderr.log", "result.json"),
    }
    assert runs.open_runs(house.layout) == []


# the snapshot


def test_a_snapshot_has_all_that_is_needed_to_go_back(house: House) -> None:
    """Digests of managed files, lengths of append-only files, raw.md, and the commit; each object exists."""
    house.harness("note", "hello")
    result = house.work({"run": "echo 1 > 1.txt; harness issue slow"})
    value = json.loads(house.read(f"snapshots/{result['run']}.json"))
    assert (value["run"], value["commit"]) == (result["run"], house.head())
    for name, digest in value["live"].items():
        assert objects.get(house.layout, digest) == (house.state / name).read_bytes()
    managed = {
        "features.json",
        "validation-contract.md",
        "config.toml",
        "mission.json",
        "git.json",
        "format",
        "spec.md",
    }
    assert managed == set(value["live"])
    for name in ("runs.jsonl", "issues.jsonl"):
        data = (house.state / name).read_bytes()
        assert value["grown"][name] == ["", len(data)]
    assert value["raw"] == [os.path.getsize(house.layout.path(names.RAW)), "0"]


# escalations


def escalate(house: House) -> str:
    """The text of the escalation after a run, "" for none."""
    closing.escalate(house.layout, features.load(house.layout), 0)
    return files.read_text(house.layout.path(names.ESCALATION)) or ""


def test_where_no_one_is_needed_nothing_is_written(house: House) -> None:
    """A worker is due."""
    assert escalate(house) == ""


def test_a_stuck_mission_says_which_features_wait_and_why(house: House) -> None:
    """The kind is stuck; the text has the last note on each feature, the last runs, and the command."""
    feature = house.feature().replace(status="blocked")
    feature.note("2026-04-24T10:05:12Z", "person", "person", text="the vendor is down")
    house.lay(feature, house.feature("F-002").replace(status="passed"))
    text = escalate(house)
    assert text.startswith("---\nkind: stuck\n---\nNo feature can be worked on any more")
    assert "- F-001 blocked after 0 tries: the vendor is down\n" in text
    assert "F-002" not in text
    assert text.endswith('Answer with: run.sh escalation answer "what to do"\n')


def test_a_stalled_mission_stops_after_the_run_that_reached_the_cap(house: House) -> None:
    """The run itself writes the escalation, once."""
    run = stalled(house)
    text = house.read("escalation.md")
    assert text.startswith("---\nkind: stalled\n---\nFeatures are set aside, or runs change nothing, ")
    assert f"- run {run}: worker F-001 ok  blocked: docker is missing\n" in text
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
    """Every check would be red, so a person has to look first."""
    path = Path(house.layout.path(names.CONTRACT))
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
    """All features passed: a sweep is due, not a person."""
    house.lay(Feature(id="F-001", title="x", claims=["VAL-1"], status="passed"))
    assert escalate(house) == ""


# spending


def uncounted(house: House) -> int:
    """The number of runs with an unknown cost, as of the newest run."""
    return int(house.result()["totals"]["uncounted"])


def again(house: House, *steps: dict[str, object]) -> dict[str, object]:
    """A worker's run on F-001, whatever its status was before."""
    put(house, status="todo")
    return house.work(*steps)


def test_the_result_has_what_each_agent_told_and_who_was_asked(house: House) -> None:
    """The sum, the vendors' own blocks, and the names in order; null where no agent reported usage."""
    mine = 'command = ["sh", "-c", "echo done"]'
    house.config('agent = ["scripted", "mine"]', "[agents.mine]", mine)
    result = house.work({"usage": {"input": 10, "output": 2}}, {"fail": "limit"})
    assert (result["agents"], result["agent"], result["until"]) == (["scripted", "mine"], "mine", 0)
    assert (result["usage"]["input"], result["usage"]["cache_read"], result["usage"]["cost_usd"]) == (10, None, None)
    assert result["usage"]["raw"] == [{"agent": "scripted", "block": {"input": 10, "output": 2}}]
    house.config('agent = "scripted"')
    assert again(house, {"say": "nothing"})["usage"] is None


def test_a_cost_that_no_vendor_tells_is_computed_from_the_price_table(house: House) -> None:
    """The result marks the cost as computed; a reported cost is kept."""
    house.config('agent = "scripted"', '[prices."m-5"]', "input = 1.0", "output = 10")
    used = {"model": "vendor/m-5-20250929", "input": 500_000, "output": 100_000}
    told = house.work({"usage": used})["usage"]
    assert (told["cost_usd"], told["cost_source"]) == (1.5, "table")
    assert (house.result()["totals"]["cost_usd"], uncounted(house)) == (1.5, 0)
    told = again(house, {"usage": {**used, "cost_usd": 0.5}})["usage"]
    assert (told["cost_usd"], told["cost_source"]) == (0.5, "reported")  # type: ignore[index]  # result.json is plain


def test_runs_whose_cost_nobody_tells_are_counted(house: House) -> None:
    """Unpriced tokens and a user's agent without usage count; our own agents are free, and a limit used nothing."""
    house.work({"say": "free"})
    again(house, {"usage": {"input": 5, "cost_usd": 0.25}})
    assert uncounted(house) == 0
    again(house, {"usage": {"input": 5}})
    assert uncounted(house) == 1
    house.config('agent = "mine"', "[agents.mine]", 'command = ["true"]')
    again(house)
    assert (uncounted(house), house.result()["totals"]["cost_usd"]) == (2, 0.25)


def test_an_agent_that_let_nobody_in_is_not_said_to_have_cost_something(house: House) -> None:
    """A limit, a failed login or a wrong setting costs nothing; usage reported before it counts."""
    for outcome in ("limit", "auth", "config"):
        again(house, {"fail": outcome})
    assert uncounted(house) == 0
    again(house, {"usage": {"input": 5}}, {"fail": "limit"})
    assert uncounted(house) == 1


def test_a_run_that_comes_near_a_cap_says_so_once(house: House) -> None:
    """The run prints one more line at 80 %; the next run does not repeat it."""
    house.config('agent = "scripted"', "[limits]", "max_cost_usd = 1.0", "max_tokens = 10_000")
    house.script("worker", {"usage": {"cost_usd": 0.41, "input": 10}})
    said = []
    for _ in range(3):
        put(house, status="todo")
        said.append(house.role("worker", "F-001").out)
    assert said[0].count("\n") == 1
    assert said[1].split("\n")[1:] == ["  warning: cost 0.82 of 1.00 USD (82 %)", ""]
    assert said[2].count("\n") == 1
    assert house.harness("next").out == "BUDGET cost\n"


# limits


def waits(house: House, **fail: object) -> int:
    """The seconds that the mission waits for the vendor after a run that ended at its limit."""
    before = int(time.time())
    again(house, {"fail": "limit", **fail})
    return int(house.result()["until"]) - before


def test_the_vendors_own_time_is_waited_for_and_a_little_longer(house: House) -> None:
    """The extra wait is at most a tenth and at most a minute; an implausible time is ignored."""
    now = int(time.time())
    assert 100 <= waits(house, until=now + 100) <= 115
    assert 50_000 <= waits(house, until=now + 50_000) <= 50_065
    assert 8 * 86400 <= waits(house, until=now + 10**9) <= 8 * 86400 + 65


@pytest.mark.parametrize("until", [0, 1777, -5])
def test_without_a_time_the_wait_doubles_with_each_limit_in_a_row(house: House, until: int) -> None:
    """The wait grows from a minute to an hour; any other outcome resets it."""
    for least in (60, 120, 240):
        assert least <= waits(house, until=until) <= 1.1 * least + 5
    if until:
        return
    line = json.loads(house.read("runs.jsonl").split("\n")[-2])
    books = Path(house.layout.path(names.RUN_LOG))
    assert 480 <= waits(house) <= 533
    books.write_bytes(books.read_bytes() + 9 * files.dump_json(line))
    assert 3600 <= waits(house) <= 3665
    again(house, {"say": "back"})
    assert house.result()["until"] == 0
    assert 60 <= waits(house) <= 71


def test_a_stalled_mission_shows_a_line_for_every_run_that_brought_nothing(house: House) -> None:
    """Run, role, feature, outcome, and the first line of the reason."""
    house.script("planner", {"say": "no plan"})
    for outcome in ("agent_error", "limit", "wall", "agent_error"):
        again(house, {"run": "date +%N > 1.txt"}, {"fail": outcome, "reason": f"why {outcome}\nand more"})
    put(house, status="todo", attempts=0)
    house.role("planner")
    stalled(house)
    lines = [line for line in house.read("escalation.md").split("\n") if line.startswith("- run ")]
    ran = [line["run"] for line in house.ran() if line["outcome"] != "limit"]
    assert [line.split(" ")[2].rstrip(":") for line in lines] == ran[::-1]
    assert lines[0].endswith(": worker F-001 ok  blocked: docker is missing")
    assert ": planner not accepted  " in lines[1]
    assert lines[2].endswith(": worker F-001 agent_error  why agent_error")
    assert len(lines) == 5


# the caps of a feature and of a day


def spending(house: House, usd: float, feature: str) -> dict[str, object]:
    """A run of a worker that reports this cost, and then would go on."""
    return house.work({"usage": {"cost_usd": usd, "input": 10}}, {"run": f"echo {usd} >> {feature}"}, feature=feature)


def test_a_feature_at_its_cap_waits_for_a_person_after_all_others(house: House) -> None:
    """Its run ends there without an attempt used; what other features cost does not count in it; then BUDGET, with 6."""
    house.config('agent = "scripted"', "[limits]", "max_cost_usd_feature = 2.0", "max_cost_usd = 50.0")
    assert spending(house, 1.5, "F-001")["outcome"] == "ok"
    house.lay(house.feature().replace(status="failing", attempts=1), house.feature("F-002"))
    assert due(house) == "NEXT worker F-001"
    result = spending(house, 0.5, "F-001")
    assert (result["outcome"], house.feature().attempts) == ("killed", 1)
    assert str(result["reason"]).startswith("ended at its cap: cost of the feature 2.00 of 2.00 USD (100 %)")
    assert due(house) == "NEXT worker F-002"
    assert spending(house, 1.9, "F-002")["outcome"] == "ok"
    house.lay(house.feature(), house.feature("F-002").replace(status="passed"))
    done = house.harness("next")
    assert (done.code, done.out) == (6, "BUDGET feature F-001\n")
    assert "cost of the feature 2.00 of 2.00 USD (100 %): raise max_cost_usd_feature" in house.harness("status").out


def test_a_day_has_a_cap_that_the_next_day_does_not_know(house: House) -> None:
    """The run ends there, and the mission with 6; seen from the next day, nothing is spent."""
    house.config('agent = "scripted"', "[limits]", "max_cost_usd_day = 2.0")
    assert spending(house, 1.5, "F-001")["outcome"] == "ok"
    result = spending(house, 0.6, "F-002")
    assert str(result["reason"]).startswith("ended at its cap: cost of the day 2.10 of 2.00 USD")
    assert (house.harness("next").code, due(house)) == (6, "BUDGET day")
    path = Path(house.layout.path(names.RUN_LOG))
    path.write_text(re.sub(r'"at":( ?)"\d{4}-\d\d-\d\d', r'"at":\1"2026-01-01', path.read_text()))
    assert due(house) != "BUDGET day"
