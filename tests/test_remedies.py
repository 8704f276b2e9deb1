"""Each shell command that a message names works as printed: a case makes the situation, reads the command from the real output,
runs it in a shell, and looks at what is there afterwards."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext

import click
import pytest

from harness.base.errors import BrokenFile, HarnessError
from harness.cli.main import cli
from harness.git import landing, repository, settings
from harness.mission import mission, roles
from harness.proof import check_runs
from harness.state import names
from tests.git.checkouts.test_submodules import vendor
from tests.git_repository import Repository
from tests.missions import CHECKOUT, House
from tests.planned import reply, role, worked
from tests.printed_commands import GAP, other_commands, own, own_commands, printed, shell

Test = Callable[..., None]

# what the cases below are for: commands that mend something, or show it
REPAIRS, LOOKS = Counter[str](), Counter[str]()
NETWORK = "it installs a package from an index"
SESSIONS = "cli/test_sessions.py::test_a_damaged_session_is_named_and_repaired"
LONG = "it stands where a conflict is longer than the prompt shows"
LOOKED = "commands/test_delivery.py::test_the_work_is_looked_at_and_merged_as_the_status_says"
SWITCHED = "commands/test_delivery.py::test_work_without_another_branch_is_switched_to"
LANDED = "commands/test_delivery.py::test_what_was_landed_is_looked_at_merged_and_verified"
SETTLED = "commands/test_delivery.py::test_a_conflict_with_the_base_is_settled_by_hand"
ELSEWHERE = {  # a test of the module's own runs the command as printed
    "commands.status: git diff …...…": LOOKED,
    "commands.status: git switch … && git merge …": LOOKED,
    "commands.status: git switch …": SWITCHED,
    "commands.delivery: git log -p …..…": LANDED,
    "commands.delivery: git branch": LANDED,
    "commands.delivery: git log …": LANDED,
    "commands.delivery: git switch …": LANDED,
    "commands.delivery: harness verify --at …": LANDED,
    "commands.delivery: git switch … && git merge …": SETTLED,
    "builtin.sessions._log_rows: harness sessions repair SESSION --user USER": SESSIONS,
    "builtin.sessions.state: harness sessions repair SESSION --user USER": SESSIONS,
    "cli._run_view: harness replay …": "replay/upkeep/test_export.py::test_an_export_replays_on_another_machine",
    "cli._run_view: git init -q && git fetch repository.bundle 'refs/*:refs/exported/*'": (
        "replay/upkeep/test_export.py::test_an_export_replays_on_another_machine"
    ),
    "git.landing: git stash -u && git switch … && git stash pop": (
        "workplace/test_workplace.py::test_edits_in_the_way_do_not_stop_the_mission_and_both_come_together"
    ),
    "git.merges: git merge ……": "workplace/test_workplace.py::test_a_reset_while_a_run_works_is_respected_too",
    "workplace.workplace: git update-ref … …": (
        "workplace/test_workplace.py::test_a_reset_while_a_run_works_is_respected_too"
    ),
    "workplace.workplace: git branch … …": (
        "workplace/test_workplace.py::test_a_branch_deleted_before_the_first_run_says_what_to_do"
    ),
}
UNTRIED = {  # commands that no test runs, with the reason
    "agents.builtin: … -m pip install '…' pathspec ripgrep==14.1.0 (from a checkout": NETWORK,
    "mission.machine_table: pip install 'harness-missions[dask]'": NETWORK,
    "run.notice._otlp: pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http": NETWORK,
    "stores.urls: pip install 'harness-missions[…]'": NETWORK,
    "unattended._crontab: crontab -e": "it opens an editor",
    "cli._init: export …=…": "a person has the value",
    "run._inputs: git log -p ….": LONG,
    "run._inputs: git show … #2": LONG,
    "run.settle.worker: git show --stat …": "it is the one of `run._inputs`, in the result",
}
NO_REMEDY = {  # what looks like a command and is none for the reader, or one that has failed
    'agents._recording: git -C "$(git rev-parse --show-toplevel': "a script that plays a recording",
    "agents._recording: harness … … </dev/null || true": "a script that plays a recording",
    "builtin.sessions._compaction: KEEP:": "a form of a line",
    "builtin.sessions._compaction: \\t]*(.*?)[*": "a pattern",
    "builtin.sessions._placement: placement = …:…": "a key of a file",
    'builtin.sessions._placement: scope = "session"': "a key of a file",
    "builtin.sessions._sandboxes: cd … && ls | grep ^…": "run by the program",
    "builtin.sessions._sandboxes: mkdir -p … && tar -c --exclude=./…": "run by the program",
    "cli.help: harness …": "the version",
    "cli.quick: harness next [--json | --leaving WORD | --lull SECONDS LINE | --told LINE]": "the form of a command",
    "cli.quick: harness note [--tag TAG] [--] TEXT": "the form of a command",
    "git.first_commit: git version": "the words of git",
    "run.prompt: json harness": "the mark of a block",
    "run.prompt: … --run …": "the beginning of commands",
    "state.layout: unset it": "a word",
    "unattended._crontab: crontab -": "a command that failed",
    "unattended._crontab: crontab -l": "a command that failed",
    "unattended._crontab: harness schedule": "who wrote a line",
}
OF_A_ROLE = (
    "",
    GAP,
    f"{GAP} {GAP}",
    f"{GAP} {GAP} --again",
    "ROLE FEATURE --again",
)  # run.sh itself, or a role's script


def repairs(*keys: str) -> Callable[[Test], Test]:
    """Marks the case of commands that mend what was wrong."""
    REPAIRS.update(keys)
    return lambda test: test


def looks(*keys: str) -> Callable[[Test], Test]:
    """Marks the case of commands that show something: they end well, and say what they are for."""
    LOOKS.update(keys)
    return lambda test: test


# the kinds


def test_every_printed_command_has_a_case_or_a_reason() -> None:
    """A new message without one is named here, and so is a case whose message is gone."""
    others = [Counter(key.removesuffix(" #2") for key in table) for table in (ELSEWHERE, UNTRIED, NO_REMEDY)]
    known = sum([REPAIRS, LOOKS, *others], Counter[str]())
    assert known == other_commands()


def test_the_tests_elsewhere_exist() -> None:
    """By file and name."""
    for place in ELSEWHERE.values():
        path, _, name = place.partition("::")
        tree = ast.parse((CHECKOUT / "tests" / path).read_text())
        assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)], place


def is_taken(words: list[str]) -> bool:
    """Whether the command line takes these words, decided by its parser; nothing runs."""
    context, command = click.Context(cli, info_name="harness"), cli.get_command(click.Context(cli), words[0])
    rest = words[1:]
    while isinstance(command, click.Group) and rest and command.get_command(context, rest[0]):
        command, rest = command.get_command(context, rest[0]), rest[1:]
    assert command is not None, words
    command.make_context(words[0], rest, parent=context)
    return True


def test_the_command_line_takes_each_command_of_ours_that_is_printed() -> None:
    """With its arguments; what each of them does is tested with it."""
    found = {words for _, words in own_commands() if words not in OF_A_ROLE}
    assert len(found) > 80
    for words in sorted(found):
        plain = re.sub(rf"[\[\]]|^-C {GAP} |^COMMAND", lambda sign: "status" if sign[0] == "COMMAND" else "", words)
        given = [re.sub(r"^[A-Z]+$", "1", word) for word in shlex.split(plain.replace(GAP, "1"))]
        with pytest.raises(click.exceptions.Exit) if "--help" in given else nullcontext():
            assert is_taken(given), words


# before a mission


@repairs("git.first_commit: git init")
def test_a_folder_without_a_repository_gets_one(bare: House) -> None:
    """Then the mission starts."""
    bare.project.mkdir()
    bare.write("SPEC.md")
    shell(bare, printed("git.first_commit: git init", bare.harness("init").err))
    assert bare.harness("init").code == 0


@repairs("git.first_commit: git init")
def test_a_folder_that_is_ignored_gets_a_repository_of_its_own(unbegun: House) -> None:
    """Then the mission starts there."""
    unbegun.write("sub/SPEC.md")
    unbegun.write(".gitignore", "sub\n")
    said = unbegun.harness("-C", "sub", "init").err
    shell(unbegun, printed("git.first_commit: git init", said), where=unbegun.project / "sub")
    assert unbegun.harness("-C", "sub", "init").code == 0


@repairs("run.starting: git switch NAME")
def test_a_detached_head_is_put_back_on_a_branch(unbegun: House) -> None:
    """Then the mission starts."""
    unbegun.git("switch", "-q", "--detach")
    command = printed("run.starting: git switch NAME", unbegun.harness("init").err)
    shell(unbegun, command.replace("NAME", "main"))
    assert unbegun.harness("init").code == 0


@repairs("run.starting: mkdir … && harness -C … init --example")
def test_an_example_that_would_write_over_files_is_laid_beside_them(
    unbegun: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where run.sh is called by a relative path."""
    (unbegun.folder / "run.sh").symlink_to(CHECKOUT / "run.sh")
    monkeypatch.setenv("HARNESS_CALLED", "../run.sh")
    said = unbegun.harness("init", "--example").err
    found = re.search(r"mkdir .*--example", said)
    assert found, said
    shell(unbegun, found[0])
    assert (unbegun.project / "example/SPEC.md").exists()


