"""A user's own role in .harness/roles may replace any of ours: it may do what its front matter declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.mission import mission, runs
from harness.mission.features import Feature
from harness.state import names
from harness.workplace import workplace
from tests.missions import CHECKOUT, House, tagged, until

SCRIPT = """import sys

sys.path.append({checkout!r})

from harness.run import main
from harness.run.settle import curator, planner, validator, worker


def nothing(run):
    pass


raise SystemExit(main("{name}", {functions}))
"""
PLAN = {
    "features": [{"id": "F-003", "title": "Three", "claims": ["VAL-3"]}],
    "contract": [{"id": "VAL-3", "claim": "There is a 3", "checks": ["test -f 3.txt"]}],
}
DONE = {"run": "touch 1.txt"}


def own(house: House, name: str, *keys: str, functions: str = "nothing") -> None:
    """Write a role with these permissions and with these functions as its script."""
    folder = Path(house.layout.path(names.ROLES))
    folder.mkdir(exist_ok=True)
    head = "\n".join(
        ["---", f"name: {name}", "summary: helps", "reads: [spec, feature, claims, findings]", *keys, "---"]
    )
    (folder / f"{name}.md").write_text(f"{head}\nHelp.\n")
    (folder / f"{name}.py").write_text(SCRIPT.format(checkout=str(CHECKOUT), name=name, functions=functions))


def block(value: object) -> dict[str, str]:
    """An agent's message with this reply."""
    return {"say": f"```json harness\n{json.dumps(value)}\n```"}


def due(house: House) -> str:
    """The output of `harness next`."""
    return house.harness("next").out.strip()


# a role that commits


@pytest.fixture
def builder(house: House) -> House:
    """A mission with a role that commits and whose settle does nothing by itself."""
    own(house, "builder", "commits: true")
    return house


@pytest.mark.parametrize("functions", ["nothing", "worker.settle"])
def test_what_a_role_that_commits_changed_is_one_commit(builder: House, functions: str) -> None:
    """Its feature goes on to validation, also if the role's settle leaves that to the harness."""
    own(builder, "builder", "commits: true", functions=functions)
    builder.script("builder", DONE)
    before = builder.head()
    assert builder.role("builder", "F-001").code == 0
    assert builder.git("log", "--format=%s", f"{before}..") == "F-001: Part one"
    assert builder.git("status", "--porcelain") == ""
    assert (builder.feature().status, builder.result()["commit"]) == ("validating", builder.head())


def test_a_role_without_a_key_changes_nothing(house: House) -> None:
    """Its change to a tracked file is undone, and its feature keeps its status."""
    own(house, "helper")
    house.script("helper", {"run": "echo spoiled > main.py"})
    before = house.head()
    house.role("helper", "F-001")
    assert (house.head(), house.feature().status) == (before, "todo")
    assert (house.project / "main.py").read_text() == "print('hello')\n"


def test_without_a_feature_a_role_that_commits_takes_the_next(builder: House) -> None:
    """It is refused if no feature is ready, or if the requested one cannot be worked on."""
    builder.script("builder", DONE)
    builder.role("builder")
    assert builder.result()["feature"] == "F-001"
    refused = builder.role("builder", "F-001")
    assert (refused.code, "F-001 is 'validating': a builder takes what is todo or failing" in refused.err) == (64, True)
    builder.lay(Feature(id="F-001", title="Part one", claims=["VAL-1"], status="passed"))
    refused = builder.role("builder")
    assert (refused.code, "No feature is ready for a builder" in refused.err) == (64, True)


def test_what_a_person_changed_is_no_work_of_its_own(builder: House) -> None:
    """It does not see their edit, and its commit has only what it did."""
    path = builder.write("main.py", "mine\n")
    builder.script("builder", {"run": "grep -c mine main.py || touch 1.txt"})
    assert builder.role("builder", "F-001").code == 0
    assert builder.git("show", "--format=", "--name-only", "HEAD") == "1.txt"
    assert (path.read_text(), builder.git("status", "--short", "-uno")) == ("mine\n", " M main.py")


def test_its_reply_is_that_of_a_worker(builder: House) -> None:
    """A blocked reply keeps its reason; an invalid reply is the agent's failure, and its tree is kept."""
    builder.script("builder", block({"status": "blocked", "reason": "no key", "needs": ["F-002"]}))
    builder.role("builder", "F-001")
    assert (builder.feature().status, builder.result()["reason"]) == ("blocked", "blocked, needs F-002: no key")
    builder.script("builder", {"run": "touch 2.txt"}, block({"status": "splendid"}))
    builder.role("builder", "F-002")
    assert builder.result()["outcome"] == "agent_error"
    assert builder.git("log", "-1", "--format=%s") == "wip(F-002): agent_error"


def test_its_cut_work_is_shown_to_the_next(builder: House) -> None:
    """Any role may have done the work."""
    builder.script("builder", DONE, {"fail": "wall"})
    builder.role("builder", "F-001")
    assert "wip(F-001): wall" in builder.git("log", "-1", "--format=%s")
    builder.script("worker", {"say": "nothing to add"})
    builder.role("worker", "F-001")
    assert "Cut work" in builder.prompt()


def test_what_it_changed_is_shown_to_the_one_that_judges(builder: House) -> None:
    """The prompt has the diff of its commit, under its name."""
    builder.script("builder", DONE)
    builder.role("builder", "F-001")
    builder.role("validator", "F-001")
    assert "What its last builder changed" in builder.prompt()
    assert builder.feature().status == "passed"


