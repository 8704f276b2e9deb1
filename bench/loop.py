"""What a mission of the built-in agent sends to its model: the todo example to DONE, offline.

    python bench/loop.py [--codex]

A row has the bytes that were sent, and the share of them that an earlier request began with, too, which a prompt cache would
serve; `--codex`: the same by codex, installed with npm into a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from tests.agents import real, todo_mission
from tests.agents.modelserver import Server, serving
from tests.builtin.talking import MODELS, address
from tests.missions import House, surroundings


def canonical(body: dict[str, Any]) -> str:
    """A request in the order in which vendors cache it: tools, system, messages."""
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    system = body.get("instructions") or body.get("system") or body.get("systemInstruction") or ""
    return json.dumps([body.get("tools"), system, *messages])


def mission(name: str, settings: Callable[[House, Server], str], path: str = "") -> None:
    """The todo example to DONE, and a row of what was sent."""
    with tempfile.TemporaryDirectory() as top, serving(todo_mission.brain()) as server:
        house = House(Path(top), surroundings(Path(top)))
        todo_mission.lay(house.project)
        house.git("init", "-q", "-b", "main", "--template=")
        house.program("init")
        (house.state / "config.toml").write_text(settings(house, server))
        env = {**house.env, **({"PATH": path + os.pathsep + house.env["PATH"]} if path else {})}
        begun = time.monotonic()
        done = subprocess.run([str(HERE / "run.sh")], cwd=house.project, env=env, capture_output=True, text=True)
        seconds, bodies = time.monotonic() - begun, [one.body for one in server.seen if one.body]
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    texts = [canonical(json.loads(body)) for body in bodies]
    served, before = 0, list[str]()
    for text in texts:
        served += max((len(os.path.commonprefix((text, one))) for one in before[-60:]), default=0)  # noqa: RUF071 - of texts
        before.append(text)
    whole = sum(map(len, texts))
    runs = done.stdout.count("> NEXT")
    print(
        f"{name:<11}{runs:>6}{len(bodies):>10}{whole:>12,}{whole // len(bodies):>12,}{served / whole:>10.0%}{seconds:>9.0f}"
    )


def missions(with_codex: bool) -> None:
    """The todo example by the built-in agent, and by codex where npm can install it."""
    print("the todo example to DONE, offline: what is sent to the model\n")
    print(f"{'':<11}{'runs':>6}{'requests':>10}{'bytes':>12}{'a request':>12}{'cached':>10}{'seconds':>9}")

    def own(_: House, server: Server) -> str:
        table = f'model = "{MODELS["responses"]}"\nbase_url = "{address(server, "responses")}"\n'
        return f'agent = "builtin"\ntrust = "workspace"\n[agents.builtin]\n{table}'

    mission("builtin", own)
    if not with_codex:
        return
    if shutil.which("npm") is None:
        print("codex: skipped, npm is not on the PATH")
        return
    with tempfile.TemporaryDirectory(dir=HERE) as place:
        try:
            real.install(real.CODEX, Path(place))
        except (subprocess.CalledProcessError, OSError) as fault:
            print(f"codex: skipped, npm cannot install it: {fault}")
            return

        def codex(house: House, server: Server) -> str:
            home = house.folder / "cli"
            real.configure(real.CODEX, home, server.url)
            return real.settings(real.CODEX, Path(place), home, server.url)

        mission("codex", codex, str(real.folder(real.CODEX, Path(place))))


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--codex", action="store_true")
    missions(parser.parse_args().codex)


if __name__ == "__main__":
    main()
