"""The commands about a team: `team init`, `add`, `archive`, `grant`, `revoke`, `show`, `threads` and `run`, and the verbs on
goals and tasks, `goal …` and `task …`."""

from __future__ import annotations

import contextlib
import getpass
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from harness.base import console, exits
from harness.base.errors import UsageFault
from harness.cli import _team_turn, _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.mission import config
from harness.run.machines import lane
from harness.state.layout import state_home
from harness.team import database, directory, status
from harness.team.turn import run_turn
from harness.workplace import run_detection

MEMBER, GRANT = "{kind} {name}: {id}", "{kind} {name}: {mode} {space}"
GOAL, TASK = "{goal} {title}: {status}", "{task} {title}: {status}"


def _option(name: str, about: str, **more: Any) -> click.Option:
    return click.Option([f"--{name}"], **{"default": "", "metavar": "NAME", "help": about, **more})


def _choice(name: str, words: Sequence[str]) -> click.Argument:
    return click.Argument([name], type=click.Choice(words))


WHY = click.Argument(["why"], default="")
BY = _option("by", "Who does it: a user, or agent/NAME; default: you.")
KEY = _option("key", "A verb that is sent again with the same KEY happens once.", metavar="KEY")
TENANT = _option("tenant", "The tenant; default as in config.toml.")
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON value.")
POLICY = (
    _option("owner", "Who answers for it; default: the thread's user."),
    click.Option(
        ["--review", "mode"], default="none", type=click.Choice(status.REVIEWS), help="What needs an acceptance."
    ),
    _option("accepts", "Who accepts; default: the owner."),
    click.Option(
        ["--blocks"], default="goal", type=click.Choice(status.BLOCKS), help="What a task that waits for it blocks."
    ),
)


@click.group(cls=help.CommandGroups)
def team() -> None:
    """Who and what a team has, and who may use it."""


@click.group(cls=help.CommandGroups)
def goal() -> None:
    """Goals of a team's threads. Verbs change them, and files only show them."""


@click.group(cls=help.CommandGroups)
def task() -> None:
    """Tasks of a team's goals. Verbs change them, and files only show them."""


def _settings() -> tuple[config.TeamTable, str]:
    """[team] of config.toml, and who calls."""
    run_detection.refuse(here(), click.get_current_context().command_path)
    settings = config.load(here())
    found = config.TeamTable(**settings.team)
    if not found.database:
        raise UsageFault(
            'There is no team here. Write in .harness/config.toml: [team] database = "sqlite:///srv/team.db"'
        )
    return found, config.user_of(settings) or getpass.getuser()


def _carried_out(tenant: str, act: Callable[[database.Transaction], Any]) -> Any:
    settings, _ = _settings()
    with database.open_team(settings.database).transaction(tenant or settings.tenant) as tx:
        return act(tx)


def _print(rows: Iterable[dict[str, Any]], words: str, value: object, *, as_json: bool) -> None:
    if as_json:
        _values.echo(value)
    for row in () if as_json else rows:
        console.print_line(words.format_map(row) + (" (it was done before)" if row.get("repeated") else ""))


def _verb(
    group: click.Group, name: str, about: str, words: str, act: Callable[..., Any], *given: str | click.Parameter
) -> None:
    """A command that carries out `act(transaction, by=…, …)` with these arguments and options, and prints its row in words."""

    def called(by: str, key: str, tenant: str, as_json: bool, why: str = "", **values: Any) -> None:
        if run := run_detection.run_id(here()):
            if by or key or tenant:
                raise UsageFault("Inside of a turn the thread's agent does it: leave out --by, --key and --tenant.")
            row = _team_turn.ask(here(), run, str(group.name), name, {**values, "why": why})
        else:
            who = database.Attribution(who=by or _settings()[1], why=why, key=key)
            row = _carried_out(tenant, lambda tx: act(tx, by=who, **values))
        _print([row], words, row, as_json=as_json)

    params = [click.Argument([one]) if isinstance(one, str) else one for one in given]
    group.add_command(click.Command(name, callback=called, params=[*params, BY, KEY, TENANT, JSON], help=about))


def _list(group: click.Group, name: str, about: str, words: str, act: Callable[..., Any], *given: str) -> None:
    """A command that prints the rows of `act(transaction, …)` in words."""

    def called(tenant: str, as_json: bool, **values: str) -> None:
        found = _carried_out(tenant, lambda tx: act(tx, **values))
        _print(found, words, found, as_json=as_json)

    params = [click.Argument([one]) for one in given]
    group.add_command(click.Command(name, callback=called, params=[*params, TENANT, JSON], help=about))


