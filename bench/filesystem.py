"""What an agent's files cost, on a tree of 5,000 files and 46 MB with a log of 10 MB: against bare floors, and beside deepagents.

    python bench/filesystem.py [--rounds 15] [--wall] [--deepagents PYTHON] [--no-deepagents]

Goals: glob with 1,000 hits at most 6 times a scandir walk, ls of 50 names at most 0.5 ms, grep with 2,500 hits at most 3 times
`rg`, lines at 90,000 of the log at most 5 ms (`read` looks for the first time, `read on` again), import at most 100 ms.
deepagents' FilesystemBackend does the same in an interpreter of its own, with the same `rg`. It is installed from PyPI into a
temporary folder unless one is named; without a network it is left out, and said so. It prints medians in milliseconds, of calls
in turns: of CPU, children included, which other programs lengthen least; `--wall`: by the clock, on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.filesystem import _ripgrep
from harness.filesystem.local import Local
from harness.filesystem.protocol import FileContent, Listing, Matches, Replacement, WriteResult
from harness.filesystem.shell import LocalShell

Clock = Callable[[], float]
FILES, GLOBBED, HITS, NEEDLE = 5000, 1000, 2500, "the okapi crosses"
SIZE = 50 * 1024 * 1024 // FILES
LOG_LINES, LOG_BYTES = 100_000, 10 * 1024 * 1024
WORDS = ("test", "error", "file", "harness", "import", "return", "漢字", "value", "line", "commit", "def", "class")
GOALS = {
    "glob": (6.0, "x"),
    "ls": (0.5, "ms"),
    "grep": (3.0, "x"),
    "read": (5.0, "ms"),
    "read on": (5.0, "ms"),
    "import": (100.0, "ms"),
}
RIVAL = """
import json, os, sys, time
root, needle, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
clock = time.perf_counter if sys.argv[4] == "wall" else lambda: sum(os.times()[:4])
fine = time.perf_counter if sys.argv[4] == "wall" else time.process_time
begun = fine()
from deepagents.backends.filesystem import FilesystemBackend
loaded = fine() - begun
files = FilesystemBackend(root_dir=root, virtual_mode=True)
def first(*names):
    return next(getattr(files, name) for name in names if hasattr(files, name))
turns = iter(range(10**9))
def edit():
    turn = next(turns)
    return files.edit("/edited.txt", f"turn {turn}.", f"turn {turn + 1}.")
acts = {
    "glob": lambda: first("glob", "glob_info")("**/*.md", "/"),
    "ls": lambda: first("ls", "ls_info")("/fifty"),
    "grep": lambda: first("grep", "grep_raw")(needle, "/"),
    "read": lambda: files.read("/big.log", 90000, 100),
    "edit": edit,
}
def count(answer):
    for name in ("matches", "entries"):
        answer = getattr(answer, name, None) or answer
    return len(answer) if hasattr(answer, "__len__") else -1
out = {"import": [loaded], "counts": {}}
for name, act in acts.items():
    out["counts"][name] = count(act())
    took = []
    for _ in range(rounds):
        begun = clock()
        act()
        took.append(clock() - begun)
    out[name] = [sum(took) / len(took)]
