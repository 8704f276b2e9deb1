"""Help: the grouped commands and the roles, the help of a role, and suggestions for unknown words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import takewhile

import click

from harness.base import console, errors
from harness.base.errors import HarnessError, UsageFault, suggestion
from harness.cli.quick import LOOP_OPTIONS, here
from harness.mission import roles
from harness.state import files, layout
from harness.state.layout import Layout, command

GROUPS = {
    "Mission": (
        *("do", "spec", "init", "next", "doctor", "land", "snapshot"),
        *("gc", "forget", "remove", "export", "completion", "help"),
    ),
    "Look": (
        *("workspace", "status", "watch", "report", "log", "diff", "runs", "feature"),
        *("features", "claim", "why", "replay", "search", "memory", "identity", "usage"),
    ),
    "Talk": ("ask", "sessions"),
    "Steer": ("enter", "pause", "resume", "stop", "steer", "checkpoint", "escalation", "accept"),
    "Team": ("team", "goal", "task"),
    "Unattended": ("schedule",),
    "Inside and outside of runs": ("note", "issue", "reply", "skill"),
    "Check": ("check", "verify"),
}
HELP = ("-h", "--help")
ENDLESS = 10**6  # columns
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON value.")
ARGUMENTS = {  # by capability of the role
    "plans": ("", "It takes no feature: it plans the whole mission."),
    "commits": ("[FEATURE]", "FEATURE is todo or failing; default: the next one."),
    "judges": ("[FEATURE]", "FEATURE has committed work; without it, or if all have passed, the role judges all."),
    "curates": ("", "It takes no feature: it works on the notes of all runs."),
    "specifies": ("", "It takes no feature: its reply becomes SPEC.md."),
    "answers": ("", "It runs as a turn of a team: team run THREAD MESSAGE."),
    "": ("[FEATURE]", "FEATURE is its subject, if any."),
}


class CommandGroups(click.Group):
    """Shows the commands in groups, followed by the roles. Suggests the nearest known word for an unknown one."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their whole first sentences; at the top level in groups, with the roles."""
        shown = self.shown(ctx)
        rest = [name for name in sorted(shown) if not any(name in group for group in GROUPS.values())]
        groups = [*GROUPS.items(), ("More", rest)] if ctx.parent is None else [("Commands", [*shown])]
        sections = [(title, [(name, shown[name].get_short_help_str(ENDLESS)) for name in group if name in shown])
                    for title, group in groups]  # fmt: skip
        if ctx.parent is None:
            sections.append(("Roles, for one run by hand", summaries(here())))
        width = max(len(name) for _, rows in sections for name, _ in rows)
        for title, rows in sections:
            if rows:
                with formatter.section(title):
                    formatter.write_dl([(f"{name:<{width}}", words) for name, words in rows])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, but suggests a known word for an unknown one."""
        if not ctx.resilient_parsing and args[0][:1] != "-" and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(f"There is no command '{args[0]}'.{suggestion(args[0], self.shown(ctx))}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def shown(self, ctx: click.Context) -> dict[str, click.Command]:
        """The commands listed in help, by name."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return {name: one for name, one in found.items() if one and not one.hidden}

    group_class = type


def no_such_word(where: Layout, word: str, commands: Iterable[str]) -> UsageFault:
    """The fault of a first word that is neither a command, a role nor an option."""
    if word[:1] == "-":
        near = suggestion(word, (*LOOP_OPTIONS, "-C", "--help", "--version"))
        return UsageFault(f"There is no option '{word}'.{near} See: {command('help')}")
    there = roles.known(where)
    shown = [name for name in commands if name not in ("ending", "hold")]
    listed = f"Roles here: {', '.join(there)}. Commands: {', '.join(shown)}."
    return UsageFault(f"There is no role and no command '{word}'.{suggestion(word, [*shown, *there])} {listed}")


def summaries(where: Layout) -> list[tuple[str, str]]:
    """Each role that can run here, with its summary, or its fault if its file is malformed."""
    found = []
    for name in roles.known(where):
        try:
            found.append((name, roles.load(where, name).summary))
        except HarnessError as fault:
            found.append((name, f"(cannot be read: {fault})"))
    return found


def of_role(where: Layout, name: str, formatter: click.HelpFormatter) -> None:
    """Write the help of a role, from its front matter and its first paragraph."""
    role = roles.load(where, name)
    words, meaning = ARGUMENTS[role.capability]
    paragraphs = [text.strip() for text in role.words.split("\n\n")]
    first = next((text for text in paragraphs if text and not text.startswith("#")), "")
    limits = f"Time limits: {role.minutes} minutes, {role.idle_minutes} idle (config.toml: [roles.{name}])."
    formatter.write(f"Usage: {command(name)} {words}".rstrip() + "\n")
    with formatter.indentation():
        for texts in filter(
            any, ([role.summary], [first], [meaning, limits, f"Its text: {where.folders.relative(role.path)}"])
        ):
            formatter.write_paragraph()
            for text in texts:
                formatter.write_text(text)


def overview(formatter: click.HelpFormatter) -> None:
    """Write the header of run.sh, which is its help, unless it cannot be read."""
    text = files.read_text(os.path.join(layout.home(), "run.sh")) or ""
    rows = [row[2:] for row in takewhile(lambda row: row[:1] == "#", text.split("\n")[1:])]
    for block in "\n".join(rows).split("\n\n"):
        formatter.write_paragraph()
        lines = [re.split(r" {2,}", row.strip()) for row in block.split("\n")]
        if all(len(line) == 2 for line in lines):
            with formatter.indentation():
                formatter.write_dl([(words, meaning) for words, meaning in lines])
        else:
            formatter.write_text(block)


def version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    """Print the version, of a checkout with its commit, and exit."""
    if wanted and not ctx.resilient_parsing:
        from harness.run import starting  # 60 ms, which other commands save

        console.print_line(f"harness {starting.version()}")
        ctx.exit()


@click.command(name="help")
@click.argument("words", metavar="[COMMAND | ROLE]", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> int:
    """Show the commands and roles, or the help of one."""
    top = ctx.find_root()
    cli = top.command
    assert isinstance(cli, CommandGroups), "help is a top-level command"
    buffer = top.make_formatter()
    if not words:
        overview(buffer)
        cli.format_commands(top, buffer)
        console.print_line(f"{buffer.getvalue()}\n{command('COMMAND --help')} describes each.")
        return errors.DONE
    if words[0] in roles.known(here()) and cli.get_command(top, words[0]) is None:
        of_role(here(), words[0], buffer)
        console.print_line(buffer.getvalue().rstrip("\n"))
        return errors.DONE
    at = top
    for word in words:
        found = at.command.get_command(at, word) if isinstance(at.command, click.Group) else None
        if found is None:
            raise no_such_word(here(), " ".join(words), cli.list_commands(top))
        at = click.Context(found, info_name=word, parent=at)
    console.print_line(at.get_help())
    return errors.DONE
