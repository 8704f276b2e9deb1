"""What a model server may do, in each of the four formats, and what a person and the model see of it: one list, which
docs/builtin.md has as its table (`python -m tests.builtin.loop.test_scenarios` writes it)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness.builtin.loop.loop import Limits
from tests.agents.modelserver import Handler, Reply, Server, serving
from tests.agents.wires import Exchange
from tests.builtin.loop.misbehaving import (
    EVENTS,
    PAGE,
    Step,
    bodies,
    breaks,
    drips,
    ends,
    fails,
    hangs_up,
    played,
    says,
    sends,
    silent,
    tears,
)
from tests.builtin.loop.streams import CUT, FILTERED, IN, OUT, REFUSED, UNKNOWN, Text, Thought, Tool
from tests.builtin.sessions.talking import said, state_of
from tests.builtin.talking import MODELS, Bench, address
from tests.crash import TORTURE
from tests.missions import CHECKOUT

COLUMNS = {"chat": "chat", "responses": "responses", "messages": "anthropic", "gemini": "google"}
LIMITS = Limits(waits=[0.01] * 4, max_steps=4)  # as many tries as unless set
PATIENT = 60.0  # seconds for a request that is no matter of time
NOWHERE = "http://127.0.0.1:9"
ADDRESS = r"http://127.0.0.1:\d+/\w[^ ?]*"
MADE_OF, WEB_PAGE = rf"\({ADDRESS}: are model and base_url right\?\)$", rf"^{ADDRESS} answers with a web page \(status "
BROKEN_OFF = "broke off before its end"
READ, OTHER = Tool("read_file", '{"path": "a.txt"}'), Tool("read_file", '{"path": "b.txt"}', "call-2")
THOUGHT = Thought("Hmm, I think.", "c2lnbmVk")


@dataclass(frozen=True)
class Scenario:
    """What the server does to the requests, one step each; then, unless the last one is repeated `forever`, it answers "Done.".

    `happens` is for people. The rest is what is checked: the outcome; how many requests came; `log`: the first letters of the
    roles in turns.jsonl; `shows`: text of the reason, or of the reply; `back`: text in the last request; `wait`: seconds until
    the vendor accepts requests again; `estimated`: whether tokens are; `but`: what differs by format, None where the format
    has no such thing."""

    name: str
    happens: str
    steps: tuple[Step, ...] = ()
    outcome: str = "ok"
    requests: int = 1
    log: str = "ua"
    shows: str = "Done."
    back: str = ""
    wait: int = 0
    estimated: bool = False
    forever: bool = False
    seconds: float = PATIENT
    model: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    but: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)

    def at(self, wire: str) -> Scenario | None:
        """The same, as it is in this format."""
        more = self.but.get(wire, {})
        return None if more is None else replace(self, **more)

    def cell(self, wire: str) -> str:
        """What the page says of it in this format."""
        one = self.at(wire)
        return "–" if one is None else f"`{one.outcome}` {one.requests}"  # noqa: RUF001 - the sign of the docs for nothing there


def answered(name: str, happens: str, *given: Step, **more: Any) -> Scenario:
    """One that ends well."""
    return Scenario(name, happens, given, **more)


def called(name: str, happens: str, *parts: Tool | Text | Thought, **more: Any) -> Scenario:
    """An answer with calls, whose results the next request has."""
    return Scenario(name, happens, (says(*parts),), **{"requests": 2, "log": "uata", **more})


def failed(name: str, happens: str, outcome: str, step: Step, shows: str, **more: Any) -> Scenario:
    """Every request gets the same, and nothing but the prompt is kept; a limit is tried again."""
    tries = 5 if outcome == "limit" else 1
    return Scenario(name, happens, (step,), **{"outcome": outcome, "requests": tries, "log": "u", "shows": shows, "forever": True,
                                               **more})  # fmt: skip


def ended(name: str, happens: str, shows: str, *given: Step, **more: Any) -> Scenario:
    """An answer that ends the run as a failure."""
    return Scenario(name, happens, given, **{"outcome": "agent_error", "shows": shows, "forever": True, **more})


NO_OBJECT = {"back": "The arguments are no JSON object"}
WHOLE: Mapping[str, None] = {"gemini": None}  # there a call comes whole, as an object
NOT_ANTHROPIC: Mapping[str, None] = {"messages": None}
GOOGLE: Mapping[str, None] = {"chat": None, "responses": None, "messages": None}
HALF = Text(("Half of it", " and the rest"))
AGAIN = "tried again"

SCENARIOS = [
    answered("a text", "the reply", says(Text(("Done.",)))),
    answered("a text in pieces", "joined", says(Text(("Do", "ne")), Text((".",)))),
    answered("a text of 1 MB in one event", "the reply", says(Text(("Done." + "x" * 1_000_000,)))),
    answered("half of a surrogate pair in a text", "kept as it is, sent back as `\\ud800`", says(Text(("Done. \ud800",)), READ),
             requests=2, log="uata", back=r"Done. \\ud800"),
    called("a call", "its result goes back", READ, back="alpha"),
    called("a text and a call", "both are kept", Text(("I look.",)), READ, back="I look."),
    called("two calls", "one after the other", READ, OTHER, log="uatta", back="beta"),
    called("two calls with one id", "one after the other", READ, replace(OTHER, id="call-1"), log="uatta", back="beta"),
    called("calls without an id", "they get one", replace(READ, id=""), replace(OTHER, id=""), log="uatta", back="pyd_ai_"),
    called("an unknown tool", "the model reads the fault", Tool("fly", "{}"), back="There is no tool 'fly'"),
    called("a name that no vendor takes back", "the model reads the fault; sent back with `_`", Tool("functions.fly to", "{}"),
           back='"functions_fly_to"'),
    called("arguments that are no JSON", "the model reads the fault", Tool("read_file", '{"path": "a.'), **NO_OBJECT, but=WHOLE),
    called("arguments that are no object", "the model reads the fault; Google's client cannot read them: tried again",
           Tool("read_file", '["a.txt"]'), **NO_OBJECT, but={"gemini": {"log": "ua", "back": ""}}),
    called("arguments that the tool does not have", "the model reads the fault", Tool("read_file", '{"file": 7}'),
           back="There is no argument 'file'"),
    called("arguments of another kind", "the model reads the fault", Tool("read_file", '{"path": {"a": 1}}'),
           back="'path' must be text"),
    called("reasoning before a call", "kept, and sent back with its signature", THOUGHT, READ, back="c2lnbmVk",
           model={"responses": "openai-responses:gpt-5.2"}, but={"chat": {"back": "Hmm, I think."}}),
    answered("a call that the vendor cannot read", "the model reads the fault", sends(200, 'data: {"candidates":[{"finishReason":'
             '"MALFORMED_FUNCTION_CALL","index":0}],"usageMetadata":{"totalTokenCount":5}}\n\n', EVENTS),
             requests=2, log="uaua", back="could not be read by the vendor", estimated=True, but=GOOGLE),
    ended("calls without end", "ended at `max_steps`", "max_steps = 4", says(READ), requests=4, log="uatatatat"),
    answered("no usage", "tokens are estimated", says(Text(("Done.",)), counted=False), estimated=True, but=NOT_ANTHROPIC),
    answered("an empty answer", "asked once more", says(), requests=2, log="uaa"),
    ended("empty answers", "ended after the second", "answered with nothing, 2 times", says(), requests=2, log="uaa"),
    answered("an unknown finish", "counts as broken off, tried again", says(HALF, ending=UNKNOWN), requests=2, estimated=True),
    failed("an unknown finish, again and again", "tried again, the reason has it", "limit", says(HALF, ending=UNKNOWN),
           re.escape(BROKEN_OFF) + r" \(tired\)", estimated=True, but={"gemini": {"shows": r"\(TIRED\)"}}),
    answered("the output limit in a text", "the model goes on, the parts are joined", says(Text(("Do",)), ending=CUT),
             says(Text(("ne.",))), requests=2, log="uaua", back="Go on exactly where it ends"),
    ended("the output limit, again and again", "the reply is what there is", "max_steps = 4 requests; the answer is cut",
          says(Text(("on and ",)), ending=CUT), requests=4, log="uauauauau"),
    answered("the output limit in a call", "the model reads the fault", says(Tool("read_file", '{"path": "a.'), ending=CUT),
             requests=2, log="uata", **NO_OBJECT, but=WHOLE),
    ended("the output limit before a word", "ended after the second", "with nothing at max_output_tokens, 2",
          says(ending=CUT), requests=2, log="uaua"),
    ended("a refusal", "its text is the reply and the reason", "the model refused: I do not.",
          says(Text(("I do ", "not.")), ending=REFUSED)),
    ended("a content filter", "what there is of the text is the reply", "the model refused: Half of it and the rest",
          says(HALF, ending=FILTERED), but=NOT_ANTHROPIC),
    answered("a rate limit with a short wait", "waited for", fails("limited", 1), requests=2),
    failed("a rate limit with a long wait", "the harness waits so long", "limit", fails("limited", 3600), "status 429: ",
           requests=1, wait=3600),
    failed("a rate limit without a wait", "the harness waits, longer each time", "limit", fails("limited"), "status 429: ",
           requests=1),
    failed("a rate limit as an event", "the harness waits, longer each time", "limit", breaks("limited"),
           "status 429: ", requests=1),
    failed("a rate limit with a web page", "the harness waits, longer each time", "limit", sends(429, "<p>Slow\ndown", PAGE),
           "status 429: <p>Slow down", requests=1),
    failed("a used up quota", "a person has to pay", "auth", fails("quota", 7), "status 4..: You.* (quota|credit)"),
    failed("an invalid key", "a person has to set another", "auth", fails("key"), "status 40.: .*(key|KEY)"),
    failed("403", "a person has to ask for it", "auth", fails("forbidden"), "status 403: "),
    failed("404, an unknown model", "a person has to name another", "config", fails("unknown"),
           rf"^status 404: .*{MADE_OF}"),
    failed("404, an unknown address", "a person has to name another", "config", sends(404, '{"detail":"Not Found"}'), MADE_OF),
    failed("400", "the reason has the vendor's words", "config", fails("invalid"), "status 400: .*temperature"),
    failed("400, the context is too long, in a run", "it ends", "agent_error", fails("too long"), "status 400: .*1[02]"),
    failed("the context is too long, as an event", "it ends", "agent_error", breaks("too long"), "status 400: .*1[02]"),
    answered("400, the context is too long, in a session", "summarised, sent again", requests=3),
    failed("413", "as a context that is too long", "agent_error", sends(413, "{}"), "status_code: 413"),
    failed("413 with a web page", "as a context that is too long", "agent_error", sends(413, "<h1>Too\nlarge", PAGE),
           "status 413: <h1>Too large"),
    answered("503, once", AGAIN, fails("down"), requests=2),
    failed("503, again and again", AGAIN, "limit", fails("down"), "status 5(03|29): "),
    failed("502 with a web page", AGAIN, "limit", sends(502, "<h1>Bad\ngateway", PAGE), "status 502: <h1>Bad gateway"),
    failed("an overload as an event in a text", AGAIN, "limit", breaks("down", "Half"), "overloaded|Overloaded", estimated=True),
    failed("a web page", "the address is wrong", "config", sends(200, "<html>", PAGE), WEB_PAGE + r"200\): is base_url"),
    failed("404 with a web page", "the address is wrong", "config", sends(404, "<html>", PAGE),
           WEB_PAGE + r"404\): is base_url"),
    failed("a redirect", "the address is wrong; the reason has both", "config", sends(307, "", Location=NOWHERE),
           rf"redirects to {NOWHERE} \(status 307\)"),
    failed("no server there", AGAIN, "limit", hangs_up, rf"\({NOWHERE}\)", url=NOWHERE),
    answered("a connection that is closed once", AGAIN, hangs_up, requests=2),
    failed("a connection that is closed", AGAIN, "limit", hangs_up, r"\(http://127.0.0.1:\d+\)"),
    failed("no byte for `request_seconds`", AGAIN, "limit", silent, "timed out after 0.5 seconds", seconds=0.5),
    failed("a stream that never ends", "ended after `request_seconds`, tried again", "limit", drips, "timed out", seconds=0.5,
           estimated=True),
    failed("a stream torn before its first byte", AGAIN, "limit", tears(""), r"\(http://127.0.0.1:\d+\)"),
    answered("a stream torn in a text, once", AGAIN, tears("Half"), requests=2, estimated=True),
    failed("a stream torn in a text", AGAIN, "limit", tears("Half"), r"\(http://127.0.0.1:\d+\)", estimated=True),
    failed("a stream torn in a call", AGAIN, "limit", tears("read_file", READ), r"\(http://127.0.0.1:\d+\)", estimated=True),
    failed("a stream that ends in a text", AGAIN, "limit", ends("Half"), BROKEN_OFF, estimated=True),
    failed("a stream that ends in a call", AGAIN, "limit", ends("read_file", READ), BROKEN_OFF, estimated=True),
    failed("no event", AGAIN, "limit", sends(200, "", EVENTS), "ended without content"),
    failed("events that are no JSON", AGAIN, "limit", sends(200, "data: {no\n\n", EVENTS), "decode|without content"),
    failed("a text in place of events", AGAIN, "limit", sends(200, "oops"), "decode|without content"),
]  # fmt: skip
IN_A_SESSION = "400, the context is too long, in a session"
LAST_OF_FORMATS = (
    "413 with a web page"  # behind it are faults of the connection, and one client serves chat and responses
)


def is_played(number: int, wire: str) -> bool:
    """Whether the suite plays this row in this format, and not `make torture` alone."""
    return TORTURE or wire != "responses" or number <= [one.name for one in SCENARIOS].index(LAST_OF_FORMATS)


CASES = [
    pytest.param(one, wire, id=f"{one.name}-{COLUMNS[wire]}")
    for number, one in enumerate(SCENARIOS)
    for wire in COLUMNS
    if one.at(wire) and is_played(number, wire)
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One for all: a fork for each scenario would take half of the time."""
    with serving(lambda _: Reply("Done.")) as one:
        yield one


