"""Checkpoints: the mission waits once for each cause, until a person answers from outside of every run."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest

from harness.base import clock
from harness.decision import checkpoints
from harness.mission.contract import Check, Claim, Contract
from harness.mission.features import Feature
from harness.run.notice import _events
from harness.state import names
from tests.missions import CHECKOUT, House, until
from tests.planned import accept_all, lay
from tests.run.played import to_its_end

RUN_SH = str(CHECKOUT / "run.sh")
PLAN = '```json harness\n{"features": [], "contract": []}\n```'
ASKS = '```json harness\n{"status": "implemented", "checkpoint": {"name": "price", "text": "May it cost 5 USD?"}}\n```'


def waits(house: House, **whens: str) -> None:
    """The mission has these checkpoints, and a planner whose plan changes nothing."""
    tables = [
        line for name, when in whens.items() for line in ("[[checkpoint]]", f'name = "{name}"', f'when = "{when}"')
    ]
    house.config('agent = "scripted"', *tables)
    house.script("planner", {"say": PLAN})


def due(house: House) -> str:
    """What `next` says."""
    return house.harness("next").out.strip()


def answer(house: House, *words: str) -> str:
    """An answer that is taken."""
    done = house.harness("checkpoint", *words)
    assert done.code == 0, done
    return done.out


def test_each_accepted_plan_asks_once(house: House) -> None:
    """Exit code 8, what to read, and the name of who answered; the next plan asks again."""
    waits(house, plan="after-plan")
    assert due(house) == "NEXT worker F-001"
    for _ in range(2):
        house.role("planner")
        assert (due(house), house.harness("next").code) == ("CHECKPOINT plan", 8)
        assert "run.sh feature list" in answer(house, "list")
        assert answer(house, "grant", "plan", "--note", "good") == "plan is granted\n"
        assert due(house) == "NEXT worker F-001"
    answers = json.loads(house.harness("checkpoint", "list", "--json").out)["answers"]
    assert [(row["state"], row["text"], bool(row["by"]), row["at"][:2]) for row in answers] == [
        ("granted", "good", True, "20")
    ] * 2
    assert house.harness("checkpoint", "grant", "plan").code == 64


def test_run_sh_waits_and_goes_on_after_the_grant(house: House) -> None:
    """`--once`, as from cron, ends with 8 and says how to answer; then it goes on by itself."""
    waits(house, begin="before-feature:F-001")
    house.script("worker", {"run": "touch 1.txt"})
    done = house.run([RUN_SH, "--once"])
    assert (done.code, house.ran()) == (8, []), done
    assert "run.sh feature show F-001" in done.out
    assert "run.sh checkpoint grant begin" in done.out
    assert "checkpoint grant begin" in house.harness("escalation").out
    answer(house, "grant", "begin")
    assert due(house) == "NEXT worker F-001"


def test_a_feature_that_waits_stops_the_mission_when_its_turn_has_come(house: House) -> None:
    """Not before; and a later try does not ask again."""
    waits(house, second="before-feature:F-002")
    assert due(house) == "NEXT worker F-001"
    house.harness("feature", "block", "F-001")
    assert due(house) == "CHECKPOINT second F-002"
    answer(house, "grant", "second")
    house.lay(house.feature(), house.feature("F-002").replace(status="failing", attempts=1))
    assert due(house) == "NEXT worker F-002"


def test_a_denial_makes_a_plan_due_that_reads_why_and_asks_again(house: House) -> None:
    """The note is in its prompt; nothing else starts meanwhile."""
    waits(house, begin="before-feature:F-001")
    assert house.harness("checkpoint", "deny", "begin").code == 64
    answer(house, "deny", "begin", "--note", "no database")
    assert due(house) == "NEXT planner"
    house.script("planner", {"say": "no plan"})
    house.role("planner")
    assert "the checkpoint begin (F-001) was denied: no database" in house.prompt()
    assert due(house) == "NEXT planner"
    house.script("planner", {"say": PLAN})
    house.role("planner")
    assert due(house) == "CHECKPOINT begin F-001"
    answer(house, "grant", "begin")
    assert due(house) == "NEXT worker F-001"


def test_what_a_person_says_while_a_planner_works_is_not_lost(house: House) -> None:
    """The prompt of that plan did not have it, so another plan is due."""
    house.script("planner", {"run": f"until test -e '{house.project}/go'; do sleep 0.05; done"}, {"say": PLAN})
    role = house.begin_role("planner")
    until(lambda: bool(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))))
    house.harness("feature", "add", "CSV export")
    (house.project / "go").touch()
    role.wait()
    assert (house.result()["accepted"], due(house)) == (True, "NEXT planner")
    house.script("planner", {"say": PLAN})
    house.role("planner")
    assert due(house) == "NEXT worker F-001"


def test_each_further_step_of_cost_asks_once(house: House) -> None:
    """The highest that is reached; a run that jumps over several asks once."""
    waits(house, money="every-cost-usd:0.5")
    house.script("worker", {"usage": {"cost_usd": 1.2, "output": 1}}, {"run": "touch 1.txt"})
    assert due(house) == "NEXT worker F-001"
    house.role("worker", "F-001")
    assert due(house) == "CHECKPOINT money"
    assert "the mission has cost 1 USD" in answer(house, "list")
    answer(house, "grant", "money")
    assert due(house) == "NEXT validator F-001"
    house.work_again()
    assert due(house) == "CHECKPOINT money"
    assert "the mission has cost 2 USD" in answer(house, "list")


def test_before_done_waits_in_the_place_of_done(house: House) -> None:
    """After the final sweep; the grant alone makes it DONE."""
    one = Claim(id="VAL-1", text="It works", checks=[Check(run="test -f 1.txt")])
    lay(house, [Feature(id="F-001", title="Part", claims=["VAL-1"])], Contract(claims=[one]))
    accept_all(house)
    waits(house, last="before-done")
    house.script("worker", {"run": "touch 1.txt"})
    assert to_its_end(house)[0] == due(house) == "CHECKPOINT last"
    assert [line["role"] for line in house.ran()].count("validator") == 2
    answer(house, "grant", "last")
    assert due(house) == "DONE"


def test_an_agent_asks_in_its_reply(house: House) -> None:
    """Its words are shown, and its work is kept; once answered, the same run asks no more."""
    house.work({"run": "touch 1.txt"}, {"say": ASKS})
    assert due(house) == "CHECKPOINT price"
    assert "May it cost 5 USD?" in answer(house, "list")
    assert "May it cost 5 USD?" in house.harness("ending", "CHECKPOINT price").out
    answer(house, "deny", "price", "--note", "not more than 1 USD")
    assert due(house) == "NEXT planner"


@pytest.mark.parametrize("name", ["a b", "q'uote", "x$y"])
def test_a_file_may_have_any_name(house: House, name: str) -> None:
    """The commands that are shown answer it when they are pasted, and a hook hears of it."""
    (house.state / "checkpoints").mkdir()
    (house.state / "checkpoints" / f"{name}.md").write_text("Look.\n")
    (event,) = _events.of_decision(house.layout, house.program("next").out.rstrip("\n"), clock.now())
    for said in (event.text, house.program("ending", f"CHECKPOINT {name}").out):
        words = re.search(r"run\.sh checkpoint grant (.+?)(  |\n|$)", said)
        assert words and shlex.split(words[1]) == [name], said
    assert "why       Look." in said


def test_a_file_asks_until_it_is_answered(house: House) -> None:
    """As people laid it; the answer takes it away, and keeps what it said."""
    (house.state / "checkpoints").mkdir()
    (house.state / "checkpoints/look.md").write_text("Look at the page.\n")
    assert due(house) == "CHECKPOINT look"
    answer(house, "grant", "look")
    assert (due(house), (house.state / "checkpoints/look.md").exists()) == ("NEXT worker F-001", False)
    assert checkpoints.rows(house.layout)[-1].question == "Look at the page.\n"


@pytest.mark.parametrize("confined", [True, False])
def test_nobody_answers_from_inside_a_run(house: House, confined: bool) -> None:
    """Neither by the command, which ends with 64, nor by a line in the file."""
    house.base = () if confined else ('confine = "off"',)
    waits(house, begin="before-feature:F-002")
    forged = json.dumps(
        {"id": "K-1", "at": "2026-01-01T00:00:00Z", "by": "me", "state": "granted", "name": "begin", "cause": "F-002"}
    )
    command = "code=0; harness checkpoint grant begin || code=$?; echo $code >1.txt; "
    command += f"echo '{forged}' >>.harness/checkpoints.jsonl || :"
    house.work({"run": command})
    assert (house.tree / "1.txt").read_text() == "64\n"
    assert checkpoints.rows(house.layout) == []
    house.harness("feature", "block", "F-001")
    house.lay(house.feature().replace(status="blocked"), house.feature("F-002"))
    assert due(house) == "CHECKPOINT begin F-002"


def test_lanes_end_what_they_do_and_begin_nothing(house: House) -> None:
    """A checkpoint that comes while another lane works: that work lands, and no worker starts."""
    names = ["1", "2", "3"]
    claims = [Claim(id=f"VAL-{n}", text=f"Part {n}", checks=[Check(run=f"test -f {n}.txt")]) for n in names]
    lay(house, [Feature(id=f"F-{n}", title=f"Part {n}", claims=[f"VAL-{n}"]) for n in names], Contract(claims=claims))
    house.config('agent = "scripted"', 'confine = "off"')
    house.script("worker-F-1", {"run": "echo 1 >1.txt"}, {"say": ASKS})
    house.script(
        "worker-F-2",
        {"run": f"until grep -q price '{house.state}/checkpoints.jsonl'; do sleep 0.05; done; echo 2 >2.txt"},
    )
    done = house.run([RUN_SH, "--lanes", "2"])
    assert done.code == 8, done
    assert sorted((line["role"], line["feature"], line["outcome"]) for line in house.ran() if line["feature"]) == [
        ("worker", "F-1", "ok"),
        ("worker", "F-2", "ok"),
    ]


def test_a_kill_loses_no_checkpoint(house: House) -> None:
    """It follows from what is on disk: kill -9 of run.sh and of the run changes nothing."""
    waits(house, second="before-feature:F-002")
    house.lay(house.feature(), house.feature("F-002").replace(priority=1))
    house.script("worker", {"run": "sleep 30"})
    loop = house.loop()
    until(lambda: bool(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))))
    os.kill(loop.pid, signal.SIGKILL)
    loop.communicate()
    house.harness("doctor", "--fix")
    house.harness("feature", "block", "F-001")
    assert due(house) == "CHECKPOINT second F-002"


@pytest.mark.parametrize(
    ("name", "when", "words"),
    [
        ("plan", "after-lunch", "'when' must be after-plan, before-done"),
        ("plan", "every-cost-usd:0", "'when' must be"),
        ("a plan", "after-plan", "'name' must be a name"),
    ],
)
def test_a_wrong_checkpoint_is_named_with_its_line(house: House, name: str, when: str, words: str) -> None:
    """Exit 65."""
    waits(house, **{name: when})
    done = house.harness("next")
    assert (done.code, words in done.err, "config.toml, line " in done.err) == (65, True, True), done
