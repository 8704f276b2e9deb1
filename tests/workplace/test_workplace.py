"""Runs work in a tree of their own: what a person does in the project folder stands, and the work reaches their branch."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.commands import status
from harness.mission import mission
from harness.mission.contract import Contract
from harness.workplace import workplace
from tests.crash import TORTURE
from tests.missions import House, until
from tests.planned import accept_all, claim, due, feature, lay, reply, role, worked

DID = {"run": "echo done > made"}
MADE = Contract(claims=[claim("VAL-001", "test -f made")])
WAITS = "touch begun; until [ -e go ]; do sleep .01; done; rm begun go; echo done > made"


@pytest.fixture
def ours(unbegun: House) -> House:
    """A mission with one feature, begun by a person whom their git knows by name."""
    unbegun.git("config", "user.name", "Ann")
    unbegun.git("config", "user.email", "ann@example.org")
    unbegun.begin()
    lay(unbegun, [feature("F-001")], MADE)
    unbegun.script("worker", DID, reply(status="implemented"))
    unbegun.script("validator", reply(checks=[]))
    return unbegun


def by_person(house: House, name: str, text: str) -> str:
    """A person's commit in the project folder."""
    house.write(name, text)
    house.git("add", name)
    house.git("commit", "-q", "-m", f"{name} by hand")
    return house.head()


def names(house: House, commit: str = "HEAD") -> list[str]:
    """The files of a commit."""
    return house.git("ls-tree", "-r", "--name-only", commit).split("\n")


def tip(house: House) -> str:
    """The mission's own position."""
    return workplace.position(house.layout).head


def branch(house: House) -> str:
    """The mission's branch."""
    return mission.load(house.layout).branch


def assert_landed(house: House, status: str = "") -> None:
    """The project folder is at the mission's position, with nothing changed but `status`."""
    assert (house.head(), house.git("status", "--porcelain")) == (tip(house), status)


def to_the_end(house: House) -> str:
    """Start what is due until nothing more is; returns the last word."""
    for _ in range(8):
        word, *what = due(house).split()
        if word != "NEXT":
            break
        if what[0] == "curator":
            house.role("curator")
        else:
            role(house, *what)
    return due(house)


def during_a_run(house: House) -> subprocess.Popen[bytes]:
    """A worker whose agent waits, in the tree, for the file `go`."""
    house.script("worker", {"run": WAITS}, reply(status="implemented"))
    started = house.begin_role("worker", "F-001")
    until((house.tree / "begun").exists)
    return started


def go_on(house: House, started: subprocess.Popen[bytes]) -> None:
    """The waiting worker ends."""
    (house.tree / "go").touch()
    started.wait()


# what a person does stands


def test_what_a_person_committed_between_runs_is_in_the_next_runs_tree(ours: House) -> None:
    """Under their name, below the run's own commit; the project folder goes forward to both."""
    theirs = by_person(ours, "mine.txt", "mine\n")
    assert worked(ours, {"run": "grep mine mine.txt"}, DID)["outcome"] == "ok"
    assert ours.git("rev-parse", "HEAD^") == theirs
    assert ours.git("log", "-1", "--format=%an <%ae>", theirs) == "p <p@localhost>"
    assert_landed(ours)


def test_what_a_person_has_not_committed_stays_as_it_is_and_no_run_sees_it(ours: House) -> None:
    """Edits, staged or not or both, a new file, a removed and a renamed one: beside the work, which lands, and in no commit."""
    for name in ("staged", "both", "gone", "old"):
        by_person(ours, name, "1\n")
    for name in ("main.py", "staged", "both", "new"):
        ours.write(name, "mine\n")
    ours.git("add", "staged", "both", "new")
    ours.write("both", "mine, again\n")
    (ours.project / "gone").unlink()
    ours.git("mv", "old", "renamed")
    ours.write("new.txt", "not tracked\n")
    status, index = ours.git("status", "--porcelain"), ours.git("diff", "--cached")
    steps = "! grep -r mine --exclude-dir=.harness .; test -e gone && test -e old && test ! -e new"
    assert worked(ours, {"run": steps}, DID)["outcome"] == "ok"
    assert ours.git("show", "--name-only", "--format=", "HEAD") == "made"
    assert (ours.git("log", "--grep=Edits"), ours.git("diff", "--cached")) == ("", index)
    assert_landed(ours, status)


