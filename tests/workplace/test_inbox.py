"""The inbox: what a confined program asks for is done outside, durable before it is answered, in the run's own name."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.errors import LockBusy, RequestRefused
from harness.state import files
from harness.state.layout import Layout
from harness.workplace import inbox
from harness.workplace.inbox import Inbox
from tests.crash import sampled
from tests.missions import House

CHECKOUT = Path(inbox.__file__).parents[2]
RUN = "1-worker-F-001"
ASK = f"""import sys
sys.path.insert(0, {str(CHECKOUT)!r})
from harness.base.exits import guarded
from harness.workplace import inbox
from harness.state.layout import Layout
def main():
    for text in inbox.ask(Layout(sys.argv[1]), *sys.argv[2:]):
        print(text, flush=True)
    return 0
sys.exit(guarded(main))
"""


class Desk:
    """Verbs that write below a folder, and clients that ask for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "raw.md"
        self.layout = Layout(str(folder / ("deep " * 12) / ("below " * 12)))  # longer than a socket's path may be
        self.place = Path(self.layout.run(RUN).inbox)

    def note(self, text: str) -> Iterator[str]:
        """Durable before it is answered."""
        if not text:
            raise RequestRefused("An empty note helps nobody.")
        with files.Lock(str(self.log)):
            files.add_line(str(self.log), text.encode() + b"\n")
        yield f"noted {text}"

    def slow(self, seconds: str) -> Iterator[str]:
        """Two texts with a pause of so long, or until that file exists."""
        yield "begun"
        if not seconds.startswith("/"):
            time.sleep(float(seconds))
        while seconds.startswith("/") and not os.path.exists(seconds):
            time.sleep(0.01)
        yield "done"

    def full(self) -> Iterator[str]:
        """A disk with no room."""
        yield from ()
        raise OSError(28, "No space left on device")

    def inbox(self) -> Inbox:
        """The listener."""
        return Inbox(str(self.place), {"note": self.note, "slow": self.slow, "full": self.full})

    def client(self, *words: str) -> subprocess.Popen[str]:
        """A program that asks; a socket that it leaves open is an error, because Python drops a signal meanwhile."""
        argv = [sys.executable, "-I", "-W", "error", "-c", ASK, self.layout.folders.project, RUN, *words]
        return subprocess.Popen(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and error of one client."""
        child = self.client(*words)
        out, err = child.communicate()
        return child.returncode, out, err


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Verbs and clients."""
    return Desk(tmp_path)


def test_a_note_that_was_answered_stands_on_disk(desk: Desk) -> None:
    """Whatever characters it has; the client prints what the verb says."""
    with desk.inbox():
        assert desk.ask("note", "use `make` — 東京 \x1b\n'\"") == (0, "noted use `make` — 東京 \x1b\n'\"\n", "")
    assert desk.log.read_text() == "use `make` — 東京 \x1b\n'\"\n"


def test_what_the_verb_refuses_is_said_to_the_client_with_its_exit_code(desk: Desk) -> None:
    """And nothing is written; a full disk is 75, try again."""
    with desk.inbox():
        assert desk.ask("note", "") == (10, "", "harness: An empty note helps nobody.\n")
        code, _, err = desk.ask("full")
        assert (code, "No space left on device" in err) == (75, True)
        assert desk.ask("forge")[0] == 64
        assert desk.ask("note", "one", "two")[0] == 64
    assert not desk.log.exists()


def test_texts_come_as_they_are_said(desk: Desk) -> None:
    """A check that takes long shows its receipts one by one; others are answered meanwhile."""
    with desk.inbox():
        child = desk.client("slow", f"{desk.log}.go")
        assert child.stdout is not None and child.stdout.readline() == "begun\n"
        assert desk.ask("note", "meanwhile")[0] == 0 and child.poll() is None
        Path(f"{desk.log}.go").touch()
        assert child.communicate()[0] == "done\n"


def test_forty_at_once_are_all_answered_and_none_is_lost(desk: Desk) -> None:
    """Each line once."""
    with desk.inbox():
        children = [desk.client("note", f"note {number}") for number in range(40)]
        assert [child.wait() for child in children] == [0] * 40
    assert sorted(desk.log.read_text().split("\n")[:-1]) == sorted(f"note {number}" for number in range(40))


def test_after_the_run_nobody_answers_and_that_is_seventy_five(desk: Desk) -> None:
    """Also where there was never a listener."""
    assert desk.ask("note", "early") == (75, "", f"harness: {inbox.NO_ANSWER}\n")
    with desk.inbox():
        pass
    assert desk.ask("note", "late")[0] == 75
    assert not desk.log.exists()


def test_leaving_answers_what_is_under_way_and_ends_what_takes_too_long(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note is finished; a check of an hour is not waited for."""
    monkeypatch.setattr(inbox, "LEAVE_SECONDS", 5.0)
    with desk.inbox():
        short, long = desk.client("slow", "0.3"), desk.client("slow", "3600")
        for child in (short, long):
            assert child.stdout is not None and child.stdout.readline() == "begun\n"
    assert (short.wait(), long.wait()) == (0, 75)


@pytest.mark.parametrize("sent", [b"", b"{", b"[]\n", b"null\n", b'{"verb":"note","arguments":[1]}\n', b"\xff\n"])
def test_a_client_that_talks_nonsense_changes_nothing_and_stops_nobody(desk: Desk, sent: bytes) -> None:
    """The next one is answered."""
    with desk.inbox():
        with socket.socket(socket.AF_UNIX) as client:
            place = os.open(desk.place, os.O_PATH)
            client.connect(f"/proc/self/fd/{place}/{inbox.SOCKET}")
            os.close(place)
            client.sendall(sent)
        assert desk.ask("note", "sense")[0] == 0
    assert desk.log.read_text() == "sense\n"


def test_a_listener_that_is_killed_acknowledges_nothing_that_is_not_there(desk: Desk) -> None:
    """Killed at many moments among writers: each note that was answered with 0 stands there, once."""
    answered: list[str] = []
    for turn in sampled(range(6), lambda one: one in (1, 4)):
        with desk.inbox() as listening:
            children = {f"{turn}-{number}": desk.client("note", f"{turn}-{number}") for number in range(8)}
            time.sleep(0.03 * turn)
            os.kill(listening.pid, signal.SIGKILL)
            codes = {name: child.wait() for name, child in children.items()}
        assert set(codes.values()) <= {0, 75}
        answered += [name for name, code in codes.items() if code == 0]
    lines = desk.log.read_text().split("\n") if desk.log.exists() else []
    assert all(lines.count(name) == 1 for name in answered)


def test_the_listener_ends_with_the_run_that_is_killed(desk: Desk) -> None:
    """No process of ours is left behind."""
    script = f"""import os, signal, sys
sys.path.insert(0, {str(CHECKOUT)!r})
from harness.workplace.inbox import Inbox
with Inbox({str(desk.place)!r}, {{}}) as listening:
    print(listening.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    listener = int(done.stdout)
    until = time.monotonic() + 60
    while time.monotonic() < until and os.path.exists(f"/proc/{listener}") and not _is_zombie(listener):
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{listener}") or _is_zombie(listener)


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


def test_a_run_that_is_over_takes_nothing_more(desk: Desk) -> None:
    """A process that outlived it learns that by 64; a run that never was has no inbox, which is 75."""
    with pytest.raises(LockBusy, match="Nothing was written"):
        list(inbox.ask(desk.layout, "2-worker", "note", "x"))
    files.replace(desk.layout.run(RUN).result, b"{}\n")
    with desk.inbox():
        assert desk.ask("note", "late")[0] == 64
    assert not desk.log.exists()


def test_a_confined_agent_writes_by_its_inbox_alone(house: House) -> None:
    """Its note and issue stand in the run's own name; the files themselves are read-only to it, and so is another run's name."""
    result = house.work(
        {
            "run": "harness note 'use make'; harness issue 'slow' --severity nit\n"
            'for file in memory/raw.md issues.jsonl; do ! echo forged 2> tried.log >> "${PATH%%/bin:*}"/$file; done\n'
            "! env -i .harness/bin/harness --run 9-another note 'in the name of another'"
        }
    )
    assert (result["outcome"], result["refused"], result["confined"]) == ("ok", [], "bubblewrap"), result
    assert house.read("memory/raw.md").endswith("worker F-001 - use make\n")
    assert house.read("memory/raw.md").count("\n") == 1
    assert json.loads(house.read("issues.jsonl"))["by"] == result["run"]
