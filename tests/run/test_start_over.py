"""A feature starts over after two tries that proved nothing new; nothing that anybody else committed is undone."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from harness.git import refs
from harness.mission import features, lease, mission, runs
from harness.mission.contract import Contract
from harness.run import _start_over
from harness.state import names
from harness.state.state import State
from harness.workplace import mission_lock, workplace
from tests.missions import House, until
from tests.planned import claim, feature, lay, reply, role, worked
from tests.replay.test_playback import play
from tests.run.played import to_done

GARBAGE = {"run": 'printf \'{"status": "implemented"}\\n\' >made'}
MORE = {"run": "echo '{}' >>made; echo x >extra"}
DONE = reply(status="implemented", summary="I did it")
LOOK = {"run": "ls >seen"}
EARLIER = "### Earlier tries"
SAID = "for the last 2 tries proved nothing new"
PLAN = {
    "contract": [{"id": "VAL-1", "claim": "It says one", "checks": ["grep -x one made"]}],
    "features": [{"id": "F-001", "title": "Says one", "description": "It says one.", "claims": ["VAL-1"]}],
}


@pytest.fixture
def one(house: House) -> House:
    """A mission whose feature F-001 brings `one` in `made` and a file `more`; F-002 brings `other`."""
    claims = [claim("VAL-1", "grep -x one made"), claim("VAL-2", "test -f more"), claim("VAL-3", "test -f other")]
    lay(house, [feature("F-001", "VAL-1", "VAL-2"), feature("F-002", "VAL-3", priority=2)], Contract(claims=claims))
    house.script("validator", reply(checks=[]))
    return house


def tried(house: House, *steps: dict[str, Any], name: str = "F-001") -> dict[str, Any]:
    """One try: a worker with these steps, and its validation; returns the worker's result."""
    made = worked(house, *steps, name=name)
    role(house, "validator", name)
    return made


def in_vain(house: House) -> list[dict[str, Any]]:
    """Two tries that prove nothing."""
    return [tried(house, GARBAGE, DONE), tried(house, MORE)]


def seen(house: House) -> list[str]:
    """The files that the next try finds in its tree, without those of the beginning."""
    tried(house, LOOK)
    return [name for name in house.git("show", "HEAD:seen").split("\n") if name not in ("SPEC.md", "main.py", "seen")]


def times(house: House) -> int:
    """How often F-001 started over."""
    return len(house.feature().started_over())


def test_the_third_try_begins_in_a_clean_tree_and_is_told_of_the_two_before_in_two_lines_each(bare: House) -> None:
    """It passes. What was tried is in the history, under its refs and in no prompt; `why` and `log` say that it started over;
    every prompt is rebuilt, the mission plays back, and `land` makes one commit of it."""
    bare.repository()
    bare.config('agent = "scripted"')
    bare.script("planner", reply(**PLAN))
    bare.script("worker-F-001.1", GARBAGE, DONE)
    bare.script("worker-F-001.2", MORE, DONE)
    bare.script("worker-F-001.3", LOOK, {"run": "echo one >made"}, DONE)
    bare.script("validator", reply(checks=[]))
    said = to_done(bare)
    first, second, third = [line for line in bare.ran() if line["role"] == "worker"]
    told = f"starts over at {mission.load(bare.layout).base_commit[:10]}, {SAID}"
    assert f"  F-001 {told}\n" in said
    assert bare.git("show", "HEAD:seen").split("\n") == ["SPEC.md", "main.py", "seen"]
    assert [bare.git("show", f"{refs.KEEP}{line['run']}:made").split("\n")[-1] for line in (first, second)] == [
        '{"status": "implemented"}',
        "{}",
    ]
    assert bare.git("merge-base", "--is-ancestor", second["commit"], "HEAD", check=False) == ""
    red = "  ended red: VAL-1 is red (exit 1): grep -x one made\n"
    tries = f"try 1 changed made\n{red}try 2 changed extra, made\n{red}"
    prompts = [bare.prompt(line["run"]) for line in (first, second, third)]
    assert (EARLIER not in prompts[0] + prompts[1], f"```\n{tries}```" in prompts[2]) == (True, True)
    assert ["### The last receipts" in text for text in prompts] == [False, True, False]
    assert ["### What its last worker changed" in text for text in prompts] == [False, True, False]
    assert (told in bare.harness("why", "F-001").out, told in bare.harness("why", "VAL-1").out) == (True, True)
    shown = [bare.harness("log", line["run"]).out.split("\n")[0] for line in (second, third)]
    assert shown == [f"== {second['run']}", f"== {third['run']} {told}"]
    assert [bare.harness(*words).code for words in (("doctor",), ("verify",), ("replay", "--all"))] == [0, 0, 0]
    assert (made := play(bare))["first"] is None, made
    assert "1 commit on main" in bare.harness("land").out


