"""Whatever anybody said, a conversation that has it can go on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from harness.builtin.loop import _sanitize
from tests.agents.modelserver import Reply, serving
from tests.agents.strict import strict
from tests.builtin.sessions.talking import agent, said
from tests.builtin.talking import MODELS, WIRES, Bench, address, bodies, calling, slow, steps

HALF, BYTES = "half \ud800", "a byte \udce4"


def test_what_can_be_sent_is_itself_and_the_rest_is_mended() -> None:
    """At any depth, names included; a byte that is no UTF-8 is as in files."""
    fine = {"a": ["ä", 1.5, None]}
    assert _sanitize.value(fine) is fine
    known = {HALF: [BYTES, {"n": math.nan, "m": 1.5}, math.inf]}
    assert _sanitize.value(known) == {r"half \ud800": [r"a byte \xe4", {"n": None, "m": 1.5}, None]}
    assert [_sanitize.name(one) for one in ("read_file", "a.b c", "", "x" * 70)] == [
        "read_file",
        "a_b_c",
        "_",
        "x" * 64,
    ]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("raw", ['{"todos": NaN}', '{"todos": 1e999}', '{"todos": "\\ud800"}', '{"a":' * 2000])
def test_a_model_is_told_of_arguments_that_no_vendor_takes_back(tmp_path: Path, wire: str, raw: str) -> None:
    """No number, half of a pair, too deep: nothing is carried out, and the conversation goes on."""
    if wire == "gemini":  # there arguments are an object of its JSON
        raw = {"todos": math.nan}  # type: ignore[assignment]  # a call takes both
    with serving(steps(calling("todo_write", raw))) as server:
        talk = Bench(tmp_path, wire=wire).talk(address(server, wire))
    assert (talk.end.outcome, talk.end.reply) == ("ok", "Done.")
    assert "no JSON object" in talk.results()[0]


@pytest.mark.parametrize("wire", WIRES)
def test_a_name_that_is_no_name_of_a_tool_does_not_end_the_conversation(tmp_path: Path, wire: str) -> None:
    """Vendors refuse a request with a call whose name they would not accept for a tool."""
    with serving(steps(calling("functions.list files", {}))) as server:
        assert Bench(tmp_path, wire=wire).talk(address(server, wire)).end.outcome == "ok"
        sent = server.seen[-1].body.decode()
    assert "functions_list_files" in sent and '"functions.list files"' not in sent


@pytest.mark.parametrize("wire", WIRES)
def test_text_that_is_no_unicode_does_not_end_a_session(tmp_path: Path, wire: str) -> None:
    """Of a person, as from a pipe, of the model, and of a server's tool: it is sent with the byte or the half written out."""

    def brain(exchange: object) -> Reply:
        return Reply(HALF)

    with (
        serving(brain) as server,
        agent(tmp_path, server, model=MODELS[wire], base_url=address(server, wire)) as one,
    ):
        found = [one.call_sync(text, session_id="s") for text in (BYTES, "and now?")]
        sent = json.loads(server.seen[-1].body)
    assert [reply.outcome for reply in found] == ["ok", "ok"]
    assert r"a byte \\xe4" in json.dumps(sent) and r"half \\ud800" in json.dumps(sent)


@pytest.mark.parametrize("wire", ["messages", *WIRES])
@pytest.mark.parametrize("command", ["", "echo a"])
def test_white_space_in_an_answer_does_not_end_a_session(tmp_path: Path, wire: str, command: str) -> None:
    """Alone, or beside a call: no later request has it."""
    with serving(lambda _: Reply("Done.") if server.seen else Reply(" \n", command)) as server:
        server.trouble = strict
        talk = Bench(tmp_path, wire=wire).talk(address(server, wire))
    assert (talk.end.outcome, talk.end.reply, len(server.seen)) == ("ok", "Done.", 2), talk.end


def test_a_key_for_the_cache_goes_to_the_vendors_own_address_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may refuse a field that it does not know."""
    with serving(lambda _: Reply("Hello.")) as server:
        server.trouble = strict
        assert [one.outcome for one in said(tmp_path, server, "hello")] == ["ok"]
        monkeypatch.setenv("OPENAI_BASE_URL", address(server, "chat"))  # the vendor's own, as far as the agent knows
        (refused,) = said(tmp_path, server, "hello", session="t", base_url="")
        assert refused.outcome == "config"
        assert "prompt_cache_key" in bodies(server)[-1]


@slow
def test_an_answer_that_cannot_be_read_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Arguments that are no object where the format wants one; and nothing else is on standard error."""
    with serving(lambda _: calling("execute", "{no")) as server:
        end = Bench(tmp_path, wire="gemini").talk(address(server, "gemini")).end
    assert end.outcome == "agent_error" and end.reason.startswith("the answer cannot be read: ")
    assert "\n" not in end.reason and "asynchronous generator" not in capfd.readouterr().err
