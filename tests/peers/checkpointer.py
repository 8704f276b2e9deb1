"""A store as a checkpointer of langgraph: a checkpoint is one value, and so is each write that waits for the next one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint import base as theirs

from harness.base.errors import VersionConflict
from harness.stores.store import ABSENT, ANY, Key, Store


class StoreSaver(theirs.BaseCheckpointSaver[int]):
    """See BaseCheckpointSaver; its asynchronous methods alone."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store

    def _put(self, key: Key, value: Any, expect: str) -> None:
        kind, data = self.serde.dumps_typed(value)
        self.store.put(key, kind.encode() + b"\n" + data, expect)

    def _get(self, key: Key) -> Any:
        found = self.store.get(key)
        kind, _, data = found.data.partition(b"\n") if found else (b"null", b"", b"")
        return self.serde.loads_typed((kind.decode(), data))

    async def aput(self, config: RunnableConfig, checkpoint: theirs.Checkpoint, metadata: theirs.CheckpointMetadata,
                   new_versions: theirs.ChannelVersions) -> RunnableConfig:  # fmt: skip
        """Keep a checkpoint."""
        parent, base = theirs.get_checkpoint_id(config), _base(config)
        about = theirs.get_checkpoint_metadata(config, metadata)
        self._put((*base, checkpoint["id"], "checkpoint"), [checkpoint, about, parent], ANY)
        return _config(base, checkpoint["id"])

    async def aput_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str,
                          task_path: str = "") -> None:  # fmt: skip
        """Keep what a task wrote: its first words, but the last ones on a special channel."""
        for place, (channel, value) in enumerate(writes):
            number = theirs.WRITES_IDX_MAP.get(channel, place)
            key = (*_base(config), str(theirs.get_checkpoint_id(config)), "writes", task_id, str(number))
            with contextlib.suppress(VersionConflict):
                self._put(key, [task_path, task_id, number, channel, value], ABSENT if number >= 0 else ANY)

    async def aget_tuple(self, config: RunnableConfig) -> theirs.CheckpointTuple | None:
        """A checkpoint, by default the newest."""
        base = _base(config)
        name = theirs.get_checkpoint_id(config) or max(self._names(base), default="")
        return self._tuple(base, name) if name else None

    def _names(self, base: Key) -> list[str]:
        return [key[-2] for key in self.store.list(base) if key[-1] == "checkpoint"]

    def _tuple(self, base: Key, name: str) -> theirs.CheckpointTuple | None:
        saved = self._get((*base, name, "checkpoint"))
        if saved is None:
            return None
        checkpoint, metadata, parent = saved
        writes = [self._get(key) for key in self.store.list((*base, name, "writes"))]
        writes.sort(key=lambda one: theirs.writes_sort_key(*one[:3]))
        waiting = [(task, channel, value) for _, task, _, channel, value in writes]
        before = _config(base, parent) if parent else None
        return theirs.CheckpointTuple(_config(base, name), checkpoint, metadata, before, waiting)

    async def alist(self, config: RunnableConfig | None, *, filter: dict[str, Any] | None = None,
                    before: RunnableConfig | None = None, limit: int | None = None) -> AsyncIterator[Any]:  # fmt: skip
        """The checkpoints of a thread's namespace, newest first."""
        base, end = _base(config), theirs.get_checkpoint_id(before) if before else None
        for name in sorted(self._names(base), reverse=True):
            found = self._tuple(base, name) if not end or name < end else None
            if limit == 0:
                return
            if found and (filter or {}).items() <= dict(found.metadata).items():
                limit = limit and limit - 1
                yield found

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread's checkpoints and writes, in all namespaces."""
        for key in self.store.list((thread_id,)):
            self.store.delete(key, ANY)


def _base(config: RunnableConfig) -> Key:
    named = config["configurable"]
    return named["thread_id"], f"ns={named.get('checkpoint_ns', '')}"


def _config(base: Key, checkpoint_id: str) -> RunnableConfig:
    named = {"thread_id": base[0], "checkpoint_ns": base[1].removeprefix("ns="), "checkpoint_id": checkpoint_id}
    return {"configurable": named}
