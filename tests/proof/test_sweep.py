"""The final sweep: the result for a fresh clone, what the clone lacks, and that nothing is left behind."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from harness.mission import receipts
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Contract, Service
from harness.mission.receipts import Receipt
from harness.process import landlock, supervise, temporary
from harness.process.confine import BUBBLEWRAP, LANDLOCK, Confinement, Glass, available
from harness.proof import sweep as sweeping
from harness.workplace import confine
from tests.missions import House
from tests.planned import claim, contract_of, feature, lay


def sweep(house: House, known: Contract) -> tuple[list[Receipt], str]:
    """A final sweep at HEAD, without the receipts of its second half."""
    lay(house, [feature("F-001", *[one.id for one in known.claims])], known)
    place = CheckEnvironment(directory=str(house.project), head=house.head(), by="run-1")
    found, fault = sweeping.sweep(house.layout, contract_of(house), place, str(house.folder / "receipts.jsonl"))
    return [one for one in found if one.phase == "sweep"], fault


def test_a_sweep_sees_what_is_committed_and_nothing_else(house: House) -> None:
    """A fresh clone passes: untracked, ignored and uncommitted changes of the folder are not there."""
    house.write("committed", "old\n")
    house.git("add", "committed")
    house.git("commit", "-q", "-m", "one")
    house.write("committed", "new\n")
    house.write("untracked")
    known = Contract(
        claims=[claim("V-1", "grep old committed"), claim("V-2", "test -f untracked"), claim("V-3", "pwd")]
    )
    found, fault = sweep(house, known)
    assert fault == ""
    assert [(one.claim, one.exit, one.phase) for one in found] == [
        ("V-1", 0, "sweep"),
        ("V-2", 1, "sweep"),
        ("V-3", 0, "sweep"),
    ]
    assert found[2].output != f"{house.project}\n"
    assert os.path.basename(found[2].output.strip()) == house.project.name
    assert receipts.load(str(house.folder / "receipts.jsonl")) == found


def test_after_a_sweep_nothing_of_it_is_left(house: House) -> None:
    """No folder, no worktree in git's records, no change of the working folder, whatever the checks did."""
    before = house.git("status", "--porcelain", "--ignored"), house.head(), os.listdir(house.project)
    sweep(house, Contract(setup="touch made; chmod a-w .", claims=[claim("V-1", "rm -f main.py; git init -q sub")]))
    assert house.git("worktree", "list").count("\n") == 0
    assert os.listdir(house.folder / "temporary") == []
    assert (house.git("status", "--porcelain", "--ignored"), house.head(), os.listdir(house.project)) == before


def test_setup_comes_first_in_the_fresh_clone(house: House) -> None:
    """It prepares the clone for the checks; a red setup is reported, and no check is fired."""
    made = Contract(setup="echo built > product", claims=[claim("V-1", "grep built product")])
    found, fault = sweep(house, made)
    assert ([one.exit for one in found], fault) == ([0], "")
    assert not (house.project / "product").exists()
    found, fault = sweep(house, made.replace(setup="test -e untracked-tool"))
    assert (found, fault) == ([], "setup ended with exit 1:\n")
    assert os.listdir(house.folder / "temporary") == []


def test_a_sweep_without_a_setup_notes_it(house: House) -> None:
    """In every receipt: the contract does not prepare a clone."""
    known = Contract(claims=[claim("V-1", "true"), claim("V-2", "false")])
    assert [one.notes for one in sweep(house, known)[0]] == [[sweeping.NO_SETUP]] * 2
    assert [one.notes for one in sweep(house, known.replace(setup="true"))[0]] == [[], []]


def test_a_receipt_notes_what_only_the_working_folder_has(house: House) -> None:
    """A file that was never committed, and a build that git ignores: possible causes of a red check."""
    house.write(".gitignore", "build/\n")
    house.git("add", ".gitignore")
    house.git("commit", "-q", "-m", "ignore")
    house.write("forgotten.txt")
    house.write("build/program")
    found, _ = sweep(house, Contract(setup="true", claims=[claim("V-1", "test -f build/program")]))
    assert [(one.exit, one.notes) for one in found] == [
        (1, ["only in the working folder, not in a clone: build/, forgotten.txt"])
    ]


def test_of_many_such_files_some_are_named_and_the_rest_counted(house: House) -> None:
    """A receipt stays readable."""
    for number in range(20):
        house.write(f"left-{number:02d}")
    (found,), _ = sweep(house, Contract(setup="true", claims=[claim("V-1", "true")]))
    assert found.notes[0].endswith("left-11 and 8 more")


def test_services_are_started_in_the_clone(house: House) -> None:
    """They serve committed files, not the working folder."""
    house.write("page", "committed\n")
    house.git("add", "page")
    house.git("commit", "-q", "-m", "page")
    house.write("page", "changed\n")
    serve = Service(name="copy", run='cat page > "$TMPDIR/../served-$PORT"; pwd; sleep 60', ready="test -f page")
    known = Contract(
        services=[serve], claims=[claim("V-1", 'cat "$TMPDIR/../served-$PORT"; rm "$TMPDIR/../served-$PORT"')]
    )
    found, fault = sweep(house, known)
    assert (fault, [one.output for one in found]) == ("", ["committed\n"])
    assert os.listdir(house.folder / "temporary") == []


# in a plain environment


def twice(house: House, known: Contract, glass: Confinement | None, **more: Any) -> dict[str, list[str]]:
    """{claim: verdict of the sweep, verdict in a plain environment} at HEAD, whether or not the first is green."""
    place = CheckEnvironment(directory=str(house.project), head=house.head(), tag="m/run-1", confinement=glass, **more)
    lay(house, [feature("F-001", *[one.id for one in known.claims])], known)
    found, fault = sweeping.sweep(house.layout, contract_of(house), place, str(house.folder / "receipts.jsonl"))
    assert fault == ""
    assert os.listdir(house.folder / "temporary") == []
    return {one.id: [each.verdict for each in found if each.claim == one.id] for one in known.claims}


