"""The loop against a model server on loopback: every way in which a model misbehaves ends with its documented outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.builtin.loop.loop import Limits
from tests.agents.modelserver import Handler, Reply, Server
from tests.agents.wires import CUT, REFUSES, TOKENS, Exchange
from tests.builtin.talking import MODELS, Bench, address, calling, serving, steps
from tests.missions import CHECKOUT

CHUNK = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}'
TOO_LONG = '{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}'
HALF = f"data: {CHUNK}\n\n"
FULL = HALF.replace('"a"}', '""},"finish_reason":"length"')
PLAIN, EVENTS = "application/json", "text/event-stream"


def sends(status: int, body: str, kind: str = PLAIN) -> Callable[[Handler, Exchange], bool]:
    """A server that always sends this."""

    def trouble(handler: Handler, _: Exchange) -> bool:
        handler.send(status, body.encode(), kind)
        return True

    return trouble


def tears(handler: Handler, _: Exchange) -> bool:
    """A stream that breaks off in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", EVENTS)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(f"data: {CHUNK}\n\n".encode())
    handler.close_connection = True
    return True


def never_ends(handler: Handler, _: Exchange) -> bool:
    """A stream without an end; the client has to leave."""
    handler.send_response(200)
    handler.send_header("Content-Type", EVENTS)
    handler.end_headers()
    handler.close_connection = True
    try:
        for _number in range(2000):
            handler.wfile.write(f"data: {CHUNK}\n\n".encode())
            time.sleep(0.01)
    except OSError:
        pass
    return True


def hangs_up(handler: Handler, _: Exchange) -> bool:
    """A connection that is closed without an answer."""
    handler.close_connection = True
    return True


TROUBLES: dict[str, tuple[Callable[[Server], None], str]] = {
    "429 with a reset": (lambda server: fails(server, "rate_limit", 3600), "limit"),
    "429, the quota is used up": (lambda server: fails(server, "quota"), "auth"),
    "401": (lambda server: fails(server, "auth"), "auth"),
    "400": (lambda server: fails(server, "bad_request"), "config"),
    "400, the context is too long": (lambda server: troubles(server, sends(400, TOO_LONG)), "agent_error"),
    "413, too many bytes": (lambda server: troubles(server, sends(413, "{}")), "agent_error"),
    "500, again and again": (lambda server: fails(server, "server"), "limit"),
    "529, again and again": (lambda server: fails(server, "overloaded"), "limit"),
    "the connection is closed": (lambda server: troubles(server, hangs_up), "limit"),
    "the stream is torn": (lambda server: troubles(server, tears), "limit"),
    "the stream ends in the middle": (lambda server: troubles(server, sends(200, HALF, EVENTS)), "limit"),
    "the stream never ends": (lambda server: troubles(server, never_ends), "limit"),
    "the events are no JSON": (lambda server: troubles(server, sends(200, "data: {no\n\n", EVENTS)), "limit"),
    "a page in place of an answer": (lambda server: troubles(server, sends(200, "<html>", "text/html")), "config"),
    "calls without end": (lambda server: thinks(server, lambda _: Reply("", "true")), "agent_error"),
    "answers that are full before a word": (lambda server: troubles(server, sends(200, FULL, EVENTS)), "agent_error"),
    "a refusal": (lambda server: thinks(server, lambda _: Reply("No.", ending=REFUSES)), "agent_error"),
    "empty answers": (lambda server: thinks(server, lambda _: Reply("")), "agent_error"),
}


def fails(server: Server, kind: str, retry_after: int = 7) -> None:
    """Every request fails like this."""
    server.retry_after = retry_after
    server.fail(kind)


def troubles(server: Server, trouble: Callable[[Handler, Exchange], bool]) -> None:
    """Every request gets this."""
    server.trouble = trouble


def thinks(server: Server, brain: Callable[[Exchange], Reply]) -> None:
    """Another brain."""
    server.brain = brain


@pytest.mark.parametrize("name", TROUBLES)
def test_a_model_that_misbehaves_ends_with_its_outcome(tmp_path: Path, name: str) -> None:
    """One sentence, the outcome that docs/builtin.md has, and what came before it is kept."""
    bench = Bench(tmp_path, seconds=0.5 if "never" in name else 10)
    bench.limits = Limits(waits=[0.01, 0.01], max_steps=4)
    begin, outcome = TROUBLES[name]
    with serving(steps()) as server:
        begin(server)
        talk = bench.talk(f"{server.url}/v1")
    assert talk.end.outcome == outcome, talk.end
    assert talk.end.reason and "\n" not in talk.end.reason
    assert ("with nothing" in talk.end.reason) == (name in ("empty answers", "answers that are full before a word"))
    assert (talk.end.until > time.time() + 3500) == (name == "429 with a reset")
    assert talk.log.turns or name in ("the connection is closed",)


