"""A sandbox for each scope: what it shows and keeps, that one call at a time has it, and that it follows the sessions."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import SimulatedCall
from harness.base.errors import HarnessError, LockBusy, Unavailable, UsageFault
from harness.builtin.sessions import _sandboxes
from harness.builtin.sessions.keys import scoped, session_keys
from harness.builtin.tool_environment import confined, reach
from harness.filesystem.keyvalue import KeyValueFiles
from harness.process import confine
from harness.stores.urls import open_store
from tests.builtin.simulating import Program
from tests.crash import TORTURE
from tests.filesystem.places import NO_BUBBLEWRAP
from tests.missions import CHECKOUT

pytestmark = [
    pytest.mark.on_disk,
    pytest.mark.skipif(confine.available() != confine.BUBBLEWRAP, reason=NO_BUBBLEWRAP),
]


def run(command: str) -> SimulatedCall:
    """A command in the sandbox."""
    return SimulatedCall(name="execute", arguments={"command": command})


class Machine(Program):
    """An agent whose place is a sandbox; `far`: the HOME of the other side of a prefix, as one of several machines that reach
    it."""

    def __init__(self, folder: Path, *answers: Any, far: Path | None = None, **more: Any) -> None:
        folder.mkdir(exist_ok=True, parents=True)
        place = f"sandbox:env HOME={far}" if far else "sandbox"
        super().__init__(folder, *answers, placement=place, **{"store": None, **more})


def printed(folder: Path, *commands: str, user: str = "ann", session: str = "s", **more: Any) -> list[str]:
    """What these commands print, each in a call of its own."""
    answers = [one for command in commands for one in (run(command), "done")]
    with Machine(folder, *answers, **more) as one:
        for _ in commands:
            assert one.call_sync("go", user_id=user, session_id=session).text == "done"
        return [text.partition("\n")[2] for text in one.results()[-len(commands) :]]


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder but those of the harness."""
    found = [path for path in folder.rglob("*") if ".harness" not in path.parts and path.is_file()]
    return {str(path): path.read_bytes() for path in found}


def test_it_shows_the_workspace_and_keeps_what_was_made(tmp_path: Path) -> None:
    """The files of the workspace are laid out at each call, only those that differ; all else stays; the folder is not touched."""
    for path, text in (("AGENTS.md", "Be brief."), ("knowledge/KNOWLEDGE.md", "one"), ("knowledge/b.md", "b"), ("own.py", "x"),
                       ("users/ann/skills/a/SKILL.md", "hers"), ("users/bob/skills/b/SKILL.md", "his")):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    before = content(tmp_path)
    show = "find . -type f | sort | xargs grep -H ."
    first, made = printed(
        tmp_path, show, "mkdir .venv; echo mine > .venv/x; echo changed > AGENTS.md; rm knowledge/KNOWLEDGE.md; ls ~"
    )
    assert first.split() == ["./AGENTS.md:Be", "brief.", "./knowledge/KNOWLEDGE.md:one", "./knowledge/b.md:b",
                             "./users/ann/skills/a/SKILL.md:hers"]  # fmt: skip
    assert made == "files" and content(tmp_path) == before
    (tmp_path / "knowledge/KNOWLEDGE.md").write_text("two\n")
    (tmp_path / "knowledge/b.md").unlink()
    stamps = "stat -c %y AGENTS.md users/ann/skills/a/SKILL.md"
    second, when, again = printed(tmp_path, show, stamps, stamps, session="another")
    assert second.split() == ["./.venv/x:mine", "./AGENTS.md:Be", "brief.", "./knowledge/KNOWLEDGE.md:two",
                              "./users/ann/skills/a/SKILL.md:hers"]  # fmt: skip
    assert when == again
    assert ".venv" not in printed(tmp_path, "find / -name x; ls -a", user="bob")[0]


