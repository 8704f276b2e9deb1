"""Decisions: one view, one answer, the first rule that matches; every rule has the position that the design gives it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harness.base import errors
from harness.decision import rules
from harness.decision.rules import Caps, Decision, PendingCheckpoint, PendingCheckpoints, View
from harness.mission import features, lease
from harness.mission.features import Feature
from harness.mission.runs import RunResult, Totals
from tests.helpers import noted

NOW = 5_000
ROLES = {"plans": "planner", "commits": "worker", "judges": "validator", "curates": "curator"}
LIMITS = Caps(max_runs=200, max_hours=48, stall_after=3, max_cost_usd=25.0, max_tokens=1_000)


def feature(name: str, status: str, after: str = "", **fields: Any) -> Feature:
    """One feature; `after` names what it depends on."""
    return Feature(id=name, title=name, claims=["V-" + name], status=status, depends_on=after.split(), **fields)


def view(*found: Feature, **fields: Any) -> View:
    """A view in which only the features make something due; one passed feature by default."""
    usual: dict[str, Any] = {
        "limits": LIMITS,
        "roles": ROLES,
        "totals": Totals(),
        "features": list(found) or [feature("P", "passed")],
    }
    if "wait_until" in fields:
        usual["wait_since"] = NOW - 600
    return View(**{**usual, **fields})


def line(seen: View, now: int = NOW) -> str:
    """The decision as `harness next` prints it."""
    return rules.decide(seen, now).line


def result(role: str, name: str = "", mark: str = "same") -> RunResult:
    """A finished run."""
    blank: dict[str, Any] = dict.fromkeys(RunResult.fields, "")
    return RunResult(**{**blank, "run": "r", "role": role, "feature": name, "mark": mark, "outcome": "ok"})


# the order of the rules: start with a view in which all match, and remove one trigger at a time


SPENT = Totals(runs=200, seconds=48 * 3600, cost_usd=25.0, tokens=1_000, rejected=3)
DISPUTED = noted(feature("D", "blocked"), "dispute", "V-D")
ALL = view(
    feature("V", "validating"),
    feature("S", "failing", attempts=3),
    DISPUTED,
    feature("T", "todo"),
    feature("W", "failing", attempts=2),
    stop=True,
    pause=True,
    asks=PendingCheckpoints(now=[PendingCheckpoint(name="design", cause="file", why="")]),
    totals=SPENT,
    wait_until=NOW + 60,
    wait_why="claude",
    escalation="setup",
    spec_changed=True,
    uncurated=20,
    serious=["I-001"],
    set_aside={"X": "one", "Y": "two", "Z": "three"},
)


def passes(name: str) -> dict[str, str]:
    """The change that makes a feature pass."""
    return {"passes": name}


ORDER: list[tuple[str, dict[str, Any]]] = [
    ("STOPPED", {"stop": False}),
    ("PAUSED", {"pause": False}),
    ("CHECKPOINT design", {"asks": PendingCheckpoints()}),
    ("BUDGET runs", {"totals": SPENT.replace(runs=199)}),
    ("BUDGET hours", {"totals": SPENT.replace(runs=199, seconds=1.0)}),
    ("BUDGET cost", {"totals": SPENT.replace(runs=199, seconds=1.0, cost_usd=24.9)}),
    ("BUDGET tokens", {"totals": Totals(rejected=3)}),
    (f"WAIT {NOW + 60} claude", {"wait_until": NOW}),
    ("ESCALATE setup", {"escalation": ""}),
    ("ESCALATE plan", {"totals": Totals(rejected=2)}),
    ("NEXT planner", {"spec_changed": False}),
    ("NEXT curator", {"uncurated": 19}),
    ("NEXT validator V", passes("V")),
    ("ESCALATE stalled", {"set_aside": {}}),
    ("NEXT planner S", passes("S")),
    ("NEXT planner D", passes("D")),
    ("NEXT worker W", passes("W")),
    ("NEXT worker T", passes("T")),
    ("NEXT planner", {"serious": []}),
    ("NEXT validator", {"swept": True}),
    ("NEXT curator", {"uncurated": 0}),
    ("DONE", {}),
]


def after(seen: View, change: dict[str, Any]) -> View:
    """The view with one change."""
    name = change.get("passes")
    if not name:
        return seen.replace(**change)
    found = [one.replace(status="passed") if one.id == name else one for one in seen.features]
    return seen.replace(features=found)


def test_the_first_rule_that_matches_wins_from_stopped_to_done() -> None:
    """Every rule hides exactly the rules after it: when one is removed, the next in the design's order answers."""
    seen = ALL
    said = []
    for _, change in ORDER:
        said.append(line(seen))
        seen = after(seen, change)
    assert said == [expected for expected, _ in ORDER]


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_each_rule_speaks_alone_too(place: int) -> None:
    """No rule needs another one's trigger: it decides with all earlier rules silent and all later ones triggered."""
    seen = ALL
    for _, change in ORDER[:place]:
        seen = after(seen, change)
    assert line(seen) == ORDER[place][0]
    assert seen.features[-1].id == "W", "the view still holds everything behind the rule"


