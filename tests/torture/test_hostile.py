"""A hostile tree: whatever lies in `.harness/` or in the identities, a command ends soon, in words, and writes nowhere else."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.base.errors import BROKEN, DONE, EXIT_CODES, NEEDS_PERSON, STOPPED, USAGE
from harness.state import files, names
from tests.crash import TORTURE
from tests.helpers import passable
from tests.missions import CHECKOUT, Done, House, listing
from tests.other_user import OtherUser

RUN_SH = str(CHECKOUT / "run.sh")
SOON = 20  # seconds
STATE = (
    "features.json",
    "validation-contract.md",
    "runs.jsonl",
    "ledger.json",
    "config.toml",
    "mission.json",
    "format",
)
LARGE = 1 << 30


@pytest.fixture
def canary(house: House) -> Iterator[Path]:
    """An outside folder that must not change; checked at the end of the test."""
    folder = house.folder / "canary"
    folder.mkdir()
    for name in ("file", "features.json", "raw.md"):
        (folder / name).write_text("theirs\n")
    before = listing(folder)
    yield folder
    assert listing(folder) == before


def commands(house: House) -> list[Done]:
    """What people and the clock call; one run of a worker among them. None hangs, and none calls it a bug."""
    asked = [["next"], ["note", "a note"], ["feature", "set", "F-001", "priority=3"], ["doctor"], ["doctor", "--fix"]]
    ended = [house.program(*words) for words in asked]  # one that hangs is killed after a minute, and fails the test
    ended += [soon(house, [RUN_SH, "--once"])] if TORTURE else [house.role("worker", "F-001")]
    for done in ended:
        assert done.code in EXIT_CODES, done
        assert not re.search("Traceback|a bug in the harness", done.err), done
        assert done.code in (DONE, STOPPED) or (done.err + done.out).strip(), done
    return ended


def soon(house: House, words: list[str], **env: str) -> Done:
    """A command that must not hang."""
    begun = time.monotonic()
    done = subprocess.run(
        words,
        cwd=house.project,
        env={**house.env, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SOON,
        check=False,
    )
    assert time.monotonic() - begun < SOON
    return Done(done.returncode, done.stdout, done.stderr)


def link_folder(house: House, canary: Path) -> None:
    """Folders of the state lead outside."""
    for name in ("memory", "runs", "objects", "journal"):
        path = house.state / name
        if path.exists():
            path.rename(house.folder / f"was-{name}")
        path.symlink_to(canary)


def link_files(house: House, canary: Path) -> None:
    """Files of the state lead outside."""
    for name in ("features.json", "memory/raw.md", "STEER.md", "orders.jsonl", "locks/state"):
        path = house.state / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(canary / "file")


def link_identity(house: House, canary: Path) -> None:
    """The identities lead outside, file by file."""
    house.identity.mkdir(exist_ok=True)
    for name in ("worker.md", "evidence.jsonl", "ledger.json", ".lock"):
        (house.identity / name).unlink(missing_ok=True)
        (house.identity / name).symlink_to(canary / "file")


def pipes(house: House, _: Path) -> None:
    """Pipes in the place of files: a naive open blocks forever."""
    for name in (*STATE, "memory/raw.md", "memory/curated.json", "orders.jsonl", "locks/mission"):
        (house.state / name).unlink(missing_ok=True)
        os.mkfifo(house.state / name)


def folders(house: House, _: Path) -> None:
    """Folders where files belong."""
    for name in ("features.json", "memory/raw.md", "orders.jsonl", "runs.jsonl"):
        (house.state / name).unlink(missing_ok=True)
        (house.state / name).mkdir()


def odd_names(house: House, _: Path) -> None:
    """Names with a newline, with bytes that are no text, and that lead upwards."""
    for top in (house.state / "runs", house.state / "snapshots", house.state / "locks", house.identity, house.project):
        top.mkdir(exist_ok=True)
        for name in (b"a\nb", b"run-\xff\xfe", b"..x", b"\x1b[2Jx"):
            Path(os.fsdecode(os.fsencode(top) + b"/" + name)).write_bytes(b"x\n")


def upward(house: House, _: Path) -> None:
    """Ids that lead out of the mission."""
    features, mission = house.state / "features.json", house.state / "mission.json"
    features.write_text(features.read_text().replace("F-001", "../../../canary/file"))
    mission.write_text(re.sub(r'"id":"[^"]*"', '"id":"../../canary/x"', mission.read_text()))
    (house.state / "locks").mkdir(exist_ok=True)
    (house.state / "memory/curated.json").write_text('{"generation":1,"first_seq":-5,"folded":-5}\n')


def sparse(house: House, _: Path) -> None:
    """A raw.md of a gigabyte of NUL bytes."""
    (house.state / "memory").mkdir(exist_ok=True)
    with (house.state / "memory/raw.md").open("wb") as file:
        file.truncate(LARGE)


def nul(house: House, _: Path) -> None:
    """NUL bytes in every file."""
    for name in (*STATE, "memory/raw.md", "orders.jsonl"):
        with (house.state / name).open("ab") as file:
            file.write(b"\0\0\0")


def crlf(house: House, _: Path) -> None:
    """Files saved by an editor of another system: CRLF, and a byte order mark."""
    for name in ("config.toml", "validation-contract.md", "features.json"):
        path = house.state / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    spec = house.project / "SPEC.md"
    spec.write_bytes(b"\xef\xbb\xbf" + spec.read_bytes().replace(b"\n", b"\r\n"))


ROWS: dict[str, Callable[[House, Path], None]] = {
    "links of folders": link_folder,
    "links of files": link_files,
    "links in the identities": link_identity,
    "pipes": pipes,
    "folders in a file's place": folders,
    "names": odd_names,
    "ids that lead upwards": upward,
    "a raw.md of a gigabyte": sparse,
    "NUL bytes": nul,
    "CRLF and a byte order mark": crlf,
}


@pytest.mark.parametrize("row", ROWS if TORTURE else ["links of folders", "links of files", "pipes", "names"])
def test_nothing_is_written_outside_and_nothing_hangs(house: House, canary: Path, row: str) -> None:
    """Each command ends with a documented code and a clear word; what leads outside is not followed to write."""
    ROWS[row](house, canary)
    outside = listing(house.folder, "my project", "state", "identity", "temporary", "home", "scripts", "canary")
    commands(house)
    now = listing(house.folder, "my project", "state", "identity", "temporary", "home", "scripts", "canary")
    assert now.keys() == outside.keys()


def test_a_clock_that_jumps_back_orders_and_loses_nothing(house: House) -> None:
    """Notes are in the order in which they were taken, runs have ids of their own, and the mission goes on."""
    clock = house.folder / "clock"
    for at in ("2000000000", "1000000000", "1500000000"):
        clock.write_text(at)
        assert soon(house, [RUN_SH, "note", f"at {at}"]).code == 0
    text = files.read_text(house.layout.path(names.RAW)) or ""
    assert [line.rpartition(" ")[2] for line in text.split("\n")[:-1]] == ["2000000000", "1000000000", "1500000000"]
    newest = house.work({"run": "echo 1 > 1.txt"})["run"]
    os.utime(house.layout.run(newest).context, (4_000_000_000, 4_000_000_000))
    os.utime(house.layout.path(names.RUN_LOG), (4_000_000_000, 4_000_000_000))
    assert house.harness("next").out == "NEXT validator F-001\n"
    assert house.harness("doctor").code == 0


@pytest.mark.parametrize("mask", ["000", "077"])
def test_any_umask_gives_a_mission_that_works_and_that_others_cannot_change(unbegun: House, mask: str) -> None:
    """What holds a prompt or a transcript is for its owner alone; nothing is for everybody to write."""
    run_sh = shlex.quote(RUN_SH)
    words = ["bash", "-c", f"umask {mask}; exec {run_sh} init --quietly"]
    assert soon(unbegun, words).code == 0
    unbegun.config('agent = "scripted"')
    unbegun.script("planner", {"sleep": 0.01})
    done = soon(unbegun, ["bash", "-c", f"umask {mask}; {run_sh} note hello && exec {run_sh} --once"])
    assert done.code in (0, 3, 7), done
    for path in unbegun.state.rglob("*"):
        mode = path.lstat().st_mode
        if path.is_file() and not path.is_symlink():
            assert not mode & 0o022, (path, oct(mode))
    assert unbegun.harness("doctor").code == 0


def test_a_repository_of_another_owner_is_named_and_left_alone(house: House, nobody: OtherUser) -> None:
    """Who may not write there is told so, with git's own remedy; nothing is half written."""
    passable(house.folder)
    before = listing(house.state, "locks", "cache")
    for words in (["next"], ["note", "mine"], ["doctor"]):
        done = soon(house, nobody.words(*words), **nobody.env, HOME="/nonexistent")
        assert done.code in (DONE, NEEDS_PERSON, BROKEN, USAGE, 10), done
        assert not re.search("Traceback|a bug in the harness", done.err), done
    assert listing(house.state, "locks", "cache") == before


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
def test_a_raw_md_of_a_gigabyte_of_lines_is_noted_to_at_once(house: House) -> None:
    """A note costs no reading of what is there."""
    line = b"[2026-04-24T10:05:12Z] worker F-001 - " + b"x" * 961 + b"\n"
    with Path(house.layout.path(names.RAW)).open("wb") as file:
        for _ in range(1000):
            file.write(line * 1000)
    begun = time.monotonic()
    assert soon(house, [RUN_SH, "note", "one more"]).code == 0
    assert time.monotonic() - begun < 3
