"""`replay --mission`: a recorded mission is a test. It comes out the same, or the first thing that does not is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.missions import House, copied, enter, listing, until
from tests.planned import due, reply

PLAN = {
    "features": [
        {"id": "F-001", "title": "One", "claims": ["VAL-ONE"]},
        {"id": "F-002", "title": "Two", "claims": ["VAL-TWO"], "depends_on": ["F-001"]},
    ],
    "contract": [
        {"id": "VAL-ONE", "claim": "one.txt says one", "checks": ["grep -x one one.txt"]},
        {"id": "VAL-TWO", "claim": "two.bin is there", "checks": ["test -s two.bin"]},
    ],
}
EARLY = {
    **PLAN,
    "contract": [{**PLAN["contract"][0], "checks": ["test -s main.py"]}, PLAN["contract"][1]],
}
NOTE = {"run": "harness note --tag TRICK 'grep -x matches the whole line, so a trailing space is red'"}
TOKENS = {"usage": {"input": 100, "output": 20, "cost_usd": 0.5, "cost_source": "reported", "raw": [{"a": 1}]}}


def step(house: House) -> str:
    """Carry out what is due, as the loop does; gives the decision."""
    line = due(house)
    word, *rest = line.split(" ")
    if word == "NEXT":
        done = house.role(*rest, HARNESS_LOOP=str(os.getpid()))
        assert "Traceback" not in done.err, done
    return line


def until_it_ends(house: House) -> str:
    """Carry out what is due until nothing is; gives the last decision."""
    for _ in range(20):
        line = step(house)
        if not line.startswith("NEXT"):
            return line
    raise AssertionError("it does not end")


def write_scripts(house: House) -> None:
    """Agents that go wrong once: a plan that is refused, a worker whose work is red, one that is cut short."""
    house.script("planner", {"run": submitted(EARLY)}, {"run": submitted(PLAN)}, TOKENS, {"say": "planned"})
    implemented = reply(status="implemented", summary="one", notes=[{"tag": "AVOID", "text": "no spaces at the end"}])
    wrong = [{"run": "printf 'one \\n' > one.txt; printf '\\0\\1' > more.bin"}, NOTE, implemented]
    house.script("worker-F-001.1", *wrong)
    house.script("worker-F-001.2", {"run": "echo one > one.txt; rm more.bin; ln -s one.txt link; harness check F-001"})
    house.script(
        "worker-F-002", {"run": "head -c 2000 /dev/zero > two.bin; chmod 755 main.py"}, reply(status="implemented")
    )
    adversarial = reply(checks=[{"claim": "VAL-ONE", "run": "test -L link", "why": "a link"}])
    house.script("validator-F-001", {"run": "echo broken >> main.py"}, adversarial)
    issue = {"run": "harness issue 'It has no manual' --severity nit --evidence 'ls'"}
    house.script("validator-F-002", issue, reply())


def submitted(plan: Any) -> str:
    return f"harness reply - <<'END' || true\n{json.dumps(plan)}\nEND"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mission, played once, with everything in it that a playback must follow."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("finished")
        house = House(folder, enter(patch, folder))
        house.repository()
        house.harness("init")
        house.config('agent = "scripted"', "curate_after = 6")
        write_scripts(house)
        assert [step(house) for _ in range(3)] == ["NEXT planner", "NEXT worker F-001", "NEXT validator F-001"]
        assert house.result()["verdict"] == "red"
        house.write("README.md", "by a person\n")
        house.git("add", "README.md")
        house.git("commit", "-q", "-m", "a manual")
        assert house.harness("feature", "set", "F-002", "priority=3").code == 0
        assert house.harness("note", "the machine has no network").code == 0
        house.write("main.py", "print('edited')\n")  # taken as a commit with their name
        assert step(house) == "NEXT worker F-001"
        assert until_it_ends(house) == "DONE"
        return folder


@pytest.fixture
def played(bare: House, finished: Path) -> House:
    """A copy of that mission, whose agents are gone."""
    house = copied(finished, bare.folder, bare.env)
    shutil.copytree(finished / "state", bare.folder / "state", symlinks=True, dirs_exist_ok=True)
    house.config('agent = "scripted"', "curate_after = 6")
    return house


@pytest.fixture
def begun(unbegun: House) -> House:
    """A mission with a plan and one run of a worker, whose agents are gone."""
    unbegun.harness("init")
    unbegun.config('agent = "scripted"')
    unbegun.script("planner", reply(**PLAN))
    unbegun.script("worker", {"run": "echo one > one.txt"}, reply(status="implemented"))
    assert [step(unbegun) for _ in range(2)] == ["NEXT planner", "NEXT worker F-001"]
    shutil.rmtree(unbegun.scripts)
    return unbegun


def play(house: House, *words: str) -> dict[str, Any]:
    """What `replay --mission` says, with its exit code."""
    done = house.program("replay", "--mission", *words, "--json")
    assert "Traceback" not in done.err, done
    return {"code": done.code, **(json.loads(done.out) if done.out else {"err": done.err})}


def unchanged(house: House) -> dict[str, bytes]:
    """Everything in the folder of a house that a playback must leave as it is."""
    house.program("next")  # its git reads the copied folder from here on
    return listing(house.folder, "temporary", "my project/.harness/locks", "my project/.harness/cache")


def test_a_mission_comes_out_the_same_and_nothing_of_it_is_touched(played: House) -> None:
    """A refused plan, a red try, a retry, notes, a person's commit, edit, order and note in between, a curation, a sweep."""
    before = unchanged(played)
    made = play(played)
    assert (made["code"], made["first"], made["missing"]) == (0, None, []), made
    assert made["played"] == made["runs"] == len(played.ran())
    assert unchanged(played) == before
    assert [name for name in os.listdir(played.folder / "temporary") if "playback" in name] == []


