"""The sections of the page: each shows what it is for; every value of a plot has its place in the picture and in its table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness.decision.memory_growth import MemoryGrowth
from harness.mission import mission, receipts
from harness.mission.receipts import Receipt
from harness.report import _facts
from harness.state import names
from tests.missions import House
from tests.report import many
from tests.report.test_page import section


def test_a_claim_shows_its_newest_red_and_green(house: House) -> None:
    """With the runs that fired it, and its check."""
    many.mission(house.layout, 60)
    found = _facts.gather(house.layout)
    status = next(one.status for one in found.proofs if one.claim.id == "VAL-1")
    assert status is not None
    text = section(found, "proof")
    assert f'href="#run-{status.red[0]}"' in text
    assert f'href="#run-{status.green[0]}"' in text
    head = mission.load(house.layout).base_commit[:7]
    assert f"red {head} → green {head}" in text
    assert "test -f 1.txt" in text
    assert "No check decides this claim; a person does." in text


def test_what_a_feature_changed_is_beside_its_claims(house: House) -> None:
    """Folded, escaped, and no longer than its share."""
    house.work({"run": "seq 100000 >1.txt; echo '<b>' >0.txt"})
    text = section(_facts.gather(house.layout), "proof")
    claims, changed, after = (text.index(words) for words in ("claim-VAL-1", "What F-001 changed", "F-002 Part two"))
    assert claims < changed < after
    assert ["+&lt;b&gt;" in text, "run.sh diff F-001" in text, len(text) < 100_000] == [True] * 3


def test_a_feature_has_a_square_for_each_run(house: House) -> None:
    """In order, and what a blocked one waits for."""
    house.work({"reply": {"status": "blocked", "reason": "no key", "needs": [], "summary": "s", "disputes": []}})
    text = section(_facts.gather(house.layout), "features")
    assert text.count(f'href="#run-{house.result()["run"]}"') == 1
    assert house.feature().status in text


def test_lanes_are_the_trees_of_the_runs(house: House) -> None:
    """A row each, however many there are."""
    many.mission(house.layout, 12)
    text = section(_facts.gather(house.layout), "timeline")
    assert [f"tree-{at}</text>" in text for at in (1, 2, 3, 4)] == [True, True, True, False]
    assert text.count('href="#run-') == 12


def test_spending_adds_up_by_role_and_day_and_says_what_is_not_known(house: House) -> None:
    """Runs that reported nothing are counted as such, never as free."""
    many.mission(house.layout, 40)
    found = _facts.gather(house.layout)
    text = section(found, "spending")
    cost = sum(one.usage.cost_usd or 0 for one in found.runs if one.result.role == "worker")
    assert f"{cost:.2f} USD" in text
    assert "10 runs of agents reported no cost" in text
    assert "Tokens by role and day" in text


def test_what_a_person_was_asked_and_answered_is_there(house: House) -> None:
    """Open questions are open on the page."""
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stuck\n---\nWhat now?\n")
    text = section(_facts.gather(house.layout), "people")
    assert "<details open>" in text
    assert "waits for an answer" in text
    house.harness("escalation", "answer", "use the other one")
    text = section(_facts.gather(house.layout), "people")
    assert "use the other one" in text
    assert "<details open>" not in text


def test_signs_secrets_and_what_was_put_back_are_listed(house: House) -> None:
    """With the run."""
    many.mission(house.layout, 4)
    found = _facts.gather(house.layout)
    assert "No signs of reward hacking" in section(found, "signs")
    found.runs[1].result.secrets, found.runs[2].result.refused = ["a key in .env"], ["features.json"]
    found.proofs[0].signs = ["a test was deleted"]
    text = section(found, "signs")
    assert [words in text for words in ("a key in .env", "reverted: features.json", "a test was deleted")] == [True] * 3


def test_the_pages_of_the_memory_are_whole(house: House) -> None:
    """And how many notes wait."""
    house.harness("note", "--tag", "TRICK", "use make")
    Path(house.layout.path(names.MEMORY)).write_text("## Lessons\n- <b>make</b>\n")
    text = section(_facts.gather(house.layout), "memory")
    assert "1 notes are not curated yet" in text
    assert "&lt;b&gt;make&lt;/b&gt;" in text


def test_the_newest_run_comes_first_and_each_opens(house: House) -> None:
    """A summary that a key opens, with role, feature and verdict."""
    many.mission(house.layout, 8)
    text = section(_facts.gather(house.layout), "runs")
    ids = re.findall(r'id="run-([^"]+)"', text)
    assert ids == [row["run"] for row in reversed(house.ran())]
    assert text.count("<summary>") >= 8


def test_a_red_receipt_shows_its_command_and_the_end_of_its_output(house: House) -> None:
    """And green ones by name, with a link to the claim where the contract has it."""
    house.write("note.txt")
    many.mission(house.layout, 3)
    run = house.ran()[2]["run"]
    red = a_receipt(
        claim="VAL-1", exit=1, command="test -f 1.txt", output="it begins here\n" + "x" * 9000 + "\nthe last line"
    ).replace(notes=["only in the folder: a<b"])
    Path(house.layout.run(run).receipts).write_bytes(
        receipts.render([red, a_receipt(claim="VAL-2", notes=["flaky: red", "odd"]), a_receipt(claim="VAL-9")])
    )
    text = section(_facts.gather(house.layout), "runs")
    assert "red (exit 1)" in text
    assert "the last line" in text
    assert "it begins here" not in text
    assert '<a href="#claim-VAL-2" class="id">VAL-2</a>' in text
    assert '<span class="id">VAL-9</span>' in text
    assert "note: only in the folder: a&lt;b" in text
    assert "(note: flaky: red; odd)" in text


def a_receipt(**values: Any) -> Receipt:
    """A green receipt, but for these values."""
    base: dict[str, Any] = {
        "claim": "VAL-1",
        "command": "true",
        "phase": "after",
        "exit": 0,
        "seconds": 0.1,
        "output": "",
        "at": "",
    }
    base |= {"output_sha256": "", "head": "b", "tree": "c", "by": "", "host": ""}
    return Receipt(**{**base, **values})


def test_hundreds_of_receipts_of_one_run_are_counted(house: House) -> None:
    """Those that are not shown are not silently missing."""
    many.mission(house.layout, 3)
    found = [a_receipt(claim=f"VAL-{at}", exit=at % 2, notes=["x" * 900] * 9) for at in range(2000)]
    Path(house.layout.run(house.ran()[2]["run"]).receipts).write_bytes(receipts.render(found))
    text = section(_facts.gather(house.layout), "runs")
    assert "1000 green" in text
    assert re.search(r"and \d+ more red ones", text)
    assert f"and {1000 - 12} more" in text
    assert len(text) < 200_000


def facts_of(house: House, *runs: tuple[str, int, float, float]) -> _facts.Facts:
    """The facts of a mission with these runs: role, day of April, cost, minutes from midnight on."""
    many.mission(house.layout, max(len(runs), 1))
    found = _facts.gather(house.layout)
    for one, (role, day, cost, minutes) in zip(found.runs, runs, strict=True):
        one.result.role, one.result.at, one.result.seconds = (
            role,
            f"2026-04-{day:02}T00:{minutes:02.0f}:00Z",
            60 * minutes,
        )
        one.usage.cost_usd, one.lane = cost, f"tree-{day}"
        one.result.outcome, one.result.verdict = "ok", ""
    return found


def test_columns_stack_their_series(house: House) -> None:
    """Heights are shares of the axis; nothing is drawn for nothing; the numbers are in a table, too."""
    found = facts_of(house, ("a", 24, 1.0, 1), ("b", 24, 3.0, 1), ("b", 25, 5.0, 1))
    text = section(found, "spending").partition("</figure>")[0]
    heights = re.findall(r'<rect x="[^"]*" width="[^"]*" y="[^"]*" height="([\d.]+)"', text)
    assert [float(height) for height in heights] == [30, 90, 150]
    assert "<title>04-25, b: 5.00</title>" in text
    assert '<th scope="row">04-25</th><td>0.00</td><td>5.00</td>' in text


def test_many_columns_are_named_now_and_then(house: House) -> None:
    """The labels do not run into each other."""
    found = facts_of(house, *(("a", day, 1.0, 1) for day in range(1, 31)))
    text = section(found, "spending").partition("</figure>")[0]
    assert len(re.findall('text-anchor="middle"', text)) == 8
    assert text.count("<rect x=") == 30


def test_bars_lie_in_their_lane_and_lead_to_their_run(house: House) -> None:
    """The first begins at the left edge, the last ends at the right one; a bad one has a mark."""
    found = facts_of(house, ("a", 24, 1.0, 10), ("a", 24, 1.0, 20))
    found.runs[1].result.seconds, found.runs[1].lane, found.runs[1].result.verdict = 600, "tree-25", "red"
    text = section(found, "timeline")
    assert text.count('x="0.0%" width="50.0%"') == 1
    assert text.count('x="50.0%" width="50.0%"') == 2
    assert 'class="bad" x="50.0%"' in text
    assert text.count(f'href="#run-{found.runs[1].result.run}"') == 1
    assert "tree-25</text>" in text


def test_a_single_moment_is_drawn(house: House) -> None:
    """Without a division by zero; a bar can be seen."""
    found = facts_of(house, ("a", 24, 0.0, 0))
    found.growth = [MemoryGrowth(run="r", at=found.runs[0].end, notes=0, lessons=0, graduated=0)]
    assert 'width="0.25%"' in section(found, "timeline")
    assert "nan" not in section(found, "memory")


def test_steps_hold_a_value_until_the_next_one(house: House) -> None:
    """From left to right, the highest on top."""
    found = facts_of(house, ("a", 24, 0.0, 10))
    found.growth = [MemoryGrowth(run="r", at=found.runs[0].end, notes=5, lessons=0, graduated=0)]
    assert 'points="0.00,100.00 0.00,100.00 100.00,100.00 100.00,0.00 100,0.00"' in section(found, "memory")


def test_tries_differ_by_more_than_colour(house: House) -> None:
    """What is not good has a dash, and each says in words what it was."""
    found = facts_of(house, ("a", 24, 0.0, 1), ("a", 24, 0.0, 1))
    for one in found.runs:
        one.result.feature = "F-001"
    found.runs[1].result.verdict = "red"
    text = section(found, "features")
    assert text.count('class="dash"') == 1
    assert '<span class="unseen">a: red, 1 min</span>' in text
