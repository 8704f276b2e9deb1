"""A conversation is on disk step by step; one that was cut off goes on, and the model is told what nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.builtin.loop import turns
from harness.builtin.loop.loop import Limits
from tests.agents.modelserver import Reply
from tests.builtin.talking import WIRES, Bench, address, calling, serving, steps
from tests.builtin.tools.test_find_tools import served


def cut_at(path: Path, kind: str, nth: int = 0) -> None:
    """Leave of the file what a kill right after this row leaves."""
    lines = path.read_text().splitlines(keepends=True)
    found = [number for number, line in enumerate(lines) if kind in json.loads(line)]
    path.write_text("".join(lines[: found[nth] + 1]))


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_that_was_cut_off_is_not_carried_out_again_unsaid(tmp_path: Path, wire: str) -> None:
    """The next run goes on with every step that was on disk; the call that had begun has a result that says so, the one after it
    another."""
    bench = Bench(tmp_path, wire=wire)
    with serving(steps("echo one >> log.txt", "echo two >> log.txt")) as server:
        url = address(server, wire)
        first = bench.talk(url)
        cut_at(first.folder / "turns.jsonl", "begins", 1)
        server.brain = steps("", "", Reply("All there."))
        second = bench.talk(url, run="2-worker-F-001", prompt="The new prompt.", cut=first.log)
    assert (second.end.outcome, second.end.reply) == ("ok", "All there.")
    assert (bench.folder / "log.txt").read_text() == "one\ntwo\n"
    asked = server.seen[-1].exchange
    assert asked is not None
    assert "Look at what is there before you do it again" in asked.results[-1]
    assert "The new prompt." in asked.text and "Do it." in asked.text


def test_a_call_that_had_not_begun_says_so(tmp_path: Path) -> None:
    """Only what may have had an effect is in doubt."""
    bench = Bench(tmp_path)
    with serving(steps("echo one")) as server:
        first = bench.talk(f"{server.url}/v1")
        cut_at(first.folder / "turns.jsonl", "answer", 0)
        server.brain = lambda exchange: Reply("Then so.")
        second = bench.talk(f"{server.url}/v1", run="2-worker-F-001", cut=first.log)
    assert second.results()[-1].startswith("It was not carried out: the run was ended before it began")


def test_tools_that_were_loaded_are_in_the_requests_that_follow(tmp_path: Path) -> None:
    """Also in those of the run that goes on with it; a call of one counts as begun before it begins."""
    more = [served(f"x_{number}") for number in range(70)]
    bench = Bench(tmp_path, more=more)
    with serving(steps(calling("find_tools", {"load": ["x_1"]}), calling("x_1", {}))) as server:
        first = bench.talk(f"{server.url}/v1")
        cut_at(first.folder / "turns.jsonl", "begins")
        server.brain = steps("", "", Reply("All there."))
        second = bench.talk(f"{server.url}/v1", run="2-worker-F-001", cut=first.log)
    assert first.log.begun and "Look at what is there" in second.results()[-1]
    offered = [[name for name in one.exchange.tools if name[:2] == "x_"] for one in server.seen if one.exchange]
    assert offered == [[], ["x_1"], ["x_1"], ["x_1"]]
    found = [second.log.request(1), *(first.log.request(number) for number in (2, 1))]
    assert [[tool["name"] for tool in one.tools if tool["name"][:2] == "x_"] for one in found] == [["x_1"], ["x_1"], []]


def test_a_kill_in_the_middle_of_an_answer_loses_that_answer_alone(tmp_path: Path) -> None:
    """The request is recorded, its answer is not; what came before it is there."""
    bench = Bench(tmp_path)
    with serving(steps("echo one", "echo two")) as server:
        first = bench.talk(f"{server.url}/v1")
        cut_at(first.folder / "turns.jsonl", "turn", 1)
        server.brain = lambda exchange: Reply("On it goes.")
        second = bench.talk(f"{server.url}/v1", run="2-worker-F-001", cut=first.log)
    assert second.end.reply == "On it goes."
    assert [text.splitlines()[-1] for text in second.results()] == ["one"]
    before = turns.read(str(first.folder / "turns.jsonl"))
    assert before is not None and before.turns[2].answer is None


def test_what_the_tools_keep_goes_on_too(tmp_path: Path) -> None:
    """What a file was like when it was read survives its process."""
    bench = Bench(tmp_path)
    (bench.folder / "a.txt").write_text("a")
    with serving(steps(calling("read_file", {"path": "a.txt"}))) as server:
        first = bench.talk(f"{server.url}/v1")
        assert not first.rows[2].get("failed"), first.results()
        state = first.log.state
        second = bench.talk(f"{server.url}/v1", run="2-worker-F-001", cut=first.log)
    assert state and second.log.state == state


def test_every_step_is_on_disk_before_the_next_request(tmp_path: Path) -> None:
    """The server looks into the file while it answers: the result of the call before is there, and so is the request itself."""
    bench, found = Bench(tmp_path), tmp_path / "found"

    def brain(exchange: object) -> Reply:
        log = turns.read(str(bench.run_folder() / "turns.jsonl"))
        assert log is not None
        with found.open("a") as file:
            file.write(f"{max(log.turns)} {sum(one['role'] == 'tool' for one in log.messages())}\n")
        return Reply("", "echo a") if max(log.turns) < 4 else Reply("Done.")

    with serving(brain) as server:
        assert bench.talk(f"{server.url}/v1").end.outcome == "ok"
    assert found.read_text() == "1 0\n2 1\n3 2\n4 3\n"


def test_a_conversation_that_goes_on_is_whole_in_its_own_file(tmp_path: Path) -> None:
    """The turns of the run before may be removed."""
    bench = Bench(tmp_path)
    bench.limits = Limits(max_steps=2)
    with serving(steps("echo one", "echo two", "echo three")) as server:
        first = bench.talk(f"{server.url}/v1")
        log = first.log
        (first.folder / "turns.jsonl").unlink()
        second = bench.talk(f"{server.url}/v1", run="2-worker-F-001", cut=log)
    asked = [one.exchange for one in server.seen if one.exchange]
    assert second.log.request(1).messages[: len(log.context)] == log.messages()
    assert [len(one.results) for one in asked] == [0, 1, 2, 3]
