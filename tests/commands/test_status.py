"""Output of commands: the status as plain values, and the last lines of run.sh."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.commands import status
from harness.decision.rules import Decision
from harness.mission import mission, receipts, runs
from harness.mission.features import Feature
from harness.mission.issues import Issue
from harness.run.requests import orders
from harness.state import names
from tests.helpers import growth
from tests.missions import House, until
from tests.planned import reseal, role

KEYS = [
    *("mission", "branch", "due", "why", "under_way", "features", "claims", "proof", "issues", "uncurated", "gated"),
    *("warnings", "confined", "totals", "limits"),
]


def row(house: House, feature_id: str = "F-001") -> dict[str, object]:
    """The status of one feature."""
    found = status.status(house.layout)["features"]
    return next(dict(one) for one in found if one["id"] == feature_id)


def put(house: House, **changes: object) -> None:
    """Change F-001 as a run does."""
    house.lay(house.feature().replace(**changes), house.feature("F-002"))


# the status


def test_the_status_has_a_closed_set_of_keys(house: House) -> None:
    """Scripts rely on them."""
    found = status.status(house.layout)
    assert list(found) == KEYS
    assert (found["mission"], found["branch"]) == (mission.load(house.layout).id, house.git("branch", "--show-current"))
    assert (found["due"], found["why"]) == ("NEXT worker F-001", "its turn has come")
    assert [(one["claim"], one["word"]) for one in found["claims"]] == [
        ("VAL-1", "unproven"),
        ("VAL-2", "unproven"),
        ("VAL-LOOK", "manual"),
    ]
    assert (found["under_way"], found["issues"], found["uncurated"]) == ([], [], 0)


def proven(house: House) -> None:
    """VAL-1 was red, then F-001 was built and validated."""
    house.script("validator", {"say": "fine"})
    role(house, "validator", "F-001")
    house.work({"run": "echo 1 > 1.txt"})
    role(house, "validator", "F-001")


def test_a_feature_shows_its_tries_its_proof_and_its_last_run(house: House) -> None:
    """Receipts count, not a status: a feature that was created as passed has proven nothing."""
    proven(house)
    assert (row(house)["proven"], row(house)["claims"], row(house)["last"]) == (1, 1, "validator green")
    assert (row(house)["status"], row(house)["attempts"], row(house)["tries"]) == ("passed", 1, 3)
    house.lay(house.feature(), house.feature("F-002").replace(status="passed"))
    assert (row(house, "F-002")["proven"], row(house, "F-002")["claims"]) == (0, 2)


def test_a_green_check_that_nobody_saw_red_proves_nothing(house: House) -> None:
    """The claim stays unproven, so the feature does, and the status says where to look."""
    house.work({"run": "echo 1 > 1.txt"})
    house.script("validator", {"say": "fine"})
    role(house, "validator", "F-001")
    assert (row(house)["status"], row(house)["proven"]) == ("unproven", 0)
    assert status.status(house.layout)["proof"]["unproven"] == "VAL-1, VAL-2   (run.sh why VAL-1)"


def test_the_newest_run_of_a_feature_is_the_last(house: House) -> None:
    """However many runs on other features followed."""
    house.work({"say": "nothing"})
    put(house, status="todo")
    house.work({"fail": "agent_error"})
    house.work({"say": "nothing"}, feature="F-002")
    assert (row(house)["last"], row(house, "F-002")["last"]) == ("worker agent_error", "worker no_op")


def test_a_blocked_feature_says_what_it_waits_for(house: House) -> None:
    """The features it needs, the claims it disputes, or a person's answer."""
    feature = house.feature().replace(status="blocked")
    feature.note("t", "r", "needs", text="first the store", features=["F-002"])
    house.lay(feature, house.feature("F-002"))
    assert row(house)["waits"] == "F-002: first the store"
    assert "Part one  (waits for F-002: first the store)" in house.harness("status").out


def test_a_run_under_way_is_named_and_its_feature_is_in_progress(house: House) -> None:
    """A dead run is not: its feature is shown as recovery will leave it."""
    house.script("worker", {"sleep": 60})
    begun = house.begin_role("worker", "F-001")
    until(lambda: bool(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))))
    found = status.status(house.layout)
    assert (found["under_way"], row(house)["status"]) == (runs.open_runs(house.layout), "in_progress")
    begun.kill()
    begun.wait()
    until(lambda: status.status(house.layout)["under_way"] == [])
    assert row(house)["status"] == "todo"