def nth(house: House, number: int) -> str:
    """The id of the run with this place in the run log."""
    return str(house.ran()[number]["run"])


def other_check(house: House) -> None:
    path = Path(house.layout.run(nth(house, 0)).reply)
    path.write_text(path.read_text().replace("test -s two.bin", "test -s three.bin"))


def other_exit(house: House) -> None:
    path = Path(house.layout.run(nth(house, 2)).receipts)
    path.write_text(path.read_text().replace('"exit":1', '"exit":0'))


def test_the_first_thing_that_came_out_otherwise_is_named(begun: House) -> None:
    """The run, what it is, what was recorded and what came out now; exit code 65."""
    other_check(begun)
    made = play(begun)
    first = made["first"]
    assert (made["code"], made["played"], first["run"]) == (65, 1, nth(begun, 0))
    assert first["what"].startswith("the exit of a check of VAL-TWO (before): test -s two.bin")
    assert (first["expected"], first["got"]) == ("1", "not run")


def test_the_place_where_two_texts_part_is_marked(played: House) -> None:
    """A long line is shown from shortly before that place."""
    path = played.state / "memory/MEMORY.md"
    (line,) = (line for line in path.read_text().split("\n") if "a trailing space is red" in line)
    path.write_text(path.read_text().replace(line, line.replace("trailing", "leading")))
    _, recorded, now, mark, *_ = played.program("replay", "--mission").out.split("\n")
    at = mark.index("^")
    assert (recorded[at:][:7], now[at:][:8]) == ("leading", "trailing"), (recorded, now, mark)
    assert recorded.startswith("  recorded  …") and line.startswith("- [")


def test_another_rule_is_named_by_the_decision(begun: House) -> None:
    """`--config FILE` plays the mission under other settings: a cap that it did not have."""
    other = begun.write("other.toml", 'agent = "scripted"\n[limits]\nmax_runs = 1\n')
    done = begun.program("replay", "--mission", "--config", str(other))
    assert done.code == 65, done
    assert f"/{nth(begun, 1)}: the decision before it differs, after 1 of " in done.out
    assert "  recorded  NEXT worker F-001\n  now       BUDGET runs\n" in done.out
    assert begun.harness("replay", "--mission", "--config", "nowhere.toml").code == 64


def test_an_archived_mission_is_played_by_its_id(played: House) -> None:
    """Its state is elsewhere, its commits are in the repository; a broken record of it is named."""
    other_exit(played)
    made = json.loads(played.read("mission.json"))["id"]
    run = nth(played, 2)
    assert played.program("init", "--new", "--abandon").code == 0
    done = played.program("replay", "--mission", made)
    assert (done.code, f"{made}/{run}: the exit of a check of VAL-ONE (after): grep -x one" in done.out) == (
        65,
        True,
    ), done
    assert "  recorded  0\n  now       1\n" in done.out and "^" not in done.out
    assert "its files were changed since the run ended" in done.out
    assert played.program("replay", "--mission", "other-000000").code == 64
    assert played.program("replay", "--mission").code == 64  # the new one has no run


# runs at once, killed runs, and runs that a person started


def noted(house: House, text: str) -> bool:
    path = house.state / "memory/raw.md"
    return path.exists() and text in path.read_text()


