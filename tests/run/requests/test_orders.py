"""A user's order is applied at once or between runs, exactly once, or it is refused and not stored."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, HarnessError, UsageFault
from harness.decision import views
from harness.mission import features, order_log, runs
from harness.run.requests import orders
from harness.state import files, names
from tests.crash import TORTURE
from tests.missions import PROGRAM, House, differences, listing, until
from tests.planned import stalled


def place(house: House, verb: str, *args: str) -> str:
    """An order from this process, as a user gives it."""
    return orders.place(house.layout, verb, list(args))


def lines(house: House) -> list[dict[str, object]]:
    """The lines of orders.jsonl."""
    return [json.loads(line) for line in house.read("orders.jsonl").split("\n") if line]


def put(house: House, **changes: object) -> None:
    """Change F-001 as a run does."""
    house.lay(house.feature().replace(**changes), house.feature("F-002"))


def lingering(house: House) -> subprocess.Popen[bytes]:
    """A worker's run on F-001 that stays open until a signal arrives."""
    house.script("worker", {"sleep": 60})
    role = house.begin_role("worker", "F-001")
    until(lambda: bool(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))))
    return role


# at once, while no run is open


@pytest.mark.parametrize(("key", "value"), [("title", "Another"), ("description", "More words"), ("priority", "7")])
def test_a_feature_is_changed_at_once(house: House, key: str, value: str) -> None:
    """The user may change title, description and priority."""
    assert place(house, "feature set", "F-001", key, value) == f"F-001: {key} is now {value}"
    assert str(getattr(house.feature(), key)) == value
    assert [line.get("state", "asked") for line in lines(house)] == ["asked", "applied"]


@pytest.mark.parametrize("status", ["todo", "failing", "blocked", "validating"])
def test_a_retried_feature_has_all_its_tries_again(house: House, status: str) -> None:
    """Its attempts are zero, and no planner is due first."""
    put(house, status=status, attempts=5, replanned=True)
    assert "todo again" in place(house, "feature retry", "F-001")
    feature = house.feature()
    assert (feature.status, feature.attempts, feature.replanned) == ("todo", 0, False)


def test_a_blocked_feature_is_left_alone_and_says_why(house: House) -> None:
    """It stays blocked until the user retries it."""
    place(house, "feature block", "F-001", "the vendor is down")
    assert house.feature().status == "blocked"
    row = next(row for row in json.loads(house.harness("status", "--json").out)["features"] if row["id"] == "F-001")
    assert row["waits"] == "the vendor is down"
    assert house.harness("next").out == "NEXT worker F-002\n"
    place(house, "feature retry", "F-001")
    assert house.harness("next").out == "NEXT worker F-001\n"


def test_a_manual_claim_is_accepted_at_the_commit_that_was_looked_at(house: House) -> None:
    """The user's receipt names the commit and the note."""
    place(house, "claim accept", "VAL-LOOK", "it looks right to me")
    row = json.loads(house.read("contract-log.jsonl"))
    assert (row["claim"], row["verb"], row["why"], row["commit"]) == (
        "VAL-LOOK",
        "accept",
        "it looks right to me",
        house.head(),
    )
    claims = json.loads(house.harness("status", "--json").out)["claims"]
    assert [(one["word"], one["marks"]) for one in claims if one["claim"] == "VAL-LOOK"] == [("manual", ["accepted"])]


# wrong orders


WRONG = [
    ("feature retry", ["F-009"], "no feature 'F-009'"),
    ("feature block", ["F-009", "why"], "no feature 'F-009'"),
    ("feature set", ["F-001", "status", "passed"], "'status' cannot be set"),
    ("feature set", ["F-001", "priority", "first"], "whole number"),
    ("claim accept", ["VAL-9", ""], "no claim 'VAL-9'"),
    ("escalation answer", ["yes"], "Nothing is escalated"),
    ("accept", ["nothing", "config.toml"], "has no refused 'config.toml'. It has: nothing."),
    ("accept", ["nothing", "../../../main.py"], "has no refused"),
    ("accept", ["nothing", "/etc/passwd"], "has no refused"),
]


@pytest.mark.parametrize(("verb", "args", "words"), WRONG)
def test_a_wrong_order_is_refused_with_the_reason_and_not_kept(
    house: House, verb: str, args: list[str], words: str
) -> None:
    """Nothing on disk changes."""
    before = listing(house.project, ".harness/cache")
    with pytest.raises(UsageFault, match=words.replace(".", r"\.")):
        place(house, verb, *args)
    assert differences(before, listing(house.project, ".harness/cache")) == []