def test_nothing_is_due_but_stuck_where_work_is_left_that_nobody_may_take() -> None:
    """The last rule: not all features passed, and no other rule matches."""
    assert line(view(feature("A", "blocked"))) == "ESCALATE stuck"
    assert line(view(feature("A", "failing", attempts=5, replanned=True))) == "ESCALATE stuck"
    assert line(view(feature("A", "blocked"), uncurated=1)) == "NEXT curator"


def test_a_feature_that_is_being_worked_on_is_no_reason_to_call_a_person() -> None:
    """While a run is open, `harness status` names it as due; a second run is refused as busy."""
    assert line(view(feature("A", "in_progress"))) == "NEXT worker A"
    assert line(view(feature("A", "in_progress"), feature("B", "todo"))) == "NEXT worker B"
    assert line(view(feature("A", "in_progress"), serious=["I-1"])) == "NEXT planner"


# the cases of each rule


PLANNER_CASES: list[tuple[str, View, str]] = [
    ("no plan at all", view(features=[]), "NEXT planner"),
    ("three tries are used up", view(feature("A", "failing", attempts=3)), "NEXT planner A"),
    ("two are not", view(feature("A", "failing", attempts=2)), "NEXT worker A"),
    ("a todo with three tries", view(feature("A", "todo", attempts=3)), "NEXT planner A"),
    ("replanned: a fourth try", view(feature("A", "todo", attempts=3, replanned=True)), "NEXT worker A"),
    ("replanned: a fifth try", view(feature("A", "failing", attempts=4, replanned=True)), "NEXT worker A"),
    ("replanned: no sixth", view(feature("A", "failing", attempts=5, replanned=True)), "ESCALATE stuck"),
    ("a disputed claim", view(noted(feature("A", "blocked"), "dispute", "V-A")), "NEXT planner A"),
    (
        "disputed after it was replanned",
        view(noted(feature("A", "blocked", replanned=True), "dispute", "V-A")),
        "NEXT planner A",
    ),
    (
        "a dispute that a planner has answered",
        view(noted(noted(feature("A", "todo"), "dispute", "V-A"), "replanned")),
        "NEXT worker A",
    ),
    ("blocked for another reason", view(noted(feature("A", "blocked"), "reason")), "ESCALATE stuck"),
    ("blocked on a feature", view(noted(feature("A", "blocked"), "needs", "B")), "ESCALATE stuck"),
    ("a worker first, then the issues", view(feature("A", "todo"), serious=["I-1"]), "NEXT worker A"),
    ("issues before the sweep", view(serious=["I-1"]), "NEXT planner"),
]


@pytest.mark.parametrize(("seen", "expected"), [case[1:] for case in PLANNER_CASES], ids=[c[0] for c in PLANNER_CASES])
def test_when_a_planner_is_due(seen: View, expected: str) -> None:
    """No plan, a changed spec, three tries without a replan, a dispute, serious issues: then, and only then."""
    assert line(seen) == expected


