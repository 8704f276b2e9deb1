"""Golden missions of format 1 (v1/README.md): a start migrates them, and their facts hold afterwards."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.mission import features, runs
from harness.state import files, journal, migrations, names
from harness.workplace import mission_lock
from tests.crash import contents, lay_out, sampled, stops
from tests.formats.golden import Golden as Mission
from tests.missions import CHECKOUT

ARCHIVES = Path(__file__).parent / "v1"
NAMES = ("done", "middle", "escalated", "killed", "journal", "waiting")
TORN = json.loads((ARCHIVES / "torn.json").read_text())["variants"]
SOME = ("contract-log.jsonl long", "runs.jsonl short")  # torn, in the suite
MIGRATED = "  migrated the mission to format 2\n"
SHAPES = {"needs": "features", "dispute": "claims", "cut": "run"}


class Golden(Mission):
    """A mission of format 1, and its facts."""

    def __init__(self, name: str) -> None:
        super().__init__(name, ARCHIVES)
        self.facts: dict[str, Any] = json.loads((ARCHIVES / f"{name}.json").read_text())


def sealed(golden: Golden) -> dict[str, bytes]:
    """The folders of runs, byte for byte, except what an open run leaves next to its own files."""
    found = contents(str(golden.state / "runs"))
    return {path: data for path, data in found.items() if not {"open", "index"} & set(Path(path).parts)}


@pytest.mark.parametrize("name", NAMES)
def test_a_start_migrates_a_mission_and_its_facts_hold(name: str) -> None:
    """Dead runs are settled as before; then status, due role, spending and doctor report the same, and prompts are there."""
    golden = Golden(name)
    settled, before = golden.facts["settled"], sealed(golden)
    done = golden.start()
    words = settled["said"]["out"].splitlines(keepends=True)
    notes = [line for line in words if line.startswith("note:")]
    said = [line for line in words if line not in notes]
    shown = [line for line in done.out.splitlines(keepends=True) if not line.startswith("runs do not see")]
    assert (done.code, shown) == (0, [*said, MIGRATED, *notes]), done
    assert golden.read("format") == "2\n"
    assert {one.id: [one.status, one.attempts] for one in features.load(golden.layout)} == settled["features"]
    usage = json.loads(golden.program("usage", "--json").out)
    assert (usage["total"]["runs"], usage["total"]["told"]) == (settled["runs"], settled["told"])
    if not golden.facts["open_runs"]:
        status = json.loads(golden.program("status", "--json").out)
        assert status.pop("gated")["reasons"] == {}
        assert {**status, "why": ""} == same_day(golden, golden.facts["status"])
        assert usage.pop("replays") == {}
        assert usage == golden.facts["usage"]
        assert sealed(golden) == before
    else:
        assert {path: data for path, data in sealed(golden).items() if path in before} == before
    due = golden.program("next").out
    assert due in (settled["next"]["out"], golden.facts["next_later"] + "\n") or due.rstrip("\n") == guarded(golden)
    assert golden.program("doctor").code == 0
    assert_every_prompt_can_be_rebuilt(golden)


def same_day(golden: Golden, status: dict[str, Any]) -> dict[str, Any]:
    """A status in today's form: a vendor's limit may be over, `why` is a sentence for people, and no run was confined."""
    due = golden.program("next").out.rstrip("\n")
    assert due in (golden.facts["next"]["out"].rstrip("\n"), golden.facts["next_later"], guarded(golden))
    warnings = ["1 of 1 runs not confined (docs/threat-model.md)", *status["warnings"]]
    claims = {one["claim"]: {**one, "reason": reason_of(golden, one["claim"])} for one in status["claims"]}
    if guarded(golden):  # a claim of guards alone was called proven
        claims[SUITE]["word"] = "guarded"
        warnings.append(f"{SUITE}: its checks are guards, which may be green without the work")
        first = status["features"][0]
        status = {**status, "features": [{**first, "proven": first["proven"] - 1}, *status["features"][1:]]}
        lines = {"proven": "12 of 14 claims, by 19 checks", "guarded": f"{SUITE}   (run.sh claim accept {SUITE})"}
        status["proof"] = {**status["proof"], **lines}
    newer = ("max_cost_usd_day", "max_cost_usd_feature", "before_today_usd", "elsewhere_usd")
    limits = {**status["limits"], **dict.fromkeys(newer)}
    return {**status, "due": due, "why": "", "confined": "", "claims": [*claims.values()], "warnings": warnings,
            "limits": limits}  # fmt: skip


SUITE = "VAL-SUITE-001"


def guarded(golden: Golden) -> str:
    """What is due now where a mission was DONE with a claim that guards alone hold; else nothing."""
    return "ESCALATE proof" if golden.facts["next"]["out"] == "DONE\n" else ""


def reason_of(golden: Golden, claim: str) -> str:
    """Why a claim is not proven, which format 1 did not say."""
    status = json.loads(golden.program("status", "--json").out)
    return next(str(one["reason"]) for one in status["claims"] if one["claim"] == claim)


def assert_every_prompt_can_be_rebuilt(golden: Golden) -> None:
    """Byte for byte, from its manifest; a person's answer is no longer a run, and nothing else is gone."""
    known = [row for row in golden.facts["runs"] if row["role"] != "person"]
    assert [row["run"] for row in golden.ran()][: len(known)] == [row["run"] for row in known]
    for row in known:
        paths = golden.layout.run(row["run"])
        if row["prompt"]:
            parts = json.loads(Path(paths.manifest).read_text())
            data = b"".join(part["text"].encode() if "text" in part else kept(golden, part["object"]) for part in parts)
            assert files.digest(data) == row["prompt"], row["run"]
    answers = [row["reason"] for row in golden.facts["runs"] if row["role"] == "person"]
    assert [one.text for one in runs.answers(golden.layout)] == answers
    assert runs.broken_seals(golden.layout, 10**6) == []


