"""The errors that end a command: one class hierarchy, one exit code per class.

A message is one paragraph with the file, the line if known, and the next step.
"""

from __future__ import annotations

from collections.abc import Iterable

DONE = 0
ESCALATED = 3
RUN_CAP = 5
COST_CAP = 6
PLAN_REJECTED = 7
CHECKPOINT_WAITING = 8
STOPPED = 9
NEGATIVE = 10
NEEDS_PERSON = 11
USAGE = 64
BROKEN = 65
UNAVAILABLE = 69
INTERNAL = 70
BUSY = 75
INTERRUPTED = 130
TERMINATED = 143
SIGNALLED = 128  # plus the signal number, as a shell reports it; run.sh turns it into BUSY with a message, and ends

EXIT_CODES = {
    DONE: "done, or the run settled",
    ESCALATED: "escalated: a person must answer escalation.md",
    RUN_CAP: "the cap on runs or hours is reached",
    COST_CAP: "the cap on cost or tokens is reached",
    PLAN_REJECTED: "three runs in a row brought no acceptable plan",
    CHECKPOINT_WAITING: "a checkpoint waits for a person",
    STOPPED: "stopped or paused by a person",
    NEGATIVE: "the run's own verdict is negative (manual runs, checks)",
    NEEDS_PERSON: "a person must fix something: permissions, disk space, a git refusal; in the project folder a dirty "
    "tree, another branch",
    USAGE: "wrong usage: unknown command, role, feature or value; no SPEC.md, no repository",
    BROKEN: "a file on disk is malformed or has an unknown format",
    UNAVAILABLE: "the agent, or a required program, is not available",
    INTERNAL: "a bug in the harness",
    BUSY: "busy, or try again later; a run was killed, and the next start goes on",
    INTERRUPTED: "interrupted by SIGINT",
    TERMINATED: "ended by SIGTERM or SIGHUP",
}

# The remedy for a broken managed file: every run keeps a copy of each.
RESTORE = (
    "To restore an earlier copy: the newest file in .harness/snapshots has its digest, under 'live'; "
    "its bytes are in .harness/objects/<first two digits>/<the other digits>. Copy that file over it."
)


class HarnessError(Exception):
    """The root: `str(error)` is the paragraph to print, `code` the exit code."""

    code = INTERNAL


class UsageFault(HarnessError):
    """The request names something that does not exist, or is not allowed here."""

    code = USAGE


class BrokenFile(HarnessError):
    """A file does not parse: the message has the path, the line (1-based, if known), the fault and the remedy."""

    code = BROKEN

    def __init__(self, path: str, fault: str, *, line: int | None = None, remedy: str = "") -> None:
        self.brief = f"{path}, line {line}: {fault}" if line is not None else f"{path}: {fault}"
        super().__init__(f"{self.brief}." + (f" {remedy}" if remedy else ""))
        self.path, self.line, self.fault = path, line, fault


class Unavailable(HarnessError):
    """A required agent or program is not installed, or has nothing to run."""

    code = UNAVAILABLE


class NeedsPerson(HarnessError):
    """The working folder is in a state that only a person can resolve."""

    code = NEEDS_PERSON


class LockBusy(HarnessError):
    """Another process holds the lock; the message names the holder and since when."""

    code = BUSY


class GuardianKilled(HarnessError):
    """An external signal killed the guardian of a child. The child is ended too, through no fault of its own."""

    code = BUSY

    def __init__(self, program: str) -> None:
        super().__init__(f"the guardian of {program} was killed from outside; its programs were ended")


class RunCut(GuardianKilled):
    """The run ends early without a fault of its own, such as a check whose run is out of time. The lane goes on."""

    def __init__(self, words: str) -> None:
        HarnessError.__init__(self, words)


class MachineGone(RunCut):
    """The machine on which a run thinks is gone, or sends an invalid result; it ended everything there."""


class VersionConflict(LockBusy):
    """A compare-and-set failed: another writer changed a file of the mission first. Nothing was written."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} changed during the operation and is left as it is. Nothing is lost; try again.")


class StoreUnavailable(HarnessError):
    """A store does not answer; the message names the store, the key and why. Nothing is half written."""

    code = BUSY
    words = "does not answer ({}). Try again later. A write that was under way is there as a whole, or not at all"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: the store {self.words.format(' '.join(why.split()))}.")


class StoreRefusal(StoreUnavailable):
    """A store refuses a call, such as one that is full or may not be written; the message is as above. Nothing is written."""

    code = NEEDS_PERSON
    words = "refuses this ({}), and nothing was changed. Fix that there, and try again"


class RequestRefused(HarnessError):
    """The plan, reply or order is well-formed but not accepted; the message lists every reason."""

    code = NEGATIVE


def suggestion(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'status'?`, with similar known words; "" for none."""
    import difflib  # 2 ms, only for a fault

    found = difflib.get_close_matches(word, [*known], n=2)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def signal_code(signum: int) -> int:
    """The exit code after a signal: 130 for SIGINT (2), 143 for SIGTERM and SIGHUP."""
    return INTERRUPTED if signum == 2 else TERMINATED


class Interruption(BaseException):
    """A signal requests the end of this process, or its parent died: every `finally` still runs."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum
        self.code = signal_code(signum)
