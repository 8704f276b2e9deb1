"""A past prompt fired again: the same bytes, in a throw-away clone, and nothing of it in the mission."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.process import confine, landlock
from harness.process.confine import BUBBLEWRAP
from tests.crash import TORTURE
from tests.missions import CHECKOUT, House, differences, listing, tagged, until

MOUNTS = confine.available() == BUBBLEWRAP
needs_mounts = pytest.mark.skipif(not MOUNTS, reason="bubblewrap does not work here")
GOOD = {"run": "echo one > 1.txt"}
SAYS = {"say": '```json harness\n{"status": "implemented", "summary": "done"}\n```'}
PASSED_OVER = (".harness/replays", ".harness/locks/mission", ".harness/locks/state", ".harness/cache")


def everything(house: House) -> dict[str, bytes]:
    """Every byte of the mission: project, state, git with its refs, tree and identity."""
    found = {f"project/{name}": data for name, data in listing(house.project, *PASSED_OVER).items()}
    found |= {f"tree/{name}": data for name, data in listing(house.tree).items()}
    return found | {f"identity/{name}": data for name, data in listing(house.identity).items()}


def fired(house: House, *words: str) -> dict[str, Any]:
    """What a replay says as JSON."""
    done = house.program("replay", *words, "--json")
    assert done.err == "", done
    return {"code": done.code, **json.loads(done.out)}


def worked(house: House) -> str:
    """A worker's run that did its work, and what happened after it: the mission has gone on."""
    run = str(house.work(GOOD, {"run": "harness note --tag TRICK 'one is enough'"}, SAYS)["run"])
    house.work({"run": "echo two > 2.txt; echo later >> main.py"}, SAYS, feature="F-002")
    return run


def test_the_same_prompt_has_the_same_outcome_and_the_mission_stays_as_it_was(house: House) -> None:
    """The same agent does the same work in a clone without later work; the checks of that time run there. Only
    `.harness/replays/` is new, and `usage` has a heading for it."""
    run = worked(house)
    house.script(
        "worker", GOOD, {"run": "test ! -e 2.txt; git log --oneline > seen; harness note 'from a replay'"}, SAYS
    )
    before = everything(house)
    value = fired(house, run, "--agent", "scripted")
    assert differences(before, everything(house)) == []
    now, sample = value["now"][0], value["samples"][0]
    assert (value["code"], now["outcome"], value["then"]["outcome"]) == (0, "ok", "ok")
    assert now["checks"] == [["VAL-1", "green"]]
    assert "+one" in now["patch"] and "later" not in now["patch"]
    assert any(line == "+++ work now" for line in now["work_diff"]), "its work is another: it wrote `seen`, too"
    folder = house.state / "replays" / value["replay"]["id"]
    assert (folder / "prompt.md").read_bytes() == (house.state / "runs" / run / "prompt.md").read_bytes() or not MOUNTS
    assert json.loads((folder / "1" / "result.json").read_text()) == sample
    assert "from a replay" in (folder / "1" / "notes.jsonl").read_text()
    assert [name for name in os.listdir(house.env["TMPDIR"]) if "replay" in name] == []
    assert json.loads(house.harness("usage", "--json").out)["replays"]["scripted"]["runs"] == 1
    assert json.loads(house.harness("usage", "--json").out)["total"]["runs"] == 2