READY_CASES: list[tuple[str, list[Feature], str]] = [
    ("failing before todo", [feature("A", "todo"), feature("B", "failing", attempts=2)], "B A"),
    (
        "fewest attempts first",
        [feature("A", "failing", attempts=2), feature("B", "failing", attempts=1)],
        "B A",
    ),
    (
        "attempts, not priority, among the failing",
        [feature("A", "failing", attempts=2, priority=1), feature("B", "failing", attempts=1, priority=9)],
        "B A",
    ),
    ("todo by priority", [feature("A", "todo", priority=2), feature("B", "todo", priority=1)], "B A"),
    ("then by file order", [feature("B", "todo"), feature("A", "todo")], "B A"),
    (
        "priority, not attempts, among the todo",
        [feature("A", "todo", attempts=2, priority=1), feature("B", "todo", priority=2)],
        "A B",
    ),
    ("a dependency that has passed", [feature("A", "passed"), feature("B", "todo", after="A")], "B"),
    ("one that has not", [feature("A", "validating"), feature("B", "todo", after="A")], ""),
    ("one of two", [feature("A", "passed"), feature("B", "todo"), feature("C", "todo", after="A B")], "B"),
    ("a failing one waits for its dependency too", [feature("A", "failing", after="B"), feature("B", "todo")], "B"),
    ("only todo and failing", [feature(status, status) for status in features.STATUSES], "failing todo"),
]


@pytest.mark.parametrize(("found", "expected"), [case[1:] for case in READY_CASES], ids=[c[0] for c in READY_CASES])
def test_in_which_order_workers_take_features(found: list[Feature], expected: str) -> None:
    """Failing first by fewest attempts, then todo by priority, then file order; dependencies passed, tries left."""
    assert " ".join(one.id for one in rules.ready(found)) == expected


def test_the_oldest_validating_feature_is_validated_first() -> None:
    """File order is the order of planning."""
    assert line(view(feature("B", "validating"), feature("A", "validating"))) == "NEXT validator B"


def test_the_sweep_waits_until_all_have_passed() -> None:
    """The sweep judges the whole mission; an unfinished mission has nothing to sweep."""
    assert line(view(feature("A", "passed"), feature("B", "blocked"))) == "ESCALATE stuck"
    assert line(view(feature("A", "passed"), swept=False)) == "NEXT validator"


def test_notes_wait_for_the_end_until_there_are_enough_of_them() -> None:
    """Curation during a mission starts at curate_after, not one entry earlier."""
    todo = feature("A", "todo")
    assert line(view(todo, uncurated=4, curate_after=5)) == "NEXT worker A"
    assert line(view(todo, uncurated=5, curate_after=5)) == "NEXT curator"
    assert line(view(uncurated=1, swept=True)) == "NEXT curator"


def test_a_wait_ends_with_its_second() -> None:
    """Nothing starts before that time, and everything from then on."""
    waiting = view(feature("A", "todo"), wait_until=NOW, wait_why="codex")
    assert line(waiting, NOW - 1) == f"WAIT {NOW} codex"
    assert line(waiting, NOW) == "NEXT worker A"


# budget


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        (Totals(runs=199), ""),
        (Totals(runs=200), "runs"),
        (Totals(seconds=48 * 3600 - 1), ""),
        (Totals(seconds=48 * 3600), "hours"),
        (Totals(cost_usd=24.99), ""),
        (Totals(cost_usd=25.0), "cost"),
        (Totals(tokens=999), ""),
        (Totals(tokens=1_000), "tokens"),
        (Totals(cost_usd=99.0, runs=200), "runs"),
    ],
)
def test_a_cap_is_reached_when_it_is_used_up(totals: Totals, expected: str) -> None:
    """Runs, hours, cost, tokens, in this order; an unreported amount (None) uses up nothing."""
    assert rules.budget(view(totals=totals)) == expected


def test_without_a_cap_on_cost_and_tokens_nothing_ends() -> None:
    """By default only runs and hours have a cap."""
    free = LIMITS.replace(max_cost_usd=None, max_tokens=None)
    assert rules.budget(view(limits=free, totals=Totals(cost_usd=1e9, tokens=10**12))) == ""


# three equal decisions


def test_three_equal_decisions_that_changed_nothing_escalate() -> None:
    """The same role on the same feature with the same fingerprint, three times in a row, and due once more."""
    turns = [result("worker", "A")] * 3
    assert line(view(feature("A", "todo"), newest=turns, mark="same")) == "ESCALATE stalled"


