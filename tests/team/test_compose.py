"""Promises of harness/team/_compose.py: what a workspace shows, and what a turn fetches for it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.filesystem import stored_files
from harness.stores.memory import MemoryStore
from harness.stores.store import Key, Value
from harness.stores.urls import open_store
from harness.team._compose import TeamThread, compose
from tests import crash
from tests.team.workspaces import (
    AGENT,
    FILES,
    PROJECTIONS,
    SOURCES,
    SPACE,
    THREAD,
    CountingStore,
    Machine,
    read,
    team,
    write,
)

MANY = 10_000 if crash.TORTURE else 1000
HERONS = "spaces/atlas/docs/herons.md"
SHOWN = {
    "AGENTS.md": "# Scribe\n",
    "CONTEXT.md": "What all threads know.\n",
    "skills/cut/SKILL.md": "Cut words.\n",
    "memory/style.md": "Short sentences.\n",
    "memory/both.md": "Of Ada.\n",
    "memory/birds.md": "Herons.\n",
    "USER.md": "Ada likes tables.\n",
    "Space/CONTEXT.md": "An atlas of birds.\n",
    "Space/docs/herons.md": "one\ntwo\nthree\nfour\nfive\n",
    "workspaces/critic/AGENTS.md": "# Critic\n",
    "GOAL.md": "revision 1\nAn atlas.\n",
    "PROGRESS.md": "revision 1\n- [ ] herons\n",
    "DECISIONS.md": "- one\n",
}


def test_the_workspace_is_the_agent_with_its_user_its_one_space_and_the_thread(tmp_path: Path) -> None:
    """No other space or user is there, nor what of the agent is at the place of a mount."""
    machine = Machine(tmp_path, team(MemoryStore()))
    machine.begin()
    assert machine.shown() == SHOWN


def test_the_manifest_has_the_same_bytes_for_the_same_state(tmp_path: Path) -> None:
    """On each machine, and in the store beside the thread; it names the owner, the key and the mode of each file."""
    store = team(MemoryStore())
    made = []
    for name in ("one", "two"):
        machine = Machine(tmp_path / name, store)
        machine.begin()
        made.append((tmp_path / name / "manifest.json").read_bytes())
    kept = store.get(("tenants", "acme", "threads", "first", ".hydrate_manifest.json"))
    assert kept
    assert {*made} == {kept.data}
    found = json.loads(made[0])
    assert (found["version"], found["tenant"], len(found["files"])) == (1, "acme", len(SHOWN))
    (goal,) = [one for one in found["files"] if one["path"] == "GOAL.md"]
    assert goal["generated"] and (goal["mode"], goal["owner"]) == ("projection", "thread/id-of-thread")
    assert goal["key"] == "tenants/acme/threads/first/GOAL.md"
    assert store.get(("tenants", "acme", "threads", "first", ".rendered_at"))


def test_a_folder_that_may_be_written_is_there_without_files(tmp_path: Path) -> None:
    """So a command of the agent can write the first one; without access it is not."""
    store = MemoryStore()
    write(store, "agents/scribe/AGENTS.md", "# Scribe\n")
    machine = Machine(tmp_path, store)
    machine.granted["user"] = ""
    machine.begin()
    assert ((machine.at / "Space").is_dir(), (machine.at / "memory").exists()) == (True, False)


def test_what_a_turn_may_not_change_is_read_only_on_disk(tmp_path: Path) -> None:
    """Projections, the agent's own files, and what the access of now permits to read alone."""
    machine = Machine(tmp_path, team(MemoryStore()))
    machine.granted["space"] = "read"
    machine.begin()
    rights = {path: (machine.at / path).stat().st_mode & 0o222 for path in SHOWN}
    assert {path for path, right in rights.items() if right} == {
        *("memory/style.md", "memory/both.md", "memory/birds.md", "USER.md", "DECISIONS.md")
    }


def test_a_source_without_access_is_not_there(tmp_path: Path) -> None:
    """Not even the files that were there before; without its agent a workspace is none."""
    machine = Machine(tmp_path, team(MemoryStore()))
    machine.begin()
    machine.granted["space"] = ""
    machine.begin()
    assert machine.shown() == {path: text for path, text in SHOWN.items() if not path.startswith("Space/")}
    machine.granted["agent"] = ""
    with pytest.raises(UsageFault, match="no access"):
        machine.begin()


def test_of_many_files_those_that_changed_are_fetched(tmp_path: Path) -> None:
    """At most 12 requests besides listing for 10 of them, and none for their content where nothing changed; as many for ten
    thousand files as for a thousand."""
    store = CountingStore(team(MemoryStore()))
    for number in range(MANY):
        write(store, f"spaces/atlas/docs/{number // 100}/{number}.md", f"{number}\n")
    machine = Machine(tmp_path / "machine", store)
    machine.begin()
    store.count.clear()
    machine.begin()
    assert dict(store.count) == {"list": 5, "put": 2}
    for number in range(10):
        write(store, f"spaces/atlas/docs/0/{number}.md", "new\n")
    store.count.clear()
    machine.begin()
    assert dict(store.count) == {"list": 5, "put": 2, "get": 10}
    assert (machine.at / "Space/docs/0/9.md").read_text() == "new\n"
    assert len(machine.shown()) == MANY + len(SHOWN)


