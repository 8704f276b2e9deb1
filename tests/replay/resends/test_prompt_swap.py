"""One item of a past prompt swapped: its section is composed as a live prompt's is, and every other byte stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import UsageFault
from harness.replay.resends import prompt_swap
from harness.state import names
from tests.missions import House
from tests.replay.resends.test_state_at_run import SAYS, noted

LESSON = "the part needs `make first` before anything else"


def changed(house: House, run_id: str, *words: str) -> tuple[list[str], list[str]]:
    """The lines that a swap takes out of the prompt, and those that it brings."""
    done = house.program("replay", run_id, *(word for one in words for word in ("--with", one)), "--json")
    assert (done.code, done.err) == (0, ""), done
    value: dict[str, Any] = json.loads(done.out)
    lines = [line for line in value["prompt_diff"] if line[:3] not in ("---", "+++")]
    return [line[1:] for line in lines if line[0] == "-"], [line[1:] for line in lines if line[0] == "+"]


def test_a_section_that_was_empty_gets_its_fence_and_one_that_was_not_keeps_its_own(
    house: House, tmp_path: Path
) -> None:
    """The fence is one that the text cannot close; a role's file goes in without its front matter."""
    run = str(house.work(SAYS)["run"])
    text = tmp_path / "text"
    text.write_text("a\n```\nb\n")
    assert changed(house, run, f"summary={text}") == (["(nothing yet)"], ["````", "a", "```", "b", "````"])
    text.write_text("# Another program\n")
    assert changed(house, run, f"spec={text}")[1] == ["# Another program"]
    text.write_text("---\nname: worker\n---\nWork slowly.\n")
    gone, new = changed(house, run, f"role={text}")
    assert new == ["Work slowly."] and "You are the worker." not in "".join(new) and len(gone) > 5
    text.write_text("Work slowly.\n\n## Rules\n\nRest often.\n")
    made = json.loads(house.program("replay", run, "--with", f"role={text}", "--json").out)["prompt_diff"]
    assert [line for line in made if line[:1] == "+"][1:] == ["+Work slowly.", "+## Rules", "+Rest often."]


def test_without_one_lesson_no_page_has_its_line(house: House) -> None:
    """The summary of the prompt loses that line, by any entry of the lesson; the prompt that was fired has it nowhere."""
    noted(house, "F-001", LESSON, "another thing is that tabs are spaces here")
    noted(house, "F-002", *(f"{number} is a number of its own kind{number}" for number in range(10)))
    house.role("curator")
    assert LESSON in house.read(names.SUMMARY)
    run = str(house.work_again("F-001")["run"])
    gone, new = changed(house, run, "memory=without:0")
    assert (gone, new) == ([next(line for line in house.read(names.SUMMARY).split("\n") if LESSON in line)], [])
    house.script("worker", {"run": f"! grep -rqF '{LESSON}' \"${{PATH%%/bin:*}}\"/memory/*.md"}, SAYS)
    value = json.loads(house.program("replay", run, "--agent", "scripted", "--with", "memory=without:0", "--json").out)
    assert value["samples"][0]["outcome"] == "ok", value["samples"]
    assert LESSON not in (house.state / "replays" / value["replay"]["id"] / "prompt.md").read_text()


def test_an_entry_that_waits_for_the_curator_goes_from_its_prompt(house: House) -> None:
    """Its line, and no other's number changes."""
    noted(house, "F-001", "zero", "one", "two")
    house.role("curator")
    run = str(house.result()["run"])
    gone, new = changed(house, run, "memory=without:1")
    assert (len(gone), new) == (1, []) and gone[0].startswith("1 ") and gone[0].endswith("one")


@pytest.mark.parametrize(
    "word", ["colour=red", "role", "role=", "memory=1", "memory=without:", "memory=without:x", "spec=/no"]
)
def test_a_swap_that_is_none_is_refused(word: str) -> None:
    """With what can be said, or the file that is missing."""
    with pytest.raises(UsageFault, match=r"Use role=FILE|There is no file /no for --with spec"):
        prompt_swap.asked(word)


def test_a_long_difference_is_cut() -> None:
    """And says so."""
    lines = prompt_swap.diff(b"", b"x\n" * 1000)
    assert len(lines) == prompt_swap.DIFF_LINES + 1 and lines[-1] == f"… cut after {prompt_swap.DIFF_LINES} lines"
