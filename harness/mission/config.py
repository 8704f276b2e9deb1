"""config.toml: optional, a closed set of keys. docs/contract.md documents every key; a test compares the two."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.base import schema
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.base.schema import SchemaFault
from harness.mission._land_table import LandTable as LandTable
from harness.state import documents, names
from harness.state.layout import Layout
from harness.state.state import State

MAX_NUMBER = 1e15
TRUSTS = ("workspace", "full")
USER = "HARNESS_USER"  # variable: the user of the runs, overrides `user` of config.toml
WORKPLACES = ("tree", "project")
CONFINES = ("auto", "required", "off")
SWEEPS = ("home", "anywhere")
EVENTS = ("done", "escalated", "checkpoint", "budget", "stuck", "auth", "passed", "failed", "run")
FEATURE, COST = "before-feature:", "every-cost-usd:"
WHENS = f"after-plan, before-done, {FEATURE}F-001 or {COST}5"

if TYPE_CHECKING:  # a type for checkers; at run time the kind of a field
    Agents = str | list[str] | None
    Trust = str
    Workplace = str
    Confine = str
    Sweep = str
    Guards = str
    Identity = str
    Network = bool | str
    Inside = list[str]
    Variables = list[str]
    Shown = list[str]
    Most = int
    MostNumber = float
    Price = float
    Event = str
    Address = str
    Name = str
    When = str
else:
    LIMIT = ("above 0 and finite", lambda value: 0 < value < MAX_NUMBER)
    Most, MostNumber = schema.WHOLE.part(*LIMIT, bound=True), schema.NUMBER.part(*LIMIT, bound=True)
    Price = schema.NUMBER.part("a price, 0 or above", lambda value: 0 <= value < float("inf"), bound=True)
    Trust, Workplace, Confine = schema.one_of(TRUSTS), schema.one_of(WORKPLACES), schema.one_of(CONFINES)
    Sweep, Guards, Identity = (schema.one_of(values) for values in (SWEEPS, ("ask", "accept"), ("marked", "counted")))
    Network = schema.Kind('true, false or "loopback"', lambda value: type(value) is bool or value == "loopback")
    Inside = schema.listed(
        schema.TEXT.part("a path in the project", lambda path: _is_inside(path)),
        'a list of paths in the project, such as [".env"]',
    )
    Variables = schema.listed(
        schema.TEXT.part("a name", lambda name: name.isascii() and name.isidentifier()),
        'a list of names of variables, such as ["DATABASE_PASSWORD"]',
    )
    Shown = schema.listed(
        schema.TEXT.part("", lambda path: _is_inside(path) and path[0] != "~" and bool(path.strip("./"))),
        'a list of paths below your home folder, such as [".config/tool"]',
    )
    Event = schema.one_of(EVENTS)
    Address = schema.TEXT.part(
        "https://… or http://…, in ASCII, without a space or {", lambda url: not url or _is_address(url)
    )
    Name = schema.TEXT.part("a name, ASCII letters, digits, '.', '_' and '-', such as look-1", schema.is_name)
    When = schema.TEXT.part(WHENS, lambda text: _is_when(text))
    Agents = schema.Kind("a name or a list of names", lambda value: bool(agent_names(value)) or value in ("", []))


class TopTable(Record):
    """The keys before the first table. Names give the unit of times."""

    agent: Agents = ""
    user: str = ""
    trust: Trust = ""
    mcp: bool = False
    workplace: Workplace = "tree"
    confine: Confine = "auto"
    network: Network = True
    carry: Inside = []
    lanes: Most = 1
    check_seconds: Most = 600
    sweep_seconds: Most = 300
    curate_after: Most = 20
    identity: Identity = "marked"
    otel: Address = ""


class LimitsTable(Record):
    """[limits]; None means no limit."""

    max_runs: Most = 200
    max_hours: MostNumber = 48
    stall_after: Most = 3
    max_cost_usd: MostNumber | None = None
    max_cost_usd_day: MostNumber | None = None
    max_cost_usd_feature: MostNumber | None = None
    max_tokens: Most | None = None
    max_log_mb: Most = 64


class WorkspaceTable(Record):
    """[workspace]: context of agents besides their task. `additional_context`: files of the project appended to
    AGENTS.md; `max_tokens`: of all sections together; the other keys turn parts off."""

    max_tokens: Most = 8000
    additional_context: Inside = []
    instructions: bool = True
    knowledge: bool = True
    skills: bool = True
    memory: bool = True
    subagents: bool = True
    tools: bool = True


class EnvTable(Record):
    """[env]; the only key, `pass`, is a keyword of Python."""

    __annotations__ = {"pass": "Variables"}
    vars()["pass"] = []


class ChecksTable(Record):
    """[checks]. `writes`: tracked files that a check may write; `needs`: variables that a project's own tests require."""

    writes: Inside = []
    needs: Variables = []


