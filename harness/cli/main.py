"""The command line by click: a group that loads the module of a command once it is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module

import click

from harness.base.errors import USAGE
from harness.base.exits import handle_signals
from harness.cli import help, quick
from harness.cli.quick import COMPLETING, QUICK

MODULES = {
    "_ask": ("ask",),
    "_init": ("doctor", "init"),
    "_claims": ("claim",),
    "_commands": ("check", "issue", "next", "note", "reply", "verify"),
    "_completion": ("completion",),
    "help": ("help",),
    "_past_runs": ("export", "gc", "replay", "search"),
    "_snapshots": ("features", "forget", "snapshot"),
    "_inspection": ("ending", "log", "report", "runs", "status", "usage", "watch", "why"),
    "_memories": ("identity", "memory"),
    "_orders": ("accept", "checkpoint", "escalation", "feature"),
    "_schedule": ("schedule",),
    "_sessions": ("sessions",),
    "_steering": ("pause", "resume", "steer", "stop"),
    "_workspaces": ("skill", "workspace"),
}
PLACES = {name: module for module, names in MODULES.items() for name in names}
ASKING = {"ask", "completion", "help", "workspace"}  # with a `.harness` that was not accepted
COMMANDS = tuple(sorted({*PLACES, *QUICK}))  # run.sh has the same


class Application(help.CommandGroups):
    """All commands; the module of one is loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, loaded or not."""
        return sorted({*PLACES, *self.commands})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, from its module; None for a word that is none."""
        if name in PLACES and name not in self.commands:
            there = vars(import_module(f"harness.cli.{PLACES[name]}")).values()
            self.add_command(next(one for one in there if isinstance(one, click.Command) and one.name == name))
        return super().get_command(ctx, name)


@click.group(cls=Application, context_settings={"help_option_names": list(help.HELP)})
@click.option(
    "-C", "folder", metavar="DIR", type=click.Path(file_okay=False), help="As if it was started in DIR; comes first."
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=help.version, help="The version, and end."
)
def cli(folder: str) -> None:
    """Look at a mission, and steer it. run.sh without a command goes on with the mission."""


def application(words: Sequence[str]) -> int:
    """Run one command by click; returns the exit code."""
    handle_signals()
    if COMPLETING in os.environ:
        from harness.cli import _completion  # only where a shell asks

        _completion.prepare(cli)
    if words and words[0] in PLACES.keys() - ASKING and not {*words} & {*help.HELP}:
        quick.check_state(quick.here())
    try:
        code = cli.main(args=list(words), prog_name="harness", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as fault:
        fault.show()
        return USAGE
    return code if isinstance(code, int) else 0