print(json.dumps(out))
"""


def lay(root: Path) -> None:
    """The tree: files of source and text in folders, one folder of fifty, one long log, a .gitignore."""
    chance = random.Random(1)
    lines = [" ".join(chance.choices(WORDS, k=9)) for _ in range(4000)]
    folders = [root / f"{a}" / f"{b}" for a in ("src", "lib", "docs", "tests") for b in range(40)]
    for folder in [*folders, root / "fifty"]:
        folder.mkdir(parents=True)
    for number in range(50):
        (root / f"fifty/{number}.txt").write_text("x\n")
    for number in range(FILES - 53):
        kind = "md" if number % 5 == 0 and number < GLOBBED * 5 else "py"
        text = [chance.choice(lines)]
        while sum(map(len, text)) < SIZE * chance.uniform(0.3, 1.2):
            text += chance.choices(lines, k=20)
        if number % 2 == 0 and number < HITS * 2:
            text.insert(len(text) // 2, NEEDLE)
        (folders[number % len(folders)] / f"file_{number}.{kind}").write_text("\n".join(text) + "\n")
    pad = LOG_BYTES // LOG_LINES - 30
    log = (f"{number:08d} INFO {chance.choice(lines)[:pad]:{pad}} end\n" for number in range(LOG_LINES))
    (root / "big.log").write_text("".join(log))
    (root / ".gitignore").write_text("*.pyc\n/build/\nnode_modules/\n")
    (root / "edited.txt").write_text("a\n" * 5000 + "turn 0.\n" + "b\n" * 5000)


def walk(root: str) -> int:
    """The floor of a glob: every name below, by scandir."""
    count, todo = 0, [root]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    count += 1
    return count


def bare_ls(root: str) -> list[tuple[str, int]]:
    """The floor of a listing."""
    with os.scandir(f"{root}/fifty") as entries:
        return sorted((entry.name, entry.stat().st_size) for entry in entries)


def bare_read(root: str) -> bytes:
    """The floor of a read at a line: the file line by line, in C."""
    with open(f"{root}/big.log", "rb") as file:
        for _ in range(90_000):
            file.readline()
        return b"".join(file.readline() for _ in range(100))


def bare_edit(root: str) -> None:
    """The floor of a durable edit: read, write beside it, fsync, rename, fsync of the folder."""
    path = f"{root}/edited.bare"
    data = Path(f"{root}/edited.txt").read_bytes().replace(b"turn", b"TURN")
    with open(path + ".tmp", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    folder = os.open(root, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def ours(root: str, *, with_rg: bool = True) -> dict[str, Callable[[], object]]:
    """Each verb, with a check of what it finds."""
    files, turn = Local(root, with_rg=with_rg), iter(range(10**9))

    def checked(answer: object, kind: type, count: int) -> object:
        assert isinstance(answer, kind), answer
        found = answer.entries if isinstance(answer, Listing) else answer.matches if isinstance(answer, Matches) else []
        assert not count or len(found) == count, len(found)
        return answer

    def edit() -> object:
        number = next(turn)
        return checked(
            files.edit("edited.txt", [Replacement(old=b"turn %d." % number, new=b"turn %d." % (number + 1))]),
            WriteResult,
            0,
        )

    return {
        "glob": lambda: checked(files.glob("**/*.md"), Listing, GLOBBED - 10),
        "ls": lambda: checked(files.ls("fifty"), Listing, 50),
        "grep": lambda: checked(files.grep(NEEDLE, most=5000), Matches, HITS - 26),
        "read": lambda: checked(Local(root).read("big.log", 90_000, 100), FileContent, 0),
        "read on": lambda: checked(files.read("big.log", 90_000, 100), FileContent, 0),
        "edit": edit,
    }


def floors(root: str) -> dict[str, Callable[[], object]]:
    """What nobody can do without."""
    command = [_ripgrep.program(), "--no-config", "-n", NEEDLE, root]

    def rg() -> None:
        out = subprocess.run(command, capture_output=True, check=True).stdout
        assert out.count(b"\n") == HITS - 26, out.count(b"\n")

    return {
        "glob": lambda: walk(root),
        "ls": lambda: bare_ls(root),
        "grep": rg,
        "read": lambda: bare_read(root),
        "read on": lambda: bare_read(root),
        "edit": lambda: bare_edit(root),
    }


def cpu() -> float:
    """CPU seconds of this process and of its children that ended."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def seconds(call: Callable[[], object], clock: Clock) -> float:
    """Of one call."""
    begun = clock()
    call()
    return clock() - begun


