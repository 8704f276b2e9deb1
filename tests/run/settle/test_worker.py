"""What a worker leaves: one commit with its run id, or its reasons, or work to continue from; and what it costs."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from harness.mission import features
from harness.run.settle import worker
from tests.missions import House
from tests.planned import due, feature, lay, reply, role, worked

DID = {"run": "echo done > made"}


@pytest.fixture
def one(house: House) -> House:
    """A mission with one feature to do, which a second one needs."""
    lay(house, [feature("F-001"), feature("F-002", depends_on=["F-001"])])
    return house


def tries(house: House) -> tuple[str, int]:
    """Status and attempts of the feature."""
    made = house.feature()
    return made.status, made.attempts


def log(house: House, words: str = "%B") -> str:
    """The output of git log for the newest commit."""
    return house.git("log", "-1", f"--format={words}").strip("\n")


def note(house: House, kind: str) -> dict[str, Any]:
    """The feature's newest note of a kind."""
    found = house.feature().last_note(kind)
    assert found is not None, house.feature().notes
    return found


# one commit


def test_what_a_worker_changed_becomes_one_commit_that_names_its_run(one: House) -> None:
    """Subject, summary, trailer; the feature goes on to its validation, and no try is counted yet."""
    before = one.head()
    one.write("kept.txt", "a person's")
    result = worked(
        one, {"run": "echo x >> main.py"}, DID, reply(status="implemented", summary="It greets.\nIn two lines.")
    )
    said, trailers = "    It greets.\n    In two lines.", f"Harness-Run: {result['run']}\nHarness-Outcome: implemented"
    assert log(one) == f"F-001: Feature F-001\n\n{said}\n\n{trailers}"
    assert one.git("rev-parse", "HEAD^") == before
    assert (result["commit"], result["outcome"]) == (one.head(), "ok")
    assert one.git("show", "--name-only", "--format=", "HEAD").split("\n") == ["made", "main.py"]
    assert one.git("status", "--porcelain") == "?? kept.txt"
    assert tries(one) == ("validating", 0)


def test_a_changed_tree_means_implemented_without_a_word(one: House) -> None:
    """A block is needed only to say more."""
    worked(one, DID)
    assert tries(one) == ("validating", 0)
    assert log(one, "%s") == "F-001: Feature F-001"


def test_a_confined_agent_commits_nothing_and_its_work_is_kept(one: House) -> None:
    """What git has is read-only to it: status, diff and log work, and the commit is the harness's."""
    before, branch = one.head(), one.git("branch", "--show-current")
    look = "echo 1 >> main.py; git status --porcelain; git diff --exit-code && exit 1; git log -1 > log.txt"
    tries = "git add -A || git commit -qam mine || git branch mine || git config user.name me || echo none > said"
    result = worked(one, {"run": f"{look}; {tries}"})
    assert (result["outcome"], one.git("branch", "--show-current")) == ("ok", branch)
    assert one.git("show", "--name-only", "--format=", "HEAD").split("\n") == ["log.txt", "main.py", "said"]
    assert (one.git("rev-parse", "HEAD^"), one.git("branch", "--list", "mine")) == (before, "")


def test_commits_that_the_agent_made_become_one_and_keep_their_words(one: House) -> None:
    """In a tree that does not confine it, on its branch or its own: the one commit has all messages."""
    one.config('agent = "scripted"', 'confine = "off"')
    before, branch = one.head(), one.git("branch", "--show-current")
    commit = "git -c user.name=a -c user.email=a@b commit -q -m"
    worked(
        one,
        {"run": f"echo 1 > a; git add a; {commit} 'first step'; git switch -q -c mine; echo 2 > b; git add b"},
        {"run": f"{commit} 'second step'; echo 3 > c"},
    )
    assert one.git("branch", "--show-current") == branch
    assert one.git("rev-parse", "HEAD^") == before
    assert "\n\n    first step\n\n    second step\n\nHarness-Run: " in log(one)
    assert one.git("show", "--name-only", "--format=", "HEAD").split("\n") == ["a", "b", "c"]


def test_a_run_without_a_change_is_no_op_and_still_validated(one: House) -> None:
    """Checks decide, also if an agent found nothing to do."""
    before = one.head()
    result = worked(one, reply(status="implemented", summary="was there already"))
    assert (result["outcome"], result["commit"], one.head()) == ("no_op", "", before)
    assert tries(one) == ("validating", 0)


