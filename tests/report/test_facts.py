"""What the page is made of: everything that can be read, and by name everything that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.mission import mission
from harness.report import _facts, _page
from harness.state import names
from harness.state.layout import Layout
from tests.missions import House, differences, listing
from tests.report import many


def test_runs_have_their_lane_attempt_receipts_and_notes(house: House) -> None:
    """Oldest first, with the times between which they worked."""
    many.mission(house.layout, 12)
    found = _facts.gather(house.layout)
    assert [one.result.run for one in found.runs] == [row["run"] for row in house.ran()]
    assert [one.lane for one in found.runs[:4]] == ["tree-1", "tree-2", "tree-3", "tree-1"]
    assert [len(one.receipts) for one in found.runs[:4]] == [0, 0, 8, 0]
    assert found.runs[1].notes[0][0] == "TRICK"
    assert all(one.end - one.start == one.result.seconds for one in found.runs)
    assert found.faults == []


BROKEN = {
    "runs.jsonl": b'{"run": 1}\n',
    "features.json": b"{",
    "issues.jsonl": b"nonsense\n",
    "answers.jsonl": b"[]\n",
    "memory/archive.jsonl": b"{}\n",
    "memory/curated.json": b"{}",
    "config.toml": b"agent = [",
    "contract-log.jsonl": b"{}\n",
    "mission.json": b"[]",
    "memory/summary.md": b"\xff",
    "validation-contract.md": b"### VAL-1: x\n\n```sh nonsense\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_and_the_rest_is_shown(house: House, name: str) -> None:
    """The page says which, and the command ends with 65."""
    many.mission(house.layout, 8)
    path = Path(house.layout.state, name)
    whole = path.read_bytes() if path.exists() and name.endswith(".jsonl") else b""
    path.write_bytes(whole + BROKEN[name])
    found = _facts.gather(house.layout)
    assert [fault for fault in found.faults if name in fault], found.faults
    assert len(found.runs) == 8
    text = _page.render(found).decode()
    assert "could not be read" in text
    assert name in text
    done = house.harness("report")
    assert (done.code, name in done.err) == (65, True)


def test_a_torn_last_line_is_named(house: House) -> None:
    """A run that is half written is not silently missing."""
    many.mission(house.layout, 4)
    with Path(house.layout.path(names.RUN_LOG)).open("ab") as file:
        file.write(b'{"run":"17')
    assert [fault for fault in _facts.gather(house.layout).faults if "torn" in fault]


@pytest.mark.parametrize("name", ["context.json", "receipts.jsonl", "notes.jsonl", "prompt.md", ""])
def test_a_run_whose_files_are_damaged_is_named(house: House, name: str) -> None:
    """One that does not parse, one that changed after the run closed, or the whole folder gone; the run stays on the page."""
    many.mission(house.layout, 4)
    folder = Path(house.layout.run(house.ran()[2]["run"]).folder)
    if name:
        (folder / name).write_bytes(b"other\n")
    else:
        folder.rename(folder.with_name("elsewhere"))
    found = _facts.gather(house.layout)
    assert [fault for fault in found.faults if folder.name in fault]
    assert len(found.runs) == 4


def test_a_run_that_a_person_removed_is_no_fault(house: House) -> None:
    """It stays on the page, with who removed its files."""
    house.work({"say": "a secret"})
    run = house.result()["run"]
    assert house.harness("forget", run, "--yes").code == 0
    found = _facts.gather(house.layout)
    assert (found.faults, [one.result.run for one in found.runs]) == ([], [run])
    assert found.runs[0].forgotten
    assert found.runs[0].forgotten in _page.render(found).decode()


def test_a_run_that_is_not_in_the_log_is_there_too(house: House) -> None:
    """Under way, or lost."""
    many.mission(house.layout, 4)
    lines = Path(house.layout.path(names.RUN_LOG)).read_bytes().split(b"\n")
    Path(house.layout.path(names.RUN_LOG)).write_bytes(b"\n".join(lines[:-2]) + b"\n")
    found = _facts.gather(house.layout)
    assert [one.state for one in found.unfinished] == ["not in the run log"]
    assert f"run-{found.unfinished[0].run}" in _page.render(found).decode()


def test_questions_to_a_person_are_found(house: House) -> None:
    """The open escalation, checkpoints, and what was answered, with its time."""
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stuck\n---\nWhat now?\n")
    Path(house.layout.path(names.CHECKPOINTS)).mkdir(exist_ok=True)
    Path(house.layout.path(names.CHECKPOINTS), "look.md").write_text("Look at it.\n")
    Path(house.layout.path(names.ESCALATIONS)).mkdir(exist_ok=True)
    Path(house.layout.path(names.ESCALATIONS), "1777000000-plan.md").write_text("---\nkind: plan\n---\nNo plan.\n")
    found = _facts.gather(house.layout).asked
    assert [(one.kind, one.at) for one in found] == [
        ("stuck", ""),
        ("checkpoint look", ""),
        ("plan", "2026-04-24T03:06:40Z"),
    ]
    assert found[0].text == "What now?\n"


def test_a_checkpoint_is_a_question_while_it_waits_and_when_it_was_answered(house: House) -> None:
    """One that config.toml asks for too, with why, what to read, the answer and whose it is."""
    house.config('agent = "scripted"', "[[checkpoint]]", 'name = "begin"', 'when = "before-feature:F-001"')
    (found,) = _facts.gather(house.layout).asked
    assert (found.kind, found.at) == ("checkpoint begin", "")
    assert "F-001 is to begin" in found.text
    assert "checkpoint grant begin" in found.text
    assert house.harness("checkpoint", "grant", "begin", "--note", "use files").code == 0
    (found,) = _facts.gather(house.layout).asked
    assert (found.kind, found.at != "") == ("checkpoint begin granted", True)
    assert "F-001 is to begin" in found.text
    assert "use files" in found.text


def test_there_is_no_page_without_a_mission(unbegun: House) -> None:
    """The usual words."""
    with pytest.raises(UsageFault, match="There is no mission"):
        _facts.gather(unbegun.layout)


def test_a_mission_that_was_put_away_gets_no_cache(house: House) -> None:
    """Its folder stays as it is."""
    many.mission(house.layout, 4)
    archived = Layout(str(house.project), house.layout.archive_of(mission.load(house.layout).id))
    assert house.harness("init", "--abandon", "--quietly").code == 0
    before = listing(Path(archived.state))
    assert len(_facts.gather(archived).runs) == 4
    assert differences(before, listing(Path(archived.state))) == []
