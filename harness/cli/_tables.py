"""Shows results as tables and readable text; colour only on a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Iterable
from itertools import islice
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.base import clock, console, errors, faults
from harness.cli import _values
from harness.commands.curations import gated_words
from harness.commands.setup.agent_probe import Finding
from harness.commands.status import cost as money
from harness.decision import overview, rules
from harness.mission import contract, features, issues, mission, receipts, runs
from harness.mission.usage import COUNTS
from harness.run import prompt
from harness.state import files, json_lines, layout, names, raw
from harness.state.layout import Layout, command

COLOURS = {"passed": "green", "failing": "red", "blocked": "yellow", "validating": "cyan", "in_progress": "blue"}
ENDLESS = 10**6  # columns
IS_RED = r" is red \([^)]*\)"  # already in the verdict
PLAIN_COLUMNS = 80  # of a list with short lines, without a terminal
STATES = {"ok": "green", "note": "yellow", "warn": "bold yellow", "bad": "red"}


def _console() -> Console:
    """As wide as the terminal; without a terminal lines are never wrapped, for grep and copying."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else ENDLESS)


def table_of(*titles: str, right: Container[str] = (), fold: Container[str] = ()) -> Table:
    """An empty table with these columns. `right`: the right-aligned ones; `fold`: those whose long cells wrap."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        wraps = title in fold
        table.add_column(title, justify="right" if title in right else "left", overflow="fold" if wraps else "ellipsis")
    return table


def print_table(table: Table) -> None:
    """Print a table; without a terminal lines have no trailing blanks."""
    out = _console()
    with out.capture() as captured:
        out.print(table)
    text = captured.get()
    click.echo(text if sys.stdout.isatty() else re.sub(r" +$", "", text, flags=re.M), nl=False)


def _line(head: str, text: str, style: str = "") -> None:
    """Print a head and its text; on a terminal, wrapped lines of the text are indented."""
    row = (Text(head, style=style), _safe(text))
    if not sys.stdout.isatty():
        _console().print(Text.assemble(*row))
        return
    grid = Table.grid()
    grid.add_column(width=len(head), no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(*row)
    _console().print(grid)


def _safe(text: str, style: str = "") -> Text:
    """A cell or a line with possibly untrusted text, without control characters."""
    return Text(console.sanitise(text), style=style)


def _width() -> int:
    """The columns of the terminal; 80 without one."""
    return _console().width if sys.stdout.isatty() else PLAIN_COLUMNS


def status(value: dict[str, Any]) -> None:
    """Show the status as a table, then the next step and its reason."""
    table = table_of("feature", "status", "tries", "proven", "last run", "what", fold=("what",))
    known = {row["id"] for row in value["features"]}
    for row in value["features"]:
        what = f"{row['title']}  ({_waiting(row['waits'], known)})" if row["waits"] else row["title"]
        tries, proven = f"{row['attempts']}/{row['tries']}", f"{row['proven']}/{row['claims']}"
        state = Text(row["status"], style=COLOURS.get(row["status"], ""))
        table.add_row(_safe(row["id"]), state, tries, proven, _safe(row["last"]), _safe(what))
    _console().print(_safe(f"{value['mission']} on {value['branch']}", "bold"))
    if value["features"]:
        print_table(table)
    for name, text in _below(value):
        _line(f"{name:<9} ", text)


def _waiting(waits: str, known: set[str]) -> str:
    """What a blocked feature waits for, as part of a sentence: features by their ids, or a text."""
    named = waits.partition(": ")[0].split(", ")
    return f"{'waits for' if known.issuperset(named) else 'blocked:'} {' '.join(waits.split())}"


def _below(value: dict[str, Any]) -> list[tuple[str, str]]:
    totals = value["totals"]
    spent = (totals["cost_usd"], totals["uncounted"])
    rows = [
        ("due", f"{value['due']}: {value['why']}"),
        ("under way", ", ".join(value["under_way"])),
        *value["proof"].items(),
        ("issues", ", ".join(f"{row['id']} {row['severity']}: {row['title']}" for row in value["issues"])),
        ("notes", f"{value['uncurated']} are not curated yet" if value["uncurated"] else ""),
        ("gated", gated_words(value["gated"])),
        *(("warning", line) for line in value["warnings"]),
        ("runs", f"{totals['runs']} in {totals['seconds']:.0f} s, at most {value['limits']['max_runs']}"),
        ("cost", money(*spent) if spent != (None, 0) else ""),
    ]
    return [row for row in rows if row[1]]


def receipt(one: receipts.Receipt) -> receipts.Receipt:
    """Show a receipt, with its output if it is red, and return it."""
    first, newline, _ = one.command.strip().partition("\n")
    what = f"{one.claim}  {one.seconds:.2f} s  {first}{' …' if newline else ''}"
    _line(f"{one.verdict:<16} ", what, "green" if one.green else "red")
    for note in one.notes:
        console.print_line(f"    note: {note}")
    if not one.green and one.output.strip():
        console.print_line("\n".join(f"    {line}" for line in one.output.rstrip("\n").split("\n")))
    return one


def feature(where: Layout, feature_id: str) -> None:
    """Show a feature completely."""
    one = features.find(overview.features(where), feature_id)
    known = contract.load(where)
    console.print_line(f"{one.id} {one.title}\n{one.status} after {one.attempts} tries, priority {one.priority}")
    console.print_line(f"\n{one.description}\n" if one.description else "")
    for claim in known.of(one.claims):
        console.print_line(prompt.claim_text(claim))
    for words in filter(None, map(features.words, one.notes)):
        console.print_line(words)


def issue_list(where: Layout) -> None:
    """Show all issues, one per line, including closed ones."""
    mission.check_format(where)
    found = issues.load(where)
    for one in found:
        console.print_line(f"{one.id}  {one.state:<7}  {one.severity:<8}  {' '.join(one.title.split())}")
    if not found:
        console.print_line("There are no issues.")


def escalation(value: dict[str, Any]) -> None:
    """Show the open escalation, or that there is none."""
    console.print_line(value["text"].rstrip("\n") if value["kind"] else f"Nothing is escalated. See: {command('next')}")


def memory(where: Layout, layer: str) -> None:
    """Show the layers of memory as they are on disk."""
    mission.check_format(where)
    folder = layout.identity_folder()
    paths = {
        "summary": [where.path(names.SUMMARY)],
        "memory": [where.path(names.MEMORY)],
        "raw": [where.path(names.RAW)],
    }
    paths["identity"] = [
        os.path.join(folder, name) for name in files.names(folder) if name.endswith(".md") and name != "README.md"
    ]
    for name, found in paths.items():
        for path in found if layer in (name, "all") else []:
            click.echo(click.style(console.sanitise(f"== {where.folders.relative(path)}"), bold=True))
            if name == "raw" and files.length(path):  # streamed, because it can be long
                for entry in raw.entries(path, 0):
                    console.print_line(entry.line())
                console.print_line("")
            else:
                console.print_line(files.read_text(path) or "(empty)\n")


def run_list(where: Layout, most: int) -> None:
    """Show finished runs, newest last, and a person's answers in between."""
    mission.check_format(where)
    found = list(islice(runs.finished(where), most))
    every = sum(1 for _ in json_lines.backwards(where.path(names.RUN_LOG))) if len(found) == most else most
    if every > most:
        console.print_line(f"… and {every - most} older: {command('runs list')} -n {every}")
    answers, width = runs.answers(where), _width()
    longest, said = (max([len(getattr(one, name)) for one in found], default=0) for name in ("run", "said"))
    for one in reversed(found):
        head = f"{one.at[5:16]} {one.run:<{longest}} {one.said:<{said}} {_seconds(one.seconds):>6}"
        last = re.sub(IS_RED, "", faults.first(one.reason)) or one.commit[:10]
        console.print_line(faults.cut(console.sanitise(f"{head} {last}".rstrip()), width))
        for answer in answers:
            if answer.after == one.run:
                words = f"{answer.at[5:16]} a person answered: {' '.join(answer.text.split())}"
                console.print_line(faults.cut(console.sanitise(words), width))


