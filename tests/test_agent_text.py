"""What agents say is masked and sanitised where it enters: no file of a mission, and no object of git, has it as it was said."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.missions import House

TOKEN = "ghp_" + "Zr4Kq9Wm2Xv7Lp5Tn8Bc3Hd6Jf1Gs0Qy4Ua2"
HIDDEN = "\x1b[31m", "\x1b]0;title\x07", "\x9b1m", "\u202e", "\u200b", "\U000e0041"
SAID = f"{{}} {TOKEN} {TOKEN[:9]}\u200b{TOKEN[9:]}{''.join(HIDDEN)} end"
TRANSCRIPTS = {"stream.jsonl", "asked.jsonl", "reply.md"}  # JSON of an agent is text there, with its escapes
COMMIT = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -F"
FIELDS = ("title", "description", "claim", "drop", "checkpoint", "told", "fault", "cut", "blocked", "summary", "aim")
ISSUE_TEXTS = ("evidence", "repro", "suggested_fix", "code_pointer")


def said(where: str) -> str:
    """A text with a token, whole and split, and with what steers a terminal or hides text."""
    return SAID.format(where)


def issue(where: str) -> dict[str, str]:
    """An issue whose every text is such a text."""
    return {"title": said(where), "severity": "minor", **{name: said(name) for name in ISSUE_TEXTS}}


def reply(**value: Any) -> dict[str, str]:
    """A reply with what every reply may have."""
    notes = [{"tag": "TRICK", "text": said("note of a reply")}]
    whole = {"notes": notes, "issues": [issue(f"issue of {sorted(value)}")], **value}
    return {"say": f"{said('before')}\n```json harness\n{json.dumps(whole)}\n```"}


def spoken(path: Path, value: object) -> str:
    """The name of a file with this value, which an agent's command sends."""
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


@pytest.fixture
def spoken_mission(house: House) -> House:
    """A mission whose agents say it in every field that there is."""
    house.config('agent = "scripted"', 'confine = "off"')
    text, folder = spoken(house.folder / "text", said("told")), house.folder
    show = f"echo {TOKEN[::-1]} | rev; printf '\\e[31mred'"
    plan = {
        "features": [
            {
                "id": "F-001",
                "title": said("title") + "\nsecond line",
                "claims": ["VAL-1"],
                "description": said("description"),
                "spec_refs": [said("ref")],
                "source_issue": said("source"),
            }
        ],
        "contract": [
            {"id": "VAL-1", "claim": said("claim"), "checks": [f"{show}; test -f 1.txt"], "reason": said("why")}
        ],
        "drop": [{"id": name, "reason": said("drop")} for name in ("F-002", "VAL-2", "VAL-LOOK")],
        "reason": said("reason"),
        "checkpoint": {"name": "look", "text": said("checkpoint")},
    }
    house.script("planner", reply(**plan))
    house.role("planner")
    assert house.result()["accepted"], house.result()
    wrong = spoken(folder / "wrong", {said("key"): 1})
    calls = f'cat {text}; cat {text} >&2; harness note "$(cat {text})"; harness reply - <{wrong} || true'
    calls += f'; harness issue "$(cat {text})" --evidence "$(cat {text})" || true'
    house.work({"run": calls}, {"fail": "agent_error", "reason": said("fault")})
    house.work({"run": f"echo 1 >1.txt; git add 1.txt; {COMMIT} {text}"}, {"fail": "idle", "reason": said("cut")})
    whole = spoken(folder / "whole", {"status": "blocked", "reason": said("blocked"), "summary": said("summary")})
    house.work({"run": f"echo 2 >1.txt; harness reply - <{whole}"})
    house.harness("feature", "retry", "F-001")
    house.work({"run": "echo 3 >1.txt"}, reply(status="implemented", summary=said("summary")))
    house.script("validator", reply(checks=[{"claim": "VAL-1", "run": "false", "why": said("aim")}]))
    house.role("validator", "F-001")
    house.script("curator", reply(operations=[{"do": "retire", "entries": [0], "why": said("retire")}]))
    house.role("curator")
    house.work({"run": f"cat {text}"})
    return house


def stored(house: House) -> dict[str, bytes]:
    """Every file of the mission, the identities, and every object of git."""
    found = {
        os.path.join(top, name): Path(top, name).read_bytes()
        for start in (house.state, house.identity)
        for top, _, names in os.walk(start)
        for name in names
        if Path(top, name).is_file() and name != "next-index"  # an index of git: times and digests, byte by byte
    }
    ids = house.git("rev-list", "--all", "--single-worktree", "--objects", "--no-object-names").encode()
    words = ["git", "cat-file", "--batch"]
    found["git"] = subprocess.run(words, cwd=house.project, input=ids, capture_output=True, check=True).stdout
    return found


def test_no_text_of_an_agent_is_kept_as_it_was_said(spoken_mission: House) -> None:
    """Not the token, whole or split, nor a character that steers a terminal or hides text; what was said is there."""
    found = stored(spoken_mission)
    as_said = {name for name, data in found.items() if any(mark.encode() in data for mark in (TOKEN, "\x1b"))}
    assert as_said == set()
    parts = [name for name, data in found.items() if any(mark.encode() in data for mark in (TOKEN[9:], *HIDDEN))]
    assert {os.path.basename(name) for name in parts} <= TRANSCRIPTS
    everything = b"".join(found.values()).decode("utf-8", "replace")
    assert [name for name in FIELDS if f"{name} [masked: github-token]" not in everything] == []
