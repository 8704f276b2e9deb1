"""A server on loopback between an agent and its model: it sets seed and temperature, counts, and keeps prompts and answers."""

from __future__ import annotations

import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEMPERATURE, MOST_TOKENS, SECONDS = 0.2, 2000, 3600
EXAMPLE_END = "I switched to a new code base."  # after aider's example; its acknowledgement follows
RULES = "\nTo suggest changes to a file you MUST"  # how aider ends a request
REFUSED = {"error": {"message": "no more answers for this row", "type": "invalid_request_error", "code": 400}}


class Proxy(ThreadingHTTPServer):
    """Passes requests on to the model's server, for one row of a bench after the other."""

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.server, self.url = server, f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.begin(0, 0)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self) -> None:
        """End its thread, too."""
        self.shutdown()
        super().server_close()

    def begin(self, seed: int, most: int) -> None:
        """Forget what was; a request after `most` answers is refused."""
        self.seed, self.most, self.fault = seed, most, ""
        self.used = {"calls": 0, "prompt_tokens": 0, "answer_tokens": 0}
        self.answers, self.said = list[str](), list[str]()

    def answer(self, body: dict[str, Any]) -> bytes:
        """The server's answer; calls of one row have different seeds, the same ones in every row of that seed."""
        body |= {"seed": 100 * self.seed + self.used["calls"], "temperature": TEMPERATURE, "max_tokens": MOST_TOKENS}
        words = {"content-type": "application/json", "authorization": "Bearer x"}
        request = urllib.request.Request(f"{self.server}/chat/completions", json.dumps(body).encode(), words)
        with urllib.request.urlopen(request, timeout=SECONDS) as found:
            data: bytes = found.read()
        value = json.loads(data)
        self.used["calls"] += 1
        self.used["prompt_tokens"] += value["usage"]["prompt_tokens"]
        self.used["answer_tokens"] += value["usage"]["completion_tokens"]
        self.answers.append(value["choices"][0]["message"]["content"] or "")
        self.keep(body["messages"])
        return data

    def keep(self, messages: list[dict[str, str]]) -> None:
        """Keep the newest answer, and what its request has that no earlier one had, without aider's own rules and example."""
        starts = (place for place, one in enumerate(messages) if one["content"].startswith(EXAMPLE_END))
        for one in messages[next(starts, -2) + 2 :]:
            text = f"--- {one['role']}\n{one['content'].partition(RULES)[0]}\n"
            if one["role"] != "system" and text not in self.said:
                self.said.append(text)
        self.said.append(f"=== answer {self.used['calls']}\n{self.answers[-1]}\n")


class Handler(BaseHTTPRequestHandler):
    """One request of the agent."""

    server: Proxy

    def do_POST(self) -> None:
        """Pass it on; a fault of the model's server is kept for the bench, which then writes no row."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, data = 400, json.dumps(REFUSED).encode()
        if self.server.used["calls"] < self.server.most:
            try:
                status, data = 200, self.server.answer(body)
            except (OSError, KeyError, ValueError) as fault:
                self.server.fault = repr(fault)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""
