"""Every end other than success has one exit code, and a message with the place and the remedy."""

from __future__ import annotations

import json
import sys

import pytest

from harness.base import errors
from tests.crash import sampled
from tests.missions import PROGRAM, House


def kinds(kind: type[errors.HarnessError] = errors.HarnessError) -> list[type[errors.HarnessError]]:
    """The class and all its subclasses."""
    return [kind, *(below for child in kind.__subclasses__() for below in kinds(child))]


def test_every_error_ends_with_a_documented_code() -> None:
    """No code is in the table twice."""
    assert {kind.code for kind in kinds()} <= errors.EXIT_CODES.keys()
    assert all(errors.EXIT_CODES.values())


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.HarnessError, 70),
        (errors.UsageFault, 64),
        (errors.BrokenFile, 65),
        (errors.Unavailable, 69),
        (errors.NeedsPerson, 11),
        (errors.LockBusy, 75),
        (errors.RequestRefused, 10),
    ],
)
def test_scripts_can_rely_on_the_codes(kind: type[errors.HarnessError], code: int) -> None:
    """They are part of the contract."""
    assert kind.code == code


@pytest.mark.parametrize(
    ("line", "remedy", "text"),
    [
        (3, "Mend it.", "a/b, line 3: not JSON. Mend it."),
        (None, "Mend it.", "a/b: not JSON. Mend it."),
        (1, "", "a/b, line 1: not JSON."),
    ],
)
def test_a_broken_file_is_reported_with_its_line_and_remedy(line: int | None, remedy: str, text: str) -> None:
    """It is one paragraph that a person can act on."""
    fault = errors.BrokenFile("a/b", "not JSON", line=line, remedy=remedy)
    assert str(fault) == text
    assert (fault.path, fault.line, fault.fault) == ("a/b", line, "not JSON")


@pytest.mark.parametrize(("signum", "code"), [(2, 130), (15, 143), (1, 143)])
def test_an_interrupt_passes_every_handler_of_errors(signum: int, code: int) -> None:
    """It is not an Exception, so no handler takes it for an error of the run."""
    assert errors.Interruption(signum).code == code
    assert not issubclass(errors.Interruption, Exception)


BROKEN = {
    "mission.json": ("{}", "status"),
    "memory/curated.json": ("{}", "next"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_live_file_is_copied_back_as_the_remedy_says(house: House, name: str) -> None:
    """Step by step: the newest snapshot, the digest under `live`, the object, copied over the file; then all is well."""
    house.harness("note", "hello")
    house.script("curator", {"say": "nothing"})
    assert house.role("curator").code == 0
    house.work({"run": "echo 1 > 1.txt"})
    good = house.read(name)
    text, command = BROKEN[name]
    (house.state / name).write_text(text)
    done = house.harness(command)
    assert (done.code, errors.RESTORE in done.err) == (65, True), done
    newest = max((house.state / "snapshots").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    digest = json.loads(newest.read_text())["live"][name]
    house.run(["cp", f".harness/objects/{digest[:2]}/{digest[2:]}", f".harness/{name}"])
    assert (house.harness(command).code, house.read(name)) == (0, good)


DAMAGES = (None, "", "[]", '{"features":[\n', '{"features":[\n{"id":"F-001"}\n]}\n')
DAMAGED = [("features.json", damage) for damage in DAMAGES]
DAMAGED += [("validation-contract.md", damage) for damage in (None, "", "# Nothing\n")]


@pytest.mark.parametrize(
    ("name", "damage"), sampled(DAMAGED, lambda one: one[1] in (None, "", DAMAGES[-1], "# Nothing\n"))
)
def test_a_plan_that_is_missing_or_damaged_comes_back_by_the_command_that_is_named(
    house: House, name: str, damage: str | None
) -> None:
    """And until then no planner is due, which would be paid to plan all of it again."""
    run = house.work({"run": "echo 1 > 1.txt"})["run"]
    good, path = house.read(name), house.state / name
    path.unlink() if damage is None else path.write_text(damage)
    for words, code in {"next": 65, "status": 65, "doctor": 10}.items():
        if words == "doctor" or name == "features.json":  # the others need no contract
            done = house.harness(words)
            assert (done.code, "snapshot restore ID" in done.out + done.err) == (code, True), done
    assert house.role("worker", "F-002").code == 65
    if damage == "" and name == "features.json":  # in a process that has read no other plan before
        assert house.run([sys.executable, "-P", str(PROGRAM), "next"]).code == 65
    assert house.program("snapshot", "restore", run).code == 0
    assert house.read(name) == good
    assert house.harness("next").code == 0