@repairs("git.refs: git branch -m … NEWNAME")
def test_a_branch_in_the_way_is_renamed(unbegun: House) -> None:
    """Then the mission starts."""
    unbegun.git("branch", "harness")
    shell(unbegun, printed("git.refs: git branch -m … NEWNAME", unbegun.harness("init").err))
    assert unbegun.harness("init").code == 0


MODULES = "git.checkouts.submodules: git submodule update --init --recursive"


@repairs(MODULES)
def test_a_submodule_of_a_fresh_clone_is_fetched_by_the_person(unbegun: House) -> None:
    """From an address that the harness does not reach by itself."""
    vendor(Repository(unbegun.project))
    unbegun.git("submodule", "deinit", "-q", "--all")
    shutil.rmtree(unbegun.project / ".git/modules")
    command = printed(MODULES, unbegun.harness("init").out)
    assert "not to be had" in unbegun.harness("doctor").out
    shell(unbegun, f"export GIT_ALLOW_PROTOCOL=file && {command}")
    assert unbegun.harness("doctor").out.count("): available") == 2


GRANTS = "workspace.grants: git rm -r --cached .harness && git commit -m 'Remove .harness'"


@pytest.mark.parametrize("ours", [True, False])
@repairs(GRANTS)
def test_a_state_that_the_repository_brings_is_removed_from_it(bare: House, house: House, ours: bool) -> None:
    """A mission that was committed by mistake goes on; of another's the folder is left, to be moved away."""
    if not ours:
        shutil.rmtree(house.state)
        house.write(".harness/config.toml", "")
    house.git("update-index", "--add", "--cacheinfo", f"100644,{house.git('hash-object', '-w', 'main.py')},.harness/x")
    house.git("commit", "-q", "-m", "with the state")
    shell(house, printed(GRANTS, house.harness("status").err))
    made = house.harness("status")
    assert ("git rm" not in made.err, "Or move it away" in made.err) == (True, not ours), made


