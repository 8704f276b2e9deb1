"""The system text of a conversation: stable first, within one budget, and new as soon as a file is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.base.errors import BrokenFile
from harness.builtin.sessions import _system_text
from harness.builtin.sessions._system_text import SystemTextSource
from harness.builtin.sessions.keys import WORKSPACE, memory_of
from harness.filesystem.keyvalue import KeyValueFiles
from harness.filesystem.transfer import upload
from harness.state.layout import Layout
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import ABSENT, Key, Value

pytestmark = pytest.mark.on_disk


@pytest.fixture(autouse=True)
def nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No layers of this machine's user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HARNESS_USER", raising=False)
    monkeypatch.setattr(_system_text, "POLL_SECONDS", 0.0)


def source(folder: Path, agent: str = "assistant") -> SystemTextSource:
    """The texts of a folder."""
    return SystemTextSource(Layout(str(folder)), agent, DiskStore(str(folder / ".harness/sessions")))


def commit_all(folder: Path) -> None:
    """A person commits everything."""
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for words_ in (["add", "-A"], [*who, "commit", "-qm", "mine"]):
        subprocess.run(["git", "-C", str(folder), *words_], check=True)


def lay(folder: Path) -> None:
    """A workspace: instructions, knowledge, a skill of all and one of alice, and a line that was kept for her."""
    for name, text in {
        "AGENTS.md": "Say please.\n",
        "knowledge/KNOWLEDGE.md": "Herons fish.\n",
        "knowledge/more.md": "More.\n",
        "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: how all deploy\n---\nSo.\n",
        "users/alice/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: how alice deploys\n---\nSo.\n",
        ".harness/sessions/alice/_memory.md": "# Memory\n\n- [2026-01-01] Alice likes tea.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_parts_stand_in_their_order_and_of_a_user_alone_what_is_the_users(tmp_path: Path) -> None:
    """Role, instructions, skills, knowledge, what was kept: without git from the disk."""
    lay(tmp_path)
    text = source(tmp_path).text_for("alice", memory_of("alice")).system
    assert "before the work that it describes: `load_skill`." in text and "harness skill" not in text
    wanted = [
        "# You are the assistant",
        "Say please.",
        "how alice deploys",
        "Herons fish.",
        "knowledge/more.md",
        "likes tea",
    ]
    places = [text.index(one) for one in wanted]
    assert places == sorted(places)
    other = source(tmp_path).text_for("bob", memory_of("bob")).system
    assert "how all deploy" in other and "alice" not in other and "tea" not in other


def test_the_same_files_give_the_same_text_and_a_change_gives_another(tmp_path: Path) -> None:
    """The very same object while nothing changed, so that nothing is made again."""
    lay(tmp_path)
    known = source(tmp_path)
    first = known.text_for("alice", memory_of("alice"))
    assert known.text_for("alice", memory_of("alice")) is first
    (tmp_path / "AGENTS.md").write_text("Say thanks.\n")
    second = known.text_for("alice", memory_of("alice"))
    assert "Say thanks." in second.system and second.key != first.key
    (tmp_path / "skills/deploy/SKILL.md").write_text("no front matter\n")
    found = known.text_for("bob", memory_of("bob")).given
    assert found.skills == [] and found.faults == ["skills/deploy/SKILL.md, line 1: it has no front matter"]
    (tmp_path / "tools.json").write_text("")
    with pytest.raises(BrokenFile, match="the file is empty"):
        known.text_for("carol", memory_of("carol"))


def test_in_a_repository_counts_what_was_committed(tmp_path: Path) -> None:
    """What an agent wrote, and nobody committed, does not."""
    lay(tmp_path)
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    commit_all(tmp_path)
    (tmp_path / "AGENTS.md").write_text("Obey me.\n")
    assert "Say please." in source(tmp_path).text_for("alice", memory_of("alice")).system
    commit_all(tmp_path)
    assert "Obey me." in source(tmp_path).text_for("alice", memory_of("alice")).system


def test_all_parts_share_one_budget(tmp_path: Path) -> None:
    """A large file does not crowd the others out; where it is cut it says so."""
    lay(tmp_path)
    (tmp_path / "AGENTS.md").write_text("A rule that goes on.\n" * 5000)
    (tmp_path / ".harness/config.toml").write_text("[workspace]\nmax_tokens = 500\n")
    text = source(tmp_path).text_for("alice", memory_of("alice")).system
    assert len(text) < 9000
    assert "no room for the rest: AGENTS.md" in text and "Herons fish." in text and "likes tea" in text


def test_users_with_nothing_of_their_own_share_one_text(tmp_path: Path) -> None:
    """In a repository one look for all of them; what a user has, or is kept for one, is that user's alone."""
    lay(tmp_path)
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text(".harness/\n")
    commit_all(tmp_path)
    known = source(tmp_path)
    ann, bob = known.text_for("ann", memory_of("ann")), known.text_for("bob", memory_of("bob"))
    assert ann.system is bob.system and (ann.given.user, bob.given.user) == ("ann", "bob")
    assert (
        "how alice deploys" in known.text_for("alice", memory_of("alice")).system
        and "tea" not in known.text_for("bob", memory_of("bob")).system
    )
    kept = tmp_path / ".harness/sessions/bob/_memory.md"
    kept.parent.mkdir()
    kept.write_text("- [2026-01-01] Bob likes milk.\n")
    assert (
        "milk" in known.text_for("bob", memory_of("bob")).system
        and "milk" not in known.text_for("ann", memory_of("ann")).system
    )


class Watched(MemoryStore):
    """A store that knows which values were read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = list[Key]()

    def get(self, key: Key) -> Value | None:
        """As any store."""
        self.seen.append(key)
        return super().get(key)


def test_files_of_a_workspace_in_a_store_are_read_when_one_has_changed_and_only_then(tmp_path: Path) -> None:
    """A look reads keys; whatever a writer has left, no old text stays."""
    store = Watched()
    files = KeyValueFiles(store, WORKSPACE)
    upload(files, {"AGENTS.md": b"Say please.\n", "knowledge/KNOWLEDGE.md": b"Herons fish.\n"})
    made = SystemTextSource(Layout(str(tmp_path)), "assistant", store, layered=True)

    def reads() -> tuple[int, str]:
        store.seen.clear()
        text = made.text_for("ann", memory_of("ann")).system
        return sum(key[:1] == WORKSPACE for key in store.seen), text

    assert (reads()[0], reads()[0], reads()[0]) == (2, 0, 0)
    files.write("AGENTS.md", b"Say thanks.\n")
    count, text = reads()
    assert count == 2 and "Say thanks." in text and reads()[0] == 0
    store.put((*WORKSPACE, "/AGENTS.md/", "5-99-abc-0"), b"", ABSENT)  # of a writer that was killed
    assert reads()[0] == reads()[0] == 2
    files.delete("AGENTS.md")
    assert "Say thanks." not in reads()[1] and "Herons" in reads()[1]
