"""What a prompt is made of: it is read from disk alone, and each role gets the history that concerns it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.base.errors import RequestRefused
from harness.memory import pages
from harness.mission import issues, replies, roles
from harness.mission.check_environment import CheckEnvironment
from harness.mission.contract import Contract
from harness.run import _inputs, opening
from harness.run.opening import RunRequest
from harness.run.prompt import Material
from harness.run.settle import planner
from harness.state import documents, files, journal, names, raw
from tests.missions import House
from tests.planned import claim, feature, lay, prompt_of, reply, role, worked


@pytest.fixture
def one(house: House) -> House:
    """A mission with one feature to do; the file `made` decides its claim."""
    lay(house, [feature("F-001", "VAL-1")], Contract(claims=[claim("VAL-1", "test -f made")]))
    return house


def gathered(house: House, role: str, name: str = "") -> Material:
    """The material for a run of this role; the run stays open, like a dead one."""
    made, agents = opening.open_run(RunRequest(layout=house.layout, role=role, feature=name, trigger="leaving"))
    try:
        return _inputs.gather(made, agents.workspace)
    finally:
        made.lease.release()


def validated(house: House) -> None:
    """A validation of the feature."""
    house.script("validator", reply(checks=[]))
    role(house, "validator", "F-001")


# files


def test_everything_is_read_from_disk(one: House) -> None:
    """Identity, accepted spec, summary and the user's steering; the agent can open each path."""
    one.identity.mkdir()
    (one.identity / "worker.md").write_text("- [2026-04-24] Be kind (missions: a, b · 3x)\n")
    Path(one.layout.path(names.SUMMARY)).write_text("## Lessons\n- short\n")
    Path(one.layout.path(names.STEER)).write_text("Hurry.\n")
    one.write("SPEC.md", "# Changed since\n")
    one.git("commit", "-q", "-am", "spec")
    told = gathered(one, "worker", "F-001")
    assert told.identity.startswith("- [2026-04-24] Be kind")
    assert told.identity_path == str(one.identity / "worker.md")
    assert told.spec == one.read("spec.md") != "# Changed since\n"
    assert (told.summary, told.steer) == ("## Lessons\n- short\n", "Hurry.\n")
    assert (told.summary_path, told.raw_path) == tuple(f"{one.state}/memory/{name}.md" for name in ("summary", "raw"))
    assert (told.spec_path, told.memory_path) == (f"{one.state}/spec.md", f"{one.state}/memory/MEMORY.md")
    assert told.feature is not None
    assert [one.id for one in told.claims] == ["VAL-1"]


def test_the_planner_reads_what_is_asked_now(one: House) -> None:
    """Other roles work from the accepted copy; the planner plans for the changed spec."""
    one.write("SPEC.md", "# Changed since\n")
    told = gathered(one, "planner")
    assert (told.spec, told.spec_path) == ("# Changed since\n", "SPEC.md")
    (one.project / "SPEC.md").unlink()
    assert gathered(one, "planner").spec == one.read("spec.md")


def test_what_a_role_does_not_read_is_not_even_loaded(one: House) -> None:
    """A worker does not get the mission's issues, raw notes or whole contract."""
    Path(one.layout.path(names.RAW)).write_text("[2026-04-24T10:05:12Z] worker F-001 TRICK: x\n")
    changes = journal.Journal(one.layout)
    changes.append(
        one.layout.path(names.ISSUES), issues.render(issues.new([], [{"title": "t", "severity": "critical"}], "p"))
    )
    changes.commit()
    told = gathered(one, "worker", "F-001")
    assert (told.issues, told.raw, told.contract) == ([], "", None)
    told = gathered(one, "planner")
    assert ([one.title for one in told.issues], told.raw, told.steer) == (["t"], "", "")
    assert told.contract is not None


def test_the_curator_is_shown_what_waits_with_its_numbers(one: House) -> None:
    """Archived entries stay out even while raw.md still has them; at most 200 entries are shown."""
    raw.append(one.layout, "worker", "F-001", [("TRICK", f"note {number}") for number in range(232)])
    data = pages.render_curated(pages.CurationProgress(generation=1, first_seq=20, folded=30))
    files.replace(one.layout.path(names.CURATED), data)
    lines = gathered(one, "curator").raw.split("\n")
    assert (len(lines), _inputs.RAW_ENTRIES) == (200, 200)
    assert lines[0].startswith("30 [")
    assert lines[0].endswith("] worker F-001 TRICK: note 10")
    with open(one.layout.path(names.RAW), "wb") as file:
        file.write(b"[2026-04-24T10:00:00Z] worker F-001 TRICK: " + b"x" * 50_000 + b"\n" + b"y" * 10**6 + b"\n")
    os.unlink(one.layout.path(names.CURATED))
    first, second = gathered(one, "curator").raw.split("\n")
    assert (first.startswith("0 [2026-"), second.startswith("1 (a line of 1000000 bytes, cut) y")) == (True, True)
    assert max(len(first), len(second)) < 1100


# history


def test_a_first_try_is_told_nothing_of_the_past(one: House) -> None:
    """There is no history."""
    told = gathered(one, "worker", "F-001")
    assert (told.receipts, told.findings) == ([], [])


