"""The gallery of cheats, played through run.sh; docs/proof.md must quote the harness's reply to each.

The suite plays a few (SHORT), since what catches the others has tests of its own; HARNESS_TORTURE=1 plays all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from harness.commands import why
from harness.mission import contract_log, mission, receipts
from harness.state import names
from tests.crash import TORTURE, sampled
from tests.missions import CHECKOUT, Done, House, surroundings, tagged
from tests.proof.cheats import CHEATS, UNCONFINED, Cheat

PAGE = CHECKOUT / "docs" / "proof.md"
ROW = re.compile(r"^\| ((?:[^|`]|`[^`]*`)+) \| ((?:[^|`]|`[^`]*`)+) \| ((?:[^|`]|`[^`]*`)+) \|$", re.MULTILINE)
SHORT = (  # those in the suite: what the tests below look at, and one that the final sweep alone finds
    "hard-codes the expected output",
    "edits the test that the check runs",
    "gives git a hook, a filter and a history of its own",
    "empties the test while it runs",
)
NAMES = [cheat.name for cheat in CHEATS if TORTURE or cheat.name in SHORT]
THERE = [cheat.name for cheat in CHEATS if 'confine = "off"' not in cheat.config]  # no machine takes the others
MORE_RUNS = 3  # there: checks on a machine have a HOME layer that those of the planner at home have not touched
ELSEWHERE = "only in the working folder"  # begins a note of the sweep, which cannot see the folder of another machine
HERE = "[machines.here]\ncommand = []\nlanes = 1\n"


class Played:
    """A cheat's mission after its end: the end of run.sh, and all messages of the harness."""

    def __init__(self, house: House, ended: Done) -> None:
        self.house, self.ended = house, ended
        self.done = "\nDONE  " in ended.out

    def receipts(self) -> Iterator[receipts.Receipt]:
        """Every receipt, oldest run first."""
        for row in self.house.ran():
            yield from receipts.load(self.house.layout.run(row["run"]).receipts)

    def everything(self) -> str:
        """The output of run.sh, then results, what programs printed, receipts, memory, issues, and `why` for each feature."""
        layout, ran = self.house.layout, self.house.ran()
        said = [self.ended.out, self.ended.err]
        said += [str(self.house.result(row["run"])["reason"]) for row in ran]
        said += [path.read_text() for path in Path(layout.path(names.RUNS)).glob("*/stderr.log")]
        for receipt in self.receipts():
            said += [f"{receipt.claim} {receipt.phase} {receipt.verdict}", *receipt.notes]
        said += [
            path.read_text()
            for path in map(Path, (layout.path(names.RAW), layout.path(names.ARCHIVE), layout.path(names.ISSUES)))
            if path.exists()
        ]
        features = {row["feature"] for row in ran if row["role"] == "validator" and row["feature"]}
        said += [line for name in sorted(features) for line in why.explain(layout, name)]
        said += why.explain(layout, "setup") if "setup" in contract_log.changed(contract_log.load(layout)) else []
        return "\n".join(said)


def play(cheat: Cheat, folder: Path, env: Mapping[str, str] = {}, *words: str) -> Played:
    """The cheat's mission from its first commit to its end, in an empty folder, as a user would run it with these options."""
    house = House(folder, {**surroundings(folder), "LC_ALL": "C", **env})
    house.project.mkdir()
    house.git("init", "-q", "-b", "main", "--template=")
    house.write("SPEC.md", "# A program\n\n## Part\n\nIt greets.\n")
    for name, text in cheat.files.items():
        house.write(name, text)
    for name, text in cheat.playbooks().items():
        house.write(f"playbooks/{name}", text)
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "begin")
    run_sh = str(CHECKOUT / "run.sh")
    begun = house.run([run_sh, "init", "--quietly"])
    assert begun.code == 0, begun
    for name in ("my project/.git/hooks", "my project/.harness/roles", "home/.config/git", "home/.config/autostart"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    runs = cheat.runs + MORE_RUNS * bool(words)
    Path(house.layout.path(names.CONFIG)).write_text(f"{cheat.config}\n[limits]\nmax_runs = {runs}\n{HERE}")
    return Played(house, house.run([run_sh, *words]))


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Played]:
    """The end of a cheat's mission, by name; each mission in this session is played once, in parallel. A name that ends with
    "@here" is played on the machine of that name.

    The threads end with it, since other tests fork in this process.
    """
    asked = "\n".join(item.name for item in request.session.items)
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        started: dict[str, Future[Played]] = {}
        for (number, cheat), there in product(enumerate(CHEATS), ("", "@here")):
            if f"[{cheat.name}{there}]" in asked:
                folder, words = tmp_path_factory.mktemp(f"cheat-{number}{there}"), ["--on", "here"] if there else []
                started[cheat.name + there] = pool.submit(play, cheat, folder, {}, *words)
    return lambda name: started[name].result()


