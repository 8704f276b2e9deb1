"""Promises of harness/team/_reconcile.py: what a turn changed is accepted, merged, or kept and named; nothing is lost."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.base.errors import LockBusy, UsageFault
from harness.stores.memory import MemoryStore
from harness.stores.store import Store
from harness.stores.urls import open_store
from harness.team._outcomes import prompt_lines
from tests import crash
from tests.team.workspaces import FILES, PROJECTIONS, SOURCES, THREAD, CountingStore, Machine, read, stored, team, write

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
RACES = 1000 if crash.TORTURE else 40


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose turn has begun."""
    made = Machine(tmp_path / "machine", team(MemoryStore()))
    made.begin()
    return made


def test_what_a_turn_changed_is_in_the_sources(machine: Machine) -> None:
    """An edit, a new file, a deletion; the next workspace is that, and nothing else is written."""
    before = stored(machine.thread.store)
    machine.write("Space/docs/herons.md", "one\n2\n")
    machine.write("Space/docs/new/gulls.md", "gulls\n")
    machine.write("memory/note.md", "Ada was here.\n")
    (machine.at / "memory/birds.md").unlink()
    assert machine.outcomes() == dict.fromkeys(
        ("Space/docs/herons.md", "Space/docs/new/gulls.md", "memory/note.md", "memory/birds.md"), "accepted"
    )
    changed = {
        "acme/spaces/atlas/docs/herons.md": "one\n2\n",
        "acme/spaces/atlas/docs/new/gulls.md": "gulls\n",
        "acme/users/ada/memory/note.md": "Ada was here.\n",
    }
    del before["acme/users/ada/memory/birds.md"]
    assert stored(machine.thread.store) == before | changed
    shown = machine.shown()
    machine.begin()
    assert machine.shown() == shown
    assert machine.outcomes("f2") == {}


def test_a_note_of_the_agent_becomes_the_users_own(machine: Machine) -> None:
    """What all users of an agent read is changed by no turn of one of them, also in the live filesystem."""
    machine.write("memory/style.md", "Long sentences.\n")
    assert machine.outcomes() == {"memory/style.md": "accepted"}
    assert read(machine.thread.store, "users/ada/memory/style.md") == "Long sentences.\n"
    assert read(machine.thread.store, "agents/scribe/memory/style.md") == "Short sentences.\n"
    machine.begin()
    (machine.at / "memory/style.md").unlink()
    assert machine.outcomes("f2") == {"memory/style.md": "accepted"}
    machine.begin()
    assert machine.shown()["memory/style.md"] == "Short sentences.\n"
    (machine.at / "memory/style.md").unlink()
    assert machine.outcomes("f3") == {"memory/style.md": "refused"}


REFUSALS = {
    "AGENTS.md": ("# Mine\n", "read-only"),
    "skills/new/SKILL.md": ("new\n", "No file can be added here"),
    "GOAL.md": ("revision 1\nAnother goal.\n", "rendered from the database"),
    "PROGRESS.md": ("revision 1\n- [x] herons\n", "rendered from the database"),
    "workspaces/critic/AGENTS.md": ("# Mine\n", "read-only"),
    "Space/docs/Herons.md": ("alike\n", "looks like"),
    "Space/docs/n\u0435w.md": ("alike\n", "alphabets"),
    "Space/docs/ new.md": ("space\n", "space"),
    "Space/link.md": ("", "a link"),
}


def test_what_is_refused_is_named_kept_and_put_back(machine: Machine) -> None:
    """Each with one line for the next prompt; nothing reaches the store, and the workspace is as it was."""
    before, shown = stored(machine.thread.store), machine.shown()
    for path, (text, _) in REFUSALS.items():
        if text:
            machine.write(path, text)
    (machine.at / "Space/link.md").symlink_to("/etc/passwd")
    (machine.at / "CONTEXT.md").unlink()
    (machine.at / "DECISIONS.md").unlink()
    found = machine.finish()
    wanted = {path: words for path, (_, words) in REFUSALS.items()}
    wanted |= {"CONTEXT.md": "read-only", "DECISIONS.md": "not deleted"}
    assert {one.path: one.outcome for one in found} == dict.fromkeys(wanted, "refused")
    lines = prompt_lines(found)
    assert [one for one in lines if "\n" in one] == []
    assert [path for path, words in wanted.items() if not any(path in one and words in one for one in lines)] == []
    assert stored(machine.thread.store) == before
    assert machine.shown() == shown
    kept = machine.kept("refused")
    assert {path: kept.get(path) for path, (text, _) in REFUSALS.items() if text} == {
        path: text for path, (text, _) in REFUSALS.items() if text
    }
    assert [*machine.finish()] == found
    assert machine.outcomes("f2") == {}


