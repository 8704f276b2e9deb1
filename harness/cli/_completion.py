"""Shell completion: the script, and its candidates: commands, options, roles and the ids of the mission."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

import click
from click.shell_completion import CompletionItem, get_completion_class, split_arg_string

from harness.base import console
from harness.base.errors import HarnessError
from harness.cli.help import summaries
from harness.cli.quick import COMPLETING, here
from harness.decision import views
from harness.mission import contract, issues, lease, mission, roles, run_lookup, runs
from harness.state.layout import Layout

NEWEST = 20  # runs
PROGRAM = "harness"  # the command that a shell completes


def prepare(cli: click.Group) -> None:
    """Load the roles and ids of the mission that the command line selects; this process only answers a shell."""
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
    if len(words) > 2 and words[0] == "-C" and os.path.isdir(folder := os.path.expanduser(words[1])):
        os.chdir(folder)
        os.environ.pop("HARNESS_PROJECT", None)
    where, context = here(), click.Context(cli)
    for name, summary in summaries(where):
        if cli.get_command(context, name) is None:
            cli.add_command(click.Command(name, params=[click.Argument(["feature_id"], required=False)], help=summary))
    for argument in _arguments(cli, context):
        if argument.name in SOURCES:
            listing = partial(_complete, where, SOURCES[argument.name])
            argument.shell_complete = listing  # type: ignore[method-assign]  # by name, in every command


def _arguments(command: click.Command, context: click.Context) -> Iterator[click.Argument]:
    yield from (one for one in command.params if isinstance(one, click.Argument))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if inner := command.get_command(context, name):
                yield from _arguments(inner, context)


def _complete(
    where: Layout, sources: tuple[Callable[[Layout], Iterable[str]], ...], ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """The ids with this prefix; none if the mission cannot be read."""
    found: list[str] = []
    for source in sources:
        try:
            found += source(where)
        except HarnessError:  # no output may disturb the typed command line
            continue
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def _features(where: Layout) -> list[str]:
    return [one.id for one in views.queue(where)]


def _claims(where: Layout) -> list[str]:
    return [one.id for one in contract.load(where).claims]


def _missions(where: Layout) -> list[str]:
    return [mission.read(one).id for one in run_lookup.missions(where)]


def _issues(where: Layout) -> list[str]:
    return [one.id for one in issues.load(where) if one.state != "closed"]


def _runs(where: Layout) -> list[str]:
    """The open runs and the newest finished ones, newest first."""
    return [*(one.run for one in lease.alive(where)), *(one.run for one in islice(runs.finished(where), NEWEST))]


def _curations(where: Layout) -> list[str]:
    """The newest curations, newest first."""
    role = roles.due(where)["curates"]
    return [*islice((one.run for one in runs.finished(where) if one.role == role), NEWEST)]


SOURCES = {  # by argument name
    "feature_id": (_features,),
    "name": (_features, _claims),
    "claim_id": (_claims,),
    "claim_ids": (_claims,),
    "issue_id": (_issues,),
    "mission_id": (_missions,),
    "curation": (_curations,),
    "role": (roles.known,),
    "run_id": (_runs,),
    "of": (_features, _runs),
    "what": (_features, roles.known, _runs),
}

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell, for commands, roles and ids of `harness`."""
    found = get_completion_class(shell)
    assert found is not None, "click knows these shells"
    console.print_line(found(context.find_root().command, {}, PROGRAM, COMPLETING).source())
