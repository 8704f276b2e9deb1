"""Checks: how they run, what they can see, what a receipt holds, and that they leave nothing behind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from harness.base import faults
from harness.mission import contract, receipts
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Check, Contract
from harness.mission.receipts import Receipt
from harness.process import tree
from harness.proof import check_runs
from harness.proof._outputs import OutputDigest
from tests.helpers import passable
from tests.missions import House
from tests.other_user import OtherUser
from tests.planned import claim


@pytest.fixture
def folder(bare: House) -> Path:
    """An empty working folder; TMPDIR belongs to the test."""
    bare.project.mkdir()
    return bare.project


def fired(folder: Path, command: str, seconds: float = 60) -> Receipt:
    """The receipt of one check."""
    place = CheckEnvironment(
        directory=str(folder), head="c0ffee", tree="7ee", by="run-1", tag="m/run-1", seconds=seconds
    )
    return check_runs.fire(Check(run=command), claim("VAL-1"), "after", place)


def left(folder: Path) -> list[str]:
    """Leftovers of checks in the temporary folder."""
    return os.listdir(folder.parent / "temporary")


# how a check runs


VERDICTS = [
    ("it holds", "test 1 = 1", 0),
    ("its exit status counts", "exit 7", 7),
    ("-e: the first failing command ends it", "false\ntrue", 1),
    ("-u: an unset variable is a fault", 'echo "$not_set_anywhere"', 1),
    ("pipefail: every part of a pipe counts", "false | true", 1),
    ("bash it is", "[[ abc == a* ]]", 0),
    ("an expected failure", "! false", 0),
    ("a list that handles its failure", "false || exit 9", 9),
    ("a missing program", "no-such-program-here", 127),
    ("a signal of its own", "kill -TERM $$", 143),
]


@pytest.mark.parametrize(("command", "code"), [case[1:] for case in VERDICTS], ids=[case[0] for case in VERDICTS])
def test_the_exit_status_of_strict_bash_decides(folder: Path, command: str, code: int) -> None:
    """`bash -euo pipefail -c`: only 0 is green."""
    receipt = fired(folder, command)
    assert receipt.exit == code
    assert receipt.green == (code == 0)


def test_it_runs_in_the_working_folder(folder: Path) -> None:
    """Paths are relative to the project, also with a space in its name."""
    assert fired(folder, "pwd").output == f"{folder}\n"


def test_standard_input_is_at_its_end(folder: Path) -> None:
    """A check that reads input gets none, and does not hang."""
    assert fired(folder, "cat; if read -r x; then exit 9; fi").exit == 0


def test_it_sees_no_harness_variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No HARNESS_ variable, no virtual environment: a check must hold on any machine."""
    for name in ("HARNESS_HOME", "HARNESS_INSIDE", "FEATURE_ID", "VIRTUAL_ENV", "PYTHONPATH", "CLAUDECODE"):
        monkeypatch.setenv(name, "x")
    names = {line.partition("=")[0] for line in fired(folder, "env").output.split("\n")}
    assert not [name for name in names if name.startswith("HARNESS_")]
    assert not names & {"FEATURE_ID", "VIRTUAL_ENV", "PYTHONPATH", "CLAUDECODE"}
    assert {"CI", "NO_COLOR", "TMPDIR", "PORT", "PATH", "HOME"} <= names


def test_it_sees_a_key_only_if_config_toml_passes_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent wrote the check, so it must not see the user's keys."""
    monkeypatch.setenv("MY_TOKEN", "private")
    place = CheckEnvironment(directory=str(folder))
    show = Check(run='echo "${MY_TOKEN-none}"')
    assert check_runs.fire(show, claim("VAL-1"), "after", place).output == "none\n"
    assert check_runs.fire(show, claim("VAL-1"), "after", place.replace(passed=["MY_TOKEN"])).output == "private\n"


