"""Where an agent works, by one line of configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import SimulatedCall
from harness.base.errors import UsageFault
from harness.builtin.sessions import _placement
from harness.filesystem.keyvalue import KeyValueFiles
from harness.process import confine
from harness.stores.memory import MemoryStore
from harness.stores.urls import open_store
from tests.builtin.simulating import Program
from tests.filesystem.places import NO_BUBBLEWRAP
from tests.missions import CHECKOUT, House

pytestmark = pytest.mark.on_disk


def calls(*found: tuple[str, dict[str, Any]]) -> list[SimulatedCall]:
    """These calls of tools, in one answer."""
    return [SimulatedCall(name=name, arguments=arguments) for name, arguments in found]


def program(folder: Path, url: str, *answers: Any, **more: Any) -> Program:
    """An agent whose place is a store."""
    return Program(folder, *answers, store=None, placement=f"store:{url}", **more)


def test_a_place_is_one_of_four_lines(tmp_path: Path) -> None:
    """What is none says which there are."""
    assert _placement.parse("store:memory:x").address == "memory:x" and _placement.parse("local").kind == "local"
    assert [_placement.parse(one).is_shared for one in ("sandbox", "sandbox:ssh host")] == [False, True]
    for wrong in ("", "store", "local:x", "cloud", "store:", "sandbox:", "sandbox: ", "sandboxes"):
        with pytest.raises(UsageFault, match="Write local, store:URL, sandbox or sandbox:PREFIX"):
            _placement.parse(wrong)


@pytest.mark.parametrize(
    ("name", "given", "place"),
    [
        ("store", MemoryStore(), "store:memory:x"),
        ("filesystem", lambda user, session: KeyValueFiles(MemoryStore(), (user,)), "store:memory:x"),
        ("filesystem", lambda user, session: KeyValueFiles(MemoryStore(), (user,)), "sandbox"),
    ],
)
def test_what_a_placement_says_too_is_refused(tmp_path: Path, name: str, given: object, place: str) -> None:
    """Neither of the two is ignored; both names are in the error."""
    with pytest.raises(UsageFault, match=f"Both `{name}` and the placement {place} say"):
        Program(tmp_path, placement=place, **{"store": None, name: given})


def test_the_configuration_of_a_folder_has_one_place_for_sessions(house: House) -> None:
    """`store` beside a placement that is a store ends with 64."""
    house.config(
        "[agents.builtin]",
        'model = "openai:gpt-5.2"',
        'store = "memory:"',
        f'placement = "store:sqlite://{house.folder}/db"',
    )
    for words in (["ask", "hi"], ["sessions", "list"]):
        done = house.harness(*words, OPENAI_API_KEY="x")
        assert (done.code, "Both `store` and the placement store:sqlite://" in done.err) == (64, True), done


def test_a_store_has_the_files_the_memory_and_the_sessions_of_two_processes(tmp_path: Path) -> None:
    """What one writes the other reads; the folder of the workspace stays as it is, and there is no shell."""
    url, work = f"sqlite://{tmp_path}/db", tmp_path / "work"
    (work / "knowledge").mkdir(parents=True)
    (work / "knowledge/KNOWLEDGE.md").write_text("of the folder\n")
    (work / "AGENTS.md").write_text("Be brief.\n")
    before = sorted(work.rglob("*"))
    wrote = calls(("write_file", {"path": "a.txt", "content": "A"}), ("memory_save", {"text": "They like tea very much."}),
                  ("write_file", {"path": "knowledge/x.md", "content": "X"}))  # fmt: skip
    with program(work, url, wrote, "done") as one:
        one.call_sync("go", user_id="ann")
        assert "execute" not in [tool["name"] for tool in one.simulated.requests[0].tools]
        assert [text.split(" ")[0] for text in one.results()[:2]] == ["Created", "Kept."] or one.results()
        refused = one.results()[2]
    read = calls(("read_file", {"path": "a.txt"}), ("read_file", {"path": "knowledge/KNOWLEDGE.md"}))
    with program(work, url, read, "done") as two:
        two.call_sync("and?", user_id="ann", session_id="other")
        system = two.simulated.requests[0].system
        found = two.results()
    assert "read-only" in refused and "A" in found[0] and "of the folder" in found[1]
    assert "They like tea" in system and "Be brief." in system
    assert [path for path in sorted(work.rglob("*")) if ".harness" not in path.parts] == before


def test_the_workspace_in_the_store_lies_over_that_of_the_folder(tmp_path: Path) -> None:
    """A change of it counts at the next call of every process."""
    (tmp_path / "AGENTS.md").write_text("Old words.\n")
    with program(tmp_path, "memory:", "a", "b") as one:
        one.call_sync("hi", user_id="ann")
        KeyValueFiles(one.store, ("_workspace",)).write("AGENTS.md", b"New words.\n")
        one.source._known.clear()  # it looks at most twice a second
        one.call_sync("hi", user_id="ann")
    assert ["Old words." in one.system for one in one.simulated.requests] == [True, False]
    assert "New words." in one.simulated.requests[1].system


@pytest.mark.parametrize(("scope", "sees"), [("session", "s"), ("user", "su"), ("agent", "sua"), ("global", "suao")])
def test_a_scope_says_who_shares_files_and_memory(tmp_path: Path, scope: str, sees: str) -> None:
    """The same session, another one of the user, another user, another agent."""
    url = f"sqlite://{tmp_path}/db"
    write = calls(
        ("write_file", {"path": "a.txt", "content": "A"}), ("memory_save", {"text": "The code word is heron today."})
    )
    with program(tmp_path, url, write, "done", scope=scope) as one:
        one.call_sync("go", user_id="ann", session_id="s")
    found = ""
    for letter, user, session, name in (("s", "ann", "s", "helper"), ("u", "ann", "t", "helper"), ("a", "bob", "t", "helper"),
                                        ("o", "bob", "u", "other")):  # fmt: skip
        with program(tmp_path, url, calls(("read_file", {"path": "a.txt"})), "done", scope=scope) as two:
            two.name = two.source.agent = name
            two.call_sync("go", user_id=user, session_id=session)
            there = two.results()[-1].rstrip().endswith("A")
            assert there == ("heron" in two.simulated.requests[-1].system)
            found += letter * there
    assert found == sees


def test_a_shared_place_asks_whose_call_it_is(tmp_path: Path) -> None:
    """A missing id is an error and no bucket that all share; a shared folder is one on purpose."""
    with program(tmp_path, "memory:", "x", scope="session") as one:
        for options in ({}, {"session_id": "s"}, {"user_id": "ann"}):
            with pytest.raises(UsageFault, match="needs user_id in each call"):
                one.call_sync("hi", **options)  # type: ignore[arg-type]  # ids alone
    with pytest.raises(UsageFault, match="no scope"):
        Program(tmp_path, "x", scope="team").call_sync("hi")
    write = calls(("write_file", {"path": "notes/a.txt", "content": "A"}))
    read = calls(("read_file", {"path": "notes/a.txt"}))
    with program(tmp_path, "memory:", write, "x", read, "y", shared=["notes"]) as one:
        one.call_sync("hi", user_id="ann")
        one.call_sync("hi", user_id="bob")
        assert one.results()[-1].rstrip().endswith("A")


def test_a_store_is_opened_by_its_url(tmp_path: Path) -> None:
    """As `store=` and in `placement`."""
    with Program(tmp_path, "hi", store=f"sqlite://{tmp_path}/db") as one:
        one.call_sync("hello")
    assert open_store(f"sqlite://{tmp_path}/db").list(("default", "default"))


ELSEWHERE = """
import asyncio, sys
from harness import Config, HarnessAgent, SimulatedCall, SimulatedModel

