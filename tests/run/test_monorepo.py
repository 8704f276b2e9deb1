"""A mission in a folder of a larger repository: all of it works there, and what is a person's elsewhere stays as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.mission import mission
from harness.mission.contract import Contract, Service
from harness.state import names
from harness.workplace import workplace
from tests import forked
from tests.crash import sampled
from tests.missions import CHECKOUT, House
from tests.planned import accept_all, claim, due, feature, lay, planned_from, reply
from tests.run.played import to_done
from tests.run.test_recover import kill, open_run, recovered

RUN_SH = str(CHECKOUT / "run.sh")
BELOW = "services/my [api] ü"
SHARED = 'test "$(cat ../../shared/util)" = 2'
DID = {"run": "echo done > made; cat ../../shared/util; echo 2 > ../../shared/util"}
CHECKS = ("test -f made", SHARED, 'test "$(cat set-up)" = "$(basename "$PWD")"', 'curl -fs "localhost:$PORT/old"')


def service() -> Service:
    """A server of the files in the folder where checks run."""
    return Service(name="web", run='python3 -m http.server "$PORT"', ready='curl -fs "localhost:$PORT/old"')


def begun(house: House, name: str = "made", plan: Contract | None = None) -> House:
    """A mission with one feature, and scripts that take it to DONE."""
    house.begin()
    lay(house, [feature("F-001")], plan or Contract(claims=[claim("VAL-001", f"test -f {name}")]))
    accept_all(house)
    house.script("planner", reply(features=[], contract=[]))
    house.script("worker", {"run": f"echo done > {name}"}, reply(status="implemented"))
    house.script("validator", reply(checks=[]))
    house.script("curator")
    return house


@pytest.fixture
def repo(bare: House) -> House:
    """A repository with services and a shared folder, and what a person has under way in it; no mission."""
    made = House(bare.folder, bare.env, f"repo/{BELOW}")
    made.project.mkdir(parents=True)
    top = bare.folder / "repo"
    for name, text in {f"{BELOW}/SPEC.md": "# A program\n", f"{BELOW}/old": "o\n", "shared/util": "1\n"}.items():
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(text)
    for name in ("README", "staged", "services/other"):
        (top / name).write_text("1\n")
    (made.project / ".gitignore").write_text("set-up\n")
    made.git("init", "-q", "-b", "main", "--template=", str(top))
    made.git("add", "-A", ":/")
    made.git("commit", "-q", "-m", "begin")
    for name in ("README", "staged", "services/other"):
        (top / name).write_text("mine\n")
    (top / "untracked").write_text("mine\n")
    made.git("add", ":/staged")
    return made


@pytest.fixture(params=["", 'confine = "off"'])
def ours(repo: House, request: pytest.FixtureRequest) -> House:
    """A mission in a folder of the repository, behind glass and without."""
    repo.base = (request.param,)
    known = Contract(setup='basename "$PWD" > set-up', services=[service()], claims=[claim("VAL-001", *CHECKS)])
    made = begun(repo, plan=known)
    made.script("worker", DID, reply(status="implemented"))
    return made


OFF = 'confine = "off"'


def among(*kept: str) -> pytest.MarkDecorator:
    """Behind glass or without, as the suite plays a test; HARNESS_TORTURE=1 plays it in both ways."""
    return pytest.mark.parametrize("ours", sampled(("", OFF), kept.__contains__), indirect=True)


def status(house: House) -> list[str]:
    """What git says of the whole repository."""
    return house.git("-c", "core.quotePath=false", "status", "--porcelain").split("\n")


THEIRS = [" M README", " M services/other", "M  staged", "?? untracked"]


def tracked(house: House, commit: str) -> set[str]:
    """The files that a commit changes, from the top."""
    said = house.git("-c", "core.quotePath=false", "diff-tree", "-r", "--name-only", "--no-commit-id", commit)
    return set(said.split("\n"))


@among("")
def test_it_goes_to_done_there_and_leaves_a_persons_files_alone(ours: House) -> None:
    """Agents, setup, services and checks run in the folder, in a tree of the whole repository; what lies beside it is there, and
    what a run changes there is committed and named. The work lands below a person's edits, and anybody can verify it."""
    said = to_done(ours)
    work = next(row for row in ours.ran() if row["role"] == "worker")
    assert tracked(ours, work["commit"]) == {f"{BELOW}/made", "shared/util"}
    assert work["reason"] == f"changed outside {BELOW}/: shared/util"
    assert f"changed outside {BELOW}/: shared/util" in said
    assert [status(ours), ours.git("diff", "--cached", "--name-only")] == [THEIRS, "staged"]
    assert (ours.project / "../../shared/util").read_text() == "2\n"
    assert (ours.project / "made").exists()
    tree = ours.tree / BELOW
    text = ours.prompt(work["run"])
    assert f"- Working directory: {tree}\n- Top of its repository, from which git names files: {ours.tree}\n" in text
    assert (tree / ".harness/bin/harness").readlink() == ours.state / "bin/harness"
    assert (ours.git("ls-files", "--", ".harness"), ours.refused(work["run"])) == ("", {})
    assert_verified_on_a_clone(ours)


