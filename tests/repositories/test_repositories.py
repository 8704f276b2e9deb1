"""`make test-repositories`, as far as it goes without a network; the missions themselves are for that command alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.mission import replies
from tests.repositories import __main__ as script


def test_what_is_missing_is_named_and_skips_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine without a program gets a line for each repository that needs it, no traceback, and exit code 0."""
    (tmp_path / "git").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.main(["process-warning", "xxhash"]) == 0
    said = capsys.readouterr().out
    assert "process-warning  skipped: node is not on the PATH" in said
    assert "xxhash           skipped: cc is not on the PATH" in said
    assert "pluggy" not in said


@pytest.mark.parametrize("repository", script.REPOSITORIES, ids=lambda one: one.name)
def test_each_plan_is_one_that_the_harness_takes(repository: script.Repository) -> None:
    """It has a setup and two features, and each feature has a playbook."""
    plan = replies.find("plans", [repository.playbook("planner.md")])
    assert plan is not None and plan["setup"] == repository.setup
    names = [one["id"] for one in plan["features"]]
    assert names == ["F-001", "F-002"]
    assert [name for name in names if not [*repository.playbooks.glob(f"worker-{name}*.md")]] == []