def test_two_sessions_never_hold_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any process; not even where one has lost its place without knowing it."""
    alone = "mkdir held && sleep 0.3 && rmdir held && echo alone"
    said: list[str] = []
    threads = [threading.Thread(target=lambda name=name: said.extend(printed(tmp_path, alone, session=name)))
               for name in "abc"]  # fmt: skip
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert said == ["alone"] * 3
    (folder,) = (tmp_path / ".harness/sandboxes").iterdir()
    monkeypatch.setattr(_sandboxes, "HOLD_LOCK", _sandboxes.HOLD_LOCK.replace("-w 20", "-w 0.2"))
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # as another's other side has it that has not ended yet
    with pytest.raises(LockBusy, match="in use by another session"):
        printed(tmp_path, alone)
    os.close(descriptor)
    assert printed(tmp_path, alone) == ["alone"]


def test_limits_hold_and_unknown_ones_are_named(tmp_path: Path) -> None:
    """Those of config.toml and of a program; behind a prefix the other side has its own."""
    busy = "timeout 20 bash -c 'while :; do :; done'; echo $?"
    with Machine(tmp_path / "a", run(busy), "done", sandbox_limits={"cpu_seconds": 1, "memory_mb": 512}) as one:
        one.call_sync("go", user_id="ann", session_id="s")
        assert "137" in one.results()[-1]
    with pytest.raises(UsageFault, match="has the keys cpu_seconds, memory_mb, processes, not disk"):
        Machine(tmp_path / "b", sandbox_limits={"disk": 1})
    with pytest.raises(UsageFault, match="not to one behind 'env HOME="):
        Machine(tmp_path / "c", far=tmp_path, store="memory:", sandbox_limits={"processes": 9})


MIXED = (
    "mkdir -p e node_modules/a; ln -s a l; echo a > a; chmod 755 a; head -c 3000000 /dev/urandom > big; sha256sum big"
)
SEEN = "find . -printf '%P %y%m %l\\n' | sort; cat a; sha256sum big"


@pytest.mark.parametrize("behind", [True, *([False] if TORTURE else [])])
def test_its_state_follows_the_sessions(tmp_path: Path, behind: bool) -> None:
    """From machine to machine, where the store is no disk; what did not change is not saved again."""
    store = f"sqlite://{tmp_path}/db"
    homes: list[dict[str, Any]] = [
        {"store": store, **({"far": tmp_path / f"far{name}"} if behind else {})} for name in "ab"
    ]
    a, b = tmp_path / "a", tmp_path / "b"
    digest, first = printed(a, MIXED, SEEN, **homes[0])
    saved = open_store(store).list(("ann", "_sandbox"))
    assert printed(b, SEEN, **homes[1]) == [first] and digest in first and " d755" in first
    assert open_store(store).list(("ann", "_sandbox")) == saved
    printed(b, "rm -rf big l; echo b > a", session="t", **homes[1])
    assert printed(a, "cat a; ls", **homes[0]) == ["b\na\ne\nnode_modules"]
    shutil.rmtree(a)
    shutil.rmtree(tmp_path / "fara", ignore_errors=True)
    assert printed(a, "cat a; ls", **homes[0]) == ["b\na\ne\nnode_modules"]
    kept = open_store(store).list(("ann", "_sandbox"))
    assert len([key for key in kept if len(key) == 4]) == 1, "only the newest state"


def test_what_a_failed_save_leaves_stays_for_the_next_call(tmp_path: Path) -> None:
    """And a person is told."""
    store, events = open_store(f"sqlite://{tmp_path}/db"), list[Any]()
    with Machine(
        tmp_path / "a", run("echo a > a"), "x", run("echo b > b"), "y", run("cat a b"), "z", store=store
    ) as one:
        ids: Any = {"user_id": "ann", "session_id": "s", "report": events.append}
        one.call_sync("go", **ids)
        put = store.put
        store.put = _refusing(put)  # type: ignore[method-assign]  # as a full store
        one.call_sync("go", **ids)
        store.put = put  # type: ignore[method-assign]  # as above
        one.call_sync("go", **ids)
        assert one.results()[-1].endswith("a\nb")
    assert [one.text for one in events if "not saved in the store" in getattr(one, "text", "")]
    assert printed(tmp_path / "b", "cat a b", store=f"sqlite://{tmp_path}/db") == ["a\nb"]


def _refusing(put: Callable[..., str]) -> Callable[..., str]:
    def refuse(key: tuple[str, ...], data: bytes, expect: str) -> str:
        if "_sandbox" in key and key[-1] != "gate.json":
            raise LockBusy("The store is full.")
        return put(key, data, expect)

    return refuse


KILLED = """
import sys
from harness import Config, HarnessAgent, SimulatedCall, SimulatedModel