async def launch() -> str:
    '''Launch the rocket.'''
    print("begun", flush=True)
    await asyncio.sleep(60)
    return "launched"

def seen(request):
    print(*(one["text"] for one in request.messages if "text" in one), sep="\\n", flush=True)
    return "taken up"

first = sys.argv[3] == "first"
model = SimulatedModel(SimulatedCall(name="launch")) if first else SimulatedModel(seen)
with HarnessAgent("helper", model, workspace=sys.argv[1], tools=[launch], config=Config(placement=sys.argv[2])) as agent:
    ids = {"user_id": "ann", "session_id": "s"}
    print(agent.call_sync("launch it", **ids) if first else agent.resume_sync(**ids))
"""


def test_a_conversation_goes_on_on_another_machine(tmp_path: Path) -> None:
    """Two processes, each in a network of its own: the first is killed in the middle of a tool, the second says what is
    unknown."""
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    words = ["unshare", "-n", sys.executable, "-c", ELSEWHERE, str(tmp_path), f"store:sqlite://{tmp_path}/db"]
    with subprocess.Popen([*words, "first"], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None and one.stdout.readline() == "begun\n"
        one.kill()
    two = subprocess.run([*words, "second"], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60)
    assert "launch it" in two.stdout and "Nobody knows how it ended" in two.stdout and two.stdout.endswith("taken up\n")


WRITES = """
import os, sys

