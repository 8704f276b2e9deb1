"""The commands that run.sh and agents call often: without click, with a minimal parser."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from harness.base import clock, console, errors
from harness.base.errors import UsageFault
from harness.mission import lease, mission
from harness.state import files, names, raw
from harness.state.layout import Layout, command
from harness.workplace import lane_turn

MAX_LANES = 32
LOOP_OPTIONS = ("--once", "--for", "--lanes", "--on")  # of run.sh; any other unknown first word is a role
COMPLETING = "_HARNESS_COMPLETE"  # the variable that a shell sets to request candidates


def here(upwards: bool = True) -> Layout:
    """The mission's layout: HARNESS_PROJECT, else the working folder, or, `upwards`, the nearest folder with a mission."""
    return Layout(os.environ.get("HARNESS_PROJECT") or (project_of(os.getcwd()) if upwards else os.getcwd()))


def check_state(layout: Layout) -> None:
    """Raise Unavailable if the repository has a `.harness` that no person has accepted; not inside a run."""
    from harness.run import workspace_inputs  # 30 ms
    from harness.workplace import run_detection  # else only `note` needs it

    if not run_detection.run_id(layout):
        workspace_inputs.check_state(layout)


def project_of(folder: str) -> str:
    """The folder itself if it has a SPEC.md or `.harness`, else the nearest one above with a mission, up to the top of the
    repository or the home folder; the folder itself if there is none."""
    at = folder
    if os.path.exists(at + "/.harness") or os.path.exists(at + "/SPEC.md"):
        return folder
    home = os.path.expanduser("~")
    while not os.path.exists(at + "/.harness/format"):
        if at in ("/", home) or os.path.exists(at + "/.git"):
            return folder
        at = os.path.dirname(at)
    return at


def next_(words: list[str]) -> int:
    """`next [--leaving WORD]`: the decision in one line, and the exit code for run.sh. `next --told LINE`: that line for a
    person. `next --lull SECONDS LINE`: wait so long, or until a run that it waits for has ended; of several lanes, only one
    that finds a new decision returns then. `next --json`: the decision and its reason, as one JSON value."""
    if words[:1] == ["--lull"] and len(words) == 3 and words[1].isdigit():
        return _lull(here(), int(words[1]), words[2])
    from harness.decision import rules, views  # each quick command loads only what it needs

    if words[:1] == ["--told"] and len(words) == 2:
        from harness.commands import status  # only for a person

        if words[1].startswith("WAIT 0 ") and os.environ.get("HARNESS_LANE"):
            return errors.DONE  # the other lanes report
        console.print_line("> " + "\n  ".join(status.readable(here(), words[1], sys.stdout.isatty())))
        return errors.DONE
    layout = here()
    if words[:1] == ["--leaving"] and len(words) == 2:
        last = rules.leaving(views.gather(layout), words[1])
        console.print_line(last.line if last else words[1])
        return errors.DONE
    if words not in ([], ["--json"]):
        raise UsageFault("Usage: harness next [--json | --leaving WORD | --lull SECONDS LINE | --told LINE]")
    return _say_next(layout, as_json=bool(words))


def _lull(layout: Layout, seconds: int, line: str) -> int:
    """Idle lanes poll in-process, to avoid a Python start per poll. A lane that finds work ends with the turn, so that the
    others keep waiting."""
    from harness.decision import rules, views  # `note` and `hold` need neither

    until = time.monotonic() + seconds
    while lane_turn.lull(layout, until - time.monotonic(), line) and lane_turn.has_lanes():
        lane_turn.take()
        line = rules.decide(views.gather(layout), int(time.time())).line
        if not line.startswith("WAIT 0 "):
            break
        lane_turn.release()
        time.sleep(lane_turn.POLL_SECONDS)
    return errors.DONE


def _say_next(layout: Layout, *, as_json: bool) -> int:
    """Decide and print. A lane of run.sh keeps its turn until its run has claimed its work."""
    from harness.decision import rules, views  # `note` and `hold` need neither

    lane_turn.take()
    view = views.gather(layout)
    decision = rules.decide(view, int(time.time()))
    if decision.word != "NEXT":
        lane_turn.release()
    if as_json:
        from harness.cli import _values  # only for --json
        from harness.commands import status  # only for a person

        why = {"line": decision.line, "why": status.why(view, decision), "code": decision.code}
        _values.echo({**decision.asdict(), **why})
    else:
        console.print_line(decision.line)
    return decision.code


