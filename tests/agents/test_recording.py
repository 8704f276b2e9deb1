"""The agent `recorded`: does again what its recording says, and ends as it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.missions import House

REPLY = '```json harness\n{"status": "implemented", "summary": "as then"}\n```'
PATCH = """diff --git a/main.py b/main.py
deleted file mode 100644
index {old}..0000000
--- a/main.py
+++ /dev/null
@@ -1 +0,0 @@
-print('hello')
diff --git a/made/1.txt b/made/1.txt
new file mode 100755
index 0000000..5626abf
--- /dev/null
+++ b/made/1.txt
@@ -0,0 +1 @@
+one
"""


def recording(house: House, name: str = "worker", patch: str = "", **value: Any) -> None:
    """Write a recording, and have every role use the agent."""
    house.config('agent = "recorded"')
    path = house.write(f"recordings/{name}.json", json.dumps(value))
    if patch:
        path.with_suffix(".patch").write_text(patch)


def work(house: House) -> dict[str, Any]:
    """One worker's run; returns its result."""
    done = house.role("worker", "F-001")
    assert "Traceback" not in done.err, done
    return house.result()


def test_it_changes_what_was_changed_and_asks_what_was_asked(house: House) -> None:
    """Files, notes and issues in their order; what is refused is refused again, and the reply lands."""
    asked = [
        ["note", "TRICK", "a 'quoted' $(text)"],
        ["issue", json.dumps({"title": "--odd title", "severity": "minor", "suggested_fix": "none"})],
        ["reply", "no reply"],
        ["reply", REPLY],
        ["check", "F-001"],
    ]
    old = house.git("rev-parse", "--short=7", "HEAD:main.py")
    recording(house, patch=PATCH.format(old=old), asked=asked, said=["look", "done"])
    result = work(house)
    assert (result["outcome"], result["agents"]) == ("ok", ["recorded"])
    assert house.git("show", f"{result['commit']}:made/1.txt") == "one"
    assert house.git("ls-tree", "-r", "--name-only", result["commit"]).split("\n") == ["SPEC.md", "made/1.txt"]
    rows = [json.loads(line) for line in house.read(f"runs/{result['run']}/asked.jsonl").split("\n")[:-1]]
    assert [(row["verb"], row["code"]) for row in rows] == [
        ("note", 0),
        ("issue", 0),
        ("reply", 10),
        ("reply", 0),
        ("check", 0),
    ]
    assert rows[0]["arguments"] == asked[0][1:]
    assert "worker F-001 TRICK: a 'quoted' $(text)" in house.read("memory/raw.md")
    assert json.loads(house.read("issues.jsonl"))["title"] == "--odd title"
    assert "as then" in house.git("log", "-1", "--format=%B", result["commit"])


@pytest.mark.parametrize("outcome", ["agent_error", "idle", "wall", "limit", "auth"])
def test_it_ends_as_it_ended(house: House, outcome: str) -> None:
    """With its reason, its usage, and its work kept as of such a run."""
    used = {
        "agent": "recorded",
        "input": 7,
        "output": 3,
        "cost_usd": 0.25,
        "cost_source": "reported",
        "raw": [{"a": 1}],
    }
    recording(house, outcome=outcome, reason="as it was", until=2_000_000_000, usage=used, said=[REPLY])
    result = work(house)
    assert (result["outcome"], result["usage"]["cost_usd"]) == (outcome, 0.25)
    assert "as it was" in result["reason"]


def test_the_agents_before_the_one_that_answered_could_not(house: House) -> None:
    """One met its limit; the last of the list answered."""
    recording(house, agents=["other", "recorded"], waits={"other": 2_000_000_000}, said=[REPLY])
    assert work(house)["agents"] == ["recorded"]
    path = house.project / "recordings/worker.json"
    recorded = house.role("worker", "F-002", HARNESS_RECORDING=str(path))
    assert recorded.code == 0, recorded
    house.config('agent = ["other", "recorded"]', "[agents.other]", 'command = ["gone"]')
    house.role("worker", "F-001", "--again", HARNESS_RECORDING=str(path))
    assert (house.result()["agents"], list(house.result()["waits"])) == (["other", "recorded"], ["other"])


def test_a_change_that_does_not_fit_is_a_fault_of_the_run(house: House) -> None:
    """As when the tree is another one than then."""
    recording(house, patch=PATCH.format(old="1234567").replace("hello", "bye"), said=[REPLY])
    result = work(house)
    assert (result["outcome"], "could not be repeated" in result["reason"]) == ("agent_error", True)


def test_without_a_recording_or_with_a_broken_one_it_does_not_start(house: House) -> None:
    """69 with the paths that were tried, 65 with the file."""
    recording(house, "planner")
    done = house.role("worker", "F-001")
    assert (done.code, "recordings/worker-F-001.json" in done.err) == (69, True)
    Path(house.project / "recordings/worker.json").write_text("[]")
    done = house.role("worker", "F-001")
    assert (done.code, "not the recording of a run" in done.err) == (65, True)
