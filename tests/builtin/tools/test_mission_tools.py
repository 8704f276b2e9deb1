"""note, issue, check, reply: called as tools in a run, they do what the commands of the same names do, in the run's own name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.builtin.tools import _mission_tools
from tests.missions import CHECKOUT, House
from tests.planned import raw_of

CALLS = """import json, os, sys
sys.path.insert(0, {checkout!r})
from harness.filesystem.local import Local
from harness.state.layout import Layout
from harness.builtin.tools import registry
from harness.builtin.tools.tool import ToolSession

bench = ToolSession(Local(os.getcwd()), layout=Layout({project!r}), run_id=os.environ.pop("HARNESS_INSIDE"))
for name, given in json.load(open({calls!r})):
    found = registry.call(bench, name, given)
    with open({said!r}, "a") as file:
        file.write(json.dumps([found.failed, found.text]) + "\\n")
"""


def called(house: House, *calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, str]]:
    """(failed, text) of each call in a worker's run, by a program outside the glass that the run started: no variable and no
    command tells it where it is."""
    program, given, said = (house.folder / name for name in ("calls.py", "calls.json", "said.jsonl"))
    given.write_text(json.dumps(calls))
    said.write_text("")
    program.write_text(
        CALLS.format(checkout=str(CHECKOUT), project=str(house.project), calls=str(given), said=str(said))
    )
    house.work({"run": f"echo 1 > 1.txt; '{sys.executable}' -P '{program}'"})
    rows = [json.loads(line) for line in said.read_text().split("\n")[:-1]]
    assert len(rows) == len(calls), Path(house.layout.run(house.result()["run"]).stderr).read_text()
    return [(failed, text) for failed, text in rows]


def test_the_verbs_of_a_run_work_as_tools(unconfined: House) -> None:
    """The note is the role's, the issue is the run's, the check is fired as the validator will, the reply is kept; and what was
    remembered before the run is found in it."""
    unconfined.harness("note", "--tag", "TRICK", "the parser is slow on tabs")
    said = called(
        unconfined,
        ("memory_search", {"query": "parser tabs"}),
        ("note", {"text": "tabs were the reason", "tag": "CONTEXT"}),
        ("issue", {"title": "crashes on empty input", "repro": "run it"}),
        ("check", {"name": "F-001"}),
        ("check", {"name": "VAL-2"}),
        ("reply", {"text": {"status": "done"}}),
        ("reply", {"text": '{"status": "done"}'}),
        ("reply", {"text": '{"status": "implemented", "summary": "did it"}'}),
    )
    assert [failed for failed, _ in said] == [False, False, False, False, False, True, True, False]
    texts = [text for _, text in said]
    assert "the parser is slow on tabs" in texts[0]
    assert texts[2] == "I-001 is noted."
    assert texts[3].startswith("1 green, 0 red.") and "green  VAL-1  test -f 1.txt" in texts[3]
    assert "red  VAL-2  test -f 2.txt\n(no output)\nits commands, when it ran again:\n+ test -f 2.txt" in texts[4]
    assert texts[5].startswith("'text' must be text")
    assert "'status' must be one of implemented, blocked" in texts[6]
    assert texts[7].startswith("The reply is good and kept")
    run = unconfined.result()
    assert "worker F-001 CONTEXT: tabs were the reason" in raw_of(unconfined)
    (issue,) = (json.loads(line) for line in unconfined.read("issues.jsonl").split("\n") if line)
    assert (issue["by"], issue["severity"], issue["repro"]) == (run["run"], "minor", "run it")
    assert (run["outcome"], unconfined.feature().status) == ("ok", "validating")


def test_what_a_verb_refuses_is_a_failure_in_its_own_words(unconfined: House) -> None:
    """The same words as its command has, so that the model mends it; nothing is written."""
    said = called(
        unconfined,
        ("note", {"text": " "}),
        ("note", {"text": "x" * 400}),
        ("note", {"text": "x", "tag": "HINT"}),
        ("issue", {"title": "x", "severity": "huge"}),
        ("check", {"name": "F-9"}),
    )
    assert [failed for failed, _ in said] == [True] * 5
    words = (
        "The note is empty.",
        "the limit is 300",
        "'tag' must be one of TRICK",
        "'severity' must be one of critical",
    )
    for (_, text), expected in zip(said, (*words, "no feature and no claim 'F-9'"), strict=True):
        assert expected in text
    assert raw_of(unconfined) == []


def test_after_its_run_a_verb_says_that_it_is_over(unconfined: House, tmp_path: Path) -> None:
    """A conversation that is continued too late writes nothing."""
    from tests.builtin.tools.benches import Bench

    run = unconfined.work({"say": "nothing"})["run"]
    bench = Bench(tmp_path, layout=unconfined.layout, run_id=run)
    before = raw_of(unconfined)
    for name, given in (("note", {"text": "late"}), ("issue", {"title": "late"}), ("reply", {"text": "{}"})):
        assert "is over" in bench.refused(name, **given)
    assert raw_of(unconfined) == before


@pytest.mark.parametrize("tool", _mission_tools.TOOLS, ids=lambda tool: tool.name)
def test_each_verb_of_the_inbox_is_a_tool(tool: Any) -> None:
    """And no other: what a program in the glass may ask for, a tool may."""
    from harness.run.requests import verbs as inbox_verbs

    known = {
        "note": inbox_verbs.note,
        "issue": inbox_verbs.report,
        "reply": inbox_verbs.reply,
        "check": inbox_verbs.check,
    }
    assert tool.name in known and len(_mission_tools.TOOLS) == len(known)
