"""`ask`: talk to the built-in agent in a lasting conversation, with one message, or line by line on a terminal."""

from __future__ import annotations

import asyncio
import select
import signal
import sys
from collections.abc import Callable, Sequence

import click

from harness.base import console, errors
from harness.base.errors import UsageFault
from harness.builtin.events import CallEvent, Event, Reply, SummaryEvent, TextEvent, WaitEvent, WarningEvent
from harness.builtin.loop.loop import Limits
from harness.builtin.sessions import folder, log
from harness.builtin.sessions.agent import HarnessAgent
from harness.cli import _mission_verbs, _values
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.state.layout import command
from harness.workplace import run_detection

TYPE_CHECKING = False
if TYPE_CHECKING:  # only for types: the session loads it
    from harness.builtin.tools.tool import Question

SESSION = "default"
ASKED = [
    "write_file",
    "edit_file",
    "execute",
]  # need a person's permission, unless a rule of the session permits them
LOOK_SECONDS = 0.2
PATIENT_SECONDS = 3.0  # until a command that waits for input tells the person
WAITS = "· waiting for the end of standard input; if there is no input: < /dev/null"
MAX_PIPED_BYTES = 1_000_000  # bytes
TOO_LARGE = (
    f"Standard input has more than {MAX_PIPED_BYTES:,} bytes. Write it to a file in this folder, and mention the file."
)
MAX_QUESTION_CHARS = 2000  # characters of a permission request
CODES = {
    "ok": errors.DONE,
    log.INTERRUPTED: errors.INTERRUPTED,
    log.CANCELLED: errors.INTERRUPTED,
    "killed": errors.COST_CAP,
    "limit": errors.BUSY,
    "auth": errors.UNAVAILABLE,
    "config": errors.BROKEN,
}
HINT = "Ctrl-C interrupts an answer, Ctrl-D ends the conversation for now."


@click.command()
@click.argument("words", nargs=-1, metavar="[WORDS...]")
@click.option("--session", default=SESSION, metavar="S", help="The conversation to continue; a new name starts one.")
@click.option("--user", default="", metavar="U", help="The user; default: `user` of config.toml, or HARNESS_USER.")
@click.option("--agent", default="", metavar="A", help="The role of the agent; for a new conversation.")
@click.option("--model", default="", metavar="M", help="The model, instead of that in config.toml.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Cost limit of this call.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Token limit of this call.")
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Request limit of this call.")
@as_json
def ask(
    words: tuple[str, ...],
    session: str,
    user: str,
    agent: str,
    model: str,
    max_cost: float | None,
    max_tokens: int | None,
    max_steps: int | None,
    as_json: bool,
) -> int:
    """Talk to the built-in agent about this folder. Piped input is context (git diff | harness ask "review this"), or, without
    WORDS, the message; on a terminal without WORDS the conversation is line by line."""
    layout = here()
    run_detection.refuse(layout, "ask")
    text = _with_context(" ".join(words), _piped())
    terminal = bool(sys.stdin) and sys.stdin.isatty() and sys.stdout.isatty()
    if not text.strip() and not (terminal and not words):
        raise UsageFault(f"The message is empty. Use: {command('ask')} WORDS")
    if warning := folder.not_committed(layout):
        console.print_error(warning)
    talk = Terminal(terminal and not as_json, quiet=as_json)
    if terminal:
        folder.offer(layout, user, talk.accepts)
    folder.check(layout)
    limits = folder.limits(layout, max_cost, max_tokens, max_steps)
    who = folder.user(layout, user)
    name, permit = agent or folder.agent_of(layout, who, session), talk.permit if terminal else None
    made = folder.agent(layout, name, model, permit, _mission_verbs.tools(layout))
    with asyncio.Runner() as runner:
        try:
            one = AskSession(made, talk, runner, session, who, limits)
            return one.said(text, as_json=as_json) if text.strip() else one.lines()
        finally:
            runner.run(made.close())


def _piped() -> str:
    """Piped standard input; invalid UTF-8 becomes `\\xe4`. Raises UsageFault if it is too large."""
    if not sys.stdin or sys.stdin.isatty():  # None if it is closed
        return ""
    if not select.select([sys.stdin], [], [], PATIENT_SECONDS)[0]:
        console.print_error(WAITS)
    data = sys.stdin.buffer.read(MAX_PIPED_BYTES + 1)
    if len(data) > MAX_PIPED_BYTES:
        raise UsageFault(TOO_LARGE)
    return data.decode("utf-8", "backslashreplace")


