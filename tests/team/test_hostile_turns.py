"""Turns of agents that are hostile, clumsy or killed: the sources hold, nothing is lost, and the next turn works."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import LockBusy
from harness.stores.urls import open_store
from harness.team.database import Team, open_team
from harness.team.turn import TurnTask, run_turn
from tests import crash
from tests.team.conftest import Place
from tests.team.test_races import DECISIONS, Talk
from tests.team.workspaces import read, stored, write

pytestmark = pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DOCS = {"docs/a.md": "a\n", "docs/b.md": "b\n", "docs/key.md": f"{KEY}\n"}
KILLS = 200 if crash.TORTURE else 20


@pytest.fixture
def talk(team: Team, tmp_path: Path) -> Talk:
    """The thread `deal`, with files in a folder."""
    store = open_store(f"file://{tmp_path}/sources")
    write(store, "agents/scribe/AGENTS.md", "# Scribe\n")
    write(store, "agents/scribe/memory/style.md", "Short.\n")
    write(store, "users/ann/USER.md", "Ann\n")
    write(store, "threads/deal/DECISIONS.md", "- one\n")
    for path, text in DOCS.items():
        write(store, f"spaces/sales/{path}", text)
    (tmp_path / "outside/docs").mkdir(parents=True)
    (tmp_path / "outside/docs/a.md").write_text("of somebody else\n")
    return Talk(team, store, tmp_path / "machine")


def link_the_workspace(at: Path) -> None:
    """Put a link to a folder of somebody else there."""
    shutil.rmtree(at)
    at.symlink_to(at.parents[4] / "outside")


def replace_by_file(at: Path) -> None:
    """Remove it, and put a file there."""
    shutil.rmtree(at)
    at.write_text("a file\n")


def replace_by_folder(at: Path) -> None:
    """Remove a file, and put a folder with a file there."""
    at.unlink()
    at.mkdir()
    (at / "x.md").write_text("in a folder\n")


def irregular(at: Path) -> None:
    """Links, pipes, and a folder that nobody may read."""
    outside = at.parents[4] / "outside"
    (at / "Space/link").symlink_to(outside)
    (at / "Space/docs/a.md").unlink()
    (at / "Space/docs/a.md").symlink_to(outside / "docs/a.md")
    os.mkfifo(at / "Space/pipe")
    (at / "Space/locked").mkdir()
    (at / "Space/locked/x.md").write_text("locked\n")
    (at / "Space/locked").chmod(0)


def odd_names(at: Path) -> None:
    """A new line, an escape, no UTF-8, twins by case and by Unicode, and names that are too long."""
    for name in (
        "new\nline",
        "\x1b[31m",
        os.fsdecode(b"\xff"),
        "docs/A.md",
        "caf\u00e9",
        "cafe\u0301",
        "\ufb01x",
        "n" * 255,
    ):
        (at / "Space" / name).write_text(f"of {name!r}\n")


def deep(at: Path) -> None:
    """A path that is longer than any call takes."""
    here = os.getcwd()
    os.chdir(at / "Space")
    for _ in range(250):
        os.mkdir("d" * 20)
        os.chdir("d" * 20)
    Path("x.md").write_text("deep\n")
    os.chdir(here)


def forge(at: Path) -> None:
    """Write into what is read only, and into the manifest beside the workspace, where nothing confines."""
    manifest = at.parent / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"mode": "read"', b'"mode": "write"'))
    (at / "AGENTS.md").chmod(0o644)
    (at / "AGENTS.md").write_text("# Mine\n")


GONE = {".": "refused"}
CASES: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "the workspace is removed": (shutil.rmtree, GONE),
    "the workspace is a link": (link_the_workspace, GONE),
    "the workspace is a file": (replace_by_file, GONE),
    "the folder of the thread is removed": (lambda at: shutil.rmtree(at.parent), GONE),
    "the manifest is forged": (forge, GONE),
    "the space is a file": (
        lambda at: replace_by_file(at / "Space"),
        {"Space": "refused", **{f"Space/{path}": "accepted" for path in DOCS}},
    ),
    "a folder is a file": (
        lambda at: replace_by_file(at / "Space/docs"),
        {"Space/docs": "refused", **{f"Space/{path}": "accepted" for path in DOCS}},
    ),
    "a file is a folder": (
        lambda at: replace_by_folder(at / "Space/docs/a.md"),
        {"Space/docs/a.md": "accepted", "Space/docs/a.md/x.md": "accepted"},
    ),
    "a projection is a folder": (
        lambda at: replace_by_folder(at / "GOAL.md"),
        {"GOAL.md": "refused", "GOAL.md/x.md": "refused"},
    ),
    "a file of all is a folder": (
        lambda at: replace_by_folder(at / "memory/style.md"),
        {"memory/style.md": "refused", "memory/style.md/x.md": "refused"},
    ),
    "a file is renamed": (
        lambda at: (at / "Space/docs/a.md").rename(at / "Space/docs/d.md"),
        {"Space/docs/a.md": "accepted", "Space/docs/d.md": "accepted"},
    ),
    "a file is renamed to its twin": (
        lambda at: (at / "Space/docs/a.md").rename(at / "Space/docs/A.md"),
        {"Space/docs/a.md": "refused", "Space/docs/A.md": "refused"},
    ),
    "a file is moved to where none can be": (
        lambda at: (at / "Space/docs/a.md").rename(at / "a.md"),
        {"Space/docs/a.md": "refused", "a.md": "refused"},
    ),
    "a file with an old secret is renamed": (
        lambda at: (at / "Space/docs/key.md").rename(at / "Space/docs/old.md"),
        {"Space/docs/key.md": "refused", "Space/docs/old.md": "quarantined"},
    ),
    "a folder is renamed to its twin": (
        lambda at: (at / "Space/docs").rename(at / "Space/Docs"),
        {f"Space/{path}": "refused" for one in DOCS for path in (one, one.replace("docs", "Docs"))},
    ),
    "no regular files": (
        irregular,
        {
            **dict.fromkeys(("Space/link", "Space/docs/a.md", "Space/pipe"), "refused"),
            "Space/locked/x.md": "accepted",
        },
    ),
    "odd names": (
        odd_names,
        {
            **dict.fromkeys(("Space/new\nline", "Space/\x1b[31m", "Space/\udcff", "Space/docs/A.md"), "refused"),
            **dict.fromkeys(("Space/cafe\u0301", "Space/" + "n" * 255), "refused"),
            **dict.fromkeys(("Space/caf\u00e9", "Space/\ufb01x"), "accepted"),
        },
    ),
    "a path too long for any call": (deep, {}),
    "everything is read-only": (lambda at: subprocess.run(["chmod", "-R", "a-w", str(at)], check=True), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_turn_of_a_hostile_or_clumsy_agent(talk: Talk, case: str, tmp_path: Path) -> None:
    """Each file has its outcome and its line, what no source takes is kept, and the turn after it works."""
    act, wanted = CASES[case]
    written = Counter[str]()

    def acted(docs: Path) -> None:
        act(docs.parent.parent)
        for folder, _, names in os.walk(docs.parent.parent):
            for path in (Path(folder) / name for name in names):
                if path.is_file() and not path.is_symlink():
                    written[path.read_text()] += 1

    before = stored(talk.store)
    made = talk.turn(acted)
    outcomes = {one.path: one.outcome for one in made.files}
    assert outcomes == wanted or (case.startswith("a path too long") and {*outcomes.values()} == {"refused"})
    after = stored(talk.store)
    is_here = wanted != GONE
    assert not is_here or written.keys() <= {*after.values()} or written.keys() <= {*after.values(), *talk.kept()}
    assert {path: text for path, text in before.items() if after.get(path) != text}.keys() == {
        f"acme/spaces/sales/{path.removeprefix('Space/')}" for path, outcome in outcomes.items()
        if outcome == "accepted" and f"acme/spaces/sales/{path.removeprefix('Space/')}" in before
    }  # fmt: skip
    assert [path.read_text() for path in (tmp_path / "outside").rglob("*") if path.is_file()] == ["of somebody else\n"]
    again, reasons = talk.turn(), [one for one in made.files if one.why]
    assert (again.files, again.continued) == ([], [])
    assert len(talk.prompts[1].split("\n")) == 1 + (2 + len(reasons) if reasons else 0)
    assert (talk.turn(lambda docs: (docs / "after.md").write_text("after\n"))).files[0].outcome == "accepted"
    assert read(talk.store, "spaces/sales/docs/after.md") == "after\n"


@pytest.mark.parametrize(("mine", "theirs"), [("Note.md", "note.md"), ("plan", "plan/x.md"), ("plan/x.md", "plan")])
def test_what_other_turns_added_since_counts(talk: Talk, mine: str, theirs: str) -> None:
    """Twins, and a file where another has a folder, would be a space that no turn can begin in."""

    def act(docs: Path) -> None:
        (docs / mine).parent.mkdir(exist_ok=True)
        (docs / mine).write_text("mine\n")
        write(talk.store, f"spaces/sales/docs/{theirs}", "theirs\n")

    assert [(one.path, one.outcome) for one in talk.turn(act).files] == [(f"Space/docs/{mine}", "refused")]
    assert read(talk.store, f"spaces/sales/docs/{theirs}") == "theirs\n" and "mine\n" in talk.kept()
    assert talk.turn().files == []


def test_a_turn_that_is_killed_at_any_moment_is_ended_by_the_next(talk: Talk, empty: Place, tmp_path: Path) -> None:
    """Each file is in the source or kept, each line of a log is there once, and nothing is in between."""
    url, seconds, root = f"file://{tmp_path}/sources", random.Random(3), str(talk.root)
    for kill in range(KILLS):
        texts = {f"{number}.md": f"{kill} {number}\n" for number in range(6)}

        def act(task: TurnTask, texts: dict[str, str] = texts, kill: int = kill) -> str:
            docs = Path(task.folder) / "Space/docs"
            for name, text in texts.items():
                (docs / name).write_text(text)
                (tmp_path / f"{kill} {name}").touch()
            with (Path(task.folder) / "DECISIONS.md").open("a") as file:
                file.write(f"- decision {kill}\n")
            write(
                open_store(url), "threads/deal/DECISIONS.md", f"{read(open_store(url), DECISIONS)}- a person {kill}\n"
            )
            return "done"

        def turn(act: Callable[[TurnTask], str] = act) -> None:
            run_turn(open_team(empty.url), open_store(url), "acme", "deal", root, "hello", act)

        begun = time.monotonic()
        if kill == 0:
            assert crash.in_child(turn) == 0
            whole = time.monotonic() - begun
            continue
        pid = crash.start(turn)
        time.sleep(whole * 1.2 * seconds.random())
        os.kill(pid, signal.SIGKILL)
        crash.end(pid)
        talk.turn()
        found, kept = stored(talk.store), talk.kept()
        for name, text in texts.items():
            is_there = found.get(f"acme/spaces/sales/docs/{name}") == text
            assert is_there or text in kept or not (tmp_path / f"{kill} {name}").exists()
        decisions = (read(talk.store, DECISIONS) or "").splitlines()
        assert max(Counter(decisions).values()) == 1
        assert talk.turn().continued == []


def test_of_two_runs_at_once_one_is_told_to_wait(talk: Talk) -> None:
    """And of ten thousand files of one turn, a thousand in the suite, all are in the source."""
    count = 10_000 if crash.TORTURE else 1000

    def act(docs: Path) -> None:
        for number in range(count):
            (docs / f"{number}.md").write_text(f"{number}\n")
        with pytest.raises(LockBusy, match="is running here"):
            talk.turn()

    assert Counter(one.outcome for one in talk.turn(act).files) == {"accepted": count}
