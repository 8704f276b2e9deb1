"""The records needed to play a mission back: its runs in order, the agents' actions, and people's actions between runs.

The context of a run gives the length of the run log when the run opened, and its line in the log gives when it settled. So
concurrent runs differ from consecutive ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from harness.base import clock, encoding
from harness.base.errors import BrokenFile
from harness.base.record import Json, Record
from harness.git import refs, repository
from harness.git.checkouts import clones
from harness.mission import issues, mission, runs
from harness.mission.mission import Mission
from harness.mission.runs import RunContext, RunResult
from harness.replay import _past_state
from harness.replay._past_state import StateSource
from harness.run import recover
from harness.state import json_lines, names, objects, raw
from harness.state.layout import Layout, command
from harness.state.state import State
from harness.workplace.recovery import unsettled_runs

UNKNOWN = "unknown"  # the role of a run that died without a record
PATCH = "working-folder.patch"  # in refused/ of a run: its reverted changes
KILLED = "killed"
PERSON = "person"
RESTORE = "restore"


class RecordedRun(Record):
    """A finished run as recorded. `behind`: the lines in the run log when it opened; `before` and `after`: lengths and digests of
    the state's files when it opened and after it settled; `head`: the commit in its snapshot, "" without one."""

    result: RunResult
    context: RunContext | None
    behind: int
    before: dict[str, Json]
    after: dict[str, Json]
    head: str = ""

    @property
    def run(self) -> str:
        """Its id."""
        return self.result.run

    @property
    def died(self) -> bool:
        """Whether it was settled as a dead run; a run ended by a signal or a cap closes itself."""
        return self.result.outcome == KILLED and self.result.reason == recover.DIED


class PersonAction(Record):
    """An action of a person: `verb`, its texts and its time. `name` and `end`: the file that records it, and the length of that
    file after it; "" and 0 if only the time gives the order. `era`: the number of earlier restores."""

    at: int
    verb: str
    texts: list[str]
    name: str = ""
    end: int = 0
    era: int = 0


