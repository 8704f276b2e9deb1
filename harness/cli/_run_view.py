"""Shows past runs as text and as JSON: rebuilt and explained prompts, and search results."""

from __future__ import annotations

import os
import sys

from harness.base import console, errors
from harness.cli import _tables, _values
from harness.mission import config, run_lookup
from harness.replay import explain, playback, rebuild
from harness.replay.explain import Explanation
from harness.replay.playback import PlaybackResult
from harness.replay.search import SearchResult
from harness.replay.upkeep.export import ExportResult
from harness.replay.upkeep.pruning import PruneResult
from harness.state import files, names
from harness.state.layout import Layout, command
from harness.state.state import State

SHOWN_BEFORE, SHOWN_AFTER = 40, 60  # characters around the first difference of two texts


def named(layout: Layout, name: str) -> tuple[Layout, str]:
    """The mission and the id of the run `name`, or of the newest run of that feature; raises UsageFault with similar ids."""
    where, run = run_lookup.within(layout, name)
    try:
        return run_lookup.find(layout, f"{name[: len(name) - len(run)]}{_tables.run_named(where, run)}")
    except errors.UsageFault as fault:
        if str(fault).startswith("There is no run"):
            near = errors.suggestion(name, State(layout).list(names.RUNS))
            raise errors.UsageFault(f"There is no run '{name}'.{near} See: {command('runs list')}") from None
        raise


def compared(where: Layout, run_id: str, as_json: bool) -> int:
    """Compare the prompt of a run with its manifest; returns the exit code."""
    made = rebuild.one(where, run_id)
    title, fault = run_lookup.title(where, run_id), "" if made.equal else rebuild.difference(made)
    lines = [] if made.equal else rebuild.diff(made)
    size = {"bytes": len(made.data), "parts": len(made.rows)}
    head = f"{where.folders.relative(where.run(run_id).prompt)} {fault}"
    if made.equal:
        head = f"{size['bytes']} bytes from {size['parts']} parts, equal to the sent prompt, byte for byte"
    value = {"run": title, "equal": made.equal, **size, "fault": fault, "diff": lines}
    _values.show(value, [f"{title}: {head}", *lines], as_json=as_json)
    return errors.DONE if made.equal else errors.BROKEN


def every(layout: Layout, as_json: bool) -> int:
    """Show the result for all prompts, with a line for each fault; returns the exit code."""
    total = rebuild.every(layout)
    faults = [{"run": run, "fault": fault} for run, fault in total.faults]
    removed = [{"run": run, "forgotten": words} for run, words in total.forgotten]
    none = f"; {total.without_prompt} ended before they had a prompt" if total.without_prompt else ""
    gone = f"; {len(total.forgotten)} forgotten" if total.forgotten else ""
    lines = [f"{run}: {words}" for run, words in (*total.faults, *total.forgotten)]
    lines.append(f"{total.equal} of {total.runs} runs: the prompt is rebuilt byte for byte{none}{gone}")
    _values.show({**total.asdict(), "faults": faults, "forgotten": removed}, lines, as_json=as_json)
    return errors.BROKEN if total.faults else errors.DONE


def played(layout: Layout, mission: str, other: str, as_json: bool) -> int:
    """Play a mission back, and show that it is equal, or the first difference; returns the exit code."""
    made = playback.play(layout, mission, _config(other) if other else None)
    _values.show({**made.asdict(), "same": made.same}, _played(made), as_json=as_json)
    return errors.DONE if made.same else errors.BROKEN


def _config(path: str) -> bytes:
    """The bytes of another config.toml; raises UsageFault if it does not exist, BrokenFile if it is invalid."""
    text = files.read_text(path)
    if text is None:
        raise errors.UsageFault(f"There is no file {path}.")
    config.parse(text, path)
    return text.encode()


def _played(made: PlaybackResult) -> list[str]:
    unknown = [f"not recorded, so not compared: {line}" for line in made.missing]
    if made.first is None:
        same = "the same decisions, exit codes of checks and trees"
        return [f"{made.mission}: {made.played} of {made.runs} runs played back: {same}", *unknown]
    title = f"{made.mission}/{made.first.run}" if made.first.run else made.mission
    head = f"{title}: {made.first.what} differs, after {made.played} of {made.runs} runs"
    return [head, *_parted(made.first.expected, made.first.got), *unknown]


