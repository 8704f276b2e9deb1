"""Finished runs arrive at a real collector as spans; one that fails or is slow costs a line and a few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest

from harness.base import clock
from tests.builtin.talking import MODELS, address, serving, steps
from tests.crash import sampled
from tests.missions import House

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed: make setup")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SECRET = "a-word-of-the-conversation"


class Collector:
    """A collector over HTTP: the spans that it got, by name. `status`: of its answers; `seconds`: before each."""

    def __init__(self, url: str) -> None:
        self.url, self.bodies, self.status, self.seconds = url, list[bytes](), 200, 0.0

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Each span with its attributes, oldest first."""
        found = []
        for one in map(ExportTraceServiceRequest.FromString, self.bodies):
            for row in (span for part in one.resource_spans for scope in part.scope_spans for span in scope.spans):
                values = {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in row.attributes}
                times = {"start": row.start_time_unix_nano / 1e9, "end": row.end_time_unix_nano / 1e9}
                ids = {"id": row.span_id, "parent": row.parent_span_id, "trace": row.trace_id}
                found.append({"name": row.name, "failed": row.status.code == 2, **times, **ids, **values})
        return sorted(found, key=lambda span: span["start"])

    def named(self, name: str) -> dict[str, Any]:
        """The only span of this name."""
        (found,) = [span for span in self.spans if span["name"] == name]
        return found


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on loopback."""

    class Handler(BaseHTTPRequestHandler):
        """Keeps what is posted."""

        def do_POST(self) -> None:
            """An export."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(collector.seconds)
            if self.path == "/v1/traces" and collector.status == 200:
                collector.bodies.append(body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


def test_a_run_arrives_with_its_model_calls_and_tools(house: House) -> None:
    """By the GenAI conventions, in the order and within the time of the run, and without a word of the conversation."""
    work = steps(f"sleep 0.5; echo {SECRET} >1.txt", f"cat 1.txt; echo {SECRET}")
    with collecting() as collector, serving(work) as server:
        table = ["[agents.builtin]", f'model = "{MODELS["chat"]}"', f'base_url = "{address(server, "chat")}"']
        house.config('agent = "builtin"', 'trust = "workspace"', f'otel = "{collector.url}"', *table)
        done = house.role("worker", "F-001")
        assert done.code == 0 and "warning" not in done.out, done
        run = collector.named("invoke_agent worker")
        result = house.result()
        assert (run["harness.run"], run["harness.feature"], run["harness.outcome"]) == (result["run"], "F-001", "ok")
        assert (run["gen_ai.operation.name"], run["gen_ai.agent.name"]) == ("invoke_agent", "worker")
        assert (run["gen_ai.provider.name"], run["gen_ai.request.model"]) == ("builtin", "fake-model")
        calls = [span for span in collector.spans if span["parent"] == run["id"]]
        assert [call["name"] for call in calls] == ["chat fake-model", "execute_tool execute"] * 2 + ["chat fake-model"]
        assert {call["trace"] for call in calls} == {run["trace"]}
        for one, other in pairwise(calls):
            assert run["start"] <= one["start"] <= one["end"] <= other["start"] + 0.001, calls
        assert calls[1]["end"] - calls[1]["start"] >= 0.4
        assert calls[1]["gen_ai.operation.name"] == "execute_tool" and calls[1]["gen_ai.tool.name"] == "execute"
        used, chats = result["usage"], calls[::2]
        sent = used["input"] + used["cache_read"] + (used["cache_write"] or 0)
        for name, count in {"input_tokens": sent, "output_tokens": used["output"]}.items():
            assert run[f"gen_ai.usage.{name}"] == sum(chat[f"gen_ai.usage.{name}"] for chat in chats) == count > 0
        assert SECRET.encode() not in b"".join(collector.bodies)


def test_checks_arrive_and_a_red_one_is_an_error(house: House) -> None:
    """The address is that of the environment; a validation without an agent is a span, too."""
    house.write("1.txt")
    house.git("add", "1.txt")
    house.git("commit", "-q", "-m", "by hand")
    with collecting() as collector:
        house.role("validator", "F-001", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
        check, run = collector.named("check VAL-1"), collector.named("run validator")
        assert (check["parent"], check["failed"], check["harness.exit"]) == (run["id"], False, 0)
        assert abs(run["end"] - clock.now()) < 60 and run["harness.verdict"] == "green"
        house.role("validator", "F-002", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
        red = [span for span in collector.spans if span["name"] == "check VAL-2"][-1]
        assert (red["failed"], red["error.type"], red["harness.exit"]) == (True, "red (exit 1)", 1)


def test_without_an_endpoint_nothing_is_sent(house: House) -> None:
    """Whatever else of OpenTelemetry is set."""
    house.script("worker", {"run": "touch 1.txt"})
    with collecting() as collector:
        house.role("worker", "F-001", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/v1/traces")
        assert collector.bodies == [] and not (house.state / "notices.jsonl").exists()


HOW = ("refuses", "hangs", "is not there", "is no address")


@pytest.mark.parametrize("how", sampled(HOW, ("hangs", "is no address").__contains__))
def test_a_collector_that_fails_costs_a_line_and_some_seconds(house: House, how: str) -> None:
    """The run has ended before; nothing of its result changes."""
    house.script("worker", {"run": "touch 1.txt"})
    with collecting() as collector:
        collector.status = 500 if how == "refuses" else 200
        collector.seconds = 60.0 if how == "hangs" else 0.0
        url = {"is not there": "http://127.0.0.1:9", "is no address": "localhost"}.get(how, collector.url)
        house.config('agent = "scripted"', *([] if how == "is no address" else [f'otel = "{url}"']))
        began = time.monotonic()
        done = house.role("worker", "F-001", OTEL_EXPORTER_OTLP_ENDPOINT="localhost" if how == "is no address" else "")
        assert time.monotonic() - began < 55
        assert (done.code, house.result()["outcome"]) == (0, "ok"), done
        assert done.out.count("warning") == 1 and "warning: the hook '" in done.out and "Traceback" not in done.out, (
            done
        )
