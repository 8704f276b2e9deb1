"""Ends every harness program with one paragraph on standard error, the documented exit code and no traceback."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from harness.base import console, errors
from harness.base.errors import HarnessError, Interruption

BUG = "a bug in the harness"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def guarded(body: Callable[[], int], bug: str = BUG) -> int:
    """Run `body` and return its exit code; an error becomes one paragraph on standard error, without a traceback. `bug`
    begins the paragraph for an exception that is not a HarnessError."""
    _use_utf8()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return body()
    except HarnessError as fault:
        console.print_error(f"harness: {fault}")
        return fault.code
    except Interruption as signalled:
        return signalled.code
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    except BrokenPipeError:
        return errors.DONE
    except OSError as fault:
        console.print_error(f"harness: {os_words(fault)}")
        return errors.NEEDS_PERSON
    except Exception as fault:  # noqa: BLE001 - the one broad handler: a bug has an exit code too
        console.print_error(f"harness: {bug_words(fault, bug)}")
        return errors.INTERNAL


def _use_utf8() -> None:
    """Paths and texts are UTF-8 in every locale: start this program again where the interpreter encodes them otherwise. A
    character that an output cannot show is escaped."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8" if stream is sys.stdin else None, errors="backslashreplace")


def leave(code: int) -> int:
    """Return this exit code, or exit at once if no cleanup is left: interpreter shutdown costs half a bare start."""
    atexit.register(_end, code)
    return code


def _end(code: int) -> NoReturn:
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:  # the reader is gone
            continue
    os._exit(code)


def bug_words(fault: Exception, bug: str = BUG) -> str:
    """The exception and where it was raised; with HARNESS_DEBUG set, the whole traceback."""
    if os.environ.get("HARNESS_DEBUG"):
        return "".join(traceback.format_exception(fault))
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""
    what = f"{bug}: {type(fault).__name__}: {fault}{where}."
    return f"{what} Nothing is lost: the next start settles the interrupted run. HARNESS_DEBUG=1 shows the traceback."


def os_words(fault: OSError) -> str:
    """The operating system's error, its path and the next step."""
    where = f" at {fault.filename}" if fault.filename else ""
    return f"{fault.strerror or fault}{where}. Nothing is lost: fix that (permissions, space) and start again."


def handle_signals() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP raise Interrupted, once, so that every `finally` still runs."""

    def interrupt(signum: int, _: object) -> None:
        for other in ENDING:
            handle(other, lambda *_: None)  # not SIG_IGN: Python prints an error for a pending signal
        raise Interruption(signum)

    for signum in ENDING:
        handle(signum, interrupt)


def handle(signum: int, handler: Any, install: Callable[[int, Any], object] = signal.signal) -> None:
    """Install a handler, unless the signal is ignored: what nohup, or `&` in a script, ignores at the start stays ignored."""
    if signal.getsignal(signum) is not signal.SIG_IGN:
        install(signum, handler)