def kept(golden: Golden, name: str) -> bytes:
    """The bytes of an object."""
    return (golden.state / "objects" / name[:2] / name[2:]).read_bytes()


def test_notes_keep_what_they_said_and_name_it_by_their_kind() -> None:
    """This mission has every kind of note that there was."""
    golden = Golden("middle")
    golden.start()
    found = {one.id: one.notes for one in features.load(golden.layout)}
    old = {name: one["notes"] for name, one in golden.facts["features"].items()}
    assert {note["kind"] for notes in found.values() for note in notes} == set(features.NOTES) - {"set"}
    for name, notes in found.items():
        for note, (kind, by, ids, text) in zip(notes, old[name], strict=True):
            assert (note["kind"], note["by"], note.get("text", "")) == (kind, by, text)
            if kind in SHAPES:
                assert note[SHAPES[kind]] == (ids[0] if kind == "cut" else ids)


def test_the_counters_go_on_behind_an_answer_of_format_1() -> None:
    """The newest line was a person's: the migrated mission is not stalled either."""
    golden = Golden("middle")
    books = golden.state / "runs.jsonl"
    lines = books.read_text().split("\n")
    last = max(number for number, line in enumerate(lines) if '"role":"person"' in line)
    books.write_text("\n".join(lines[: last + 1]) + "\n")
    journal.adopt(golden.layout)
    files.remove(golden.layout.path(names.MISSION_LOCK))  # it names the newest run
    for row in lines[last + 1 : -1]:
        shutil.rmtree(golden.state / "runs" / json.loads(row)["run"])
    assert golden.start().code == 0
    totals = json.loads(golden.program("status", "--json").out)["totals"]
    assert (totals["since_green"], totals["rejected"]) == (0, 0)
    assert totals["runs"] == json.loads(lines[last])["totals"]["runs"]


READING = ("next", "status", "usage", "why F-001", "runs list", "feature show F-001", "doctor")


def test_what_only_reads_says_what_to_do_and_changes_nothing() -> None:
    """A mission that this harness has not started yet gives a clear message, and never a crash."""
    golden = Golden("middle")
    before = known(contents(str(golden.state)))
    for words in READING:
        done = golden.program(*words.split())
        assert (done.code, "Traceback" in done.err) == (10 if words == "doctor" else 65, False), words
        assert "format 1 is from an older harness. The next start migrates it to format 2: start run.sh" in (
            done.out + done.err
        ), words
        assert known(contents(str(golden.state))) == before, words


