"""The commands about past runs: `replay`, `search`, `gc` and `export`."""

from __future__ import annotations

from typing import Any

import click

from harness.base import errors
from harness.builtin.turn_replay import LOOP
from harness.cli import _resend_view, _run_view, _turn_view
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.replay import query
from harness.replay import search as searching
from harness.replay.upkeep import export as exporting
from harness.replay.upkeep import pruning
from harness.state.layout import command

PLACES = ("raw", "memory", "identity", "prompts", "runs", "all")
MAX_HITS = 10_000
SWAPS = "role=FILE, summary=FILE, identity=FILE, spec=FILE or memory=without:SEQ"
NOT_FIRED = {"model": "", "swaps": (), "times": 1}


@click.command()
@click.argument("of", metavar="[RUN|FEATURE|MISSION]", default="")
@click.option("--explain", "explains", is_flag=True, help="Its sections: size, source, last change, cacheable share.")
@click.option("--all", "whole", is_flag=True, help="All runs, also of archived missions; a line for each fault.")
@click.option("--agent", default="", metavar="NAME", help="Send it again to this agent, in a temporary clone.")
@click.option("--model", default="", metavar="M", help="The agent's model. [that in config.toml]")
@click.option(
    "--with", "swaps", multiple=True, metavar="ITEM=…", help=f"Swap one item first: {SWAPS}. May be repeated."
)
@click.option("--times", type=click.IntRange(1, 100), default=1, help="Send it N times, and show the spread. [1]")
@click.option(
    "--turn", type=click.IntRange(1), default=None, metavar="N", help="The Nth request of the built-in agent instead."
)
@click.option("--task", default="", metavar="ID", help="With --turn: the subagent of the run.")
@click.option("--mission", "plays", is_flag=True, help="Play the mission, or MISSION, back from its records.")
@click.option("--config", default="", metavar="FILE", help="With --mission: use this config.toml.")
@as_json
def replay(
    of: str,
    explains: bool,
    whole: bool,
    agent: str,
    turn: int | None,
    task: str,
    plays: bool,
    config: str,
    as_json: bool,
    **fired: Any,
) -> int:
    """Rebuild the prompt of a past run, and compare it byte for byte (exit 65 if it differs); or send it again."""
    if (turn or task) and not (plays or whole or config):
        return _turn(of, turn, task, agent, as_json, **fired)
    fires = bool(agent) or any(fired[name] != default for name, default in NOT_FIRED.items())
    if plays and not (whole or explains or fires):
        return _run_view.played(here(), of, config, as_json)
    if fires and not plays:
        return _fired(of, agent, as_json, alone=not (explains or whole), **fired)
    if plays or config or whole == bool(of) or (whole and explains):
        raise errors.UsageFault(
            f"Give a run, or use --all: {command('replay RUN [--explain]')}   {command('replay --all')}   "
            f"{command('replay --mission')}"
        )
    if whole:
        return _run_view.every(here(), as_json)
    where, run_id = _run_view.named(here(), of)
    return (_run_view.explained if explains else _run_view.compared)(where, run_id, as_json)


def _turn(of: str, turn: int | None, task: str, agent: str, as_json: bool, **fired: Any) -> int:
    """`replay RUN [--task ID] --turn N`; with the built-in agent, send the request again."""
    if (
        not (of and turn)
        or agent not in ("", LOOP)
        or any(fired[name] != default for name, default in NOT_FIRED.items())
    ):
        raise errors.UsageFault(
            f"Give a run and a turn: {command(f'replay RUN [--task ID] --turn N [--agent {LOOP}]')}"
        )
    where, run_id = _run_view.named(here(), of)
    return _turn_view.turn(here(), where, run_id, turn, task, sends=bool(agent), as_json=as_json)


def _fired(of: str, agent: str, as_json: bool, *, alone: bool, model: str, swaps: tuple[str, ...], times: int) -> int:
    """`replay RUN --agent NAME`; without an agent `--with` shows the difference that it makes."""
    if not (of and alone and (agent or (swaps and not model and times == 1))):
        raise errors.UsageFault(f"Give a run and an agent: {command('replay RUN --agent NAME [--model M]')}")
    where, run_id = _run_view.named(here(), of)
    asked = _resend_view.order(here(), where, run_id, agent, model, swaps, times)
    return (_resend_view.fired if agent else _resend_view.previewed)(asked, as_json)


@click.command()
@click.argument("words", nargs=-1)
@click.option("-e", "regex", is_flag=True, help="WORDS are a Python regular expression, matched per line.")
@click.option("--role", default="", metavar="ROLE", help="Only this role: runs, notes, identity.")
@click.option("--feature", default="", metavar="FEATURE", help="Only runs and notes of this feature.")
@click.option("--since", default="", metavar="TIME", help="2026-04-24, 2026-04-24T10:05 in UTC, or 30m, 12h, 3d ago.")
@click.option("--in", "places", multiple=True, type=click.Choice(PLACES), help="The place; may be repeated. [all]")
@click.option("-n", "most", type=click.IntRange(1, MAX_HITS), default=20, help="Max hits of each kind.")
@as_json
def search(words: tuple[str, ...], regex: bool, places: tuple[str, ...], most: int, as_json: bool, **only: str) -> None:
    """Find WORDS in memory (best first) and in the prompts and transcripts of runs (newest first)."""
    asked = query.query(words, regex)
    wanted = searching.Filter(**{**only, "since": searching.since(only["since"])})
    found = searching.search(here(), asked, places or ("all",), wanted, most)
    _run_view.found(found, most, as_json)


@click.command()
@click.option(
    "--keep-days", "days", type=click.IntRange(0, 36500), default=30, help="Keep everything of the last DAYS days. [30]"
)
@click.option("--dry-run", is_flag=True, help="Only show what would be freed.")
@as_json
def gc(days: int, dry_run: bool, as_json: bool) -> None:
    """Remove large files of old runs: transcripts, output, refused files, unneeded trees. Every prompt can still be rebuilt."""
    _run_view.pruned(pruning.prune(here(), days, dry_run=dry_run), as_json)


@click.command()
@click.argument("of", metavar="[RUN|FEATURE]", default="")
@click.option("--all", "whole", is_flag=True, help="The whole mission, with its archive.")
@click.option("--to", "target", default="", metavar="PATH", help="A new folder, or a file .tar, .tar.gz or .tgz.")
@as_json
def export(of: str, whole: bool, target: str, as_json: bool) -> None:
    """Export a run, or all, with the commits; the export replays on another machine."""
    if whole == bool(of) or not target:
        one = command("export RUN --to PATH")
        raise errors.UsageFault(
            f"Give a run, or use --all, and give a target: {one}   {command('export --all --to PATH')}"
        )
    if whole:
        _run_view.exported(exporting.every(here(), target), "--all", as_json)
        return
    where, run_id = _run_view.named(here(), of)
    _run_view.exported(exporting.one(here(), where, run_id, target), run_id, as_json)
