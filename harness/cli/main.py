"""The command line by click. Commands are loaded when they are called."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (
    "accept",
    "check",
    "claim",
    "doctor",
    "ending",
    "escalation",
    "feature",
    "hold",
    "init",
    "issue",
    "log",
    "memory",
    "next",
    "note",
    "reply",
    "runs",
    "status",
    "usage",
    "verify",
    "why",
)  # fmt: skip - a list of words; run.sh has the same


def application(words: Sequence[str]) -> int:
    """Run one command by click; returns the exit code."""
    import click  # 40 ms: only for commands that people call

    from harness.base.errors import USAGE
    from harness.base.exits import handle_signals
    from harness.cli.commands import cli

    handle_signals()

    try:
        code = cli.main(args=list(words), prog_name="harness", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as fault:
        fault.show()
        return USAGE
    return code if isinstance(code, int) else 0
