"""SPEC.md belongs to the person: an edit at any moment is planned for, stays uncommitted, and stops nothing that was paid."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from harness.mission import mission
from harness.mission.contract import Contract
from harness.workplace import workplace
from tests.crash import sampled
from tests.missions import House, until
from tests.planned import accept_all, claim, due, feature, lay, reply
from tests.run.played import to_done

ASKED = "# A program\n\n## Part\n\nIt works, and it greets.\n"
DID = {"run": "echo done > made"}
WAITS = {"run": "touch begun; until [ -e go ]; do sleep .01; done; rm begun go"}
PLAN = reply(features=[], contract=[])


@pytest.fixture
def ours(house: House) -> House:
    """A mission with one feature, of a person whom their git knows by name."""
    house.git("config", "user.name", "Ann")
    house.git("config", "user.email", "ann@example.org")
    lay(house, [feature("F-001")], Contract(claims=[claim("VAL-001", "test -f made")]))
    accept_all(house)
    house.script("planner", PLAN)
    house.script("worker", DID, reply(status="implemented"))
    house.script("validator", reply(checks=[]))
    house.script("curator")
    return house


def edit(house: House, text: str = ASKED) -> None:
    """A person saves SPEC.md."""
    house.write("SPEC.md", text)


def planners(house: House) -> list[str]:
    """The ids of the planners' runs, oldest first."""
    return [row["run"] for row in house.ran() if row["role"] == "planner"]


def during(house: House, role: str, *args: str) -> None:
    """A person saves SPEC.md while the agent of this role works."""
    last = {"planner": [PLAN], "worker": [DID, reply(status="implemented")]}[role]
    house.script(role, WAITS, *last)
    started = house.begin_role(role, *args)
    until((house.tree / "begun").exists)
    edit(house)
    (house.tree / "go").touch()
    started.wait()
    house.script(role, *last)
    assert house.result()["outcome"] == "ok", house.result()


def assert_taken(house: House, status: str = " M SPEC.md", runs: int = 1) -> None:
    """A planner has seen the edit, no commit is made of it; the mission is done."""
    to_done(house)
    assert house.read("spec.md") == ASKED == (house.project / "SPEC.md").read_text()
    assert len(planners(house)) == runs
    assert "it greets" in house.prompt(planners(house)[-1])
    assert house.git("status", "--porcelain") == status
    assert house.git("log", "--format=%s", "--invert-grep", "--grep=by hand", "--", "SPEC.md") == "begin"


def assert_taken_as(house: House, data: bytes) -> None:
    """The mission is done after one plan, and the person's file is as they wrote it."""
    to_done(house)
    assert house.read("spec.md") == ASKED
    assert len(planners(house)) == 1
    assert (house.project / "SPEC.md").read_bytes() == data
    assert house.git("status", "--porcelain") == ""
    done = house.harness("replay", "--all")
    assert done.code == 0, done


def test_an_edit_before_a_start(ours: House) -> None:
    """It is planned for before anything else runs, as it is on disk; of other files that a person edits runs see nothing."""
    edit(ours)
    ours.write("main.py", "print('mine')\n")
    assert due(ours) == "NEXT planner"
    assert_taken(ours, " M SPEC.md\n M main.py")


def test_a_spec_from_another_system_is_planned_once(ours: House) -> None:
    """With its mark and line ends: no prompt has them, each is rebuilt, and the file and its commit keep them."""
    edit(ours)
    spec = ours.project / "SPEC.md"
    spec.write_bytes(b"\xef\xbb\xbf" + ASKED.replace("\n", "\r\n").encode())
    data = spec.read_bytes()
    ours.git("commit", "-q", "-am", "by hand")
    assert due(ours) == "NEXT planner"
    assert_taken_as(ours, data)
    prompts = b"".join(Path(ours.layout.run(one["run"]).prompt).read_bytes() for one in ours.ran())
    assert b"it greets" in prompts and b"\r" not in prompts and b"\xef\xbb\xbf" not in prompts


def test_an_edit_that_is_staged_and_saved_again(ours: House) -> None:
    """What is in the folder counts."""
    edit(ours, "# Half\n")
    ours.git("add", "SPEC.md")
    edit(ours)
    assert_taken(ours, "MM SPEC.md")