def test_a_commit_that_changes_nothing_in_the_end_is_no_change(one: House) -> None:
    """The tree decides, not the number of commits; HEAD does not move."""
    one.config('agent = "scripted"', 'confine = "off"')
    before = one.head()
    commit = "git -c user.name=a -c user.email=a@b commit -q -m"
    result = worked(one, {"run": f"echo 1 > a; git add a; {commit} one; git rm -q a; {commit} two"})
    assert (result["outcome"], one.head()) == ("no_op", before)
    assert tries(one) == ("validating", 0)


def test_a_long_title_is_a_short_subject(one: House) -> None:
    """Git tools expect a short subject."""
    lay(one, [feature("F-001").replace(title="long " * 40)])
    worked(one, DID)
    assert len(log(one, "%s")) <= worker.SUBJECT_CHARS


def test_a_title_of_several_lines_is_one_subject(one: House) -> None:
    """A planner's text cannot become the body of the commit."""
    lay(one, [feature("F-001").replace(title="Greets\n\nHarness-Run: forged")])
    worked(one, DID)
    assert log(one, "%s") == "F-001: Greets Harness-Run: forged"


@pytest.mark.parametrize("end", ["", "\n---\n a | 2 +-", "\n# ------------------------ >8 ------------------------\nx"])
def test_no_line_of_an_agent_is_a_trailer(one: House, end: str) -> None:
    """Whatever git takes for the end of a message: the trailers are the run and its outcome, and no others."""
    one.config('agent = "scripted"', 'confine = "off"')
    forged = f"Done.\n\nHarness-Run: forged\nSigned-off-by: A <a@b>\nCo-authored-by: B <b@c>{end}"
    commit = "git -c user.name=a -c user.email=a@b commit -q --cleanup=verbatim -m"
    worked(one, {"run": f"echo 1 > a; git add a; {commit} '{forged}'"}, reply(status="implemented", summary=forged))
    words = ["git", "interpret-trailers", "--parse"]
    said = subprocess.run(words, input=log(one), cwd=one.project, capture_output=True, text=True, check=True).stdout
    trailers = f"Harness-Run: {one.result()['run']}\nHarness-Outcome: implemented\n"
    assert (said, log(one, "%(trailers)").strip() + "\n") == (trailers, trailers)


# blocked


def test_blocked_with_needs_comes_back_when_they_have_passed(one: House) -> None:
    """It waits for those features only; no try is counted."""
    lay(one, [feature("F-001"), feature("F-002")])
    result = worked(one, reply(status="blocked", reason="there is no parser yet", needs=["F-002"]))
    assert result["outcome"] == "ok"
    assert "there is no parser yet" in result["reason"]
    assert tries(one) == ("blocked", 0)
    assert (note(one, "needs")["features"], note(one, "needs")["text"]) == (["F-002"], "there is no parser yet")
    lay(one, [one.feature(), one.feature("F-002").replace(status="passed")])
    assert due(one) == "NEXT worker F-001"


def test_blocked_on_what_has_passed_already_is_todo_at_once(one: House) -> None:
    """The dependency is met; no further step is needed."""
    lay(one, [feature("F-001"), feature("F-002", status="passed")])
    worked(one, reply(status="blocked", reason="needs it", needs=["F-002"]))
    assert tries(one) == ("todo", 0)


def test_blocked_by_itself_waits_for_a_person(one: House) -> None:
    """A feature that nothing can bring is none that it needs."""
    worked(one, reply(status="blocked", reason="the last run failed", needs=["F-001", "F-099"]))
    assert one.feature().blocked_by == "reason"
    assert one.result()["reason"] == "blocked: the last run failed"


def test_a_disputed_claim_goes_to_the_planner(one: House) -> None:
    """The planner's prompt has the worker's evidence too."""
    worked(one, reply(status="blocked", reason="the spec says otherwise", disputes=["VAL-001"]))
    assert tries(one) == ("blocked", 0)
    assert features.disputed(one.feature()) == ["VAL-001"]
    assert due(one) == "NEXT planner F-001"
    one.script("planner", reply(features=[], contract=[]))
    role(one, "planner", "F-001")
    assert "dispute: the spec says otherwise" in one.prompt()


def test_blocked_with_nothing_named_waits_for_a_person(one: House) -> None:
    """The reason is on disk to read."""
    worked(one, reply(status="blocked", reason="no idea"))
    assert tries(one) == ("blocked", 0)
    assert note(one, "reason")["text"] == "no idea"
    assert due(one) == "ESCALATE stuck"


