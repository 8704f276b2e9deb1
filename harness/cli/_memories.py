"""`memory` and `identity`: the knowledge of the mission and its roles, and its evidence."""

from __future__ import annotations

from typing import Any

import click

from harness.cli import _snapshots, _tables, _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import curations, identities, provenance
from harness.state import raw

TITLES = {
    "came": ("kept", "promoted", "graduated"),
    "said again": ("merged",),
    "superseded": ("superseded",),
    "gated": ("gated",),
    "dropped": ("dropped",),
}
WHERE = {"promoted": "also in summary.md", "graduated": "also in an identity"}


class _OfLine(click.Command):
    """A command whose words are a line of a page, which may start like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Protect words with a blank, which no option has."""
        return super().parse_args(ctx, [f" {word}" if word[:1] == "-" and " " in word else word for word in args])


@click.group(cls=help.CommandGroups)
def memory() -> None:
    """The memory of the mission: show, diff, why, at."""


@memory.command(name="show")
@click.argument("layer", type=click.Choice(["raw", "summary", "memory", "identity", "all"]), default="all")
@as_json
def memory_show(layer: str, as_json: bool) -> None:
    """Show the layers of memory: raw, summary, memory, identity, or all."""
    _tables.memory(here(), layer, as_json)


@memory.command(name="diff")
@click.argument("curation", metavar="[RUN]", default="")
@as_json
def memory_diff(curation: str, as_json: bool) -> None:
    """Show what a curation changed, and why; default: the newest."""
    value = curations.diff(here(), curation)
    _values.show(value, _difference(value), as_json=as_json)


@memory.command(name="why", cls=_OfLine)
@click.argument("line", nargs=-1, required=True)
@as_json
def memory_why(line: tuple[str, ...], as_json: bool) -> None:
    """Show the notes behind a line of summary.md or MEMORY.md; its first words are enough."""
    value = provenance.why(here(), " ".join(line))
    _values.show(value, _sources(value), as_json=as_json)


@click.group(cls=help.CommandGroups)
def identity() -> None:
    """The knowledge of roles across missions: list, why, forget."""


@identity.command(name="list")
@click.argument("role", default="")
@as_json
def identity_list(role: str, as_json: bool) -> None:
    """List the lines of a role, or of all, with their missions and counts."""
    run, rows = identities.given(here())
    if run:
        rows = [row for row in rows if role in ("", row["role"])]
        told = f"Run {run} cannot read the identities; its prompt has"
        lines = [f"{told}:", *map(_known, rows)] if rows else [f"{told} none of {role or 'them'}."]
        _values.show(rows, lines, as_json=as_json)
        return
    rows = identities.listed(role)
    _values.show(rows, map(_known, rows) if rows else ["No role has an identity yet."], as_json=as_json)


@identity.command(name="why", cls=_OfLine)
@click.argument("line", nargs=-1, required=True)
@click.option("--role", default="", help="The role, if two have the same line.")
@as_json
def identity_why(line: tuple[str, ...], role: str, as_json: bool) -> None:
    """Show the origin of a line: its notes in all missions, and the rule."""
    value = identities.why(" ".join(line), role)
    _values.show(value, _evidence(value), as_json=as_json)


@identity.command(name="forget", cls=_OfLine)
@click.argument("line", nargs=-1, required=True)
@click.option("--role", default="", help="The role, if two have the same line.")
@as_json
def identity_forget(line: tuple[str, ...], role: str, as_json: bool) -> None:
    """Remove a line for good; curations do not add it again."""
    value = identities.forget(here(), " ".join(line), role)
    said = f"{value['role']}.md: removed for good: {value['text']}"
    _values.show(value, [said], as_json=as_json)


memory.add_command(_snapshots.memory_at)
GROUPS = (memory, identity)


# ---- text for people


def _difference(value: dict[str, Any]) -> list[str]:
    """A curation: its entries by disposition, then the changes of lessons."""
    if value["why"]:
        return [value["why"][:1].upper() + value["why"][1:] + "."]
    lines = [f"{value['run']}: {len(value['entries'])} notes"]
    for title, dispositions in TITLES.items():
        rows = [row for row in value["entries"] if row.disposition in dispositions]
        lines += [f"{title} ({len(rows)})", *(_row(row) for row in rows)] if rows else []
    later = [_changed(row.asdict()) for row in value["changes"] if row.change != "demoted"]
    lines += [f"lessons ({len(later)})", *later] if later else []
    left = [f"  {text}" for text in value["left"]]
    return [*lines, f"left summary.md ({len(left)})", *left] if left else lines


def _row(row: Any) -> str:
    entry = row.entry.partition("] ")[2] if raw.parse_line(row.entry, row.seq).tag else row.entry
    why = row.why or WHERE.get(row.disposition, "")
    return f"  {row.seq:>5}  {entry}{f'   ({why})' if why else ''}"


def _changed(row: dict[str, Any]) -> str:
    """The change of a lesson."""
    return f"  {row['lesson']:>5}  {row['change']}: {row['text']}   ({row['why']})"


def _sources(value: dict[str, Any]) -> list[str]:
    """A line with the entries behind it, and its changes."""
    where = ", ".join(value["places"]) or "on no page now"
    if value["lesson"] is None:
        return [value["line"], f"  A person wrote it: {where}"]
    lines = [value["line"], f"  {where}"]
    for row in value["entries"]:
        who = f"{row['at']} {row['role']} {row['feature']} {row['tag']}".strip()
        lines.append(f"  {row['seq']:>5}  {who}: {row['text']}")
        lines.append(f"         {row['disposition']} by {row['run']}{': ' + row['why'] if row['why'] else ''}")
    return [*lines, *(f"{_changed(row.asdict())} by {row.run}" for row in value["changes"])]


def _known(row: dict[str, Any]) -> str:
    where = f"{', '.join(row['missions'])} · {row['count']}x" if row["count"] else "a person's"
    return f"{row['role']}  {row['text']}   ({where})"


def _evidence(value: dict[str, Any]) -> list[str]:
    lines = [_known(value), f"  {value['rule'] or 'A person wrote it.'}"]
    for one in value["evidence"]:
        lines.append(
            f"  {one.mission} {one.seq:>5}  {one.at} {one.role} {one.feature} {one.tag}: {one.text} by {one.run}"
        )
    return lines
