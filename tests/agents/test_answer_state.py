"""Text from outside is sanitised once: counts are counts, times are times, and a file can store the texts."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agents._answer_state import AnswerState, clean, count, local_time, plain, sums, when
from harness.agents.base import AgentEvent, AgentSuccess
from harness.agents.clis import CLIS
from harness.agents.program import _line_events
from harness.state import files
from tests.agents.agent_desk import TRANSCRIPTS
from tests.helpers import growth

WRONG: list[Any] = [None, "x", "\ud800", -1, 1.5, float("nan"), float("inf"), 10**400, True, [], ["x"], {}, {"x": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every position in a JSON value, by the keys that lead to it."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, inner in items:
        if len(path) < 5:
            yield from places(inner, (*path, key))


def changed(row: dict[str, Any], path: tuple[Any, ...], wrong: Any) -> dict[str, Any]:
    """The row with one wrong value."""
    made = copy.deepcopy(row)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    return made


def rows_of(name: str) -> list[dict[str, Any]]:
    """One event of each kind from the recording of a program."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(TRANSCRIPTS.glob(f"{name}-*/*.jsonl")):
        for row in map(json.loads, filter(None, path.read_text().split("\n"))):
            inner = row.get("item") or row.get("message") or row.get("part") or {}
            more = inner.get("type", "") if isinstance(inner, dict) else ""
            found.setdefault(f"{row.get('type')} {row.get('subtype')} {more} {row.get('status')}", row)
    return list(found.values())


SAID = "bwrap: Can't create file at /x: Read-only file system"


@pytest.mark.parametrize(
    ("name", "rows", "shown"),
    [
        (
            "claude",
            [
                {
                    "type": "user",
                    "message": {
                        "content": [{"type": "tool_result", "is_error": True, "content": f"Exit code 1\n{SAID}"}]
                    },
                }
            ],
            f"exit 1  {SAID}",
        ),
        (
            "claude",
            [
                {
                    "type": "user",
                    "message": {
                        "content": [{"type": "tool_result", "content": [{"type": "text", "text": "1 line\n2"}]}]
                    },
                }
            ],
            "ok  1 line",
        ),
        ("codex", [{"type": "item.completed", "item": {"type": "command_execution", "exit_code": 0}}], "exit 0"),
        (
            "codex",
            [{"type": "item.completed", "item": {"type": "command_execution", "aggregated_output": SAID}}],
            f"failed  {SAID}",
        ),
        ("gemini", [{"type": "tool_result", "status": "success", "output": f"trying\n{SAID}"}], SAID),
        ("gemini", [{"type": "tool_result", "status": "success", "output": ""}], "no output"),
        (
            "gemini",
            [{"type": "tool_result", "status": "error", "output": "x", "error": {"message": "no such tool"}}],
            "failed  no such tool",
        ),
        (
            "opencode",
            [{"type": "tool_use", "part": {"state": {"status": "completed", "output": SAID, "metadata": {"exit": 1}}}}],
            f"exit 1  {SAID}",
        ),
        (
            "opencode",
            [{"type": "tool_use", "part": {"state": {"status": "error", "error": "refused"}}}],
            "failed  refused",
        ),
        ("builtin", [{"type": "result", "failed": False, "text": f"exit 1\n{SAID}\n"}], f"exit 1  {SAID}"),
        ("builtin", [{"type": "result", "failed": True, "text": "no such file"}], "failed  no such file"),
        ("builtin", [{"type": "result", "failed": False, "text": "signal 9\n"}], "signal 9"),
    ],
)
def test_every_vendor_s_results_have_one_line(name: str, rows: list[dict[str, Any]], shown: str) -> None:
    """With the exit where the events say it; where they do not say whether it failed, what is most telling."""
    answer = AnswerState(name)
    found = [one for row in rows for one in CLIS[name].read(row, answer) if isinstance(one, AgentEvent)]
    assert [one.text.split("\n")[0] for one in found if one.kind == "result"] == [shown]


@pytest.mark.parametrize("name", CLIS)
def test_each_recorded_command_has_its_result(name: str) -> None:
    """Of a real program, in the order of the calls."""
    for path in TRANSCRIPTS.glob(f"{name}-*/mission-worker.jsonl"):
        answer = AnswerState(name)
        rows = [json.loads(line) for line in path.read_text().split("\n") if line.startswith("{")]
        found = [one for row in rows for one in CLIS[name].read(row, answer) if isinstance(one, AgentEvent)]
        assert [one.kind for one in found if one.kind in ("did", "result")] == ["did", "result"] * 2


