"""What checks do to files: a changed test makes red and is put back, and no check finds what another one left for it."""

from __future__ import annotations

import os

import pytest

from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Contract
from harness.mission.receipts import Receipt
from harness.proof import check_runs, services, tampering
from tests.missions import House
from tests.planned import claim

TEST = 'set -e\ntest "$(bash greet.sh Ada)" = "Hello, Ada"\n'
FILES = {"tests/greet.sh": TEST, "tests/lib.sh": "x=1\n", "greet.sh": "exit 1\n", "lock": "1\n", ".gitignore": "out/\n"}


@pytest.fixture
def made(house: House) -> House:
    """A repository with a program, its test, and a file that neither is."""
    for name, text in FILES.items():
        house.write(name, text)
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "tests")
    return house


def fired(house: House, *commands: str, setup: str = "", writes: tuple[str, ...] = ()) -> list[Receipt]:
    """The receipts of claims VAL-1, VAL-2 and so on with one check each, in the folder of the repository."""
    known = Contract(claims=[claim(f"VAL-{number}", run) for number, run in enumerate(commands, start=1)], setup=setup)
    place = CheckEnvironment(directory=str(house.project), head=house.head(), seconds=20, writes=list(writes))
    place = tampering.watched(place, known)
    assert check_runs.setup_fault(known, place) == ""
    with services.RunningServices([], place) as up:
        return list(check_runs.fire_all(known.claims, "after", up))


CHANGES = {
    "emptied": ": >tests/greet.sh",
    "with its time": "touch -r tests/greet.sh old; sed -i s/Hello/Hullo/ tests/greet.sh; touch -r old tests/greet.sh; rm old",
    "removed": "rm tests/greet.sh",
    "a link": "cp tests/greet.sh moved; ln -sf ../moved tests/greet.sh",
    "behind a link": "mv tests others; sed -i s/Hello/Hullo/ others/greet.sh; ln -s others tests",
    "a folder": "rm tests/greet.sh; mkdir -p tests/greet.sh/x",
    "another test": "echo exit 0 >tests/lib.sh",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_check_that_changes_a_test_is_red_and_the_test_is_put_back(made: House, change: str) -> None:
    """Whoever did it, such as the program while bash was reading the test."""
    made.write("change.sh", f"{change}\n")
    found = fired(made, "bash tests/greet.sh || bash change.sh", "cat tests/greet.sh")
    assert [one.verdict for one in found] == ["red (changed files)", "green"]
    name = "tests/lib.sh" if "lib" in change else "tests/greet.sh"
    assert found[0].fault.startswith(f"it changed {name}")
    assert found[1].output == TEST
    assert made.git("status", "--porcelain", "--", "tests") == ""


def test_a_test_that_is_as_it_was_when_the_check_ends_is_a_sign(made: House) -> None:
    """Its content and its time are the same; that it was written cannot be hidden."""
    made.write("twice.sh", 'cp -p tests/greet.sh "$TMPDIR/x"; echo exit 0 >tests/greet.sh\n')
    restore = 'cat "$TMPDIR/x" >tests/greet.sh; touch -r "$TMPDIR/x" tests/greet.sh'
    (found,) = fired(made, f"bash twice.sh; bash tests/greet.sh; {restore}")
    assert (found.green, found.signs) == (
        True,
        ["rewrites tests/greet.sh while a check ran, and it is again as it was"],
    )


def test_other_rights_alone_are_no_change(made: House) -> None:
    """`chmod +x` before a program is run."""
    (found,) = fired(made, "chmod +x greet.sh lock; ! ./greet.sh")
    assert (found.green, found.notes) == (True, [])


def test_another_tracked_file_is_put_back_with_a_warning(made: House) -> None:
    """It may be a lock file of a package manager: no fault, and no sign."""
    change = "for one in l?ck; do echo 2 >$one; done"
    found = fired(made, change, "cat l?ck")
    assert [one.verdict for one in found] == ["green", "green"]
    assert found[0].notes == ["warning: the check changed lock, which is put back"]
    assert (found[0].signs, found[1].output) == ([], "1\n")


def test_what_a_check_is_meant_to_write_is_left_alone(made: House) -> None:
    """By `[checks] writes`, for a file and for a folder of them."""
    found = fired(
        made, "echo 2 >lock; echo x=2 >tests/lib.sh; cp lock tests/new.sh", "cat lock", writes=("lock", "tests")
    )
    assert [(one.verdict, one.notes) for one in found] == [("green", []), ("green", [])]
    assert found[1].output == "2\n"


def test_a_check_does_not_find_what_a_check_of_another_claim_made_for_it(made: House) -> None:
    """Also where git ignores it; the receipt says so. What only its own claim names stays."""
    write = "mkdir -p out; echo x | tee out/a >out/b; cat out/b"
    found = fired(made, write, "test -e out/a", "ls out")
    assert [one.green for one in found] == [True, False, True]
    assert "before it out/a was removed, since a check of VAL-1 made that" in found[1].fault
    assert found[2].output == "b\n"


def test_a_check_finds_what_an_earlier_check_of_its_claim_made(made: House) -> None:
    """Whatever other claims name; nothing of it is left when the checks have ended."""
    one = claim("VAL-1", "mkdir -p out; echo x >out/a", "grep x out/a")
    known = Contract(claims=[one, claim("VAL-2", "! test -e out/a", "echo y >out/a", "grep y out/a")])
    place = CheckEnvironment(directory=str(made.project), head=made.head(), seconds=20)
    with services.RunningServices([], tampering.watched(place, known)) as up:
        found = list(check_runs.fire_all(known.claims, "after", up))
    assert [receipt.green for receipt in found] == [True] * 5
    assert not (made.project / "out" / "a").exists()


def test_new_tests_of_a_check_are_removed_but_not_those_of_packages(made: House) -> None:
    """Such as a conftest.py, which pytest reads by itself, and the bytecode of a test."""
    names = "conftest.py tests/new.sh tests/__pycache__/test_a.pyc out/test_b.py node_modules/a/test.js notes.txt"
    made.write("make.sh", f'for one in {names}; do mkdir -p "$(dirname $one)"; echo x >$one; done\n')
    found = fired(made, "bash make.sh", "find . -newer make.sh -type f -not -path './.git/*' | sort")
    assert [one.notes for one in found] == [[], []]
    assert found[1].output == "./node_modules/a/test.js\n./notes.txt\n"


def test_what_setup_changes_of_a_test_is_put_back_and_the_rest_is_meant(made: House) -> None:
    """A hook of a package manager runs the project's own code."""
    found = fired(made, "cat tests/lib.sh l?ck", setup="echo exit 0 >tests/lib.sh; echo 2 >lock")
    assert (found[0].output, found[0].signs) == ("x=1\n2\n", [])
    assert found[0].notes == ["warning: setup changed tests/lib.sh, which is put back"]


def test_a_file_that_a_filter_of_git_made_is_compared_with_how_it_was_laid(made: House) -> None:
    """As with other line ends."""
    made.write(".gitattributes", "tests/greet.sh text eol=crlf\n")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "line ends")
    os.unlink(made.project / "tests/greet.sh")
    made.git("checkout", "-q", "--", "tests/greet.sh")
    found = fired(made, "true", "rm tests/greet.sh")
    assert [one.verdict for one in found] == ["green", "red (changed files)"]
    assert (made.project / "tests/greet.sh").read_bytes() == TEST.replace("\n", "\r\n").encode()
