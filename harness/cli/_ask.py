"""`ask`: talk to the built-in agent in a lasting conversation, with one message, or line by line on a terminal."""

from __future__ import annotations

import asyncio
import re
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import click

from harness.base import console, encoding, errors, exits
from harness.base.errors import HarnessError, UsageFault
from harness.base.record import Record
from harness.builtin.events import Reply
from harness.builtin.sessions import folder, log
from harness.builtin.sessions.agent import HarnessAgent
from harness.builtin.sessions.keys import SESSION
from harness.cli import _mission_verbs, _terminal
from harness.cli._terminal import EVENTS, JSON, TEXT, Terminal
from harness.cli._turn_changes import TurnChanges
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.state import files
from harness.state.layout import Layout, command
from harness.workplace import run_detection

PATIENT_SECONDS = 3.0  # until a command that waits for input tells the person
WAITS = "· waiting for the end of standard input; if there is no input: < /dev/null"
MAX_PIPED_BYTES = 1_000_000  # bytes
TOO_LARGE = (
    f"Standard input has more than {MAX_PIPED_BYTES:,} bytes. Write it to a file in this folder, and mention the file."
)
CODES = {
    "ok": errors.DONE,
    log.INTERRUPTED: errors.INTERRUPTED,
    log.CANCELLED: errors.INTERRUPTED,
    log.SHUTDOWN: errors.TERMINATED,
    "killed": errors.COST_CAP,
    "limit": errors.BUSY,
    "auth": errors.UNAVAILABLE,
    "config": errors.BROKEN,
}
HINT = "Ctrl-C interrupts an answer, Ctrl-D ends the conversation for now; /help lists more."
COMMAND = re.compile(r"/[a-z]+")
HELP = """\
/diff      what write_file and edit_file changed in the last turn
/undo      put these files back
/compact   put a summary in the place of the older part of the conversation
/cost      tokens and cost of this session
/quit      end the conversation for now
Lines that begin with / and a word are never sent to a model; put a space before to send one."""
NO_CHANGES = "The file tools changed nothing in the last turn."


class AskOptions(Record):
    """The options of the command."""

    session: str
    user: str
    agent: str
    model: str
    images: tuple[str, ...]
    schema: str | None
    events: bool
    no_save: bool
    max_cost: float | None
    max_tokens: int | None
    max_steps: int | None
    as_json: bool

    @property
    def form(self) -> str:
        """How the call is shown."""
        return EVENTS if self.events else JSON if self.as_json else TEXT


@click.command()
@click.argument("words", nargs=-1, metavar="[WORDS...]")
@click.option("--session", default=SESSION, metavar="S", help="The conversation to continue; a new name starts one.")
@click.option("--user", default="", metavar="U", help="The user; default: `user` of config.toml, or HARNESS_USER.")
@click.option("--agent", default="", metavar="A", help="The role of the agent; for a new conversation.")
@click.option("--model", default="", metavar="M", help="The model, instead of that in config.toml.")
@click.option("-i", "--image", "images", multiple=True, metavar="FILE", help="An image for the message; repeatable.")
@click.option("--schema", metavar="FILE", help="Answer with JSON that is valid for the JSON schema in FILE.")
@click.option("--events", is_flag=True, help="Print each event as a JSON line.")
@click.option("--no-save", is_flag=True, help="Keep nothing of the conversation.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Cost limit of this call.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Token limit of this call.")
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Request limit of this call.")
@as_json
def ask(words: tuple[str, ...], **given: Any) -> int:
    """Talk to the built-in agent about this folder. Piped input is context (git diff | harness ask "review this"), or, without
    WORDS, the message; on a terminal without WORDS the conversation is line by line."""
    layout, options = here(), AskOptions(**given)
    run_detection.refuse(layout, "ask")
    text = _with_context(" ".join(words), _piped())
    terminal = bool(sys.stdin) and sys.stdin.isatty() and sys.stdout.isatty()
    if not text.strip() and not (terminal and not words):
        raise UsageFault(f"The message is empty. Use: {command('ask')} WORDS")
    if warning := folder.not_committed(layout):
        console.print_error(warning)
    talk = Terminal(terminal, options.form)
    if terminal:
        folder.offer(layout, options.user, talk.accepts)
    folder.check(layout)
    with _session(layout, options, talk, person=terminal) as one:
        return one.said(text) if text.strip() else one.lines()


