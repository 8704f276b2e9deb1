"""What the calls reach: the run's tree, the mission's state to be read, and a place for results that are too long."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.builtin.tool_session import Place, ToolSession
from tests.builtin.talking import RUN, Bench


@pytest.fixture
def hands(tmp_path: Path) -> ToolSession:
    """Those of a run."""
    bench = Bench(tmp_path)
    bench.run_folder()
    (bench.folder / "a.txt").write_text("in the tree\n")
    (Path(bench.layout.state) / "spec.md").write_text("# The spec\n")
    place = Place(folder=str(bench.folder), layout=bench.layout, run=RUN, environment={"PATH": "/usr/bin:/bin"})
    return ToolSession(place)


def test_paths_are_those_of_the_prompt(hands: ToolSession, tmp_path: Path) -> None:
    """Relative to the tree, with the state as `.harness`; also as whole paths of the project."""
    assert "in the tree" in hands.call("read_file", {"path": "a.txt"}).text
    assert "The spec" in hands.call("read_file", {"path": ".harness/spec.md"}).text
    assert "The spec" in hands.call("read_file", {"path": f"{tmp_path}/project/.harness/spec.md"}).text


def test_the_state_is_to_be_read_only(hands: ToolSession) -> None:
    """What changes it are the verbs."""
    assert hands.call("write_file", {"path": ".harness/spec.md", "content": "mine"}).failed
    assert hands.call("write_file", {"path": ".harness/new.md", "content": "mine"}).failed


def test_a_long_result_is_a_file_that_can_be_read_on(hands: ToolSession) -> None:
    """Its head and tail are in the conversation; the rest is where the text says."""
    made = hands.call("execute", {"command": "seq 1 30000"})
    assert len(made.text) < 10_000 and "29999" in made.text
    name = next(word.rstrip(";,.") for word in made.text.split() if word.startswith(".results/"))
    assert "15000" in hands.call("grep_files", {"pattern": "^15000$", "path": name}).text
    later = ToolSession(hands.place.replace(run="2-worker-F-001"))
    later.take_over(hands.results)
    assert "15000" in later.call("grep_files", {"pattern": "^15000$", "path": name}).text


def test_paths_of_a_conversation_that_went_on_twice_lead_to_files(hands: ToolSession) -> None:
    """Those of the first run and of the second, though each run has a folder of its own and earlier ones may be removed."""
    found, now = list[str](), hands
    for number in range(3):
        made = now.call("execute", {"command": f"seq {number} 30000"})
        found.append(next(word.rstrip(";,.") for word in made.text.split() if word.startswith(".results/")))
        assert all("15000" in now.call("grep_files", {"pattern": "^15000$", "path": name}).text for name in found)
        before, now = now, ToolSession(hands.place.replace(run=f"{number + 2}-worker-F-001"))
        now.take_over(before.results)
        before.close()
        shutil.rmtree(before.results)
    assert len(set(found)) == 3


def test_a_folder_without_results_goes(hands: ToolSession) -> None:
    """Few runs have any."""
    hands.call("execute", {"command": "seq 1 10"})
    hands.close()
    assert not Path(hands.results).exists()


def test_commands_have_the_given_environment_alone(hands: ToolSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of this process's variables."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("LC_MINE", "of this process")
    said = ToolSession(hands.place).call("execute", {"command": "env"}).text
    assert "sk-secret" not in said and "of this process" not in said
