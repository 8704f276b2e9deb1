"""`doctor unattended`: each thing that would stop a mission tonight is one line with what mends it, and ends with 11."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path

import pytest

from harness.state import names
from harness.unattended import _preflight
from tests.missions import Done, House
from tests.unattended.crontabs import Crontab


@pytest.fixture
def night(crontab: Crontab) -> Crontab:
    """A mission that cron starts."""
    assert crontab.house.harness("schedule", "add", "--every", "30m").code == 0
    return crontab


def asked(house: House) -> Done:
    """What doctor says."""
    return house.harness("doctor", "unattended")


def bad(house: House) -> list[str]:
    """The lines about what is in the way, without those of the machine that runs the tests."""
    done = asked(house)
    found = [line[6:] for line in done.out.split("\n") if line.startswith("bad")]
    assert done.code == (11 if found else 0), done
    return [line for line in found if not line.startswith(("cron: ", "disk: "))]


def cli(house: House, name: str) -> None:
    """A program of this name on the PATH."""
    path = house.folder / "programs" / name
    path.write_text("#!/bin/sh\necho 1.2.3\n")
    path.chmod(0o755)


def test_a_mission_that_can_go_on_has_nothing_in_the_way(night: Crontab) -> None:
    """The same as JSON."""
    assert bad(night.house) == []
    rows = json.loads(night.house.harness("doctor", "unattended", "--json").out)["findings"]
    assert {row["what"].split(":")[0] for row in rows} >= {"folder", "due", "cost", "disk", "clock"}


def test_a_mission_that_nothing_starts(house: House) -> None:
    """With the command that schedules it."""
    assert bad(house) == ["schedule: nothing starts the mission: run.sh schedule add --every 30m"]


def test_lines_of_the_crontab_that_are_gone_or_changed(night: Crontab) -> None:
    """By hand, or by another program."""
    text = night.text
    night.file.write_text(text.replace("*/30", "*/20"))
    assert bad(night.house)[0].startswith("schedule: its lines in your crontab were changed")
    night.file.write_text("# all gone\n")
    assert bad(night.house)[0].startswith("schedule: its lines are gone from your crontab")
    night.file.write_text(text.split("\n", 1)[1])
    assert "your crontab, line 2" in bad(night.house)[0]


def test_what_waits_for_a_person(night: Crontab) -> None:
    """A checkpoint, a pause, an escalation, a cap that is used up: each with the command."""
    house = night.house
    checkpoint = Path(house.layout.path(names.CHECKPOINTS))
    checkpoint.mkdir(exist_ok=True)
    (checkpoint / "design.md").write_text("look\n")
    assert bad(house)[0].startswith("due: CHECKPOINT design")
    (checkpoint / "design.md").unlink()
    house.harness("pause")
    assert bad(house)[0].endswith("to continue: run.sh resume") and "PAUSED" in bad(house)[0]
    house.harness("resume")
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stuck\n---\n")
    assert "ESCALATE stuck" in bad(house)[0] and "run.sh escalation" in bad(house)[0]


def test_agents_that_cost_without_a_cap_or_without_being_counted(night: Crontab) -> None:
    """What to write, and where."""
    house = night.house
    cli(house, "claude")
    cli(house, "codex")
    (house.folder / "home/.claude").mkdir()
    (house.folder / "home/.claude/.credentials.json").write_text("{}")
    (house.folder / "home/.codex").mkdir()
    (house.folder / "home/.codex/auth.json").write_text("{}")
    house.config('agent = "claude"', 'trust = "workspace"')
    assert bad(house) == [
        "cost: claude may cost without bound: write max_cost_usd = 10 under [limits] in .harness/config.toml"
    ]
    house.config('agent = "claude"', 'trust = "workspace"', "[limits]", "max_cost_usd = 5")
    assert bad(house) == []
    house.config('agent = "codex"', 'trust = "workspace"', "[limits]", "max_cost_usd = 5")
    assert "max_cost_usd does not cover the cost of codex: write [prices.codex]" in bad(house)[0]


def test_no_login_a_key_that_a_start_does_not_have_and_a_login_that_ends(
    night: Crontab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen without a call, by the files of the CLI and the variables that cron will give."""
    house = night.house
    cli(house, "codex")
    house.config('agent = "codex"', 'trust = "workspace"', "[limits]", "max_tokens = 1000")
    assert bad(house)[0].startswith("login: none found for codex: codex login; or CODEX_API_KEY")
    monkeypatch.setenv("CODEX_API_KEY", "k")
    assert bad(house)[0].startswith("login: CODEX_API_KEY is set here, but a scheduled start has no keys")
    text = night.text
    night.file.write_text(f"CODEX_API_KEY=k\n{text}")
    assert bad(house) == []
    night.file.write_text(text)
    login = house.folder / "home/.codex/auth.json"
    login.parent.mkdir()
    for hours, words in ((-1, "ended at"), (3, "ends at"), (100, "")):
        body = base64.urlsafe_b64encode(json.dumps({"exp": int(time.time()) + hours * 3600}).encode()).decode()
        login.write_text(json.dumps({"tokens": {"access_token": f"a.{body}.c"}}))
        assert [words in line for line in bad(house)] == ([True] if words else []), hours
    login.write_text(json.dumps({"tokens": {"access_token": f"a.{body}.c", "refresh_token": "r"}}))
    assert bad(house) == []


