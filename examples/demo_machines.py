"""A mission of eight features on three workers of Dask, each with a HOME of its own; one worker is killed, and the mission is
done.

make demo-machines

Scheduler, workers and mission are processes of this machine, in build/demo-machines, and end with this program. The agent is
the playbook: no key, no network. """

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from tests.run.machines.cluster import Cluster, cluster

PLACE = HOME / "build" / "demo-machines"
SECONDS = 110  # after which it gives up
WORKERS, VICTIM = ("worker-1", "worker-2", "worker-3"), "worker-2"
FACTORS = {"mile": 1609.344, "yard": 0.9144, "foot": 0.3048, "inch": 0.0254, "league": 4828.032, "chain": 20.1168,
           "furlong": 201.168, "fathom": 1.8288}  # fmt: skip
FEATURES = {f"F-{number:03d}": name for number, name in enumerate(FACTORS, start=1)}
SPEC = "# Lengths\n\nA Python package `lengths` with a module for each old length: how many metres it is.\n"
WHERE = "$(echo \"$PATH\" | tr : '\\n' | sed -n 's,.*/\\(worker-[0-9]\\)/bin$,\\1,p')"  # the PATH of a worker has its name
BUILD = f"""# {{feature}}: {{name}}

```sh
harness note --tag CONTEXT "{{feature}} begins on {WHERE}"
mkdir -p lengths
echo 'METRES = {{metres}}' >lengths/{{name}}.py
sleep 1
```

```json harness
{{reply}}
```
"""
BEGUN = re.compile(r"\[(\S+)\] worker .*: (F-\d+) begins on (worker-\d)")
Start = tuple[str, str, str]  # time, feature, worker


