"""Calls that a model writes as text: which are carried out, what is an answer, and what is sent back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.agents.modelserver import Reply
from tests.builtin.sessions.talking import said
from tests.builtin.talking import Bench, address, bodies, serving, steps, written

TOUCH = written("execute", command="touch it")
LOOK = written("list_files")
WAYS = {
    TOUCH: 1,
    f"<tool_call>\n{TOUCH}\n</tool_call>": 1,
    f"<tool_call>{TOUCH}</tool_call>\n<tool_call>{LOOK}": 2,  # many forget to close the last
    f"```json\n{TOUCH}\n```": 1,
    f"\n```json\n{TOUCH}\n```\n\n```json\n{LOOK}\n{LOOK}\n```\n": 3,
}


@pytest.mark.parametrize("text", WAYS)
def test_an_answer_that_is_nothing_but_calls_is_carried_out(tmp_path: Path, text: str) -> None:
    """As any others, in turn; the model gets its text back, then one text with the results; each request can be made again."""
    from harness.builtin.loop.model_client import ModelClient

    with serving(steps(Reply(text))) as server:
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
        _, answer, results = bodies(server)[-1]["messages"][1:]
    assert talk.end.reply == "Done." and (tmp_path / "tree" / "it").exists()
    assert (answer["role"], answer["content"], results["role"]) == ("assistant", text, "user")
    assert "tool_calls" not in answer and results["content"].count("Result of ") == len(talk.results()) == WAYS[text]
    assert next(row["name"] for row in talk.rows if row["type"] == "call") == "execute"
    assert [row["text"] for row in talk.rows if row["type"] == "said"] == ["Done."], "a call is not said"
    begun = [json.loads(line) for line in (talk.folder / "turns.jsonl").read_bytes().split(b"\n") if b"begins" in line]
    assert [row["name"] for row in begun] == ["execute"], "what may have effects is recorded before it begins"

    async def digest() -> str:
        again = ModelClient(talk.log.request(1).parameters, "key", 5.0)
        try:
            return (await again.body(talk.log.request(2)))[0].digest
        finally:
            await again.close()

    assert asyncio.run(digest()) == talk.log.turns[2].row["digest"]


NO = {
    "in prose": f"I shall call it:\n{TOUCH}",
    "before prose": f"{TOUCH} Done.",
    "no tool": written("fly", command="touch it"),
    "no arguments of it": written("execute", command="touch it", nonsense=1),
    "one of two": f"{TOUCH}\n{written('fly')}",
    "more keys": json.dumps({"name": "execute", "arguments": {"command": "touch it"}, "more": 1}),
    "a list": f"[{TOUCH}]",
    "no JSON": TOUCH.replace('"touch it"', "NaN"),
}


@pytest.mark.parametrize("why", NO)
def test_any_other_text_is_an_answer(tmp_path: Path, why: str) -> None:
    """Nothing of it is carried out."""
    with serving(lambda _: Reply(NO[why])) as server:
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
    assert talk.end.reply == NO[why] and not (tmp_path / "tree" / "it").exists()


def test_a_model_that_calls_as_its_vendor_does_writes_no_calls(tmp_path: Path) -> None:
    """From its first such call on, a text is an answer."""
    with serving(steps("true", Reply(TOUCH))) as server:
        talk = Bench(tmp_path).talk(f"{server.url}/v1")
    assert talk.end.reply == TOUCH and not (tmp_path / "tree" / "it").exists()


def test_calls_in_text_are_for_runs_at_an_address_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the vendor's own address, and in a session, the text is the answer."""
    with serving(lambda _: Reply(LOOK)) as server:
        assert [one.text for one in said(tmp_path / "session", server, "Look.")] == [LOOK]
        monkeypatch.setenv("OPENAI_BASE_URL", address(server, "chat"))
        assert Bench(tmp_path / "run").talk("").end.reply == LOOK
