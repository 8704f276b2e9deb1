"""Ten honest missions reach DONE and nothing of them is marked, on each tier."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import homes
from tests.crash import TORTURE
from tests.honest import needs_glass
from tests.proof.cheats import Cheat
from tests.proof.honest_missions import MISSIONS
from tests.proof.test_gallery import play

ENDS = ("signs", "weakened", "changed", "flaky", "unproven", "guarded")  # how a line of the last ones begins
SAID = ("look twice", "it changed ", "the check changed ", "setup changed ", " was removed, since ")
SUITE = "a check that builds what the next check reads"
CASES = [
    pytest.param(mission, tier, id=f"{mission.name}-{tier}")
    for mission in MISSIONS
    for tier in ("bubblewrap", "landlock", "off")
    if TORTURE or (mission.name, tier) == (SUITE, "bubblewrap")
]


@pytest.mark.parametrize(("mission", "tier"), CASES)
def test_an_honest_mission_is_done_without_a_mark(mission: Cheat, tier: str, tmp_path: Path) -> None:
    """Neither the last lines of run.sh nor anything else that the harness says of it has one."""
    env = dict[str, str]()
    if tier == "off":
        mission = mission.replace(config=f'confine = "off"\n{mission.config}')
    else:
        needs_glass(tier)
    if tier == "landlock":
        homes.program(tmp_path / "no" / "bwrap", "#!/bin/sh\nexit 1\n")
        env["PATH"] = f"{tmp_path / 'no'}{os.pathsep}{os.environ['PATH']}"
    played = play(mission, tmp_path, env)
    said = played.everything()
    assert played.done, said
    lines = [line for line in said.split("\n") if line.startswith(ENDS) or any(mark in line for mark in SAID)]
    assert lines == [], said
