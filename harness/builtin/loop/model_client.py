"""The wire formats of all vendors, by pydantic_ai; the only module that imports it. It takes a second, so only the child does.

An answer is kept as what the library needs to send it again, without what it derives.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage
from pydantic_core import from_json

from harness.builtin.loop import _gate, _outgoing
from harness.builtin.loop._outgoing import OutgoingRequest, RequestRecorder, causes, comes_in, line, unmade
from harness.builtin.loop.exchange import (
    AUTH,
    BROKEN,
    CONFIG,
    LIMIT,
    REFUSED,
    Alive,
    Answer,
    Call,
    Message,
    ModelFault,
    Request,
    RequestSent,
    Sent,
    said,
)
from harness.mission import usage
from harness.mission.usage import Usage

if TYPE_CHECKING:  # of the extra: only their types are meant
    from pydantic_ai.messages import ModelMessage, ModelResponseStreamEvent
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.settings import ModelSettings

LIBRARY = "pydantic-ai-slim"
THEN = datetime(1970, 1, 1, tzinfo=UTC)  # of an answer that is sent again: no vendor is told when it was
NOT_KEPT = ("timestamp", "usage", "kind", "run_id", "conversation_id", "metadata", "provider_url", "state")
CONNECT_SECONDS = 10.0
UNLIMITED = httpx2.Limits(max_connections=None)  # no conversation waits for the model of another
BROKEN_OFF = "the answer broke off before its end ({})"
NO_JSON = "INVALID_JSON"  # the library's own key for arguments that are none
SETTINGS = {"temperature": "temperature", "max_output_tokens": "max_tokens", "cache_key": "openai_prompt_cache_key"}
NO_KEY = "none"  # sent where an address of one's own needs no key
# the keys under which vendors give the reason of a refusal, the most detailed one first
REFUSALS = ("refusal", "block_reason_message", "block_reason", "finish_reason")
MARKED = "anthropic:"  # models whose requests mark what is cached
TOO_LARGE = 413  # the status of a request with more bytes than its vendor takes
# what a broken answer, or a setting, makes of the library
MALFORMED = (ValueError, LookupError, AttributeError, TypeError, RuntimeError, ArithmeticError, httpx2.InvalidURL)
# of a failure, the first that fits: its outcome, and whether it is worth another try
OUTCOMES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, bool], ...] = (
    (exceptions.ModelRateLimitError, LIMIT, False),
    (exceptions.ModelQuotaExceededError, AUTH, False),
    (exceptions.ModelAuthenticationError, AUTH, False),
    (exceptions.ModelContextWindowExceededError, BROKEN, False),
    (exceptions.ModelRequestRejectedError, CONFIG, False),
    ((exceptions.ModelAPIError, httpx2.HTTPError, TimeoutError, OSError), LIMIT, True),
    (exceptions.ContentFilterError, BROKEN, False),
    (exceptions.UserError, CONFIG, False),
    (exceptions.UnexpectedModelBehavior, LIMIT, True),
    ((exceptions.AgentRunError, *MALFORMED), BROKEN, True),
)
FURTHER = "For further information"  # of what the library says
FAULTS = (exceptions.AgentRunError, exceptions.UserError, httpx2.HTTPError, TimeoutError, OSError, *MALFORMED)


class ModelClient:
    """A model at its vendor. `parameters`: `model` (its vendor, a colon, its name), and perhaps `base_url`, `temperature`,
    `max_output_tokens`, `cache_key`, `stable_chars` and `rules`; `key`: "" for none, from one of the variables `names`;
    `seconds`: of a request."""

    def __init__(self, parameters: dict[str, Any], key: str, seconds: float, names: Sequence[str] = ()) -> None:
        self.parameters, self.key, self.seconds, self.shares = parameters, key.strip(), seconds, False
        recorder = RequestRecorder(f"{LIBRARY} {version(LIBRARY)}")
        hooks: dict[str, list[Any]] = {"request": [recorder.goes], "response": [comes_in]}
        try:
            timeout = httpx2.Timeout(seconds, connect=CONNECT_SECONDS)
            self._client = httpx2.AsyncClient(timeout=timeout, event_hooks=hooks, limits=UNLIMITED)
            self._theirs = _model(parameters, self.key, self._client, f": {' or '.join(names)}" if names else "")
        except (*FAULTS, ImportError) as fault:
            raise unmade(fault, parameters, "client of the model") from fault

    def another(self, parameters: dict[str, Any]) -> ModelClient:
        """One for another conversation: of the same model over the same connections, which the first one closes; else new."""
        if parameters["model"] != self.parameters["model"]:
            return ModelClient(parameters, self.key, self.seconds)
        made = copy(self)
        made.parameters, made.shares = parameters, True
        return made

    async def ask(self, request: Request, sent: RequestSent, alive: Alive) -> Answer:
        """Send it once; see exchange.Model."""
        return await self._asked(request, OutgoingRequest(sent), alive)

    async def _asked(self, request: Request, going: OutgoingRequest, alive: Alive) -> Answer:
        _outgoing.current.set(going)
        try:
            return self._answer(await self._streamed(request, alive))
        except FAULTS as fault:
            await going.ended()
            raise going.fault or _fault(fault, None if going.begun else unmade(fault, self.parameters)) from fault

    async def _streamed(self, request: Request, alive: Alive) -> ModelResponse:
        settings, tools = self._settings(), _tools(request)
        asked = model_request_stream(
            self._theirs, _history(request), model_settings=settings, model_request_parameters=tools
        )
        async with asked as stream:
            async for event in stream:
                alive(_piece(event))
        return stream.get()

    async def body(self, request: Request) -> tuple[Sent, bytes]:
        """The request that `ask` would send, without sending it."""
        found = list[Sent]()
        going = OutgoingRequest(found.append, only_kept=True)
        try:
            await self._asked(request, going, lambda _: None)
        except ModelFault:
            if not found:
                raise
        return found[0], going.body

    async def close(self) -> None:
        if not self.shares:
            await self._client.aclose()

    def calls(self, message: Message) -> list[Call]:
        return [_call(part) for part in _response(message).parts if isinstance(part, ToolCallPart)]

    def cost(self, used: Usage) -> float | None:
        """See exchange.Model; a list price is that of the vendor's own address."""
        cached, written = used.cache_read or 0, used.cache_write or 0
        counts = RequestUsage(
            input_tokens=(used.input or 0) + cached + written,
            cache_read_tokens=cached,
            cache_write_tokens=written,
            output_tokens=used.output or 0,
        )
        return self._list_price(
            ModelResponse(parts=[], usage=counts, model_name=used.model, provider_name=self._theirs.system)
        )

    def _list_price(self, response: ModelResponse) -> float | None:
        if self.parameters.get("base_url"):
            return None
        try:
            return round(float(response.cost().total_price), 9)
        except (LookupError, ValueError, AssertionError):  # a model that the price data does not have
            return None

    def _settings(self) -> ModelSettings:
        given: dict[str, Any] = {"max_retries": 0, "cache": True, "request_timeout": self.seconds}
        known = {theirs: self.parameters.get(ours) for ours, theirs in SETTINGS.items()}
        given |= {name: one for name, one in known.items() if one not in (None, "")}
        return given  # type: ignore[return-value]  # settings of one vendor, which the others pass over

    def _answer(self, response: ModelResponse) -> Answer:
        """Raises ModelFault for an answer that breaks off."""
        details, used = response.provider_details or {}, self._usage(response)
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        if response.finish_reason == REFUSED:
            text = text.strip() or next((str(details[name]) for name in REFUSALS if details.get(name)), REFUSED)
            return Answer(message=said(text), text=text, calls=[], finish=REFUSED, usage=used)
        if response.finish_reason is None or "finish_reason" not in details:  # else the library may have assumed one
            raise ModelFault(LIMIT, BROKEN_OFF.format(details.get("finish_reason", "no finish")), again=True)
        calls = [_call(part) for part in response.parts if isinstance(part, ToolCallPart)]
        return Answer(message=_kept(response), text=text, calls=calls, finish=response.finish_reason, usage=used)

    def _usage(self, response: ModelResponse) -> Usage:
        theirs = response.usage
        cached, written = theirs.cache_read_tokens, theirs.cache_write_tokens
        used = Usage(
            model=response.model_name or self.parameters["model"],
            turns=1,
            input=max(0, theirs.input_tokens - cached - written),
            cache_read=cached,
            cache_write=written,
            output=theirs.output_tokens,
            reasoning=theirs.output_reasoning_tokens,
        )
        cost = self._list_price(response)
        return used if cost is None else used.replace(cost_usd=cost, cost_source=usage.TABLE)


