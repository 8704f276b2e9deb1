"""Starting a mission: errors are reported with the disk unchanged; a started mission stays hidden and persists."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import harness
from harness.base.errors import BrokenFile, NeedsPerson, UsageFault
from harness.mission import mission
from harness.run import starting
from harness.state import names
from harness.state.layout import Layout
from tests.helpers import passable
from tests.missions import CHECKOUT, House, differences, listing
from tests.other_user import OtherUser


def untouched(house: House, top: Path, fault: type[Exception], words: str, project: Path | None = None) -> None:
    """Starting raises the error with these words, and nothing below `top` changes."""
    before = listing(top)
    with pytest.raises(fault, match=words):
        starting.start(Layout(str(project or house.project)))
    assert differences(before, listing(top)) == []


# what is refused


def test_without_a_spec_the_message_says_what_to_write(unbegun: House) -> None:
    """A mission needs a SPEC.md first."""
    (unbegun.project / "SPEC.md").unlink()
    untouched(unbegun, unbegun.folder, UsageFault, "no SPEC.md in .*my project.* Describe there")


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_an_empty_spec_is_none(unbegun: House, text: str) -> None:
    """White space does not count as content."""
    unbegun.write("SPEC.md", text)
    untouched(unbegun, unbegun.folder, UsageFault, "SPEC.md is empty")


def test_a_spec_that_is_no_text_names_the_line(unbegun: House) -> None:
    """The message names the line of a binary file."""
    (unbegun.project / "SPEC.md").write_bytes(b"# Spec\n\xff\xfe\n")
    untouched(unbegun, unbegun.folder, BrokenFile, "SPEC.md, line 2: not UTF-8")


def test_a_folder_without_a_repository_is_told_the_command(bare: House) -> None:
    """There is no place to commit to."""
    bare.project.mkdir()
    bare.write("SPEC.md")
    untouched(bare, bare.folder, UsageFault, "git init")


def test_a_folder_that_the_repository_above_ignores_is_told_what_to_do(unbegun: House) -> None:
    """Nothing of the mission's work could be committed."""
    unbegun.write("sub/SPEC.md")
    unbegun.write(".gitignore", "sub\n")
    untouched(unbegun, unbegun.folder, UsageFault, "is ignored by the repository", unbegun.project / "sub")


def test_a_detached_head_is_a_persons_to_mend(unbegun: House) -> None:
    """Commits would not belong to a branch."""
    unbegun.git("checkout", "-q", "--detach")
    untouched(unbegun, unbegun.folder, NeedsPerson, "detached. .*git switch NAME")


@pytest.mark.parametrize(
    "commands",
    [
        ("branch harness",),
        ("branch harness", "pack-refs --all"),
        ("branch -m main harness",),
        ("symbolic-ref HEAD refs/heads/harness", "branch -D main"),
    ],
)
def test_a_branch_where_git_needs_a_folder_is_renamed_by_the_printed_command(
    unbegun: House, commands: tuple[str, ...]
) -> None:
    """As a file, packed, as the default branch, and as one without a commit: nothing is written before."""
    for command in commands:
        unbegun.git(*command.split())
    before = listing(unbegun.folder)
    done = unbegun.harness("init")
    assert (done.code, done.err.count("\n"), " your branch harness. " in done.err) == (11, 1, True), done
    assert differences(before, listing(unbegun.folder)) == []
    unbegun.git(*done.err.split(": git ")[1].split())
    made = starting.start(unbegun.layout)
    assert unbegun.git("branch", "--show-current") == made.branch
    assert made.branch in ("NEWNAME", f"harness/{made.id}")


@pytest.mark.parametrize(
    "command", ["tag harness", "update-ref refs/remotes/origin/harness HEAD", "branch harness-1", "branch x/harness"]
)
def test_other_refs_of_that_name_are_not_in_the_way(unbegun: House, command: str) -> None:
    """Git keeps them elsewhere."""
    unbegun.git(*command.split())
    made = starting.start(unbegun.layout)
    assert made.branch == f"harness/{made.id}"


