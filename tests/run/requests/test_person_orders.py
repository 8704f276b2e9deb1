"""A feature that a person adds: in the plan at once where they say how it is proven, else planned before all else."""

from __future__ import annotations

import json

import pytest

from harness.mission import contract, contract_log
from tests.missions import House


def test_with_a_check_it_is_in_the_plan_at_once(house: House) -> None:
    """Its check ran first; ids are new; no plan changes it."""
    done = house.harness(
        "feature", "add", "CSV export", "--check", "test -f csv.txt", "--after", "F-001", "--text", "RFC 4180"
    )
    assert done.code == 0, done
    assert "F-003 is todo, with the claim VAL-F-003" in done.out
    made = house.feature("F-003")
    assert (made.title, made.description, made.depends_on, made.claims) == (
        "CSV export",
        "RFC 4180",
        ["F-001"],
        ["VAL-F-003"],
    )
    assert contract.load(house.layout).claim("VAL-F-003").checks[0].run == "test -f csv.txt"
    (entry,) = contract_log.load(house.layout)
    assert (entry.by, [receipt.green for receipt in entry.fired]) == ("person", [False])
    assert house.harness("next").out == "NEXT worker F-001\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("CSV", "--check", "test -f csv.txt || true"), 10),
        (("CSV", "--check", "true"), 10),
        (("CSV", "--check", "test -f csv.txt", "--after", "F-009"), 64),
        ((" ",), 64),
    ],
)
def test_what_a_plan_could_not_have_is_refused(house: House, words: tuple[str, ...], code: int) -> None:
    """And nothing is kept."""
    done = house.harness("feature", "add", *words)
    assert (done.code, (house.state / "orders.jsonl").exists()) == (code, False), done
    assert house.harness("next").out == "NEXT worker F-001\n"


def test_without_a_check_a_plan_is_due_whose_prompt_has_it(house: House) -> None:
    """Before the work that was due."""
    house.harness("feature", "add", "CSV export", "--text", "as RFC 4180")
    assert house.harness("next").out == "NEXT planner\n"
    house.script("planner", {"say": '```json harness\n{"features": [], "contract": []}\n```'})
    house.role("planner")
    assert "a person wants a feature: CSV export\nas RFC 4180" in house.prompt()
    assert house.harness("next").out == "NEXT worker F-001\n"


def test_an_answer_waits_for_no_run(house: House) -> None:
    """An order that comes while a run is under way is applied at once."""
    (house.state / "checkpoints").mkdir()
    (house.state / "checkpoints/look.md").touch()
    assert house.harness("checkpoint", "grant", "look").code == 0
    rows = [json.loads(line) for line in house.read("orders.jsonl").split("\n") if line]
    assert [row.get("state", row.get("verb")) for row in rows] == ["checkpoint grant", "applied"]
