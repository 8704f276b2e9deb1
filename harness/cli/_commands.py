"""The commands for both runs and people: `next`, `note`, `issue`, `reply`, `check`, `verify`."""

from __future__ import annotations

import os
import sys

import click

from harness.base import console, errors
from harness.cli import _tables, _values, help, quick
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import agent_requests
from harness.commands import verify as verifying
from harness.mission import issues, mission
from harness.mission.issues import SEVERITIES
from harness.run.machines.machine import serve
from harness.state.layout import command


@click.command(name="next")
@click.option("--leaving", metavar="WORD", help="The last decision before run.sh ends with WORD.")
@click.option("--told", metavar="LINE", help="Explain such a line to a person: when a WAIT ends, and why.")
@as_json
def next_(as_json: bool, **options: str | None) -> int:
    """Show the next step, in one line."""
    given = [word for name, value in options.items() if value for word in (f"--{name}", value)]
    return quick.next_(["--json"] * as_json + given)


@click.command()
@click.option("--tag", default="-", help="TRICK, DECISION, AVOID, CONTEXT, FAIL or -.")
@click.argument("text", nargs=-1)
def note(tag: str, text: tuple[str, ...]) -> int:
    """Note one line for later runs."""
    return quick.note(["--tag", tag, *text])


@click.command(hidden=True)
@click.option("--beat", type=click.FloatRange(0.05, 60), default=5.0, help="Seconds between two signs of life.")
def machine(beat: float) -> int:
    """Serve a lane of a mission elsewhere over standard input and output: docs/machines.md. Home starts it."""
    return serve(beat)


class _Titled(help.CommandGroups):
    """A group whose first word may be a title, because agents call `issue TITLE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Treat a first word that is not a command as a title, also after options."""
        title = bool(args) and args[0] not in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, [_TITLE, *args] if title else args)


_TITLE = "TITLE"


@click.group(cls=_Titled, subcommand_metavar="TITLE | COMMAND [ARGS]...")
def issue() -> None:
    """Report a fault that is not yours to fix now. Also list and close reported issues."""


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
        raise errors.UsageFault(f"Give a title, such as: {example}")
    console.print_line(agent_requests.issue(here(), {"title": title, **fields}))


@issue.command(name="list")
@as_json
def issue_list(as_json: bool) -> None:
    """List the issues, one per line."""
    mission.check_format(here())
    found = issues.load(here())
    lines = [f"{one.id}  {one.state:<7}  {one.severity:<8}  {' '.join(one.title.split())}" for one in found]
    _values.show(found, lines or ["There are no issues."], as_json=as_json)


@issue.command(name="close")
@click.argument("issue_id", metavar="ID")
@click.option("--why", default="", help="The reason.")
def issue_close(issue_id: str, why: str) -> None:
    """Close an issue, so that planners no longer see it."""
    console.print_line(agent_requests.close_issue(here(), issue_id, why))


@click.command()
@click.argument("file")
def reply(file: str) -> None:
    """Give the run's reply: FILE, or - for standard input. It is checked immediately, and the last valid one counts."""
    text = sys.stdin.read() if file == "-" else agent_requests.text_of(file)
    console.print_line(agent_requests.reply(here(), text))


@click.command()
@click.argument("name", metavar="[FEATURE|CLAIM]", required=False)
@as_json
def check(name: str | None, as_json: bool) -> int:
    """Run checks like the validator: those of a feature, of a claim, or all. The result proves nothing."""
    found = _tables.receipts_of(agent_requests.check(here(), name or ""), as_json)
    why = "" if found else agent_requests.unchecked(here(), name or "")
    return _tables.checked(found, as_json, line=why, why=why)


@click.command()
@click.argument("contract_path", metavar="[CONTRACT]", default="")
@click.option("--in", "folder", default=".", metavar="DIR", help="The clone to check. [this folder]")
@click.option("--at", "commit", default="", metavar="COMMIT", help="Check a fresh clone at that commit.")
@as_json
def verify(contract_path: str, folder: str, commit: str, as_json: bool) -> int:
    """Run all checks of a contract on any clone: a receipt that you can reproduce without trusting us."""
    where = os.path.abspath(folder)
    fired = verifying.verify(verifying.find_contract(contract_path, where), where, commit)
    found = _tables.receipts_of(fired, as_json)
    line = f"{sum(receipt.green for receipt in found)} of {len(found)} checks are green"
    return _tables.checked(found, as_json, line=line, why="the contract has no check")
