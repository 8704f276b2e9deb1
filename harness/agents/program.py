"""Runs an agent's program for any vendor: starts it, reads it line by line, and ends it with its process tree.

An adapter is a `Cli`: how the program is started (`argv`) and what its events mean (`read`). Everything else is here.
Only events decide the outcome of an answer; words in the output decide nothing.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from harness.agents._answer_state import MAX_REPLY_BYTES, AnswerState
from harness.agents.base import AgentEvent, AgentFailure, AgentSuccess, ExecutionContext, Settings, Thinking, installed
from harness.base.errors import Unavailable
from harness.base.record import Record
from harness.process.supervise import Child, ChildEnd
from harness.process.timeouts import IDLE, STARTUP, WALL
from harness.process.variables import is_key
from harness.state import files
from harness.state.layout import command

FIRST_WORDS_CHARS = 150
LAST_LINES = 3
MAX_LINE_BYTES = 8 * 1024 * 1024  # a longer line of a vendor's events is skipped
PARTIAL = ("stream_event", "message_update", "content_block_delta", "item.updated")
MALFORMED = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
STABLE, REST = ".stable", ".rest"


def _nothing(settings: Settings, context: ExecutionContext) -> dict[str, str]:
    return {}


class Cli:
    """A vendor's program. `argv`: its arguments; `read`: the meaning of an event, with AgentSuccess or AgentFailure at
    the end; `at_exit`: the outcome of an exit without either; `environment`: more variables. `text`: no events, its
    standard output is the reply; `splits`: the stable part of the prompt is a separate file; `costs`: it reports USD;
    `cannot`: caveats by trust; `sandbox_needs`: programs that its sandbox requires; `refuses_root`: it refuses root
    under full trust. `outside`: it is the harness's own, runs unconfined, and confines what it starts."""

    def __init__(
        self,
        program: str,
        argv: Callable[[Settings, ExecutionContext], list[str]],
        read: Callable[[dict[str, Any], AnswerState], Iterator[AgentEvent | AgentSuccess | AgentFailure]],
        *,
        at_exit: Callable[[AnswerState, ChildEnd], AgentSuccess | AgentFailure] = AnswerState.without_result,
        environment: Callable[[Settings, ExecutionContext], dict[str, str]] = _nothing,
        model_flag: str = "-m",
        cannot: Mapping[str, str] = {},
        sandbox_needs: Sequence[str] = (),
        refuses_root: bool = False,
        text: bool = False,
        splits: bool = False,
        costs: bool = False,
        outside: bool = False,
    ) -> None:
        self.program, self.argv, self.read, self.at_exit, self.environment = program, argv, read, at_exit, environment
        self.model_flag, self.cannot = model_flag, cannot
        self.sandbox_needs, self.refuses_root = sandbox_needs, refuses_root
        self.text, self.splits, self.costs, self.outside = text, splits, costs, outside

    def caveats(self, trust: str) -> list[str]:
        """Caveats of this program on this machine under a trust."""
        found = [self.cannot[trust]] if trust in self.cannot else []
        missing = [program for program in self.sandbox_needs if trust == "workspace" and not installed(program)]
        if missing:
            found.append(f"unconfined, no sandbox without {' and '.join(missing)}: its commands may write anywhere")
        if self.refuses_root and trust == "full" and os.geteuid() == 0:
            found.append("it refuses full trust to root")
        return found


def own_tools(flag: str, names: Sequence[str], known: Mapping[str, Sequence[str]]) -> list[str]:
    """A flag with the tools of a tools.json, translated to a program's own names where known."""
    found: list[str] = []
    for name in names:
        fitting = [own for ours, theirs in known.items() if fnmatchcase(ours, name) for own in theirs]
        found += fitting or [name]
    return [flag, ",".join(dict.fromkeys(found))]


