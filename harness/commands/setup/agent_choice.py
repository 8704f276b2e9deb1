"""The agent of a mission and its trust: asked once, written into config.toml, and shown when a loop starts."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from shutil import which
from typing import Any

from harness.agents import builtin, registry, spenders
from harness.base.errors import HarnessError, Unavailable, UsageFault, suggestion
from harness.base.record import Json
from harness.commands.setup import agent_probe
from harness.decision import ceiling as most
from harness.decision import views
from harness.mission import config, roles
from harness.mission.config import Config
from harness.state import journal, names
from harness.state.layout import Layout, command
from harness.state.state import State

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.toml")
Ask = Callable[[str, dict[str, str], str], str]

AGENT, TRUST = "Which agent works here?", "How far may it go?"
MODEL = f"Which model, with its vendor before a colon ({', '.join(builtin.KEYS)})?"
ADDRESS, VENDOR = "At which address ('vendor': the vendor's own)?", "vendor"
KEY, NO_KEY = "Which variable has its key ('none': it needs none)?", "none"
CAP = "How many USD may the mission cost at most ('none': no cap)?"
DEFAULT_CAP, NO_CAP = "10", "none"
PLAYBOOK = "embedded, free: follows the files that you write in playbooks/"
TRUSTS = {
    "workspace": "write in this folder, run commands, use the network: the agent's sandbox, if it has one",
    "full": "anything that you may do",
}
STEPS = (
    ("doctor agents --try", "one small real call: can it answer, write a file and run a command?"),
    ("{plans}", "only the plan"),
    ("status", "read it; .harness/validation-contract.md has the checks"),
    ("", "until DONE, or until you are needed"),
)


def choose(layout: Layout, agent: str, trust: str, ask: Ask | None, *, steps: bool = True) -> list[str]:
    """Write `agent` (one, or several with commas) and `trust` into config.toml, which is created with all settings commented out;
    `ask(question, {answer: meaning}, default)` provides the missing ones, and a cap ({}: any text). Returns lines about the
    changes and, unless `steps` is off, the next steps. Raises UsageFault for an unknown agent or trust, and for one that differs
    from config.toml's.
    """
    settings = config.load(layout)
    wanted = _wanted(settings, agent, trust)
    found = [name for name in registry.KNOWN_CLIS if registry.installed(name)]
    playbooks = os.path.isdir(os.path.join(layout.folders.project, "playbooks"))
    if ask and not wanted and not settings.agent and not playbooks and found:
        wanted = [ask(AGENT, {**{name: _program(name) for name in found}, "playbook": PLAYBOOK}, found[0])]
    named = wanted or settings.agent
    costly = [name for name in named if name in registry.KNOWN_CLIS]
    cap = _cap(ask) if ask and costly and settings.max_cost_usd is None else None
    loop = _loop(ask) if ask and registry.LOOP in wanted and not settings.agents.get(registry.LOOP) else {}
    if ask and costly and not trust and not settings.trust:
        limits = {how: [f"{one}: {text}" for one in costly for text in registry.caveats(one, how)] for how in TRUSTS}
        trust = ask(TRUST, {how: "; ".join([TRUSTS[how], *limits[how]]) for how in TRUSTS}, next(iter(TRUSTS)))
    values: dict[str, str | list[str] | float | None] = {
        "agent": "" if wanted == settings.agent else _one_or_list(wanted),
        "trust": "" if trust == settings.trust else trust,
        "limits.max_cost_usd": cap,
    }
    values |= {f"agents.{registry.LOOP}.{key}": value for key, value in loop.items()}
    lines = _write(layout, values)
    if costly and not trust and not settings.trust:
        how = f"{command('init')} --trust workspace (or full)"
        return [*lines, f"It does not start before you set its trust: {how}"]
    for name in [*named] if not registry.embedded(named) else []:
        try:
            agent_probe.require(layout, config.load(layout), name)
        except HarnessError as fault:
            lines.append(f"warning: {name}: {fault}")
    return lines + (_next(layout, named or (["playbook"] if playbooks else []), found) if steps else [])


def loop_of(layout: Layout) -> dict[str, Any]:
    """The table of the built-in agent; {} without one."""
    return config.load(layout).agents.get(registry.LOOP, {})


def require(layout: Layout, agent: str, trust: str) -> None:
    """Raise like `choose`, and Unavailable for an agent whose program is not installed; writes nothing."""
    # Without either, config.toml is not read: a dead run may have corrupted it, and only a start restores it.
    settings = config.load(layout) if agent or trust else config.Config()
    for name in _wanted(settings, agent, trust):
        table = settings.agents.get(name, {})
        if name == registry.LOOP and not builtin.installed():
            raise Unavailable(builtin.NO_EXTRA.format(python=sys.executable, extra=builtin.EXTRA))
        program = os.path.expanduser(str(table.get("path", name)))
        if name in registry.KNOWN_CLIS and "command" not in table and not registry.installed(program):
            found = ", ".join(filter(registry.installed, registry.KNOWN_CLIS)) or "none"
            what = f"The program of the agent '{name}' is not installed, or not on the PATH. Found here: {found}."
            raise Unavailable(f"{what} Install it, or choose another: {command('init')} --agent NAME (docs/agents.md)")


def _wanted(settings: Config, agent: str, trust: str) -> list[str]:
    """The agents in `agent`, all of which are known; config.toml sets no other, and no other trust."""
    if trust and trust not in TRUSTS:
        raise UsageFault(f"'{trust}' is not a trust level. Use one of: {', '.join(TRUSTS)}")
    known = (*registry.KNOWN_CLIS, *registry.EMBEDDED, *settings.agents)
    wanted = [name.strip() for name in agent.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            here = f"Known here: {', '.join(known)}; any program by [agents.{name}]."
            raise UsageFault(f"There is no agent '{name}'.{suggestion(name, known)} {here}")
    for key, given in (("agent", wanted), ("trust", trust)):
        if given and getattr(settings, key) not in (given, type(given)()):
            row = f"{key} = {json.dumps(_one_or_list(given))}"
            raise UsageFault(f"config.toml already sets another {key}. To change it, write there: {row}")
    return wanted


def _one_or_list(value: str | list[str]) -> str | list[str]:
    """The value of a key for one agent or several."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def ceiling(layout: Layout) -> str:
    """The max cost of the mission in one sentence; "" while it has no agent."""
    settings, playbooks = config.load(layout), os.path.isdir(os.path.join(layout.folders.project, "playbooks"))
    named = playbooks or any(roles.agents_of(settings, roles.load(layout, role)) for role in roles.known(layout))
    return most.words(views.limits_of(settings), *spenders.configured(layout)) if named else ""


