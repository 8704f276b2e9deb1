"""Missions whose agent is a real model, and what must hold of each of them, whatever the model answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.missions import CHECKOUT, Done, House, listing

URL = os.environ.get("HARNESS_MODEL_URL", "")
HOME = Path(os.environ.get("HARNESS_MODEL_HOME") or Path.home() / ".cache" / "harness-model")
AIDER = os.environ.get("HARNESS_AIDER") or str(HOME / "aider" / "bin" / "aider")
MODEL = "qwen2.5-coder-1.5b"
real_model = pytest.mark.skipif(not URL, reason="asks a real model, for minutes: `make test-model` alone plays it")

TASK = CHECKOUT / "bench" / "effect" / "words"
LONGEST_SECONDS = 3600
STEPS, MINUTES, HOURS = 5, 3, 0.12  # requests and time of a run, run time of a mission: a model may ramble
PLAYED = (0, 3, 5, 7, 10)  # exit codes of a mission or a run that was played, whatever came of it
OURS = "|".join(re.escape(str(path)) for path in (CHECKOUT / "harness", CHECKOUT / "roles", Path(sys.prefix)))
TRACEBACK = re.compile(rf'File \\*"(?:{OURS})/.*'.encode())
BUILTIN = f"""[prices."{MODEL}"]
input = 0
output = 0
[agents.builtin]
model = "openai:{MODEL}"
base_url = "{URL}"
request_seconds = 1800
temperature = 0.2
max_output_tokens = 2000
max_steps = {STEPS}
"""


def laid(house: House, table: str, *, runs: int = 6) -> None:
    """A mission with the task of TASK, whose plan is given, begun. `table`: the rest of config.toml."""
    for path in (TASK / "SPEC.md", *(TASK / "start").iterdir()):
        house.write(path.name, path.read_text())
    house.write("playbooks/planner.md", f"# The plan\n\n```json harness\n{(TASK / 'plan.json').read_text()}```\n")
    begun(house, f'agent = "playbook"\n[limits]\nmax_runs = {runs}\nmax_hours = {HOURS}\n{table}')


def begun(house: House, config: str) -> None:
    """A mission over what lies in the folder."""
    house.git("init", "-q", "-b", "main", "--template=")
    house.git("config", "user.name", "p")
    house.git("config", "user.email", "p@localhost")
    house.git("add", "-A")
    house.git("commit", "-qm", "begin")
    assert (done := house.program("init", "--quietly")).code == 0, done
    (house.state / "config.toml").write_text(f'trust = "workspace"\n{config}')


def started(house: House, *words: str) -> Done:
    """run.sh to its end; what it printed stays in a file."""
    done = subprocess.run(
        [str(CHECKOUT / "run.sh"), *words], cwd=house.project, env=house.env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LONGEST_SECONDS,
    )  # fmt: skip
    with (house.folder / "printed").open("a") as file:
        file.write(f"$ run.sh {' '.join(words)}\n{done.stdout}{done.stderr}exit {done.returncode}\n")
    return Done(done.returncode, done.stdout, done.stderr)


def is_sound(house: House, done: Done) -> None:
    """It ended as a mission may end, nothing broke, its books are right, and all that was asked can be rebuilt."""
    assert done.code in PLAYED, done
    assert tracebacks(house) == []
    for words in (("doctor",), ("replay", "--all")):
        assert (found := house.program(*words)).code == 0, (words, found)
    for row in house.ran():
        assert row["outcome"] in ("ok", "no_op") or row["reason"], row
        turns = Path(house.layout.run(row["run"]).turns)
        for number in range(1, asked(turns) + 1):
            found = house.program("replay", row["run"], "--turn", str(number))
            assert found.code == 0, found


def asked(turns: Path) -> int:
    """The number of requests that turns.jsonl records."""
    return sum("turn" in row for row in rows(turns))


def rows(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file that another process may be writing."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].split("\n") if line]


def tracebacks(house: House) -> list[tuple[str, bytes]]:
    """Lines of tracebacks of ours, in all that was printed and written. The model's own programs may have theirs."""
    found = listing(house.folder, "my project/.git")
    return [(name, line) for name, text in found.items() for line in TRACEBACK.findall(text)]


def is_honest(house: House, done: Done) -> None:
    """DONE, and a feature that passed, mean that every check of the plan is green in a fresh clone; `verify` says the same."""
    clone = house.folder / "clone"
    house.git("clone", "-q", str(house.project), str(clone))
    red = [one for one in checks() if not green(one, clone)]
    passed = house.feature().status == "passed"
    assert (done.code == 0) <= passed <= (red == []), (done, red)
    found = house.program("verify", str(house.state / "validation-contract.md"), "--in", str(clone))
    assert found.code == (10 if red else 0), (found, red)


def checks() -> list[str]:
    """The commands of the plan."""
    contract = json.loads((TASK / "plan.json").read_text())["contract"]
    found = [check for row in contract for check in row["checks"]]
    return [check if isinstance(check, str) else check["run"] for check in found]


def green(check: str, clone: Path) -> bool:
    """Whether a command succeeds there; the processor's time is bounded, since a program of a model may have no end."""
    words = ["timeout", "-k", "1", "120", "bash", "-euo", "pipefail", "-c", f"ulimit -t 10\n{check}"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(words, cwd=clone, env=env, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
