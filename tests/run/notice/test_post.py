"""`url = "https://…"`: the event arrives by POST, and what the other side says is the end of the call."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.missions import House

GOT: list[tuple[str, dict[str, str]]] = []
LOGINS: list[str] = []


class Receiver(BaseHTTPRequestHandler):
    """Keeps what is posted; refuses what is for /full."""

    def do_GET(self) -> None:
        """What a redirected POST becomes."""
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        """One event."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        GOT.append((self.path, json.loads(body)))
        LOGINS.append(self.headers.get("Authorization", ""))
        if self.path == "/garbage":
            self.wfile.write(b"220 mail.example.org\r\n")
            return
        self.send_response({"/full": 507, "/moved": 302}.get(self.path, 204))
        if self.path == "/moved":
            self.send_header("Location", "/secret")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where a receiver listens."""
    GOT.clear()
    LOGINS.clear()
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_gets_the_event(house: House, address: str) -> None:
    """One that refuses is shown by its host alone, since the rest may be a secret."""
    hooks = [line for path in ("secret", "full") for line in ("[[on]]", 'event = "run"', f'url = "{address}/{path}"')]
    house.config('agent = "scripted"', *hooks)
    house.script("worker", {"run": "touch 1.txt"})
    done = house.role("worker", "F-001")
    assert [(path, event["event"]) for path, event in GOT] == [("/secret", "run"), ("/full", "run")]
    assert f"warning: the hook '{address}' failed for run-" in done.out
    assert "507" in done.out
    assert "/full" not in done.out


@pytest.mark.parametrize(
    ("login", "sent"), [("me:p%40ss@", "me:p@ss"), ("tk_1@", "tk_1:"), ("", "")], ids=["password", "name", "none"]
)
def test_a_login_in_the_address_is_sent_as_one(house: House, address: str, login: str, sent: str) -> None:
    """As curl and browsers do, and ntfy's own addresses are written; it is never shown, nor is a query."""
    url = address.replace("//", f"//{login}") + "?token=hidden"
    house.config('agent = "scripted"', "[[on]]", 'event = "run"', f'url = "{url}"')
    house.script("worker", {"run": "touch 1.txt"})
    done = house.role("worker", "F-001")
    assert [path for path, _ in GOT] == ["/?token=hidden"], done
    assert [f"Basic {base64.b64encode(sent.encode()).decode()}" if sent else ""] == LOGINS
    assert "hidden" not in house.read("notices.jsonl") and "p%40ss" not in house.read("notices.jsonl")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/moved", "HTTP Error 302: Found; give the address that it points to"),
        ("/garbage", "the answer is not HTTP: BadStatusLine"),
        ("@/[secret", "the address is not valid"),
    ],
)
def test_an_event_that_did_not_arrive_is_said_in_words(house: House, address: str, path: str, said: str) -> None:
    """Where the address moved, it would arrive without its body; and nothing of an address is shown but its host."""
    house.config('agent = "scripted"', "[[on]]", 'event = "run"', f'url = "{address}{path}"')
    if path.startswith("@"):
        house.config('agent = "scripted"', "[[on]]", 'event = "run"', 'url = "http://me:secret@[127.0.0.1/"')
    house.script("worker", {"run": "touch 1.txt"})
    done = house.role("worker", "F-001")
    assert said in done.out, done
    assert "cret" not in done.out