def test_who_stands_on_a_branch_of_that_name_works_there(unbegun: House) -> None:
    """The mission needs no other branch."""
    unbegun.git("switch", "-q", "-c", "harness")
    assert starting.start(unbegun.layout).branch == "harness"


def test_a_format_that_we_do_not_know_is_refused(house: House) -> None:
    """A newer harness wrote it; the harness does not guess."""
    Path(house.layout.path(names.FORMAT)).write_text("3\n")
    untouched(house, house.folder, BrokenFile, "format, line 1: unknown format '3'")


def test_a_folder_that_cannot_be_written_says_so_without_a_traceback(unbegun: House, nobody: OtherUser) -> None:
    """The message names the permissions, with exit code 11, and a partial mission does not count as one."""
    passable(unbegun.folder)
    safe = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    done = unbegun.run(nobody.words("init"), env={**nobody.env, **safe})
    assert (done.code, done.err.count("\n")) == (11, 1), done
    assert not unbegun.state.exists()


# what a start makes


def test_on_the_default_branch_the_mission_gets_a_branch_of_its_own(unbegun: House) -> None:
    """main does not move."""
    head = unbegun.head()
    made = starting.start(unbegun.layout)
    assert made.branch == f"harness/{made.id}" == unbegun.git("branch", "--show-current")
    assert (made.base_commit, unbegun.head(), unbegun.git("rev-parse", "main")) == (head, head, head)


def test_on_another_branch_the_mission_stays_there(unbegun: House) -> None:
    """The user chose that branch deliberately."""
    unbegun.git("switch", "-q", "-c", "topic")
    assert starting.start(unbegun.layout).branch == "topic"
    assert unbegun.git("branch", "--list", "harness/*") == ""


def test_a_repository_without_a_commit_gets_an_empty_one(bare: House) -> None:
    """The user commits their own files: they stay untracked."""
    bare.repository(commit=False)
    made = starting.start(bare.layout)
    assert made.base_commit == bare.head()
    assert bare.git("ls-tree", "-r", "HEAD") == ""
    assert sorted(bare.git("status", "--porcelain").split("\n")) == ["?? SPEC.md", "?? main.py"]
    assert bare.git("branch", "--show-current") == f"harness/{made.id}"


def test_what_was_staged_before_the_first_commit_stays_staged(bare: House) -> None:
    """The index belongs to the user too."""
    bare.repository(commit=False)
    bare.git("add", "main.py")
    starting.start(bare.layout)
    assert sorted(bare.git("status", "--porcelain").split("\n")) == ["?? SPEC.md", "A  main.py"]
    assert bare.git("ls-tree", "-r", "HEAD") == ""


def test_nothing_that_git_tracks_is_edited(unbegun: House) -> None:
    """info/exclude hides the state; `git status` stays as clean as before."""
    before = listing(unbegun.project, ".git", ".harness")
    starting.start(unbegun.layout)
    assert listing(unbegun.project, ".git", ".harness") == before
    assert unbegun.git("status", "--porcelain") == ""


@pytest.mark.parametrize("command", [["clean", "-fdxq"], ["stash", "-aq"]])
def test_the_state_survives_what_agents_clean_up_with(unbegun: House, command: list[str]) -> None:
    """`git clean -fdx` and `git stash -a` skip .harness."""
    starting.start(unbegun.layout)
    unbegun.write("junk")
    before = listing(unbegun.state)
    unbegun.git(*command)
    assert not (unbegun.project / "junk").exists()
    assert differences(before, listing(unbegun.state)) == []


def test_starting_again_changes_nothing(unbegun: House) -> None:
    """The existing mission is returned."""
    made = starting.start(unbegun.layout)
    before = listing(unbegun.project)
    assert starting.start(unbegun.layout) == made
    assert differences(before, listing(unbegun.project)) == []


