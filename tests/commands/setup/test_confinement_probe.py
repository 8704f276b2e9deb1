"""`doctor confine`: probes say whether confinement holds on this machine; tests/confinement attempts everything else."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness.commands.setup import confinement_probe
from harness.mission import config
from harness.process import landlock
from harness.process.confine import BUBBLEWRAP, LANDLOCK, available
from harness.state import names
from harness.workplace import confine
from tests.missions import Done, House

needs_bubblewrap = pytest.mark.skipif(available() != BUBBLEWRAP, reason="bubblewrap cannot be used here")
needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")
KEYRING = "use a keyring of the kernel (Operation not permitted)"
READ = "read keys, or the tree of another mission"


def lines(done: Done, state: str) -> list[str]:
    """The lines of a state, without it."""
    return [line[6:] for line in done.out.split("\n") if line.startswith(state)]


def leftovers(house: House) -> list[Path]:
    """What a trial left behind."""
    places = (house.folder / "temporary", house.folder / "state" / "harness")
    return [path for place in places if place.is_dir() for path in place.iterdir() if path.name != "origins"]


def with_key(house: House) -> None:
    """Put a key where a person has one."""
    (house.folder / "home/.ssh").mkdir(parents=True, exist_ok=True)
    (house.folder / "home/.ssh/id").write_text("of a person\n")


def without_bubblewrap(house: House) -> str:
    """A PATH that has every program but this one."""
    folder = house.folder / "programs"
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for path in Path(place).iterdir() if os.path.isdir(place) else ():
            if path.name != "bwrap":
                (folder / path.name).unlink(missing_ok=True)
                (folder / path.name).symlink_to(path)
    return str(folder)


@needs_bubblewrap
def test_behind_bubblewrap_it_says_in_ten_lines_what_holds(bare: House) -> None:
    """A line for each, with the reason; nothing is left of the trial."""
    with_key(bare)
    bare.project.mkdir()
    done = bare.program("doctor", "confine", MY_TOKEN="x")
    assert (done.code, done.err) == (0, ""), done
    *said, environment, ptrace = done.out.splitlines()
    assert re.fullmatch(r"ok    of \d+ variables \d+ are not passed on: .*MY_TOKEN.*", environment)
    assert ptrace.startswith("note  processes of one program are not protected from each other: ptrace is allowed")
    assert said == [
        'note  on this machine: bubblewrap; an agent with trust = "workspace"',
        "ok    allowed: write in its tree",
        "ok    refused: write the state of a mission, or git's settings (Read-only file system)",
        f"ok    refused: {READ}",
        "ok    refused: signal a process outside (No such file or directory)",
        "ok    refused: share System V IPC, or /dev/shm",
        "ok    refused: use a keyring of the kernel (Operation not permitted)",
        "note  network = true: every network that you can reach is reachable",
    ]
    assert leftovers(bare) == [] and list(bare.project.iterdir()) == []


@needs_landlock
def test_behind_landlock_writes_and_reads_are_refused_and_the_rest_is_said(bare: House) -> None:
    """No line claims a refusal that this tier does not give."""
    with_key(bare)
    bare.project.mkdir()
    bare.own()
    bare.write(".harness/config.toml", "network = false\n")
    done = bare.program("doctor", "confine", PATH=without_bubblewrap(bare))
    assert (done.code, lines(done, "bad")) == (0, []), done
    assert lines(done, "note") == [
        'on this machine: landlock; an agent with trust = "workspace"',
        "not refused on this tier: signal a process outside",
        "not refused on this tier: share System V IPC, or /dev/shm",
        "not refused on this tier: reach a server outside",
        confinement_probe.PTRACE,
    ]
    assert {
        "write the state of a mission, or git's settings (Permission denied)",
        READ,
        KEYRING,
    } <= {line.removeprefix("refused: ") for line in lines(done, "ok")}
    assert leftovers(bare) == []


@needs_bubblewrap
def test_the_settings_of_the_mission_are_tried(house: House) -> None:
    """Full trust opens no keys but what config.toml shows, which is not probed; the mission itself is untouched."""
    with_key(house)
    (house.folder / "home/.netrc").write_text("of a person\n")
    house.config('agent = "scripted"', 'trust = "full"', "network = false", "[home]", 'show = [".ssh"]')
    before = (house.head(), house.ran(), house.read("features.json"))
    done = house.program("doctor", "confine")
    assert (done.code, lines(done, "bad")) == (0, []), done
    assert f"refused: {READ}" in lines(done, "ok")
    assert "refused: reach a server outside ([Errno 111] Connection refused)" in lines(done, "ok")
    assert (house.head(), house.ran(), house.read("features.json")) == before


def test_without_confinement_it_says_so(house: House) -> None:
    """Exit code 69, and nothing is attempted."""
    house.config('agent = "scripted"', 'confine = "off"')
    done = house.program("doctor", "confine")
    assert (done.code, done.out) == (69, "")
    assert 'config.toml says confine = "off"' in done.err
    assert leftovers(house) == []


@needs_bubblewrap
def test_what_gets_through_is_bad(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each probe works where nothing confines it, or a hole is in the glass: a refusal says something."""
    with_key(house)
    monkeypatch.setenv("HOME", str(house.folder / "home"))
    there, tree = house.layout, str(house.folder / "tree")
    os.mkdir(tree)
    glass = confine.of_mission(there, config.load(there), tree, BUBBLEWRAP)
    assert glass is not None
    holed = confine.of_agent(there, glass, [tree, there.state], "workspace", ())
    probes = confinement_probe.probes(there, tree, str(house.folder / "none"))
    for confinement, bad in ((None, probes[1:]), (holed, [probes[1]])):
        found = {one.what: confinement_probe.carry_out(one, confinement, tree)[0] for one in probes}
        assert [one.what for one in probes[1:] if found[one.what]] == [one.what for one in bad]
        assert found["write in its tree"]
    states = [confinement_probe.judged(one, BUBBLEWRAP, True, "").state for one in probes]
    assert states == ["ok", *["bad"] * 5]
    assert confinement_probe.judged(probes[0], LANDLOCK, False, "no").state == "bad"


def test_it_is_not_for_the_inside_of_a_run(house: House) -> None:
    """An agent starts no trial."""
    told = house.folder / "told"
    house.config('agent = "scripted"', 'confine = "off"')
    house.work({"run": f"'{house.layout.path(names.SHIM)}' doctor confine || echo $? > '{told}'"})
    assert told.read_text() == "64\n"