def test_an_edit_while_a_planner_works(ours: House) -> None:
    """The plan that lands then is for the spec of its prompt, so that a planner is due again."""
    edit(ours, "# A program that waits\n")
    during(ours, "planner")
    assert ours.read("spec.md") == "# A program that waits\n"
    assert due(ours) == "NEXT planner"
    assert_taken(ours, runs=2)


def test_an_edit_while_a_worker_works(ours: House) -> None:
    """It is not in the worker's commit."""
    during(ours, "worker", "F-001")
    assert ours.git("show", "--name-only", "--format=", ours.result()["commit"]) == "made"
    assert (ours.project / "SPEC.md").read_text() == ASKED
    assert due(ours) == "NEXT planner"
    assert_taken(ours)


def test_an_edit_that_is_committed_on_the_missions_branch(ours: House) -> None:
    """The commit stays what it is."""
    edit(ours)
    ours.git("commit", "-q", "-am", "by hand")
    assert due(ours) == "NEXT planner"
    assert_taken(ours, "")
    assert ours.git("show", f"{mission.load(ours.layout).branch}:SPEC.md") == ASKED.strip()


@pytest.mark.parametrize("how", ["edits it", "commits it", "removes it"])
def test_what_a_workers_agent_writes_into_its_spec_is_never_the_spec(ours: House, how: str) -> None:
    """It is put back and kept, no commit of the run has it, and no planner is due."""
    words = {
        "edits it": "echo mine > SPEC.md",
        "commits it": "echo mine > SPEC.md; git commit -qam x || true",
        "removes it": "rm SPEC.md",
    }
    ours.script("worker", DID, {"run": words[how]}, reply(status="implemented"))
    ours.role("worker", "F-001")
    result = ours.result()
    assert ours.git("show", "--name-only", "--format=", result["commit"]) == "made"
    assert result["refused"] == ["SPEC.md"]
    assert ours.refused()["SPEC.md"] == (b"" if how == "removes it" else b"mine\n")
    assert ours.git("status", "--porcelain") == ""
    assert due(ours) == "NEXT validator F-001"


@pytest.mark.parametrize("more", ["", "; echo mine >> SPEC.md"])
@pytest.mark.parametrize("role", ["worker", "planner"])
def test_an_uncommitted_spec_is_in_the_tree_and_in_no_commit(ours: House, role: str, more: str) -> None:
    """Every run reads the person's; what an agent writes into it is refused, and kept where the run commits."""
    edit(ours)
    last = PLAN if role == "planner" else reply(status="implemented")
    ours.script(role, {"run": f"grep greets SPEC.md{more}"}, DID, last)
    ours.role(role, *["F-001"] * (role == "worker"))
    assert (ours.result()["outcome"], ours.result()["refused"]) == ("ok", ["SPEC.md"] * bool(more)), ours.result()
    if role == "worker":
        assert ours.git("show", "--name-only", "--format=", ours.result()["commit"]) == "made"
        assert ours.refused().get("SPEC.md", b"") == (f"{ASKED}mine\n".encode() if more else b"")
    assert ours.git("status", "--porcelain") == " M SPEC.md"


def test_a_worker_that_writes_only_its_spec_has_done_nothing(ours: House) -> None:
    """No commit is made."""
    head = ours.head()
    ours.script("worker", {"run": "echo mine > SPEC.md"}, reply(status="implemented"))
    ours.role("worker", "F-001")
    assert (ours.result()["outcome"], ours.head()) == ("no_op", head)


def test_a_spec_that_a_worker_makes_is_not_committed(ours: House) -> None:
    """Where a person keeps SPEC.md out of git."""
    ours.git("rm", "-q", "--cached", "SPEC.md")
    ours.git("commit", "-q", "-m", "SPEC.md is mine")
    ours.script("worker", DID, {"run": "echo mine >> SPEC.md"}, reply(status="implemented"))
    ours.role("worker", "F-001")
    assert ours.git("show", "--name-only", "--format=", ours.result()["commit"]) == "made"
    assert ours.git("status", "--porcelain") == "?? SPEC.md"


FLAGS = {
    "tracked": ":",
    "untracked": "git rm -q --cached SPEC.md && git commit -qm 'SPEC.md is mine'",
    "assume-unchanged": "git update-index --assume-unchanged SPEC.md",
    "skip-worktree": "git update-index --skip-worktree SPEC.md",
}