def test_projections_that_were_written_again_are_no_edit(machine: Machine) -> None:
    """A verb within the turn renders them anew; the text of the agent is what is reported."""
    again = PROJECTIONS | {"PROGRESS.md": b"revision 2\n- [x] herons\n"}
    machine.thread.projections = again
    machine.runtime.keep_base(again["PROGRESS.md"])
    machine.runtime.write("PROGRESS.md", again["PROGRESS.md"], writable=False)
    assert machine.outcomes() == {}
    machine.begin()
    assert read(machine.thread.store, "threads/first/PROGRESS.md") == "revision 2\n- [x] herons\n"


def test_scratch_hidden_files_and_logs_of_sessions_stay_where_they_are(machine: Machine) -> None:
    """They never enter the store, and are there for the next turn."""
    paths = ("scratch/a", ".harness/sessions/ada/log.jsonl", "Space/.cache/b", "Space/__pycache__/c.pyc")
    for path in paths:
        machine.write(path, "local\n")
    before = stored(machine.thread.store)
    assert machine.outcomes() == {}
    assert stored(machine.thread.store) == before
    machine.begin()
    assert {*paths} <= machine.shown().keys()


def test_access_counts_at_the_moment_of_the_write(machine: Machine) -> None:
    """What was granted when the turn began does not matter; other sources are not held up."""
    machine.write("Space/docs/herons.md", "late\n")
    machine.write("USER.md", "Ada likes lists.\n")
    machine.granted["space"] = "read"
    found = {one.path: one for one in machine.finish()}
    assert {path: one.outcome for path, one in found.items()} == {
        "Space/docs/herons.md": "refused",
        "USER.md": "accepted",
    }
    assert found["Space/docs/herons.md"].why == "This thread has no write access to space/atlas now."
    assert machine.kept("refused") == {"Space/docs/herons.md": "late\n"}


def test_a_secret_goes_to_quarantine(machine: Machine) -> None:
    """Outside the workspace and the store, named by its rule and line, never itself; a secret that was there is no news."""
    write(machine.thread.store, "spaces/atlas/docs/old.md", f"key: {KEY}\n")
    machine.begin()
    machine.write("Space/docs/old.md", f"key: {KEY}\nmore\n")
    machine.write("Space/docs/herons.md", f"one\nkey: {KEY}\n")
    machine.write("Space/new.md", f"key: {KEY}\n")
    found = {one.path: one for one in machine.finish()}
    assert {path: one.outcome for path, one in found.items()} == {
        "Space/docs/old.md": "accepted",
        "Space/docs/herons.md": "quarantined",
        "Space/new.md": "quarantined",
    }
    assert "line 2" in found["Space/docs/herons.md"].why
    assert KEY not in "".join(prompt_lines(machine.finish()))
    assert [path for path, text in stored(machine.thread.store).items() if KEY in text] == [
        "acme/spaces/atlas/docs/old.md"
    ]
    assert [path for path, text in machine.shown().items() if KEY in text] == ["Space/docs/old.md"]
    assert machine.kept("quarantine").keys() == {"Space/docs/herons.md", "Space/new.md"}


def test_a_file_of_two_gigabytes_is_refused_by_one_line(machine: Machine) -> None:
    """Without reading it."""
    with open(machine.at / "Space/large.bin", "wb") as file:
        os.truncate(file.fileno(), 2 << 30)
    (one,) = machine.finish()
    assert (one.outcome, "2,147,483,648 bytes" in one.why) == ("refused", True)


