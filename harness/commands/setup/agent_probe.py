"""Probes the agents of this machine: installed or not, version, logged in or not; and one small real call, which shows
whether an agent can work before a mission costs money."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from harness.agents import builtin, registry
from harness.agents.base import Agent, AgentEvent, AgentFailure, AgentSuccess, ExecutionContext
from harness.agents.clis import ABOUT, CLIS
from harness.agents.program import ProgramAgent, how_to_pass
from harness.base import redaction
from harness.base.errors import HarnessError, Unavailable
from harness.base.record import Record
from harness.git import repository
from harness.mission import config, roles
from harness.mission.config import Config
from harness.mission.usage import Usage
from harness.process import supervise, temporary, tree
from harness.run import thinking
from harness.state import files
from harness.state.layout import Layout
from harness.workplace import confine, environment, home_layer

VERSION_SECONDS = 30.0
VERSION_BYTES = 4096
LAST_LINES = 4
TRIED = "try"  # in the names of its folders and processes
TRY_SECONDS = 600.0
NO_TRUST = "config.toml sets no trust yet, so it is not started"
TASK = """Do exactly this, and nothing else:
1. Write the file try.txt with the one line: written
2. Run this command: uname -s > uname.txt
3. Reply with the one word: done
"""


class Finding(Record):
    """One result of an examination: `state` is ok, note (information), warn (possibly wrong) or bad."""

    state: str
    what: str


def known(where: Layout) -> list[Finding]:
    """A line for every known program and every configured agent; costs nothing."""
    settings = config.load(where)
    named = config.every_agent(settings)
    others = [_other(name, where, settings) for name in named if name not in CLIS]
    notes = [note for name in named for note in _withheld(name, settings)]
    return [_program(name, where, settings, name in named) for name in CLIS] + others + notes


def require(where: Layout, settings: Config, name: str) -> None:
    """Raise like `registry.make`, and Unavailable if the confinement of a run hides the agent's program."""
    agent = registry.make(name, registry.settings_of(where, settings, name, roles.due(where)["commits"]))
    folder, there = where.folders.project, filter(os.path.isdir, agent.writable)
    glass = confine.of_mission(
        where, settings.replace(network=True), f"{folder}/{TRIED}", confine.tier(where, settings)
    )
    if glass and isinstance(agent, ProgramAgent) and not agent.cli.outside:
        known = confine.of_agent(where, glass, [], settings.trust, there, agent.readable)
        known.words(agent.argv, cwd=folder, env=os.environ)


def _withheld(name: str, settings: Config) -> Iterator[Finding]:
    """A note on the variables that are withheld from an agent, with the setting to pass them, if there are any."""
    needs = registry.needs(name, settings.agents.get(name, {}))
    if how := how_to_pass(name, environment.withheld(os.environ, settings.passed, needs)):
        yield Finding(state="note", what=how)


def _program(name: str, where: Layout, settings: Config, wanted: bool) -> Finding:
    table = settings.agents.get(name, {})
    if name == registry.LOOP:
        return _loop(table, settings, wanted)
    program = os.path.expanduser(str(table.get("path", CLIS[name].program)))
    if not registry.installed(program):
        return Finding(state="bad" if wanted else "note", what=f"{name}: not found ({program} is not on the PATH)")
    env = {**os.environ, **{key: str(value) for key, value in table.get("env", {}).items()}}
    try:
        version = _version(program, env)
        if wanted and settings.trust:
            require(where, settings, name)
    except HarnessError as fault:
        return Finding(state="bad" if wanted else "note", what=f"{name}: {fault}")
    trust = settings.trust
    caveats = CLIS[name].caveats(trust) if trust else [NO_TRUST]
    cost = [] if CLIS[name].costs else ["reports no cost"]
    seen = login(name, env)
    state = "warn" if wanted and not seen else "note" if wanted and not trust else "ok"
    shown = f"login: {seen}" if seen else "no login seen (it may still have one)"
    parts = [_compared(version, ABOUT[name].tried), shown, *cost, *caveats]
    return Finding(state=state, what=f"{name}: {'; '.join(parts)}")


