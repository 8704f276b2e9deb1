"""Three users, two spaces and three threads of a team, two of them at once, over PostgreSQL and S3; agents are killed.

    make demo-team              # PostgreSQL and a server of S3 on loopback, in temporary folders
    SQLITE=1 make demo-team     # the same over SQLite and a folder

Everything ends with this program. The model is the simulated one: no key, no network.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HOME), str(HOME / "examples")]

from demo_store import Child, give_up, yes

from harness import HarnessAgent, SimulatedCall, SimulatedModel
from harness.filesystem.local import Local
from harness.stores.database import open_database
from harness.stores.store import Key
from harness.stores.urls import open_store
from harness.team import directory, status
from harness.team.database import Attribution, Team, migrate, open_team
from harness.team.turn import TurnTask, run_turn
from tests.stores import servers
from tests.team.workspaces import CountingStore, read, stored, write

SECONDS = 110  # after which it gives up
TENANT, ROLE = "acme", "clerk"
OPS = Attribution(who="ops", why="the demo")
SPACES = {"sales": ("ann", "bob"), "design": ("cyn",)}
THREADS = {"deal": ("ann", "sales"), "offer": ("bob", "sales"), "logo": ("cyn", "design")}
PRICES = "large 10\nmedium 8\nsmall 6\n"
FILES = {
    "agents/scribe/AGENTS.md": "You keep the files of a small company.\n",
    "spaces/sales/docs/prices.md": PRICES,
    "spaces/sales/docs/terms.md": "Pay in 30 days.\n",
    "spaces/design/docs/logo.md": "A heron.\n",
    **{f"users/{user}/USER.md": f"This is {user}.\n" for user in ("ann", "bob", "cyn")},
}
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OUTCOMES = ("accepted", "merged", "conflict", "refused", "quarantined")
Call = tuple[str, dict[str, Any]]
PAUSE: Call = ("pause", {})


def put(path: str, content: str) -> Call:
    """The call that writes a file."""
    return "write_file", {"path": path, "content": content}


def replace(path: str, content: str) -> list[Call]:
    """The calls that replace a file that is there."""
    return [("read_file", {"path": path}), put(path, content)]


class Halting(CountingStore):
    """A store whose process stops for good where it would write the file of this name, for somebody to kill it."""

    name = ""

    def put(self, key: Key, data: bytes, expect: str) -> str:
        """See Store."""
        if key[-1] == self.name:
            say(halted=self.name)
            time.sleep(SECONDS)
        return super().put(key, data, expect)


def say(**row: object) -> None:
    """Answer with a line."""
    print(json.dumps(row), flush=True)


def pause() -> str:
    """Wait until the person says go on."""
    say(paused="in the middle of a turn")
    return sys.stdin.readline()


def work(database: str, sources: str, root: str) -> None:
    """A process that runs turns: each line of input is one, each line of output what became of it."""
    team, store = open_team(database), Halting(open_store(sources))
    for line in sys.stdin:
        order, prompts = json.loads(line), list[str]()
        store.name = order["halt"]

        def answer(task: TurnTask, order: Any = order, prompts: list[str] = prompts) -> str:
            prompts.append(task.prompt)
            calls = [SimulatedCall(name=name, arguments=given) for name, given in order["calls"]]
            with HarnessAgent(
                "scribe",
                SimulatedModel(*calls, "Done."),
                workspace=task.folder,
                store=f"{root}/sessions",
                filesystem=lambda *_: Local(task.folder),
                tools=[*task.tools, pause],
            ) as agent:
                return agent.call_sync(task.prompt, session_id=task.thread, user_id=task.user).text

        done = run_turn(team, store, TENANT, order["thread"], f"{root}/threads", "Go on.", answer)
        say(**{**done.asdict(), "files": [one.asdict() for one in done.files]}, prompt=prompts[0])


class Office:
    """The team, its processes, and what became of every turn."""

    def __init__(self, database: str, sources: str, root: Path) -> None:
        self.words, self.root = (__file__, database, sources, str(root)), root
        self.team, self.store = open_team(database), open_store(sources)
        self.turns, self.children = list[tuple[str, list[Any]]](), list[Child]()

    def begin(self, thread: str, *calls: Call, halt: str = "") -> Child:
        """A process with one turn of a thread, in which the model calls these tools."""
        child = Child(*self.words)
        self.children.append(child)
        child.order({"thread": thread, "calls": calls, "halt": halt})
        return child

    def end(self, thread: str, child: Child) -> Any:
        """Let a turn that pauses go on to its end; returns what became of it."""
        child.order("go on")
        return self.ended(thread, child)

    def ended(self, thread: str, child: Child) -> Any:
        """What became of a turn."""
        found = child.receive()
        for one in found["continued"]:
            rows = (self.folder(thread) / f"finalizes/{one}.jsonl").read_text().splitlines()
            self.turns.append((thread, [row for row in map(json.loads, rows) if row["outcome"] in OUTCOMES]))
        self.turns.append((thread, found["files"]))
        return found

    def folder(self, thread: str) -> Path:
        """The folder of a thread on the machine."""
        with self.team.transaction(TENANT) as tx:
            return self.root / "threads" / str(directory.thread(tx, thread)["id"])

    def workspace(self, thread: str) -> Path:
        """The folder that its agent works in."""
        return self.folder(thread) / "workspace"

    def source(self, path: str) -> str:
        """A file of a source."""
        return read(self.store, path) or ""


def fill(team: Team, office: Office) -> None:
    """Who there is, what they may, and their files."""
    with team.transaction(TENANT) as tx:
        for kind, names in (("agent", ["scribe"]), ("user", ["ann", "bob", "cyn"]), ("space", [*SPACES])):
            for name in names:
                directory.add(tx, kind, name, OPS)
        for space, users in SPACES.items():
            for who in ("scribe", *users):
                directory.grant(tx, who, space, "write", OPS)
        for thread, (user, space) in THREADS.items():
            directory.add(tx, "thread", thread, OPS, {"agent": "scribe", "user": user, "space": space})
        status.add_goal(tx, "deal", "Sign the contract", status.ReviewPolicy(), Attribution(who="ann"))
        status.add_task(tx, "G-1", "Agree on the prices", Attribution(who="ann"))
    for path, text in FILES.items():
        write(office.store, path, text)


def two_at_once(office: Office) -> dict[str, str]:
    """Two threads change the same files of one space: both have begun before either ends."""
    ann = office.begin(
        "deal",
        *replace("Space/docs/prices.md", PRICES.replace("10", "12")),
        *replace("Space/docs/terms.md", "Pay in 14 days.\n"),
        put("DECISIONS.md", "- large is 12\n"),
        ("task_status", {"task": "T-2", "verb": "done", "why": "ann agreed"}),
        PAUSE,
    )
    bob = office.begin(
        "offer",
        *replace("Space/docs/prices.md", PRICES.replace("6", "5")),
        *replace("Space/docs/terms.md", "Pay in 60 days.\n"),
        put("Space/docs/access.md", f"token: {SECRET}\n"),
        PAUSE,
    )
    both = [child.receive() for child in (ann, bob)]
    shown = {path: names(office.workspace("deal") / path) for path in (".", "Space/docs")}
    office.end("deal", ann)
    office.end("offer", bob)
    (beside,) = [text for path, text in stored(office.store).items() if "terms.conflict-" in path] or [""]
    return {
        "two threads run at once, each in a process of its own": yes(all("paused" in one for one in both)),
        "each workspace shows its own user, and the files of its space": yes(
            shown["."] == {"AGENTS.md", "USER.md", "GOAL.md", "PROGRESS.md", "DECISIONS.md", "Space", "memory"}
            and shown["Space/docs"] == {"prices.md", "terms.md"}
            and (office.workspace("deal") / "USER.md").read_text() == FILES["users/ann/USER.md"]
            and (office.workspace("offer") / "USER.md").read_text() == FILES["users/bob/USER.md"]
        ),
        "both change one file in other lines: it has both": yes(
            office.source("spaces/sales/docs/prices.md") == "large 12\nmedium 8\nsmall 5\n"
        ),
        "... in the same line: the later one is in a file beside it": yes(
            office.source("spaces/sales/docs/terms.md") == "Pay in 14 days.\n" and beside == "Pay in 60 days.\n"
        ),
        "a secret is in quarantine, and in no source": yes(
            not any(SECRET in text for text in stored(office.store).values())
            and kept(office, "offer", "quarantine") == [f"token: {SECRET}\n"]
        ),
        "a task that a tool ended is done, and PROGRESS.md says so": yes(
            task(office) == "done" and "[x] T-2" in (office.workspace("deal") / "PROGRESS.md").read_text()
        ),
    }


def revoked(office: Office) -> dict[str, str]:
    """Cyn's grant is taken back between compose and finalize."""
    cyn = office.begin(
        "logo",
        *replace("Space/docs/logo.md", "A crane.\n"),
        put("memory/taste.md", "Cyn likes cranes.\n"),
        PAUSE,
    )
    cyn.receive()
    progress = office.workspace("logo") / "PROGRESS.md"
    progress.chmod(0o644)
    progress.write_text("All is done.\n")
    with office.team.transaction(TENANT) as tx:
        directory.grant(tx, "cyn", "design", "", OPS)
    office.end("logo", cyn)
    return {
        "access is revoked between compose and finalize: the space is as it was": yes(
            office.source("spaces/design/docs/logo.md") == FILES["spaces/design/docs/logo.md"]
        ),
        "... what the agent wrote is kept, and its user's own note is accepted": yes(
            "A crane.\n" in kept(office, "logo", "refused")
            and office.source("users/cyn/memory/taste.md") == "Cyn likes cranes.\n"
        ),
        "text that is written into PROGRESS.md changes nothing": yes(
            "All is done." not in office.source("threads/logo/PROGRESS.md")
            and "All is done.\n" in kept(office, "logo", "refused")
        ),
    }


