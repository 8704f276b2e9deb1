"""The final sweep: the result for a fresh clone, what the clone lacks, and that nothing is left behind."""

from __future__ import annotations

import os

from harness.model import receipts
from harness.model.check_environment import CheckEnvironment
from harness.model.contract import Contract, Service
from harness.model.receipts import Receipt
from harness.proof import sweep as sweeping
from tests.missions import House
from tests.planned import claim, contract_of, feature, lay


def sweep(house: House, known: Contract) -> tuple[list[Receipt], str]:
    """A final sweep at HEAD."""
    lay(house, [feature("F-001", *[one.id for one in known.claims])], known)
    place = CheckEnvironment(directory=str(house.project), head=house.head(), by="run-1")
    return sweeping.sweep(house.layout, contract_of(house), place, str(house.folder / "receipts.jsonl"))


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