def _with_context(text: str, piped: str) -> str:
    """The message: the words, followed by the piped input."""
    return f"{text}\n\n<stdin>\n{piped}\n</stdin>" if text.strip() and piped.strip() else text or piped


class AskSession:
    """A session on this command line."""

    def __init__(
        self, agent: HarnessAgent, talk: Terminal, runner: asyncio.Runner, session: str, user: str, limits: Limits
    ) -> None:
        self.agent, self.talk, self.runner, self.session = agent, talk, runner, session
        self.user, self.limits = user, limits

    def said(self, text: str, *, as_json: bool = False) -> int:
        """One call; returns its exit code."""
        reply = self.runner.run(self._call(text))
        if as_json:
            _values.echo(reply)
        else:
            self.talk.end(reply)
        return CODES.get(reply.outcome, errors.NEGATIVE)

    async def _call(self, text: str) -> Reply:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            return await self.agent.call(
                text, session_id=self.session, user_id=self.user, report=self.talk.show, limits=self.limits
            )
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        self.agent.interrupt(self.session, self.user)

    def lines(self) -> int:
        """Converse line by line, until the end of the input."""
        console.print_line(f"{self.agent.name}, session {self.session}. {HINT}")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        while True:
            try:
                text = self._line("> ")
                if not text:
                    console.print_line("")
                    return errors.DONE
                if text.strip():
                    self.said(text.rstrip("\n"))
                    signal.signal(signal.SIGINT, signal.default_int_handler)
            except KeyboardInterrupt:
                console.print_line("")

    @staticmethod
    def _line(prompt: str) -> str:
        """A typed line with its newline; "" at the end of the input.

        Not `input`: it notices a Ctrl-C between its prompt and its read only at the next line.
        """
        sys.stdout.write(prompt)
        sys.stdout.flush()
        while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            pass
        return sys.stdin.readline()


class Terminal:
    """Shows a call: on a terminal its text and its steps as they arrive; else its answer at the end."""

    def __init__(self, live: bool, *, quiet: bool = False) -> None:
        self.live, self.quiet, self.open = live, quiet, False

    def show(self, event: Event) -> None:
        """Show an event of the call."""
        if isinstance(event, TextEvent) and self.live:
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
        if isinstance(event, CallEvent) and not self.quiet:
            about = " ".join(event.arguments.values())
            return f"{event.name} {' '.join(about.split())[:100]}".rstrip()
        if isinstance(event, WaitEvent) and not self.quiet:
            return f"waits: {event.why}"
        if isinstance(event, SummaryEvent) and not self.quiet:
            return f"the conversation {f'could not be compacted: {event.failed}' if event.failed else 'was compacted'}"
        return ""

    def _close(self) -> None:
        if self.open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self.open = False

    def end(self, reply: Reply) -> None:
        """Show the result of the call."""
        self._close()
        if not self.live and reply.text:
            console.print_line(reply.text)
        if reply.outcome != "ok":
            console.print_error(f"harness: {reply.outcome}{': ' if reply.reason else ''}{reply.reason}")

    def accepts(self, rows: Sequence[str]) -> bool:
        """Ask the person whether the repository's grants may be used."""
        console.print_error("This folder contains grants that need your acceptance:")
        for row in rows:
            console.print_error(console.sanitise(f"  {row}"))
        sys.stderr.write("accept all of them, until they change? [y]es, [n]o: ")
        sys.stderr.flush()
        return folder.answered(sys.stdin.readline()) != folder.REFUSED

    def permit(self, question: Question, stopped: Callable[[], bool]) -> str:
        """Ask the person on the terminal, in the thread of the call."""
        self._close()
        console.print_error(f"{question.tool}: {question.about[:MAX_QUESTION_CHARS]}\n(by the rule {question.rule})")
        sys.stderr.write("permit it? [y]es, [n]o, [a]lways: ")
        sys.stderr.flush()
        while not stopped():
            if select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
                return folder.answered(sys.stdin.readline())
        sys.stderr.write("\n")
        return folder.REFUSED
