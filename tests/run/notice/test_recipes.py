"""The recipes of docs/unattended.md, each carried out as it stands there, against a real counterpart on loopback.

Only the event is another: `run`, so that one run is enough. Names of the internet lead to loopback by the configuration of the
programs themselves, such as curl's `connect-to`.
"""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.proof import check_runs
from tests.missions import CHECKOUT, House

PAGE = (CHECKOUT / "docs/unattended.md").read_text()
RECIPES = re.findall(r"(?m)^    \[\[on\]\]\n(?:    .*\n)+", PAGE)
TEXT = "worker F-001: ok"  # how what people read begins


def recipe(part: str, *programs: str) -> str:
    """The one recipe with this in it; skips where a program that it calls is missing."""
    (found,) = [one for one in RECIPES if part in one]
    for name in programs:
        if not shutil.which(name):
            pytest.skip(f"{name} is not here: {INSTALL.get(name, f'apt install {name}')}")
    return re.sub(r"(?m)^ +", "", found)


INSTALL = {
    "notify-send": "apt install libnotify-bin",
    "dbus-run-session": "apt install dbus-daemon",
}


def carry_out(house: House, text: str, **env: str) -> str:
    """One run with this recipe for its event; the screen."""
    tomllib.loads(text)
    house.config('agent = "scripted"', *re.sub(r"(?m)^event = .*$", 'event = "run"', text).split("\n"))
    house.script("worker", {"run": "touch 1.txt"})
    done = house.role("worker", "F-001", **env)
    return done.out + done.err


def home(house: House) -> Path:
    """The HOME of a hook: that of the person."""
    return Path(house.env["HOME"])