def killed(office: Office) -> dict[str, str]:
    """One agent is killed between two files of its finalize, one while it thinks; the next runs go on."""
    files = [put("Space/docs/plan.md", "Call.\n"), put("Space/docs/visit.md", "On Monday.\n")]
    ann = office.begin("deal", *files, halt="visit.md")
    bob = office.begin("offer", put("Space/docs/half.md", "Half a sen"), PAUSE)
    found = [child.receive() for child in (ann, bob)]
    ann.kill()
    bob.kill()
    sources = stored(office.store)
    again = office.ended("deal", office.begin("deal"))
    offer = office.ended("offer", office.begin("offer", put("Space/docs/half.md", "A whole sentence.\n")))
    names = ("plan.md", "visit.md")
    return {
        "killed between two files of its finalize: the next run finishes the turn": yes(
            "halted" in found[0]
            and sum(path.endswith(names) for path in sources) == 1
            and len(again["continued"]) == 1
            and [office.source(f"spaces/sales/docs/{name}") for name in names] == ["Call.\n", "On Monday.\n"]
        ),
        "killed while it thinks: no half file is in a source, and it is kept": yes(
            not any(path.endswith("half.md") for path in sources)
            and office.source("spaces/sales/docs/half.md") == "A whole sentence.\n"
            and "Half a sen" in kept(office, "offer", "refused")
        ),
        "the next prompt names what was not taken, and not the secret": yes(
            "Space/docs/terms.md: conflict. " in offer["prompt"]
            and "Space/docs/access.md: quarantined. " in offer["prompt"]
            and SECRET not in offer["prompt"]
        ),
    }