@pytest.mark.parametrize(
    ("verb", "args"),
    [("feature set", ["F-001", "title", "x"]), ("feature block", ["F-001", "x"])],
)
def test_a_passed_feature_is_not_changed_by_hand(house: House, verb: str, args: list[str]) -> None:
    """Proven work stays."""
    put(house, status="passed")
    with pytest.raises(UsageFault, match="passed"):
        place(house, verb, *args)


def test_a_torn_order_is_65_with_its_line(house: House) -> None:
    """Broken is not empty."""
    place(house, "feature retry", "F-001")
    with open(house.layout.path(names.ORDERS), "a") as file:
        file.write('{"id":"O-2"\n')
    with pytest.raises(BrokenFile, match=r"orders.jsonl, line 3: the line is not an order"):
        order_log.pending(house.layout)


# between runs, while one is open


def test_an_order_waits_for_the_run_that_is_under_way(house: House) -> None:
    """The command says so and names the run, which applies the order once when it has settled."""
    role = lingering(house)
    assert place(house, "feature block", "F-002", "not now").startswith("F-002 is blocked")  # no run is about that one
    said = place(house, "feature block", "F-001", "not now")
    assert said.startswith("noted; it is applied when the current run ends (")
    assert "-worker-F-001)" in said
    assert house.feature().status == "in_progress"
    role.terminate()
    assert role.wait() == 143
    assert [house.feature(name).status for name in ("F-001", "F-002")] == ["blocked", "blocked"]
    assert [note["kind"] for note in house.feature().notes] == ["reason", "person"]
    assert [line.get("state", "asked") for line in lines(house)] == ["asked", "applied"] * 2


def test_an_order_that_is_wrong_by_the_time_it_is_applied_is_refused_then(house: House) -> None:
    """The feature has moved since: the order is settled with the reason and never tried again."""
    role = lingering(house)
    place(house, "feature block", "F-001", "not now")
    role.kill()
    role.wait()
    until(lambda: runs.is_dead(house.layout, runs.open_runs(house.layout)[0]))
    house.lay(house.feature().replace(status="passed"), house.feature("F-002"))
    house.work({"say": "nothing"}, feature="F-002")
    assert house.feature().status == "passed"
    assert (lines(house)[1]["state"], order_log.pending(house.layout)) == ("refused", [])
    assert "F-001 is 'passed'" in str(lines(house)[1]["said"])


def test_orders_are_applied_in_the_order_in_which_they_were_given(house: House) -> None:
    """The last order wins."""
    role = lingering(house)
    for reason in ("one", "two", "three"):
        place(house, "feature retry", "F-001") if reason == "two" else place(house, "feature block", "F-001", reason)
    role.terminate()
    role.wait()
    assert [note.get("text") for note in house.feature().notes if note["by"] == "person"] == ["one", "retry", "three"]
    assert house.feature().status == "blocked"


PLACE_AND_DIE = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from harness.run.requests import orders
from harness.state import files
from harness.state.layout import Layout
layout = Layout(sys.argv[2])
count, real = 0, os.replace
def replace(*args):
    global count
    count += 1
    if count == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(*args)