def assert_verified_on_a_clone(ours: House) -> None:
    """In the clone's folder as it is, and in a fresh clone of that."""
    clone, contract = ours.folder / "a clone", ours.folder / "contract.md"
    shutil.copy(ours.layout.path(names.CONTRACT), contract)
    ours.git("clone", "-q", ours.layout.folders.top, str(clone))
    for words in (["--at", "HEAD"], []):
        done = ours.harness("verify", str(contract), "--in", str(clone / BELOW), *words)
        assert (done.code, f"{len(CHECKS)} of {len(CHECKS)} checks are green" in done.out) == (0, True), done


def test_a_plan_is_proven_there(repo: House) -> None:
    """Its checks were red in the folder before, with the neighbouring files, and no person has to accept anything."""
    begun(repo).script("worker", DID, reply(status="implemented"))
    planned_from(
        repo, Contract(claims=[claim("VAL-002", "test -f made && test -f ../other"), claim("VAL-003", SHARED)])
    )
    repo.script("planner", reply(features=[], contract=[]))
    done = repo.run([RUN_SH])
    assert (done.code, "proven    2 of 2 claims, by 2 checks" in done.out) == (0, True), done
    assert "accepted" not in done.out


def test_what_a_person_edits_stays_uncommitted_and_their_spec_counts(repo: House) -> None:
    """In the folder and elsewhere, staged as it was; each start names the rest, and `--take-edits` takes those of the folder."""
    begun(repo)
    repo.write("SPEC.md", "# Another\n")
    repo.write("old", "by hand\n")
    assert due(repo) == "NEXT planner"
    repo.script("planner", reply(features=[], contract=[]))
    said = to_done(repo)
    assert "runs do not see " in said and f"{BELOW}/old" in said and "SPEC.md;" not in said
    assert (repo.git("log", "--grep=Edits"), repo.read("spec.md")) == ("", "# Another\n")
    mine = {f' M "{BELOW}/SPEC.md"', f' M "{BELOW}/old"'}
    assert {*status(repo)} == {*THEIRS, *mine}
    assert repo.harness("init", "--take-edits").code == 0
    edits = repo.git("log", "--format=%H", "--grep=Edits").split("\n")
    assert [tracked(repo, one) for one in edits] == [{f"{BELOW}/old"}, {f"{BELOW}/SPEC.md"}]
    assert status(repo) == THEIRS
    repo.git("stash")
    repo.git("switch", "-q", "main")
    repo.write("SPEC.md", "# On main\n")
    to_done(repo)
    assert repo.read("spec.md") == "# On main\n"


def test_only_the_same_file_is_in_the_way(repo: House) -> None:
    """Where a run changed what a person is changing, only the branch moves."""
    begun(repo)
    repo.script("worker", {"run": "echo 2 > ../../README; echo > made"}, reply(status="implemented"))
    repo.role("worker")
    assert "README has changes of yours" in repo.result()["unlanded"]
    assert status(repo) == THEIRS


def test_a_repository_that_an_agent_made_in_its_tree_hides_nothing(ours: House) -> None:
    """It goes, the work is committed, and the next run is as any other."""
    ours.script("worker", {"run": "git init -q; git add -A; git -c user.name=a -c user.email=a commit -qm own"}, DID)
    work = ours.work({"run": "git init -q"}, DID, reply(status="implemented"))
    assert tracked(ours, work["commit"]) == {f"{BELOW}/made", "shared/util"}
    assert not (ours.tree / BELOW / ".git").exists()


