"""`harness search`: what was asked, said and learned, found again; bounded, newest first, with the run to look at."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from harness.base import clock
from harness.state import names, raw
from tests.missions import House


def value(house: House, *words: str) -> dict[str, Any]:
    """What a search finds, as JSON."""
    done = house.program("search", *words, "--json")
    assert (done.code, done.err) == (0, ""), done
    return dict(json.loads(done.out))


def test_what_an_agent_said_is_found_as_it_was_said_and_not_as_it_is_escaped(house: House) -> None:
    """Quotes, a backslash, a line of several, Chinese; with file, line and run. What JSON adds is no hit."""
    said = 'first line\nit says "hello\\world" \u6f22\u5b57 twice\nlast'
    run_id = house.work({"say": said})["run"]
    for words in (['says "hello\\world"'], ["漢字"], ["twice", "hello"], ["-e", r'"h[el]+o\\w\w+"']):
        found = [hit for hit in value(house, *words, "--in", "runs")["runs"] if hit["file"].endswith("stream.jsonl")]
        assert [(hit["run"], hit["text"]) for hit in found] == [(run_id, said.split("\n")[1])]
        path = house.state / found[0]["file"]
        assert json.loads(path.read_text().split("\n")[found[0]["line"] - 1])["text"] == said
    for words in (['\\"hello'], ["\\u6f22"], ["kind"], ["line\\nit"]):
        assert value(house, *words, "--in", "runs")["runs"] == []


def test_prompts_memory_and_identity_are_places_of_their_own(house: House) -> None:
    """Each alone, and all without --in."""
    Path(house.layout.path(names.SPEC)).write_text("# Zebra one\n")
    Path(house.layout.path(names.SUMMARY)).write_text("## Lessons\n\n- [2026-04-24] zebra two (F-001)\n")
    house.harness("note", "zebra three")
    house.identity.mkdir(exist_ok=True)
    (house.identity / "worker.md").write_text("- [2026-04-24] zebra four\n")
    run_id = house.work({"say": "zebra five Zebra"})["run"]
    texts = {
        place: {hit["text"] for kind in ("memory", "runs") for hit in value(house, "zebra", "--in", place)[kind]}
        for place in ("raw", "memory", "identity", "prompts", "runs")
    }
    assert texts["memory"] == {"- [2026-04-24] zebra two (F-001)"}
    assert [len(texts[name]) for name in ("raw", "identity")] == [1, 1]
    assert "- [2026-04-24] zebra two (F-001)" in texts["prompts"]
    assert texts["runs"] == {"zebra five Zebra"}
    both = value(house, "zebra")
    assert {hit["text"] for kind in ("memory", "runs") for hit in both[kind]} == set().union(*texts.values())
    assert value(house, "Zebra", "one", "--in", "prompts")["runs"][0]["text"] == "# Zebra one"
    assert {hit["run"] for hit in both["runs"]} == {run_id}


def test_the_newest_run_comes_first_and_filters_leave_others_out(house: House) -> None:
    """By role, feature and time; output is bounded, and says how to go on."""
    first = house.work({"say": "needle"})["run"]
    second = house.work({"say": "needle"}, feature="F-002")["run"]

    def ran(*words: str) -> list[str]:
        return [hit["run"] for hit in value(house, "needle", "--in", "runs", *words)["runs"]]

    assert list(dict.fromkeys(ran())) == [second, first]
    assert set(ran("--feature", "F-001")) == {first}
    assert (ran("--role", "planner"), set(ran("--role", "worker"))) == ([], {first, second})
    assert set(ran("--since", "1h")) == {first, second}
    assert ran("--since", clock.stamp(time.time() + 60)[:16]) == []
    done = house.harness("search", "needle", "--in", "runs", "-n", "1")
    assert (done.code, "There are more hits: use -n 5" in done.out, f"run.sh log {second}" in done.out) == (
        0,
        True,
        True,
    )
    assert sum("needle" in line for line in done.out.split("\n")) == 1


def test_memory_is_ranked_and_archived_notes_count(house: House) -> None:
    """Best first; a compacted note is found in the archive."""
    entry = "[2026-04-24T10:05:12Z] worker F-001 TRICK: okapi okapi okapi"
    row = {"seq": 0, "entry": entry, "disposition": "kept", "target": "", "run": "r-1"}
    Path(house.layout.path(names.ARCHIVE)).write_text(json.dumps(row) + "\n")
    raw.append(house.layout, "worker", "F-002", [("AVOID", "an okapi in a long line of many other words")])
    found = value(house, "okapi", "--in", "raw")["memory"]
    assert [hit["file"] for hit in found] == ["memory/archive.jsonl", "memory/raw.md"]
    assert (found[0]["run"], found[0]["at"]) == ("r-1", "2026-04-24T10:05:12Z")
    assert len(value(house, "okapi", "--in", "raw", "--feature", "F-002")["memory"]) == 1
    assert len(value(house, "-e", "ok[a]pi .*other", "--in", "raw")["memory"]) == 1
    assert len(value(house, "okapi", "--in", "raw", "--since", "2026-06-01")["memory"]) == 1


@pytest.mark.parametrize(
    "words", [["search"], ["search", "-e", "("], ["search", "x", "--since", "soon"], ["search", "x", "--in", "attic"]]
)
def test_what_cannot_be_searched_for_is_64(house: House, words: list[str]) -> None:
    """With what may be said."""
    assert house.harness(*words).code == 64


def test_nothing_found_is_said_and_a_file_that_is_no_file_is_named(house: House) -> None:
    """On standard error; the rest is searched. A cut line of a transcript is still text."""
    run_id = house.work({"say": "needle"})["run"]
    assert "No matches." in house.harness("search", "xyzzy").out
    stream = Path(house.layout.run(run_id).stream)
    stream.write_text(stream.read_text() + '{"at":1.0,"kind":"said","text":"a torn nee')
    assert value(house, "a torn nee", "--in", "runs")["runs"][0]["run"] == run_id
    stream.unlink()
    stream.mkdir()
    done = house.program("search", "needle", "--in", "runs")
    assert (done.code, f"not searched: {stream}" in done.err) == (0, True)


def test_an_agent_may_search_and_common_md_says_so(house: House) -> None:
    """A read that is allowed inside a run."""
    house.harness("note", "the zebra crosses at night")
    house.work({"run": "harness search zebra > 1.txt"})
    assert "the zebra crosses" in house.git("show", "HEAD:1.txt")
    assert "harness search" in house.prompt()


def test_a_mission_that_was_put_away_is_searched_after_ours(house: House) -> None:
    """Its runs are named with their mission."""
    run_id = house.work({"say": "needle"})["run"]
    made = json.loads(house.read("mission.json"))["id"]
    assert house.program("init", "--new", "--abandon").code == 0
    assert {hit["run"] for hit in value(house, "needle", "--in", "runs")["runs"]} == {f"{made}/{run_id}"}


@pytest.mark.parametrize(
    "words",
    [["needle"], ['"needle"'], ["漢字"], ["-e", "n[e]edle"], ["-e", "need.*漢字"], ["-e", "(?i)NEEDLE"], ["Part"]],
)
def test_a_program_called_rg_on_path_is_not_asked(house: House, words: list[str]) -> None:
    """A distribution's ripgrep may be of any version: a search finds the same with it and without."""
    house.work({"say": 'a "needle" in 漢字\nb'})
    (house.folder / "bin").mkdir()
    program = house.folder / "bin" / "rg"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    found = house.program("search", *words, "--json", PATH=f"{program.parent}:{house.env['PATH']}")
    assert json.loads(found.out)["runs"]