class ProofTable(Record):
    """[proof]. `guards`: whether a person is asked about a claim with guards alone, or accepts all of them."""

    guards: Guards = "ask"


class HomeTable(Record):
    """[home]: additional visible paths of a person's HOME, relative to it."""

    show: Shown = []


class TeamTable(Record):
    """[team]: its database, its files, and the tenant of this folder."""

    database: str = ""
    files: str = ""
    tenant: str = ""


class NamedTables(Record):
    """Tables with one subtable per name. `on` and `checkpoint`: arrays of tables. `prices`: USD per million tokens, by
    model."""

    on: list[Json] = []
    checkpoint: list[Json] = []
    roles: dict[str, dict[str, Json]] = {}
    agents: dict[str, dict[str, Json]] = {}
    machines: dict[str, dict[str, Json]] = {}
    prices: dict[str, dict[str, float]] = {}


class RoleTable(Record):
    """[roles.NAME]"""

    agent: Agents = ""
    model: Agents = ""
    minutes: MostNumber = 60
    idle_minutes: MostNumber = 10


class AgentTable(Record):
    """[agents.NAME]"""

    path: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    model: str = ""
    command: list[str] = []
    format: str = ""
    writable: list[str] = []
    base_url: Address = ""
    api_key_env: str = ""
    temperature: Price | None = None
    max_output_tokens: Most | None = None
    max_steps: Most = 200
    request_seconds: MostNumber = 600
    curate: bool = True
    plans: str = "plans"
    placement: str = "local"
    scope: str = "user"
    shared: list[str] = []
    sandbox_limits: dict[str, Most] = {}
    store: str = ""


class MachinesTable(Record):
    """[machines]: where the final sweep runs."""

    sweep: Sweep = "home"


class MachineTable(Record):
    """[machines.NAME]: the words before `program machine`, none for this machine, or a scheduler; how many lanes it takes."""

    command: list[str] = []
    address: str = ""
    insecure: bool = False
    program: str = "harness"
    lanes: Most = 1


class PriceTable(Record):
    """[prices.MODEL]"""

    input: Price
    output: Price
    cache_read: Price = 0
    cache_write: Price = 0


class OnTable(Record):
    """[[on]]: a program or a URL that receives the event. `before`: the program may refuse a run."""

    event: Event
    run: list[str] = []
    url: Address = ""
    before: bool = False
    seconds: Most = 60


class CheckpointTable(Record):
    """[[checkpoint]]"""

    name: Name
    when: When


class ConfigFile(NamedTables, TopTable):
    """The whole file."""

    limits: dict[str, Json] = {}
    env: dict[str, Json] = {}
    home: dict[str, Json] = {}
    workspace: dict[str, Json] = {}
    checks: dict[str, Json] = {}
    proof: dict[str, Json] = {}
    land: dict[str, Json] = {}
    team: dict[str, Json] = {}


class Config(NamedTables, LimitsTable, TopTable):
    """The values of config.toml, with defaults. `passed`: the variables that `[env] pass` names; `shown`: the paths of
    `[home] show`; `writes` and `needs`: the keys of `[checks]`; `workspace`, `land` and `team`: their tables;
    `guards`: the key of `[proof]`; `sweep`: the key of `[machines]`."""

    agent: list[str] = []
    passed: list[str] = []
    shown: list[str] = []
    writes: list[str] = []
    needs: list[str] = []
    guards: str = "ask"
    workspace: dict[str, Json] = {}
    land: dict[str, Json] = {}
    team: dict[str, Json] = {}
    sweep: str = "home"

    @property
    def home(self) -> list[str]:
        """Additional visible paths of a person's HOME; `/` means everything except keys."""
        return ["/", *self.shown] if self.trust == "full" else self.shown


REPEATED = {"on": OnTable, "checkpoint": CheckpointTable}
SINGLE = ("limits", "env", "home", "workspace", "checks", "proof", "land", "team")  # tables without a name of their own
TABLES = {"limits": LimitsTable, "env": EnvTable, "workspace": WorkspaceTable, "roles": RoleTable, "agents": AgentTable}
TABLES |= {"home": HomeTable, "prices": PriceTable, "checks": ChecksTable, "team": TeamTable, "machines": MachineTable}
TABLES |= {"proof": ProofTable, "land": LandTable}


def load(layout: Layout) -> Config:
    """The configuration of the mission; defaults if there is no file. BrokenFile names file, line and remedy."""
    path, text = layout.path(names.CONFIG), State(layout).text(names.CONFIG)
    return Config() if text is None else parse(text, path)


def require(layout: Layout) -> Config:
    """As `load`, at the start of a run; raises BrokenFile for a setting that is no longer supported."""
    found = load(layout)
    if found.workplace != "tree":
        line = documents.line_of_key(State(layout).text(names.CONFIG) or "", "", "workplace")
        fault = "runs no longer work in the project folder; each has its own worktree"
        remedy = f'Remove the line workplace = "{found.workplace}".'
        raise BrokenFile(layout.path(names.CONFIG), fault, line=line, remedy=remedy)
    return found


