"""The command line by click. Commands are loaded when they are called."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from harness.base.errors import USAGE
from harness.base.exits import handle_signals
from harness.cli import candidates
from harness.cli.commands import cli
from harness.cli.quick import COMPLETING

COMMANDS = (
    "accept",
    "ask",
    "check",
    "checkpoint",
    "claim",
    "completion",
    "doctor",
    "ending",
    "escalation",
    "export",
    "feature",
    "features",
    "forget",
    "gc",
    "help",
    "hold",
    "identity",
    "init",
    "issue",
    "log",
    "memory",
    "next",
    "note",
    "pause",
    "replay",
    "reply",
    "report",
    "resume",
    "runs",
    "schedule",
    "search",
    "sessions",
    "skill",
    "snapshot",
    "status",
    "steer",
    "stop",
    "usage",
    "verify",
    "watch",
    "why",
    "workspace",
)  # fmt: skip - a list of words; run.sh has the same


def application(words: Sequence[str]) -> int:
    """Run one command by click; returns the exit code."""
    handle_signals()
    if COMPLETING in os.environ:
        candidates.prepare(cli)
    try:
        code = cli.main(args=list(words), prog_name="harness", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as fault:
        fault.show()
        return USAGE
    return code if isinstance(code, int) else 0
