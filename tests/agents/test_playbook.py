"""The embedded agent: the playbook that it selects, the commands it runs, its reply, and its message without a playbook."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.agents import _playbook
from harness.agents.base import AgentEvent
from harness.base.errors import Unavailable
from harness.process import tree
from tests.agents.agent_desk import Observed, desk, listen, project, settings


def carry_out(folder: Path, text: str, seconds: float = 60.0) -> Observed:
    """The run of a playbook in `folder`."""
    (folder / "playbooks").mkdir(exist_ok=True)
    (folder / "playbooks" / "worker.md").write_text(text, encoding="utf-8")
    return listen(_playbook.Playbook(settings(folder)), desk(folder, seconds=seconds))


# which playbook


LOOKED = ["worker-F-001.2.md", "worker-F-001.md", "worker.md"]


def test_the_most_specific_playbook_wins(tmp_path: Path) -> None:
    """The one for this attempt, then for the feature, then for the role."""
    folder = project(tmp_path)
    (folder / "playbooks").mkdir()
    for name in ("worker-F-001.1.md", "worker-F-002.md", "planner.md", *LOOKED):
        (folder / "playbooks" / name).write_text(name)
    for name in LOOKED:
        found = _playbook.Playbook(settings(folder, attempt=2)).path
        assert os.path.basename(found) == name
        os.unlink(found)
    with pytest.raises(Unavailable):
        _playbook.Playbook(settings(folder, attempt=2))


def test_a_missing_playbook_names_every_path_that_was_tried(tmp_path: Path) -> None:
    """So that a person can write one of them."""
    folder = project(tmp_path)
    with pytest.raises(Unavailable) as fault:
        _playbook.Playbook(settings(folder, attempt=2))
    assert "playbooks/worker-F-001.2.md or playbooks/worker-F-001.md or playbooks/worker.md" in str(fault.value)
    assert str(tmp_path) not in str(fault.value), "paths are shown as in the project"


def test_a_run_on_the_whole_mission_has_one_playbook(tmp_path: Path) -> None:
    """A planner or a sweep has no feature."""
    assert _playbook.names(settings(tmp_path, role="planner", feature="", attempt=1), ".md") == ["planner.md"]


# which blocks run


def test_blocks_run_in_order_in_the_working_folder_and_the_rest_is_the_reply(tmp_path: Path) -> None:
    """A block sees the results of the block before; the text around the blocks is the reply."""
    folder = project(tmp_path)
    text = "Before.\n```sh\necho one > made\n```\nBetween.\n```sh\ncat made; pwd\n```\nAfter.\n"
    observed = carry_out(folder, text)
    assert observed.reply == "Before.\nBetween.\nAfter.\n"
    assert observed.said == [observed.reply]
    assert observed.output == f"one\n{folder}\n"


def test_the_first_block_that_fails_is_the_last(tmp_path: Path) -> None:
    """The failure names the playbook's line and the exit code; the block's output is passed on, with stderr."""
    folder = project(tmp_path)
    text = "```sh\necho fine\n```\n\n```sh\necho broken >&2\nexit 3\n```\n```sh\ntouch never\n```\nreply\n"
    observed = carry_out(folder, text)
    assert observed.failure == ("agent_error", "playbooks/worker.md:6 ended with exit 3")
    assert observed.output == "fine\nbroken\n"
    assert observed.said == []
    assert not (folder / "never").exists()


@pytest.mark.parametrize(
    "command",
    ["false\ntouch never", "false | cat\ntouch never", 'echo "$unset_here"\ntouch never'],
    ids=["a failing command", "a failing pipe", "an unset variable"],
)
def test_a_block_is_strict(tmp_path: Path, command: str) -> None:
    """A block runs like a check: the first error ends it."""
    folder = project(tmp_path)
    assert carry_out(folder, f"```sh\n{command}\n```\n").failure[0] == "agent_error"
    assert not (folder / "never").exists()


def test_a_block_that_is_killed_is_named_with_its_signal(tmp_path: Path) -> None:
    """A crash has no exit code."""
    observed = carry_out(project(tmp_path), "```sh\nkill -9 $$\n```\n")
    assert observed.failure == ("agent_error", "playbooks/worker.md:2 ended with signal 9")


def test_a_block_gets_no_input(tmp_path: Path) -> None:
    """Standard input is at its end."""
    observed = carry_out(project(tmp_path), '```sh\nif read -r line; then exit 9; fi\necho "nobody there"\n```\n')
    assert observed.output == "nobody there\n"


def test_all_blocks_together_share_the_runs_time(tmp_path: Path) -> None:
    """A block over the time ends as `wall`, and no other starts."""
    observed = carry_out(project(tmp_path), "```sh\nsleep 0.3\n```\n```sh\nsleep 20\n```\n", seconds=0.6)
    assert observed.failure == ("wall", "playbooks/worker.md:5 ran out of time")


def test_what_a_block_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """A server started in a playbook does not outlive its block."""
    observed = carry_out(project(tmp_path), "```sh\nsleep 60 >/dev/null 2>&1 &\necho $!\n```\nreply\n")
    assert not tree.stat(int(observed.output))
    assert observed.reply == "reply\n"


def test_closing_the_generator_ends_everything(tmp_path: Path) -> None:
    """In the middle of a block it kills the block's processes."""
    folder = project(tmp_path)
    (folder / "playbooks").mkdir()
    (folder / "playbooks" / "worker.md").write_text("```sh\necho $$\nsleep 600\n```\n")
    thinking = _playbook.Playbook(settings(folder)).think("", desk(folder))
    pid = next(int(event.text) for event in thinking if isinstance(event, AgentEvent) and event.kind == "output")
    thinking.close()
    assert not tree.stat(pid)


