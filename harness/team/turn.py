"""One turn of a thread: compose and hydrate its workspace, let an agent answer there, and reconcile what it changed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, TypeVar

from harness.base import encoding
from harness.base.errors import LockBusy
from harness.base.record import Json, Record
from harness.state.files import Lock
from harness.stores.store import Store
from harness.stores.urls import open_store
from harness.team import _finalizes, _projections, directory, status
from harness.team._compose import TeamThread, prepare
from harness.team._finalizes import Finalize
from harness.team._mounts import TeamSource
from harness.team._outcomes import REFUSED, FileOutcome, prompt_lines
from harness.team._reconcile import reconcile
from harness.team._runtime import RuntimeFolder
from harness.team.database import Team, Transaction

T = TypeVar("T")
REPORT = "The sources did not accept these files of the last turn as they are:"
WORKSPACE_GONE = FileOutcome(
    path=".",
    outcome=REFUSED,
    why="The workspace of that turn is on another machine, or was removed: the sources have none of its changes.",
)


class TurnTask(Record, frozen=True):
    """The task of an agent. `folder`: the workspace, with these `paths`; `tools`: the verbs on status; `thread`, `user`: ids."""

    folder: str
    paths: list[str]
    prompt: str
    tools: list[Callable[..., dict[str, Json]]]
    thread: str
    user: str


Answer = Callable[[TurnTask], str]
WorkspacePath = Callable[[str], str]  # from the folder of a thread to its workspace


def own_workspace(folder: str) -> str:
    """The workspace of a thread that has no other place for it: in its folder."""
    return f"{folder}/workspace"


class TurnResult(Record):
    """`answer`: the agent's text; `files`: the outcome of each file that it changed; `finalize`: the id of the row;
    `continued`: ids of earlier finalizes that were finished first."""

    answer: str
    files: list[FileOutcome]
    finalize: str
    continued: list[str]


def run_turn(
    team: Team,
    store: Store | str,
    tenant: str,
    thread: str,
    root: str,
    message: str,
    answer: Answer,
    place: WorkspacePath = own_workspace,
) -> TurnResult:
    """Answer a message in a thread. `store`: holds the sources, or its URL; `root`: holds the threads' folders on this machine.
    Unfinished finalizes of earlier turns are finished first. Raises LockBusy if another turn has the folder or a later turn has
    the thread, and UsageFault for an unknown tenant or thread and an archived space. The next turn recovers from any error."""
    store = open_store(store) if isinstance(store, str) else store
    with team.transaction(tenant) as tx:
        row = directory.active_thread(tx, thread)
    folder = f"{root}/{row['id']}"
    lock = Lock(f"{folder}/lock")
    if not lock.take():
        raise LockBusy(f"A turn of the thread '{thread}' is running here. Wait until it ends, then try again.")
    with lock:
        turn = _Turn(team, store, tenant, thread, RuntimeFolder(folder, place(folder)))
        continued = turn.finish_earlier()
        manifest = prepare(turn.sources, turn.runtime, turn.access)
        lines = [f"- {line}" for line in turn.report_lines()]
        prompt = "\n".join([message, *(["", REPORT, *lines] if lines else [])])
        about = {"thread": row["id"], "user": row["user_id"], "folder": turn.runtime.workspace}
        text = answer(TurnTask(prompt=prompt, paths=[*manifest.entries], tools=turn.tools(), **about))
        with team.transaction(tenant) as tx:
            begun = _finalizes.begin(tx, thread, turn.number, encoding.digest(manifest.to_bytes()))
        return TurnResult(answer=text, files=turn.finish(begun), finalize=begun.id, continued=continued)


class _Turn:
    """A turn that has claimed its thread."""

    def __init__(self, team: Team, store: Store, tenant: str, thread: str, runtime: RuntimeFolder) -> None:
        self.team, self.tenant, self.thread, self.runtime = team, tenant, thread, runtime
        with team.transaction(tenant) as tx:
            self.number, self.row = _finalizes.claim(tx, thread), directory.thread(tx, thread)
            shown, folder = _projections.render(status.overview(tx, thread)), directory.tenant_name(tx)
        kinds = {"agent": "agent", "space": "space", "user": "user_name"}
        sources = [TeamSource(kind=one, id=self.row[f"{one}_id"], folder=self.row[name]) for one, name in kinds.items()]
        own = TeamSource(kind="thread", id=self.row["id"], folder=self.row["name"])
        self.sources = TeamThread(store, folder, [*sources, own], shown)

    def access(self, kind: str, identity: str) -> str:
        """What the thread may do with a source now. Raises LockBusy if a later turn has the thread."""
        with self.team.transaction(self.tenant) as tx:
            _finalizes.require_current(tx, self.thread, self.number)
            return directory.access(tx, self.thread, kind, identity)

    def tools(self) -> list[Callable[..., dict[str, Json]]]:
        """The verbs on the thread's status; each one renders the projections in the workspace again."""
        verbs = status.tools_of(self.team, self.tenant, self.thread, f"agent/{self.row['agent']}")
        return [*map(self._render_after, verbs)]

    def _render_after(self, verb: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Json]]:
        @functools.wraps(verb)
        def wrapped(*args: Any, **kwargs: Any) -> dict[str, Any]:
            row = verb(*args, **kwargs)
            self.sources.projections = {path: text.encode() for path, text in row["files"].items()}
            for path, data in self.sources.projections.items():
                self.runtime.keep_base(data)
                self.runtime.write(path, data, writable=False)
            return row

        return wrapped

    def finish_earlier(self) -> list[str]:
        """Finish the finalizes of earlier turns; returns their ids."""
        finished = list[str]()
        while finalize := self._in_transaction(lambda tx: _finalizes.pending(tx, self.thread, self.number)):
            self.finish(finalize)
            finished.append(finalize.id)
        return finished

    def finish(self, finalize: Finalize) -> list[FileOutcome]:
        """Continue a finalize until it is done."""
        if finalize.status == _finalizes.BEGUN:
            manifest, is_here = self.runtime.manifest(), False
            if manifest and self.runtime.has_workspace:
                is_here = encoding.digest(manifest.to_bytes()) == finalize.manifest
            rows = reconcile(self.sources, self.runtime, self.access, finalize.id) if is_here else [WORKSPACE_GONE]
            result = json.dumps([row.asdict() for row in rows])
            finalize = self._advance(finalize, _finalizes.FILES, result)
        return _outcomes(self._advance(finalize, _finalizes.DONE, finalize.result))

    def _advance(self, finalize: Finalize, status: str, result: str) -> Finalize:
        return self._in_transaction(lambda tx: _finalizes.advance(tx, finalize, status, result))

    def report_lines(self) -> list[str]:
        """The lines of the newest finalize for the next prompt."""
        newest = self._in_transaction(lambda tx: _finalizes.newest(tx, self.thread))
        return prompt_lines(_outcomes(newest)) if newest else []

    def _in_transaction(self, act: Callable[[Transaction], T]) -> T:
        with self.team.transaction(self.tenant) as tx:
            return act(tx)


def _outcomes(finalize: Finalize) -> list[FileOutcome]:
    return [FileOutcome(**row) for row in json.loads(finalize.result or "[]")]
