"""Confinement: what a program behind glass can and cannot do, tried for real on every tier that this machine has."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import pytest

from harness.base import errors
from harness.process import confine, landlock, spawn, supervise, tree
from harness.process.confine import BUBBLEWRAP, LANDLOCK, NONE, Confinement, Glass
from tests.crash import sampled
from tests.other_user import BECOME, OtherUser

HARNESS = str(Path(confine.__file__).parents[2])
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/nonexistent"}
HERE = confine.available()
MISSING = {
    BUBBLEWRAP: pytest.mark.skipif(HERE != BUBBLEWRAP, reason="bubblewrap cannot be used here"),
    LANDLOCK: pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock"),
}
WRAPPED = [pytest.param(tier, marks=mark) for tier, mark in MISSING.items()]
AS = pytest.mark.parametrize("user", ["the user", "nobody"], indirect=True)


def in_turns(*tiers: str) -> pytest.MarkDecorator:
    """Each tier as one of the two users, in turns; HARNESS_TORTURE=1: as both."""
    rows = itertools.product(("the user", "nobody"), tiers)
    kept = sampled(rows, lambda row: (row[0] == "nobody") == (tiers.index(row[1]) % 2 == 0))
    found = [pytest.param(user, tier, marks=MISSING.get(tier, ())) for user, tier in kept]
    return pytest.mark.parametrize(("user", "tier"), found, indirect=["user"])


needs_bubblewrap = pytest.mark.skipif(HERE != BUBBLEWRAP, reason="bubblewrap cannot be used here")


CONFINED = """import json, os, sys
from harness.process import supervise
from harness.process.confine import Confinement, Glass
given = json.loads(sys.argv[1])
env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
ended = supervise.run(
    given["argv"], cwd=os.getcwd(), env=env, wall_seconds=60, sink=lambda _, chunk: os.write(1, chunk),
    confine=Confinement(glass=Glass(**given["glass"]), tier=given["tier"]),
)
os._exit(128 + ended.signal if ended.exit is None else ended.exit)
"""


LOOKING = """import os, sys
class Looks:
    def find_spec(self, name, path=None, target=None):
        if os.getpid() != ours:
            with open("imported", "a") as file:
                file.write(name + "\\n")
