"""What the machine says of itself, and that it is not taken for more than it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.unattended import _machine


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    return tmp_path / "bin"


def test_a_program_that_is_absent_or_fails_says_nothing(programs: Path) -> None:
    """Nobody's fault."""
    (programs / "fails").write_text("#!/bin/sh\necho no; exit 1\n")
    (programs / "fails").chmod(0o755)
    assert (_machine.asked("fails"), _machine.asked("no-such-program")) == ("", "")


def test_a_cron_daemon_is_seen_by_its_name() -> None:
    """Whatever runs here; a name that no process has is not seen."""
    assert _machine.cron_runs() in (True, False, None)
