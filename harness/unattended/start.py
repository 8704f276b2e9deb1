"""One scheduled start: account for missed starts, find obstacles, start run.sh, and log its output.

All output goes to the schedule's log, so cron only mails faults of starts that could not even begin. While the mission cannot
continue (DONE, a person is needed), the log gets one line until that changes. A start without a run that ends with the fault of
the previous start is not logged either.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable
from typing import IO

from harness.base import clock, errors
from harness.base.errors import HarnessError, Interruption
from harness.base.record import Record
from harness.commands import status
from harness.decision import rules, views
from harness.mission import lease, order_log, runs
from harness.state import files, names
from harness.state.layout import Layout
from harness.unattended import _preflight, _times, schedules
from harness.unattended.schedule_log import ScheduleLog, StartMemory
from harness.unattended.schedules import Schedule
from harness.workplace import mission_lock, run_detection
from harness.workplace.recovery import unsettled_runs

QUIET = "Nothing more is logged until that changes."
FAULTS = (errors.NEEDS_PERSON, errors.USAGE, errors.BROKEN, errors.UNAVAILABLE, errors.INTERNAL)
HELD_SECONDS = 20.0  # a start that cannot start a run has ended by then
MAX_LOGGED_LINES = 20


class Look(Record):
    """The decision: its `word`, "" for a fault; the message; `key`, constant while nothing changes; the exit code; the `role`
    to run."""

    word: str
    text: str
    key: str
    code: int
    role: str = ""
    until: int = 0


def start(where: Layout, schedule_id: str, *, by_hand: bool = False) -> int:
    """Start the mission as scheduled; returns run.sh's exit code. Raises UsageFault without such a schedule."""
    run_detection.refuse(where, "schedule start")
    found = schedules.require(where, schedule_id)
    with schedules.exchanged({**os.environ, **found.environment}):
        log, lock = ScheduleLog(where, echo=by_hand), files.Lock(os.path.join(where.path(names.LOCKS), "schedule"))
        free = lock.take()
        try:
            with log.remembered() as seen:
                log.say(seen, *_missed(found, seen, clock.now()) if not by_hand else (), *_unfinished(seen, free))
            if not free:
                return _skipped(log, f"the previous start is still running (pid {lock.holder().get('pid', '?')})")
            lock.sign({"pid": os.getpid(), "since": clock.stamp(clock.now())})
            return _go(where, found, log)
        finally:
            lock.release()


def _missed(found: Schedule, seen: StartMemory, now: int) -> list[str]:
    """Messages about missed starts since the last one; marks them as accounted for."""
    since, seen.seen = max(seen.seen, clock.seconds_of(found.added)), now
    due = _times.between(found.known_times, since, now)[:-1]  # the last one is this start
    if not due or seen.told:  # while the mission could not continue, nothing was missed
        return []
    one, span = clock.local(due[0], now), f"{clock.local(due[0], now)} to {clock.local(due[-1], now)}"
    asleep = "the machine was off or asleep, or its scheduler did not run"
    why = "the previous start ran until then" if due[-1] <= seen.ended and seen.began <= due[0] else asleep
    return [f"missed {len(due)} starts, {span}: {why}" if len(due) > 1 else f"missed the start of {one}: {why}"]


def _unfinished(seen: StartMemory, free: bool) -> list[str]:
    """Messages about a start that never logged its end."""
    if not free or seen.began <= seen.ended or not seen.pid:
        return []
    began, seen.ended = seen.began, clock.now()
    return [
        f"the start of {clock.local(began, seen.ended)} (pid {seen.pid}) did not end: it was killed, or the machine went down"
    ]


def _skipped(log: ScheduleLog, why: str) -> int:
    log.write(f"skipped: {why}")
    return errors.BUSY


def _go(where: Layout, found: Schedule, log: ScheduleLog) -> int:
    if holder := _holder(where):
        return _skipped(log, holder)
    look = _look(where)
    soon = look.word == "WAIT" and look.until < clock.now() + _times.seconds(found.goes_on)
    if look.word != "NEXT" and not soon and not _owed(where, look):
        return _told(log, look, lambda: status.deliver_ending(where, look.key) if look.word else [])
    if look.word == "NEXT":
        with log.remembered() as seen:
            # A person may retry immediately.
            reasons = _preflight.faults(where, look.role, StartMemory() if log.echo else seen)
        if reasons:
            text = f"not started: {'; '.join(reasons)}"
            key = "".join(letter for letter in text if not letter.isdigit())  # the free space varies
            look = look.replace(word="", text=text, key=key, code=errors.NEEDS_PERSON)
            return _told(log, look, lambda: status.deliver_not_started(where, reasons))
    return _carry_out(where, found, log, look)


def _holder(where: Layout) -> str:
    """The loop that works on the mission, "" for none."""
    if not mission_lock.looping(where):
        return ""
    holder = files.Lock(where.path(names.LOOP_LOCK)).holder()
    now = ", ".join(one.run for one in lease.alive(where)) or "between runs"
    return f"run.sh is working on it: pid {holder.get('pid', '?')}, since {holder.get('since', '?')}, run {now}"


