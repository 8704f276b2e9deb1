"""A run has its own folder, the run log is read from its end, and every change to a finished run is found."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.mission import receipts, runs
from harness.mission.runs import RunContext, RunResult, Totals
from harness.state import files, names
from harness.state.layout import Layout
from tests.crash import end, start
from tests.helpers import mission, put
from tests.mission.test_receipts import receipt


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission with an empty folder."""
    return mission(tmp_path)


def result(run: str = "1-worker-F", **values: Any) -> RunResult:
    """A finished run with these fields."""
    told: dict[str, Any] = dict.fromkeys(RunResult.fields, "")
    told |= {"run": run, "role": "worker", "outcome": "ok", "seconds": 1.5, "newly_green": 0, "accepted": None}
    told |= {
        "sweep": None,
        "usage": None,
        "kept_out": [],
        "refused": [],
        "secrets": [],
        "ignored": [],
        "totals": Totals(runs=1).asdict(),
    }
    told |= {"until": 0, "waits": {}, "agents": []}
    return RunResult(**{**told, **values})


def context(run: str) -> RunContext:
    """How a run opened."""
    told: dict[str, Any] = dict.fromkeys(RunContext.fields, "")
    told |= {"run": run, "agent": ["playbook"], "attempt": 1, "untracked": {}, "live": {}, "raw": [0, ""]}
    return RunContext(**{**told, "identity": {}, "process": {}, "dirty": {}, "ignored": None})


def finish(layout: Layout, one: RunResult) -> RunResult:
    """Write the run as a run does: its files, their digest, then its line."""
    where = layout.run(one.run)
    put(where.context, files.dump_json(context(one.run).asdict()))
    put(where.prompt, "words")
    sealed = one.replace(seal=runs.seal(where))
    put(where.result, files.dump_json(sealed.asdict()))
    files.add_line(layout.path(names.RUN_LOG), files.dump_json(sealed.asdict()))
    return sealed