NOT_SPINNING: list[tuple[str, list[RunResult], str]] = [
    ("twice only", [result("worker", "A")] * 2, "same"),
    ("the last run changed something", [result("worker", "A")] * 3, "other"),
    (
        "one of them changed something",
        [result("worker", "A"), result("worker", "A", "x"), result("worker", "A")],
        "same",
    ),
    ("another feature was between", [result("worker", "A"), result("worker", "B"), result("worker", "A")], "same"),
    ("another role was between", [result("worker", "A"), result("curator"), result("worker", "A")], "same"),
    ("another decision is due now", [result("validator", "A")] * 3, "same"),
]


@pytest.mark.parametrize(("newest", "mark"), [case[1:] for case in NOT_SPINNING], ids=[c[0] for c in NOT_SPINNING])
def test_what_is_no_standstill_goes_on(newest: list[RunResult], mark: str) -> None:
    """Progress of any kind, or fewer than three runs, calls no person."""
    assert line(view(feature("A", "todo"), newest=newest, mark=mark)) == "NEXT worker A"


def test_done_stays_done_however_often_it_is_asked() -> None:
    """Only a decision that starts a run can repeat in a loop."""
    assert line(view(swept=True, newest=[result("validator")] * 3, mark="same")) == "DONE"


# leaving, and the codes


@pytest.mark.parametrize("word", ["DONE", "ESCALATE stuck", "BUDGET runs", "CHECKPOINT design"])
def test_on_the_way_out_notes_are_curated_once_more(word: str) -> None:
    """`--leaving` gives one curator if notes wait, and nothing otherwise."""
    last = rules.leaving(view(uncurated=1), word)
    assert last is not None
    assert last.line == "NEXT curator"
    assert rules.leaving(view(uncurated=0), word) is None


@pytest.mark.parametrize("word", ["STOPPED", "PAUSED", "WAIT 99 claude"])
def test_whoever_is_told_to_stop_starts_nothing_more(word: str) -> None:
    """A user's stop takes effect at once."""
    assert rules.leaving(view(uncurated=5), word) is None


@pytest.mark.parametrize(
    ("decision", "code"),
    [
        (Decision(word="NEXT", what="worker", feature="A"), 0),
        (Decision(word="WAIT", what="99", feature="claude"), 0),
        (Decision(word="DONE"), 0),
        (Decision(word="ESCALATE", what="stuck"), 3),
        (Decision(word="ESCALATE", what="stalled"), 3),
        (Decision(word="ESCALATE", what="setup"), 3),
        (Decision(word="ESCALATE", what="plan"), 7),
        (Decision(word="BUDGET", what="runs"), 5),
        (Decision(word="BUDGET", what="hours"), 5),
        (Decision(word="BUDGET", what="cost"), 6),
        (Decision(word="BUDGET", what="tokens"), 6),
        (Decision(word="CHECKPOINT", what="design"), 8),
        (Decision(word="STOPPED"), 9),
        (Decision(word="PAUSED"), 9),
    ],
)
def test_a_decision_has_the_documented_code(decision: Decision, code: int) -> None:
    """The exit code of run.sh; 0 if it goes on or is done."""
    assert decision.code == code


# purity: thousands of views


def any_feature(dice: random.Random, number: int) -> Feature:
    """A feature in any state, valid or not."""
    made = feature(
        f"F-{number}",
        dice.choice(features.STATUSES),
        " ".join(f"F-{other}" for other in range(number) if dice.random() < 0.2),
        attempts=dice.randrange(7),
        replanned=dice.random() < 0.3,
        priority=dice.randrange(-1, 4),
    )
    for kind in dice.sample(["dispute", "needs", "replanned", "retry", "reason", "cut", "judged"], dice.randrange(3)):
        noted(made, kind, *dice.sample(["F-0", "F-1", "V-F-0"], dice.randrange(3)))
    return made


