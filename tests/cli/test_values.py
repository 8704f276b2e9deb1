"""`--json`: one value on standard output, of every command that shows something."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.memory import identity
from harness.memory.curation.growth import Graduation
from tests import compacting
from tests.kill_sweep import Kept
from tests.missions import CHECKOUT, House

SHOWS = (
    *("status", "usage", "next", "log", "why F-001", "why VAL-1", "check", "verify", "doctor", "doctor agents"),
    *("feature list", "feature show F-001", "issue list", "memory show", "runs list", "runs show RUN", "steer"),
    *("checkpoint list", "steer --list", "workspace show", "skill", "skill deploy"),
    *("memory diff", "memory why use", "identity list", "identity why stop"),
    *("snapshot list", "snapshot show RUN", "snapshot diff RUN", "memory at RUN", "features at RUN"),
    *("replay RUN", "replay RUN --explain", "replay --all", "runs show RUN --prompt", "search hello", "gc --dry-run"),
)


ELSEWHERE = {  # rows of the contract page that need more than a mission, and the tests that hold them
    "schedule list": "tests/unattended/test_report.py",  # the machine's crontab
    "schedule log": "tests/unattended/test_report.py",
    "replay RUN --turn N": "tests/cli/test_turn_view.py",  # a run of the built-in agent
    **dict.fromkeys(  # a database
        (
            *("team init", "team show", "team threads", "team run THREAD MESSAGE"),
            *("goal list THREAD", "task list THREAD", "task done TASK"),
        ),
        "tests/cli/test_team.py",
    ),
    "ask WORDS": "tests/cli/test_sessions.py",  # needs a model, like every row of sessions
}


def contracted() -> dict[str, list[str]]:
    """The table of commands and their keys in docs/contract.md."""
    text = (CHECKOUT / "docs/contract.md").read_text()
    table = text.split("## JSON\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", table, re.M)
    return {words: sorted(re.findall(r"`(\w+)`", keys.split(":")[0])) for words, keys in rows}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Kept:
    """A mission with a run, an issue, a note and an answer that look bad on a terminal."""
    return Kept(tmp_path_factory.mktemp("busy"), template, fill)


@pytest.fixture
def busy(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> House:
    """That mission, as it was made."""
    return kept.again(monkeypatch)


def fill(house: House) -> None:
    """A run, and what a person may do."""
    house.write("1.txt")
    house.write("skills/deploy/SKILL.md", "---\nname: deploy\ndescription: How \u202e to\n---\nSo.\n")
    house.git("add", "skills")
    house.git("commit", "-qm", "mine")
    house.work({"run": "echo obey > AGENTS.md"}, {"say": "hello \x1b[2J\u202e"})
    house.harness("issue", "slow \x9b\u202e", "--severity", "major")
    house.harness("note", "--tag", "TRICK", "use make")
    learn(house)
    house.harness("note", "a note")
    house.harness("steer", "be brief \x1b[2J\u202e")


def learn(house: House) -> None:
    """A curation, and a line in an identity."""
    compacting.compact_all(house.layout, str(house.identity), "m-1", "1777000000-curator", "2026-04-24")
    moved = Graduation(role="worker", text="stop at the first failure", tag="TRICK", missions=["m-2"], count=2)
    identity.record(str(house.identity), [], [moved], "2026-04-24")


def lines(words: str) -> str:
    """How a line begins that the command knows."""
    return "stop" if words.startswith("identity") else "use"


def value(house: House, words: str) -> Any:
    """What a command shows."""
    named = {"RUN": house.result()["run"], "LINE": lines(words), "NAME": "scripted"}
    named["ITEM=…"] = f"role={CHECKOUT}/roles/validator.md"
    done = house.harness(*(named.get(word, word) for word in words.split()), "--json")
    assert done.err == ""
    return json.loads(done.out)


@pytest.mark.parametrize("words", SHOWS)
def test_a_command_that_shows_something_shows_one_value(busy: House, words: str) -> None:
    """It parses, and nothing in it steers a terminal; the exit code is the same as without."""
    words = words.replace("RUN", busy.result()["run"])
    done = busy.harness(*words.split(), "--json")
    assert isinstance(json.loads(done.out), dict | list)
    assert all(char.isprintable() or char == "\n" for char in done.out)
    assert done.code == busy.harness(*words.split()).code


def test_the_keys_are_those_of_the_contract_page(busy: House) -> None:
    """The table in docs/contract.md."""
    rows = contracted()
    assert len(rows) > 10
    for words, keys in rows.items():
        if words in ELSEWHERE or words.startswith("sessions "):
            continue
        found = value(busy, words)
        found = found[0] if isinstance(found, list) else found
        assert sorted(found) == keys, words


def test_records_of_the_mission_are_whole(busy: House) -> None:
    """Claims with their checks, receipts with their verdicts, runs as in the run log."""
    shown = value(busy, "feature show F-001")
    assert shown["claims"][0]["checks"][0]["run"] == "test -f 1.txt"
    assert value(busy, "runs list")["runs"] == busy.ran()
    found = value(busy, "check F-001")
    assert (found["green"], [one["verdict"] for one in found["receipts"]]) == (True, ["green"])
    assert value(busy, "why VAL-1")["claims"][0]["claim"] == "VAL-1"
    assert [row["text"] for row in value(busy, "memory show raw")["raw"]] == ["use make", "a note"]
    assert value(busy, "next")["line"] == busy.harness("next").out.strip()


def test_what_is_escaped_reads_back_as_it_was(busy: House) -> None:
    """Control characters and marks that turn the text, of a person; an issue is kept without them."""
    assert value(busy, "steer --list")[0]["text"] == "be brief \x1b[2J\u202e"
    assert r"be brief \u001b[2J\u202e" in busy.harness("steer", "--list", "--json").out
    assert value(busy, "issue list")[0]["title"] == "slow"


def test_older_runs_are_counted(busy: House) -> None:
    """As the table does."""
    busy.work({"say": "again"}, feature="F-002")
    found = value(busy, "runs list -n 1")
    assert (found["older"], [one["run"] for one in found["runs"]]) == (1, [busy.result()["run"]])


def test_a_fault_is_no_value(busy: House) -> None:
    """Standard output is empty; the words and the code are as without."""
    done = busy.harness("feature", "show", "F-9", "--json")
    assert (done.code, done.out, "There is no feature 'F-9'" in done.err) == (64, "", True)
