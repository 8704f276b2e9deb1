"""Golden missions in the middle of a run, as the harness of COMMIT leaves them when it is killed: makes the archives here.

    PYTHONPATH=. python tests/formats/v2/make.py

The environment, the interpreter and the archive are those of v1/make.py. README.md has the rest.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.formats.v1 import make as golden

COMMIT = "23a1533a8c944ecc29b86bc9661c84667af3c955"
HERE = Path(__file__).resolve().parent
PARTS = ("project", "state", "identity", "scripts")
PLACES = {"tree": "", "folder": 'workplace = "project"'}
SPEC = "# Parts\n\n## Part one\none.txt says one.\n\n## Part two\ntwo.txt says two.\n"
SAID = "Half of it."


def make(name: str, line: str) -> None:
    """A mission whose first feature has passed; the worker of the second, run.sh and all their processes are killed."""
    place = golden.CheckEnvironment(name)
    place.clear()
    place.env["XDG_STATE_HOME"] = f"{place.top}/state"
    place.write("project/SPEC.md", SPEC)
    place.write("project/main.py", "print('parts')\n")
    place.repository()
    place.run("init --quietly")
    place.write("project/.harness/config.toml", golden.config('agent = "scripted"', *([line] if line else [])))
    place.script("planner", golden.reply(**golden.planned(1, 2)))
    place.script(
        "worker-F-001",
        golden.put("one.txt", "one"),
        {"run": "harness note --tag DECISION 'parts are plain text'"},
        golden.used(),
        golden.reply(status="implemented", summary="One."),
    )
    interrupted = (
        *(golden.put("two.txt", "tw"), golden.put("new.txt", "new"), {"run": "echo '# cut' >>main.py"}),
        {"run": f"harness note --tag TRICK '{golden.TRICK}'"},
        {"run": "harness issue 'two.txt has no heading' --severity minor"},
        *(golden.used(cost_usd=0.5), {"say": SAID}, {"sleep": 600}),
    )
    place.script("worker-F-002", *interrupted)
    quiet = subprocess.DEVNULL
    words = [str(golden.CHECKOUT / "run.sh")]
    clock = subprocess.Popen(words, cwd=place.project, env=place.env, stdin=quiet, stdout=quiet, stderr=quiet)
    golden.until(lambda: any(SAID in path.read_text() for path in place.state.glob("runs/*-F-002/stream.jsonl")))
    golden.kill(clock)
    golden.pack(place, HERE, PARTS)
    golden.say(f"{name}: {(HERE / f'{name}.tar.gz').stat().st_size} bytes")


def main() -> None:
    """Make every archive again: other times, other random ids."""
    golden.neutral_host(__file__)
    golden.prepare(COMMIT)
    for name, line in PLACES.items():
        make(name, line)


if __name__ == "__main__":
    main()
