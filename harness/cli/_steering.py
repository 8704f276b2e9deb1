"""`pause`, `stop`, `resume`, `steer` and `enter`: a person's influence on a running mission."""

from __future__ import annotations

import os
import shlex

import click

from harness.base import console
from harness.cli import _values
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import steering
from harness.run import steps
from harness.workplace import run_detection


@click.command()
@click.option("--why", default="", help="The reason, kept in the file.")
def pause(why: str) -> None:
    """Start no further run until `resume`. Open runs continue to their ends."""
    console.print_line(steering.halt(here(), "pause", why))


@click.command()
@click.option("--why", default="", help="The reason, kept in the file.")
def stop(why: str) -> None:
    """Stop the mission until `resume`. Open runs continue to their ends."""
    console.print_line(steering.halt(here(), "stop", why))


@click.command()
def resume() -> None:
    """Undo `pause` and `stop`."""
    console.print_line(steering.resume(here()))


@click.command()
@click.argument("words", nargs=-1)
@click.option("--once", is_flag=True, help="Only for the next prompt.")
@click.option("--list", "listing", is_flag=True, help="The notes, with numbers.")
@click.option("--remove", "number", type=int, metavar="N", help="Remove the note with this number.")
@as_json
def steer(words: tuple[str, ...], once: bool, listing: bool, number: int | None, as_json: bool) -> None:
    """Add WORDS as a note for the next runs. Without WORDS, show the notes."""
    if number is not None:
        console.print_line(steering.unsay(here(), number))
        return
    if words or once:
        console.print_line(steering.steer(here(), " ".join(words), once=once))
        return
    if listing:
        _list(steering.listed(here()), as_json)
        return
    text = steering.steering(here())
    _values.show({"text": text}, [text.rstrip("\n") or "There are no notes yet."], as_json=as_json)


def _list(rows: list[tuple[str, str]], as_json: bool) -> None:
    """Show the notes to the next runs, with the numbers for `--remove`."""
    value = [{"number": number, "until": until, "text": text} for number, (until, text) in enumerate(rows, 1)]
    lines = [f"{number:>3}  {until:<13}  {text}" for number, (until, text) in enumerate(rows, 1)]
    _values.show(value, lines or ["There are no notes yet."], as_json=as_json)


@click.command()
@click.argument("feature_id", metavar="FEATURE")
@click.option("--with", "program", metavar="PROGRAM", default="", help="Such as an agent or an editor. [your shell]")
def enter(feature_id: str, program: str) -> int:
    """Work on a feature yourself, in its tree. What you leave is a commit of yours, and validated like any other."""
    run_detection.refuse(here(), "enter")
    words = shlex.split("" if program == "shell" else program)
    return steps.enter(here(), feature_id, words or [os.environ.get("SHELL") or "/bin/sh"])


COMMANDS = (pause, resume, stop, steer, enter)
