"""`land` and `remove`: a branch with a mission's work, and the removal of a mission."""

from __future__ import annotations

import sys

import click

from harness.base import console, errors
from harness.cli import _values
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import delivery
from harness.commands.setup import removal
from harness.mission import run_lookup
from harness.state.layout import command


@click.command()
@click.argument("mission_id", metavar="[MISSION]", default="")
@click.option(
    "--onto", default="", metavar="BRANCH", help="The base of the new branch. [the branch that the mission began from]"
)
@click.option("--as", "name", default="", metavar="NAME", help="The name of the new branch. [land/MISSION]")
@click.option("--squash", is_flag=True, help="One commit for all features.")
@click.option("--force", is_flag=True, help="Even if the mission is not DONE, or lacks work of yours.")
@click.option("--hooks", is_flag=True, help="Run the repository's commit-msg hook on each message.")
@click.option("--pr", "opens", is_flag=True, help="Open a pull request with gh, or show the commands.")
@as_json
def land(
    mission_id: str, onto: str, name: str, squash: bool, force: bool, hooks: bool, opens: bool, as_json: bool
) -> None:
    """Create a branch with one commit for each feature, to review and merge. No file in your folder changes."""
    where = run_lookup.named(here(), mission_id)
    made = delivery.land(where, onto, name, squash=squash, force=force, hooks=hooks)
    lines = delivery.lines(where, made) + ([delivery.request(where, made)] if opens else [])
    _values.show(made, lines, as_json=as_json)


@click.command()
@click.argument("mission_ids", metavar="MISSION...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
def remove(mission_ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete missions for good: trees, refs, state and archive, here and on this machine. Branches stay."""
    found = [removal.find(here(), one) for one in mission_ids]
    for one in () if as_json else found:
        rows = [f"{size / 1e6:8.1f} MB  {path}" for path, size in one.paths.items()]
        console.print_line("\n".join([f"{one.mission}: {one.words}", *rows, *one.notes]))
    if not yes and not sys.stdin.isatty():
        again = f"{command('remove')} {' '.join(mission_ids)} --yes"
        raise errors.UsageFault(f"This cannot be undone. Confirm with: {again}")
    if not yes:
        click.confirm("Remove this for good?", abort=True)
    for one in found:
        removal.remove(here(), one)
    _values.show(found, ["removed"], as_json=as_json)