class Receiver(BaseHTTPRequestHandler):
    """Keeps what is posted."""

    got: list[tuple[str, str, dict[str, str], bytes]]

    def do_POST(self) -> None:
        """One request."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.headers["Host"], self.path, dict(self.headers), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def certificate(house: House) -> ssl.SSLContext:
    """Of a server on loopback; nobody knows it."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not here, which makes the certificate of the server: apt install openssl")
    key, certificate = (str(house.folder / name) for name in ("key.pem", "certificate.pem"))
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run(words, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def lead(house: House, port: int) -> None:
    """Whatever host it is told, curl goes to this port on loopback, and does not mind the certificate."""
    (home(house) / ".curlrc").write_text(f'connect-to = "::127.0.0.1:{port}"\ninsecure\n')


@pytest.fixture
def posted(house: House, certificate: ssl.SSLContext) -> Iterator[list[tuple[str, str, dict[str, str], bytes]]]:
    """What arrives by https."""
    server = HTTPServer(("127.0.0.1", 0), type("Kept", (Receiver,), {"got": []}))
    server.socket = certificate.wrap_socket(server.socket, server_side=True)
    lead(house, server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.RequestHandlerClass.got  # type: ignore[attr-defined]  # a class made above
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
def test_mail_arrives(house: House, certificate: ssl.SSLContext) -> None:
    """By SMTP with TLS and the login of ~/.netrc, with the text that a person should read."""
    text = recipe("smtps://", "curl", "jq")
    controllers = pytest.importorskip("aiosmtpd.controller", reason="aiosmtpd, the server, is not here: make setup")
    from aiosmtpd.smtp import AuthResult, LoginPassword

    got: list[Any] = []

    class Kept:
        async def handle_DATA(  # noqa: N802 - the name that aiosmtpd calls
            self, _server: object, _session: object, envelope: Any
        ) -> str:
            got.append(envelope)
            return "250 OK"

    def login(*given: object) -> AuthResult:
        return AuthResult(success=given[-1] == LoginPassword(b"you", b"secret"))

    server = controllers.Controller(
        Kept(),
        hostname="127.0.0.1",
        port=(port := check_runs.free_port()),
        ssl_context=certificate,
        authenticator=login,
        auth_required=True,
        auth_require_tls=False,  # it is TLS from the first byte on, which the server does not take for it
    )
    server.start()
    lead(house, port)
    (home(house) / ".netrc").write_text("machine mail.example.org login you password secret\n")
    try:
        said = carry_out(house, text)
    finally:
        server.stop()
    assert "warning" not in said
    (mail,) = got
    assert (mail.mail_from, mail.rcpt_tos) == ("you@example.org", ["you@example.org"])
    head, _, body = mail.content.decode().replace("\r\n", "\n").partition("\n\n")
    assert ("Subject: a mission needs you" in head.split("\n"), body.startswith(TEXT)) == (True, True), mail.content


def test_ntfy_gets_a_message(house: House, posted: list[tuple[str, str, dict[str, str], bytes]]) -> None:
    """As its documentation says: the body of a POST to the topic is the message, a header is the title."""
    said = carry_out(house, recipe("https://ntfy.sh/", "curl", "jq"))
    assert "warning" not in said
    ((host, path, headers, body),) = posted
    assert (host, path, headers["Title"]) == ("ntfy.sh", "/a-topic-nobody-guesses", "checkpoint")
    assert body.decode().startswith(TEXT)


def test_slack_gets_a_message(house: House, posted: list[tuple[str, str, dict[str, str], bytes]]) -> None:
    """As an incoming webhook takes it: JSON with `text`."""
    hook = "https://hooks.slack.com/services/T0/B0/secret"
    said = carry_out(house, recipe("$SLACK_WEBHOOK", "curl", "jq"), SLACK_WEBHOOK=hook)
    assert "warning" not in said
    ((host, path, headers, body),) = posted
    assert (host, path, headers["Content-Type"]) == ("hooks.slack.com", "/services/T0/B0/secret", "application/json")
    value = json.loads(body)
    assert (list(value), value["text"].startswith(TEXT)) == (["text"], True)


NOTIFICATIONS = """
import json, os
from jeepney import HeaderFields, MessageType, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection
with open_dbus_connection() as bus:
    bus.send_and_get_reply(message_bus.RequestName("org.freedesktop.Notifications"))
    print(os.environ["DBUS_SESSION_BUS_ADDRESS"], flush=True)
    while True:
        message = bus.receive()
        if message.header.message_type is not MessageType.method_call:
            continue
        if message.header.fields[HeaderFields.member] == "Notify":
            bus.send(new_method_return(message, "u", (1,)))
            print(json.dumps(message.body[3:5]), flush=True)
            break
        bus.send(new_method_return(message, "ssss", ("tests", "harness", "1", "1.2")))
"""


def test_the_desktop_shows_a_message(house: House) -> None:
    """A notification with title and text reaches the service of the session."""
    text = recipe("notify-send", "notify-send", "dbus-run-session", "jq")
    pytest.importorskip("jeepney", reason="jeepney, for the other side of the bus, is not here: make setup")
    words = ["dbus-run-session", "--", sys.executable, "-c", NOTIFICATIONS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=house.env) as desktop:
        assert desktop.stdout is not None
        said = carry_out(house, text, DBUS_SESSION_BUS_ADDRESS=desktop.stdout.readline().strip())
        assert "warning" not in said
        title, body = json.loads(desktop.stdout.readline())
    assert (title, body.startswith(TEXT)) == ("harness", True)


LOGINS = (
    "GH_",
    "GITHUB_",
    "CI",
    "BUILD_NUMBER",
    "RUN_ID",
)  # beginnings of what gives `gh` a login, or other words for its lack


def test_the_branch_is_pushed_and_a_pull_request_asked_for(house: House) -> None:
    """The push is real; without a login `gh` refuses the rest, which is shown and stops nothing."""
    text = recipe("gh pr create", "gh", "git", "jq")
    for name in [name for name in house.env if name.startswith(LOGINS)]:
        del house.env[name]
    away = house.folder / "away.git"
    house.git("init", "-q", "--bare", str(away))
    house.git("remote", "add", "origin", "https://github.com/example/project.git")
    house.git("config", f"url.{away}.pushInsteadOf", "https://github.com/example/project.git")
    said = carry_out(house, text)
    branch = json.loads((house.state / "mission.json").read_text())["branch"]
    pushed = subprocess.run(["git", "-C", away, "rev-parse", branch], capture_output=True, text=True, check=True).stdout
    assert pushed.strip() == house.git("rev-parse", branch)
    assert re.search(r"warning: the hook 'sh -c b=.* failed for run-\S+: .*gh auth login", said), said


def test_a_hook_by_night_refuses_a_run(house: House) -> None:
    """The one with `before`, and lets one begin in the evening."""
    text = recipe("before = true")
    is_early = int(time.strftime("%H")) < 20
    said = carry_out(house, text)
    assert ("not before 20:00" in said, len(house.ran())) == (is_early, not is_early)


def test_every_recipe_is_carried_out_here() -> None:
    """Or in test_post.py, which calls an address."""
    parts = (
        "smtps://",
        "https://ntfy.sh/",
        "$SLACK_WEBHOOK",
        "notify-send",
        "gh pr create",
        "before = true",
        "\n    url = ",
    )
    assert [sum(part in one for part in parts) for one in RECIPES] == [1] * len(parts)
