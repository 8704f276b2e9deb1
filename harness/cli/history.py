"""The commands about past runs: `replay`."""

from __future__ import annotations

import click

from harness.base import errors
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.store.layout import command


@click.command()
@click.argument("of", metavar="[RUN|FEATURE]", default="")
@click.option(
    "--explain", "explains", is_flag=True, help="Its sections: size, source, last change; what a cache can serve."
)
@click.option("--all", "whole", is_flag=True, help="Every run, of archived missions too; a line for each that fails.")
@as_json
def replay(of: str, explains: bool, whole: bool, as_json: bool) -> int:
    """Rebuild the prompt of a past run, and compare it byte for byte. Ends with 65 and the difference where it is another."""
    from harness.cli import history_show

    if whole == bool(of) or (whole and explains):
        raise errors.UsageFault(
            f"Say which run, or all: {command('replay RUN [--explain]')}   {command('replay --all')}"
        )
    if whole:
        return history_show.every(here(), as_json)
    where, run_id = history_show.named(here(), of)
    return (history_show.explained if explains else history_show.compared)(where, run_id, as_json)
