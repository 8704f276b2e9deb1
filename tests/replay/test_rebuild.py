"""`replay RUN` and `replay --all`: every prompt comes out of its manifest, byte for byte, and what is broken is never equal."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base import encoding
from harness.replay import rebuild
from harness.state import names
from harness.state.layout import Layout
from tests.formats.golden import Golden, place
from tests.helpers import growth, steps
from tests.missions import CHECKOUT, House

__all__ = ["place"]  # a fixture: one test at a time has the golden folder


@pytest.fixture
def ran(house: House) -> tuple[House, str]:
    """A mission with one finished run, whose prompt has text that is hard to handle."""
    house.write("SPEC.md", "# Ein Programm\n\n## Part\n\n漢字 🙂 `````\n")
    return house, house.work({"say": "hello"})["run"]


def change(path: Path, make: Callable[[bytes], bytes]) -> None:
    """Other bytes in a file that may be read-only."""
    path.chmod(0o644)
    path.write_bytes(make(path.read_bytes()))


def object_of(house: House, run_id: str) -> Path:
    """The file of an object that the prompt was made of."""
    rows = json.loads(Path(house.layout.run(run_id).manifest).read_text())
    name = str(next(row["object"] for row in rows if "object" in row))
    return house.state / "objects" / name[:2] / name[2:]


def test_a_prompt_is_rebuilt_after_all_it_was_made_of_has_changed(ran: tuple[House, str]) -> None:
    """Role, memory, spec, queue and code: the objects alone count. Exit code 0, and --prompt prints the exact bytes."""
    house, run_id = ran
    sent = Path(house.layout.run(run_id).prompt).read_text()
    for path in (
        house.layout.path(names.SUMMARY),
        house.layout.path(names.SPEC),
        house.layout.path(names.FEATURES),
        house.layout.path(names.CONTRACT),
    ):
        Path(path).write_text("# other\n")
    house.role_files("worker")
    house.write("SPEC.md", "other\n")
    house.write("main.py", "other\n")
    done = house.harness("replay", run_id)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{run_id}: {len(sent.encode())} bytes from ")
    assert house.program("runs", "show", run_id, "--prompt").out == sent
    assert json.loads(house.harness("runs", "show", run_id, "--prompt", "--json").out)["prompt"] == sent


def test_a_prompt_that_was_changed_ends_with_65_and_the_difference(ran: tuple[House, str]) -> None:
    """The line, the byte, and a diff; also as JSON. --prompt prints nothing that was never sent."""
    house, run_id = ran
    path = Path(house.layout.run(run_id).prompt)
    change(path, lambda data: data.replace(b"# How every role works", b"# How some role works"))
    done = house.harness("replay", run_id)
    assert done.code == 65
    assert f"{run_id}: .harness/runs/{run_id}/prompt.md differs from its manifest at byte 6, line 1" in done.out
    assert "\n-# How every role works\n+# How some role works\n" in done.out
    value = json.loads(house.harness("replay", run_id, "--json").out)
    assert (value["equal"], "+# How some role works" in value["diff"]) == (False, True)
    shown = house.harness("runs", "show", run_id, "--prompt")
    assert (shown.code, shown.out, f"run.sh replay {run_id}" in shown.err) == (65, "", True)


def test_the_difference_of_a_large_prompt_is_short_and_found_at_once(ran: tuple[House, str]) -> None:
    """Two megabytes that differ in every line: what is around the first difference is compared line by line, and no more."""
    house, run_id = ran
    change(Path(house.layout.run(run_id).prompt), lambda data: data + (b"x" * 100 + b"\n") * 20_000)
    done = house.harness("replay", run_id)
    assert (done.code, len(done.out) < 2000) == (65, True)
    made = rebuild.one(house.layout, run_id)
    assert steps(lambda: rebuild.diff(made)) < 20_000


BREAKS: dict[str, tuple[Callable[[House, str], Path], Callable[[bytes], bytes] | None, str]] = {
    "a missing object": (object_of, None, "the object is missing"),
    "another digest": (object_of, lambda data: data + b"x", "the object's digest is not its name"),
    "a cut manifest": (lambda h, r: Path(h.layout.run(r).manifest), lambda data: data[:-20], "not JSON"),
    "no list": (lambda h, r: Path(h.layout.run(r).manifest), lambda data: b'{"a":1}\n', "not a list of parts"),
    "no part": (lambda h, r: Path(h.layout.run(r).manifest), lambda data: b'[{"bytes":1}]\n', "part 1 has neither"),
    "a missing manifest": (lambda h, r: Path(h.layout.run(r).manifest), None, "the file is missing"),
    "a missing prompt": (lambda h, r: Path(h.layout.run(r).prompt), None, "the file is missing"),
    "a cut result": (lambda h, r: Path(h.layout.run(r).result), lambda data: data[:-20], "not JSON"),
    "a changed context": (lambda h, r: Path(h.layout.run(r).context), lambda data: data + b" ", rebuild.CHANGED),
}


def test_a_broken_history_is_named_by_file_and_run(ran: tuple[House, str]) -> None:
    """Never "equal": exit code 65, by `replay RUN` and by `replay --all`, which goes on with the other runs."""
    house, run_id = ran
    other = house.work({"say": "again"}, feature="F-002")["run"]
    for name, (find, _, _) in BREAKS.items():
        path = find(house, run_id)
        before = path.read_bytes()
        assert_broken(house, run_id, other, name)
        path.write_bytes(before)
    assert house.harness("replay", "--all").code == 0


def assert_broken(house: House, run_id: str, other: str, name: str) -> None:
    """This break of the first run is named, and the other one is played."""
    find, make, words = BREAKS[name]
    path = find(house, run_id)
    if make:
        change(path, make)
    else:
        path.unlink()
    done = house.harness("replay", run_id)
    shown = str(path) if name != "a changed context" else str(path.parent)
    assert (done.code, done.out) == (65, "")
    assert words in done.err and run_id in done.err and shown in done.err
    done = house.harness("replay", "--all")
    lines = [line for line in done.out.split("\n") if line.startswith(f"{run_id}: ")]
    assert (done.code, len(lines)) == (65, 1)
    assert path.name in lines[0] or run_id in lines[0]
    alone = "object" not in name and "digest" not in name  # both prompts have that object
    assert (f"\n{other}: " in "\n" + done.out) is not alone


def test_a_prompt_and_its_manifest_that_were_forged_together_are_found(ran: tuple[House, str]) -> None:
    """They agree, and the run digest says that the run never had them."""
    house, run_id = ran
    for path in (house.layout.run(run_id).prompt, house.layout.run(run_id).manifest):
        change(Path(path), lambda data: data.replace(b"Working directory", b"Wrecking directory"))
    done = house.harness("replay", run_id)
    assert (done.code, rebuild.CHANGED in done.err) == (65, True)


def test_a_cut_line_of_the_run_log_and_a_lost_folder_are_named(ran: tuple[House, str]) -> None:
    """By number, and by run; --all goes on."""
    house, run_id = ran
    gone, last = house.work({"say": "more"}, feature="F-002")["run"], house.work_again("F-002")["run"]
    shutil.rmtree(house.state / "runs" / gone)
    lines = house.read("runs.jsonl").split("\n")
    (house.state / "runs.jsonl").write_text("\n".join([lines[0][:-30], *lines[1:]])[:-1])
    done = house.harness("replay", "--all", "--json")
    faults = [(one["run"], one["fault"]) for one in json.loads(done.out)["faults"]]
    assert done.code == 65
    assert [run for run, _ in faults] == ["runs.jsonl", "runs.jsonl", gone]
    wanted = ("the last line is truncated", "line 1: the line is not a finished run", "the folder is missing")
    assert [words in fault for words, (_, fault) in zip(wanted, faults, strict=True)] == [True] * 3
    assert [house.harness("replay", run).code for run in (run_id, last)] == [0, 0]


def test_a_result_that_is_not_the_line_of_the_run_log_is_named(ran: tuple[House, str]) -> None:
    """By --all: it reads as a result, and somebody wrote it."""
    house, run_id = ran
    change(Path(house.layout.run(run_id).result), lambda data: data.replace(b"{", b"{ ", 1))
    done = house.harness("replay", "--all")
    assert (done.code, f"{run_id}/result.json: not the run's line in runs.jsonl" in done.out) == (65, True)


def test_a_run_that_ended_before_it_had_a_prompt_is_no_fault(ran: tuple[House, str]) -> None:
    """It is counted, and says so; asked for by its id that is 64."""
    house, run_id = ran
    folder = house.state / "runs" / "1-worker-F-001"
    folder.mkdir()
    shutil.copy(house.layout.run(run_id).context, folder)
    done = house.harness("replay", "--all")
    assert (done.code, done.out) == (
        0,
        "1 of 2 runs: the prompt is rebuilt byte for byte; 1 ended before they had a prompt\n",
    )
    done = house.harness("replay", "1-worker-F-001")
    assert (done.code, "has no prompt" in done.err) == (64, True)


def test_four_times_the_runs_take_four_times_the_steps(ran: tuple[House, str]) -> None:
    """Each is looked at as a single run is."""
    house, run_id = ran
    line, folder = house.read("runs.jsonl"), house.state / "runs" / run_id

    def made(count: int) -> Callable[[], object]:
        rows = [line]
        for number in range(1, count):
            name = f"{number}-{run_id}"
            shutil.copytree(folder, house.state / "runs" / name, dirs_exist_ok=True)
            rows.append(line.replace(run_id, name, 1))
            (house.state / "runs" / name / "result.json").write_text(rows[-1])

        def body() -> None:
            (house.state / "runs.jsonl").write_text("".join(rows))
            for number in range(count, 4 * count):  # of a larger count
                shutil.rmtree(house.state / "runs" / f"{number}-{run_id}", ignore_errors=True)
            found = rebuild.every(house.layout)
            assert (found.equal, found.faults) == (count, [])

        return body

    assert growth(made, 5) < 4.1


# missions of other times

MISSIONS = Path(__file__).parents[1] / "formats/v2"
FACTS = {path.stem: path for path in sorted(MISSIONS.glob("*.json"))}


@pytest.mark.parametrize("name", FACTS)
def test_every_prompt_of_a_golden_mission_is_rebuilt(name: str, place: None) -> None:
    """By the commands, as they are."""
    golden = Golden(name, MISSIONS)
    done = golden.program("replay", "--all", "--json")
    value = json.loads(done.out)
    runs = json.loads(FACTS[name].read_text())["runs"]
    wanted = {row["run"]: row["prompt"] for row in runs if row["prompt"]}
    assert (value["faults"], value["equal"] >= len(wanted)) == ([], True), done
    for run_id in [*wanted][:2]:
        assert golden.program("replay", run_id).code == 0
        shown = golden.program("runs", "show", run_id, "--prompt").out
        assert encoding.digest(shown.encode()) == wanted[run_id]


def test_a_mission_that_was_put_away_is_replayed_too(ran: tuple[House, str]) -> None:
    """By the run's id, by that of its mission before it, and by --all."""
    house, run_id = ran
    sent = Path(house.layout.run(run_id).prompt).read_text()
    made = json.loads(house.read("mission.json"))["id"]
    assert house.program("init", "--new", "--abandon").code == 0
    assert not os.path.exists(house.layout.run(run_id).prompt)
    for name in (run_id, f"{made}/{run_id}"):
        done = house.program("replay", name)
        assert (done.code, done.out.startswith(f"{made}/{run_id}: ")) == (0, True), done
        assert house.program("runs", "show", name, "--prompt").out == sent
    assert house.program("replay", "--all").out == "1 of 1 runs: the prompt is rebuilt byte for byte\n"
    assert house.program("replay", f"other-000000/{run_id}").code == 64