class Records:
    """The records of the mission `where`, possibly an archived one; its commits are in the repository of `layout`."""

    def __init__(self, layout: Layout, where: Layout) -> None:
        self.layout, self.where, self.state = layout, where, State(where)
        self.restores = _past_state.restores(where)
        self.runs = self._runs()

    def _runs(self) -> list[RecordedRun]:
        """The finished runs, in the order of the run log; raises BrokenFile if a line does not parse."""
        found: list[RecordedRun] = []
        ends: list[int] = []
        data, offset = self.state.data(names.RUN_LOG) or b"", 0
        for line in data.split(b"\n")[:-1]:
            result, fault = runs.parse(line)
            if result is None:
                raise runs.misread(self.where, offset, fault)
            offset += len(line) + 1
            ends.append(offset)
            found.append(self._past(result, ends[:-1]))
        return found

    def _past(self, result: RunResult, ends: list[int]) -> RecordedRun:
        known = self.state.exists(names.of_run(result.run, names.CONTEXT))
        context = runs.context(self.where, result.run) if known and result.role != UNKNOWN else None
        before = dict(context.live) if context else {}
        size = before.get(names.RUN_LOG, ["", 0])[1]
        after, head = left_by(self.state, result.run)
        behind = sum(end <= size for end in ends) if context else len(ends)
        return RecordedRun(result=result, context=context, behind=behind, before=before, after=after, head=head)

    def unsettled(self) -> dict[str, str]:
        """{run: its feature} of the open runs, and of dead ones that are not settled."""
        found = dict.fromkeys([*runs.open_runs(self.where), *unsettled_runs.unsettled(self.where)], "")
        known = [run for run in found if self.state.exists(names.of_run(run, names.CONTEXT))]
        return found | {run: runs.context(self.where, run).feature for run in known}

    # actions of a run

    def recording(self, past: RecordedRun) -> dict[str, Any]:
        """The recording of the run, for the agent `recorded`."""
        result = past.result
        reply = self.state.data(names.of_run(past.run, names.REPLY))
        said = [*self._said(past), *([reply.decode("utf-8", "replace")] if reply is not None else [])]
        taken = result.usage if result.usage and result.agents else None
        return {
            "outcome": "ok" if past.died else result.outcome,
            "reason": result.reason,
            "until": result.until,
            "waits": result.waits,
            "agents": None if past.died or (result.outcome == KILLED and not result.agents) else result.agents,
            "usage": {**taken, "agent": result.agents[-1]} if taken else None,
            "asked": self._asked(past, said[-1] if said else ""),
            "said": said,
        }

    def _said(self, past: RecordedRun) -> list[str]:
        """The messages before the last one that may contain the reply; the transcript may have been pruned."""
        if not past.result.agents:
            return []
        rows = self._rows(names.of_run(past.run, names.STREAM))
        return [row["text"] for row in rows if row.get("kind") == "said" and "```json" in row.get("text", "")]

    def _asked(self, past: RecordedRun, reply: str) -> list[list[str]]:
        """The agent's in-run commands, in order. The accepted reply comes from its file, which is not redacted."""
        rows = self._rows(names.of_run(past.run, names.ASKED))
        asked = [[row["verb"], *row["arguments"]] for row in rows]
        kept = [number for number, row in enumerate(rows) if row["verb"] == "reply" and row["code"] == 0]
        if kept and reply:
            asked[kept[-1]] = ["reply", reply]
        return asked

    def _rows(self, name: str) -> list[dict[str, Any]]:
        """The objects in the lines of a file; [] if it is absent; BrokenFile with the line number of an invalid line."""
        return [row for _, row in self._placed(name)]

    def _placed(self, name: str, data: bytes | None = None) -> list[tuple[int, dict[str, Any]]]:
        """(the offset after its line, object) of each line of a file, or of its `data`."""
        data, remedy = self.state.data(name) if data is None else data, f"See: {command('doctor')}"
        rows = json_lines.parse(data, self.state.path(name), dict, "the line is not a JSON object", remedy)
        ends = accumulate(len(line) + 1 for line in (data or b"").split(b"\n")[:-1])
        lines = zip(ends, (data or b"").split(b"\n"), strict=False)
        return list(zip((end for end, line in lines if line.strip(b"\0 \r")), rows, strict=True))

    # work of a run

    def patch(self, past: RecordedRun) -> bytes:
        """The agent's changes to its tree as a patch; raises BrokenFile if their commit is gone."""
        result, context = past.result, past.context
        commit = result.commit or self._partial(past.run)
        if commit and context:
            try:
                return clones.patch(self.layout.folders.top, commit + "^", commit, *clones.WHATEVER)
            except repository.GitFailed as fault:
                raise BrokenFile(
                    self.where.run(past.run).result, f"the commit {commit[:12]} is gone: {fault}"
                ) from None
        return self.state.data(names.of_run(past.run, f"{names.REFUSED}/{PATCH}")) or b""

    def _partial(self, run_id: str) -> str:
        ref = f"refs/harness/partial/{run_id}"
        found = refs.positions(self.layout.folders.top, ref).get(ref)
        return found.head if found else ""

    def tree(self, commit: str) -> str:
        """The tree of a recorded commit, "" for none."""
        return repository.tree_of(self.layout.folders.top, commit) if commit else ""

    def object(self, digest: str) -> bytes | None:
        """The bytes of an object, None if it is not stored."""
        try:
            return objects.get(self.where, digest)
        except BrokenFile:
            return None

    # actions of people

    def acts(self) -> list[PersonAction]:
        """People's actions by command: orders, issues, notes, restores; by time, and in the order of each file."""
        found = [*self._orders(), *self._restored()]
        for era, restored in enumerate([*self.restores, None]):
            source, since = StateSource(self.where, restored), self._since(era)
            found += [act.replace(era=era) for act in (*self._own_issues(source, since), *_own_notes(source, since))]
        return sorted(found, key=lambda act: (act.era, act.verb == RESTORE, act.at))

    def era(self, lengths: dict[str, Any], at: int) -> int:
        """The number of restores before: by these lengths of files, else by time."""
        size = length_of(lengths, names.RESTORES)
        return sum(act.end <= size if lengths else act.at <= at for act in self._restored())

    def mission(self) -> Mission:
        """The mission as it started; a restore changes its branch."""
        made = mission.read(self.where)
        for restored in self.restores[:1]:
            (digest, _), path = left_by(self.state, restored.kept)[0][names.MISSION], self.where.path(names.MISSION)
            made = made.replace(branch=encoding.parse_json(self.object(digest) or b"{}", path)["branch"])
        return made

    def _since(self, era: int) -> dict[str, Any]:
        """The snapshot that was restored at the start of an era."""
        return (self.state.json(f"{names.SNAPSHOTS}/{self.restores[era - 1].to}.json") if era else None) or {}

    def _restored(self) -> Iterator[PersonAction]:
        for era, (end, row) in enumerate(self._placed(names.RESTORES)):
            texts = [row["to"], row["kept"], row["commit"]]
            at = clock.seconds_of(row["at"])
            yield PersonAction(at=at, verb=RESTORE, texts=texts, name=names.RESTORES, end=end, era=era)

    def _orders(self) -> Iterator[PersonAction]:
        sizes = [length_of(left_by(self.state, one.kept)[0], names.ORDERS) for one in self.restores]
        for end, row in self._placed(names.ORDERS):
            if "verb" in row:
                texts, era = [row["verb"], *row["args"]], sum(end > size for size in sizes)
                yield PersonAction(
                    at=clock.seconds_of(row["at"]), verb="order", texts=texts, name=names.ORDERS, end=end, era=era
                )

    def _own_issues(self, source: StateSource, since: dict[str, Any]) -> Iterator[PersonAction]:
        """Issues that people reported or closed after the snapshot `since`."""
        for end, row in self._placed(names.ISSUES, source.part(names.ISSUES)):
            if row.get("by") == PERSON and end > length_of(since.get("grown", {}), names.ISSUES):
                given = {key: row[key] for key in issues.IssueReport.fields if row.get(key)}
                close = ["close", row["id"], row.get("why", "")]
                texts = ["report", encoding.dump_json(given).decode()] if "title" in row else close
                yield PersonAction(
                    at=clock.seconds_of(row["at"]), verb="issue", texts=texts, name=names.ISSUES, end=end
                )


def _own_notes(source: StateSource, since: dict[str, Any]) -> Iterator[PersonAction]:
    """Notes of people after the snapshot `since`."""
    for seq, line in _past_state.lines(source):
        entry = raw.parse_line(line.decode("utf-8", "replace").rstrip("\n"), seq)
        if seq >= since.get("entries", 0) and entry.role == PERSON and entry.tag:
            yield PersonAction(at=clock.seconds_of(entry.at), verb="note", texts=[entry.tag, entry.text])


def length_of(lengths: dict[str, Any], name: str) -> int:
    """The length of an append-only file in a record of lengths."""
    return int((lengths.get(name) or ["", 0])[1])


def left_by(state: State, run_id: str) -> tuple[dict[str, Any], str]:
    """From the snapshot of a run: {name: [digest, length]} of the state's files after it had settled, and the commit."""
    snapshot = state.json(f"{names.SNAPSHOTS}/{run_id}.json") or {}
    found: dict[str, Any] = {name: [digest, 0] for name, digest in snapshot.get("live", {}).items()}
    found |= {name: row for name, row in snapshot.get("grown", {}).items() if row}
    return found, str(snapshot.get("commit", ""))
