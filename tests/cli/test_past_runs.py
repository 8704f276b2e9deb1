"""The commands about past runs: what they take, and what they refuse."""

from __future__ import annotations

import pytest

from tests.cli.test_completion import offered
from tests.missions import House


@pytest.mark.parametrize("words", [[], ["--all", "F-001"], ["--all", "--explain"], ["--mission", "--times", "3"]])
def test_one_run_or_all(house: House, words: list[str]) -> None:
    """Anything else is 64, with both forms."""
    done = house.harness("replay", *words)
    assert (done.code, "run.sh replay RUN" in done.err, "run.sh replay --all" in done.err) == (64, True, True)


def test_runs_and_features_are_offered(house: House) -> None:
    """By completion, after `replay`."""
    run_id = house.work({"say": "hello"})["run"]
    assert offered(house, "replay ") == ["F-001", "F-002", run_id]


def test_it_is_a_read_that_is_allowed_inside_a_run(house: House) -> None:
    """An agent may look at its own prompt, and at earlier ones."""
    before = house.work({"say": "hello"})["run"]
    house.work({"run": f"harness replay {before} > seen; harness replay --all >> seen"}, feature="F-002")
    seen = (house.tree / "seen").read_text() if (house.tree / "seen").exists() else house.git("show", "HEAD:seen")
    assert "byte for byte" in seen
