"""Codex, from recordings: its command line, its events, and its usage."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from harness.agents._answer_state import AnswerState
from harness.agents._codex import read
from harness.agents.base import AgentEvent, AgentFailure
from tests.agents.agent_desk import counted, repeat

RECORDED = "codex-0.169.0"
WORKER = f"{RECORDED}/mission-worker.jsonl"


def failed(message: str) -> AgentFailure:
    """The outcome of a failed turn with this message."""
    (found,) = read({"type": "turn.failed", "error": {"message": message}}, AnswerState("codex"))
    assert isinstance(found, AgentFailure)
    return found


def test_a_worker_s_answer_is_read_from_its_events(tmp_path: Path) -> None:
    """Messages, commands, and the last message as the reply; a warning about the model's metadata is no failure."""
    observed = repeat(tmp_path, "codex", WORKER).observed
    assert observed.reply == "Done as worker."
    assert len(observed.did) == 2
    assert all(line.startswith("run ") for line in observed.did)


def test_its_input_is_taken_apart_and_its_cost_is_unknown(tmp_path: Path) -> None:
    """Its input includes the cache, its output the reasoning."""
    observed = repeat(tmp_path, "codex", WORKER).observed
    assert counted(observed) == (1800, 1200, 0, 150, 60)
    assert observed.end.usage is not None
    assert (observed.end.usage.cost_usd, observed.end.usage.cost_source) == (None, "unknown")
    assert observed.end.usage.raw[0]["block"]["input_tokens"] == 3000


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        ("auth", "auth"),
        ("limit", "limit"),
        ("error", "limit"),
        ("quota", "auth"),
        ("plan-limit", "limit"),
        ("bad-request", "config"),
    ],
)
def test_a_failed_turn_is_recognised_by_its_one_sentence(tmp_path: Path, case: str, outcome: str) -> None:
    """It has no code; a status in the sentence counts, else its start."""
    assert repeat(tmp_path, "codex", f"{RECORDED}/{case}.jsonl", 1).observed.failure[0] == outcome


def test_a_refused_request_is_reported_in_the_vendor_s_words(tmp_path: Path) -> None:
    """Not as the JSON around them."""
    assert (
        repeat(tmp_path, "codex", f"{RECORDED}/bad-request.jsonl", 1)
        .observed.failure[1]
        .startswith("model not known\n")
    )


def test_a_limit_of_a_plan_has_its_end() -> None:
    """From its sentence, in local time; a time today has no date."""
    far = failed("You\u2019ve hit your usage limit. Visit x or try again at Jan 1st, 2100 12:00 AM.")
    assert (far.outcome, time.localtime(far.until)[:5]) == ("limit", (2100, 1, 1, 0, 0))
    near = failed("You\u2019ve hit your usage limit. Try this, or try again at 3:05 PM.")
    assert time.localtime(near.until)[:5] == (*time.localtime()[:3], 15, 5)
    assert failed("You\u2019ve hit your usage limit.").until == 0


def test_the_words_of_its_sentences_decide_nothing_elsewhere() -> None:
    """In a message of the agent they are plain text."""
    item = {"type": "agent_message", "text": "Quota exceeded, unexpected status 401 Unauthorized"}
    answer = AnswerState("codex")
    found = list(read({"type": "item.completed", "item": item}, answer))
    assert [event.kind for event in found if isinstance(event, AgentEvent)] == ["said"]
    assert failed("the model went away").outcome == "agent_error"


@pytest.mark.parametrize(
    ("trust", "word"), [("workspace", "workspace-write"), ("full", "--dangerously-bypass-approvals-and-sandbox")]
)
def test_trust_selects_its_own_sandbox(tmp_path: Path, trust: str, word: str) -> None:
    """With the network on."""
    argv = repeat(tmp_path, "codex", WORKER, trust=trust).argv
    assert word in argv
    assert ("sandbox_workspace_write.network_access=true" in argv) == (trust == "workspace")


def test_the_prompt_comes_on_standard_input(tmp_path: Path) -> None:
    """The whole prompt, and none of it on the command line."""
    done = repeat(tmp_path, "codex", WORKER, prompt="stable|and the rest")
    assert done.stdin == "stable|and the rest"
    assert not any("rest" in word for word in done.argv)


def test_every_server_of_the_user_is_switched_off_by_its_name(tmp_path: Path) -> None:
    """It merges an empty table with the user's, so each server is named."""
    (tmp_path / ".codex").mkdir()
    config = '[mcp_servers.one]\ncommand = "x"\n[mcp_servers."two.dot"]\nenv = { A = "b" }\n'
    (tmp_path / ".codex" / "config.toml").write_text(config)
    argv = repeat(tmp_path, "codex", WORKER).argv
    assert [word for word in argv if word.startswith("mcp")] == [
        'mcp_servers={"one"={enabled=false},"two.dot"={enabled=false}}'
    ]


def test_a_retry_is_no_end_and_no_sign_of_life() -> None:
    """Without a network it reconnects for ever."""
    answer = AnswerState("codex")
    row = json.loads('{"type":"error","message":"Reconnecting... 1/5"}')
    assert [event.text for event in read(row, answer) if isinstance(event, AgentEvent)] == [
        "waits: Reconnecting... 1/5\n"
    ]
    assert list(read(row, answer)) == [], "reported once"
    assert answer.waiting
