"""`land`: a branch of reviewable commits with the same files as the mission's, and refusals that lose no work."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from harness.commands import delivery, status
from harness.mission import mission
from tests.missions import PROGRAM, Done, House, copied, enter, listing
from tests.planned import reply, role, worked
from tests.printed_commands import own, printed, shell

GH = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/gh-called"
git -C "{remote}" rev-parse -q --verify "refs/heads/$4" > "{folder}/gh-found" || exit 4
echo https://example.org/pull/7
"""


def built(house: House) -> House:
    """Both features have passed, and the final sweep is green: F-001 was cut short once, a feature and a commit of a person
    came in between."""
    house.script("validator", reply(checks=[]))
    for name in ("F-001", "F-002"):
        role(house, "validator", name)  # red before
    worked(house, {"run": "echo draft > 1.md"}, {"fail": "agent_error", "reason": "stopped"})
    worked(house, {"run": "touch 2.txt"}, reply(status="implemented"), name="F-002")
    house.write("main.py", "print('mine')\n")
    house.git("commit", "-q", "-a", "-m", "by hand")
    worked(house, {"run": "touch 1.txt"}, reply(status="implemented"))
    for name in ("F-002", "F-001"):
        role(house, "validator", name)
    assert house.harness("claim", "accept", "VAL-LOOK").code == 0
    role(house, "validator")
    return house


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Path:
    """A mission that is DONE, on its branch; tests work on copies."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("finished")
        built(copied(template, folder, enter(patch, folder)))
        return folder


@pytest.fixture
def done(bare: House, finished: Path) -> House:
    """A copy of that mission."""
    return copied(finished, bare.folder, bare.env)


def subjects(house: House, *words: str) -> list[str]:
    """Author and subject of each commit, oldest first."""
    return house.git("log", "--reverse", "--format=%an: %s", *words).split("\n")


def branch(house: House) -> str:
    """The branch that `land` makes."""
    return f"land/{mission.load(house.layout).id}"


def test_each_feature_is_one_commit_and_a_person_keeps_theirs(done: House) -> None:
    """Without wip, with claims and receipts; the same tree; the person's folder and branch are as before."""
    tip, before = done.head(), listing(done.project, ".harness", ".git/")
    assert "wip(F-001): agent_error" in done.git("log", "--format=%s")
    made = done.harness("land")
    assert (made.code, made.err) == (0, ""), made
    new, old = branch(done), mission.load(done.layout).branch
    assert subjects(done, f"main..{new}") == [
        "harness: Part two",
        "p: by hand",
        "harness: Part one",
    ]
    assert done.git("rev-parse", f"{new}^{{tree}}") == done.git("rev-parse", f"{tip}^{{tree}}")
    assert done.git("diff", "--name-only", f"{new}^", new).split() == ["1.md", "1.txt"]
    text = done.git("log", "-1", "--format=%B", new)
    assert text.endswith("- VAL-1: Part 1 works (proven)")
    assert (done.head(), listing(done.project, ".harness", ".git/"), done.git("branch", "--show-current")) == (
        tip,
        before,
        old,
    )
    done.git("branch", "-q", "-M", old, "other")
    assert done.git("rev-parse", f"refs/harness/{mission.load(done.layout).id}/before/{new}") == tip


def test_all_in_one_commit(done: House) -> None:
    """On a base of one's own, under a name of one's own; as a value it is the line of the file."""
    made = done.harness("land", "--squash", "--as", "mine", "--json")
    assert json.loads(made.out) == delivery.load(done.layout)[0].asdict()
    assert subjects(done, "main..mine") == ["harness: A program"]
    assert done.git("rev-parse", "mine^{tree}") == done.git("rev-parse", "HEAD^{tree}")


def test_why_knows_the_old_ids_and_the_new_ones(done: House) -> None:
    """Either leads to the feature, and its runs name both."""
    assert done.harness("land").code == 0
    new, old = done.git("rev-parse", branch(done)), done.head()
    for name in (new, old[:8]):
        text = done.harness("why", name).out
        assert f"{old[:10]} is {new[:10]} on {branch(done)}\n" in text
        assert "F-001 Part one: passed" in text
        assert f"{old[:10]} = {new[:10]}" in text.split("\nruns\n")[1]