@repairs("mission.roles: git -C … restore roles/common.md")
def test_a_lost_text_of_all_roles_is_restored(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """From whatever folder."""
    home = house.folder / "the checkout"
    shutil.copytree(CHECKOUT / "roles", home / "roles")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=p", "-c", "user.email=p", "commit", "-qm", "all"]):
        assert house.run(["git", *words], home).code == 0
    (home / "roles/common.md").unlink()
    monkeypatch.setenv("HARNESS_HOME", str(home))
    with pytest.raises(BrokenFile) as raised:
        roles.load(house.layout, "worker")
    shell(house, printed("mission.roles: git -C … restore roles/common.md", str(raised.value)))
    assert roles.load(house.layout, "worker")


# a mission's branch and the folder


@repairs("git._executables: git merge …", "git._executables: git diff HEAD...…")
def test_files_that_tools_execute_are_reviewed_and_taken(bare: House) -> None:
    """On a branch whose name the shell would read otherwise."""
    bare.repository()
    bare.git("switch", "-q", "-c", "#1&x")
    use(bare)
    made = with_file(bare, ".envrc")
    note = landing.land(str(bare.project), "#1&x", made)
    assert ".envrc" in shell(bare, printed("git._executables: git diff HEAD...…", note)).out
    shell(bare, printed("git._executables: git merge …", note))
    assert (bare.project / ".envrc").exists()


def use(house: House) -> None:
    """Let the git of this process have the settings of the repository."""
    settings.use(str(house.project), settings.record(str(house.project)), str(house.folder / "private"))


def with_file(house: House, name: str) -> str:
    """A commit with this file, above HEAD, and on no branch."""
    (house.project / name).write_text("theirs\n")
    house.git("add", name)
    house.git("commit", "-q", "-m", name)
    made = house.head()
    house.git("reset", "-q", "--hard", "HEAD^")
    return made


@repairs("git.landing: … merge --ff-only …")
def test_a_branch_in_another_folder_takes_the_work_there(bare: House) -> None:
    """A worktree of the person has it checked out."""
    bare.repository()
    there = bare.folder / "an other"
    bare.git("worktree", "add", "-q", "-b", "topic", str(there))
    use(bare)
    made = with_file(bare, "new.txt")
    note = landing.land(str(bare.project), "topic", made)
    found = re.search(r"git -C .* merge --ff-only \w+", note)
    assert found, note
    shell(bare, found[0])
    assert (there / "new.txt").exists()


@repairs("git.merges: git switch …")
def test_edits_are_taken_on_the_branch_of_the_mission(unbegun: House) -> None:
    """Whose name the shell would read otherwise."""
    unbegun.git("switch", "-q", "-c", "#1&x")
    unbegun.harness("init")
    unbegun.git("switch", "-q", "main")
    unbegun.write("main.py", "print('mine')\n")
    shell(unbegun, printed("git.merges: git switch …", unbegun.harness("init", "--take-edits").err))
    assert unbegun.harness("init", "--take-edits").code == 0
    assert unbegun.git("status", "--porcelain") == ""


@looks("git.repository: git fsck")
@repairs("git.repository: git switch NAME")
def test_a_branch_that_cannot_be_read_is_shown_and_left(unbegun: House) -> None:
    """By git, whose check ends with codes of its own."""
    unbegun.git("branch", "other")
    (unbegun.project / ".git/refs/heads/main").write_text("torn")
    with pytest.raises(HarnessError) as raised:
        repository.dirty(str(unbegun.project))
    said = str(raised.value)
    assert "refs/heads/main" in shell(unbegun, printed("git.repository: git fsck", said), code=None).err
    shell(unbegun, printed("git.repository: git switch NAME", said).replace("NAME", "other"))
    assert repository.dirty(str(unbegun.project)) == []


@repairs("run._archiving: git merge …")
def test_the_work_of_an_archived_mission_is_taken(house: House) -> None:
    """Where another branch is checked out."""
    house.work({"run": "touch 1.txt"})
    house.git("switch", "-q", "main")
    shell(house, printed("run._archiving: git merge …", house.harness("init", "--new", "--abandon").out))
    assert (house.project / "1.txt").exists()


@repairs("commands.setup.removal: git branch NAME …")
def test_the_newest_commit_of_a_removed_mission_is_kept(house: House) -> None:
    """Where its branch does not have it."""
    house.work({"run": "touch 1.txt"})
    house.git("reset", "-q", "--hard", "HEAD^")
    said = house.harness("remove", mission.load(house.layout).id)
    shell(house, printed("commands.setup.removal: git branch NAME …", said.out).replace("NAME", "kept"))
    assert "1.txt" in house.git("ls-tree", "--name-only", "kept")


@repairs("workplace.workplace: git fetch origin '+refs/harness/*:refs/harness/*' …", "run.starting: git update-ref … …")
def test_commits_that_were_not_carried_are_fetched_or_left(house: House) -> None:
    """In a clone: without the branch, with an older one, and where nobody has the work any more."""
    begun, branch = house.head(), mission.load(house.layout).branch
    house.work({"run": "touch 1.txt"})
    key = "workplace.workplace: git fetch origin '+refs/harness/*:refs/harness/*' …"
    for name, commit in (("without", ""), ("older", begun), ("left", begun)):
        clone = House(house.folder, house.env, name)
        house.run(["git", "clone", "-q", "-b", "main", str(house.project), str(clone.project)])
        shutil.copytree(house.state, clone.state, symlinks=True)
        if commit:
            clone.git("branch", "-q", branch, commit)
        if name == "left":
            said = clone.harness("init", "--quietly")
            shell(clone, printed("run.starting: git update-ref … …", said.err))
        else:
            said = clone.role("worker", "F-001")
            shell(clone, printed(key, said.err))
        assert said.code == 11 and not clone.harness("init", "--quietly").code, said
        wanted = begun if name == "left" else house.head()
        assert clone.git("rev-parse", branch) == wanted and ".harness" not in clone.git("status", "--short")


@repairs("run.requests.orders: git apply …")
def test_a_kept_patch_is_applied(house: House) -> None:
    """It has what the run was refused."""
    house.script("planner", {"run": "echo planner >> main.py"})
    house.role("planner")
    said = house.harness("accept", house.result()["run"], "working-folder.patch")
    shell(house, printed("run.requests.orders: git apply …", said.err))
    assert "planner" in (house.project / "main.py").read_text()


@repairs("run.steps: unset …")
def test_a_variable_that_only_the_loop_sets_is_removed(house: House) -> None:
    """Then the run goes on."""
    house.script("worker", {"run": "touch 1.txt"})
    os_env = {"HARNESS_LOOP": "abc"}
    said = house.role("worker", "F-001", **os_env)
    command = printed("run.steps: unset …", said.err)
    role = shlex.join(house.words("worker", "F-001"))
    made = house.run(["bash", "-c", f"{command}\n{role}"], env=os_env)
    assert made.code == 0, made


# what happened


@looks("run._inputs: git show --stat refs/harness/partial/…")
def test_a_run_that_was_cut_is_shown_to_the_next(house: House) -> None:
    """In its tree."""
    house.work({"run": "touch cut.txt"}, {"fail": "wall"})
    house.work({"run": "touch 1.txt"})
    command = printed("run._inputs: git show --stat refs/harness/partial/…", house.prompt())
    assert "cut.txt" in shell(house, command, where=house.tree).out


@looks("replay.upkeep.snapshots: git diff … …")
@repairs("replay.upkeep.restoration: git switch …")
def test_a_restored_mission_is_looked_at_and_switched_to(house: House) -> None:
    """The branch is checked out."""
    for name in ("1", "2"):
        house.work({"run": f"touch {name}.txt"}, feature=f"F-00{name}")
    one, two = [row["run"] for row in house.ran()]
    said = house.harness("snapshot", "diff", one, two).out
    assert "2.txt" in shell(house, printed("replay.upkeep.snapshots: git diff … …", said)).out
    said = house.harness("snapshot", "restore", one).out
    shell(house, printed("replay.upkeep.restoration: git switch …", said))
    assert house.git("branch", "--show-current") == mission.load(house.layout).branch


# what prompts and pages name


@repairs("mission.contract: bash -euo pipefail -c")
def test_a_check_is_decided_by_the_command_that_the_contract_names(house: House) -> None:
    """A failure in the middle of a pipe, and of an unset variable, counts."""
    command = printed("mission.contract: bash -euo pipefail -c", house.read(names.CONTRACT))
    for check in ("false | true", "echo $NONE", "false; true"):
        shell(house, f"{command} {shlex.quote(check)}", code=1)
    shell(house, f"{command} true")


@repairs("proof.check_runs: test -d tests && python3 -m unittest -q")
def test_a_guard_that_asks_for_tests_first_proves_nothing_in_an_empty_folder(bare: House) -> None:
    """And is green with a test."""
    bare.project.mkdir()
    command = printed("proof.check_runs: test -d tests && python3 -m unittest -q", check_runs.GREEN_ON_NOTHING)
    shell(bare, command, code=1)
    bare.write("tests/__init__.py", "")
    bare.write("tests/test_one.py", "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self): pass\n")
    shell(bare, command)


@looks("workspace.snapshot: harness skill NAME", "run._inputs: git show …")
def test_a_run_is_told_how_to_load_a_skill_and_to_see_the_last_commit(house: House) -> None:
    """In its tree."""
    house.write("skills/deploy/SKILL.md", "---\nname: deploy\ndescription: How to deploy\n---\nFirst, breathe.\n")
    house.git("add", "skills")
    house.git("commit", "-q", "-m", "a skill")
    assert house.harness("workspace", "accept").code == 0
    worked(house, {"run": "touch 1.txt"}, reply(status="implemented"))
    role(house, "validator", "F-001")
    shown = house.prompt()
    assert "1.txt" in shell(house, printed("run._inputs: git show …", shown), where=house.tree).out
    load = printed("workspace.snapshot: harness skill NAME", shown).replace("NAME", "deploy")
    assert "First, breathe." in own(house, load).out


@looks("replay.playback: git -C … fsck")
def test_commits_that_are_incomplete_are_shown(house: House) -> None:
    """Git names the object that is missing."""
    house.work({"run": "touch 1.txt"})
    tree = house.git("rev-parse", "main^{tree}")
    (house.project / ".git/objects" / tree[:2] / tree[2:]).unlink()
    said = house.harness("replay", "--mission")
    made = house.run(["bash", "-c", printed("replay.playback: git -C … fsck", said.err + said.out)])
    assert made.code and tree in made.out + made.err
