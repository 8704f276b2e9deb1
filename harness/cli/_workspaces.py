"""The commands about the workspace: `workspace show` and `accept`, and `skill`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from harness.base import console, encoding, errors
from harness.builtin.sessions import folder
from harness.builtin.sessions.folder import DIFFERENT, FAILED
from harness.cli import _values, help
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.commands import workspaces
from harness.state.layout import command
from harness.workplace import run_detection

MAX_LEFT = 12  # lines about what no agent gets


@click.group(cls=help.CommandGroups)
def workspace() -> None:
    """What agents get besides their task: show, accept; copy it elsewhere."""


@workspace.command(name="show")
@click.option("--role", default="", metavar="R", help="What this role gets. [what any role gets]")
@click.option("--user", default=None, metavar="U", help="The user, instead of that in config.toml.")
@click.option("--sizes", is_flag=True, help="Without the texts.")
@click.option("-v", "--verbose", is_flag=True, help="With every file that does not count.")
@as_json
def workspace_show(role: str, user: str | None, sizes: bool, verbose: bool, as_json: bool) -> None:
    """Show what an agent would get, with the size and source of each part, the changes that wait for you, and what does not
    count."""
    found = workspaces.show(here(), role, user)
    _values.show(found, [*_lines(found, verbose), *([] if sizes else _texts(found))], as_json=as_json)


def _left(found: dict[str, Any], *, verbose: bool = False) -> list[str]:
    """What no agent gets, by reason, in at most MAX_LEFT lines, or all of it."""
    rows = [f"left out   {line}" for line in found["left_out"]]
    for reason, paths in found["unused"].items():
        rows += [f"not read   {path}: {reason}" for path in (paths if verbose else [encoding.few(paths)])]
    more = f"not read   {len(rows) - MAX_LEFT + 1} lines more: {command('workspace show -v')}"
    return rows if verbose or len(rows) <= MAX_LEFT else [*rows[: MAX_LEFT - 1], more]


def _lines(found: dict[str, Any], verbose: bool) -> list[str]:
    """A line for each item."""
    rows = [
        f"{one['tokens']:>7} tokens {one['bytes']:>8} bytes  {one['source']} ({one['layer']})"
        + (f", of {one['whole_tokens']} tokens" if one["whole_tokens"] > one["tokens"] else "")
        for one in found["parts"]
    ]
    rows.append(f"{found['tokens']:>7} tokens of at most {found['most_tokens']}")
    rows += [f"skill      {one['name']} ({one['layer']}: {one['path']})" for one in found["skills"]]
    rows += [f"subagent   {one['id']} ({one['layer']}: {one['path']})" for one in found["subagents"]]
    if tools := found["tools"]:
        rows += [f"allow      {', '.join(tools['allow']) or 'nothing'}"] if tools["allow"] is not None else []
        rows += [f"deny       {', '.join(tools['deny'])}"] if tools["deny"] else []
        rows += [f"ask        {', '.join(tools['ask'])}"] if tools["ask"] else []
        rows += [f"server     {one['name']} ({one['transport']})" for one in tools["servers"]]
        rows += [f"server     {name} (disabled)" for name in tools["disabled"]]
    rows += [f"waits      {one['path']}: {one['what']} by {one['run']}" for one in found["waiting"]]
    rows += _left(found, verbose=verbose)
    return [*rows, *([f"To accept: {command('workspace accept')}"] if found["waiting"] else [])]


def _texts(found: dict[str, Any]) -> list[str]:
    return [
        line for one in found["parts"] for line in ("", f"--- {one['source']} ---", *one["text"].rstrip().split("\n"))
    ]


@workspace.command(name="accept")
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@as_json
def workspace_accept(paths: tuple[str, ...], as_json: bool) -> None:
    """Accept runs' changes of instructions, knowledge, skills, subagents or tools.json: all, or these paths. Without a PATH
    also the repository's servers, skills with files and .harness, and the files that your tools execute."""
    found, brought = workspaces.accept(here(), paths)
    lines = [f"accepted: {row}" for row in brought]
    lines += [f"{one.path} is accepted ({one.what} by {one.run})" for one in found]
    _values.show(found, lines or ["Nothing to accept."], as_json=as_json)
    if not as_json and (found or not paths):  # not for a `.harness` alone, which may have no repository
        _values.show(None, _left(workspaces.show(here(), "", None)), as_json=False)


@workspace.command(name="copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--dry-run", is_flag=True, help="Say what would be copied, and write nothing.")
def workspace_copy(source: str, target: str, dry_run: bool) -> int:
    """Copy sessions, memories, users' files and the workspace from one store to another. Each is a URL (docs/stores.md) or the
    folder of a project. What is there already stays; a second call goes on."""
    run_detection.refuse(here(), "workspace copy")
    found = Counter[str]()
    for one in folder.copied(source, target, dry_run=dry_run):
        found[one.what] += 1
        if one.what in (DIFFERENT, FAILED):
            console.print_error(f"{one.where}: {one.what}")
    console.print_line(", ".join(f"{count} {what}" for what, count in found.items()) or "There is nothing to copy.")
    return errors.NEGATIVE if found[DIFFERENT] or found[FAILED] else errors.DONE


@click.command()
@click.argument("name", metavar="[NAME]", default="")
@click.argument("path", metavar="[FILE]", default="")
@as_json
def skill(name: str, path: str, as_json: bool) -> None:
    """Show a skill, or another FILE of it; without NAME list the skills."""
    if name:
        text = workspaces.skill(here(), name, path)
        _values.show({"skill": name, "file": path, "text": text}, [text.rstrip("\n")], as_json=as_json)
        return
    found = workspaces.skill_list(here())
    value = [{"name": one.name, "description": one.description, "layer": one.layer} for one in found]
    lines = [f"{one.name}: {one.description}" for one in found]
    _values.show(value, lines or ["There are no skills here."], as_json=as_json)
