"""Claude Code, from recordings: its command line, its events, and its usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.agents._answer_state import AnswerState
from harness.agents._claude import argv, read
from harness.agents.base import AgentFailure, AgentSuccess
from harness.process.confine import BUBBLEWRAP
from tests.agents.agent_desk import TRANSCRIPTS, counted, desk, project, repeat, settings
from tests.missions import House

RECORDED = "claude-2.1.197"


def test_a_worker_s_answer_is_read_from_its_events(tmp_path: Path) -> None:
    """Messages, tools, the last message as the reply, the model and the session."""
    observed = repeat(tmp_path, "claude", f"{RECORDED}/mission-worker.jsonl").observed
    assert observed.reply == "Done as worker."
    assert observed.said == ["Step 1 as worker.", "Step 2 as worker.", "Done as worker."]
    assert [line.split()[0] for line in observed.did] == ["Bash", "Bash"]
    assert observed.end.usage is not None
    assert observed.end.usage.model.startswith("claude-opus")
    assert observed.end.usage.session


def test_the_whole_bill_is_counted_and_nothing_twice(tmp_path: Path) -> None:
    """With its side requests; its input excludes the cache; the cost is its own estimate."""
    observed = repeat(tmp_path, "claude", f"{RECORDED}/mission-worker.jsonl").observed
    assert counted(observed) == (2000, 1600, 400, 200, None)
    assert observed.end.usage is not None
    assert observed.end.usage.cost_usd == pytest.approx(0.0183)
    assert observed.end.usage.cost_source == "reported"
    assert "claude-opus-4-8[1m]" in observed.end.usage.raw[0]["block"]["modelUsage"]


def test_an_answer_that_is_cut_off_counts_what_came(tmp_path: Path) -> None:
    """Each message counts once, although each of its blocks repeats its usage."""
    answer = AnswerState("claude")
    for line in (TRANSCRIPTS / RECORDED / "mission-worker.jsonl").read_text().split("\n"):
        row = json.loads(line or "{}")
        if row.get("type") == "result":
            break
        list(read(row, answer))
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.cache_write) == (1500, 1200, 300)
    assert answer.usage.cost_usd is None


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        ("auth", "auth"),
        ("limit", "limit"),
        ("error", "limit"),
        ("quota", "limit"),
        ("bad-request", "config"),
        ("no-network", "limit"),
    ],
)
def test_a_failure_is_known_by_its_status_although_it_says_success(tmp_path: Path, case: str, outcome: str) -> None:
    """A person can resolve a refused key; a limit and a fault of the service pass with time."""
    assert repeat(tmp_path, "claude", f"{RECORDED}/{case}.jsonl", 1).observed.failure[0] == outcome


def test_a_refused_key_is_noticed_at_the_first_retry() -> None:
    """Not only after ten retries and three minutes."""
    row = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "authentication_failed"}
    *_, found = read(row, AnswerState("claude"))
    assert isinstance(found, AgentFailure)
    assert found.outcome == "auth"


def test_the_stable_part_of_the_prompt_is_a_block_of_its_own(tmp_path: Path) -> None:
    """Its cache keeps that block; both parts together are the prompt, and the command line has none of it."""
    done = repeat(tmp_path, "claude", f"{RECORDED}/mission-worker.jsonl", prompt="the same for ever|and this once")
    assert (done.stable, done.stdin) == ("the same for ever|", "and this once")
    assert not any("for ever" in word or "once" in word for word in done.argv)
    assert list(tmp_path.glob("prompt.md.*")) == []


@pytest.mark.parametrize(
    ("trust", "has", "lacks"),
    [
        ("workspace", ["acceptEdits", "--allowedTools", "--settings"], ["--dangerously-skip-permissions"]),
        ("full", ["--dangerously-skip-permissions"], ["--permission-mode", "--settings"]),
    ],
)
def test_trust_decides_its_permissions(tmp_path: Path, trust: str, has: list[str], lacks: list[str]) -> None:
    """Its own sandbox for `workspace`, no restriction under `full`."""
    argv = repeat(tmp_path, "claude", f"{RECORDED}/mission-worker.jsonl", trust=trust).argv
    assert set(has) <= set(argv)
    assert not set(lacks) & set(argv)


SEES = """#!/bin/sh
cat > /dev/null
printf '%s\\n' "$@" > argv
ls ~/.claude/backups > backups
touch ~/.claude/backups/mine ~/.claude/written
echo '{"type":"result","result":"done","usage":{"input_tokens":9,"output_tokens":9}}'
"""


def seen_by_claude(house: House, *lines: str) -> tuple[list[str], str, str]:
    """Its arguments, what it sees of its backups, and the tier of its confinement ("": none); `lines` of config.toml."""
    program = house.folder / "home" / ".local" / "bin" / "claude"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(SEES)
    program.chmod(0o755)
    house.config('agent = "claude"', *lines, "[agents.claude]", f"path = {json.dumps(str(program))}")
    house.role("worker", "F-001", "--again")
    argv = (house.project / "argv").read_text().split("\n")
    return argv, (house.project / "backups").read_text(), house.result()["confined"]


def sandbox(argv: list[str]) -> bool | None:
    """Whether its settings turn its sandbox on; None if they do not say."""
    return json.loads(argv[argv.index("--settings") + 1])["sandbox"]["enabled"] if "--settings" in argv else None


@pytest.mark.parametrize(("trust", "alone"), [("workspace", True), ("full", None)])
def test_its_own_sandbox_is_off_where_the_harness_confines_it(house: House, trust: str, alone: bool | None) -> None:
    """Inside it would start bubblewrap again, and every command would fail; unconfined it is all there is."""
    argv, _, tier = seen_by_claude(house, f'trust = "{trust}"')
    assert sandbox(argv) is (False if tier else alone)
    argv, _, tier = seen_by_claude(house, f'trust = "{trust}"', 'confine = "off"')
    assert (sandbox(argv), tier) == (alone, "")


def test_its_backups_are_shown_only_with_the_file_that_they_are_of(house: House) -> None:
    """Else it says at each start that it could restore that file. It writes in its folder all the same."""
    own = house.folder / "home" / ".claude"
    (own / "backups").mkdir(parents=True)
    (own / "backups" / "old").touch()
    _, backups, tier = seen_by_claude(house, 'trust = "workspace"')
    if tier != BUBBLEWRAP:
        pytest.skip("only bubblewrap hides a folder below one that can be written")
    assert (backups, (own / "written").exists(), (own / "backups" / "mine").exists()) == ("", True, False)
    (house.folder / "home" / ".claude.json").write_text("{}")
    _, backups, _ = seen_by_claude(house, 'trust = "workspace"')
    assert (backups, (own / "backups" / "mine").exists()) == ("old\n", True)


def test_servers_of_the_user_are_off_unless_configured(tmp_path: Path) -> None:
    """The MCP servers of the user's own configuration."""
    (tmp_path / "other").mkdir()
    recorded = f"{RECORDED}/mission-worker.jsonl"
    assert "--strict-mcp-config" in repeat(tmp_path, "claude", recorded).argv
    assert "--strict-mcp-config" not in repeat(tmp_path / "other", "claude", recorded, mcp=True).argv