def _parted(recorded: str, now: str) -> list[str]:
    """Both texts around the first different character, with a mark below it if they share a prefix."""
    texts = [console.sanitise(text) for text in (recorded, now)]
    at = next(
        (place for place, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts))
    )
    start = max(0, at - SHOWN_BEFORE)
    shown = [text[start : at + SHOWN_AFTER] + "…" * (len(text) > at + SHOWN_AFTER) for text in texts]
    heads = [f"  {word:10}{'…' * (start > 0)}" for word in ("recorded", "now")]
    mark = [" " * (len(heads[0]) + at - start) + "^"] if at else []
    return [*(head + text for head, text in zip(heads, shown, strict=True)), *mark]


def explained(where: Layout, run_id: str, as_json: bool) -> int:
    """Show the sections of a prompt as a table, then its cacheable share; returns the exit code."""
    value = explain.explain(where, run_id)
    if as_json:
        _values.echo(value)
        return errors.DONE
    about = " ".join(filter(None, (value.role, value.feature)))
    console.print_line(f"{value.run}: {about}, {value.at}, {value.bytes} bytes, about {value.tokens} tokens")
    titles = ("bytes", "tokens", "section", "source", "digest", "unchanged since")
    _tables.print_table(titles, explain.rows(value), right=titles[:2], fold=("section",))
    console.print_line(_cacheable(value))
    return errors.DONE


def _cacheable(value: Explanation) -> str:
    if not value.previous:
        return f"cacheable  nothing: this is the first run of the {value.role}"
    if value.share is None:
        return f"cacheable  unknown: {value.fault}"
    return f"cacheable  {value.cacheable} bytes, {100 * value.share:.0f} %, are as in {value.previous}, the role's previous run"


def prompt(where: Layout, name: str, as_json: bool) -> None:
    """Show the rebuilt prompt of a run: sanitised on a terminal, else with its exact bytes."""
    where, run_id = named(where, name)
    text = rebuild.text_of(where, run_id)
    if as_json:
        _values.echo({"run": run_lookup.title(where, run_id), "prompt": text})
    elif sys.stdout.isatty():
        console.print_line(text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def found(value: SearchResult, most: int, as_json: bool) -> None:
    """Show hits, a line each: the best of memory, then the newest of runs; and what to do next."""
    if as_json:
        _values.echo(value)
        return
    for hit in (*value.memory, *value.runs):
        console.print_line(f"{hit.file}:{hit.line}  {hit.text}")
    if not value.memory and not value.runs:
        console.print_line("No matches. Words are matched as written, and one line must contain them all.")
    if value.more:
        narrower = "--in, --role, --feature, --since"
        console.print_line(
            f"There are more hits: use -n {most * 5}, or narrow the search ({narrower}). At most 3 hits per file are shown."
        )
    newest = next((hit.run for hit in value.runs), "")
    if newest:
        console.print_line(f"Show a run: {command('log')} {newest}   {command('runs show')} {newest}")
    for fault in value.faults:
        console.print_error(f"not searched: {fault}")


def pruned(value: PruneResult, as_json: bool) -> None:
    """Show what was freed, or would be."""
    verb = "would free" if value.dry_run else "freed"
    of = f"{value.runs} runs that ended more than {value.days} days ago"
    lines = [f"{verb} {value.bytes / 1e6:.1f} MB: transcripts, output and refused files of {of}"]
    lines += [f"{verb} the tree {folder}" for folder in value.trees]
    if value.replays:
        lines.append(f"{verb} the files of {len(value.replays)} older replays; their costs stay recorded")
    _values.show(value, lines, as_json=as_json)


def exported(value: ExportResult, what: str, as_json: bool) -> None:
    """Show the place of the export, and how to replay it there."""
    folder = "the folder where you unpack it" if os.path.isfile(value.path) else value.path
    commits = "git init -q && git fetch repository.bundle 'refs/*:refs/exported/*'"
    head = f"exported {value.runs} runs, {value.bytes / 1e6:.1f} MB, to {value.path}"
    _values.show(value, [head, f"in {folder}: harness replay {what}; the commits: {commits}"], as_json=as_json)