def test_runs_at_once_and_killed_runs_are_played_as_what_they_were(house: House) -> None:
    """One opens first and settles last, one is killed in between with work in its tree, one is started by hand."""
    slow = "echo 1 > 1.txt; echo shared > both.txt; harness note first; until test -e .harness/STEER.md; do sleep 0.01; done"
    house.script("worker-F-001", {"run": slow}, reply(status="implemented"))
    house.script("worker-F-002", {"run": "echo half > 2.txt; harness note second; sleep 60"})
    first = house.begin_role("worker", "F-001")
    until(lambda: noted(house, "first"))
    second = house.begin_role("worker", "F-002")
    until(lambda: noted(house, "second"))
    second.send_signal(signal.SIGKILL)
    second.wait()
    house.program("init", "--quietly")
    house.script("worker-F-002", {"run": "echo two > 2.txt; echo other > both.txt"}, reply(status="implemented"))
    assert house.role("worker", "F-002").code == 0
    house.write(".harness/STEER.md")
    first.wait()
    house.role("worker", "F-001")
    house.role("validator", "F-002")
    shutil.rmtree(house.scripts)
    outcomes = [(row["feature"], row["outcome"]) for row in house.ran()]
    assert outcomes[:3] == [("F-002", "killed"), ("F-002", "ok"), ("F-001", "conflict")]
    made = play(house)
    assert (made["code"], made["first"]) == (0, None), made
    assert made["played"] == len(outcomes)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_mission_comes_out_the_same(house: House, how: signal.Signals) -> None:
    """A worker that was ended by a signal: it closed itself, or it died and is not settled yet; then its feature is done."""
    house.script("worker-F-001", {"run": "echo half > 1.txt; harness note second; sleep 60"})
    house.work({"say": "hello"}, feature="F-002")
    cut = house.begin_role("worker", "F-001")
    until(lambda: noted(house, "second"))
    cut.send_signal(how)
    cut.wait()
    if how == signal.SIGKILL:
        made = play(house)
        assert (made["code"], made.get("first"), len(made["missing"])) == (0, None, 1), made
    house.script("worker-F-001", {"run": "echo one > 1.txt"}, reply(status="implemented"))
    until(lambda: house.role("worker", "F-001").code == 0)
    reasons = [row["reason"] for row in house.ran() if row["outcome"] == "killed"]
    assert reasons == ["interrupted by signal 15" if how == signal.SIGTERM else "the run died before it closed"]
    made = play(house)
    assert (made["code"], made["first"], made["missing"]) == (0, None, []), made


def test_a_restored_mission_comes_out_the_same(house: House) -> None:
    """Put back twice, the second time to what was before the first; issues, notes and orders of people on each side."""
    house.work({"run": "echo one > 1.txt"}, reply(status="implemented"))
    house.role("validator", "F-001")
    said(house, "before")
    before = str(house.program("snapshot", "restore", nth(house, 0)).out)
    said(house, "between")
    house.work({"run": "echo other > 2.txt; harness note 'not one'"}, reply(status="implemented"), feature="F-002")
    (kept,) = re.findall(r"snapshot restore (\S+-before-restore)", before)
    assert house.program("snapshot", "restore", kept).code == 0
    said(house, "after")
    house.work({"run": "echo two > 2.txt"}, reply(status="implemented"), feature="F-002")
    house.role("validator", "F-002")
    house.role("curator")
    assert all((f"it is {time}" in house.read("memory/archive.jsonl")) == (time != "between") for time in TIMES)
    made = play(house)
    assert (made["code"], made["first"], made["missing"]) == (0, None, []), made
    assert made["played"] == len(house.ran()) == 6


TIMES = ("before", "between", "after")


def said(house: House, time: str) -> None:
    """What a person does at that time: an issue, a note, an order."""
    assert house.program("issue", f"It is {time}", "--severity", "nit").code == 0
    assert house.program("note", "--tag", "CONTEXT", f"it is {time}").code == 0
    assert house.program("feature", "set", "F-002", f"priority={TIMES.index(time) + 2}").code == 0


def test_there_is_nothing_to_play_without_a_run_or_inside_one(house: House) -> None:
    """64, and the options that go together."""
    assert house.program("replay", "--mission").code == 64
    assert house.harness("replay", "--mission", "--all").code == 64
    house.work({"run": "harness replay --mission > said 2>&1 || echo $? >> said"})
    assert house.git("show", "HEAD:said").endswith("\n64")


def test_a_run_that_was_forgotten_ends_it_and_is_named(house: House) -> None:
    """65: the runs played before it are equal, and the rest is unknown."""
    house.work({"run": "touch 1.txt"})
    gone = house.work({"say": "nothing"}, feature="F-002")["run"]
    assert house.program("forget", gone, "--yes").code == 0
    done = house.program("replay", "--mission")
    assert (done.code, f"none is played from {gone} on" in done.err, "forgotten on" in done.err) == (65, True, True), (
        done
    )
