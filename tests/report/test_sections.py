"""The sections of the page, each with what it is for."""

from __future__ import annotations

from pathlib import Path

from harness.mission import mission
from harness.report import _facts, _sections
from harness.state import names
from tests.missions import House
from tests.report import many


def test_a_claim_shows_its_newest_red_and_green(house: House) -> None:
    """With the runs that fired it, and its check."""
    many.mission(house.layout, 60)
    found = _facts.gather(house.layout)
    status = next(one.status for one in found.proofs if one.claim.id == "VAL-1")
    assert status is not None
    text = _sections.proof(found)
    assert f'href="#run-{status.red[0]}"' in text
    assert f'href="#run-{status.green[0]}"' in text
    head = mission.load(house.layout).base_commit[:7]
    assert f"red {head} → green {head}" in text
    assert "test -f 1.txt" in text
    assert "No check decides this claim; a person does." in text


def test_what_a_feature_changed_is_beside_its_claims(house: House) -> None:
    """Folded, escaped, and no longer than its share."""
    house.work({"run": "seq 100000 >1.txt; echo '<b>' >0.txt"})
    text = _sections.proof(_facts.gather(house.layout))
    claims, changed, after = (text.index(words) for words in ("claim-VAL-1", "What F-001 changed", "F-002 Part two"))
    assert claims < changed < after
    assert ["+&lt;b&gt;" in text, "run.sh diff F-001" in text, len(text) < 100_000] == [True] * 3


def test_a_feature_has_a_square_for_each_run(house: House) -> None:
    """In order, and what a blocked one waits for."""
    house.work({"reply": {"status": "blocked", "reason": "no key", "needs": [], "summary": "s", "disputes": []}})
    text = _sections.queue(_facts.gather(house.layout))
    assert text.count(f'href="#run-{house.result()["run"]}"') == 1
    assert house.feature().status in text


def test_lanes_are_the_trees_of_the_runs(house: House) -> None:
    """A row each, however many there are."""
    many.mission(house.layout, 12)
    text = _sections.timeline(_facts.gather(house.layout))
    assert [f"tree-{at}</text>" in text for at in (1, 2, 3, 4)] == [True, True, True, False]
    assert text.count('href="#run-') == 12


def test_spending_adds_up_by_role_and_day_and_says_what_is_not_known(house: House) -> None:
    """Runs that reported nothing are counted as such, never as free."""
    many.mission(house.layout, 40)
    found = _facts.gather(house.layout)
    text = _sections.spending(found)
    cost = sum(one.usage.cost_usd or 0 for one in found.runs if one.result.role == "worker")
    assert f"{cost:.2f} USD" in text
    assert "10 runs of agents reported no cost" in text
    assert "Tokens by role and day" in text


def test_what_a_person_was_asked_and_answered_is_there(house: House) -> None:
    """Open questions are open on the page."""
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stuck\n---\nWhat now?\n")
    text = _sections.people(_facts.gather(house.layout))
    assert "<details open>" in text
    assert "waits for an answer" in text
    house.harness("escalation", "answer", "use the other one")
    text = _sections.people(_facts.gather(house.layout))
    assert "use the other one" in text
    assert "<details open>" not in text


def test_signs_secrets_and_what_was_put_back_are_listed(house: House) -> None:
    """With the run."""
    many.mission(house.layout, 4)
    found = _facts.gather(house.layout)
    assert "No signs of reward hacking" in _sections.signs(found)
    found.runs[1].result.secrets, found.runs[2].result.refused = ["a key in .env"], ["features.json"]
    found.proofs[0].signs = ["a test was deleted"]
    text = _sections.signs(found)
    assert [words in text for words in ("a key in .env", "reverted: features.json", "a test was deleted")] == [True] * 3


def test_the_pages_of_the_memory_are_whole(house: House) -> None:
    """And how many notes wait."""
    house.harness("note", "--tag", "TRICK", "use make")
    Path(house.layout.path(names.MEMORY)).write_text("## Lessons\n- <b>make</b>\n")
    text = _sections.memory(_facts.gather(house.layout))
    assert "1 notes are not curated yet" in text
    assert "&lt;b&gt;make&lt;/b&gt;" in text
