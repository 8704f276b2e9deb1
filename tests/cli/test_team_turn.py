"""`harness team run`: a turn is a run of any agent, here or on a machine, in a mission of the thread's own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.filesystem.stored_files import FileValues
from harness.mission import mission, runs
from harness.state.layout import Layout
from harness.stores.urls import open_store
from tests.cli.test_team import said, team, value
from tests.cli.test_values import contracted
from tests.crash import sampled
from tests.missions import PROGRAM, House, tagged, until

__all__ = ["team"]

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

WORK = """cat > prompt; set -e
test "$(cat Space/docs/price.md)" = 10 && test ! -s {folder}/team.db && test -z "$(ls {folder}/sources)"
echo 12 > Space/docs/price.md
echo '- 12 is the price' >> DECISIONS.md
harness task done T-2 signed > said && grep -q 'DocuSign: done' PROGRESS.md
for words in 'task reopen T-9 x' 'task accept T-2' 'goal add deal X' 'task list deal' 'task start T-2 --by ann'
do harness $words 2>> said && false; done
mkdir -p scratch && mv prompt said scratch
"""


@pytest.fixture
def deal(team: House) -> House:
    """The thread `deal` with a task and a file of its space; the agent `mine` is a program, and `here` a machine."""
    config, work = team.state / "config.toml", json.dumps(WORK.format(folder=team.folder) + "echo It is 12.")
    more = f'files = "file://{team.folder}/sources"\n[machines.here]\ncommand = []\n'
    config.write_text(f'{config.read_text()}{more}[agents.mine]\ncommand = ["sh", "-c", {work}]\n')
    said(team, "goal add deal Sign --by ann")
    said(team, "task add G-1 DocuSign --by ann")
    team.script("teammate", {"run": WORK.format(folder=team.folder)}, {"usage": {"input": 7}}, {"say": "It is 12."})
    write(team, "10\n")
    return team


def file_of(house: House, path: str) -> tuple[FileValues, tuple[str, ...]]:
    """A file of the sources."""
    return FileValues(open_store(f"file://{house.folder}/sources"), ()), ("tenants", "acme", *path.split("/"))


def write(house: House, text: str) -> None:
    """The price, from elsewhere."""
    values, key = file_of(house, "spaces/sales/docs/price.md")
    values.put(key, text.encode(), values.get(key))


def read(house: House, path: str = "spaces/sales/docs/price.md") -> str:
    """A file of the sources."""
    values, key = file_of(house, path)
    found = values.get(key)
    return ((found and found.data) or b"").decode()


def folder(house: House) -> Path:
    """The folder of the thread on this machine."""
    (found,) = (house.folder / "state/harness/team").iterdir()
    return found


def tree(house: House) -> Path:
    """The workspace."""
    return house.folder / "state/harness" / mission.load(Layout(str(folder(house) / "mission"))).id / "tree-1"


WAYS = [[], ["--agent", "mine"], ["--on", "here"], ["--on", "here", "--agent", "mine"]]


@pytest.mark.parametrize("words", sampled(WAYS, lambda one: len(one) in (0, 4)), ids=" ".join)
def test_a_turn_is_a_run_of_any_agent(deal: House, words: list[str]) -> None:
    """Files by reconcile, status by verbs of its inbox, whose projection it sees; the run is in the log, and replays."""
    done = deal.harness("team", "run", "deal", "What is\nthe price?", *words, "--json")
    assert done.code == 0, done
    found: dict[str, Any] = json.loads(done.out)
    assert sorted(found) == sorted(contracted()["team run THREAD MESSAGE"])
    assert found["answer"].strip() == "It is 12."
    assert {one["path"]: one["outcome"] for one in found["files"]} == {
        "DECISIONS.md": "accepted",
        "Space/docs/price.md": "accepted",
    }
    assert read(deal) == "12\n" and read(deal, "threads/deal/DECISIONS.md") == "- 12 is the price\n"
    assert said(deal, "task list deal") == "T-2 DocuSign: done\n"
    at = ("-C", found["mission"])
    log = json.loads(deal.program(*at, "log", "--json").out)
    ran = runs.result(Layout(found["mission"]), found["run"])
    assert ran and (ran.outcome, ran.confined, log["run"]) == ("ok", "bubblewrap", found["run"])
    assert deal.program(*at, "replay", found["run"]).code == 0
    prompt = Path(Layout(found["mission"]).run(found["run"]).prompt).read_text()
    assert "What is\nthe price?" in prompt and "## SPEC.md" not in prompt
    if "here" not in words:
        assert (tree(deal) / "Space/docs/price.md").read_text() == "12\n"
        lines = (tree(deal) / "scratch/said").read_text().split("\n")
        assert (
            lines[0] == "T-2 DocuSign: done" and "no task 'T-9'" in lines[1] and "'accept' does not apply" in lines[2]
        )
        assert "not goal_add" in lines[3] and "'harness task list' is not for the inside" in lines[4]
        assert "Leave out --by" in lines[5]


def test_the_next_turn_has_the_outcome_of_the_last_one_and_what_changed_elsewhere(deal: House) -> None:
    """Read-only files are so on disk, and an edit of one is a line of the prompt; a secret is in quarantine."""
    more = "rm Space/docs/price.md; echo '*.log' > Space/.gitignore; echo a > Space/a.log"
    edits = (
        f"test $(stat -c %a GOAL.md) = 444 && chmod +w GOAL.md; echo all done > GOAL.md; echo {KEY} > Space/docs/key"
    )
    deal.script("teammate", {"run": f"{edits}; {more}"}, {"say": "Done."})
    out = said(deal, "team run deal hello")
    assert [line.split()[:2] for line in out.split("\n")[1:-1]] == [
        ["refused", "GOAL.md"],
        ["accepted", "Space/a.log"],
        ["quarantined", "Space/docs/key"],
        ["accepted", "Space/docs/price.md"],
    ]
    assert (folder(deal) / "mission/.harness/runs").is_dir() and read(deal) == ""
    write(deal, "14\n")
    deal.script("teammate", {"run": "cat Space/docs/price.md GOAL.md > scratch.txt"}, {"say": "Done."})
    out = said(deal, "team run deal again")
    assert out == "Done.\n  refused      scratch.txt  No file can be added here. Use Space/, memory/ or scratch/.\n"
    (kept,) = folder(deal).glob("refused/*/scratch.txt")
    assert kept.read_text().startswith("14\n<!-- revision") and "all done" not in kept.read_text()
    newest = next(runs.finished(Layout(str(folder(deal) / "mission")))).run
    prompt = Path(Layout(str(folder(deal) / "mission")).run(newest).prompt).read_text()
    assert "again\n\nThe sources did not accept" in prompt and "- GOAL.md: refused." in prompt and "hello" not in prompt


@pytest.mark.parametrize("words", [[], ["--on", "here"]])
def test_a_turn_that_is_killed_loses_nothing(deal: House, words: list[str]) -> None:
    """Its agent ends with it; a task that it ended is done; its files are kept, and the next turn takes its message, too."""
    work = "harness task done T-2 signed && echo 99 > Space/docs/price.md && sleep 60"
    deal.script("teammate", {"run": work}, {"say": "Done."})
    begun = [sys.executable, "-P", str(PROGRAM), "team", "run", "deal", "First.", *words]
    with subprocess.Popen(begun, cwd=deal.project, env=deal.env, stderr=subprocess.DEVNULL) as turn:
        until(lambda: "done" in deal.harness("task", "list", "deal").out)
        until(lambda: "99\n" in changed(deal))
        turn.kill()
    made = mission.load(Layout(str(folder(deal) / "mission"))).id
    until(lambda: not tagged(made))
    deal.script("teammate", {"run": "cat Space/docs/price.md > scratch/now || true"}, {"say": "Both."})
    out = ""
    while not out:
        done = deal.harness("team", "run", "deal", "Second.")
        assert done.code in (0, 75), done
        out = done.out
    assert out == "Both.\n" and read(deal) == "10\n"
    if not words:
        assert (folder(deal) / "refused/unfinished/Space/docs/price.md").read_text() == "99\n"
    first, second = sorted(runs.finished(Layout(str(folder(deal) / "mission"))), key=lambda one: one.run)
    prompt = Path(Layout(str(folder(deal) / "mission")).run(second.run).prompt).read_text()
    assert (first.outcome, second.outcome, "First.\nSecond." in prompt) == ("killed", "ok", True)


def changed(house: House) -> set[str]:
    """The contents of the price in all trees."""
    return {path.read_text() for path in (house.folder / "state").rglob("tree-1/Space/docs/price.md")}


def test_a_signal_ends_a_turn_and_an_agent_that_fails_says_why(deal: House) -> None:
    """Both with their code; what an agent did before it failed is taken."""
    deal.script("teammate", {"run": "echo 11 > Space/docs/price.md"}, {"fail": "agent_error", "reason": "no luck"})
    done = deal.harness("team", "run", "deal", "hello")
    assert (done.code, done.out) == (10, "no luck\n  accepted     Space/docs/price.md\n"), done
    assert deal.harness("team", "run", "deal", "hello", "--agent", "nobody").code == 65
    assert deal.harness("team", "run", "deal", "hello", "--on", "moon").code == 64
    deal.script("teammate", {"run": "echo 13 > Space/docs/price.md; sleep 60"}, {"say": "Done."})
    begun = [sys.executable, "-P", str(PROGRAM), "team", "run", "deal", "hello"]
    with subprocess.Popen(begun, cwd=deal.project, env=deal.env, stderr=subprocess.DEVNULL) as turn:
        until(lambda: "13\n" in changed(deal))
        os.kill(turn.pid, signal.SIGTERM)
    assert (turn.returncode, read(deal)) == (143, "11\n")


def test_a_cap_ends_the_turns_of_a_thread(deal: House) -> None:
    """On cost or tokens; the line names it."""
    config = deal.state / "config.toml"
    config.write_text("[limits]\nmax_tokens = 5\n" + config.read_text().replace('agent = "scripted"\n', ""))
    config.write_text('agent = "scripted"\n' + config.read_text())
    assert value(deal, "team run deal hello")["answer"] == "It is 12."
    done = deal.harness("team", "run", "deal", "hello")
    assert (done.code, "A cap in config.toml is reached" in done.err) == (11, True), done


FAULTS = [  # a statement that breaks the database and one that mends it, "" for the manifest; the code, and why
    ("insert into team_migrations values (99, 'new.sql')", "delete from team_migrations where number = 99", 65, "knows"),
    ("update team_migrations set number = -2 where number = 2", "update team_migrations set number = 2 where number < 0",
     65, "Run: run.sh team init"),
    ("update team_spaces set status = 'archived'", "update team_spaces set status = 'active'", 64, "'sales' is archived."),
    ("", "", 65, "it is not a manifest of version 1. Delete it"),
]  # fmt: skip
COMMANDS = ("team run deal hello", "task done T-2 --by ann", "goal add deal X --by ann")


def everything(house: House) -> tuple[list[str], dict[str, bytes]]:
    """The rows of the database, and the sources."""
    with contextlib.closing(sqlite3.connect(house.folder / "team.db")) as database:
        rows = list(database.iterdump())
    return rows, {str(path): path.read_bytes() for path in (house.folder / "sources").rglob("*") if path.is_file()}


def test_a_file_of_two_gigabytes_is_refused_and_a_broken_team_changes_nothing(deal: House) -> None:
    """One line of each command: the database behind or ahead, an archived space, another tenant, a manifest of another version,
    a name that climbs."""
    deal.script("teammate", {"run": "truncate -s 2G Space/large.bin"}, {"say": "Done."})
    assert "2,147,483,648 bytes; a file of a workspace has at most" in said(deal, "team run deal hello")
    assert not [*(deal.folder / "sources").rglob("*large*")]
    manifest = folder(deal) / "manifest.json"
    good = manifest.read_bytes()
    manifest.write_bytes(good.replace(b'"version": 1', b'"version": 2', 1))
    with contextlib.closing(sqlite3.connect(deal.folder / "team.db", isolation_level=None)) as database:
        for broken, mended, code, why in FAULTS:
            database.execute(broken)
            for words in COMMANDS if broken else COMMANDS[:1]:
                refused(deal, words.split(), code, why)
            database.execute(mended)
    for words in COMMANDS:
        refused(deal, [*words.split(), "--tenant", "globex"], 64, "There is no tenant 'globex'")
    refused(deal, ["team", "run", "../deal", "hello"], 64, "There is no thread '../deal' in this tenant.")
    manifest.write_bytes(good)
    deal.script("teammate", {"say": "Done."})
    assert said(deal, "team run deal again") == "Done.\n"


def refused(house: House, words: list[str], code: int, why: str) -> None:
    """One line and this code; no row changes but the number of the newest turn, and no source."""
    before = everything(house)
    done = house.harness(*words)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1) and why in done.err, done
    after = everything(house)
    assert (after[1], [row for row in after[0] if row not in before[0] and "team_threads" not in row]) == (
        before[1],
        [],
    )