def parse(text: str, path: str) -> Config:
    """The configuration in a TOML text; raises BrokenFile."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        place = re.search(r"line (\d+)", str(fault))
        bad = int(place[1]) if place else text.count("\n") + 1
        raise BrokenFile(path, f"not TOML ({fault})", line=bad, remedy="Correct that line.") from None
    if found := _faults(value):
        first = found[0]
        table = first.where.strip("[]") if first.where[0] == "[" else ""
        line = documents.line_of_key(text, table, first.key, first.row)
        raise BrokenFile(path, "; ".join(found), line=line, remedy="docs/contract.md lists the keys.")
    limits, passed = {**value.pop("limits", {}), **value.pop("proof", {})}, value.pop("env", {}).get("pass", [])
    named = {name: value["machines"].pop(name) for name in MachinesTable.fields if name in value.get("machines", {})}
    shown = [os.path.normpath(path) for path in value.pop("home", {}).get("show", [])]
    named |= {"agent": agent_names(value.get("agent")), "passed": passed, "shown": shown, **value.pop("checks", {})}
    return Config(**{**value, **limits, **named})


def _faults(value: dict[str, Any]) -> list[SchemaFault]:
    there = {name: table for name, table in value.items() if name in TABLES and type(table) is dict}
    rows = {name: value[name] for name in REPEATED if type(value.get(name)) is list}
    top = {**value, **{name: {} for name in there}, **{name: [] for name in rows}}
    tables: list[tuple[str, Any, type[Record]]] = [("config.toml", top, ConfigFile)]
    if machines := there.get("machines"):
        there["machines"] = {name: one for name, one in machines.items() if type(one) is dict}
        own = {name: one for name, one in machines.items() if name not in there["machines"]}
        tables.append(("[machines]", own, MachinesTable))
    for kind, named in there.items():
        of_kind = {"": named} if kind in SINGLE else {f".{name}": table for name, table in named.items()}
        tables += [(f"[{kind}{name}]", table, TABLES[kind]) for name, table in of_kind.items()]
    found = [fault for where, table, shape in tables for fault in schema.faults(table, where, shape)]
    found += [fault for name, known in rows.items() for fault in _row_faults(name, known)]
    return found or [*_hook_faults(rows.get("on", [])), *_name_faults(rows.get("checkpoint", []))]


def _row_faults(name: str, rows: list[Any]) -> Iterator[SchemaFault]:
    """The faults of an array of tables."""
    for number, row in enumerate(rows):
        for fault in schema.faults(row, f"[[{name}]]", REPEATED[name]):
            fault.row = number
            yield fault


def _hook_faults(rows: list[dict[str, Any]]) -> Iterator[SchemaFault]:
    """The faults of hooks whose keys are individually valid."""
    for number, row in enumerate(rows):
        fault = None
        if bool(row.get("run")) == bool(row.get("url")):
            fault = SchemaFault.of("[[on]] needs either 'run' or 'url'", "[[on]]")
        elif row.get("before") and (row["event"] != "run" or row.get("url")):
            fault = SchemaFault.of("[[on]] 'before' is for event = \"run\" and a program", "[[on]]", "before")
        if fault:
            fault.row = number
            yield fault


def _name_faults(rows: list[dict[str, Any]]) -> list[SchemaFault]:
    faults = schema.name_faults((row["name"] for row in rows), "checkpoint")
    return [SchemaFault.of(text, "[[checkpoint]]", "name") for text in faults]


def _is_address(url: str) -> bool:
    return url.startswith(("https://", "http://")) and url.isascii() and url.isprintable() and not {*url} & {*" {"}


def _is_when(text: str) -> bool:
    """Whether a text is a valid time for a checkpoint."""
    if text.startswith(FEATURE):
        return schema.is_name(text.removeprefix(FEATURE))
    if text.startswith(COST):
        step = text.removeprefix(COST)
        return step.replace(".", "", 1).isdecimal() and float(step) > 0
    return text in ("after-plan", "before-done")


def _is_inside(path: str) -> bool:
    """Whether a path from config.toml is relative and stays in the project's folder."""
    return bool(path) and not path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def user_of(settings: Config) -> str:
    """The user of the runs: `HARNESS_USER`, else `user` of config.toml, else ""."""
    return os.environ.get(USER) or settings.user


def agent_names(agent: object) -> list[str]:
    """The name of an agent or a list of names, as a list; [] for any other value."""
    found = [agent] if isinstance(agent, str) and agent else agent
    return [*found] if isinstance(found, list) and all(isinstance(name, str) for name in found) else []


def every_agent(settings: Config) -> list[str]:
    """The agents that config.toml names, for all roles and for single ones."""
    own = [name for table in settings.roles.values() for name in agent_names(table.get("agent"))]
    return [*dict.fromkeys([*settings.agent, *own])]