def test_what_a_person_does_while_a_worker_runs_is_theirs(ours: House) -> None:
    """An edit, a commit and a new file: none of it in the run's commit, all of it there, and the next run has the commit."""
    started = during_a_run(ours)
    theirs = by_person(ours, "mine.txt", "mine\n")
    ours.write("main.py", "print('mine')\n")
    ours.write("new.txt", "not tracked\n")
    go_on(ours, started)
    assert ours.git("show", "--name-only", "--format=", ours.result()["commit"]) == "made"
    assert (ours.project / "main.py").read_text() == "print('mine')\n"
    role(ours, "validator", "F-001")
    assert ours.result()["verdict"] == "green"
    assert_landed(ours, " M main.py\n?? new.txt")
    assert {"made", "mine.txt"} <= set(names(ours))
    ours.git("merge-base", "--is-ancestor", theirs, "HEAD")


def test_an_untracked_spec_stays_untracked(ours: House) -> None:
    """Runs read the accepted copy, and no commit takes the person's file."""
    ours.git("rm", "-q", "--cached", "SPEC.md")
    ours.git("commit", "-q", "-m", "SPEC.md is mine")
    worked(ours, DID)
    assert "SPEC.md" not in names(ours)
    assert_landed(ours, "?? SPEC.md")
    assert "It works." in ours.prompt()


def test_what_is_in_the_project_folder_never_stops_a_start(ours: House) -> None:
    """Changed files, another branch, a detached HEAD, a merge under way: the run works in its tree, and touches nothing."""
    ours.git("switch", "-q", "-c", "elsewhere")
    ours.write("main.py", "print('mine')\n")
    before = ours.head()
    assert worked(ours, DID)["outcome"] == "ok"
    assert (ours.head(), ours.git("status", "--porcelain")) == (before, " M main.py")
    assert ours.git("rev-parse", branch(ours)) == tip(ours) != before
    ours.git("checkout", "-q", "--detach")
    role(ours, "validator", "F-001")
    assert (ours.result()["verdict"], ours.head()) == ("green", before)
    assert "mine" not in ours.git("show", f"{branch(ours)}:main.py")


# the work reaches the person's branch


def edited(house: House, how: str) -> None:
    """A person has a file that the work changes, too."""
    if how != "untracked":
        by_person(house, "made", "1\n")
    house.write("made", "my own\n")
    if how == "staged":
        house.git("add", "made")
        house.write("made", "my own, again\n")
    if how == "deleted":
        (house.project / "made").unlink()


@pytest.mark.parametrize("how", ["untracked", "staged", *(["edited", "deleted"] if TORTURE else [])])
def test_a_file_in_the_way_is_not_touched_and_the_work_reaches_the_branch(ours: House, how: str) -> None:
    """The folder stays where it is: `git status` shows the edit as before, and nothing of the work. One line says how to have
    both; as soon as the way is free the next run lands it."""
    edited(ours, how)
    before, status, diff = ours.head(), ours.git("status", "--porcelain"), ours.git("diff", "HEAD")
    worked(ours, DID)
    line = ours.result()["unlanded"]
    assert "made has changes of yours" in line
    assert "\n" not in line
    assert (ours.head(), ours.git("status", "--porcelain"), ours.git("diff", "HEAD")) == (before, status, diff)
    assert (ours.git("rev-parse", branch(ours)), ours.git("show", f"{branch(ours)}:made")) == (tip(ours), "done")
    assert line in ours.program("status").out
    assert line in ours.role("validator", "F-001").out
    ours.git("stash", "-u")
    lay(ours, [feature("F-001", status="validating")], MADE)
    role(ours, "validator", "F-001")
    assert (ours.result()["unlanded"], ours.git("branch", "--list", "*-held")) == ("", "")
    assert_landed(ours)