@needs_mounts
def test_the_agent_reads_the_very_bytes_and_finds_the_state_of_then(house: House) -> None:
    """A program reads its prompt on standard input: equal. At the paths that it names are the commit, the queue and the notes of
    then, git works, and nothing can be pushed."""
    run = str(house.work(GOOD, SAYS)["run"])
    house.work({"run": "harness note --tag TRICK 'a later trick'; echo two > 2.txt"}, SAYS, feature="F-002")
    program = house.folder / "home" / "reads.py"
    program.write_text(
        "import hashlib, os, subprocess, sys\n"
        "data = sys.stdin.buffer.read()\n"
        "print(hashlib.sha256(data).hexdigest())\n"
        f"print('later' in open({str(house.state / 'memory/raw.md')!r}).read())\n"
        f"print(open({str(house.state / 'features.json')!r}).read().count('in_progress'))\n"
        "print(os.listdir('.harness') == ['bin'])\n"
        "for words in (['pwd'], ['git', 'rev-parse', 'HEAD'], ['git', 'push'], ['git', 'cat-file', '-e', sys.argv[1]]):\n"
        "    done = subprocess.run(words, capture_output=True, text=True)\n"
        "    print(done.returncode if words[1:2] in (['push'], ['cat-file']) else done.stdout.strip())\n"
    )
    house.config(
        'agent = "scripted"',
        f'[agents.mine]\ncommand = ["{sys.executable}", "{program}", "{house.result()["commit"]}"]',
    )
    value = fired(house, run, "--agent", "mine")
    context = json.loads(house.read(f"runs/{run}/context.json"))
    prompt = house.state / "runs" / run / "prompt.md"
    reply = (house.state / "replays" / value["replay"]["id"] / "1" / "reply.md").read_text().split()
    digest = subprocess.run(["sha256sum", str(prompt)], capture_output=True, text=True, check=True).stdout.split()[0]
    assert reply == [digest, "False", "1", "True", str(house.tree), context["head"], "128", "1"]


def hostile(house: House) -> tuple[dict[str, str], ...]:
    """An agent that does what it can against the mission: by name, by the paths of the prompt, and by those that it guesses."""
    project, state, tree, identity = house.project, house.state, house.tree, house.identity
    q = "'" + str(state / "bin" / "harness") + "'"
    lines = [
        *(
            "harness note --tag AVOID 'a lie'",
            f"{q} note --tag AVOID 'a lie'",
            "env -u HARNESS_INSIDE harness note 'a lie'",
        ),
        *("printf '%s' '```json harness\n{\"status\": \"blocked\"}\n```' | harness reply -", "harness issue '{}'"),
        *(
            "harness gc --keep-days 0",
            "harness stop now",
            "harness init --new --abandon",
            "harness feature retry F-001",
        ),
        f"touch '{state}/STOP' '{state}/PAUSE'; echo lie >> '{state}/memory/raw.md'; echo x > '{state}/features.json'",
        f"echo lie >> '{project}/main.py'; echo lie >> '{tree}/main.py'; echo lie > '{project}/new.txt'",
        f"echo lie >> '{identity}/worker.md'; rm -rf '{identity}'",
        "git add -A; git -c user.name=x -c user.email=x@x commit -qm lie; git push; git push origin HEAD:main",
        f"git push '{project}' HEAD:refs/heads/main HEAD:refs/heads/lie; git -C '{project}' update-ref refs/heads/main HEAD~",
        f"git -C '{project}' config core.hooksPath /tmp; git -C '{project}' tag lie; git -C '{project}' commit -qam lie",
        f"mv '{state}' '{state}-gone'; rm -rf '{state}'; mv '{project}' '{project}-gone'; rm -rf '{project}'",
        f"rm -rf '{tree}'/* '{tree}'/.git; rm -rf '{house.folder}/state'; (setsid sleep 1000 &)",
    ]
    return tuple({"run": f"({line}) >/dev/null 2>&1 || true"} for line in lines)


@needs_mounts
def test_a_hostile_agent_leaves_every_byte_of_the_mission(house: House) -> None:
    """Project, state, git's objects and refs, tree and identity are as they were, no process is left, and its notes are in the
    inbox of the replay."""
    house.identity.mkdir(exist_ok=True)
    (house.identity / "worker.md").write_text("- [2026-01-01] knows a thing (1x)\n")
    run = worked(house)
    house.script("worker", *hostile(house), SAYS)
    before = everything(house)
    value = fired(house, run, "--agent", "scripted")
    assert differences(before, everything(house)) == []
    assert value["samples"][0]["outcome"] in ("ok", "agent_error"), value["samples"]
    assert tagged(json.loads(house.read("mission.json"))["id"]) == []
    kept = house.state / "replays" / value["replay"]["id"] / "1"
    assert "a lie" in (kept / "notes.jsonl").read_text()
    assert house.program("replay", "--all").code == 0
    assert [name for name in os.listdir(house.env["TMPDIR"]) if "replay" in name] == []


@pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")
@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
def test_where_only_the_kernel_refuses_writes_the_mission_stays_as_it_was(house: House) -> None:
    """Landlock, where bubblewrap is missing: nothing is mounted, the agent sees the mission, and changes none of its bytes."""
    house.identity.mkdir(exist_ok=True)
    (house.identity / "worker.md").write_text("- [2026-01-01] knows a thing (1x)\n")
    run = worked(house)
    programs = house.folder / "programs"
    programs.mkdir()
    for path in Path("/usr/bin").iterdir():
        if path.name != "bwrap":
            (programs / path.name).symlink_to(path)
    house.script("worker", *hostile(house), SAYS)
    before = everything(house)
    done = house.program("replay", run, "--agent", "scripted", "--json", PATH=str(programs))
    assert differences(before, everything(house)) == []
    value = json.loads(done.out)
    assert not value["replay"]["mounted"]
    kept = house.state / "replays" / value["replay"]["id"] / "1"
    assert "a lie" in (kept / "notes.jsonl").read_text()
    until(lambda: tagged(json.loads(house.read("mission.json"))["id"]) == [])


def test_without_glass_what_the_prompt_names_leads_to_the_replay(unconfined: House) -> None:
    """The Runtime context names the clone and the state of the replay, and nothing else of the prompt is another; a bare note, a
    reply, a commit, a push, and the removal of the state that it names leave the mission as it was."""
    run = str(unconfined.work(GOOD, SAYS)["run"])
    steps = [
        *(
            "harness note 'a lie'",
            "echo lie >> main.py",
            "git add -A",
            "git -c user.name=x -c user.email=x@x commit -qm lie",
        ),
        *(
            "git push; git push origin HEAD:main",
            'echo lie >> "${PATH%%/bin:*}"/memory/raw.md; touch "${PATH%%/bin:*}"/STOP',
        ),
        "rm -rf .harness/*; rm -rf *; rm -rf .git",
    ]
    unconfined.script("worker", *({"run": f"({line}) >/dev/null 2>&1 || true"} for line in steps), SAYS)
    before = everything(unconfined)
    value = fired(unconfined, run, "--agent", "scripted")
    assert differences(before, everything(unconfined)) == []
    assert not value["replay"]["mounted"]
    sent = (unconfined.state / "replays" / value["replay"]["id"] / "prompt.md").read_text()
    then, now = (text.split("## Runtime context\n") for text in (unconfined.prompt(run), sent))
    assert then[0] == now[0] and str(unconfined.project) not in now[1]


@pytest.mark.skipif(not TORTURE, reason="long: HARNESS_TORTURE=1")
def test_several_times_show_the_spread_and_their_cost(house: House) -> None:
    """Outcomes, passed checks, tokens and cost as least, median, most; usage has the sum under `replays`, the total has not."""
    run = house.work(GOOD, SAYS)["run"]
    house.script(
        "worker",
        {"usage": {"input": 100, "output": 10, "cost_usd": 0.5, "model": "m", "raw": [{}]}},
        GOOD,
        SAYS,
    )
    shown = house.program("replay", run, "--agent", "scripted", "--times", "3").out
    assert "outcomes       3x ok" in shown
    cells = {line[:13].strip(): line[13:].split() for line in shown.split("\n") if len(line.split()) > 3}
    assert (cells["checks passed"], cells["tokens"], cells["cost USD"]) == (["1"] * 3, ["110"] * 3, ["0.5"] * 3)
    spent = json.loads(house.harness("usage", "--json").out)
    assert (spent["replays"]["scripted m"]["runs"], spent["replays"]["scripted m"]["cost_usd"]) == (3, 1.5)
    assert spent["total"]["cost_usd"] is None
    assert "\nreplays " in house.harness("usage").out


