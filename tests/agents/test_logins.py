"""A login that ends tonight is named, as far as the files of the CLIs tell."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from harness.agents import logins
from harness.agents.clis import ABOUT
from harness.base import clock
from harness.mission import config
from tests.missions import House

UNTIL = clock.now() + 3600
TOKEN = "a." + base64.urlsafe_b64encode(json.dumps({"exp": UNTIL}).encode()).decode().rstrip("=") + ".c"
FILES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [  # without and with what renews it
    (
        "claude",
        ".claude/.credentials.json",
        {"claudeAiOauth": {"expiresAt": UNTIL * 1000}},
        {"claudeAiOauth": {"refreshToken": "r"}},
    ),
    ("codex", ".codex/auth.json", {"tokens": {"access_token": TOKEN}}, {"tokens": {"refresh_token": "r"}}),
    ("gemini", ".gemini/oauth_creds.json", {"expiry_date": UNTIL * 1000 + 1}, {"refresh_token": "r"}),
    ("opencode", ".local/share/opencode/auth.json", {"some": {"expires": UNTIL * 1000}}, {"some": {"refresh": "r"}}),
]


def settings(folder: Path, name: str, **env: str) -> config.Config:
    """The settings of a person with this home folder."""
    return config.Config(agent=[name, "mine"], agents={name: {"env": {"HOME": str(folder), **env}}})


@pytest.mark.parametrize(("name", "file", "ends", "renews"), FILES)
def test_a_login_that_ends_tonight_is_named_unless_it_renews_itself(
    tmp_path: Path, name: str, file: str, ends: dict[str, Any], renews: dict[str, Any]
) -> None:
    """In the shape of each vendor's file, with the command to log in; a key needs none."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(ends))
    (line,) = logins.ending(settings(tmp_path, name), {})
    assert f"that of {name} ends at {clock.local(UNTIL, clock.now())} ({path}); log in again: " in line
    key = ABOUT[name].keys[0]
    assert [*logins.ending(settings(tmp_path, name, **{key: "k"}), {})] == []
    assert [*logins.ending(settings(tmp_path, name), {key: "k"})] == []
    merged = {
        key: {**ends.get(key, {}), **value} if isinstance(value, dict) else value for key, value in renews.items()
    }
    path.write_text(json.dumps({**ends, **merged}))
    assert [*logins.ending(settings(tmp_path, name), {})] == []


@pytest.mark.parametrize(("hours", "word"), [(-1, "ended"), (1, "ends"), (13, "")])
def test_what_has_ended_is_named_and_what_lasts_the_night_is_not(tmp_path: Path, hours: int, word: str) -> None:
    """A night has twelve hours."""
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/oauth_creds.json").write_text(json.dumps({"expiry_date": (clock.now() + hours * 3600) * 1000}))
    found = [*logins.ending(settings(tmp_path, "gemini"), {})]
    assert [f"gemini {word} at " in line for line in found] == [True] * bool(word)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"tokens": {"access_token": "a.!.c"}}', '{"tokens": [1]}', '{"OPENAI_API_KEY": "k"}'],
)
def test_a_file_that_does_not_tell_has_no_end(tmp_path: Path, text: str) -> None:
    """A key has none; a file of another shape is the vendor's business."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/auth.json").write_text(text)
    assert [*logins.ending(settings(tmp_path, "codex"), {})] == []


def test_doctor_names_it(house: House) -> None:
    """As a warning: the folder has no fault."""
    place = Path(house.env["HOME"]) / ".gemini"
    place.mkdir(parents=True)
    (place / "oauth_creds.json").write_text(json.dumps({"expiry_date": UNTIL * 1000}))
    house.config('agent = ["gemini", "scripted"]')
    out = house.harness("doctor").out
    assert "warn  login: that of gemini ends at " in out, out