def test_a_red_check_says_what_it_mentions_and_did_not_get(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind its output, and in its fault; setup too. A green one says nothing, and what is passed is not missing."""
    monkeypatch.setenv("DATABASE_URL", "x")
    place, said = CheckEnvironment(directory=str(folder)), "DATABASE_URL is not set"
    red = fired(folder, f"echo {said}; false")
    assert red.output == f"{said}\nnot passed on: DATABASE_URL; see [env] pass\n"
    assert red.fault == f"{said}; not passed on: DATABASE_URL; see [env] pass"
    assert fired(folder, f"echo {said}").output == f"{said}\n"
    fault = check_runs.setup_fault(Contract(setup=f"echo {said}; false"), place)
    assert faults.first(fault) == f"setup ended with exit 1: {red.fault}"
    assert "passed on" not in check_runs.setup_fault(
        Contract(setup=f"echo {said}; false"), place.replace(passed=["DATABASE_URL"])
    )


def test_every_check_has_a_folder_and_a_port_of_its_own(folder: Path) -> None:
    """TMPDIR is new and empty, PORT is free; the folder is removed afterwards with any content."""
    command = 'test -z "$(ls -A "$TMPDIR")"; mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; echo "$TMPDIR"; echo $PORT'
    seen = [fired(folder, command).output.split("\n") for _ in range(2)]
    assert seen[0][0] != seen[1][0]
    assert left(folder) == []
    assert all(1024 <= int(port) <= 65535 for _, port, _ in seen)


def test_a_read_only_folder_that_a_check_made_goes_too(folder: Path) -> None:
    """Package caches are read-only; a link in them is removed, and its target stays."""
    outside = folder / "outside"
    outside.mkdir(mode=0o500)
    command = 'mkdir -p "$TMPDIR/a/b/c"; ln -s "$PWD/outside" "$TMPDIR/a/b"; chmod -R a-w "$TMPDIR"; stat -c %a outside'
    assert fired(folder, command).output == "500\n"
    assert left(folder) == []
    assert outside.stat().st_mode & 0o777 == 0o500


SERVER = """
python3 -c 'import os, socket
server = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
server.accept()' >&2 &
python3 -c 'import os, socket, time
for _ in range(3000):
    try:
        socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))); break
    except ConnectionRefusedError:
        time.sleep(0.02)
else:
    raise SystemExit(9)'
sleep 60 >&2 &
echo $!
"""


def test_a_check_can_serve_on_its_port_and_what_it_leaves_running_is_ended(folder: Path) -> None:
    """The whole process tree ends with the check: no server and no background job outlives its receipt."""
    started = time.monotonic()
    receipt = fired(folder, SERVER)
    assert receipt.exit == 0, receipt.output
    assert not tree.stat(int(receipt.output))
    assert time.monotonic() - started < 55


CLEAR = """
import sys
from harness.process import temporary
temporary.remove(sys.argv[1])
"""


def test_what_another_user_left_in_a_checks_folder_fails_nothing(folder: Path, nobody: OtherUser) -> None:
    """For example a container's files: they stay, everything else is removed, and the run continues."""
    scratch = folder / "scratch"
    for name in ("mine", "theirs"):
        (scratch / name / "below").mkdir(parents=True)
        (scratch / name / "below" / "file").write_text("x")
    (scratch / "theirs").chmod(0o700)
    passable(folder.parent)
    for path in (folder, scratch, *(scratch / "mine").rglob("*"), scratch / "mine"):
        os.chown(path, 65534, 65534)
    nobody.runs(CLEAR, str(scratch))
    assert [path.name for path in scratch.iterdir()] == ["theirs"]


def test_a_check_that_closes_its_folder_or_replaces_it_by_a_link_harms_nothing(folder: Path) -> None:
    """Its folder is removed; the target of a link in its place stays."""
    (folder / "kept" / "below").mkdir(parents=True)
    (folder / "kept" / "below").chmod(0o755)
    assert fired(folder, 'mkdir -p "$TMPDIR/a/b"; chmod 0 "$TMPDIR/a" "$TMPDIR"').exit == 0
    assert fired(folder, 'rmdir "$TMPDIR"; ln -s "$PWD/kept" "$TMPDIR"').exit == 0
    assert oct((folder / "kept" / "below").stat().st_mode)[-3:] == "755"
    assert left(folder) == []


# time


def test_a_check_that_hangs_is_red_without_an_exit_code(folder: Path) -> None:
    """`exit` is null: the check was ended, with its children; its output so far is kept."""
    receipt = fired(folder, "sleep 60 & echo $!; wait", seconds=0.3)
    assert receipt.exit is None
    assert not receipt.green
    assert receipt.verdict == "red (timed out)"
    assert not tree.stat(int(receipt.output))
    assert receipt.seconds >= 0.3
    assert left(folder) == []


def test_a_checks_own_time_overrides_the_configured_one(folder: Path) -> None:
    """`seconds` of the check, else check_seconds."""
    place = CheckEnvironment(directory=str(folder), seconds=0.2)
    assert check_runs.fire(Check(run="sleep 0.4", seconds=20), claim("V"), "after", place).exit == 0
    assert check_runs.fire(Check(run="sleep 20"), claim("V"), "after", place).exit is None


def test_a_late_exit_zero_is_not_green(folder: Path) -> None:
    """A check that catches the signal and exits 0 has still run out of time."""
    assert fired(folder, "trap 'exit 0' TERM; while :; do sleep 0.05; done", seconds=0.3).exit is None


# the content of a receipt


