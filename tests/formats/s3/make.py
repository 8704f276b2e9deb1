"""Golden sessions as the harness of COMMIT writes them: makes sessions.tar.gz in this folder. README.md says what is in it.

    PYTHONPATH=. python tests/formats/s3/make.py

It copies COMMIT from this repository's history to a temporary folder, and runs itself there. Offline.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.builtin.sessions._compaction import Compact
from harness.builtin.sessions.keys import session_keys
from harness.builtin.tools.tool import ALWAYS
from harness.stores import gate
from harness.stores import log as logs
from harness.stores.store import Store
from harness.stores.urls import open_store
from harness.workspace.rules import ToolRules
from tests.agents.modelserver import Reply
from tests.agents.wires import Exchange
from tests.builtin.sessions.talking import disk, said
from tests.builtin.talking import Apart, calling, serving

COMMIT = "353e5fb5dc59314a3bc76dc888462bed7b24ce49"
HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[2]
AGENTS = "The person is patient.\n"
SOON = Compact(messages=14, keep_tokens=120)
SUMMARY = "The person wants a heron.\n\nKEEP: The person draws herons."
TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("todo_write", {"todos": [{"content": "draw the heron", "status": "in_progress"}]}),
    ("write_file", {"path": "heron.txt", "content": "grey\n"}),
    ("memory_save", {"text": "The person likes herons."}),
)
CHILD = "--in-checkout"


def brain(exchange: Exchange) -> Reply:
    """Use each tool once, then talk; sum up where that is asked."""
    if "Sum it up now." in exchange.text:
        return Reply(SUMMARY)
    if "use your tools" in exchange.text and len(exchange.results) < len(TOOLS):
        return calling(*TOOLS[len(exchange.results)])
    return Reply(f"answer {exchange.turns}, and ä")


def talk(folder: Path, server: Apart, store: Store) -> None:
    """The sessions of two users in a store."""
    more: dict[str, Any] = {"store": store, "compact": SOON}
    rules = ToolRules(ask=["write_file"])
    said(folder, server, "use your tools", rules=rules, ask=lambda question, stopped: ALWAYS, **more)
    said(folder, server, *(f"message {number} about the river" for number in range(6)), **more)
    said(folder, server, "of another", session="../odd ID", user="Bob", **more)


def interrupt(folder: Path, server: Apart, store: Store) -> None:
    """A session whose second call was interrupted, and whose third call was killed while a tool was at work."""
    keys = session_keys("alice", "cut")

    def stopped(exchange: Exchange) -> Reply:
        gate.stop(store, keys.gate, "Enough for now.")
        time.sleep(2)
        return Reply("too late")

    def wait_long() -> str:
        """Wait for a long time."""
        time.sleep(600)
        return "waited"

    more: dict[str, Any] = {"store": store, "session": "cut", "tools": [wait_long]}
    said(folder, server, "hello", **more)
    server.brain = stopped
    said(folder, server, "take your time", **more)
    server.brain = lambda exchange: calling("wait_long", {})
    pid = os.fork()
    if not pid:
        said(folder, server, "wait for me", **more)
        os._exit(1)
    until(lambda: b'"begins"' in logs.read(store, keys.log).data)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    server.brain = brain


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    raise SystemExit("it does not hold within a minute")


def fill(folder: Path) -> None:
    """Both stores, in a folder; the harness of this process writes them."""
    (folder / "AGENTS.md").write_text(AGENTS)
    os.environ["XDG_STATE_HOME"] = str(folder.parent / "state")
    with serving(brain) as server:
        for store in (disk(folder), open_store(f"sqlite://{folder}/sessions.db")):
            talk(folder, server, store)
            interrupt(folder, server, store)


def main() -> None:
    """Make the archive again: other times and numbers of processes."""
    if CHILD in sys.argv:
        fill(Path(sys.argv[-1]))
        return
    with tempfile.TemporaryDirectory() as top:
        folder, checkout = Path(top) / "folder", Path(top) / "checkout"
        for one in (folder, checkout):
            one.mkdir()
        packed = subprocess.run(["git", "archive", COMMIT], cwd=CHECKOUT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=checkout, input=packed, check=True)
        env = {**os.environ, "PYTHONPATH": str(checkout)}
        subprocess.run([sys.executable, __file__, CHILD, str(folder)], cwd=checkout, env=env, check=True)
        with tarfile.open(HERE / "sessions.tar.gz", "w:gz") as archive:
            for name in ("AGENTS.md", ".harness/sessions", "sessions.db"):
                archive.add(folder / name, name)


if __name__ == "__main__":
    main()