def any_view(dice: random.Random) -> View:
    """A view of anything; halting triggers are rare, so that later rules are covered too."""
    rare = dice.random() < 0.1
    calm = dice.random() < 0.3
    found = [any_feature(dice, number) for number in range(dice.randrange(6))]
    if calm:
        found = [one.replace(status="passed") for one in found]
    return view(
        features=found,
        stop=rare and dice.random() < 0.3,
        pause=rare and dice.random() < 0.3,
        asks=PendingCheckpoints(
            now=[PendingCheckpoint(name="c", cause="file", why="")] if rare and dice.random() < 0.3 else []
        ),
        escalation=dice.choice(["", "stuck", "plan", "setup", "stalled"]) if rare else "",
        totals=Totals(
            runs=dice.randrange(220) if rare else 1,
            cost_usd=dice.choice([None, 1.0, 30.0]) if rare else None,
            tokens=dice.choice([None, 1, 2_000]) if rare else None,
            since_green=dice.randrange(12) if rare else 0,
            rejected=dice.randrange(5) if rare else 0,
        ),
        wait_until=dice.choice([0, NOW - 1, NOW, NOW + 1]) if rare else 0,
        spec_changed=dice.random() < 0.1,
        uncurated=dice.choice([0, 0, 1, 20]),
        serious=["I-1"] * (dice.random() < 0.2),
        swept=dice.random() < 0.5,
        newest=[result(dice.choice(["worker", "validator", "curator"]), f"F-{dice.randrange(2)}")] * dice.randrange(4),
        mark=dice.choice(["", "same"]),
    )


def sound(seen: View, made: Decision) -> bool:
    """The properties of every decision, whatever the view."""
    if made.word == "DONE":
        proven = all(one.status == "passed" for one in seen.features) and bool(seen.features)
        return proven and seen.swept and not (seen.uncurated or seen.serious or seen.spec_changed)
    if (made.word, made.what) == ("NEXT", "worker"):
        taken = features.find(seen.features, made.feature)
        needs = set(taken.depends_on) <= features.passed(seen.features)
        return taken.status == "in_progress" or (needs and taken.status in ("todo", "failing") and taken.tries_left > 0)
    if (made.word, made.what, bool(made.feature)) == ("NEXT", "validator", True):
        return features.find(seen.features, made.feature).status == "validating"
    return made.code in errors.EXIT_CODES


def test_thousands_of_views_have_one_sound_answer_each_and_are_left_as_they_were() -> None:
    """No exception, no DONE without proof, the same answer to the same question, no write to the view."""
    dice = random.Random(20261121)
    said: dict[str, int] = {}
    for _ in range(3_000):
        seen = any_view(dice)
        before = repr(seen)
        made = rules.decide(seen, NOW)
        assert sound(seen, made), (made, before)
        assert rules.decide(seen, NOW) == made
        assert repr(seen) == before
        said[f"{made.word} {made.what}"[:14]] = said.get(f"{made.word} {made.what}"[:14], 0) + 1
    assert {"DONE ", "NEXT planner", "NEXT worker", "NEXT validator", "NEXT curator", "ESCALATE stuck"} <= said.keys()


@pytest.mark.parametrize(("answered", "said"), [(0, "NEXT worker A"), (2, "NEXT worker A"), (3, "ESCALATE stalled")])
def test_turns_from_before_an_answer_are_not_counted(answered: int, said: str) -> None:
    """After an answer the mission gets three more turns, not none."""
    turns = [result("worker", "A").replace(run=f"{number}-worker") for number in (4, 3, 2, 1)]
    seen = view(feature("A", "todo"), newest=turns[:3], mark="same", answered=turns[answered].run)
    assert line(seen) == said


@pytest.mark.parametrize(
    ("totals", "words"),
    [
        (Totals(runs=159, cost_usd=19.99, tokens=799, seconds=38.3 * 3600), []),
        (Totals(runs=160), ["runs 160 of 200 (80 %)"]),
        (Totals(seconds=38.4 * 3600), ["hours 38.4 of 48.0 (80 %)"]),
        (Totals(cost_usd=20.31), ["cost 20.31 of 25.00 USD (81 %)"]),
        (Totals(cost_usd=26.0, uncounted=4), ["cost at least 26.00 of 25.00 USD (104 %), 4 runs not counted"]),
        (Totals(cost_usd=20.0, tokens=900), ["cost 20.00 of 25.00 USD (80 %)", "tokens 900 of 1000 (90 %)"]),
        (Totals(uncounted=4), []),
    ],
)
def test_a_cap_is_near_from_four_fifths_on(totals: Totals, words: list[str]) -> None:
    """The text names the amount spent, its cap, and what is uncounted."""
    assert [cap.words for cap in rules.near(LIMITS, totals)] == words