@contextmanager
def _session(layout: Layout, options: AskOptions, talk: Terminal, *, person: bool) -> Iterator[AskSession]:
    """The session of these options, closed at the end; what is not to be saved is removed then."""
    limits = folder.limits(layout, options.max_cost, options.max_tokens, options.max_steps)
    wanted = {"images": options.images, "limits": limits, "output": options.schema and _schema(options.schema)}
    changes, who = TurnChanges(layout.folders.project), folder.user(layout, options.user)
    name = options.agent or ("" if options.no_save else folder.agent_of(layout, who, options.session))
    verbs, permit = _mission_verbs.tools(layout), talk.permit if person else None
    with folder.scratch() if options.no_save else nullcontext("") as scratch, asyncio.Runner() as runner:
        made = folder.agent(layout, name, options.model, permit, verbs, changes.hooks, scratch=scratch)
        try:
            ids = {"session_id": options.session, "user_id": who}
            yield AskSession(made, talk, runner, changes, {**ids, **wanted})
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
    """A session on this command line. `options`: of each call."""

    def __init__(
        self, agent: HarnessAgent, talk: Terminal, runner: asyncio.Runner, changes: TurnChanges, options: dict[str, Any]
    ) -> None:
        self.agent, self.talk, self.runner, self.changes, self.options = agent, talk, runner, changes, options
        self.opening: asyncio.Task[None] | None = None
        self.ids = {name: options[name] for name in ("session_id", "user_id")}
        self.commands = {"/help": self._help, "/diff": self._diff, "/undo": self._undo,
                         "/compact": self._compact, "/cost": self._cost}  # fmt: skip

    def said(self, text: str) -> int:
        """One call; returns its exit code."""
        self.changes.begin()
        reply = self.runner.run(self._call(text))
        self.talk.end(reply)
        self.options["images"] = ()
        return CODES.get(reply.outcome, errors.NEGATIVE)

    async def _call(self, text: str) -> Reply:
        loop = asyncio.get_running_loop()
        exits.handle(signal.SIGINT, lambda: self.agent.interrupt(**self.ids), loop.add_signal_handler)
        exits.handle(signal.SIGTERM, self.agent.shut_down, loop.add_signal_handler)
        try:
            return await self.agent.call(text, report=self.talk.show, **self.options)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            loop.remove_signal_handler(signal.SIGTERM)

    def lines(self) -> int:
        """Converse line by line, until the end of the input."""
        console.print_line(f"{self.agent.name}, session {self.options['session_id']}. {HINT}")
        exits.handle(signal.SIGINT, signal.default_int_handler)
        code = errors.DONE
        while code != errors.TERMINATED:
            try:
                text = self.runner.run(self._typed())
                word = text.split(" ")[0].strip()
                if not text or word == "/quit":
                    console.print_line("")
                    return errors.DONE
                if COMMAND.fullmatch(word):
                    self._command(word)
                elif not text.strip():
                    console.print_line("")
                else:
                    code = self.said(text.rstrip("\n"))
                    exits.handle(signal.SIGINT, signal.default_int_handler)
            except KeyboardInterrupt:
                console.print_line("")
        return code

    async def _typed(self) -> str:
        """A typed line with its newline; "" at the end of the input, an empty line after Ctrl-C. Servers start while the person
        types."""
        loop = asyncio.get_running_loop()
        if self.opening is None:
            self.opening = loop.create_task(self.agent.prepare(**self.ids))
            self.opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # the next call says why
        typed: asyncio.Future[bool] = loop.create_future()

        def settle(line: bool) -> None:
            if not typed.done():
                typed.set_result(line)

        loop.add_reader(sys.stdin, lambda: settle(True))
        exits.handle(signal.SIGINT, lambda: settle(False), loop.add_signal_handler)
        sys.stdout.write("> ")
        sys.stdout.flush()
        try:
            return sys.stdin.readline() if await typed else "\n"
        finally:
            loop.remove_reader(sys.stdin)
            loop.remove_signal_handler(signal.SIGINT)

    def _command(self, word: str) -> None:
        try:
            self.commands.get(word, self._help)()
        except HarnessError as fault:
            console.print_error(f"harness: {fault}")

    def _help(self) -> None:
        console.print_line(HELP)

    def _diff(self) -> None:
        console.print_line(console.sanitise(self.changes.diff()) or NO_CHANGES)

    def _undo(self) -> None:
        console.print_line(console.sanitise("\n".join(self.changes.undo())) or NO_CHANGES)

    def _compact(self) -> None:
        done = self.runner.run(self.agent.compact(**self.ids))
        console.print_line(
            "The conversation is compacted." if done else "There is too little to compact, or it failed."
        )

    def _cost(self) -> None:
        console.print_line(_terminal.cost(self.agent.sessions.state(**self.ids).used))


def _schema(path: str) -> Any:
    """The JSON of a file. Raises UsageFault if there is none, BrokenFile if it is not JSON."""
    data = files.read(path)
    if data is None:
        raise UsageFault(f"{path}: there is no such file.")
    return encoding.parse_json(data, path)
