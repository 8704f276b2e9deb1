"""The commands that run.sh and agents call most often."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.state import names
from tests.crash import TORTURE
from tests.missions import CHECKOUT, DISPOSABLE, PROGRAM, House, differences, listing

ENTRY = r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] person - TRICK: use make\n"
LOADED_BY_ALL = {  # the modules of ours that `next`, `note` and `hold` load; each other one waits until it is needed
    *("__main__", "cli.quick", "state.raw", "process.spawn", "process.tree"),
    *(f"base.{name}" for name in ("clock", "console", "encoding", "errors", "exits", "faults", "passwords")),
    *(f"base.{name}" for name in ("record", "redaction", "schema", "tables")),
    *("workplace.lane_turn", "workplace.run_detection", "mission.lease"),
    *(f"mission.{name}" for name in ("config", "mission", "receipts", "roles", "runs")),
    *(f"state.{name}" for name in ("committed_copy", "documents", "files", "folder_lock", "journal", "json_lines")),
    *(f"state.{name}" for name in ("layout", "names", "state")),
}
LOADED_BY_NEXT = {
    *("decision.rules", "decision.views", "workplace.recovery.unsettled_runs", "memory.pages", "memory.backlog"),
    *("mission.contract", "mission.features", "mission.issues", "state.objects"),
}
WRITERS = 16 if TORTURE else 8
LARGE = {"asyncio", "http.client", "multiprocessing", "subprocess", "urllib.request"}  # of Python's own
LOADED = """
import sys
sys.argv = {words!r}
sys.path.insert(0, {checkout!r})
before = set(sys.modules)
from harness.__main__ import main
code = main()
print(code, *sorted(set(sys.modules) - before))
"""


# next


def test_next_says_what_is_due_in_one_line(house: House) -> None:
    """And changes nothing."""
    before = listing(house.project, *DISPOSABLE)
    done = house.harness("next")
    assert (done.code, done.out, done.err) == (0, "NEXT worker F-001\n", "")
    assert differences(before, listing(house.project, *DISPOSABLE)) == []


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [("STOP", "STOPPED", 9), ("PAUSE", "PAUSED", 9), ("checkpoints/look.md", "CHECKPOINT look", 8)],
)
def test_next_ends_with_the_code_that_run_sh_would(house: House, name: str, line: str, code: int) -> None:
    """Scripts need not parse the word."""
    path = house.state / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    done = house.harness("next")
    assert (done.code, done.out) == (code, line + "\n")


def test_the_last_look_asks_for_a_curator_where_there_is_something_to_fold(house: House) -> None:
    """Otherwise it returns the same word; nothing is curated after a person says stop."""
    assert house.harness("next", "--leaving", "DONE").out == "DONE\n"
    house.harness("note", "hello")
    assert house.harness("next", "--leaving", "ESCALATE stuck").out == "NEXT curator\n"
    assert house.harness("next", "--leaving", "STOPPED").out == "STOPPED\n"


def test_a_line_is_told_as_run_sh_shows_it(house: House) -> None:
    """With its prefix; `next` makes no new decision."""
    assert house.harness("next", "--told", "NEXT curator").out == "> NEXT curator\n"


@pytest.mark.parametrize("words", [["--leaving"], ["x"], ["--leaving", "a", "b"], ["--told"]])
def test_next_takes_nothing_else(house: House, words: list[str]) -> None:
    """The message is the usage."""
    done = house.harness("next", *words)
    assert (done.code, done.err) == (
        64,
        "harness: Usage: harness next [--json | --leaving WORD | --lull SECONDS LINE | --told LINE]\n",
    )


def test_without_a_mission_next_says_how_to_start_one(unbegun: House) -> None:
    """And does not start one."""
    done = unbegun.harness("next")
    assert (done.code, "run.sh init" in done.err) == (64, True)
    assert not unbegun.state.exists()


# note


@pytest.mark.parametrize(
    "words", [["--tag", "TRICK", "use", "make"], ["--tag=TRICK", "use make"], ["--tag", "TRICK", "use\nmake"]]
)
def test_a_persons_note_is_one_line_of_raw(house: House, words: list[str]) -> None:
    """Words are joined, newlines become spaces."""
    done = house.harness("note", *words)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert re.fullmatch(ENTRY, house.read("memory/raw.md"))


def test_the_tag_may_be_left_out(house: House) -> None:
    """A bare dash means none; options end at the first word."""
    house.harness("note", "use", "--tag", "make")
    assert house.read("memory/raw.md").endswith("] person - - use --tag make\n")


@pytest.mark.parametrize(
    "words", [["--runInBand is needed: jest forks too much"], ["--tag", "-", "--", "--runInBand", "is needed"]]
)
def test_a_note_may_begin_with_somebodys_option(house: House, words: list[str]) -> None:
    """As one text, or after two dashes."""
    done = house.harness("note", *words)
    assert (done.code, done.err) == (0, "")
    assert "] person - - --runInBand is needed" in house.read("memory/raw.md")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tag", "HINT", "x"], "unknown tag 'HINT'. Use one of TRICK"),
        ([], "The note is empty"),
        (["  "], "The note is empty"),
        (["--tag"], "Usage: harness note [--tag TAG] [--] TEXT"),
        (["--colour", "x"], "Usage: harness note [--tag TAG] [--] TEXT"),
    ],
)
def test_a_wrong_note_is_64_and_leaves_nothing(house: House, words: list[str], said: str) -> None:
    """With the correct form."""
    done = house.harness("note", *words)
    assert (done.code, said in done.err) == (64, True), done
    assert not os.path.exists(house.layout.path(names.RAW))


def test_writers_at_once_lose_no_note(house: House) -> None:
    """Every line is whole and appears exactly once."""
    words = [sys.executable, "-P", str(PROGRAM), "note"]
    started = [
        subprocess.Popen([*words, f"number {n} {'x' * 200}"], cwd=house.project, env=house.env) for n in range(WRITERS)
    ]
    assert [one.wait() for one in started] == [0] * WRITERS
    lines = house.read("memory/raw.md").split("\n")[:-1]
    assert sorted(int(line.split("number ")[1].split(" ")[0]) for line in lines) == list(range(WRITERS))
    assert {line[-200:] for line in lines} == {"x" * 200}


# hold


def test_hold_is_for_run_sh_alone(house: House) -> None:
    """No other program has the descriptor."""
    for words in ([], ["x"]):
        done = house.harness("hold", *words)
        assert (done.code, done.err) == (64, "harness: 'hold' is only for run.sh.\n")


@pytest.mark.parametrize(
    "words", [["--for", "9" * 20 + "h"], ["--for", "\u00b2m"], ["--lanes", "9" * 5000], ["--for", "--help"]]
)
def test_options_that_no_shell_can_count_are_refused(house: House, words: list[str]) -> None:
    """64 with how it is called, before anything starts."""
    done = house.run([str(CHECKOUT / "run.sh"), *words])
    assert (done.code, done.out, house.ran()) == (64, "", [])
    assert "is invalid. Usage: run.sh [" in done.err


def test_two_loops_on_one_mission_are_told_apart(house: House) -> None:
    """The second names the holder with pid, run and since, and ends with 75."""
    script = f"exec 9>>.harness/locks/loop; '{sys.executable}' -P '{PROGRAM}' hold 9 && exec sleep 60"
    first = subprocess.Popen(["bash", "-c", script], cwd=house.project, env=house.env, stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"0 1000000000 1\n"
    done = house.run([str(CHECKOUT / "run.sh")])
    first.kill()
    first.communicate()
    assert done.code == 75
    assert re.search(rf"already looping on this mission: pid {first.pid}, since \S+Z, run between runs", done.err), done


# what a quick command costs


def test_a_quick_command_loads_a_short_list_of_modules(house: House) -> None:
    """They run thousands of times: only the modules of the list, of third parties the YAML parser for the role files that
    `next` reads, and no large one of Python's."""
    house.harness("next")
    for words, more in ((["next"], LOADED_BY_NEXT), (["note", "hello"], set()), (["hold", "0"], set())):
        done = house.run([sys.executable, "-I", "-c", LOADED.format(words=["harness", *words], checkout=str(CHECKOUT))])
        code, *modules = done.out.split("\n")[-2].split()
        ours = {name.removeprefix("harness.") for name in modules if name.startswith("harness.")}
        theirs = {name.partition(".")[0] for name in modules} - {"harness", *sys.stdlib_module_names}
        theirs = {name for name in theirs if "cython" not in name}  # names that the YAML parser makes up
        packages = {name.rpartition(".")[0] for name in ours if "." in name}
        assert (code, ours - packages - LOADED_BY_ALL) == ("0", more)
        assert (LOADED_BY_ALL - ours, LARGE & {*modules}) == (set(), set())
        assert theirs == ({"frontmatter", "yaml"} if words == ["next"] else set())


def test_the_project_may_be_named_by_the_environment(house: House) -> None:
    """HARNESS_PROJECT, as the shim sets it, from any folder."""
    done = house.run(
        [sys.executable, "-P", str(PROGRAM), "next"], where=Path("/"), env={"HARNESS_PROJECT": str(house.project)}
    )
    assert done.out == "NEXT worker F-001\n"
