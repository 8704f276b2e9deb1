"""A run on a machine gives the same as one here; the tests go through the empty prefix, which is this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base import clock
from harness.mission import contract, receipts
from harness.mission.contract import Check, Claim, Contract, Service
from harness.state import names
from tests.crash import sampled
from tests.filesystem import places
from tests.missions import CHECKOUT, PROGRAM, House, until
from tests.test_machines import ours

HERE = ("[machines.here]", "command = []")
ON = {"HARNESS_MACHINE": "here", "HARNESS_BEAT_SECONDS": "10"}  # six are more than a start takes on a busy machine
SOONER = {"HARNESS_BEAT_SECONDS": "1"}  # what hangs is killed after a beat
LIAR = str(CHECKOUT / "tests/run/machines/liar.py")
SERVING = "machine\0--beat"
WRITE = {"run": "pwd > 1.txt; harness note --tag TRICK 'from there'"}


@pytest.fixture(autouse=True)
def nothing_left(house: House) -> object:
    """Every test leaves no process of a machine behind."""
    yield None
    until(lambda: ours(house, SERVING) == [])


def on_machine(house: House, *lines: str) -> None:
    """The scripted agent on the machine `here`."""
    house.config('agent = "scripted"', *lines, *HERE)


def await_note(house: House, text: str) -> None:
    """Wait until an agent has noted this."""
    path = Path(house.layout.path(names.RAW))
    until(lambda: path.exists() and text in path.read_text())


def test_a_worker_there_brings_its_work_and_its_notes(house: House) -> None:
    """The agent works in a tree at the path of the run's own, and what it notes is durable at home at once. What it leaves there
    has no rights of its own, as at home: no setuid bit stays in the folder of the lane, which no other user enters."""
    on_machine(house)
    rights = {"run": "cp /bin/true a.bin; chmod 4755 a.bin; cp -p a.bin $HOME"}
    house.script("worker", WRITE, rights, {"say": "done"})
    done = house.role("worker", "F-001", **ON)
    result = house.result()
    assert (done.code, result["outcome"], house.feature().status) == (0, "ok", "validating"), (done, result)
    assert house.git("show", f"{result['commit']}:1.txt") == str(house.tree)
    assert "from there" in house.read("memory/raw.md")
    folder = Path(house.env["XDG_STATE_HOME"], "harness")
    found = {path: path.stat().st_mode & 0o7777 for path in (folder / "machines").rglob("a.bin")}
    assert list(found.values()) == [0o755] * 2, found
    assert folder.stat().st_mode & 0o777 == 0o700


def test_checks_setup_and_services_run_there_and_receipts_name_it(house: House) -> None:
    """Setup once per commit; a check sees the port of a service; stamps are made at home."""
    checks = [Check(run="test -f 1.txt"), Check(run="test -f up-$PORT; cat set; pwd")]
    service = Service(name="web", run="touch up-$PORT; sleep 60", ready="test -f up-$PORT")
    known = Contract(
        claims=[Claim(id="VAL-1", text="It works", checks=checks)], services=[service], setup="echo x >> set"
    )
    Path(house.layout.path(names.CONTRACT)).write_text(contract.render(known))
    house.write(".gitignore", "set\nup-*\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "ignore")
    on_machine(house)
    house.script("worker", WRITE)
    house.role("worker", "F-001", **ON)
    done = house.role("validator", "F-001", **ON)
    found = receipts.load(house.layout.run(house.result()["run"]).receipts)
    assert [(one.host, one.verdict, one.by) for one in found] == [("here", "green", house.result()["run"])] * 2, (
        done,
        found,
    )
    assert found[1].output == f"x\nx\n{house.tree}\n"  # one setup for each of two commits, in a tree that is kept
    assert house.feature().status == "passed"


def test_the_trace_of_a_red_check_comes_from_there(house: House) -> None:
    """As at home."""
    on_machine(house)
    house.lay(house.feature().replace(status="validating"))
    done = house.role("validator", "F-001", **ON)
    (red,) = receipts.load(house.layout.run(house.result()["run"]).receipts)
    assert (red.host, red.verdict, red.trace) == ("here", "red (exit 1)", "+ test -f 1.txt"), done


def test_an_agents_own_checks_run_there_and_are_recorded_here(house: House) -> None:
    """So that the run can be replayed."""
    on_machine(house)
    house.work({"run": "touch 1.txt; harness check F-001 > out; grep -q green out; rm out"}, **ON)
    assert house.result()["outcome"] == "ok", house.result()
    rows = [json.loads(line) for line in house.read(f"runs/{house.result()['run']}/{names.ASKED}").splitlines()]
    assert [(row["verb"], row["arguments"], row["code"]) for row in rows] == [("check", ["F-001"], 0)]


@pytest.mark.parametrize("where", ["home", "anywhere"])
def test_the_final_sweep_runs_where_the_configuration_says(house: House, where: str) -> None:
    """Also where the lane of a machine starts it; both clones of it are at one place."""
    on_machine(house, "[machines]", f'sweep = "{where}"')
    for name in ("1.txt", "2.txt"):
        house.write(name)
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "all of it")
    house.lay(*(house.feature(name).replace(status="passed") for name in ("F-001", "F-002")))
    done = house.role("validator", "", **ON)
    found = receipts.load(house.layout.run(house.result()["run"]).receipts)
    assert [(one.claim, one.phase, one.verdict) for one in found] == [
        (claim, phase, "green") for phase in ("sweep", "outside") for claim in ("VAL-1", "VAL-2")
    ], (done, found)
    assert {one.host == "here" for one in found} == {where == "anywhere"}


def test_only_named_variables_travel(house: House) -> None:
    """Those that `[env] pass` names; PATH and HOME are the machine's own, whatever it names."""
    house.config('agent = "scripted"', "[env]", 'pass = ["A_TOKEN", "PATH"]', "[machines.here]",
                 'command = ["env", "PATH=/usr/bin:/bin"]', f'program = "{sys.executable} -P {PROGRAM}"')  # fmt: skip
    house.script("worker", {"run": "echo ${A_TOKEN-none} ${B_TOKEN-none} ${PATH##*.harness/bin} > 1.txt"})
    done = house.role("worker", "F-001", A_TOKEN="a", B_TOKEN="b", **ON)
    assert done.code == 0, done
    assert house.git("show", f"{house.result()['commit']}:1.txt") == "a none :/usr/bin:/bin"