def test_an_agent_that_is_not_installed_or_not_trusted(night: Crontab) -> None:
    """As doctor says it."""
    house = night.house
    house.config('agent = "codex"', 'trust = "workspace"', "[limits]", "max_tokens = 1000")
    assert "'codex' is not installed" in bad(house)[0]
    cli(house, "codex")
    house.config('agent = "codex"', "[limits]", "max_tokens = 1000")
    assert "trust" in bad(house)[0]


def test_a_program_that_checks_call_and_the_kept_path_lacks(night: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here it is found; the start has the PATH of the day on which the schedule was made."""
    house, folder = night.house, night.house.folder / "newer"
    folder.mkdir()
    (folder / "mytool").write_text("#!/bin/sh\n")
    (folder / "mytool").chmod(0o755)
    path = Path(house.layout.path(names.CONTRACT))
    path.write_text(path.read_text().replace("test -f 1.txt", "A=1 mytool x | grep y && test -f 1.txt"))
    assert bad(house) == []  # nobody has it: that is the check's own business
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert bad(house)[0].startswith(
        "PATH: a start will not find mytool, which checks call: run it again: run.sh schedule add"
    )
    assert house.harness("schedule", "add", "--every", "30m").code == 0
    assert bad(house) == []


def test_a_variable_of_pass_that_a_start_lacks(night: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks would be red without it."""
    house = night.house
    house.config('agent = "scripted"', "[env]", 'pass = ["DATABASE_PASSWORD"]')
    assert bad(house) == []
    monkeypatch.setenv("DATABASE_PASSWORD", "x")
    assert bad(house)[0].startswith("environment: DATABASE_PASSWORD of [env] pass is set here")


def test_no_room_on_the_disk(night: Crontab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line a file system; a start is refused for the same reason."""
    monkeypatch.setattr(_preflight, "MIN_FREE_MIB", 10**9)
    done = asked(night.house)
    assert done.code == 11 and "bad   disk: " in done.out and "gc --keep-days" in done.out, done


def test_a_clock_behind_the_newest_run(night: Crontab) -> None:
    """It was set back."""
    house = night.house
    house.work({"run": "touch 1.txt"})
    log = Path(house.layout.path(names.RUN_LOG))
    row = house.ran()[0]
    log.write_text(log.read_text().replace(row["at"], "2099-01-01T00:00:00Z"))
    assert any(line.startswith("clock: it is behind the newest run") for line in bad(house)), asked(house)


def test_a_folder_or_settings_that_are_broken(night: Crontab) -> None:
    """What doctor finds is in the way here, too."""
    house = night.house
    Path(house.layout.path(names.CONFIG)).write_text("agent = [")
    (once,) = bad(house)
    assert "config.toml, line 1" in once, "a fault that each look meets is one line"
    house.config('agent = "scripted"', 'workplace = "project"')
    assert any("Remove the line" in line for line in bad(house)), asked(house)
