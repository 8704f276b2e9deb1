"""Runs: their ids, folders, context.json and result.json, and runs.jsonl, the index and the books."""

from __future__ import annotations

import json
import os
import re
from itertools import islice

from harness.base import schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Record
from harness.model import receipts
from harness.store import files
from harness.store.layout import Layout, RunLayout, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

OUTCOMES = (
    "ok",
    "no_op",
    "timeout_after_result",
    "startup_hang",
    "idle",
    "wall",
    "limit",
    "auth",
    "config",
    "agent_error",
    "refused",
    "killed",
)  # fmt: skip - a list of words
GOOD = ("ok", "no_op", "timeout_after_result")
CUT = ("idle", "wall", "limit", "killed", "startup_hang")
UNFINISHED = ("blocked", "cut")  # the outcomes of commits whose work is not done
FREE_OF_BLAME = ("limit", "auth", "config", "killed")
SEALED = ("context.json", "manifest.json", "prompt.md", "reply.md", "receipts.jsonl")
NoneType = type(None)
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
MOST = 1.7976931348623157e308  # the largest float; a whole number above it cannot be shown or divided
NO_RUN = "the line is no finished run"
LAST_DAY = 253402300799
TEXTS = [
    "run",
    "role",
    "feature",
    "trigger",
    "outcome",
    "reason",
    "verdict",
    "agent",
    "at",
    "commit",
    "head",
    "mark",
    "seal",
    "version",
]
SPENT = ("cost_usd", "tokens")
CONTEXT = {
    **dict.fromkeys(("run", "role", "feature", "trigger", "reason", "at", "before", "head", "branch", "tree"), "str"),
    "version": "str",
    **dict.fromkeys(("untracked", "identity", "dirty"), "texts"),
    **dict.fromkeys(("live", "process"), "dict"),
    "agent": "strs",
    "attempt": "int",
    "raw": "list",
}


class Context(Record):
    """What was so when the run opened. `untracked`: {path: sha256, or size:mtime for what is large or may not be
    read}; `dirty`: {tracked path that differed from HEAD: object with its content, "" where the file was gone}; `version`: its
    harness."""

    run: str
    role: str
    feature: str
    trigger: str
    reason: str
    at: str
    agent: list[str]
    attempt: int
    before: str
    head: str
    branch: str
    tree: str
    untracked: dict[str, str]
    live: dict[str, list[Any]]
    raw: list[Any]
    identity: dict[str, str]
    process: dict[str, Any]
    dirty: dict[str, str] = {}
    version: str = ""


class Totals(Record):
    """Running totals over all finished runs; None for what no agent has told. `since_green`: runs since a claim was newly
    proven; `rejected`: planner runs in a row without an accepted plan; `uncounted`: runs that cost something which is not,
    or not whole, in `cost_usd`."""

    runs: int = 0
    seconds: float = 0.0
    cost_usd: float | None = None
    tokens: int | None = None
    since_green: int = 0
    rejected: int = 0
    uncounted: int = 0


class Result(Record):
    """What became of a run: result.json, and (but for `files`) its line in runs.jsonl. `verdict`: green, red or "" where the
    run judged nothing. `sweep`: {tree, contract, spec} that a final sweep judged. `mark`: digest of what decisions
    depend on, afterwards. `seal`: digest over the run's files. `agents`: who was asked, in turn; `agent` answered. `until`:
    unix seconds before which its vendor lets nobody in, 0 where nobody has to wait."""

    run: str
    role: str
    feature: str
    trigger: str
    outcome: str
    reason: str
    verdict: str
    agent: str
    at: str
    seconds: float
    commit: str
    head: str
    newly_green: int
    accepted: bool | None
    sweep: dict[str, str] | None
    usage: dict[str, Any] | None
    kept_out: list[str]
    refused: list[str]
    mark: str
    seal: str
    totals: dict[str, Any]
    until: int = 0
    waits: dict[str, int] = {}
    agents: list[str] = []
    version: str = ""

    def total(self) -> Totals:
        """The running totals as of this line."""
        return Totals(**self.totals)

    @property
    def said(self) -> str:
        """How it ended, in a word or two."""
        return "not accepted" if self.accepted is False else self.verdict or self.outcome

    @property
    def negative(self) -> bool:
        """Whether a person who started the run by hand should see exit code 10."""
        return self.verdict == "red" or self.outcome not in GOOD or self.accepted is False