@pytest.mark.parametrize("victim", ["front", "worker"])
def test_a_machine_that_dies_leaves_the_feature_free(house: House, victim: str) -> None:
    """No attempt counts, the loop may go on, and what the agent had noted stays."""
    on_machine(house)
    house.script("worker", {"run": "touch 1.txt; harness note stays; sleep 100"})
    run = house.begin_role("worker", "F-001", session=False, **ON)
    await_note(house, "stays")
    front = min(ours(house, SERVING))
    below = subprocess.run(["pgrep", "-P", str(front)], capture_output=True, text=True, check=True).stdout
    os.kill(front if victim == "front" else int(below), signal.SIGKILL)
    assert run.wait(60) == 10
    assert (house.result()["outcome"], house.feature().status, house.feature().attempts) == ("killed", "todo", 0)
    assert "the machine here is gone" in house.result()["reason"]
    assert "stays" in house.read("memory/raw.md")


@pytest.mark.parametrize("hangs", sampled([False, True], lambda hangs: hangs))
def test_the_end_of_home_ends_everything_there(house: House, hangs: bool) -> None:
    """The agent and its children, also after a kill, and if the worker there hangs; the next run starts anew, without the files
    of the dead one."""
    on_machine(house)
    house.script("worker", {"run": "touch 1.txt 2.txt; harness note begun; sleep 98765"})
    run = house.begin_role("worker", "F-001", session=False, **{**ON, **(SOONER if hangs else {})})
    await_note(house, "begun")
    if hangs:
        below = subprocess.run(["pgrep", "-P", str(min(ours(house, SERVING)))], capture_output=True, check=True).stdout
        os.kill(int(below), signal.SIGSTOP)
    run.kill()
    run.wait()
    until(lambda: ours(house, SERVING, "98765") == [])
    result = house.work(WRITE, **ON)
    assert (result["outcome"], house.feature().attempts) == ("ok", 0)
    assert house.git("ls-tree", "--name-only", result["commit"]).splitlines() == ["1.txt", "SPEC.md", "main.py"]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ('["sh", "-c", "echo no such host >&2; exit 255"]', "no such host"),
        ('["head", "-c", "9", "/dev/zero", "#"]', "cannot be reached"),
    ],
)
def test_a_machine_that_cannot_be_used_lets_the_lane_wait(house: House, command: str, why: str) -> None:
    """With its own words, and before anything is spent."""
    house.config('agent = "scripted"', "[machines.here]", f"command = {command}")
    house.script("worker", WRITE)
    done = house.role("worker", "F-001", **ON)
    assert (done.code, house.feature().status, house.ran()) == (75, "todo", []), done
    assert why in done.err


