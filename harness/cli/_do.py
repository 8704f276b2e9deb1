"""`do` and `spec`: a mission from a sentence or an issue in one command, and SPEC.md written in a dialogue."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from harness.base import console, errors
from harness.base.errors import UsageFault
from harness.cli import _init, _inspection
from harness.cli.quick import here
from harness.commands.setup import agent_choice, specification
from harness.mission import mission
from harness.state.layout import Layout, command
from harness.workplace import run_detection

NO_TERMINAL = "Without a terminal nobody can review SPEC.md before it is built. Add --yes, or "
DIALOGUE = f"A dialogue needs a terminal. Without one: {command('do')} --yes WORDS, or write SPEC.md yourself."
KEPT = "SPEC.md stays. Edit it as you like; to build it: {0}"
BEGINNING = [
    click.option("--agent", default="", metavar="NAME", help="The agent, as for `init`."),
    click.option("--trust", default="", metavar="HOW", help="The permissions of an agent CLI, as for `init`."),
    click.option("--new", is_flag=True, help="Archive the mission that is DONE first, as for `init`."),
]


def _beginning(to: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(BEGINNING):
        to = option(to)
    return to


@click.command()
@click.argument("words", nargs=-1, metavar="[WORDS...]")
@click.option("--issue", default="", metavar="FILE|NUMBER", help="The text of an issue; a number is read with `gh`.")
@click.option("--yes", is_flag=True, help="Build without asking.")
@_beginning
def do(words: tuple[str, ...], issue: str, yes: bool, agent: str, trust: str, new: bool) -> int:
    """Do what WORDS or an issue ask for: write and show SPEC.md, then plan and build it to the end. Shows the diff last."""
    layout, asked = here(upwards=False), " ".join(words)
    run_detection.refuse(layout, "do")
    if bool(asked.strip()) == bool(issue):
        raise UsageFault(f'Say what to do: {command("do")} "add a --json flag", or: {command("do --issue")} FILE')
    if not yes and not sys.stdin.isatty():
        raise UsageFault(f"{NO_TERMINAL}write SPEC.md yourself; then: {command('init')}")
    _begin(layout, specification.issue_text(issue) if issue else asked, agent, trust, new)
    if code := _written(layout, specification.NOBODY):
        return code
    if not yes and not click.confirm("Build it? If not, SPEC.md stays as it is", default=True):
        console.print_line(KEPT.format(command()))
        return errors.STOPPED
    code = specification.build(layout)
    sys.stdout.flush()
    _inspection.show_diff(layout)
    return code


@click.command()
@click.argument("words", nargs=-1, metavar="[WORDS...]")
@_beginning
def spec(words: tuple[str, ...], agent: str, trust: str, new: bool) -> int:
    """Write SPEC.md in a dialogue: the agent asks until checks can decide every claim."""
    layout = here(upwards=False)
    run_detection.refuse(layout, "spec")
    if not sys.stdin.isatty():
        raise UsageFault(DIALOGUE)
    text = " ".join(words)
    if not text and specification.questions(layout):  # a dialogue that a person left
        _answer(layout)
        text = mission.asked_spec_text(layout) or ""
    _begin(layout, text or click.prompt("What should be true when it is done?"), agent, trust, new)
    while not (code := _written(layout, specification.ANSWERED)) and specification.questions(layout):
        _answer(layout)
    if not code:
        console.print_line(KEPT.format(command()))
    return code


def _begin(layout: Layout, text: str, agent: str, trust: str, new: bool) -> None:
    agent_choice.require(layout, agent, trust)
    with specification.drafted(layout, text, new=new):
        _init.begin(layout, agent, trust, steps=False)


def _written(layout: Layout, reason: str) -> int:
    """Let the agent write SPEC.md, and show it; returns the exit code."""
    code = specification.write(layout, reason)
    shown = f"\n{mission.asked_spec_text(layout) or ''}" if not code else KEPT.format(command())
    console.print_line(shown)
    return code


def _answer(layout: Layout) -> None:
    answers = {one: click.prompt(one, default="", show_default=False) for one in specification.questions(layout)}
    specification.answer(layout, answers)
