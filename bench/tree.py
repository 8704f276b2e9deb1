"""What a run's worktree costs in a large repository, by kind of clone: a whole mission with the embedded agent through run.sh.

    python bench/tree.py [--files 50000] [--kinds full sparse partial both]

The repository has so many files of 2 KB in folders of 250. *full* is an ordinary clone; *sparse* has a tenth of the folders in
its working folder; *partial* is a clone with `--filter=blob:none`; *both* is a partial clone with a sparse working folder. It
prints seconds of `git worktree add` in that clone, of the planner's run, which makes the tree, of the worker's, which finds it,
and of the final sweep, which makes two fresh clones; and MB of the clone's .git, its working folder, and the tree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
KINDS = ("full", "sparse", "partial", "both")
IDENTITY = ("-c", "user.name=b", "-c", "user.email=b@localhost")
PLAN = {
    "features": [
        {"id": f"F-00{n}", "title": f"Part {n}", "claims": [f"VAL-{n}"], "spec_refs": ["A program"]} for n in (1, 2)
    ],
    "contract": [{"id": f"VAL-{n}", "claim": "It is there", "checks": [f"test -s made-{n}"]} for n in (1, 2)],
}


def git(folder: Path, *words: str) -> None:
    """Call git quietly in this folder."""
    subprocess.run(["git", "-C", str(folder), *IDENTITY, *words], check=True, capture_output=True)


def source(folder: Path, number: int) -> Path:
    """A repository with a mission's files and so many others, which serves partial clones."""
    for one in range(number):
        path = folder / f"part-{one // 250}" / f"{one}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{one} of the files\n" * 100)
    (folder / "SPEC.md").write_text("# A program\n\nIt has two parts.\n")
    (folder / "playbooks").mkdir()
    replies = {f"worker-F-00{n}": (f"echo x > made-{n}", {"status": "implemented"}) for n in (1, 2)}
    for role, (run, reply) in {"planner": ("true", PLAN), **replies}.items():
        text = f"```sh\n{run}\n```\n\n```json harness\n{json.dumps(reply)}\n```\n"
        (folder / f"playbooks/{role}.md").write_text(text)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "files"]):
        git(folder, *words)
    git(folder, "config", "uploadpack.allowFilter", "true")
    return folder


def clone(kind: str, origin: Path, folder: Path) -> Path:
    """A clone of this kind."""
    words = ["--filter=blob:none"] * (kind in ("partial", "both")) + ["--sparse"] * (kind in ("sparse", "both"))
    git(origin, "clone", "-q", *words, f"file://{origin}", str(folder))
    if "--sparse" in words:
        parts = sorted(path.name for path in origin.glob("part-*"))[::10]
        git(folder, "sparse-checkout", "set", "playbooks", *parts)
    return folder


def seconds(words: list[str], folder: Path, env: dict[str, str]) -> float:
    """The duration of a command that ends with 0."""
    began = time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise SystemExit(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - began


def megabytes(folder: Path) -> float:
    """What the folder takes on the disk."""
    listed = subprocess.run(["du", "-sm", str(folder)], capture_output=True, text=True, check=True).stdout
    return float(listed.split()[0])


def row(kind: str, origin: Path, room: Path) -> list[str]:
    """A row of the table."""
    project, run_sh = clone(kind, origin, room / kind), str(HOME / "run.sh")
    env = {"PATH": os.environ["PATH"], "HOME": str(room), "XDG_STATE_HOME": str(room / f"state-{kind}")}
    plain = seconds(["git", "worktree", "add", "--detach", str(room / f"plain-{kind}")], project, env)
    git(project, "worktree", "remove", "--force", str(room / f"plain-{kind}"))
    disk = [megabytes(project / ".git")]
    disk.append(megabytes(project) - disk[0])
    seconds([run_sh, "init"], project, env)
    first = seconds([run_sh, "planner"], project, env)
    [tree] = (room / f"state-{kind}/harness").glob("*/tree-1")
    disk.append(megabytes(tree))
    second = seconds([run_sh, "worker", "F-001"], project, env)
    seconds([run_sh, "worker", "F-002"], project, env)
    for feature in ("F-001", "F-002"):
        seconds([run_sh, "validator", feature], project, env)
    sweep = seconds([run_sh, "validator"], project, env)
    return [kind, *(f"{one:.1f}" for one in (plain, first, second, sweep)), *(f"{one:.0f}" for one in disk)]


def main() -> int:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    arguments.add_argument("--files", type=int, default=50000)
    arguments.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        room = Path(folder)
        origin = source(room / "origin", chosen.files)
        print("| clone | worktree add s | first run s | next run s | sweep s | .git MB | files MB | tree MB |")
        for kind in chosen.kinds:
            print(f"| {' | '.join(row(kind, origin, room))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
