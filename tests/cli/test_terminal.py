"""What `ask` shows and takes besides words."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import gettempdir

import pytest

from tests.agents.modelserver import Reply, serving
from tests.agents.wires import Exchange
from tests.builtin.talking import calling
from tests.cli.test_ask import Screen, brain, configure
from tests.missions import PROGRAM, House

pytest.importorskip("pydantic_ai", reason="the built-in agent's packages are not installed: make setup")

SCHEMA = {"type": "object", "properties": {"birds": {"type": "integer"}}, "required": ["birds"]}


def test_an_image_a_schema_and_events(house: House) -> None:
    """The value alone on standard output, its cost on standard error; each event as a line; a file that is missing is 64."""

    def counts(exchange: Exchange) -> Reply:
        return Reply('{"birds": 3}' if "JSON schema" in exchange.text else "three")

    (house.project / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (house.project / "s.json").write_text(json.dumps(SCHEMA))
    with serving(counts) as server:
        configure(house.project, server)
        done = house.harness("ask", "-i", "b.png", "--schema", "s.json", "how many birds?")
        assert done.out == '{"birds":3}\n' and re.search(
            r"^· [\d,]+ tokens in, [\d,]+ out; cost not known$", done.err, re.M
        )
        assert '"image_url"' in server.seen[-1].body.decode()
        rows = [
            json.loads(line) for line in house.harness("ask", "--session", "e", "--events", "and now?").out.splitlines()
        ]
        assert json.loads(house.harness("ask", "--json", "--schema", "s.json", "again").out)["output"] == {"birds": 3}
    assert [row["type"] for row in rows] == ["text", "usage", "end"] and rows[-1]["reply"]["text"] == "three"
    (house.project / "bad.json").write_text("{")
    for words, code in ((["-i", "none.png"], 64), (["--schema", "none.json"], 64), (["--schema", "bad.json"], 65)):
        assert house.harness("ask", *words, "x").code == code


def test_what_is_not_saved_leaves_nothing_behind(house: House) -> None:
    """No session, no memory, no folder; the conversation that is saved does not know of it."""
    with serving(brain) as server:
        configure(house.project, server)
        assert house.harness("ask", "--no-save", "a secret bird").out == "answer 1\n"
        found = [
            path
            for path in [*house.project.rglob("*"), *Path(gettempdir()).glob("harness-ask-*/**/*")]
            if path.is_file()
        ]
        assert not [path for path in found if b"secret bird" in path.read_bytes()]
        assert not (house.project / ".harness/sessions").exists()
        assert house.harness("ask", "hello").out == "answer 1\n"


def test_a_permission_shows_the_change_or_what_a_command_may_touch(tmp_path: Path) -> None:
    """A diff before it is made; /diff and /undo after it, /cost and /help; nothing of these goes to the model."""
    answers = [calling("write_file", {"path": "a.txt", "content": "new\n"}), Reply("done"),
               calling("execute", {"command": "true"}), Reply("refused")]  # fmt: skip
    with serving(lambda exchange: answers.pop(0)) as server:
        configure(tmp_path, server, made_here=False)
        screen = Screen("ask", folder=tmp_path)
        screen.until("accept all of them, until they change? ")
        screen.types("y\n")
        screen.until("> ")
        screen.types("write\n")
        shown = screen.until("permit it? ")
        assert "--- /dev/null" in shown and "+new" in shown
        screen.types("y\n")
        screen.until("tokens in")
        screen.until("> ")
        for word, told in (("/diff", "+new"), ("/undo", "a.txt is removed again."), ("/cost", "tokens in"), ("/help", "/compact"),
                           ("/compact", "too little"), ("/nonsense", "/compact")):  # fmt: skip
            screen.types(f"{word}\n")
            screen.until(told)
            screen.until("> ")
        assert not (tmp_path / "a.txt").exists() and len(server.seen) == 2
        screen.types("run\n")
        assert re.search(r"It may change \S+.*Network: |It is not confined", screen.until("permit it? "))
        screen.types("n\n")
        screen.until("refused")
        screen.until("> ")
        screen.types("/quit\n")
        assert screen.code() == 0


def test_the_end_of_the_process_is_recorded_and_143(house: House) -> None:
    """SIGTERM while the model thinks: the session says so, and goes on."""
    asked, go = threading.Event(), threading.Event()

    def slow(exchange: Exchange) -> Reply:
        asked.set()
        go.wait(60)
        return Reply("late")

    with serving(slow) as server:
        configure(house.project, server)
        words = [sys.executable, str(PROGRAM), "ask", "hello"]
        with subprocess.Popen(words, cwd=house.project, env=house.env, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as child:  # fmt: skip
            assert asked.wait(60)
            child.send_signal(signal.SIGTERM)
            _, err = child.communicate(timeout=60)
        go.set()
        assert child.returncode == 143 and "interrupted by shutdown" in err
        assert house.harness("ask", "go on").out == "late\n"
        assert "interrupted by shutdown" in house.harness("sessions", "show", "default").out


def test_sessions_are_renamed_copied_exported_and_deleted(house: House) -> None:
    """As commands; what is not there is 64."""
    with serving(brain) as server:
        configure(house.project, server)
        house.harness("ask", "hello")
        assert house.harness("sessions", "fork", "default", "b").out == "b is a copy of default.\n"
        assert house.harness("sessions", "rename", "default", "a").out == "default is a now.\n"
        assert json.loads(house.harness("sessions", "export", "a").out)["messages"][1]["text"] == "answer 1"
        assert house.harness("ask", "--session", "b", "hello").out == "answer 2\n"
        assert house.harness("sessions", "rename", "a", "b").code == 64
        assert house.harness("sessions", "delete", "b").out == "b is deleted.\n"
        assert house.harness("sessions", "delete", "b").code == 64
        assert [row["session"] for row in json.loads(house.harness("sessions", "list", "--json").out)] == ["a"]
