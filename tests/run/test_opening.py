"""The first step of a run finds every input error before it writes anything to disk."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from harness.mission import mission, order_log, runs
from harness.mission.features import Feature
from harness.state import files, names
from harness.workplace import workplace
from tests.missions import CHECKOUT, DISPOSABLE, House, differences, listing, until
from tests.run.test_recover import killed

REMEMBERED = [
    *("run", "role", "feature", "trigger", "reason", "at", "agent", "attempt", "before", "head", "branch", "tree"),
    *(
        "untracked",
        "live",
        "raw",
        "identity",
        "process",
        "dirty",
        "version",
        "folder",
        "confined",
        "temporary",
        "started",
        "ignored",
    ),
]


@pytest.fixture
def house(house: House) -> House:
    """A mission that a command has already looked at: what our git reads is laid out."""
    workplace.use(house.layout)
    return house


def refused(house: House, code: int, *words: str, role: str = "worker", args: tuple[str, ...] = ("F-001",)) -> None:
    """The role ends with the code and a paragraph that has these words; only temporary files change."""
    before = listing(house.folder, *(f"my project/{name}" for name in DISPOSABLE))
    done = house.role(role, *args)
    assert done.code == code, done
    assert done.err.startswith("harness: ")
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err
    assert differences(before, listing(house.folder, *(f"my project/{name}" for name in DISPOSABLE))) == []


# input errors leave the disk as it was


def test_a_feature_that_does_not_exist_names_those_that_do(house: House) -> None:
    """A usage error with the remedy."""
    refused(house, 64, "no feature 'F-009'", "F-001, F-002", args=("F-009",))


def test_a_worker_takes_only_what_is_todo_or_failing(house: House) -> None:
    """A passed feature cannot be reworked by accident."""
    house.lay(house.feature().replace(status="passed"), house.feature("F-002"))
    refused(house, 64, "F-001 is 'passed'", "run.sh feature retry F-001")


def test_a_worker_without_a_feature_takes_the_next_that_is_ready(house: House) -> None:
    """It uses the same rule as `harness next`."""
    house.script("worker", {"say": "nothing"})
    house.role("worker")
    assert house.result()["feature"] == "F-001"


def test_a_worker_without_a_ready_feature_says_so(house: House) -> None:
    """All features are done or waiting."""
    house.lay(house.feature().replace(status="passed"))
    refused(house, 64, "No feature is ready for a worker", args=())


def test_more_than_one_feature_is_a_usage_fault(house: House) -> None:
    """A run has at most one feature."""
    refused(house, 64, "at most one feature", args=("F-001", "F-002"))


def test_a_role_whose_script_has_no_words_is_told_what_is_missing(house: House) -> None:
    """A role consists of two files."""
    house.role_files("helper")
    (Path(house.layout.path(names.ROLES)) / "helper.md").unlink()
    refused(
        house,
        64,
        "There is no role 'helper'",
        "curator, planner, specifier, teammate, validator, worker",
        role="helper",
        args=(),
    )


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "features.json": ("{", "features.json, line 1: not JSON"),
    "validation-contract.md": ("### no colon\n", "validation-contract.md, line 1: the heading 'no colon'"),
    "config.toml": ("agent = \n", "config.toml, line 1: not TOML"),
    "mission.json": ("{}", "mission.json: not a mission's"),
    "format": ("9\n", "format, line 1: unknown format '9'"),
    "issues.jsonl": ("{}\n{\n", "issues.jsonl, line 1: the line is not an issue"),
    "orders.jsonl": ("nothing\n", "orders.jsonl, line 1: the line is not an order"),
    "memory/curated.json": ("[]", "curated.json"),
    "spec.md": (b"ok\n\xff\n", "spec.md, line 2: not UTF-8"),
    "memory/summary.md": (b"\xff", "summary.md, line 1: not UTF-8"),
    "STEER.md": (b"\xff", "STEER.md, line 1: not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_malformed_file_is_65_with_file_and_line(house: House, name: str) -> None:
    """Broken is not empty: the message names the file and line."""
    data, words = BROKEN[name]
    (house.state / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    refused(house, 65, words)


def test_a_planner_is_not_asked_where_its_plan_could_not_land(house: House) -> None:
    """A broken contract log is reported before any agent costs money."""
    Path(house.layout.path(names.CONTRACT_LOG)).write_text("{}\n")
    house.script("planner", {"say": "nothing"})
    refused(house, 65, "contract-log.jsonl, line 1: the entry lacks", role="planner", args=())


def test_an_unknown_key_in_a_roles_front_matter_is_65(house: House) -> None:
    """The set of keys is closed."""
    house.role_files("helper")
    path = Path(house.layout.path(names.ROLES)) / "helper.md"
    path.write_text(path.read_text().replace("summary:", "colour: red\nsummary:"))
    house.script("helper", {"say": "nothing"})
    refused(house, 65, "helper.md, line 3: ", "unknown key 'colour'", role="helper", args=())


def test_an_agent_that_is_not_installed_is_69(house: House) -> None:
    """The message names the program before anything starts."""
    house.config('agent = "mine"', "[agents.mine]", 'command = ["no-such-program"]')
    refused(house, 69, "'no-such-program' is not installed")


def test_an_agent_that_nobody_knows_is_65(house: House) -> None:
    """The message has the line to add."""
    house.config('agent = "mine"')
    refused(house, 65, "there is no agent 'mine'", "[agents.mine] command")


def test_a_missing_playbook_is_69_and_says_where_it_was_looked_for(house: House) -> None:
    """The message lists all three names, most specific first."""
    house.config('agent = "playbook"')
    refused(house, 69, "playbooks/worker-F-001.1.md or playbooks/worker-F-001.md or playbooks/worker.md")


def test_no_agent_at_all_is_69_with_the_line_to_write(house: House) -> None:
    """There is no configured agent and no playbooks/ folder."""
    house.config()
    refused(house, 69, "No agent is configured and there is no playbooks/ folder", 'agent = "mine"')


def test_a_playbooks_folder_is_agent_enough(house: House) -> None:
    """Without a configured agent the embedded one runs."""
    house.config()
    house.write("playbooks/worker.md", "```sh\necho 1 > 1.txt\n```\n")
    house.role("worker", "F-001")
    assert (house.result()["agent"], house.result()["outcome"]) == ("playbook", "ok")


def test_a_wish_that_is_no_name_is_refused(house: House) -> None:
    """A run id is a folder name."""
    before = listing(house.project, *DISPOSABLE)
    house.script("worker", {"say": "nothing"})
    assert house.role("worker", "F-001", HARNESS_RUN_ID="../../out").code == 64
    assert differences(before, listing(house.project, *DISPOSABLE)) == []


# what the user has to fix


def test_untracked_files_are_no_dirty_tree(house: House) -> None:
    """They belong to the user and do not block the run."""
    house.write("notes")
    assert house.work({"run": "echo 1 > 1.txt"})["outcome"] == "ok"


def test_while_a_run_is_under_way_another_on_its_feature_is_75_and_says_who(house: House) -> None:
    """The second run does not wait."""
    house.script("worker", {"run": "touch begun; sleep 60"})
    role = house.begin_role("worker", "F-001")
    until((house.tree / "begun").exists)  # from here on the first run writes nothing
    run_id = runs.open_runs(house.layout)[0]
    before = listing(house.project)
    done = house.role("worker", "F-001")
    assert done.code == 75
    assert f"Another run holds feature F-001: run {run_id}, pid {role.pid}, since 20" in done.err
    assert differences(before, listing(house.project)) == []
    role.send_signal(signal.SIGTERM)
    assert role.wait() == 143


# what the run records


def test_the_context_holds_all_that_was_so_when_the_run_opened(house: House) -> None:
    """HEAD, branch, tree, untracked files with digests, the feature's previous status, who runs it, and where."""
    house.work({"say": "nothing"})
    house.lay(house.feature().replace(status="failing", attempts=1), house.feature("F-002"))
    (house.tree / "notes").write_text("mine\n")
    house.harness("note", "hello")
    raw = Path(house.layout.path(names.RAW)).read_bytes()
    head, tree = house.head(), house.git("rev-parse", "HEAD^{tree}")
    result = house.work({"run": "echo 1 > 1.txt"}, TRIGGER="manual", REASON="because")
    context = runs.context(house.layout, result["run"])
    assert list(context.asdict()) == REMEMBERED
    assert (context.feature, context.before, context.attempt) == ("F-001", "failing", 2)
    assert (context.head, context.tree, context.branch) == (head, tree, mission.load(house.layout).branch)
    assert context.untracked == {"notes": files.digest(b"mine\n")}
    assert context.raw == [len(raw), "0"]
    assert (context.trigger, context.reason, context.agent) == ("manual", "because", ["scripted"])
    assert context.process["pid"] > 0
    assert (context.folder, context.confined) == (str(house.tree), result["confined"])
    assert context.live["features.json"][1] > 0


