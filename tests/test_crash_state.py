"""A run dies, and its agent left junk, a lie, or nothing in the state: the next start restores it, through run.sh.

HARNESS_TORTURE=1 spoils every state file by itself; else some of each kind, and all of them at once."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.decision import views
from harness.mission import runs
from harness.state import files, names
from tests.crash import DYING, sampled
from tests.kill_sweep import Kept, Template
from tests.missions import CHECKOUT, Done, House, until
from tests.run.test_recover import TORTURE, alive, id_of_dead, killed, open_run, strike

RUN_SH = str(CHECKOUT / "run.sh")
JUNK = b'\xff\x00{{{\n{"run":"x"}\n'


def start(house: House) -> Done:
    """The first step of run.sh: it settles what died."""
    return house.program("init", "--quietly")


def paused(house: House) -> Done:
    """run.sh during a pause: it settles what died, and starts nothing."""
    (house.state / "PAUSE").touch()
    done = house.run([RUN_SH])
    (house.state / "PAUSE").unlink()
    return done


def mended(house: House) -> None:
    """Nothing is left to repair."""
    done = house.harness("doctor")
    assert done.code == 0, done


def went_on(house: House) -> None:
    """Nothing is left to repair, and the next worker works."""
    mended(house)
    house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
    assert house.work({"run": "echo on > went-on.txt"})["outcome"] == "ok"


def forge_end(house: House, run_id: str = "1-validator") -> None:
    """Every feature passed, and a green final sweep: an end that the agent forged."""
    path = Path(house.layout.path(names.FEATURES))
    path.write_text(path.read_text().replace('"in_progress"', '"passed"').replace('"todo"', '"passed"'))
    state = views.proof_state(house.layout, house.git("rev-parse", "HEAD^{tree}"))
    row = {**house.ran()[-1], "run": run_id, "role": "validator", "feature": "", "verdict": "green", "sweep": state}
    with open(house.layout.path(names.RUN_LOG), "ab") as books:
        books.write(files.dump_json(row))


def die(house: House) -> None:
    """Without confinement one run ends well, and the next is killed."""
    house.base = ('confine = "off"',)
    house.config('agent = "scripted"')
    house.harness("issue", "a first one")
    house.work({"usage": {"input": 5, "cost_usd": 0.5}}, feature="F-002")
    killed(house)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Kept:
    """A mission whose last run was killed."""
    return Kept(tmp_path_factory.mktemp("dying"), template, die)


@pytest.fixture
def dying(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> House:
    """That mission, as the run's death left it."""
    return kept.again(monkeypatch)


# nothing that the agent left is trusted


@pytest.mark.parametrize("gone", sampled([[], ["lock"], ["folder"], ["lock", "folder"]], lambda gone: len(gone) == 2))
def test_a_forged_end_of_the_mission_is_not_believed(dying: House, gone: list[str]) -> None:
    """The agent passes every feature, forges a sweep, removes its traces and kills the run: that is not DONE, and the
    next start restores the state although it opens no run."""
    run = dying.layout.run(id_of_dead(dying))
    forge_end(dying)
    if "lock" in gone:
        os.unlink(run.lock)
    if "folder" in gone:
        shutil.rmtree(run.folder)
    assert dying.program("next").out != "DONE\n"
    done = paused(dying)
    assert done.code == 9, done
    assert (dying.feature().status, dying.feature("F-002").status) == ("todo", "validating")
    assert [line["outcome"] for line in dying.ran()] == ["no_op", "killed"]
    assert "features.json" in dying.result()["refused"]
    went_on(dying)


def test_a_run_is_not_closed_by_a_line_that_its_agent_wrote(dying: House) -> None:
    """The forged row has the id of the run that died, and its folder a result."""
    run_id = id_of_dead(dying)
    forge_end(dying, run_id)
    row = dying.ran()[-1]
    Path(dying.layout.run(run_id).result).write_bytes(
        files.dump_json({**row, "seal": runs.seal(dying.layout.run(run_id))})
    )
    start(dying)
    assert [line["outcome"] for line in dying.ran()] == ["no_op", "killed"]
    assert dying.feature().status == "todo"


def test_an_order_is_not_carried_out_on_what_a_dead_run_left(dying: House) -> None:
    """Otherwise an order on one feature would accept the agent's changes to all others."""
    forge_end(dying)
    assert dying.program("feature", "set", "F-001", "priority=3").code == 0
    assert (dying.feature().status, dying.feature().priority, len(dying.ran())) == ("todo", 3, 2)


def test_what_a_dead_run_added_to_the_books_is_not_counted(dying: House) -> None:
    """`harness next` changes nothing and ignores such lines."""
    row = dying.ran()[-1]
    lie = {**row, "run": "2-worker", "totals": {**row["totals"], "runs": 10**6}}
    with open(dying.layout.path(names.RUN_LOG), "ab") as books:
        books.write(files.dump_json(lie))
    assert dying.program("next").out == "NEXT validator F-002\n"