def test_edits_in_the_way_do_not_stop_the_mission_and_both_come_together(ours: House) -> None:
    """DONE says where the work is; the command of the line brings the edit to it, and leaves nothing behind."""
    accept_all(ours)
    by_person(ours, "made", "\n\n\n")
    ours.write("made", "\n\n\nmine\n")
    ours.script("worker", {"run": "sed -i '1s/^/done/' made"}, reply(status="implemented"))
    assert to_the_end(ours) == "DONE"
    line = ours.result()["unlanded"]
    assert line in "\n".join(status.ending(ours.layout, "DONE"))
    done = ours.run(["bash", "-c", line.split("To have both: ")[1].split("   or ")[0]])
    assert done.code == 0, done
    assert ours.git("branch", "--show-current") == branch(ours)
    assert (ours.project / "made").read_text() == "done\n\n\nmine\n"
    assert_landed(ours, " M made")
    assert line not in ours.harness("status").out
    role(ours, "validator", "F-001")
    assert (ours.git("branch", "--list", "*-held"), ours.git("log", "--grep=Edits")) == ("", "")
    assert_landed(ours, " M made")


def test_a_commit_in_a_folder_that_stayed_behind_is_taken_in(ours: House) -> None:
    """As any commit of a person, and the folder follows again."""
    edited(ours, "edited")
    worked(ours, {"run": "echo more > more"})
    ours.git("commit", "-q", "-a", "-m", "mine")
    theirs = ours.head()
    role(ours, "validator", "F-001")
    assert ours.result()["unlanded"] == ""
    ours.git("merge-base", "--is-ancestor", theirs, branch(ours))
    assert ours.git("branch", "--list", "*-held") == ""
    assert_landed(ours)


def conflicting(house: House) -> str:
    """A worker and a person change one line of main.py, each in their own way; returns the person's commit."""
    started = during_a_run(house)
    house.write("main.py", "print('mine')\n")
    house.git("commit", "-q", "-a", "-m", "by hand")
    (house.tree / "main.py").write_text("print('run')\n")
    go_on(house, started)
    return house.head()


def test_a_conflict_is_told_to_both_and_settled_by_a_merge(ours: House) -> None:
    """The mission goes on meanwhile, nothing is overwritten, and after the person's merge both are one."""
    theirs = conflicting(ours)
    lay(
        ours,
        [feature("F-001", status="validating"), feature("F-002")],
        Contract(claims=[*MADE.claims, claim("VAL-002")]),
    )
    done = ours.role("validator", "F-001")
    line = f"conflict with the mission's. Settle it: git merge {tip(ours)[:12]}"
    assert "your changes of main.py on" in done.out
    assert line in done.out
    assert ours.result()["verdict"] == "green"
    worked(ours, {"run": "touch VAL-002"}, name="F-002")
    told = ours.prompt().split("a person changed them too")[1]
    assert "main.py" in told.split("\n## ")[0]
    assert (ours.head(), (ours.project / "main.py").read_text()) == (theirs, "print('mine')\n")
    ours.git("switch", "-q", "main")
    said = ours.role("curator").out.split("Settle it: ")[1].split("\n")[0]
    ours.run(["bash", "-c", said])
    assert ours.git("branch", "--show-current") == branch(ours)
    ours.git("checkout", "-q", "--ours", "main.py")
    ours.git("commit", "-q", "-a", "-m", "both")
    role(ours, "validator", "F-002")
    assert (ours.result()["verdict"], ours.result()["unlanded"]) == ("green", "")
    assert_landed(ours)
    assert {"made", "VAL-002"} <= set(names(ours))
    assert (ours.tree / "main.py").read_text() == "print('mine')\n"


