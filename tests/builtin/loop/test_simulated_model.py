"""The model for tests of programs."""

from __future__ import annotations

from pathlib import Path

from harness import ModelFault, SimulatedCall
from harness.builtin.loop.exchange import AUTH, Request
from tests.builtin.simulating import Program


def test_it_answers_with_texts_calls_and_functions_and_keeps_the_requests(tmp_path: Path) -> None:
    """No network, no key, no cost; without an answer left it says so."""

    def echo(request: Request) -> str:
        return f"you said {request.messages[-1]['text']}"

    with Program(tmp_path, [SimulatedCall(name="list_files")], "nothing here", echo) as program:
        assert program.call_sync("look").usage["turns"] == 2
        assert program.call_sync("hi").text == "you said hi"
        over = program.call_sync("more")
    assert (over.outcome, over.reason) == (
        "config",
        "the simulated model has no answer left: give it one for each request",
    )
    assert [len(one.messages) for one in program.simulated.requests] == [1, 3, 5, 7]


def test_it_fails_as_a_vendor_does(tmp_path: Path) -> None:
    """A ModelFault among the answers is the outcome of the call."""
    with Program(tmp_path, ModelFault(AUTH, "wrong key"), "well") as program:
        assert program.call_sync("hi").outcome == "auth"
        assert program.call_sync("again").text == "well"
