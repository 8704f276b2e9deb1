"""What the machine says of itself, and that it is not taken for more than it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.unattended import machine


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    return tmp_path / "bin"


def says(folder: Path, name: str, text: str) -> None:
    """A program that prints this."""
    (folder / name).write_text(f"#!/bin/sh\ncat <<'EOF'\n{text}\nEOF\n")
    (folder / name).chmod(0o755)


def test_a_program_that_is_absent_or_fails_says_nothing(programs: Path) -> None:
    """Nobody's fault."""
    (programs / "fails").write_text("#!/bin/sh\necho no; exit 1\n")
    (programs / "fails").chmod(0o755)
    assert (machine.asked("fails"), machine.asked("no-such-program")) == ("", "")


def test_macs_power_settings(programs: Path) -> None:
    """`pmset -g`, as it prints them; without it nothing is known."""
    assert machine._mac()[0] is None
    says(
        programs,
        "pmset",
        "System-wide power settings:\nCurrently in use:\n standby 1\n sleep                1 (sleep prevented by x)",
    )
    assert machine._mac() == (True, "pmset: it sleeps after 1 min; to prevent that: sudo pmset -c sleep 0")
    says(programs, "pmset", " displaysleep 10\n sleep 0")
    assert machine._mac()[0] is False


def test_linux_sleeps_only_where_something_says_so(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel without sleep, masked targets, logind, a desktop; else it is not known."""
    states, logind = tmp_path / "state", tmp_path / "logind.conf"
    monkeypatch.setattr(machine, "STATES", str(states))
    monkeypatch.setattr(machine, "LOGIND", str(logind))
    says(programs, "gsettings", "")
    says(programs, "systemctl", "loaded")
    assert machine._linux()[0] is False
    states.write_text("freeze mem disk\n")
    assert machine._linux()[0] is None
    says(programs, "gsettings", "'suspend'")
    assert machine._linux()[0] is None
    (programs / "gsettings").write_text(
        "#!/bin/sh\ncase $3 in *type) echo \"'suspend'\" ;; *) echo 'uint32 1200' ;; esac\n"
    )
    assert machine._linux()[1].startswith("the desktop suspends after 20 min")
    logind.write_text("[Login]\n#IdleAction=ignore\n IdleAction = suspend\n")
    assert "IdleAction=suspend" in machine._linux()[1]
    says(programs, "systemctl", "masked")
    assert machine._linux() == (False, "suspend.target is masked")


def test_whether_the_clock_is_kept_right(programs: Path) -> None:
    """None where nothing says so."""
    for text, wanted in (("yes", True), ("no", False), ("", None)):
        says(programs, "timedatectl", text)
        assert machine.synchronised() is wanted


def test_a_cron_daemon_is_seen_by_its_name() -> None:
    """Whatever runs here; a name that no process has is not seen."""
    assert machine.cron_runs() in (True, False, None)
