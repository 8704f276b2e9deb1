"""The commands that start and diagnose a mission: `init` and `doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from harness.base import console, errors
from harness.cli import _tables, quick
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands.setup import agent_choice, config_check, confinement_probe, price
from harness.commands.setup import doctor as doctors
from harness.mission import mission
from harness.run import starting
from harness.state.layout import Layout, command
from harness.workplace import run_detection


def _require_loop(context: click.Context, _: click.Parameter, words: tuple[str, ...]) -> None:
    """Validate the options that run.sh hands to `init --quietly`, before a mission is started for them."""
    if words and not context.params.get("quietly"):
        raise click.UsageError(f"Got unexpected extra argument ({' '.join(words)})")
    if words:
        quick.loop_options(here(upwards=False), [*words])


@click.command()
@click.option("--agent", default="", metavar="NAME", help="The agent, for config.toml.")
@click.option("--trust", default="", metavar="HOW", help="The permissions of an agent CLI: workspace or full.")
@click.option(
    "--example",
    is_flag=False,
    flag_value=starting.EXAMPLES[0],
    type=click.Choice(starting.EXAMPLES),
    help="Start with the files of an example, which needs no agent. [todo]",
)
@click.option("--quietly", is_flag=True, help="Ask nothing; if the mission exists, only warn.")
@click.option(
    "--new", is_flag=True, help="Archive the mission, which is DONE, in .harness/archive, and start the next one."
)
@click.option("--abandon", is_flag=True, help="Like --new, also if the mission is not DONE.")
@click.option(
    "--take-edits", is_flag=True, help="Commit your edits of tracked files now, in your name, so that runs see them."
)
@click.argument("loop", nargs=-1, metavar="", expose_value=False, callback=_require_loop)
def init(
    agent: str, trust: str, quietly: bool, example: str | None, new: bool, abandon: bool, take_edits: bool
) -> None:
    """Start a mission in this folder, and choose its agent. The folder is in a git repository, and has a SPEC.md."""
    layout = here(upwards=False)
    run_detection.refuse(layout, "init")
    agent_choice.require(layout, agent, trust)
    if quietly:  # by run.sh
        console.go_on_unread()
    _lines(starting.put_away(layout, abandon=abandon) if new or abandon else [])
    _lines(starting.lay_example(layout, example) if example else [])
    begin(layout, agent, trust, quietly=quietly, take_edits=take_edits)


def begin(
    layout: Layout, agent: str, trust: str, *, quietly: bool = False, steps: bool = True, take_edits: bool = False
) -> None:
    """Start the mission of this folder if there is none, and choose its agent; `steps`: say what to do next."""
    there = mission.exists(layout)
    made = starting.start(layout)
    if not (there and quietly):
        begun = f"{'There is' if there else 'Started'} the mission {made.id}, working on the branch {made.branch}."
        _lines([begun, *starting.located(layout)])
    _lines([*([starting.take_edits(layout)] if take_edits else []), *starting.unseen(layout)])
    ask, known = _ask if sys.stdin.isatty() and not quietly else None, agent_choice.loop_of(layout)
    if agent or trust or not quietly:
        _lines(agent_choice.choose(layout, agent, trust, ask, steps=steps and not quietly))
    if ask and not known and (table := agent_choice.loop_of(layout)):
        _try(layout, table)
    warnings = map("warning: {}".format, config_check.require(layout))
    _lines(
        [*(starting.announced(layout) if quietly else [agent_choice.ceiling(layout), price.words(layout)]), *warnings]
    )


def _try(layout: Layout, table: dict[str, Any]) -> None:
    """Send the model of the built-in agent one tiny request; ask for a key that is not set, which only this process keeps."""
    from harness.builtin.sessions import folder  # 100 ms, which the starts of run.sh save

    names = agent_choice.key_names(table)
    needed = table.get("api_key_env") or not table.get("base_url")
    if needed and not any(map(os.environ.get, names)):
        asked = f"{names[0]} is not set. The key, for now; it is written nowhere"
        key = click.prompt(asked, default="", hide_input=True, show_default=False)
        os.environ[names[0]] = key.strip()
        _lines([f"To keep it, put into your shell's startup file: export {names[0]}=…"])
    fault = folder.attempt(layout)
    _lines([f"tried the model: {f'no: {fault}' if fault else 'it answers'}"])


def _lines(lines: Iterable[str]) -> None:
    for line in filter(None, lines):
        console.print_line(line)


def _ask(question: str, answers: dict[str, str], default: str) -> str:
    for name, meaning in answers.items():
        console.print_line(f"  {name:<10} {meaning}".rstrip())
    try:
        return str(click.prompt(question, type=click.Choice(list(answers)) if answers else str, default=default))
    except (click.Abort, errors.Interruption) as left:
        if getattr(left, "code", errors.INTERRUPTED) == errors.INTERRUPTED:  # Ctrl-D or Ctrl-C by a person
            console.print_line(f"\nThe mission is started, nothing else was written. {command('init')} asks again.")
        raise


@click.command()
@click.argument("part", required=False, type=click.Choice(["agents", "confine", "machines"]))
@click.option("--fix", is_flag=True, help="Settle dead runs, like the next run.")
@click.option("--try", "trial", is_flag=True, help="With agents: one small real call of each configured agent.")
@as_json
def doctor(part: str | None, fix: bool, trial: bool, as_json: bool) -> int:
    """Find faults of the mission; or (agents) of the agents on this machine; or (confine) what a run's programs can do to the
    machine; or (machines) of the machines of lanes."""
    if trial and part != "agents":
        raise errors.UsageFault(f"Use: {command('doctor agents --try')}")
    fixed = doctors.fix(here()) if fix and not part else []
    looks = {"agents": doctors.try_agents if trial else doctors.agents_here, "confine": confinement_probe.attempt}
    found = {**looks, "machines": doctors.machines}.get(part or "", doctors.examine)(here())
    return _tables.findings(found, fixed, as_json)