def test_a_long_history_does_not_slow_the_status_down(house: House) -> None:
    """Features that never ran and five times as many runs: the run log is read once, not once per feature."""
    house.work({"say": "nothing"})
    line = Path(house.layout.path(names.RUN_LOG)).read_bytes()

    def made(count: int) -> Callable[[], object]:
        Path(house.layout.path(names.RUN_LOG)).write_bytes(line * 5 * count)
        house.lay(*(Feature(id=f"F-{number:03d}", title="x", claims=["VAL-1"]) for number in range(1, count + 1)))
        return lambda: status.status(house.layout)

    assert growth(made, 20) < 6


# why


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision(word="STOPPED"), "to continue: run.sh resume"),
        (Decision(word="PAUSED"), "to continue: run.sh resume"),
        (
            Decision(word="WAIT", what="60", feature="full"),
            "rate limited by the agent's vendor until 1970-01-01T00:01:00Z",
        ),
        (Decision(word="ESCALATE", what="stuck"), "read .harness/escalation.md"),
        (Decision(word="DONE"), "all features pass"),
        (Decision(word="NEXT", what="validator", feature="F-001"), "its work is done"),
        (Decision(word="NEXT", what="validator"), "fresh clone"),
    ],
)
def test_every_decision_has_a_reason_in_words(house: House, decision: Decision, words: str) -> None:
    """If a person must act, the reason says how."""
    from harness.decision import views

    assert words in status.why(views.gather(house.layout), decision)


def test_a_wait_is_told_in_local_time_with_its_whole_reason(house: House) -> None:
    """With the event that ends it; a person at a terminal can also stop it. Every other line stays unchanged."""
    reason = f"You've hit your usage limit. {'Upgrade to go on, or come back later. ' * 3}".strip()
    until = int(time.time()) + 2100
    house.work({"fail": "limit", "until": until, "reason": f"{reason}\nmore"})
    until = house.result()["until"]
    line = house.harness("next").out.rstrip("\n")
    assert line.startswith(f"WAIT {until} You've hit")
    first, second = status.readable(house.layout, line, watched=False)
    assert re.fullmatch(rf"WAIT until (\S+ )?\d\d:\d\d \(in 3\d min\) {re.escape(reason)}", first)
    assert second == "Another agent for the worker in .harness/config.toml ends the wait."
    assert "Ctrl-C is safe" in status.readable(house.layout, line, watched=True)[1]
    for other in ("NEXT worker F-001", "WAIT 5 long ago", "DONE", "WAIT"):
        assert status.readable(house.layout, other, watched=True) == [other]


# the ending


def test_done_says_what_is_proven_and_how_to_merge(house: House) -> None:
    """At most ten lines; each kind of claim has the command that shows more."""
    proven(house)
    house.lay(*(house.feature(name).replace(status="passed") for name in ("F-001", "F-002")))
    lines = status.ending(house.layout, "DONE")
    branch = mission.load(house.layout).branch
    assert len(lines) <= 10
    assert lines[0].endswith(": 1 of 2 features passed")  # F-002 has no claim that is proven
    assert lines[1:4] == [
        "proven    1 of 3 claims, by 1 checks",
        "unproven  VAL-2   (run.sh why VAL-2)",
        "manual    VAL-LOOK   (run.sh claim accept VAL-LOOK)",
    ]
    assert lines[6] == f"commits   1 on {branch}, now at {house.head()[:10]}"
    assert lines[7].startswith(f"look      git diff main...{branch}   or: run.sh status; ")
    assert f"git switch main && git merge {branch}" in lines[8]


def test_an_accepted_claim_waits_for_nobody_and_is_accounted_for(house: House) -> None:
    """A person's acceptance counts as a receipt: the claim needs no more review, and the sum of claims is explained."""
    assert "manual" in status.status(house.layout)["proof"]
    orders.place(house.layout, "claim accept", ["VAL-LOOK", "looked"])
    assert "manual" not in status.status(house.layout)["proof"]
    assert "accepted  VAL-LOOK   (by a person)" in status.ending(house.layout, "DONE")
    assert len(status.ending(house.layout, "DONE")) <= 10