def test_changes_of_two_sides_are_merged(machine: Machine) -> None:
    """By lines, with the base that the manifest names; appended files take both ends."""
    write(machine.thread.store, "spaces/atlas/docs/herons.md", "ONE\ntwo\nthree\nfour\nfive\n")
    write(machine.thread.store, "threads/first/DECISIONS.md", "- one\n- of a person\n")
    machine.write("Space/docs/herons.md", "one\ntwo\nthree\nfour\nFIVE\n")
    machine.write("DECISIONS.md", "- one\n- of the agent\n")
    assert machine.outcomes() == {"Space/docs/herons.md": "merged", "DECISIONS.md": "merged"}
    store = machine.thread.store
    assert read(store, "spaces/atlas/docs/herons.md") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert read(store, "threads/first/DECISIONS.md") == "- one\n- of a person\n- of the agent\n"
    machine.begin()
    machine.write("DECISIONS.md", "- ONE\n- of a person\n- of the agent\n")
    write(store, "threads/first/DECISIONS.md", "- one\n- of a person\n- of the agent\n- of a person\n")
    assert machine.outcomes("f2") == {"DECISIONS.md": "merged"}
    assert read(store, "threads/first/DECISIONS.md") == "- ONE\n- of a person\n- of the agent\n- of a person\n"


@pytest.mark.parametrize("without_base", [False, True])
def test_what_does_not_merge_is_beside_the_file(machine: Machine, without_base: bool) -> None:
    """Both contents are in the source, and a line of the next prompt names the file; the same where the base is lost."""
    write(machine.thread.store, "spaces/atlas/docs/herons.md", "of a person\n")
    machine.write("Space/docs/herons.md", "of the agent\n")
    if without_base:
        for path in (Path(machine.runtime.folder) / "base").iterdir():
            path.unlink()
    (one,) = machine.finish()
    assert one.outcome == "conflict"
    found = {path: text for path, text in stored(machine.thread.store).items() if "herons" in path}
    (beside,) = [path for path in found if "conflict" in path]
    assert found == {"acme/spaces/atlas/docs/herons.md": "of a person\n", beside: "of the agent\n"}
    assert prompt_lines([one])[0].startswith("Space/docs/herons.md: conflict.")
    assert beside.rpartition("/")[2] in prompt_lines([one])[0]
    machine.begin()
    assert machine.shown()["Space/docs/herons.md"] == "of a person\n"
    assert machine.shown()["Space/" + beside.partition("atlas/")[2]] == "of the agent\n"


def test_a_deletion_and_an_edit_are_a_conflict(machine: Machine) -> None:
    """On either side; nobody's content is gone."""
    store = machine.thread.store
    write(store, "spaces/atlas/docs/herons.md", "edited\n")
    (machine.at / "Space/docs/herons.md").unlink()
    machine.thread.values.delete(
        key := ("tenants", "acme", "users", "ada", "USER.md"),
        machine.thread.values.get(key),  # type: ignore[arg-type]  # it is there
    )
    machine.write("USER.md", "edited\n")
    assert machine.outcomes() == {"Space/docs/herons.md": "conflict", "USER.md": "conflict"}
    assert read(store, "spaces/atlas/docs/herons.md") == "edited\n"
    assert [text for path, text in stored(store).items() if "users/ada/USER" in path] == ["edited\n"]


def test_only_a_hydrated_workspace_is_reconciled(tmp_path: Path) -> None:
    """A lost folder is no deletion of everything, and a manifest of another version or tenant is refused by one line."""
    machine = Machine(tmp_path / "machine", team(MemoryStore()))
    with pytest.raises(UsageFault):
        machine.finish()
    machine.begin()
    for row in (b'"version": 2', b'"version": 1, "x": "../up"'):
        path = Path(machine.runtime.folder) / "manifest.json"
        good = path.read_bytes()
        path.write_bytes(
            good.replace(b'"version": 1', row, 1) if b"2" in row else good.replace(b"Space/docs", b"Space/..")
        )
        with pytest.raises(
            Exception,
            match=r"manifest.json: (it is not a manifest of version 1|.* has an empty name, or a `\.` or `\.\.`)",
        ) as found:
            machine.finish()
        assert "\n" not in str(found.value)
        path.write_bytes(good)
    other = Machine(tmp_path / "machine", team(MemoryStore(), "other"), tenant="other")
    with pytest.raises(UsageFault, match="of other"):
        other.finish()
    for name in ("../f1", "", "a/b"):
        with pytest.raises(UsageFault):
            machine.finish(name)
    machine.at.rename(tmp_path / "away")
    with pytest.raises(UsageFault):
        machine.finish()


