"""Probes the agents of this machine: installed or not, version, logged in or not; and one small real call, which shows
whether an agent can do a worker's job before it costs money."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from harness.agents import builtin, registry
from harness.agents.clis import ABOUT, CLIS
from harness.agents.program import how_to_pass
from harness.base.errors import HarnessError, Unavailable
from harness.base.record import Record
from harness.git import repository
from harness.mission import config, contract, features, mission, roles, runs
from harness.mission.config import Config
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.process import supervise, temporary, tree
from harness.run import starting
from harness.state import files, layout, names
from harness.state.layout import Layout
from harness.workplace import environment, workplace

VERSION_SECONDS = 30.0
VERSION_BYTES = 4096
LAST_LINES = 4
TRY_SECONDS = 600.0
NO_ANSWER = ("limit", "auth", "config")
NOTED = "harness try"
NO_TRUST = "config.toml sets no trust yet, so it is not started"
TASK = """Do exactly this, and nothing else:
1. Write the file try.txt with the one line: written
2. Run this command: uname -s > uname.txt
3. Run this command: '{harness}' note --tag CONTEXT "{noted}"
4. Reply that it is implemented."""


class Finding(Record):
    """One result of an examination: `state` is ok, note (information), warn (possibly wrong) or bad."""

    state: str
    what: str


def known(where: Layout) -> list[Finding]:
    """A line for every known program and every configured agent; costs nothing."""
    settings = config.load(where)
    named = [
        name for table in (vars(settings), *settings.roles.values()) for name in config.agent_names(table.get("agent"))
    ]
    others = [_other(name, where, settings) for name in dict.fromkeys(named) if name not in CLIS]
    notes = [note for name in dict.fromkeys(named) for note in _withheld(name, settings)]
    return [_program(name, settings, name in named) for name in CLIS] + others + notes


def _withheld(name: str, settings: Config) -> Iterator[Finding]:
    """A note on the variables that are withheld from an agent, with the setting to pass them, if there are any."""
    needs = registry.needs(name, settings.agents.get(name, {}))
    if how := how_to_pass(name, environment.withheld(os.environ, settings.passed, needs)):
        yield Finding(state="note", what=how)


def _program(name: str, settings: Config, wanted: bool) -> Finding:
    table = settings.agents.get(name, {})
    if name == registry.LOOP:
        return _loop(table, settings, wanted)
    program = os.path.expanduser(str(table.get("path", CLIS[name].program)))
    if not registry.installed(program):
        return Finding(state="bad" if wanted else "note", what=f"{name}: not found ({program} is not on the PATH)")
    env = {**os.environ, **{key: str(value) for key, value in table.get("env", {}).items()}}
    try:
        version = _version(program, env)
    except Unavailable as fault:
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
        registry.make(name, registry.settings_of(where, settings, name, roles.due(where)["commits"]))
    except HarnessError as fault:
        own = registry.embedded([name])  # it may lack a playbook only for this role
        return Finding(state="ok", what=f"{name}: embedded") if own else Finding(state="bad", what=f"{name}: {fault}")
    table = settings.agents.get(name, {})
    shape = f"program {table['command'][0]}, format {table.get('format', 'text')}" if "command" in table else "embedded"
    return Finding(state="ok", what=f"{name}: {shape}")


def attempt(where: Layout, name: str) -> Iterator[Finding]:
    """Run a worker with this agent in a temporary mission with this mission's settings; a line for each ability."""
    settings = config.load(where)
    if registry.embedded([name]):
        yield Finding(state="note", what=f"{name}: embedded, so there is nothing to try")
        return
    try:
        registry.make(name, registry.settings_of(where, settings, name, roles.due(where)["commits"]))
    except registry.TrustMissing:
        raise
    except Unavailable as fault:  # the next one of a list may be installed
        yield Finding(state="bad", what=f"{name}: {fault}")
        return
    tag = f"try-{os.getpid()}"
    folder = temporary.create("try", tag)
    try:
        there = _mission(os.path.join(folder, "try"), name, where, settings)
        yield from _judged(there, name, _carried_out(there, tag))
    finally:
        tree.sweep(tag)
        _remove(os.path.join(folder, "try"))
        temporary.remove(folder)


def _remove(project: str) -> None:
    """Remove the trees of the trial's mission, which are outside its folder."""
    there = Layout(project)
    if mission.exists(there):
        temporary.remove(os.path.dirname(workplace.folder_of(mission.load(there).id)))


def _mission(project: str, name: str, where: Layout, settings: Config) -> Layout:
    """A mission with one feature for this agent, with its settings here."""
    claim = Claim(id="VAL-TRY", text="The file says so", checks=[Check(run="grep -qx written try.txt")])
    # The program is named by its path, because a login shell may change PATH.
    task = TASK.format(harness=Layout(project).path(names.SHIM), noted=NOTED)
    feature = Feature(id="F-001", title="Try", description=task, claims=["VAL-TRY"])
    return begin(project, _config(name, where, settings), [claim], [feature])


