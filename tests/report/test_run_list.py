"""The list of runs: each with what it was, bounded, and honest about what is cut."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.mission import receipts
from harness.mission.receipts import Receipt
from harness.report import _facts, _run_list
from tests.missions import House
from tests.report import many


def shown(house: House) -> str:
    """The list as markup."""
    return _run_list.section(_facts.gather(house.layout))


def test_the_newest_run_comes_first_and_each_opens(house: House) -> None:
    """A summary that a key opens, with role, feature and verdict."""
    many.mission(house.layout, 8)
    text = shown(house)
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
    )
    Path(house.layout.run(run).receipts).write_bytes(
        receipts.render([red, a_receipt(claim="VAL-2"), a_receipt(claim="VAL-9")])
    )
    text = shown(house)
    assert "red (exit 1)" in text
    assert "the last line" in text
    assert "it begins here" not in text
    assert '<a href="#claim-VAL-2" class="id">VAL-2</a>' in text
    assert '<span class="id">VAL-9</span>' in text


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
    found = [a_receipt(claim=f"VAL-{at}", exit=at % 2) for at in range(2000)]
    Path(house.layout.run(house.ran()[2]["run"]).receipts).write_bytes(receipts.render(found))
    text = shown(house)
    assert "1000 green" in text
    assert re.search(r"and \d+ more red ones", text)
    assert f"and {1000 - _run_list.MANY_GREEN} more" in text
    assert len(text) < 200_000


@pytest.mark.parametrize(("seconds", "words"), [(0.04, "0.0 s"), (59.9, "59.9 s"), (61, "2 min"), (7300, "2 h 2 min")])
def test_durations_are_words(seconds: float, words: str) -> None:
    """Rounded as elsewhere."""
    assert _run_list.duration(seconds) == words


def test_what_is_not_known_is_not_zero() -> None:
    """A run without a cost says nothing of it."""
    assert (_run_list.money(None), _run_list.money(0.0)) == ("", "0.00 USD")
