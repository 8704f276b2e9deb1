"""A thread of a team with its sources in a store, and one machine or several where its turns run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.filesystem.stored_files import FileValues
from harness.stores.store import Key, Store, Value
from harness.team._compose import TeamThread, prepare
from harness.team._mounts import TeamSource
from harness.team._outcomes import FileOutcome
from harness.team._reconcile import reconcile
from harness.team._runtime import RuntimeFolder

AGENT, SPACE, USER, THREAD = (
    TeamSource(kind=kind, id=f"id-of-{kind}", folder=folder)
    for kind, folder in (("agent", "scribe"), ("space", "atlas"), ("user", "ada"), ("thread", "first"))
)
DELEGATE = TeamSource(kind="delegate", id="id-of-delegate", folder="critic")
SOURCES = (AGENT, SPACE, USER, THREAD, DELEGATE)
FILES = {
    "agents/scribe/AGENTS.md": "# Scribe\n",
    "agents/scribe/CONTEXT.md": "What all threads know.\n",
    "agents/scribe/skills/cut/SKILL.md": "Cut words.\n",
    "agents/scribe/memory/style.md": "Short sentences.\n",
    "agents/scribe/memory/both.md": "Of the agent.\n",
    "agents/scribe/Space/hidden.md": "No workspace shows this.\n",
    "agents/critic/AGENTS.md": "# Critic\n",
    "spaces/atlas/CONTEXT.md": "An atlas of birds.\n",
    "spaces/atlas/docs/herons.md": "one\ntwo\nthree\nfour\nfive\n",
    "spaces/other/CONTEXT.md": "Another space.\n",
    "users/ada/USER.md": "Ada likes tables.\n",
    "users/ada/memory/both.md": "Of Ada.\n",
    "users/ada/memory/birds.md": "Herons.\n",
    "users/bob/memory/secret.md": "Of Bob.\n",
    "threads/first/DECISIONS.md": "- one\n",
}
PROJECTIONS = {"GOAL.md": b"revision 1\nAn atlas.\n", "PROGRESS.md": b"revision 1\n- [ ] herons\n"}


def write(store: Store, path: str, text: str, tenant: str = "acme") -> None:
    """Write a file of a source, as a person does beside the turns."""
    values, names = FileValues(store, ("tenants", tenant)), tuple(path.split("/"))
    values.put(names, text.encode(), values.get(names))


def read(store: Store, path: str, tenant: str = "acme") -> str | None:
    """A file of a source."""
    values, names = FileValues(store, ("tenants", tenant)), tuple(path.split("/"))
    head = values.get(names)
    return values.content(names, head).decode() if head else None


def stored(store: Store) -> dict[str, str]:
    """{path below the tenants: content} of every file in the store."""
    values = FileValues(store, ("tenants",))
    found = [names for names in values.stamps() if not names[-1].startswith((".hydrate", ".rendered"))]
    return {"/".join(names): values.content(names, head).decode() for names in found if (head := values.get(names))}


class Machine:
    """A machine with the workspace of one thread. `granted`: access by the kind of a source, "write" if it is not there."""

    def __init__(self, folder: Path, store: Store, sources: Sequence[TeamSource] = SOURCES, tenant: str = "acme",
                 projections: Mapping[str, bytes] = PROJECTIONS) -> None:  # fmt: skip
        self.thread = TeamThread(store, tenant, sources, dict(projections))
        self.runtime, self.granted = RuntimeFolder(str(folder)), dict[str, str]()
        self.at = Path(self.runtime.workspace)

    def access(self, kind: str, identity: str) -> str:
        """The access of now."""
        assert identity.startswith("id-of-")
        return self.granted.get(kind, "write")

    def begin(self) -> None:
        """Compose and hydrate."""
        prepare(self.thread, self.runtime, self.access)

    def write(self, path: str, text: str) -> None:
        """Write a file of the workspace, as the agent does."""
        (self.at / path).parent.mkdir(parents=True, exist_ok=True)
        if (self.at / path).exists():
            (self.at / path).chmod(0o644)
        (self.at / path).write_text(text)

    def finish(self, finalize: str = "f1") -> list[FileOutcome]:
        """Reconcile."""
        return reconcile(self.thread, self.runtime, self.access, finalize)

    def outcomes(self, finalize: str = "f1") -> dict[str, str]:
        """{path: outcome} of a finalize."""
        return {one.path: one.outcome for one in self.finish(finalize)}

    def shown(self) -> dict[str, str]:
        """{path: content} of the workspace."""
        found = (path for path in self.at.rglob("*") if path.is_file())
        return {str(path.relative_to(self.at)): path.read_text() for path in found}

    def kept(self, kind: str) -> dict[str, str]:
        """{path: content} of what is kept beside it."""
        folder = Path(self.runtime.folder) / kind
        found = (path for path in folder.rglob("*") if path.is_file())
        return {"/".join(path.relative_to(folder).parts[1:]): path.read_text() for path in found}


class CountingStore:
    """A store that counts its requests by name."""

    def __init__(self, store: Store) -> None:
        self.store, self.count = store, Counter[str]()

    def get(self, key: Key) -> Value | None:
        """See Store."""
        self.count["get"] += 1
        return self.store.get(key)

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """See Store."""
        self.count["put"] += 1
        return self.store.put(key, data, expect)

    def delete(self, key: Key, expect: str) -> None:
        """See Store."""
        self.count["delete"] += 1
        self.store.delete(key, expect)

    def list(self, prefix: Key, after: Key = (), limit: int = 0) -> list[Key]:
        """See Store."""
        self.count["list"] += 1
        return self.store.list(prefix, after, limit)

    def describe(self, key: Key) -> str:
        """See Store."""
        return self.store.describe(key)


def team(store: Store, tenant: str = "acme") -> Store:
    """The store with the files of a team."""
    for path, text in FILES.items():
        write(store, path, text, tenant)
    return store