def test_what_a_person_committed_meanwhile_is_never_undone(one: House) -> None:
    """The third try goes on from where it is."""
    tried(one, GARBAGE)
    one.write("theirs.txt")
    one.git("add", "theirs.txt")
    one.git("commit", "-q", "-m", "mine")
    tried(one, MORE)
    assert (seen(one), times(one)) == (["extra", "made", "theirs.txt"], 0)


def test_what_a_person_changed_in_a_commit_of_a_run_is_never_undone(one: House) -> None:
    """An amended commit is theirs, whatever its trailers say."""
    in_vain(one)
    one.write("theirs.txt")
    one.git("add", "theirs.txt")
    one.git("commit", "-q", "--amend", "--no-edit")
    assert (seen(one), times(one)) == (["extra", "made", "theirs.txt"], 0)


def test_what_a_person_removed_does_not_come_back(one: House) -> None:
    """They take back the commit on which the first try was made."""
    one.write("theirs.txt")
    one.git("add", "theirs.txt")
    one.git("commit", "-q", "-m", "mine")
    tried(one, GARBAGE)
    one.git("reset", "-q", "--hard", "HEAD~2")
    tried(one, MORE)
    assert (seen(one), times(one)) == (["extra", "made"], 0)


def test_what_a_person_left_who_worked_on_it_is_never_undone(one: House) -> None:
    """Their work is a commit of a run, with a worker's trailers."""
    entered = one.program("enter", "F-001", "--with", "sh -c 'echo hers >hers'")
    assert entered.code == 0, entered
    role(one, "validator", "F-001")
    in_vain(one)
    assert (seen(one), times(one)) == (["extra", "hers", "made"], 0)


def test_what_another_feature_built_meanwhile_is_never_undone(one: House) -> None:
    """It may have built on what was tried."""
    tried(one, GARBAGE)
    tried(one, {"run": "cp made other"}, name="F-002")
    tried(one, MORE)
    assert (seen(one), times(one), one.feature("F-002").status) == (["extra", "made", "other"], 0, "passed")


def test_a_try_that_proved_a_claim_is_kept(one: House) -> None:
    """Neither after it and one more try, nor after two more, which alone are left behind."""
    tried(one, {"run": "touch more; echo bad >made"})
    tried(one, MORE)
    assert (seen(one), times(one)) == (["extra", "made", "more"], 0)
    replan(one)
    assert (seen(one), times(one)) == (["made", "more"], 1)
    assert one.git("show", "HEAD:made") == "bad"
    assert "try 2 changed seen" in one.prompt(workers(one)[-1])


def test_a_try_that_turned_one_check_of_a_claim_green_is_kept(one: House) -> None:
    """No claim is proven by it, nor by the next, which turns another one green."""
    lay(one, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "test -f a", "test -f b", "test -f c")]))
    tried(one, {"run": "touch a"})
    tried(one, {"run": "touch b"})
    assert (seen(one), times(one)) == (["a", "b"], 0)


def test_work_against_a_check_that_was_wrong_is_kept(one: House) -> None:
    """Once the check is replaced, the tries before say nothing."""
    in_vain(one)
    wanted = Contract(claims=[claim("VAL-1", "grep -x two made"), claim("VAL-2", "test -f more")])
    lay(one, features.load(one.layout), wanted)
    assert (seen(one), times(one)) == (["extra", "made"], 0)


def replan(house: House) -> None:
    """F-001 has tries left again, as after a plan."""
    found = features.load(house.layout)
    features.move(found[0], "replanned")
    found[0].replanned = True
    found[0].note("2026-01-01T00:00:00Z", "planner", "replanned")
    State(house.layout).put(names.FEATURES, features.render(found))


def workers(house: House) -> list[str]:
    """The runs of workers on F-001, oldest first."""
    return [line["run"] for line in house.ran() if (line["role"], line["feature"]) == ("worker", "F-001")]


