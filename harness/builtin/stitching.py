"""Puts the body of a request in a long conversation together without making all of it anew: the text that the library made of the
earlier messages is kept, and the library makes the newest alone, behind a mark in the place of the others.

It knows no vendor's format, only that a body is a JSON object with one array of messages. What is kept is the difference of two
bodies that the library made, and now and then the outcome is compared with a body that it makes of all messages.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.builtin.exchange import Message, Request

    Made = Callable[[Request, int], Awaitable[bytes]]

NEW, STEP = 4, 6  # answers that are always made anew (a vendor's marks are among them), and more before a step
MARK = f"earlier messages {os.urandom(16).hex()}"
_decode = json.JSONDecoder().raw_decode


class Stitches:
    """The earlier messages of one conversation as text. `made`: the library's body of a request from this message on, behind the
    mark where that is not the first."""

    def __init__(self, made: Made) -> None:
        self.made, self.off, self.checked = made, False, 0
        self.messages: list[Message] = []
        self.text = self.mark = b""

    async def begin(self, request: Request) -> int:
        """From which message on the library is asked; those before it are here."""
        same = len(request.messages) > len(self.messages)
        if not same or any(ours is not one for ours, one in zip(self.messages, request.messages, strict=False)):
            self._forget()
        begun = len(self.messages)
        answers = [at for at, one in enumerate(request.messages[begun:], begun) if one["role"] == "assistant"]
        if len(answers) >= NEW + STEP and not self.off:
            await self._step(request, answers[-NEW])
        return len(self.messages)

    def whole(self, body: bytes) -> bytes:
        """The body, with the earlier messages in the place of the mark."""
        head, _, rest = body.partition(self.mark) if self.mark else (body, b"", b"")
        return b"".join((head, self.text, rest)) if rest else body

    async def _step(self, request: Request, until: int) -> None:
        """Keep the messages before `until`, too; where that does not come to the same bytes, nothing is kept any more."""
        before, after = await self.made(request, len(self.messages)), await self.made(request, until)
        added = _added(before.decode(), after.decode(), behind_mark=bool(self.messages))
        if added is None:
            self.off = True
            return self._forget()
        mark, separator, texts = added
        self.text = separator.join([*([self.text] if self.text else []), *texts])
        self.mark, self.messages = mark, request.messages[:until]
        if len(request.messages) >= 2 * self.checked:
            self.checked = len(request.messages)
            self.off = self.whole(after) != await self.made(request, 0)
            if self.off:
                self._forget()
        return None

    def _forget(self) -> None:
        self.messages, self.text, self.mark, self.checked = [], b"", b"", 0


def _added(before: str, after: str, *, behind_mark: bool) -> tuple[bytes, bytes, list[bytes]] | None:
    """(the mark, what separates messages, the messages) that one body has and the other, which begins later, has its mark for.
    `behind_mark`: the first has one, too. None where they differ in more."""
    name, at = _marked(after)
    old, new, spans = _texts(before, name), _texts(after, name), _arrays(after)[name]
    lead, tail, here = new[:at], new[at + 1 :], old[at + behind_mark :]
    if not tail or old[:at] != lead or here[-len(tail) :] != tail or len(here) <= len(tail):
        return None
    separator = after[spans[at][1] : spans[at + 1][0]]
    return new[at].encode(), separator.encode(), [one.encode() for one in here[: -len(tail)]]


def _marked(body: str) -> tuple[str, int]:
    """The array that has the mark, and where in it."""
    for name, spans in _arrays(body).items():
        for at, (begin, end) in enumerate(spans):
            if MARK in body[begin:end]:
                return name, at
    raise ValueError("a body that was made with a mark has none")


def _texts(body: str, name: str) -> list[str]:
    return [body[begin:end] for begin, end in _arrays(body).get(name, [])]


def _arrays(body: str) -> dict[str, list[tuple[int, int]]]:
    """The arrays of a JSON object, by name: where each item of them begins and ends."""
    found, at = dict[str, list[tuple[int, int]]](), _next(body, 1)
    while body[at] != "}":
        name, end = _decode(body, at)
        at = _next(body, end)
        if body[at] != "[":
            at = _next(body, _decode(body, at)[1])
            continue
        spans, at = found.setdefault(name, []), _next(body, at + 1)
        while body[at] != "]":
            spans.append((at, _decode(body, at)[1]))
            at = _next(body, spans[-1][1])
        at = _next(body, at + 1)
    return found


def _next(body: str, at: int) -> int:
    """Where the next name, value or end begins."""
    while body[at] in " \t\n\r,:":
        at += 1
    return at