os.replace = replace
orders.place(layout, "feature block", ["F-001", "why"])
print(count)
"""


def test_an_order_is_applied_exactly_once_wherever_the_power_goes(house: House) -> None:
    """SIGKILL before every rename on the way: the order is stored or not, and is never applied twice."""
    package = str(PROGRAM.parent.parent)
    for step in range(1, 12, 1 if TORTURE else 3):
        house.lay(house.feature().replace(status="todo", notes=[]), house.feature("F-002"))
        files.remove(house.layout.path(names.ORDERS))
        done = house.run([sys.executable, "-c", PLACE_AND_DIE, package, str(house.project), str(step)])
        with files.Lock(house.layout.path(names.STATE_LOCK)):
            pass
        assert house.harness("doctor", "--fix").code in (0, 10)
        notes = [note for note in house.feature().notes if note["kind"] == "person"]
        given = (house.state / "orders.jsonl").exists() and bool(house.read("orders.jsonl"))
        assert (len(notes), house.feature().status) == ((1, "blocked") if given else (0, "todo"))
        assert order_log.pending(house.layout) == []
        if done.code == 0:
            break
        assert done.code == -signal.SIGKILL
    else:
        raise AssertionError("it never came to its end")


# answering


def test_an_answer_archives_the_question_and_starts_the_counts_anew(house: House) -> None:
    """Blocked and exhausted features become todo, the totals stay, and the next run reads the answer."""
    house.lay(
        house.feature().replace(status="failing", attempts=5, replanned=True),
        house.feature("F-002").replace(status="blocked"),
    )
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stuck\n---\nWhat now?\n")
    assert house.harness("next").code == 3
    assert "answered" in place(house, "escalation answer", "use the other library")
    assert not os.path.exists(house.layout.path(names.ESCALATION))
    archived = next(Path(house.layout.path(names.ESCALATIONS)).iterdir())
    assert archived.name.endswith("-stuck.md")
    assert archived.read_text().startswith("---\nkind: stuck\n---\nWhat now?\n")
    assert archived.read_text().endswith("\n\nuse the other library\n")
    found = features.load(house.layout)
    assert [(feature.status, feature.attempts, feature.replanned) for feature in found] == [("todo", 0, False)] * 2
    assert house.harness("next").out == "NEXT worker F-001\n"
    house.work({"say": "nothing"})
    assert "use the other library" in house.prompt()


@pytest.mark.parametrize("text", ["What now?\n", "---\nkind:\n---\n", "---\nkind: \n---\nWhat?\n", ""])
def test_an_escalation_without_a_kind_is_told_and_its_remedy_works(house: House, text: str) -> None:
    """A person wrote or damaged the file: the command that the message names ends the escalation."""
    Path(house.layout.path(names.ESCALATION)).write_text(text)
    done = house.harness("next")
    assert (done.code, "run.sh escalation answer TEXT" in done.err) == (65, True)
    assert house.harness("escalation", "answer", "go on").code == 0
    assert (house.harness("next").code, os.path.exists(house.layout.path(names.ESCALATION))) == (0, False)
    (archived,) = Path(house.layout.path(names.ESCALATIONS)).iterdir()
    assert (archived.name.endswith("-stuck.md"), archived.read_text().startswith(text)) == (True, True)


def test_an_answer_is_archived_in_its_folder_whatever_the_kind(house: House) -> None:
    """A kind that is not a valid name cannot lead to another folder."""
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: ../../main\n---\n")
    place(house, "escalation answer", "go on")
    assert [path.name.partition("-")[2] for path in Path(house.layout.path(names.ESCALATIONS)).iterdir()] == [
        "stuck.md"
    ]


def test_an_answer_restarts_what_stalled_and_keeps_the_totals(house: House) -> None:
    """since_green and rejected restart at zero; runs and seconds keep counting."""
    stalled(house)
    assert house.harness("next").out == "ESCALATE stalled\n"
    before = views.gather(house.layout).totals
    place(house, "escalation answer", "go on")
    totals = views.gather(house.layout).totals
    assert (totals.since_green, totals.rejected, totals.runs, totals.seconds) == (0, 0, before.runs, before.seconds)
    assert house.harness("next").out == "NEXT worker F-001\n"
    assert "a person answered: go on" in house.harness("runs", "list").out


def test_an_answer_is_kept_as_what_it_is(house: House) -> None:
    """An answer is not a run: runs.jsonl does not change."""
    stalled(house)
    before = house.read("runs.jsonl")
    place(house, "escalation answer", "go on\nas before")
    assert house.read("runs.jsonl") == before
    (answer,) = runs.answers(house.layout)
    assert (answer.by, answer.text, answer.after) == ("person", "go on\nas before", house.ran()[0]["run"])


def test_an_escalation_without_its_file_can_be_answered_too(house: House) -> None:
    """The power failed before escalation.md was written, or a person removed it."""
    stalled(house)
    files.remove(house.layout.path(names.ESCALATION))
    assert house.harness("next").out == "ESCALATE stalled\n"
    assert "answered" in place(house, "escalation answer", "go on")
    assert house.harness("next").code == 0


# accepting what was refused


def test_refused_features_are_taken_whole_or_not_at_all(unconfined: House) -> None:
    """A file that does not parse is refused again."""
    house = unconfined
    run_id = house.work({"run": "sed -i 's/Part two/Part 2/' .harness/features.json"})["run"]
    place(house, "accept", run_id, "features.json")
    assert house.feature("F-002").title == "Part 2"
    put(house, status="todo")
    run_id = house.work({"run": "echo '{' > .harness/features.json"})["run"]
    with pytest.raises(BrokenFile):
        place(house, "accept", run_id, "features.json")


def test_what_is_no_whole_live_file_is_for_a_persons_hands(unconfined: House) -> None:
    """For lines of append-only files, strays and patches the message says what to do."""
    house = unconfined
    run_id = house.work(
        {
            "run": "echo x > .harness/PLAN.md; echo '{}' >> .harness/issues.jsonl; mkdir .harness/d; echo x > .harness/d/f"
        }
    )["run"]
    for name in ("PLAN.md", "issues.jsonl", "d/f"):
        with pytest.raises(UsageFault, match="only whole files of the live set can"):
            place(house, "accept", run_id, name)
    with pytest.raises(UsageFault, match=r"has no refused 'd'\. It has: PLAN\.md, d/f, issues\.jsonl"):
        place(house, "accept", run_id, "d")


def test_a_kept_patch_comes_with_the_command_that_applies_it(house: House) -> None:
    """Only the user may change the working folder."""
    house.script("planner", {"run": "echo planner >> main.py"})
    house.role("planner")
    run_id = house.result()["run"]
    with pytest.raises(UsageFault, match=f"git apply .harness/runs/{run_id}/refused/working-folder.patch"):
        place(house, "accept", run_id, "working-folder.patch")


def test_every_verb_refuses_inside_a_run(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for every verb."""
    monkeypatch.setenv("HARNESS_INSIDE", house.work({"say": "nothing"})["run"])
    for verb in orders.VERBS:
        with pytest.raises(HarnessError, match="is not for the inside of a run"):
            place(house, verb)