def test_tries_count_since_it_started_over_or_a_person_wanted_it_again(one: House) -> None:
    """The third try and one more, and then the fifth starts over again, in the same tree; after a person's order two more."""
    in_vain(one)
    assert (seen(one), times(one)) == ([], 1)
    replan(one)
    tried(one, MORE)
    assert times(one) == 1
    assert (seen(one), times(one)) == ([], 2)
    assert one.prompt(workers(one)[-1]).count("\ntry ") == 4
    assert one.harness("feature", "retry", "F-001").code == 0
    tried(one, GARBAGE)
    tried(one, MORE)
    assert times(one) == 2
    assert (seen(one), times(one)) == ([], 3)


def test_a_cut_try_that_was_charged_counts_and_its_work_is_left_behind_too(one: House) -> None:
    """Nobody is told to continue from it."""
    tried(one, GARBAGE)
    for step in (MORE, {"run": "echo y >extra"}, {"run": "echo z >extra"}):
        worked(one, step, {"fail": "wall", "reason": "too long"})
    assert (one.feature().attempts, times(one)) == (2, 0), "the first two cuts are free"
    assert (seen(one), times(one)) == ([], 1)
    prompt = one.prompt(workers(one)[-1])
    assert ("### Cut work" in prompt, prompt.count("\ntry "), "  ended wall: too long\n" in prompt) == (False, 4, True)


def test_two_tries_that_changed_nothing_leave_nothing_to_undo(one: House) -> None:
    """The third goes on; a clean tree in which nothing is changed is no work, and stays."""
    tried(one, DONE)
    tried(one, DONE)
    assert times(one) == 0
    lay(one, [feature("F-001", "VAL-1", "VAL-2")])
    in_vain(one)
    assert (tried(one, DONE)["outcome"], times(one)) == ("no_op", 1)
    assert one.git("ls-files").split("\n") == ["SPEC.md", "main.py"]


def test_what_was_left_behind_is_no_sign_in_the_work_of_the_next(one: House) -> None:
    """A try that changed a check's own test is gone, and what the third one did is judged alone."""
    one.write("tests/probe.sh", "test -f more\n")
    one.git("add", "tests/probe.sh")
    one.git("commit", "-q", "-m", "a probe")
    lay(one, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "sh tests/probe.sh")]))
    tried(one, {"run": "echo 'test -f less' >tests/probe.sh"})
    assert "look twice" in one.harness("why", "F-001").out
    tried(one, {"run": "echo x >extra"})
    tried(one, {"run": "touch more"})
    assert (times(one), one.feature().status) == (1, "passed")
    of_runs = one.harness("why", "F-001").out.partition("\nruns\n")[2]
    assert of_runs.count("look twice") == 2, "of the two validations before"


def test_a_run_that_dies_in_its_clean_tree_has_started_over(one: House) -> None:
    """The next one goes on there, is told of the tries before, and does not start over again."""
    in_vain(one)
    one.script("worker", {"sleep": 90})
    begun = one.begin_role("worker", "F-001", session=True)
    until(lambda: times(one) == 1)
    os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()
    until(lambda: all(runs.is_dead(one.layout, name) for name in runs.open_runs(one.layout)))
    assert (seen(one), times(one), one.feature().attempts) == ([], 1, 3)
    prompt = one.prompt(workers(one)[-1])
    assert (prompt.count("\ntry "), "### The last receipts" in prompt) == (2, False)
    assert [one.harness(*words).code for words in (("doctor",), ("replay", "--all"))] == [0, 0]


def test_a_run_that_dies_before_it_has_noted_that_it_starts_over_leaves_it_to_the_next(one: House) -> None:
    """The mission's position has the old tree already: no second commit is made of it."""
    in_vain(one)
    made = mission.load(one.layout)
    with mission_lock.take(one.layout):
        tree = workplace.bring(one.layout, made, "tree-1")
        terms = lease.Terms(run="died", role="worker", pid=1, since="2026-01-01T00:00:00Z", feature="F-001")
        _start_over.begin(one.layout, made, one.feature(), tree, terms)
    assert (one.head(), times(one)) == (tree.position.head, 0)
    assert one.git("ls-files").split("\n") == ["SPEC.md", "main.py"]
    assert (seen(one), times(one)) == ([], 1)
    assert one.git("rev-parse", "HEAD^") == tree.position.head