def names(folder: Path) -> set[str]:
    """What is in a folder."""
    return {path.name for path in folder.iterdir()}


def kept(office: Office, thread: str, kind: str) -> list[str]:
    """The contents that were kept beside a workspace."""
    return [path.read_text() for path in (office.folder(thread) / kind).rglob("*") if path.is_file()]


def task(office: Office) -> str:
    """The status of the one task, in the database."""
    with office.team.transaction(TENANT) as tx:
        return str(status.list_rows(tx, "deal", "task")[0]["status"])


def shown(turns: list[tuple[str, list[Any]]]) -> str:
    """The table of what became of each file, a turn a line, and a line for each that no source took in its place."""
    lines = [f"{'turn':24}" + "".join(f"{one:>13}" for one in OUTCOMES)]
    total, reasons = Counter[str](), list[str]()
    for thread, files in turns:
        count = Counter(one["outcome"] for one in files)
        total += count
        title = f"{thread}: {THREADS[thread][0]} in {THREADS[thread][1]}"
        lines.append(f"{title:24}" + "".join(f"{count[one] or '.':>13}" for one in OUTCOMES))
        reasons += [f"  {one['path']}: {one['outcome']}. {one['why']}" for one in files if one["why"]]
    return "\n".join([*lines, f"{'all':24}" + "".join(f"{total[one]:>13}" for one in OUTCOMES), "", *reasons])


@contextlib.contextmanager
def on_servers(folder: Path) -> Iterator[tuple[str, str]]:
    """(URL of the database, URL of the sources) on servers of our own; the role of the team is no superuser."""
    with servers.postgres() as database, servers.s3(folder) as objects:
        with open_database(database.url).transaction() as execute:
            execute(f"create role {ROLE} login")
        migrate(database.url, ROLE)
        yield database.url.replace("tests@", f"{ROLE}@"), objects.url.replace("PREFIX", "team")


@contextlib.contextmanager
def on_disk(folder: Path) -> Iterator[tuple[str, str]]:
    """The same on SQLite and a folder."""
    url = f"sqlite://{folder}/team.db"
    migrate(url)
    yield url, f"file://{folder}/sources"


def main() -> int:
    """The whole demo; 69 if something has to be installed first, 1 if something does not hold."""
    start: Callable[[Path], contextlib.AbstractContextManager[tuple[str, str]]] = on_servers
    if os.environ.get("SQLITE"):
        start = on_disk
    elif why := [text for name in ("postgres", "s3") if (text := servers.missing(name))]:
        print(f"{', '.join(why)}: apt install postgresql; make setup, or: SQLITE=1 make demo-team", file=sys.stderr)
        return os.EX_UNAVAILABLE
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name, start(Path(name)) as (database, sources):
        team = open_team(database)
        team.add_tenant(TENANT)
        office = Office(database, sources, Path(name) / "machine")
        fill(team, office)
        try:
            found = two_at_once(office) | revoked(office) | killed(office)
        finally:
            for child in office.children:
                child.kill()
    print(f"Three users, two spaces, two threads at once: {start.__name__.replace('_', ' ')}\n\n{shown(office.turns)}\n")
    for promise, holds in found.items():
        print(f"{promise:76}{holds}")
    print(f"\n{time.monotonic() - begun:.0f} seconds. docs/team.md says how a turn goes.")
    return int("no" in found.values())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(*sys.argv[1:])
    else:
        sys.exit(main())