def begin(project: str, settings: str, claims: list[Claim], queue: list[Feature]) -> Layout:
    """A new mission in a new repository, with this config.toml, contract and queue as after an accepted plan."""
    files.make_folder(project)
    repository.init(project)
    there = Layout(project)
    files.replace(there.folders.asked_spec, b"# Try\n\nA file says that it was written.\n")
    starting.start(there)
    for path, data in (
        (there.path(names.SPEC), files.read(there.folders.asked_spec) or b""),
        (there.path(names.CONTRACT), contract.render(Contract(claims=claims)).encode()),
        (there.path(names.FEATURES), features.render(queue)),
        (there.path(names.CONFIG), settings.encode()),
    ):
        files.replace(path, data)
    return there


def _config(name: str, where: Layout, settings: Config) -> str:
    """config.toml for the trial: only this agent, with its table; relative paths become absolute."""
    table = dict(settings.agents.get(name, {}))
    if "command" in table:
        table["command"] = [_absolute(word, where) for word in table["command"]]
    if "path" in table:
        table["path"] = _absolute(table["path"], where)
    role = roles.due(where)["commits"]
    model = settings.roles.get(role, {}).get("model")
    kept = {key: getattr(settings, key) for key in ("mcp", "confine", "network")}
    values = {"agent": name, **kept, "agents": {name: table}, "env": {"pass": settings.passed}}
    values |= {"trust": settings.trust} if settings.trust else {}
    values |= {"roles": {role: {"model": model}}} if model else {}
    return "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())


def _absolute(word: str, where: Layout) -> str:
    path = os.path.join(where.folders.project, word)
    return path if "/" in word and os.path.exists(path) else word


def _toml(value: Any) -> str:
    """A value as TOML on one line: like JSON, except objects."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def _carried_out(there: Layout, tag: str) -> str:
    """Run the role's script like run.sh; returns its output."""
    ours = ("FEATURE_ID", "TRIGGER", "REASON")
    env = {key: value for key, value in os.environ.items() if not key.startswith("HARNESS_") and key not in ours}
    env |= {"HARNESS_HOME": layout.home(), "PYTHONPATH": layout.home(), "HARNESS_PROJECT": there.folders.project}
    env |= {"HARNESS_IDENTITY": there.state + "/identity", supervise.TAG: tag}
    output: list[bytes] = []
    supervise.run(
        [sys.executable, "-P", "-m", "harness.run", roles.load(there, roles.due(there)["commits"]).script, "F-001"],
        cwd=there.folders.project,
        env=env,
        wall_seconds=TRY_SECONDS,
        sink=lambda _, chunk: output.append(chunk),
    )
    return b"".join(output).decode("utf-8", "replace")


def _judged(there: Layout, name: str, output: str) -> Iterator[Finding]:
    """The results of the run, a line each, and its usage."""
    newest = next(runs.finished(there), None)
    if newest is None:
        yield Finding(state="bad", what=f"{name}: {output.strip()}")
        return
    good = newest.outcome in runs.GOOD
    yield _line(good, name, "answers", (newest.reason or newest.outcome).replace("\n", "\n      "))
    if newest.outcome in NO_ANSWER:  # its abilities stay unknown
        return
    tree = newest.commit or newest.head
    written, ran = (
        (repository.show(there.folders.project, tree, path) or b"").strip() for path in ("try.txt", "uname.txt")
    )
    yield _line(written == b"written", name, "writes a file", "try.txt does not have the requested content")
    allowed = ran == os.uname().sysname.encode()
    yield _line(allowed, name, "runs a command", "it may not, or did not: see trust in config.toml")
    yield _line(NOTED in (files.read_text(there.path(names.RAW)) or ""), name, "calls harness note", "there is no note")
    errors = (files.read(there.run(newest.run).stderr) or b"").decode("utf-8", "replace").strip()
    if errors and not (good and written == b"written" and ran):
        yield Finding(state="note", what=f"{name}: last output: {' / '.join(errors.split(chr(10))[-LAST_LINES:])}")
    usage = newest.usage or {}
    cost = usage.get("cost_usd")
    counted = [f"{count:,} {key}" for key in ("input", "cache_read", "output") if (count := usage.get(key)) is not None]
    spent = f"{', '.join(counted) or 'no tokens reported'}; {'cost unknown' if cost is None else f'{cost:.4f} USD'}"
    yield Finding(state="note", what=f"{name}: {newest.seconds:.0f} s, {spent}")


def _line(good: bool, name: str, what: str, otherwise: str) -> Finding:
    return Finding(state="ok" if good else "bad", what=f"{name}: {what}" + ("" if good else f": no. {otherwise}"))
