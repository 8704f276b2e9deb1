"""Inside a run only note, issue, reply, check and reads are allowed, whatever the agent tries."""

from __future__ import annotations

import sys

import pytest

from harness.base.errors import UsageFault
from harness.mission import mission
from harness.workplace import run_detection
from tests.crash import sampled
from tests.missions import CHECKOUT, House, differences, listing

DOORS = [
    "feature retry F-002",
    "feature block F-002",
    "feature set F-002 priority=1",
    "claim accept VAL-LOOK",
    "escalation answer yes",
    "accept x config.toml",
    "init",
    "doctor --fix",
]
READS = ["next", "status --json", "feature list", "feature show F-001", "memory show", "runs list", "doctor"]
PROBE = """for words in {}; do
  code=0; harness $words >/dev/null 2>>"$OUT" || code=$?
  echo "$code $words" >> "$OUT.codes"
done"""


def probe(house: House, commands: list[str], prefix: str = "") -> dict[str, int]:
    """The exit code of each harness command that an agent gives in its run."""
    words = " ".join(f"'{command}'" for command in commands)
    script = "OUT=out; " + PROBE.format(words).replace("harness $words", f"{prefix} harness $words")
    house.work({"run": script})
    lines = (house.tree / "out.codes").read_text().split("\n")[:-1]
    return {line.partition(" ")[2]: int(line.partition(" ")[0]) for line in lines}


def test_outside_nothing_is_refused(house: House) -> None:
    """A person is not inside an agent's run."""
    assert run_detection.run_id(house.layout) == ""
    run_detection.refuse(house.layout, "anything")


REMOVED = {
    "nothing": "",
    "each variable": 'env -i PATH="$PATH" HOME="$HOME"',
    "the variable": "env -u HARNESS_INSIDE",
    "the tag": "env -u PROCESS_TAG",
}


def test_what_changes_state_is_refused_with_64_inside(house: House) -> None:
    """Each command says what is for the inside, and changes nothing."""
    run_id = house.work({"say": "nothing"})["run"]
    for words in DOORS:
        done = house.harness("--run", run_id, *words.split())
        assert done.code == 64 and "only note, issue, reply, check and reads are" in done.err, (words, done)
    assert not house.state.joinpath("orders.jsonl").exists()


@pytest.mark.parametrize("removed", sampled(REMOVED, lambda one: one in ("nothing", "each variable")))
def test_the_variable_or_an_ancestors_tag_shows_what_is_inside(house: House, removed: str) -> None:
    """Whatever the agent removes."""
    assert probe(house, DOORS[:2], REMOVED[removed]) == dict.fromkeys(DOORS[:2], 64)
    assert "only note, issue, reply, check and reads are" in (house.tree / "out").read_text()
    assert not house.state.joinpath("orders.jsonl").exists()


def test_reads_and_the_four_doors_work_inside(house: House) -> None:
    """An agent may read everything, try checks, and note."""
    codes = probe(house, [READS[0], "note hello", "issue slow", "check VAL-1"])
    assert codes == {READS[0]: 0, "note hello": 0, "issue slow": 0, "check VAL-1": 10}
    for words in READS:
        assert house.harness("--run", house.result()["run"], *words.split()).code in (0, 10 * (words == "doctor")), (
            words
        )


@pytest.mark.parametrize("prefix", ["", "env -u HARNESS_INSIDE "])
def test_no_run_starts_inside_a_run(house: House, prefix: str) -> None:
    """Neither a role's script nor run.sh starts one."""
    run_sh = f"'{CHECKOUT}/run.sh'"
    words = house.words("worker", "F-002")
    role = " ".join(f"'{word}'" for word in words)
    script = "; ".join(
        f"code=0; HARNESS_PYTHON='{sys.executable}' PYTHONPATH='{CHECKOUT}' {prefix}{command} || code=$?; echo $code >> codes"
        for command in (role, f"{run_sh} worker F-002", f"{run_sh} --once")
    )
    house.work({"run": script})
    assert (house.tree / "codes").read_text().split() == ["64", "64", "64"]
    assert [line["feature"] for line in house.ran()] == ["F-001"]


def test_a_check_of_a_run_is_inside_too(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment has no harness variable, but the tag."""
    monkeypatch.setenv("PROCESS_TAG", f"{mission.load(house.layout).id}/1-worker-F-001")
    assert run_detection.run_id(house.layout) == "1-worker-F-001"
    with pytest.raises(UsageFault, match=r"'retry' is not for the inside of a run \(1-worker-F-001\)"):
        run_detection.refuse(house.layout, "retry")


def test_the_tag_of_another_mission_is_none_of_ours(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may work on its own harness mission: tests of this project do."""
    monkeypatch.setenv("PROCESS_TAG", "another-123456/1-worker")
    assert run_detection.run_id(house.layout) == ""
    monkeypatch.setenv("HARNESS_INSIDE", "1-worker")
    assert run_detection.run_id(house.layout) == ""


def test_the_variable_alone_counts_where_the_run_exists(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """`harness --run ID` sets it: a sandboxed agent may not see its ancestors."""
    run_id = house.work({"say": "nothing"})["run"]
    monkeypatch.setenv("HARNESS_INSIDE", run_id)
    assert run_detection.run_id(house.layout) == run_id


def test_refusing_changes_nothing_on_disk(house: House) -> None:
    """A refused command leaves no trace."""
    run_id = house.work({"say": "nothing"})["run"]
    before = listing(house.project)
    assert house.harness("--run", run_id, "feature", "retry", "F-002").code == 64
    assert differences(before, listing(house.project)) == []
