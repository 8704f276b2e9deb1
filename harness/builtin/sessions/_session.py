"""A session in memory, between the calls of one process: the holder of its place in the queue loads, saves and compacts it."""

from __future__ import annotations

from typing import Any

from harness.base.errors import BrokenFile, UsageFault
from harness.builtin.conversation import Conversation
from harness.builtin.loop.exchange import Message, Model
from harness.builtin.loop.message_text import estimate
from harness.builtin.sessions import _compaction, _conversation, _log_rows, log
from harness.builtin.sessions import state as states
from harness.builtin.sessions._compaction import Compact
from harness.builtin.sessions._conversation import SessionHistory
from harness.builtin.sessions._log_rows import REMEDY
from harness.builtin.sessions.keys import SessionKeys
from harness.builtin.sessions.log import CallRecord, LogPart, LogWriter
from harness.builtin.sessions.state import AgentState
from harness.mission.usage import Usage
from harness.stores import log as logs
from harness.stores.gate import GatePlace
from harness.stores.store import Store


class Session:
    """See the module. `state` is what state.json will have; `conversation`: of the calls so far in this process. `left`:
    calls that a kill cut off, whose results are not written yet."""

    def __init__(self, store: Store, keys: SessionKeys, state: AgentState, version: str, read: LogPart | None) -> None:
        self.store, self.keys, self.state, self.version = store, keys, state, version
        self.writer = LogWriter(store, keys.log, read.end if read else 0, read.rows if read else 0)
        self.history = SessionHistory(self.writer)
        self.conversation: Conversation | None = None
        self.parts, self.failed_at = (read.parts if read else 0), 0
        self.left: list[CallRecord] = []
        if read is not None:
            self._take(read)

    def _take(self, read: LogPart) -> None:
        self.history.resume(read)
        self.history.state.update(read.turns.state or self.state.kept)
        newer = [one for number, one in sorted(read.calls.items()) if number > self.state.calls]
        self.left = [one for one in newer if not one.ended]
        if self.left and read.asked:
            self.left[-1].usage = log.added(self.left[-1].usage, estimate(read.turns.request(read.asked), ""))
        used = self.state.used
        for one in newer:
            used = log.added(used, Usage(**one.usage))
        calls = max([self.state.calls, *read.calls])
        self.state = self.state.replace(calls=calls, turns=read.answered, used=used)

    def is_current(self) -> bool:
        """Whether no other process has continued the session since."""
        return not logs.has_more(self.store, self.keys.log, self.writer.end)

    def begin(self, place: GatePlace) -> None:
        """A call begins: from now on this place counts."""
        self.writer.place = place

    def opened(self, model: Model, system: str, tools: list[dict[str, Any]], parameters: dict[str, Any]) -> None:
        """Set what requests have besides messages; then close what a killed call left open."""
        if not self.parts:
            self.history.system, self.history.tools, self.history.parameters = system, tools, parameters
            self._start_part([])
        self.history.set_heads(system, tools, parameters)
        self.history.close(model, _conversation.KILLED)
        self.end_left()

    def end_left(self) -> None:
        """Write the results of the calls that a kill cut off."""
        self.writer.add(*(log.result_row(one) for one in self.left))
        self.left = []

    def _start_part(self, messages: list[Any]) -> None:
        self.parts += 1
        counts = {"calls": self.state.calls, "turns": self.history.turn}
        self.state = self.state.replace(part=self.history.start_part(self.parts, counts, messages))

    async def sum_up(
        self, rule: Compact, model: Model, writer: LogWriter, *, too_long: bool, curate: bool
    ) -> _compaction.Summary | None:
        """Replace the older part by a summary; None if there is too little of it. If that fails, nothing changes. `too_long`:
        the model refused the request as too long, so less must stay than the rule says; `curate`: the summary also has
        facts."""
        weight = _compaction.weight(self.history)
        room = _compaction.share(self.history.messages) if too_long else rule.keep_tokens
        at = _compaction.cut(self.history.messages, min(room, rule.keep_tokens))
        if not at:
            return None
        known = (self.history.messages[:at], model, writer, self.history.parameters)
        made = await _compaction.summed_up(*known, curate=curate)
        self.failed_at = 0 if made.text else weight
        if made.text:
            self.summarise(made.text, self.history.messages[at:])
        return made

    def summarise(self, text: str, kept: list[Message]) -> None:
        """Replace all messages except the kept ones by a summary."""
        self.state = self.state.replace(compactions=self.state.compactions + 1, summary=text)
        self._start_part([_compaction.message(text), *kept])

    def append(self, message: Message) -> None:
        """Add a message of a program between two calls."""
        if not self.parts:
            self._start_part([])
        self.history.add(message)

    def summary_log(self) -> LogWriter:
        """Where the next summary keeps its request; what an earlier try left there stays."""
        key = self.keys.compaction(self.parts)
        rows = logs.read(self.store, key)
        made = LogWriter(self.store, key, rows.end, _log_rows.newest(rows.data))
        made.place = self.writer.place
        return made

    def ended(self, result: CallRecord, used: Usage, place: GatePlace) -> None:
        """A call has this result. It is not written yet."""
        row = log.result_row(result)
        self.writer.add(row)
        used_now = log.added(self.state.used, used)
        self.state = self.state.replace(calls=result.call, turns=self.history.turn, used=used_now)
        self.note_call(result.message, row["at"], result.outcome, place)

    def note_call(self, message: str, at: str, outcome: str, place: GatePlace) -> None:
        """Set what a list of sessions shows of the newest call, and whose place the next save belongs to."""
        self.state = self.state.replace(newest=states.newest(message, at, outcome), fence=place.number)

    def save(self) -> None:
        """Make the log durable, then the state that names its last row. Raises what LogWriter.write does."""
        self.writer.write()
        self.state = self.state.replace(rows=self.writer.rows, kept=dict(self.history.state))
        self.version = self.store.put(self.keys.state, self.state.dumped(), self.version)

    async def close(self) -> None:
        """End what its tools still run."""
        gone, self.conversation = self.conversation, None
        if gone is not None:
            await gone.close()

    async def stop_tools(self) -> None:
        """End the work of a call: nothing that it started continues. Servers stay for the next call."""
        if self.conversation is not None:
            self.conversation.session.close()
            if self.conversation.subagents is not None:
                await self.close()


def load(store: Store, keys: SessionKeys, agent: str) -> Session:
    """The session, or a new one, whose state.json is then written; the caller holds the gate. Raises BrokenFile if the session
    cannot be read, UsageFault if it belongs to another agent ("": any agent)."""
    state, version = states.load(store, keys)
    if state is None:
        state = AgentState(user=keys.user, session=keys.session, agent=agent, created=log.now())
        made = Session(store, keys, state, version, None)
        made.save()
        return made
    if agent and state.agent != agent:
        raise UsageFault(f"The session {keys.session} is with {state.agent}, not with {agent}. Begin another session.")
    if state.rows and not logs.exists(store, keys.log):
        where = store.describe(keys.log)
        raise BrokenFile(where, "it is gone, and the state beside it has seen it", remedy=REMEDY)
    read = log.read(store, keys, state) if logs.exists(store, keys.log) else None
    return Session(store, keys, state, version, read)