def test_the_six_lines_of_the_docs_rebuild_a_prompt(ran: tuple[House, str]) -> None:
    """They run as they are written, without the harness."""
    house, run_id = ran
    text = (CHECKOUT / "docs/replay.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found and len([line for line in found[1].split("\n") if line]) == 6
    script = house.folder / "stranger.py"
    script.write_text(found[1])
    words = [sys.executable, "-I", str(script), str(house.state), run_id]
    done = subprocess.run(words, capture_output=True, check=True, cwd="/")
    assert done.stdout == Path(house.layout.run(run_id).prompt).read_bytes()


def test_what_two_texts_have_in_common_is_found_by_halves() -> None:
    """Every length, on both sides."""
    text = bytes(range(50))
    for size in range(len(text)):
        assert rebuild.common(text, text[:size]) == size
        assert rebuild.common(text, text[:size] + b"\xff" + text[size + 1 :]) == size
    assert rebuild.common(text, text) == len(text)


def test_an_object_is_read_once(ran: tuple[House, str]) -> None:
    """As long as they fit; a second look needs no file."""
    house, run_id = ran
    known = rebuild.Objects(Layout(str(house.project)))
    first = rebuild.rebuild(house.layout, run_id, known)
    shutil.rmtree(house.state / "objects")
    assert rebuild.rebuild(house.layout, run_id, known) == first
