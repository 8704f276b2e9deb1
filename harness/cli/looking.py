"""The commands with which a person looks in: `watch` and `report`."""

from __future__ import annotations

import click

from harness.base import console, errors
from harness.cli.quick import here
from harness.look import live, screen, writing
from harness.look.glance import Watcher


@click.command()
@click.option("--once", is_flag=True, help="Print how it stands now, and end; as without a terminal.")
def watch(once: bool) -> None:
    """What runs now, live: each lane with its last lines, the queue, spending, receipts, notes. It only reads; q ends it."""
    live.make_lenient()
    if live.able() and not once:
        live.watch(here().project)
        return
    for line in screen.plain(Watcher(here().project).look()):
        console.print_line(line)


@click.command()
@click.argument("of", metavar="[MISSION]", default="")
@click.option("--to", "target", default="", metavar="FILE", help="Where to. [.harness/report.html]")
@click.option("--open", "opens", is_flag=True, help="Show it in the browser of this machine.")
def report(of: str, target: str, opens: bool) -> int:
    """The whole mission as one HTML page that needs no network. MISSION is one that `init --new` put away."""
    made = writing.write(here(), of, target)
    console.print_line(f"{here().relative(made.path)}: {made.runs} runs, {-(-made.size // 1024)} KiB")
    if opens:
        click.launch(f"file://{made.path}")
    for fault in made.faults:
        console.print_error(f"harness: {fault}")
    return errors.BROKEN if made.faults else errors.DONE
