"""The commands that order something of the mission: features, the answer to an escalation, a file that was refused."""

from __future__ import annotations

import json
from typing import Any

import click

from harness.base import clock, console, errors, schema
from harness.cli import _tables, _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import status, steering
from harness.decision import checkpoints, escalations, views
from harness.mission import mission
from harness.mission.contract import Check, Claim
from harness.mission.features import Feature
from harness.run.requests import claim_orders, orders
from harness.state.layout import command


def order(verb: str, *words: str) -> None:
    """Place an order, and print what became of it."""
    mission.check_format(here())
    console.print_line(orders.place(here(), verb, list(words)))


@click.group(cls=help.CommandGroups)
def feature() -> None:
    """Features: list, show, add, set, retry, block."""


@feature.command(name="list")
@as_json
def feature_list(as_json: bool) -> None:
    """The features, a line each."""
    rows = status.status(here())["features"]
    if as_json:
        _values.echo(rows)
        return
    for row in rows:
        console.print_line(f"{row['id']}  {row['status']:<11}  {row['attempts']}/{row['tries']}  {row['title']}")


@feature.command(name="show")
@click.argument("feature_id")
@as_json
def feature_show(feature_id: str, as_json: bool) -> None:
    """One feature, whole: description, claims with checks, what happened to it."""
    _values.echo(_values.feature(here(), feature_id)) if as_json else _tables.feature(here(), feature_id)


@feature.command(name="set")
@click.argument("feature_id")
@click.argument("assignment", metavar="KEY=VALUE")
def feature_set(feature_id: str, assignment: str) -> None:
    """Change a feature's title, description or priority."""
    key, equals, value = assignment.partition("=")
    if not equals:
        raise errors.UsageFault(f"Give KEY=VALUE, such as: {command('feature set')} F-001 priority=1")
    order("feature set", feature_id, key, value)


@feature.command(name="retry")
@click.argument("feature_id")
def feature_retry(feature_id: str) -> None:
    """Try a feature again, with all its tries."""
    order("feature retry", feature_id)


@feature.command(name="block")
@click.argument("feature_id")
@click.option("--reason", default="a person blocked it")
def feature_block(feature_id: str, reason: str) -> None:
    """Leave a feature alone until it is retried."""
    order("feature block", feature_id, reason)


@feature.command(name="add")
@click.argument("title")
@click.option("--text", default="", help="What else to know: shapes, names, edge cases.")
@click.option("--claim", "sentence", default="", help="One observable sentence; TITLE unless given.")
@click.option("--check", "checks", multiple=True, metavar="SHELL", help="Decides by its exit status; may be repeated.")
@click.option("--guard", is_flag=True, help="The checks may be green before the work.")
@click.option("--after", multiple=True, metavar="FEATURE", help="A feature that it builds on; may be repeated.")
@click.option("--priority", type=int, default=1, help="1 comes first.")
def feature_add(title: str, text: str, sentence: str, checks: tuple[str, ...], **more: Any) -> None:
    """Want one more feature. With checks it is in the plan at once, else a planner plans it."""
    mission.check_format(here())
    if not checks:
        order("feature want", title, "\n".join(filter(None, [text, sentence])), steering.who())
        return
    claim = Claim(
        id="VAL-NEW",
        text=" ".join((sentence or title).split()),
        checks=[Check(run=run.strip("\n"), guard=bool(more["guard"])) for run in checks],
    )
    made = Feature(id="F-NEW", title=title, claims=[claim.id], description=text, depends_on=list(more["after"]))
    made.priority = more["priority"]
    fired = [_tables.receipt(receipt) for receipt in claim_orders.try_new(here(), claim)]
    receipts = json.dumps([receipt.asdict() for receipt in fired])
    order("feature add", json.dumps(schema.plain(made)), json.dumps(schema.plain(claim)), receipts)


@click.group(cls=help.CommandGroups)
def checkpoint() -> None:
    """Where the mission waits for your decision: list, grant, deny."""


@checkpoint.command(name="list")
@as_json
def checkpoint_list(as_json: bool) -> None:
    """What waits, what to read, and the answers so far."""
    mission.check_format(here())
    waiting, rows = views.gather(here()).asks.all, checkpoints.rows(here())
    answers = [row for row in rows if row.state in checkpoints.ANSWERED]
    if as_json:
        _values.echo({"waiting": [one.asdict() for one in waiting], "answers": [one.asdict() for one in answers]})
        return
    lines = [checkpoints.shown(one) for one in waiting] or ["No checkpoint waits."]
    lines += [f"{row.at}  {row.name} ({row.cause}) {row.state} by {row.by}  {row.text}".rstrip() for row in answers]
    console.print_line(console.sanitise("\n".join(lines)))


@checkpoint.command(name="grant")
@click.argument("name")
@click.option("--note", default="", help="What the next plan should know; kept with the answer.")
def checkpoint_grant(name: str, note: str) -> None:
    """Let the mission go on behind the checkpoint NAME."""
    order("checkpoint grant", name, note, steering.who())


@checkpoint.command(name="deny")
@click.argument("name")
@click.option("--note", default="", help="Why; the next plan is made with it.")
def checkpoint_deny(name: str, note: str) -> None:
    """Say no, and why: the planner plans anew, and what it brings is asked again."""
    order("checkpoint deny", name, note, steering.who())


@click.group(cls=help.CommandGroups, invoke_without_command=True)
@click.pass_context
def escalation(context: click.Context) -> None:
    """Show what the mission cannot decide, and answer it."""
    if context.invoked_subcommand is None:
        context.invoke(escalation_show)


@escalation.command(name="show")
@as_json
def escalation_show(as_json: bool) -> None:
    """The open escalation: what is red, and a command for each way on."""
    mission.check_format(here())
    found = escalations.shown(here(), clock.now()).asdict()
    _values.echo(found) if as_json else _tables.escalation(found)


@escalation.command(name="answer")
@click.argument("text")
def escalation_answer(text: str) -> None:
    """Archive the escalation with your answer, and restart the counts."""
    order("escalation answer", text)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("path")
def accept(run_id: str, path: str) -> None:
    """Take a file that was refused in a run after all."""
    order("accept", run_id, path)


COMMANDS = (feature, checkpoint, escalation, accept)