@pytest.mark.parametrize("name", CLIS)
def test_no_event_of_an_unexpected_shape_breaks_a_run(name: str) -> None:
    """Every value of every kind of event, replaced by every kind of wrong one: the rest is understood, with clean counts."""
    rows = rows_of(name)
    assert len(rows) >= 4
    for row in rows:
        for path in places(row):
            for wrong in WRONG:
                answer = AnswerState(name)
                line = json.dumps(changed(row, path, wrong)).encode()
                for event in _line_events(line, CLIS[name], answer):
                    files.dump_json(event.asdict() if isinstance(event, AgentEvent) else str(event))
                    assert not isinstance(event, AgentEvent) or isinstance(event.text.encode(), bytes)
                used = answer.spent()
                for number in used.asdict().values() if used else ():
                    assert not isinstance(number, int | float) or 0 <= number <= 10**15, (path, wrong)


def test_a_cap_is_not_switched_off_by_what_is_no_cost() -> None:
    """A negative cost lowers nothing either; an unknown cost stays unknown."""
    for wrong in (float("nan"), -5, "0.5", [1], float("inf"), True, None):
        answer = AnswerState("a")
        answer.used({}, cost_usd=wrong, input=wrong)
        assert (answer.usage.cost_usd, answer.usage.input, answer.usage.cost_source) == (None, None, "unknown")
    assert (count(3.9), count(3.9, "cost_usd"), count(0)) == (3, 3.9, 0)


def test_what_no_block_reports_is_unknown_in_a_sum() -> None:
    """A count that one of them reports is summed."""
    assert sums([{"a": 1}, {"a": 2, "b": "x"}], {"ours": "a", "theirs": "b"}) == {"ours": 3, "theirs": None}
    assert sums([], {"ours": "a"}) == {"ours": None}


def test_a_message_that_reports_its_usage_again_counts_once() -> None:
    """Its last report counts; the work for thousands of them grows linearly."""

    def made(count: int) -> Callable[[], object]:
        def body() -> None:
            answer = AnswerState("a")
            for number in range(count):
                for reported in (1, 5):
                    found = answer.summed(str(number), {"out": reported}, {"output": "out"})
            assert found == {"output": 5 * count}

        return body

    assert growth(made) < 4.1


def test_a_message_without_an_id_counts_as_a_new_one() -> None:
    """Three of them count as three, not as the last one."""
    answer = AnswerState("a")
    for _ in range(3):
        found = answer.summed(None, {"out": 1000}, {"output": "out"})
    assert found == {"output": 3000}


def test_what_was_counted_once_does_not_go_down() -> None:
    """Neither by a second, lower result nor by a message after the result; the block of the whole answer stays."""
    answer = AnswerState("a")
    answer.used({"whole": 1}, cost_usd=5.0, input=1000)
    answer.used({"whole": 2}, cost_usd=0.01, input=1)
    answer.used_so_far({"messages": 1}, input=11)
    used = answer.spent()
    assert used is not None
    assert (used.cost_usd, used.input, used.raw[0]["block"]) == (5.0, 1000, {"whole": 2})


GOOD_ENDS = {
    "claude": '{"type":"result","result":"done","usage":%s,"modelUsage":%s,"permission_denials":%s}',
    "codex": '{"type":"turn.completed","usage":{"input_tokens":%s,"cached_input_tokens":%s,"output_tokens":%s}}',
    "gemini": '{"type":"result","status":"success","stats":{"total_tokens":%s,"input_tokens":%s,"output_tokens":%s}}',
}


