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

from harness.base import exits
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
BY = _option("by", "The caller: a user, or agent/NAME; default: you.")
KEY = _option("key", "Repeating the command with the same KEY changes nothing.", metavar="KEY")
TENANT_HELP = "The tenant; by default that of config.toml."
TENANT = _option("tenant", TENANT_HELP)
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON value.")
POLICY = (
    _option("owner", "The user who owns the goal; default: the thread's user."),
    click.Option(
        ["--review", "mode"], default="none", type=click.Choice(status.REVIEWS), help="What needs an acceptance."
    ),
    _option("accepts", "Who accepts; default: the owner."),
    click.Option(["--blocks"], default="goal", type=click.Choice(status.BLOCKS), help="What a task in review blocks."),
)


@click.group(cls=help.CommandGroups)
def team() -> None:
    """Manage a team: its agents, spaces, users, threads and grants."""


@click.group(cls=help.CommandGroups)
def goal() -> None:
    """Manage the goals of a thread. Files only show them; these commands change them."""


@click.group(cls=help.CommandGroups)
def task() -> None:
    """Manage the tasks of a goal. Files only show them; these commands change them."""


def _settings() -> tuple[config.TeamTable, str]:
    """[team] of config.toml, and the name of the caller."""
    run_detection.refuse(here(), click.get_current_context().command_path)
    settings = config.load(here())
    found = config.TeamTable(**settings.team)
    if not found.database:
        remedy = '[team] database = "sqlite:///srv/team.db"'
        raise UsageFault(f"There is no team here. Write in .harness/config.toml: {remedy}")
    return found, config.user_of(settings) or getpass.getuser()


def _transact(tenant: str, act: Callable[[database.Transaction], Any]) -> Any:
    settings, _ = _settings()
    with database.open_team(settings.database).transaction(tenant or settings.tenant) as tx:
        return act(tx)


def _print(rows: Iterable[dict[str, Any]], words: str, value: object, *, as_json: bool) -> None:
    lines = (words.format_map(row) + (" (already done)" if row.get("repeated") else "") for row in rows)
    _values.show(value, lines, as_json=as_json)


def _verb(
    group: click.Group, name: str, about: str, words: str, act: Callable[..., Any], *given: str | click.Parameter
) -> None:
    """Add a command that carries out `act(transaction, by=…, …)` and prints its row as `words`."""

    def callback(by: str, key: str, tenant: str, as_json: bool, why: str = "", **values: Any) -> None:
        if run := run_detection.run_id(here()):
            if by or key or tenant:
                raise UsageFault("Inside a turn the caller is the thread's agent. Leave out --by, --key and --tenant.")
            row = _team_turn.ask(here(), run, str(group.name), name, {**values, "why": why})
        else:
            who = database.Attribution(who=by or _settings()[1], why=why, key=key)
            row = _transact(tenant, lambda tx: act(tx, by=who, **values))
        _print([row], words, row, as_json=as_json)

    params = [click.Argument([one]) if isinstance(one, str) else one for one in given]
    group.add_command(click.Command(name, callback=callback, params=[*params, BY, KEY, TENANT, JSON], help=about))


def _list(group: click.Group, name: str, about: str, words: str, act: Callable[..., Any], *given: str) -> None:
    """Add a command that prints the rows of `act(transaction, …)` as `words`."""

    def callback(tenant: str, as_json: bool, **values: str) -> None:
        found = _transact(tenant, lambda tx: act(tx, **values))
        _print(found, words, found, as_json=as_json)

    params = [click.Argument([one]) for one in given]
    group.add_command(click.Command(name, callback=callback, params=[*params, TENANT, JSON], help=about))


@team.command(name="init")
@click.option("--as", "owner", default="", metavar="URL", help="The same database, with a role that may create tables.")
@click.option("--tenant", default="", metavar="NAME", help="The tenant to add; by default that of config.toml.")
@as_json
def team_init(owner: str, tenant: str, as_json: bool) -> None:
    """Create or migrate the tables of the database, and add the tenant."""
    settings, _ = _settings()
    name = tenant or settings.tenant
    role = unquote(urlsplit(settings.database).username or "") if owner else ""
    applied = database.migrate(owner or settings.database, role)
    opened = database.open_team(settings.database)
    row = {"database": opened.database.where, "migrations": applied, "tenant": name, "id": opened.add_tenant(name)}
    _print([row], "{database} is ready for the tenant {tenant}: {id}", row, as_json=as_json)


