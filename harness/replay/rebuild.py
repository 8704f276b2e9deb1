"""Rebuilds prompts from their manifests, and compares them with the sent prompts byte for byte.

A missing object, a wrong digest, a truncated line or a file changed after the run's end is a fault with its file and run, and
never counts as equal.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice

from harness.base.errors import BrokenFile, HarnessError, UsageFault
from harness.base.record import Json, Record
from harness.mission import mission, run_lookup, runs
from harness.state import json_lines, names, objects
from harness.state.layout import Layout, command
from harness.state.state import State

Rows = list[dict[str, Json]]

REMEMBERED = 64 * 1024 * 1024  # cache limit for objects, in bytes
DIFF_LINES = 200
DIFF_BYTES = 1024 * 1024  # a longer prompt is only shown around its first difference
AROUND = 60  # bytes shown on each side of the first difference
CHANGED = "its files were changed since the run ended"


class RebuiltPrompt(Record):
    """The prompt of a run from its manifest, and the one on disk. `rows`: the manifest; `prompt` None: the run ended before it
    had a prompt."""

    rows: list[dict[str, Json]] = []
    data: bytes = b""
    prompt: bytes | None = None

    @property
    def equal(self) -> bool:
        """Whether both have the same bytes."""
        return self.data == self.prompt


class RebuildReport(Record):
    """The result for all prompts: the numbers of runs, of equal prompts, and of runs that ended before they had a prompt; (run,
    fault); (run, deletion: when and by whom)."""

    runs: int = 0
    equal: int = 0
    without_prompt: int = 0
    faults: list[tuple[str, str]] = []
    forgotten: list[tuple[str, str]] = []


class Objects:
    """The objects of a mission, verified on read, with a bounded cache."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.known, self.size = layout, dict[str, bytes](), 0

    def get(self, name: str) -> bytes:
        """The bytes of an object; raises BrokenFile if it is missing or its digest is not its name."""
        data = self.known.get(name)
        if data is None:
            data = objects.get(self.layout, name)
            if self.size + len(data) <= REMEMBERED:
                self.known[name] = data
                self.size += len(data)
        return data


def rows_of(layout: Layout, run_id: str) -> Rows | None:
    """The rows of a run's manifest, None if it is absent; raises BrokenFile with the first invalid row."""
    state, name = State(layout), names.of_run(run_id, names.MANIFEST)
    found = state.json(name)
    if found is None:
        return None
    if not isinstance(found, list):
        raise BrokenFile(state.path(name), "not a list of parts", line=1, remedy=_look())
    for number, row in enumerate(found, start=1):
        if not (isinstance(row, dict) and (isinstance(row.get("text"), str) or _is_object(row.get("object")))):
            raise BrokenFile(
                state.path(name), f"part {number} has neither a text nor an object", line=1, remedy=_look()
            )
    return found


def _is_object(name: object) -> bool:
    return isinstance(name, str) and len(name) == 64 and name.isalnum()


def _look() -> str:
    return f"See: {command('doctor')}"


def rebuild(layout: Layout, run_id: str, known: Objects) -> RebuiltPrompt:
    """The prompt from its manifest, and the one on disk. Raises BrokenFile if an object, the manifest or the prompt is missing or
    broken, or if both are equal and the run digest shows that a file of the run was changed."""
    run, state = layout.run(run_id), State(layout)
    ended = state.json(names.of_run(run_id, names.RESULT))
    if ended is not None and not isinstance(ended, dict):
        raise BrokenFile(run.result, "not the result of a run", line=1, remedy=_look())
    rows, prompt = rows_of(layout, run_id), state.data(names.of_run(run_id, names.PROMPT))
    if prompt is None and (ended or rows) and not (ended and rows is None):
        if ended:
            raise BrokenFile(run.prompt, "the file is missing", remedy=_look())
        return RebuiltPrompt()  # the run is opening, or died while it opened
    if prompt is not None and rows is None:
        raise BrokenFile(run.manifest, "the file is missing", remedy=_look())
    made = RebuiltPrompt(rows=rows or [], data=b"".join(parts(rows or [], known)), prompt=prompt)
    if ended and (made.equal or prompt is None) and ended.get("seal") != runs.seal(run):
        raise BrokenFile(run.folder, CHANGED, remedy=_look())
    return made


def parts(rows: Rows, known: Objects) -> Iterator[bytes]:
    """The bytes of each part."""
    return (row["text"].encode() if "text" in row else known.get(row["object"]) for row in rows)