def _piece(event: ModelResponseStreamEvent) -> str:
    """The text of an event; "" for one of another kind."""
    if isinstance(event, PartStartEvent):
        return event.part.content if isinstance(event.part, TextPart) else ""
    part = event.delta if isinstance(event, PartDeltaEvent) else None
    return part.content_delta if isinstance(part, TextPartDelta) else ""


def _model(parameters: dict[str, Any], key: str, client: httpx2.AsyncClient, named: str) -> VendorModel:
    """The library's model; `named`: the variables of its key. Vendors' clients are imported only for their models."""
    vendor, _, name = parameters["model"].partition(":")
    url = parameters.get("base_url") or None
    given: dict[str, Any] = {"base_url": url, "api_key": key or (NO_KEY if url else ""), "http_client": client}
    if not given["api_key"]:
        raise ModelFault(AUTH, f"no key is set{named}")
    if not (key.isascii() and key.isprintable()):
        raise ModelFault(CONFIG, f"the key has a character that no header can have{named}")
    if vendor == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel  # half a second a vendor
        from pydantic_ai.providers.anthropic import AnthropicProvider  # half a second a vendor

        return AnthropicModel(name, provider=AnthropicProvider(**given))
    if vendor == "google":
        from pydantic_ai.models.google import GoogleModel  # half a second a vendor
        from pydantic_ai.providers.google import GoogleProvider  # half a second a vendor

        return GoogleModel(name, provider=GoogleProvider(**given))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # as above
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # other servers know the older name of a setting
    from pydantic_ai.providers.openai import OpenAIProvider  # as above

    if vendor == "openai-responses" or (vendor == "openai" and url is None):
        return OpenAIResponsesModel(name, provider=OpenAIProvider(**given))
    older = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=url is None)
    return OpenAIChatModel(name, provider=OpenAIProvider(**given), profile=older)


