"""The tasks of bench/effect/, and what a folder is worth for one of them.

python bench/effect_tasks.py NAME       # the task's checks in this folder: those that are red, with what they print
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

TASKS = Path(__file__).resolve().parent / "effect"
# seconds of the processor, since others may keep it busy; `timeout` is for what waits for ever
LIMITED = ["timeout", "-k", "1", "300", "bash", "-c", 'ulimit -t 3 && exec "$@"', "-"]
MOST_OUTPUT = 2000
PYTHON = f"{sys.base_prefix}/bin"  # not a version manager's shim
LAST = "Make {} as SPEC.md says. Write the whole file. Each check above must become green."


class Task:
    """A folder of bench/effect/."""

    def __init__(self, name: str, file: str, held: bool = False) -> None:
        self.name, self.file, self.held, self.folder = name, file, held, TASKS / name
        self.plan = json.loads((self.folder / "plan.json").read_text())
        self.hidden = json.loads((self.folder / "hidden.json").read_text())
        self.checks = {row["id"]: [command_of(one) for one in row["checks"]] for row in self.plan["contract"]}

    def lay(self, folder: Path) -> Path:
        """A new folder with SPEC.md and the code that the task starts from."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(self.folder / "SPEC.md", folder)
        if (self.folder / "start").is_dir():
            shutil.copytree(self.folder / "start", folder, dirs_exist_ok=True)
        return folder

    def bare(self) -> str:
        """The worker's prompt without rules: spec, feature, claims with their checks, one last sentence."""
        feature, spec = self.plan["features"][0], (self.folder / "SPEC.md").read_text()
        parts = [f"# SPEC.md\n\n{spec.replace('# ', '## ').strip()}", f"# Feature F-001: {feature['title']}"]
        parts += [feature["description"], "# Claims, with their checks"]
        for row in self.plan["contract"]:
            parts += [f"{row['id']}: {row['claim']}", *(f"```sh\n{one}\n```" for one in self.checks[row["id"]])]
        return "\n\n".join([*parts, LAST.format(self.file)]) + "\n"

    def red(self, folder: Path) -> list[str]:
        """The checks that are red in the folder, run as the harness runs them, with what they print."""
        found = []
        for check in [one for checks in self.checks.values() for one in checks]:
            code, output = ran(["bash", "-euo", "pipefail", "-c", check], folder)
            if code:
                found.append(f"red: {check}\n{output[:MOST_OUTPUT]}")
        return found

    def passed(self, folder: Path) -> int:
        """How many hidden cases pass in the folder."""
        count = 0
        for case in self.hidden:
            for name, text in case.get("files", {}).items():
                (folder / name).write_text(text)
            found = ran(["python3", self.file, *case["args"]], folder, case.get("stdin", ""))
            count += found == (case["exit"], case["out"])
        return count

    def judge(self, tree: Path) -> dict[str, Any]:
        """What the tree is worth, in two copies of it."""
        with tempfile.TemporaryDirectory() as top:
            copies = [Path(top) / name for name in ("contract", "hidden")]
            for copy in copies:
                shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(".*", "playbooks"))
            faults, hidden = self.red(copies[0]), self.passed(copies[1])
        of, of_checks = len(self.hidden), sum(map(len, self.checks.values()))
        right = not faults and hidden == of
        return {"right": right, "hidden": hidden, "of": of, "checks": of_checks - len(faults), "of_checks": of_checks}


def command_of(check: str | dict[str, str]) -> str:
    """The command of a check in a plan."""
    return check if isinstance(check, str) else check["run"]


def tasks() -> dict[str, Task]:
    """All tasks by name."""
    return {name: Task(name, **row) for name, row in tomllib.loads((TASKS / "tasks.toml").read_text()).items()}


def environment(**more: str) -> dict[str, str]:
    """That of every program of the bench."""
    return {**os.environ, "PATH": f"{PYTHON}{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1", **more}


def ran(words: list[str], folder: Path, stdin: str = "") -> tuple[int, str]:
    """Exit code and output; a program without end is ended, with all that it started."""
    words, given = [*LIMITED, *words], stdin.encode()
    done = subprocess.run(
        words, cwd=folder, env=environment(), input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    red = tasks()[sys.argv[1]].red(Path.cwd())
    print("\n".join(red) or "all checks are green")
    raise SystemExit(bool(red))