def test_every_kind_of_claim_at_once_leaves_no_more_than_ten_lines(house: House) -> None:
    """Unproven claims come before the summary of the run log."""
    proven(house)
    path = house.layout.run(house.result()["run"]).receipts
    notes = ["a test was deleted", "flaky: red (exit 1) the first time"]
    mark = receipts.load(path)[0].replace(flaky=True, phase="after", notes=notes)
    Path(path).write_bytes(receipts.render([mark]))
    reseal(house)
    shutil.rmtree(house.layout.cache)
    with open(house.layout.path(names.CONTRACT), "a") as file:
        file.write("\n### VAL-FEEL: It feels right\n\nmanual\n")
    orders.place(house.layout, "claim accept", ["VAL-LOOK", "looked"])
    row: dict[str, object] = {
        "at": "t",
        "by": "r",
        "verb": "drop",
        "claim": "VAL-0",
        "why": "w",
        "old": {"id": "VAL-0", "text": "t", "checks": [], "manual": True},
        "new": None,
    }
    with open(house.layout.path(names.CONTRACT_LOG), "a") as file:
        file.write(json.dumps(row) + "\n")
    lines = status.ending(house.layout, "DONE")
    kinds = ["proven", "unproven", "flaky", "weakened", "signs", "manual", "accepted"]
    assert [line.split(" ")[0] for line in lines[1:-2]] == kinds
    assert len(lines) == 10
    row |= {"verb": "setup", "claim": "", "old": None, "old_block": "a", "new_block": "b"}
    with open(house.layout.path(names.CONTRACT_LOG), "a") as file:
        file.write(json.dumps(row) + "\n")
    lines = status.ending(house.layout, "DONE")
    assert len(lines) == 10
    for kind in (*kinds, "changed", "contract"):  # the last ones share a line
        assert sum(f" {kind} " in f" {line}" for line in lines[1:-2]) == 1, lines


def test_flaky_and_weakened_claims_are_named_also_those_that_were_dropped(house: House) -> None:
    """The marks that a reader of DONE must see; ten lines are enough for all of them."""
    proven(house)
    command = "test -f 1.txt"
    mark = receipts.load(house.layout.run(house.result()["run"]).receipts)[0].replace(flaky=True)
    Path(house.layout.run(house.result()["run"]).receipts).write_bytes(receipts.render([mark]))
    reseal(house)
    shutil.rmtree(house.layout.cache)
    old = {"id": "VAL-1", "text": "t", "checks": [{"run": command, "seconds": None, "guard": False}], "manual": False}
    rows = [
        {
            "at": "t",
            "by": "r",
            "verb": "change",
            "claim": "VAL-1",
            "why": "w",
            "old": old,
            "new": {**old, "checks": []},
        },
        {"at": "t", "by": "r", "verb": "drop", "claim": "VAL-0", "why": "w", "old": old, "new": None},
    ]
    Path(house.layout.path(names.CONTRACT_LOG)).write_text("".join(json.dumps(one) + "\n" for one in rows))
    lines = status.ending(house.layout, "DONE")
    assert lines[3:5] == [
        "flaky     VAL-1   (run.sh why VAL-1)",
        "weakened  VAL-1, VAL-0 (dropped)   (run.sh why VAL-1)",
    ]
    assert len(lines) <= 10


def test_a_claim_that_became_a_persons_to_judge_is_listed_until_it_is_accepted(house: House) -> None:
    """A planner made it from a claim with checks: it is weakened, and no person has reviewed it yet."""
    old = {"id": "VAL-LOOK", "text": "t", "checks": [{"run": "true", "seconds": None, "guard": False}], "manual": False}
    new = {**old, "checks": [], "manual": True}
    row = {"at": "t", "by": "r", "verb": "change", "claim": "VAL-LOOK", "why": "w", "old": old, "new": new}
    Path(house.layout.path(names.CONTRACT_LOG)).write_text(json.dumps(row) + "\n")
    line = "manual    VAL-LOOK   (run.sh claim accept VAL-LOOK)"
    assert line in status.ending(house.layout, "DONE")
    orders.place(house.layout, "claim accept", ["VAL-LOOK", "I looked"])
    assert line not in status.ending(house.layout, "DONE")


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("ESCALATE stuck", 'next      run.sh escalation answer "what to do", then run.sh'),
        ("STOPPED", "why       a person asked to stop; to continue: run.sh resume"),
        ("PAUSED", "next      run.sh status"),
    ],
)
def test_every_other_end_says_why_and_what_next(house: House, word: str, line: str) -> None:
    """At most ten lines."""
    lines = status.ending(house.layout, word)
    assert line in lines
    assert len(lines) <= 10