def test_where_two_features_changed_the_same_lines_their_order_stays(house: House) -> None:
    """Such a feature has several commits, and the tree is the same."""
    house.script("validator", reply(checks=[]))
    worked(house, {"run": "echo one > list; touch 1.txt"}, reply(status="implemented"))
    worked(house, {"run": "sed -i 's/$/ two/' list; touch 2.txt"}, reply(status="implemented"), name="F-002")
    house.script("worker", {"run": "sed -i 's/$/ three/' list"}, reply(status="implemented"))
    house.work_again()
    assert house.harness("land", "--force").code == 0
    assert subjects(house, f"main..{branch(house)}") == ["harness: Part one", "harness: Part two", "harness: Part one"]
    assert house.git("show", f"{branch(house)}:list") == "one two three"


def test_work_goes_on_top_of_a_base_that_moved_on(done: House) -> None:
    """Unless both changed the same lines: then nothing is made, and the file is named."""
    old = mission.load(done.layout).branch
    done.git("switch", "-q", "main")
    done.write("other.txt", "more\n")
    done.git("add", "-A")
    done.git("commit", "-q", "-m", "main moved on")
    assert done.harness("land").code == 0
    assert len(subjects(done, f"main..{branch(done)}")) == 3
    assert done.git("ls-tree", "--name-only", branch(done)).split() == sorted(
        ["1.md", "1.txt", "2.txt", "SPEC.md", "main.py", "other.txt"]
    )
    done.write("main.py", "print('theirs')\n")
    done.git("commit", "-q", "-a", "-m", "the same line")
    made = done.harness("land", "--as", "second")
    assert (made.code, made.err.count("\n")) == (11, 1)
    assert f"main and the mission both changed main.py. Settle it: git switch {old} && git merge main" in made.err
    assert done.git("branch", "--list", "second") == ""


def test_what_would_lose_work_is_refused_with_what_to_do(done: House) -> None:
    """A commit that the mission has not taken, a branch of that name, a mission that is not done; one line each."""

    def refused(code: int, words: str, *options: str) -> None:
        made = done.harness("land", *options)
        assert (made.code, made.err.count("\n"), words in made.err) == (code, 1, True), made
        assert done.git("branch", "--list", "land/*") == ""

    done.write("main.py", "print('later')\n")
    done.git("commit", "-q", "-a", "-m", "later")
    refused(11, "has commits that the mission has not taken. Take them: run.sh")
    done.git("reset", "-q", "--hard", "HEAD^")
    refused(64, "The branch main exists. Choose another name: run.sh land --as NAME", "--as", "main")
    refused(64, "There is no branch and no commit 'nowhere'", "--onto", "nowhere")
    refused(64, "has all work of", "--onto", "HEAD")
    done.harness("feature", "retry", "F-001")
    refused(64, "is not DONE: 1 of 2 features passed. Go on: run.sh, or land without: run.sh land --force")
    assert done.harness("land", "--force").code == 0
    assert "Not finished: todo" in done.git("log", "--format=%B", f"main..{branch(done)}")


@pytest.mark.parametrize(("there", "options"), [("land", ()), ("mine/1", ("--as", "mine"))])
def test_a_branch_above_or_below_the_new_one_is_renamed_by_the_printed_command(
    done: House, there: str, options: tuple[str, ...]
) -> None:
    """It is said before anything is made."""
    done.git("branch", there, "main")
    before = done.git("for-each-ref")
    made = done.harness("land", *options)
    assert (made.code, made.err.count("\n"), f" your branch {there}. " in made.err) == (11, 1, True), made
    assert (done.git("for-each-ref"), delivery.load(done.layout)) == (before, [])
    done.git(*made.err.split(": git ")[1].split())
    assert done.harness("land", *options).code == 0


def branches(house: House, command: str) -> None:
    """Run a command that merges, and see that the branch that is checked out afterwards has all work."""
    shell(house, command)
    assert (house.project / "1.txt").exists() and (house.project / "2.txt").exists()