first = sys.argv[3] == "first"
command = "echo half > half; echo begun > ~/begun; sleep 60" if first else "cat half"
call = SimulatedCall(name="execute", arguments={"command": command})
model = SimulatedModel(call, lambda request: print(*(one.get("text") for one in request.messages), sep="\\n") or "done")
config = Config(placement="sandbox")
with HarnessAgent("helper", model, workspace=sys.argv[1], store=sys.argv[2] or None, config=config) as agent:
    print(agent.call_sync("go") if first else agent.resume_sync())
"""


@pytest.mark.parametrize("store", ["", *(["sqlite"] if TORTURE else [])])
def test_a_killed_call_leaves_its_files_to_the_next(tmp_path: Path, store: str) -> None:
    """Its commands end with it, and the next process takes the sandbox and the session up."""
    url = f"sqlite://{tmp_path}/db" if store else ""
    words = [sys.executable, "-c", KILLED, str(tmp_path), url]
    with subprocess.Popen([*words, "first"], cwd=CHECKOUT, stdout=subprocess.PIPE) as one:
        while not list(tmp_path.glob(".harness/sandboxes/*/begun")):
            assert one.poll() is None
        one.kill()
    two = subprocess.run([*words, "second"], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60)
    assert "Nobody knows how it ended" in two.stdout and "half" in two.stdout and two.stdout.endswith("done\n")


def test_what_cannot_be_reached_is_named_and_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions on this disk beside a sandbox of several machines; a call that is nobody's; a prefix that leads nowhere; no
    bubblewrap."""
    store = open_store(f"sqlite://{tmp_path}/db")
    with pytest.raises(UsageFault, match='Name one that others reach: store = "URL"'):
        Program(tmp_path, placement="sandbox:ssh host", store=None)
    with (
        Program(tmp_path, "x", placement="sandbox:no-such-program-{scope} x", store=store) as one,
        pytest.raises(Unavailable, match="no-such-program-ann"),
    ):
        with pytest.raises(UsageFault, match="needs user_id in each call"):
            one.call_sync("go")
        one.call_sync("go", user_id="ann")
    assert one.sessions.messages("default", "ann") == []
    assert printed(tmp_path, "echo a", store=store, session="default", far=tmp_path / "far") == ["a"]
    monkeypatch.setenv("PATH", "/nowhere")
    with Machine(tmp_path / "b", "x") as one, pytest.raises(HarnessError, match="bubblewrap") as caught:
        one.call_sync("go", user_id="ann")
    assert caught.value.code == 69


def test_files_of_the_workspace_in_the_store_lie_over_those_of_the_folder(tmp_path: Path) -> None:
    """As in the place store."""
    (tmp_path / "AGENTS.md").write_text("Old.\n")
    store = open_store(f"sqlite://{tmp_path}/db")
    KeyValueFiles(store, ("_workspace",)).write("AGENTS.md", b"New.\n")
    assert printed(tmp_path, "cat AGENTS.md", store=store) == ["New."]


def test_nothing_that_works_on_this_disk_is_started_for_a_sandbox(tmp_path: Path) -> None:
    """No subagent, whose files would be here; and what a server may write is not the folder of the workspace."""
    (tmp_path / "subagents").mkdir()
    (tmp_path / "subagents/helper.md").write_text("---\ndescription: helps\n---\nHelp.\n")
    with Machine(tmp_path, "x") as one:
        one.call_sync("go")
        assert not {"agent_spawn"} & {tool["name"] for tool in one.simulated.requests[0].tools}
        known = confined(one.environment(scoped(session_keys("ann", "s"), "user", "helper")), True)
    assert known.confinement is not None and str(tmp_path) in known.confinement.glass.readable
    assert not [path for path in known.confinement.glass.writable if path.startswith(str(tmp_path))]
    assert "does not see this folder" in reach(known)