def one(layout: Layout, run_id: str) -> RebuiltPrompt:
    """`rebuild` for one run; a fault also names the run. Raises UsageFault if it ended before it had a prompt."""
    try:
        made = rebuild(layout, run_id, Objects(layout))
    except BrokenFile as fault:
        raise BrokenFile(
            fault.path, f"{fault.fault}; the prompt of the run {run_id} is not rebuilt", line=fault.line, remedy=_look()
        ) from None
    if made.prompt is None:
        raise UsageFault(f"The run {run_id} has no prompt yet, or ended before that step.")
    return made


def text_of(layout: Layout, run_id: str) -> str:
    """The prompt of a run, verified against its manifest; raises BrokenFile if they differ."""
    made = one(layout, run_id)
    if not made.equal:
        shown = f"See: {command('replay')} {run_lookup.title(layout, run_id)}"
        raise BrokenFile(layout.run(run_id).prompt, "differs from the run's manifest", remedy=shown)
    return made.data.decode()


def every(layout: Layout) -> RebuildReport:
    """Rebuild all prompts of the mission and of its archive."""
    mission.check_format(layout)
    total = RebuildReport()
    for where in run_lookup.missions(layout):
        _check(where, total)
    return total


def _check(layout: Layout, total: RebuildReport) -> None:
    """Add one mission: every run with a folder or a line in the run log."""
    known, logged, gone = Objects(layout), dict(_logged(layout, total)), runs.forgotten(layout)
    for run_id in sorted({*State(layout).list(names.RUNS), *logged}):
        total.runs += 1
        if run_id in gone:
            total.forgotten.append((run_lookup.title(layout, run_id), gone[run_id].words))
            continue
        try:
            fault = _fault(layout, run_id, logged.get(run_id, b""), known, total)
        except HarnessError as found:
            fault = str(found)
        if fault:
            total.faults.append((run_lookup.title(layout, run_id), fault))


def _fault(layout: Layout, run_id: str, line: bytes, known: Objects, total: RebuildReport) -> str:
    """The fault of a run, "" for none; counts the run."""
    run = layout.run(run_id)
    if not State(layout).exists(f"{names.RUNS}/{run_id}"):
        return f"{run.folder}: the folder is missing. {_look()}"
    if line and State(layout).data(names.of_run(run_id, names.RESULT)) != line + b"\n":
        return f"{run.result}: not the run's line in runs.jsonl. {_look()}"
    made = rebuild(layout, run_id, known)
    total.equal += made.equal
    total.without_prompt += made.prompt is None
    return "" if made.equal or made.prompt is None else f"{run.prompt}: {difference(made)}"


def _logged(layout: Layout, total: RebuildReport) -> Iterator[tuple[str, bytes]]:
    """(run, its line) of the run log; reports broken lines as faults."""
    size = State(layout).length(names.RUN_LOG)
    if size and State(layout).part(names.RUN_LOG, size - 1, 1) != b"\n":
        total.faults.append((names.RUN_LOG, f"{layout.path(names.RUN_LOG)}: the last line is truncated. {_look()}"))
    for start, line in json_lines.backwards(layout.path(names.RUN_LOG)):
        found, fault = runs.parse(line)
        if found is None:
            total.faults.append((names.RUN_LOG, str(runs.misread(layout, start, fault))))
        else:
            yield found.run, line


def difference(made: RebuiltPrompt) -> str:
    """Describe the first difference of the two prompts."""
    prompt = made.prompt or b""
    at = common(made.data, prompt)
    line = prompt.count(b"\n", 0, at) + 1
    return f"differs from its manifest at byte {at}, line {line}: {len(prompt)} bytes, rebuilt {len(made.data)}"


def common(one: bytes, two: bytes) -> int:
    """The length of the common prefix."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == two[low:middle] else (low, middle - 1)
    return low


def diff(made: RebuiltPrompt) -> list[str]:
    """A unified diff of at most DIFF_LINES lines; for long prompts only around the first difference."""
    old, new = made.data, made.prompt or b""
    if max(len(old), len(new)) > DIFF_BYTES:
        at = max(0, common(old, new) - AROUND)
        old, new = old[at : at + 2 * AROUND], new[at : at + 2 * AROUND]
    one, two = (data.decode("utf-8", "backslashreplace").split("\n") for data in (old, new))
    lines = list(islice(difflib.unified_diff(one, two, "rebuilt", "prompt.md", lineterm=""), DIFF_LINES + 1))
    return [*lines[:DIFF_LINES], f"… cut after {DIFF_LINES} lines"] if len(lines) > DIFF_LINES else lines
