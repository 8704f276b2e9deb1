"""Missions of every kind, played back: HARNESS_TORTURE=1. Each must come out the same, and each break of a record be named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.state import names
from harness.state.layout import Layout
from tests.missions import CHECKOUT, House
from tests.planned import reply
from tests.replay.test_playback import PLAN, finished, nth, play, played, step, until_it_ends

__all__ = ["finished", "played"]  # fixtures
pytestmark = pytest.mark.skipif(os.environ.get("HARNESS_TORTURE") != "1", reason="long: HARNESS_TORTURE=1")
IMPLEMENTED = reply(status="implemented")
SERVICE = {"name": "web", "run": "python3 -m http.server $PORT", "ready": "curl -fs localhost:$PORT >/dev/null"}
MINE = """cat >/dev/null; test "$STILL" = here; echo one > one.txt; echo talk; printf '%s\\n' "$SAID"; echo bye"""


def begun(house: House, *lines: str, plan: Mapping[str, object] = PLAN) -> House:
    """A mission whose agents take it to DONE."""
    house.harness("init")
    house.config('agent = "scripted"', *lines)
    house.script("planner", reply(**plan))
    house.script("worker-F-001", {"run": "echo one > one.txt; harness note hello"}, IMPLEMENTED)
    house.script("worker-F-002.1", {"run": "echo half > two.bin"}, {"fail": "wall", "reason": "too long"})
    house.script("worker-F-002", {"run": "echo y > two.bin"}, IMPLEMENTED)
    return house


def simple(house: House) -> None:
    begun(house)
    assert until_it_ends(house) == "DONE"


def with_a_service(house: House) -> None:
    begun(house, plan={**PLAN, "setup": "mkdir -p build", "services": [SERVICE]})
    assert until_it_ends(house) == "DONE"


def answered(house: House) -> None:
    """A mission that stalls, and a person's answer."""
    begun(house, "[limits]", "stall_after = 1")
    house.script("worker-F-001", {"run": "echo wrong > one.txt"}, IMPLEMENTED)
    assert until_it_ends(house) == "ESCALATE stalled"
    assert house.program("escalation", "answer", "write one").code == 0
    house.script("worker-F-001", {"run": "echo one > one.txt"}, IMPLEMENTED)
    assert until_it_ends(house) == "DONE"


def mended(house: House) -> None:
    """A check that a person set; a feature that they blocked and took up again."""
    begun(house)
    step(house), step(house)
    assert house.program("claim", "set", "VAL-TWO", "--check", "grep y two.bin").code == 0
    assert house.program("feature", "block", "F-002").code == 0
    until_it_ends(house)
    assert house.program("feature", "retry", "F-002").code == 0
    assert until_it_ends(house) == "DONE"


def planned_again(house: House) -> None:
    """A limit of the vendor, and a SPEC.md that a person edited after DONE; an agent writes there, too."""
    begun(house)
    step(house)
    house.script("worker-F-001", {"run": "echo half > one.txt"}, {"fail": "limit", "reason": "come back", "until": 0})
    step(house)
    house.script("worker-F-001", {"run": "echo one > one.txt"}, IMPLEMENTED)
    house.role("worker", "F-001")
    until_it_ends(house)
    house.write("SPEC.md", "# A program\n\n## Part\n\nIt works better.\n")
    third = {"id": "VAL-THREE", "claim": "three", "checks": ["test -e three.txt"]}
    made = {"id": "F-003", "title": "Three", "claims": ["VAL-THREE"]}
    house.script("planner", reply(features=[made], contract=[third]))
    house.script("worker-F-003", {"run": "echo 3 > three.txt; echo SPEC >> SPEC.md"}, IMPLEMENTED)
    assert until_it_ends(house) == "DONE"


def taken_back(house: House) -> None:
    """A person takes the work of a feature that has passed off the branch."""
    begun(house)
    step(house), step(house), step(house)
    house.git("reset", "-q", "--hard", "HEAD~1")
    until_it_ends(house)


def merged_by_a_person(house: House) -> None:
    """A person's commits on the branch, from another line of work."""
    begun(house)
    step(house), step(house)
    branch = json.loads(house.read("mission.json"))["branch"]
    house.git("switch", "-q", "main")
    house.write("mine.txt")
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "mine")
    house.git("switch", "-q", branch)
    house.git("merge", "-q", "-m", "both", "main")
    until_it_ends(house)


def of_a_program(house: House) -> None:
    """An agent that is a program, which is not there any more; another one of the list never was."""
    said = (
        "```json harness\n"
        + json.dumps({"status": "implemented", "notes": [{"tag": "TRICK", "text": "said"}]})
        + "\n```"
    )
    tables = ["[roles.worker]", 'agent = ["nowhere", "mine"]', "[agents.nowhere]", 'command = ["/nowhere/x"]']
    begun(house, *tables, "[agents.mine]", f'command = ["sh", "-ec", {json.dumps(MINE)}]')
    house.env |= {"STILL": "here", "SAID": said}
    for _ in range(4):
        step(house)
    assert house.ran()[1]["agents"] == ["mine"] and house.ran()[1]["outcome"] == "ok"
    house.env["STILL"] = "gone"


def tampering(house: House) -> None:
    """An agent that is not confined, and writes into the state."""
    begun(house)
    step(house)
    house.script("worker-F-001", {"run": 'echo one > one.txt; echo x > "${PATH%%/bin:*}"/features.json'}, IMPLEMENTED)
    step(house)
    assert house.result()["outcome"] == "refused"
    house.script("worker-F-001", {"run": "echo one > one.txt"}, IMPLEMENTED)
    until_it_ends(house)


