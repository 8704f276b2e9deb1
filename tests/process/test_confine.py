"""Confinement: what a program behind glass can and cannot do, tried for real on every tier that this machine has."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.process import confine, landlock, supervise, tree
from harness.process.confine import BUBBLEWRAP, LANDLOCK, NONE, Glass

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/nonexistent"}
HERE = confine.available()
WRAPPED = [
    pytest.param(BUBBLEWRAP, marks=pytest.mark.skipif(HERE != BUBBLEWRAP, reason="bubblewrap cannot be used here")),
    pytest.param(LANDLOCK, marks=pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")),
]
AS = [
    pytest.param([], id="as the user"),
    pytest.param(
        NOBODY, id="as nobody", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
    ),
]
needs_bubblewrap = pytest.mark.skipif(HERE != BUBBLEWRAP, reason="bubblewrap cannot be used here")


CONFINED = """import json, os, sys
from harness.process.confine import Glass
given = json.loads(sys.argv[1])
words = Glass(**given["glass"]).words(given["argv"], given["tier"])
os.environ.pop("PYTHONPATH")
os.execvp(words[0], words)
"""


class Given:
    """A folder that is given to the confined program, and one beside it that is not."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        for above in folder.parents:
            if above.stat().st_uid == os.geteuid() and above != Path("/"):
                above.chmod(above.stat().st_mode | 0o055)
        self.mine, self.theirs = folder / "mine", folder / "theirs"
        for one in (self.mine, self.theirs):
            one.mkdir()
            one.chmod(0o777)
        (self.theirs / "file").write_text("as it was")
        (self.theirs / "file").chmod(0o666)
        self.glass = Glass(writable=[str(self.mine)], readable=[str(self.theirs)])

    def run(self, script: str, tier: str, user: Sequence[str] = (), glass: Glass | None = None) -> tuple[int, str]:
        """Exit code and output of a script behind glass, started by the user."""
        given = json.dumps({"glass": (glass or self.glass).asdict(), "tier": tier, "argv": ["bash", "-c", script]})
        words = [*user, sys.executable, "-c", CONFINED, given]
        env = {**ENV, "PYTHONPATH": str(Path(confine.__file__).parents[2])}
        done = subprocess.run(words, cwd=self.mine, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """What a confined program is given."""
    return Given(tmp_path)


@pytest.mark.parametrize("user", AS)
@pytest.mark.parametrize("tier", WRAPPED)
def test_it_writes_in_its_own_folder_and_nowhere_else(given: Given, tier: str, user: list[str]) -> None:
    """Not by writing, truncating, removing, renaming, linking or making anything outside."""
    if tier == LANDLOCK and user and subprocess.run([*user, "env", sys.executable, "-c", ""], check=False).returncode:
        pytest.skip("nobody cannot run this interpreter")
    code, said = given.run("echo hi > own && mkdir below && mv own below/own && cat below/own", tier, user)
    assert (code, said) == (0, "hi\n"), said
    theirs = str(given.theirs)
    for attempt in (
        f"echo x > {theirs}/new",
        f"echo x > {theirs}/file",
        f": >> {theirs}/file && truncate -s 0 {theirs}/file",
        f"rm {theirs}/file",
        f"mv {theirs}/file {given.mine}/file",
        f"mkdir {theirs}/below",
        f"ln -s x {theirs}/link",
        f"mv {theirs} {theirs}-moved",
        f"mv {given.mine} {given.mine}-moved",
    ):
        assert given.run(attempt, tier, user)[0] != 0, attempt
    assert {path.name: path.read_text() for path in given.theirs.iterdir()} == {"file": "as it was"}


@needs_bubblewrap
@pytest.mark.parametrize("user", AS)
def test_it_cannot_undo_the_glass(given: Given, user: list[str]) -> None:
    """Remounting, unmounting and a namespace of its own leave what is read-only read-only."""
    theirs = str(given.theirs)
    for attempt in (
        f"mount -o remount,bind,rw / && touch {theirs}/x",
        f"umount {theirs}; touch {theirs}/x",
        f"unshare -Urm sh -c 'mount -o remount,bind,rw / ; touch {theirs}/x'",
        f"nsenter -t 1 -m touch {theirs}/x",
        f"chroot / touch {theirs}/x",
    ):
        assert given.run(attempt, BUBBLEWRAP, user)[0] != 0, attempt
    assert not (given.theirs / "x").exists()


@needs_bubblewrap
def test_a_save_by_rename_from_outside_does_not_lift_the_glass(given: Given) -> None:
    """Editors replace a file by a rename; folders are what is bound, so the new file is read-only too."""
    script = f"touch started; for i in $(seq 100); do sleep 0.02; done; echo x > {given.theirs}/file"
    words = given.glass.words(["bash", "-c", script], BUBBLEWRAP)
    with subprocess.Popen(words, cwd=given.mine, env=ENV, stderr=subprocess.DEVNULL) as child:
        while not (given.mine / "started").exists():
            time.sleep(0.01)
        (given.theirs / "saved").write_text("by a person")
        os.replace(given.theirs / "saved", given.theirs / "file")
        assert child.wait() != 0
    assert (given.theirs / "file").read_text() == "by a person"


@needs_bubblewrap
def test_it_sees_no_process_and_no_temporary_file_of_others(given: Given) -> None:
    """A PID namespace, /tmp and /run of its own; what it puts there is gone with it."""
    code, said = given.run(
        "ls /proc | grep -cE '^[0-9]+$'; ls /run | wc -l; echo x > /tmp/harness-confined", BUBBLEWRAP
    )
    processes, runs = said.split()
    assert (code, int(processes) < 8, runs) == (0, True, "0")
    assert not Path("/tmp/harness-confined").exists()


@needs_bubblewrap
def test_what_is_hidden_is_empty(given: Given) -> None:
    """A folder of keys has nothing in it, and a file nothing."""
    keys = given.mine.parent / "keys"
    keys.mkdir()
    (keys / "id").write_text("secret")
    (keys.parent / "netrc").write_text("secret")
    glass = given.glass.replace(hidden=[str(keys), str(keys.parent / "netrc")])
    code, said = given.run(f"ls -A {keys}; cat {keys.parent}/netrc; cat {keys}/id", BUBBLEWRAP, glass=glass)
    assert code != 0 and "secret" not in said


@needs_bubblewrap
def test_without_a_network_it_reaches_nobody(given: Given) -> None:
    """Not even a server on this machine; with the host's it does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        assert given.run(connect, BUBBLEWRAP)[0] == 0
        assert given.run(connect, BUBBLEWRAP, glass=given.glass.replace(network="loopback"))[0] != 0


FORKS = "for i in $(seq 40); do (while :; do : & done) & done; sleep 0.3; setsid env -i bash -c 'while :; do sleep 9; done' &"


@needs_bubblewrap
def test_nothing_outlives_it_however_fast_it_forks(given: Given) -> None:
    """Forty processes that fork as fast as they can, and a daemon without environment: gone within a second."""
    words = given.glass.words(["bash", "-c", f"{FORKS} sleep 60"], BUBBLEWRAP)
    with supervise.Child(words, cwd=str(given.mine), env=ENV, wall_seconds=60, grace_seconds=0.0) as child:
        time.sleep(1.0)
        began = time.monotonic()
        child.close()
    assert child.ended is not None and child.ended.left == 0
    assert time.monotonic() - began < 5.0, "a bound for a busy machine; about 0.2 s on an idle one"
    assert not [pid for pid in tree.descendants(os.getpid()) if pid != os.getpid()]


@needs_bubblewrap
def test_a_fork_bomb_fills_its_namespace_and_not_the_machine(given: Given) -> None:
    """Its own limit on processes stands below the machine's."""
    code, said = given.run("cat /proc/sys/kernel/pid_max", BUBBLEWRAP)
    assert (code, said) == (0, f"{confine.MOST_PROCESSES}\n")


@needs_bubblewrap
@pytest.mark.parametrize("user", AS)
def test_a_sandbox_inside_works(given: Given, user: list[str]) -> None:
    """Agents bring their own bubblewrap; with a user namespace it starts inside ours."""
    inner = "bwrap --unshare-user --ro-bind / / --dev /dev echo nested"
    assert given.run(inner, BUBBLEWRAP, user) == (0, "nested\n")


@pytest.mark.parametrize("tier", [NONE, *WRAPPED])
def test_exit_code_and_arguments_are_the_programs_own(given: Given, tier: str) -> None:
    """Whatever the arguments hold; nothing is read by a shell."""
    words = given.glass.words(["printf", "%s|", "a b", "$(x)", "'", "", "--"], tier)
    done = subprocess.run(words, cwd=given.mine, env=ENV, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "a b|$(x)|'||--|")
    assert given.run("exit 7", tier)[0] == 7


@pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")
def test_landlock_holds_for_what_the_program_starts(given: Given) -> None:
    """Also for a daemon in a session of its own."""
    given.run(f"setsid env -i bash -c 'echo x > {given.theirs}/new' & wait", LANDLOCK)
    assert not (given.theirs / "new").exists()


def test_the_best_tier_is_the_one_that_works(tmp_path: Path) -> None:
    """Without bubblewrap on the PATH it is Landlock or none."""
    found = subprocess.run(
        [sys.executable, "-c", "from harness.process import confine; print(confine.available())"],
        cwd=Path(confine.__file__).parents[2],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == f"{LANDLOCK if landlock.abi() else NONE}\n"