def test_what_must_not_be_committed_is_kept_out_there_too(ours: House) -> None:
    """SPEC.md, the state, packages and secrets."""
    key = "AKIA" + "Q3EGRIA6XMLHTWZP"
    steps = f"echo x >> SPEC.md; mkdir -p venv; touch venv/x; echo 'id = {key}' > conf; git add -f .harness || true"
    work = ours.work({"run": steps}, DID, reply(status="implemented"))
    assert tracked(ours, work["commit"]) == {f"{BELOW}/made", "shared/util"}
    assert [line.split(" (")[0] for line in work["kept_out"]] == [f"{BELOW}/venv/", f"{BELOW}/conf"]
    assert f"{BELOW}/SPEC.md" in ours.refused(work["run"])


@among(OFF)
def test_a_changed_test_is_a_sign_about_the_check_that_names_it(ours: House) -> None:
    """Checks name files from the folder, git from the top."""
    ours.write("test_it.py", "assert 1 + 1 == 2\n")
    ours.git("add", ".")
    ours.git("commit", "-q", "-m", "a test", "--", ".")
    lay(ours, [feature("F-001")], Contract(claims=[claim("VAL-001", "python3 test_it.py")]))
    ours.work({"run": "echo > test_it.py"}, reply(status="implemented"))
    ours.role("validator", "F-001")
    assert f"{BELOW}/test_it.py, which a check of VAL-001 names" in ours.prompt()


@among("")
def test_a_run_that_is_killed_is_settled(ours: House) -> None:
    """Its work is kept as a commit of the whole repository, and the mission goes on from there."""
    ours.script("worker")
    role = open_run_there(ours)
    run_id = kill(ours, role)
    assert [line.split(";")[0] for line in recovered(ours)] == [f"{run_id} was killed"]
    assert tracked(ours, "HEAD") == {f"{BELOW}/1.txt"}
    assert status(ours) == THEIRS
    assert ours.work(DID, reply(status="implemented"))["outcome"] == "ok"
    assert (ours.project / "made").exists() and (ours.project / "1.txt").exists()


def open_run_there(house: House) -> subprocess.Popen[bytes]:
    """A worker whose agent has written 1.txt into the folder, and waits."""
    return open_run(house, place=house.tree / BELOW)


def test_a_new_service_of_which_the_repository_has_nothing_yet(repo: House) -> None:
    """Its folder is made in trees and clones."""
    new = House(repo.folder, repo.env, "repo/services/new one")
    new.write("SPEC.md", "# New\n")
    to_done(begun(new))
    assert tracked(new, "HEAD") == {"services/new one/made"}


