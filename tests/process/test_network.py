"""A network of a run's own: loopback among its programs, nothing else; gone with the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness.process import network, supervise, tree
from harness.process.confine import BUBBLEWRAP, Confinement, Glass
from tests.honest import needs_glass
from tests.missions import until

ENV = {"PATH": os.environ["PATH"]}
SERVE = (
    "import http.server as s; h = s.HTTPServer(('127.0.0.1', 8731), s.SimpleHTTPRequestHandler); "
    "open('ready', 'w'); h.serve_forever()"
)
ASK = "exec 3<>/dev/tcp/127.0.0.1/8731 && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && head -1 <&3"


def confined(tmp_path: Path, holder: int) -> Confinement:
    python = [sys.prefix, sys.base_prefix]  # wherever this interpreter lies
    return Confinement(glass=Glass(writable=[str(tmp_path)], readable=python), tier=BUBBLEWRAP, holder=holder)


def answer(tmp_path: Path, holder: int, command: str) -> tuple[int | None, bytes]:
    said: list[bytes] = []
    ended = supervise.run(
        ["bash", "-c", command],
        cwd=str(tmp_path),
        env=ENV,
        wall_seconds=20,
        sink=lambda _, chunk: said.append(chunk),
        confine=confined(tmp_path, holder),
    )
    return ended.exit, b"".join(said)


def test_programs_of_a_run_reach_each_other_and_nothing_else(tmp_path: Path) -> None:
    needs_glass()
    holder = network.hold()
    words = [sys.executable, "-c", SERVE]
    glass = confined(tmp_path, holder)
    with supervise.Child(words, cwd=str(tmp_path), env=ENV, wall_seconds=60, grace_seconds=0.0, confine=glass):
        until((tmp_path / "ready").exists)
        assert b"200 OK" in answer(tmp_path, holder, ASK)[1]
        assert answer(tmp_path, 0, ASK)[0] != 0, "the machine's own loopback does not see it"
        other = network.hold()
        assert answer(tmp_path, other, ASK)[0] != 0, "nor does another run"
    code, interfaces = answer(tmp_path, holder, "tail -n +3 /proc/net/dev | cut -d: -f1")
    assert (code, interfaces.split()) == (0, [b"lo"])


def test_the_holder_ends_with_the_process_that_made_it(tmp_path: Path) -> None:
    needs_glass()
    program = "from harness.process import network; print(network.hold(), flush=True)"
    root = str(Path(__file__).resolve().parent.parent.parent)
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    holder = int(done.stdout)
    until(lambda: tree.stat(holder)[:1] in ([], [b"Z"]))
