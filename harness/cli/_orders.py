"""The commands that change the plan: features, answers to checkpoints and escalations, refused files."""

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
    """Place an order, and print its result."""
    mission.check_format(here())
    console.print_line(orders.place(here(), verb, list(words)))


@click.group(cls=help.CommandGroups)
def feature() -> None:
    """Features: list, show, add, set, retry, block."""


@feature.command(name="list")
@as_json
def feature_list(as_json: bool) -> None:
    """List the features, one per line."""
    rows = status.status(here())["features"]
    lines = [f"{row['id']}  {row['status']:<11}  {row['attempts']}/{row['tries']}  {row['title']}" for row in rows]
    _values.show(rows, lines, as_json=as_json)


@feature.command(name="show")
@click.argument("feature_id")
@as_json
def feature_show(feature_id: str, as_json: bool) -> None:
    """Show a feature: description, claims with checks, history."""
    _tables.feature(here(), feature_id, as_json)


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
    """Try a feature again, with all its attempts."""
    order("feature retry", feature_id)


@feature.command(name="block")
@click.argument("feature_id")
@click.option("--reason", default="a person blocked it")
def feature_block(feature_id: str, reason: str) -> None:
    """Block a feature until it is retried."""
    order("feature block", feature_id, reason)


@feature.command(name="add")
@click.argument("title")
@click.option("--text", default="", help="Details: shapes, names, edge cases.")
@click.option("--claim", "sentence", default="", help="One observable sentence. [TITLE]")
@click.option("--check", "checks", multiple=True, metavar="SHELL", help="Its exit status decides; may be repeated.")
@click.option("--guard", is_flag=True, help="The checks may be green before the work.")
@click.option("--after", multiple=True, metavar="FEATURE", help="A feature that it depends on; may be repeated.")
@click.option("--priority", type=int, default=1, help="1 is first.")
def feature_add(title: str, text: str, sentence: str, checks: tuple[str, ...], **more: Any) -> None:
    """Add a feature. With checks it is in the plan immediately, else a planner plans it."""
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
    """Points at which the mission waits for your decision: list, grant, deny."""


@checkpoint.command(name="list")
@as_json
def checkpoint_list(as_json: bool) -> None:
    """List the open checkpoints, what to read, and the answers so far."""
    mission.check_format(here())
    waiting, rows = views.gather(here()).asks.all, checkpoints.rows(here())
    answers = [row for row in rows if row.state in checkpoints.ANSWERED]
    lines = [checkpoints.shown(one) for one in waiting] or ["No checkpoint is open."]
    lines += [f"{row.at}  {row.name} ({row.cause}) {row.state} by {row.by}  {row.text}".rstrip() for row in answers]
    _values.show({"waiting": waiting, "answers": answers}, lines, as_json=as_json)


@checkpoint.command(name="grant")
@click.argument("name")
@click.option("--note", default="", help="A note for the next plan; kept with the answer.")
def checkpoint_grant(name: str, note: str) -> None:
    """Let the mission continue after the checkpoint NAME."""
    order("checkpoint grant", name, note, steering.who())


@checkpoint.command(name="deny")
@click.argument("name")
@click.option("--note", default="", help="The reason, for the next plan.")
def checkpoint_deny(name: str, note: str) -> None:
    """Refuse, with a reason: the planner plans again, and the checkpoint asks again."""
    order("checkpoint deny", name, note, steering.who())


@click.group(cls=help.CommandGroups, invoke_without_command=True)
@click.pass_context
def escalation(context: click.Context) -> None:
    """Show the mission's open question, and answer it."""
    if context.invoked_subcommand is None:
        context.invoke(escalation_show)


@escalation.command(name="show")
@as_json
def escalation_show(as_json: bool) -> None:
    """Show the open escalation: what is red, and a command for each solution."""
    mission.check_format(here())
    found = escalations.shown(here(), clock.now())
    text = found.text.rstrip("\n") if found.kind else f"Nothing is escalated. See: {command('next')}"
    _values.show(found, [text], as_json=as_json)


@escalation.command(name="answer")
@click.argument("text")
def escalation_answer(text: str) -> None:
    """Archive the escalation with your answer, and reset the counts."""
    order("escalation answer", text)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("path")
def accept(run_id: str, path: str) -> None:
    """Accept a file that a run refused."""
    order("accept", run_id, path)


COMMANDS = (feature, checkpoint, escalation, accept)