LIES = (
    "if 'event' in row: row = b'\\0\\3\\0\\0\\0\\0\\0\\0' + b'[' * 0x30000",
    "if 'ask' in row: row |= {'verb': 'checked', 'arguments': ['F-001', 'x']}",
    "if done: done['pack'] = 10**13",
    "if done: done['end'] = {'outcome': 5, 'reason': 7}",
)  # a lie of each kind of row; the others are more of them
MORE_LIES = (
    "if 'ask' in row: row['arguments'] = 5",
    "if done: row['done'] = 5",
    "if done: done['records'] = [1]",
    "if done: done['records'] = {'tasks/' + 'a' * 300: b'x'}",
    "if done: done['end'] = {'reply': 7}",
)


@pytest.mark.parametrize("lie", sampled([*LIES, *MORE_LIES], LIES.__contains__))
def test_a_lie_ends_the_run_and_not_the_mission(house: House, lie: str) -> None:
    """Whatever has the wrong type or name: home says so in one line, and the feature is free again."""
    command = json.dumps([sys.executable, LIAR, lie, sys.executable, "-P", str(PROGRAM)])
    house.config('agent = "scripted"', "[machines.here]", f"command = {command}", 'program = ""')
    house.script("worker", WRITE, {"say": "done"})
    done = house.role("worker", "F-001", **ON)
    assert (done.code, house.feature().status) == (10, "todo"), done
    result = house.result()
    assert result["outcome"] == "agent_error" or result["reason"].startswith("the machine here sent an invalid "), (
        result
    )


def test_an_interrupted_run_keeps_the_work_so_far(house: House) -> None:
    """As one here does."""
    on_machine(house)
    house.script("worker", {"run": "echo half > 1.txt; harness note begun; sleep 100"})
    run = house.begin_role("worker", "F-001", session=False, **ON)
    await_note(house, "begun")
    run.terminate()
    assert run.wait(60) == 143
    assert house.git("show", f"refs/harness/partial/{house.result()['run']}:1.txt") == "half"


def test_a_run_there_is_seen_with_its_machine(house: House) -> None:
    """In `status` and `watch` while it lives, in `log` for ever."""
    on_machine(house)
    house.script("worker", {"run": "harness note begun; sleep 100"})
    run = house.begin_role("worker", "F-001", session=False, **ON)
    await_note(house, "begun")
    assert "-worker-F-001 on here" in house.harness("status").out
    seen = house.harness("watch", "--once").out
    assert "tree-1 on here" in seen, seen
    run.terminate()
    run.wait(60)
    assert "works on the machine here" in house.harness("log").out


