"""The commands about claims: show them, edit a check, drop a claim, accept what no check proves."""

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
    """Show claims; edit, drop or accept them."""


@claim.command(name="list")
@as_json
def claim_list(as_json: bool) -> None:
    """List the claims, one per line."""
    rows = why.claims(here())
    lines = [
        f"{row['id']:<16} {','.join(row['features']):<8} {', '.join([row['word'], *row['marks']]):<10} {row['text']}"
        for row in rows
    ]
    _values.show(rows, lines or ["There are no claims: no plan was accepted yet."], as_json=as_json)


@claim.command(name="show")
@click.argument("claim_id")
@as_json
def claim_show(claim_id: str, as_json: bool) -> None:
    """Show a claim: its numbered checks, its proof, its changes."""
    mission.check_format(here())
    found = contract.load(here()).claim(claim_id)  # raises for an unknown one
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
@click.option("--text", default="", help="The new sentence.")
@click.option("--check", "run", metavar="SHELL", help="A check: replaces the present one, or, with --add, is added.")
@click.option("--file", "path", metavar="FILE", help="A check from a file, - for standard input.")
@click.option("--number", type=int, metavar="N", help="The check, if there are several.")
@click.option("--add", is_flag=True, help="Add a check; the others stay.")
@click.option("--remove", is_flag=True, help="Remove the check with that number.")
@click.option("--guard/--no-guard", default=None, help="The check may be green before the work.")
@click.option("--seconds", type=click.IntRange(1, MAX_SECONDS), help="The time limit of the check.")
@click.option("--reason", default="a person set it", help="The reason, for the contract log.")
def claim_set(claim_id: str, path: str | None, reason: str, **words: Any) -> None:
    """Change a claim's text or checks. New checks first run once, on the mission's present tree."""
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
@click.option("--reason", default="", help="The reason, for the contract log.")
def claim_drop(claim_id: str, reason: str) -> None:
    """Remove a claim from the contract; its id is never reused."""
    if not reason.strip():
        raise errors.UsageFault(f'Give a reason: {command("claim drop")} {claim_id} --reason "…"')
    order("claim drop", claim_id, reason)


@claim.command(name="accept")
@click.argument("claim_ids", metavar="CLAIM...", nargs=-1, required=True)
@click.option("--note", "text", default="", help="What you verified.")
def claim_accept(claim_ids: tuple[str, ...], text: str) -> None:
    """Give a person's receipt for claims that no check proves: manual, guarded or unproven ones."""
    for claim_id in claim_ids:
        order("claim accept", claim_id, text)


@claim.command(name="adopt")
def claim_adopt() -> None:
    """Record the contract as edited by hand in its log."""
    order("claim adopt")