@pytest.mark.parametrize("wrong", ['"x"', '["x"]', '{"m":null}', '{"m":"x"}', "-900", "true", "null", "1e400"])
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("name", GOOD_ENDS)
def test_an_invalid_optional_field_does_not_fail_the_answer(name: str, place: int, wrong: str) -> None:
    """An invalid count is unknown; the outcome of the answer stays."""
    values = [wrong if number == place else "{}" if name == "claude" else "5" for number in range(3)]
    events = list(_line_events((GOOD_ENDS[name] % tuple(values)).encode(), CLIS[name], AnswerState(name)))
    assert any(isinstance(event, AgentSuccess) for event in events), events


@pytest.mark.parametrize(
    "block",
    [
        {"cost_per_token": 2.51234e-06},
        {"deep": json.loads("[" * 900 + "]" * 900)},
        {"endless": [float("inf"), float("nan")]},
        {"\ud800": "\udfff"},
    ],
)
def test_whatever_block_a_vendor_reports_the_run_log_can_be_read(block: dict[str, Any]) -> None:
    """A line that can be written but not read back would block the mission forever."""
    answer = AnswerState("a")
    answer.used(block, input=1)
    used = answer.spent()
    assert used is not None
    line = files.dump_json(used.asdict())
    assert json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))["input"] == 1


def test_pieces_make_a_message_in_linear_time(tmp_path: Path) -> None:
    """A megabyte of pieces, too."""
    answer = AnswerState("a")
    for _ in range(100_000):
        answer.adds("0123456789")
    assert [len(event.text) for event in answer.joined_pieces()] == [1_000_000]
    assert list(answer.joined_pieces()) == []


def test_a_vendor_s_block_is_masked_and_bounded() -> None:
    """It is stored in the run log."""
    token = "gh" + "p_a8Kd93jfLs02LqPz7Xc1Vb5Nm4Qw6Er8Ty2Ui0"
    answer = AnswerState("a")
    answer.knows(model=f"{token} {'x' * 999}", session=token)
    answer.used({"note": token}, input=1)
    used = answer.spent()
    assert used is not None
    assert token not in json.dumps(used.asdict())
    assert len(used.model) <= 200
    answer.used({"k" * 70_000: 1}, input=1)
    used = answer.spent()
    assert used is not None
    assert used.raw[0]["block"] == {"left_out_bytes": 70_007}


TIMES: list[tuple[object, int]] = [
    (1_800_000_000, 1_800_000_000),
    (1_800_000_000_000, 1_800_000_000),
    ("18", 18),
    (1.5, 1),
]
NO_TIMES: list[object] = [None, -1, 0, "soon", float("nan"), float("inf"), [1], {}, "²"]


@pytest.mark.parametrize(("value", "at"), [*TIMES, *((wrong, 0) for wrong in NO_TIMES)])
def test_a_stated_time_is_valid_or_zero(value: object, at: int) -> None:
    """In seconds or milliseconds, as a number or a text."""
    assert when(value) == at


def test_words_that_are_no_time_give_zero() -> None:
    """For example a date that no calendar has."""
    assert local_time("Foo", "99", "2020", "9:99 PM") == 0
    assert local_time("Jan", "1", "0000", "9:09 PM") == 0
    assert time.localtime(local_time("Jan", "2", "2030", "9:09 PM"))[:5] == (2030, 1, 2, 21, 9)


def test_a_file_can_store_every_text() -> None:
    """A lone surrogate becomes a question mark."""
    assert clean("a\ud800b") == "a?b"
    assert clean("ü€𝄞") == "ü€𝄞"


def test_a_dialect_with_a_total_has_the_cache_in_its_input() -> None:
    """Without a total it does not."""
    assert plain({"input_tokens": 10, "cache_read_input_tokens": 4, "total_tokens": 12})["input_tokens"] == 6
    assert plain({"input_tokens": 10, "cache_read_input_tokens": 4})["input_tokens"] == 10
