"""The end of every harness program: a paragraph, the documented code, never a traceback."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest

from harness.base import errors
from harness.base.exits import guarded, os_words
from tests.missions import CHECKOUT, heard

FAULTS = [
    (errors.UsageFault("no such thing"), 64),
    (errors.BrokenFile("f", "torn", line=3, remedy="Mend it."), 65),
    (errors.Unavailable("not installed"), 69),
    (errors.NeedsPerson("dirty"), 11),
    (errors.LockBusy("somebody else"), 75),
    (errors.RequestRefused("not good"), 10),
    (errors.HarnessError("ours"), 70),
    (OSError(errno.ENOSPC, "No space left on device", "/x"), 11),
]


def raising(fault: BaseException) -> int:
    """A body that raises."""
    raise fault


def test_a_bug_is_exit_70_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    """One paragraph with file and line; the traceback only on request."""
    assert guarded(lambda: raising(KeyError("x"))) == 70
    said = capsys.readouterr().err
    assert "a bug in the harness: KeyError: 'x' at test_exits.py, line " in said
    assert "Traceback" not in said


def test_with_debugging_on_a_bug_shows_everything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """HARNESS_DEBUG=1 shows the traceback."""
    monkeypatch.setenv("HARNESS_DEBUG", "1")
    assert guarded(lambda: raising(KeyError("x"))) == 70
    assert "Traceback" in capsys.readouterr().err


def test_the_result_of_the_body_is_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an error nothing is printed."""
    assert guarded(lambda: 9) == 9
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("fault", "code"), FAULTS, ids=[type(fault).__name__ for fault, _ in FAULTS])
def test_every_fault_is_one_paragraph_and_its_code(
    fault: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes to standard error, with the name of the harness in front."""
    assert guarded(lambda: raising(fault)) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("harness: ")


def test_a_full_disk_names_the_path_and_the_remedy() -> None:
    """Nothing is lost, because no file is half written."""
    words = os_words(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x/y"))
    assert words.startswith("No space left on device at /x/y. Nothing is lost: fix that")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_has_its_code_and_runs_every_finally(number: int, code: int) -> None:
    """The handler only raises; a second signal does not interrupt the finally."""
    body = f"""
import os, sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from harness.base.exits import guarded, handle_signals
def body():
    handle_signals()
    try:
        os.kill(os.getpid(), {int(number)})
        time.sleep(60)
    finally:
        os.kill(os.getpid(), {int(number)})
        print("settled", flush=True)
sys.exit(guarded(body))
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, "settled\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_is_ignored_at_the_start_stays_ignored(number: int) -> None:
    """It does not end the program; the others do."""
    body = f"""
import os, sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from harness.base import exits
def body():
    exits.handle_signals()
    os.kill(os.getpid(), {int(number)})
    print("goes on", flush=True)
    os.kill(os.getpid(), next(one for one in exits.ENDING if one != {int(number)}))
    time.sleep(60)
sys.exit(exits.guarded(body))
"""
    done = subprocess.run(
        ["sh", "-c", f'trap \'\' {int(number)}; exec "$0" -c "$1"', sys.executable, body],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=heard,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130 if number != signal.SIGINT else 143, "goes on\n", "")


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    """`harness status | head -1` ends without a message."""
    body = f"""
import sys
sys.path.insert(0, {str(CHECKOUT)!r})
from harness.base import console
from harness.base.exits import guarded
def body():
    for _ in range(100000):
        console.print_line("a line")
    return 0
sys.exit(guarded(body))
"""
    words = f"'{sys.executable}' -c '{body.replace(chr(39), chr(34))}' | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", words], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("a line\n", "")


LEAVING = """import atexit, sys
sys.path.insert(0, {checkout!r})
from harness.base.exits import leave
atexit.register(print, "torn down")
sys.stdout.write("said"); sys.stderr.write("and said")
{more}sys.exit(leave(7))
"""


def test_a_process_that_leaves_has_said_all_and_is_not_taken_down() -> None:
    """What waits in a buffer is printed; nothing else of the interpreter's end runs."""
    program = LEAVING.format(checkout=str(CHECKOUT), more="")
    words, env = [sys.executable, "-c", program], {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "said", "and said")


def test_a_process_leaves_with_its_code_where_nobody_reads() -> None:
    """A closed pipe changes no exit code."""
    program = LEAVING.format(checkout=str(CHECKOUT), more="import os; r, w = os.pipe(); os.close(r); os.dup2(w, 1)\n")
    words, env = [sys.executable, "-c", program], {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "")
