"""Subagents at work in a run: their answers, folders, tools and records, what they cost, and that none outlives the run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.base import encoding
from harness.builtin import turn_replay
from harness.process.confine import BUBBLEWRAP, Glass, available
from harness.state import files
from harness.workspace.tools import ToolsFile
from tests.agents.modelserver import Reply
from tests.agents.wires import PROMPT, TOKENS, Exchange
from tests.builtin.crewed import agent, calls, minds, ran
from tests.builtin.talking import RUN

PAID = PROMPT + TOKENS["output"]


def test_a_subagent_works_answers_and_is_recorded(tmp_path: Path) -> None:
    """With a conversation of its own, in the run's folder, without the run's verbs; its requests can be made again."""
    write = ("write_file", {"path": "found.txt", "content": "by the scout\n"})
    brain = minds(
        calls(("agent_spawn", {"agent": "scout", "task": "Find it."}), ("read_file", {"path": "found.txt"})),
        scout=calls(write, Reply("It is in found.txt.")),
    )
    made = ran(tmp_path, brain, agents=[agent("scout")])
    assert made.end["outcome"] == "ok" and "by the scout" in made.end["reply"]
    assert made.results()[0] == "scout-1 answered:\n\nIt is in found.txt."
    task = made.tasks["scout-1"]
    assert (task.status, task.asked, task.reply, task.depth, task.turns) == (
        "ok",
        ["Find it."],
        "It is in found.txt.",
        1,
        2,
    )
    assert task.log == encoding.digest(files.read(made.layout.turns(RUN, "scout-1")) or b"")
    request = made.log("scout-1").request(1)
    named = {tool["name"] for tool in request.tools}
    assert {"read_file", "execute", "agent_spawn"} <= named and not named & {"note", "reply", "check", "issue"}
    assert "Be a scout." in request.system and request.messages[0]["text"] == "Find it."
    assert turn_replay.seen(made.layout, RUN, 2, "scout-1").turns == 2


def test_what_subagents_cost_is_the_runs(tmp_path: Path) -> None:
    """Its usage has theirs; the caps are looked at before every request of any of them."""
    spawn = ("agent_spawn", {"agent": "scout", "task": "Go."})
    brain = minds(calls(spawn, spawn), scout=calls(("list_files", {}), Reply("Nothing.")))
    made = ran(tmp_path, brain, agents=[agent("scout")])
    used = [row for row in made.rows if row["type"] == "usage"][-1]
    assert used["turns"] == 3 + 2 * 2
    assert made.tasks["scout-1"].usage["turns"] == 2
    capped = ran(tmp_path / "capped", brain, agents=[agent("scout")], tokens_left=2 * PAID)
    assert capped.tasks["scout-1"].status == "killed" and "max_tokens" in capped.tasks["scout-1"].reason
    assert capped.end["outcome"] == "killed"


def slowly(seconds: float, *replies: Reply | tuple[str, dict[str, Any]]) -> Callable[[Exchange], Reply]:
    """A brain that takes its time."""
    answer = calls(*replies)

    def slow(exchange: Exchange) -> Reply:
        time.sleep(seconds)
        return answer(exchange)

    return slow


def test_one_that_takes_long_goes_on_in_the_background(tmp_path: Path) -> None:
    """Its caller is told, and gets the answer later; several work at once."""
    listed = threading.Event()
    steps = calls(
        ("agent_spawn", {"agent": "slow", "task": "a", "timeout": 0.2}),
        ("agent_spawn", {"agent": "slow", "task": "b", "background": True}),
        ("task_list", {}),
        ("task_output", {"id": "slow-1", "timeout": 20}),
        ("task_output", {"id": "slow-2", "timeout": 20}),
    )

    def parent(exchange: Exchange) -> Reply:
        if exchange.turns == 3:
            listed.set()
        return steps(exchange)

    def slow(exchange: Exchange) -> Reply:
        assert listed.wait(60)
        return Reply("At last.")

    brain = minds(parent, slow=slow)
    made = ran(tmp_path, brain, agents=[agent("slow")])
    said = made.results()
    assert "still at work after 0.2 s" in said[0] and "in the background" in said[1]
    assert said[2] == "slow-1: running\nslow-2: running"
    assert said[3:] == ["slow-1 answered:\n\nAt last.", "slow-2 answered:\n\nAt last."]
    assert [one.background for one in made.tasks.values()] == [True, True]


def test_none_outlives_the_run_and_its_end_is_recorded(tmp_path: Path) -> None:
    """Nor does what it started; a command of it ends, too."""
    spawn = ("agent_spawn", {"agent": "slow", "task": "Sleep.", "background": True})
    brain = minds(
        calls(spawn, ("execute", {"command": "sleep 0.7"}), Reply("I am done."), Reply("Really.")),
        slow=calls(("execute", {"command": "echo begun > begun; sleep 60; echo late > late"})),
    )
    begun = time.monotonic()
    made = ran(tmp_path, brain, agents=[agent("slow")])
    assert time.monotonic() - begun < 50
    assert (made.end["outcome"], made.log().messages()[-2]["text"].split(",")[0]) == (
        "ok",
        "Your answer would end your work",
    )
    assert (made.tree / "begun").exists() and not (made.tree / "late").exists()
    assert (made.tasks["slow-1"].status, made.tasks["slow-1"].ended != "") == ("ended", True)


def test_whoever_forgets_one_in_the_background_is_told_once(tmp_path: Path) -> None:
    """Before the last answer counts; it may wait for it then."""
    brain = minds(
        calls(
            ("agent_spawn", {"agent": "slow", "task": "a", "background": True}),
            Reply("I wait for it."),
            ("task_output", {"id": "slow-1", "timeout": 20}),
        ),
        slow=slowly(0.5, Reply("At last.")),
    )
    made = ran(tmp_path, brain, agents=[agent("slow")])
    assert made.end["reply"] == "Done: slow-1 answered:\n\nAt last."
    assert [one["text"][:11] for one in made.log().messages() if one["role"] == "user"] == ["Do it.", "Your answer"]


def test_one_can_be_ended_and_is_not_spoken_to_any_more(tmp_path: Path) -> None:
    """Whoever started it is told so."""
    brain = minds(
        calls(
            ("agent_spawn", {"agent": "slow", "task": "Sleep.", "timeout": 0.3}),
            ("task_cancel", {"id": "slow-1"}),
            ("task_output", {"id": "slow-1"}),
            ("agent_send", {"id": "slow-1", "message": "Go on."}),
            ("task_cancel", {"id": "nobody"}),
        ),
        slow=calls(("execute", {"command": "sleep 60"})),
    )
    said = ran(tmp_path, brain, agents=[agent("slow")]).results()
    assert said[1] == "slow-1 was ended."
    assert "ended without an answer (cancelled)" in said[2]
    assert "cannot go on" in said[3]
    assert said[4] == "There is no task 'nobody'. There are: slow-1."


def test_more_can_be_said_to_one(tmp_path: Path) -> None:
    """It goes on with its conversation."""
    brain = minds(
        calls(
            ("agent_spawn", {"agent": "scout", "task": "One."}), ("agent_send", {"id": "scout-1", "message": "Two."})
        ),
        scout=lambda exchange: Reply(f"Heard {exchange.turns + 1}."),
    )
    made = ran(tmp_path, brain, agents=[agent("scout")])
    assert made.results() == ["scout-1 answered:\n\nHeard 1.", "scout-1 answered:\n\nHeard 2."]
    assert made.tasks["scout-1"].asked == ["One.", "Two."]
    assert [one["text"] for one in made.log("scout-1").messages() if one["role"] == "user"] == ["One.", "Two."]


def test_an_isolated_one_works_in_its_own_folder(tmp_path: Path) -> None:
    """It reads the folder of who started it as `project`, which reads its files in turn; with a path it is below the project."""
    own = calls(
        ("read_file", {"path": "project/mine.txt"}),
        ("write_file", {"path": "project/theirs.txt", "content": "no"}),
        ("write_file", {"path": "out.txt", "content": "made alone\n"}),
        Reply("Look at out.txt."),
    )
    brain = minds(
        calls(
            ("write_file", {"path": "mine.txt", "content": "of the run\n"}),
            ("agent_spawn", {"agent": "alone", "task": "x"}),
            ("read_file", {"path": ".tasks/alone-1/out.txt"}),
            ("agent_spawn", {"agent": "below", "task": "x"}),
            ("agent_spawn", {"agent": "out", "task": "x"}),
        ),
        alone=own,
        below=own,
    )
    agents = [agent("alone", mode="isolated"), agent("below", mode="isolated", folder="sub/dir"),
              agent("out", mode="isolated", folder="../away")]  # fmt: skip
    (tmp_path / "room").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path / "room"))
        made = ran(tmp_path, brain, agents=agents)
    said = made.results()
    folder = tmp_path / "room/tasks/alone-1"
    assert said[1].endswith(f"[Its files are in .tasks/alone-1 (for commands: {folder}), until you end.]")
    assert "made alone" in said[2]
    assert (made.tree / "sub/dir/out.txt").read_text() == "made alone\n"
    assert "leads out of the project" in said[4]
    inside = made.results("alone-1")
    assert "of the run" in inside[0] and "is read-only" in inside[1]
    assert sorted(path.name for path in made.tree.iterdir()) == ["mine.txt", "sub"]


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap does not work here")
def test_commands_of_an_isolated_one_are_kept_to_its_folder(tmp_path: Path) -> None:
    """Where the run is confined: they read the folder of who started it, and write their own."""
    tried = calls(("execute", {"command": f"cat {tmp_path}/tree/a; touch {tmp_path}/tree/b; touch own && ls"}))
    brain = minds(
        calls(("write_file", {"path": "a", "content": "mine\n"}), ("agent_spawn", {"agent": "alone", "task": "x"})),
        alone=tried,
    )
    room = tmp_path / "room"
    room.mkdir()
    glass = Glass(writable=[str(tmp_path / "tree"), str(room)], readable=[str(tmp_path)])
    confinement = {"glass": glass.asdict(), "tier": BUBBLEWRAP, "holder": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(room))
        made = ran(tmp_path, brain, agents=[agent("alone", mode="isolated")], confinement=confinement)
    said = made.results("alone-1")[0]
    assert "mine" in said and "Read-only file system" in said and "\nown" in said, said
    assert f"and {tmp_path}/tree for commands" in made.log("alone-1").messages()[0]["text"]
    assert not (made.tree / "b").exists()


@pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap does not work here")
def test_a_link_of_a_confined_agent_leads_no_isolated_one_elsewhere(tmp_path: Path) -> None:
    """Neither its commands nor its files, which no mount confines."""
    away, room = tmp_path / "away", tmp_path / "room"
    away.mkdir()
    room.mkdir()
    link = f"mkdir $TMPDIR/tasks; ln -s {away} $TMPDIR/tasks/alone-1; ln -s {away} $TMPDIR.tasks; ls $TMPDIR/tasks"
    tried = calls(("execute", {"command": f"touch own {away}/a"}), ("write_file", {"path": "b", "content": "x"}))
    brain = minds(calls(("execute", {"command": link}), ("agent_spawn", {"agent": "alone", "task": "x"})), alone=tried)
    glass = Glass(writable=[str(tmp_path / "tree"), str(room)], readable=[str(tmp_path)])
    confinement = {"glass": glass.asdict(), "tier": BUBBLEWRAP, "holder": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(room))
        made = ran(tmp_path, brain, agents=[agent("alone", mode="isolated")], confinement=confinement)
    assert made.results()[0].endswith("alone-1") and list(away.iterdir()) == []
    assert {path.name for path in (tmp_path / "room.tasks/alone-1").iterdir()} == {"own", "b"}


def test_they_have_no_more_rights_than_who_started_them(tmp_path: Path) -> None:
    """A deny is inherited always; the tools of a declaration only narrow."""
    tried = calls(
        ("execute", {"command": "git push"}),
        ("execute", {"command": "echo fine"}),
        ("write_file", {"path": "a", "content": ""}),
    )
    brain = minds(calls(("agent_spawn", {"agent": "bound", "task": "x"})), bound=tried)
    tools = ToolsFile(deny=["execute(git push*)"])
    made = ran(tmp_path, brain, agents=[agent("bound", tools=["execute", "read_*"])], tools=tools)
    said = made.results("bound-1")
    assert "not permitted here, by the rule execute(git push*)" in said[0]
    assert "fine" in said[1]
    assert "not permitted" in said[2]
    assert {tool["name"] for tool in made.log("bound-1").request(1).tools} == {"execute", "read_file"}


def test_they_start_others_three_deep(tmp_path: Path) -> None:
    """The third has no tools for that; all are recorded with the run, each with who started it."""
    deeper = calls(("agent_spawn", {"agent": "deep", "task": "deeper"}))
    made = ran(tmp_path, minds(deeper, deep=deeper), agents=[agent("deep")])
    assert {name: (one.parent, one.depth) for name, one in made.tasks.items()} == {
        "deep-1": ("", 1), "deep-2": ("deep-1", 2), "deep-3": ("deep-2", 3),
    }  # fmt: skip
    assert "There is no tool 'agent_spawn'" in made.results("deep-3")[0]
    assert made.end["outcome"] == "ok"


def test_many_that_wait_for_others_do_not_starve_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each keeps a thread while it waits; there is one for each, on a machine with one core, too."""
    for name in ("cpu_count", "process_cpu_count"):
        monkeypatch.setattr(os, name, lambda: 1, raising=False)
    spawn = {"agent": "over", "background": True}
    brain = minds(
        calls(*[("agent_spawn", {**spawn, "task": str(n)}) for n in range(4)],
              *[("task_output", {"id": f"over-{n}", "timeout": 10}) for n in range(1, 5)]),
        over=calls(("agent_spawn", {"agent": "under", "task": "x"})),
        under=slowly(0.3, ("execute", {"command": "echo deep"})),
    )  # fmt: skip
    begun = time.monotonic()
    made = ran(tmp_path, brain, agents=[agent("over"), agent("under")])
    assert [text.count("deep") for text in made.results()[4:]] == [1] * 4
    assert time.monotonic() - begun < 60


def test_they_have_the_tools_of_their_run(tmp_path: Path) -> None:
    """Nobody accepts a plan there, and lines are kept by `note`."""
    made = ran(
        tmp_path,
        minds(calls(("agent_spawn", {"agent": "scout", "task": "x"})), scout=calls()),
        agents=[agent("scout")],
    )
    for task in ("", "scout-1"):
        named = {tool["name"] for tool in made.log(task).request(1).tools}
        assert "execute" in named and not named & {"plan_enter", "todo_write", "memory_save"}
