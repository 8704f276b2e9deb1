"""The commands about a team: `team init`, `add`, `archive`, `grant`, `revoke`, `show` and `threads`, and the verbs on goals and
tasks, `goal …` and `task …`."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from harness.base import console
from harness.base.errors import UsageFault
from harness.cli import _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.mission import config
from harness.team import database, directory, status
from harness.workplace import run_detection
from harness.workspace import places

in_tenant = click.option("--tenant", default="", metavar="T", help="The tenant; default as in config.toml.")
why = click.argument("why", default="")
MEMBER = "{kind} {name}: {id}"
ARCHIVED = "{name} is {status}"
GRANT = "{kind} {name}: {mode} {space}"
GOAL, TASK = "{goal} {title}: {status}", "{task} {title}: {status}"


def attributed(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every verb."""
    by = click.option("--by", metavar="WHO", help="Who does it: a user, or agent/NAME; default: you.")
    key = click.option("--key", default="", help="A verb that is sent again with the same KEY happens once.")
    return by(key(in_tenant(as_json(command))))


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
    settings = config.load(here())
    found = config.TeamTable(**settings.team)
    if not found.database:
        raise UsageFault(
            'There is no team here. Write in .harness/config.toml: [team] database = "sqlite:///srv/team.db"'
        )
    return found, places.user_of(settings) or getpass.getuser()


def _read(tenant: str, act: Callable[[database.Transaction], Any]) -> Any:
    settings, _ = _settings()
    with database.open_team(settings.database).transaction(tenant or settings.tenant) as tx:
        return act(tx)


def _print(rows: Iterable[dict[str, Any]], words: str, value: object, *, as_json: bool) -> None:
    if as_json:
        _values.echo(value)
    for row in () if as_json else rows:
        console.print_line(words.format_map(row) + (" (it was done before)" if row.get("repeated") else ""))


def _verb(what: str, words: str, options: dict[str, Any], act: Callable[..., Any], reason: str = "") -> None:
    """Carry out `act(transaction, attribution)`, and print its row."""
    run_detection.refuse(here(), what)
    by = database.Attribution(who=options["by"] or _settings()[1], why=reason, key=options["key"])
    row = _read(options["tenant"], lambda tx: act(tx, by))
    _print([row], words, row, as_json=options["as_json"])


@team.command(name="init")
@click.option("--as", "owner", default="", metavar="URL", help="The same database, as a role that may make tables.")
@in_tenant
@as_json
def team_init(owner: str, tenant: str, as_json: bool) -> None:
    """Make the tables of the database, or bring them to this version, and add the tenant."""
    run_detection.refuse(here(), "team init")
    settings, name = _settings()[0], tenant or _settings()[0].tenant
    made = database.migrate(
        owner or settings.database, unquote(urlsplit(settings.database).username or "") if owner else ""
    )
    found = database.open_team(settings.database)
    row = {"database": found.database.where, "migrations": made, "tenant": name, "id": found.add_tenant(name)}
    _print([row], "{database} is ready for the tenant {tenant}: {id}", row, as_json=as_json)


@team.command(name="add")
@click.argument("kind", type=click.Choice(directory.KINDS))
@click.argument("name")
@click.option("--agent", default="", metavar="NAME", help="Of a thread: its agent.")
@click.option("--space", default="", metavar="NAME", help="Of a thread: its active space.")
@click.option("--user", default="", metavar="NAME", help="Of a thread: its user.")
@attributed
def team_add(kind: str, name: str, agent: str, space: str, user: str, **options: Any) -> None:
    """Add an agent, a space, a user or a thread; NAME is its folder name."""
    bound = {one: word for one, word in (("agent", agent), ("space", space), ("user", user)) if word}
    _verb("team add", MEMBER, options, lambda tx, by: directory.add(tx, kind, name, by, bound))


@team.command(name="archive")
@click.argument("space")
@why
@click.option("--undo", is_flag=True, help="Make it active again.")
@attributed
def team_archive(space: str, why: str, undo: bool, **options: Any) -> None:
    """Archive a space: its files stay, and no turn changes them."""
    _verb("team archive", ARCHIVED, options, lambda tx, by: directory.archive(tx, space, by, undo=undo), why)


