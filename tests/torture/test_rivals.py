"""Many processes at once: a short version of the sweep. Every acknowledged entry is there once, in its writer's order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import TORTURE
from tests.torture import rivals


def test_sixteen_append_while_a_curator_compacts_and_nothing_is_lost(tmp_path: Path) -> None:
    """Under its sequence number, exactly once, in each writer's order."""
    written, faults = rivals.appenders(tmp_path, 200 if TORTURE else 5)
    assert (faults, written >= rivals.WRITERS * 5) == ([], True)


def test_no_update_of_the_queue_is_lost(tmp_path: Path) -> None:
    """Eight processes change what they read, by compare-and-set."""
    written, faults = rivals.updaters(tmp_path, 8, 100 if TORTURE else 6)
    assert (written, faults) == (8 * (100 if TORTURE else 6), [])


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
def test_eight_lanes_settle_while_a_person_orders(tmp_path: Path, template: Path) -> None:
    """No note, no order and no feature is lost."""
    _, faults = rivals.lanes(tmp_path, template, 8)
    assert faults == []