def test_two_missions_work_in_one_repository_at_once(repo: House) -> None:
    """Each in its folder, to DONE, on one branch that holds the work of both."""
    other = House(repo.folder, repo.env, "repo/shared")
    other.scripts = repo.folder / "scripts of the other"
    other.write("SPEC.md", "# Shared\n")
    both = [begun(repo, "made-1"), begun(other, "made-2")]
    loops = [
        subprocess.Popen([RUN_SH], cwd=one.project, env=one.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for one in both
    ]
    said = [loop.communicate(timeout=forked.SECONDS)[0].decode() for loop in loops]
    assert [loop.returncode for loop in loops] == [0, 0], said
    assert {mission.load(one.layout).branch for one in both} == {repo.git("branch", "--show-current")}
    assert (repo.project / "made-1").exists()
    assert (other.project / "made-2").exists()
    assert status(repo) == [*THEIRS[:3], "?? shared/SPEC.md", THEIRS[3]]


def test_a_mission_at_the_top_and_one_below_it(repo: House) -> None:
    """A folder without a mission finds that of the top, and one that begins its own is told so."""
    top = House(repo.folder, repo.env, "repo")
    top.write("SPEC.md", "# All\n")
    assert "Its folder" not in top.program("init").out
    (repo.project / "deep").mkdir()
    (repo.project / "SPEC.md").rename(repo.folder / "kept")
    found = repo.run([RUN_SH, "status"])
    assert mission.load(top.layout).id in found.out
    refused = repo.run([RUN_SH, "init"])
    assert (refused.code, f"The mission in {top.project} is another one" in refused.err) == (64, True)
    (repo.folder / "kept").rename(repo.project / "SPEC.md")
    said = repo.program("init").out
    assert f"Its folder is {BELOW}/ in the repository {top.project}" in said
    assert f"The mission in {top.project} is another one" in said
    assert mission.load(top.layout).id != mission.load(repo.layout).id
    assert mission.load(repo.layout).id in repo.run([RUN_SH, "status"], where=repo.project / "deep").out


def test_it_is_put_away_and_the_next_one_begins_in_the_folder(repo: House) -> None:
    """`init --new`; its trees are gone, and git has forgotten them."""
    begun(repo)
    assert repo.run([RUN_SH]).code == 0
    made, tree = mission.load(repo.layout), repo.tree
    repo.git("stash")
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", made.branch)
    repo.write("SPEC.md", "# The next\n")
    done = repo.program("init", "--new")
    assert (done.code, f".harness/archive/{made.id}, its work on {made.branch}" in done.out) == (0, True), done
    assert (tree.exists(), str(tree) in repo.git("worktree", "list")) == (False, False)
    assert mission.load(repo.layout).branch == f"harness/{mission.load(repo.layout).id}"


def test_a_git_folder_that_comes_or_goes_stops_it(repo: House) -> None:
    """The mission never works on another repository than the one in which it began."""
    begun(repo)
    subprocess.run(["git", "init", "-q", "."], cwd=repo.project, env=repo.env, check=True)
    done = repo.role("worker")
    assert (done.code, "has a .git of its own by now. Remove that" in done.err) == (11, True), done
    shutil.rmtree(repo.project / ".git")
    assert repo.role("worker").code == 0
    nested = House(repo.folder, repo.env, "repo/nested")
    nested.repository()
    begun(nested)
    shutil.rmtree(nested.project / ".git")
    done = nested.role("worker")
    assert (done.code, "has lost its .git. Put it back" in done.err) == (11, True), done


def test_checks_by_hand_run_in_the_folder(repo: House) -> None:
    """`check` where the person is, `claim set` in a clone."""
    begun(repo)
    done = repo.harness("claim", "set", "VAL-001", "--check", "test -f old && test -f ../../README && test -f unmade")
    assert (done.code, "red" in done.out) == (0, True), done
    repo.write("unmade")
    done = repo.harness("check", "VAL-001")
    assert (done.code, re.findall(r"green|red", done.out)) == (0, ["green"]), done


def test_large_files_of_the_repository_are_in_the_home_of_checks(repo: House) -> None:
    """Those that git-lfs keeps in its git folder; in a run and by hand."""
    kept = Path(repo.layout.folders.top) / ".git/lfs/objects/ab/cd/abcd"
    kept.parent.mkdir(parents=True)
    kept.touch()
    begun(repo, plan=Contract(claims=[claim("VAL-001", 'test -e "$HOME/.git-lfs/objects/ab/cd/abcd"')]))
    assert "green" in repo.harness("check", "VAL-001").out
    repo.role("worker")
    repo.role("validator", "F-001")
    assert repo.feature().status == "passed"


def test_ignored_files_of_the_folder_are_carried(repo: House) -> None:
    """Named from the folder."""
    repo.base = ('carry = [".env"]',)
    begun(repo)
    repo.write(".gitignore", ".env\n")
    repo.git("commit", "-q", "-m", "ignore", "--", ".gitignore")
    repo.write(".env", "key\n")
    repo.work({"run": "cp .env seen"}, reply(status="implemented"))
    assert (repo.project / "seen").read_text() == "key\n"


def test_the_position_of_another_mission_is_left_alone(repo: House) -> None:
    """Git's locks of another mission's live refs are not cleared with those of a run that died."""
    begun(repo)
    ours, theirs = mission.load(repo.layout).id, "other-123456"
    refs = Path(repo.layout.folders.top) / ".git/refs/harness"
    names = [f"{ours}/tip.lock", f"{theirs}/tip.lock", "partial/dead.lock", "partial/alive.lock"]
    for name in names:
        (refs / name).parent.mkdir(parents=True, exist_ok=True)
        (refs / name).touch()
    workplace.use(repo.layout)
    workplace.clear_ref_locks(repo.layout, ["dead"])
    assert [name for name in names if (refs / name).exists()] == [f"{theirs}/tip.lock", "partial/alive.lock"]