def _seconds(seconds: float) -> str:
    """A duration in about six characters."""
    return f"{seconds:.1f} s" if seconds < 1000 else f"{seconds / 3600:.1f} h"


def run(where: Layout, name: str) -> None:
    """Show a run, by its id or feature: its context, its result, and the folder of its files."""
    run_id = _values.run_named(where, name)
    gone, result = runs.forgotten(where).get(run_id), runs.result(where, run_id)
    if gone:
        console.print_line(f"{run_id}: {gone.words}. From the run log:")
        _result(result)
        return
    context = runs.context(where, run_id)
    console.print_line(
        f"{context.run}: {context.role} {context.feature} at {context.head[:10]} on {context.branch}".replace("  ", " ")
    )
    if result is None:
        console.print_line("under way" if not runs.is_dead(where, run_id) else "died; the next run settles it")
    _result(result)
    for one in receipts.load(where.run(run_id).receipts):
        receipt(one)
    console.print_line(f"files        {where.folders.relative(where.run(run_id).folder)}")


def _result(result: runs.RunResult | None) -> None:
    """Show the result of a run, if it has one."""
    rows = _readable(result).items() if result else ()
    lines = [f"{key:<12} {value}" for key, value in rows if value not in ("", None, []) and key not in HIDDEN]
    if lines:
        console.print_line("\n".join(lines))


