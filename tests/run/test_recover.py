"""Whatever dies, the next run settles it: kills at many moments, and disk states built by hand."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.commands.setup import doctor
from harness.git import landing
from harness.mission import mission, runs
from harness.process import temporary, tree
from harness.run import recover
from harness.state import files, journal, names, objects
from harness.workplace.recovery import unsettled_runs
from tests.crash import DYING, sampled
from tests.kill_sweep import Kept
from tests.missions import CHECKOUT, Done, House, differences, listing, tagged, until

TORTURE = bool(os.environ.get("HARNESS_TORTURE"))
MOMENTS = 14 if TORTURE else 4
LINGERING = ({"say": "goes on"}, {"run": "sleep 0.1; echo 1 > 1.txt"}, {"sleep": 60})
LINGER = {"run": "echo 1 > 1.txt; (setsid sleep 90 &); sleep 90 & sleep 90"}
LINGERING_PROCESSES = 4  # the shell of that command and its three sleeps


def recovered(house: House) -> list[str]:
    """Recovery as every run starts it."""
    with files.Lock(house.layout.path(names.MISSION_LOCK)):
        return recover.recover(house.layout)


def alive(house: House) -> list[int]:
    """Processes of the mission's runs."""
    return tagged(mission.load(house.layout).id)


def open_run(house: House, *args: str, place: Path | None = None) -> subprocess.Popen[bytes]:
    """A worker whose agent has written 1.txt, where it works, and waits."""
    house.script("worker", LINGER)
    role = house.begin_role("worker", "F-001", *args, session=True)
    until(lambda: ((place or house.tree) / "1.txt").exists() and len(alive(house)) >= 3)
    return role


def killed(house: House) -> str:
    """The id of a worker's run that SIGKILL ended while its agent worked; none of its processes lives."""
    return kill(house, open_run(house))


def kill(house: House, role: subprocess.Popen[bytes]) -> str:
    """SIGKILL to a run; returns its id when none of its processes lives."""
    run_id = runs.open_runs(house.layout)[0]
    role.kill()
    role.wait()
    until(lambda: not alive(house) and runs.is_dead(house.layout, run_id))
    return run_id


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Kept:
    """A mission whose only run was killed."""
    return Kept(tmp_path_factory.mktemp("dead"), template, killed)


