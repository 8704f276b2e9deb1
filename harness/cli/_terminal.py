"""How `ask` shows a call, and asks its person."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Sequence
from typing import Any

from harness.base import console, encoding
from harness.builtin.events import CallEvent, EndEvent, Event, Reply, SummaryEvent, TextEvent, WaitEvent, WarningEvent
from harness.builtin.sessions import folder
from harness.builtin.tools.tool import Question
from harness.cli import _values

POLL_SECONDS = 0.2
MAX_QUESTION_CHARS = 2000  # of what a request for permission is about
TEXT, JSON, EVENTS = "text", "json", "events"


class Terminal:
    """Shows a call in one of the forms: TEXT as it arrives where somebody looks on (`live`), else at the end; JSON, the reply
    as one value; EVENTS, each event as a JSON line."""

    def __init__(self, live: bool, form: str = TEXT) -> None:
        self.live, self.form, self.open = live and form == TEXT, form, False

    def show(self, event: Event) -> None:
        """Show an event of the call."""
        if self.form == EVENTS:
            console.print_line(encoding.compact(event.asdict()))
        elif isinstance(event, TextEvent) and self.live:
            sys.stdout.write(console.sanitise(event.text))
            sys.stdout.flush()
            self.open = True
        elif line := self._line(event):
            self._close()
            console.print_error(f"· {line}")

    def _line(self, event: Event) -> str:
        """The line of an event; "" for one that is not shown."""
        if isinstance(event, WarningEvent):
            return event.text
        if isinstance(event, CallEvent) and self.form == TEXT:
            about = " ".join(event.arguments.values())
            return f"{event.name} {' '.join(about.split())[:100]}".rstrip()
        if isinstance(event, WaitEvent) and self.form == TEXT:
            return f"waits: {event.why}"
        if isinstance(event, SummaryEvent) and self.form == TEXT:
            return f"the conversation {f'could not be compacted: {event.failed}' if event.failed else 'was compacted'}"
        return ""

    def _close(self) -> None:
        if self.open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self.open = False

    def end(self, reply: Reply) -> None:
        """Show the result of the call, and on stderr what it cost."""
        self._close()
        if self.form == JSON:
            _values.echo(_plain(reply))
        elif self.form == EVENTS:
            end = EndEvent(reply=reply)
            console.print_line(encoding.compact({**end.asdict(), "reply": _plain(reply)}))
        elif not self.live and reply.text:
            console.print_line(reply.text if reply.output is None else encoding.compact(reply.output))
        if reply.outcome != "ok":
            console.print_error(f"harness: {reply.outcome}{': ' if reply.reason else ''}{reply.reason}")
        if self.form == TEXT:
            console.print_error(f"· {cost(reply.usage)}")

    def accepts(self, rows: Sequence[str]) -> bool:
        """Ask the person whether the repository's grants may be used."""
        console.print_error("This folder contains grants that need your acceptance:")
        for row in rows:
            console.print_error(f"  {row}")
        sys.stderr.write("accept all of them, until they change? [y]es, [n]o: ")
        sys.stderr.flush()
        return folder.answered(sys.stdin.readline()) != folder.REFUSED

    def permit(self, question: Question, stopped: Callable[[], bool]) -> str:
        """Ask the person on the terminal, in the thread of the call."""
        self._close()
        console.print_error(f"{question.tool}: {question.about[:MAX_QUESTION_CHARS]}")
        if question.preview:
            console.print_error(question.preview)
        console.print_error(f"(by the rule {question.rule})")
        sys.stderr.write("permit it? [y]es, [n]o, [a]lways: ")
        sys.stderr.flush()
        while not stopped():
            if select.select([sys.stdin], [], [], POLL_SECONDS)[0]:
                return folder.answered(sys.stdin.readline())
        sys.stderr.write("\n")
        return folder.REFUSED


def _plain(reply: Reply) -> dict[str, Any]:
    return {name: value for name, value in reply.asdict().items() if name != "output" or value is not None}


def cost(usage: dict[str, Any]) -> str:
    """Tokens and cost, in words."""
    sent = sum(usage.get(name) or 0 for name in ("input", "cache_read", "cache_write"))
    price = f"{usage['cost_usd']:.4f} USD" if usage.get("cost_usd") is not None else "cost not known"
    about = ", estimated" if usage.get("estimated") else ""
    return f"{sent:,} tokens in, {usage.get('output') or 0:,} out{about}; {price}"
