"""Record real CLIs' output into tests/agents/transcripts/: `PYTHONPATH=.:tests python tests/agents/record.py PREFIX [NAME…]`.

Each takes a small mission to DONE against the model server, started by a program that keeps its stdout; then it meets a
limit, a refused key, an empty account, an error, a refused request and no server at all. Placeholders such as /project and
/home/user replace this machine's folders.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.agents import real, small_mission
from tests.agents.modelserver import Reply, Server, serving
from tests.agents.wires import Exchange
from tests.missions import CHECKOUT, House, surroundings

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CASES = {"limit": "rate_limit", "auth": "auth", "quota": "quota", "plan-limit": "plan_limit", "error": "server"}
CASES |= {"bad-request": "bad_request", "no-network": ""}
KEEPER = """#!/bin/bash
{variables}
{command} | tee {kept}/$HARNESS_INSIDE.jsonl
exit ${{PIPESTATUS[0]}}
"""
LONGEST_SECONDS = 600
NOBODY = "http://127.0.0.1:9"  # the discard port: no server listens there


def house(place: Path) -> House:
    """A repository with the small mission's spec."""
    made = House(place, surroundings(place))
    made.project.mkdir()
    made.git("init", "-q", "-b", "main", "--template=")
    made.write("SPEC.md", small_mission.SPEC)
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "begin")
    return made


def scrubbed(text: str, place: Path, prefix: Path) -> str:
    """The text without this machine's paths, ports and the like."""
    names = {
        str(place / "my project"): "/project",
        str(place / "home"): "/home/user",
        str(place / "temporary"): "/tmp",
        str(place): "/work",
        str(prefix): "/prefix",
        str(CHECKOUT): "/harness",
    }
    for path, name in names.items():
        text = text.replace(path, name).replace(re.sub(r"[^A-Za-z0-9]", "-", path), name.replace("/", "-"))
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text)


def mission(cli: real.Cli, prefix: Path, server: Server, place: Path) -> str:
    """Its output as the worker of a mission that reached DONE; raises RuntimeError if it did not."""
    made = house(place)
    home = place / "home"
    real.configure(cli, home, server.url)
    env = real.environment(cli, home, server.url)
    variables = "\n".join(f"export {name}={shlex.quote(text)}" for name, text in env.items())
    keeper = place / "keeper"
    words = shlex.join(real.command(cli, prefix, home))
    keeper.write_text(KEEPER.format(variables=variables, command=words, kept=shlex.quote(str(place))))
    keeper.chmod(0o755)
    made.env["PATH"] = real.search_path(cli, prefix, made.env["PATH"])
    made.program("init")
    (made.state / "config.toml").write_text(
        f'agent = "it"\n[agents.it]\ncommand = ["{keeper}"]\n[limits]\nmax_runs = 8\n'
    )
    words_of_mission = [str(CHECKOUT / "run.sh")]
    done = subprocess.run(
        words_of_mission, cwd=made.project, env=made.env, capture_output=True, text=True, timeout=LONGEST_SECONDS
    )
    if done.returncode != 0:
        raise RuntimeError(f"{cli.name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return next(place.glob("*-worker-*.jsonl")).read_text()


def failing(cli: real.Cli, prefix: Path, url: str, place: Path) -> tuple[str, int | None]:
    """Its output for one question to the server at `url`, and its exit status, None if it was ended after
    LONGEST_SECONDS."""
    made = house(place)
    home = place / "home"
    real.configure(cli, home, url)
    env = made.env | real.environment(cli, home, url) | cli.quick
    env |= {"PATH": real.search_path(cli, prefix, made.env["PATH"]), "PWD": str(made.project)}
    with subprocess.Popen(
        real.command(cli, prefix, home),
        cwd=made.project,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
    ) as child:
        try:
            return child.communicate("Say hello.", timeout=LONGEST_SECONDS)[0], child.returncode
        except subprocess.TimeoutExpired:
            child.terminate()
            return child.communicate()[0], None


def nothing(exchange: Exchange) -> Reply:
    """A brain that only greets."""
    return Reply("hello")


def record(cli: real.Cli, prefix: Path, cases: list[str]) -> None:
    """Write the transcripts of one CLI."""
    real.install(cli, prefix)
    top = TRANSCRIPTS / f"{cli.name}-{cli.version}"
    top.mkdir(parents=True, exist_ok=True)
    ending = "txt" if cli.format in ("text", "edits") else "jsonl"
    for case in cases:
        place = Path(tempfile.mkdtemp(prefix=f"record-{cli.name}-"))
        with serving(small_mission.brain if case == "mission-worker" else nothing) as server:
            code: int | None = 0
            if case == "mission-worker":
                text = mission(cli, prefix, server, place)
            else:
                server.fail(CASES[case])
                text, code = failing(cli, prefix, NOBODY if case == "no-network" else server.url, place)
        (top / f"{case}.{ending}").write_text(scrubbed(text, place, prefix))
        sys.stdout.write(f"{cli.name} {cli.version} {case}: exit {code}, {len(server.seen)} requests\n")
        sys.stdout.flush()
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    """PREFIX, then optional names of CLIs, then optional cases."""
    prefix, words = Path(sys.argv[1]), sys.argv[2:]
    names = [word for word in words if word in real.CLIS] or list(real.CLIS)
    cases = [word for word in words if word not in real.CLIS] or ["mission-worker", *CASES]
    for name in names:
        record(real.CLIS[name], prefix, cases)


if __name__ == "__main__":
    main()