def test_local_content_is_hashed_again(tmp_path: Path) -> None:
    """A file that something changed since is put back, and what no finalize took is kept."""
    store = CountingStore(team(MemoryStore()))
    machine = Machine(tmp_path, store)
    machine.begin()
    machine.write("Space/docs/herons.md", "an unfinished change\n")
    machine.write("Space/new.md", "an unfinished file\n")
    machine.write("scratch/notes", "stays\n")
    (machine.at / "AGENTS.md").unlink()
    store.count.clear()
    machine.begin()
    assert store.count["get"] == 0
    assert machine.shown() == SHOWN | {"scratch/notes": "stays\n"}
    assert machine.kept("refused") == {
        "Space/docs/herons.md": "an unfinished change\n",
        "Space/new.md": "an unfinished file\n",
    }


def test_links_that_an_agent_left_lead_nowhere(tmp_path: Path) -> None:
    """Neither a write nor a removal follows one."""
    store = team(MemoryStore())
    machine = Machine(tmp_path / "machine", store)
    machine.begin()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/docs").mkdir()
    (tmp_path / "outside/docs/herons.md").write_text("of somebody else\n")
    (machine.at / "Space").rename(tmp_path / "away")
    (machine.at / "Space").symlink_to(tmp_path / "outside")
    (machine.at / "USER.md").unlink()
    (machine.at / "USER.md").symlink_to(tmp_path / "outside/docs/herons.md")
    write(store, "spaces/atlas/docs/herons.md", "new\n")
    machine.begin()
    assert machine.shown() == SHOWN | {"Space/docs/herons.md": "new\n"}
    assert (tmp_path / "outside/docs/herons.md").read_text() == "of somebody else\n"


def test_a_source_that_changes_while_a_turn_begins_is_composed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest names what is on disk, whatever is written meanwhile; also of a file in parts."""
    monkeypatch.setattr(stored_files, "CHUNK", 8)
    store = team(MemoryStore())

    class Busy(CountingStore):
        def get(self, key: Key) -> Value | None:
            self.count["herons"] += key[-1] == "herons.md"
            if key[-1] == "herons.md" and self.count["herons"] in (2, 4):  # it is composed, and not yet hydrated
                write(self.store, "spaces/atlas/docs/herons.md", f"a longer version {self.count['get']}\n")
            return super().get(key)

    machine = Machine(tmp_path, Busy(store))
    machine.begin()
    assert machine.shown()["Space/docs/herons.md"] == read(store, "spaces/atlas/docs/herons.md") != FILES[HERONS]


def test_a_hydration_that_is_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    """Killed before each step; meanwhile no finalize takes the half of it for changes."""
    url = f"file://{tmp_path}/store"
    team(open_store(url))
    Machine(tmp_path / "machine", open_store(url)).begin()
    write(open_store(url), "spaces/atlas/docs/herons.md", "new\n")
    write(open_store(url), "users/ada/USER.md", "new\n")
    before = crash.contents(str(tmp_path))
    for _ in crash.stops(lambda: Machine(tmp_path / "machine", open_store(url)).begin()):
        machine = Machine(tmp_path / "machine", open_store(url))
        with contextlib.suppress(UsageFault):
            assert machine.finish() == []
        machine.begin()
        assert machine.shown() == SHOWN | {"Space/docs/herons.md": "new\n", "USER.md": "new\n"}
        assert machine.kept("refused") == {}
        crash.lay_out(str(tmp_path), before)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("docs/HERONS.md", "looks like"),
        ("docs/he\u0301rons.md", "NFC"),
        ("docs/h\u0435rons.md", "alphabets"),
        ("Docs/other.md", "looks like"),
        ("docs/her\u200bons.md", "control"),
    ],
)
def test_files_that_look_alike_are_no_workspace(path: str, words: str) -> None:
    """One line names the file."""
    store = team(MemoryStore())
    write(store, f"spaces/atlas/{path}", "text\n")
    with pytest.raises(UsageFault, match=words) as found:
        compose(TeamThread(store, "acme", SOURCES), lambda *_: "write")
    assert "\n" not in str(found.value)


def test_a_large_file_is_refused_by_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything of it is fetched."""
    monkeypatch.setattr("harness.team._manifest.MAX_FILE_BYTES", 3_000_000)
    store = team(MemoryStore())
    write(store, "spaces/atlas/docs/large.md", "x" * 2_999_999 + "\n")
    machine = Machine(tmp_path, store)
    machine.begin()
    assert len(machine.shown()["Space/docs/large.md"]) == 3_000_000
    write(store, "spaces/atlas/docs/large.md", "x" * 3_000_001)
    with pytest.raises(UsageFault, match=r"3,000,001 bytes; .* at most 3,000,000"):
        machine.begin()


def test_content_that_is_not_what_its_head_says_is_named(tmp_path: Path) -> None:
    """Nothing of it reaches a workspace."""
    store = team(open_store(str(tmp_path / "store")))
    path = next((tmp_path / "store").rglob("USER.md"))
    path.write_bytes(path.read_bytes().replace(b"tables", b"chairs"))
    with pytest.raises(BrokenFile, match=r"users/ada/USER.md"):
        Machine(tmp_path / "machine", store).begin()


def test_a_thread_needs_its_agent_and_folders_with_plain_names() -> None:
    """A name that climbs is refused."""
    for sources in ((SPACE, THREAD), (AGENT, SPACE), (AGENT, THREAD, SPACE.replace(folder="../atlas"))):
        with pytest.raises(UsageFault):
            TeamThread(MemoryStore(), "acme", sources, PROJECTIONS)
    with pytest.raises(UsageFault):
        TeamThread(MemoryStore(), "..", SOURCES)
