"""A real mission in a throw-away repository, for tests: planned by hand, worked on by scripted agents, run by role scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import git_repository
import pytest

from harness import contract, features, files, journal, runs, starting
from harness.contract import Check, Claim, Contract
from harness.features import Feature
from harness.issues import Issue, load
from harness.layout import Layout
from harness.record import Record
from harness.runs import Result

HOME = Path(__file__).resolve().parent.parent
SPEC = "# Greet\n\nA program that greets.\n"
CONFIG = 'agent = "scripted"\n[agents.scripted]\npath = "../scripts"\n'
PERSONAL = ("HARNESS_", "FEATURE_ID", "TRIGGER", "REASON", "PROCESS_TAG")


class Done(Record):
    """A role script that ended: its exit code, what it said, and its line in the books (None where it never opened)."""

    code: int
    said: str
    result: Result


class MissionFolder:
    """A mission whose state tests may write as the planner would, and read as a person would."""

    def __init__(self, repository: git_repository.Repository) -> None:
        self.repository = repository
        self.project = repository.project
        self.top = repository.folder.parent
        self.scratch = self.top / "scratch"
        self.layout = Layout(self.project)

    def plan(self, found: list[Feature], known: Contract | None = None) -> None:
        """What a planner would have left: features, a contract (by default one check a claim), the accepted spec."""
        known = known or Contract(claims=[claim(name) for feature in found for name in feature.claims])
        changes = journal.Journal(self.layout)
        changes.replace(self.layout.features, features.render(found))
        changes.replace(self.layout.contract, contract.render(known).encode())
        changes.replace(self.layout.spec, files.read(self.layout.asked_spec) or b"")
        changes.commit()

    def config(self, text: str) -> None:
        """Add lines to config.toml before its first table."""
        (self.top / "my project/.harness/config.toml").write_text(text + CONFIG)

    def script(self, name: str, *steps: Mapping[str, Any]) -> None:
        """What the scripted agent does in a run of `name`, such as `worker-F-001.2`."""
        folder = self.top / "scripts"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))

    def run(self, role: str, feature: str = "", **environment: str) -> Done:
        """Run a role's script as run.sh does."""
        argv = [sys.executable, "-P", str(HOME / "roles" / f"{role}.py"), *([feature] if feature else [])]
        env = {key: value for key, value in os.environ.items() if not key.startswith(PERSONAL[1:])} | environment
        ended = subprocess.run(
            argv, cwd=self.project, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
        )
        said = ended.stdout + ended.stderr
        assert "Traceback" not in said, said
        newest = next(runs.books(self.layout), None)
        assert newest is not None, said
        return Done(code=ended.returncode, said=said, result=newest)

    def feature(self, name: str = "F-001") -> Feature:
        """The feature as it is on disk."""
        return features.find(features.parse(files.read(self.layout.features), self.layout.features), name)

    def contract(self) -> Contract:
        """The contract as it is on disk."""
        return contract.parse(files.read_text(self.layout.contract) or "", self.layout.contract)

    def issues(self) -> list[Issue]:
        """All issues."""
        return load(self.layout)

    def raw(self) -> list[str]:
        """The entries of raw.md without their time."""
        return [line.partition("] ")[2] for line in (files.read_text(self.layout.raw) or "").split("\n")[:-1]]

    def log(self) -> list[dict[str, Any]]:
        """The lines of contract-log.jsonl."""
        return [json.loads(line) for line in (files.read_text(self.layout.contract_log) or "").split("\n") if line]

    def prompt(self, done: Done) -> str:
        """The prompt of a run."""
        return files.read_text(self.layout.run(done.result.run).prompt) or ""


def claim(name: str, *commands: str) -> Claim:
    """A claim whose only check, by default, is that a file with its name exists."""
    return Claim(id=name, text=f"{name} holds", checks=[Check(run=run) for run in commands or (f"test -f {name}",)])


def feature(name: str = "F-001", *claims: str, **fields: Any) -> Feature:
    """A feature with these claims, by default VAL- and its number."""
    return Feature(id=name, title=f"Feature {name}", claims=list(claims or [f"VAL-{name[2:]}"]), **fields)


def reply(**value: Any) -> dict[str, str]:
    """A scripted step that says a reply."""
    return {"say": f"```json harness\n{json.dumps(value)}\n```"}


def new(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> MissionFolder:
    """A started mission with these files and SPEC.md in its first commit, and an identity and a TMPDIR of its own."""
    for name in [name for name in os.environ if name.startswith(PERSONAL)]:
        monkeypatch.delenv(name)
    repository = git_repository.new(folder, monkeypatch)
    made = MissionFolder(repository)
    made.scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(made.scratch))
    monkeypatch.setenv("HARNESS_IDENTITY", str(folder / "identity"))
    repository.save(**{"SPEC.md": SPEC, **texts})
    starting.start(made.layout)
    made.config("")
    return made
