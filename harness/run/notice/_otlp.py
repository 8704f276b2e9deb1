"""Sends the run of an event to an OpenTelemetry collector, as a separate program: by the GenAI semantic conventions, without
texts. Standard input: the collector's address on the first line, then the event's JSON. Exits with 0 if it was delivered."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(f"{__file__}/../../../.."))
    if not all(map(find_spec, ("opentelemetry", "opentelemetry.sdk"))):
        raise SystemExit("not installed: pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http")

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, Tracer, set_span_in_context

from harness.base import clock, schema
from harness.base.record import Json
from harness.mission import receipts, runs, transcript, usage
from harness.run.notice.hooks import ENDPOINT, OTLP_SECONDS
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State

COUNTS = {"input_tokens": ("input", "cache_read", "cache_write"), "output_tokens": ("output",)}
COUNTS |= {"cache_read.input_tokens": ("cache_read",), "reasoning.output_tokens": ("reasoning",)}
Span = tuple[str, float, float, dict[str, Json]]  # name, start, end, attributes


def main() -> int:
    """Send the run of the event on standard input, its calls and checks as spans; returns 0 if the collector has them."""
    address, _, body = sys.stdin.buffer.read().partition(b"\n")
    os.environ[ENDPOINT], event, memory = address.decode(), json.loads(body), InMemorySpanExporter()
    os.environ.setdefault("OTEL_SERVICE_NAME", "harness")
    provider, layout = TracerProvider(shutdown_on_exit=False), Layout(event["project"])
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer, run_id = provider.get_tracer("harness"), event["run"]["run"]
    result = next(one for one in runs.finished(layout) if one.run == run_id)
    used, begun = usage.Usage(**result.usage or {}), result.ended - result.seconds
    about = {"mission": event["mission"], "cost_usd": used.cost_usd, **event["run"], "reason": ""}
    about = {f"harness.{name}": value for name, value in about.items()}
    about |= {"gen_ai.agent.name": result.role, **_genai("invoke_agent", result.agent, used)} if result.agents else {}
    name, error = "invoke_agent" if result.agents else "run", "" if result.outcome in runs.GOOD else result.outcome
    inside = _add(tracer, Context(), (f"{name} {result.role}", begun, result.ended, about), error)
    rows = (State(layout).data(names.of_run(run_id, names.STREAM)) or b"").split(b"\n")
    for name, start, end, about in _calls([*filter(None, map(transcript.parse, rows))]):
        _add(tracer, inside, (name, begun + start, begun + end, about))
    for one in receipts.of_run(layout, run_id):
        about = {f"harness.{name}": getattr(one, name) for name in ("claim", "phase", "exit", "flaky")}
        end = clock.seconds_of(one.at)
        _add(tracer, inside, (f"check {one.claim}", end - one.seconds, end, about), "" if one.green else one.verdict)
    sent = OTLPSpanExporter(timeout=OTLP_SECONDS - 2).export(memory.get_finished_spans())
    return int(sent is not SpanExportResult.SUCCESS)


def _add(tracer: Tracer, inside: Context, made: Span, error: str = "") -> Context:
    """Add a span with times in unix seconds; returns the context of those below it."""
    name, start, end, about = made
    about = {key: value for key, value in {**about, "error.type": error}.items() if value not in (None, "")}
    kind = SpanKind.CLIENT if name.startswith("chat") else SpanKind.INTERNAL
    span = tracer.start_span(name, inside, kind, about, start_time=int(start * 1e9))
    span.set_status(StatusCode.ERROR if error else StatusCode.UNSET, error or None)
    span.end(int(end * 1e9))
    return set_span_in_context(span)


def _calls(rows: list[transcript.Row]) -> Iterator[Span]:
    """Model calls, each to where the usage grows, and tool calls, each to an event behind it that says nothing else."""
    agent, known, since, open_calls = "", usage.Usage(), 0.0, list[transcript.Row]()
    rows += [row.replace(kind="raw") for row in rows[-1:]] * (1 + len(rows))  # ends what is still open
    for before, row, behind in zip([*rows[:1], *rows], rows, rows[1:], strict=False):
        if row.kind == "agent":
            agent, known, since = row.text, usage.Usage(), row.at
        elif row.kind == "usage" and (now := usage.parse(row.text)) and (now.tokens or 0) > (known.tokens or 0):
            yield f"chat {now.model}".strip(), since, row.at, _genai("chat", agent, now, known)
            known, since = now, row.at
        silent = row.kind == behind.kind == "raw" or (row.kind == "did" and before.kind in ("did", "output"))
        if open_calls and (silent or row.kind == "result"):
            call, since = open_calls.pop(0), row.at
            name = word if schema.is_name(word := call.text.partition(" ")[0]) else "command"  # arguments follow
            about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
            yield f"execute_tool {name}", call.at, since, about
        open_calls += [row] if row.kind == "did" else []


def _genai(operation: str, agent: str, used: usage.Usage, before: usage.Usage | None = None) -> dict[str, Any]:
    """The attributes of an agent's answers, of those between two counts."""
    grown = {name: (getattr(used, name) or 0) - (getattr(before, name, 0) or 0) for name in usage.COUNTS}
    counts = {name: sum(grown[key] for key in keys) for name, keys in COUNTS.items()}
    about: dict[str, Any] = {"operation.name": operation, "provider.name": agent, "request.model": used.model}
    about |= {"conversation.id": used.session, **{f"usage.{name}": count or "" for name, count in counts.items()}}
    return {f"gen_ai.{name}": value for name, value in about.items()}


if __name__ == "__main__":
    raise SystemExit(main())
