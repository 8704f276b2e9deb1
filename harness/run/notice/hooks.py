"""Hooks: the programs and URLs of `[[on]]` in config.toml receive events as JSON.
notices.jsonl gets a line after the calls for a run or a decision. Calls that a kill or a signal interrupts are repeated with the
same ids: delivery is at least once. A failed hook is reported but blocks nothing; only one with `before` can refuse.
"""

from __future__ import annotations

import os
import sys
from itertools import islice
from typing import Any

from harness.base import clock, console, encoding, errors, redaction
from harness.mission import config, mission, runs
from harness.mission.config import Config
from harness.mission.runs import RunResult
from harness.process import supervise, temporary
from harness.run.notice import _events, _notices
from harness.run.notice._events import NoticeEvent
from harness.run.notice._notices import OF_RUN
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
        if hook.get("before") and (said := _call(layout, hook, _payload(layout, event))):
            raise errors.LockBusy(f"The hook '{_label(hook)}' refused the run: {said}")


def failing(layout: Layout) -> list[str]:
    """The hooks of config.toml that failed when they were last called, a line each."""
    wanted = {_key(hook): hook for hook in every(config.load(layout))}
    newest: dict[str, tuple[str, str]] = {}
    for row in _notices.rows(layout) if wanted else []:
        newest |= {key: (row.event, said) for key, said in row.calls.items()}
    return [_failed(wanted[key], *call) for key, call in newest.items() if key in wanted and call[1]]


def _failed(hook: dict[str, Any], event: str, said: str) -> str:
    return f"the hook '{_label(hook)}' failed for {event}: {said}"


def _give_out(layout: Layout, settings: Config, last: list[NoticeEvent], *, back: int) -> list[str]:
    """Call each hook for each event that it has not received; the caller holds the lock. If none was ever called, only
    the newest `back` runs count: a hook gets no events from before it existed."""
    rows = _notices.rows(layout)
    seen = next((row.event.removeprefix(OF_RUN) for row in reversed(rows) if row.event.startswith(OF_RUN)), "")
    if not seen:
        seen = next((one.run for one in islice(runs.finished(layout), back, None)), NO_RUN)
        _notices.write(layout, OF_RUN + seen, {})
    failed: list[str] = []
    for name, events in [*_of_runs(layout, seen), *((one.id, [one]) for one in last)]:
        called = {key for row in rows if row.event == name for key in row.calls}
        due = [(hook, one) for one in events for hook in every(settings) if hook["event"] == one.name]
        due = [(hook, one) for hook, one in due if not hook.get("before") and _key(hook) not in called]
        calls = {_key(hook): _call(layout, hook, _payload(layout, one)) for hook, one in due}
        failed += [_failed(hook, name, calls[_key(hook)]) for hook, _ in due if calls[_key(hook)]]
        if calls or name.startswith(OF_RUN):
            _notices.write(layout, name, calls)
    return failed


def _of_runs(layout: Layout, seen: str) -> list[tuple[str, list[NoticeEvent]]]:
    """(`run-<id>`, the events of that run) of the runs that finished after the run `seen`, oldest first."""
    found: list[RunResult] = []
    for one in islice(runs.finished(layout), FURTHEST_BACK):
        found.append(one)
        if one.run == seen:
            break
    before = dict(zip([one.run for one in found], found[1:], strict=False))
    return [(OF_RUN + one.run, _events.of_run(one, before.get(one.run))) for one in reversed(found) if one.run != seen]


def _payload(layout: Layout, event: NoticeEvent) -> bytes:
    """The JSON of an event, on one line."""
    made = mission.load(layout)
    value = {
        "id": f"{made.id}/{event.id}",
        "event": event.name,
        "at": clock.stamp(clock.now()),
        "mission": made.id,
        "project": layout.folders.project,
        "branch": made.branch,
        "text": console.sanitise(event.text),
        **event.facts,
        "commands": {"status": command("status"), "go on": command()},
    }
    return encoding.dump_json(value)


def _call(layout: Layout, hook: dict[str, Any], payload: bytes) -> str:
    """Run a hook with its process tree to the end: "", or its first output line or the reason why it failed."""
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
        return str(fault)
    finally:
        temporary.remove(folder)
    if ended.cause != "exit":
        return f"it took longer than {seconds} s"
    how = f"exit {ended.exit}" if ended.exit is not None else f"signal {ended.signal}"
    return "" if ended.exit == 0 else output.first or how


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