def change(machine: Machine) -> None:
    """What the agent does in the turns that are killed: one file of each outcome."""
    machine.write("Space/docs/herons.md", "one\ntwo\nthree\nfour\nFIVE\n")
    machine.write("Space/docs/new.md", "new\n")
    machine.write("Space/CONTEXT.md", "Of the agent.\n")
    machine.write("DECISIONS.md", "- one\n- of the agent\n")
    machine.write("Space/secret.md", f"key: {KEY}\n")
    machine.write("AGENTS.md", "# Mine\n")
    (machine.at / "memory/birds.md").unlink()


OUTCOMES = {
    "Space/docs/herons.md": "merged",
    "Space/docs/new.md": "accepted",
    "Space/CONTEXT.md": "conflict",
    "DECISIONS.md": "merged",
    "Space/secret.md": "quarantined",
    "AGENTS.md": "refused",
    "memory/birds.md": "accepted",
}


def test_a_finalize_that_is_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    """Killed before each step: every outcome and every source is as if it had not been, and twice is once."""
    url = f"file://{tmp_path}/store"
    store = team(open_store(url))
    machine = Machine(tmp_path / "machine", store)
    machine.begin()
    change(machine)
    write(store, "spaces/atlas/docs/herons.md", "ONE\ntwo\nthree\nfour\nfive\n")
    write(store, "spaces/atlas/CONTEXT.md", "Of a person.\n")
    write(store, "threads/first/DECISIONS.md", "- one\n- of a person\n")
    before = crash.contents(str(tmp_path))
    assert machine.outcomes() == OUTCOMES
    wanted, shown = stored(store), machine.shown()
    for _ in crash.stops(lambda: Machine(tmp_path / "machine", open_store(url)).finish()):
        again = Machine(tmp_path / "machine", open_store(url))
        assert (again.outcomes(), stored(again.thread.store), again.shown()) == (OUTCOMES, wanted, shown)
        assert again.kept("quarantine") == {"Space/secret.md": f"key: {KEY}\n"}
        assert again.kept("refused") == {"AGENTS.md": "# Mine\n"}
        crash.lay_out(str(tmp_path), before)


class Meddling(CountingStore):
    """A store in which somebody acts just before the n-th write, or after it."""

    def __init__(self, store: Store, at: int, act: Callable[[], None], *, after: bool = False) -> None:
        super().__init__(store)
        self.at, self.act, self.after = at, act, after

    def put(self, key: tuple[str, ...], data: bytes, expect: str) -> str:
        """See Store."""
        is_now = self.count["put"] == self.at
        if is_now and not self.after:
            self.act()
        version = super().put(key, data, expect)
        if is_now and self.after:
            self.act()
        return version


def test_races_of_access(tmp_path: Path) -> None:
    """Revoked in the middle: each file is accepted and in the source, or refused and kept."""
    for race in range(RACES):
        store = team(MemoryStore())
        machine = Machine(tmp_path / str(race), store)
        machine.begin()
        texts = {f"Space/docs/{number}.md": f"{race} {number}\n" for number in range(5)}
        for path, text in texts.items():
            machine.write(path, text)

        def revoke(machine: Machine = machine) -> None:
            machine.granted["space"] = ""

        machine.thread.values.store = Meddling(store, race % 11, revoke)
        found = machine.outcomes()
        inside = {path for path, text in texts.items() if read(store, f"spaces/atlas/{path[6:]}") == text}
        assert inside == {path for path, outcome in found.items() if outcome == "accepted"}
        assert machine.kept("refused") == {path: text for path, text in texts.items() if path not in inside}
        assert found.keys() == texts.keys()


def test_races_with_a_person_who_edits_the_source(tmp_path: Path) -> None:
    """Each line of both is in the source afterwards, in the file or in the one beside it."""
    for race in range(RACES):
        store = team(MemoryStore())
        machine = Machine(tmp_path / str(race), store)
        machine.begin()
        machine.write("Space/docs/herons.md", "one\ntwo\nthree\nfour\nof the agent\n")
        machine.write("DECISIONS.md", "- one\n- of the agent\n")

        def edit(store: Store = store, line: str = ("one\n", "four\n")[race % 2]) -> None:
            now = read(store, "spaces/atlas/docs/herons.md") or ""
            write(store, "spaces/atlas/docs/herons.md", now.replace(line, "of a person\n"))
            write(
                store,
                "threads/first/DECISIONS.md",
                (read(store, "threads/first/DECISIONS.md") or "") + "- of a person\n",
            )

        machine.thread.values.store = Meddling(store, race % 5, edit)
        assert {*machine.outcomes().values()} <= {"accepted", "merged", "conflict"}
        found = "".join(text for path, text in stored(store).items() if "herons" in path)
        assert "of the agent" in found
        if machine.thread.values.store.count["put"] > race % 5:
            assert "of a person" in found
            decisions = (read(store, "threads/first/DECISIONS.md") or "").splitlines()
            assert sorted(decisions) == ["- of a person", "- of the agent", "- one"]