@pytest.fixture
def dead(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> House:
    """That mission, as the run's death left it."""
    return kept.again(monkeypatch)


def id_of_dead(house: House) -> str:
    """The id of the run that was killed."""
    (found,) = runs.open_runs(house.layout)
    return found


def strike(how: str, role: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the role, to its process group, or to it and its guardians at once."""
    if how == "guardian too":
        role.send_signal(signal.SIGSTOP)  # else it may do a dead guardian's work before it dies itself
    guardians = list(tree.descendants(role.pid, deep=False)) if how == "guardian too" else []
    if how == "group":
        os.killpg(role.pid, signal.SIGKILL)
    for pid in [*guardians, role.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # the process has already ended
    role.wait()


HOW = ("role", "group", "guardian too")


# the suite plays each way at one moment; HARNESS_TORTURE=1 plays each at all
@pytest.mark.parametrize(
    ("how", "moment"),
    sampled(itertools.product(HOW, range(MOMENTS)), lambda row: HOW.index(row[0]) + 1 == row[1]),
)
def test_a_kill_at_any_moment_is_settled_by_the_next_run(house: House, how: str, moment: int) -> None:
    """No descendant lives, the run is `killed`, the feature goes back without a try used, and the next worker goes on."""
    house.script("worker", LINGER)
    role = house.begin_role("worker", "F-001", session=True)
    time.sleep(0.02 + 0.4 * moment / MOMENTS)
    strike(how, role)
    if how != "guardian too":
        until(lambda: not alive(house))
    until(lambda: files.is_free(house.layout.path(names.MISSION_LOCK)) or how == "guardian too")
    until(
        lambda: all(map(files.is_free, map(str, (house.state / "locks").glob("run-*"))))
    )  # the guardian has gone, too
    result = house.work({"run": "echo 2 > 2.txt"})
    assert alive(house) == []
    assert (result["outcome"], house.feature().status, house.feature().attempts) == ("ok", "validating", 0)
    dead = [line for line in house.ran() if line["outcome"] == "killed"]
    begun = [path.parent.name for path in Path(house.layout.path(names.RUNS)).glob("*/context.json")]
    assert sorted(line["run"] for line in house.ran()) == sorted(begun)
    assert [line for line in dead if line["commit"]] == [line for line in dead if "1.txt" in house.git("ls-files")]
    assert house.git("status", "--porcelain") == ""


DIE_AT = (
    DYING
    + """import runpy
sys.argv = [{script!r}, "F-001"]
try:
    runpy.run_path({script!r}, run_name="__main__")
finally:
    os.write(1, b"%d" % count)
"""
)


def dying_at(house: House, name: str, step: int) -> Done:
    """A worker's run that is killed before its `step`th call of a function such as os.replace."""
    script = house.words("worker")[-1]
    return house.run([sys.executable, "-P", "-c", DIE_AT.format(name=name, step=step, script=script)])


@pytest.mark.parametrize("name", ["os.replace", "os.posix_spawn", "os.unlink"])
def test_a_kill_before_any_step_of_a_run_is_settled(house: House, name: str) -> None:
    """Before every rename, git call and removal: the work counts whole or as cut work, and counts once."""
    house.script("worker", {"run": "date +%N > 1.txt"}, {"say": "done"})
    total = int(dying_at(house, name, 0).out.split()[-1])
    steps = range(1, total + 1) if TORTURE else range(1 + total % 3, total + 1, max(1, total // 3))
    for step in steps:
        house.lay(house.feature().replace(status="todo", notes=[]), house.feature("F-002"))
        head, ran = house.head(), len(house.ran())
        assert dying_at(house, name, step).code in (-signal.SIGKILL, 69, 0)  # 69: the guardian died; 0: fewer steps now
        until(lambda: files.is_free(house.layout.path(names.MISSION_LOCK)))
        recovered(house)
        done = house.feature().status == "validating"
        assert (done or house.feature().status == "todo", house.feature().attempts) == (True, 0), step
        new = house.ran()[ran:]
        assert len(new) <= 1, step
        assert done == bool(new and new[0]["outcome"] == "ok"), step
        assert house.git("rev-list", f"{head}..HEAD").split() == [line["commit"] for line in new if line["commit"]], (
            step
        )
        assert house.git("status", "--porcelain", "--untracked-files=no") == "", step
        assert runs.broken_seals(house.layout, 1) == [], step
    assert [one.what for one in doctor.examine(house.layout) if one.state == "bad"] == []


CALLS = ["os.replace", "os.symlink", "os.link"]
CALLS += ["os.fsync", "os.rename", "os.unlink", "os.posix_spawn"] if TORTURE else []


@pytest.mark.parametrize("name", CALLS)
def test_a_kill_at_any_step_loses_nothing_of_a_person(house: House, name: str) -> None:
    """They have uncommitted edits and untracked files; the tree is made anew. After the kill the next run goes on: their files
    are as they left them, the work is a commit on their branch, their edits are in none, and nothing of ours lies there."""
    house.script("worker", {"run": "date +%N > 1.txt"}, {"say": "done"})
    house.write("notes.txt", "of a person\n")
    person(house, 0)
    total = int(dying_at(house, name, 0).out.split()[-1])
    for step in range(1, total + 1) if TORTURE else range(1 + total % 3, total + 1, max(1, total // (MOMENTS // 2))):
        person(house, step)
        dying_at(house, name, step)
        until(lambda: files.is_free(house.layout.path(names.MISSION_LOCK)))
        recovered(house)  # else a run that had answered moves the feature on, and the next is not due
        house.lay(house.feature().replace(status="todo", notes=[]), house.feature("F-002"))
        assert house.work({"run": f"echo {step} > 1.txt"})["unlanded"] == "", step
        assert alive(house) == []
        assert (house.project / "main.py").read_text() == f"print({step})\n", step
        assert (house.git("show", "HEAD:main.py"), house.git("show", "HEAD:1.txt")) == ("print('hello')", str(step)), (
            step
        )
        assert house.git("status", "--porcelain") == " M main.py\n?? notes.txt", step
        assert (house.project / "notes.txt").read_text() == "of a person\n"
        assert house.git("rev-parse", f"refs/harness/{mission.load(house.layout).id}/tip") == house.head()
        assert list((house.project / ".git").glob("*harness*")) == [], step
    assert [one.what for one in doctor.examine(house.layout) if one.state == "bad"] == []


def person(house: House, step: int) -> None:
    """A person edits a tracked file, and removes the tree by hand."""
    house.write("main.py", f"print({step})\n")
    house.lay(house.feature().replace(status="todo", notes=[]), house.feature("F-002"))
    shutil.rmtree(house.tree, ignore_errors=True)


def test_a_start_that_opens_no_run_ends_a_landing_that_was_killed(house: House) -> None:
    """A person's git finds no lock and no half of our work, also where a pause stands."""
    house.work({"say": "nothing"}, feature="F-002")
    for step in range(1, 20):
        house.script("worker", {"run": f"echo {step} > 1.txt; echo {step} > main.py"})
        dying_at(house, "os.link", step)
        if landing.unfinished(house.layout.folders.top):
            break
        recovered(house)
        house.lay(house.feature().replace(status="todo", notes=[]), house.feature("F-002"))
    assert landing.unfinished(house.layout.folders.top)
    assert house.program("init", "--quietly").code == 0
    assert not landing.unfinished(house.layout.folders.top)
    assert house.git("status", "--porcelain") == ""
    assert {(house.project / name).read_text() for name in ("1.txt", "main.py")} == {f"{step}\n"}
    assert house.git("log", "-1", "--format=%s") == "F-001: Part one"


def test_a_run_whose_tree_was_removed_by_hand_is_settled(dead: House) -> None:
    """Nothing of its work is left, so nothing is committed; the next run has a new tree."""
    head, run_id = dead.head(), id_of_dead(dead)
    shutil.rmtree(dead.tree)
    assert recovered(dead) == [f"{run_id} was killed"]
    assert (dead.result(run_id)["commit"], dead.head(), dead.feature().status) == ("", head, "todo")
    assert dead.work({"run": "echo 1 > 1.txt"})["outcome"] == "ok"


def test_a_project_folder_on_another_branch_is_not_touched(house: House) -> None:
    """The interrupted work lands on the mission's branch, which is not checked out; the person's folder is unchanged."""
    branch, run_id = house.git("branch", "--show-current"), killed(house)
    house.git("switch", "-q", "main")
    house.write("main.py", "edited by a person\n")
    before = listing(house.project, ".harness", ".git")
    recovered(house)
    assert listing(house.project, ".harness", ".git") == before
    assert (house.git("branch", "--show-current"), house.git("status", "--porcelain")) == ("main", " M main.py")
    assert house.git("rev-parse", branch) == house.result(run_id)["commit"]
    assert house.git("show", f"{branch}:1.txt") == "1"


def test_a_persons_commits_after_the_crash_stand_and_the_next_run_has_both(dead: House) -> None:
    """Recovery does not move their branch, says so, and the next run merges."""
    run_id = id_of_dead(dead)
    dead.write("theirs.txt")
    dead.git("add", "theirs.txt")
    dead.git("commit", "-qm", "a person went on")
    head = dead.head()
    recovered(dead)
    assert (dead.head(), dead.git("status", "--porcelain")) == (head, "")
    assert "the next run merges them" in dead.result(run_id)["unlanded"]
    result = dead.work({"run": "test -f theirs.txt; test -f 1.txt; echo 2 > 1.txt"})
    assert (result["outcome"], result["unlanded"], dead.git("show", "HEAD:1.txt")) == ("ok", "", "2")
    assert (dead.project / "theirs.txt").exists()


def test_a_confined_agent_cannot_change_the_configuration(house: House) -> None:
    """What config.toml says after a crash is therefore a person's, and stands."""
    house.script("worker", {"run": "! echo 'curate_after = 1' > .harness/config.toml; echo 1 > 1.txt; sleep 60"})
    before = house.read("config.toml")
    role = house.begin_role("worker", "F-001", session=True)
    until(lambda: (house.tree / "1.txt").exists())
    run_id = kill(house, role)
    assert recovered(house) == [f"{run_id} was killed"]
    assert (house.read("config.toml"), house.result(run_id)["refused"]) == (before, [])


def test_cut_work_is_committed_with_a_ref_and_costs_no_try(dead: House) -> None:
    """The next prompt reports the cut work and how to see it."""
    run_id = id_of_dead(dead)
    assert recovered(dead) == [f"{run_id} was killed"]
    result, feature = dead.result(run_id), dead.feature()
    assert (result["outcome"], result["reason"]) == ("killed", "the run died before it closed")
    assert (feature.status, feature.attempts) == ("todo", 0)
    assert dead.git("rev-parse", f"refs/harness/partial/{run_id}") == result["commit"] == dead.head()
    assert dead.git("log", "-1", "--format=%s") == "wip(F-001): killed"
    dead.work({"run": "echo more > 1.txt"})
    assert "### Cut work" in dead.prompt()
    assert f"git show --stat refs/harness/partial/{run_id}" in dead.prompt()


def test_what_a_killed_run_wrote_and_git_ignores_is_named(dead: House) -> None:
    """What git ignored before its agent began is on disk, so the next run can tell."""
    run_id = id_of_dead(dead)
    (dead.tree / ".gitignore").write_text("*.db\n")
    (dead.tree / "left.db").touch()
    recovered(dead)
    assert dead.result(run_id)["ignored"] == ['ignored by .gitignore:1 "*.db": left.db']


def test_a_failing_feature_goes_back_to_failing(house: House) -> None:
    """Recovery gives the feature the status that the run found."""
    house.lay(house.feature().replace(status="failing", attempts=1), house.feature("F-002"))
    killed(house)
    recovered(house)
    assert (house.feature().status, house.feature().attempts) == ("failing", 1)


def test_processes_that_a_dead_guardian_left_are_ended_and_counted(unconfined: House) -> None:
    """If role and guardian die together, the next start finds the remaining processes by their tag."""
    role = open_run(unconfined)
    run_id = runs.open_runs(unconfined.layout)[0]
    strike("guardian too", role)
    until(lambda: len(alive(unconfined)) == LINGERING_PROCESSES and runs.is_dead(unconfined.layout, run_id))
    assert recovered(unconfined) == [f"{run_id} was killed; ended {LINGERING_PROCESSES} processes it left"]
    assert alive(unconfined) == []


def test_recovering_twice_changes_nothing_more(dead: House) -> None:
    """Recovery is idempotent: the second pass has nothing to do."""
    recovered(dead)
    before = listing(dead.project)
    assert recovered(dead) == []
    assert differences(before, listing(dead.project)) == []


def test_a_dead_run_in_a_mission_of_another_format_is_left_as_it_is(dead: House) -> None:
    """The start refuses the format, and settles nothing that it may misread."""
    (dead.state / "format").write_text("1\n")
    journal.adopt(dead.layout)
    for _ in range(2):
        done = dead.program("init", "--quietly")
        assert (done.code, "unknown format '1'" in done.err, len(dead.ran())) == (65, True, 0), done
        assert unsettled_runs.unsettled(dead.layout) == [id_of_dead(dead)]


def test_doctor_fix_recovers_as_the_next_run_would(dead: House) -> None:
    """The command runs the same code."""
    run_id = id_of_dead(dead)
    done = dead.harness("doctor", "--fix")
    assert f"fixed  {run_id} was killed" in done.out
    assert dead.result(run_id)["outcome"] == "killed"


def commit_as(house: House, run_id: str, *kinds: str, message: str = "wip(F-001): a title that a person gave") -> str:
    """What a worker's settle commits on the mission's position just before the power fails, with the refs of these kinds."""
    house.git(f"--work-tree={house.tree}", "add", "1.txt")
    tree = house.git("write-tree")
    house.git("reset", "-q")
    made = house.git("commit-tree", tree, "-p", "HEAD", "-m", message)
    for ref in (f"{mission.load(house.layout).id}/tip", *(f"{kind}/{run_id}" for kind in kinds)):
        house.git("update-ref", f"refs/harness/{ref}", made)
    return made


def test_a_commit_that_the_ref_of_the_run_names_is_rolled_forward(dead: House) -> None:
    """The power failed between the commit and the result: the work counts, and the feature goes on to validation. What the
    message says does not matter."""
    run_id = id_of_dead(dead)
    made = commit_as(dead, run_id, "keep")
    assert recovered(dead) == [f"{run_id} was ok"]
    result = dead.result(run_id)
    assert (result["outcome"], result["commit"]) == ("ok", made)
    assert (dead.feature().status, dead.head()) == ("validating", made)


@pytest.mark.parametrize("outcome", ["implemented", "cut"])
def test_a_trailer_makes_no_commit_that_of_the_run(dead: House, outcome: str) -> None:
    """Anybody can write one: the run is settled as killed, with the work in its tree."""
    run_id = id_of_dead(dead)
    forged = commit_as(dead, run_id, message=f"x\n\nHarness-Run: {run_id}\nHarness-Outcome: {outcome}")
    assert recovered(dead) == [f"{run_id} was killed"]
    assert (dead.result(run_id)["commit"] != forged, dead.feature().status) == (True, "todo")


def test_a_commit_of_unfinished_work_was_a_run_put_away(dead: House) -> None:
    """The run was cut short, or blocked, before the power failed: the feature goes back."""
    run_id = id_of_dead(dead)
    made = commit_as(dead, run_id, "keep", "partial")
    assert recovered(dead) == [f"{run_id} was killed"]
    assert (dead.result(run_id)["commit"], dead.feature().status) == (made, "todo")
    assert dead.git("rev-parse", f"refs/harness/partial/{run_id}") == made
    dead.work({"run": "echo more > 1.txt"})
    assert "### Cut work" in dead.prompt()


def of_an_older_harness(house: House) -> str:
    """The id of a dead run that worked in the project folder, as `workplace = "project"` was for; its work lies there."""
    run_id = killed(house)
    house.config('agent = "scripted"', 'workplace = "project"')
    path = Path(house.layout.run(run_id).context)
    context = {**json.loads(path.read_text()), "folder": "", "confined": ""}
    path.write_text(json.dumps(context, separators=(",", ":")) + "\n")
    (house.tree / "1.txt").rename(house.project / "1.txt")
    shutil.rmtree(house.tree)
    return run_id


def test_a_run_that_died_in_the_project_folder_is_settled_and_the_next_one_has_a_tree(unconfined: House) -> None:
    """After the update: its files stay where they are, nothing begins until a person takes the line out, and doctor names it."""
    run_id = of_an_older_harness(unconfined)
    head, before = unconfined.head(), listing(unconfined.project, ".harness", ".git")
    done = unconfined.run([str(CHECKOUT / "run.sh")])
    assert (done.code, f"{run_id} was killed" in done.out) == (65, True), done
    words = 'Remove the line workplace = "project".'
    assert ("config.toml, line 3: " in done.err, words in done.err) == (True, True), done
    result = unconfined.result(run_id)
    assert (result["outcome"], result["commit"], unconfined.feature().status) == ("killed", "", "todo")
    assert "it worked in the project folder, which is left as it is" in result["reason"]
    assert (unconfined.head(), listing(unconfined.project, ".harness", ".git")) == (head, before)
    by_hand = unconfined.role("worker", "F-001")
    assert (by_hand.code, words in by_hand.err, len(unconfined.ran())) == (65, True, 1), by_hand
    assert words in " ".join(unconfined.program("doctor").out.split())
    unconfined.config('agent = "scripted"')
    assert unconfined.work({"run": "echo 2 > 2.txt"})["outcome"] == "ok"
    assert (unconfined.git("status", "--porcelain"), unconfined.git("show", "HEAD:2.txt")) == ("?? 1.txt", "2")


def test_tampering_in_a_run_that_died_is_put_back_too(unconfined: House) -> None:
    """The agent marked its feature as passed and then killed the run."""
    run_id = killed(unconfined)
    path = Path(unconfined.layout.path(names.FEATURES))
    path.write_text(path.read_text().replace("in_progress", "passed"))
    recovered(unconfined)
    assert (unconfined.feature().status, unconfined.result(run_id)["refused"]) == ("todo", ["features.json"])
    assert b'"passed"' in unconfined.refused(run_id)["features.json"]


def test_a_line_that_a_dying_run_tore_is_kept_as_a_line(unconfined: House) -> None:
    """A torn line from a crash is not tampering: recovery closes the torn note, and it counts as an entry."""
    unconfined.harness("note", "from before")
    run_id = killed(unconfined)
    path = Path(unconfined.layout.path(names.RAW))
    path.write_bytes(path.read_bytes() + b"[2026-04-24T10:05:12Z] worker F-0")
    recovered(unconfined)
    assert path.read_bytes().endswith(b"from before\n[2026-04-24T10:05:12Z] worker F-0\n")
    assert unconfined.result(run_id)["refused"] == []


def test_a_forged_result_does_not_keep_a_dead_run_from_being_settled(dead: House) -> None:
    """A run is closed when the run log has it, whatever its folder holds."""
    run_id = id_of_dead(dead)
    Path(dead.layout.run(run_id).result).write_text("{}")
    recovered(dead)
    assert (dead.result(run_id)["outcome"], dead.feature().status) == ("killed", "todo")


@pytest.mark.parametrize("what", ["lock", "folder"])
def test_a_feature_never_stays_in_progress_when_its_runs_traces_are_gone(house: House, what: str) -> None:
    """Whatever the agent removed before it died: no run is alive, so no run works on the feature."""
    run = house.layout.run(killed(house))
    if what == "lock":
        os.unlink(run.lock)
    else:
        shutil.rmtree(run.folder)
    recovered(house)
    assert house.feature().status == "todo"


@pytest.mark.parametrize("others", [False, True], ids=["the last", "another lane closed since"])
def test_a_run_that_closed_but_could_not_remove_its_lock_is_only_tidied_up(house: House, others: bool) -> None:
    """The journal was the last step before a crash: nothing is done twice."""
    run_id = house.work({"run": "echo 1 > 1.txt"})["run"]
    if others:
        house.work({"run": "echo 2 > 2.txt"}, feature="F-002")
    Path(house.layout.run(run_id).lock).touch()
    before = listing(house.project)
    assert recovered(house) == [f"{run_id} had closed"]
    assert differences(before, listing(house.project)) == [f".harness/locks/run-{run_id}"]


def test_a_run_that_died_before_it_began_leaves_no_trace(house: House) -> None:
    """The run is killed after it made its folder and before its context."""
    run = house.layout.run("1-worker-F-001")
    os.mkdir(run.folder)
    Path(run.lock).touch()
    assert recovered(house) == ["1-worker-F-001 died before it began"]
    assert not os.path.exists(run.folder)
    assert not os.path.exists(run.lock)


def test_a_journal_that_a_crash_left_behind_is_finished(house: House) -> None:
    """The journal record was committed: its steps are carried out."""
    folder = Path(house.layout.path(names.JOURNAL))
    folder.mkdir(exist_ok=True)
    (folder / "0").write_text("## Lessons\n")
    steps = [["replace", house.layout.path(names.SUMMARY), str(folder / "0"), 0]]
    (folder / "record").write_text(json.dumps(steps))
    assert recovered(house) == ["finished a journal that a crash had left behind"]
    assert house.read("memory/summary.md") == "## Lessons\n"
    assert list(folder.iterdir()) == []


def test_a_role_that_is_gone_meanwhile_does_not_stop_recovery(house: House) -> None:
    """A user's own role ran, died, and was deleted."""
    house.role_files("helper")
    house.script("helper", {"sleep": 60})
    role = house.begin_role("helper")
    until(lambda: bool(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))))
    kill(house, role)
    shutil.rmtree(house.layout.path(names.ROLES))
    recovered(house)
    assert [(line["role"], line["outcome"]) for line in house.ran()] == [("helper", "killed")]


def test_temporary_folders_of_a_run_that_died_are_removed(dead: House) -> None:
    """A running check left one; the folders of other runs stay."""
    run_id = id_of_dead(dead)
    left = temporary.create("check", f"{mission.load(dead.layout).id}/{run_id}")
    other = temporary.create("check", "other/run")
    recovered(dead)
    assert (os.path.exists(left), os.path.exists(other)) == (False, True)
    temporary.remove(other)


SPENDS = ({"usage": {"input": 5, "cost_usd": 0.1}}, {"usage": {"input": 700, "cost_usd": 0.25}}, {"run": "touch begun"})


def test_what_a_killed_run_had_spent_is_in_the_books(house: House) -> None:
    """kill -9 in the middle of an answer: the next start counts the usage reported so far, and the time."""
    house.script("worker", *SPENDS, {"sleep": 60})
    role = house.begin_role("worker", "F-001")
    until(lambda: (house.tree / "begun").exists())
    run_id = runs.open_runs(house.layout)[0]
    time.sleep(0.3)
    with open(house.layout.run(run_id).stream, "ab") as stream:
        stream.write(b'{"at":0.2,"kind":"did","text":"x"}\n{"at":99,"kind":"usage","te')
    role.kill()
    role.wait()
    until(lambda: runs.is_dead(house.layout, run_id))
    recovered(house)
    result = house.result(run_id)
    assert (result["outcome"], result["agent"], result["agents"]) == ("killed", "scripted", ["scripted"])
    assert (result["usage"]["input"], result["usage"]["cost_usd"]) == (700, 0.25)
    assert (result["totals"]["cost_usd"], result["totals"]["tokens"], result["totals"]["uncounted"]) == (0.25, 700, 0)
    assert result["seconds"] >= 0.2
    assert house.harness("next").out == "NEXT worker F-001\n"


def test_a_transcript_cannot_make_a_dead_run_longer_than_it_was(dead: House) -> None:
    """The agent may write to the transcript, so the wall clock is the bound."""
    run_id = id_of_dead(dead)
    with open(dead.layout.run(run_id).stream, "ab") as stream:
        stream.write(b'{"at":1e300,"kind":"did","text":"x"}\n')
    recovered(dead)
    assert dead.result(run_id)["seconds"] < 3600


def test_a_signal_keeps_what_was_told_until_then(house: House) -> None:
    """The run closes by itself, with its usage."""
    house.script("worker", *SPENDS, {"run": "sleep 60"})
    role = house.begin_role("worker", "F-001")
    until(lambda: (house.tree / "begun").exists())
    role.send_signal(signal.SIGTERM)
    assert role.wait() == 143
    assert (house.result()["outcome"], house.result()["usage"]["cost_usd"]) == ("killed", 0.25)


def test_a_killed_run_whose_transcript_is_gone_is_not_free(house: House) -> None:
    """A vendor was asked, and the cost is unknown: the run counts as uncounted."""
    house.config('agent = "mine"', "[agents.mine]", 'command = ["sh", "-c", "cat > /dev/null; touch begun; sleep 60"]')
    role = house.begin_role("worker", "F-001", session=True)
    until(lambda: (house.tree / "begun").exists())
    run_id = runs.open_runs(house.layout)[0]
    role.kill()
    role.wait()
    until(lambda: runs.is_dead(house.layout, run_id))
    os.unlink(house.layout.run(run_id).stream)
    recovered(house)
    assert (house.result()["usage"], house.result()["totals"]["uncounted"]) == (None, 1)


def test_a_configuration_that_a_person_mended_after_the_crash_stands(dead: House) -> None:
    """The agent hung, the role was killed, the user chose another agent: the next run uses that agent."""
    run_id = id_of_dead(dead)
    dead.config('agent = "scripted"', "curate_after = 7")
    mended = dead.read("config.toml")
    done = dead.harness("doctor", "--fix")
    assert f"fixed  {run_id} was killed\n" in done.out
    assert (dead.read("config.toml"), dead.result(run_id)["refused"]) == (mended, [])
    assert dead.work({"run": "echo 2 > 1.txt"})["refused"] == []


def test_temporary_files_of_a_run_that_died_are_removed_and_those_of_live_processes_are_not(dead: House) -> None:
    """Wherever it wrote: its folder, objects, snapshots, beside the tree. A file of the agent's in the tree is not ours."""
    run_id = id_of_dead(dead)
    child = subprocess.Popen(["true"])
    child.wait()
    folders = [dead.state / "objects", Path(dead.layout.run(run_id).folder), Path(dead.layout.path(names.SNAPSHOTS))]
    left = [folder / f"x.json.{child.pid}.tmp" for folder in (*folders, dead.tree.parent, dead.identity)]
    left += [dead.tree / f".git.{child.pid}.tmp", dead.project / f".git/{landing.JOURNAL}.{child.pid}.tmp"]
    kept = [dead.state / f"features.json.{os.getpid()}.tmp", dead.tree / f"mine.{child.pid}.tmp"]
    for path in (*left, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    recovered(dead)
    assert [path for path in left if path.exists()] == []
    assert kept[0].exists()
    assert kept[1].exists() or f"mine.{child.pid}.tmp" in dead.git("ls-tree", "-r", "--name-only", "HEAD")


def test_while_another_run_lives_only_what_the_dead_one_wrote_is_cleared(house: House) -> None:
    """A temporary file of anybody else, and git's lock on a ref of a run that lives, stay until nobody is at work. A lock that a
    killed git left on a ref of the dead run, or of the mission, would stop everybody else."""
    house.script("worker", {"run": "touch begun; sleep 60"})
    beside = house.begin_role("worker", "F-002")
    until(lambda: any(house.tree.parent.glob("tree-*/begun")))
    living = runs.open_runs(house.layout)[0]
    house.script("worker", {"run": "touch begun-too; sleep 60"})
    role = house.begin_role("worker", "F-001")
    until(lambda: any(house.tree.parent.glob("tree-*/begun-too")))
    dead = next(name for name in runs.open_runs(house.layout) if name != living)
    own, gone = house.state / f"snapshots/x.json.{role.pid}.tmp", house.state / "features.json.999999999.tmp"
    lock = house.project / f".git/refs/harness/partial/{living}.lock"
    refs = (f"{mission.load(house.layout).id}/tip", f"{mission.load(house.layout).id}/landed", f"keep/{dead}")
    left = [house.project / f".git/refs/harness/{ref}.lock" for ref in refs]
    for path in (own, gone, lock, *left):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.touch()
    role.kill()
    role.wait()
    until(lambda: runs.is_dead(house.layout, dead))
    assert recovered(house) == [f"{dead} was killed"]
    assert [path.exists() for path in (own, gone, lock)] == [False, True, True]
    assert [path for path in left if path.exists()] == []
    assert house.feature("F-002").status == "in_progress"
    kill_of(house, beside, living)
    recovered(house)
    assert [path.exists() for path in (gone, lock)] == [False, False]


def kill_of(house: House, role: subprocess.Popen[bytes], run_id: str) -> None:
    """SIGKILL to this run, to its last process."""
    role.kill()
    role.wait()
    until(lambda: not alive(house) and runs.is_dead(house.layout, run_id))


@pytest.mark.parametrize("half", [False, True], ids=["all are gone", "a restoring was cut short"])
def test_objects_that_are_gone_come_back_with_the_next_start(house: House, half: bool) -> None:
    """`rm -rf .harness/objects` loses no prompt: each comes out of its manifest again."""
    house.work({"run": "touch one"}, {"say": "done"})
    run = house.layout.run(house.result()["run"])
    shutil.rmtree(house.layout.path(names.OBJECTS))
    if half:
        objects.begin_restoring(house.layout)
    assert any("objects from the prompts that hold them" in line for line in recovered(house))
    rows = json.loads(Path(run.manifest).read_text())
    parts = [row["text"].encode() if "text" in row else objects.get(house.layout, row["object"]) for row in rows]
    assert b"".join(parts) == Path(run.prompt).read_bytes()
    assert recovered(house) == []


def test_a_lock_of_git_that_a_power_cut_brought_back_stops_nothing(house: House) -> None:
    """On the mission's refs, its branch and HEAD, though no run died, and on the branch of a restore that never was; a lock of
    another mission stays."""
    made = mission.load(house.layout)
    gone = (f"refs/harness/{made.id}/tip", f"refs/heads/{made.branch}", f"refs/heads/{made.branch}-at-a-run", "HEAD")
    refs = (*gone, "refs/harness/other/tip")
    locks = [house.project / ".git" / f"{ref}.lock" for ref in refs]
    for lock in locks:
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    done = house.work({"run": "echo 1 > 1.txt"})
    assert (done["outcome"], done["unlanded"]) == ("ok", "")
    assert [lock.exists() for lock in locks] == [False, False, False, False, True]
