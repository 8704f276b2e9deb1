"""Prints results as JSON (`--json`): one value on standard output, whose keys are in docs/contract.md; or as lines."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from harness.base import console, errors
from harness.base.record import Record
from harness.commands import curations
from harness.commands.setup.agent_probe import Finding
from harness.decision import overview
from harness.mission import contract, features, issues, lease, mission, receipts, runs
from harness.mission.receipts import Receipt
from harness.state import files, layout, names
from harness.state.layout import Layout
from harness.state.state import State


def echo(value: object) -> None:
    """Print a value as JSON, records as objects. Control characters are escaped, so that the value round-trips."""
    text = json.dumps(_plain(value), ensure_ascii=False, indent=1)
    console.print_line("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def show(value: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a value as JSON, or these lines for a person."""
    if as_json:
        echo(value)
        return
    for line in lines:
        console.print_line(line)


def _plain(value: object) -> object:
    if isinstance(value, Record):
        return _plain(value.asdict())
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def shown(found: Iterable[Receipt], show: Callable[[Receipt], Receipt], quiet: bool) -> list[Receipt]:
    """Collect all receipts, showing each as it arrives, unless `quiet`."""
    return [one if quiet else show(one) for one in found]


def checks(found: list[Receipt], why: str = "") -> int:
    """Print receipts, whether all are green, and `why` there are none; returns the exit code of `check` and `verify`."""
    green = bool(found) and all(one.green for one in found)
    rows = [{"verdict": one.verdict, **one.asdict()} for one in found]
    echo({"green": green, "why": "" if found else why, "receipts": rows})
    return errors.DONE if green else errors.NEGATIVE


def findings(found: Iterable[Finding], fixed: list[str]) -> int:
    """Print doctor's findings, and its fixes before; returns its exit code."""
    rows = list(found)
    echo({"fixed": fixed, "findings": rows})
    return errors.NEGATIVE if any(one.state == "bad" for one in rows) else errors.DONE


def feature(where: Layout, feature_id: str) -> dict[str, Any]:
    """A feature with its complete claims."""
    one = features.find(overview.features(where), feature_id)
    return {**one.asdict(), "claims": contract.load(where).of(one.claims)}


def issue_list(where: Layout) -> list[Record]:
    """All issues, including closed ones."""
    mission.check_format(where)
    return [*issues.load(where)]


def memory(where: Layout, layer: str) -> dict[str, Any]:
    """{layer: its text, null if absent}; `raw` is a list of entries, `identity` {role: text}."""
    mission.check_format(where)
    folder = layout.identity_folder()
    roles = [name[:-3] for name in files.names(folder) if name.endswith(".md") and name != "README.md"]
    layers: dict[str, Callable[[], object]] = {
        "summary": lambda: files.read_text(where.path(names.SUMMARY)),
        "memory": lambda: files.read_text(where.path(names.MEMORY)),
        "raw": lambda: curations.uncurated(where),
        "identity": lambda: {name: files.read_text(layout.identity_file(folder, name)) for name in roles},
    }
    return {name: read() for name, read in layers.items() if layer in (name, "all")}


def run_list(where: Layout, most: int) -> dict[str, Any]:
    """Finished runs, newest last, the number of older ones, and a person's answers in between."""
    mission.check_format(where)
    found = list(islice(runs.finished(where), most))[::-1]
    every = (State(where).data(names.RUN_LOG) or b"").count(b"\n") if len(found) == most else len(found)
    ids = {one.run for one in found}
    return {
        "older": every - len(found),
        "runs": found,
        "answers": [one for one in runs.answers(where) if one.after in ids],
    }


def run_named(where: Layout, name: str) -> str:
    """The run with this id; for a feature its newest run: the open one, else the newest finished one."""
    if os.path.isdir(where.run(name).folder) or not runs.is_id(name):
        return name
    found = (one.run for one in runs.finished(where) if one.feature == name)
    alive = [one.run for one in lease.alive(where) if one.feature == name]
    return next(iter((*alive[-1:], *islice(found, 1))), name)


def run(where: Layout, name: str) -> dict[str, Any]:
    """A run, by its id or feature: its context, its result (null if it has not ended), its receipts, and its folder."""
    run_id = run_named(where, name)
    folder = os.path.relpath(where.run(run_id).folder, where.folders.project)
    if gone := runs.forgotten(where).get(run_id):
        left: dict[str, Any] = {"context": None, "result": runs.result(where, run_id), "receipts": [], "files": folder}
        return {"run": run_id, "state": "forgotten", "at": gone.at, "by": gone.by, **left}
    context, result = runs.context(where, run_id), runs.result(where, run_id)
    state = "finished" if result else "died" if runs.is_dead(where, run_id) else "under way"
    found = receipts.load(where.run(run_id).receipts)
    return {
        "run": run_id,
        "state": state,
        "context": context,
        "result": result,
        "receipts": [{"verdict": one.verdict, **one.asdict()} for one in found],
        "files": folder,
    }
