"""`pause`, `stop`, `resume` and `steer`: what a person says while the mission goes on."""

from __future__ import annotations

import click

from harness.base import console
from harness.cli.help import as_json
from harness.cli.quick import here


@click.command()
@click.option("--why", default="", help="The reason, kept in the file.")
def pause(why: str) -> None:
    """Start no further run until `resume`. What is under way goes on to its end."""
    from harness.commands import steering

    console.print_line(steering.halt(here(), "pause", why))


@click.command()
@click.option("--why", default="", help="The reason, kept in the file.")
def stop(why: str) -> None:
    """Stop the mission, until `resume`. What is under way goes on to its end."""
    from harness.commands import steering

    console.print_line(steering.halt(here(), "stop", why))


@click.command()
def resume() -> None:
    """Take back `pause` and `stop`."""
    from harness.commands import steering

    console.print_line(steering.resume(here()))


@click.command()
@click.argument("words", nargs=-1)
@as_json
def steer(words: tuple[str, ...], as_json: bool) -> None:
    """Say in WORDS what the next runs must know. Without words, show what was said."""
    from harness.commands import steering

    if words:
        console.print_line(steering.steer(here(), " ".join(words)))
        return
    text = steering.steering(here())
    if as_json:
        from harness.cli import values

        values.echo({"text": text})
    else:
        console.print_line(console.sanitise(text.rstrip("\n")) or "Nothing was said yet.")


COMMANDS = (pause, resume, stop, steer)
