"""The commands about past runs: `replay`, `search`, `gc` and `export`."""

from __future__ import annotations

import click

from harness.base import errors
from harness.cli.help import as_json
from harness.cli.quick import here
from harness.store.layout import command

PLACES = ("raw", "memory", "identity", "prompts", "runs", "all")
MOST_HITS = 10_000


@click.command()
@click.argument("of", metavar="[RUN|FEATURE|MISSION]", default="")
@click.option(
    "--explain", "explains", is_flag=True, help="Its sections: size, source, last change; what a cache can serve."
)
@click.option("--all", "whole", is_flag=True, help="Every run, of archived missions too; a line for each that fails.")
@click.option("--mission", "plays", is_flag=True, help="Play the whole mission again from its records, or MISSION's.")
@click.option("--config", "config", default="", metavar="FILE", help="With --mission: under this config.toml instead.")
@as_json
def replay(of: str, explains: bool, whole: bool, plays: bool, config: str, as_json: bool) -> int:
    """Rebuild the prompt of a past run, and compare it byte for byte. Ends with 65 and the difference where it is another."""
    from harness.cli import history_show

    if plays and not (whole or explains):
        return history_show.played(here(), of, config, as_json)

    if plays or bool(config) or whole == bool(of) or (whole and explains):
        raise errors.UsageFault(
            f"Say which run, or all: {command('replay RUN [--explain]')}   {command('replay --all')}   "
            f"{command('replay --mission')}"
        )
    if whole:
        return history_show.every(here(), as_json)
    where, run_id = history_show.named(here(), of)
    return (history_show.explained if explains else history_show.compared)(where, run_id, as_json)


@click.command()
@click.argument("words", nargs=-1)
@click.option("-e", "regex", is_flag=True, help="WORDS are a regular expression (of Python), on each line.")
@click.option("--role", default="", metavar="ROLE", help="Of runs and notes of this role; its identity.")
@click.option("--feature", default="", metavar="FEATURE", help="Of runs and notes of this feature.")
@click.option("--since", default="", metavar="TIME", help="2026-04-24, 2026-04-24T10:05 in UTC, or 30m, 12h, 3d ago.")
@click.option("--in", "places", multiple=True, type=click.Choice(PLACES), help="Where; may be repeated. [all]")
@click.option("-n", "most", type=click.IntRange(1, MOST_HITS), default=20, help="How many hits of each kind.")
@as_json
def search(words: tuple[str, ...], regex: bool, places: tuple[str, ...], most: int, as_json: bool, **only: str) -> None:
    """Find WORDS in memory (best first) and in what runs were asked, said and did (newest first)."""
    from harness.cli import history_show
    from harness.history import matching
    from harness.history import search as searching

    asked = matching.query(words, regex)
    wanted = searching.Filter(**{**only, "since": searching.since(only["since"])})
    found = searching.search(here(), asked, places or ("all",), wanted, most)
    history_show.found(found, most, as_json)


@click.command()
@click.option(
    "--keep-days", "days", type=click.IntRange(0, 36500), default=30, help="Runs that ended later keep all. [30]"
)
@click.option("--dry-run", is_flag=True, help="Only say what would be freed.")
@as_json
def gc(days: int, dry_run: bool, as_json: bool) -> None:
    """Free the room of old runs: transcripts, output, refused files, spare trees. Every prompt can still be rebuilt."""
    from harness.cli import history_show
    from harness.history import pruning

    history_show.pruned(pruning.prune(here(), days, dry_run=dry_run), as_json)


@click.command()
@click.argument("of", metavar="[RUN|FEATURE]", default="")
@click.option("--all", "whole", is_flag=True, help="The whole mission, with its archive.")
@click.option("--to", "target", default="", metavar="PATH", help="A new folder, or a file .tar, .tar.gz or .tgz.")
@as_json
def export(of: str, whole: bool, target: str, as_json: bool) -> None:
    """Export a run, or all, with the commits: what comes out replays on another machine."""
    from harness.cli import history_show
    from harness.history import export as exporting

    if whole == bool(of) or not target:
        one = command("export RUN --to PATH")
        raise errors.UsageFault(f"Say which run, or all, and where to: {one}   {command('export --all --to PATH')}")
    if whole:
        history_show.exported(exporting.every(here(), target), "--all", as_json)
        return
    where, run_id = history_show.named(here(), of)
    history_show.exported(exporting.one(here(), where, run_id, target), run_id, as_json)