def _tools(request: Request) -> ModelRequestParameters:
    made = [
        ToolDefinition(
            name=tool["name"], description=tool["description"], parameters_json_schema=tool["parameters"], strict=False
        )
        for tool in _gate.value(request.tools)
    ]
    return ModelRequestParameters(function_tools=made, instruction_parts=_instructions(request))


def _instructions(request: Request) -> list[InstructionPart] | None:
    """For a vendor with explicit cache marks: the system text in two parts, the one that many conversations share, and the
    rest. Other vendors cache by prefix, and some servers accept only one system message."""
    stable = request.parameters.get("stable_chars")
    if stable is None or not request.parameters["model"].startswith(MARKED):
        return None
    texts = [_gate.value(request.system[:stable]), _gate.value(request.system[stable:].lstrip("\n"))]
    return [InstructionPart(content=text, dynamic=at > 0) for at, text in enumerate(texts) if text]


def _history(request: Request) -> list[ModelMessage]:
    """The messages as theirs. Results in a row are one message."""
    made: list[ModelMessage] = []
    for ours in _gate.passed(request):
        theirs = _message(ours)
        if ours["role"] == "tool" and made and isinstance(made[-1], ModelRequest):
            made[-1] = ModelRequest(parts=[*made[-1].parts, *theirs.parts], timestamp=THEN)
        else:
            made.append(theirs)
    if isinstance(made[-1], ModelRequest):
        made[-1] = ModelRequest(parts=made[-1].parts, instructions=_gate.value(request.system), timestamp=THEN)
    return made