def test_what_is_untracked_in_the_project_folder_does_not_concern_a_run(house: House) -> None:
    """A link, a pipe, a name with any bytes, a file of somebody else's: none of it is in the run's tree."""
    (house.project / "link").symlink_to("nowhere")
    os.mkfifo(house.project / "pipe")
    os.close(os.open(os.fsencode(house.project) + b"/\xff\n", os.O_CREAT | os.O_WRONLY, 0o000))
    result = house.work({"run": "ls > 1.txt"})
    assert (result["outcome"], house.git("show", "HEAD:1.txt")) == ("ok", "1.txt\nSPEC.md\nmain.py")
    assert runs.context(house.layout, result["run"]).untracked == {}


def test_a_run_is_named_after_the_time_role_and_feature(house: House) -> None:
    """context.json holds the authoritative id."""
    before = int(time.time())
    seconds, _, rest = house.work({"say": "nothing"})["run"].partition("-")
    assert before <= int(seconds) <= int(time.time())
    assert rest == "worker-F-001"


def test_a_taken_id_gets_a_number(house: House) -> None:
    """A requested id is only a request; the folder is created exclusively."""
    for name in ("one", "one-2", "one-3"):
        house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
        assert house.work({"say": "nothing"}, HARNESS_RUN_ID="one")["run"] == name
    assert [line["run"] for line in house.ran()] == ["one", "one-2", "one-3"]