def test_a_start_that_was_cut_short_starts_anew(unbegun: House) -> None:
    """.harness/format is written last: without it there is no mission yet, and leftovers do not matter."""
    starting.start(unbegun.layout)
    unbegun.git("switch", "-q", "main")
    os.unlink(unbegun.layout.path(names.FORMAT))
    assert not mission.exists(unbegun.layout)
    made = starting.start(unbegun.layout)
    assert mission.load(unbegun.layout) == made


def test_a_mission_is_named_after_its_folder(unbegun: House) -> None:
    """The id is a slug and six hex digits."""
    slug, _, digits = starting.start(unbegun.layout).id.rpartition("-")
    assert (slug, len(digits)) == ("my-project", 6)


# the shim


def test_the_shim_works_from_any_folder(house: House) -> None:
    """An agent may have changed its directory."""
    done = house.run([house.layout.path(names.SHIM), "next"], where=house.folder)
    assert (done.code, done.out) == (0, "NEXT worker F-001\n")


def test_the_shim_works_where_a_path_has_quotes_and_spaces(bare: House) -> None:
    """Any folder name works."""
    bare.project = bare.folder / 'it\'s "mine" $HOME `x`'
    bare.layout, bare.state = Layout(str(bare.project)), bare.project / ".harness"
    bare.repository()
    starting.start(bare.layout)
    done = bare.run([bare.layout.path(names.SHIM), "next"], where=bare.folder)
    assert (done.code, done.out) == (0, "NEXT planner\n")


def test_the_shim_is_mended_when_the_checkout_has_moved(house: House) -> None:
    """Every run checks the shim."""
    good = house.read("bin/harness")
    Path(house.layout.path(names.SHIM)).write_text(good.replace(str(CHECKOUT), "/old/place"))
    assert house.work({"run": "harness note hello"})["outcome"] == "no_op"
    assert house.read("bin/harness") == good
    assert os.access(house.layout.path(names.SHIM), os.X_OK)


def test_a_mission_that_was_moved_to_another_folder_goes_on_there(house: House) -> None:
    """Only the shim stores paths, and the start repairs it."""
    there = house.folder / "elsewhere"
    shutil.move(house.project, there)
    house.project = there
    house.layout, house.state = Layout(str(there)), there / ".harness"
    assert house.work({"run": "harness note hello"})["outcome"] == "no_op"
    assert str(there) in house.read("bin/harness")


def test_a_worktree_of_a_repository_can_hold_a_mission(unbegun: House) -> None:
    """`.git` is a file there; the exclude file is the one that git reads."""
    there = unbegun.folder / "tree"
    unbegun.git("worktree", "add", "-q", "-b", "topic", str(there))
    starting.start(Layout(str(there)))
    status = subprocess.run(["git", "status", "--porcelain"], cwd=there, capture_output=True, text=True, check=True)
    assert status.stdout == ""


# money


NO_CAP = "note: mine may cost money: set max_cost_usd in [limits] (config.toml)"
NO_COUNT = "note: mine may cost money: set [prices.mine], for mine reports no cost (config.toml)"
NEITHER = (
    "note: mine may cost money: set max_cost_usd in [limits] and [prices.mine], for mine reports no cost (config.toml)"
)
MINE = ("[agents.mine]", 'command = ["true"]')
CAP = ("[limits]", "max_cost_usd = 5.0")
PRICE = ("[prices.m]", "input = 1", "output = 1")
MODEL = (*MINE, 'model = "m-1"')


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], []),
        (['agent = "scripted"'], []),
        (['agent = ["scripted", "mine"]', *MINE], [NEITHER]),
        (["[roles.worker]", 'agent = "mine"', *MINE], [NEITHER]),
        (['agent = "mine"', *MINE, *CAP], [NO_COUNT]),
        (['agent = "mine"', *MODEL, *PRICE], [NO_CAP]),
        (['agent = "mine"', *MODEL, *PRICE, *CAP], []),
        (['agent = "mine"', *MINE, "[prices.mine]", *PRICE[1:], *CAP], []),
        (['agent = "mine"', *MINE, 'model = "openai:m"', *PRICE, *CAP], []),
        (['agent = "mine"', *MINE, *PRICE, *CAP], [NO_COUNT]),
    ],
)
def test_an_agent_that_costs_without_a_cap_or_a_count_is_announced(
    house: House, lines: list[str], said: list[str]
) -> None:
    """Every start prints one line for each, also in an existing mission; our own agents are free."""
    house.config(*lines)
    assert starting.announcement(house.layout) == said
    assert house.harness("init", "--quietly").out == "".join(line + "\n" for line in said)


