"""The loop against a model server on loopback: its caps, and calls in order. What a server may do is in test_scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.builtin.loop.loop import Limits
from tests.agents.modelserver import Reply
from tests.agents.wires import TOKENS
from tests.builtin.talking import Bench, address, calling, serving, steps


def test_the_cap_is_looked_at_before_each_request(tmp_path: Path) -> None:
    """The request that would go beyond it is not sent."""
    each = TOKENS["uncached"] + TOKENS["read"] + TOKENS["write"] + TOKENS["output"]
    bench = Bench(tmp_path)
    bench.limits = Limits(tokens=2 * each)
    with serving(steps("true", "true", "true", "true")) as server:
        talk = bench.talk(f"{server.url}/v1")
    assert talk.end.outcome == "killed" and "max_tokens" in talk.end.reason
    assert (len(server.seen), talk.used.tokens) == (2, 2 * each)


@pytest.mark.parametrize("name", ["fake-model", "builtin"])
def test_the_cap_on_cost_counts_by_the_prices_of_the_configuration(tmp_path: Path, name: str) -> None:
    """USD per million tokens, under the name of the model or of the agent; an own address has no list price."""
    bench = Bench(tmp_path)
    price = {"input": 1000.0, "output": 1000.0, "cache_read": 1000.0}
    bench.limits = Limits(cost_usd=1.0, prices={name: price})
    with serving(steps("true", "true", "true")) as server:
        talk = bench.talk(f"{server.url}/v1")
    assert talk.end.outcome == "killed" and "max_cost_usd" in talk.end.reason
    assert len(server.seen) == 1 and talk.used.cost_usd == pytest.approx(1.05)
    assert talk.used.cost_source == "table"


def test_calls_of_one_answer_are_carried_out_in_order_and_change_the_folder(tmp_path: Path) -> None:
    """What a command writes is there for the next."""
    bench = Bench(tmp_path)
    with serving(steps("echo one > a.txt", "cat a.txt", calling("read_file", {"path": "a.txt"}))) as server:
        talk = bench.talk(f"{server.url}/v1")
    assert (bench.folder / "a.txt").read_text() == "one\n"
    assert all("one" in text for text in talk.results()[1:])


@pytest.mark.parametrize("wire", ["chat", "responses", "gemini"])
def test_a_cap_on_tokens_holds_where_the_server_counts_none(tmp_path: Path, wire: str) -> None:
    """By an estimate, which is marked."""
    bench = Bench(tmp_path, wire=wire)
    bench.limits = Limits(tokens=500, max_steps=5)
    with serving(lambda _: Reply("", "true", counted=False)) as server:
        talk = bench.talk(address(server, wire))
    assert (talk.end.outcome, len(server.seen)) == ("killed", 1), talk.end
    assert f"{talk.used.tokens} tokens ({talk.used.tokens} of them estimated)" in talk.end.reason
    assert talk.used.turns == 1 and 500 <= talk.used.estimated == talk.used.input + talk.used.output < 10_000


def test_a_cap_on_cost_without_a_price_sends_nothing(tmp_path: Path) -> None:
    """And names the table to write, which then holds, also by an estimate."""
    bench = Bench(tmp_path)
    bench.limits = Limits(cost_usd=1.0)
    with serving(lambda _: Reply("", "true", counted=False)) as server:
        talk = bench.talk(f"{server.url}/v1")
        assert (talk.end.outcome, len(server.seen)) == ("config", 0)
        assert '[prices."fake-model"]' in talk.end.reason
        bench.limits = Limits(cost_usd=1.0, prices={"fake-model": {"input": 1e6, "output": 1e6}})
        talk = bench.talk(f"{server.url}/v1")
    assert (talk.end.outcome, len(server.seen)) == ("killed", 1) and talk.used.cost_usd >= 1