def below(house: House) -> None:
    """A project in a folder of a repository, whose worker writes outside of it."""
    place = house.project / "services" / "api"
    place.mkdir(parents=True)
    shutil.copy(house.project / "SPEC.md", place)
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "a service")
    house.project, house.layout, house.state = place, Layout(str(place)), place / ".harness"
    begun(house)
    house.script("worker-F-001", {"run": "echo one > one.txt; echo outside > ../x.txt"}, IMPLEMENTED)
    assert until_it_ends(house) == "DONE"


def in_three_lanes(house: House) -> None:
    """Nine features, some of which wait for others, some of which clash; red ones, notes and a curation in between."""
    house.harness("init")
    house.config('agent = "scripted"', "curate_after = 5", "lanes = 3")
    ids = [f"F-{n:03d}" for n in range(1, 10)]
    claims = [{"id": f"VAL-{one}", "claim": one, "checks": [f"test -s {one}"]} for one in ids]
    found = [
        {"id": one, "title": one, "claims": [f"VAL-{one}"], "depends_on": ids[:1] * (n > 5)}
        for n, one in enumerate(ids)
    ]
    house.script("planner", reply(features=found, contract=claims))
    for n, one in enumerate(ids):
        shared = f"echo {one} >> shared.txt" if n % 3 == 0 else "true"
        work = {"run": f"sleep 0.{n}; echo {one} > {one}; {shared}; harness note --tag TRICK '{one} is a file'"}
        house.script(f"worker-{one}.1", {"run": "true"} if n % 4 == 1 else work, IMPLEMENTED)
        house.script(f"worker-{one}", work, IMPLEMENTED)
    done = house.run([str(CHECKOUT / "run.sh")])
    assert done.code == 0, done


KINDS = (
    in_three_lanes,
    simple,
    with_a_service,
    answered,
    mended,
    planned_again,
    taken_back,
    merged_by_a_person,
    of_a_program,
    below,
)
OPEN = 'confine = "off"'
ROWS = [(kind, ()) for kind in KINDS] + [(simple, (OPEN,)), (tampering, (OPEN,))]


@pytest.mark.parametrize(("kind", "base"), ROWS, ids=lambda value: getattr(value, "__name__", None))
def test_torture_every_kind_of_mission_comes_out_the_same(
    unbegun: House, kind: Callable[[House], None], base: tuple[str, ...]
) -> None:
    """Whatever people, vendors and agents did in it."""
    unbegun.base = base
    kind(unbegun)
    shutil.rmtree(unbegun.scripts)
    made = play(unbegun)
    assert (made["code"], made["first"], made["missing"]) == (0, None, []), made
    assert made["played"] == len(unbegun.ran())


def other_patch(house: House) -> None:
    """Another commit in the place of the worker's, in the line of the run and in its result."""
    old = house.ran()[1]["commit"]
    house.git("worktree", "add", "-q", "--detach", str(house.folder / "forged"), old)
    forged = str(house.folder / "forged")
    house.git("-C", forged, "rm", "-q", "more.bin")
    house.git("-C", forged, "commit", "-q", "--amend", "-m", "forged")
    new = house.git("-C", forged, "rev-parse", "HEAD")
    for path in (Path(house.layout.path(names.RUN_LOG)), Path(house.layout.run(nth(house, 1)).result)):
        path.write_text(path.read_text().replace(old, new))


def other_contract(house: House) -> None:
    path = house.state / "validation-contract.md"
    path.write_text(path.read_text().replace("grep -x one one.txt", "grep -x two one.txt"))


def of(house: House, number: int, name: str) -> Path:
    """A file of the run with this place in the run log."""
    return house.state / "runs" / nth(house, number) / name


def object_of(house: House, commit: str) -> Path:
    """The file of a commit in the repository."""
    return house.project / ".git/objects" / commit[:2] / commit[2:]


BREAKS: dict[str, tuple[Callable[[House], object], str]] = {
    "a patch": (other_patch, "its commit differs"),
    "a check of the contract": (other_contract, "of validation-contract.md differs"),
    "no folder": (lambda house: shutil.rmtree(of(house, 1, "")), "context.json: the file is missing"),
    "a cut context": (lambda house: of(house, 1, "context.json").write_text("{"), "context.json, line 1"),
    "no JSON": (lambda house: of(house, 1, "asked.jsonl").write_text("{no\n"), "asked.jsonl, line 1"),
    "no objects": (lambda house: shutil.rmtree(house.state / "objects"), "config.toml as the run found it"),
    "no order": (lambda house: (house.state / "orders.jsonl").write_text("x\n"), "orders.jsonl, line 1"),
    "no receipt": (lambda house: of(house, 2, "receipts.jsonl").write_text("x\n"), "receipts.jsonl, line 1"),
    "no commit": (lambda house: object_of(house, house.ran()[1]["commit"]).unlink(), "is gone"),
    "no beginning": (lambda house: object_of(house, house.ran()[0]["head"]).unlink(), "are incomplete"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_torture_what_is_broken_is_named_and_never_the_same(played: House, name: str) -> None:
    """65, with the file, or with the first thing that differs."""
    break_it, words = BREAKS[name]
    break_it(played)
    done = played.program("replay", "--mission")
    assert (done.code, words in done.out + done.err) == (65, True), done
    assert "bug in the harness" not in done.err