def test_a_cap_that_does_not_see_all_that_was_spent_says_so(house: House) -> None:
    """Every start says so, whatever made the runs uncounted."""
    house.config('agent = "scripted"', *CAP)
    house.work({"usage": {"input": 5}})
    house.config('agent = "mine"', *MINE, "[prices.mine]", *PRICE[1:], *CAP)
    assert starting.announcement(house.layout) == ["note: max_cost_usd does not see all: 1 run not counted so far"]


def test_an_agent_in_a_roles_front_matter_is_announced_too(house: House) -> None:
    """A user's own role may name its own agent."""
    house.role_files("helper")
    path = Path(house.layout.path(names.ROLES)) / "helper.md"
    path.write_text(path.read_text().replace("reads:", "agent: mine\nreads:"))
    house.config('agent = "scripted"', *MINE, *CAP)
    assert starting.announcement(house.layout) == [NO_COUNT]


# the ignore file

RIPGREP = shutil.which("rg", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
STATE = ("memory/raw.md", "features.json", "validation-contract.md", "issues.jsonl")


@pytest.mark.skipif(RIPGREP is None, reason="needs ripgrep: pip install ripgrep==14.1.0")
@pytest.mark.parametrize("where", [".harness", ".harness/", "--no-ignore-vcs"])
def test_searches_find_memory_and_the_state_but_no_transcripts(unbegun: House, where: str) -> None:
    """Real ripgrep with --hidden, in the folder and above it."""
    starting.start(unbegun.layout)
    for name in (*(f"{folder}/x/y.jsonl" for folder in starting.UNSEARCHED), *STATE):
        path = unbegun.state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("needle\n")
    done = unbegun.run([str(RIPGREP), "--hidden", "--files-with-matches", "--sort=path", "needle", where])
    assert sorted(done.out.split()) == sorted(".harness/" + name for name in STATE)


def test_the_ignore_file_is_mended_and_otherwise_left_alone(house: House) -> None:
    """Every run checks the file; a correct file is not rewritten."""
    path = Path(house.layout.path(names.IGNORE))
    path.write_text("memory/\n")
    house.work({"run": "harness note hello"})
    assert path.read_text() == starting.IGNORED
    before = path.stat()
    starting.write_generated(house.layout)
    assert path.stat() == before


def test_the_version_is_the_package_and_the_commit_of_its_checkout() -> None:
    """It equals git's answer, without a call to git."""
    checkout = Path(__file__).resolve().parents[2]
    words = ["git", "rev-parse", "HEAD"]
    told = subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False).stdout
    assert starting.version() == f"{harness.__version__} {told[:12]}".strip()


def test_the_note_about_money_is_shown_once_a_mission(house: House) -> None:
    """By the first start; another agent is news."""
    house.config('agent = "mine"', "[agents.mine]", 'command = ["true"]')
    assert house.harness("init", "--quietly").out.startswith("note: mine may cost money")
    assert house.harness("init", "--quietly").out == ""
    house.config('agent = "yours"', "[agents.yours]", 'command = ["true"]')
    assert house.harness("init", "--quietly").out.startswith("note: yours may cost money")
    assert house.harness("init", "--quietly").out == ""