def test_the_work_is_looked_at_and_merged_as_the_status_says(done: House) -> None:
    """Into a branch whose name the shell would read otherwise."""
    done.git("branch", "-m", "main", "#1&x")
    said = "\n".join(status.ending(done.layout, "DONE"))
    assert "1.txt" in shell(done, printed("commands.status: git diff …...…", said)).out
    branches(done, printed("commands.status: git switch … && git merge …", said))


def test_work_without_another_branch_is_switched_to(done: House) -> None:
    """There is nothing to merge into."""
    name = mission.load(done.layout).branch
    done.git("branch", "-q", "-D", "main")
    done.git("switch", "-q", "--detach")
    said = "\n".join(status.ending(done.layout, "DONE"))
    shell(done, printed("commands.status: git switch …", said))
    assert done.git("branch", "--show-current") == name


def test_what_was_landed_is_looked_at_merged_and_verified(done: House) -> None:
    """Also on top of a commit that no branch has."""
    base = done.git("rev-parse", "--short", "main")
    said = done.harness("land", "--onto", "#1&x").err
    assert "main" in shell(done, printed("commands.delivery: git branch", said)).out
    for number, onto in enumerate(("main", base)):
        name = f"#{number}&x"
        made = done.harness("land", "--onto", onto, "--as", name)
        assert "1.txt" in shell(done, printed("commands.delivery: git log -p …..…", made.out)).out
        found = re.search(r"merge     (git .*)", made.out)
        assert found, made
        branches(done, found[1])
        command = printed("commands.delivery: harness verify --at …", done.read("pull-request.md"))
        assert own(done, command).code == 0
        done.git("switch", "-q", mission.load(done.layout).branch)
    said = done.harness("land", "--onto", "HEAD").err
    assert "Part" in shell(done, printed("commands.delivery: git log …", said)).out


def test_a_conflict_with_the_base_is_settled_by_hand(done: House) -> None:
    """Git leaves the conflict to the person; once they have settled it, the mission is landed."""
    mine = mission.load(done.layout).branch
    done.git("switch", "-q", "main")
    done.write("main.py", "print('theirs')\n")
    done.git("commit", "-q", "-a", "-m", "theirs")
    command = printed("commands.delivery: git switch … && git merge …", done.harness("land").err)
    shell(done, command, code=1)
    done.write("main.py", "print('both')\n")
    done.git("commit", "-q", "-a", "-m", "both")
    assert done.git("branch", "--show-current") == mine
    assert "git merge" not in done.harness("land").err


def test_uncommitted_edits_stay_out_and_are_named(done: House) -> None:
    """They stop nothing, as they stop no run."""
    done.write("main.py", "print('later')\n")
    made = done.harness("land")
    assert (made.code, "without   your uncommitted edits of main.py\n" in made.out) == (0, True), made
    assert done.git("show", f"{branch(done)}:main.py") == "print('mine')"
    assert done.git("status", "--porcelain") == " M main.py"


def test_an_archived_mission_is_landed_by_its_id(done: House) -> None:
    """After the next one began."""
    old, new = mission.load(done.layout).id, branch(done)
    assert done.harness("init", "--new", "--quietly").code == 0
    made = done.harness("land", old)
    assert (made.code, len(subjects(done, f"main..{new}"))) == (0, 3), made


