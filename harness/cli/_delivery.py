"""`land` and `remove`: what a person takes from a mission, and its removal."""

from __future__ import annotations

import click

from harness.base import console
from harness.cli import _values
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import delivery
from harness.mission import run_lookup


@click.command()
@click.argument("mission_id", metavar="[MISSION]", default="")
@click.option("--onto", default="", metavar="BRANCH", help="Put it on this. [the branch that the mission began from]")
@click.option("--as", "name", default="", metavar="NAME", help="The name of the new branch. [land/MISSION]")
@click.option("--squash", is_flag=True, help="One commit for all features.")
@click.option("--force", is_flag=True, help="Also if the mission is not DONE, or lacks work of yours.")
@click.option("--pr", "opens", is_flag=True, help="Open a pull request with gh, or show the commands.")
@as_json
def land(mission_id: str, onto: str, name: str, squash: bool, force: bool, opens: bool, as_json: bool) -> None:
    """Make a branch with one commit for each feature, to review and merge. No file of your folder changes."""
    where = run_lookup.named(here(), mission_id)
    made = delivery.land(where, onto, name, squash=squash, force=force)
    lines = delivery.lines(where, made) + ([delivery.request(where, made)] if opens else [])
    _values.echo(made) if as_json else console.print_line(console.sanitise("\n".join(lines)))
