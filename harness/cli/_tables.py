"""Shows results as tables and readable text, with colour only on a terminal, or as JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Iterable, Sequence
from itertools import islice
from typing import Any

import click
from rich.console import Console, OverflowMethod
from rich.table import Table
from rich.text import Text

from harness.base import clock, console, errors, faults
from harness.cli import _values
from harness.commands import curations
from harness.commands.setup.agent_probe import Finding
from harness.commands.status import cost as money
from harness.decision import overview, rules
from harness.mission import contract, features, lease, mission, receipts, runs
from harness.mission.receipts import Receipt
from harness.mission.usage import COUNTS
from harness.run import prompt
from harness.state import files, layout, names, raw
from harness.state.layout import Layout, command
from harness.state.state import State

COLOURS = {"passed": "green", "failing": "red", "blocked": "yellow", "validating": "cyan", "in_progress": "blue"}
ENDLESS = 10**6  # columns
IS_RED = r" is red \([^)]*\)"  # already in the verdict
PLAIN_COLUMNS = 80  # of a list with short lines, without a terminal
STATES = {"ok": "green", "note": "yellow", "warn": "bold yellow", "bad": "red"}


def _console() -> Console:
    """As wide as the terminal; without a terminal lines are never wrapped, for grep and copying."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else ENDLESS)


def print_table(
    titles: Sequence[str],
    rows: Iterable[Iterable[str | Text]],
    *,
    right: Container[str] = (),
    fold: Container[str] = (),
) -> None:
    """Print rows of possibly untrusted cells. `right`: the right-aligned columns; `fold`: those whose long cells wrap. Without a
    terminal lines have no trailing blanks."""
    out, table = _console(), Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        wraps = title in fold
        number = title in right
        overflow: OverflowMethod = "fold" if wraps else "ellipsis"
        table.add_column(title, justify="right" if number else "left", overflow=overflow, no_wrap=number and not wraps)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else _safe(cell) for cell in row))
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


def status(value: dict[str, Any]) -> None:
    """Show the status as a table, then the next step and its reason."""
    known = {row["id"] for row in value["features"]}
    _console().print(_safe(f"{value['mission']} on {value['branch']}", "bold"))
    if value["features"]:
        titles = ("feature", "status", "tries", "proven", "last run", "what")
        print_table(titles, (_feature_row(row, known) for row in value["features"]), fold=("what",))
    for name, text in _below(value):
        _line(f"{name:<9} ", text)


def _feature_row(row: dict[str, Any], known: set[str]) -> tuple[str | Text, ...]:
    state = Text(row["status"], style=COLOURS.get(row["status"], ""))
    what = f"{row['title']}  ({_waiting(row['waits'], known)})" if row["waits"] else row["title"]
    return row["id"], state, f"{row['attempts']}/{row['tries']}", f"{row['proven']}/{row['claims']}", row["last"], what


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
        ("gated", curations.gated_words(value["gated"])),
        *(("warning", line) for line in value["warnings"]),
        ("runs", f"{totals['runs']} in {totals['seconds']:.0f} s, at most {value['limits']['max_runs']}"),
        ("cost", money(*spent) if spent != (None, 0) else ""),
    ]
    return [row for row in rows if row[1]]


def receipt(one: Receipt) -> Receipt:
    """Show a receipt, with its output if it is red, and its remarks, and return it."""
    first, newline, _ = one.command.strip().partition("\n")
    what = f"{one.claim}  {one.seconds:.2f} s  {first}{' …' if newline else ''}"
    _line(f"{one.verdict:<16} ", what, "green" if one.green else "red")
    for text in filter(str.strip, ("" if one.green else one.output, one.remarks)):
        console.print_line("\n".join(f"    {line}" for line in text.rstrip("\n").split("\n")))
    return one


def receipts_of(fired: Iterable[Receipt], as_json: bool) -> list[Receipt]:
    """All receipts of checks, each shown as it arrives, unless they are printed as JSON."""
    return [one if as_json else receipt(one) for one in fired]