def test_what_is_not_passed_on_is_named_once_a_mission(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first start, without what a configured agent gets; another list is news."""
    theirs = ["DATABASE_URL", "DJANGO_SETTINGS_MODULE", "CODEX_HOME", "SHLVL", "MY_TOKEN", "AWS_PROFILE", "SENTRY_DSN"]
    own = ("[agents.mine]", 'command = ["true"]', 'format = "codex"', 'env = { MY_TOKEN = "y" }')
    mine = (*own, *CAP, "[prices.mine]", *PRICE[1:])
    house.config('agent = "mine"', *mine)
    for name in theirs[:5]:
        monkeypatch.setenv(name, "x")
    named = "not passed on: DATABASE_URL, DJANGO_SETTINGS_MODULE; see [env] pass\n"
    assert [house.harness("init", "--quietly").out for _ in range(2)] == [named, ""]
    for name in theirs[5:]:
        monkeypatch.setenv(name, "x")
    named = "not passed on: AWS_PROFILE, DATABASE_URL and 2 more; see [env] pass\n"
    assert house.harness("init", "--quietly").out == named
    house.config('agent = "mine"', *mine, "[env]", f"pass = {theirs}")
    assert house.harness("init", "--quietly").out == ""


# the example


def test_the_example_begins_in_an_empty_folder_and_goes_to_done(bare: House) -> None:
    """`init --example` makes the repository, too; the embedded agent needs no key and no network."""
    bare.project.mkdir()
    begun = bare.run([str(CHECKOUT / "run.sh"), "init", "--example"])
    assert begun.code == 0, begun
    assert "cost: nothing" in begun.out
    assert bare.git("log", "--format=%s", "main") == "A spec and its playbooks"
    assert bare.git("status", "--porcelain") == ""
    for role in ("planner", "worker"):
        done = bare.run([str(CHECKOUT / "run.sh"), role])
        assert done.code == 0, done
    assert bare.feature().status == "validating"
    again = bare.run([str(CHECKOUT / "run.sh"), "init", "--example"])
    assert (again.code, "writes over nothing" in again.err) == (64, True)


@pytest.mark.parametrize("name", ["SPEC.md", "playbooks/planner.md"])
def test_the_example_writes_over_nothing(bare: House, name: str) -> None:
    """A file of the same name: exit 64, and the folder is as it was."""
    bare.write(name, "mine\n")
    before = listing(bare.project)
    done = bare.program("init", "--example")
    assert (done.code, f"There is {name} in" in done.err) == (64, True), done
    assert listing(bare.project) == before


def test_the_example_is_not_committed_in_a_repository_of_ones_own(bare: House) -> None:
    """What is in it is for its person to commit."""
    bare.project.mkdir()
    bare.git("init", "-q", "-b", "main")
    assert bare.program("init", "--example").code == 0
    assert bare.git("status", "--porcelain") == "?? SPEC.md\n?? playbooks/"


def test_what_is_read_from_the_checkout_is_in_the_package_too() -> None:
    """pip and pipx install it below harness/home, where `home` looks."""
    table = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    packed = {"run.sh", "roles", *(f"examples/{name}" for name in starting.EXAMPLES)}
    assert table["force-include"] == {name: f"harness/home/{name}" for name in packed}
    assert all((CHECKOUT / name).exists() for name in packed)


def test_a_git_that_is_killed_does_not_count_as_an_empty_repository(unbegun: House) -> None:
    """For want of memory, say: 75, and the person's branch is where it was; the next start begins the mission."""
    before, folder = unbegun.head(), unbegun.folder / "bin"
    folder.mkdir()
    fake = folder / "git"
    fake.write_text(f'#!/bin/bash\n[[ " $* " = *" rev-parse "* ]] && kill -9 $$\nexec {shutil.which("git")} "$@"\n')
    fake.chmod(0o755)
    done = unbegun.run([str(CHECKOUT / "run.sh"), "init"], env={"PATH": f"{folder}:{unbegun.env['PATH']}"})
    assert (done.code, "was killed from outside by signal 9" in done.err) == (75, True), done
    assert (unbegun.git("rev-parse", "main"), unbegun.head()) == (before, before)
    assert unbegun.run([str(CHECKOUT / "run.sh"), "init"]).code == 0