def test_a_server_that_is_not_there_is_a_limit(tmp_path: Path) -> None:
    """The run is tried again later; nothing is wrong with the configuration for sure."""
    end = Bench(tmp_path).talk("http://127.0.0.1:9/v1").end
    assert (end.outcome, end.reason) == ("limit", "Connection error. (http://127.0.0.1:9)")


def test_every_trouble_is_on_the_page() -> None:
    """docs/builtin.md has the table, with the outcome."""
    page = (CHECKOUT / "docs/builtin.md").read_text()
    for name, (_, outcome) in TROUBLES.items():
        assert f"| {name} | `{outcome}` |" in page


def once(trouble: Callable[[Handler, Exchange], bool]) -> Callable[[Handler, Exchange], bool]:
    """Only the first time."""
    left = [trouble]
    return lambda handler, exchange: bool(left) and left.pop()(handler, exchange)


@pytest.mark.parametrize("trouble", [tears, hangs_up, sends(500, "{}"), sends(200, "data: {no\n\n", EVENTS)])
def test_what_fails_for_the_moment_is_tried_again(tmp_path: Path, trouble: Callable[[Handler, Exchange], bool]) -> None:
    """And the answer of the next try is the answer; the wait is reported."""
    with serving(steps()) as server:
        server.trouble = once(trouble)
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
    assert (talk.end.outcome, talk.end.reply) == ("ok", "Done.")
    assert [row["type"] for row in talk.rows].count("waits") == 1


def test_a_short_wait_that_the_vendor_asks_for_is_waited(tmp_path: Path) -> None:
    """A limit that ends within seconds does not end the run."""
    with serving(steps()) as server:
        server.retry_after = 1
        server.fail("rate_limit", 1)
        begun = time.monotonic()
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
    assert talk.end.outcome == "ok" and time.monotonic() - begun >= 1


WRONG = {
    "an unknown tool": (calling("fly", {}), "There is no tool 'fly'"),
    "no JSON": (calling("execute", '{"command": "echo a'), "no JSON object"),
    "no object": (calling("execute", '["echo a"]'), "no JSON object"),
    "other arguments": (calling("execute", {"cmd": 7}), "execute"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_answered_and_the_model_goes_on(tmp_path: Path, name: str) -> None:
    """With what is wrong, so that it can call again."""
    call, words = WRONG[name]
    with serving(steps(call, "echo right")) as server:
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
    assert talk.end.outcome == "ok"
    wrong, right = talk.results()
    assert words in wrong and "right" in right
    assert [row["failed"] for row in talk.rows if row["type"] == "result"] == [True, False]


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


@pytest.mark.parametrize("wire", MODELS)
def test_a_refusal_is_an_answer(tmp_path: Path, wire: str) -> None:
    """One request; its text is the reply and the reason, and its tokens count."""
    with serving(lambda _: Reply("I cannot help with that.", ending=REFUSES)) as server:
        talk = Bench(tmp_path, wire=wire).talk(address(server, wire))
    assert (talk.end.outcome, talk.end.reply) == ("agent_error", "I cannot help with that.")
    assert talk.end.reason == "the model refused: I cannot help with that."
    assert (len(server.seen), talk.used.tokens) == (1, 1050)
    assert talk.log.messages()[-1]["role"] == "assistant"


@pytest.mark.parametrize("wire", MODELS)
def test_an_answer_that_meets_the_limit_of_one_output_is_joined(tmp_path: Path, wire: str) -> None:
    """Without a seam, as the model wrote it."""
    parts = [Reply("The first wo", ending=CUT), Reply("rd, then ", ending=CUT), Reply("the end.")]
    with serving(steps(*parts)) as server:
        talk = Bench(tmp_path, wire=wire).talk(address(server, wire))
    assert (talk.end.outcome, talk.end.reply) == ("ok", "The first word, then the end.")


def test_an_answer_that_is_never_whole_keeps_what_there_is_of_it(tmp_path: Path) -> None:
    """The end says that it is cut."""
    bench = Bench(tmp_path)
    bench.limits = Limits(waits=[], max_steps=2)
    with serving(lambda _: Reply("on and ", ending=CUT)) as server:
        talk = bench.talk(f"{server.url}/v1")
    assert (talk.end.outcome, talk.end.reply) == ("agent_error", "on and on and")
    assert "the answer is cut" in talk.end.reason


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


def test_what_came_of_a_torn_answer_counts(tmp_path: Path) -> None:
    """Its vendor counts it, too."""
    with serving(steps()) as server:
        server.trouble = once(tears)
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
    assert talk.end.outcome == "ok" and 0 < talk.used.estimated < talk.used.tokens