def imports(rounds: int, clock: Clock) -> Iterator[float]:
    """Of our import, in a bare interpreter each time."""
    name = "process_time" if clock is cpu else "perf_counter"
    program = f"import sys, time; sys.path.insert(0, {str(HOME)!r}); b = time.{name}(); " + (
        f"import harness.filesystem.shell; print(time.{name}() - b)"
    )
    for _ in range(rounds):
        yield float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def rival(python: str, root: str, rounds: int, place: str, clock: Clock) -> dict[str, list[float]] | str:
    """The same by deepagents, or why not."""
    if not python:
        python = f"{place}/venv/bin/python"
        try:
            subprocess.run([sys.executable, "-m", "venv", f"{place}/venv"], check=True, capture_output=True)
            subprocess.run(
                [python, "-m", "pip", "install", "-q", "deepagents"], check=True, capture_output=True, timeout=600
            )
        except (subprocess.SubprocessError, OSError) as fault:
            return f"deepagents could not be installed: {type(fault).__name__}"
    path = os.pathsep.join([os.path.dirname(_ripgrep.program()), os.environ["PATH"]])
    argv = [python, "-c", RIVAL, root, NEEDLE, str(rounds), "cpu" if clock is cpu else "wall"]
    env = {**os.environ, "PATH": path}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        return f"deepagents failed: {done.stderr.strip().splitlines()[-1:]}"
    found = json.loads(done.stdout)
    print("deepagents found", found.pop("counts"))
    return {name: list(took) for name, took in found.items()}


def shell(root: str, rounds: int, clock: Clock) -> tuple[float, float]:
    """(median of `execute`, median of a bare `bash -c`), for a command that does nothing."""
    files = LocalShell(root)
    took = [
        (seconds(lambda: files.execute(":"), clock), seconds(lambda: subprocess.run(["bash", "-c", ":"]), clock))
        for _ in range(rounds)
    ]
    return statistics.median(one for one, _ in took), statistics.median(other for _, other in took)


def show(name: str, mine: float, plain: float, floor: float, theirs: float | None) -> None:
    """One row."""
    limit, unit = GOALS.get(name, (0.0, ""))
    value = mine / floor if unit == "x" else mine * 1000
    verdict = "" if not limit else f"{'ok' if value <= limit else 'MISSED'} (goal {limit:g} {unit})"
    cells = [f"{one * 1000:9.2f}" if one else "        -" for one in (mine, plain, floor, theirs or 0.0)]
    ratio = f"{mine / floor:6.2f}" if floor else "     -"
    print(f"{name:8} {' '.join(cells)} {ratio}   {verdict}")


def main() -> None:
    """Make, measure in turns, remove."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--deepagents", metavar="PYTHON", default="", help="an interpreter that has it")
    parser.add_argument("--no-deepagents", action="store_true")
    parser.add_argument("--wall", action="store_true")
    asked = parser.parse_args()
    clock = time.perf_counter if asked.wall else cpu
    place = tempfile.mkdtemp(prefix="harness-bench-")
    try:
        root = Path(place, "tree")
        lay(root)
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        print(f"{walk(str(root))} files, {size / 1e6:.1f} MB")
        mine, plain, floor = ours(str(root)), ours(str(root), with_rg=False), floors(str(root))
        for name in ("ls", "read", "read on", "edit"):
            plain.pop(name)  # ripgrep has no part in them
        took: dict[tuple[str, str], list[float]] = {}
        for turn in range(asked.rounds + 1):  # the first warms up
            for name in mine:
                for who, acts in (("ours", mine), ("floor", floor), ("plain", plain)):
                    if name in acts and (who != "plain" or turn < 4):
                        took.setdefault((who, name), []).append(seconds(acts[name], clock))
        loaded = statistics.median(imports(max(3, asked.rounds // 3), clock))
        (root / "edited.txt").write_text("a\n" * 5000 + "turn 0.\n" + "b\n" * 5000)
        few = max(3, asked.rounds // 3)
        other = "left out" if asked.no_deepagents else rival(asked.deepagents, str(root), few, place, clock)
        theirs = {} if isinstance(other, str) else {name: statistics.median(found) for name, found in other.items()}
        medians = {key: statistics.median(found[1:]) for key, found in took.items()}
        print("ms by the clock" if asked.wall else "ms of CPU")
        print("             ours  no rg        floor deepagents  x floor")
        for name in mine:
            show(
                name, medians["ours", name], medians.get(("plain", name), 0.0), medians["floor", name], theirs.get(name)
            )
        show("import", loaded, 0.0, 0.0, theirs.get("import"))
        show("execute", *(lambda one: (one[0], 0.0, one[1]))(shell(str(root), asked.rounds, clock)), None)
        if isinstance(other, str):
            print(f"deepagents: {other}")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
