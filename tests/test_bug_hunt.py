"""The bug hunt: its contracts are ones that the harness accepts, and the script still runs."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.mission.contract import Claim, Contract
from harness.run.settle import _plan
from tests.crash import TORTURE
from tests.missions import CHECKOUT

SCRIPT = CHECKOUT / "bench" / "bug_hunt.py"
PROGRAMS = {program.name: program for program in runpy.run_path(str(SCRIPT))["PROGRAMS"]}
AIMED_AT_ONCE = 3
ROW = re.compile(r"^\| roman [\d.]+ \| 2 \| (\d) \| (\d) \| (\d) \| (\d) \| (\d) \| 1 of 1 \| \d+ \|$", re.MULTILINE)
LONGEST_SECONDS = 600


def faults(claims: list[Claim]) -> list[str]:
    """For what a plan with these claims would be refused."""
    forms = [fault for claim in claims for check in claim.checks for fault in _plan.form_faults(check.run, "/p", "/p")]
    return forms + _plan.write_faults(Contract(claims=claims))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_contract_of_the_hunt_is_one_that_the_harness_accepts(name: str) -> None:
    """Five to eight claims in two features, at most three proposed checks for each, and one guard, all for known claims."""
    program: Any = PROGRAMS[name]
    claims, aimed, guards = (program.words(kind) for kind in ("contract", "aimed", "guard"))
    known = {claim.id for claim in claims}
    assert 5 <= len(claims) <= 8
    assert {program.feature(claim.id) for claim in claims} == {"F-001", "F-002"}
    assert {claim.id for claim in (*aimed, *guards)} <= known
    assert max(Counter(program.feature(claim.id) for claim in aimed for _ in claim.checks).values()) <= AIMED_AT_ONCE
    assert [check.guard for claim in guards for check in claim.checks] == [True]
    assert [fault for found in (claims, aimed, guards) for fault in faults(found)] == []


def without_pypi(folder: Path) -> str:
    """Why nothing comes from PyPI here, "" if it does."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--retries", "0", "--timeout", "10", "--no-deps"]
    done = subprocess.run([*words, "-d", str(folder), "iniconfig"], capture_output=True, text=True, check=False)
    return done.stderr.strip().split("\n")[-1] if done.returncode else ""


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
def test_the_hunt_runs(tmp_path: Path) -> None:
    """Two mutants of one program; what more checks see is never less, and a real mission ends as the checks say."""
    if fault := without_pypi(tmp_path):
        pytest.skip(f"programs and tools come from PyPI: {fault}")
    words = [sys.executable, str(SCRIPT), "--only", "roman", "--mutants", "2", "--missions", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS)
    found = ROW.search(done.stdout)
    assert done.returncode == 0, done.stderr
    assert found, done.stdout
    contract, validator, guard, everything, equivalent = map(int, found.groups())
    assert 2 >= contract >= max(validator, guard) >= min(validator, guard) >= everything >= equivalent
