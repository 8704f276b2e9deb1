"""One scheduled start: run.sh under a lock, and its output in the log.

All output goes to the schedule's log, so cron only mails faults of starts that could not even begin. While the mission cannot
continue (DONE, a person is needed), the log gets one line until that changes.
"""

from __future__ import annotations

import os
import subprocess
from typing import IO

from harness.base import clock, errors
from harness.base.errors import HarnessError, Interruption
from harness.base.record import Record
from harness.commands import status
from harness.decision import rules, views
from harness.mission import order_log, runs
from harness.state import files, names
from harness.state.layout import Layout
from harness.unattended import schedules
from harness.unattended.schedule_log import ScheduleLog
from harness.unattended.schedules import Schedule
from harness.workplace import mission_lock, run_detection
from harness.workplace.recovery import unsettled_runs

QUIET = "Nothing more is logged until that changes."
REFUSED = ("auth", "config")  # the outcomes after which a person must fix an agent
REFUSED_SECONDS = 3600  # an agent that was refused is not started for so long: each attempt uses a run of the caps


class Outlook(Record):
    """What a start would do: `line`, the decision, "" for a fault; `text`, for people; `code`, if nothing is started."""

    line: str
    text: str
    code: int
    starts: bool = False


def start(where: Layout, schedule_id: str, *, by_hand: bool = False) -> int:
    """Start the mission as scheduled; returns run.sh's exit code. Raises UsageFault without such a schedule."""
    run_detection.refuse(where, "schedule start")
    found = schedules.require(where, schedule_id)
    with schedules.exchanged({**os.environ, **found.environment}):
        log, lock = ScheduleLog(where, echo=by_hand), files.Lock(os.path.join(where.path(names.LOCKS), "schedule"))
        if not lock.take():
            return _skipped(log, f"the previous start is still running (pid {lock.holder().get('pid', '?')})")
        with lock:
            lock.sign({"pid": os.getpid(), "since": clock.stamp(clock.now())})
            return _go(where, found, log)


def _skipped(log: ScheduleLog, why: str) -> int:
    log.write(f"skipped: {why}")
    return errors.BUSY


def _go(where: Layout, found: Schedule, log: ScheduleLog) -> int:
    if mission_lock.looping(where):
        holder = files.Lock(where.path(names.LOOP_LOCK)).holder()
        return _skipped(log, f"run.sh is working on it: pid {holder.get('pid', '?')}, since {holder.get('since', '?')}")
    look = _look(where, clock.span(found.goes_on))
    refused = _refused(where) if look.line.startswith("NEXT") and not log.echo else ""  # a person may try at once
    if refused:
        log.write(refused, once=True)
        return errors.NEEDS_PERSON
    if look.starts or _owed(where, look):
        return _carry_out(where, found, log, look)
    for line in status.deliver_ending(where, look.line) if look.line else []:  # only an ending run.sh would
        log.write(f"  warning: {line}")
    log.write(_quiet(look), once=True)
    return look.code


def _look(where: Layout, seconds: int) -> Outlook:
    """The decision, without a lock; nothing is started to wait longer than `seconds`."""
    try:
        view = views.gather(where)
        due = rules.decide(view, clock.now())
        if due.word == "WAIT":
            until = int(due.what)  # 0: for live runs
            text = f"WAIT until {clock.local(until, clock.now())}: {due.reason}" if until else f"WAIT {due.reason}"
            return Outlook(line=due.line, text=text, code=errors.BUSY, starts=until <= clock.now() + seconds)
        text = f"{due.line}: {status.why(view, due)}"
        return Outlook(line=due.line, text=text, code=due.code, starts=due.word == "NEXT")
    except HarnessError as fault:
        return Outlook(line="", text=f"not started: {fault}", code=fault.code)


def _quiet(look: Outlook) -> str:
    return f"{look.text.rstrip('.')}. {QUIET}"


def _refused(where: Layout) -> str:
    """Why no run is started although one is due: the newest one's agent was refused a short time ago; else ""."""
    last = next(runs.finished(where), None)
    if last is None or last.outcome not in REFUSED or not 0 <= clock.now() - last.ended < REFUSED_SECONDS:
        return ""
    again = clock.local(last.ended + REFUSED_SECONDS, clock.now())
    return (
        f"not started: {last.agent} was refused ({last.outcome}), {last.reason}. The next try is after {again}. {QUIET}"
    )


def _owed(where: Layout, look: Outlook) -> bool:
    """Whether run.sh has work although no run is due: settle a dead run, or apply an order."""
    try:
        return bool(look.line and order_log.pending(where)) or unsettled_runs.needs_recovery(where)
    except HarnessError:
        return False


def _carry_out(where: Layout, found: Schedule, log: ScheduleLog, look: Outlook) -> int:
    """Start run.sh, and log its output and its end."""
    lanes = ["--lanes", str(found.lanes)] if found.lanes else []
    words, began = ["--for", found.goes_on, *lanes], clock.now()
    log.write(f"start: {look.text}   (run.sh {' '.join(words)}, pid {os.getpid()})")
    how, code = "", errors.TERMINATED
    try:
        code = _run(where, log, words)
    except Interruption as signalled:
        how, code = "interrupted, ", signalled.code
        raise
    finally:
        after = _look(where, clock.span(found.goes_on))
        going = after.text if after.starts else _quiet(after)
        log.write(f"end: {how}exit {code} after {clock.duration(clock.now() - began)}; {going}")
    return code


def _run(where: Layout, log: ScheduleLog, words: list[str]) -> int:
    """Execute run.sh. A signal to this process goes only to run.sh, so that it settles its run; then this process ends."""
    own = ("HARNESS_CALLED", "HARNESS_AT", "HARNESS_IDENTITY", "HARNESS_PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith("HARNESS_") or name in own}
    argv = [*schedules.start_words(where)[:2], *words]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        argv, cwd=where.folders.project, env=env, stdin=none, stdout=pipe, stderr=subprocess.STDOUT
    ) as child:
        assert child.stdout is not None, "it is a pipe"
        try:
            _keep(log, child.stdout)
        except Interruption:
            child.terminate()
            _keep(log, child.stdout)
            raise
    return child.returncode if child.returncode >= 0 else errors.SIGNALLED - child.returncode


def _keep(log: ScheduleLog, output: IO[bytes]) -> None:
    """Log the lines of the output as they arrive, without consecutive duplicates."""
    last = ""
    for line in output:
        text = line.decode("utf-8", "replace").rstrip()
        if text and text != last:
            last = text
            log.write(f"  {text}")