class Answer(Record):
    """What a person answered to an escalation, a line of answers.jsonl. `after`: the newest run then, "" where there was
    none; what counts runs in a row starts again behind it."""

    at: str
    by: str
    text: str
    after: str


def new_id(role: str, feature: str, at: int) -> str:
    """`<unix seconds>-<role>[-<feature>]`."""
    return f"{at}-{role}-{feature}" if feature else f"{at}-{role}"


def make(layout: Layout, wish: str) -> tuple[str, RunLayout]:
    """The run's folder, made exclusively: `wish`, or `wish-2`, `wish-3`… where the name is taken."""
    if not ID.fullmatch(wish):
        raise UsageFault(f"'{wish[:80]}' cannot be a run's id.")
    files.make_folder(layout.runs)
    number = 1
    while True:
        name = wish if number == 1 else f"{wish}-{number}"
        if files.claim_folder(layout.run(name).folder):
            return name, layout.run(name)
        number += 1


def context(layout: Layout, run_id: str) -> Context:
    """context.json of a run; UsageFault where there is no such run, BrokenFile where it is malformed."""
    return _context(layout.run(run_id).context, run_id)


def held_context(layout: Layout, run_id: str) -> Context | None:
    """The context as the lock of a run that has not closed holds it a second time; None where it does not. `live` is there as
    the run left it when it had opened."""
    try:
        return _context(layout.run(run_id).lock, run_id)
    except (BrokenFile, UsageFault):
        return None


def _context(path: str, run_id: str) -> Context:
    found = Context(**_object(path, run_id, Context))
    if odd := _odd_context(found):
        raise BrokenFile(path, f"'{odd}' is not what a run writes there", line=1, remedy=f"See: {command('doctor')}")
    return found


def _odd_context(one: Context) -> str:
    """The first field whose value is of a wrong kind, "" where there is none; `process` its readers look at."""
    for name, kind in CONTEXT.items():
        if not schema.fits(getattr(one, name), kind):
            return name
    if not all(_is_mark(value, 0) for value in one.live.values()):
        return "live"
    return "" if _is_mark(one.raw, 1) else "raw"


def _is_mark(value: object, at: int) -> bool:
    """Whether it is a digest and a length, the digest at this place."""
    pair = value if type(value) is list and len(value) == 2 else [None, None]
    return type(pair[at]) is str and type(pair[1 - at]) is int


def result(layout: Layout, run_id: str) -> Result | None:
    """result.json of a run, None while it has none."""
    path = layout.run(run_id).result
    if not os.path.exists(path):
        return None
    found = Result(**_object(path, run_id, Result))
    if odd := _odd(found):
        raise BrokenFile(path, f"'{odd}' is not what a run writes there", line=1, remedy=f"See: {command('doctor')}")
    return found


def _object(path: str, run_id: str, kind: type[Record]) -> dict[str, Any]:
    """The fields of a record of this kind; older versions of us knew not all of those that have a default."""
    value = files.read_json(path)
    if value is None:
        raise UsageFault(f"There is no run '{run_id}'. See: {command('runs list')}")
    if not isinstance(value, dict) or not kind.takes(value):
        raise BrokenFile(path, "not what a run writes there", line=1, remedy=f"See: {command('doctor')}")
    return value


def open_runs(layout: Layout) -> list[str]:
    """Ids of runs that have not closed: alive or dead, `is_dead` tells."""
    return [name[4:] for name in files.names(layout.locks) if name.startswith("run-")]


def is_dead(layout: Layout, run_id: str) -> bool:
    """Whether a run that has not closed is run by nobody any more."""
    return files.is_free(layout.run(run_id).lock)


def books(layout: Layout, most: int | None = None) -> Iterator[Result]:
    """Finished runs (of the first `most` bytes), last first, reading only as far as the caller asks."""
    for line in files.lines_backwards(layout.books, most=most):
        yield _finished(layout, line)


def answers(layout: Layout) -> list[Answer]:
    """What people have answered, oldest first. A torn last line is passed over; BrokenFile names any other."""
    found = []
    for number, line in enumerate((files.read(layout.answers) or b"").split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line or b"null")
        except (ValueError, RecursionError):
            row = line
        if faults := schema.faults(row, "the answer", dict.fromkeys(Answer.fields, "str")) if line else []:
            raise BrokenFile(layout.answers, "; ".join(faults), line=number, remedy="Remove that line.")
        found += [Answer(**row)] if line else []
    return found


