"""SIGTERM to a program with calls that run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.builtin.sessions import log
from harness.builtin.sessions.keys import session_keys
from harness.stores.disk import DiskStore
from tests.builtin.simulating import Program
from tests.missions import CHECKOUT

PROGRAM = """
import asyncio, sys
from harness import HarnessAgent, SimulatedCall, SimulatedModel

async def slow() -> str:
    '''Wait.'''
    print("asked", flush=True)
    await asyncio.sleep(60)
    return ""

agent = HarnessAgent("helper", SimulatedModel(SimulatedCall(name="slow")), workspace=sys.argv[1], tools=[slow])
if sys.argv[2] == "sync":
    agent.call_sync("work", session_id="s")
else:
    asyncio.run(agent.call("work", session_id="s"))
"""


@pytest.mark.on_disk
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_call_is_saved_as_interrupted_by_shutdown_and_the_next_process_takes_it_up(tmp_path: Path, how: str) -> None:
    """The process ends by the signal; the call has its result, and `resume` goes on behind it, once."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), how], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == "asked\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == -signal.SIGTERM
    store = DiskStore(str(tmp_path / ".harness/sessions"))
    record = log.whole(store, session_keys("default", "s")).calls[1]
    assert (record.outcome, record.message) == ("interrupted by shutdown", "work")
    assert (
        json.loads((tmp_path / ".harness/sessions/default/s/state.json").read_text())["newest"]["outcome"]
        == record.outcome
    )
    with Program(tmp_path, "finished", store=store) as program:
        reply = program.resume_sync(session_id="s")
        assert reply and reply.text == "finished"
        assert program.resume_sync(session_id="s") is None
    texts = [one["text"] for one in program.simulated.requests[0].messages if "text" in one]
    assert texts[0] == "work" and "shut down" in texts[-2] and "cut off" in texts[-1]