@team.command(name="grant")
@click.argument("who")
@click.argument("space")
@click.argument("mode", type=click.Choice(directory.MODES))
@why
@attributed
def team_grant(who: str, space: str, mode: str, why: str, **options: Any) -> None:
    """Let a user or an agent use a space. A thread may do there what both its user and its agent may."""
    _verb("team grant", GRANT, options, lambda tx, by: directory.grant(tx, who, space, mode, by), why)


@team.command(name="revoke")
@click.argument("who")
@click.argument("space")
@why
@attributed
def team_revoke(who: str, space: str, why: str, **options: Any) -> None:
    """Take a grant back, from this moment on, also from turns that run."""
    _verb(
        "team revoke",
        "{kind} {name}: no access to {space}",
        options,
        lambda tx, by: directory.grant(tx, who, space, "", by),
        why,
    )


@team.command(name="show")
@in_tenant
@as_json
def team_show(tenant: str, as_json: bool) -> None:
    """Show agents, spaces, users and grants."""
    found = _read(tenant, directory.members)
    rows = [{**row, "kind": kind[:-1]} for kind in ("agents", "spaces", "users") for row in found[kind]]
    _print(rows, MEMBER, found, as_json=as_json)
    _print([] if as_json else found["grants"], GRANT, found, as_json=False)


@team.command(name="threads")
@in_tenant
@as_json
def team_threads(tenant: str, as_json: bool) -> None:
    """List the threads, each with its agent, space and user."""
    found = _read(tenant, directory.threads)
    _print(found, "{name}: {agent} in {space} for {user_name}", found, as_json=as_json)


@goal.command(name="add")
@click.argument("thread")
@click.argument("title")
@why
@click.option("--owner", default="", metavar="USER", help="Who answers for it; default: the thread's user.")
@click.option("--review", "mode", default="none", type=click.Choice(status.REVIEWS), help="What needs an acceptance.")
@click.option("--accepts", default="", metavar="USER", help="Who accepts; default: the owner.")
@click.option(
    "--blocks", default="goal", type=click.Choice(status.BLOCKS), help="What a task that waits for it blocks."
)
@attributed
def goal_add(
    thread: str, title: str, why: str, owner: str, mode: str, accepts: str, blocks: str, **options: Any
) -> None:
    """Add a goal to a thread, with its review policy."""
    policy = status.ReviewPolicy(owner=owner, mode=mode, accepts=accepts, blocks=blocks)
    _verb("goal add", GOAL, options, lambda tx, by: status.add_goal(tx, thread, title, policy, by), why)


@task.command(name="add")
@click.argument("goal")
@click.argument("title")
@why
@attributed
def task_add(goal: str, title: str, why: str, **options: Any) -> None:
    """Add a task to a goal, such as G-1."""
    _verb("task add", TASK, options, lambda tx, by: status.add_task(tx, goal, title, by), why)


def _of_kind(group: click.Group, kind: str, words: str) -> None:
    """The commands that goals and tasks have alike: a list, and a command for each verb."""

    @group.command(name="list", help=f"List the {kind}s of a thread, with their status.")
    @click.argument("thread")
    @in_tenant
    @as_json
    def listed(thread: str, tenant: str, as_json: bool) -> None:
        found = _read(tenant, lambda tx: status.overview(tx, thread))[f"{kind}s"]
        _print(found, words, found, as_json=as_json)

    def add(verb: str) -> None:
        @group.command(name=verb, help=f"{status.VERBS[verb].rstrip(' …')}.")
        @click.argument("name", metavar=kind.upper())
        @why
        @attributed
        def verb_of(name: str, why: str, **options: Any) -> None:
            _verb(f"{kind} {verb}", words, options, lambda tx, by: status.change(tx, kind, name, verb, by), why)

    for verb in status.KINDS[kind]:
        add(verb)


_of_kind(goal, "goal", GOAL)
_of_kind(task, "task", TASK)