def _look(where: Layout) -> Look:
    """The decision, without a lock."""
    try:
        view = views.gather(where)
        due = rules.decide(view, clock.now())
        made = Look(word=due.word, text=f"{due.line}: {status.why(view, due)}", key=due.line, code=due.code)
        if due.word == "DONE":
            return made.replace(text=status.ending(where, "DONE")[0])
        if due.word == "WAIT":
            until = int(due.what)  # 0: for live runs
            text = f"WAIT until {clock.local(until, clock.now())}: {due.reason}" if until else f"WAIT {due.reason}"
            return made.replace(text=text, until=until, code=errors.BUSY)
        return made.replace(role=due.what) if due.word == "NEXT" else made
    except HarnessError as fault:
        return Look(word="", text=f"not started: {fault}", key=str(fault), code=fault.code)


def _owed(where: Layout, look: Look) -> bool:
    """Whether run.sh has work although no run is due: settle, apply an order, or a short wait for a vendor."""
    try:
        return bool(look.word and order_log.pending(where)) or unsettled_runs.needs_recovery(where)
    except HarnessError:
        return False


def _told(log: ScheduleLog, look: Look, give_out: Callable[[], list[str]]) -> int:
    """Report once why nothing starts, in the log and to the hooks, which only an ending run.sh would call."""
    with log.remembered() as seen:
        known = seen.told == look.key
    warnings = [] if known else give_out()
    with log.remembered() as seen:
        log.say(seen, *([] if known and not log.echo else [f"{look.text.rstrip('.')}. {QUIET}"]))
        log.say(seen, *(f"  warning: {line}" for line in warnings))
        seen.told, seen.fault = look.key, ""
    return look.code


def words_of(found: Schedule) -> list[str]:
    """The options of run.sh."""
    lanes = ["--lanes", str(found.lanes)] if found.lanes else []
    return ["--for", found.goes_on, *lanes]


def _carry_out(where: Layout, found: Schedule, log: ScheduleLog, look: Look) -> int:
    """Start run.sh, and log its output and its end."""
    words, began, last, said = words_of(found), clock.now(), _newest(where), list[str]()
    with log.remembered() as seen:
        before = seen.fault
        if before and not log.echo:
            log.hold()
        seen.began, seen.pid, seen.told = began, os.getpid(), ""
        log.say(seen, f"start: {look.text}   (run.sh {' '.join(words)}, pid {os.getpid()})")
    end, code = "", errors.TERMINATED
    try:
        code = _run(where, log, words, said)
    except Interruption as signalled:
        end, code = "interrupted, ", signalled.code
        raise
    finally:
        fault = "\n".join(sorted(set(said))) if code in FAULTS and _newest(where) == last else ""
        how = f"{end}exit {code} after {clock.duration(clock.now() - began)}"
        _ended(where, log, how, fault, again=log.holds and fault == before)
    return code


def _newest(where: Layout) -> str:
    """The newest finished run; "" if there is none, or the run log cannot be read."""
    try:
        return next((one.run for one in runs.finished(where)), "")
    except HarnessError:
        return ""


def _refusal(where: Layout) -> str:
    """Like `_preflight.refusal`; "" if the run log or the settings cannot be read, which the decision reports."""
    try:
        return _preflight.refusal(where)
    except HarnessError:
        return ""


def _run(where: Layout, log: ScheduleLog, words: list[str], said: list[str]) -> int:
    """Execute run.sh. A signal to this process goes only to run.sh, so that it settles its run; then this process ends."""
    own = ("HARNESS_CALLED", "HARNESS_AT", "HARNESS_IDENTITY", "HARNESS_PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith("HARNESS_") or name in own}
    argv = [*schedules.start_words(where)[:2], *words]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        argv, cwd=where.folders.project, env=env, stdin=none, stdout=pipe, stderr=subprocess.STDOUT, bufsize=0
    ) as child:
        assert child.stdout is not None, "it is a pipe"
        try:
            _keep(log, child.stdout, said)
        except Interruption:
            child.terminate()
            _keep(log, child.stdout, said)
            raise
    return child.returncode if child.returncode >= 0 else errors.SIGNALLED - child.returncode


def _keep(log: ScheduleLog, output: IO[bytes], said: list[str]) -> None:
    """Log the lines of the output as they arrive, without consecutive duplicates; the first ones also go to `said`."""
    until, rest, more, last = time.monotonic() + HELD_SECONDS, b"", b"more", ""
    while more:
        left = until - time.monotonic()
        if log.holds and (left <= 0 or not select.select([output], [], [], left)[0]):
            log.release()
        more = output.read(65536)
        *lines, rest = (rest + more).split(b"\n")
        for line in lines if more else [rest]:
            text = line.decode("utf-8", "replace").rstrip()
            if text and text != last:
                last = text
                log.write(f"  {text}")
                said += [text] if len(said) < MAX_LOGGED_LINES and not text.startswith("> ") else []


def _ended(where: Layout, log: ScheduleLog, how: str, fault: str, *, again: bool) -> None:
    """Log the end, unless it ended `again` with the fault of the previous start."""
    after = _look(where)
    going = after.word in ("NEXT", "WAIT")
    log.drop() if again and going else log.release()
    goes_on = f"next: {after.text}" + (f". {QUIET}" if fault else "")
    with log.remembered() as seen:
        seen.ended = clock.now()
        seen.failed, seen.failed_at = _refusal(where), seen.ended
        seen.told, seen.fault = "" if going else after.key, fault
        if not (again and going):
            log.say(seen, f"end: {how}; " + (goes_on if going else f"{after.text.rstrip('.')}. {QUIET}"))