def test_the_feature_is_in_progress_while_its_worker_works(house: House) -> None:
    """Every reader sees this status."""
    house.script("worker", {"sleep": 60})
    role = house.begin_role("worker", "F-001")
    until(lambda: bool(list(Path(house.layout.path(names.RUNS)).glob("*/stream.jsonl"))))
    assert house.feature().status == "in_progress"
    role.terminate()
    role.wait()


def test_l0_comes_from_the_environment(house: House) -> None:
    """HARNESS_PROJECT and FEATURE_ID replace the folder and the argument."""
    house.script("worker", {"say": "nothing"})
    done = house.run(
        house.words("worker"), where=house.folder, env={"HARNESS_PROJECT": str(house.project), "FEATURE_ID": "F-002"}
    )
    assert (done.code, house.result()["feature"]) == (0, "F-002")


def test_a_role_starts_the_mission_where_there_is_none(unbegun: House) -> None:
    """`python roles/planner.py` in a fresh folder does what run.sh does."""
    unbegun.write("playbooks/planner.md", "no plan\n")
    unbegun.role("planner")
    assert mission.exists(unbegun.layout)
    assert [line["role"] for line in unbegun.ran()] == ["planner"]


def test_orders_that_wait_are_applied_before_the_run_looks(house: House) -> None:
    """The user blocked the feature that the run was about to take."""
    order = order_log.Order(
        id="O-1", at="2026-04-24T10:05:12Z", by="person", verb="feature block", args=["F-001", "wait"]
    )
    Path(house.layout.path(names.ORDERS)).write_text(json.dumps(order.asdict()) + "\n")
    house.script("worker", {"say": "nothing"})
    house.role("worker")
    assert (house.feature().status, house.result()["feature"]) == ("blocked", "F-002")


