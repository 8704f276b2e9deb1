"""What a shell is offered: commands, options and roles, and for an argument the ids that the mission has, each once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    add_completion_class,
    split_arg_string,
)

from harness.base.errors import HarnessError
from harness.cli.help import summaries
from harness.cli.quick import here
from harness.decision import views
from harness.integrity import lease
from harness.model import contract, issues, roles, runs
from harness.store.layout import Layout

NEWEST = 20  # runs


class _Once(ShellComplete):
    """Each candidate once."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """As click finds them, the first of each."""
        found = super().get_completions(args, incomplete)
        return list({item.value: item for item in reversed(found)}.values())[::-1]


class _Bash(_Once, BashComplete):
    pass


class _Fish(_Once, FishComplete):
    pass


def prepare(cli: click.Group) -> None:
    """Make this process, which only answers a shell, know the mission where the command line leads, its roles and its ids."""
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
    if len(words) > 2 and words[0] == "-C" and os.path.isdir(folder := os.path.expanduser(words[1])):
        os.chdir(folder)
        os.environ.pop("HARNESS_PROJECT", None)
    where = here()
    for name, summary in summaries(where):
        if name not in cli.commands:
            cli.add_command(click.Command(name, params=[click.Argument(["feature_id"], required=False)], help=summary))
    for argument in _arguments(cli):
        if argument.name in SOURCES:
            listing = partial(_complete, where, SOURCES[argument.name])
            argument.shell_complete = listing  # type: ignore[method-assign]  # by name, wherever a command has it
    for kind in (_Bash, _Fish):
        add_completion_class(kind)


def _arguments(command: click.Command) -> Iterator[click.Argument]:
    yield from (one for one in command.params if isinstance(one, click.Argument))
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        yield from _arguments(inner)


def _complete(
    where: Layout, sources: tuple[Callable[[Layout], Iterable[str]], ...], ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """The ids that begin so; none where the mission cannot be read."""
    found: list[str] = []
    for source in sources:
        try:
            found += source(where)
        except HarnessError:  # nothing may be printed into a command line that is being typed
            continue
    return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def _features(where: Layout) -> list[str]:
    return [one.id for one in views.queue(where)]


def _claims(where: Layout) -> list[str]:
    return [one.id for one in contract.load(where).claims]


def _issues(where: Layout) -> list[str]:
    return [one.id for one in issues.load(where) if one.state != "closed"]


def _runs(where: Layout) -> list[str]:
    """The runs under way and the newest finished ones, the newest first."""
    return [*(one.run for one in lease.alive(where)), *(one.run for one in islice(runs.finished(where), NEWEST))]


def _curations(where: Layout) -> list[str]:
    """The newest runs that curated, the newest first."""
    role = roles.due(where)["curates"]
    return [*islice((one.run for one in runs.finished(where) if one.role == role), NEWEST)]


SOURCES = {  # by the name of the argument
    "feature_id": (_features,),
    "name": (_features, _claims),
    "claim_id": (_claims,),
    "claim_ids": (_claims,),
    "issue_id": (_issues,),
    "curation": (_curations,),
    "role": (roles.known,),
    "run_id": (_runs,),
    "of": (_features, _runs),
    "what": (_features, roles.known, _runs),
}