def _loop(table: dict[str, Any], settings: Config, wanted: bool) -> Finding:
    """The built-in agent: whether its packages are installed, its model and key, and whether their client can be made."""
    name = registry.LOOP
    if not builtin.installed():
        missing = builtin.NO_EXTRA.format(python=sys.executable, extra=builtin.EXTRA)
        return Finding(state="bad" if wanted else "note", what=f"{name}: not found. {missing}")
    env = {**os.environ, **{key: str(value) for key, value in table.get("env", {}).items()}}
    keys = builtin.keys_of(str(table.get("model", "")), table)
    key = next((key for key in keys if env.get(key)), "")
    model, trust = str(table.get("model", "")), settings.trust
    seen = f"key: {key}" if key else "no key needed" if table.get("base_url") else f"no key seen ({' or '.join(keys)})"
    good = bool(model and (key or table.get("base_url")))
    fault = _unmade(table, keys, env) if good else ""
    parts = [builtin.tried(), model or "no model yet", seen if model else "", "" if trust else NO_TRUST, fault]
    state = ("bad" if fault else "warn" if not good else "ok" if trust else "note") if wanted else "ok"
    return Finding(state=state, what=f"{name}: {'; '.join(filter(None, parts))}")


def _unmade(table: dict[str, Any], keys: list[str], env: dict[str, str]) -> str:
    """Why the client of this model cannot be made, by the built-in agent without a run; "" if it can."""
    parameters = {"model": table["model"], "base_url": table.get("base_url", "")}
    order = {"parameters": parameters, "key_env": keys, "directory": "/", "state": "", "run": ""}
    words, output = [sys.executable, "-I", builtin.program(), json.dumps(order)], bytearray()
    supervise.run(words, cwd="/", env=env, wall_seconds=VERSION_SECONDS, sink=lambda _, chunk: output.extend(chunk))
    last = output.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
    return str(json.loads(last)["reason"]) if last.startswith("{") else last


def _version(program: str, env: dict[str, str]) -> str:
    """The version in the first output of the program; "" for none."""
    output = bytearray()

    def keep(_: str, chunk: bytes) -> None:
        output.extend(chunk[: VERSION_BYTES - len(output)])

    supervise.run([program, "--version"], cwd="/", env=env, wall_seconds=VERSION_SECONDS, sink=keep)
    found = re.search(rb"(?<!\d)\d{1,9}\.\d{1,9}(\.\d{1,9})?", output)
    return found[0].decode() if found else ""


def _compared(version: str, tried: str) -> str:
    if not version:
        return "it reports no version"
    here, there = ([int(part) for part in text.split(".")] for text in (version, tried))
    order = "newer" if here > there else "older"
    return f"{version}, the tested one" if here == there else f"{version}, {order} than the tested {tried}"


def login(name: str, env: dict[str, str]) -> str:
    """The key variable or login file that was found, "" for none; key chains and custom providers are invisible."""
    key = next((key for key in ABOUT[name].keys if env.get(key)), "")
    file = next((path for path in ABOUT[name].logins_in(env) if os.path.exists(path)), "")
    return key or file


def _other(name: str, where: Layout, settings: Config) -> Finding:
    """An embedded agent, or a user's program."""
    try:
        require(where, settings, name)
    except HarnessError as fault:
        own = registry.embedded([name])  # it may lack a playbook only for this role
        return Finding(state="ok", what=f"{name}: embedded") if own else Finding(state="bad", what=f"{name}: {fault}")
    table = settings.agents.get(name, {})
    shape = f"program {table['command'][0]}, format {table.get('format', 'text')}" if "command" in table else "embedded"
    return Finding(state="ok", what=f"{name}: {shape}")


def attempt(where: Layout, name: str) -> Iterator[Finding]:
    """One small call of this agent in a temporary folder, as in a run of this mission; a line for each ability."""
    settings = config.load(where)
    if registry.embedded([name]):
        yield Finding(state="note", what=f"{name}: embedded, so there is nothing to try")
        return
    tag = temporary.of_process(TRIED)
    try:
        own = registry.settings_of(where, settings, name, roles.due(where)["commits"])
        agent = registry.make(name, own.replace(table=_located(own.table, where)))
    except registry.TrustMissing:
        raise
    except Unavailable as fault:  # the next one of a list may be installed
        yield Finding(state="bad", what=f"{name}: {fault}")
        return
    folder = temporary.create(TRIED, tag)
    try:
        there = begin(f"{folder}/{TRIED}")
        yield from _judged(name, there, *_called(agent, there, settings, tag))
    except Unavailable as fault:  # no confinement, or not the one that config.toml requires
        yield Finding(state="bad", what=f"{name}: {fault}")
    finally:
        tree.sweep(tag)
        temporary.remove(folder)


