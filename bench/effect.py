"""What the harness brings with one and the same model: small tasks, done by aider alone in three ways, and by a mission.

    python bench/effect.py [--only once,loop,test,harness] [--tasks roman,merge] [--seeds 1,2] [--held] [--label TEXT]
    python bench/effect.py --first [--only once,bare,worker]       # first answers to three prompts
    python bench/effect.py --table                                 # all rows, in Markdown

`once`: aider gets the plain request. `loop`: it gets it again, each time anew, until it answers DONE or changes nothing, five
times at most. `test`: it has the contract's checks as its test command. `harness`: it is the worker of a mission whose plan is
that contract, with at most as many answers of the model as `test` may use (`--calls`). For first answers, `worker` is the
prompt of a mission's first run, and `bare` has spec, feature and checks, without any rules.

bench/effect/ has a folder for each task: SPEC.md, plan.json with the contract, hidden.json with cases that neither model nor
harness sees, solution.py, and start/ with the code that a task changes. Right means that all checks and all hidden cases pass,
in copies of what was left. Held tasks (tasks.toml) run with `--held` alone. A row is written as soon as it is known, and a
second start goes on where the first stopped; transcripts/ beside the rows has each prompt and answer, build/effect/ what was
left.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME / "bench"))

from effect_tasks import TASKS, Task, environment, tasks
from model_proxy import Proxy

WORK = HOME / "build" / "effect"  # a confined agent has a /tmp of its own
WAYS, FIRST = ("once", "loop", "test", "harness"), ("once", "bare", "worker")
LOOPS, RUNS = 5, 14  # of the way `loop`; of a mission, planner and validators included
AIDER_SECONDS, MISSION_SECONDS = 3600, 4 * 3600
ENDINGS = (0, 3, 5, 10)  # of run.sh: a mission that was played, not a machine that lacks something
PLAIN = "Make {file} as SPEC.md says. Write the whole file."
UNTIL_DONE = PLAIN + " If {file} is there and nothing is left to do, change nothing and answer only: DONE"
SAID_DONE = re.compile(r"^\W*DONE\W*$", re.MULTILINE)
AIDER_ENV = {"OPENAI_API_KEY": "x", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
FLAGS = shlex.split(
    "--model openai/{model} --edit-format whole --yes-always --no-stream --no-pretty --no-check-update --no-show-release-notes "
    "--no-show-model-warnings --no-detect-urls --no-suggest-shell-commands --no-git --analytics-disable --map-tokens 0 "
    "--timeout 3000 --max-chat-history-tokens 100000 --chat-history-file /dev/null --input-history-file /dev/null"
)  # below that many tokens aider asks the model for no summary of what was said
CONFIG = """agent = "playbook"
check_seconds = 120
[limits]
max_runs = {runs}
[roles.worker]
agent = "aider"
minutes = 120
idle_minutes = 60
[agents.aider]
format = "edits"
command = {command}
env = {{ {env} }}
"""
HEADS = "way, rows, right, done, false done, hidden, answers, tokens in, tokens out, minutes, right in some seeds only"


class Play:
    """One row being made: the task, its folder, the proxy, aider."""

    def __init__(self, task: Task, folder: Path, proxy: Proxy, asked: argparse.Namespace) -> None:
        self.task, self.folder, self.proxy, self.asked = task, folder, proxy, asked
        self.tree = folder / "tree"
        self.aider = [asked.aider, *(word.format(model=asked.model) for word in FLAGS), "--openai-api-base", proxy.url]

    def ask(self, request: str, *more: str, spec: bool = True) -> None:
        """Aider once, in the tree."""
        message = self.folder / "request.txt"
        message.write_text(request.format(file=self.task.file) if spec else request)
        reads = ["--read", "SPEC.md"] if spec else []
        words = [*self.aider, "--message-file", str(message), *reads, *more, self.task.file]
        self.program(words, environment(**AIDER_ENV), AIDER_SECONDS)

    def program(self, words: list[str], env: dict[str, str], seconds: float) -> int:
        """A program in the tree, with what it prints in a log; its exit code."""
        with (self.folder / "log").open("ab") as log:
            done = subprocess.run(
                words, cwd=self.tree, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=seconds
            )
        return done.returncode

    def text(self) -> str:
        """The file as it is, "" without one."""
        path = self.tree / self.task.file
        return path.read_text(errors="replace") if path.exists() else ""

    def once(self) -> tuple[bool, str]:
        """It is done as soon as aider changed something."""
        self.task.lay(self.tree)
        before = self.text()
        self.ask(PLAIN)
        return self.text() != before, "ended"

    def loop(self) -> tuple[bool, str]:
        """It is done when the model says so; an answer that changes nothing ends it, too."""
        self.task.lay(self.tree)
        for _ in range(LOOPS):
            before, answers = self.text(), len(self.proxy.answers)
            self.ask(UNTIL_DONE)
            if any(map(SAID_DONE.search, self.proxy.answers[answers:])):
                return True, "said so"
            if self.text() == before:
                return False, "no change"
        return False, f"{LOOPS} times"

    def test(self) -> tuple[bool, str]:
        """It is done if the checks are green in the end; aider itself gives up after three repairs."""
        self.task.lay(self.tree)
        command = shlex.join([sys.executable, str(HOME / "bench" / "effect_tasks.py"), self.task.name])
        self.ask(PLAIN, "--auto-test", "--test-cmd", command)
        return not self.task.red(self.tree), "ended"

    def bare(self) -> tuple[bool, str]:
        """As `once`, by another prompt."""
        self.task.lay(self.tree)
        before = self.text()
        self.ask(self.task.bare(), spec=False)
        return self.text() != before, "ended"

    def harness(self) -> tuple[bool, str]:
        """It is done if the mission is."""
        self.mission()
        code = self.run_sh()
        rows = [json.loads(line) for line in (self.tree / ".harness" / "runs.jsonl").read_text().splitlines()]
        return code == 0, f"exit {code}, {sum(row['role'] == 'worker' for row in rows)} worker runs"

    def worker(self) -> tuple[bool, str]:
        """The tree after the first worker's run of a mission."""
        self.mission()
        self.run_sh("planner")
        before = self.text()
        self.run_sh("worker", "F-001")
        return self.text() != before, "ended"

    def mission(self) -> None:
        """A mission with this plan, whose worker is aider; it has neither validator nor curator."""
        self.task.lay(self.tree)
        (self.tree / "playbooks").mkdir()
        plan = f"```json harness\n{json.dumps(self.task.plan, indent=2)}\n```\n"
        (self.tree / "playbooks" / "planner.md").write_text(f"# The plan\n\n{plan}")
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
            subprocess.run(
                ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words], cwd=self.tree, check=True
            )
        self.run_sh("init", "--quietly")
        command = [*self.aider, "--message-file", "/dev/stdin", self.task.file]
        env = ", ".join(f'{key} = "{value}"' for key, value in AIDER_ENV.items())
        config = CONFIG.format(runs=RUNS, command=json.dumps(command), env=env)
        (self.tree / ".harness" / "config.toml").write_text(config)

    def run_sh(self, *words: str) -> int:
        """run.sh in the tree; its exit code."""
        mine = {"HARNESS_IDENTITY": str(self.folder / "identity"), "XDG_STATE_HOME": str(self.folder / "state")}
        env = environment(HARNESS_PYTHON=sys.executable, **mine)
        code = self.program([str(HOME / "run.sh"), *words], env, MISSION_SECONDS)
        if code not in ENDINGS:
            raise SystemExit(f"run.sh {' '.join(words)} ended with {code}: {self.folder / 'log'}")
        return code