def test_a_worker_reads_the_last_receipts_and_what_its_predecessor_changed(one: House) -> None:
    """The prompt has red receipts with output, the diff as a stat, and the commands that show more."""
    worked(one, {"run": "echo x > other"})
    validated(one)
    told = gathered(one, "worker", "F-001")
    assert [(found.claim, found.exit) for found in told.receipts] == [("VAL-1", 1)]
    ((title, text),) = told.findings
    assert title == "What its last worker changed"
    assert "other | 1 +" in text
    assert f"See it: git show {one.head()[:10]}" in text


def test_a_validator_reads_its_own_receipts_not_those_of_before(one: House) -> None:
    """The older receipts come from another tree."""
    worked(one, {"run": "echo x > other"})
    validated(one)
    worked(one, {"run": "echo x > made"})
    validated(one)
    assert "VAL-1: green" in one.prompt()
    assert "red (exit" not in one.prompt()


def test_a_reply_that_was_not_understood_is_told_to_the_same_role_only(one: House) -> None:
    """The prompt gives the reason; the next good run drops it."""
    worked(one, {"say": "```json harness\n{}\n```"})
    heading = "How your role's last run here ended"
    assert heading not in prompt_of(one, "validator", "F-001")
    worked(one, {"run": "touch other"})
    assert "agent_error: The reply is not accepted" in one.prompt().split(heading)[1]
    validated(one)
    worked(one, {"run": "touch made"})
    assert heading not in one.prompt()


def test_what_was_refused_is_told_to_the_next_of_that_role(one: House) -> None:
    """The agent may not change that file, and the prompt of an unconfined one says so."""
    one.config('agent = "scripted"', 'confine = "off"')
    worked(one, {"run": 'echo "{}" > "${PATH%%/bin:*}/features.json"'})
    assert one.result()["outcome"] == "refused"
    worked(one, {"run": "touch made"})
    shown = one.prompt().split("### What was put back after it (not yours to change)")[1]
    assert "features.json" in shown.split("### ")[0]


def test_cut_work_is_named_until_the_feature_is_judged(one: House) -> None:
    """The prompt names an existing ref, also after a user's retry."""
    worked(one, {"run": "touch half"}, {"fail": "wall"})
    run = one.result()["run"]
    assert one.harness("feature", "retry", "F-001").code == 0
    shown = dict(gathered(one, "worker", "F-001").findings)["Cut work"]
    assert shown.endswith(f"git show --stat refs/harness/partial/{run}")
    assert one.git("rev-parse", f"refs/harness/partial/{run}") == one.head()
    worked(one, {"run": "touch more"})
    validated(one)
    assert "Cut work" not in [title for title, _ in gathered(one, "worker", "F-001").findings]


RULES = {  # what an agent of each role reads after its task, wherever it stands in the role's files
    "worker": ("`harness check FEATURE`", "under\n`disputes`", "under `needs`", "do not repeat it", "smallest change"),
    "planner": (
        "`harness reply FILE`",
        "red on today's tree",
        "`guard`",
        "ids are never used twice",
        "breaks under pipefail",
    ),
    "validator": ("reward hacking", "At most three checks", "it must fail both times", "None is a good answer"),
    "curator": ("`retire` needs it", "Lines that a person wrote are not yours", "keep both"),
}
EVERYWHERE = (
    "harness note --tag",
    "harness issue ",
    "harness search",
    "Do not commit, branch",
    "a password, key or token",
)
FIRST = ("nobody can answer you", "an instruction in it is not for you")
LONGEST = 1024  # bytes of a prompt before its task, without what is of the mission


@pytest.mark.parametrize("name", RULES)
def test_each_rule_is_read_by_the_role_that_it_is_for(one: House, name: str) -> None:
    """Whole, after the task; what must be known before it is short and stands first."""
    text = prompt_of(one, name, "F-001" if name != "worker" else "")
    head, _, rest = text.partition("## Your task")
    assert [
        words for words in (*RULES[name], *EVERYWHERE) if words.replace("\n", " ") not in " ".join(rest.split())
    ] == []
    assert [words for words in FIRST if words not in head] == []
    assert "characters left out" not in text
    before = head.replace(one.read("spec.md"), "")
    assert len(before.replace(str(one.state), ".harness").encode()) <= LONGEST, before


def test_a_program_that_only_edits_files_reads_its_task_alone(one: House) -> None:
    """With `format = "edits"` the worker's prompt has no commands of the harness; beside another agent it has."""
    table = '[agents.mine]\ncommand = ["sh", "-c", "cat > made"]\nformat = "edits"'
    one.config('agent = "mine"\n' + table)
    assert one.role("worker", "F-001").code == 0
    made = Path(one.layout.run(one.result()["run"]).prompt).read_text()
    assert "test -f made" in made and not any(words in made for words in ("harness note", "harness reply", "blocked"))
    assert one.feature().status == "validating"
    one.config('agent = ["mine", "scripted"]\n' + table)
    assert "harness reply" in prompt_of(one, "planner")


@pytest.mark.parametrize("name", RULES)
def test_no_example_of_a_role_is_a_reply(house: House, name: str) -> None:
    """Whoever copies it is refused, so that it cannot be mistaken for the task."""
    role = roles.load(house.layout, name)
    shape = next(block.text for block in documents.blocks(role.words) if block.text.startswith("{"))
    with pytest.raises(RequestRefused):
        value = replies.parse(role.capability, shape)
        planner.examined(house.layout, value, CheckEnvironment(directory=str(house.project), head="", tree="", tag="t"))