def test_while_a_run_of_an_older_harness_lives_the_start_waits() -> None:
    """75, and the mission stays unchanged."""
    golden = Golden("middle")
    with mission_lock.take(golden.layout) as lock:
        lock.sign({"pid": 1, "role": "worker"})
        done = golden.start()
    assert (done.code, golden.read("format")) == (75, "1\n"), done
    assert golden.start().out == MIGRATED


def test_a_migrated_mission_goes_on() -> None:
    """The waiting order is carried out, and the due role runs; a second start changes nothing."""
    golden = Golden("middle")
    golden.start()
    before = contents(str(golden.state))
    assert golden.start().out == ""
    assert contents(str(golden.state)) == before
    done = golden.run([str(CHECKOUT / "run.sh"), "--once"])
    assert (done.code, golden.facts["next"]["out"] in done.out.replace("> ", "")) == (0, True), done
    assert golden.ran()[-1]["version"].startswith("0.1.0")
    assert golden.program("doctor").code == 0


def test_a_migration_that_is_killed_at_any_call_leaves_format_1_or_2() -> None:
    """Never a mixture; the next start continues from there."""
    golden = Golden("middle")
    layout, state = golden.layout, str(golden.state)
    before = contents(state)
    migrations.migrate(layout)
    after = known(contents(state))
    lay_out(state, before)
    words = []
    for _ in stops(lambda: migrations.migrate(layout)):
        with files.Lock(layout.path(names.STATE_LOCK)):
            journal.finish_journal(layout)
        found = known(contents(state))
        words.append("new" if found == after else "old" if found == known(before) else "half")
        migrations.migrate(layout)
        assert known(contents(state)) == after
        lay_out(state, before)
    assert [word for word, _ in itertools.groupby(words)] == ["old", "new"]
    assert len(words) > 10


def known(disk: dict[str, bytes]) -> dict[str, bytes]:
    """The mission's files that count: without the journal's own, the cache, and a crash's leftovers of a write."""
    derived = ("/journal/", "/cache/", ".tmp")
    return {path: data for path, data in disk.items() if not any(part in path for part in derived)}


# the migration: 12 to 22
@pytest.mark.parametrize(
    "moment", sampled([1, 7, *range(11, 24, 2), 30, 40, 44, 56, 68, 72], {13, 21, 44}.__contains__)
)
def test_a_start_that_is_killed_while_it_settles_and_migrates_goes_on(moment: int) -> None:
    """A run of format 1 had died: the next start settles it as without the interruption, and reports no tampering."""
    golden = Golden("killed")
    program = f"from tests.crash import stop_at\nimport os, sys\nsys.argv = ['harness', 'init', '--quietly']\nstop_at({moment})\n"
    program += "from harness.__main__ import main\nraise SystemExit(main())\n"
    code = golden.run([sys.executable, "-c", program], env={"PYTHONPATH": str(CHECKOUT)}).code
    assert code in (0, 77)
    assert golden.start().code == 0
    last = golden.ran()[-1]
    blamed = [name for name in last["refused"] if not name.endswith(".tmp")]  # leftovers of a crash
    assert (last["outcome"], blamed, golden.read("format")) == ("killed", [], "2\n"), last["reason"]
    assert {one.id: [one.status, one.attempts] for one in features.load(golden.layout)} == golden.facts["settled"][
        "features"
    ]
    assert golden.program("doctor").code == 0


def torn_name(torn: dict[str, Any]) -> str:
    """The file, and how its last line is torn."""
    return f"{torn['file']} {torn['how']}"


@pytest.mark.parametrize("torn", sampled(TORN, lambda torn: torn_name(torn) in SOME), ids=torn_name)
def test_a_torn_last_line_is_no_obstacle_to_the_migration(torn: dict[str, Any]) -> None:
    """The start migrates; if a line of the run log is lost, `doctor --fix` reports it first, as before."""
    golden = Golden("middle")
    path = golden.state / torn["file"]
    path.write_bytes(path.read_bytes()[: torn["keep"]] + torn["append"].encode())
    done = golden.start()
    if done.code == 65:
        assert (torn["file"], torn["how"], "doctor --fix" in done.err) == ("runs.jsonl", "short", True)
    else:
        assert MIGRATED in done.out, done
    assert golden.program("doctor", "--fix").code == 0
    assert (golden.read("format"), golden.program("next").out) == ("2\n", torn["fixed"]["next"]["out"])
    assert os.listdir(golden.layout.path(names.JOURNAL)) == []
