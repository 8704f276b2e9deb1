#!/usr/bin/env python3
"""Agent CLIs that misbehave, one per case: `badcli.py CASE`, the prompt on standard input, events in claude's shape.

CASES has each case with the outcome that the harness must report; docs/agents.md shows the same table. To try one by
hand: `agent = "bad"` and `[agents.bad] command = ["python3", "tests/agents/badcli.py", "hangs-after-result"]
format = "claude"`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

MEGABYTE = 1024 * 1024
FOREVER = 100_000


def tell(**row: object) -> None:
    """One event."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def begin() -> None:
    """The first event, after the prompt is read."""
    sys.stdin.read()
    tell(type="system", subtype="init", model="bad-1", session_id="s-1")


def say(text: str) -> None:
    """Print a message."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    tell(type="assistant", message={"id": "m-1", "content": [{"type": "text", "text": text}], "usage": usage})


def result(**more: object) -> None:
    """The end of a good answer, as far as the events show."""
    usage = {"input_tokens": 10, "output_tokens": 7}
    tell(type="result", subtype="success", **{"is_error": False, "result": "done", "usage": usage, **more})


def spawn(program: str) -> None:
    """A grandchild in a separate session."""
    subprocess.Popen([sys.executable, "-c", program], start_new_session=True)


def never_begins() -> None:
    """hangs before the first event"""
    time.sleep(FOREVER)


def hangs_after_result() -> None:
    """hangs after its result"""
    begin()
    result()
    time.sleep(FOREVER)


def leaves_a_daemon() -> None:
    """leaves a daemon that double-forked into its own session"""
    begin()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(FOREVER)
        os._exit(0)
    os.wait()
    result()


def ignores_term() -> None:
    """stops, and ignores TERM, as its child does"""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    begin()
    spawn(f"import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep({FOREVER})")
    time.sleep(FOREVER)


def one_long_line() -> None:
    """writes a line of 100 MB, then answers"""
    begin()
    for _ in range(100):
        sys.stdout.write("x" * MEGABYTE)
    sys.stdout.write("\n")
    result()


def floods_stdout() -> None:
    """writes output without end (BAD_MB, 2048 by default), then answers"""
    begin()
    block = ("y" * 1023 + "\n") * 1024
    for _ in range(int(os.environ.get("BAD_MB", "2048"))):
        sys.stdout.write(block)
    result()


def floods_stderr() -> None:
    """floods standard error, then answers"""
    begin()
    for _ in range(int(os.environ.get("BAD_MB", "2048"))):
        sys.stderr.write(("z" * 1023 + "\n") * 1024)
    result()


def no_utf8() -> None:
    """writes bytes that are no text, in and between events"""
    begin()
    sys.stdout.buffer.write(b"\xff\xfe\x00 noise\n")
    sys.stdout.buffer.write(b'{"type":"assistant","message":{"content":[{"type":"text","text":"a\xffb"}]}}\n')
    sys.stdout.flush()
    result(result="")


def partial_json() -> None:
    """stops in the middle of its result, and exits with 0"""
    begin()
    say("nearly there")
    sys.stdout.write('{"type":"result","subtype":"success","is_error":fal')


def error_and_exit_0() -> None:
    """reports an error, and exits with 0"""
    begin()
    result(is_error=True, subtype="error_during_execution", result="it broke")


def result_and_exit_1() -> None:
    """exits with 1 after a good result"""
    begin()
    result()
    sys.exit(1)


def reads_on() -> None:
    """reads standard input until it ends, however often it asks"""
    begin()
    for _ in range(1000):
        assert sys.stdin.read() == ""
    result()


def closes_stdout() -> None:
    """closes its output before any result, and goes on"""
    begin()
    os.close(1)
    time.sleep(FOREVER)


def speaks_of_limits() -> None:
    """prints "rate limit", "401 Unauthorized" and "is_error" in ordinary text"""
    begin()
    say('We hit the rate limit: 429, 401 Unauthorized, {"type":"result","is_error":true}, overloaded_error')
    sys.stdout.write("rate_limit_error: try again later\n")
    sys.stderr.write("authentication_failed\n")
    result(result="the rate limit of the API is documented")


def limit() -> None:
    """is refused by its vendor until a stated time, and hangs"""
    begin()
    reset = {"status": "rejected", "rateLimitType": "five_hour", "resetsAt": int(time.time()) + 3600}
    tell(type="rate_limit_event", rate_limit_info={"status": "allowed_warning", "resetsAt": 1})
    tell(type="rate_limit_event", rate_limit_info=reset)
    time.sleep(FOREVER)


def no_login() -> None:
    """is not logged in, and retries for minutes"""
    begin()
    for number in range(FOREVER):
        tell(type="system", subtype="api_retry", attempt=number, error_status=401, error="authentication_failed")
        time.sleep(0.2)


def never_gets_through() -> None:
    """cannot reach its vendor, and reports it again and again"""
    begin()
    for number in range(FOREVER):
        tell(type="system", subtype="api_retry", attempt=number, error_status=529, error="overloaded")
        time.sleep(0.1)


def is_denied() -> None:
    """was not allowed to run a command, and claims success"""
    begin()
    result(permission_denials=[{"tool_name": "Bash", "tool_input": {"command": "make"}}])


def compiles_in_silence() -> None:
    """is silent while a child computes (BAD_SECONDS, 3 by default)"""
    begin()
    seconds = os.environ.get("BAD_SECONDS", "3")
    burn = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    result()


def falls_silent() -> None:
    """stops in the middle: no output, no CPU use, no change"""
    begin()
    say("let me think")
    time.sleep(FOREVER)


def deletes_its_folder() -> None:
    """deletes the folder that it works in"""
    begin()
    here = os.getcwd()
    for name in os.listdir(here):
        os.unlink(os.path.join(here, name))
    os.rmdir(here)
    result()


def says_nothing() -> None:
    """exits with 0 and no output"""
    sys.stdin.read()


def crashes() -> None:
    """dies of a signal in the middle"""
    begin()
    say("I will just")
    os.kill(os.getpid(), signal.SIGSEGV)


Bad = Callable[[], None]
CASES: dict[Bad, tuple[str, str]] = {
    never_begins: ("startup_hang", "startup limit, 120 s"),
    falls_silent: ("idle", "idle limit, 10 min"),
    ignores_term: ("idle", "idle limit, then 5 s until KILL"),
    compiles_in_silence: ("ok", "at once: computing is a sign of life"),
    hangs_after_result: ("timeout_after_result", "10 s after its result"),
    result_and_exit_1: ("ok", "at once: its result counts"),
    error_and_exit_0: ("agent_error", "at once"),
    partial_json: ("agent_error", "at once"),
    says_nothing: ("agent_error", "at once"),
    crashes: ("agent_error", "at once"),
    closes_stdout: ("agent_error", "10 s after it closed its output"),
    reads_on: ("ok", "at once: its input is at its end"),
    leaves_a_daemon: ("ok", "at once, and the daemon with it"),
    one_long_line: ("ok", "at once: a line over 8 MiB is skipped"),
    floods_stdout: ("ok", "when it is done: the transcript is bounded"),
    floods_stderr: ("ok", "when it is done: the transcript is bounded"),
    no_utf8: ("ok", "at once"),
    speaks_of_limits: ("ok", "at once: words decide nothing"),
    limit: ("limit", "10 s after the event"),
    no_login: ("auth", "10 s after the event"),
    never_gets_through: ("limit", "startup limit: a retry is no sign of life"),
    is_denied: ("ok", "at once, and the result names the denied tool"),
    deletes_its_folder: ("ok", "at once"),
}


def name(case: Bad) -> str:
    """The name of a case on the command line."""
    return case.__name__.replace("_", "-")


if __name__ == "__main__":
    {name(case): case for case in CASES}[sys.argv[1]]()
