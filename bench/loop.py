"""What a turn of the built-in agent costs besides the model, from turn 1 to 500, durable; and what a mission sends.

    python bench/loop.py [--wires chat messages …] [--turns 500] [--rounds 2] [--mission] [--codex]

*All* is measured from outside: from the last byte of the server's answer to the last byte of the next request, received by a
process of its own on loopback; *CPU* is what this process used from one answer to the next, whatever else the machine does: the
answer is read and taken apart, a tool called (`read_file`), three rows appended, of which one is made durable, and a request of
the whole conversation made and sent. *Ours* is the part of it that is not the library and its HTTP client. Beside it, as a floor,
the same appends bare. Goal: CPU <= 5 ms, and flat. `--mission`: the todo example by the built-in agent, with the bytes it sent
and the share of them that an earlier request began with, too, which a prompt cache would serve; `--codex`: the same by codex,
installed with npm into a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from harness.builtin.loop import Limits
from harness.store import files
from tests.agents import real, todo_mission
from tests.agents.modelserver import Handler, Reply, Server, serving
from tests.agents.wires import Call
from tests.builtin.talking import MODELS, Bench, address
from tests.missions import House, surroundings

CALL = Reply("", call=Call("read_file", {"path": "a.txt"}))
WRITES_A_TURN = 3  # the request, the answer, the result
Mark = tuple[float, float]
WIDTH = 20  # turns around a point, of which the median counts


class Timed(Handler):
    """Keeps when a request was there, and when its answer was written."""

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        """The time of the last byte in, and of the last byte out."""
        times: list[float] = self.server.times  # type: ignore[attr-defined]  # of this benchmark's server alone
        reading = self.rfile.read

        def read(size: int) -> bytes:
            data = reading(size)
            times.append(time.monotonic())
            return data

        self.rfile.read = read  # type: ignore[method-assign, assignment]  # for one request
        super().do_POST()
        self.rfile.read = reading  # type: ignore[method-assign]  # as it was
        times.append(time.monotonic())


def serve(pipe: Connection, turns: int) -> None:
    """The model, in a process of its own, until the pipe says so; then its times."""
    server = Server(lambda exchange: CALL if exchange.turns < turns - 1 else Reply("Done."))
    server.RequestHandlerClass = Timed
    server.times = []  # type: ignore[attr-defined]  # of this benchmark alone
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pipe.send(server.url)
    pipe.recv()
    pipe.send((server.times, [len(one.body) for one in server.seen]))  # type: ignore[attr-defined]  # as above


class Watched:
    """A model that keeps when it was asked and had answered, and how long our own write in between took: in CPU time of this
    thread and of all of this process, which other programs do not lengthen."""

    def __init__(self, model: Any) -> None:
        self.model, self.parameters, self.calls = model, model.parameters, model.calls
        self.marks: list[list[Mark]] = []  # by turn: asked, write begun, write done, answered

    async def ask(self, request: Any, sent: Callable[[Any], None], alive: Callable[[], None]) -> Any:
        """As the model's own."""
        marks = [now()]

        def timed(what: Any) -> None:
            marks.append(now())
            sent(what)
            marks.append(now())

        answer = await self.model.ask(request, timed, alive)
        self.marks.append([*marks, now()])
        return answer

    def cpu(self) -> list[tuple[float, float]]:
        """CPU seconds of all of a turn, and of our part, by turn from the second on. (The last marks of a turn count: a request
        that is asked for once more has more.)"""
        found = []
        for before, after in zip(self.marks, self.marks[1:], strict=False):
            ours = after[0][0] - before[-1][0] + after[-2][0] - after[-3][0]
            found.append((after[-1][1] - before[-1][1], ours))
        return found


def now() -> Mark:
    """The CPU time of this thread, and of this process."""
    return time.thread_time(), time.process_time()


def measured(wire: str, folder: Path, turns: int) -> tuple[list[float], list[tuple[float, float]], float]:
    """(seconds besides the model, CPU seconds of all and of ours, by turn from the second on; turns.jsonl by the last request, in
    bytes)."""
    here, there = multiprocessing.Pipe()
    model = multiprocessing.get_context("spawn").Process(target=serve, args=(there, turns), daemon=True)
    model.start()
    url = here.recv() + ("/v1" if wire in ("chat", "responses") else "")
    watched: list[Watched] = []

    def wrap(inner: Any) -> Watched:
        watched.append(Watched(inner))
        return watched[0]

    bench = Bench(folder, wire=wire, limits=Limits(max_steps=turns + 1), wrap=wrap)
    (bench.folder / "a.txt").write_text("a line of a file as programs have it\n" * 20)
    talk = bench.talk(url)
    assert talk.end.outcome == "ok", talk.end
    here.send("end")
    times, sizes = here.recv()
    model.join()
    gaps = [after - before for before, after in zip(times[1::2], times[2::2], strict=False)]
    return gaps, watched[0].cpu(), (talk.folder / "turns.jsonl").stat().st_size / sizes[-1]


def floor(folder: Path) -> float:
    """Seconds of the appends of one turn, the median of 200."""
    path, found = str(folder / "floor"), []
    for _ in range(200):
        begun = time.monotonic()
        for _write in range(WRITES_A_TURN):
            files.add_line(path, b"x" * 500 + b"\n", quickly=_write > 0)
        found.append(time.monotonic() - begun)
    return statistics.median(found)


def turns(wires: list[str], count: int, rounds: int) -> None:
    """A row for each wire format and round."""
    points = (2, count // 5, count // 2, count - WIDTH)
    print(f"ms a turn besides the model, the median of {WIDTH} turns from that one on: all, CPU, of that ours\n")
    heads = "".join(f"{f'turn {point}':>22}" for point in points)
    print(f"{'':<11}{'floor':>8}{heads}{'turns.jsonl / last request':>30}")
    for wire in wires:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as name:
                low = floor(Path(name))
                gaps, own, ratio = measured(wire, Path(name), count)
            cells = ""
            for point in points:
                part = slice(point - 2, point - 2 + WIDTH)
                three = (gaps[part], [whole for whole, _ in own[part]], [ours for _, ours in own[part]])
                cells += f"{'{:.1f}  {:.1f}  {:.1f}'.format(*(1000 * statistics.median(one) for one in three)):>22}"
            print(f"{wire:<11}{1000 * low:>8.1f}{cells}{ratio:>30.2f}", flush=True)


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
    print("\nthe todo example to DONE, offline: what is sent to the model\n")
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
    """Both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wires", nargs="*", default=["chat", "messages"], choices=list(MODELS))
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--mission", action="store_true")
    parser.add_argument("--codex", action="store_true")
    asked = parser.parse_args()
    if asked.wires:
        turns(asked.wires, asked.turns, asked.rounds)
    if asked.mission or asked.codex:
        missions(asked.codex)


if __name__ == "__main__":
    main()
