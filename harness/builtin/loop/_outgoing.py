"""A request on its way out, in any format: who is notified of it first, which bytes it carries, and why it cannot be made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import httpx2

from harness.base import encoding
from harness.base.errors import HarnessError
from harness.builtin.loop.exchange import CONFIG, ModelFault, RequestSent, Sent

LONGEST_FAULT = 400  # characters of what a vendor or the library says
NOT_THERE = (404, 405)  # of an address where no model is; a web page with it is that of another server


class OutgoingRequest:
    """How an outgoing request is handled: the function that is called before it is sent, and whether only its `body` is kept.
    `fault`: the exception of that function, which is not one of the model. `begun`: whether a connection was used."""

    fault: Exception | None = None
    begun = False
    answer: httpx2.Response | None = None
    address = ""  # of the answer, without what may be secret

    def __init__(self, sent: RequestSent, *, only_kept: bool = False) -> None:
        self.sent, self.only_kept, self.body = sent, only_kept, b""

    async def uses(self, *_: object) -> None:
        """Called for each step of a connection."""
        self.begun = True

    async def ended(self) -> None:
        """Nobody reads the answer any further: the library leaves it open where it cannot make anything of it."""
        if self.answer is not None:
            await self.answer.aclose()


current: ContextVar[OutgoingRequest] = ContextVar("current")  # what this task sends


class RequestRecorder:
    """The event hooks that see each request before it is sent."""

    def __init__(self, by: str) -> None:
        self.by = by

    async def goes(self, request: httpx2.Request) -> None:
        """Tell who asked, and wait for that."""
        going, data = current.get(), request.content
        request.extensions["trace"] = going.uses
        for name, text in request.headers.items():
            if text != text.strip() or not text.isprintable():
                raise ValueError(f"the value of the header {name} has a character that no header can have")
        path = request.url.raw_path.decode()
        try:
            waits = going.sent(Sent(path=path, digest=encoding.digest(data), bytes=len(data), by=self.by))
            if waits is not None:
                await waits
        except (HarnessError, OSError) as fault:
            going.fault = fault
            raise
        if going.only_kept:
            going.body = data
            raise httpx2.RequestError("nothing is sent", request=request)


async def comes_in(response: httpx2.Response) -> None:
    """Keep hold of the answer. A redirect is that of a wrong address, and so is a web page whose status says nothing else."""
    going, page = current.get(), "text/html" in response.headers.get("content-type", "")
    going.address = str(response.url.copy_with(userinfo=b"", query=None))
    what = "answers with a web page" if page and (response.is_success or response.status_code in NOT_THERE) else ""
    if response.has_redirect_location:
        what = f"redirects to {response.headers['location']}"
    if what:
        raise ModelFault(CONFIG, f"{going.address} {what} (status {response.status_code}): is base_url right?")
    going.answer = response


def unmade(fault: Exception, parameters: dict[str, Any], what: str = "request") -> ModelFault:
    """Why the client or a request cannot be made, before a connection: names the settings that may be the cause."""
    vendor, ends = parameters["model"].partition(":")[0].partition("-")[0].upper(), ""
    if what != "request":  # certificates, or proxies
        vendor, ends = ("SSL", "") if isinstance(fault, OSError) else ("", "_PROXY")
    named = [one for one in sorted(os.environ) if one.startswith(vendor) and one.upper().endswith(ends)]
    named += ["base_url"] * bool(parameters.get("base_url") and vendor != "SSL")
    words = f"the {what} cannot be made: {line(str([*causes(fault)][-1])) or type(fault).__name__}"
    return ModelFault(CONFIG, words + (f" (see {', '.join(named)})" if named else ""))


def line(words: str) -> str:
    """The words on one line, of bounded length."""
    return " ".join(words.split())[:LONGEST_FAULT]


def causes(fault: BaseException | None) -> Iterator[BaseException]:
    """The failure, what caused that, and so on."""
    while fault is not None:
        yield fault
        fault = fault.__cause__
