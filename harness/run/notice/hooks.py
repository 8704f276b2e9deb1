"""Hooks: the programs and URLs of `[[on]]` in config.toml receive events as JSON.
notices.jsonl gets a line before and after each call. A call interrupted by a kill is repeated with the same id and
`again`: delivery is at least once. A failed hook is reported but blocks nothing; only one with `before` can refuse.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any

from harness.base import clock, console, encoding, errors, redaction
from harness.mission import config, mission, runs
from harness.mission.config import Config
from harness.mission.runs import RunResult
from harness.process import supervise, temporary
from harness.run.notice import _events, _notices
from harness.run.notice._events import NoticeEvent
from harness.run.notice._notices import BEGUN, DONE, FAILED, SEEN, NoticeRow
from harness.state import files
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace import environment, run_detection

MAX_OUTPUT_BYTES = 4096
REASON_CHARS = 200
FURTHEST_BACK = 50  # finished runs whose missed events are still delivered
LABEL_CHARS = 60
GRACE_SECONDS = 1.0
NO_RUN = "-"
ENDPOINT, OTLP_SECONDS = "OTEL_EXPORTER_OTLP_ENDPOINT", 5


class HookOutput:
    """The first bytes of an output."""

    def __init__(self) -> None:
        self.data = b""

    def take(self, _: str, chunk: bytes) -> None:
        """Add one more chunk."""
        self.data += chunk[: MAX_OUTPUT_BYTES - len(self.data)]

    @property
    def first(self) -> str:
        """The first non-empty line, masked."""
        lines = redaction.mask(self.data.decode("utf-8", "replace")).split("\n")
        return next((line.strip() for line in lines if line.strip()), "")[:REASON_CHARS]


def every(settings: Config) -> list[dict[str, Any]]:
    """The hooks of config.toml, and, if an endpoint is set, the one that sends finished runs to a collector as spans."""
    endpoint = os.environ.get(ENDPOINT) or settings.otel
    spans = {"event": "run", "url": endpoint, "post": "_otlp.py", "seconds": OTLP_SECONDS}
    return [*settings.on, *([spans] if endpoint else [])]


def after_run(layout: Layout, settings: Config) -> list[str]:
    """Deliver the events of the newest finished runs; returns one line per failed hook. If another lane is delivering,
    this one leaves them to it."""
    lock = State(layout).lock("notice")
    if not lock.take():
        return []
    with lock:
        return _give_out(layout, settings, [], back=1)


def at_ending(layout: Layout, line: str) -> list[str]:
    """Deliver remaining events of runs, and the decision with which run.sh ends; returns one line per failed hook."""
    settings = config.load(layout)
    if not every(settings) or run_detection.run_id(layout):
        return []
    lock = State(layout).lock("notice")
    lock.take(wait=True)
    with lock:
        return _give_out(layout, settings, _events.of_decision(layout, line, clock.now()), back=0)


def ask(layout: Layout, settings: Config, facts: dict[str, Any]) -> None:
    """Ask the hooks with `before` whether a run may start; raises LockBusy with the reason of the first that refuses,
    fails or times out."""
    event = NoticeEvent(
        id=f"before-{facts['run']}", name="run", text=f"{facts['role']} is to start", facts={"run": facts}
    )
    for hook in settings.on:
        if hook.get("before"):
            ok, said = _call(layout, hook, _payload(layout, event, again=False))
            if not ok:
                raise errors.LockBusy(f"The hook '{_label(hook)}' refused the run: {said or 'it gave no reason'}")


def failing(layout: Layout) -> list[str]:
    """The hooks of config.toml that failed when they were last called, a line each."""
    wanted = {_key(hook) for hook in every(config.load(layout))}
    found = _notices.known(layout).failed if wanted else {}
    return [_failed(NoticeRow(**row)) for key, row in found.items() if key in wanted]


def _failed(row: NoticeRow) -> str:
    return f"the hook '{row.label}' failed for {row.event}: {row.said}"


def _give_out(layout: Layout, settings: Config, last: list[NoticeEvent], *, back: int) -> list[str]:
    """Call each hook for each event that it has not received; the caller holds the lock. If none was ever called, only
    the newest `back` runs count: a hook gets no events from before it existed."""
    known = _notices.known(layout, keep=True)
    seen = known.seen
    if not seen:
        seen = next((one.run for one in islice(runs.finished(layout), back, None)), NO_RUN)
        _notices.write(layout, NoticeRow(at="", event=seen, state=SEEN))
    found, newest = _of_runs(layout, seen)
    failed: list[str] = []
    for event in [*found, *last]:
        for hook in every(settings):
            if hook["event"] != event.name or hook.get("before"):
                continue
            before = known.state(event.id, _key(hook))
            if before in ("", BEGUN):
                failed += _deliver(layout, event, hook, again=before == BEGUN)
    if newest and newest != seen:
        _notices.write(layout, NoticeRow(at="", event=newest, state=SEEN))
    return failed


def _of_runs(layout: Layout, seen: str) -> tuple[list[NoticeEvent], str]:
    """(events of the runs that finished after the run `seen`, oldest first; the newest run)."""
    found: list[RunResult] = []
    for one in islice(runs.finished(layout), FURTHEST_BACK):
        found.append(one)
        if one.run == seen:
            break
    fresh = [one for one in found if one.run != seen]
    before = dict(zip([one.run for one in found], found[1:], strict=False))
    made = [event for one in reversed(fresh) for event in _events.of_run(one, before.get(one.run))]
    return made, found[0].run if found else ""


def _deliver(layout: Layout, event: NoticeEvent, hook: dict[str, Any], *, again: bool) -> Iterable[str]:
    row = _notices.write(layout, NoticeRow(at="", event=event.id, state=BEGUN, key=_key(hook), label=_label(hook)))
    ok, said = _call(layout, hook, _payload(layout, event, again=again))
    ended = _notices.write(layout, row.replace(state=DONE if ok else FAILED, said="" if ok else said))
    return [] if ok else [_failed(ended)]


def _payload(layout: Layout, event: NoticeEvent, *, again: bool) -> bytes:
    """The JSON of an event, on one line."""
    made = mission.load(layout)
    value = {
        "id": f"{made.id}/{event.id}",
        "event": event.name,
        "at": clock.stamp(clock.now()),
        "again": again,
        "mission": made.id,
        "project": layout.folders.project,
        "branch": made.branch,
        "text": console.sanitise(event.text),
        **event.facts,
        "commands": {"status": command("status"), "go on": command()},
    }
    return encoding.dump_json(value)


def _call(layout: Layout, hook: dict[str, Any], payload: bytes) -> tuple[bool, str]:
    """Run a hook with its process tree to the end: (whether it succeeded, its first output line or the reason)."""
    argv, body = hook.get("run") or [], payload
    if not argv:
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), hook.get("post", "_post.py"))
        argv = [sys.executable, "-I", program]
        body = hook["url"].encode() + b"\n" + payload
    folder, output, seconds = temporary.create("hook"), HookOutput(), hook.get("seconds", config.OnTable.seconds)
    try:
        files.replace(f"{folder}/event.json", body, files.PRIVATE)
        ended = supervise.run(
            argv,
            cwd=layout.folders.project,
            env=environment.of_person(os.environ),
            stdin=f"{folder}/event.json",
            sink=output.take,
            wall_seconds=seconds,
            grace_seconds=GRACE_SECONDS,
        )
    except errors.Unavailable as fault:
        return False, str(fault)
    finally:
        temporary.remove(folder)
    if ended.cause != "exit":
        return False, f"it took longer than {seconds} s"
    how = f"exit {ended.exit}" if ended.exit is not None else f"signal {ended.signal}"
    return ended.exit == 0, output.first or how


def _key(hook: dict[str, Any]) -> str:
    """The key of a hook in notices.jsonl: the digest of its table."""
    return encoding.digest(encoding.dump_json([hook.get("run"), hook.get("url"), hook["event"]]))[:12]


def _label(hook: dict[str, Any]) -> str:
    """A hook in a few words; of a URL only scheme and host, since the rest may be a secret."""
    if hook.get("run"):
        words = " ".join(hook["run"])
    else:
        scheme, _, place = hook["url"].replace("?", "/").replace("#", "/").partition("//")
        words = f"{scheme}//{place.partition('/')[0].rpartition('@')[2]}"
    return redaction.mask(" ".join(words.split()))[:LABEL_CHARS]
