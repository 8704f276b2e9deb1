"""How every program of ours ends: one paragraph on standard error, the documented exit code, and never a traceback."""

from __future__ import annotations

import gc
import os

from harness.base import console, errors
from harness.base.errors import HarnessError, Interrupted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def guarded(body: Callable[[], int]) -> int:
    """The exit code of `body`, with what went wrong as one paragraph on standard error and no traceback."""
    gc.disable()  # we live for milliseconds, and parsing a large queue would set the collector off again and again
    try:
        return body()
    except HarnessError as fault:
        console.complain(f"harness: {fault}")
        return fault.code
    except Interrupted as signalled:
        return signalled.code
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    except BrokenPipeError:
        return errors.DONE
    except OSError as fault:
        console.complain(f"harness: {os_words(fault)}")
        return errors.NEEDS_PERSON
    except Exception as fault:  # noqa: BLE001 - the one broad handler: a bug of ours has an exit code too
        console.complain(f"harness: {bug_words(fault)}")
        return errors.INTERNAL


def bug_words(fault: Exception) -> str:
    """What a bug of ours was and where; with HARNESS_DEBUG set, its whole traceback."""
    import traceback  # only when there is a bug to tell of

    if os.environ.get("HARNESS_DEBUG"):
        return "".join(traceback.format_exception(fault))
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""
    what = f"a bug of ours: {type(fault).__name__}: {fault}{where}."
    return f"{what} Nothing is lost: the next start settles what was under way. With HARNESS_DEBUG=1 it tells more."


def os_words(fault: OSError) -> str:
    """What the operating system refused, where, and what to do."""
    where = f" at {fault.filename}" if fault.filename else ""
    return f"{fault.strerror or fault}{where}. Nothing is lost: mend that (rights, space) and start again."


def listen() -> None:
    """From here on SIGINT, SIGTERM and SIGHUP raise Interrupted, once, so that every `finally` still runs."""
    import signal  # 2 ms for its enums; `harness next` lives too short to need it

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(signum: int, _: object) -> None:
        for other in signals:
            signal.signal(other, lambda *_: None)  # not SIG_IGN: Python would complain of one that is pending already
        raise Interrupted(signum)

    for signum in signals:
        signal.signal(signum, interrupt)
