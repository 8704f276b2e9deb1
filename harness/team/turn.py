"""One turn of a thread: compose and hydrate its workspace, let an agent answer there, and reconcile what it changed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from harness.base import encoding
from harness.base.errors import LockBusy
from harness.base.record import Record
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

REPORT = "Of the last turn, the sources have not taken these files in their place:"
ELSEWHERE = FileOutcome(
    path=".",
    outcome=REFUSED,
    why="The workspace of that turn is elsewhere, or was removed: the sources have none of it.",
)


class TurnTask(Record, frozen=True):
    """What an agent is asked: `folder`: the workspace, with these `paths`; `tools`: verbs on status; `thread`, `user`: ids."""

    folder: str
    paths: list[str]
    prompt: str
    tools: list[Callable[..., Any]]
    thread: str
    user: str


Answer = Callable[[TurnTask], str]
Place = Callable[[str], str]  # the workspace of a thread's folder
OWN = "{}/workspace".format


class TurnResult(Record):
    """`answer`: of the agent; `files`: what became of what it changed; `finalize`: the id of the row; `continued`: ids of
    earlier ones that were ended first."""

    answer: str
    files: list[FileOutcome]
    finalize: str
    continued: list[str]


def run_turn(
    team: Team, store: Store | str, tenant: str, thread: str, root: str, message: str, answer: Answer, at: Place = OWN
) -> TurnResult:
    """Answer a message in a thread. `store`: of the sources, or its URL; `root`: of the threads' folders here, whose workspaces
    are `at` a place. What an earlier turn began to finalize is ended first. Raises LockBusy if another turn has the folder, or a
    later one the thread, and UsageFault for what is unknown or archived; after any error the next turn goes on."""
    store = open_store(store) if isinstance(store, str) else store
    with team.transaction(tenant) as tx:
        row = directory.active_thread(tx, thread)
    folder = f"{root}/{row['id']}"
    lock = Lock(f"{folder}/lock")
    if not lock.take():
        raise LockBusy(f"A turn of the thread '{thread}' is under way here. Wait for its end, then try again.")
    with lock:
        turn = _Turn(team, store, tenant, thread, RuntimeFolder(folder, at(folder)))
        continued = turn.end_earlier()
        manifest = prepare(turn.sources, turn.runtime, turn.access)
        lines = [f"- {line}" for line in turn.reported()]
        prompt = "\n".join([message, *(["", REPORT, *lines] if lines else [])])
        about = {"thread": row["id"], "user": row["user_id"], "folder": turn.runtime.workspace}
        text = answer(TurnTask(prompt=prompt, paths=[*manifest.entries], tools=turn.tools(), **about))
        with team.transaction(tenant) as tx:
            begun = _finalizes.begin(tx, thread, turn.number, encoding.digest(manifest.to_bytes()))
        return TurnResult(answer=text, files=turn.end(begun), finalize=begun.id, continued=continued)


class _Turn:
    """A turn that has claimed its thread."""

    def __init__(self, team: Team, store: Store, tenant: str, thread: str, runtime: RuntimeFolder) -> None:
        self.team, self.tenant, self.thread, self.runtime = team, tenant, thread, runtime
        with team.transaction(tenant) as tx:
            self.number, self.row = _finalizes.claim(tx, thread), directory.thread(tx, thread)
            shown, folder = _projections.rendered(status.overview(tx, thread)), directory.tenant_name(tx)
        kinds = {"agent": "agent", "space": "space", "user": "user_name"}
        sources = [TeamSource(kind=one, id=self.row[f"{one}_id"], folder=self.row[name]) for one, name in kinds.items()]
        own = TeamSource(kind="thread", id=self.row["id"], folder=self.row["name"])
        self.sources = TeamThread(store, folder, [*sources, own], shown)

    def access(self, kind: str, identity: str) -> str:
        """What the thread may do now. Raises LockBusy if a later turn has it."""
        with self.team.transaction(self.tenant) as tx:
            _finalizes.fenced(tx, self.thread, self.number)
            return directory.access(tx, self.thread, kind, identity)

    def tools(self) -> list[Callable[..., Any]]:
        """The verbs on the thread's status; after each one the projections in the workspace are written again."""
        found = status.tools_of(self.team, self.tenant, self.thread, f"agent/{self.row['agent']}")
        return [*map(self._shown, found)]

    def _shown(self, verb: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
        @functools.wraps(verb)
        def called(*words: Any, **more: Any) -> dict[str, Any]:
            row = verb(*words, **more)
            self.sources.projections = {path: text.encode() for path, text in row["files"].items()}
            for path, data in self.sources.projections.items():
                self.runtime.keep(data)
                self.runtime.write(path, data, writable=False)
            return row

        return called

    def end_earlier(self) -> list[str]:
        """End what earlier turns began to finalize; returns the ids."""
        found = list[str]()
        while one := self._asked(lambda tx: _finalizes.pending(tx, self.thread, self.number)):
            self.end(one)
            found.append(one.id)
        return found

    def end(self, one: Finalize) -> list[FileOutcome]:
        """Go on with a finalize to its end."""
        if one.status == _finalizes.BEGUN:
            known = self.runtime.manifest()
            is_here = (
                known is not None and self.runtime.has_workspace and encoding.digest(known.to_bytes()) == one.manifest
            )
            rows = reconcile(self.sources, self.runtime, self.access, one.id) if is_here else [ELSEWHERE]
            result = json.dumps([row.asdict() for row in rows])
            one = self._asked(functools.partial(_finalizes.advance, one=one, result=result))
        return _rows(self._asked(functools.partial(_finalizes.done, one=one, result=one.result)))

    def reported(self) -> list[str]:
        """The lines of the newest finalize for the prompt."""
        newest = self._asked(lambda tx: _finalizes.newest(tx, self.thread))
        return prompt_lines(_rows(newest)) if newest else []

    def _asked(self, act: Callable[[Transaction], Any]) -> Any:
        with self.team.transaction(self.tenant) as tx:
            return act(tx)


def _rows(one: Finalize) -> list[FileOutcome]:
    return [FileOutcome(**row) for row in json.loads(one.result or "[]")]
