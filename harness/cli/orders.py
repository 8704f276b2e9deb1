"""The commands that order something of the mission: features, the answer to an escalation, a file that was refused."""

from __future__ import annotations

import click

from harness.base import console, errors
from harness.cli import help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.store.layout import command


def order(verb: str, *words: str) -> None:
    """Place an order, and print what became of it."""
    from harness.model import mission
    from harness.run import orders

    mission.check_format(here())
    console.print_line(orders.place(here(), verb, list(words)))


@click.group(cls=help.Grouped)
def feature() -> None:
    """Features: list, show, set, retry, block."""


@feature.command(name="list")
@as_json
def feature_list(as_json: bool) -> None:
    """The features, a line each."""
    from harness.cli import values
    from harness.commands import status

    rows = status.status(here())["features"]
    if as_json:
        values.echo(rows)
        return
    for row in rows:
        console.print_line(f"{row['id']}  {row['status']:<11}  {row['attempts']}/{row['tries']}  {row['title']}")


@feature.command(name="show")
@click.argument("feature_id")
@as_json
def feature_show(feature_id: str, as_json: bool) -> None:
    """One feature, whole: description, claims with checks, what happened to it."""
    from harness.cli import show, values

    values.echo(values.feature(here(), feature_id)) if as_json else show.feature(here(), feature_id)


@feature.command(name="set")
@click.argument("feature_id")
@click.argument("assignment", metavar="KEY=VALUE")
def feature_set(feature_id: str, assignment: str) -> None:
    """Change a feature's title, description or priority."""
    key, equals, value = assignment.partition("=")
    if not equals:
        raise errors.UsageFault(f"Say KEY=VALUE, such as: {command('feature set')} F-001 priority=1")
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


@click.group(cls=help.Grouped, invoke_without_command=True)
@click.pass_context
def escalation(context: click.Context) -> None:
    """Show what the mission cannot decide, and answer it."""
    if context.invoked_subcommand is None:
        context.invoke(escalation_show)


@escalation.command(name="show")
@as_json
def escalation_show(as_json: bool) -> None:
    """The open escalation: what is red, and a command for each way on."""
    from harness.base import clock
    from harness.cli import show, values
    from harness.decision import escalations
    from harness.model import mission

    mission.check_format(here())
    found = escalations.shown(here(), clock.now()).asdict()
    values.echo(found) if as_json else show.escalation(found)


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


COMMANDS = (feature, escalation, accept)