def test_each_block_is_announced_before_it_runs(tmp_path: Path) -> None:
    """So the spinner and the log can show it."""
    observed = carry_out(project(tmp_path), "text\n```sh\n\nmake build\n```\n```sh\ntrue\n```\n")
    assert observed.did == ["playbooks/worker.md:3 make build"]


# what counts as the reply


def test_other_fences_stay_in_the_reply(tmp_path: Path) -> None:
    """A JSON block, another kind of shell block and an indented one are text, not work."""
    text = "```json harness\n{}\n```\n```bash\ntouch never\n```\n    ```sh\n    touch never\n    ```\n```sh setup\nfalse\n```\n"
    folder = project(tmp_path)
    assert carry_out(folder, text).reply == text
    assert not (folder / "never").exists()


SPLITS = [
    ("a fence in a longer fence", "````md\n```sh\nfalse\n```\n````\n", [], "````md\n```sh\nfalse\n```\n````\n"),
    ("tildes", "~~~sh\ntrue\n~~~\nend", [(2, "true")], "end"),
    ("a longer close", "```sh\ntrue\n`````\nend", [(2, "true")], "end"),
    ("ticks in a command", "````sh\necho '```'\n````\n", [(2, "echo '```'")], ""),
    ("an empty block", "```sh\n```\nend", [(2, "")], "end"),
    ("no block", "only words\n", [], "only words\n"),
    ("nothing", "", [], ""),
    ("a fence that is never closed is words", "a\n```sh\nrm -r x\n", [], "a\n```sh\nrm -r x\n"),
]


@pytest.mark.parametrize(("text", "blocks", "rest"), [case[1:] for case in SPLITS], ids=[case[0] for case in SPLITS])
def test_how_a_playbook_is_read(text: str, blocks: list[tuple[int, str]], rest: str) -> None:
    """```sh blocks with their line, and the rest word for word."""
    assert _playbook.split(text) == (blocks, rest)


def test_words_between_ticks_open_no_fence(tmp_path: Path) -> None:
    """A line that begins with inline code is text, not the start of a block."""
    text = "```not a fence``` here\n```sh\necho ran\n```\n"
    assert carry_out(project(tmp_path), text).output == "ran\n"