ODD: list[dict[str, Any]] = [
    {"at": 5},
    {"reason": None},
    {"role": ["worker"]},
    {"usage": []},
    {"usage": "x"},
    {"sweep": 1},
    {"refused": [1]},
    {"agents": "mine"},
    {"accepted": 0},
    {"seconds": "1"},
    {"until": 1e300},
    {"waits": []},
    {"waits": ""},
    {"waits": {"mine": "soon"}},
    {"waits": {"mine": 1e300}},
    {"totals": []},
    {"totals": "x"},
    {"totals": {"runs": "1"}},
    {"totals": {"runs": None}},
    {"totals": {"cost_usd": "0.5"}},
    {"totals": {"cost_usd": float("nan")}},
    {"totals": {"cost_usd": float("inf")}},
    {"totals": {"tokens": -1}},
    {"totals": {"tokens": 10**400}},
    {"totals": {"surprise": 1}},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_field_of_a_wrong_kind_is_named_with_its_line(layout: Layout, odd: dict[str, Any]) -> None:
    """It is not reported later as a bug in the harness; for the run log and for result.json."""
    one = finish(layout, result())
    files.add_line(layout.path(names.RUN_LOG), files.dump_json({**one.asdict(), **odd}))
    with pytest.raises(BrokenFile, match=rf"runs\.jsonl, line 2: '{next(iter(odd))}"):
        next(runs.finished(layout))
    put(layout.run(one.run).result, files.dump_json({**one.asdict(), **odd}))
    with pytest.raises(BrokenFile, match=r"result\.json, line 1"):
        runs.result(layout, one.run)


def test_an_id_says_when_who_and_what() -> None:
    """It has the feature only where there is one."""
    assert runs.new_id("worker", "F-023", 1777076234) == "1777076234-worker-F-023"
    assert runs.new_id("curator", "", 1777076234) == "1777076234-curator"


def test_a_taken_name_gets_a_number(layout: Layout) -> None:
    """This also holds for a foreign folder of that name."""
    assert [runs.make(layout, "1-worker")[0] for _ in range(3)] == ["1-worker", "1-worker-2", "1-worker-3"]
    os.makedirs(layout.run("2-worker-2").folder)
    assert [runs.make(layout, "2-worker")[1].folder for _ in range(2)] == [
        layout.run("2-worker").folder,
        layout.run("2-worker-3").folder,
    ]


def test_runs_that_start_at_once_get_folders_of_their_own(layout: Layout) -> None:
    """Eight processes request the same id."""

    def take() -> None:
        name, where = runs.make(layout, "1-worker")
        put(where.context, name)

    assert [end(child) for child in [start(take) for _ in range(8)]] == [0] * 8
    assert len(files.names(layout.path(names.RUNS))) == 8
    assert all(files.read_text(layout.run(name).context) == name for name in files.names(layout.path(names.RUNS)))


@pytest.mark.parametrize(
    "wish", ["", ".", "..", "a/b", "../x", "-x", "1-../x", "1-a\nb", "1-é" * 60, "x" * 201, "1-a b", "a\0"]
)
def test_what_cannot_be_a_folders_name_is_refused(wish: str) -> None:
    """The id of a run is the name of its folder."""
    with pytest.raises(UsageFault, match="is not a valid run id"):
        runs.require_id(wish)


def test_context_and_result_come_back(layout: Layout) -> None:
    """A run without a result has not closed."""
    _, where = runs.make(layout, "1-worker-F")
    put(where.context, files.dump_json(context("1-worker-F").asdict()))
    assert runs.context(layout, "1-worker-F") == context("1-worker-F")
    assert runs.result(layout, "1-worker-F") is None
    made = finish(layout, result())
    assert runs.result(layout, "1-worker-F") == made


def test_a_run_that_is_not_there_is_said_so(layout: Layout) -> None:
    """The error says where to look."""
    with pytest.raises(UsageFault, match=r"no run '9'\. See: harness runs list"):
        runs.context(layout, "9")


@pytest.mark.parametrize("value", [[], 5, {}, {"run": "x"}, {**context("x").asdict(), "more": 1}])
def test_a_context_that_is_none_is_named(layout: Layout, value: object) -> None:
    """The error has file and line."""
    put(layout.run("x").context, json.dumps(value))
    with pytest.raises(BrokenFile, match=r"x/context\.json, line 1: not what a run writes"):
        runs.context(layout, "x")


ODD_CONTEXT: list[dict[str, Any]] = [
    {"head": 5},
    {"feature": None},
    {"agent": "mine"},
    {"agent": [1]},
    {"attempt": "1"},
    {"untracked": []},
    {"untracked": {"a": 1}},
    {"live": {"features.json": "d"}},
    {"live": {"features.json": [1, "d"]}},
    {"raw": [0]},
    {"raw": ["", 0]},
    {"identity": {"worker.md": None}},
    {"process": []},
    {"dirty": {"main.py": 1}},
]


@pytest.mark.parametrize("odd", ODD_CONTEXT, ids=str)
def test_a_field_of_a_context_of_a_wrong_kind_is_named(layout: Layout, odd: dict[str, Any]) -> None:
    """It is not reported as a bug in recovery or in a command that shows the run."""
    put(layout.run("x").context, files.dump_json({**context("x").asdict(), **odd}))
    name = next(iter(odd))
    with pytest.raises(BrokenFile, match=rf"x/context\.json, line 1: '{name}' is not what a run writes there"):
        runs.context(layout, "x")


ANSWER = {"at": "2026-04-24T10:05:12Z", "by": "person", "text": "go on", "after": "1-worker"}


def test_the_counters_start_again_where_a_person_has_answered(layout: Layout) -> None:
    """They restart after the newest run at that time, and only there; the amounts spent stay."""
    totals = runs.Totals(runs=1, seconds=2.0, since_green=5, rejected=2)
    finish(layout, result("1-worker", totals=totals.asdict()))
    assert runs.totals(layout).since_green == 5
    files.add_line(layout.path(names.ANSWERS), files.dump_json(ANSWER))
    assert (runs.answered(layout), [one.asdict() for one in runs.answers(layout)]) == ("1-worker", [ANSWER])
    assert runs.totals(layout) == totals.replace(since_green=0, rejected=0)
    finish(layout, result("2-worker", totals=totals.replace(runs=2).asdict()))
    assert runs.totals(layout).since_green == 5


@pytest.mark.parametrize("row", [b"[]", b"{", b"null", b'{"at":"x"}', files.dump_json({**ANSWER, "after": 5})[:-1]])
def test_a_line_that_is_no_answer_is_named(layout: Layout, row: bytes) -> None:
    """The error has file, line and remedy; a line that a power cut tore is skipped."""
    put(layout.path(names.ANSWERS), files.dump_json(ANSWER) + row + b"\n")
    with pytest.raises(
        BrokenFile,
        match=r"answers\.jsonl, line 2: (the line is not|'after' is not what) a person's answer.* Remove that line",
    ):
        runs.answers(layout)
    put(layout.path(names.ANSWERS), files.dump_json(ANSWER) + row)
    assert runs.answered(layout) == "1-worker"


def test_an_open_run_is_dead_when_nobody_holds_its_lock(layout: Layout) -> None:
    """Only its lock shows that it is open."""
    lock = files.Lock(layout.run("1-worker").lock)
    lock.take()
    assert runs.open_runs(layout) == ["1-worker"]
    assert not runs.is_dead(layout, "1-worker")
    lock.release()
    assert runs.is_dead(layout, "1-worker")
    files.remove(lock.path)
    assert runs.open_runs(layout) == []


def test_the_books_are_read_from_their_end(layout: Layout) -> None:
    """It is read only as far as needed: an old broken line does no harm, a torn last one is skipped."""
    put(layout.path(names.RUN_LOG), "broken\n")
    made = [finish(layout, result(f"{number}-worker")) for number in range(3)]
    files.add_line(layout.path(names.RUN_LOG), b'{"torn')
    books = runs.finished(layout)
    assert [next(books) for _ in range(3)] == made[::-1]
    with pytest.raises(BrokenFile, match=r"runs\.jsonl, line 1: the line is not a finished run: b'broken'"):
        next(books)


@pytest.mark.parametrize("line", ["[]", "5", "{}", '{"run":"x"}', "\udcff"])
def test_a_line_that_is_no_run_is_named(layout: Layout, line: str) -> None:
    """The error has its number in the file, counted from the start."""
    finish(layout, result())
    files.add_line(layout.path(names.RUN_LOG), os.fsencode(line) + b"\n")
    with pytest.raises(BrokenFile) as caught:
        next(runs.finished(layout))
    assert caught.value.line == 2


def test_totals_are_those_of_the_last_run(layout: Layout) -> None:
    """Nothing is spent before the first."""
    assert runs.totals(layout) == Totals()
    for number in (1, 2):
        finish(layout, result(f"{number}-worker", totals=Totals(runs=number, cost_usd=0.5 * number).asdict()))
    assert runs.totals(layout) == Totals(runs=2, cost_usd=1.0)


def test_the_last_run_of_a_role_is_found(layout: Layout) -> None:
    """On a feature, on none, or on any."""
    for number, (role, feature) in enumerate([("worker", "A"), ("validator", ""), ("worker", "B"), ("validator", "A")]):
        finish(layout, result(f"{number}-r", role=role, feature=feature))

    def found(**asked: Any) -> str | None:
        one = runs.last(layout, **asked)
        return one.run if one else None

    assert found(role="worker") == "2-r"
    assert found(role="worker", feature="A") == "0-r"
    assert found(role="validator", feature="") == "1-r"
    assert found(role="worker", feature="C") is None


def test_the_last_receipts_are_those_of_the_last_run_that_judged(layout: Layout) -> None:
    """Any role counts. A judging run without receipts gives none; a run that ended before its verdict is skipped."""
    assert runs.last_receipts(layout, "A") == []
    finish(layout, result("1-v", role="auditor", feature="A", verdict="red"))
    assert runs.last_receipts(layout, "A") == []
    put(layout.run("1-v").receipts, receipts.render([receipt()]))
    finish(layout, result("2-v", role="auditor", feature="A"))
    finish(layout, result("3-v", role="auditor", feature="B", verdict="red"))
    assert runs.last_receipts(layout, "A") == [receipt()]


@pytest.mark.parametrize("name", [*runs.SEALED, "result.json"])
@pytest.mark.parametrize("data", [b"other", None])
def test_tampering_with_a_finished_run_is_found(layout: Layout, name: str, data: bytes | None) -> None:
    """Changed, added, or gone; the other runs are not accused."""
    for number in range(3):
        finish(layout, result(f"{number}-worker"))
    assert runs.broken_seals(layout, 9) == []
    path = os.path.join(layout.run("1-worker").folder, name)
    if data is not None:
        put(path, data)
    elif os.path.exists(path):
        os.unlink(path)
    else:
        put(path, b"")
    assert runs.broken_seals(layout, 9) == ["1-worker"]
    assert runs.broken_seals(layout, 1) == []


def test_a_removed_run_and_a_changed_line_break_the_seal_too(layout: Layout) -> None:
    """Each is named."""
    finish(layout, result("1-worker"))
    files.add_line(layout.path(names.RUN_LOG), files.dump_json(result("2-worker", seal="0" * 64).asdict()))
    assert runs.broken_seals(layout, 9) == ["2-worker"]


@pytest.mark.parametrize(
    ("values", "negative"),
    [
        ({}, False),
        ({"outcome": "no_op", "verdict": "green", "accepted": True}, False),
        ({"verdict": "red"}, True),
        ({"accepted": False}, True),
        *[({"outcome": outcome}, outcome not in runs.GOOD) for outcome in runs.OUTCOMES],
    ],
)
def test_a_run_by_hand_says_whether_it_went_well(values: dict[str, Any], negative: bool) -> None:
    """By its outcome, its verdict, or its plan."""
    assert result(**values).negative is negative


def test_every_outcome_has_its_place() -> None:
    """No outcome is both good and cut, and every word is known."""
    assert {*runs.GOOD, *runs.CUT, *runs.FREE_OF_BLAME} <= set(runs.OUTCOMES)
    assert not set(runs.GOOD) & {*runs.CUT, *runs.FREE_OF_BLAME}


NEWER = ("until", "agents")


def test_what_an_older_version_wrote_is_read(layout: Layout) -> None:
    """Later fields are missing; its digest holds, and its totals count no run as uncounted."""
    made = result(totals={"runs": 3, "seconds": 1.0, "cost_usd": None, "tokens": None, "since_green": 0, "rejected": 0})
    where = layout.run(made.run)
    old = context(made.run).asdict()
    del old["dirty"]
    put(where.context, files.dump_json(old))
    sealed = made.replace(seal=runs.seal(where))
    line = files.dump_json({name: value for name, value in sealed.asdict().items() if name not in NEWER})
    put(where.result, line)
    put(layout.path(names.RUN_LOG), line)
    assert runs.result(layout, made.run) == sealed.replace(until=0, agents=[])
    assert next(runs.finished(layout)) == sealed.replace(until=0, agents=[])
    assert runs.context(layout, made.run) == context(made.run).replace(dirty={})
    assert runs.totals(layout) == Totals(runs=3, seconds=1.0)
    assert runs.broken_seals(layout, 9) == []


@pytest.mark.parametrize("lost", ["run", "totals", "usage"])
def test_a_result_without_what_every_version_wrote_is_refused(layout: Layout, lost: str) -> None:
    """Absent is not the same as empty."""
    value = {name: known for name, known in result("1-worker").asdict().items() if name != lost}
    put(layout.run("1-worker").result, files.dump_json(value))
    with pytest.raises(BrokenFile, match="not what a run writes there"):
        runs.result(layout, "1-worker")


@pytest.mark.parametrize(
    ("values", "said"),
    [({}, "ok"), ({"verdict": "red"}, "red"), ({"accepted": False}, "not accepted"), ({"outcome": "limit"}, "limit")],
)
def test_a_run_says_in_a_word_how_it_ended(values: dict[str, Any], said: str) -> None:
    """The rejected plan, the verdict, else the outcome."""
    assert result(**values).said == said