def test_killed_at_work_its_tree_is_kept(builder: House) -> None:
    """The next start settles it, even if the role's files are gone by then."""
    builder.script("builder", {"run": "touch 1.txt; sleep 60"})
    role = builder.begin_role("builder", "F-001", session=True)
    until((builder.tree / "1.txt").exists)
    (run_id,) = runs.open_runs(builder.layout)
    role.kill()
    role.wait()
    until(lambda: not tagged(mission.load(builder.layout).id) and runs.is_dead(builder.layout, run_id))
    assert builder.program("init", "--quietly").code == 0
    assert builder.git("log", "-1", "--format=%s", builder.result()["commit"]) == "wip(F-001): killed"
    assert builder.result()["commit"] == workplace.position(builder.layout).head
    assert (builder.feature().status, builder.result()["role"]) == ("todo", "builder")


# a role that judges


def test_the_verdict_of_a_role_that_judges_decides(house: House) -> None:
    """Green passes and counts as proof; red fails; an agent's statement does neither."""
    own(house, "auditor", "judges: true", "agent_optional: true", functions="validator.settle, validator.prepare")
    house.lay(Feature(id="F-001", title="Part one", claims=["VAL-1"], status="validating"))
    assert house.role("auditor", "F-001").code == 10
    assert house.feature().status == "failing"
    house.work(DONE)
    assert house.role("auditor", "F-001").code == 0
    assert (house.feature().status, house.result()["newly_green"]) == ("passed", 1)
    claims = {row["claim"]: row["word"] for row in json.loads(house.harness("status", "--json").out)["claims"]}
    assert claims["VAL-1"] == "proven"


def test_what_it_aims_joins_the_contract(house: House) -> None:
    """Its reply has the schema of a validator's."""
    own(house, "auditor", "judges: true", "agent_optional: true", functions="validator.settle, validator.prepare")
    house.work(DONE)
    house.script("auditor", block({"checks": [{"claim": "VAL-1", "run": "test -s 1.txt", "why": "empty"}]}))
    house.role("auditor", "F-001")
    assert "test -s 1.txt" in house.read("validation-contract.md")
    house.work(DONE)
    house.script("auditor", block({"checks": "all"}))
    (house.project / "1.txt").write_text("1\n")
    house.git("commit", "-qam", "by hand")
    house.role("auditor", "F-001")
    assert (house.result()["outcome"], "'checks'" in house.result()["reason"]) == ("agent_error", True)


# a role that plans


def test_the_plan_of_a_role_that_plans_lands(house: House) -> None:
    """While its agent lives a bad plan is refused with its reasons; a run without a plan is counted."""
    own(house, "architect", "plans: true", functions="planner.settle")
    bad = house.write("bad.json", json.dumps({**PLAN, "contract": []}))
    house.script("architect", {"run": f"harness reply '{bad}'"})
    house.role("architect")
    assert "claim" in (Path(house.layout.run(house.result()["run"]).stderr)).read_text()
    assert house.result()["totals"]["rejected"] == 1
    house.script("architect", block(PLAN))
    assert house.role("architect").code == 0
    assert house.feature("F-003").status == "todo"
    assert (house.result()["accepted"], house.result()["totals"]["rejected"]) == (True, 0)


# a role that curates


def test_a_role_that_curates_folds_whatever_its_agent_did(house: House) -> None:
    """Code does it; and such a run does not count towards a standstill."""
    own(house, "librarian", "curates: true", functions="curator.settle")
    house.harness("note", "--tag", "TRICK", "wc -l < file prints no name")
    house.script("librarian", {"fail": "wall"})
    house.role("librarian")
    assert "wc -l < file prints no name" in house.read("memory/MEMORY.md")
    assert (house.result()["outcome"], house.result()["totals"]["since_green"]) == ("wall", 0)


# which role is due


def test_next_names_ours_before_the_users_own(house: House) -> None:
    """The user runs a role beside ours by hand."""
    own(house, "builder", "commits: true")
    own(house, "auditor", "judges: true")
    assert due(house) == "NEXT worker F-001"
    house.work(DONE)
    assert due(house) == "NEXT validator F-001"


def test_a_file_in_the_place_of_ours_may_do_what_ours_does(house: House) -> None:
    """A role from before these keys existed keeps working."""
    own(house, "worker", functions="worker.settle")
    assert due(house) == "NEXT worker F-001"
    house.work(DONE)
    assert house.git("log", "-1", "--format=%s") == "F-001: Part one"
    assert "Help." in house.prompt()


def test_where_none_of_ours_can_do_it_the_users_own_is_due(house: House) -> None:
    """If no role can do it, the message says what to write."""
    own(house, "worker", "commits: false")
    done = house.harness("next")
    assert (done.code, "No role here commits. Write 'commits: true'" in done.err) == (64, True)
    own(house, "builder", "commits: true")
    assert due(house) == "NEXT builder F-001"


def test_a_role_that_stopped_parsing_is_named_where_it_is_due(house: House) -> None:
    """In the place of ours it ends with file and line; beside ours it blocks nothing."""
    own(house, "builder", "commits: perhaps")
    assert due(house) == "NEXT worker F-001"
    own(house, "worker", "commits: perhaps")
    done = house.harness("next")
    assert (done.code, "roles/worker.md, line 5" in done.err) == (65, True)