ROWS = itertools.product(("worker", "planner"), FLAGS, ("auto", "off"))
PLAYED = {  # each value, and each role with each confinement
    ("worker", "tracked", "auto"),
    ("planner", "untracked", "auto"),
    ("worker", "assume-unchanged", "off"),
    ("planner", "skip-worktree", "off"),
}


@pytest.mark.parametrize(("role", "kind", "confine"), sampled(ROWS, PLAYED.__contains__))
def test_what_an_agent_writes_never_reaches_the_accepted_spec(ours: House, role: str, kind: str, confine: str) -> None:
    """However git knows the file, by a person's wish and, where it can, by the agent's; with a plan that lands afterwards."""
    ours.config('agent = "scripted"', f'confine = "{confine}"')
    ours.run(["bash", "-c", FLAGS[kind]])
    asked, more = ours.read("spec.md"), ["F-001"] if role == "worker" else []
    last = PLAN if role == "planner" else reply(status="implemented")
    ours.script(role, DID, {"run": f"{{ {FLAGS[kind]}; }} || true; echo mine > SPEC.md"}, last)
    ours.role(role, *more)
    assert ours.result()["outcome"] == "ok", ours.result()
    assert "planner" not in due(ours)
    edit(ours)
    ours.script("planner", PLAN)
    assert due(ours) == "NEXT planner"
    ours.role("planner")
    assert (ours.read("spec.md"), asked == ASKED) == (ASKED, False)
    assert "mine" not in ours.prompt(ours.result()["run"])


# other branches


# each value of both is in one of these rows; HARNESS_TORTURE=1 runs all
MERGED = itertools.product(("edited", "committed", "edited, beside other work"), (True, False))


@pytest.mark.parametrize(("how", "deleted"), sampled(MERGED, lambda row: (row[0] == "committed") != row[1]))
def test_a_merged_mission_goes_on_with_a_changed_spec(ours: House, how: str, deleted: bool) -> None:
    """On top of the branch that it was merged into; its own branch is made again where it is gone."""
    to_done(ours)
    branch = mission.load(ours.layout).branch
    ours.git("switch", "-q", "main")
    ours.git("merge", "-q", "--no-ff", "-m", "merged", branch)
    if deleted:
        ours.git("branch", "-q", "-d", branch)
    if "beside" in how:
        ours.write("other")
        ours.git("add", "other")
        ours.git("commit", "-q", "-m", "other")
    main = ours.head()
    edit(ours)
    if how == "committed":
        ours.git("commit", "-q", "-am", "by hand")
        main = ours.head()
    status = ours.git("status", "--porcelain")
    to_done(ours)
    assert len(planners(ours)) == 1
    assert "it greets" in ours.prompt(planners(ours)[0])
    ours.git("merge-base", "--is-ancestor", main, branch)
    assert (ours.git("branch", "--show-current"), ours.git("status", "--porcelain")) == ("main", status)
    assert (ours.project / "SPEC.md").read_text() == ASKED


@pytest.mark.parametrize("how", ["commit", "stash"])
def test_an_older_spec_on_another_branch_is_no_edit(ours: House, how: str) -> None:
    """A person who looks at another branch, with their edit committed or put aside, asks for nothing; what they change there
    they do ask for."""
    edit(ours)
    if how == "commit":
        ours.git("commit", "-q", "-am", "by hand")
    to_done(ours)
    if how == "stash":
        ours.git("stash")
    ours.git("switch", "-q", "main")
    assert mission.spec_changed(ours.layout)
    assert due(ours) == "DONE"
    assert workplace.asked_spec(ours.layout) == ASKED.encode()
    ours.write("SPEC.md", "# Another program\n")
    assert due(ours) == "NEXT planner"
    ours.role("planner")
    assert ours.read("spec.md") == "# Another program\n"
    assert ours.git("log", "--all", "--grep=Edits") == ""
    assert ours.git("status", "--porcelain") == "M SPEC.md".rjust(10)
    assert due(ours).startswith("NEXT validator")
    assert Path(ours.layout.folders.asked_spec).read_text() == "# Another program\n"
