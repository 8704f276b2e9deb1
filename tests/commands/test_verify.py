"""`harness verify`: all checks of a contract on any clone, reproducible by anyone."""

from __future__ import annotations

import os

import pytest

from harness.base.errors import RequestRefused
from harness.commands import verify
from harness.mission import contract
from harness.mission.contract import Check, Contract, Service
from harness.state import names
from tests.missions import Done, House, differences, listing
from tests.planned import claim

KNOWN = Contract(setup="touch built", claims=[claim("VAL-1", "test -f built", "grep hello main.py"), claim("VAL-2")])


@pytest.fixture
def clone(unbegun: House) -> House:
    """A plain repository without a mission: its first commit lacks VAL-2, its second has it."""
    unbegun.write(".gitignore", "built\n")
    unbegun.git("add", "-A")
    unbegun.git("commit", "-q", "-m", "first")
    unbegun.write("VAL-2")
    unbegun.git("add", "-A")
    unbegun.git("commit", "-q", "-m", "second")
    return unbegun


def written(clone: House, known: Contract, name: str = "the contract.md") -> str:
    """The contract in a file next to the clone."""
    path = clone.folder / name
    path.write_text(contract.render(known))
    return str(path)


def verified(clone: House, *words: str) -> Done:
    """The output of the command, from another folder."""
    return House(clone.folder.parent, clone.env, clone.folder.name).program("verify", *words)


def kept(clone: House) -> dict[str, bytes]:
    """All files there, without git's own logs."""
    return listing(clone.folder, *(f"my project/.git/{name}" for name in ("logs", "index", "worktrees")))


def test_a_plain_clone_is_checked_by_a_contract_that_lies_elsewhere(clone: House) -> None:
    """From any folder, with a line for each check, and nothing of ours is left in it."""
    path = written(clone, KNOWN)
    done = verified(clone, path, "--in", str(clone.project))
    assert (done.code, done.out.split("\n")[-2]) == (0, "3 of 3 checks are green"), done
    names = {".git", ".gitignore", "SPEC.md", "main.py", "VAL-2", "built"}
    assert set(os.listdir(clone.project)) == names
    assert os.listdir(clone.folder / "temporary") == []


def test_red_is_exit_10_with_the_output_of_the_check(clone: House) -> None:
    """So a script can rely on it."""
    (clone.project / "main.py").write_text("print('bye')\n")
    done = verified(clone, written(clone, KNOWN), "--in", str(clone.project))
    assert (done.code, "red (exit 1)" in done.out) == (10, True)
    assert "2 of 3 checks are green" in done.out


def test_a_commit_is_checked_in_a_fresh_clone_and_nothing_is_left(clone: House) -> None:
    """The working folder is neither read nor changed."""
    (clone.project / "main.py").write_text("print('bye')\n")
    path = written(clone, KNOWN)
    before = kept(clone)
    assert verified(clone, path, "--in", str(clone.project), "--at", "HEAD").code == 0
    old = verified(clone, path, "--in", str(clone.project), "--at", "HEAD^")
    assert (old.code, "2 of 3 checks are green" in old.out) == (10, True)
    assert differences(before, kept(clone)) == []
    assert clone.git("worktree", "list").count("\n") == 0


CHEATS = {
    "a filter": ("git cat-file --filters HEAD:words | grep hello", "git config filter.x.smudge 'echo hello'"),
    "attributes": (
        "git check-attr x words | grep hello",
        "mkdir -p .git/info && echo '* x=hello' >.git/info/attributes",
    ),
    "another object": (
        "git cat-file blob HEAD:words | grep hello",
        'git replace "$(git rev-parse HEAD:words)" "$(echo hello | git hash-object -w --stdin)"',
    ),
    "a setting": ("git config words.said | grep hello", "git config words.said hello"),
    "a far file": ("bash far.sh | grep hello", "echo hello >.git/said"),
    "a file of a mission": (
        "bash tree.sh | grep hello",
        'mkdir -p "$XDG_STATE_HOME/harness" && cd "$_" && echo hello >said',
    ),
}


@pytest.fixture
def cheating(clone: House) -> House:
    """A repository whose commits need what only this machine has."""
    clone.write(".gitattributes", "words filter=x\n")
    clone.write("words", "bye\n")
    clone.write("far.sh", f"cat '{clone.project}/.git/said'\n")
    clone.write("tree.sh", f"cat '{clone.env['XDG_STATE_HOME']}/harness/said'\n")
    clone.git("add", "-A")
    clone.git("commit", "-q", "-m", "cheats")
    return clone


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_only_this_repository_has_is_not_in_a_clone(cheating: House, cheat: str) -> None:
    """At a commit, and in a clone that somebody made by hand: red. As it is, the folder passes, and the receipt says why."""
    check, command = CHEATS[cheat]
    assert cheating.run(["bash", "-ec", command]).code == 0
    path = written(cheating, Contract(claims=[claim("V", check)]))
    (found,) = verify.verify(path, str(cheating.project), "HEAD")
    assert found.exit == 1, found
    cheating.git("clone", "-q", str(cheating.project), str(cheating.folder / "by hand"))
    (found,) = verify.verify(path, str(cheating.folder / "by hand"), "")
    assert found.exit == 1, found
    (found,) = verify.verify(path, str(cheating.project), "")
    assert found.green == (cheat != "a file of a mission")
    assert any(note.startswith(verify.LOCAL) for note in found.notes) == (cheat in list(CHEATS)[:3])


