"""notices.jsonl: a line for a run or a decision, behind the calls of its hooks."""

from __future__ import annotations

import json
from pathlib import Path

from harness.state import journal, names
from tests.missions import House


def test_each_run_is_a_line_with_what_each_hook_said(house: House) -> None:
    """Also a run that none of the hooks is for, so that it is not reported later."""
    house.config(
        'agent = "scripted"',
        *('[[on]]\nevent = "run"\nrun = ["true"]', '[[on]]\nevent = "run"\nrun = ["sh", "-c", "echo no; false"]'),
    )
    house.work({"run": "touch 1.txt"})
    house.config('agent = "scripted"', "[[on]]", 'event = "done"', 'run = ["true"]')
    house.role("validator", "F-001")
    found = [json.loads(line) for line in house.read("notices.jsonl").splitlines()]
    wanted = ["run--", *(f"run-{line['run']}" for line in house.ran())]
    assert [(row["event"], sorted(row["calls"].values())) for row in found] == [
        *zip(wanted, ([], ["", "no"], []), strict=True)
    ]


def test_a_line_that_is_no_notice_is_named_by_its_number(house: House) -> None:
    """A torn last line is none, as in each file of this kind."""
    house.config('agent = "scripted"', "[[on]]", 'event = "run"', 'run = ["false"]')
    house.work({"run": "touch 1.txt"})
    path = Path(house.layout.path(names.NOTICES))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at": "20')
    assert "the hook 'false' failed for run-" in house.harness("status").out
    path.write_bytes(whole + b'{"at": 1}\n')
    done = house.harness("status")
    assert done.code == 65 and "notices.jsonl, line 3" in done.err, done


def test_lines_of_earlier_missions_are_read(house: House) -> None:
    """One for each call, and one for the newest run after them: only what comes later is reported, and a failed call is shown."""
    house.config(
        'agent = "scripted"', "[[on]]", 'event = "run"', 'run = ["sh", "-c", "echo >>../told; echo no; false"]'
    )
    house.work({"run": "touch 1.txt"})
    (run,), path = [row["run"] for row in house.ran()], Path(house.layout.path(names.NOTICES))
    key = next(iter(json.loads(path.read_text().splitlines()[-1])["calls"]))
    rows = [
        {"at": "2026-11-29T00:00:00Z", "event": f"run-{run}", "state": state, "key": key, "label": "sh", "said": said}
        for state, said in (("begun", ""), ("failed", "no"))
    ]
    rows.append({"at": "2026-11-29T00:00:01Z", "event": run, "state": "seen", "key": "", "label": "", "said": ""})
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    journal.adopt(house.layout)
    assert f"failed for run-{run}: no" in house.harness("status").out
    house.role("validator", "F-001")
    assert (house.folder / "told").read_text() == "\n\n"
