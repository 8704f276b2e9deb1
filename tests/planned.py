"""Plans, claims and replies in short form, and a mission's state in the form that tests compare."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.decision import rules, views
from harness.mission import contract, runs
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature, render
from harness.run import steps
from harness.run.opening import RunRequest, open_run
from harness.run.settle import planner, validator, worker
from harness.run.steps import compose
from harness.state import files, journal, names
from tests.missions import House


def claim(name: str, *commands: str) -> Claim:
    """A claim whose only check, by default, is that a file with its name exists."""
    return Claim(id=name, text=f"{name} holds", checks=[Check(run=run) for run in commands or (f"test -f {name}",)])


def feature(name: str = "F-001", *claims: str, **fields: Any) -> Feature:
    """A feature with these claims, by default VAL- and its number."""
    return Feature(id=name, title=f"Feature {name}", claims=list(claims or [f"VAL-{name[2:]}"]), **fields)


def reply(**value: Any) -> dict[str, str]:
    """A scripted step that prints a reply."""
    return {"say": f"```json harness\n{json.dumps(value)}\n```"}


def stalled(house: House) -> str:
    """The run of a worker that is blocked by what no feature brings, in a mission that one such feature ends."""
    house.config('agent = "scripted"', "[limits]", "stall_after = 1")
    return str(house.work(reply(status="blocked", reason="docker is missing"))["run"])


def lay(house: House, found: list[Feature], known: Contract | None = None) -> None:
    """Write the state that an accepted plan leaves; by default one check per claim."""
    known = known or Contract(claims=[claim(name) for one in found for name in one.claims])
    changes = journal.Journal(house.layout)
    changes.replace(house.layout.path(names.FEATURES), render(found))
    changes.replace(house.layout.path(names.CONTRACT), contract.render(known).encode())
    changes.replace(house.layout.path(names.SPEC), files.read(house.layout.folders.asked_spec) or b"")
    changes.commit()


def contract_of(house: House) -> Contract:
    """The contract as on disk."""
    return contract.parse(Path(house.layout.path(names.CONTRACT)).read_text(), house.layout.path(names.CONTRACT))


def planned_from(house: House, known: Contract) -> None:
    """A planner's run whose accepted plan is this contract, with one feature for all of it."""
    rows = [{"id": one.id, "claim": one.text, **_decided(one)} for one in known.claims]
    made = {"id": "F-001", "title": "All", "claims": [one.id for one in known.claims]}
    house.script("planner", reply(features=[made], contract=rows, **({"setup": known.setup} if known.setup else {})))
    changes = journal.Journal(house.layout)
    changes.replace(house.layout.path(names.FEATURES), render([]))
    changes.remove(house.layout.path(names.CONTRACT))
    changes.commit()
    assert role(house, "planner") == 0
    assert house.result()["accepted"], house.result()


def _decided(one: Claim) -> dict[str, Any]:
    return {"manual": True} if one.manual else {"checks": [check.asdict() for check in map(_plain, one.checks)]}


def _plain(check: Check) -> Check:
    return check.replace(seconds=check.seconds or 60)


def reseal(house: House) -> None:
    """The newest run as if it had closed with its files as they are now."""
    run = house.layout.run(house.result()["run"])
    old, new = house.result()["seal"], runs.seal(run)
    for path in (Path(house.layout.path(names.RUN_LOG)), Path(run.result)):
        path.write_text(path.read_text().replace(old, new))


def accept_all(house: House) -> None:
    """A person accepts every claim, as before a mission that was laid by hand, without a red check, can be DONE."""
    done = house.harness("claim", "accept", *(one.id for one in contract_of(house).claims))
    assert done.code == 0, done


def raw_of(house: House) -> list[str]:
    """The entries of raw.md without their time."""
    return [line.partition("] ")[2] for line in (files.read_text(house.layout.path(names.RAW)) or "").split("\n")[:-1]]


def log_of(house: House) -> list[dict[str, Any]]:
    """The lines of contract-log.jsonl."""
    return [
        json.loads(line) for line in (files.read_text(house.layout.path(names.CONTRACT_LOG)) or "").split("\n") if line
    ]


ROLES = {
    "planner": steps.RoleSteps(settle=planner.settle, prepare=None, examine=planner.examine),
    "worker": steps.RoleSteps(settle=worker.settle, prepare=None, examine=None),
    "validator": steps.RoleSteps(settle=validator.settle, prepare=validator.prepare, examine=validator.examine),
}


def role(house: House, name: str, *args: str, **env: str) -> int:
    """One scripted run of a role in this process, which is three times as fast; returns the exit code."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in {"HARNESS_PROJECT": str(house.project), **env}.items():
            patch.setenv(key, value)
        patch.setattr(sys, "argv", [name, *args])
        return steps._main(name, ROLES[name])


def worked(house: House, *steps: dict[str, Any], name: str = "F-001") -> dict[str, Any]:
    """One worker's run whose agent takes these steps; returns its result."""
    house.script("worker", *steps)
    role(house, "worker", name)
    return house.result()


def due(house: House) -> str:
    """The output of `harness next`."""
    return rules.decide(views.gather(house.layout), 0).line


def prompt_of(house: House, role: str, name: str = "", **asked: Any) -> str:
    """The prompt that a run would get now; its run is then removed. Not for workers: they change their feature."""
    made, agents = open_run(RunRequest(layout=house.layout, role=role, feature=name, trigger="leaving", **asked))
    try:
        return compose(made, agents.workspace)[0]
    finally:
        made.lease.release()
        shutil.rmtree(made.paths.folder)
        os.unlink(made.paths.lock)