@team.command(name="init")
@click.option("--as", "owner", default="", metavar="URL", help="The same database, as a role that may make tables.")
@click.option("--tenant", default="", metavar="NAME", help="The tenant to add; default as in config.toml.")
@as_json
def team_init(owner: str, tenant: str, as_json: bool) -> None:
    """Make the tables of the database, or bring them to this version, and add the tenant."""
    settings, _ = _settings()
    name = tenant or settings.tenant
    made = database.migrate(
        owner or settings.database, unquote(urlsplit(settings.database).username or "") if owner else ""
    )
    found = database.open_team(settings.database)
    row = {"database": found.database.where, "migrations": made, "tenant": name, "id": found.add_tenant(name)}
    _print([row], "{database} is ready for the tenant {tenant}: {id}", row, as_json=as_json)


@team.command(name="show")
@click.option("--tenant", default="", metavar="NAME", help="The tenant; default as in config.toml.")
@as_json
def team_show(tenant: str, as_json: bool) -> None:
    """Show agents, spaces, users and grants."""
    found = _carried_out(tenant, directory.members)
    rows = [{**row, "kind": kind[:-1]} for kind in ("agents", "spaces", "users") for row in found[kind]]
    _print(rows, MEMBER, found, as_json=as_json)
    _print([] if as_json else found["grants"], GRANT, found, as_json=False)


@team.command(name="run")
@click.argument("thread")
@click.argument("message")
@click.option("--agent", default="", metavar="NAME", help="The agent; default as in config.toml.")
@click.option("--on", default="", metavar="MACHINE", help="A machine of config.toml; default: here.")
@click.option("--tenant", default="", metavar="NAME", help="The tenant; default as in config.toml.")
@as_json
def team_run(thread: str, message: str, agent: str, on: str, tenant: str, as_json: bool) -> int:
    """Answer MESSAGE in a thread: one turn of an agent in the thread's workspace, and then each file that it changed."""
    settings, by = _settings()
    if not settings.files:
        raise UsageFault('The team has no files here. Write in .harness/config.toml: [team] files = "file:///srv/team"')
    os.environ[lane.MACHINE] = on
    exits.handle_signals()
    turn, known = _team_turn.TurnRun(here(), [agent] if agent else [], by), database.open_team(settings.database)
    at = (known, settings.files, tenant or settings.tenant, thread, os.path.join(state_home(), "team"))
    with contextlib.redirect_stdout(sys.stderr):  # what is said of the run
        found = run_turn(*at, message, turn.answer, turn.workspace)
    if as_json:
        more = {"files": [one.asdict() for one in found.files], "run": turn.run, "mission": turn.layout.folders.project}
        _values.echo({**found.asdict(), **more})
    else:
        lines = [f"  {one.outcome:<12} {one.shown}  {one.why}".rstrip() for one in found.files]
        console.print_line("\n".join(map(console.sanitise, [found.answer, *lines])))
    return turn.code


def _added(tx: database.Transaction, by: database.Attribution, kind: str, name: str, **bound: str) -> Any:
    return directory.add(tx, kind, name, by, {one: word for one, word in bound.items() if word})


def _goal_added(tx: database.Transaction, by: database.Attribution, thread: str, title: str, **policy: str) -> Any:
    return status.add_goal(tx, thread, title, status.ReviewPolicy(**policy), by)


BOUND = [_option(one, f"Of a thread: its {one}.") for one in ("agent", "space", "user")]
UNDO = click.Option(["--undo"], is_flag=True, help="Make it active again.")
ADD = "Add an agent, a space, a user or a thread; NAME is its folder name."
LET = "Let a user or an agent use a space. A thread may do there what both its user and its agent may."
END = "Take a grant back, from this moment on, also from turns that run."
_verb(team, "add", ADD, MEMBER, _added, _choice("kind", directory.KINDS), "name", *BOUND)
_verb(
    team, "archive", "Archive a space: no turn changes it.", "{name} is {status}", directory.archive, "space", WHY, UNDO
)
_verb(team, "grant", LET, GRANT, directory.grant, "who", "space", _choice("mode", directory.MODES), WHY)
_verb(
    team, "revoke", END, "{kind} {name}: no access to {space}", partial(directory.grant, mode=""), "who", "space", WHY
)
_list(team, "threads", "List the threads.", "{name}: {agent} in {space} for {user_name}", directory.threads)
_verb(
    goal, "add", "Add a goal to a thread, with its review policy.", GOAL, _goal_added, "thread", "title", WHY, *POLICY
)
_verb(task, "add", "Add a task to a goal, such as G-1.", TASK, status.add_task, "goal", "title", WHY)
for of, kind, words in ((goal, "goal", GOAL), (task, "task", TASK)):
    named = click.Argument(["name"], metavar=kind.upper())
    _list(of, "list", f"List the {kind}s of a thread.", words, partial(status.listed, kind=kind), "thread")
    for verb in status.KINDS[kind]:
        _verb(
            of,
            verb,
            status.VERBS[verb].rstrip(" …") + ".",
            words,
            partial(status.change, kind=kind, verb=verb),
            named,
            WHY,
        )