def test_the_model_is_named_where_one_is_configured(tmp_path: Path) -> None:
    """The arguments from the table come last."""
    argv = repeat(
        tmp_path, "claude", f"{RECORDED}/mission-worker.jsonl", model="sonnet", table={"args": ["--effort", "low"]}
    ).argv
    assert argv[-4:] == ["--model", "sonnet", "--effort", "low"]


def test_a_dialect_that_counts_the_cache_into_the_input_is_recognised_by_its_total(tmp_path: Path) -> None:
    """As in the recording of a program with these events."""
    answer, ends = AnswerState("qwen"), []
    for line in (TRANSCRIPTS / "qwen-0.15.10" / "mission-worker.jsonl").read_text().split("\n"):
        ends += [
            event for event in read(json.loads(line or "{}"), answer) if isinstance(event, AgentSuccess | AgentFailure)
        ]
    assert isinstance(ends[0], AgentSuccess)
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.output) == (1800, 1200, 150)
    assert settings(project(tmp_path)).trust == ""


def test_a_success_that_reached_no_model_is_no_success() -> None:
    """A program with these events reports a refused key as success, with zero tokens."""
    answer = AnswerState("qwen")
    *_, last = (TRANSCRIPTS / "qwen-0.15.10" / "auth.jsonl").read_text().rstrip("\n").split("\n")
    end = list(read(json.loads(last), answer))[-1]
    assert isinstance(end, AgentFailure)
    assert end.outcome == "config"
    assert "401" in end.reason


def test_a_denied_tool_is_reported_with_the_answer(tmp_path: Path) -> None:
    """The result reports success all the same."""
    end = repeat(tmp_path, "claude", f"{RECORDED}/denied.jsonl").observed.end
    assert isinstance(end, AgentSuccess)
    assert end.remark.startswith("it was not allowed: Bash")


def test_an_exhausted_turn_limit_is_the_agent_s_own_fault(tmp_path: Path) -> None:
    """And it is counted."""
    end = repeat(tmp_path, "claude", f"{RECORDED}/max-turns.jsonl", 1).observed.end
    assert isinstance(end, AgentFailure)
    assert (end.outcome, end.usage is not None) == ("agent_error", True)
    assert "maximum number of turns" in end.reason


def test_it_gets_the_cost_that_is_left(tmp_path: Path) -> None:
    """What is left of the mission's cap; no argument without a cap."""
    made = project(tmp_path)
    asked, at = settings(made), desk(made, "a prompt")
    assert "--max-budget-usd" not in argv(asked, at)
    words = argv(asked, at.replace(cost_left_usd=1.25))
    assert words[words.index("--max-budget-usd") + 1] == "1.2500"


def test_an_exhausted_budget_is_no_agent_error(tmp_path: Path) -> None:
    """It ended at its limit; its usage is counted."""
    end = repeat(tmp_path, "claude", f"{RECORDED}/max-budget.jsonl", 1).observed.end
    assert isinstance(end, AgentFailure)
    assert (end.outcome, end.reason) == ("killed", "Reached maximum budget ($0.0163)")
    assert end.usage is not None
    assert end.usage.cost_usd == pytest.approx(0.0183)


@pytest.mark.parametrize(("kind", "outcome"), [("authentication_failed", "auth"), ("server_error", "limit")])
def test_without_a_status_the_last_message_gives_the_cause(kind: str, outcome: str) -> None:
    """Without a login or a network the result has no status."""
    answer = AnswerState("claude")
    list(read({"type": "assistant", "error": kind, "message": {"content": []}}, answer))
    end = list(read({"type": "result", "is_error": True, "api_error_status": None, "result": "Not now"}, answer))[-1]
    assert isinstance(end, AgentFailure)
    assert (end.outcome, end.reason) == (outcome, "Not now")