def answered(layout: Layout) -> str:
    """The newest run when a person last answered; "" where nobody has."""
    return next((one.after for one in reversed(answers(layout))), "")


def _finished(layout: Layout, line: bytes) -> Result:
    """The finished run of a line in the books; raises BrokenFile."""
    found, fault = parse(line)
    if found is None:
        raise misread(layout, line, fault)
    return found


def parse(line: bytes) -> tuple[Result | None, str]:
    """The finished run of a line, or None and what is wrong with the line."""
    try:
        found = Result(**json.loads(line))
        odd = _odd(found)
        return (None, f"'{odd}' is not what a run writes there") if odd else (found, "")
    except (ValueError, TypeError, RecursionError):
        return None, f"{NO_RUN}: {line[:60]!r}"


def misread(layout: Layout, line: bytes, fault: str) -> BrokenFile:
    """The fault of a line in the books, with its number."""
    number = (files.read(layout.books) or b"").split(b"\n").index(line) + 1
    return BrokenFile(layout.books, fault, line=number, remedy=f"See: {command('doctor')}")


def _odd(one: Result) -> str:
    """The first field whose value is of a wrong kind, "" where there is none; what `usage` holds its readers look at."""
    for name in TEXTS:
        if type(getattr(one, name)) is not str:
            return name
    for name in ("kept_out", "refused", "agents"):
        value = getattr(one, name)
        if type(value) is not list or not all(type(text) is str for text in value):
            return name
    for name in ("usage", "sweep"):
        if type(getattr(one, name)) not in (dict, NoneType):
            return name
    for name in ("seconds", "newly_green", "until"):
        if not counts(getattr(one, name)):
            return name
    if one.until > LAST_DAY:
        return "until"
    if type(one.accepted) not in (bool, NoneType):
        return "accepted"
    if type(one.waits) is not dict or not all(counts(until) and until <= LAST_DAY for until in one.waits.values()):
        return "waits"
    return _odd_total(one.totals)


def _odd_total(totals: dict[str, Any]) -> str:
    if type(totals) is not dict or not Totals.takes(totals):
        return "totals"
    for name, value in totals.items():
        if not (counts(value) or (value is None and name in SPENT)):
            return f"totals: {name}"
    return ""


def counts(value: object) -> bool:
    """Whether it is a number that can be counted with: not below 0, and not without an end."""
    return type(value) in (int, float) and 0 <= value <= MOST  # type: ignore[operator]  # both kinds compare


def last(layout: Layout, *, role: str = "", feature: str | None = None) -> Result | None:
    """The newest finished run of a role and, where given, a feature."""
    for found in books(layout):
        if found.role == role and (feature is None or found.feature == feature):
            return found
    return None


def last_receipts(layout: Layout, feature: str) -> list[receipts.Receipt]:
    """The receipts of the newest run that judged the feature; [] where there is none."""
    newest = next((found for found in books(layout) if found.feature == feature and found.verdict), None)
    return receipts.load(layout.run(newest.run).receipts) if newest else []


def totals(layout: Layout) -> Totals:
    """The running totals as of the newest finished run, and of what a person has answered since."""
    return totals_of(next(books(layout), None), answered(layout))


def totals_of(newest: Result | None, after: str) -> Totals:
    """The running totals as of this run, where a person last answered `after` that one."""
    found = newest.total() if newest else Totals()
    return found.replace(since_green=0, rejected=0) if newest and newest.run == after else found


def seal(run: RunLayout) -> str:
    """A digest over the files of a run that must never change once it is finished."""
    parts = []
    for name in SEALED:
        data = _seen(os.path.join(run.folder, name))
        parts.append(f"{name} {files.digest(data) if data is not None else '-'}\n")
    return files.digest("".join(parts).encode())


def _seen(path: str) -> bytes | None:
    """The file; what is none in its place is told by what no file of a run holds."""
    try:
        return files.read(path)
    except BrokenFile:
        return b"\0 no file"


def broken_seals(layout: Layout, most: int) -> list[str]:
    """Ids of finished runs, looking at the newest `most`, whose files are not what they were when the run closed."""
    found = []
    for line in islice(files.lines_backwards(layout.books), most):
        one = _finished(layout, line)
        run = layout.run(one.run)
        if one.seal and (one.seal != seal(run) or _seen(run.result) != line + b"\n"):  # format 1: no run
            found.append(one.run)
    return found
