"""Tests of the tests: each planted bug still has its place in the code, and the sweep that it is meant for finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import TORTURE
from tests.missions import CHECKOUT
from tests.torture import mutants


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_planted_bug_has_its_place_in_the_code(name: str) -> None:
    """Once: else the sweep of planted bugs would show nothing."""
    bug = mutants.MUTANTS[name]
    assert (CHECKOUT / bug.path).read_text().count(bug.old) == 1
    assert bug.new != bug.old


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1, and `make torture` plants all of them")
@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    """By one sweep at least; `make torture` plants all of them."""
    assert mutants.caught_by(tmp_path, name, every=False) != []
