"""When a login ends, as the files of the CLIs tell it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from harness.mission import config
from harness.unattended import _logins
from tests.missions import House

UNTIL = 1_790_000_000
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


@pytest.mark.parametrize(("name", "file", "ends", "renews"), FILES)
def test_the_end_of_a_login_and_whether_it_renews_itself(
    tmp_path: Path, name: str, file: str, ends: dict[str, Any], renews: dict[str, Any]
) -> None:
    """In the shape of each vendor's file."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    for more, wanted in (({}, False), (renews, True)):
        merged = {
            key: {**ends.get(key, {}), **value} if isinstance(value, dict) else value for key, value in more.items()
        }
        path.write_text(json.dumps({**ends, **merged}))
        assert _logins.ending(name, {"HOME": str(tmp_path)}) == [
            _logins.Login(path=str(path), until=UNTIL, renews=wanted)
        ]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"tokens": {"access_token": "a.!.c"}}', '{"tokens": [1]}', '{"OPENAI_API_KEY": "k"}'],
)
def test_a_file_that_does_not_tell_has_no_end(tmp_path: Path, text: str) -> None:
    """A key has none; a file of another shape is the vendor's business."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/auth.json").write_text(text)
    assert _logins.ending("codex", {"HOME": str(tmp_path)}) == []


def test_a_fingerprint_changes_with_keys_files_and_settings(house: House) -> None:
    """So that a start tries again once a person did something."""
    env = {"HOME": str(house.folder)}
    settings = config.load(house.layout)
    seen = [_logins.fingerprint(house.layout, settings, ["codex", "mine"], env)]
    assert seen == [_logins.fingerprint(house.layout, settings, ["codex", "mine"], env)]
    seen.append(_logins.fingerprint(house.layout, settings, ["codex"], {**env, "OPENAI_API_KEY": "k"}))
    (house.folder / ".codex").mkdir()
    (house.folder / ".codex/auth.json").write_text("{}")
    seen.append(_logins.fingerprint(house.layout, settings, ["codex"], env))
    house.config('agent = "codex"')
    seen.append(_logins.fingerprint(house.layout, config.load(house.layout), ["codex"], env))
    assert len(set(seen)) == 4