found, started = [], []
flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
changes = ("mkdir", "rename", "remove", "rmdir", "link", "symlink", "truncate", "chmod", "chown", "utime", "mkfifo", "mknod")

def hook(event, given):
    if event == "open" and isinstance(given[0], str | bytes) and isinstance(given[2], int) and given[2] & flags:
        found.append(os.fsdecode(given[0]))
    elif event.removeprefix("os.") in changes and event.startswith("os."):
        found.extend(os.fsdecode(one) for one in given[:2] if isinstance(one, str | bytes))
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.system", "os.exec", "os.fork", "os.forkpty"):
        started.append(os.path.basename(given[0]) if event == "subprocess.Popen" else event)

sys.addaudithook(hook)
from harness import Config, HarnessAgent, SimulatedCall, SimulatedModel

top, place = sys.argv[1:3]
store = f"sqlite://{top}/db" if place == "sandbox" else None
names = ["a.txt", "deep/b.txt", "knowledge/KNOWLEDGE.md", "knowledge/new.md", "AGENTS.md", ".results/x"]
names += ["../x", top + "/x", "~/x", ".harness/x"]
tools = {"write_file": {"content": "a"}, "edit_file": {"old_string": "a", "new_string": "b"}, "read_file": {},
         "list_files": {}, "grep_files": {"pattern": "a"}, "glob_files": {"pattern": "**"}}
calls = [(tool, {"path": path, **more}) for path in names for tool, more in tools.items()]
calls += [("plan_enter", {}), ("plan_write", {"content": "a plan"}), ("plan_exit", {}), ("todo_write", {"todos": []}),
          ("memory_save", {"text": "They like tea very much."}), ("memory_search", {"query": "tea"}), ("long", {}),
          ("execute", {"command": "touch a $HOME/b /tmp/c " + top + "/d; echo $?"})]

def long() -> str:
    '''A result that is too long.'''
    return "word " * 200000

model = SimulatedModel([SimulatedCall(name=name, arguments=given) for name, given in calls], "done")
config = Config(placement=place)
with HarnessAgent("helper", model, workspace=top + "/work", store=store, tools=[long], config=config) as agent:
    assert agent.call_sync("go", user_id="ann").text == "done"
results = [one["text"] for one in model.requests[-1].messages if one["role"] == "tool"]
assert sum(one.startswith(("Created", "Replaced", "Edited", "Wrote")) for one in results) >= 4, results
print(*sorted({path for path in found if not path.startswith(("/proc/", "/dev/"))}), sep="\\n")
print("started", *started)
"""


@pytest.mark.parametrize("place", ["store:sqlite://{}/db", "sandbox"])
def test_no_place_elsewhere_writes_to_the_disk_of_the_host(tmp_path: Path, place: str) -> None:
    """All tools, with paths that lead out: our process opens, makes and renames nothing but the store, the folder of the sandbox,
    and what it has parsed; in a store it starts a search at most, and in a sandbox no program changes anything else."""
    if place == "sandbox" and confine.available() != confine.BUBBLEWRAP:
        pytest.skip(reason=NO_BUBBLEWRAP)
    (tmp_path / "work/knowledge").mkdir(parents=True)
    for path in ("work/knowledge/KNOWLEDGE.md", "work/AGENTS.md", "kept"):
        (tmp_path / path).write_text("a\n")
    here = {name: str(tmp_path / name.lower()) for name in ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    for folder in here.values():
        Path(folder).mkdir()
    environment = {**os.environ, **here, "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-c", WRITES, str(tmp_path), place.format(tmp_path)]
    done = subprocess.run(
        words, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    *paths, started = done.stdout.splitlines()
    state, db = f"{tmp_path}/work/.harness", f"{tmp_path}/db"
    boxed = [f"{state}/sandboxes", f"{state}/origin", f"{here['XDG_STATE_HOME']}/harness"] if place == "sandbox" else []
    ours = (f"{state}/cache", db, *boxed)
    assert [path for path in paths if path and path != state and not path.startswith(ours)] == []
    assert place == "sandbox" or {*started.split()} <= {"started", "rg", os.path.basename(sys.executable)}
    there = {
        str(path) for path in tmp_path.rglob("*") if path.is_file() and not str(path).startswith((state, db, *boxed))
    }
    assert there == {f"{tmp_path}/{path}" for path in ("work/knowledge/KNOWLEDGE.md", "work/AGENTS.md", "kept")}
    assert all(Path(path).read_text() == "a\n" for path in there)
