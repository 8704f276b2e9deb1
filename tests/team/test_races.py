"""Races of turns with the real files and the real database: nothing is lost, overwritten in silence, or another tenant's.

The suite plays fifty of each on SQLite and a folder; `make torture` a thousand of each on that, and on PostgreSQL and S3.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from harness.base.errors import LockBusy, VersionConflict
from harness.filesystem.stored_files import FileValues
from harness.stores.store import Key, Store
from harness.stores.urls import open_store
from harness.team import directory
from harness.team.database import Team
from harness.team.turn import TurnResult, TurnTask, run_turn
from tests.crash import TORTURE
from tests.stores import servers
from tests.team.conftest import ME
from tests.team.workspaces import CountingStore, read, stored, write

RACES = 1000 if TORTURE else 50
FILES = 50  # that race in one turn
TENANTS = ("acme", "globex")
DOCS = "spaces/sales/docs"
DECISIONS = "threads/deal/DECISIONS.md"
BODY = "first\nsecond\nthird\nfourth\nlast\n"
pytestmark = pytest.mark.parametrize("empty", ["sqlite", *(["postgresql"] if TORTURE else [])], indirect=True)


class Talk:
    """A thread of a team on a machine of its own."""

    def __init__(self, team: Team, store: Store, root: Path, tenant: str = "acme", name: str = "deal") -> None:
        self.team, self.store, self.tenant, self.name = team, store, tenant, name
        self.root, self.results, self.prompts = root / tenant / name, list[TurnResult](), list[str]()

    def turn(self, act: Callable[[Path], object] = lambda docs: None) -> TurnResult:
        """A turn whose agent does this in the documents of its space."""

        def answer(task: TurnTask) -> str:
            (docs := Path(task.folder) / "Space/docs").mkdir(exist_ok=True)
            self.prompts.append(task.prompt)
            act(docs)
            return "done"

        made = run_turn(self.team, self.store, self.tenant, self.name, str(self.root), "hello", answer)
        self.results.append(made)
        return made

    def kept(self) -> Counter[str]:
        """The contents that are kept beside the workspace."""
        found = (path for kind in ("refused", "quarantine") for path in self.root.glob(f"*/{kind}/**/*"))
        return Counter(path.read_text() for path in found if path.is_file())


@pytest.fixture
def talks(team: Team, tmp_path: Path, request: pytest.FixtureRequest) -> list[Talk]:
    """In each tenant, `deal` of ann and `offer` of bob in one space; files are beside SQLite in a folder, else in S3."""
    url = f"file://{tmp_path}/sources"
    if team.database.kind == "postgresql":
        server: servers.Server = request.getfixturevalue("objects")
        url = server.url.replace("PREFIX", tmp_path.name)
    store = open_store(url)
    for tenant in TENANTS:
        write(store, "agents/scribe/AGENTS.md", "# Scribe\n", tenant)
        with team.transaction(tenant) as tx:
            directory.grant(tx, "bob", "sales", "write", ME)
            directory.add(tx, "thread", "offer", ME, {"agent": "scribe", "space": "sales", "user": "bob"})
    return [Talk(team, store, tmp_path / "machines", tenant, name) for tenant in TENANTS for name in ("deal", "offer")]


def at_once(*acts: Callable[[], object]) -> list[BaseException]:
    """Do these in threads at once; returns what they raised."""
    with ThreadPoolExecutor(len(acts)) as pool:
        begun = [pool.submit(act) for act in acts]
    return [fault for one in begun if (fault := one.exception())]


def fill(store: Store, paths: list[str], tenant: str = "acme") -> None:
    """Put these documents into the space, and no other."""
    values = FileValues(store, ("tenants", tenant, *DOCS.split("/")))
    for names in values.stamps():
        if head := values.get(names):
            values.delete(names, head)
    for path in paths:
        write(store, f"{DOCS}/{path}", BODY, tenant)


def documents(store: Store, tenant: str = "acme") -> dict[str, str]:
    """{name: content} of the documents of the space."""
    values = FileValues(store, ("tenants", tenant, *DOCS.split("/")))
    heads = {names[-1]: (names, values.get(names)) for names in values.stamps()}
    return {name: values.content(names, head).decode() for name, (names, head) in heads.items() if head}


def beside(found: dict[str, str], name: str) -> list[str]:
    """The contents of the conflict files of a document."""
    return [text for path, text in found.items() if path.startswith(f"{name.removesuffix('.md')}.conflict-")]


def test_two_threads_edit_one_file_at_once_in_two_tenants(talks: list[Talk]) -> None:
    """Other lines are merged, of one line both contents are there, and what a tenant has is its own."""
    store = talks[0].store
    paths = [f"{number}.md" for number in range(FILES)]
    for _ in range(0, RACES, FILES * len(TENANTS)):
        for tenant in TENANTS:
            fill(store, paths, tenant)
        begun = threading.Barrier(len(talks), timeout=60)

        def change(talk: Talk, docs: Path, begun: threading.Barrier = begun) -> None:
            for number, path in enumerate(paths):
                line = "first" if talk.name == "deal" or number % 10 == 0 else "last"
                (docs / path).write_text(BODY.replace(line, f"{line} of {talk.tenant} {talk.name}"))
            begun.wait()

        assert at_once(*(partial(one.turn, partial(change, one)) for one in talks)) == []
        for tenant in TENANTS:
            found, mine = documents(store, tenant), [one for one in talks if one.tenant == tenant]
            for number, path in enumerate(paths):
                edits = [f"first of {tenant} deal\n", f"{'last' if number % 10 else 'first'} of {tenant} offer\n"]
                texts = [found[path], *beside(found, path)]
                assert len(texts) == (1 if number % 10 else 2), texts
                assert [sum(edit in text for text in texts) for edit in edits] == [1, 1], texts
                outcomes = sorted(
                    one.outcome for talk in mine for one in talk.results[-1].files if one.path == f"Space/docs/{path}"
                )
                assert outcomes == ["accepted", "merged" if number % 10 else "conflict"]
    for tenant, other in (TENANTS, TENANTS[::-1]):
        assert not [path for path, text in stored(store).items() if path.startswith(tenant) and f"of {other}" in text]


def test_a_source_that_changes_while_a_turn_runs(talks: list[Talk]) -> None:
    """A person edits the first line, or replaces the file, at any moment of the turn, and it is all there afterwards."""
    talk, random_order = talks[0], random.Random(5)
    values = FileValues(talk.store, ("tenants", "acme"))

    def edit(path: str) -> None:
        """What the person does, again where the turn was first."""
        key = (*DOCS.split("/"), path)
        line = b"last" if int(path[:-3]) % 10 == 0 else b"first"
        while head := values.get(key):
            with contextlib.suppress(VersionConflict):
                text = values.content(key, head)
                values.put(key, text.replace(line, b"of a person\n" + line, 1), head)
                return

    paths = [f"{number}.md" for number in range(FILES)]
    for _ in range(0, RACES, FILES):
        fill(talk.store, paths)
        begun = threading.Event()

        def change(docs: Path, begun: threading.Event = begun) -> None:
            for path in paths:
                (docs / path).write_text(BODY.replace("last", "last of the agent"))
            begun.set()

        def meddle(begun: threading.Event = begun) -> None:
            begun.wait()
            for path in random_order.sample(paths, FILES):
                edit(path)

        assert at_once(partial(talk.turn, change), meddle) == []
        found = documents(talk.store)
        for path in paths:
            texts = "".join([found[path], *beside(found, path)])
            assert "of the agent" in texts and "of a person" in texts, texts
        assert {one.outcome for one in talk.results[-1].files} <= {"accepted", "merged", "conflict"}


def test_access_that_is_revoked_in_the_middle(talks: list[Talk]) -> None:
    """While it is, nothing is written but the file whose write had begun; each is in the source, or refused and kept."""
    talk, outcomes = talks[0], Counter[str]()
    values = FileValues(talk.store, ("tenants", "acme", *DOCS.split("/")))

    def grant(mode: str) -> None:
        with talk.team.transaction("acme") as tx:
            directory.grant(tx, "ann", "sales", mode, ME)

    for race in range(0, RACES, FILES):
        texts = {f"{number}.md": f"{race} {number}\n" for number in range(FILES)}
        before, begun, ended = documents(talk.store), threading.Event(), threading.Event()

        def change(docs: Path, texts: dict[str, str] = texts, begun: threading.Event = begun) -> None:
            for path, text in texts.items():
                (docs / path).write_text(text)
            begun.set()

        def turn(change: Callable[[Path], None] = change, ended: threading.Event = ended) -> None:
            with contextlib.ExitStack() as stack:
                stack.callback(ended.set)
                talk.turn(change)

        def meddle(begun: threading.Event = begun, ended: threading.Event = ended) -> None:
            begun.wait()
            while not ended.wait(0.004):
                grant("")
                then = values.stamps().items()
                ended.wait(0.004)
                assert len(values.stamps().items() - then) <= 1
                grant("write")

        assert at_once(turn, meddle) == []
        found, made = documents(talk.store), talk.results[-1]
        (folder,) = talk.root.iterdir()
        for one in made.files:
            name = one.path.rpartition("/")[2]
            assert found.get(name) == (texts[name] if one.outcome == "accepted" else before.get(name))
            if one.outcome == "refused":
                assert (folder / "refused" / made.finalize / one.path).read_text() == texts[name]
        outcomes += Counter(one.outcome for one in made.files)
    assert outcomes.keys() == {"accepted", "refused"} and outcomes.total() == RACES


class Killed(BaseException):
    """Ends a turn where it is raised."""


class Dying(CountingStore):
    """A store whose process ends at this write of a turn's files, before or after it."""

    at, is_after = -1, False

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """See Store."""
        self.at -= 1
        if self.at == 0 and not self.is_after:
            raise Killed
        made = super().put(key, data, expect)
        if self.at == 0 and self.is_after:
            raise Killed
        return made


