"""Programs that misbehave: the outcome of each, when it is noticed, and that none of its processes survives."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from pathlib import Path

import pytest

from harness.agents._answer_state import outcome_of
from harness.agents._command import Command
from harness.agents.base import AgentFailure, AgentSuccess, ExecutionContext
from harness.agents.program import MAX_LINE_BYTES, LineSplitter
from harness.mission.runs import OUTCOMES
from harness.process import tree
from tests.agents import badcli
from tests.agents.agent_desk import Observed, desk, listen, project, settings
from tests.agents.badcli import CASES, Bad

BADCLI = str(Path(badcli.__file__))
DOCS = Path(__file__).resolve().parents[2] / "docs" / "agents.md"
SHORT = {"BAD_MB": "64"}
SILENT_SECONDS = 5.0  # twice the limit on silence
IDLE, STARTUP, AFTER_RESULT = "idle_seconds", "startup_seconds", "after_result_seconds"
PATIENT = {IDLE: 60.0, STARTUP: 60.0, AFTER_RESULT: 60.0}  # what is not the limit under test: the machine may be busy
LIMITS = {
    **{case: {STARTUP: 1.0} for case in (badcli.never_begins, badcli.never_gets_through)},
    **{case: {IDLE: 2.4} for case in (badcli.falls_silent, badcli.ignores_term)},
    **{case: {IDLE: 2.4} for case in (badcli.compiles_in_silence,)},
    **{case: {AFTER_RESULT: 0.8} for case in (badcli.hangs_after_result, badcli.closes_stdout)},
    **{case: {AFTER_RESULT: 0.8} for case in (badcli.limit, badcli.no_login)},
}
TORTURE = bool(os.environ.get("HARNESS_TORTURE"))


def short_desk(folder: Path, tag: str, case: Bad | None = None, **environment: str) -> ExecutionContext:
    """An execution context whose limit that ends this case is short, and with processes that can be found."""
    longer = {} if TORTURE else {"BAD_SECONDS": str(SILENT_SECONDS)}
    made = desk(folder, "prompt", 120.0, **{tree.TAG: tag, **longer, **environment})
    return made.replace(**(PATIENT | LIMITS.get(case, {}) if case else PATIENT))


def run(folder: Path, case: Bad, tag: str, **environment: str) -> Observed:
    """Run one misbehaving program to its end."""
    command = [sys.executable, BADCLI, badcli.name(case)]
    agent = Command("bad", settings(folder, command=command, format="claude"))
    return listen(agent, short_desk(folder, tag, case, **environment))


def outcome(end: AgentSuccess | AgentFailure) -> str:
    """The outcome of the run, by the rules of thinking.py."""
    if isinstance(end, AgentFailure):
        return end.outcome
    return "timeout_after_result" if end.late else "ok"


@pytest.mark.parametrize("case", CASES, ids=badcli.name)
def test_a_program_that_misbehaves_is_noticed_and_leaves_nothing(tmp_path: Path, case: Bad) -> None:
    """The outcome from the table, and no descendant lives afterwards."""
    folder, tag = project(tmp_path), f"bad-{os.getpid()}-{case.__name__}"
    observed = run(folder, case, tag, **({} if TORTURE else SHORT))
    assert outcome(observed.end) == CASES[case][0], observed.end
    assert tree.sweep(tag) == []


def test_no_output_fills_the_memory(tmp_path: Path) -> None:
    """Neither one endless line nor endless lines; the memory in use is bounded."""
    folder = project(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    command = [sys.executable, BADCLI, badcli.name(badcli.one_long_line)]
    agent = Command("bad", settings(folder, command=command, format="claude"))
    *_, end = agent.think("", short_desk(folder, f"bad-{os.getpid()}"))
    assert isinstance(end, AgentSuccess)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 * 1024


def test_a_limit_has_its_end(tmp_path: Path) -> None:
    """The time that the vendor stated, and 0 after a mere warning."""
    end = run(project(tmp_path), badcli.limit, f"bad-{os.getpid()}").end
    assert isinstance(end, AgentFailure)
    assert 3000 < end.until - time.time() < 3700
    assert "five_hour" in end.reason


def test_the_usage_of_a_failed_answer_counts(tmp_path: Path) -> None:
    """From the messages before the crash; an unreported cost stays unknown."""
    end = run(project(tmp_path), badcli.crashes, f"bad-{os.getpid()}").end
    assert isinstance(end, AgentFailure)
    assert end.usage is not None
    assert (end.usage.input, end.usage.output, end.usage.cost_usd, end.usage.cost_source) == (10, 5, None, "unknown")


def test_a_denied_tool_is_reported(tmp_path: Path) -> None:
    """An answer that claims success after a refusal carries a remark about it."""
    end = run(project(tmp_path), badcli.is_denied, f"bad-{os.getpid()}").end
    assert isinstance(end, AgentSuccess)
    assert "Bash" in end.remark


def test_the_page_shows_every_case_with_its_outcome() -> None:
    """These tests hold the table of docs/agents.md to the cases."""
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \| `(\w+)` \| (.*?) \|$", DOCS.read_text(), re.M)
    expected = {badcli.name(case): (case.__doc__, *ended) for case, ended in CASES.items()}
    assert {row[0]: row[1:] for row in rows if row[0] in expected} == expected


# the parts


def test_lines_are_whole_whatever_the_chunks_are() -> None:
    """Split anywhere; empty lines are omitted."""
    data = "one\n\ntwo ü\n  \nthree".encode()
    for size in (1, 2, 5, 100):
        lines = LineSplitter()
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        assert [line for chunk in [*chunks, b"\n"] for line in lines.feed(chunk)] == [
            b"one",
            "two ü".encode(),
            b"three",
        ]


def test_a_line_over_the_bound_is_skipped_and_reported() -> None:
    """The next line is read normally."""
    lines = LineSplitter()
    block = b"x" * (MAX_LINE_BYTES // 4)
    found = [line for chunk in [block] * 6 + [b"\n", b"next\n"] for line in lines.feed(chunk)]
    assert found == [b"[a line of %d bytes was skipped]" % (6 * len(block)), b"next"]


STATUSES = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "config",
    429: "limit",
    500: "limit",
    529: "limit",
    0: "agent_error",
}


@pytest.mark.parametrize(("status", "wanted"), STATUSES.items())
def test_a_status_decides_between_a_person_and_a_wait(status: int, wanted: str) -> None:
    """A person resolves logins and billing; limits and faults of the service pass with time."""
    assert outcome_of(status) == wanted
    assert wanted in OUTCOMES


def test_a_program_that_exists_but_does_not_start_does_not_end_the_list(tmp_path: Path) -> None:
    """A broken interpreter: the next agent may answer, so it is `config`, and nothing is raised."""
    folder = project(tmp_path)
    for name, text in (("garbage", "\x00\x01"), ("gone", "#!/no/such/interpreter\n")):
        program = folder / name
        program.write_text(text)
        program.chmod(0o755)
        observed = listen(Command("mine", settings(folder, command=[str(program)])), desk(folder))
        assert observed.failure[0] == "config"
        assert "cannot be started" in observed.failure[1]


def say(*rows: str) -> list[str]:
    """A program that prints these events."""
    return ["printf", "%s\\n", *rows]


GOOD = '{"type":"result","is_error":false,"result":"good","total_cost_usd":%s,"usage":{"output_tokens":1}}'
BAD = '{"type":"result","is_error":true,"api_error_status":500,"result":"bad"}'


def test_the_first_good_result_wins_and_all_usage_counts(tmp_path: Path) -> None:
    """Whatever fails before it or follows it."""
    folder = project(tmp_path)
    for rows in ((BAD, GOOD % 1), (GOOD % 1, BAD), (GOOD % 0.01, GOOD % 1)):
        agent = Command("mine", settings(folder, command=say(*rows), format="claude"))
        end = listen(agent, desk(folder)).end
        assert isinstance(end, AgentSuccess)
        assert (end.reply, end.usage and end.usage.cost_usd) == ("good", 1)


def test_a_byte_order_mark_does_not_hide_the_first_event(tmp_path: Path) -> None:
    """Some programs write one before their text."""
    agent = Command("mine", settings(project(tmp_path), command=say("\ufeff" + GOOD % 1), format="claude"))
    assert listen(agent, desk(tmp_path / "my project")).reply == "good"


def test_a_login_that_is_refused_names_the_keys_that_were_withheld(tmp_path: Path) -> None:
    """The last line of the reason, after the remedy."""
    folder = project(tmp_path)
    agent = Command("bad", settings(folder, command=[sys.executable, BADCLI, "no-login"], format="claude"))
    at = short_desk(folder, f"bad-{os.getpid()}-withheld", badcli.no_login, **SHORT).replace(withheld=["MY_TOKEN"])
    outcome, reason = listen(agent, at).failure
    assert outcome == "auth"
    assert reason.split("\n")[1].startswith("Log in to bad")
    assert reason.split("\n")[2:] == [
        'withheld from bad: MY_TOKEN; to pass one, write into config.toml: [env] pass = ["MY_TOKEN"]'
    ]