def play(task: Task, way: str, seed: int, proxy: Proxy, asked: argparse.Namespace) -> dict[str, Any]:
    """One row; a fault of the model's server ends the bench without one."""
    label = labelled(way, asked.label)
    name = f"{label}-{task.name}-{seed}"
    shutil.rmtree(WORK / name, ignore_errors=True)
    (WORK / name).mkdir(parents=True)
    proxy.begin(seed, asked.calls if way == "harness" else 1000)
    made, begun = Play(task, WORK / name, proxy, asked), time.monotonic()
    done, ended = getattr(made, way)()
    minutes = round((time.monotonic() - begun) / 60, 2)
    if proxy.fault or not proxy.used["calls"]:
        raise SystemExit(f"{name}: {proxy.fault or 'no request came'}; see {WORK / name}")
    told = asked.rows.parent / "transcripts" / f"{name}.txt"
    told.parent.mkdir(parents=True, exist_ok=True)
    said, program = "".join(proxy.said), str(Path(asked.aider).absolute().parent.parent)
    for path, shown in ((str(HOME) + "/", ""), (program, "AIDER"), (str(Path.home()), "~")):
        said = said.replace(path, shown)  # a transcript names no place on this machine
    told.write_text(said)
    found = task.judge(made.tree)
    row = {"task": task.name, "held": task.held, "way": label, "seed": seed, **found, "done": done}
    row |= {"false_done": done and found["hidden"] < found["of"], **proxy.used, "minutes": minutes, "ended": ended}
    return {**row, "commit": commit()}


