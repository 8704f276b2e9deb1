"""What has come of one answer so far, with everything made clean that comes from outside: texts, counts, times, statuses."""

from __future__ import annotations

import codecs
import time

from harness.agents.base import WAITS, Event, Failed, Finished
from harness.base import redaction
from harness.model.usage import MOST, Usage, plus
from harness.store import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from harness.process.supervise import Ended

LONGEST_REPLY = 8 * 1024 * 1024  # of a program that answers in plain text; its end counts
LONGEST_BLOCK = 64 * 1024  # characters of a vendor's own count that are kept
MOST_PIECES = 4096
DEEPEST = 20  # levels of a vendor's count that are kept: what is written and cannot be read back would stop the mission
MILLISECONDS = 10**11  # what is later than the year 5000 in seconds is meant in milliseconds
DID_CHARS = NAME_CHARS = 200
REASON_CHARS = 400
LAST_WORDS_CHARS = 200
REFUSED = "it gave up at a tool that it was not allowed to use; see trust in config.toml"
SO_FAR = {"so_far": True}  # in place of the vendor's block, which grows with each message; the raw events have it


class Answer:
    """What has come of one answer so far; the vendor's `read` fills it in. `text`: the output of a program that tells no
    events; `memory` is the reader's own; `model`: the configured one, until the vendor tells another. What comes from
    outside is made clean here: texts, counts, names."""

    def __init__(self, agent: str, model: str = "") -> None:
        self.said = ""
        self.usage = Usage(agent=agent, model=model)
        self.error = ""
        self.began = self.waiting = self.given_up = False
        self.until = 0
        self.denied: list[str] = []
        self.first_words = ""
        self.last_lines: list[str] = []
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may come in two pieces
        self.text = bytearray()
        self.memory: dict[str, Any] = {}
        self.pieces: list[str] = []
        self.block: dict[str, Any] | None = None
        self.whole = False
        self.counted: dict[str, dict[str, int | None]] = {}
        self.sum: dict[str, int] = {}

    @property
    def last_words(self) -> str:
        """What it said beside its events, in short: its first line and its last ones."""
        return " / ".join(filter(None, [self.first_words, " / ".join(self.last_lines)[-LAST_WORDS_CHARS:]]))

    def says(self, text: str) -> Event:
        """A whole message of the agent; the last one is the reply."""
        self.said = clean(text)
        return Event(kind="said", text=self.said)

    def adds(self, piece: str) -> None:
        """A piece of a message that comes in pieces."""
        self.pieces.append(piece)
        if len(self.pieces) > MOST_PIECES:
            self.pieces[:] = ["".join(self.pieces)[-LONGEST_REPLY:]]

    def said_whole(self) -> Iterator[Event]:
        """The message that its pieces made, where there were any."""
        if whole := "".join(self.pieces)[-LONGEST_REPLY:]:
            self.pieces.clear()
            yield self.says(whole)

    def knows(self, **told: object) -> None:
        """The model or the session, where the vendor tells it."""
        known = {key: redaction.mask(clean(str(value)))[:NAME_CHARS] for key, value in told.items() if value}
        self.usage = self.usage.replace(**known)

    def does(self, what: str, given: object) -> Event:
        """A tool that the agent uses, in a few words: the tool, and the first thing it was given."""
        values = list(given.values()) if isinstance(given, dict) else given if isinstance(given, list) else [given]
        words = f"{what} {' '.join(str(value) for value in values[:1])}"[:DID_CHARS]
        return Event(kind="did", text=clean(" ".join(words.split("\n"))))

    def waits(self, why: str) -> Iterator[Event]:
        """The vendor cannot be reached and is asked again: no end yet, and no sign of life; told where it is news."""
        before, self.error, self.waiting = self.error, clean(why[:REASON_CHARS]), True
        if self.error != before:
            yield Event(kind="output", text=f"{WAITS}{self.error}\n")

    def lets_in_after(self, told: object) -> None:
        """The vendor says how many seconds to wait."""
        self.until = int(time.time()) + when(told) if when(told) else 0

    def used(self, block: dict[str, Any], **counts: Any) -> Event:
        """What the vendor counted of the whole answer: its own block, and the counts in our words. What is no count (a text,
        below 0, without end) is unknown; none goes down."""
        self.whole = True
        return self._counts(block, counts)

    def used_so_far(self, block: dict[str, Any], **counts: Any) -> Event:
        """As `used`, of the messages until now; their block does not stand in for that of the whole answer."""
        return self._counts((self.whole and self.block) or block, counts)

    def _counts(self, block: dict[str, Any], counts: dict[str, Any]) -> Event:
        known = {key: value for key, given in counts.items() if (value := count(given, key)) is not None}
        known = {key: max(value, getattr(self.usage, key) or 0) for key, value in known.items()}
        self.block = block
        self.usage = self.usage.replace(**known)
        if "cost_usd" in known:
            self.usage = self.usage.replace(cost_source="reported")
        so_far = self.usage.replace(raw=[{"agent": self.usage.agent, "block": SO_FAR}])
        return Event(kind="usage", text=files.dump_json(so_far.asdict()).decode().rstrip("\n"))

    def summed(self, message: object, block: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
        """{our name: the sum over all messages so far}. A message, known by its id, may tell again what it used; then the
        last word counts. One without an id is one of its own."""
        key = str(message) if message else f"{len(self.counted)}."
        before, self.counted[key] = self.counted.get(key, {}), sums([block], names)
        for name, number in self.counted[key].items():
            if number is not None:
                self.sum[name] = self.sum.get(name, 0) + number - (before.get(name) or 0)
        return self.sum

    def finished(self, reply: str | None = None) -> Finished:
        """The good end."""
        denied = f"it was not allowed: {', '.join(self.denied[:5])}" if self.denied else ""
        return Finished(reply=self.said if reply is None else clean(reply), usage=self.spent(), remark=denied)

    def failed(self, outcome: str, reason: str) -> Failed:
        """The other end."""
        return Failed(outcome=outcome, reason=clean(reason[:REASON_CHARS]), usage=self.spent(), until=self.until)

    def without_result(self, ended: Ended) -> Failed:
        """A program that exits without having told what became of it; one that never began cannot work as it is set up."""
        how = f"exit {ended.exit}" if ended.exit is not None else f"signal {ended.signal}"
        more = self.error or self.last_words
        outcome = "agent_error" if self.began or not ended.exit else "config"
        return self.failed(outcome, f"it ended with {how} and without a result{': ' + more if more else ''}")

    def by_exit(self, ended: Ended) -> Finished | Failed:
        """Where no event tells the end: a clean exit after a message is one; without a word an answer was given up."""
        if ended.exit == 0 and self.given_up:
            return self.failed("config", f"{REFUSED}{': ' + self.last_words if self.last_words else ''}")
        return self.finished() if ended.exit == 0 and self.said else self.without_result(ended)

    def spent(self) -> Usage | None:
        """The usage with the vendor's own block, masked, and left out where it is large; None where nothing was told."""
        if self.block is None:
            return None
        block = tidy(self.block)
        size = len(files.dump_json(block))
        block = block if size <= LONGEST_BLOCK else {"left_out_bytes": size}
        return self.usage.replace(raw=[{"agent": self.usage.agent, "block": block}])


def tidy(value: Any, depth: int = 0) -> Any:
    """A vendor's JSON value as it can be kept: secrets masked, no number without an end, nothing below DEEPEST levels."""
    if isinstance(value, str):
        return redaction.mask(clean(value))
    if isinstance(value, dict | list) and depth == DEEPEST:
        return "[deeper]"
    if isinstance(value, dict):
        return {tidy(key): tidy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [tidy(inner, depth + 1) for inner in value]
    return None if isinstance(value, float) and value - value != 0 else value


def mapping(value: object) -> dict[str, Any]:
    """An object that a vendor told, empty where it told something else: an odd ornament takes no verdict with it."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """The objects of a list that a vendor told."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def clean(text: str) -> str:
    """The text without halves of characters, which JSON may bring and no file takes."""
    return text.encode("utf-8", "replace").decode()


def count(value: object, name: str = "") -> Any:
    """A number that counts something, or None: whole but for a cost, not below 0, and with an end."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        return None
    return value if name == "cost_usd" else int(value)


def plain(usage: dict[str, Any]) -> dict[str, Any]:
    """Input tokens without what the cache gave: a dialect of these counts holds it, and is known by telling a total."""
    whole, cached = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    if "total_tokens" not in usage or whole is None or not cached:
        return usage
    return {**usage, "input_tokens": max(0, whole - cached)}


def when(told: object) -> int:
    """A time that a vendor states, in unix seconds: it may be given as a text, or in milliseconds; 0 where it is none."""
    try:
        at = float(told) if isinstance(told, str | int | float) else 0.0
    except (ValueError, OverflowError):
        return 0
    at = at / 1000 if at > MILLISECONDS else at
    return int(at) if 0 < at < MILLISECONDS else 0


def local_time(*words: str | None) -> int:
    """A time in words (`Jan`, `1`, `2100`, `3:05 PM`; of today without the first three) in unix seconds; 0 where it is none."""
    said = " ".join(word for word in words if word)
    said = said if words[0] else f"{time.strftime('%b %d %Y')} {said}"
    try:
        return int(time.mktime(time.strptime(said, "%b %d %Y %I:%M %p")))
    except (ValueError, OverflowError):
        return 0


def outcome_of(told: object) -> str:
    """The outcome of an error with this HTTP status (RFC 9110 and vendors' own): who can do something about it."""
    status = int(told) if isinstance(told, int) or (isinstance(told, str) and told.isdecimal() and len(told) < 4) else 0
    if status in (401, 402, 403):
        return "auth"
    if status in (408, 409, 425, 429) or status >= 500:
        return "limit"
    return "config" if status in (400, 404, 422) else "agent_error"


def sums(blocks: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, int | None]:
    """{our name: the sum over all blocks of what the vendor calls `names`}; None where no block tells one."""
    found: dict[str, int | None] = dict.fromkeys(names)
    for block in blocks:
        for ours, theirs in names.items() if isinstance(block, dict) else ():
            found[ours] = plus(found[ours], count(block.get(theirs)))
    return found
