"""doctor finds every planted fault, changes nothing while it looks, and --fix repairs what it can."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from harness.base.errors import LockBusy, UsageFault
from harness.commands.setup import doctor
from harness.mission import runs
from harness.state import files, names
from tests import compacting
from tests.missions import CHECKOUT, DISPOSABLE, House, differences, listing, until


def bad(house: House) -> list[str]:
    """What doctor reports as bad."""
    return [one.what for one in doctor.examine(house.layout) if one.state == "bad"]


def add(house: House, name: str, data: bytes) -> None:
    """Append bytes to a file below .harness."""
    with open(house.state / name, "ab") as file:
        file.write(data)


def test_a_sound_mission_is_sound(house: House) -> None:
    """Nothing is bad, every part is named, and the check changes nothing."""
    house.work({"run": "echo 1 > 1.txt"})
    house.harness("note", "hello")
    before = listing(house.project, *DISPOSABLE)
    found = doctor.examine(house.layout)
    assert [one.what for one in found if one.state == "bad"] == []
    names = {one.what.partition(":")[0] for one in found}
    assert {
        "Python",
        "repository",
        "mission",
        "agents",
        "features",
        "claims",
        "roles",
        "raw.md",
        "archive",
        "finished runs and objects",
    } <= names
    assert differences(before, listing(house.project, *DISPOSABLE)) == []


MALFORMED = {
    "features.json": b"{",
    "validation-contract.md": b"### nothing\n",
    "config.toml": b"agent =\n",
    "mission.json": b"[]",
    "format": b"9\n",
    "issues.jsonl": b"{}\n",
    "contract-log.jsonl": b"{}\n",
    "orders.jsonl": b"x\n",
    "runs.jsonl": b"{}\n",
    "memory/curated.json": b"[]",
}


LOOKED_AT_BY_OTHERS = ("runs.jsonl", "memory/curated.json")  # not by the look that names the first of the others


def test_a_malformed_file_is_found_with_its_place(house: House) -> None:
    """All other files are still checked, also malformed ones."""
    for name in [one for one in MALFORMED if one not in LOOKED_AT_BY_OTHERS]:
        spoilt = [name, *(LOOKED_AT_BY_OTHERS if name == "features.json" else ())]
        before = {one: files.read(str(house.state / one)) for one in spoilt}
        for one in spoilt:
            (house.state / one).write_bytes(MALFORMED[one])
        looks = doctor.examine(house.layout)
        found = [look.what for look in looks if look.state == "bad"]
        assert [one for one in spoilt if not any(one.rpartition("/")[2] in what for what in found)] == [], found
        others = (
            "finished runs" if name == "config.toml" else "repository: branch"
        )  # our git asks whether drivers are confined
        assert others in " ".join(look.what for look in looks)
        for one, data in before.items():
            if data is None:
                (house.state / one).unlink()
            else:
                (house.state / one).write_bytes(data)


GROWN = ["contract-log.jsonl", "issues.jsonl", "orders.jsonl", "runs.jsonl"]


def test_torn_last_lines_are_found_and_mended(house: House) -> None:
    """In raw.md the torn text stays as a line; a JSON file loses what cannot be read, and the output says so."""
    house.work({"run": "harness note hello; harness issue slow"})
    house.harness("feature", "set", "F-002", "priority=3")
    house.harness("claim", "accept", "VAL-LOOK")
    before = {name: (house.state / name).read_bytes() for name in (*GROWN, "memory/raw.md")}
    for name in before:
        add(house, name, b'{"id":"torn')
    found = bad(house)
    assert all(f".harness/{name} ends in a torn line; run.sh doctor --fix closes it" in found for name in before)
    done = doctor.fix(house.layout)
    assert {f'cut off the torn last line of .harness/{name}: {{"id":"torn' for name in GROWN} < set(done)
    assert [name for name in GROWN if (house.state / name).read_bytes() != before[name]] == []
    assert house.read("memory/raw.md").encode() == before["memory/raw.md"] + b'{"id":"torn\n'
    assert bad(house) == []
    assert house.work({"say": "nothing"}, feature="F-002")["outcome"] == "no_op"


def test_a_line_that_lacks_only_its_end_is_closed(house: House) -> None:
    """The entry is whole: nothing is lost."""
    house.harness("issue", "slow")
    path = Path(house.layout.path(names.ISSUES))
    path.write_bytes(path.read_bytes()[:-1] + b"\0\0")
    assert doctor.fix(house.layout) == ["closed the torn last line of .harness/issues.jsonl"]
    assert (path.read_bytes()[-2:], bad(house)) == (b"}\n", [])


def test_a_dead_run_is_found_and_settled(house: House) -> None:
    """The next run would do the same; one that lost its lock died all the same."""
    house.script("worker", {"run": "echo 1 > 1.txt; sleep 90"})
    role = house.begin_role("worker", "F-001")
    until((house.tree / "1.txt").exists)
    assert [one.what for one in doctor.examine(house.layout) if "under way" in one.what]
    role.kill()
    role.wait()
    run_id = runs.open_runs(house.layout)[0]
    until(lambda: runs.is_dead(house.layout, run_id))
    assert f"the run {run_id} died; run.sh doctor --fix settles it" in bad(house)
    os.unlink(house.layout.run(run_id).lock)
    assert f"the run {run_id} died; run.sh doctor --fix settles it" in bad(house)
    assert doctor.fix(house.layout) == [f"{run_id} was killed"]
    assert bad(house) == []


def test_a_journal_that_waits_is_found_and_finished(house: House) -> None:
    """A committed journal is carried out."""
    folder = Path(house.layout.path(names.JOURNAL))
    folder.mkdir(exist_ok=True)
    (folder / "record").write_text("[]")
    assert bad(house) == ["a journal is not finished; run.sh doctor --fix finishes it"]
    assert doctor.fix(house.layout) == ["finished a journal that a crash had left behind"]
    assert bad(house) == []


def test_a_tampered_run_is_found(house: House) -> None:
    """In any of its files, however long ago it finished."""
    run_id = house.work({"say": "nothing"})["run"]
    for name in ("prompt.md", "context.json", "manifest.json", "result.json"):
        path = Path(house.layout.run(run_id).folder, name)
        before = path.read_bytes()
        path.write_bytes(before + b" ")
        assert runs.broken_seals(house.layout, 100) == [run_id]
        found = bad(house) if name == "result.json" else []
        path.write_bytes(before)
        assert runs.broken_seals(house.layout, 100) == []
    assert found == [f"the finished run {run_id} was changed afterwards"]


def test_an_open_run_of_which_recovery_knows_nothing_is_told_with_the_place(house: House) -> None:
    """Not only that the run died."""
    run_id = house.work({"say": "nothing"})["run"]
    path = Path(house.layout.run(run_id).context)
    path.write_text(path.read_text().replace('"branch":"', '"branch":5,"x":"'))
    Path(house.layout.run(run_id).lock).touch()
    assert any("context.json, line 1: not what a run writes there" in what for what in bad(house))


def test_a_finished_run_that_the_books_do_not_have_is_found(house: House) -> None:
    """Its result is in its folder, but the run log does not count it; the run log is rebuilt."""
    run_id = house.work({"say": "nothing"})["run"]
    before = house.read("runs.jsonl")
    Path(house.layout.path(names.RUN_LOG)).write_bytes(b"")
    assert f"the run {run_id} has a result and no line in runs.jsonl" in bad(house)
    assert doctor.fix(house.layout) == ["made .harness/runs.jsonl again from the results of finished runs"]
    assert (house.read("runs.jsonl"), bad(house)) == (before, [])


def test_a_tampered_object_is_found(house: House) -> None:
    """Its name is the digest of its bytes."""
    house.work({"say": "nothing"})
    path = next(path for path in Path(house.layout.path(names.OBJECTS)).rglob("*") if path.is_file())
    path.chmod(0o600)
    path.write_bytes(b"lie")
    (found,) = bad(house)
    assert found.startswith(f"the object {path.parent.name}{path.name} is missing, or does not match its digest")


def test_an_archive_that_lost_an_entry_is_bad(house: House) -> None:
    """Whichever: each entry has one disposition. The account ends the check with 10, and a curation that sees it with 65."""
    for number in range(3):
        house.harness("note", f"word{number}")
    assert house.role("curator").code == 0
    assert "archive: 3 entries, each with one disposition: 3 kept" in [one.what for one in doctor.examine(house.layout)]
    lines = house.read("memory/archive.jsonl").split("\n")
    faults = ("has 2 entries; curated.json says 3", "has entry 0 where entry 1", "has entry 1 where entry 2")
    for at, fault in enumerate(faults):
        (house.state / "memory/archive.jsonl").write_text("\n".join(lines[:at] + lines[at + 1 :]))
        found = bad(house)
        assert any(fault in what for what in found), found
    assert house.harness("doctor").code == 10
    house.harness("note", "another")
    done = house.role("curator")
    assert (done.code, fault in done.err) == (65, True)


TWICE = b"## Lessons\n- a\n\n## Lessons\n"
BROKEN = {
    "a heading twice": ("memory/MEMORY.md", TWICE, "memory/MEMORY.md, line 4: has the heading '## Lessons' twice"),
    "no text": ("memory/summary.md", b"## Avoid\n\xff\n", "memory/summary.md, line 2: not UTF-8 text"),
    "no evidence": ("identity/evidence.jsonl", b"\ngarbage\n", "identity/evidence.jsonl, line 2: no evidence"),
    "no identity": ("identity/worker.md", b"# worker\n\xff\n", "identity/worker.md, line 2: not UTF-8 text"),
    "nothing taken back": (
        "identity/forgotten.jsonl",
        b"x\n",
        "identity/forgotten.jsonl, line 1: the line is not a removed item",
    ),
}


def test_what_ends_a_curation_is_named_with_its_line(house: House) -> None:
    """Before it, after it, and after --fix, which cannot mend what people wrote."""
    assert "pages and identities: valid" in [one.what for one in doctor.examine(house.layout)]
    house.harness("note", "hello")
    for name, data, fault in BROKEN.values():
        path = house.identity.parent / name if name.startswith("identity/") else house.state / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        assert [fault in what for what in bad(house) if " died;" not in what] == [True]
        done = house.role("curator")
        assert (done.code, fault in done.err) == (65, True), done
        path.unlink()
    path.write_bytes(data)
    house.harness("doctor", "--fix")
    (found,) = bad(house)
    assert fault in found
    assert house.harness("doctor").code == 10


def test_a_lessons_file_that_is_not_what_the_archive_gives_is_named_and_removed(house: House) -> None:
    """A count, a missing lesson, a torn line. The next curation rebuilds it; an absent one is not a fault."""
    house.harness("note", "--tag", "TRICK", "run `make seed` before the browser tests")
    compacting.compact_all(house.layout, str(house.identity), "m-1", "1777000000-curator", "2026-04-24")
    assert "lessons: equal to the archive" in [one.what for one in doctor.examine(house.layout)]
    path = Path(house.layout.path(names.LESSONS))
    text = path.read_text()
    for spoilt, found in (
        (text.replace('"count":1', '"count":7'), "has 7 as count of lesson 0, the archive gives 1"),
        (text.split("\n")[0] + "\n", "has no lesson 0, and the archive has"),
        (text[:-9], "does not parse, or belongs to another state of the archive"),
    ):
        path.write_text(spoilt)
        assert bad(house) == [
            f".harness/memory/lessons.jsonl {found}; run.sh doctor --fix removes it; the next curation rebuilds it"
        ]
    assert doctor.fix(house.layout) == [f"removed .harness/memory/lessons.jsonl: it {found}"]
    assert (path.exists(), bad(house)) == (False, [])
    compacting.compact_all(house.layout, str(house.identity), "m-1", "1777000001-curator", "2026-04-24")
    assert bad(house) == []


def test_lines_of_raw_that_are_no_entries_are_told(house: House) -> None:
    """For information only: they stay unchanged."""
    add(house, "memory/raw.md", b"not an entry\n")
    notes = [one.what for one in doctor.examine(house.layout) if one.state == "note"]
    assert notes == ["raw.md has 1 invalid lines, the first: 'not an entry'"]


def test_git_settings_that_the_harness_does_not_read_are_named(house: House) -> None:
    """A filter that a person adds after init: its name, not its value; settings from before init are not listed."""
    said = "git settings made since init, which the harness's own git does not read: filter.x.clean"
    assert "git settings made since init" not in house.harness("doctor").out
    house.git("config", "filter.x.clean", "cat --squeeze-blank")
    done = house.harness("doctor").out
    assert said in done and "squeeze" not in done


def test_a_dirty_tree_is_told(house: House) -> None:
    """For information only: a person may be at work."""
    house.write("main.py", "edited\n")
    assert [one.what for one in doctor.examine(house.layout) if one.state == "note"] == [
        "tracked files differ from the last commit: main.py"
    ]


def test_outside_a_repository_everything_says_why(bare: House) -> None:
    """No traceback, whatever is missing."""
    bare.project.mkdir()
    found = bad(bare)
    assert any("git init" in what for what in found)
    assert any("There is no mission" in what for what in found)


def test_fixing_applies_what_waits(house: House) -> None:
    """An order given during a run."""
    house.harness("issue", "slow")
    add(house, "orders.jsonl", b'{"id":"O-1","at":"t","by":"person","verb":"feature block","args":["F-001","wait"]}\n')
    assert doctor.fix(house.layout) == ["order O-1: F-001 is blocked until: run.sh feature retry F-001"]
    assert house.feature().status == "blocked"
    assert doctor.fix(house.layout) == []


def test_fixing_takes_in_what_a_person_changed(house: House) -> None:
    """The ledger records it: the next run does not treat it as tampering."""
    path = Path(house.layout.path(names.CONFIG))
    path.write_text("curate_after = 7\n" + path.read_text())
    assert doctor.fix(house.layout) == []
    assert house.work({"say": "nothing"})["refused"] == []


def test_fixing_waits_for_nobody(house: House) -> None:
    """Busy during a run; a usage error without a mission."""
    with files.Lock(house.layout.path(names.MISSION_LOCK)), pytest.raises(LockBusy):
        doctor.fix(house.layout)
    os.unlink(house.layout.path(names.FORMAT))
    with pytest.raises(UsageFault, match="There is no mission"):
        doctor.fix(house.layout)


def test_the_page_of_reliability_has_every_invariant_that_doctor_checks() -> None:
    """Each look of doctor, in its order, with the words of each fault that it names."""
    page = (CHECKOUT / "docs/reliability.md").read_text().split("## What doctor checks\n", 1)[1].split("\n## ", 1)[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.M))
    assert [*rows] == [name for name, _ in doctor.LOOKS]
    tree = ast.parse(Path(doctor.__file__).read_text())
    found = [text for node in ast.walk(tree) if is_fault(node) for text in constants(node)]
    assert len(found) >= len(doctor.LOOKS) - 1  # leftovers are no fault
    assert [text for text in found if f"`{text}`" not in page] == []


def is_fault(node: ast.AST) -> bool:
    """Whether it is a call of `_bad`, or the list of what is wrong with what was sealed."""
    named = getattr(node, "func", None) or getattr(node, "value", None)
    return isinstance(node, ast.Call | ast.Assign | ast.AugAssign) and (
        getattr(named, "id", "") == "_bad" or (not isinstance(node, ast.Call) and "wrong" in ast.unparse(node)[:6])
    )


def constants(node: ast.AST) -> list[str]:
    """Each text in it up to the remedy, with `…` in the place of names and values."""
    texts = [one for one in ast.walk(node) if isinstance(one, ast.JoinedStr)]
    said = [
        "".join(getattr(part, "value", "") if isinstance(part, ast.Constant) else "…" for part in one.values)
        for one in texts
    ]
    found = [re.split(r"[;:]", text)[0].strip("… ") for text in said]
    return [text for text in found if re.search("[a-z]{3}", text)]


def test_an_identity_folder_that_is_a_file_is_named_with_the_variable(house: House) -> None:
    """By `doctor` as a fault, by the curator as its message; `status` goes on."""
    house.begin()
    wrong = str(house.write("identities.txt"))
    said = f"HARNESS_IDENTITY is {wrong}, which is not a folder"
    assert said in house.harness("doctor", HARNESS_IDENTITY=wrong).out
    done = house.role("curator", HARNESS_IDENTITY=wrong)
    assert said in done.err
    assert house.harness("status", HARNESS_IDENTITY=wrong).code == 0
    assert house.role("curator").code == 0