def _program(name: str) -> str:
    """The program of a known agent, and whether it costs money."""
    if name == registry.LOOP:
        return "the harness's own loop over a model: at a vendor, which costs money, or at your own URL"

    return f"{which(name)}, which costs money"


def key_names(table: dict[str, Any]) -> list[str]:
    """The variables that may have the key of the built-in agent, by its table in config.toml."""
    return builtin.keys_of(str(table.get("model", "")), table)


def _loop(ask: Ask) -> dict[str, str]:
    """Ask for model, address and the variable with the key of the built-in agent. A key itself is never taken or written."""

    def asked(question: str, default: str, valid: Callable[[str], bool]) -> str:
        words = question
        while not valid(answer := ask(words, {}, default).strip()):
            words = f"invalid: '{answer[:12]}'. {question}"
        return answer

    model = asked(MODEL, builtin.SUGGESTED, builtin.is_model)
    url = asked(ADDRESS, VENDOR, lambda text: text == VENDOR or text.startswith(("http://", "https://")))
    name = key_names({"model": model})[0]
    key = asked(KEY, name, lambda text: text == NO_KEY or (text.isidentifier() and text == text.upper()))
    return {"model": model, "base_url": "" if url == VENDOR else url,
            "api_key_env": "" if key in (NO_KEY, name) else key}  # fmt: skip


def _cap(ask: Ask) -> float | None:
    """Ask for the cap in USD; None for no cap."""
    question = CAP
    while True:
        answer = ask(question, {}, DEFAULT_CAP).strip().lower().removesuffix("usd").strip()
        if answer == NO_CAP:
            return None
        with suppress(ValueError):
            if 0 < (usd := float(answer)) < config.MAX_NUMBER:
                return usd
        question = f"invalid amount '{answer}': give a number above 0, such as 5 or 12.50, or '{NO_CAP}'. {CAP}"


def _write(layout: Layout, values: dict[str, str | list[str] | float | None]) -> list[str]:
    """Set these unset keys in config.toml; creates the file if it is absent."""
    given = {key: value for key, value in values.items() if value}
    before, path = State(layout).text(names.CONFIG), layout.path(names.CONFIG)
    if before is not None and not given:
        return []
    text = _template(roles.due(layout)["commits"]) if before is None else before
    for key, value in reversed(given.items()):
        text = put(text, key, value)
    rows = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    if not all(_is_set(text, key, value) for key, value in given.items()):
        raise UsageFault(f"No key can be added to a file of this form. Write into {path}: {', '.join(rows)}")
    config.parse(text, path)
    changes = journal.Journal(layout)
    changes.replace(path, text.encode())
    changes.commit()
    rows += ["every setting, commented out"] if before is None else []
    return [f"{layout.shown(names.CONFIG)}: {', '.join(rows)}"]


def _template(role: str) -> str:
    """The first config.toml, with a table for this role."""
    with open(TEMPLATE, encoding="utf-8") as file:
        return file.read().replace("{role}", role)


def _is_set(text: str, key: str, value: Json) -> bool:
    """Whether a TOML text is valid and has this value at this key."""
    try:
        found: Json = tomllib.loads(text)
        for name in key.split("."):
            found = found[name]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        return False
    return bool(found == value)


def put(text: str, key: str, value: str | float | list[str] | None) -> str:
    """A TOML text with this unset key (such as `limits.max_runs`) at the start of its table."""
    table, _, name = key.rpartition(".")
    row = f"{name} = {json.dumps(value)}"
    if not table:
        return f"{row}\n{text}"
    if head := re.search(rf"^\[{re.escape(table)}\].*$", text, re.M):
        return f"{text[: head.end()]}\n{row}{text[head.end() :]}"
    return f"{text.rstrip()}\n\n[{table}]\n{row}\n".lstrip()


def _next(layout: Layout, named: list[str], found: list[str]) -> list[str]:
    """The next steps towards DONE, or how to choose an agent."""
    if not named:
        here = f"found here: {', '.join(found)}" if found else "no known agent is on the PATH; any program will do"
        return [f"Choose an agent: {command('init')} --agent NAME --trust workspace ({here}; docs/agents.md)"]
    steps = [(words.format(**roles.due(layout)), what) for words, what in STEPS[registry.embedded(named) :]]
    width = max(len(command(words)) for words, _ in steps)
    return ["Next:", *(f"  {command(words):<{width}}  {what}" for words, what in steps)]