@pytest.mark.filterwarnings("ignore:TIRED is not a valid FinishReason")  # of Google's client
@pytest.mark.parametrize(("scenario", "wire"), CASES)
def test_a_scenario_ends_as_the_page_says(
    tmp_path: Path, server: Server, scenario: Scenario, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome, one sentence, the number of requests, what goes back to the model, what is recorded and counted."""
    one = scenario.at(wire)
    assert one is not None
    if one.name == IN_A_SESSION:
        assert in_a_session(tmp_path, server, wire) == (one.outcome, one.requests)
        return
    monkeypatch.setitem(MODELS, wire, one.model.get(wire, MODELS[wire]))
    bench = Bench(tmp_path, wire=wire, seconds=one.seconds, limits=LIMITS)
    for name, text in {"a.txt": "alpha", "b.txt": "beta"}.items():
        (bench.folder / name).write_text(text)
    server.seen, server.trouble = [], played(*one.steps, forever=one.forever)
    talk = bench.talk(one.url or address(server, wire))
    sent = bodies(server)
    end, waits = talk.end, [row["type"] for row in talk.rows].count("waits")
    assert (end.outcome, len(talk.log.turns) + waits) == (one.outcome, one.requests), end
    reads_all = (
        one.seconds >= PATIENT
    )  # else a client on a busy machine gives up before the server has read its request
    assert one.url or len(sent) == one.requests or (not reads_all and len(sent) < one.requests), sent
    assert re.search(one.shows, end.reason or end.reply) and "\n" not in end.reason and len(end.reason) < 500, end
    assert one.back in (sent or [""])[-1]
    assert "".join(message["role"][0] for message in talk.log.messages()) == one.log
    assert (end.until > time.time() + one.wait - 60) == bool(one.wait)
    assert bool(talk.used.estimated) == one.estimated
    assert (talk.used.tokens or 0) >= (IN + OUT) * one.log.count("a")


def in_a_session(folder: Path, server: Server, wire: str) -> tuple[str, int]:
    """A session whose fifth message does not fit with the first: the outcome of that call, and its requests."""
    fine, too_long = played(), played(fails("too long"), forever=True)

    def trouble(handler: Handler, exchange: Exchange) -> bool:
        whole = "message 0" in exchange.text and "message 4" in exchange.text
        return (too_long if whole and "Sum it up now." not in exchange.text else fine)(handler, exchange)

    server.seen, server.trouble = [], trouble
    texts = [f"message {number}" for number in range(5)]
    replies = said(folder, server, *texts, model=MODELS[wire], base_url=address(server, wire))
    assert state_of(folder).compactions == 1 and [one.text for one in replies] == ["Done."] * 5
    return replies[-1].outcome, len(bodies(server)) - 4


def table() -> str:
    """The table of the page."""
    heads = ["what the model's server does", "what happens", *COLUMNS.values()]
    rows = [[one.name, one.happens, *map(one.cell, COLUMNS)] for one in SCENARIOS]
    return "".join(f"| {' | '.join(row)} |\n" for row in [heads, ["---"] * len(heads), *rows])


def on_the_page(page: str) -> tuple[int, int]:
    """Where the table is."""
    at = page.index("| what the model's server does")
    return at, page.index("\n\n", at) + 1


def test_the_page_has_every_scenario() -> None:
    """docs/builtin.md has the table of this list."""
    page = (CHECKOUT / "docs/builtin.md").read_text()
    begin, end = on_the_page(page)
    assert page[begin:end] == table(), "run: python -m tests.builtin.loop.test_scenarios"


if __name__ == "__main__":
    path = CHECKOUT / "docs/builtin.md"
    whole = path.read_text()
    begin, end = on_the_page(whole)
    path.write_text(whole[:begin] + table() + whole[end:])
