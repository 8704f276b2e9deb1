"""A mission with a given plan and a real model as its worker, played until it is DONE or its runs are used up."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from harness.mission import mission
from tests.missions import CHECKOUT, House, heard, tagged, until
from tests.model import playing
from tests.model.playing import is_honest, is_sound, laid, started

pytestmark = playing.real_model
BUILTIN = f'[roles.worker]\nagent = "builtin"\nminutes = {playing.MINUTES}\n{playing.BUILTIN}'
FLAGS = shlex.split(
    f"--model openai/{playing.MODEL} --openai-api-base {playing.URL or 'URL'} --edit-format whole --message-file /dev/stdin "
    "--yes-always --no-stream --no-pretty --no-check-update --no-show-release-notes --no-show-model-warnings "
    "--no-detect-urls --no-suggest-shell-commands --no-git --analytics-disable --map-tokens 0 --timeout 1800 "
    "--max-chat-history-tokens 100000 --chat-history-file /dev/null --input-history-file /dev/null"
)  # below that many tokens aider asks the model for a summary of what was said
EDITS = f"""[roles.worker]
agent = "aider"
minutes = {playing.MINUTES}
[agents.aider]
format = "edits"
command = {json.dumps([playing.AIDER, *FLAGS, "words.py"])}
env = {{ OPENAI_API_KEY = "x", LITELLM_LOCAL_MODEL_COST_MAP = "True" }}
"""
MOST_SECONDS = 1200  # until a model that others ask too has begun to answer


def test_a_mission_of_the_built_in_agent(bare: House) -> None:
    """The model works by the tools of our own loop."""
    bare.project.mkdir()
    laid(bare, BUILTIN)
    done = started(bare)
    is_sound(bare, done)
    is_honest(bare, done)


@pytest.mark.skipif(not os.access(playing.AIDER, os.X_OK), reason="no aider: HARNESS_AIDER names one")
def test_a_mission_of_aider(bare: House) -> None:
    """The model edits files, by a program that is not ours."""
    bare.project.mkdir()
    laid(bare, EDITS)
    done = started(bare)
    is_sound(bare, done)
    is_honest(bare, done)


def test_a_mission_that_is_killed_in_the_middle_of_a_request(bare: House) -> None:
    """Nothing lives on; the next start settles the run, goes on, and comes to an end of which the same holds."""
    bare.project.mkdir()
    laid(bare, BUILTIN, runs=4)
    assert started(bare, "planner").code == 0
    with (bare.folder / "printed").open("a") as printed:
        loop = subprocess.Popen(
            [str(CHECKOUT / "run.sh")], cwd=bare.project, env=bare.env, stdin=subprocess.DEVNULL,
            stdout=printed, stderr=printed, start_new_session=True, preexec_fn=heard,
        )  # fmt: skip
        until(lambda: bool(waiting(bare)) or loop.poll() is not None, MOST_SECONDS)
        cut = waiting(bare)
        assert len(cut) == 1 and loop.poll() is None
        os.killpg(loop.pid, signal.SIGKILL)
        loop.wait()
    name = mission.load(bare.layout).id
    until(lambda: not tagged(name))
    done = started(bare)
    assert bare.result(cut[0])["outcome"] == "killed"
    assert [row["run"] for row in bare.ran()][2:], "no run followed"
    is_sound(bare, done)
    is_honest(bare, done)


def waiting(house: House) -> list[str]:
    """The runs whose last row of turns.jsonl is a request."""
    found = [(Path(path).parent.name, playing.rows(path)) for path in house.state.glob("runs/*/turns.jsonl")]
    return [run for run, rows in found if rows and "turn" in rows[-1]]
