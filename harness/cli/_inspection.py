"""The commands that inspect a mission: `status`, `why`, `runs`, `log`, `diff`, `usage`, `watch`, `report`, and the end of
run.sh."""

from __future__ import annotations

import os
import sys

import click

from harness.base import console, errors
from harness.cli import _log as transcripts
from harness.cli import _run_view, _tables, _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import status as statuses
from harness.commands import why as explaining
from harness.mission import run_lookup
from harness.replay import spending
from harness.report import live, screen
from harness.report.glance import Watcher
from harness.state.layout import Layout
from harness.workplace import changes

MAX_LISTED_RUNS = 1_000_000
COLOURS = {"+": "green", "-": "red", "@": "cyan", "#": "blue"}  # of the lines of a diff


@click.command()
@click.argument("mission_id", metavar="[MISSION]", default="")
@as_json
def status(mission_id: str, as_json: bool) -> None:
    """Show features, attempts, last outcomes, and the next step; of MISSION, if it is archived."""
    found = statuses.status(run_lookup.named(here(), mission_id))
    _values.echo(found) if as_json else _tables.status(found)


@click.command()
@click.argument("name", metavar="FEATURE|CLAIM")
@as_json
def why(name: str, as_json: bool) -> None:
    """Show the evidence for a feature or a claim: receipts, history, runs; MISSION/FEATURE if it is archived."""
    where, name = run_lookup.within(here(), name)
    if as_json:
        _values.echo(explaining.value(where, name))
        return
    console.print_line("\n".join(explaining.explain(where, name)))


@click.group(cls=help.CommandGroups)
def runs() -> None:
    """Past and open runs: list, show."""


@runs.command(name="list")
@click.option("-n", "most", type=click.IntRange(1, MAX_LISTED_RUNS), default=20, help="How many runs, newest last.")
@click.argument("mission_id", metavar="[MISSION]", default="")
@as_json
def runs_list(most: int, mission_id: str, as_json: bool) -> None:
    """List finished runs, one per line; of MISSION, if it is archived."""
    _tables.run_list(run_lookup.named(here(), mission_id), most, as_json)


@runs.command(name="show")
@click.argument("of", metavar="RUN|FEATURE")
@click.option("--prompt", is_flag=True, help="Its prompt, byte for byte; also of an archived mission's run.")
@as_json
def runs_show(of: str, prompt: bool, as_json: bool) -> None:
    """Show a run, or the newest run of a feature: result, receipts, and the folder of its files; MISSION/RUN if archived."""
    if prompt:
        _run_view.prompt(here(), of, as_json)
        return
    _tables.run(*run_lookup.within(here(), of), as_json)


@click.command()
@click.argument("what", metavar="[RUN|FEATURE|ROLE|MISSION]", default="")
@click.option("-f", "follow", is_flag=True, help="Follow the run to its end; without a name, also the next runs.")
@click.option("-v", "--verbose", "whole", is_flag=True, help="With all that came back of each tool call.")
@as_json
def log(what: str, follow: bool, whole: bool, as_json: bool) -> None:
    """Show what an agent says and does, live or later; MISSION/RUN if archived. Default: the open run, else the newest one
    with a transcript."""
    transcripts.log(here(), what, follow, as_json, whole)


@click.command()
@click.argument("of", metavar="[FEATURE|RUN]", default="")
@click.option("--stat", is_flag=True, help="Only the files, with counts of lines.")
def diff(of: str, stat: bool) -> None:
    """Show what a feature or a run changed, landed or not; by default the whole mission, against its start."""
    show_diff(here(), of, stat)


def show_diff(layout: Layout, of: str = "", stat: bool = False) -> None:
    """Show these changes: on a terminal paged, coloured and sanitised, else exactly, as git applies them."""
    data = changes.text(layout, of, stat=stat)
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    os.environ.setdefault("LESS", "FRX")  # as git does: a short diff needs no page
    os.environ["PAGER"] = os.environ.get("GIT_PAGER") or os.environ.get("PAGER", "")
    lines = console.sanitise(data.decode("utf-8", "replace")).removesuffix("\n").split("\n")
    shown = (f"{click.style(line, fg=COLOURS.get(line[:1]))}\n" for line in lines)
    click.echo_via_pager(shown, color="NO_COLOR" not in os.environ)


@click.command()
@as_json
def usage(as_json: bool) -> None:
    """Show costs and tokens: by role, feature, day and model, and the total."""
    value = spending.spending(here())
    _values.echo(value) if as_json else _tables.usage(value)


@click.command()
@click.option("--once", is_flag=True, help="Print the present state, and end; the default without a terminal.")
def watch(once: bool) -> None:
    """Watch the mission live: each lane with its last lines, the queue, spending, receipts, notes. Read-only; q quits."""
    if live.able() and not once:
        live.watch(here().folders.project)
        return
    for line in screen.plain(Watcher(here().folders.project).look()):
        console.print_line(line)


@click.command()
@click.argument("mission_id", metavar="[MISSION]", default="")
@click.option("--to", "target", default="", metavar="FILE", help="The output file. [.harness/report.html]")
@click.option("--open", "opens", is_flag=True, help="Open it in a browser.")
def report(mission_id: str, target: str, opens: bool) -> int:
    """Write the whole mission as one HTML page that needs no network. MISSION is one archived by `init --new`."""
    from harness.report import page_file  # jinja2: 90 ms of processor time, which this command alone needs

    made = page_file.write(here(), mission_id, target)
    console.print_line(f"{here().folders.relative(made.path)}: {made.runs} runs, {-(-made.size // 1024)} KiB")
    if opens:
        click.launch(f"file://{made.path}")
    for fault in made.faults:
        console.print_error(f"harness: {fault}")
    return errors.BROKEN if made.faults else errors.DONE


@click.command(hidden=True)
@click.argument("word")
def ending(word: str) -> None:
    """Print the last lines of run.sh."""
    for line in statuses.last_words(here(), word):
        console.print_line(line)
