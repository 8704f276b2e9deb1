"""Does memory help? Missions in which a lesson of one run saves another run a retry, with the memory and without.

    python bench/memory_effect.py [--kinds 8] [--rounds 3] [--seed 1] [--last 40] [--memories curated,last,none]

A mission has kinds times rounds features, and each kind of part is built with a code that nobody guesses. The agent is a script:
it takes the code from the section Memory of its prompt; without it the part is wrong, its check red, and only the retry looks
the code up and notes it as a lesson. With each feature it also notes what other lessons there are, and status reports. A kind
comes back after all others, so a memory that lost its lesson costs a retry; the first feature of a kind costs one anyway.
Each step is a real `run.sh --once`. `curated` is the mission as it is; in `last` no curator runs, and summary.md has the last
lines of raw.md before each step; in `none` it does not exist.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME / "bench")]

from memory_corpus import load

from harness.mission import contract, features
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.state import names
from harness.state.layout import Layout
from harness.state.state import State

RUN_SH = str(HOME / "run.sh")
NEVER, OTHER_LESSONS, REPORTS = 100_000, 10, 2
KINDS = (
    "parser",
    "printer",
    "router",
    "mailer",
    "ledger",
    "search",
    "upload",
    "export",
    "import",
    "report",
    "login",
    "cache",
)
MEMORIES = ("curated", "last", "none")
AGENT = """
import json, os, random, re, sys
prompt, codes, said = sys.stdin.read(), json.load(open({codes!r})), json.load(open({said!r}))
kind, feature = re.search(r"Build a ([a-z]+) part: (F-[0-9]+)", prompt).groups()
memory = prompt.partition("## Memory (")[2].partition("## Your task")[0]
known = re.search(kind + r" part needs forge --seal ([0-9]+)", memory)
name = feature + ".txt"
again = os.path.exists(name)
code = known[1] if known else codes[kind] if again else "0000"
open(name, "w").write(code)
dice = random.Random(feature + str(again))
notes = [dict(tag=tag, text=text) for tag, text in [dice.choice(said["lessons"]), *dice.sample(said["reports"], {reports})]]
if again and not known:
    notes.append(dict(tag="TRICK", text=f"the {{kind}} part needs forge --seal {{code}}"))
print("```json harness\\n" + json.dumps(dict(status="implemented", notes=notes)) + "\\n```")
"""


def begin(folder: Path, memory: str, kinds: int, rounds: int, seed: int) -> Layout:
    """A mission, its plan accepted, and the agent's script with what it looks up."""
    project = folder / "project"
    project.mkdir(parents=True)
    (project / "SPEC.md").write_text("# Parts\n\n## Part\n\nEach part has the code of its kind.\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words], cwd=project, check=True)
    subprocess.run([RUN_SH, "init", "--quietly"], cwd=project, check=True, stdout=subprocess.DEVNULL, env=env(folder))
    dice = random.Random(seed)
    codes = {kind: str(dice.randint(1000, 9999)) for kind in KINDS[:kinds]}
    corpus = load("tuned")
    lessons = [(one.tag, text) for one in corpus.lessons[:OTHER_LESSONS] for _, text in one.wordings[:2]]
    reports = [row for row in corpus.noise if "{" not in row[1]]
    texts = {"codes": json.dumps(codes), "said": json.dumps({"lessons": lessons, "reports": reports})}
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    paths = {name: str(folder / f"{name}.json") for name in texts}
    (folder / "agent.py").write_text(AGENT.format(reports=REPORTS, **paths))
    layout = Layout(str(project))
    after = 20 if memory == "curated" else NEVER
    command = json.dumps([sys.executable, str(folder / "agent.py")])
    validator = '[roles.validator]\nagent = "playbook"\n'  # it has none, so it proposes nothing
    limits = "[limits]\nmax_runs = 2000\nstall_after = 50\n"
    Path(layout.path(names.CONFIG)).write_text(
        f'agent = "builder"\ncurate_after = {after}\n{limits}{validator}[agents.builder]\ncommand = {command}\n'
    )
    plan(layout, codes, rounds)
    return layout


def plan(layout: Layout, codes: dict[str, str], rounds: int) -> None:
    """The contract and the features, one kind after another, so many times."""
    Path(layout.path(names.SPEC)).write_text((Path(layout.folders.project) / "SPEC.md").read_text())
    claims, rows = [], []
    for number, kind in enumerate(list(codes) * rounds, start=1):
        digest = hashlib.sha256(codes[kind].encode()).hexdigest()
        run = f"sha256sum F-{number:03}.txt | grep -q ^{digest}"
        claims.append(Claim(id=f"VAL-{number:03}", text=f"The {kind} part has its code", checks=[Check(run=run)]))
        title = f"Build a {kind} part: F-{number:03}"
        rows.append(Feature(id=f"F-{number:03}", title=title, claims=[f"VAL-{number:03}"], spec_refs=["Part"]))
    Path(layout.path(names.CONTRACT)).write_text(contract.render(Contract(claims=claims)))
    State(layout).put(names.FEATURES, features.render(rows))


def env(folder: Path) -> dict[str, str]:
    """The environment of a mission; identities are its own."""
    return {**os.environ, "HARNESS_IDENTITY": str(folder / "identity"), "XDG_STATE_HOME": str(folder / "state")}


def play(layout: Layout, memory: str, last: int) -> dict[str, int]:
    """Step by step until every feature has passed; returns how many features and runs there were."""
    while any(one.status != "passed" for one in features.load(layout)):
        if memory == "last" and Path(layout.path(names.RAW)).exists():
            Path(layout.path(names.SUMMARY)).write_text(
                "".join(Path(layout.path(names.RAW)).read_text().splitlines(keepends=True)[-last:])
            )
        folder = Path(layout.folders.project).parent
        done = subprocess.run(
            [RUN_SH, "--once"],
            cwd=layout.folders.project,
            env=env(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"run.sh --once ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    rows = [json.loads(line) for line in Path(layout.path(names.RUN_LOG)).read_text().splitlines()]
    workers = [row for row in rows if row["role"] == "worker"]
    found = {"features": len(features.load(layout)), "worker runs": len(workers)}
    found["retries"] = found["worker runs"] - found["features"]
    found["curator runs"] = sum(row["role"] == "curator" for row in rows)
    return found


def main() -> None:
    """Play the missions, and print a table."""
    parser = argparse.ArgumentParser(description="Does memory help?")
    parser.add_argument("--kinds", type=int, default=8, choices=range(1, len(KINDS) + 1))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--last", type=int, default=40)
    parser.add_argument("--memories", type=lambda text: text.split(","), default=list(MEMORIES))
    args = parser.parse_args()
    heads = ("memory", "features", "worker runs", "retries", "of them avoidable", "curator runs")
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    scratch = HOME / "build"  # a confined agent has a /tmp of its own
    scratch.mkdir(exist_ok=True)
    for memory in args.memories:
        with tempfile.TemporaryDirectory(dir=scratch, prefix="memory-effect-") as folder:
            layout = begin(Path(folder), memory, args.kinds, args.rounds, args.seed)
            found = play(layout, memory, args.last)
        name = f"last {args.last} lines" if memory == "last" else memory
        avoidable = found["retries"] - args.kinds
        cells = (name, found["features"], found["worker runs"], found["retries"], avoidable, found["curator runs"])
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