def lay(project: Path) -> None:
    """The spec and the playbooks, in a repository."""
    (project / "playbooks").mkdir(parents=True)
    (project / "SPEC.md").write_text(SPEC)
    for feature, name in FEATURES.items():
        reply = json.dumps({"status": "implemented", "summary": f"lengths.{name}", "reason": "", "needs": [], "disputes": []})
        text = BUILD.format(feature=feature, name=name, metres=FACTORS[name], reply=reply)
        (project / f"playbooks/worker-{feature}.md").write_text(text)
    (project / "playbooks/planner.md").write_text(f"# A module each\n\n```json harness\n{json.dumps(plan())}\n```\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "A spec and its playbooks"]):
        subprocess.run(["git", "-c", "user.name=d", "-c", "user.email=d@localhost", *words], cwd=project, check=True)


def plan() -> dict[str, Any]:
    """Eight features that need nothing of each other, with a claim each."""
    found = {"features": list[Any](), "contract": list[Any]()}
    for number, (feature, name) in enumerate(FEATURES.items(), start=1):
        claim, test = f"VAL-{feature}", f"from lengths.{name} import METRES; assert METRES == {FACTORS[name]}"
        found["contract"] += [{"id": claim, "claim": f"lengths.{name} is right", "checks": [f"python3 -c '{test}'"]}]
        found["features"] += [{
            "id": feature, "title": f"The {name}", "description": f"lengths/{name}.py", "claims": [claim],
            "depends_on": [], "spec_refs": ["Lengths"], "priority": number,
        }]  # fmt: skip
    return found


def runs_of(project: Path) -> list[dict[str, Any]]:
    """The finished runs, oldest first."""
    path = project / ".harness/runs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Mission:
    """The mission while it runs, and what its agents noted before the curator took it."""

    def __init__(self, project: Path, own: Cluster) -> None:
        self.project, self.own, self.starts, self.victim = project, own, list[Start](), ""

    def follow(self, loop: subprocess.Popen[bytes]) -> int:
        """Wait for its end, and kill a worker with -9 while it builds, once two features are built; returns the exit code."""
        while (code := loop.poll()) is None:
            new = self.look()
            if not self.victim:
                self.kill(new)
            time.sleep(0.05)
        return code

    def look(self) -> list[Start]:
        """Take what is new in the notes, and return it: which feature begins, and where."""
        path = self.project / ".harness/memory/raw.md"
        found = BEGUN.findall(path.read_text()) if path.exists() else []
        new = [one for one in found if one not in self.starts]
        self.starts += new
        return new

    def kill(self, new: list[Start]) -> None:
        """Kill the worker if it has just begun a feature, after two are built."""
        built = [row["feature"] for row in self.runs("worker") if row["outcome"] == "ok"]
        here = [feature for _, feature, where in new if where == VICTIM]
        if len(built) >= 2 and here:
            self.victim = here[0]
            self.own.workers[VICTIM].kill()
            print(f"\n*** kill -9 {VICTIM}, which builds {self.victim} ***\n", flush=True)

    def runs(self, role: str) -> list[dict[str, Any]]:
        """The finished runs of a role, oldest first."""
        path = self.project / ".harness/runs.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if row["role"] == role]

    def places(self, feature: str) -> list[str]:
        """The workers on which it began, oldest first."""
        return [where for _, one, where in self.starts if one == feature]


def table(mission: Mission) -> list[str]:
    """A line for each start of a feature: where, and what became of it."""
    lines = []
    for feature, name in FEATURES.items():
        ended = [row for row in mission.runs("worker") if row["feature"] == feature]
        for where, row in zip(mission.places(feature), ended, strict=True):
            again = " again" if feature == mission.victim else ""
            lost = row["outcome"] == "killed"
            what = f"lost with {where}; the feature is free, no attempt counts" if lost else f"built{again}"
            lines.append(f"{feature}  {name:8}  {where}  {row['seconds']:5.1f} s  {what}")
    return lines


def shown(mission: Mission, code: int) -> dict[str, bool]:
    """What the demo shows, and whether it holds."""
    green = [row["feature"] for row in mission.runs("validator") if row["verdict"] == "green" and row["feature"]]
    killed = [row["feature"] for row in mission.runs("worker") if row["outcome"] == "killed"]
    left = subprocess.run(["pgrep", "-f", str(PLACE)], capture_output=True, text=True, check=False).stdout.split()
    return {
        "the mission is DONE": code == 0,
        "each feature passed once": sorted(green) == list(FEATURES),
        "one run is lost, with its worker": killed == [mission.victim],
        "another worker has built that feature": VICTIM not in mission.places(mission.victim)[1:],
        "home has the work of all": {path.stem for path in (mission.project / "lengths").glob("*.py")} == {*FACTORS},
        "all three workers have built": {where for *_, where in mission.starts} == {*WORKERS},
        "no process of the killed worker is left": not any(f"/{VICTIM}/" in command(pid) for pid in left),
    }


def command(pid: str) -> str:
    """The command line of a process, "" once it is gone."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.read_bytes().replace(b"\0", b" ").decode() if path.exists() else ""


def play(own: Cluster, project: Path) -> int:
    """The mission, and the tables; returns 1 if something does not hold."""
    env = os.environ | {"HARNESS_IDENTITY": str(PLACE / "identity"), "XDG_STATE_HOME": str(PLACE / "home")}
    words = [str(HOME / "run.sh"), "--lanes", "3", "--on", own.address]
    print(f"$ run.sh {' '.join(words[1:])}", flush=True)
    mission, loop = Mission(project, own), subprocess.Popen(words, cwd=project, env=env, stdin=subprocess.DEVNULL)
    try:
        code = mission.follow(loop)
    finally:
        loop.terminate()
        loop.wait()
    print("\n" + "\n".join(table(mission)) + "\n")
    found = shown(mission, code)
    for what, holds in found.items():
        print(f"{what:52}{'yes' if holds else 'no'}")
    return int(not all(found.values()))


def give_up(number: int, frame: FrameType | None) -> None:
    """SIGALRM."""
    raise TimeoutError(f"It took more than {SECONDS} seconds.")


def main() -> int:
    """The whole demo; 69 if something has to be installed first, 1 if something does not hold."""
    missing = [] if find_spec("distributed") else ["distributed is not installed: make setup"]
    if missing := [*missing, *([] if shutil.which("bwrap") else ["bubblewrap is not installed: apt install bubblewrap"])]:
        print("; ".join(missing), file=sys.stderr)
        return os.EX_UNAVAILABLE
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    began = time.monotonic()
    shutil.rmtree(PLACE, ignore_errors=True)
    project = PLACE / "lengths"
    lay(project)
    (PLACE / "identity").mkdir()
    with cluster(PLACE / "dask", dict.fromkeys(WORKERS, 1)) as own:
        code = play(own, project)
    print(f"\n{time.monotonic() - began:.0f} seconds. Look next: cd build/demo-machines/lengths; ../../../run.sh runs list")
    return code


if __name__ == "__main__":
    sys.exit(main())
