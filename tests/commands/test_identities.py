"""Where the line of an identity came from."""

from __future__ import annotations

import pytest

from harness.commands import identities
from harness.memory import identity
from harness.memory.curation.growth import Evidence, Graduation
from tests.missions import House


def row(mission: str, feature: str, seq: int, tag: str, role: str = "worker") -> Evidence:
    """One note."""
    text, at = "pass --maxfail=1 to pytest", "2026-04-24T10:05:12Z"
    return Evidence(mission=mission, feature=feature, run="r", seq=seq, role=role, at=at, tag=tag, text=text)


@pytest.mark.parametrize(
    ("tag", "rows", "rule"),
    [
        ("AVOID", [("m-1", "F-1"), ("m-2", "F-1")], "a failure in two missions"),
        ("TRICK", [("m-1", "F-1"), ("m-1", "F-2")], "a trick that the worker of 2 features noted"),
        ("TRICK", [("m-1", "F-1"), ("m-1", "F-1")], "a convention, noted again after it was in memory"),
    ],
)
def test_the_rule_is_the_one_that_the_evidence_meets(
    house: House, tag: str, rows: list[tuple[str, str]], rule: str
) -> None:
    """Of three."""
    found = [row(mission, feature, seq, tag) for seq, (mission, feature) in enumerate(rows)]
    moved = Graduation(role="worker", text=found[0].text, tag=tag, missions=["m-1"], count=2)
    identity.record(str(house.identity), found, [moved], "2026-04-24")
    value = identities.why("pass --maxfail", "")
    assert (value["rule"], value["evidence"]) == (rule, found)


def test_inside_a_run_that_cannot_read_them_the_list_has_what_the_run_was_given(house: House) -> None:
    """A confined run cannot read the identities; an empty list would be wrong."""
    house.begin()
    house.identity.mkdir(exist_ok=True)
    (house.identity / "worker.md").write_text("# worker\n\n- pass --maxfail=1 to pytest\n")
    run = house.work()["run"]
    outside = house.harness("identity", "list")
    assert "cannot read the identities" not in outside.out and "pass --maxfail=1 to pytest" in outside.out
    env = {"HARNESS_INSIDE": run, "HARNESS_IDENTITY": str(house.folder / "not there")}
    inside = house.harness("identity", "list", **env)
    assert f"Run {run} cannot read the identities" in inside.out and "pass --maxfail=1 to pytest" in inside.out
    other = house.harness("identity", "list", "planner", **env)
    assert other.out == f"Run {run} cannot read the identities; its prompt has none of planner.\n"
    assert "[]" in house.harness("identity", "list", "planner", "--json", **env).out
