"""The bench of what the harness brings: its tasks can be done and are not done yet, and its rows go on where they stopped."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from harness.mission.contract import Check, Claim, Contract
from harness.run.settle import _plan
from tests.missions import CHECKOUT

BENCH = CHECKOUT / "bench" / "effect.py"
TASKS: dict[str, Any] = runpy.run_path(str(BENCH.with_name("effect_tasks.py")))["tasks"]()
AIDER = """#!{python} -IS
import json, sys, urllib.request
url, message = (sys.argv[sys.argv.index(name) + 1] for name in ("--openai-api-base", "--message-file"))
body = dict(messages=[dict(role="user", content=open(message).read())])
found = json.load(urllib.request.urlopen(url + "/chat/completions", json.dumps(body).encode()))
text = found["choices"][0]["message"]["content"]
if text != "DONE":
    open(sys.argv[-1], "w").write(text)
"""


@pytest.mark.parametrize("name", TASKS)
def test_a_task_can_be_done_and_is_not_done_yet(name: str, tmp_path: Path) -> None:
    """Its solution passes all checks and hidden cases; what it starts from passes neither, and only guards are green there."""
    task = TASKS[name]
    before = task.judge(task.lay(tmp_path / "before"))
    guards = sum(isinstance(check, dict) for row in task.plan["contract"] for check in row["checks"])
    assert (before["right"], before["checks"]) == (False, guards)
    assert before["hidden"] < before["of"] / 2
    done = task.lay(tmp_path / "done")
    shutil.copy(task.folder / "solution.py", done / task.file)
    after = task.judge(done)
    assert (after["right"], after["hidden"], after["checks"]) == (True, after["of"], after["of_checks"])
    assert 5 <= after["of"] <= 8


@pytest.mark.parametrize("name", TASKS)
def test_a_contract_is_one_that_the_harness_accepts(name: str) -> None:
    """Three or four claims, all of them of its one feature."""
    task = TASKS[name]
    claims = [Claim(id=key, text=key, checks=[Check(run=run) for run in runs]) for key, runs in task.checks.items()]
    faults = [fault for claim in claims for check in claim.checks for fault in _plan.form_faults(check.run, "/p", "/p")]
    assert faults + _plan.write_faults(Contract(claims=claims)) == []
    assert task.plan["features"][0]["claims"] == [claim.id for claim in claims]
    assert 3 <= len(claims) <= 4
    assert all(not case.keys() - {"args", "files", "stdin", "out", "exit"} for case in task.hidden)
    assert task.file in task.bare()
    assert all(check in task.bare() for runs in task.checks.values() for check in runs)


@contextmanager
def model(answers: list[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A model's server that gives these answers in turn; its address, and the requests that it got."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            usage = {"prompt_tokens": 30, "completion_tokens": 5}
            choices = [{"message": {"content": answers[len(seen) - 1]}}]
            data = json.dumps({"choices": choices, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
        server.shutdown()


def test_rows_are_appended_and_a_second_start_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong answer that is called done is a false one; only what has no row is asked for, each row with its seed."""
    aider, rows = tmp_path / "aider", tmp_path / "rows.jsonl"
    aider.write_text(AIDER.format(python=sys.executable))
    aider.chmod(0o755)
    right = (TASKS["roman"].folder / "solution.py").read_text()
    bench = runpy.run_path(str(BENCH))
    monkeypatch.setitem(bench["main"].__globals__, "WORK", tmp_path / "work")
    with model(["print('IV')\n", right, "DONE"]) as (address, seen):
        for ways in ("once", "once,loop", "once,loop"):
            words = ["--only", ways, "--tasks", "roman", "--seeds", "3", "--rows", str(rows)]
            monkeypatch.setattr(sys, "argv", ["effect.py", *words, "--aider", str(aider), "--server", address])
            assert bench["main"]() == 0
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    keys = ("way", "right", "done", "false_done", "calls", "prompt_tokens", "answer_tokens", "ended")
    assert [tuple(row[key] for key in keys) for row in found] == [
        ("once", False, True, True, 1, 30, 5, "ended"),
        ("loop", True, True, False, 2, 60, 10, "said so"),
    ]
    assert [request["seed"] for request in seen] == [300, 300, 301]
    assert "=== answer 2\nDONE" in (tmp_path / "transcripts" / "loop-roman-3.txt").read_text()
    told = "\n".join(bench["table"](found, False))
    assert "| once | 1 | 0 | 1 | 1 | 0 of 7 |" in told
    assert "| loop | 1 | 1 | 1 | 0 | 7 of 7 |" in told