def test_work_that_cannot_land_is_escalated_and_not_done(ours: House) -> None:
    """Proven work that is not on the branch asks a person, in the words of git; an answer alone does not make it done: one more
    run tries, and asks again. Once it is there the mission is DONE."""
    accept_all(ours)
    ours.git("bisect", "start")
    assert to_the_end(ours) == "ESCALATE unlanded"
    assert f"git merge --ff-only {tip(ours)[:12]}" in ours.read("escalation.md")
    assert ours.feature().status == "passed"
    assert ours.program("escalation", "answer", "go on").code == 0
    assert to_the_end(ours) == "ESCALATE unlanded"
    said = ours.read("escalation.md").split("To have the work there: ")[1].split("\n")[0]
    done = ours.run(["bash", "-c", said])
    assert done.code == 0, done
    assert ours.program("escalation", "answer", "it is there now").code == 0
    assert to_the_end(ours) == "DONE"
    assert_landed(ours)


def test_a_person_who_merges_by_hand_is_done_without_an_answer_lost(ours: House) -> None:
    """The command of the line itself, then the answer: DONE."""
    accept_all(ours)
    ours.git("bisect", "start")
    to_the_end(ours)
    ours.git("merge", "-q", "--ff-only", tip(ours)[:12])
    assert ours.program("escalation", "answer", "merged").code == 0
    assert to_the_end(ours) == "DONE"


# what a person's tools would execute

HOOKED = ".husky/pre-commit"
HOOK = {
    "run": "echo done > made; mkdir .husky; echo 'touch ran' > .husky/pre-commit; mkdir .vscode; echo {} > .vscode/tasks.json"
}


def test_what_a_persons_tools_execute_waits_for_them_and_the_mission_goes_on(ours: House) -> None:
    """The branch has it, their folder does not; one line names the files, and DONE says what to read before the merge."""
    accept_all(ours)
    before, name = ours.head(), branch(ours)
    worked(ours, HOOK)
    assert (ours.head(), ours.git("status", "--porcelain"), ours.git("rev-parse", name)) == (before, "", tip(ours))
    assert not (ours.project / ".husky").exists() and ".husky/pre-commit" in names(ours, name)
    line = ours.result()["unlanded"]
    files = ".husky/pre-commit (git, as a hook), .vscode/tasks.json (VS Code, when its folder is opened)"
    assert f": {files}. Review: " in line and "\n" not in line
    assert line in ours.role("validator", "F-001").out and line in ours.harness("status").out
    assert to_the_end(ours) == "DONE"
    ending = "\n".join(status.ending(ours.layout, "DONE"))
    assert line in ending
    assert ending.index(f"look      git diff main...{name} ") < ending.index(
        f"\nmerge     git switch main && git merge {name}"
    )
    assert (ours.head(), (ours.project / "made").exists()) == (before, False)
    assert f"follows {name} again" in ours.harness("workspace", "accept").out
    assert (ours.git("branch", "--show-current"), (ours.project / ".vscode/tasks.json").read_text()) == (name, "{}\n")
    assert_landed(ours)
    assert line not in ours.harness("status").out and line not in "\n".join(status.ending(ours.layout, "DONE"))
    assert ours.harness("workspace", "accept").out == "Nothing to accept.\n"


