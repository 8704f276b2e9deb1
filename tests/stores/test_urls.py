"""Stores by URL."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.stores.store import ANY
from harness.stores.urls import open_store

TALKS = """import sys
sys.path.insert(0, sys.argv[1])
from harness import HarnessAgent, SimulatedModel
with HarnessAgent("assistant", SimulatedModel("Hello."), workspace=sys.argv[2], store=sys.argv[3]) as agent:
    print(agent.call_sync("Hi.").call)
"""


@pytest.mark.parametrize("form", ["{}", "file://{}", "sqlite://{}/store.db"])
def test_a_url_names_one_place(tmp_path: Path, form: str) -> None:
    """Every store of it has the same values, and says where they are."""
    url = form.format(tmp_path)
    open_store(url).put(("alice", "k"), b"v", ANY)
    known = open_store(url).get(("alice", "k"))
    assert known is not None and known.data == b"v"
    assert open_store(url).describe(("alice", "k")).endswith(f"{url.removeprefix('file://')}/alice/k")


def test_a_store_in_memory_is_new_each_time() -> None:
    """Its name is for people."""
    open_store("memory:").put(("k",), b"v", ANY)
    assert open_store("memory:").get(("k",)) is None
    assert open_store("memory:mine").describe(("k",)) == "mine:k"


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "sqlite://host/x.db", "sqlite:x.db", "file://x", "sqlite:///x?y=1", "s3:///no/bucket"]
)
def test_what_names_no_store_is_said_with_what_to_write(url: str) -> None:
    """Nothing is made."""
    with pytest.raises(UsageFault, match="///"):
        open_store(url)


@pytest.mark.parametrize("url", ["redis://h/0?seconds=soon", "s3://b/p?seconds=soon", "postgresql://h/d?seconds=soon"])
def test_an_option_that_is_none_is_said_so(url: str) -> None:
    """Before the server is asked."""
    with pytest.raises(UsageFault, match="options after"):
        open_store(url).get(("k",))


@pytest.mark.parametrize(
    ("url", "package"), [("redis://h", "redis"), ("postgresql://h/d", "psycopg"), ("s3://b", "obstore")]
)
def test_a_package_that_is_missing_is_named_with_the_line_that_installs_it(url: str, package: str) -> None:
    """It is asked for by the stores that need it, and by no other."""
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); sys.modules[{package!r}] = None\n"
    script += "from harness.stores.urls import open_store; from harness.base.errors import Unavailable; open_store('memory:')\n"
    script += f"try: open_store({url!r})\nexcept Unavailable as fault: print(fault.code, fault)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert re.fullmatch(rf"69 .* {package}\b.*pip install 'harness-missions\[\w+\]'\n", done.stdout), done


def test_an_agent_keeps_its_sessions_where_a_url_says(tmp_path: Path) -> None:
    """Another process that names it goes on there. (A process each: an agent has threads.)"""
    words = [sys.executable, "-c", TALKS, str(Path(__file__).parents[2]), str(tmp_path), f"sqlite://{tmp_path}/s.db"]
    calls = [subprocess.run(words, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert calls == ["1\n", "2\n"] and not (tmp_path / ".harness").exists()
