"""Two users, two processes and one template over Redis, then over PostgreSQL; one process is killed, the other goes on.

    make demo-store

The servers run on loopback in temporary folders, and end with this program. The model is the simulated one: no key, no network.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from harness import Config, HarnessAgent, SimulatedCall, SimulatedModel
from harness.stores.urls import open_store
from tests.stores import servers

TEMPLATE = HOME / "examples/store"
USERS = ("ann", "bob")
SECRET = "secret-of-"  # and the user: in the files and the memory of each
SECONDS = 55  # after which it gives up
INSTALL = "apt install redis-server postgresql; make setup"
TOGETHER = 5  # calls of one session by each process, at once
STRAYS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "../OTHER/_files/plan.txt"}),
    ("read_file", {"path": "/OTHER/_files/plan.txt"}),
    ("read_file", {"path": "knowledge/../../OTHER/_files/plan.txt"}),
    ("list_files", {"path": "/.."}),
    ("glob_files", {"pattern": "**/*"}),
    ("grep_files", {"pattern": SECRET}),
    ("memory_search", {"query": "secret word"}),
    ("session_search", {"query": "secret word"}),
]


def launch(rocket: str) -> str:
    """Launch a rocket."""
    print(json.dumps({"begun": rocket}), flush=True)
    time.sleep(SECONDS)
    return "launched"


def work(url: str, template: str) -> None:
    """One of the two processes: each line of input is a call, each line of output what became of it."""
    model = SimulatedModel()
    config = Config(placement=f"store:{url}")
    with HarnessAgent("assistant", model, workspace=template, tools=[launch], config=config) as agent:
        for line in sys.stdin:
            order = json.loads(line)
            model.answers[:] = [*(SimulatedCall(name=name, arguments=given) for name, given in order["calls"]), "Done."]
            model.requests.clear()
            of = {"user_id": order["user"], "session_id": "log"}
            reply = agent.resume_sync(**of) if order["resume"] else agent.call_sync("Go on.", **of)
            newest = model.requests[-1] if reply else None
            words = [str(one.get("text", "")) for one in newest.messages] if newest else []
            results = [str(one["text"]) for one in newest.messages if one["role"] == "tool"] if newest else []
            said = {
                "outcome": reply.outcome if reply else "",
                "system": newest.system if newest else "",
                "words": words,
            }
            print(json.dumps({**said, "results": results[len(results) - len(order["calls"]) :]}), flush=True)


class Child:
    """A process of this program that takes an order a line, and answers each with a line."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def order(self, order: object) -> None:
        """Send one."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """The next line that it prints."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


class Worker(Child):
    """The other side of `work`: a process that serves both users."""

    def send(self, user: str, *calls: tuple[str, dict[str, Any]], resume: bool = False) -> None:
        """Begin a call in which the model calls these tools."""
        self.order({"user": user, "calls": calls, "resume": resume})

    def call(self, user: str, *calls: tuple[str, dict[str, Any]], resume: bool = False) -> Any:
        """Both."""
        self.send(user, *calls, resume=resume)
        return self.receive()


@contextlib.contextmanager
def running(url: str, template: Path) -> Iterator[tuple[Worker, Worker]]:
    """Two processes over one store."""
    words = (__file__, url, str(template))
    made = Worker(*words), Worker(*words)
    try:
        yield made
    finally:
        for one in made:
            one.kill()


def shown(url: str, template: Path) -> dict[str, str]:
    """{what is promised: what was seen, beginning with "no" if it does not hold}."""
    before = contents(template)
    with running(url, template) as (first, second):
        found = own_files(first, second) | strays(first, second) | one_session(first, second) | killed(first, second)
    found["a user's values in the store name only that user"] = yes(not leaked(url))
    found["the template on disk is as it was"] = yes(contents(template) == before)
    return found


def own_files(first: Worker, second: Worker) -> dict[str, str]:
    """Each writes in one process, and reads in the other."""
    for user, one in zip(USERS, (first, second), strict=True):
        wrote = ("write_file", {"path": "plan.txt", "content": f"{SECRET}{user}"})
        one.send(user, wrote, ("memory_save", {"text": f"The secret word of this person is {SECRET}{user}."}))
    wrote_both = [one.receive()["outcome"] for one in (first, second)]
    read = ("read_file", {"path": "plan.txt"}), ("read_file", {"path": "knowledge/KNOWLEDGE.md"})
    saw = {user: one.call(user, *read) for user, one in zip(USERS, (second, first), strict=True)}
    return {
        "files and memory that one process wrote, the other reads": yes(
            wrote_both == ["ok", "ok"]
            and all(SECRET + user in one["results"][0] and SECRET + user in one["system"] for user, one in saw.items())
        ),
        "both users have the template's AGENTS.md and knowledge": yes(
            all("flight log" in one["system"] and "tower" in one["results"][1] for one in saw.values())
        ),
    }


