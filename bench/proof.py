"""What proof costs: checks of 50 ms fired with a durable receipt each, against the same commands run bare, in turn.

    python bench/proof.py [--rounds 5] [--claims 100] [--seconds 0.05] [--files 1000]

It prints medians over turns of ten checks. *bare* is `bash -c COMMAND`, one by one, by subprocess with its output read;
*harness* is a validator's run (`fire.fire_all`): a guardian, confinement, an environment, a TMPDIR and a free PORT per
check, and its receipt on disk before the next check, in a repository of so many files, of which a fifth are tests. The goals are
a ratio of at most 1.3 for checks of a second or more, and at most 150 ms for shorter ones. The lines below it show the time of
each part, in ms per check.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness.mission import receipts
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Claim, Contract
from harness.process import supervise, temporary
from harness.process.confine import NONE, Confinement, Glass, available
from harness.proof import check_runs, services, tampering
from harness.state import files
from harness.workplace import environment

PART_ROUNDS = 200
HERE = available()
GLASS = None if HERE == NONE else Confinement(glass=Glass(), tier=HERE)
TURN = 10


def claims(number: int, seconds: float) -> list[Claim]:
    """Claims with one check each that only takes time."""
    check = Check(run=f"sleep {seconds}")
    return [Claim(id=f"VAL-{n:03d}", text="It takes its time", checks=[check]) for n in range(number)]


def bare(found: list[Claim], folder: str) -> None:
    """Run the commands as a shell script would."""
    for claim in found:
        subprocess.run(["bash", "-c", claim.checks[0].run], cwd=folder, capture_output=True, check=True)


def repository(folder: str, number: int) -> str:
    """Make so many files, commit them; the commit."""
    for one in range(number):
        path = os.path.join(folder, f"part-{one % 20}", f"{'test_' * (one % 5 == 0)}{one}.py")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(f"x = {one}\n" * 100)
    git = ["git", "-C", folder, "-c", "user.name=b", "-c", "user.email=b@localhost"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "files"]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def fired(found: list[Claim], place: CheckEnvironment) -> None:
    """Run them through the harness, each receipt durable."""
    path = place.directory + ".jsonl"
    given = list(check_runs.fire_all(found, "after", place, path))
    assert all(receipt.green for receipt in given)
    os.unlink(path)


def wall(body: Callable[[], object]) -> float:
    """The duration of a call in seconds."""
    started = time.perf_counter()
    body()
    return time.perf_counter() - started


def each(body: Callable[[], object]) -> float:
    """The median milliseconds of a call."""
    return 1e3 * statistics.median(wall(body) for _ in range(PART_ROUNDS))


def parts(folder: str, seconds: float) -> dict[str, float]:
    """Milliseconds per check of each part of firing, measured alone; an idle machine wakes up more slowly, so the
    guardian's child also takes time."""
    env, words = environment.plain(os.environ, "bench"), ["bash", "-c", f"sleep {seconds}"]
    receipt = check_runs.fire(Check(run=":"), claims(1, 0)[0], "after", CheckEnvironment(directory=folder))
    record = files.TranscriptFile(os.path.join(folder, "parts.jsonl"))

    def write() -> None:
        record.write(receipts.render([receipt]))
        record.sync()

    def guarded() -> None:
        supervise.run(words, cwd=folder, env=env, wall_seconds=9, sink=lambda stream, chunk: None)

    def confined() -> None:
        glass = GLASS.opened(folder) if GLASS else None
        supervise.run(words, cwd=folder, env=env, wall_seconds=9, sink=lambda stream, chunk: None, confine=glass)

    def plain() -> None:
        subprocess.run(words, cwd=folder, env=env, capture_output=True, check=True)

    found = {
        "guardian": 1e3 * statistics.median(wall(guarded) - wall(plain) for _ in range(40)),
        f"confinement ({HERE})": 1e3 * statistics.median(wall(confined) - wall(guarded) for _ in range(40)),
        "receipt written and fsynced": each(write),
        "TMPDIR made and removed": each(lambda: temporary.remove(temporary.create("bench"))),
        "free PORT": each(check_runs.free_port),
        "environment": each(lambda: environment.plain(os.environ, "bench")),
    }
    record.close()
    return found


def report(folder: str, number: int, seconds: float, rounds: int, files_number: int) -> None:
    """Print the ratio, then the time of each part."""
    found = claims(number, seconds)
    took: dict[str, list[float]] = {"bare": [], "harness": []}
    place = CheckEnvironment(directory=folder, head=repository(folder, files_number), confinement=GLASS)
    began = time.perf_counter()
    place = services.RunningServices([], tampering.watched(place, Contract(claims=found))).__enter__()
    began = time.perf_counter() - began
    bare(found[:3], folder)
    fired(found[:3], place)
    for start in range(0, rounds * number, TURN):
        some = [found[(start + n) % number] for n in range(TURN)]
        took["bare"].append(wall(partial(bare, some, folder)) / TURN)
        took["harness"].append(wall(partial(fired, some, place)) / TURN)
    plain, ours = (1e3 * statistics.median(took[name]) for name in ("bare", "harness"))
    print(f"{number} checks of {1e3 * seconds:.0f} ms: bare {plain:.2f} ms, harness {ours:.2f} ms a check")
    print(f"ratio {ours / plain:.3f}, {ours - plain:+.2f} ms a check")
    watching = place.watch
    assert watching is not None
    receipt = check_runs.fire(Check(run=":"), found[0], "after", place.replace(watch=None))
    watch = {"watch": each(lambda: watching.examined(receipt)), "watch begins, once": 1e3 * began}
    for name, cost in (parts(folder, seconds) | watch).items():
        print(f"  {name:<28} {cost:6.2f} ms")


def main() -> None:
    """Parse the command line, measure in a throw-away folder, print."""
    parser = argparse.ArgumentParser(description="What proof costs.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--claims", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--files", type=int, default=1000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        place = os.path.join(folder, "place")
        os.mkdir(place)
        report(place, asked.claims, asked.seconds, asked.rounds, asked.files)


if __name__ == "__main__":
    main()
