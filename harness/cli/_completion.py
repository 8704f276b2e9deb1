"""Shell completion: the script, and its candidates: commands, options, roles and the ids of the mission."""

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

from harness.base import console
from harness.base.errors import HarnessError
from harness.cli.help import summaries
from harness.cli.quick import COMPLETING, here
from harness.decision import views
from harness.mission import contract, issues, lease, mission, roles, run_lookup, runs
from harness.state.layout import Layout

NEWEST = 20  # runs


class _Once(ShellComplete):
    """Offers each candidate once."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The candidates from click without duplicates."""
        found = super().get_completions(args, incomplete)
        return list({item.value: item for item in reversed(found)}.values())[::-1]


class _Bash(_Once, BashComplete):
    pass


class _Fish(_Once, FishComplete):
    pass


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
    for kind in (_Bash, _Fish):
        add_completion_class(kind)


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

# Each asks the typed program, so that every copy of run.sh completes itself.
BASH = """_harness_complete() {
  local line IFS=$'\\n'
  COMPREPLY=()
  for line in $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD VARIABLE=bash_complete \\
      "${1/#\\~/$HOME}" 2>/dev/null </dev/null); do
    case $line in
      dir,*) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$2")) ;;
      file,*) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$2")) ;;
      *) COMPREPLY+=("${line#*,}") ;;
    esac
  done
}
complete -F _harness_complete harness run.sh"""
ZSH = """#compdef harness run.sh
_harness_complete() {
  local line
  local -a found
  for line in ${(f)"$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) VARIABLE=bash_complete \\
      ${words[1]/#\\~/$HOME} 2>/dev/null </dev/null)"}; do
    case $line in
      dir,*) _files -/ ;;
      file,*) _files ;;
      *) found+=("${line#*,}") ;;
    esac
  done
  (( $#found )) && compadd -V harness -a found
}
compdef _harness_complete harness run.sh"""
FISH = """function _harness_complete
    set -l program (string replace -r '^~' $HOME -- (commandline -opc)[1])
    for line in (env COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -t | string collect) \\
            VARIABLE=fish_complete $program 2>/dev/null </dev/null)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case dir
                __fish_complete_directories (commandline -t)
            case file
                __fish_complete_path (commandline -t)
            case '*'
                echo $parts[2]
        end
    end
end
for name in harness run.sh
    complete --no-files --command $name --arguments '(_harness_complete)'
end"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@click.command()
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def completion(shell: str) -> None:
    """Print the completion script of a shell, for commands, roles and ids."""
    console.print_line(SCRIPTS[shell].replace("VARIABLE", COMPLETING))