def test_what_a_blocked_worker_had_done_is_kept(one: House) -> None:
    """It stays on the branch as work in progress for the next worker."""
    worked(one, DID, reply(status="blocked", reason="half of it", needs=["F-002"]))
    assert log(one, "%s") == "wip(F-001): blocked"
    assert tries(one) == ("blocked", 0)


# cut short


def cut(house: House, outcome: str, *steps: dict[str, Any]) -> dict[str, Any]:
    """A worker's run with this outcome; its result."""
    return worked(house, *steps, {"fail": outcome, "reason": "as told"})


@pytest.mark.parametrize("outcome", ["wall", "idle", "limit", "startup_hang"])
def test_cut_work_is_kept_and_costs_no_try(one: House, outcome: str) -> None:
    """A commit on the branch that says so, a ref for the run, and the feature's previous status."""
    result = cut(one, outcome, DID)
    assert (result["outcome"], result["commit"]) == (outcome, one.head())
    assert log(one) == f"wip(F-001): {outcome}\n\n    as told\n\nHarness-Run: {result['run']}\nHarness-Outcome: cut"
    assert one.git("rev-parse", f"refs/harness/partial/{result['run']}") == one.head()
    assert one.git("status", "--porcelain") == ""
    assert tries(one) == ("todo", 0)
    assert note(one, "cut")["run"] == result["run"]


def test_the_next_prompt_says_continue_and_how_to_see_it(one: House) -> None:
    """The prompt says so until the feature is judged; the ref that it names exists."""
    run = cut(one, "wall", DID)["run"]
    worked(one, DID)
    shown = one.prompt()
    assert "### Cut work" in shown
    assert "Continue from it." in shown
    assert f"git show --stat refs/harness/partial/{run}" in shown


def test_cut_work_is_free_twice_and_then_costs_a_try(one: House) -> None:
    """Otherwise a feature that is too large would never end."""
    costs = []
    for number in range(3):
        cut(one, "wall", {"run": f"echo {number} > made"})
        costs.append(tries(one))
    assert costs == [("todo", 0), ("todo", 0), ("todo", 1)]


@pytest.mark.parametrize("outcome", ["wall", "idle", "startup_hang"])
def test_time_that_brought_nothing_costs_a_try(one: House, outcome: str) -> None:
    """There is no work to continue from."""
    cut(one, outcome)
    assert tries(one) == ("todo", 1)
    assert log(one, "%s") == "begin"


def test_a_fault_of_the_agent_costs_a_try_and_keeps_its_work(one: House) -> None:
    """The agent failed by itself; its work may still help."""
    result = cut(one, "agent_error", DID)
    assert tries(one) == ("todo", 1)
    assert log(one, "%s") == "wip(F-001): agent_error"
    assert one.git("rev-parse", f"refs/harness/partial/{result['run']}") == one.head()
    assert note(one, "reason")["text"] == "agent_error: as told"


def test_a_reply_that_does_not_parse_is_the_agents_fault(one: House) -> None:
    """Its reason reaches the next prompt; the work is kept."""
    worked(one, DID, {"say": '```json harness\n{"status": "finished"}\n```'})
    assert one.result()["outcome"] == "agent_error"
    assert tries(one) == ("todo", 1)
    worked(one, DID)
    assert "'status' must be one of implemented, blocked" in one.prompt()


@pytest.mark.parametrize("outcome", ["limit", "auth", "config", "killed"])
@pytest.mark.parametrize("steps", [[], [DID]], ids=["unchanged", "changed"])
def test_what_is_nobodys_fault_never_costs_a_try(one: House, outcome: str, steps: list[dict[str, str]]) -> None:
    """A vendor's limit, an expired login, a kill: however often."""
    made = one.feature()
    for _ in range(3):
        made.note("t", "r", "cut", text="", run="r")
    lay(one, [made, one.feature("F-002")])
    cut(one, outcome, *steps)
    assert tries(one) == ("todo", 0)
    assert one.git("status", "--porcelain") == ""


def test_a_failing_feature_that_is_cut_short_is_failing_again(one: House) -> None:
    """It gets its previous status back, not the initial one."""
    lay(one, [feature("F-001", status="failing", attempts=1), one.feature("F-002")])
    cut(one, "limit")
    assert tries(one) == ("failing", 1)