def test_the_tree_of_home_is_what_came_back(house: House) -> None:
    """Deleted, renamed and executable files as well; what stays there is listed, with why. A carried file is there with its mode:
    nobody else there reads what nobody else here may read."""
    house.write(".gitignore", ".env\n*.db\n")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "ignore")
    house.write(".env", "A=1").chmod(0o600)
    on_machine(house, 'carry = [".env"]')
    large = "head -c 6000000 /dev/zero > large; mkdir -p src; touch src/a.db"
    house.script(
        "worker", {"run": f"mv main.py moved.py; rm SPEC.md; stat -c %a .env > 1.txt; chmod +x 1.txt; {large}"}
    )
    done = house.role("worker", "F-001", **ON)
    assert done.code == 0, done
    result = house.result()
    assert result["kept_out"] == ["large (5.7 MiB, over 5 MiB)"]
    assert result["ignored"] == ['ignored by .gitignore:2 "*.db": src/a.db']
    listed = house.git("ls-tree", "-r", result["commit"]).splitlines()
    assert [(line.split()[0], line.split()[-1]) for line in listed] == [
        ("100644", ".gitignore"),
        ("100755", "1.txt"),
        ("100644", "SPEC.md"),
        ("100644", "moved.py"),
    ]
    assert house.git("show", f"{result['commit']}:1.txt") == "600"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_it_works_through_ssh_and_where_no_path_of_home_is(house: House, elsewhere: bool) -> None:
    """With a HOME of its own; and in a namespace that lacks the project and its trees, as another machine does."""
    prefix = [*places.ssh()]
    if elsewhere:
        prefix += ["bwrap", "--dev-bind", "/", "/", "--tmpfs", str(house.folder.parent), "--die-with-parent"]
    words = ", ".join(json.dumps(word) for word in prefix)
    program = f"{sys.executable} -P {PROGRAM}"
    house.config('agent = "mine"', "[machines.here]", f"command = [{words}]", f"program = {json.dumps(program)}",
                 "[agents.mine]", 'command = ["bash", "-c", "cat > prompt; echo $HOME > 1.txt; harness note there"]')  # fmt: skip
    done = house.role("worker", "F-001", **ON)
    assert done.code == 0, done
    assert house.result()["outcome"] == "ok"
    assert "there" in house.read("memory/raw.md")
    shown = house.git("show", f"{house.result()['commit']}:1.txt")
    assert shown.endswith(".agent"), shown
    assert not shown.startswith(str(house.folder))


def test_a_playbook_that_is_in_no_commit_is_followed_there(house: House) -> None:
    """It is the person's file at home; one that only the machine could have is the end of the run, with the reason."""
    house.write("playbooks/worker.md", "```sh\necho followed > 1.txt\n```\n")
    house.config('agent = "playbook"', *HERE)
    done = house.role("worker", "F-001", **ON)
    assert (done.code, house.result()["outcome"]) == (0, "ok"), done
    assert house.git("show", f"{house.result()['commit']}:1.txt") == "followed"


def test_a_machine_that_loses_run_after_run_rests(house: House) -> None:
    """After three in a row the lane waits, longer after each further one: else one machine would use up all runs."""
    count = f"cat '{house.layout.path(names.RAW)}' 2>/dev/null | grep -c begun"
    kill = f'n=$({count}); "$@" <&0 & until [ $({count}) -gt $n ]; do sleep 0.05; done; kill -9 $!; wait'
    dying = json.dumps(["bash", "-c", kill, "dying"])
    house.config('agent = "scripted"', "[machines.here]", f"command = {dying}",
                 f'program = "{sys.executable} -P {PROGRAM}"')  # fmt: skip
    house.script("worker", {"run": "harness note begun $$; sleep 60"})
    while len(house.ran()) < 3:
        done = house.role("worker", "F-001", **ON)
        assert done.code == 10 or "has not ended there" in done.err, done
    assert {row["outcome"] for row in house.ran()} == {"killed"}
    done = house.role("worker", "F-001", **ON)
    assert done.code == 75 and "The machine here has lost 3 runs in a row" in done.err, done
    assert len(house.ran()) == 3 and house.feature().attempts == 0
    house.config('agent = "scripted"', *HERE)
    house.script("worker", {"run": "echo 1 > 1.txt"})
    later = house.folder / "later"
    later.write_bytes(clock.shown(clock.now() + 121, 0, clock.SETTLES))
    done = house.role("worker", "F-001", **ON, **{clock.RECORDED: str(later)})
    assert done.code == 0, done