class CliFacts(Record):
    """What is known of a program without a model call: the version that was `tried`, how to `login`, and variables or
    files; any of them shows a login (`$NAME` and `~` are expanded). `needs`: {variable: further variables and patterns that
    it needs if that one is set; "": always}. `writes`: folders, and `files`: others that it reads, in shell syntax;
    `hides`: {path: the file without which it is hidden}. `expires` and `renews`: the keys of the expiry time in a file
    of `logins`, and of its automatic renewal (`*`: any key).

    `reads` and `skills`: files, and folders of skills, of a project that it reads by itself; `instead`: files that it
    reads without any of `reads`; `silent`: arguments that disable reading the files; `silenced`: its adapter disables it
    by variables. `tools`: {tool name in tools.json: its own names}, for the flags `deny_flag` and `allow_flag`; `obeys`: it
    enforces every rule of tools.json itself."""

    tried: str = ""
    login: str = ""
    keys: list[str] = []
    logins: list[str] = []
    expires: list[str] = []
    renews: list[str] = []
    needs: dict[str, list[str]] = {}
    writes: list[str] = []
    files: list[str] = []
    hides: dict[str, str] = {}
    reads: list[str] = []
    instead: list[str] = []
    skills: list[str] = []
    silent: list[str] = []
    silenced: bool = False
    tools: dict[str, list[str]] = {}
    deny_flag: str = ""
    allow_flag: str = ""
    obeys: bool = False

    def can_obey(self, deny: Sequence[str], allow: Sequence[str] | None, *, mcp: bool) -> bool:
        """Whether it can enforce these rules of a tools.json, with `mcp` servers of its own configuration. Flags take
        names of tools, not patterns for their arguments."""
        if self.obeys:
            return True
        if not self.deny_flag or any("(" in rule for rule in (*deny, *(allow or ()))):
            return False
        return allow is None or bool(self.allow_flag and not mcp)

    def words_for(self, settings: Settings, *, told: bool) -> list[str]:
        """The arguments for the rules of tools.json; `told`: the prompt already has the project's instructions."""
        words = [*self.silent] if told else []
        words += own_tools(self.deny_flag, settings.deny, self.tools) if self.deny_flag and settings.deny else []
        limited = self.allow_flag and settings.allow is not None
        return words + (own_tools(self.allow_flag, settings.allow or [], self.tools) if limited else [])

    def needs_in(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The variables that it needs in this environment: names and patterns such as `*_API_KEY`."""
        more = [name for switch, names in self.needs.items() if not switch or env.get(switch) for name in names]
        return (*self.keys, *more)

    def logins_in(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The absolute paths of the files of `logins`, existing or not."""
        home = env.get("HOME") or os.path.expanduser("~")
        parts = [path.partition("/") for path in self.logins]
        bases = [(home if name == "~" else env.get(name.removeprefix("$"), ""), rest) for name, _, rest in parts]
        return tuple(os.path.join(base, rest) for base, rest in bases if base)

    def writes_in(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The absolute paths of the folders that it must write in."""
        paths = [_expanded(path, env) for path in self.writes]
        return tuple(path for path in paths if os.path.isabs(path))  # others are in the working folder

    def files_in(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The absolute paths of further files that it reads, if they exist."""
        return tuple(path for path in (_expanded(path, env) for path in self.files) if os.path.isfile(path))


def _expanded(path: str, env: Mapping[str, str]) -> str:
    """A path with `${NAME:-default}` and then a leading `~` expanded, as in a shell."""
    path = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: env.get(found[1]) or found[2], path)
    return (env.get("HOME") or os.path.expanduser("~")) + path[1:] if path.startswith("~/") else path


def how_to_pass(name: str, withheld: list[str]) -> str:
    """The variables that are withheld from this agent, and how to pass one; "" without any."""
    if not withheld:
        return ""
    return f'withheld from {name}: {", ".join(withheld)}; to pass one, write into config.toml: [env] pass = ["{withheld[0]}"]'


class ProgramAgent:
    """An agent that is a program; `path`, `args` and `env` of `table` override its adapter, and `argv` replaces it."""

    def __init__(
        self, name: str, cli: Cli, settings: Settings, argv: list[str] | None = None, about: CliFacts | None = None
    ) -> None:
        table, about = settings.table, about or CliFacts()
        about = about.replace(writes=[*about.writes, *table.get("writable", [])])
        self.name, self.cli, self.settings, self.about = name, cli, settings, about
        self.argv = argv or [str(table.get("path", cli.program))]
        self.argv[0] = os.path.expanduser(self.argv[0])
        self.own = argv is not None
        self.environment: Mapping[str, str] = {key: str(value) for key, value in table.get("env", {}).items()}
        known = {**os.environ, **self.environment}
        self.needs, self.writable = (*self.about.needs_in(known), *self.environment), self.about.writes_in(known)
        words = [word for word in (*self.argv, *table.get("args", [])) if os.path.isabs(str(word))]
        self.readable = (*self.about.files_in(known), *filter(os.path.isfile, words))
        pairs = [(_expanded(path, known), _expanded(file, known)) for path, file in self.about.hides.items()]
        self.hidden = [path for path, file in pairs if not os.path.isfile(file)]
        program = os.path.join(settings.project, self.argv[0]) if "/" in self.argv[0] else self.argv[0]
        if not installed(program):
            raise Unavailable(
                f"The agent's program '{self.argv[0]}' is not installed, or not on the PATH of this run (cron has a short one): "
                f"install it, or give its whole path as `path` or `command` of [agents.{name}] in {settings.config_path}."
            )

    def words(self, context: ExecutionContext) -> list[str]:
        """The full command line, without the prompt."""
        given = [] if self.own else self.cli.argv(self.settings, context)
        flag = self.cli.model_flag if not self.own else ""
        given += [] if self.own else self.about.words_for(self.settings, told=context.told)
        given += [flag, self.settings.model] if self.settings.model and flag else []
        return [*self.argv, *given, *self.settings.table.get("args", [])]

    def surroundings(self, context: ExecutionContext) -> dict[str, str]:
        """Its environment: the context's, with the folder as $PWD (some programs trust it more than the folder), its
        table's, and its adapter's."""
        own = {} if self.own else self.cli.environment(self.settings, context)
        at = context.confinement.seen(context.directory) if context.confinement else context.directory
        return {**context.environment, "PWD": at, **self.environment, **own}

    def think(self, prompt: str, context: ExecutionContext) -> Thinking:
        """Run the program once."""
        answer, source = AnswerState(self.name, self.settings.model), context.prompt_path
        if (known := context.confinement) and self.hidden:
            glass = known.glass.replace(hidden=[*known.glass.hidden, *self.hidden])
            context = context.replace(confinement=known.replace(glass=glass))
        split = self.cli.splits and not self.own and context.stable_bytes
        if split:
            source = split_prompt(prompt, context)
        try:
            yield from self._answered(answer, context, source)
        except Unavailable as fault:  # it exists but does not start: a broken interpreter, a bad variable
            yield answer.failed("config", str(fault))
        finally:
            if split:
                files.remove(context.prompt_path + STABLE)
                files.remove(context.prompt_path + REST)

    def _answered(
        self, answer: AnswerState, context: ExecutionContext, source: str
    ) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
        with Child(
            self.words(context),
            cwd=os.path.dirname(context.prompt_path) if self.cli.outside else context.directory,
            env=self.surroundings(context),
            stdin=source,
            wall_seconds=context.seconds,
            keep=context.keep,
            timeouts=context.timeouts(),
            confine=None if self.cli.outside else context.confinement,
        ) as child:
            end = yield from _listen(child, self.cli, answer)
        assert child.ended is not None, "leaving the child waits for its end"
        if self.cli.text:
            yield answer.says(answer.text.decode("utf-8", "replace")).replace(kind="whole")
        yield self._with_remedy(_verdict(self.cli, answer, end, child.ended), context)

    def _with_remedy(self, end: AgentSuccess | AgentFailure, context: ExecutionContext) -> AgentSuccess | AgentFailure:
        """Add the remedy to a failure that only a person can resolve, or that a withheld variable may explain."""
        if isinstance(end, AgentSuccess):
            return end
        lines = [end.reason, self._remedy(end.outcome) if end.outcome in REMEDIES else ""]
        if end.outcome in REMEDIES or (self.own and end.outcome == "agent_error"):
            lines.append(how_to_pass(self.name, [*filter(is_key, context.withheld)]))
        return end.replace(reason="\n".join(filter(None, lines)))

    def _remedy(self, outcome: str) -> str:
        hints = [self.about.login] if outcome == "auth" else [] if self.own else self.cli.caveats(self.settings.trust)
        remedy = ": ".join(filter(None, [REMEDIES[outcome].format(name=self.name), "; ".join(filter(None, hints))]))
        return f"{remedy}; then: {command('doctor agents --try')}"


def split_prompt(prompt: str, context: ExecutionContext) -> str:
    """Write the stable part and the rest next to the prompt, for a CLI that caches the first; returns the rest's path."""
    data = prompt.encode()
    files.replace_quickly(context.prompt_path + STABLE, data[: context.stable_bytes])
    files.replace_quickly(context.prompt_path + REST, data[context.stable_bytes :])
    return context.prompt_path + REST


def _listen(
    child: Child, cli: Cli, answer: AnswerState
) -> Generator[AgentEvent, None, AgentSuccess | AgentFailure | None]:
    """Read the program's output to its end; returns the first AgentSuccess, else the last AgentFailure that it
    reported, if any."""
    end: AgentSuccess | AgentFailure | None = None
    lines, answered = LineSplitter(), False
    for stream, chunk in child.output() if cli.text else _with_end(child.output()):
        for event in _events(stream, chunk, cli, lines, answer):
            if not isinstance(event, AgentEvent):
                end = end if isinstance(end, AgentSuccess) else event  # a later turn may succeed after a failed one
                continue
            answer.began = answer.began or event.kind == "raw"
            answered = answered or event.kind in ("said", "did", "usage")
            yield event
        if answer.waiting:
            child.watch.take_back(time.monotonic(), answered=answered)
        elif answer.began and stream == "stdout":
            child.watch.event()
        if end or (child.silent and (answer.text or not cli.text)):  # without output it may still work
            child.watch.result(time.monotonic())
    return end


def _with_end(output: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """The output, and a newline for an unterminated last line."""
    yield from output
    yield "stdout", b"\n"


def _events(
    stream: str, chunk: bytes, cli: Cli, lines: LineSplitter, answer: AnswerState
) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    """The events in one chunk of output."""
    if not stream:
        yield AgentEvent(kind="tick")
    elif stream == "stderr":
        yield _other_output(answer.decoder.decode(chunk), answer)
    elif cli.text:
        answer.text += chunk
        if len(answer.text) > 2 * MAX_REPLY_BYTES:
            del answer.text[:-MAX_REPLY_BYTES]
        yield AgentEvent(kind="saying", text=answer.text_decoder.decode(chunk))
    else:
        for line in lines.feed(chunk):
            yield from _line_events(line, cli, answer)


def _line_events(line: bytes, cli: Cli, answer: AnswerState) -> Iterator[AgentEvent | AgentSuccess | AgentFailure]:
    """The events in one line; a line that is not a vendor's event is plain output, whatever its content."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        row = json.loads(text) if text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        yield _other_output(text + "\n", answer)
        return
    partial = row.get("type") in PARTIAL or row.get("delta") is True
    yield AgentEvent(kind="tick") if partial else AgentEvent(kind="raw", text=text)
    answer.waiting = False
    try:
        yield from cli.read(row, answer)
    except MALFORMED as fault:
        yield _other_output(f"[an event of unexpected shape: {fault!r}]\n", answer)


def _other_output(text: str, answer: AnswerState) -> AgentEvent:
    """Output for a person to read; its first and last lines may explain a failure."""
    if lines := [line.strip() for line in text.split("\n") if line.strip()]:
        answer.first_words = answer.first_words or lines.pop(0)[:FIRST_WORDS_CHARS]
        answer.last_lines = [*answer.last_lines, *lines][-LAST_LINES:]
    return AgentEvent(kind="output", text=text)


REMEDIES = {"auth": "Log in to {name}, or pay for it", "config": "Fix [agents.{name}] in config.toml, or {name} itself"}
LIMITS = {
    WALL: "it ran out of time",
    IDLE: "no output, no change in the folder and no CPU use for too long",
    STARTUP: "no first event",
}


def _verdict(
    cli: Cli, answer: AnswerState, end: AgentSuccess | AgentFailure | None, ended: ChildEnd
) -> AgentSuccess | AgentFailure:
    """The outcome of the answer: from its events, else from the limit that ended it, else from its exit."""
    if isinstance(end, AgentSuccess):
        return end.replace(late=ended.cause != "exit", usage=answer.spent())
    if end:
        return end.replace(usage=answer.spent())
    if ended.cause in LIMITS and answer.waiting:
        return answer.failed("limit", f"its vendor could not be reached: {answer.error}")
    if ended.cause in LIMITS:
        return answer.failed(ended.cause, f"{LIMITS[ended.cause]}, after {ended.seconds:.0f} s")
    return cli.at_exit(answer, ended)


class LineSplitter:
    """Splits chunks into whole lines; a line over MAX_LINE_BYTES is skipped, to bound memory."""

    def __init__(self) -> None:
        self.begun = bytearray()
        self.lost = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, without their newlines; empty lines are omitted."""
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._add(part)
            line, lost = bytes(self.begun), self.lost
            self.begun, self.lost = bytearray(), 0
            if lost:
                yield b"[a line of %d bytes was skipped]" % lost
            elif line.strip():
                yield line
        self._add(rest)

    def _add(self, part: bytes) -> None:
        if self.lost or len(self.begun) + len(part) > MAX_LINE_BYTES:
            self.lost += len(self.begun) + len(part)
            self.begun.clear()
        else:
            self.begun += part