def _readable(result: runs.RunResult) -> dict[str, Any]:
    """The result in readable form: the known usage, and a wait, if any."""
    used = {key: value for key, value in (result.usage or {}).items() if value not in ("", None) and key != "raw"}
    waits = clock.stamp(result.until) if result.until else ""
    return {**result.asdict(), "usage": used or None, "until": waits}


HIDDEN = ("totals", "mark", "seal", "run", "role", "feature")


def usage(value: dict[str, Any]) -> None:
    """Show the spending, one table per kind; `?` was not reported, `-` is nothing."""
    if not value["total"]["runs"]:
        console.print_line("Nothing has run yet.")
        return
    shown: set[str] = set()
    for number, title in enumerate(
        ("role", "feature", "day", "model", "total", *(["replays"] * bool(value["replays"])))
    ):
        if number:
            console.print_line("")
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(title if title != "total" else "", overflow="fold")
        for name in ("runs", "cost USD", "input", "read", "written", "output", "reasoning", "cached"):
            table.add_column(name, justify="right", no_wrap=True)
        for name, row in ({"total": value["total"]} if title == "total" else value[title]).items():
            cells = _spent(row)
            table.add_row(_safe(name or "-"), *cells)
            shown |= {name or "-", *(cell.split(" ")[0] for cell in cells)}
        print_table(table)
    for line in _legend(shown, value["total"]["uncounted"]):
        console.print_line(line)


def _legend(shown: set[str], uncounted: int) -> list[str]:
    """The meaning of the signs in the tables."""
    why = f"{rules.counted(uncounted)}, because their cost was not or only partly reported"
    meant = {
        ">=": f"at least: {why}.",
        "~": "partly estimated: a server sent no counts.",
        "?": f"unknown: {why}." if uncounted and ">=" not in shown else "unknown: not reported.",
        "-": "none: no feature, no agent, or a free agent.",
    }
    lines = [f"{sign:<2} {words}" for sign, words in meant.items() if sign in shown]
    return ["", *lines] if lines else []


def _spent(row: dict[str, Any]) -> list[str]:
    """The cells of a row, shortened."""
    cost = "" if row["cost_usd"] is None else f"{'>= ' if row['uncounted'] else ''}{row['cost_usd']:.2f}"
    ratio = "" if row["cache_ratio"] is None else f"{100 * row['cache_ratio']:.0f} %"
    about = "~ " if row.get("estimated") else ""
    counts = ["" if row[name] is None else f"{about}{_short(row[name])}" for name in COUNTS]
    absent = "?" if row["told"] or row["uncounted"] else "-"
    return [str(row["runs"]), *(cell or absent for cell in (cost, *counts, ratio))]


def _short(count: int) -> str:
    """A count of tokens in about six characters."""
    if count < 10_000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.2f}M"


def findings(found: Iterable[Finding], fixed: list[str]) -> int:
    """Show doctor's fixes and its findings as they arrive, a line each; returns exit code 10 if one is bad."""
    for line in fixed:
        console.print_line(f"fixed  {line}")
    seen = set()
    for one in found:
        _line(f"{one.state:<6}", one.what, STATES[one.state])
        seen.add(one.state)
    return errors.NEGATIVE if "bad" in seen else errors.DONE