def strays(first: Worker, second: Worker) -> dict[str, str]:
    """Each tries to reach the other's, in both processes."""
    tried, seen = 0, 0
    for user, other in zip(USERS, reversed(USERS), strict=True):
        for one in (first, second):
            calls = [
                (name, {key: text.replace("OTHER", other) for key, text in given.items()}) for name, given in STRAYS
            ]
            answer = one.call(user, *calls)
            tried += len(answer["results"])
            seen += SECRET + other in json.dumps(answer)
    return {"attempts to read the other user's": f"{'no, ' if seen else ''}{tried} attempts, {seen} succeeded"}


def one_session(first: Worker, second: Worker) -> dict[str, str]:
    """Both processes call in the same session at the same time."""
    for _ in range(TOGETHER):
        for one in (first, second):
            one.send("ann")
    lengths = sorted(len(one.receive()["words"]) for one in (first, second) for _ in range(TOGETHER))
    is_row = lengths == list(range(lengths[0], lengths[0] + 4 * TOGETHER, 2))
    return {"calls of one session by both at once, each after the other": yes(is_row, f"{2 * TOGETHER}")}


def killed(first: Worker, second: Worker) -> dict[str, str]:
    """One process is killed in the middle of a call of ann's."""
    first.send("ann", ("launch", {"rocket": "Heron"}))
    assert first.receive() == {"begun": "Heron"}
    first.kill()
    begun = time.monotonic()
    bob = second.call("bob", ("read_file", {"path": "plan.txt"}))
    ann = second.call("ann", ("read_file", {"path": "plan.txt"}), resume=True)
    took = f"after {time.monotonic() - begun:.1f} s"
    unknown = any("Nobody knows how it ended" in text for text in ann["words"])
    return {
        "one process is killed in a call: the other serves bob": yes(bob["outcome"] == "ok"),
        "... and `resume` takes ann's call up": yes(
            ann["outcome"] == "ok" and SECRET + "ann" in ann["results"][0], took
        ),
        "... and says that the result of its tool is unknown": yes(unknown),
    }


def leaked(url: str) -> list[str]:
    """The values in the store that have another user's secret."""
    store = open_store(url)
    pairs = zip(USERS, reversed(USERS), strict=True)
    found = [(key, other, store.get(key)) for user, other in pairs for key in store.list((user,))]
    assert len(found) > 2 * TOGETHER
    return [store.describe(key) for key, other, value in found if value and (SECRET + other).encode() in value.data]


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def yes(holds: bool, more: str = "") -> str:
    """How the table says it."""
    return (more or "yes") if holds else f"no {more}".rstrip()


def give_up(number: int, frame: FrameType | None) -> None:
    """SIGALRM."""
    raise TimeoutError(f"It took more than {SECONDS} seconds.")


def main() -> int:
    """The whole demo; 69 if something has to be installed first, 1 if something does not hold."""
    if why := [text for name in ("redis", "postgres") if (text := servers.missing(name))]:
        print(f"{', '.join(why)}: {INSTALL}", file=sys.stderr)
        return os.EX_UNAVAILABLE
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    begun, table = time.monotonic(), dict[str, dict[str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        template = Path(shutil.copytree(TEMPLATE, f"{folder}/template"))
        starts: dict[str, Callable[[], contextlib.AbstractContextManager[servers.Server]]] = {
            "redis": lambda: servers.redis(Path(folder)),
            "postgresql": servers.postgres,
        }
        for name, start in starts.items():
            with start() as server:
                table[name] = shown(server.url, template)
    print(
        f"Two users (ann, bob), two processes, one template (examples/store)\n\n{'':60}"
        + "".join(f"{name:28}" for name in table)
    )
    for row in table["redis"]:
        print(f"{row:60}" + "".join(f"{found[row]:28}" for found in table.values()).rstrip())
    print(f"\n{time.monotonic() - begun:.0f} seconds. docs/places.md has the one line of configuration that does this.")
    return int(any(cell.startswith("no") for found in table.values() for cell in found.values()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(*sys.argv[1:])
    else:
        sys.exit(main())
