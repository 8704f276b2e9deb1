"""The commands about past states: `snapshot`, `features at` and `memory at`; and `forget`."""

from __future__ import annotations

import sys
from typing import Any

import click

from harness.base import errors
from harness.cli import _run_view, _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.replay.upkeep import deletion, restoration, snapshots
from harness.state.layout import command

MAX_LISTED = 100_000


@click.group(cls=help.CommandGroups)
def snapshot() -> None:
    """States of the mission after each run: list, show, diff, restore."""


@snapshot.command(name="list")
@click.option("-n", "most", type=click.IntRange(1, MAX_LISTED), default=20, help="How many snapshots, newest last.")
@as_json
def snapshot_list(most: int, as_json: bool) -> int:
    """List the snapshots, one per line."""
    rows = snapshots.listed(here(), most)
    lines = []
    for row in rows:
        what = f"broken: {row.fault}" if row.fault else f"{row.features:<9} {row.commit[:10]:<10}  {row.what}"
        lines.append(f"{row.id:<32} {row.at}  {what}")
    _values.show(rows, lines or ["There are no snapshots yet; each run creates one at its end."], as_json=as_json)
    return errors.BROKEN if any(row.fault for row in rows) else errors.DONE


@snapshot.command(name="show")
@click.argument("snapshot_id", metavar="ID")
@as_json
def snapshot_show(snapshot_id: str, as_json: bool) -> None:
    """Show a snapshot: its files, its commit, its features."""
    value = snapshots.value(here(), snapshot_id)
    lines = [f"{value['id']}: {value['at']}, commit {value['commit'][:12] or 'none'}"]
    lines += [f"  {row['bytes']:>8}  {row['digest'][:12]}  {row['file']}" for row in value["files"]]
    lines += [f"  not recorded: {line}" for line in value["faults"]]
    lines += [f"identity  {name}  {digest[:12]}" for name, digest in value["identity"].items()]
    _values.show(value, [*lines, *_features(value["features"])], as_json=as_json)


@snapshot.command(name="diff")
@click.argument("one", metavar="A")
@click.argument("two", metavar="[B]", default="now")
@as_json
def snapshot_diff(one: str, two: str, as_json: bool) -> None:
    """Show the changes between two snapshots: spec, features, contract, issues, memory, config. B defaults to `now`."""
    lines = snapshots.diff(here(), one, two)
    same = f"{one} and {two} have the same spec, features, contract, issues, memory and settings."
    _values.show({"from": one, "to": two, "diff": lines}, lines or [same], as_json=as_json)


@snapshot.command(name="restore")
@click.argument("snapshot_id", metavar="ID")
@as_json
def snapshot_restore(snapshot_id: str, as_json: bool) -> None:
    """Restore features, contract, spec, issues and memory, and the code in a new branch, after a snapshot of the present."""
    made = restoration.restore(here(), snapshot_id)
    head = f"The mission is restored to {made.to}; its branch is {made.branch}, at {made.commit[:12]}."
    _values.show(made, [head, *made.lines, f"To undo: {command('snapshot restore')} {made.kept}"], as_json=as_json)


@click.group(cls=help.CommandGroups)
def features() -> None:
    """The features at an earlier time: at."""


@features.command(name="at")
@click.argument("run", metavar="RUN|FEATURE")
@as_json
def features_at(run: str, as_json: bool) -> None:
    """Show the features at the start of RUN, and the decision: that run."""
    value = snapshots.due(*_run_view.named(here(), run))
    head, due = f"{value['run']}: {value['at']}", f"due       {value['due']}: this run"
    _values.show(value, [head, *_features(value["features"]), due], as_json=as_json)


@click.command(name="at")
@click.argument("run", metavar="RUN|FEATURE")
@as_json
def memory_at(run: str, as_json: bool) -> None:
    """Show the memory at the start of RUN: summary.md and MEMORY.md."""
    value = snapshots.remembered(*_run_view.named(here(), run))
    lines = list[str]()
    for name in ("summary.md", "MEMORY.md"):
        why = value["unknown"].get(name)
        text = f"(not recorded: {why})" if why else value["files"][name]
        lines += [f"# {name} at {value['run']}, {value['at']}", "", text.rstrip("\n") if text else "(absent)", ""]
    _values.show(value, lines, as_json=as_json)


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
def forget(runs: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete runs for good: their files, and unreferenced objects. A tombstone and the line of the run log stay."""
    if not yes and not sys.stdin.isatty():
        raise errors.UsageFault(f"This cannot be undone. Confirm with: {command('forget')} {' '.join(runs)} --yes")
    if not yes:
        click.confirm(f"Remove {', '.join(runs)} for good?", abort=True)
    made = deletion.forget(here(), list(runs))
    freed = f"freed {made.bytes / 1e6:.1f} MB and {made.objects} unreferenced objects"
    _values.show(made, [*(f"{one.run}: {one.words}" for one in made.runs), freed], as_json=as_json)


def _features(rows: list[dict[str, Any]] | None) -> list[str]:
    if rows is None:
        return ["features  not recorded"]
    lines = [f"{row['id']}  {row['status']:<11}  {row['attempts']}  {row['title']}" for row in rows]
    return lines or ["There was no plan yet."]


COMMANDS = (snapshot, features, forget)
