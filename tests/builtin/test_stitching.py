"""Promises of harness/builtin/stitching.py: a body that is put together is the one that the library makes of all messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.builtin.exchange import Request
from harness.builtin.stitching import MARK, NEW, STEP, Stitches
from tests.builtin.talking import WIRES, Bench, address, calling, serving, steps

TURNS = 2 * (NEW + STEP) + 5
Message = dict[str, Any]
Format = Callable[[list[Message]], str]


def many(count: int) -> list[Message]:
    """A conversation with so many answers."""
    rounds = list[Message]()
    for at in range(count):
        said = '"]}},' + str(at)
        rounds += [{"role": "assistant", "parts": [f"ä[{at}"]}, {"role": "tool", "text": said}]
    return [{"role": "user", "text": "begin"}, *rounds]


def plain(messages: list[Message]) -> str:
    """A vendor's format: an item a message, and the last one is marked, as for its cache."""
    rows = [{"is": one} for one in messages]
    return json.dumps({"tools": [{"a": [1]}], "model": "m", "list": [*rows[:-1], {**rows[-1], "last": 1}], "n": 1})


def compact(messages: list[Message]) -> str:
    """Another: no spaces, the system text before the messages, and two items for each answer."""
    rows = [row for one in messages for row in ([one, "and"] if one["role"] == "assistant" else [one])]
    return json.dumps({"list": ["system", *rows], "tools": []}, separators=(",", ":"), ensure_ascii=False)


def counted(messages: list[Message]) -> str:
    """One whose items depend on all that came before."""
    return json.dumps({"list": [[at, one] for at, one in enumerate(messages)]})


def grown(messages: list[Message]) -> str:
    """One that is another from a length on."""
    return json.dumps({"list": [{"long": len(messages) > 4 * (NEW + STEP)}, *messages]})


class Library:
    """Makes bodies in a format, and keeps of how many messages each was made."""

    def __init__(self, form: Format) -> None:
        self.form, self.asked = form, list[int]()
        self.stitches = Stitches(self.made)

    async def made(self, request: Request, begin: int) -> bytes:
        """As the wire's."""
        self.asked.append(len(request.messages) - begin)
        mark: list[Message] = [{"role": "user", "text": MARK}] if begin else []
        return self.form([*mark, *request.messages[begin:]]).encode()

    def sent(self, messages: list[Message]) -> str:
        """The body of a request with these messages."""
        request = Request(system="s", tools=[], messages=messages, parameters={})

        async def made() -> bytes:
            begin = await self.stitches.begin(request)
            return self.stitches.whole(await self.made(request, begin))

        return asyncio.run(made()).decode()


@pytest.mark.parametrize("form", [plain, compact])
def test_a_long_conversation_costs_what_is_new(form: Format) -> None:
    """Each body is that of all messages; but for a comparison now and then the library is asked for the newest alone."""
    library, whole = Library(form), many(120)
    for count in range(1, len(whole) + 1):
        assert library.sent(whole[:count]) == form(whole[:count])
    assert sum(asked > 2 * (NEW + STEP) + 3 for asked in library.asked) <= 4
    assert library.asked[-1] <= 2 * (NEW + STEP) + 1
    assert (
        len(library.asked) <= len(whole) + 120 / STEP + 4
    )  # one body more at each step: the other is the one that went out


def test_a_body_that_is_whole_already_stays_as_it_is() -> None:
    """As where a server sends the client on to another address; the requests behind it are right, too."""
    library, whole = Library(plain), many(60)
    for count in range(1, len(whole) + 1):
        body = library.sent(whole[:count])
        assert library.stitches.whole(body.encode()).decode() == body == plain(whole[:count])
    assert not library.stitches.off


def test_a_request_that_never_went_out_or_is_made_once_more_changes_nothing() -> None:
    """As after a failure: what follows is put together of what the library made."""
    library, whole = Library(compact), many(60)
    for count in range(1, len(whole) + 1):
        unsent = Request(system="s", tools=[], messages=whole[:count], parameters={})
        asyncio.run(library.stitches.begin(unsent))
        assert library.sent(whole[:count]) == library.sent(whole[:count]) == compact(whole[:count])
    assert not library.stitches.off and library.asked[-1] <= 2 * (NEW + STEP) + 1


@pytest.mark.parametrize("form", [counted, grown])
def test_what_cannot_be_put_together_is_made_of_all_messages(form: Format) -> None:
    """From the first step at which it shows."""
    library, whole = Library(form), many(120)
    differ = [count for count in range(1, len(whole) + 1) if library.sent(whole[:count]) != form(whole[:count])]
    assert len(differ) <= (0 if form is counted else 2 * 4 * (NEW + STEP))
    assert library.stitches.off and library.asked[-1] == len(whole)


def test_another_conversation_begins_anew() -> None:
    """Also one that is shorter, or says the same in messages of its own."""
    library = Library(plain)
    for whole in (many(40), many(40), many(40)[:7], many(60)):
        for count in (len(whole) - 1, len(whole)):
            assert library.sent(whole[:count]) == plain(whole[:count])


@pytest.mark.parametrize("wire", WIRES)
def test_what_goes_out_is_what_the_library_makes_of_all(tmp_path: Path, wire: str) -> None:
    """Byte for byte, at every turn: over texts, calls, failures, an image, many calls; that is how a request is made again."""
    from harness.builtin.wire import Wire

    bench, wires = Bench(tmp_path, wire=wire), list[Any]()

    def kept(model: Any) -> Any:
        wires.append(model)
        return model

    bench.wrap = kept
    (bench.folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    (bench.folder / "a.txt").write_text("ä line\n" * 30)
    kinds: list[Any] = ["echo ä", calling("read_file", {"path": "a.png"}), calling("fly", {})]
    kinds += [] if wire == "gemini" else [calling("execute", "{no")]  # there a call has no text that could be broken
    kinds += [calling("read_file", {"path": "a.txt"})] * 4
    with serving(steps(*(kinds[turn % len(kinds)] for turn in range(TURNS)))) as server:
        log = bench.talk(address(server, wire)).log
    assert len(wires[0]._stitches.messages) > 2 * STEP

    async def digests() -> list[str]:
        again = Wire(wires[0].parameters, "key", 5.0)
        try:
            return [(await again.body(log.request(turn)))[0].digest for turn in log.turns]
        finally:
            await again.close()

    assert asyncio.run(digests()) == [turn.row["digest"] for turn in log.turns.values()]