def test_the_next_start_ends_what_lives_also_where_it_opens_no_run(unconfined: House) -> None:
    """kill -9 of role and guardian, then PAUSE: run.sh ends with 9, and the agent and its daemons are gone."""
    role = open_run(unconfined)
    run_id = runs.open_runs(unconfined.layout)[0]
    strike("guardian too", role)
    until(lambda: runs.is_dead(unconfined.layout, run_id))
    assert alive(unconfined)
    done = paused(unconfined)
    assert (done.code, alive(unconfined)) == (9, [])
    assert f"{run_id} was killed; ended " in done.out


# junk


STATE = [
    *("format", "mission.json", "spec.md", "features.json", "validation-contract.md", "escalation.md"),
    *("contract-log.jsonl", "issues.jsonl", "orders.jsonl", "runs.jsonl", "ledger.json", "journal/record"),
    *("memory/archive.jsonl", "memory/curated.json", "memory/summary.md", "memory/MEMORY.md"),
]


SHORT = ("features.json", "memory/archive.jsonl")  # of each kind


@pytest.mark.parametrize(
    "name",
    [name for name in STATE if name not in ("issues.jsonl", "ledger.json", "journal/record")] if TORTURE else SHORT,
)
def test_junk_in_a_state_file_is_put_back_before_anything_is_read(dying: House, name: str) -> None:
    """From the copies of what was committed; the result names each file."""
    spoilt(dying, [name], JUNK)


def test_junk_behind_all_state_files_at_once_is_cut_off(dying: House) -> None:
    """Append-only files keep their earlier content."""
    spoilt(dying, [name for name in STATE if name not in ("journal/record", "ledger.json")], b"\xff{\n", behind=True)


def test_all_state_files_that_were_removed_at_once_are_back(dying: House) -> None:
    """The ledger is among them; it is made again."""
    spoilt(dying, [name for name in STATE if name != "issues.jsonl"], None)
    went_on(dying)


def test_where_the_ledger_was_spoilt_the_state_is_what_was_committed(dying: House) -> None:
    """The ledger is made again."""
    run_id = id_of_dead(dying)
    Path(dying.layout.path(names.LEDGER)).write_bytes(JUNK)
    assert start(dying).code == 0
    assert dying.result(run_id)["refused"] == ["ledger.json"]
    assert [line["outcome"] for line in dying.ran()] == ["no_op", "killed"]
    assert dying.feature().status == "todo"
    mended(dying)


def test_junk_in_the_journal_of_a_run_that_died_is_moved_away_by_a_person(unconfined: House) -> None:
    """65 with a remedy; afterwards the next start settles the run."""
    run_id = killed(unconfined)
    record = Path(unconfined.layout.path(names.JOURNAL)) / "record"
    record.write_bytes(JUNK)
    done = start(unconfined)
    assert (done.code, "Move it away; the next start settles the unfinished run" in done.err) == (65, True)
    record.unlink()
    assert start(unconfined).code == 0
    assert unconfined.result(run_id)["outcome"] == "killed"
    mended(unconfined)


def spoilt(house: House, names: list[str], junk: bytes | None, *, behind: bool = False) -> None:
    """A run died after its agent overwrote, extended with junk, or removed these files; run.sh restores them."""
    run_id = id_of_dead(house)
    before = {name: files.read(str(house.state / name)) for name in names}
    for name, data in before.items():
        if junk is not None:
            (house.state / name).write_bytes((data or b"") + junk if behind else junk)
        elif data is not None:
            (house.state / name).unlink()
    done = start(house)
    assert done.code == 0, done
    there = [name for name in names if junk is not None or (before[name] is not None and name != "ledger.json")]
    assert sorted(house.result(run_id)["refused"]) == sorted(there)
    for name in {*names} - {"features.json", "runs.jsonl", "ledger.json"}:  # settling the run writes those
        assert (files.read(str(house.state / name)) or b"") == (before[name] or b"")
    assert [line["outcome"] for line in house.ran()] == ["no_op", "killed"]
    mended(house)


def test_a_configuration_that_does_not_parse_after_the_crash_is_not_touched(dying: House) -> None:
    """It is a person's: 65 names the line, and once it is mended the next start goes on."""
    run_id, before = id_of_dead(dying), dying.read("config.toml")
    (dying.state / "config.toml").write_text("agent = \n")
    done = start(dying)
    assert (done.code, "config.toml, line 1" in done.err) == (65, True)
    assert dying.read("config.toml") == "agent = \n"
    (dying.state / "config.toml").write_text(before)
    assert start(dying).code == 0
    assert (dying.result(run_id)["outcome"], dying.result(run_id)["refused"]) == ("killed", [])
    mended(dying)