def test_a_cap_that_is_used_up_stops_replays_and_no_replay_uses_up_the_mission_s(house: House) -> None:
    """The second of two that would pass the cap does not start; `next` goes on as before."""
    run = house.work(GOOD, SAYS)["run"]
    house.script("worker", {"usage": {"input": 100, "output": 10, "cost_usd": 0.5, "raw": [{}]}}, GOOD, SAYS)
    house.config('agent = "scripted"', "limits = { max_cost_usd = 0.4 }")
    due = house.program("next").out
    done = house.program("replay", run, "--agent", "scripted", "--times", "2")
    assert (done.code, "Nothing is sent" in done.err) == (11, True), done
    assert len(list((house.state / "replays").glob("*/*/result.json"))) == 1
    assert house.program("next").out == due


def test_a_swap_changes_the_prompt_and_is_shown_first(house: House) -> None:
    """The identity of a file; the difference comes first, and the prompt that was sent has it."""
    run = house.work(GOOD, SAYS)["run"]
    other = house.write("other.md", "- [2026-01-01] count to three (1x)\n")
    done = house.program("replay", run, "--agent", "scripted", "--with", f"identity={other}")
    assert done.out.startswith("--- original\n+++ resent\n"), done
    assert "+- [2026-01-01] count to three (1x)" in done.out.split("resends the prompt")[0]
    (sent,) = (house.state / "replays").glob("*/prompt.md")
    assert "count to three" in sent.read_text()
    alone = house.program("replay", run, "--with", f"identity={other}")
    assert "count to three" in alone.out and "Nothing was sent" in alone.out
    assert len(list((house.state / "replays").iterdir())) == 1


def test_it_is_refused_inside_a_run(house: House) -> None:
    """64, and nothing is fired."""
    run = house.work(GOOD, SAYS)["run"]
    inside = {"run": f"harness replay {run} --agent scripted > out 2>&1 || echo $? >> out"}
    house.work(inside, SAYS, feature="F-002")
    assert house.git("show", "HEAD:out").endswith("\n64")
    assert not (house.state / "replays").exists()


def test_what_makes_no_sense_is_said_before_anything_is_fired(house: House) -> None:
    """64."""
    house.work(GOOD, SAYS)
    for words in (
        ("--agent", "scripted"),
        ("F-001", "--model", "m"),
        ("F-001", "--agent", "scripted", "--explain"),
        ("F-001", "--agent", "scripted", "--with", "colour=red"),
        ("F-001", "--agent", "scripted", "--with", "spec=/nowhere"),
        ("F-001", "--agent", "scripted", "--with", "memory=without:99"),
    ):
        done = house.program("replay", *words)
        assert (done.code, done.out) == (64, ""), done
    assert not (house.state / "replays").exists()


@needs_mounts
def test_after_a_kill_no_process_is_left_and_the_next_start_removes_the_clone(house: House) -> None:
    """kill -9 in the middle; usage has what it had reported."""
    run = house.work(GOOD, SAYS)["run"]
    house.script(
        "worker",
        {"usage": {"input": 100, "output": 10, "cost_usd": 0.5, "model": "m", "raw": [{}]}},
        {"run": "touch begun; sleep 1000"},
    )
    words = [sys.executable, "-P", str(CHECKOUT / "harness" / "__main__.py"), "replay", run, "--agent", "scripted"]
    quiet = subprocess.DEVNULL
    going = subprocess.Popen(words, cwd=house.project, env=house.env, stdin=quiet, stdout=quiet, stderr=quiet)
    temporary = Path(house.env["TMPDIR"])
    until(lambda: bool(list(temporary.glob("*replay*/tree-1/begun"))))
    going.send_signal(signal.SIGKILL)
    going.wait()
    mission = json.loads(house.read("mission.json"))["id"]
    until(lambda: not tagged(mission))
    assert list(temporary.glob("*replay*"))
    assert house.program("init").code == 0
    assert not list(temporary.glob("*replay*"))
    assert json.loads(house.harness("usage", "--json").out)["replays"]["scripted m"]["cost_usd"] == 0.5