def test_what_a_person_does_in_a_folder_that_is_held_is_in_the_mission(ours: House) -> None:
    """A commit, with their name, and no edit; a conflict is settled by a merge in their folder, which frees it."""
    worked(ours, HOOK)
    by_person(ours, "mine.txt", "mine\n")
    ours.write("main.py", "print('mine')\n")
    both = Contract(claims=[*MADE.claims, claim("VAL-002")])
    lay(ours, [feature("F-001", status="validating"), feature("F-002")], both)
    worked(ours, {"run": "grep mine mine.txt && ! grep mine main.py && touch 2.txt"}, name="F-002")
    assert ours.result()["outcome"] == "ok"
    assert {"mine.txt", "2.txt", HOOKED} <= set(names(ours, branch(ours)))
    assert (ours.git("ls-files", HOOKED, "2.txt"), ours.git("status", "--porcelain")) == ("", " M main.py")
    by_person(ours, "made", "my own\n")
    said = (
        ours.role("validator", "F-001").out.split("your changes of made on ")[1].split("Settle it: ")[1].split("\n")[0]
    )
    assert ours.run(["bash", "-c", said]).code == 1
    ours.git("checkout", "-q", "--ours", "made")
    ours.git("add", "made")
    ours.git("commit", "-q", "-m", "both")
    role(ours, "validator", "F-001")
    assert (ours.result()["unlanded"], ours.git("branch", "--show-current")) == ("", branch(ours))
    assert_landed(ours, " M main.py")
    assert (ours.project / HOOKED).exists() and (ours.project / "made").read_text() == "my own\n"


def test_a_folder_that_cannot_follow_says_so_and_stays_held(ours: House) -> None:
    """`workspace accept` touches no file of a person's; it goes on with what they have committed."""
    worked(ours, HOOK)
    ours.write("made", "my own\n")
    done = ours.harness("workspace", "accept")
    assert done.code == 11 and "made has changes of yours" in done.err
    assert ((ours.project / "made").read_text(), (ours.project / HOOKED).exists()) == ("my own\n", False)
    (ours.project / "made").unlink()
    by_person(ours, "mine.txt", "mine\n")
    assert ours.harness("workspace", "accept").code == 0
    assert_landed(ours)
    assert {"mine.txt", "made", HOOKED} <= set(names(ours))


def test_a_reset_of_the_branch_is_respected(ours: House) -> None:
    """The next run works from where the person went back to, and does not bring the commit again."""
    before = ours.head()
    worked(ours, DID)
    dropped = ours.head()
    ours.git("reset", "-q", "--hard", "HEAD~1")
    lay(ours, [feature("F-001")], MADE)
    worked(ours, {"run": "test ! -e made; echo other > other"})
    assert ours.git("rev-parse", "HEAD^") == before
    assert ours.git("branch", "--contains", dropped) == ""
    assert_landed(ours)


@pytest.mark.parametrize("wanted", ["git merge --ff-only", "git update-ref"])
def test_a_reset_while_a_run_works_is_respected_too(ours: House, wanted: str) -> None:
    """The branch stays where the person moved it; one line names both ways on, and either settles it."""
    before = ours.head()
    worked(ours, {"run": "echo first > first"})
    lay(ours, [feature("F-001")], MADE)
    started = during_a_run(ours)
    ours.git("reset", "-q", "--hard", before)
    go_on(ours, started)
    line = ours.result()["unlanded"]
    assert f"you moved {branch(ours)} back to {before[:12]} while a run worked" in line
    role(ours, "validator", "F-001")
    assert (ours.result()["unlanded"], ours.head(), ours.git("status", "--porcelain")) == (line, before, "")
    command = next(part for part in line.split(": ")[1:] if part.startswith(wanted)).split(". ")[0]
    ours.git(*command.split()[1:])
    lay(ours, [feature("F-001", status="validating")], MADE)
    role(ours, "validator", "F-001")
    merged = wanted == "git merge --ff-only"
    assert (ours.result()["verdict"], ours.result()["unlanded"]) == ("green" if merged else "red", "")
    assert ("first" in names(ours), "made" in names(ours)) == (merged, merged)
    assert_landed(ours)


def test_a_deleted_branch_comes_back_with_all_the_work(ours: House) -> None:
    """The mission's position is kept beside it."""
    worked(ours, DID)
    at, name = tip(ours), branch(ours)
    ours.git("switch", "-q", "main")
    ours.git("branch", "-q", "-D", name)
    role(ours, "validator", "F-001")
    assert ours.result()["verdict"] == "green"
    assert ours.git("rev-parse", name) == at == tip(ours)
    assert ours.git("branch", "--show-current") == "main"