def commit() -> str:
    """The commit of the harness that is measured."""
    words = ["git", "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(words, cwd=HOME, capture_output=True, text=True, check=True).stdout.strip()


def load(path: Path) -> list[dict[str, Any]]:
    """The rows so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def due(asked: argparse.Namespace) -> Iterator[tuple[Task, str, int]]:
    """The rows that are asked for and not there, seed by seed."""
    known = {(row["task"], row["way"], row["seed"]) for row in load(asked.rows)}
    for seed in asked.seeds:
        for way in asked.only:
            for task in tasks().values():
                chosen = not asked.tasks or task.name in asked.tasks
                if chosen and task.held == asked.held and (task.name, labelled(way, asked.label), seed) not in known:
                    yield task, way, seed


def labelled(way: str, label: str) -> str:
    """The way's name in rows: a variant of the harness has its own."""
    return f"{way}+{label}" if label and way in ("harness", "worker") else way


def table(rows: list[dict[str, Any]], held: bool) -> Iterator[str]:
    """A line for each way: what it did, at which price, and each task's hidden cases by seed, bold where all is right."""
    rows = sorted((row for row in rows if row["held"] == held), key=lambda row: row["seed"])
    names = [name for name, task in tasks().items() if task.held == held]
    heads = [*HEADS.split(", "), *(f"{name} (of {len(tasks()[name].hidden)})" for name in names)]
    yield f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}"
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        sums = [sum(row[key] for row in mine) for key in ("right", "done", "false_done")]
        sums.append(f"{sum(row['hidden'] for row in mine)} of {sum(row['of'] for row in mine)}")
        sums += [sum(row[key] for row in mine) for key in ("calls", "prompt_tokens", "answer_tokens")]
        minutes, varied, cells = round(sum(row["minutes"] for row in mine)), 0, []
        for name in names:
            found = [row for row in mine if row["task"] == name]
            varied += len({row["right"] for row in found}) > 1
            cells.append(" ".join(f"**{row['hidden']}**" if row["right"] else str(row["hidden"]) for row in found))
        yield f"| {' | '.join(map(str, [way, len(mine), *sums, minutes, varied, *cells]))} |"


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What the harness brings with the same model.")
    names = lambda text: text.split(",")  # noqa: E731 - a type of two options
    parser.add_argument("--only", type=names, help=f"ways: {', '.join(dict.fromkeys(WAYS + FIRST))}")
    parser.add_argument("--tasks", type=names)
    parser.add_argument("--seeds", type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--held", action="store_true", help="the held tasks alone")
    parser.add_argument("--label", default="", help="names a variant of the harness in its rows")
    parser.add_argument("--rows", type=lambda text: Path(text).resolve(), default=TASKS / "rows.jsonl")
    parser.add_argument("--aider", default=shutil.which("aider"), help="the program, if it is not on the PATH")
    parser.add_argument("--server", default="http://127.0.0.1:18080/v1")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--calls", type=int, default=4, help="the most answers of the model for a mission")
    parser.add_argument("--first", action="store_true", help="first answers to three prompts")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    asked.only = asked.only or (FIRST if asked.first else WAYS)
    asked.seeds = asked.seeds or ((1, 2, 3) if asked.first else (1, 2))
    return asked


def main() -> int:
    """Rows, or a table."""
    asked = parsed()
    if asked.table:
        rows = [
            row for row in load(asked.rows) if row["seed"] in asked.seeds and row["way"].split("+")[0] in asked.only
        ]
        for held in (False, True):
            print(f"\n{'Held' if held else 'Open'} tasks\n\n" + "\n".join(table(rows, held)))
        return 0
    if not asked.aider:
        raise SystemExit("aider is not on the PATH: name it with --aider")
    with Proxy(asked.server) as proxy:
        for task, way, seed in due(asked):
            row = play(task, way, seed, proxy, asked)
            with asked.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