def test_a_foreign_record_in_the_journal_is_named_with_a_remedy_that_works(house: House) -> None:
    """If no run died, a person must move it away."""
    record = Path(house.layout.path(names.JOURNAL)) / "record"
    record.parent.mkdir(exist_ok=True)
    record.write_bytes(b"[[1, 2]]\n")
    done = house.role("worker", "F-001")
    assert done.code == 65
    assert (
        "journal/record, line 1: it is not a record that the harness wrote for this mission. Move it away" in done.err
    )
    record.unlink()
    went_on(house)


@pytest.mark.parametrize("path", ["{state}/../outside", "{state}-outside", "{state}/runs/../../outside"])
def test_a_record_writes_nothing_outside_of_the_mission(house: House, path: str) -> None:
    """Regardless of its writer."""
    folder = Path(house.layout.path(names.JOURNAL))
    folder.mkdir(exist_ok=True)
    (folder / "0").write_text("x")
    steps = [["replace", path.format(state=house.state), str(folder / "0"), 0]]
    (folder / "record").write_bytes(files.dump_json(steps))
    assert house.program("note", "hello").code == 65
    assert [path.name for path in house.project.iterdir() if "outside" in path.name] == []


# spending


def spend(house: House, number: int = 2) -> None:
    """Runs that cost half a dollar each."""
    for _ in range(number):
        house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
        house.work({"usage": {"input": 5, "cost_usd": 0.5}}, {"run": "date +%N > 1.txt"})


def costly(house: House) -> str:
    """A run with a paid agent that is killed while the agent works."""
    command = 'command = ["sh", "-c", "cat > /dev/null; touch begun; sleep 60"]'
    house.config('agent = "mine"', "[limits]", "max_cost_usd = 1.0", "[agents.mine]", command)
    house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
    role = house.begin_role("worker", "F-001", session=True)
    until(lambda: (house.tree / "begun").exists())
    run_id = runs.open_runs(house.layout)[0]
    role.kill()
    role.wait()
    until(lambda: runs.is_dead(house.layout, run_id))
    return run_id


GONE: dict[str, list[str]] = {
    "the books": ["runs.jsonl"],
    "the books and the run": ["runs.jsonl", "runs/{run}"],
    "the books, the run and the ledger": ["runs.jsonl", "runs/{run}", "ledger.json"],
    "all runs": ["runs"],
    "the run": ["runs/{run}"],
    "the run and its lock": ["runs/{run}", "locks/run-{run}"],
    "the books, and the run's lock": ["runs.jsonl", "locks/run-{run}"],
}


SOME_GONE = ("the books", "the books, the run and the ledger", "the run and its lock")


@pytest.mark.parametrize("what", sampled(GONE, SOME_GONE.__contains__))
def test_no_agent_gives_spending_back(unconfined: House, what: str) -> None:
    """Whatever the agent removes before it kills the run: the run log keeps earlier spending, the agent's own spending is
    noted as not counted, and the cap holds."""
    spend(unconfined)
    run_id = costly(unconfined)
    for name in GONE[what]:
        path = unconfined.state / name.format(run=run_id)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert unconfined.program("next").out in ("", "BUDGET cost\n")
    done = unconfined.run([RUN_SH])
    assert done.code == 6, done
    assert [line["outcome"] for line in unconfined.ran()] == ["ok", "ok", "killed"]
    totals = unconfined.ran()[-1]["totals"]
    assert (totals["runs"], totals["cost_usd"], totals["uncounted"]) == (3, 1.0, 1)


def test_books_of_which_nothing_is_left_stop_everybody(house: House) -> None:
    """Exit 65 with the remedy; a person who continues anyway sees what was accepted as is."""
    spend(house)
    run_id = costly(house)
    for name in ("runs", "objects"):
        shutil.rmtree(house.state / name)
    (house.state / "runs.jsonl").unlink()
    for done in (house.program("next"), house.run([RUN_SH]), house.run([RUN_SH])):
        assert done.code == 65
        assert "runs.jsonl: it is " in done.err
    assert "run.sh doctor --fix" in done.err
    fixed = house.program("doctor", "--fix")
    assert f"fixed  {run_id} was killed\n" in fixed.out
    assert "fixed  took runs.jsonl as it stands\n" in fixed.out
    assert house.ran()[-1]["totals"]["uncounted"] == 1
    assert house.program("next").out == "NEXT worker F-001\n"


def test_books_that_were_lost_between_runs_are_made_again(house: House) -> None:
    """From the results of the finished runs, if that gives the ledger's digest; `next` alone ends with 65."""
    spend(house)
    before = house.read("runs.jsonl")
    (house.state / "runs.jsonl").unlink()
    assert house.program("next").code == 65
    done = start(house)
    assert "made .harness/runs.jsonl again from the results of finished runs" in done.out
    assert house.read("runs.jsonl") == before
    mended(house)