@team.command(name="show")
@click.option("--tenant", default="", metavar="NAME", help=TENANT_HELP)
@as_json
def team_show(tenant: str, as_json: bool) -> None:
    """Show agents, spaces, users and grants."""
    found = _transact(tenant, directory.members)
    rows = [{**row, "kind": kind[:-1]} for kind in ("agents", "spaces", "users") for row in found[kind]]
    _print(rows, MEMBER, found, as_json=as_json)
    if not as_json:
        _print(found["grants"], GRANT, None, as_json=False)


@team.command(name="run")
@click.argument("thread")
@click.argument("message")
@click.option("--agent", default="", metavar="NAME", help="The agent; by default that of config.toml.")
@click.option("--on", default="", metavar="MACHINE", help="A machine of config.toml; default: this machine.")
@click.option("--tenant", default="", metavar="NAME", help=TENANT_HELP)
@as_json
def team_run(thread: str, message: str, agent: str, on: str, tenant: str, as_json: bool) -> int:
    """Answer MESSAGE in a thread: one turn of an agent in the thread's workspace. Prints the answer and the changed files."""
    settings, by = _settings()
    if not settings.files:
        raise UsageFault('The team has no files here. Write in .harness/config.toml: [team] files = "file:///srv/team"')
    os.environ[lane.MACHINE] = on
    exits.handle_signals()
    turn, known = _team_turn.TurnRun(here(), [agent] if agent else [], by), database.open_team(settings.database)
    at = (known, settings.files, tenant or settings.tenant, thread, os.path.join(state_home(), "team"))
    with contextlib.redirect_stdout(sys.stderr):  # messages about the run
        found = run_turn(*at, message, turn.answer, turn.workspace)
    lines = [f"  {one.outcome:<12} {one.shown}  {one.why}".rstrip() for one in found.files]
    value = {**found.asdict(), "run": turn.run, "mission": turn.layout.folders.project}
    _values.show(value, [found.answer, *lines], as_json=as_json)
    return turn.code


def _add(tx: database.Transaction, by: database.Attribution, kind: str, name: str, **bound: str) -> Any:
    return directory.add(tx, kind, name, by, {one: word for one, word in bound.items() if word})


def _add_goal(tx: database.Transaction, by: database.Attribution, thread: str, title: str, **policy: str) -> Any:
    return status.add_goal(tx, thread, title, status.ReviewPolicy(**policy), by)


BOUND = [_option(one, f"Of a thread: its {one}.") for one in ("agent", "space", "user")]
UNDO = click.Option(["--undo"], is_flag=True, help="Make it active again.")
ADD_HELP = "Add an agent, a space, a user or a thread. NAME is also its folder name."
GRANT_HELP = "Let a user or an agent use a space. A thread may do there what both its user and its agent may."
REVOKE_HELP = "Take a grant back, at once and also from running turns."
_verb(team, "add", ADD_HELP, MEMBER, _add, _choice("kind", directory.KINDS), "name", *BOUND)
ARCHIVE_HELP = "Archive a space, so that no turn changes it."
_verb(team, "archive", ARCHIVE_HELP, "{name} is {status}", directory.archive, "space", WHY, UNDO)
_verb(team, "grant", GRANT_HELP, GRANT, directory.grant, "who", "space", _choice("mode", directory.MODES), WHY)
REVOKED = "{kind} {name}: no access to {space}"
_verb(team, "revoke", REVOKE_HELP, REVOKED, partial(directory.grant, mode=""), "who", "space", WHY)
_list(team, "threads", "List the threads.", "{name}: {agent} in {space} for {user_name}", directory.threads)
GOAL_HELP = "Add a goal with its review policy to a thread."
_verb(goal, "add", GOAL_HELP, GOAL, _add_goal, "thread", "title", WHY, *POLICY)
_verb(task, "add", "Add a task to a goal, such as G-1.", TASK, status.add_task, "goal", "title", WHY)
for group, kind, words in ((goal, "goal", GOAL), (task, "task", TASK)):
    named = click.Argument(["name"], metavar=kind.upper())
    _list(group, "list", f"List the {kind}s of a thread.", words, partial(status.list_rows, kind=kind), "thread")
    for verb in status.KINDS[kind]:
        about, act = status.VERBS[verb].rstrip(" …") + ".", partial(status.change, kind=kind, verb=verb)
        _verb(group, verb, about, words, act, named, WHY)