def test_a_receipt_names_the_check_the_commit_and_the_run(folder: Path) -> None:
    """Everything needed to fire it again."""
    receipt = fired(folder, "echo out; echo err >&2; exit 3")
    assert (receipt.claim, receipt.command, receipt.phase) == ("VAL-1", "echo out; echo err >&2; exit 3", "after")
    assert (receipt.head, receipt.tree, receipt.by, receipt.host) == ("c0ffee", "7ee", "run-1", os.uname().nodename)
    assert receipt.output == "out\nerr\n"
    assert receipt.verdict == "red (exit 3)"
    assert receipt.seconds >= 0


def test_of_ten_megabytes_head_tail_and_digest_are_kept(folder: Path) -> None:
    """1 KiB, 3 KiB, the number of bytes between them, and a digest of the whole output."""
    receipt = fired(folder, "seq 1 1398765")
    whole = "".join(f"{number}\n" for number in range(1, 1_398_766)).encode()
    assert len(whole) > 10_000_000
    assert receipt.output_sha256 == hashlib.sha256(whole).hexdigest()
    gap = f"\n[… {len(whole) - 4096} bytes left out …]\n"
    assert receipt.output == whole[:1024].decode() + gap + whole[-3072:].decode()


@pytest.mark.parametrize("size", [0, 1, 1024, 1025, 4096])
def test_up_to_four_kilobytes_nothing_is_left_out(folder: Path, size: int) -> None:
    """Head and tail join without a gap or an overlap."""
    assert fired(folder, f"head -c {size} /dev/zero | tr '\\0' x").output == "x" * size
    output = OutputDigest()
    for _ in range(4097):
        output.take("stdout", b"y")
    assert output.text() == "y" * 1024 + "\n[… 1 bytes left out …]\n" + "y" * 3072


def test_bytes_that_are_no_text_are_replaced(folder: Path) -> None:
    """The receipt stays readable; the digest covers the original bytes."""
    receipt = fired(folder, "printf 'a\\377b'")
    assert receipt.output == "a\ufffdb"
    assert receipt.output_sha256 == hashlib.sha256(b"a\xffb").hexdigest()


def test_each_receipt_is_durable_before_the_next_check_starts(folder: Path) -> None:
    """A proven check stays proven after a power cut."""
    path = str(folder / "receipts.jsonl")
    seen = []
    claims = [claim("V-1", "true", "false"), claim("V-2", "wc -l < receipts.jsonl")]
    for receipt in check_runs.fire_all(claims, "after", CheckEnvironment(directory=str(folder)), path):
        seen.append(receipt)
        assert receipts.load(path) == seen
    assert [(one.claim, one.exit) for one in seen] == [("V-1", 0), ("V-1", 1), ("V-2", 0)]
    assert seen[-1].output.strip() == "2"


def test_claims_without_checks_have_no_receipt(folder: Path) -> None:
    """A person decides a manual claim."""
    manual = contract.Claim(id="V", text="t", manual=True)
    assert list(check_runs.fire_all([manual], "after", CheckEnvironment(directory=str(folder)))) == []


# setup, and the empty folder


def test_setup_runs_as_a_check_does_and_reports_its_failure(folder: Path) -> None:
    """ "" if it is green or absent."""
    place = CheckEnvironment(directory=str(folder), seconds=0.5)
    assert check_runs.setup_fault(Contract(), place) == ""
    assert check_runs.setup_fault(Contract(setup="touch built"), place) == ""
    assert (folder / "built").exists()
    assert check_runs.setup_fault(Contract(setup="echo no compiler; exit 2"), place) == (
        "setup ended with exit 2:\nno compiler\n"
    )
    assert (
        check_runs.setup_fault(Contract(setup="echo waiting; sleep 20"), place) == "setup ran out of time:\nwaiting\n"
    )
    assert check_runs.setup_fault(Contract(setup="kill -9 $$"), place).startswith("setup ended with signal 9:")


def test_what_is_green_in_an_empty_folder_proves_nothing(folder: Path) -> None:
    """A check without a subject is detected in an empty folder; the folders are removed afterwards."""
    (folder / "made").write_text("")
    empty = ["true", ":", "echo ok", "! grep -q x made", "test ! -e made", "cat </dev/null"]
    real = ["test -e made", "false", "grep x made", "./made", "sleep"]
    assert check_runs.green_in_empty_folder([*empty, *real], CheckEnvironment(directory=str(folder))) == empty
    assert left(folder) == []


# ports


def test_a_port_is_free_when_it_is_given() -> None:
    """Two calls give ports that can be bound."""
    port = check_runs.free_port()
    code = f"import socket; socket.create_server(('127.0.0.1', {port})).close()"
    assert subprocess.run(["python3", "-c", code], check=False).returncode == 0