def with_verdict(one: Receipt) -> dict[str, Any]:
    """A receipt for JSON."""
    return {"verdict": one.verdict, **one.asdict()}


def checked(found: list[Receipt], as_json: bool, line: str = "", why: str = "") -> int:
    """Print `line`, or the receipts as JSON with `why` there are none; returns the exit code of `check` and `verify`."""
    green = bool(found) and all(one.green for one in found)
    value = {"green": green, "why": "" if found else why, "receipts": [*map(with_verdict, found)]}
    _values.show(value, filter(None, [line]), as_json=as_json)
    return errors.DONE if green else errors.NEGATIVE


def feature(where: Layout, feature_id: str, as_json: bool) -> None:
    """Show a feature with its complete claims."""
    one = features.find(overview.features(where), feature_id)
    claims = contract.load(where).of(one.claims)
    lines = [f"{one.id} {one.title}\n{one.status} after {one.attempts} tries, priority {one.priority}"]
    lines += [f"\n{one.description}\n" if one.description else "", *map(prompt.claim_text, claims)]
    lines += filter(None, map(features.words, one.notes))
    _values.show({**one.asdict(), "claims": claims}, lines, as_json=as_json)


def memory(where: Layout, layer: str, as_json: bool) -> None:
    """Show the layers of memory: as they are on disk; as JSON {layer: its text, null if absent}, `raw` as the entries that are
    not curated, `identity` as {role: text}."""
    mission.check_format(where)
    folder = layout.identity_folder()
    found = [name for name in files.names(folder) if name.endswith(".md") and name != "README.md"]
    paths = {
        "summary": [where.path(names.SUMMARY)],
        "memory": [where.path(names.MEMORY)],
        "raw": [where.path(names.RAW)],
        "identity": [os.path.join(folder, name) for name in found],
    }
    wanted = {name: own for name, own in paths.items() if layer in (name, "all")}
    if as_json:
        _values.echo({name: _layer(where, name, own) for name, own in wanted.items()})
        return
    for path in (path for own in wanted.values() for path in own):
        click.echo(click.style(console.sanitise(f"== {where.folders.relative(path)}"), bold=True))
        if path == where.path(names.RAW) and files.length(path):  # streamed, because it can be long
            for entry in raw.entries(path, 0):
                console.print_line(entry.line())
            console.print_line("")
        else:
            console.print_line(files.read_text(path) or "(empty)\n")


def _layer(where: Layout, name: str, paths: list[str]) -> object:
    """A layer of memory for JSON."""
    if name == "raw":
        return curations.uncurated(where)
    if name == "identity":
        return {os.path.basename(path)[:-3]: files.read_text(path) for path in paths}
    return files.read_text(paths[0])


def run_list(where: Layout, most: int, as_json: bool) -> None:
    """Show finished runs, newest last, the number of older ones, and a person's answers in between."""
    mission.check_format(where)
    found = list(islice(runs.finished(where), most))[::-1]
    every = (State(where).data(names.RUN_LOG) or b"").count(b"\n") if len(found) == most else len(found)
    ids = {one.run for one in found}
    answers = [one for one in runs.answers(where) if one.after in ids]
    if as_json:
        _values.echo({"older": every - len(found), "runs": found, "answers": answers})
        return
    if every > most:
        console.print_line(f"… and {every - most} older: {command('runs list')} -n {every}")
    longest, said = (max([len(getattr(one, name)) for one in found], default=0) for name in ("run", "said"))
    width = _console().width if sys.stdout.isatty() else PLAIN_COLUMNS
    for one in found:
        head = f"{one.at[5:16]} {one.run:<{longest}} {one.said:<{said}} {_seconds(one.seconds):>6}"
        last = re.sub(IS_RED, "", faults.first(one.reason)) or one.commit[:10]
        words = [f"{answer.at[5:16]} a person answered: {' '.join(answer.text.split())}"
                 for answer in answers if answer.after == one.run]  # fmt: skip
        for line in (f"{head} {last}".rstrip(), *words):
            console.print_line(faults.cut(console.sanitise(line), width))