def test_however_much_is_open_ten_lines_are_enough(house: House) -> None:
    """Many claims and issues are shortened, the rest is counted."""
    text = Path(house.layout.path(names.CONTRACT)).read_text()
    more = "".join(f"### VAL-M{number}: More\n\nmanual\n\n" for number in range(20))
    Path(house.layout.path(names.CONTRACT)).write_text(text + "\n" + more)
    rows = [Issue(id=f"I-{number:03d}", at="t", by="p", title=str(number), severity="nit") for number in range(20)]
    Path(house.layout.path(names.ISSUES)).write_text(
        "".join(str(row.asdict()).replace("'", '"') + "\n" for row in rows)
    )
    lines = status.ending(house.layout, "ESCALATE stuck")
    assert len(lines) <= 10
    assert "and 16 more" in lines[3]
    assert max(len(line) for line in lines) < 200


# spending


def test_a_cap_that_is_near_is_told_while_it_holds(house: House) -> None:
    """In the status and at the end; after a person raises the cap, the warning is gone."""
    house.config('agent = "scripted"', "[limits]", "max_cost_usd = 1.0")
    house.work({"usage": {"cost_usd": 0.9}})
    words = "cost 0.90 of 1.00 USD (90 %)"
    assert status.status(house.layout)["warnings"] == [words]
    assert f"warning   {words}" in status.ending(house.layout, "STOPPED")
    house.config('agent = "scripted"', "[limits]", "max_cost_usd = 2.0")
    assert status.status(house.layout)["warnings"] == []


def test_the_ending_says_what_is_not_counted(house: House) -> None:
    """The sum is a minimum; unknown is not zero."""
    assert "cost none" in "\n".join(status.ending(house.layout, "STOPPED"))
    house.work({"usage": {"input": 5}})
    assert "cost unknown, 1 run not counted" in "\n".join(status.ending(house.layout, "STOPPED"))
    put(house, status="todo")
    house.work({"usage": {"input": 5, "cost_usd": 3.2}})
    assert "cost at least 3.20 USD, 1 run not counted" in "\n".join(status.ending(house.layout, "STOPPED"))


@pytest.mark.parametrize(
    ("known", "uncounted", "words"),
    [(None, 0, "none"), (0.0, 0, "0.00 USD"), (3.2, 4, "at least 3.20 USD, 4 runs not counted")],
)
def test_a_cost_in_words(known: float | None, uncounted: int, words: str) -> None:
    """Unknown, zero, or a minimum."""
    assert status.cost(known, uncounted) == words


def test_what_stopped_the_last_run_is_shown_until_a_run_goes_on(house: House) -> None:
    """With the remedy, so no person has to search for it."""
    house.work({"fail": "auth", "reason": "no key\nLog in"})
    assert status.status(house.layout)["warnings"] == ["scripted could not answer: auth, no key / Log in"]
    house.work({"run": "echo 1 > 1.txt"})
    assert status.status(house.layout)["warnings"] == []


def test_a_line_that_a_person_removed_from_the_run_log_leaves_a_status(house: House) -> None:
    """Whichever it is. The results make up for it at the next start; nothing cached from the longer run log counts."""
    proven(house)
    assert house.harness("status").code == 0
    for _ in range(2):
        house.work({"say": "nothing"}, feature="F-002")
    path = Path(house.layout.path(names.RUN_LOG))
    before = path.read_bytes()
    lines = before.splitlines(keepends=True)
    for gone in range(4):
        path.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
        told = house.harness("status")
        assert (told.code, "run.sh" in told.err) == (65, True), gone
        assert house.harness("init", "--quietly").code == 0
        assert path.read_bytes() == before, gone
        told = house.harness("status")
        assert (told.code, told.err) == (0, ""), gone
    shutil.rmtree(house.layout.cache)
    assert house.harness("status").out == told.out


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("max_runs = 1", "runs 1 of 1 (100 %): raise max_runs under [limits] in .harness/config.toml"),
        ("max_cost_usd = 0.5", "cost 2.00 of 0.50 USD (400 %): raise max_cost_usd under [limits]"),
        ("max_hours = 0.000001", "raise max_hours under [limits]"),
        ("max_tokens = 10", "tokens 500 of 10 (5000 %): raise max_tokens under [limits]"),
    ],
)
def test_a_reached_cap_says_which_and_what_to_raise(house: House, limit: str, words: str) -> None:
    """In the status and at the end of run.sh."""
    house.work({"usage": {"cost_usd": 2.0, "input": 500}}, {"say": "nothing"})
    house.config('agent = "scripted"', "[limits]", limit)
    line = house.harness("next").out.strip()
    assert line.startswith("BUDGET ")
    assert words in house.harness("status").out
    assert words in house.harness("ending", line).out
