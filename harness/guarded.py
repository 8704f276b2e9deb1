"""How every program of ours ends: one paragraph on standard error, the documented exit code, and never a traceback."""

from __future__ import annotations

import gc

from harness import console, errors
from harness.errors import HarnessError, Interrupted

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