# a retry that answers what was asked


@pytest.mark.parametrize("kind", ["stuck", "stalled", "plan"])
def test_a_retry_settles_the_escalation_that_it_answers(house: House, kind: str) -> None:
    """Archived as an answer is, and the counts start again: run.sh goes on."""
    house.config('agent = "scripted"', "[limits]", "stall_after = 1")
    house.work({"say": "nothing"})
    house.lay(house.feature().replace(status="failing", attempts=5, replanned=True))
    Path(house.layout.path(names.ESCALATION)).write_text(f"---\nkind: {kind}\n---\nWhat now?\n")
    assert "that answers the escalation" in place(house, "feature retry", "F-001")
    assert not os.path.exists(house.layout.path(names.ESCALATION))
    (archived,) = Path(house.layout.path(names.ESCALATIONS)).iterdir()
    assert (archived.name.endswith(f"-{kind}.md"), "What now?" in archived.read_text()) == (True, True)
    assert archived.read_text().endswith("\n\nrun.sh feature retry F-001\n")
    assert house.harness("next").out == "NEXT worker F-001\n"
    assert [one.after for one in runs.answers(house.layout)] == [house.ran()[0]["run"]]


@pytest.mark.parametrize("kind", ["setup", "unlanded", "mine"])
def test_a_retry_leaves_an_escalation_about_something_else(house: House, kind: str) -> None:
    """A red setup is still red; the message names the command that shows what is asked."""
    house.lay(house.feature().replace(status="failing"))
    Path(house.layout.path(names.ESCALATION)).write_text(f"---\nkind: {kind}\n---\nWhat now?\n")
    assert place(house, "feature retry", "F-001").endswith("; what else a person is asked: run.sh escalation")
    assert os.path.exists(house.layout.path(names.ESCALATION))


def test_a_retry_does_not_answer_what_a_planner_could_not_plan(house: House) -> None:
    """Another feature still needs the plan that was refused three times."""
    spent = house.feature("F-002").replace(status="failing", attempts=3)
    house.lay(house.feature().replace(status="failing", attempts=3), spent)
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: plan\n---\nWhat now?\n")
    assert "what else a person is asked" in place(house, "feature retry", "F-001")
    assert "that answers the escalation" in place(house, "feature retry", "F-002")
    assert house.harness("next").out == "NEXT worker F-001\n"


def test_an_order_that_what_settled_meanwhile_made_wrong_is_refused_with_its_exit_code(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was right when it was looked at: the feature passes before the order has the mission to itself."""
    real = orders.VERBS["feature set"]

    def looked_at(*words: str) -> str:
        said = str(real(*words))
        put(house, status="passed")  # a run settles at this very moment
        return said

    monkeypatch.setitem(orders.VERBS, "feature set", looked_at)
    done = house.harness("feature", "set", "F-001", "title=Later")
    assert (done.code, "F-001 has passed" in done.err) == (UsageFault.code, True), done
    assert (house.feature().title, lines(house)[-1]["state"]) == ("Part one", "refused")