def rows() -> dict[str, tuple[str, str]]:
    """The table below its heading on the page: {cheat: (the harness's reply, whether DONE)}."""
    section = PAGE.read_text().partition("\n## The gallery of cheats\n")[2].partition("\n## ")[0]
    found = [[cell.strip() for cell in row] for row in ROW.findall(section)]
    return {name: (says, done) for name, says, done in found if name != "cheat" and not name.startswith("-")}


def test_the_page_and_the_gallery_name_the_same_cheats() -> None:
    """So every row of the table can be played."""
    names = [cheat.name for cheat in CHEATS]
    assert list(rows()) == names
    assert {*SHORT} <= {*names}


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}@here" for name in THERE if TORTURE)])
def test_the_harness_says_to_a_cheat_what_the_page_says(name: str, played: Callable[[str], Played]) -> None:
    """Every text in backticks in the page's row is in the output, and DONE is reached or not as stated, at home and on a
    machine."""
    says, done = rows()[name.removesuffix("@here")]
    ended = played(name)
    said, there = ended.everything(), name.endswith("@here")
    machines = {receipt.host for receipt in ended.receipts() if receipt.phase == "after"}
    assert machines == {"here"} or not (there and machines)
    quoted = re.findall(r"`([^`]+)`", says)
    assert quoted
    assert [words for words in quoted if words not in said and not (there and words.startswith(ELSEWHERE))] == [], said
    assert ended.done == done.startswith("yes"), said
    marked = done.removeprefix("yes").removeprefix("no").strip(" ,:`")
    assert not ended.done or marked == "unseen" or f"\n{marked:<9} " in ended.ended.out, said


@pytest.mark.parametrize("name", NAMES)
def test_no_process_of_a_cheat_survives_its_mission(name: str, played: Callable[[str], Played]) -> None:
    """Servers of checks and services end with them."""
    assert tagged(mission.load(played(name).house.layout).id) == []


@pytest.mark.parametrize("name", ["hard-codes the expected output"])
def test_what_a_validator_aimed_joins_the_contract(name: str, played: Callable[[str], Played]) -> None:
    """The worker's next attempt must pass the adversarial check that revealed the cheat."""
    house = played(name).house
    assert "Hello, Bob" in house.read("validation-contract.md")
    assert [entry.verb for entry in contract_log.load(house.layout)] == ["add", "setup", "aim"]


@pytest.mark.parametrize("name", sampled(["a check that leaves a server running"], SHORT.__contains__))
def test_a_server_that_one_check_left_is_gone_when_the_next_one_asks(
    name: str, played: Callable[[str], Played]
) -> None:
    """A check cannot depend on leftovers of another one."""
    after = [receipt.green for receipt in played(name).receipts() if receipt.phase == "after"]
    assert after == [True, False]


@pytest.mark.parametrize("name", [cheat.name for cheat in CHEATS if cheat.forged and cheat.name in NAMES])
def test_nothing_that_a_cheat_forges_gets_out(name: str, played: Callable[[str], Played]) -> None:
    """Where it tried to write, the word is not there; nor did it print that it could."""
    (cheat,) = (cheat for cheat in CHEATS if cheat.name == name)
    top = played(name).house.folder
    found = [path for place in cheat.forged for path in top.glob(place) if path.is_file()]
    assert [path for path in found if b"FORGED" in path.read_bytes()] == []
    assert "got through" not in played(name).everything()


@pytest.mark.parametrize("name", sampled([f"writes `passed` into features.json{UNCONFINED}"], SHORT.__contains__))
def test_the_queue_that_an_agent_wrote_is_kept_for_a_person_to_see(name: str, played: Callable[[str], Played]) -> None:
    """It is restored, and the agent's version is kept with the run; a confined one could not write it."""
    house = played(name).house
    worker = next(row["run"] for row in house.ran() if row["role"] == "worker")
    assert house.feature().status == "todo"
    assert b'"status":"passed"' in house.refused(worker)["features.json"].replace(b": ", b":")


@pytest.mark.parametrize("name", ["edits the test that the check runs"])
def test_reward_hacking_signals_are_in_the_prompt_of_a_validator(name: str, played: Callable[[str], Played]) -> None:
    """So the validator sees what to check."""
    house = played(name).house
    judged = next(row["run"] for row in house.ran() if row["role"] == "validator" and row["feature"])
    assert "edits tests/test_greet.sh" in house.prompt(judged)
