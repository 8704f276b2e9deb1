"""What a start needs is kept once, in the mission's folder, and no key is in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.agents import registry
from harness.base.errors import BrokenFile
from harness.process import variables
from harness.unattended import schedules
from tests.missions import House
from tests.unattended.crontabs import Crontab


def test_what_is_kept_of_a_persons_environment() -> None:
    """PATH without folders that depend on where we are, settings of agents, a UTF-8 locale; keys never."""
    base = {
        "PATH": ".:/b:/a/c:rel:/b:",
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_OAUTH_TOKEN": "k",
        "CODEX_HOME": "/c",
        "EDITOR": "vi",
    }
    kept = schedules.captured(
        {**base, "CLAUDE_CODE_USE_BEDROCK": "1", "https_proxy": "http://p", "LANG": "de_DE.UTF-8"}
    )
    assert kept == {
        "PATH": "/b:/a/c",
        "CODEX_HOME": "/c",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "https_proxy": "http://p",
        "LC_ALL": "de_DE.UTF-8",
    }
    assert schedules.captured({"LC_ALL": "C", "LANG": "de_DE.ISO-8859-1"})["LC_ALL"] == "C.UTF-8"


def test_no_name_that_is_kept_is_that_of_a_key() -> None:
    """Nor is a value that has a login: the file can be read from a run."""
    assert [name for name in (*schedules.KEPT, *registry.settings_variables()) if variables.is_key(name)] == []
    assert "https_proxy" not in schedules.captured({"https_proxy": "http://me:hunter2@proxy"})


def test_said_again_it_is_the_same_and_another_time_replaces_it(crontab: Crontab) -> None:
    """One line in the crontab, one settings file."""
    house = crontab.house
    for _ in range(2):
        assert house.harness("schedule", "add", "--every", "30m", "--lanes", "3").code == 0
        first = crontab.text
    path = Path(house.state / "schedule" / "schedule.json")
    assert json.loads(path.read_text())["goes_on"] == "25m" and json.loads(path.read_text())["lanes"] == 3
    assert house.harness("schedule", "add", "--cron", "0 22 * * *", "--cron", "0 2 * * *", "--for", "3h").code == 0
    assert "*/30" not in crontab.text and crontab.text.count("schedule start") == 2 and crontab.text != first
    assert json.loads(path.read_text())["times"] == ["0 22 * * *", "0 2 * * *"]


def test_said_again_without_times_it_has_those_of_before(crontab: Crontab) -> None:
    """As `list` says where its lines are gone, or after PATH has changed."""
    house = crontab.house
    assert house.harness("schedule", "add", "--cron", "0 2 * * *", "--for", "3h", "--lanes", "3").code == 0
    before = crontab.text
    crontab.file.unlink()
    assert house.harness("schedule", "add").code == 0
    assert crontab.text == before
    found = json.loads((house.state / "schedule" / "schedule.json").read_text())
    assert (found["times"], found["goes_on"], found["lanes"]) == (["0 2 * * *"], "3h", 3)
    assert house.harness("schedule", "add", "--every", "30m").code == 0
    assert json.loads((house.state / "schedule" / "schedule.json").read_text())["goes_on"] == "25m"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--every", "30m", "--cron", "* * * * *"],
        *(
            ["--every", text]
            for text in ("m", "7m", "60m", "24h", "2d", "-5m", "1.5h", "30", "30s", "\u0663m", "9999m")
        ),
        *(["--cron", text] for text in ("", "* * * *", "* * * * * *", "@daily", "0 0 * * %", "0 0 * * $(x)")),
        ["--every", "30m", "--for", "x"],
        ["--every", "30m", "--for", "0m"],
        ["--every", "30m", "--for", "\u00b2m"],
        ["--every", "30m", "--for", f"{'9' * 20}h"],
    ],
)
def test_what_makes_no_schedule_is_a_usage_fault(crontab: Crontab, words: list[str]) -> None:
    """And nothing is written."""
    assert crontab.house.harness("schedule", "add", *words).code == 64
    assert not crontab.file.exists() and not (crontab.house.state / "schedule").exists()


def test_a_folder_without_a_mission_is_not_scheduled(unbegun: House) -> None:
    """`init` comes first, since it asks for the agent."""
    done = unbegun.harness("schedule", "add", "--every", "30m")
    assert done.code == 64 and "There is no mission" in done.err, done


def test_an_agent_cannot_schedule(crontab: Crontab) -> None:
    """It would go on after its run."""
    house = crontab.house
    house.script(
        "worker", {"run": "harness schedule add --every 1m; echo $? > said.txt"}, {"reply": {"status": "implemented"}}
    )
    for words in (["add", "--every", "1m"], ["remove"], ["run-now"]):
        (house.state / "runs" / "1-worker").mkdir(exist_ok=True)
        done = house.harness("schedule", *words, HARNESS_INSIDE="1-worker")
        assert done.code == 64 and "inside of a run" in done.err, done


def test_settings_that_are_broken_are_named_and_add_makes_them_again(crontab: Crontab) -> None:
    """65 for a start, which cron mails; `add` replaces them."""
    house = crontab.house
    house.harness("schedule", "add", "--every", "30m")
    path = house.state / "schedule" / "schedule.json"
    lines = json.dumps({**json.loads(path.read_text()), "times": ["* * * * * one\n*/30 * * * *"]})
    for text in ("[]", '{"id": "a"}', "{", lines):
        path.write_text(text)
        with pytest.raises(BrokenFile, match=r"schedule\.json"):
            schedules.load(house.layout)
    done = crontab.fires()
    assert done.code == 65 and "schedule.json" in done.err, done
    assert house.harness("schedule", "list").out.count("fault: ") == 1
    assert house.harness("schedule", "add", "--every", "30m").code == 0
    house.harness("pause")
    assert crontab.fires().code == 9


def test_a_schedule_with_more_than_is_needed_is_read(crontab: Crontab) -> None:
    """Earlier versions wrote where it was added, and when."""
    house = crontab.house
    house.harness("schedule", "add", "--every", "30m")
    path = house.state / "schedule" / "schedule.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "place": "cron", "added": "2026-11-28T00:00:00Z"}))
    house.harness("pause")
    assert crontab.fires().code == 9


def test_a_copy_of_the_folder_is_not_started_by_the_line_of_the_first(crontab: Crontab) -> None:
    """Its id is of its path."""
    house = crontab.house
    house.harness("schedule", "add", "--every", "30m")
    os.rename(house.project, house.folder / "moved")
    done = crontab.fires()
    assert done.code == 64 and "There is no folder" in done.err, done
    line = crontab.line.replace("my project", "moved")
    done = crontab.fires(line=line)
    assert "schedule" not in done.err, "the id was made once, so a person who mends the line by hand is right"


def test_a_crontab_never_has_a_start_without_settings(crontab: Crontab) -> None:
    """Where they cannot be kept, as on a full disk, it is as it was; where it refuses, they are as they were."""
    house = crontab.house
    (house.state / "schedule").write_text("in the way")
    assert house.harness("schedule", "add", "--every", "30m").code == 11
    assert crontab.text == ""
    (house.state / "schedule").unlink()
    refused = Path(f"{crontab.file}.refused")
    refused.touch()
    assert house.harness("schedule", "add", "--every", "30m").code == 69
    assert not list((house.state / "schedule").glob("*"))
    refused.unlink()
    assert house.harness("schedule", "add", "--every", "30m").code == 0
    before = (house.state / "schedule" / "schedule.json").read_text()
    refused.touch()
    assert house.harness("schedule", "add", "--every", "10m").code == 69
    assert (house.state / "schedule" / "schedule.json").read_text() == before


@pytest.mark.parametrize(
    ("words", "times", "goes_on"),
    [
        (["--every", "1m"], "* * * * *", "1m"),
        (["--every", "10m"], "*/10 * * * *", "8m"),
        (["--every", "1h"], "0 * * * *", "50m"),
        (["--every", "6h"], "0 */6 * * *", "300m"),
        (["--every", "1d"], "0 0 * * *", "1200m"),
        (["--cron", " */5  22-23,0-6 * * mon-fri "], "*/5 22-23,0-6 * * mon-fri", "25m"),
    ],
)
def test_a_start_goes_on_for_less_than_the_time_to_the_next(
    crontab: Crontab, words: list[str], times: str, goes_on: str
) -> None:
    """So that it does not meet the next one."""
    assert crontab.house.harness("schedule", "add", *words).code == 0
    found = json.loads((crontab.house.state / "schedule" / "schedule.json").read_text())
    assert (found["times"], found["goes_on"]) == ([times], goes_on)
    assert f"\n{times} " in crontab.text
