"""What an agent puts in the place of a state file is moved away whole, and the mission goes on."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from harness.integrity import misplaced
from harness.model import runs
from harness.store import files
from tests.missions import House, until

KINDS = ["fifo", "folder", "socket", "link"]
STATE = [
    "format",
    "mission.json",
    "config.toml",
    "features.json",
    "validation-contract.md",
    "ledger.json",
    "runs.jsonl",
]
STATE += ["memory/raw.md", "escalation.md", "issues.jsonl", "locks/state", "journal/record"]
OWN = ["prompt.md", "manifest.json", "context.json", "receipts.jsonl", "reply.md", "result.json", "open", "refused"]
MERE = ["stream.jsonl", "stderr.log", "notes.jsonl"]


def script(kind: str, paths: list[str]) -> str:
    """A Python script: a socket's name has to be short, and quoting is easy there."""
    make = {
        "fifo": "os.mkfifo(p)",
        "folder": "os.mkdir(p); open(p + '/x', 'w').close()",
        "socket": "s = socket.socket(1); os.chdir(os.path.dirname(p) or '.'); s.bind(os.path.basename(p)); os.chdir(h)",
        "link": "os.symlink('/dev/zero', p)",
    }[kind]
    return f"""python3 - <<'END'
import glob, os, shutil, socket
os.chdir(".harness"); h = os.getcwd(); run = max(glob.glob("runs/*worker*"))
for p in {paths!r}:
    p = p.replace("RUN", run)
    if os.path.isdir(p): shutil.rmtree(p)
    elif os.path.lexists(p): os.remove(p)
    {make}
END"""


def put(house: House, kind: str, *paths: str) -> dict[str, object]:
    """The result of a run whose agent runs this."""
    return house.work({"run": "echo 1 > 1.txt"}, {"run": script(kind, list(paths))})


@pytest.mark.parametrize("kind", KINDS)
def test_state_whose_place_was_taken_is_put_back(house: House, kind: str) -> None:
    """The run is refused and names every file; the intruding content is kept whole, and the next run works."""
    house.harness("note", "from before")
    before = {name: files.read(str(house.state / name)) for name in STATE if name != "features.json"}
    result = put(house, kind, *STATE)
    assert result["outcome"] == "refused"
    assert set(STATE) <= set(result["refused"])  # type: ignore[call-overload]  # a list of names
    kept = house.state / "runs" / str(result["run"]) / "refused"
    assert all(os.path.lexists(kept / name) for name in STATE)
    same = {name for name, data in before.items() if files.read(str(house.state / name)) == data}
    assert same >= {"format", "mission.json", "config.toml", "validation-contract.md"}
    assert "from before" in house.read("memory/raw.md")
    assert house.work({"run": "echo 2 > 1.txt"})["outcome"] == "ok"


@pytest.mark.parametrize("kind", KINDS)
def test_the_runs_own_files_are_no_way_to_stop_it(house: House, kind: str) -> None:
    """The original prompt is back, a reply is not read through a link, and nothing is written outside."""
    result = put(house, kind, *(f"RUN/{name}" for name in (*OWN, *MERE)))
    run = f"runs/{result['run']}"
    assert result["outcome"] == "refused"
    own = [name for name in OWN if kind != "folder" or name not in ("open", "refused")]  # those are folders
    assert {f"{run}/{name}" for name in (*own, *MERE)} == set(result["refused"])  # type: ignore[call-overload]  # a list of names
    assert house.read(f"{run}/prompt.md").startswith("# ")
    assert runs.broken_seals(house.layout, 5) == []
    assert house.work({"run": "echo 2 > 1.txt"})["outcome"] == "ok"


def test_a_transcript_whose_place_was_taken_costs_nothing_else(house: House) -> None:
    """The run names it, and the work counts."""
    result = put(house, "fifo", "RUN/stream.jsonl")
    assert (result["outcome"], result["refused"]) == ("ok", [f"runs/{result['run']}/stream.jsonl"])


def test_a_runs_folder_that_was_exchanged_for_a_link_is_not_followed(house: House) -> None:
    """Nothing is written to the link's target."""
    outside = house.folder / "outside"
    outside.mkdir()
    swap = f"run=$(ls -d .harness/runs/*); mv $run $run.x; ln -s '{outside}' $run"
    assert house.work({"run": swap})["outcome"] == "refused"
    assert list(outside.iterdir()) == []
    assert house.work({"run": "echo 1 > 1.txt"})["outcome"] == "ok"


def test_what_people_asked_for_is_back(house: House) -> None:
    """SPEC.md belongs to the user: it is back as committed, or with the edits from before the run."""
    committed = house.read("../SPEC.md")
    assert put(house, "fifo", "../SPEC.md")["refused"] == ["SPEC.md"]
    assert house.read("../SPEC.md") == committed


def test_a_configuration_that_people_keep_elsewhere_stays_a_link(house: House) -> None:
    """The link stays while its content is unchanged; a link to something else is moved away and not read into refused/."""
    elsewhere, secret = house.folder / "elsewhere.toml", house.folder / "secret"
    os.rename(house.layout.config, elsewhere)
    os.symlink(elsewhere, house.layout.config)
    assert house.work({"run": "echo 1 > 1.txt"})["outcome"] == "ok"
    assert os.path.islink(house.layout.config)
    secret.write_text("secret")
    result = house.work({"run": f"ln -sf '{secret}' .harness/config.toml"}, feature="F-002")
    assert result["refused"] == ["config.toml"]
    kept = house.state / "runs" / result["run"] / "refused" / "config.toml"
    assert (os.path.islink(kept), Path(house.layout.config).read_bytes()) == (True, elsewhere.read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_killed_after_that_is_settled_by_the_next_start(house: House, kind: str) -> None:
    """`doctor --fix` and run.sh both settle it: nothing waits for ever, and the features exist."""
    state = [name for name in STATE if name != "ledger.json"]
    paths = [*state, *(f"RUN/{name}" for name in (*OWN, *MERE) if name != "context.json")]
    house.script("worker", {"run": script(kind, paths) + "\ntouch done"}, {"sleep": 60})
    role = house.begin_role("worker", "F-001")
    until(lambda: (house.project / "done").exists())
    role.kill()
    role.wait()
    run_id = runs.open_runs(house.layout)[0]
    until(lambda: runs.is_dead(house.layout, run_id))
    done = house.harness("doctor", "--fix")
    assert f"fixed  {run_id} was killed" in done.out, done
    result = json.loads(house.read(f"runs/{run_id}/result.json"))
    assert set(state) <= set(result["refused"])
    assert house.work({"run": "echo 2 > 1.txt"})["outcome"] == "ok"


def test_nothing_is_moved_where_all_is_as_it_should_be(house: House) -> None:
    """This also holds with the user's own folders and files."""
    run_id = house.work({"run": "echo 1 > 1.txt"})["run"]
    house.role_files("helper")
    assert misplaced.found(house.layout, house.layout.run(run_id)) == []
    with socket.socket(socket.AF_UNIX) as found:
        place = os.getcwd()
        os.chdir(house.state)
        found.bind("STOP")
        os.chdir(place)
    assert misplaced.clear_way(house.layout, house.layout.run(run_id)) == ["STOP"]
