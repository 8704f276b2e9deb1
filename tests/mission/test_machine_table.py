"""An address of Dask is a machine; one to which others may listen is refused, and so is one without the package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.mission import machine_table
from tests.missions import CHECKOUT, PROGRAM, House

OPEN = "dask:tcp://build2:8786"


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786", "tls://build2:8786"]
)
def test_an_address_on_the_loopback_or_with_tls_needs_no_table(address: str) -> None:
    """It is its own name."""
    pytest.importorskip("distributed", reason="Dask is not installed: make setup")
    assert machine_table.table_of({}, "dask:" + address) == {"address": "dask:" + address}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("build3", "no [machines.build3] in config.toml. There are: build2"),
        ("dask:build2", "is not an address such as dask:tls://host:8786"),
        ("dask:inproc://build2:1", "is not an address such as"),
        (OPEN, "has no TLS"),
        ("dask:tcp://127.0.0.1.example.org:8786", "has no TLS"),
        ("dask:tcp://localhost:1@build2:8786", "has no TLS"),
        ("build2", "has no TLS"),
    ],
)
def test_any_other_is_refused(name: str, why: str) -> None:
    """Before anything is sent there."""
    with pytest.raises(UsageFault) as fault:
        machine_table.table_of({"build2": {"address": OPEN}}, name)
    assert why in str(fault.value)


def test_a_table_may_say_that_it_is_insecure() -> None:
    """As within a network of one's own."""
    pytest.importorskip("distributed", reason="Dask is not installed: make setup")
    table = {"address": OPEN, "insecure": True}
    assert machine_table.table_of({"build2": table}, "build2") == table


def test_run_sh_ends_at_once_with_what_is_missing(house: House, tmp_path: Path) -> None:
    """64 for an address that is refused; 69 without the package, with the line that installs it; `doctor` names both."""
    run_sh = str(CHECKOUT / "run.sh")
    house.config(f'agent = "scripted"\n[machines.build2]\naddress = "{OPEN}"')
    refused = house.run([run_sh, "--on", OPEN])
    assert (refused.code, "insecure = true" in refused.err, house.ran()) == (64, True, []), refused
    looked = house.program("doctor", "machines")
    assert looked.code != 0 and "build2: dask:tcp://build2:8786 has no TLS" in looked.out, looked
    without = tmp_path / "python"
    hidden = "import importlib.util as u, runpy, sys; old = u.find_spec"
    hidden += "; u.find_spec = lambda name, *more: None if name == 'distributed' else old(name, *more)"
    hidden += "; sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    without.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{hidden}" "$@"\n')
    without.chmod(0o755)
    done = house.run([str(without), "-P", str(PROGRAM), "hold", "9", "--on", "dask:tcp://127.0.0.1:1"])
    assert (done.code, done.err.count("\n")) == (69, 1), done
    assert "pip install 'harness-missions[dask]'" in done.err
