"""Gemini CLI, from recordings: its command line, its events, and its usage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.agent_desk import counted, repeat

RECORDED = "gemini-0.61.0"
WORKER = f"{RECORDED}/mission-worker.jsonl"


def test_messages_come_in_pieces_and_are_joined(tmp_path: Path) -> None:
    """The prompt comes back as a user's message, which is no message of the agent."""
    observed = repeat(tmp_path, "gemini", WORKER).observed
    assert observed.said == ["Step 1 as worker.", "Step 2 as worker.", "Done as worker."]
    assert observed.reply == "Done as worker."
    assert [line.split()[0] for line in observed.did] == ["run_shell_command", "run_shell_command"]


def test_its_reasoning_is_part_of_the_output(tmp_path: Path) -> None:
    """It counts reasoning in neither input nor output, only in the total."""
    assert counted(repeat(tmp_path, "gemini", WORKER).observed) == (2400, 1600, None, 200, 80)


@pytest.mark.parametrize(
    ("case", "code", "outcome"),
    [("auth", 145, "auth"), ("error", 244, "limit"), ("limit", 173, "limit"), ("no-network", 1, "limit")],
)
def test_a_failure_is_recognised_by_the_code_in_its_error(tmp_path: Path, case: str, code: int, outcome: str) -> None:
    """As JSON in the message of its result, or as a status less 256 in its exit code."""
    assert repeat(tmp_path, "gemini", f"{RECORDED}/{case}.jsonl", code).observed.failure[0] == outcome


@pytest.mark.parametrize(
    ("code", "outcome"), [(41, "auth"), (42, "config"), (52, "config"), (1, "config"), (0, "agent_error")]
)
def test_an_exit_without_a_result_is_no_success(tmp_path: Path, code: int, outcome: str) -> None:
    """Ended from outside it exits with 0; some of its codes state the cause."""
    (tmp_path / "empty").write_text("")
    assert repeat(tmp_path, "gemini", str(tmp_path / "empty"), code).observed.failure[0] == outcome


def test_it_is_started_without_questions_to_a_person(tmp_path: Path) -> None:
    """Servers of the user's configuration are off: a hanging server would block it."""
    done = repeat(tmp_path, "gemini", WORKER, model="flash")
    assert done.argv[:5] == ["-o", "stream-json", "--approval-mode", "yolo", "--skip-trust"]
    assert done.argv[5:] == ["--allowed-mcp-server-names", "no-server-has-this-name", "-m", "flash"]
    assert done.stdin == "Do it."