DOUBT = rules.Doubt(text="no claim is proven", remedy="claim accept", outcome="it is DONE")
HELD = {"feature F-001": "1-worker-F-001", "tree 1": "1-worker-F-001"}


@pytest.mark.parametrize(
    ("found", "held", "fields", "expected"),
    [
        ("todo todo", HELD, {}, "NEXT worker F-002"),
        ("validating validating", HELD, {}, "NEXT validator F-002"),
        ("in_progress passed", HELD, {}, "WAIT 0 for 1-worker-F-001"),
        ("in_progress passed", HELD, {"uncurated": 3}, "WAIT 0 for 1-worker-F-001"),
        ("in_progress passed", HELD, {"uncurated": 20}, "NEXT curator"),
        ("todo todo", {lease.PLAN: "2-planner"}, {"spec_changed": True}, "WAIT 0 for 2-planner"),
        ("todo todo", {lease.PLAN: "2-planner"}, {}, "NEXT worker F-001"),
        ("passed passed", {lease.SWEEP: "3-validator"}, {}, "WAIT 0 for 3-validator"),
        ("passed passed", {lease.CURATION: "4-curator"}, {"swept": True}, "WAIT 0 for 4-curator"),
        ("in_progress blocked", {**HELD, lease.CURATION: "4-curator"}, {}, "WAIT 0 for 1-worker-F-001, 4-curator"),
        ("passed passed", {}, {"swept": True, "doubts": [DOUBT]}, "ESCALATE proof"),
    ],
)
def test_what_a_live_run_holds_is_not_due_and_nothing_ends_while_one_lives(
    found: str, held: dict[str, str], fields: dict[str, Any], expected: str
) -> None:
    """Another lane takes what is free; a new plan is waited for."""
    rows = [feature(f"F-{n:03d}", status) for n, status in enumerate(found.split(), start=1)]
    assert line(view(*rows, held=held, **fields)) == expected


ASIDE = {"S": "no flask", "T": "1 != 2", "U": ""}


@pytest.mark.parametrize(
    ("set_aside", "held", "status", "expected"),
    [
        (ASIDE, {}, "todo", "ESCALATE stalled"),
        ({"S": "no flask", "U": "", "X": ""}, {}, "todo", "ESCALATE stalled"),
        ({"S": "no flask", "T": "1 != 2"}, {}, "todo", "NEXT worker A"),
        ({"S": "", "T": ""}, {}, "todo", "NEXT worker A"),
        ({"S": "no flask", "T": "no flask"}, {}, "todo", "ESCALATE stalled"),
        (ASIDE, {}, "validating", "NEXT validator A"),
        (ASIDE, {"feature A": "1-worker-A"}, "in_progress", "WAIT 0 for 1-worker-A"),
        (ASIDE, {"feature B": "1-worker-B"}, "todo", "WAIT 0 for 1-worker-B"),
    ],
)
def test_features_that_were_set_aside_in_a_row_end_the_mission_once_nothing_begun_is_left(
    set_aside: dict[str, str], held: dict[str, str], status: str, expected: str
) -> None:
    """Three of them, or two with one fault; what a lane has under way is judged first, and nothing else begins."""
    assert line(view(feature("A", status), set_aside=set_aside, held=held)) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (feature("A", "failing", attempts=5, replanned=True), True),
        (feature("A", "failing", attempts=4, replanned=True), False),
        (feature("A", "failing", attempts=3), False),
        (feature("A", "passed", attempts=5, replanned=True), False),
        (noted(feature("A", "blocked"), "reason"), True),
        (noted(feature("A", "blocked"), "needs"), False),
        (noted(feature("A", "blocked"), "person"), False),
        (noted(feature("A", "blocked"), "dispute", "V-A"), False),
        (noted(feature("A", "blocked", attempts=5, replanned=True), "dispute", "V-A"), True),
    ],
)
def test_a_feature_is_set_aside_where_only_a_person_can_bring_it_on(found: Feature, expected: bool) -> None:
    """It has used its tries and its repair plan, or is blocked by what no other feature brings."""
    assert rules.is_set_aside(found) is expected
    assert not (expected and (rules.needs_plan(found) or rules.ready([found])))