def begin(project: str) -> Layout:
    """An empty project in a new repository, with a folder for state, to try something there."""
    files.make_folder(project)
    repository.init(project)
    there = Layout(project)
    files.make_folder(there.state)
    return there


def _located(table: dict[str, Any], where: Layout) -> dict[str, Any]:
    """The table of an agent with absolute paths of its program."""
    own = {"command": [_absolute(word, where) for word in table["command"]]} if "command" in table else {}
    return {**table, **own, **({"path": _absolute(table["path"], where)} if "path" in table else {})}


def _absolute(word: str, where: Layout) -> str:
    path = os.path.join(where.folders.project, word)
    return path if "/" in word and os.path.exists(path) else word


def _called(agent: Agent, there: Layout, settings: Config, tag: str) -> tuple[AgentSuccess | AgentFailure, Usage, str]:
    """Let the agent do the task in this folder: its end, its usage, and its other output."""
    end: AgentSuccess | AgentFailure = AgentFailure(outcome="agent_error", reason="the agent ended without output")
    usage, output = Usage(), ""
    context = _context(agent, there, settings, tag)
    files.replace(context.prompt_path, TASK.encode())
    for event in agent.think(TASK, context):
        if not isinstance(event, AgentEvent):
            end = event
        elif event.kind == "usage":
            usage = Usage(**json.loads(event.text))
        elif event.kind in thinking.PRINTED:
            output += event.text
    output = redaction.received(output)[-thinking.TAIL_CHARS :].strip()
    lacked = environment.mentioned(output, os.environ, settings.passed, agent.needs, context.confinement)
    return end, end.usage or usage, "\n".join(filter(None, [output, lacked]))


def _context(agent: Agent, there: Layout, settings: Config, tag: str) -> ExecutionContext:
    """The execution context as in a run with these settings."""
    folder, trust, places = there.folders.project, settings.trust, (agent.writable, agent.readable)
    room = temporary.below(os.path.dirname(folder), "own")
    env, own = environment.of_agent(os.environ, tag, there, tag, settings.passed, agent.needs), [folder, room]
    glass = confine.of_mission(there, settings, folder, confine.tier(there, settings))
    if glass is not None and trust != "full":
        own.append(confine.home_of_agent(folder, folder, "", [*places[0], *places[1]]))
        env = home_layer.variables(env, own[-1], os.path.expanduser("~"))
    return ExecutionContext(
        directory=folder,
        prompt_path=there.run(tag).prompt,
        seconds=TRY_SECONDS,
        environment={**env, "TMPDIR": room},
        keep=[],
        startup_seconds=thinking.STARTUP_SECONDS,
        confinement=glass and confine.of_agent(there, glass, own, trust, *places),
        withheld=environment.withheld(os.environ, settings.passed, agent.needs),
    )


def _judged(name: str, there: Layout, end: AgentSuccess | AgentFailure, usage: Usage, output: str) -> Iterator[Finding]:
    """The results of the call, a line each, and its usage."""
    failed = isinstance(end, AgentFailure)
    reason = redaction.received(end.reason).replace("\n", "\n      ") if isinstance(end, AgentFailure) else ""
    yield _line(not failed, name, "answers", reason)
    if isinstance(end, AgentFailure) and end.outcome in thinking.RETRYABLE:  # its abilities stay unknown
        return
    written, ran = ((files.read(f"{there.folders.project}/{path}") or b"").strip() for path in ("try.txt", "uname.txt"))
    yield _line(written == b"written", name, "writes a file", "try.txt does not have the requested content")
    yield _line(
        ran == os.uname().sysname.encode(), name, "runs a command", "it may not, or did not: see trust in config.toml"
    )
    if output and (failed or written != b"written" or not ran):
        yield Finding(state="note", what=f"{name}: last output: {' / '.join(output.split(chr(10))[-LAST_LINES:])}")
    counts = {key: getattr(usage, key) for key in ("input", "cache_read", "output")}
    counted = [f"{count:,} {key}" for key, count in counts.items() if count is not None]
    cost = "cost unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    yield Finding(state="note", what=f"{name}: {', '.join(counted) or 'no tokens reported'}; {cost}")


def _line(good: bool, name: str, what: str, otherwise: str) -> Finding:
    return Finding(state="ok" if good else "bad", what=f"{name}: {what}" + ("" if good else f": no. {otherwise}"))