def test_a_branch_deleted_before_the_first_run_says_what_to_do(ours: House) -> None:
    """Nothing is started, and the command that it names puts the branch back."""
    base = ours.head()
    ours.git("switch", "-q", "main")
    ours.git("branch", "-q", "-D", branch(ours))
    ours.script("worker", DID)
    done = ours.role("worker", "F-001")
    assert done.code == 11, done
    command = f"git branch {branch(ours)} {base[:12]}"
    assert command in done.err
    ours.git(*command.split()[1:])
    assert ours.role("worker", "F-001").code == 0


# what a tree has besides


def test_carried_files_are_in_the_tree_and_in_no_commit(ours: House) -> None:
    """A copy of each ignored file that config.toml names, up to date at each run; what git would commit is not carried."""
    by_person(ours, ".gitignore", ".env\nlocal/\n")
    ours.write(".env", "A=1\n")
    ours.write("local/settings", "B=1\n")
    ours.write("open.txt", "C=1\n")
    ours.config('agent = "scripted"', 'carry = [".env", "local/settings", "open.txt"]')
    ours.script("worker", {"run": "grep A=1 .env; grep B=1 local/settings; test ! -e open.txt"}, DID)
    done = ours.role("worker", "F-001")
    assert ours.result()["outcome"] == "ok"
    assert "not carried into the tree: open.txt: git does not ignore it" in done.out
    assert names(ours) == [".gitignore", "SPEC.md", "made", "main.py"]
    ours.write(".env", "A=2\n")
    lay(ours, [feature("F-001", status="validating")], Contract(claims=[claim("VAL-001", "grep A=2 .env")]))
    role(ours, "validator", "F-001")
    assert ours.result()["verdict"] == "green"


def ready(house: House, command: str = "mkdir -p deps; echo x > deps/x") -> None:
    """A contract with a setup that counts its runs in `times.log`; git ignores that, and not what the setup makes."""
    by_person(house, ".gitignore", "*.log\n")
    claims = [claim("VAL-1", "test -f deps/x"), claim("VAL-2", "test -f deps/x")]
    known = Contract(setup=f"echo >> times.log; {command}", claims=claims)
    lay(house, [feature("F-001", "VAL-1"), feature("F-002", "VAL-2")], known)


def times(house: House) -> int:
    """How often the setup ran in the tree that is there."""
    return (house.tree / "times.log").read_text().count("\n")


def test_the_setup_runs_once_a_commit_and_before_a_worker_too(ours: House) -> None:
    """What it leaves untracked is there for every run, and in no commit."""
    ready(ours)
    assert worked(ours, {"run": "test -f deps/x"}, {"fail": "limit"})["outcome"] == "limit"
    assert worked(ours, {"run": "test -f deps/x"}, DID)["outcome"] == "ok"
    assert times(ours) == 1
    assert names(ours) == [".gitignore", "SPEC.md", "made", "main.py"]
    role(ours, "validator", "F-001")
    assert (ours.result()["verdict"], times(ours)) == ("green", 2)
    assert worked(ours, {"run": "test -f deps/x"}, {"run": "echo 2 > two"}, name="F-002")["outcome"] == "ok"
    assert times(ours) == 2
    assert "deps/x" not in names(ours)
    assert_landed(ours)


def test_what_the_setup_left_for_a_validator_is_there_for_the_next_worker(ours: House) -> None:
    """The commit is the same, so the setup does not run again."""
    ready(ours)
    ours.lay(feature("F-001", "VAL-1", status="validating"), feature("F-002", "VAL-2"))
    role(ours, "validator", "F-001")
    assert (ours.result()["verdict"], times(ours)) == ("green", 1)
    assert worked(ours, {"run": "test -f deps/x"}, DID, name="F-002")["outcome"] == "ok"
    assert times(ours) == 1


def test_a_worker_learns_of_a_red_setup(ours: House) -> None:
    """It is in the prompt, with its output: the worker may be who can mend it."""
    ready(ours, "echo no such package; false")
    worked(ours, DID)
    assert "no such package" in ours.prompt().split("setup is red in your tree")[1]


