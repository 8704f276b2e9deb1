"""The commands that people call: each parses, calls one function below, and shows its result. None is exit code 0."""

from __future__ import annotations

import json
import os
import sys

import click

from harness.base import errors
from harness.cli.quick import here
from harness.store.layout import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_RUNS = 1_000_000


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Look at a mission, and steer it. run.sh without a command goes on with the mission."""


@cli.command()
@click.option("--agent", default="", metavar="NAME", help="The agent; goes into config.toml.")
@click.option("--trust", default="", metavar="HOW", help="How far an agent CLI may go: workspace or full.")
@click.option("--quietly", is_flag=True, help="Ask nothing; where there is a mission, only warn.")
def init(agent: str, trust: str, quietly: bool) -> None:
    """Start a mission in this folder (SPEC.md, a git repository), and choose its agent."""
    from harness.commands import choose_agent, config_check
    from harness.integrity import inside
    from harness.model import mission
    from harness.run import starting

    layout = here()
    inside.refuse(layout, "init")
    there = mission.exists(layout)
    made = starting.start(layout)
    if not (there and quietly):
        click.echo(f"{'There is' if there else 'Started'} the mission {made.id}, working on the branch {made.branch}.")
    if not quietly:
        click.echo("\n".join(choose_agent.choose(layout, agent, trust, _ask if sys.stdin.isatty() else None)))
    warnings = [f"warning: {line}" for line in config_check.require(layout)]
    for line in [*starting.announcement(layout), *warnings]:
        click.echo(line)


def _ask(question: str, answers: dict[str, str]) -> str:
    for name, meaning in answers.items():
        click.echo(f"  {name:<10} {meaning}".rstrip())
    try:
        return str(click.prompt(question, type=click.Choice(list(answers)), default=next(iter(answers))))
    except (click.Abort, errors.Interrupted) as left:
        if getattr(left, "code", errors.INTERRUPTED) == errors.INTERRUPTED:  # Ctrl-D or Ctrl-C: a person reads it
            click.echo(f"\nThe mission is started, and nothing else was written. {command('init')} asks again.")
        raise


@cli.command(name="next")
@click.option("--leaving", metavar="WORD", help="The last look before run.sh ends with WORD.")
@click.option("--told", metavar="LINE", help="Show such a line as a person reads it: when a WAIT ends, and why.")
def next_(**options: str | None) -> int:
    """What is due, in one line."""
    from harness.cli import quick

    return quick.next_([word for name, value in options.items() if value for word in (f"--{name}", value)])


@cli.command()
@click.option("--tag", default="-", help="TRICK, DECISION, AVOID, CONTEXT, FAIL or -.")
@click.argument("text", nargs=-1)
def note(tag: str, text: tuple[str, ...]) -> int:
    """Note one line for later runs."""
    from harness.cli import quick

    return quick.note(["--tag", tag, *text])


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
def status(as_json: bool) -> None:
    """Features, attempts, last outcomes, and what is due."""
    from harness.cli import show
    from harness.commands import status

    _show(status.status(here()), show.status, as_json)


def _show(value: dict[str, Any], show: Callable[[dict[str, Any]], None], as_json: bool) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=1)) if as_json else show(value)


class _Titled(click.Group):
    """A group whose first word may be a title, since agents call `issue TITLE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """A word that is no command is a title, also after options."""
        title = bool(args) and args[0] not in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, [_TITLE, *args] if title else args)


_TITLE = "TITLE"


@cli.group(cls=_Titled, subcommand_metavar="TITLE | COMMAND [ARGS]...")
def issue() -> None:
    """Report a fault that is not yours to fix now; list and close reported issues."""


@issue.command(name=_TITLE)
@click.argument("title", metavar="", default="")
@click.option("--severity", default="minor", help="critical, major, minor or nit.")
@click.option("--evidence", default="")
@click.option("--repro", default="")
@click.option("--suggested-fix", default="")
@click.option("--code-pointer", default="")
def issue_report(title: str, **fields: str) -> None:
    """Report a fault that is not yours to fix now."""
    from harness.commands import in_run

    if not title.strip():
        example = f"{command('issue')} 'it crashes on empty input' --severity major"
        raise errors.UsageFault(f"Say what is wrong, such as: {example}")
    click.echo(in_run.issue(here(), {"title": title, **fields}))


@issue.command(name="list")
def issue_list() -> None:
    """The issues, a line each."""
    from harness.cli import show

    show.issue_list(here())


@issue.command(name="close")
@click.argument("issue_id", metavar="ID")
@click.option("--why", default="", help="The reason.")
def issue_close(issue_id: str, why: str) -> None:
    """Close an issue: planners no longer see it."""
    from harness.commands import in_run

    click.echo(in_run.close_issue(here(), issue_id, why))


@cli.command()
@click.argument("file")
def reply(file: str) -> None:
    """Give the run's reply (FILE, or - for standard input); it is checked at once, the last good one counts."""
    from harness.commands import in_run

    text = sys.stdin.read() if file == "-" else in_run.text_of(file)
    click.echo(in_run.reply(here(), text))


@cli.command()
@click.argument("name", required=False)
def check(name: str | None) -> int:
    """Run the checks of a feature, a claim or everything as the validator will; it counts for nothing."""
    from harness.cli import show
    from harness.commands import in_run

    found = list(map(show.receipt, in_run.check(here(), name or "")))
    if not found:
        click.echo(in_run.unchecked(here(), name or ""))
    return errors.DONE if found and all(receipt.green for receipt in found) else errors.NEGATIVE


@cli.command()
@click.argument("contract_path", metavar="[CONTRACT]", default="")
@click.option("--in", "folder", default=".", metavar="DIR", help="The clone to check, this folder.")
@click.option("--at", "commit", default="", metavar="COMMIT", help="Check a fresh worktree at that commit.")
def verify(contract_path: str, folder: str, commit: str) -> int:
    """Run all checks of a contract on any clone: a receipt you can check without trusting us."""
    from harness.cli import show
    from harness.proof import verify as verifying

    where = os.path.abspath(folder)
    found = list(map(show.receipt, verifying.verify(verifying.find_contract(contract_path, where), where, commit)))
    red = [receipt for receipt in found if not receipt.green]
    click.echo(f"{len(found) - len(red)} of {len(found)} checks are green")
    return errors.NEGATIVE if red or not found else errors.DONE


@cli.command()
@click.argument("name", metavar="FEATURE|CLAIM")
def why(name: str) -> None:
    """Why a feature or a claim is believed: receipts, history, runs."""
    from harness.commands import why as explaining

    click.echo("\n".join(explaining.explain(here(), name)))


@cli.group()
def feature() -> None:
    """Look at features; change, retry or block one."""


@feature.command(name="list")
def feature_list() -> None:
    """The features, a line each."""
    from harness.commands import status

    for row in status.status(here())["features"]:
        click.echo(f"{row['id']}  {row['status']:<11}  {row['attempts']}/{row['tries']}  {row['title']}")


@feature.command(name="show")
@click.argument("feature_id")
def feature_show(feature_id: str) -> None:
    """One feature, whole: description, claims with checks, what happened to it."""
    from harness.cli import show

    show.feature(here(), feature_id)


def _order(verb: str, *words: str) -> None:
    from harness.model import mission
    from harness.run import orders

    mission.check_format(here())
    click.echo(orders.place(here(), verb, list(words)))


@feature.command(name="set")
@click.argument("feature_id")
@click.argument("assignment", metavar="KEY=VALUE")
def feature_set(feature_id: str, assignment: str) -> None:
    """Change a feature's title, description or priority."""
    key, equals, value = assignment.partition("=")
    if not equals:
        raise errors.UsageFault(f"Say KEY=VALUE, such as: {command('feature set')} F-001 priority=1")
    _order("feature set", feature_id, key, value)


@feature.command(name="retry")
@click.argument("feature_id")
def feature_retry(feature_id: str) -> None:
    """Try a feature again, with all its tries."""
    _order("feature retry", feature_id)


@feature.command(name="block")
@click.argument("feature_id")
@click.option("--reason", default="a person blocked it")
def feature_block(feature_id: str, reason: str) -> None:
    """Leave a feature alone until it is retried."""
    _order("feature block", feature_id, reason)


@cli.group()
def claim() -> None:
    """Judge what only a person can."""


@claim.command(name="accept")
@click.argument("claim_ids", metavar="CLAIM...", nargs=-1, required=True)
@click.option("--note", "text", default="", help="What you looked at.")
def claim_accept(claim_ids: tuple[str, ...], text: str) -> None:
    """Give a person's receipt for claims that no check proves: manual, guarded or unproven ones."""
    for claim_id in claim_ids:
        _order("claim accept", claim_id, text)


@claim.command(name="adopt")
def claim_adopt() -> None:
    """Take a contract that was edited by hand as it is, into its log."""
    _order("claim adopt")


@cli.group()
def escalation() -> None:
    """Answer what the mission cannot decide."""


@escalation.command(name="answer")
@click.argument("text")
def escalation_answer(text: str) -> None:
    """Archive the escalation with your answer, and restart the counts."""
    _order("escalation answer", text)


@cli.command()
@click.argument("run_id", metavar="RUN")
@click.argument("path")
def accept(run_id: str, path: str) -> None:
    """Take a file that was refused in a run after all."""
    _order("accept", run_id, path)


@cli.group()
def memory() -> None:
    """Look at what the mission remembers."""


@memory.command(name="show")
@click.argument("layer", type=click.Choice(["raw", "summary", "memory", "identity", "all"]), default="all")
def memory_show(layer: str) -> None:
    """The layers of memory: raw, summary, memory, identity, or all."""
    from harness.cli import show

    show.memory(here(), layer)


@cli.group()
def runs() -> None:
    """Look at what ran."""


@runs.command(name="list")
@click.option("-n", "most", type=click.IntRange(1, MOST_RUNS), default=20, help="How many, the newest last.")
def runs_list(most: int) -> None:
    """Finished runs, a line each."""
    from harness.cli import show

    show.run_list(here(), most)


@runs.command(name="show")
@click.argument("run_id", metavar="RUN")
def runs_show(run_id: str) -> None:
    """One run: result, receipts, and where its files are."""
    from harness.cli import show

    show.run(here(), run_id)


@cli.command()
@click.argument("run_id", metavar="RUN", required=False)
@click.option("-f", "follow", is_flag=True, help="Go on until the run is over.")
def log(run_id: str | None, follow: bool) -> None:
    """What an agent wrote and did, readable."""
    from harness.cli import show

    show.log(here(), run_id or "", follow)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
def usage(as_json: bool) -> None:
    """What was spent: by role, feature, day and model, and in all."""
    from harness.cli import show
    from harness.commands import spending

    _show(spending.spending(here()), show.usage, as_json)


@cli.command()
@click.argument("part", required=False, type=click.Choice(["agents", "confine"]))
@click.option("--fix", is_flag=True, help="Settle dead runs, as the next run would.")
@click.option("--try", "trial", is_flag=True, help="With agents: one small real call of each that is configured.")
def doctor(part: str | None, fix: bool, trial: bool) -> int:
    """Examine the whole folder, the agents of this machine, or (confine) what a run's programs can do to it."""
    from harness.cli import show
    from harness.commands import doctor as doctors

    if trial and part != "agents":
        raise errors.UsageFault(f"Say: {command('doctor agents --try')}")
    if part == "agents":
        return show.findings(doctors.try_agents(here()) if trial else doctors.agents_here(here()))
    if part == "confine":
        from harness.commands import try_confine

        return show.findings(try_confine.attempt(here()))
    for line in doctors.fix(here()) if fix else []:
        click.echo(f"fixed  {line}")
    return show.findings(doctors.examine(here()))


@cli.command(hidden=True)
@click.argument("word")
def ending(word: str) -> None:
    """The lines with which run.sh ends."""
    from harness.commands import status

    click.echo("\n".join(status.ending(here(), word)))