ours = os.getpid()
sys.meta_path.insert(0, Looks())
"""  # the forks of such a process write down what they import


@pytest.fixture
def user(request: pytest.FixtureRequest) -> OtherUser | None:
    """The user of the program: nobody, or None for the user of the tests."""
    return request.getfixturevalue("nobody") if request.param == "nobody" else None


class Given:
    """A folder that is given to the confined program, and one beside it that is not."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o755)
        self.mine, self.theirs = folder / "mine", folder / "theirs"
        for one in (self.mine, self.theirs):
            one.mkdir()
            one.chmod(0o777)
        (self.theirs / "file").write_text("as it was")
        (self.theirs / "file").chmod(0o666)
        self.glass = Glass(writable=[str(self.mine)], readable=[str(self.theirs)])

    def run(self, script: str, tier: str, user: OtherUser | None = None, glass: Glass | None = None) -> tuple[int, str]:
        """Exit code and output of a script behind glass, started by the user."""
        given = json.dumps({"glass": (glass or self.glass).asdict(), "tier": tier, "argv": ["bash", "-c", script]})
        words = [*BECOME, user.python] if user else [sys.executable]
        env = {**ENV, "PYTHONPATH": str(user.home) if user else HARNESS}
        words += ["-c", CONFINED, given]
        done = subprocess.run(words, cwd=self.mine, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def start(self, script: str, tier: str, grace_seconds: float = 0.0) -> supervise.Child:
        """A script started behind glass."""
        confined = Confinement(glass=self.glass, tier=tier)
        return supervise.Child(
            ["bash", "-c", script],
            cwd=str(self.mine),
            env=ENV,
            wall_seconds=60,
            grace_seconds=grace_seconds,
            merge=True,
            confine=confined,
        )


def eventually(met: Callable[[], bool]) -> None:
    """Wait until it becomes true; fail after 60 seconds."""
    until = time.monotonic() + 60.0
    while not met():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.fixture
def given() -> Iterator[Given]:
    """What a confined program is given; not in pytest's folder, which each session closes to other users anew."""
    with tempfile.TemporaryDirectory(prefix="confine-") as folder:
        yield Given(Path(folder))


@in_turns(BUBBLEWRAP, LANDLOCK)
def test_it_writes_in_its_own_folder_and_nowhere_else(given: Given, tier: str, user: OtherUser | None) -> None:
    """Not by writing, truncating, removing, renaming, linking or making anything outside."""
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
@AS
def test_it_cannot_undo_the_glass(given: Given, user: OtherUser | None) -> None:
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
    with given.start(script, BUBBLEWRAP) as child:
        eventually((given.mine / "started").exists)
        (given.theirs / "saved").write_text("by a person")
        os.replace(given.theirs / "saved", given.theirs / "file")
        assert b"Read-only" in b"".join(chunk for _, chunk in child.output())
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
        assert given.run(connect, BUBBLEWRAP, glass=given.glass.replace(network="none"))[0] != 0


FORKS = "for i in $(seq 40); do (while :; do : & done) & done; sleep 0.3; setsid env -i bash -c 'while :; do sleep 9; done' &"


@needs_bubblewrap
def test_nothing_outlives_it_however_fast_it_forks(given: Given) -> None:
    """Forty processes that fork as fast as they can, and a daemon without environment: gone."""
    before = set(tree.descendants(os.getpid()))
    with given.start(f"{FORKS} sleep 60", BUBBLEWRAP) as child:
        time.sleep(0.3)
        child.close()
    assert child.ended is not None and child.ended.left == 0
    assert set(tree.descendants(os.getpid())) <= before


@needs_bubblewrap
@AS
def test_a_fork_bomb_fills_its_namespace_and_not_the_machine(given: Given, user: OtherUser | None) -> None:
    """It cannot raise its limit on processes, and the machine's stays as it is."""
    if not confine.has_own_pid_max(os.uname().release):
        pytest.skip("this kernel has one pid_max for the machine")
    before = Path(confine.PID_MAX).read_text()
    code, said = given.run(f"cat {confine.PID_MAX}; echo 99999 2>/dev/null > {confine.PID_MAX}", BUBBLEWRAP, user)
    assert (code, said) == (1, f"{confine.MAX_PROCESSES}\n")
    assert Path(confine.PID_MAX).read_text() == before


@needs_bubblewrap
@AS
def test_before_linux_6_14_the_limit_is_one_of_the_user_inside(given: Given, user: OtherUser | None) -> None:
    """The machine's pid_max is never written there; root alone has no limit then."""
    words = confine.bubblewrap(["bash", "-c", "ulimit -u"], given.glass.layers(), "host", "6.12.48-amd64")
    held = Confinement(glass=given.glass, tier=BUBBLEWRAP).held()
    code, said, _ = spawn.capture([*(BECOME if user else ()), *words], cwd=str(given.mine), env=ENV, keep=held[:1])
    spawn.close(held)
    assert (code, said) == (0, b"%d\n" % confine.MAX_PROCESSES)
    assert confine.PID_MAX not in words


@needs_bubblewrap
@AS
def test_the_kernel_settings_of_the_machine_are_read_only(given: Given, user: OtherUser | None) -> None:
    """Root without any capability owns them: a core_pattern would run a program outside."""
    for name in ("kernel/core_pattern", "vm/swappiness", "kernel/pid_max"):
        path = f"/proc/sys/{name}"
        code, said = given.run(f"cat {path} > {path}", BUBBLEWRAP, user)
        assert code != 0 and ("Read-only" in said or "Permission denied" in said), (name, said)


@needs_bubblewrap
@AS
def test_a_sandbox_inside_works(given: Given, user: OtherUser | None) -> None:
    """Agents bring their own bubblewrap; with a user namespace it starts inside ours."""
    inner = "bwrap --unshare-user --ro-bind / / --dev /dev echo nested"
    assert given.run(inner, BUBBLEWRAP, user) == (0, "nested\n")


@in_turns(NONE, BUBBLEWRAP, LANDLOCK)
def test_exit_code_and_arguments_are_the_programs_own(given: Given, tier: str, user: OtherUser | None) -> None:
    """Whatever the arguments hold; nothing is read by a shell. An end by signal n is told as 128 + n."""
    output: list[bytes] = []
    confined = Confinement(glass=given.glass, tier=tier)
    argv = ["printf", "%s|", "a b", "$(x)", "'", "", "--"]
    ended = supervise.run(
        argv,
        cwd=str(given.mine),
        env=ENV,
        wall_seconds=60,
        sink=lambda _, chunk: output.append(chunk),
        confine=confined,
    )
    assert (ended.exit, b"".join(output)) == (0, b"a b|$(x)|'||--|")
    for script, code in (
        ("exit 7", 7),
        ("exit 127", 127),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -15 $$", 143),
    ):
        ended_as, said = given.run(script, tier, user)
        assert ended_as == code, (script, said)


@pytest.mark.parametrize("tier", [NONE, *WRAPPED])
def test_a_guardian_imports_nothing(given: Given, tier: str) -> None:
    """It may be forked beside a thread that holds an import lock, which would never be released in it."""
    asked = json.dumps({"glass": given.glass.asdict(), "tier": tier, "argv": ["true"]})
    env = {**ENV, "PYTHONPATH": HARNESS}
    done = subprocess.run([sys.executable, "-c", LOOKING + CONFINED, asked], cwd=given.mine, env=env, check=False)
    assert (done.returncode, files_of(given.mine)) == (0, {})


def files_of(folder: Path) -> dict[str, str]:
    """The files in a folder, by name."""
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("tier", WRAPPED)
def test_no_descriptor_is_left_open_in_it(given: Given, tier: str) -> None:
    """Neither the pipe of the limit nor one of ours."""
    assert given.run("exec ls /proc/self/fd | wc -l", tier) == (0, "4\n")


@pytest.mark.parametrize("tier", WRAPPED)
def test_it_has_its_grace_to_save_itself(given: Given, tier: str) -> None:
    """On TERM it writes what it has; its daemon in another session is gone as well."""
    daemon = "setsid env -i bash -c 'trap : TERM; touch daemon; while :; do sleep 0.1; done' >/dev/null 2>&1 &"
    script = f"trap 'sleep 0.3; echo all > saved; exit' TERM; {daemon} touch started; while :; do sleep 0.1; done"
    before = set(tree.descendants(os.getpid()))
    with given.start(script, tier, grace_seconds=1.5) as child:
        eventually(lambda: (given.mine / "started").exists() and (given.mine / "daemon").exists())
        child.stop()
        for _ in child.output():
            pass
    assert (given.mine / "saved").read_text() == "all\n"
    assert child.ended is not None and (child.ended.cause, child.ended.left) == ("stopped", 0)
    assert set(tree.descendants(os.getpid())) == before


@pytest.mark.parametrize("tier", WRAPPED)
def test_what_ignores_the_grace_ends_with_it(given: Given, tier: str) -> None:
    """KILL ends bubblewrap too, and its namespace."""
    with given.start("trap '' TERM; touch started; while :; do sleep 0.1; done", tier, grace_seconds=0.2) as child:
        eventually((given.mine / "started").exists)
        began = time.monotonic()
        child.close()
    assert time.monotonic() - began >= 0.2
    assert child.ended is not None and child.ended.left == 0


@pytest.mark.parametrize("tier", [NONE, *WRAPPED])
def test_a_program_or_folder_that_is_missing_is_named_before_the_start(given: Given, tier: str, tmp_path: Path) -> None:
    """As it is without confinement; an exit code could be the program's own."""
    script = given.mine / "script"
    script.write_text("#!/bin/sh\n")

    def fault(argv: list[str], cwd: Path = given.mine, env: dict[str, str] = ENV, stdin: str | None = None) -> str:
        confined = Confinement(glass=given.glass, tier=tier)
        with pytest.raises(errors.Unavailable) as raised:
            supervise.Child(argv, cwd=str(cwd), env=env, stdin=stdin, wall_seconds=9, confine=confined).close()
        return str(raised.value)

    installed = "cannot be started (is it installed, and on PATH?): "
    assert fault(["no-such"]) == f"no-such {installed}No such file or directory."
    assert fault(["/no/such"]) == f"/no/such {installed}No such file or directory."
    assert fault(["./script"]) == f"./script {installed}Permission denied."
    assert fault(["true"], env={"PATH": "/nonexistent"}) == f"true {installed}No such file or directory."
    assert fault(["true"], stdin="/no") == "true cannot be started with the input /no: No such file or directory."
    nowhere = tmp_path / "nowhere"
    assert fault(["true"], nowhere) == f"true cannot be started in the folder {nowhere}: No such file or directory."


@needs_bubblewrap
def test_a_program_or_folder_that_the_glass_hides_is_named_before_the_start(given: Given, tmp_path: Path) -> None:
    """bubblewrap alone would start elsewhere without a word."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    program = hidden / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    confined = Confinement(glass=given.glass.replace(hidden=[str(hidden)]), tier=BUBBLEWRAP)
    why = f"its confinement hides {program}: runs do not see {hidden}; put it elsewhere"
    with pytest.raises(errors.Unavailable, match=f"^{program} cannot be started: {why}"):
        supervise.Child([str(program)], cwd="/", env=ENV, wall_seconds=9, confine=confined).close()
    with pytest.raises(errors.Unavailable, match=f"in the folder {hidden}: its confinement hides {hidden}: "):
        supervise.Child(["true"], cwd=str(hidden), env=ENV, wall_seconds=9, confine=confined).close()


def test_each_kind_of_hidden_place_has_its_reason_and_its_remedy(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of a run's own, the list of a home folder, and what is the harness's also below these; the first one is told."""
    home = str(given.theirs)
    monkeypatch.setenv("HOME", home)
    glass = Glass(writable=[str(given.mine)], readable=[f"{home}/bin"], hidden=[home, f"{home}/state"])
    (given.theirs / "bin").mkdir()
    (given.theirs / "bin/link").symlink_to("/usr/bin/env")
    (given.theirs / "bin/out").symlink_to(f"{home}/file")
    wrapped, ruled = (Confinement(glass=glass, tier=tier) for tier in (BUBBLEWRAP, LANDLOCK))

    def why(path: str, known: Confinement = wrapped) -> str:
        return known.hides(["/usr/bin/env", f"{home}/bin/link", str(given.mine), path, "/run/second"])

    own = "its confinement hides /run/x: each run has an empty /run of its own; put it elsewhere, such as below /opt or ~/.local"
    assert why("/run/x") == own
    remedy = 'runs see only a list of your home folder; to show it, write into config.toml: [home] show = ["file"]'
    shown = f"its confinement hides {home}/file: {remedy}"
    assert (why(f"{home}/file"), why(f"{home}/bin/out")) == (shown, shown)
    assert why(f"{home}/state/m").startswith(f"its confinement hides {home}/state/m: runs do not see {home}/state; ")
    assert (why("/run/x", ruled), why(f"{home}/file", ruled)) == (
        "",
        shown,
    )  # that tier mounts nothing


def test_a_link_that_the_glass_lays_is_no_hidden_program(given: Given) -> None:
    """It leads to a program that is shown."""
    link = given.theirs / "tool"
    link.symlink_to("/usr/bin/env")
    glass = Glass(readable=[str(link)], hidden=[str(given.theirs)])
    assert glass.links() == {str(link): os.path.realpath("/usr/bin/env")}
    assert Confinement(glass=glass, tier=BUBBLEWRAP).hides([str(link)]) == ""


@needs_bubblewrap
def test_the_deepest_path_decides(given: Given) -> None:
    """Keys in a writable home stay hidden, a read-only folder in it stays so, and a writable one below stays writable."""
    for name in ("keys/open", "bin/cache"):
        (given.mine / name).mkdir(parents=True)
    (given.mine / "keys/id").write_text("secret")
    (given.mine / "netrc").write_text("secret")
    mine = str(given.mine)
    glass = Glass(
        writable=[mine, f"{mine}/keys/open", f"{mine}/bin/cache"],
        readable=[f"{mine}/bin"],
        hidden=[f"{mine}/keys", f"{mine}/netrc"],
    )
    script = "cat keys/id netrc; touch bin/x; ls keys; touch keys/open/a bin/cache/b c"
    code, said = given.run(script, BUBBLEWRAP, glass=glass)
    assert code == 0 and "secret" not in said and said.endswith("open\n"), said
    assert all((given.mine / name).exists() for name in ("keys/open/a", "bin/cache/b", "c"))
    assert not (given.mine / "bin/x").exists()


@needs_bubblewrap
def test_a_folder_is_seen_at_another_path_and_nothing_else_is_there(given: Given) -> None:
    """What lies outside at that path is out of reach; the program starts where its folder is seen, and no path need exist."""
    mine, theirs, new = str(given.mine), str(given.theirs), "/tmp/not/there"
    glass = Glass(writable=[mine, theirs], readable=[new], moved={theirs: mine, new: mine})
    script = "pwd; echo written > file; rm -rf /tmp/not/there/file; ls /tmp/not/there"
    code, said = given.run(script, BUBBLEWRAP, glass=glass)
    assert (code, said.split("\n")[0], said.rstrip("\n").split("\n")[-1]) == (0, theirs, "file"), said
    assert (given.mine / "file").read_text() == "written\n"
    assert (given.theirs / "file").read_text() == "as it was"
    known = Confinement(glass=glass, tier=BUBBLEWRAP)
    assert [known.seen(path) for path in (mine, f"{mine}/a", f"{mine}er")] == [theirs, f"{theirs}/a", f"{mine}er"]
    assert known.replace(tier=NONE).seen(mine) == mine


@needs_bubblewrap
def test_a_link_to_what_is_readable_is_there(given: Given) -> None:
    """Where what it is in is hidden, and so is where it leads."""
    real = given.mine / "disk/tools"
    real.mkdir(parents=True)
    (real / "tool").write_text("tool")
    (given.mine / "home").mkdir()
    (given.mine / "home/settings").symlink_to("../disk")
    (given.mine / "home/tools").symlink_to(given.mine / "home/settings/tools")
    home = str(given.mine / "home")
    glass = Glass(readable=[str(given.mine), f"{home}/tools"], hidden=[home, f"{given.mine}/disk"])
    assert given.run(f"cat {home}/tools/tool; ls {home}", BUBBLEWRAP, glass=glass) == (0, "tooltools\n")


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


@pytest.mark.skipif(HERE != BUBBLEWRAP, reason="bubblewrap cannot be used here")
def test_a_trial_that_fails_in_passing_lowers_no_tier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where another process has used up a limit for a moment."""
    program, tries = tmp_path / "bwrap", tmp_path / "tries"
    program.write_text(f'#!/bin/sh\necho >>{tries}\n[ $(wc -l <{tries}) -gt 3 ] && exec {which("bwrap")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (confine.available(), len(tries.read_text())) == (BUBBLEWRAP, 4)


def test_only_what_changes_something_is_mounted(tmp_path: Path) -> None:
    """Read-only below what is read-only, and the same twice, change nothing; each mount costs bubblewrap a look at all others."""
    for name in ("open/shut/deep", "open/shut/open", "gone/seen"):
        (tmp_path / name).mkdir(parents=True)
    real = tmp_path.resolve()
    opened, gone = real / "open", real / "gone"
    glass = Glass(
        writable=[str(opened), str(opened / "shut/open"), str(opened)],
        hidden=[str(gone)],
        readable=[
            "/",
            "/usr",
            "/usr/bin",
            "/dev/null",
            *map(str, (opened / "shut", opened / "shut/deep", gone / "seen")),
        ],
    )
    private = [folder for folder in confine.PRIVATE if os.path.isdir(folder) and not os.path.islink(folder)]
    assert [(path, option) for path, option in glass.layers() if path not in private] == [
        ("/dev/null", confine.READ),
        (str(gone), confine.TMPFS),
        (str(opened), confine.WRITE),
        (str(opened / "shut"), confine.READ),
        (str(gone / "seen"), confine.READ),
        (str(opened / "shut/open"), confine.WRITE),
    ]
    above = Glass(readable=["/usr", "/usr/bin"], moved={"/usr": str(gone)}).layers()
    assert [path for path, option in above if option == confine.READ] == ["/usr"], "another folder is seen there"


def test_a_writable_folder_can_be_made_readable_for_a_part(tmp_path: Path) -> None:
    """With what is in it; another one stays as it is, also where a folder is seen in the place of another."""
    tree, room = str(tmp_path / "tree"), str(tmp_path / "room")
    known = Confinement(glass=Glass(writable=[tree, f"{tree}/below", room], readable=["/x"]), tier=BUBBLEWRAP)
    less = known.reading(tree).glass
    assert (less.writable, less.readable) == ([room], ["/x", tree, f"{tree}/below"])
    moved = Confinement(glass=Glass(writable=["/seen", room], moved={"/seen": tree}), tier=BUBBLEWRAP)
    assert moved.reading(tree).glass.writable == [room]