def test_a_tree_that_was_removed_is_made_again_and_set_up_again(ours: House) -> None:
    """Whoever clears the folder of states loses nothing but time, also where the commit is still the same. Without all of it the
    mission is unknown: its person says once that it is theirs."""
    ready(ours)
    worked(ours, {"fail": "limit"})
    shutil.rmtree(ours.tree.parent)
    assert worked(ours, {"run": "test -f deps/x"}, DID)["outcome"] == "ok"
    assert times(ours) == 1
    shutil.rmtree(ours.tree.parent.parent)
    assert (ours.harness("status").code, ours.harness("workspace", "accept").code) == (69, 0)
    assert worked(ours, {"run": "test -f deps/x -a -f made"}, {"run": "echo 2 > two"}, name="F-002")["outcome"] == "ok"
    assert_landed(ours)


def test_missions_in_two_clones_do_not_disturb_each_other(ours: House, tmp_path: Path) -> None:
    """Each has a tree of its own, and a run of one goes on while the other works."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = House(folder, {**ours.env})
    ours.git("clone", "-q", "-b", "main", str(ours.project), str(other.project))
    other.write("SPEC.md", "# Another program\n")
    other.begin()
    lay(other, [feature("F-001")], MADE)
    started = during_a_run(ours)
    assert worked(other, {"run": "echo other > other"})["outcome"] == "ok"
    go_on(ours, started)
    assert other.tree != ours.tree
    assert ("made" in names(ours), "other" in names(ours)) == (True, False)
    assert ("made" in names(other), "other" in names(other)) == (False, True)
    assert_landed(ours)


FOLLOWERS = {  # programs that follow links in a folder: they must end well, and read nothing of the state
    "cp": 'cp -rL . "$TMPDIR/copy" && ls -A "$TMPDIR/copy/.harness"',
    "tar": 'tar chf "$TMPDIR/all.tar" . && tar tf "$TMPDIR/all.tar" | sed -n "s,^./.harness/bin/,,p" | grep .',
    "grep": "grep -RIl harness .harness",
    "node": "node --test",
}


@pytest.mark.parametrize("program", FOLLOWERS)
def test_programs_that_follow_links_work_in_a_tree_and_do_not_read_the_state(ours: House, program: str) -> None:
    """The tree has the harness command alone, also where an older version left a link to the state or an agent made things."""
    if not shutil.which(program):
        pytest.skip(f"no {program} here")
    ours.write("one.test.js", "require('node:test')('one', () => {});\n")
    ours.git("add", "-A")
    ours.git("commit", "-q", "-m", "test")
    lay(ours, [feature()])
    for number, make in enumerate((older, forged, older)):
        ours.script("worker", {"run": f"{FOLLOWERS[program]} > told.{number}"})
        done = ours.role("worker", "F-001", "--again")
        assert "Traceback" not in done.err, done
        found = sorted(str(one.relative_to(ours.tree)) for one in (ours.tree / ".harness").rglob("*"))
        assert found == [".harness/bin", ".harness/bin/harness"]
        assert (ours.tree / ".harness/bin/harness").resolve() == ours.state / "bin" / "harness"
        told = (ours.tree / f"told.{number}").read_text()
        right = {"cp": "bin\n", "tar": "harness\n", "grep": ".harness/bin/harness\n"}
        assert "# fail 0" in told if program == "node" else told == right[program], told
        make(ours)
    here = ours.run(["bash", "-c", FOLLOWERS[program]])
    assert here.code == 0, here  # in the person's folder, too


def older(house: House) -> None:
    """The link to the whole state of older versions."""
    shutil.rmtree(house.tree / ".harness")
    (house.tree / ".harness").symlink_to(house.state)


def forged(house: House) -> None:
    """What an agent may leave there."""
    command = house.tree / ".harness" / "bin" / "harness"
    command.unlink()
    command.write_text("#!/bin/sh\nexit 0\n")