def test_a_finalize_that_is_ended_twice_at_once(talks: list[Talk]) -> None:
    """Killed at any write, then ended twice at once in its folder, and on another machine: all is there once, or kept."""
    talk, many = talks[0], 10
    elsewhere, store = Talk(talk.team, talk.store, talk.root.parent / "elsewhere"), talk.store

    def note(line: str) -> None:
        """Of a person, in a file that grows."""
        write(store, DECISIONS, (read(store, DECISIONS) or "") + line)

    for race in range(0, RACES, many):
        turn = race // many
        dying, names = Dying(talk.store), [f"{number}.md" for number in range(many)]
        talk.store = dying

        def change(docs: Path, turn: int = turn, dying: Dying = dying, names: list[str] = names) -> None:
            for name in names:
                (docs / name).write_text(f"turn {turn} {name}\n")
            with (docs.parent.parent / "DECISIONS.md").open("a") as file:
                file.writelines(f"- turn {turn} {name}\n" for name in names)
            note(f"- a person before {turn}\n")
            dying.at, dying.is_after = turn * 5 % 24 + 1, turn % 3 == 1

        with contextlib.suppress(Killed):
            talk.turn(change)
        talk.store = dying.store
        note(f"- a person after {turn}\n")
        faults = at_once(talk.turn, talk.turn, *([elsewhere.turn] if turn % 3 == 0 else []))
        assert {type(one) for one in faults} <= {LockBusy}
        talk.turn()
        found, decisions = documents(talk.store), read(talk.store, DECISIONS) or ""
        there = [f"turn {turn} {name}\n" for name in names if found.get(name) == f"turn {turn} {name}\n"]
        lost = {f"turn {turn} {name}\n" for name in names}.difference(there, talk.kept())
        assert lost == set() and (turn % 3 == 0 or len(there) == many)
        assert max(Counter(decisions.splitlines()).values(), default=1) == 1
        assert f"- a person before {turn}\n- " in decisions and f"- a person after {turn}\n" in decisions
        assert f"turn {turn} " in decisions or any(f"- turn {turn} " in text for text in talk.kept())