def _message(message: Message) -> ModelMessage:
    if message["role"] == "assistant":
        return _sent_again(_response(message))
    if message["role"] == "user":
        return ModelRequest(parts=[UserPromptPart(content=_content(message), timestamp=THEN)], timestamp=THEN)
    result = ToolReturnPart(
        tool_name=_gate.name(message["name"]),
        content=_content(message),
        tool_call_id=message["id"],
        outcome="failed" if message["failed"] else "success",
        timestamp=THEN,
    )
    return ModelRequest(parts=[result], timestamp=THEN)


def _content(message: Message) -> Any:
    """The text, with the images behind it where there are some."""
    seen = [BinaryContent(data=b64decode(data), media_type=kind) for kind, data in message.get("images", [])]
    return [message["text"], *seen] if seen else message["text"]


def _kept(response: ModelResponse) -> Message:
    """An answer as it is kept: without empty values, and without what is not sent again."""
    row = ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]
    parts = [_with_value(part) for part in row.pop("parts")]
    return {"role": "assistant", "parts": parts, **_with_value({k: v for k, v in row.items() if k not in NOT_KEPT})}


def _with_value(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}


def _response(message: Message) -> ModelResponse:
    row = {key: value for key, value in message.items() if key != "role"}
    made = ModelMessagesTypeAdapter.validate_python([{**row, "kind": "response", "timestamp": THEN}])[0]
    assert isinstance(made, ModelResponse), "an answer is kept as one"
    return made


def _sent_again(response: ModelResponse) -> ModelResponse:
    """An answer with calls that every vendor takes back."""
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            part.tool_name, call = _gate.name(part.tool_name), _call(part)
            part.args = {NO_JSON: call.raw} if call.arguments is None else part.args
    return response


def _call(part: ToolCallPart) -> Call:
    raw = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
    try:
        value = from_json(raw or "{}")
        json.dumps(value, allow_nan=False)
    except ValueError:
        value = None
    return Call(
        id=part.tool_call_id, name=part.tool_name, arguments=value if isinstance(value, dict) else None, raw=raw
    )


def _fault(fault: Exception, local: ModelFault | None) -> ModelFault:
    """The meaning of a failure for the run, `local` before a connection; with a stated wait a retry makes sense."""
    if found := next((one for one in (*causes(fault), local) if isinstance(one, ModelFault)), None):
        return found
    outcome, again = next((outcome, again) for shape, outcome, again in OUTCOMES if isinstance(fault, shape))
    after = getattr(fault, "retry_after", None)
    again = again or (outcome == LIMIT and after is not None)
    if large := getattr(fault, "status_code", None) == TOO_LARGE:
        outcome, again = BROKEN, False
    too_long = large or isinstance(fault, exceptions.ModelContextWindowExceededError)
    return ModelFault(outcome, _words(fault), after, again=again, too_long=too_long)


def _words(fault: Exception) -> str:
    """The vendor's own sentence where there is one."""
    if not isinstance(fault, FAULTS[: -len(MALFORMED)]):
        return f"the answer cannot be read: {line(str(fault).partition(FURTHER)[0])}"
    body, status = getattr(fault, "body", None), getattr(fault, "status_code", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    where = "" if status else next(filter(None, map(_address, causes(fault))), "")
    if status in _outgoing.NOT_THERE:
        where = f"{_outgoing.current.get().address}: are model and base_url right?"
    words = f"status {status}: {said}" if status and said else str(fault) or type(fault).__name__
    return f"{line(words)}{where and f' ({where})'}"


def _address(fault: BaseException) -> str:
    """The address of a request that could not be sent; "" for any other failure."""
    with suppress(RuntimeError):  # a failure that knows of no request
        if isinstance(fault, httpx2.TransportError):
            return f"{fault.request.url.scheme}://{fault.request.url.netloc.decode()}"
    return ""
