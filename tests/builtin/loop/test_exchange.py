"""What goes to a model is the same whoever its vendor is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.builtin.loop.exchange import ModelFault
from tests.builtin.talking import WIRES, Bench, address, serving, steps


@pytest.mark.parametrize("wire", WIRES)
def test_our_messages_have_the_same_shape_over_every_wire(tmp_path: Path, wire: str) -> None:
    """Plain JSON; only an answer has keys of its wire."""
    with serving(steps("echo a")) as server:
        messages = Bench(tmp_path, wire=wire).talk(address(server, wire)).log.messages()
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "assistant"]
    assert set(messages[2]) == {"role", "id", "name", "text", "failed"}
    assert json.loads(json.dumps(messages)) == messages


def test_a_fault_says_what_it_means_for_the_run() -> None:
    """The reason is its text, too."""
    fault = ModelFault("limit", "slow down", 7.0, again=True)
    assert (str(fault), fault.outcome, fault.after, fault.again) == ("slow down", "limit", 7.0, True)