def note(words: list[str]) -> int:
    """`note [--tag TAG] [--] TEXT…`: one line for later runs."""
    from harness.workplace import run_detection  # only `note` needs it

    tag, text = _note_words(words)
    layout = here()
    mission.check_format(layout)
    run_id = run_detection.run_id(layout)
    if run_id:
        from harness.workplace import inbox  # only inside a run

        list(inbox.ask(layout, run_id, "note", tag, text))
    else:
        raw.append(layout, "person", "", [(tag, raw.checked(tag, text, in_run=False))])
    return errors.DONE


def _note_words(words: list[str]) -> tuple[str, str]:
    tag, rest = "-", list(words)
    while rest and rest[0].startswith("--") and " " not in rest[0]:  # a text may start with a program's option
        name, equals, value = rest.pop(0).partition("=")
        if name == "--":
            break
        if name != "--tag" or (not equals and not rest):
            usage = "harness note [--tag TAG] [--] TEXT, with TAG one of TRICK, DECISION, AVOID, CONTEXT, FAIL, -"
            raise UsageFault(f"Usage: {usage}; '{name}' is unknown, or lacks a value")
        tag = value if equals else rest.pop(0)
    return tag, " ".join(rest)


def hold(words: list[str]) -> int:
    """`hold FD [--once | --for TIME | --lanes N | --on MACHINES …]`: take the loop's lock on a descriptor that run.sh keeps open,
    and print its options: 1 for one decision else 0, seconds, lanes, and the machine of each lane. Only for run.sh."""
    layout, lane = here(), os.environ.get("HARNESS_LANE", "")
    if not words or not words[0].isdigit():
        raise UsageFault("'hold' is only for run.sh.")
    once, seconds, lanes, machines = loop_options(layout, words[1:])
    lock = files.Lock(layout.path(names.LOOP_LOCK) + lane)
    try:
        taken = files.take_descriptor(int(words[0]))
    except OSError:
        raise errors.NeedsPerson(
            f"{layout.state} cannot be written. Fix its permissions, or free disk space."
        ) from None
    if not taken:
        holder = lock.holder()
        now = ", ".join(one.run for one in lease.alive(layout)) or "between runs"
        raise errors.LockBusy(
            f"run.sh is already looping on this mission: pid {holder.get('pid', '?')}, "
            f"since {holder.get('since', '?')}, run {now}. Stop it, or wait for it to end."
        )
    lock.descriptor = int(words[0])
    loop = os.environ.get("HARNESS_LOOP", "")  # our parent is a subshell of it
    lock.sign({"pid": int(loop) if loop.isdigit() else os.getppid(), "since": clock.stamp(clock.now())})
    console.print_line(f"{int(once)} {seconds} {1 if lane else lanes} {' '.join(machines)}".rstrip())
    return errors.DONE


def loop_options(layout: Layout, words: list[str]) -> tuple[bool, int, int, list[str]]:
    """The options of a looping run.sh: (only one decision, seconds, lanes, the machine of each lane); raises UsageFault."""
    seconds, lanes, rest, on = clock.MAX_SECONDS, 0, list(words), ""
    if rest == ["--once"]:
        return True, seconds, 1, []
    while rest:
        name, value, rest = rest[0], "".join(rest[1:2]), rest[2:]
        if name == "--for" and clock.span(value):
            seconds = clock.span(value)
        elif name == "--lanes" and value in map(str, range(1, MAX_LANES + 1)):
            lanes = int(value)
        elif name == "--on" and value:
            on = value
        else:
            times = "--for TIME, such as 90s, 25m or 8h"
            usage = f"{command()} [--once | --lanes 1-{MAX_LANES} | --on MACHINE,MACHINE | {times}]"
            raise UsageFault(f"'{' '.join(filter(None, (name, value)))}' is invalid. Usage: {usage}")
    from harness.mission import config  # run.sh calls this once per start

    settings = config.load(layout)
    if on:
        machines = _spread(on.split(","), settings.machines, lanes)
        return False, seconds, len(machines), machines
    return False, seconds, lanes or settings.lanes, []


def _spread(named: list[str], known: dict[str, dict[str, Any]], lanes: int) -> list[str]:
    """The machine of each lane, in turn, as many as each takes; without a number of lanes as many as all take. An address takes
    all."""
    from harness.mission import machine_table  # with --on only

    tables = {name: machine_table.table_of(known, name) for name in named}
    rooms = {name: int(table.get("lanes", 1 if name in known else lanes or 1)) for name, table in tables.items()}
    turns = [name for turn in range(max(rooms.values())) for name in rooms if turn < rooms[name]]
    if lanes > len(turns) or len(turns) > MAX_LANES > lanes:
        raise UsageFault(
            f"{', '.join(named)} take {len(turns)} lanes (`lanes` of their tables), of 1-{MAX_LANES}; not {lanes}."
        )
    return turns[: lanes or None]


QUICK: dict[str, Callable[[list[str]], int]] = {"next": next_, "note": note, "hold": hold}
