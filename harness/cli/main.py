"""The click application: a group that loads the module of a command when it is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module

import click

from harness.base.errors import DONE, USAGE
from harness.base.exits import handle_signals
from harness.cli import help, quick
from harness.cli.quick import COMPLETING, QUICK

MODULES = {
    "_ask": ("ask",),
    "_init": ("doctor", "init"),
    "_claims": ("claim",),
    "_commands": ("check", "issue", "machine", "next", "note", "reply", "verify"),
    "_delivery": ("land", "remove"),
    "_completion": ("completion",),
    "_do": ("do", "spec"),
    "help": ("help",),
    "_past_runs": ("export", "gc", "replay", "search"),
    "_snapshots": ("features", "forget", "snapshot"),
    "_inspection": ("diff", "ending", "log", "report", "runs", "status", "usage", "watch", "why"),
    "_memories": ("identity", "memory"),
    "_orders": ("accept", "checkpoint", "escalation", "feature"),
    "_schedule": ("schedule",),
    "_sessions": ("sessions",),
    "_steering": ("enter", "pause", "resume", "steer", "stop"),
    "_team": ("goal", "task", "team"),
    "_workspaces": ("skill", "workspace"),
}
PLACES = {name: module for module, names in MODULES.items() for name in names}
ASKING = {"ask", "completion", "help", "machine", "workspace"}  # work with an unaccepted `.harness`
COMMANDS = tuple(sorted({*PLACES, *QUICK}))  # also listed in run.sh


class Application(help.CommandGroups):
    """All commands; loads the module of a command on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, loaded or not."""
        return sorted({*PLACES, *self.commands})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, from its module; None for an unknown word."""
        if name in PLACES and name not in self.commands:
            there = vars(import_module(f"harness.cli.{PLACES[name]}")).values()
            self.add_command(next(one for one in there if isinstance(one, click.Command) and one.name == name))
        return super().get_command(ctx, name)


@click.group(cls=Application, context_settings={"help_option_names": list(help.HELP)})
@click.option(
    "-C", "folder", metavar="DIR", type=click.Path(file_okay=False), help="Work as if started in DIR; must be first."
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=help.version, help="Show the version."
)
def cli(folder: str) -> None:
    """Inspect and steer a mission. run.sh without a command continues the mission."""


def application(words: Sequence[str]) -> int:
    """Run a command with click; returns the exit code."""
    handle_signals()
    if COMPLETING in os.environ:
        from harness.cli import _completion  # only if a shell asks

        _completion.prepare(cli)
    scheduled = words[:2] == [
        "schedule",
        "start",
    ]  # by cron, without the state folder's variable: the start of run.sh checks
    if words and words[0] in PLACES.keys() - ASKING and not scheduled and not {*words} & {*help.HELP}:
        quick.check_state(quick.here())
    try:
        code = cli.main(args=list(words), prog_name="harness", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except SystemExit as end:  # click's own: the reader of the output is gone, or a shell has its answer
        return end.code if COMPLETING in os.environ and isinstance(end.code, int) else DONE
    except click.ClickException as fault:
        fault.show()
        return USAGE
    return code if isinstance(code, int) else 0
