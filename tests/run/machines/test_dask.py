"""A worker of Dask as a machine: one process on a free lane, and bytes there and back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.errors import MachineGone, Unavailable
from harness.run.machines._pipe import CommandPipe, command_of
from tests.crash import sampled
from tests.missions import House, until
from tests.run.machines.cluster import Cluster, cluster
from tests.run.machines.test_lane import WRITE, await_note

pytest.importorskip("distributed", reason="Dask is not installed: make setup")

BEAT = {"HARNESS_BEAT_SECONDS": "5"}  # six beats are more than a start takes, and less than the tests wait


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A worker with a lane, and one without."""
    with cluster(tmp_path_factory.mktemp("dask"), {"one": 1, "none": 0}) as made:
        yield made


def pipe(running: Cluster) -> CommandPipe:
    """A pipe to a program that repeats its input."""
    return CommandPipe("dask", command_of({"address": running.address}), "sh -c 'exec cat'")


def received(one: CommandPipe) -> dict[str, object]:
    """The next value, which comes within 60 s."""
    return one.receive(60) or {}


def test_values_go_there_and_back_as_bytes(running: Cluster) -> None:
    """Large ones as well; and the lane is free again at once after the end."""
    for size in (100, 10_000_000):
        one = pipe(running)
        one.send({"data": bytes(size)})
        assert received(one) == {"data": bytes(size)}
        one.close()


def test_a_worker_without_the_program_is_named_with_it(running: Cluster) -> None:
    """As any machine."""
    one = CommandPipe("dask", command_of({"address": running.address}), "~/no-such-harness")
    with pytest.raises(Unavailable, match="dask lacks the program ~/no-such-harness"):
        received(one)
    one.close()


def test_tls_is_that_of_dasks_own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its certificates values go there and back; without them nothing is sent."""
    key, cert, tls = tmp_path / "key.pem", tmp_path / "cert.pem", "DASK_DISTRIBUTED__COMM__TLS__"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=harness"]
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    subprocess.run([*words, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    monkeypatch.setenv(f"{tls}CA_FILE", str(cert))
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        monkeypatch.setenv(f"{tls}{role}__KEY", str(key))
        monkeypatch.setenv(f"{tls}{role}__CERT", str(cert))
    with cluster(tmp_path / "dask", {"one": 1}, "tls") as own:
        one = pipe(own)
        one.send({"a": b"secret"})
        assert received(one) == {"a": b"secret"}
        one.close()
        monkeypatch.delenv(f"{tls}CLIENT__CERT")
        one = pipe(own)
        with pytest.raises(MachineGone, match="cannot be reached: TLS expects"):
            received(one)
        one.close()


def test_a_lane_that_is_taken_is_given_to_nobody_else(running: Cluster) -> None:
    """The resource `lane` of a worker is how many it takes; nothing waits without an end."""
    one = pipe(running)
    one.send({"first": 1})
    assert received(one) == {"first": 1}
    other = pipe(running)
    with pytest.raises(MachineGone, match="all lanes of its 2 processes are taken"):
        received(other)
    one.close()
    other.close()


def test_a_run_works_on_a_worker_by_its_address(house: House, running: Cluster) -> None:
    """With the HOME of the worker; an address needs no table, and `doctor` tries one that has it."""
    house.config('agent = "scripted"', "[machines.cluster]", f'address = "{running.address}"')
    house.script("worker", WRITE)
    done = house.role("worker", "F-001", HARNESS_MACHINE=running.address)
    assert (done.code, house.result()["outcome"]) == (0, "ok"), done
    assert house.git("show", f"{house.result()['commit']}:1.txt") == str(house.tree)
    assert "from there" in house.read("memory/raw.md")
    assert (running.home("one") / ".local/state/harness/machines").is_dir()
    shown = house.program("doctor", "machines")
    assert "cluster: ready" in shown.out, shown


def test_a_cluster_without_lanes_lets_the_lane_wait(house: House, tmp_path: Path) -> None:
    """It says what is missing at once, instead of waiting for a resource that nobody has."""
    with cluster(tmp_path / "dask", {"none": 0}) as own:
        house.config('agent = "scripted"')
        house.script("worker", WRITE)
        done = house.role("worker", "F-001", HARNESS_MACHINE=own.address)
    assert (done.code, house.feature().status, house.ran()) == (75, "todo", []), done
    assert "none of its 1 processes has the resource lane" in done.err


@pytest.mark.parametrize("victim", sampled(["worker", "home", "scheduler"], lambda one: one == "worker"))
def test_whatever_dies_the_feature_is_free_and_nothing_is_left(house: House, tmp_path: Path, victim: str) -> None:
    """Dask runs nothing again; what the agent had noted stays."""
    with cluster(tmp_path / "dask", {"one": 1}) as own:
        house.config('agent = "scripted"')
        house.script("worker", {"run": "touch 1.txt; harness note stays; sleep 98761"})
        run = house.begin_role("worker", "F-001", session=False, HARNESS_MACHINE=own.address, **BEAT)
        await_note(house, "stays")
        victims = {"worker": own.workers["one"].pid, "home": run.pid, "scheduler": own.scheduler.pid}
        os.kill(victims[victim], signal.SIGKILL)
        code = run.wait(60)
        until(lambda: subprocess.run(["pgrep", "-f", "sleep 98761"], check=False, capture_output=True).returncode != 0)
        if victim == "home":
            assert house.work(WRITE, HARNESS_MACHINE=own.address)["outcome"] == "ok"
        else:
            assert (code, house.result()["outcome"]) == (10, "killed")
            assert house.result()["reason"].endswith("is gone: Unable to contact Actor's worker")
            assert (house.feature().status, house.feature().attempts) == ("todo", 0)
    assert "stays" in house.read("memory/raw.md")
