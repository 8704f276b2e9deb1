"""The commands that people call: each parses, calls one function below, and shows its result. None is exit code 0."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from harness.base import console, errors
from harness.cli import (
    asks,
    claims,
    completion,
    help,
    history,
    history_show,
    keeping,
    looking,
    memories,
    orders,
    quick,
    schedule,
    sessions,
    show,
    steering,
    values,
    workspaces,
)
from harness.cli import log as transcripts
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import choose_agent, config_check, in_run, spending, try_confine
from harness.commands import doctor as doctors
from harness.commands import status as statuses
from harness.commands import why as explaining
from harness.integrity import inside
from harness.model import mission
from harness.model.issues import SEVERITIES
from harness.notice import hooks
from harness.proof import verify as verifying
from harness.run import given, starting
from harness.store.layout import command

MOST_RUNS = 1_000_000


@click.group(cls=help.Grouped, context_settings={"help_option_names": list(help.HELP)})
@click.option(
    "-C", "folder", metavar="DIR", type=click.Path(file_okay=False), help="As if it was started in DIR; comes first."
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=help.version, help="The version, and end."
)
def cli(folder: str) -> None:
    """Look at a mission, and steer it. run.sh without a command goes on with the mission."""


def _require_loop(context: click.Context, _: click.Parameter, words: tuple[str, ...]) -> None:
    """run.sh hands its own options to `init --quietly`, so that none is refused behind a mission that was begun for it."""
    if words and not context.params.get("quietly"):
        raise click.UsageError(f"Got unexpected extra argument ({' '.join(words)})")
    if words:
        quick.loop_options(here(upwards=False), [*words])


@cli.command()
@click.option("--agent", default="", metavar="NAME", help="The agent; goes into config.toml.")
@click.option("--trust", default="", metavar="HOW", help="How far an agent CLI may go: workspace or full.")
@click.option("--example", is_flag=True, help="Begin with the example's SPEC.md and playbooks, which need no agent.")
@click.option("--quietly", is_flag=True, help="Ask nothing; where there is a mission, only warn.")
@click.option(
    "--new", is_flag=True, help="Put the mission that is DONE away, into .harness/archive, and start the next one."
)
@click.option("--abandon", is_flag=True, help="As --new, also where the mission is not DONE.")
@click.argument("loop", nargs=-1, metavar="", expose_value=False, callback=_require_loop)
def init(agent: str, trust: str, quietly: bool, example: bool, new: bool, abandon: bool) -> None:
    """Start a mission in this folder, and choose its agent. The folder is in a git repository, and has a SPEC.md."""
    layout = here(upwards=False)
    inside.refuse(layout, "init")
    choose_agent.require(layout, agent, trust)
    _lines(starting.put_away(layout, abandon=abandon) if new or abandon else [])
    there = mission.exists(layout)
    _lines(starting.lay_example(layout) if example else [])
    made = starting.start(layout)
    if not (there and quietly):
        begun = f"{'There is' if there else 'Started'} the mission {made.id}, working on the branch {made.branch}."
        _lines([begun, *starting.located(layout)])
    _lines([] if quietly else choose_agent.choose(layout, agent, trust, _ask if sys.stdin.isatty() else None))
    warnings = map("warning: {}".format, config_check.require(layout))
    _lines([*(starting.announced(layout) if quietly else [choose_agent.ceiling(layout)]), *warnings])


def _lines(lines: Iterable[str]) -> None:
    for line in filter(None, lines):
        console.print_line(line)


def _ask(question: str, answers: dict[str, str], default: str) -> str:
    for name, meaning in answers.items():
        console.print_line(f"  {name:<10} {meaning}".rstrip())
    try:
        return str(click.prompt(question, type=click.Choice(list(answers)) if answers else str, default=default))
    except (click.Abort, errors.Interrupted) as left:
        if getattr(left, "code", errors.INTERRUPTED) == errors.INTERRUPTED:  # Ctrl-D or Ctrl-C: a person reads it
            console.print_line(f"\nThe mission is started, and nothing else was written. {command('init')} asks again.")
        raise


@cli.command(name="next")
@click.option("--leaving", metavar="WORD", help="The last look before run.sh ends with WORD.")
@click.option("--told", metavar="LINE", help="Show such a line as a person reads it: when a WAIT ends, and why.")
@as_json
def next_(as_json: bool, **options: str | None) -> int:
    """What is due, in one line."""
    given = [word for name, value in options.items() if value for word in (f"--{name}", value)]
    return quick.next_(["--json"] * as_json + given)


@cli.command()
@click.option("--tag", default="-", help="TRICK, DECISION, AVOID, CONTEXT, FAIL or -.")
@click.argument("text", nargs=-1)
def note(tag: str, text: tuple[str, ...]) -> int:
    """Note one line for later runs."""
    return quick.note(["--tag", tag, *text])


@cli.command()
@as_json
def status(as_json: bool) -> None:
    """Features, attempts, last outcomes, and what is due."""
    values.echo(statuses.status(here())) if as_json else show.status(statuses.status(here()))


class _Titled(help.Grouped):
    """A group whose first word may be a title, since agents call `issue TITLE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A word that is no command is a title, also after options."""
        title = bool(args) and args[0] not in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, [_TITLE, *args] if title else args)


_TITLE = "TITLE"


@cli.group(cls=_Titled, subcommand_metavar="TITLE | COMMAND [ARGS]...")
def issue() -> None:
    """Report a fault that is not yours to fix now. Also list and close those that were reported."""


@issue.command(name=_TITLE)
@click.argument("title", metavar="", default="")
@click.option("--severity", default="minor", type=click.Choice(SEVERITIES))
@click.option("--evidence", default="")
@click.option("--repro", default="")
@click.option("--suggested-fix", default="")
@click.option("--code-pointer", default="")
def issue_report(title: str, **fields: str) -> None:
    """Report a fault that is not yours to fix now."""
    if not title.strip():
        example = f"{command('issue')} 'it crashes on empty input' --severity major"
        raise errors.UsageFault(f"Say what is wrong, such as: {example}")
    console.print_line(in_run.issue(here(), {"title": title, **fields}))


@issue.command(name="list")
@as_json
def issue_list(as_json: bool) -> None:
    """The issues, a line each."""
    values.echo(values.issue_list(here())) if as_json else show.issue_list(here())


@issue.command(name="close")
@click.argument("issue_id", metavar="ID")
@click.option("--why", default="", help="The reason.")
def issue_close(issue_id: str, why: str) -> None:
    """Close an issue: planners no longer see it."""
    console.print_line(in_run.close_issue(here(), issue_id, why))


@cli.command()
@click.argument("file")
def reply(file: str) -> None:
    """Give the run's reply: FILE, or - for standard input. It is checked at once, the last good one counts."""
    text = sys.stdin.read() if file == "-" else in_run.text_of(file)
    console.print_line(in_run.reply(here(), text))


@cli.command()
@click.argument("name", metavar="[FEATURE|CLAIM]", required=False)
@as_json
def check(name: str | None, as_json: bool) -> int:
    """Run checks as the validator will. Those of a feature, of a claim, or all; it counts for nothing."""
    found = values.shown(in_run.check(here(), name or ""), show.receipt, as_json)
    if as_json:
        return values.checks(found, "" if found else in_run.unchecked(here(), name or ""))
    if not found:
        console.print_line(in_run.unchecked(here(), name or ""))
    return errors.DONE if found and all(receipt.green for receipt in found) else errors.NEGATIVE


@cli.command()
@click.argument("contract_path", metavar="[CONTRACT]", default="")
@click.option("--in", "folder", default=".", metavar="DIR", help="The clone to check, this folder.")
@click.option("--at", "commit", default="", metavar="COMMIT", help="Check a fresh clone at that commit.")
@as_json
def verify(contract_path: str, folder: str, commit: str, as_json: bool) -> int:
    """Run all checks of a contract on any clone. A receipt that you can check without trusting us."""
    where = os.path.abspath(folder)
    fired = verifying.verify(verifying.find_contract(contract_path, where), where, commit)
    found = values.shown(fired, show.receipt, as_json)
    if as_json:
        return values.checks(found, "the contract has no check")
    red = [receipt for receipt in found if not receipt.green]
    console.print_line(f"{len(found) - len(red)} of {len(found)} checks are green")
    return errors.NEGATIVE if red or not found else errors.DONE


@cli.command()
@click.argument("name", metavar="FEATURE|CLAIM")
@as_json
def why(name: str, as_json: bool) -> None:
    """Why a feature or a claim is believed: receipts, history, runs."""
    if as_json:
        values.echo(explaining.value(here(), name))
        return
    console.print_line("\n".join(explaining.explain(here(), name)))


@cli.group()
def runs() -> None:
    """What ran: list, show."""


@runs.command(name="list")
@click.option("-n", "most", type=click.IntRange(1, MOST_RUNS), default=20, help="How many, the newest last.")
@as_json
def runs_list(most: int, as_json: bool) -> None:
    """Finished runs, a line each."""
    values.echo(values.run_list(here(), most)) if as_json else show.run_list(here(), most)


@runs.command(name="show")
@click.argument("of", metavar="RUN|FEATURE")
@click.option("--prompt", is_flag=True, help="Its prompt, byte for byte; of a run of an archived mission, too.")
@as_json
def runs_show(of: str, prompt: bool, as_json: bool) -> None:
    """One run, or the newest one of a feature: result, receipts, and where its files are."""
    if prompt:
        history_show.prompt(here(), of, as_json)
        return

    values.echo(values.run(here(), of)) if as_json else show.run(here(), of)


@cli.command()
@click.argument("what", metavar="[RUN|FEATURE|ROLE]", default="")
@click.option("-f", "follow", is_flag=True, help="Go on until that run is over; without a name, from run to run.")
@as_json
def log(what: str, follow: bool, as_json: bool) -> None:
    """What an agent says and does, live or later. Without a name: the run under way, else the newest that has a transcript."""
    transcripts.log(here(), what, follow, as_json)


@cli.command()
@as_json
def usage(as_json: bool) -> None:
    """What was spent: by role, feature, day and model, and in all."""
    values.echo(spending.spending(here())) if as_json else show.usage(spending.spending(here()))


@cli.command()
@click.argument("part", required=False, type=click.Choice(["agents", "confine", "unattended"]))
@click.option("--fix", is_flag=True, help="Settle dead runs, as the next run would.")
@click.option("--try", "trial", is_flag=True, help="With agents: one small real call of each that is configured.")
@as_json
def doctor(part: str | None, fix: bool, trial: bool, as_json: bool) -> int:
    """Find what is wrong with the mission. Or with agents of this machine, or (confine) what a run's programs can do to it, or
    (unattended) what would stop it tonight."""
    if trial and part != "agents":
        raise errors.UsageFault(f"Say: {command('doctor agents --try')}")
    if part == "unattended":
        return schedule.tonight(as_json)
    fixed = doctors.fix(here()) if fix and not part else []
    if part == "agents":
        found = doctors.try_agents(here()) if trial else doctors.agents_here(here())
    else:
        found = try_confine.attempt(here()) if part == "confine" else doctors.examine(here())
    return values.findings(found, fixed) if as_json else show.findings(found, fixed)


@cli.command(hidden=True)
@click.argument("word")
def ending(word: str) -> None:
    """The lines with which run.sh ends."""
    given.check_state(here())
    console.print_line("\n".join(statuses.ending(here(), word)))
    _lines(console.sanitise(f"warning   {line}") for line in hooks.at_ending(here(), word))


for _made in (
    help.help_,
    completion.completion,
    claims.claim,
    history.replay,
    history.search,
    history.gc,
    history.export,
    *keeping.COMMANDS,
    looking.watch,
    looking.report,
    *memories.GROUPS,
    *orders.COMMANDS,
    schedule.schedule,
    *steering.COMMANDS,
    asks.ask,
    sessions.sessions,
    workspaces.skill,
    workspaces.workspace,
):
    cli.add_command(_made)