def test_an_answer_of_a_person_survives_the_loss_of_the_run_log(house: House) -> None:
    """Results alone rebuild the run log byte for byte; the answer and all spending are kept."""
    spend(house, 1)
    (house.state / "escalation.md").write_text("---\nkind: stuck\n---\n")
    assert house.program("escalation", "answer", "go on").code == 0
    spend(house, 1)
    before = house.read("runs.jsonl")
    (house.state / "runs.jsonl").unlink()
    assert "made .harness/runs.jsonl again from the results of finished runs" in start(house).out
    assert house.read("runs.jsonl") == before
    assert "a person answered: go on" in house.program("runs", "list").out
    went_on(house)


def test_a_line_of_the_books_may_be_mended_by_hand(house: House) -> None:
    """Also when that makes the run log shorter: no finished run lacks its line."""
    spend(house)
    path = house.state / "runs.jsonl"
    path.write_text(path.read_text().replace('"trigger":""', '"trigger": ""'))
    house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
    house.work({"run": "echo 2 > 1.txt"})
    path.write_text(path.read_text().replace('"trigger": ""', '"trigger":""'))
    assert house.program("next").code == 0


# runs with few remains


def result_of_nobody(house: House, run_id: str) -> dict[str, Any]:
    """The result of a run whose context is lost."""
    assert start(house).code == 0
    result = house.result(run_id)
    assert (result["role"], result["outcome"]) == ("unknown", "killed")
    assert "nothing tells how it had opened" in result["reason"]
    return result


def test_a_run_whose_lock_is_all_that_is_left_is_killed_and_not_free(house: House) -> None:
    """Its lock is empty, as an older version leaves it: the folder existed before the lock, so something removed the folder."""
    run_id = costly(house)
    shutil.rmtree(house.layout.run(run_id).folder)
    Path(house.layout.run(run_id).lock).write_bytes(b"")
    result = result_of_nobody(house, run_id)
    assert (result["usage"], result["totals"]["uncounted"]) == (None, 1)
    assert house.feature().status == "todo"


def test_a_run_without_context_that_has_left_something_had_begun(house: House) -> None:
    """Its transcript shows what it used."""
    run_id = killed(house)
    run = house.layout.run(run_id)
    os.unlink(run.context)
    os.unlink(run.lock)
    Path(run.lock).touch()
    assert result_of_nobody(house, run_id)["agents"] == ["scripted"]


def test_a_person_finds_the_folder_as_it_was_where_nothing_tells_what_is_theirs(house: House) -> None:
    """The project folder and the tree of such a run are left alone."""
    run_id = killed(house)
    shutil.rmtree(house.layout.run(run_id).folder)
    Path(house.layout.run(run_id).lock).write_bytes(b"")
    head = house.head()
    result_of_nobody(house, run_id)
    assert (house.head(), (house.tree / "1.txt").exists()) == (head, True)


# recovery that is interrupted


MEND_AND_DIE = (
    "import sys; sys.path.insert(0, {checkout!r})\n"
    "from harness.run import recover\n"
    "from harness.state.layout import Layout\n"
    f"{DYING}"
    "recover.recover_dead(Layout({project!r}))\n"
)


def mend_and_die(house: House, name: str, step: int) -> bool:
    """Recovery that is killed before its `step`th call of a function; returns whether it ended before that call."""
    words = {"checkout": str(CHECKOUT), "project": str(house.project), "name": name, "step": step}
    done = house.run([sys.executable, "-P", "-c", MEND_AND_DIE.format(**words)])
    assert done.code in (0, -signal.SIGKILL), done
    return done.code == 0


@pytest.mark.parametrize("name", ["os.replace", "os.unlink", "os.posix_spawn"])
def test_recovery_that_is_killed_itself_is_gone_on_with(dying: House, tmp_path: Path, name: str) -> None:
    """Killed before every rename, removal and git call: the run counts once, and its lies do not."""
    run_id, number, over = id_of_dead(dying), 0, False
    forge_end(dying)
    shutil.rmtree(dying.layout.run(run_id).folder)
    template = Template(dying.folder, ("my project", "state"), tmp_path / "kept")
    while not over:
        number += 1 if TORTURE else 25
        template.restore()
        over = mend_and_die(dying, name, number)
        assert start(dying).code == 0
        assert [(line["run"] == run_id, line["outcome"]) for line in dying.ran()] == [
            (False, "no_op"),
            (True, "killed"),
        ]
        assert (dying.feature().status, dying.feature("F-002").status) == ("todo", "validating"), number
        assert (runs.broken_seals(dying.layout, 1), alive(dying)) == ([], [])
    went_on(dying)
