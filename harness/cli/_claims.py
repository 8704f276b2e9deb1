"""The commands about claims: look at them, mend a check, drop one, accept what no check proves."""

from __future__ import annotations

import sys
from typing import Any

import click

from harness.base import console, errors
from harness.cli import _tables, _values, help
from harness.cli._orders import order
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import agent_requests, why
from harness.mission import contract, mission
from harness.run.requests import claim_orders, orders
from harness.state.layout import command
from harness.workplace import run_detection

MAX_SECONDS = 24 * 3600


@click.group(cls=help.CommandGroups)
def claim() -> None:
    """Look at claims; mend, drop or accept one."""


@claim.command(name="list")
@as_json
def claim_list(as_json: bool) -> None:
    """The claims, a line each."""
    rows = why.claims(here())
    if as_json:
        _values.echo(rows)
        return
    for row in rows:
        about = ", ".join([row["word"], *row["marks"]])
        console.print_line(f"{row['id']:<16} {','.join(row['features']):<8} {about:<10} {row['text']}")
    if not rows:
        console.print_line("No claim is known: no plan has been accepted yet.")


@claim.command(name="show")
@click.argument("claim_id")
@as_json
def claim_show(claim_id: str, as_json: bool) -> None:
    """One claim, whole: its checks with their numbers, the state of its proof, who changed it."""
    mission.check_format(here())
    found = contract.load(here()).claim(claim_id)  # an unknown one is named as such
    if as_json:
        _values.echo(next(row for row in why.claims(here()) if row["id"] == claim_id))
        return
    for number, check in enumerate(found.checks, start=1):
        more = [f"{check.seconds} s"] if check.seconds else []
        head = ", ".join([f"check {number} of {len(found.checks)}", *["a guard"] * check.guard, *more])
        console.print_line("\n    ".join([f"{head}:", *check.run.split("\n")]))
    console.print_line("\n".join(why.explain(here(), claim_id)))


@claim.command(name="set")
@click.argument("claim_id")
@click.option("--text", default="", help="Another sentence.")
@click.option("--check", "run", metavar="SHELL", help="A check: in the place of the present one, or with --add.")
@click.option("--file", "path", metavar="FILE", help="The same from a file, - for standard input.")
@click.option("--number", type=int, metavar="N", help="Which check, where it has several.")
@click.option("--add", is_flag=True, help="One more check; the others stay.")
@click.option("--remove", is_flag=True, help="Take the check with that number away.")
@click.option("--guard/--no-guard", default=None, help="It may be green before the work.")
@click.option("--seconds", type=click.IntRange(1, MAX_SECONDS), help="Its own time limit.")
@click.option("--reason", default="a person set it", help="Why; for the contract log.")
def claim_set(claim_id: str, path: str | None, reason: str, **words: Any) -> None:
    """Change a claim's text or its checks. New checks run once first, on the mission's tree as it is."""
    layout = here()
    run_detection.refuse(layout, "claim set")
    mission.check_format(layout)
    if path is not None:
        if words["run"] is not None:
            raise errors.UsageFault("Give either --check SHELL or --file FILE.")
        words["run"] = sys.stdin.read() if path == "-" else agent_requests.text_of(path)
    wanted = claim_orders.edit(contract.load(layout).claim(claim_id), **words)
    fired = [_tables.receipt(receipt) for receipt in claim_orders.try_out(layout, claim_id, wanted)]
    console.print_line(orders.place(layout, "claim set", claim_orders.words(claim_id, wanted, fired, reason)))


@claim.command(name="drop")
@click.argument("claim_id")
@click.option("--reason", default="", help="Why; for the contract log.")
def claim_drop(claim_id: str, reason: str) -> None:
    """Take a claim out of the contract; its id is never used again."""
    if not reason.strip():
        raise errors.UsageFault(f'Say why: {command("claim drop")} {claim_id} --reason "…"')
    order("claim drop", claim_id, reason)


@claim.command(name="accept")
@click.argument("claim_ids", metavar="CLAIM...", nargs=-1, required=True)
@click.option("--note", "text", default="", help="What you looked at.")
def claim_accept(claim_ids: tuple[str, ...], text: str) -> None:
    """Give a person's receipt for claims that no check proves: manual, guarded or unproven ones."""
    for claim_id in claim_ids:
        order("claim accept", claim_id, text)


@claim.command(name="adopt")
def claim_adopt() -> None:
    """Take a contract that was edited by hand as it is, into its log."""
    order("claim adopt")
