"""The state of one answer; it sanitises everything from outside: texts, counts, times, statuses."""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess
from harness.base import encoding, faults, redaction
from harness.mission.usage import MAX_COUNT, REPORTED, Usage, plus
from harness.process.supervise import ChildEnd

MAX_REPLY_BYTES = 8 * 1024 * 1024  # of a plain-text answer; a longer one keeps its end
MAX_BLOCK_BYTES = 64 * 1024  # bytes kept of a vendor's usage block
MAX_PIECES = 4096
DEEPEST = 20  # levels kept of a vendor's usage block: unreadable JSON would stop the mission
MILLISECONDS = 10**11  # later than the year 5000 in seconds, so the value is in milliseconds
DID_CHARS = NAME_CHARS = 200
REASON_CHARS = 400
LAST_WORDS_CHARS = 200
REFUSED = "it gave up at a tool that it was not allowed to use; see trust in config.toml"
ENDED = re.compile(r"(?:Exit code|(exit|signal)) (\d+).*\n?")  # a line before the output of a command
SO_FAR = {"so_far": True}  # replaces the vendor's block, which grows with each message; the raw events keep it


class AnswerState:
    """The state of one answer; the vendor's `read` fills it. `text`: the output of a program without events; `memory`
    belongs to the reader; `lacks`: which of its tools were not available, in sentences; `commands`: the ids of its commands;
    `failing`: see AgentSuccess, None before the first; `model`: the configured one, until the vendor reports another.
    The methods sanitise texts, counts and names from outside."""

    def __init__(self, agent: str, model: str = "") -> None:
        self.said = ""
        self.usage = Usage(agent=agent, model=model)
        self.error = ""
        self.began = self.waiting = self.given_up = False
        self.until = 0
        self.denied: list[str] = []
        self.lacks: list[str] = []
        self.commands: set[object] = set()
        self.failing: str | None = None
        self.first_words = ""
        self.last_lines: list[str] = []
        decoder = codecs.getincrementaldecoder("utf-8")  # one character may arrive in two chunks
        self.decoder, self.text_decoder = decoder("replace"), decoder("replace")
        self.text = bytearray()
        self.memory: dict[str, Any] = {}
        self.pieces: list[str] = []
        self.block: dict[str, Any] | None = None
        self.whole = False
        self.counted: dict[str, dict[str, int | None]] = {}
        self.sum: dict[str, int] = {}

    @property
    def last_words(self) -> str:
        """The first and last lines of its output other than events."""
        return " / ".join(filter(None, [self.first_words, " / ".join(self.last_lines)[-LAST_WORDS_CHARS:]]))

    def says(self, text: str) -> AgentEvent:
        """Record a whole message of the agent; the last one is the reply."""
        self.said = clean(text)
        return AgentEvent(kind="said", text=self.said)

    def adds(self, piece: str) -> None:
        """Record one piece of a message that arrives in pieces."""
        self.pieces.append(piece)
        if len(self.pieces) > MAX_PIECES:
            self.pieces[:] = ["".join(self.pieces)[-MAX_REPLY_BYTES:]]

    def joined_pieces(self) -> Iterator[AgentEvent]:
        """Join the pieces into a message, if there are any."""
        if whole := "".join(self.pieces)[-MAX_REPLY_BYTES:]:
            self.pieces.clear()
            yield self.says(whole)

    def knows(self, **reported: object) -> None:
        """Record the model or the session as the vendor reports it."""
        known = {key: redaction.received(str(value))[:NAME_CHARS] for key, value in reported.items() if value}
        self.usage = self.usage.replace(**known)

    def does(self, what: str, given: object, call: object = None) -> AgentEvent:
        """A tool call of the agent, with its id, in a few words: the tool and its first argument."""
        self.commands |= {call} if isinstance(given, dict) and "command" in given else set()
        values = list(given.values()) if isinstance(given, dict) else given if isinstance(given, list) else [given]
        words = f"{what} {' '.join(str(value) for value in values[:1])}"[:DID_CHARS]
        return AgentEvent(kind="did", text=clean(" ".join(words.split("\n"))))

    def ran(self, call: object, failed: bool | None, output: object, code: object = None) -> AgentEvent:
        """The result of a tool call: a line with its exit and what it says, then its output. `failed` None: unknown."""
        text = clean("\n".join(str(one.get("text", "")) for one in mappings(output)) or str(output or ""))
        ended = ENDED.match(text)
        body = text[ended.end() :] if ended else text
        line = next(filter(None, map(str.strip, body.split("\n"))), "")[:REASON_CHARS]
        if call in self.commands:
            self.failing = line if failed and self.failing in (None, line) else ""
        how = f"{ended[1] or 'exit'} {ended[2]}" if ended else f"exit {count(code)}" if count(code) is not None else ""
        how = how or {True: "failed", False: "ok", None: ""}[failed]
        said = line if failed is False else faults.of_output(body)
        more = f"\n{body}".rstrip() if body.strip() != said else ""
        return AgentEvent(kind="result", text=(f"{how}  {said[:DID_CHARS]}".strip() or "no output") + more)

    def waits(self, why: str) -> Iterator[AgentEvent]:
        """Record a retry: the vendor is unreachable. No end and no sign of life; only a new reason yields an event."""
        before, self.error, self.waiting = self.error, clean(why[:REASON_CHARS]), True
        if self.error != before:
            yield AgentEvent(kind="waits", text=f"waits: {self.error}\n")

    def set_retry_after(self, value: object) -> None:
        """Record the seconds until a retry, as the vendor states them."""
        self.until = int(time.time()) + when(value) if when(value) else 0

    def used(self, block: dict[str, Any], **counts: Any) -> AgentEvent:
        """Record the vendor's counts for the whole answer: its own block, and the counts by our names. An invalid count (a
        text, negative, infinite) is unknown; no count goes down. `cost_source`: of `cost_usd`, else reported."""
        self.whole = True
        return self._counts(block, counts)

    def used_so_far(self, block: dict[str, Any], **counts: Any) -> AgentEvent:
        """As `used`, for the messages so far; their block does not replace that of the whole answer."""
        return self._counts((self.whole and self.block) or block, counts)

    def _counts(self, block: dict[str, Any], counts: dict[str, Any]) -> AgentEvent:
        source = counts.pop("cost_source", REPORTED)
        known = {key: value for key, given in counts.items() if (value := count(given, key)) is not None}
        known = {key: max(value, getattr(self.usage, key) or 0) for key, value in known.items()}
        self.block = block
        self.usage = self.usage.replace(**known)
        if "cost_usd" in known:
            self.usage = self.usage.replace(cost_source=source)
        so_far = self.usage.replace(raw=[{"agent": self.usage.agent, "block": SO_FAR}])
        return AgentEvent(kind="usage", text=encoding.dump_json(so_far.asdict()).decode().rstrip("\n"))

    def summed(self, message: object, block: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
        """{our name: the sum over all messages so far}. A message id may repeat its usage; the last report counts.
        A message without an id counts as a new one."""
        key = str(message) if message else f"{len(self.counted)}."
        before, self.counted[key] = self.counted.get(key, {}), sums([block], names)
        for name, number in self.counted[key].items():
            if number is not None:
                self.sum[name] = self.sum.get(name, 0) + number - (before.get(name) or 0)
        return self.sum

    def finished(self, reply: str | None = None) -> AgentSuccess:
        """The successful end."""
        denied = [f"it was not allowed: {', '.join(self.denied[:5])}"] if self.denied else []
        remark = "; ".join([*denied, *self.lacks])[:REASON_CHARS]
        said = self.said if reply is None else clean(reply)
        return AgentSuccess(reply=said, usage=self.spent(), remark=remark, failing=self.failing or "")

    def failed(self, outcome: str, reason: str) -> AgentFailure:
        """The failed end."""
        return AgentFailure(outcome=outcome, reason=clean(reason[:REASON_CHARS]), usage=self.spent(), until=self.until)

    def without_result(self, ended: ChildEnd) -> AgentFailure:
        """An exit without a result event; a program that failed before its first event has a wrong configuration."""
        how = f"exit {ended.exit}" if ended.exit is not None else f"signal {ended.signal}"
        more = self.error or self.last_words
        outcome = "agent_error" if self.began or not ended.exit else "config"
        return self.failed(outcome, f"it ended with {how} and without a result{': ' + more if more else ''}")

    def by_exit(self, ended: ChildEnd) -> AgentSuccess | AgentFailure:
        """The end for a program without an end event: a clean exit after a message is success, without one a failure."""
        if ended.exit == 0 and self.given_up:
            return self.failed("config", f"{REFUSED}{': ' + self.last_words if self.last_words else ''}")
        return self.finished() if ended.exit == 0 and self.said else self.without_result(ended)

    def spent(self) -> Usage | None:
        """The usage with the vendor's own block, masked, and omitted if large; None when the vendor reported none."""
        if self.block is None:
            return None
        block = tidy(self.block)
        size = len(encoding.dump_json(block))
        block = block if size <= MAX_BLOCK_BYTES else {"left_out_bytes": size}
        return self.usage.replace(raw=[{"agent": self.usage.agent, "block": block}])


def tidy(value: Any, depth: int = 0) -> Any:
    """A vendor's JSON value in storable form: secrets masked, no infinite number, nothing below DEEPEST levels."""
    if isinstance(value, str):
        return redaction.received(value)
    if isinstance(value, dict | list) and depth == DEEPEST:
        return "[deeper]"
    if isinstance(value, dict):
        return {tidy(key): tidy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [tidy(inner, depth + 1) for inner in value]
    return None if isinstance(value, float) and value - value != 0 else value


def mapping(value: object) -> dict[str, Any]:
    """A vendor's JSON object, empty for any other value: an invalid optional field does not fail the answer."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """The objects in a vendor's list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def clean(text: str) -> str:
    """The text without lone surrogates, which JSON may contain and no file can store."""
    return text.encode("utf-8", "replace").decode()


def count(value: object, name: str = "") -> Any:
    """A valid count, else None: whole (except a cost), not negative, finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return value if name == "cost_usd" else int(value)


def plain(usage: dict[str, Any]) -> dict[str, Any]:
    """Input tokens without cache reads: usage in the other dialect includes them, and has a `total_tokens`."""
    whole, cached = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    if "total_tokens" not in usage or whole is None or not cached:
        return usage
    return {**usage, "input_tokens": max(0, whole - cached)}


def when(value: object) -> int:
    """A vendor's time in unix seconds, from a text or number in seconds or milliseconds; 0 if invalid."""
    try:
        at = float(value) if isinstance(value, str | int | float) else 0.0
    except (ValueError, OverflowError):
        return 0
    at = at / 1000 if at > MILLISECONDS else at
    return int(at) if 0 < at < MILLISECONDS else 0


def local_time(*words: str | None) -> int:
    """A local time in words (`Jan`, `1`, `2100`, `3:05 PM`; today without the first three) in unix seconds; 0 if invalid."""
    said = " ".join(word for word in words if word)
    said = said if words[0] else f"{time.strftime('%b %d %Y')} {said}"
    try:
        return int(time.mktime(time.strptime(said, "%b %d %Y %I:%M %p")))
    except (ValueError, OverflowError):
        return 0


def outcome_of(code: object) -> str:
    """The outcome for an error with this HTTP status (RFC 9110 and vendors' own): it states who can resolve it."""
    status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal() and len(code) < 4) else 0
    if status in (401, 402, 403):
        return "auth"
    if status in (408, 409, 425, 429) or status >= 500:
        return "limit"
    return "config" if status in (400, 404, 422) else "agent_error"


def sums(blocks: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, int | None]:
    """{our name: sum of the vendor's count over all blocks}; None if no block has one."""
    found: dict[str, int | None] = dict.fromkeys(names)
    for block in blocks:
        for ours, theirs in names.items() if isinstance(block, dict) else ():
            found[ours] = plus(found[ours], count(block.get(theirs)))
    return found