def test_the_text_says_what_was_proven_and_how_to_verify_it_and_gh_opens_it(done: House) -> None:
    """The branch is pushed first; without gh the commands are shown, and a failure names them."""
    programs, remote = done.folder / "programs", done.folder / "remote"
    programs.mkdir()
    (programs / "git").symlink_to(str(shutil.which("git", path=done.env["PATH"])))

    def land(name: str) -> Done:
        words = ["land", "--pr", "--as", name]
        return done.run([sys.executable, "-P", str(PROGRAM), *words], env={"PATH": str(programs)})

    made = land("one")
    steps = "git push -u origin one && gh pr create --head one --base main"
    assert (made.code, f"open      {steps}" in made.out) == (0, True), made
    text = done.read("pull-request.md")
    assert text.startswith("# A program\n\nF-001 Part one\n\n- VAL-1: Part 1 works\n  proven: red at ")
    assert "run.sh verify --at one" in text
    assert "### VAL-1: Part 1 works\n\n```sh check\ntest -f 1.txt\n```" in text
    gh = programs / "gh"
    gh.write_text(GH.format(folder=done.folder, remote=remote))
    gh.chmod(0o755)
    failed = land("two")
    assert (failed.code, "git push -u failed" in failed.err, "gh pr create" in failed.err) == (11, True, True), failed
    done.git("init", "-q", "--bare", str(remote))
    done.git("remote", "add", "origin", str(remote))
    opened = land("three")
    assert (opened.code, "opened    https://example.org/pull/7" in opened.out) == (0, True), opened
    words = (done.folder / "gh-called").read_text().split("\n")
    assert words[:8] == ["pr", "create", "--head", "three", "--base", "main", "--title", "A program"]
    assert Path(words[9]).read_text() == done.read("pull-request.md")
    assert (done.folder / "gh-found").read_text().strip() == done.git("rev-parse", "three")


def test_config_says_how_a_message_looks_and_no_local_id_is_in_it(done: House) -> None:
    """The pull request has the runs and commits of the receipts instead; a person's commit keeps its message."""
    done.config("[land]", 'subject = "feat: {title}"', 'trailers = ["Refs: {feature}", "Kind: a"]')
    assert done.harness("land").code == 0
    new = branch(done)
    assert subjects(done, f"main..{new}") == ["harness: feat: Part two", "p: by hand", "harness: feat: Part one"]
    text, request = done.git("log", "-1", "--format=%B", new), done.read("pull-request.md")
    assert text == "feat: Part one\n\n- VAL-1: Part 1 works (proven)\n\nRefs: F-001\nKind: a"
    local = re.compile(r"red at [0-9a-f]{10} in \d+-\S+")
    assert not local.search(done.git("log", "--format=%B", f"main..{new}"))
    assert (bool(local.search(request)), "Harness-Feature: F-001" in request) == (True, True)


def test_commits_are_signed_with_the_persons_key_or_nothing_lands(done: House) -> None:
    """Key and format come from their own git configuration; a failure shows git's words."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    key = done.folder / "key"
    done.config("[land]", "sign = true")
    done.git("config", "gpg.format", "ssh")
    done.git("config", "user.signingKey", str(key))
    failed = done.harness("land")
    assert (failed.code, "git cannot make the commit; nothing was landed" in failed.err, str(key) in failed.err) == (
        11,
        True,
        True,
    )
    assert (done.git("branch", "--list", branch(done)), delivery.load(done.layout)) == ("", [])
    done.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    signers = done.folder / "signers"
    signers.write_text(f"* {Path(f'{key}.pub').read_text()}")
    done.git("config", "gpg.ssh.allowedSignersFile", str(signers))
    made = done.harness("land")
    assert made.code == 0, made
    assert {*done.git("log", "--format=%G?", f"main..{branch(done)}").split()} == {"G"}
    assert subjects(done, f"main..{branch(done)}")[0] == "harness: Part two"


def test_the_commit_msg_hook_of_the_repository_reads_each_message(done: House) -> None:
    """With --hooks, wherever core.hooksPath says; what it refuses does not land, what it changes is taken."""
    hook = done.write(".husky/commit-msg", "#!/bin/sh\necho no ticket\nexit 3\n")
    hook.chmod(0o755)
    done.git("config", "core.hooksPath", ".husky")
    failed = done.harness("land", "--hooks")
    assert (failed.code, "hook refuses 'Part two'; nothing was landed:\nno ticket" in failed.err) == (11, True), failed
    assert (done.git("branch", "--list", branch(done)), delivery.load(done.layout)) == ("", [])
    hook.write_text("#!/bin/sh\necho 'Seen: yes' >> \"$1\"\n")
    assert done.harness("land", "--hooks").code == 0
    assert done.git("log", "--format=%B", f"main..{branch(done)}").count("Seen: yes") == 3
    assert done.harness("land", "--as", "plain").code == 0
    assert "Seen: yes" not in done.git("log", "--format=%B", "main..plain")
