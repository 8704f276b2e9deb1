"""Promises of harness/process/tree.py: what a sweep finds and spares, and what a process can learn of its origin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness.process import spawn, tree

ROOT = str(Path(__file__).resolve().parents[2])
DAEMON = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.write(1, b"%d" % os.getpid())
os.close(1)
time.sleep(60)
"""


def daemon(tag: str | None) -> int:
    """Start a double-fork daemon, tagged or not; returns its pid."""
    env = {"PATH": os.environ["PATH"]} | ({tree.TAG: tag} if tag else {})
    return int(subprocess.run([sys.executable, "-I", "-S", "-c", DAEMON], env=env, stdout=-1, check=True).stdout)


def lives(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    fields = tree.stat(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def test_the_sweep_ends_tagged_daemons_and_spares_all_others() -> None:
    """Spared: another run's, an untagged one, and one whose tag only starts the same."""
    tag = f"sweep-{os.getpid()}"
    ours, others = [daemon(tag), daemon(tag)], [daemon(None), daemon(f"{tag}-2")]
    try:
        assert sorted(tree.sweep(tag)) == sorted(ours)
        assert not any(map(lives, ours))
        assert all(map(lives, others))
        assert tree.sweep(tag) == []
    finally:
        for pid in others:
            os.kill(pid, signal.SIGKILL)


def test_the_sweep_spares_the_sweeper_and_its_ancestors() -> None:
    """A tagged shell whose tagged child sweeps: both survive, the tagged sibling does not."""
    tag = f"sweeper-{os.getpid()}"
    script = (
        f"import sys; sys.path.insert(0, {ROOT!r}); from harness.process import tree; print(len(tree.sweep({tag!r})))"
    )
    argv = ["sh", "-c", 'sleep 60 & "$@"; echo alive', "sh", sys.executable, "-c", script]
    done = subprocess.run(argv, env=dict(os.environ) | {tree.TAG: tag}, stdout=-1, check=False)
    assert done.stdout == b"1\nalive\n"


def test_the_tag_is_found_on_any_ancestor() -> None:
    """An agent that cleans its child's environment does not hide that it runs inside a run."""
    script = (
        f"import sys; sys.path.insert(0, {ROOT!r}); from harness.process import tree; print(tree.tagged_ancestor())"
    )
    inner = [sys.executable, "-c", script]
    argv = ["sh", "-c", 'env -i PATH="$PATH" sh -c \'"$@"; :\' sh "$@"; :', "sh", *inner]
    found = subprocess.run(argv, env=dict(os.environ) | {tree.TAG: "run-7"}, stdout=-1, check=True)
    assert found.stdout == b"run-7\n"
    bare = {name: value for name, value in os.environ.items() if name != tree.TAG}
    if tree.tagged_ancestor() is None:  # these tests may run inside a run themselves
        assert subprocess.run(inner, env=bare, stdout=-1, check=True).stdout == b"None\n"


def test_descendants_are_all_generations_with_their_state() -> None:
    """Children, grandchildren, and zombies."""
    script = "sleep 60 & sh -c 'sleep 60 & echo ready; wait' & wait"
    with subprocess.Popen(["sh", "-c", script], stdout=-1) as top:
        assert top.stdout is not None
        top.stdout.readline()
        family = tree.descendants(top.pid)
        assert len(family) == 3
        assert set(tree.descendants(top.pid, deep=False)) < set(family)
        assert top.pid in tree.descendants(os.getpid())
        tree.kill(family)
        top.kill()
    assert tree.stat(top.pid) == []


def test_killing_reaches_all_of_a_process_group() -> None:
    """One call that no fork escapes: the group of each process is killed with it."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=-1, start_new_session=True) as top:
        assert top.stdout is not None
        below = int(top.stdout.readline())
        tree.kill({top.pid: tree.stat(top.pid)})
    until = time.monotonic() + 60
    while lives(below) and time.monotonic() < until:
        time.sleep(0.005)
    assert not lives(below)


def test_a_pid_record_distinguishes_one_process_from_a_later_one_of_the_same_number() -> None:
    """Pid, start, boot."""
    record = tree.pid_record()
    assert record["pid"] == os.getpid()
    assert record == tree.pid_record()
    assert record["started"] == int(tree.stat(os.getpid())[19])
    assert len(record["boot"]) == 36


def test_reap_returns_none_for_processes_that_are_not_ours() -> None:
    """None while a child lives, and for other processes; the wait status once it has ended."""
    assert tree.reap(1) is None
    pid = spawn.fork(lambda: os._exit(3))
    until = time.monotonic() + 60
    while (code := tree.reap(pid)) is None and time.monotonic() < until:
        time.sleep(0.002)
    assert code is not None
    assert os.waitstatus_to_exitcode(code) == 3


def test_a_tag_that_is_no_text_is_looked_for_by_its_bytes() -> None:
    """The name of a run is that of a file, which may be any bytes."""
    assert tree.sweep("mission/run-\udcff") == []