def test_a_clone_on_the_machine_of_its_mission_does_not_see_the_mission(cheating: House) -> None:
    """The contract in `.harness` says where it was, also when the clone does not."""
    assert cheating.run(["bash", "-ec", "echo hello >.git/said; mkdir .harness"]).code == 0
    path = written(cheating, Contract(claims=[claim("V", "bash far.sh")]), "my project/.harness/validation-contract.md")
    cheating.git("clone", "-q", str(cheating.project), str(cheating.folder / "by hand"))
    cheating.run(["git", "remote", "remove", "origin"], cheating.folder / "by hand")
    (found,) = verify.verify(path, str(cheating.folder / "by hand"), "")
    assert "No such file" in found.output, found


def test_the_home_of_a_verification_is_fresh(clone: House) -> None:
    """What a check leaves there is there for the next one, and gone afterwards."""
    known = Contract(claims=[claim("V", "test ! -e ~/.seen && touch ~/.seen", "test -e ~/.seen")])
    for at in ("", "HEAD", "HEAD"):
        assert [one.exit for one in verify.verify(written(clone, known), str(clone.project), at)] == [0, 0]
    assert not (clone.folder / "home" / ".seen").exists()


def test_a_receipt_names_the_commit_that_was_checked(clone: House) -> None:
    """In full, with its tree."""
    found = list(verify.verify(written(clone, KNOWN), str(clone.project), "HEAD^"))
    head = clone.git("rev-parse", "HEAD^")
    assert {(one.head, one.tree, one.by) for one in found} == {
        (head, clone.git("rev-parse", "HEAD^^{tree}"), "person"),
    }


def test_services_run_in_any_clone(clone: House) -> None:
    """On ports of their own, ended afterwards."""
    serve = Service(name="web", run="echo $PORT >$HOME/port; sleep 60", ready="test -s $HOME/port")
    known = Contract(services=[serve], claims=[claim("V", "test $(cat $HOME/port) = $PORT_WEB; rm $HOME/port")])
    (found,) = verify.verify(written(clone, known), str(clone.project), "HEAD")
    assert found.green, found
    assert os.listdir(clone.folder / "temporary") == []


def test_a_red_setup_is_reported_and_no_check_is_fired(clone: House) -> None:
    """Exit 10: the clone fails, not the command."""
    known = Contract(setup="echo no compiler; exit 3", claims=[claim("V", "touch fired")])
    with pytest.raises(RequestRefused, match=r"setup ended with exit 3:\nno compiler"):
        list(verify.verify(written(clone, known), str(clone.project), "HEAD"))
    assert verified(clone, written(clone, known), "--in", str(clone.project)).code == 10
    assert not (clone.project / "fired").exists()
    assert os.listdir(clone.folder / "temporary") == []
    assert clone.git("worktree", "list").count("\n") == 0


def test_a_contract_without_checks_proves_nothing(clone: House) -> None:
    """No check, no green."""
    manual = contract.Claim(id="V", text="It looks right", manual=True)
    done = verified(clone, written(clone, Contract(claims=[manual])), "--in", str(clone.project))
    assert (done.code, done.out) == (10, "0 of 0 checks are green\n")


def test_a_flaky_check_is_marked(clone: House) -> None:
    """It counts as green, and the line shows the mark."""
    check = Check(run='test -e "$HOME/once" || { touch "$HOME/once"; exit 1; }')
    known = Contract(claims=[contract.Claim(id="V", text="t", checks=[check])])
    done = verified(clone, written(clone, known), "--in", str(clone.project))
    assert (done.code, "green (flaky)" in done.out) == (0, True), done


# where the contract is


def test_the_missions_contract_is_found_where_there_is_a_mission(house: House) -> None:
    """Also a contract in the folder itself, as in an archive of the project."""
    assert verify.find_contract("", str(house.project)) == house.layout.path(names.CONTRACT)
    plain = house.folder / "plain"
    plain.mkdir()
    (plain / "validation-contract.md").write_text(contract.render(KNOWN))
    assert verify.find_contract("", str(plain)) == str(plain / "validation-contract.md")


def test_inside_a_mission_verify_counts_nothing(house: House) -> None:
    """No run, no receipt, no attempt: it reads from outside."""
    before = listing(house.state, "cache", "locks")
    done = verified(house, "--in", str(house.project))
    assert (done.code, "0 of 2 checks are green" in done.out) == (10, True)
    assert differences(before, listing(house.state, "cache", "locks")) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.md"], "There is no contract at nowhere.md"),
        ([], "There is no contract at"),
        (["the contract.md", "--in", "nowhere"], "There is no folder"),
        (["the contract.md", "--at", "HEAD"], "is not a git repository"),
    ],
)
def test_a_missing_input_is_a_usage_fault(clone: House, words: list[str], said: str) -> None:
    """Exit 64, with the remedy."""
    written(clone, KNOWN)
    done = verified(clone, *words)
    assert (done.code, said in done.err) == (64, True), done


@pytest.mark.parametrize("at", ["no-such", "--no-such", "HEAD^{tree}", "HEAD~99"])
def test_a_commit_that_does_not_exist_is_named_and_nothing_is_left(clone: House, at: str) -> None:
    """A typo gives exit 64 with a clear message, and the folder needs no repair."""
    done = verified(clone, written(clone, KNOWN), "--in", str(clone.project), f"--at={at}")
    assert (done.code, done.out, done.err.count("\n")) == (64, "", 1), done
    assert done.err.startswith(f"harness: There is no commit '{at}' in {clone.project}. ")
    assert os.listdir(clone.folder / "temporary") == []