def test_a_leaving_curator_asks_no_agent(house: House) -> None:
    """With TRIGGER=leaving only code runs, so run.sh ends soon: the run looks for no agent, not even a missing one."""
    house.config('agent = "mine"', "[agents.mine]", 'command = ["no-such-program"]')
    house.role_files("helper")
    assert house.role("helper", TRIGGER="leaving").code == 0
    assert (house.result()["agent"], house.result()["trigger"]) == ("", "leaving")


def test_a_validator_can_do_without_a_playbook(house: House) -> None:
    """The validator then proposes no checks, and the receipts decide."""
    house.config('agent = "playbook"')
    house.lay(Feature(id="F-001", title="Part", claims=["VAL-1"], status="validating"))
    assert house.role("validator", "F-001").code == 10
    assert house.feature().status == "failing"


def test_a_start_settles_what_died_once_and_says_so(house: House) -> None:
    """The start prints one line before the run's own; the run then continues the cut work."""
    run_id = killed(house)
    house.script("worker", {"run": "echo 2 > 2.txt"})
    out = house.role("worker", "F-001").out
    assert out.split("\n")[0] == f"  {run_id} was killed"
    assert (out.count("was killed"), [line["outcome"] for line in house.ran()]) == (1, ["killed", "ok"])


# again


@pytest.mark.parametrize("status", ["passed", "validating", "blocked"])
def test_a_feature_is_worked_on_again_where_a_person_says_so(house: House, status: str) -> None:
    """With all its tries, and back through its validation: a receipt of before counts for nothing."""
    house.lay(house.feature().replace(status=status, attempts=3), house.feature("F-002"))
    house.script("worker", {"run": "echo 1 > 1.txt"})
    run_sh, words = str(CHECKOUT / "run.sh"), ["worker", "F-001"]
    done = house.run([run_sh, *words])
    assert done.code == 64
    assert "worker F-001 --again" in done.err
    done = house.run([run_sh, *words, "--again"])
    assert done.code == 0, done
    assert house.result()["run"].endswith("-worker-F-001")
    assert (house.feature().status, house.feature().attempts) == ("validating", 0)
    assert house.role("validator", "F-001").code == 0
    assert (house.feature().status, house.feature().attempts) == ("passed", 1)


def test_again_where_the_work_breaks_it_is_red(house: House) -> None:
    """It has passed, and does not any more."""
    house.work({"run": "echo 1 > 1.txt"})
    house.role("validator", "F-001")
    assert house.feature().status == "passed"
    house.script("worker", {"run": "rm 1.txt"})
    assert house.run([str(CHECKOUT / "run.sh"), "worker", "--again", "F-001"]).code == 0
    house.role("validator", "F-001")
    assert house.feature().status == "failing"


def test_again_that_is_cut_short_leaves_the_feature_to_do(house: House) -> None:
    """A person asked for it, so the next worker does it."""
    house.lay(house.feature().replace(status="passed"), house.feature("F-002"))
    house.script("worker", {"fail": "limit"})
    house.role("worker", "F-001", "--again")
    assert house.feature().status == "todo"


@pytest.mark.parametrize(("role", "args"), [("validator", ("F-001",)), ("worker", ())])
def test_again_is_for_a_worker_and_one_feature(house: House, role: str, args: tuple[str, ...]) -> None:
    """Anything else is a usage fault with the form."""
    refused(house, 64, "ROLE FEATURE --again", role=role, args=(*args, "--again"))


def test_a_person_retries_a_feature_that_has_passed(house: House) -> None:
    """It is todo, and its next worker is due."""
    house.lay(house.feature().replace(status="passed"), house.feature("F-002").replace(status="passed"))
    assert house.program("feature", "retry", "F-001").code == 0
    assert house.feature().status == "todo"
    assert house.program("next").out == "NEXT worker F-001\n"
