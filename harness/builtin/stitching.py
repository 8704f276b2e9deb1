"""Puts the body of a request in a long conversation together without making all of it anew: the text that the library made of the
earlier messages is kept, and the library makes the newest alone, behind a mark in the place of the others.

It knows no vendor's format, only that a body is a JSON object with one array of messages. What is kept is the difference of two
bodies that the library made of one request: the one that went out, and another from a later message on. Now and then the outcome
is compared with a body that it makes of all messages.
"""

from __future__ import annotations

import json
import os
from operator import is_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.builtin.exchange import Message, Request

    Made = Callable[[Request, int], Awaitable[bytes]]
    Arrays = dict[str, list[tuple[int, int]]]

NEW, STEP = 2, 4  # answers that are always made anew (a vendor's marks are among them), and more before a step
MARK = f"earlier messages {os.urandom(16).hex()}"
_decode = json.JSONDecoder().raw_decode


class Stitches:
    """The earlier messages of one conversation as text. `made`: the library's body of a request from this message on, behind the
    mark where that is not the first."""

    def __init__(self, made: Made) -> None:
        self.made, self.off, self.checked = made, False, 0
        self.last: Request | None = None  # that went out, if it did, with this body, where that has the mark
        self.messages: list[Message] = []
        self.text = self.mark = self.body = b""

    async def begin(self, request: Request) -> int:
        """From which message on the library is asked; those before it are here."""
        last = self.last
        if last and not _begins(request.messages, last.messages):
            self._forget()
        elif last and self.body and not self.off:
            begun = len(self.messages)
            answers = [at for at, one in enumerate(last.messages[begun:], begun) if one["role"] == "assistant"]
            if len(answers) >= NEW + STEP:
                await self._step(last, answers[-NEW])
        self.last, self.body = request.replace(messages=request.messages[:]), b""
        return len(self.messages)

    def whole(self, body: bytes) -> bytes:
        """The body that goes out, with the earlier messages in the place of the mark."""
        if self.mark in body:  # else it is whole already, and goes to another address
            self.body = body
        return self._whole(body)

    def _whole(self, body: bytes) -> bytes:
        head, _, rest = body.partition(self.mark) if self.mark else (body, b"", b"")
        return b"".join((head, self.text, rest)) if rest else body

    async def _step(self, last: Request, until: int) -> None:
        """Keep the messages before `until`, too, of the request that went out; nothing any more where that does not come to the
        same bytes."""
        before, after, first = self.body, await self.made(last, until), not self.mark
        added = _added(before.decode(), after.decode(), self.mark.decode())
        if added is not None:
            self.mark, separator, texts = added
            self.text = separator.join([*([] if first else [self.text]), *texts])
            self.messages = last.messages[:until]
        self.off = added is None
        if len(last.messages) >= 2 * self.checked and not self.off:
            self.checked = len(last.messages)
            self.off = self._whole(after) != (before if first else await self.made(last, 0))
        if self.off:
            self._forget()

    def _forget(self) -> None:
        self.last, self.messages, self.checked = None, [], 0
        self.text = self.mark = self.body = b""


def _begins(messages: list[Message], these: list[Message]) -> bool:
    """Whether the first of the messages are these themselves."""
    return len(messages) >= len(these) and all(map(is_, messages, these))


def _added(before: str, after: str, mark: str) -> tuple[bytes, bytes, list[bytes]] | None:
    """(its mark, what separates messages, the messages) that one body has and the other, which begins later, has its mark for.
    `mark`: that of the first, "" for none. None where they differ in more."""
    made = _arrays(after)
    name, at = _marked(after, made)
    spans = made[name]
    old, new = _texts(before, _arrays(before).get(name, [])), _texts(after, spans)
    here, tail = old[at:], new[at + 1 :]
    if mark and here[:1] != [mark]:
        return None
    here = here[1:] if mark else here
    if not tail or old[:at] != new[:at] or here[-len(tail) :] != tail or len(here) <= len(tail):
        return None
    separator = after[spans[at][1] : spans[at + 1][0]]
    return new[at].encode(), separator.encode(), [one.encode() for one in here[: -len(tail)]]


def _marked(body: str, arrays: Arrays) -> tuple[str, int]:
    """The array that has the mark, and where in it."""
    for name, spans in arrays.items():
        for at, one in enumerate(_texts(body, spans)):
            if MARK in one:
                return name, at
    raise ValueError("a body that was made with a mark has none")


def _texts(body: str, spans: list[tuple[int, int]]) -> list[str]:
    return [body[begin:end] for begin, end in spans]


def _arrays(body: str) -> Arrays:
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