def test_races_of_two_threads_that_edit_one_file(tmp_path: Path) -> None:
    """At once, over SQLite: what merges is merged, and what does not is beside the file."""
    team(open_store(f"sqlite://{tmp_path}/new.db"))
    for race in range(0, RACES, 1 if crash.TORTURE else 4):
        shutil.copyfile(tmp_path / "new.db", tmp_path / f"{race}.db")
        go = threading.Barrier(2)

        def turn(number: int, race: int = race, go: threading.Barrier = go) -> None:
            thread = THREAD.replace(id=f"id-of-{number}", folder=f"thread-{number}")
            store = open_store(f"sqlite://{tmp_path}/{race}.db")
            machine = Machine(tmp_path / f"{race}-{number}", store, [*SOURCES[:3], thread])
            machine.begin()
            text = (machine.at / "Space/docs/herons.md").read_text()
            machine.write("Space/docs/herons.md", text.replace(("one", "five")[number], f"of {number}"))
            machine.write("Space/CONTEXT.md", f"of {number}\n")
            go.wait()
            machine.finish()

        with ThreadPoolExecutor(2) as together:
            list(together.map(turn, range(2)))
        store = open_store(f"sqlite://{tmp_path}/{race}.db")
        assert read(store, "spaces/atlas/docs/herons.md") == "of 0\ntwo\nthree\nfour\nof 1\n"
        found = sorted(text for path, text in stored(store).items() if "spaces/atlas/CONTEXT" in path)
        assert found == ["of 0\n", "of 1\n"]


def test_a_line_that_two_append_at_once_is_there_twice(machine: Machine) -> None:
    """A write that failed is not taken for one that went in."""
    store = machine.thread.store
    machine.write("DECISIONS.md", "- one\n- two\n")
    machine.thread.values.store = Meddling(
        store, 1, lambda: write(store, "threads/first/DECISIONS.md", "- one\n- two\n- three\n")
    )
    assert machine.outcomes() == {"DECISIONS.md": "merged"}
    assert read(store, "threads/first/DECISIONS.md") == "- one\n- two\n- three\n- two\n"


def test_races_of_one_finalize(tmp_path: Path) -> None:
    """Ended at any write by a lost place at the gate, and called again with other edits between: once is enough."""
    for race in range(RACES):
        store = team(MemoryStore())
        machine = Machine(tmp_path / str(race), store)
        machine.begin()
        change(machine)

        def lose() -> None:
            raise LockBusy("The thread has a newer turn.")

        machine.thread.values.store = Meddling(store, race // 4 % 9, lose, after=race % 4 > 1)
        try:
            first = machine.outcomes()
        except LockBusy:
            if race % 2:
                write(
                    store, "threads/first/DECISIONS.md", (read(store, "threads/first/DECISIONS.md") or "") + "- later\n"
                )
            machine.thread.values.store = store
            first = machine.outcomes()
        machine.thread.values.store = store
        assert machine.outcomes() == first
        decisions = (read(store, "threads/first/DECISIONS.md") or "").splitlines()
        assert decisions.count("- of the agent") == decisions.count("- one") == 1
        assert read(store, "spaces/atlas/docs/new.md") == "new\n"
        assert not any("conflict" in path for path in stored(store))


def test_nothing_goes_to_another_tenant(tmp_path: Path) -> None:
    """Whatever names an agent gives its files."""
    store = team(team(MemoryStore()), "other")
    before = {path: text for path, text in stored(store).items() if path.startswith("other/")}
    machine = Machine(tmp_path / "machine", store)
    machine.begin()
    for path in ("Space/%2E%2E/x.md", "Space/tenants/other/x.md", "Space/docs/..\\x.md", "memory/\u2024\u2024/x.md"):
        machine.write(path, "text\n")
    machine.finish()
    assert {path: text for path, text in stored(store).items() if path.startswith("other/")} == before
    assert len(before) == len(FILES)