def _seconds(seconds: float) -> str:
    """A duration in about six characters."""
    return f"{seconds:.1f} s" if seconds < 1000 else f"{seconds / 3600:.1f} h"


def run_named(where: Layout, name: str) -> str:
    """The run with this id; for a feature its newest run: the open one, else the newest finished one."""
    if os.path.isdir(where.run(name).folder) or not runs.is_id(name):
        return name
    found = (one.run for one in runs.finished(where) if one.feature == name)
    alive = [one.run for one in lease.alive(where) if one.feature == name]
    return next(iter((*alive[-1:], *islice(found, 1))), name)


def run(where: Layout, name: str, as_json: bool) -> None:
    """Show a run, by its id or feature: its context, its result (null if it has not ended), its receipts, and its folder."""
    run_id = run_named(where, name)
    gone = runs.forgotten(where).get(run_id)
    context, result = None if gone else runs.context(where, run_id), runs.result(where, run_id)
    state = "forgotten" if gone else "finished" if result else "died" if runs.is_dead(where, run_id) else "under way"
    found = [] if gone else receipts.load(where.run(run_id).receipts)
    folder = os.path.relpath(where.run(run_id).folder, where.folders.project)
    if as_json:
        who = {"at": gone.at, "by": gone.by} if gone else {}
        rows = {"context": context, "result": result, "receipts": [*map(with_verdict, found)], "files": folder}
        _values.echo({"run": run_id, "state": state, **who, **rows})
        return
    if context:
        about = f"{context.role} {context.feature}".strip()
        console.print_line(f"{context.run}: {about} at {context.head[:10]} on {context.branch}")
    heads = {"under way": state, "died": "died; the next run settles it"}
    head = f"{run_id}: {gone.words}. From the run log:" if gone else heads.get(state)
    console.print_line("\n".join([*([head] if head else []), *_result(result)]))
    for one in found:
        receipt(one)
    if not gone:
        console.print_line(f"files        {folder}")


def _result(result: runs.RunResult | None) -> list[str]:
    """The lines of a result: with the known usage, and a wait, if any."""
    if result is None:
        return []
    used = {key: value for key, value in (result.usage or {}).items() if value not in ("", None) and key != "raw"}
    rows = {**result.asdict(), "usage": used or None, "until": clock.stamp(result.until) if result.until else ""}
    return [f"{key:<12} {value}" for key, value in rows.items() if value not in ("", None, []) and key not in HIDDEN]


SPENT = ("runs", "cost USD", "input", "read", "written", "output", "reasoning", "cached")
HIDDEN = ("totals", "mark", "seal", "run", "role", "feature")


def usage(value: dict[str, Any]) -> None:
    """Show the spending, one table per kind; `?` was not reported, `-` is nothing."""
    if not value["total"]["runs"]:
        console.print_line("Nothing has run yet.")
        return
    shown: set[str] = set()
    for title in ("role", "feature", "day", "model", "total", *(["replays"] * bool(value["replays"]))):
        if shown:
            console.print_line("")
        spent = {"total": value["total"]} if title == "total" else value[title]
        rows = [(name or "-", *_spent(row)) for name, row in spent.items()]
        first = title if title != "total" else ""
        print_table((first, *SPENT), rows, right=SPENT, fold=(first,))
        shown |= {title, *(cell.split(" ")[0] for row in rows for cell in row)}
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


def findings(found: Iterable[Finding], fixed: list[str], as_json: bool) -> int:
    """Show doctor's fixes, and its findings as they arrive, a line each; returns exit code 10 if one is bad."""
    rows = []
    for line in () if as_json else fixed:
        console.print_line(f"fixed  {line}")
    for one in found:
        rows.append(one)
        if not as_json:
            _line(f"{one.state:<6}", one.what, STATES[one.state])
    if as_json:
        _values.echo({"fixed": fixed, "findings": rows})
    return errors.NEGATIVE if any(one.state == "bad" for one in rows) else errors.DONE