ASKS = {  # how a program may tell that the harness checks it
    "CI": '[ -n "${CI-}" ]',
    "NO_COLOR": '[ -n "${NO_COLOR-}" ]',
    "PAGER": '[ "${PAGER-}${GIT_PAGER-}" = catcat ]',
    "TERM": '[ "$TERM" = dumb ]',
    "PORT": '[ -n "${PORT-}" ]',
    "its tag": '[ -n "${PROCESS_TAG-}" ]',
    "other variables": "env | grep -q -e GIT_TERMINAL_PROMPT -e DEBIAN_FRONTEND -e GIT_CONFIG_ -e harness-m-",
    "TMPDIR": 'case "$TMPDIR" in *harness-m-* | *check*) ;; *) false ;; esac',
    "its folder": 'case "$PWD" in *harness-m-* | *sweep*) ;; *) false ;; esac',
    "HOME": 'case "$HOME" in *harness-m-*) ;; *) false ;; esac',
    "the times of files": '[ -z "$(find main.py -mmin +60)" ]',
    "the times of git": '[ -z "$(find .git/HEAD -mmin +60)" ]',
    "the branch": '[ -z "$(git branch --show-current)" ]',
    "the remote": 'case "$(git config remote.origin.url)" in /*) false ;; esac',
}
BY_PROCESS = {  # where it sees those of its check alone
    "its number": "[ $$ -lt 1000 ]",
    "its parent's number": "[ $PPID -lt 1000 ]",
    "the first process": 'tr "\\0" " " </proc/1/cmdline | cat - /proc/1/comm | grep -q -e bwrap -e harness',
    "mounts": "grep -q -e harness-m- -e sweep /proc/self/mountinfo",
}


@pytest.mark.parametrize("tier", [BUBBLEWRAP, LANDLOCK])
def test_a_program_cannot_tell_the_second_run_from_a_real_use(house: House, tier: str) -> None:
    """Whatever it goes by: of the first run each of these programs knows."""
    if tier != available() and not (tier == LANDLOCK and landlock.abi()):
        pytest.skip("this tier cannot be had here")
    asks = {**ASKS, **(BY_PROCESS if tier == BUBBLEWRAP else {})}
    for name, ask in asks.items():
        house.write(f"asks/{name}", f"if {ask}; then echo {name!r}; fi\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "programs")
    known = confine.of_stranger() or Confinement(glass=Glass(), tier=tier)
    every = Contract(claims=[claim("V-1", 'for one in asks/*; do bash "$one"; done')])
    assert twice(house, every, known.replace(tier=tier)) == {"V-1": ["green"] * 2}
    first, second = (one.output.split("\n")[:-1] for one in receipts.load(str(house.folder / "receipts.jsonl")))
    assert (sorted(first), second) == (sorted(asks), [])


def test_what_a_check_names_or_the_project_needs_is_there(house: House) -> None:
    """A check that was promised a port gets one, and `[checks] needs` names the rest."""
    known = Contract(claims=[claim("V-1", 'test "$PORT" -gt 1024'), claim("V-2", 'env | grep -e "^NO_C" -e "^C[I]="')])
    assert twice(house, known, None, needs=["CI"]) == {"V-1": ["green"] * 2, "V-2": ["green"] * 2}
    receipt = receipts.load(str(house.folder / "receipts.jsonl"))[-1]
    assert (receipt.phase, receipt.output) == ("outside", "CI=1\n")


def test_a_word_of_a_check_is_no_variable(house: House) -> None:
    """What a check expands or assigns is there in a plain environment; a name that only occurs in it is not."""
    house.write("CI.sh", '[ -n "${CI-}" ]\n')
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "asks")
    told = [
        "bash CI.sh # in CI",
        "bash CI.sh --with-CI=1",
        "bash CI.sh; : $CI",
        "bash CI.sh; : ${CI}",
        "CI=1 bash CI.sh",
    ]
    known = Contract(claims=[claim(f"V-{number}", one) for number, one in enumerate(told)])
    seen = twice(house, known, None)
    assert {verdicts[0] for verdicts in seen.values()} == {"green"}
    assert [verdicts[1] == "green" for verdicts in seen.values()] == [False, False, True, True, True]


def test_a_service_and_the_checks_that_ask_it_keep_their_ports(house: House) -> None:
    """Also those that a program alone reads."""
    house.write("ask.sh", 'test "$PORT" = "$PORT_WEB"; cat "served-$PORT"\n')
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "asks")
    web = Service(name="web", run='echo x >"served-$PORT"; sleep 60', ready='test -f "served-$PORT"')
    assert twice(house, Contract(services=[web], claims=[claim("V-1", "bash ask.sh")]), None) == {"V-1": ["green"] * 2}


def test_of_a_killed_sweep_nothing_is_left(bare: House) -> None:
    """Folders with an ordinary name are found by the tag of the run, and so are processes."""
    tag = f"m/{os.getpid()}"
    temporary.create("sweep", tag, ordinary=True)
    other = temporary.create("sweep", "m/run-2", ordinary=True)
    env = {**bare.env, "TMPDIR": temporary.create("check", tag, ordinary=True)}
    with subprocess.Popen(["sleep", "60"], env=env) as left:
        assert supervise.sweep(tag) == [left.pid]
    temporary.remove_tagged(tag)
    assert os.listdir(bare.folder / "temporary") == [os.path.basename(other)]
