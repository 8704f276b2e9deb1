"""An escalation names what is red, how it ended, and a ready command for each way on."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from harness.cli.main import COMMANDS
from harness.mission.contract import Check, Claim, Contract
from harness.state import names
from tests.missions import House
from tests.planned import lay, reply, role

NOISY = "for n in $(seq 40); do echo line $n; done; echo expected 3, got 4; echo 'make: *** [test] Error 1'; false"
HOSTILE = "\x1b[2Jgone\x1b]0;title\x07 \u202eevil"


def commands(text: str) -> list[list[str]]:
    """The words of every ready command in an escalation, without `run.sh`."""
    found = re.findall(r"^ {4}run\.sh (.*?)\s+# ", text, re.M) + re.findall(r"^Answer with: run\.sh (.*)$", text, re.M)
    return [shlex.split(line) for line in found]


@pytest.fixture
def stuck(house: House) -> House:
    """F-001 has no try left and its check is red; F-002 is blocked by a person."""
    found = house.feature().replace(status="validating", attempts=4, replanned=True)
    blocked = house.feature("F-002").replace(status="blocked")
    blocked.note("2026-04-24T10:05:12Z", "person", "person", text="not now")
    known = Contract(claims=[Claim(id="VAL-1", text="It adds", checks=[Check(run=NOISY)]), Claim(id="VAL-2", text="x")])
    known.claims[1].manual = True
    lay(house, [found, blocked.replace(claims=["VAL-2"])], known)
    role(house, "validator", "F-001")
    house.role("curator")  # what is noted is curated first
    return house


def test_a_stuck_mission_names_claim_check_output_and_every_way_on(stuck: House) -> None:
    """Without opening another file a person sees what failed, and can paste what to do."""
    text = stuck.read("escalation.md")
    assert text.startswith("---\nkind: stuck\n---\nNo feature can be worked on any more")
    assert "- F-001 failing after 5 tries: " in text
    assert "  VAL-1: It adds\n  red (exit 1) in run " in text
    assert ": expected 3, got 4\n" in text
    assert f"    {NOISY}\n" in text
    assert "    line 40\n    expected 3, got 4\n    make: *** [test] Error 1\n" in text
    assert "line 20" not in text
    assert "- F-002 blocked after 0 tries: not now\n" in text
    assert ["feature", "retry", "F-001"] in commands(text)
    assert ["feature", "retry", "F-002"] in commands(text)
    assert ["why", "VAL-1"] in commands(text)
    assert ["escalation", "answer", "what to do"] in commands(text)
    assert {words[0] for words in commands(text)} <= set(COMMANDS)
    assert stuck.harness("why", "VAL-1").code == 0


def test_the_first_fault_is_on_the_run_line_in_the_status_and_at_the_end(stuck: House) -> None:
    """Not only in a file that has to be opened."""
    said = "VAL-1 is red (exit 1): expected 3, got 4"
    assert stuck.ran()[0]["reason"] == said
    assert said in stuck.harness("status").out
    assert said in stuck.harness("ending", "ESCALATE stuck").out
    assert "VAL-1: expected 3, got 4" in stuck.harness("runs", "list").out


def test_refused_plans_are_shown_with_their_faults(house: House) -> None:
    """Never 'The plan is rejected:' alone: on the run line, in the status, in escalation.md."""
    house.script("planner", reply(features=[], contract=[{"id": "VAL-9", "claim": "x", "checks": ["true || true"]}]))
    for _ in range(3):
        said = house.role("planner").out
    fault = "no feature has the claim VAL-9"
    text = house.read("escalation.md")
    for shown in (said, house.harness("status").out, text, house.harness("ending", "ESCALATE plan").out):
        assert fault in shown
        assert not re.search(r"accepted:\s*$", shown.split("The newest in full")[0], re.M)
    assert f"The plan is rejected: {fault} (and 1 more)" in said
    assert "    - the check `true || true` hides a failure" in text
    newest = house.result()["run"]
    assert [["runs", "show", newest], ["log", newest]] == commands(text)[:2]
    assert house.harness("runs", "show", newest).code == 0


def test_a_red_setup_is_shown_with_its_command_and_the_end_of_its_output(house: House) -> None:
    """As many lines as fit on a screen."""
    path = Path(house.layout.path(names.CONTRACT))
    setup = "seq 100\necho no network\nfalse"
    path.write_text(path.read_text().replace("### VAL-1", f"```sh setup\n{setup}\n```\n\n### VAL-1", 1))
    house.lay(house.feature().replace(status="validating"), house.feature("F-002"))
    done = house.role("validator", "F-001")
    text = house.read("escalation.md")
    assert "setup ended with exit 1: no network" in done.out
    assert "    seq 100\n    echo no network\n    false\n" in text
    assert "setup ended with exit 1:\n[…]\n" in text
    assert "\n100\nno network\n" in text
    assert "\n50\n" not in text
    assert ["check"] in commands(text)


def test_the_open_escalation_is_a_command(stuck: House) -> None:
    """With and without `show`, as JSON too; also where the file is gone."""
    text = stuck.read("escalation.md")
    assert stuck.harness("escalation").out == stuck.harness("escalation", "show").out == text
    assert json.loads(stuck.harness("escalation", "show", "--json").out) == {"kind": "stuck", "text": text}
    Path(stuck.layout.path(names.ESCALATION)).unlink()
    assert stuck.harness("escalation").out == text


def test_without_an_escalation_the_command_says_so(house: House) -> None:
    """And names what is due."""
    done = house.harness("escalation")
    assert (done.code, done.out) == (0, "Nothing is escalated. See: run.sh next\n")
    (house.state / "checkpoints").mkdir()
    (house.state / "checkpoints/look.md").write_text("Look at the page.\n")
    out = house.harness("escalation").out
    assert "Look at the page.\n" in out
    assert "run.sh checkpoint grant look " in out


def test_words_of_agents_cannot_steer_the_terminal_of_who_reads_it(house: House) -> None:
    """Titles, notes, claims and output, in the file itself."""
    found = house.feature().replace(status="validating", attempts=4, replanned=True, title=HOSTILE)
    found.note("2026-04-24T10:05:12Z", "r", "reason", text=HOSTILE)
    check = Check(run="printf '\\033[2J\\342\\200\\256gone'; false")
    lay(house, [found], Contract(claims=[Claim(id="VAL-1", text="a\u202eb", checks=[check])]))
    role(house, "validator", "F-001")
    house.role("curator")  # what is noted is curated first
    text = house.read("escalation.md")
    assert "gone" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
