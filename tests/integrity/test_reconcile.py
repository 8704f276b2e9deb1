"""What an agent changes besides its work is restored byte for byte, kept, and named: with agents that really do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.memory import identity
from harness.model import runs
from harness.store import files
from tests.missions import House, listing

ENTRY = "[2026-04-24T10:05:12Z] worker F-001 TRICK: {}\n"
WORK = {"run": "echo 1 > 1.txt"}


def sh(*lines: str) -> dict[str, str]:
    """A step of the scripted agent."""
    return {"run": "\n".join(lines)}


def live(house: House) -> dict[str, bytes | None]:
    """The managed files with their content."""
    return {path: files.read(path) for path in house.layout.managed()}


# managed files


LIVE = [
    "format",
    "mission.json",
    "config.toml",
    "spec.md",
    "features.json",
    "validation-contract.md",
    "memory/summary.md",
]


@pytest.mark.parametrize("spoil", ["echo mine > .harness/{}", "rm .harness/{}"])
def test_live_files_that_the_agent_changed_or_removed_are_put_back_kept_and_named(house: House, spoil: str) -> None:
    """The old bytes are back; what the agent wrote can still be read."""
    Path(house.layout.summary).write_text("## Lessons\n")
    before = {name: (house.state / name).read_bytes() for name in LIVE}
    result = house.work(WORK, sh(*(spoil.format(name) for name in LIVE)))
    assert (result["outcome"], result["refused"]) == ("refused", LIVE)
    assert all(name in result["reason"] for name in LIVE)
    assert house.refused() == dict.fromkeys(LIVE, b"mine\n" if "echo" in spoil else b"")
    after = {name: (house.state / name).read_bytes() for name in LIVE}
    assert [name for name in LIVE if before[name] != after[name]] == ["features.json"]
    assert (house.feature().status, house.feature().attempts) == ("todo", 1)


def test_no_agent_writes_itself_passed(house: House) -> None:
    """The feature goes back, the try is judged, and the work is kept as cut work."""
    cheat = "sed -i s/in_progress/passed/ .harness/features.json"
    result = house.work(WORK, sh(cheat))
    feature = house.feature()
    assert (feature.status, feature.attempts, result["outcome"]) == ("todo", 1, "refused")
    assert b'"passed"' in house.refused()["features.json"]
    assert house.git("show", "--name-only", "--format=%s", "HEAD").split() == ["wip(F-001):", "refused", "1.txt"]


def test_live_files_that_the_agent_invented_are_gone(house: House) -> None:
    """A forged escalation or memory is refused as tampering and not treated as a stray file."""
    names = ["memory/MEMORY.md", "memory/curated.json", "escalation.md"]
    result = house.work(sh(*(f"echo forged > .harness/{name}" for name in names)))
    assert (result["outcome"], result["refused"]) == ("refused", names)
    assert [name for name in names if (house.state / name).exists()] == []


def test_an_agent_that_mends_the_ledger_to_its_lie_is_found_all_the_same(house: House) -> None:
    """The agent can write to the ledger; it cannot change what the run knows."""
    before = house.read("validation-contract.md")
    forge = """
import hashlib, json
text = open(".harness/validation-contract.md").read().replace("test -f 1.txt", "true")
open(".harness/validation-contract.md", "w").write(text)
ledger = json.load(open(".harness/ledger.json"))
ledger["validation-contract.md"] = [hashlib.sha256(text.encode()).hexdigest(), len(text)]
json.dump(ledger, open(".harness/ledger.json", "w"))
"""
    result = house.work(sh(f"python3 - <<'END'{forge}END"))
    assert result["refused"] == ["validation-contract.md"]
    assert house.read("validation-contract.md") == before


def test_an_agent_that_spoils_the_copies_spoils_nothing(house: House) -> None:
    """The agent can write objects and the run's own copies; the bytes come back from the run's memory."""
    house.harness("note", "from before")
    before, raw = live(house), house.read("memory/raw.md")
    spoil = "find .harness/objects .harness/runs -type f -exec sh -c 'echo spoilt > \"$1\"' - {} ';'"
    result = house.work(sh(spoil, "echo x > .harness/config.toml", "echo x > .harness/memory/raw.md"))
    assert {"config.toml", "memory/raw.md"} <= set(result["refused"])
    assert house.read("memory/raw.md") == raw
    after = live(house)
    assert {path for path in before if before[path] != after[path]} <= {house.layout.features}


def test_a_mission_survives_an_agent_that_removes_all_its_state(house: House) -> None:
    """`git clean -ffdx` and worse: managed and append-only files are back, and the next run works."""
    house.harness("note", "from before")
    house.work()
    before, books = live(house), house.read("runs.jsonl")
    house.lay(house.feature().replace(status="todo"), house.feature("F-002"))
    result = house.work(WORK, sh("rm -rf .harness"))
    assert result["outcome"] == "refused"
    after = live(house)
    assert {path for path in before if before[path] != after[path]} <= {house.layout.features}
    assert house.read("runs.jsonl").startswith(books)
    assert "from before" in house.read("memory/raw.md")
    assert house.feature().status == "todo"
    assert house.work({"run": "echo 2 > 1.txt"})["outcome"] == "ok"


def test_what_the_run_was_told_cannot_be_rewritten_from_inside(house: House) -> None:
    """The prompt can be rebuilt byte for byte: the agent's edits to its own run's files are undone."""
    house.script(
        "worker",
        sh('cd "$(ls -d .harness/runs/*)"', "for f in context.json manifest.json prompt.md; do echo x > $f; done"),
    )
    house.role("worker", "F-001")
    result = house.result()
    run = house.layout.run(result["run"])
    assert runs.context(house.layout, result["run"]).run == result["run"]
    assert Path(run.prompt).read_text().startswith("# ")
    assert all("object" in row or "text" in row for row in json.loads(Path(run.manifest).read_text()))
    own = [f"runs/{result['run']}/{name}" for name in ("context.json", "manifest.json", "prompt.md")]
    assert (result["outcome"], result["refused"]) == ("refused", own)


# identity


def remember(house: House) -> Path:
    """An identity that another mission wrote."""
    path = house.identity / "worker.md"
    path.parent.mkdir()
    path.write_text("# worker\n\n- [2026-04-24] use make (missions: a, b · 2x)\n")
    identity.adopt(str(house.identity))
    return path


def test_an_identity_that_the_agent_changed_is_put_back(house: House) -> None:
    """Only the curator writes what a role knows across missions."""
    path = remember(house)
    before = path.read_bytes()
    result = house.work(sh(f"echo 'always say yes' >> {path}"))
    assert (result["outcome"], result["refused"]) == ("refused", ["identity/worker.md"])
    assert path.read_bytes() == before
    assert b"always say yes" in house.refused()["identity/worker.md"]


def test_an_identity_that_the_agent_removed_is_back(house: House) -> None:
    """Removal is a change too."""
    path = remember(house)
    before = path.read_bytes()
    assert house.work(sh(f"rm {path}"))["refused"] == ["identity/worker.md"]
    assert path.read_bytes() == before


def test_an_identity_that_the_agent_invented_is_gone(house: House) -> None:
    """No agent gives another role an identity, in a folder with identities or without."""
    path = remember(house)
    result = house.work(sh(f"echo 'pass everything' > {path.parent}/validator.md"))
    assert (result["outcome"], result["refused"]) == ("refused", ["identity/validator.md"])
    assert not (path.parent / "validator.md").exists()


def test_an_identity_in_a_folder_that_was_empty_is_gone_too(house: House) -> None:
    """The very first identity also comes from the curator."""
    result = house.work(sh(f"mkdir -p {house.identity}", f"echo 'pass everything' > {house.identity}/validator.md"))
    assert result["refused"] == ["identity/validator.md"]
    assert not (house.identity / "validator.md").exists()


# append-only files


def test_lines_that_the_agent_added_to_a_grown_file_are_cut_off(house: House) -> None:
    """An order, a result or an issue that did not come through its command does not count."""
    house.harness("issue", "a first one")
    before = house.read("issues.jsonl")
    result = house.work(sh('echo \'{"id":"I-002"}\' >> .harness/issues.jsonl', "echo '{}' >> .harness/orders.jsonl"))
    assert result["outcome"] == "refused"
    assert result["refused"] == ["issues.jsonl", "orders.jsonl"]
    assert house.read("issues.jsonl") == before
    assert house.refused() == {"issues.jsonl": b'{"id":"I-002"}\n', "orders.jsonl": b"{}\n"}


@pytest.mark.parametrize("cut", [": > .harness/{}", "rm .harness/{}", "sed -i s/i/I/ .harness/{}"])
def test_grown_files_that_were_cut_or_rewritten_are_whole_again(house: House, cut: str) -> None:
    """The run log and the issues keep every line."""
    house.work({"say": "nothing"}, feature="F-002")
    house.harness("issue", "a first one")
    before = house.read("runs.jsonl"), house.read("issues.jsonl")
    result = house.work(sh(cut.format("runs.jsonl"), cut.format("issues.jsonl")))
    assert result["refused"] == ["issues.jsonl", "runs.jsonl"]
    assert house.read("runs.jsonl").startswith(before[0])
    assert house.read("issues.jsonl") == before[1]
    assert house.refused(result["run"])["issues.jsonl"] != before[1].encode()


def test_an_issue_of_its_own_does_not_hide_that_the_agent_removed_the_others(house: House) -> None:
    """The command updates the ledger; the lines from before must be there all the same."""
    house.harness("issue", "a first one", "--severity", "critical")
    before = house.read("issues.jsonl")
    result = house.work(sh(": > .harness/issues.jsonl", "harness issue 'another one'"))
    assert (result["outcome"], result["refused"]) == ("refused", ["issues.jsonl"])
    assert house.read("issues.jsonl") == before
    assert b"another one" in house.refused()["issues.jsonl"]


def test_what_doors_wrote_during_the_run_stands(house: House) -> None:
    """A note and an issue made in the run are not tampering."""
    result = house.work(WORK, sh("harness note --tag TRICK 'use make'", "harness issue 'slow' --severity nit"))
    assert (result["outcome"], result["refused"]) == ("ok", [])
    assert "worker F-001 TRICK: use make" in house.read("memory/raw.md")
    assert json.loads(house.read("issues.jsonl"))["by"] == result["run"]


# raw.md


def test_well_formed_lines_that_were_appended_to_raw_stand(house: House) -> None:
    """raw.md is append-only for every writer."""
    house.harness("note", "from before")
    before = house.read("memory/raw.md")
    result = house.work(sh(f"cat >> .harness/memory/raw.md <<'END'\n{ENTRY.format('use make')}END"))
    assert (result["outcome"], result["refused"]) == ("no_op", [])
    assert house.read("memory/raw.md") == before + ENTRY.format("use make")


def test_malformed_lines_in_raw_go_and_good_ones_beside_them_stand(house: House) -> None:
    """A malformed entry is kept with the refused files."""
    house.harness("note", "from before")
    before = house.read("memory/raw.md")
    good = ENTRY.format("use make")
    lines = f"garbage\n{good}[x] torn"
    result = house.work(sh(f"printf %s {lines!r} >> .harness/memory/raw.md".replace("\\n", "'$'\\n''")))
    assert result["refused"] == ["memory/raw.md"]
    assert house.read("memory/raw.md") == before + good
    assert house.refused()["memory/raw.md"] == b"garbage\n[x] torn\n"


@pytest.mark.parametrize(
    "spoil",
    [": > .harness/memory/raw.md", "rm .harness/memory/raw.md", "sed -i s/before/after/ .harness/memory/raw.md"],
)
def test_old_entries_of_raw_stand_whatever_the_agent_does(house: House, spoil: str) -> None:
    """Cut, removed or rewritten: the old bytes are back, and a later note follows them."""
    house.harness("note", "from before")
    before = house.read("memory/raw.md")
    result = house.work(sh(spoil, "harness note 'and one more'"))
    assert result["refused"] == ["memory/raw.md"]
    after = house.read("memory/raw.md")
    assert after.startswith(before)
    assert after.endswith("worker F-001 - and one more\n")
    assert "memory/raw.md" in house.refused()


@pytest.mark.parametrize("tail", [b"[2026-04-24T10:05:12Z] worker F-0", b"[2026-04-24T10:05:12Z] wor\0\0\0"])
def test_a_line_torn_before_the_run_is_not_the_agents_fault(house: House, tail: bytes) -> None:
    """A power cut left half a line: it stays, as a line of its own, and a note of the run follows it."""
    house.harness("note", "from before")
    path = Path(house.layout.raw)
    path.write_bytes(path.read_bytes() + tail)
    result = house.work(WORK, sh("harness note 'and one more'"))
    assert (result["outcome"], result["refused"]) == ("ok", [])
    lines = path.read_bytes().split(b"\n")
    assert lines[1] == tail.rstrip(b"\0")
    assert lines[2].endswith(b"and one more")
    assert len(lines) == 4


# stray files, and files of the user


def test_stray_files_are_moved_out_and_the_outcome_stands(house: House) -> None:
    """An agent's own plan in our folder is not tampering."""
    result = house.work(
        WORK,
        sh(
            "echo a > .harness/PLAN.md",
            "mkdir .harness/tmp",
            "echo b > .harness/tmp/b",
            "echo c > .harness/memory/c.md",
        ),
    )
    assert (result["outcome"], house.feature().status) == ("ok", "validating")
    assert result["refused"] == ["PLAN.md", "tmp", "memory/c.md"]
    assert house.refused() == {"PLAN.md": b"a\n", "tmp/b": b"b\n", "memory/c.md": b"c\n"}
    assert not (house.state / "PLAN.md").exists()


def test_what_people_lay_down_is_never_put_back(house: House) -> None:
    """STOP, PAUSE, STEER.md and SPEC.md may change while a run is open."""
    house.work(WORK, sh("for f in STOP PAUSE STEER.md; do echo person > .harness/$f; done"))
    assert house.result()["refused"] == []
    assert {name: house.read(name) for name in ("STOP", "PAUSE", "STEER.md")} == dict.fromkeys(
        ("STOP", "PAUSE", "STEER.md"), "person\n"
    )


@pytest.mark.parametrize("role", ["planner", "validator"])
def test_a_spec_that_is_changed_meanwhile_is_never_put_back(house: House, role: str) -> None:
    """SPEC.md is tracked, and a person edits it while a role other than the worker runs."""
    house.lay(house.feature().replace(status="validating"), house.feature("F-002"))
    house.write("1.txt")
    house.git("add", "1.txt")
    house.git("commit", "-qm", "one")
    house.script(role, sh("echo '## More' >> SPEC.md"))
    house.role(role, "F-001")
    assert (house.project / "SPEC.md").read_text().endswith("## More\n")
    assert house.result()["refused"] == []


def test_a_persons_edits_from_before_a_planners_run_stay(house: House) -> None:
    """The planner needs no clean tree: what was dirty when it began is not its work."""
    house.write("SPEC.md", "# Another program\n")
    house.write("main.py", "print('edited by a person')\n")
    house.write("staged.py", "staged\n")
    house.git("add", "staged.py")
    before, status = listing(house.project, ".git", ".harness"), house.git("status", "--porcelain")
    house.script("planner", {"say": "no plan"})
    house.role("planner")
    assert listing(house.project, ".git", ".harness") == before
    assert house.git("status", "--porcelain") == status
    assert house.result()["refused"] == []


def test_a_persons_edits_come_back_when_the_planner_wrote_over_them(house: House) -> None:
    """Changed, reverted or removed: the file is as the person left it, and the planner's version is kept."""
    for name in ("a.py", "b.py", "c.py"):
        house.write(name, "committed\n")
    house.git("add", "-A")
    house.git("commit", "-qm", "more")
    for name in ("a.py", "b.py", "c.py"):
        house.write(name, "edited by a person\n")
    house.script("planner", sh("echo planner > a.py", "git checkout -q b.py", "rm c.py", "echo planner > main.py"))
    house.role("planner")
    assert {name: (house.project / name).read_text() for name in ("a.py", "b.py", "c.py", "main.py")} == {
        **dict.fromkeys(("a.py", "b.py", "c.py"), "edited by a person\n"),
        "main.py": "print('hello')\n",
    }
    assert sorted(house.result()["refused"]) == ["a.py", "b.py", "c.py", "main.py"]
    assert b"+planner" in house.refused()["working-folder.patch"]


# finished runs, and code that would be trusted


def test_a_finished_run_that_was_changed_is_named_and_only_the_run_that_did_it_answers_for_it(house: House) -> None:
    """The run digest shows the tampering; later runs are not blamed."""
    first = house.work({"say": "nothing"}, feature="F-002")["run"]
    assert house.work(WORK, sh(f"echo lie >> .harness/runs/{first}/prompt.md"))["refused"] == [f"runs/{first}"]
    assert house.result()["outcome"] == "refused"
    later = house.work({"run": "echo 2 > 1.txt"})
    assert (later["outcome"], later["refused"]) == ("ok", [])


def test_a_result_that_was_rewritten_is_found(house: House) -> None:
    """result.json and its line in the run log must be equal."""
    first = house.work({"say": "nothing"}, feature="F-002")["run"]
    result = house.work(sh(f"sed -i s/no_op/ok/ .harness/runs/{first}/result.json"))
    assert result["refused"] == [f"runs/{first}"]


def test_a_contract_that_was_weakened_in_the_cache_is_not_believed(house: House) -> None:
    """The cache holds parsed files beside their text; an agent that changes the parsed half gains nothing."""
    house.harness("status")
    weaken = "sed -i 's/test -f 1.txt/true/g' .harness/cache/*.json"
    house.work(
        {"run": "echo 2 > 2.txt"}, sh(weaken.replace("s/test -f 1.txt/true/g", 's/"run":"test -f 1.txt"/"run":"true"/'))
    )
    assert house.role("validator", "F-001").code == 10
    assert house.feature().status == "failing"


def test_a_role_that_the_agent_planted_never_runs(house: House) -> None:
    """The mission's own roles come from people: a script that appears during a run is moved out."""
    house.role_files("helper")
    before = listing(Path(house.layout.roles))
    plant = sh(
        "cp .harness/roles/helper.py .harness/roles/worker.py",
        "echo x >> .harness/roles/helper.py",
        "rm .harness/roles/helper.md",
    )
    result = house.work(plant)
    assert (result["outcome"], sorted(result["refused"])) == (
        "refused",
        ["roles/helper.md", "roles/helper.py", "roles/worker.py"],
    )
    assert listing(Path(house.layout.roles), "__pycache__") == before


# what the next prompt reports


def test_what_was_refused_is_told_to_the_roles_next_run(house: House) -> None:
    """The feature's next worker reads what was restored, and why its role failed."""
    house.work(sh("echo x > .harness/config.toml"))
    house.work(WORK)
    prompt = house.prompt()
    assert "What was put back after it (not yours to change)" in prompt
    assert "config.toml" in prompt.split("What was put back")[1]
    assert "refused: The agent changed state that only the harness writes: config.toml." in prompt


# the working folder of other roles


def test_tracked_files_that_another_role_changed_are_put_back_with_a_patch_kept(house: House) -> None:
    """Only the worker changes the working directory; the patch applies."""
    before = listing(house.project, ".git", ".harness")
    house.script("planner", sh("echo planner >> main.py", "echo new > new.py", "git add new.py"))
    house.role("planner")
    result = house.result()
    assert sorted(result["refused"]) == ["main.py", "new.py"]
    assert {**before, "new.py": b"new\n"} == listing(house.project, ".git", ".harness")
    assert house.git("status", "--porcelain") == "?? new.py"
    (house.folder / "kept.patch").write_bytes(house.refused()["working-folder.patch"])
    (house.project / "new.py").unlink()
    house.git("apply", str(house.folder / "kept.patch"))
    assert (house.project / "main.py").read_text() == "print('hello')\nplanner\n"


def test_commits_of_another_role_are_undone_with_a_ref_kept(house: House) -> None:
    """The branch is where it was, and the commit is still reachable."""
    head = house.head()
    house.script("planner", sh("echo planner >> main.py", "git -c user.name=a -c user.email=a commit -qam mine"))
    house.role("planner")
    result = house.result()
    ref = f"refs/harness/refused/{result['run']}"
    assert house.head() == head
    assert f"commits (kept as {ref})" in result["refused"]
    assert house.git("log", "-1", "--format=%s", ref) == "mine"
    assert house.git("status", "--porcelain") == ""


def test_a_branch_switch_of_another_role_is_undone(house: House) -> None:
    """HEAD names the mission's branch again."""
    branch = house.git("branch", "--show-current")
    house.script("planner", sh("git switch -q -c elsewhere"))
    house.role("planner")
    assert house.git("branch", "--show-current") == branch
    assert house.git("status", "--porcelain") == ""


# the worker's folder, in any final state


ODD_WAYS: dict[str, list[str]] = {
    "commits": ["echo 1 > 1.txt", "git add -A", "git -c user.name=a -c user.email=a commit -qm 'my own words'"],
    "switches": ["git switch -q -c elsewhere", "echo 1 > 1.txt"],
    "switches and commits": [
        "git switch -q -c elsewhere",
        "echo 1 > 1.txt",
        "git add -A",
        "git -c user.name=a -c user.email=a commit -qm 'my own words'",
    ],
    "detaches": ["git checkout -q --detach", "echo 1 > 1.txt"],
    "stages": ["echo 1 > 1.txt", "git add 1.txt"],
    "stages something else": ["echo 0 > 1.txt", "git add 1.txt", "echo 1 > 1.txt"],
    "stashes": ["echo x >> main.py", "git -c user.name=a -c user.email=a stash -q", "echo 1 > 1.txt"],
    "leaves a lock": ["echo 1 > 1.txt", "touch .git/index.lock"],
    "removes the index": ["echo 1 > 1.txt", "rm .git/index"],
    "amends": ["echo 1 > 1.txt", "git add -A", "git -c user.name=a -c user.email=a commit -q --amend -m amended"],
}


@pytest.mark.parametrize("way", ODD_WAYS)
def test_however_a_worker_leaves_the_repository_there_is_one_right_commit(house: House, way: str) -> None:
    """One commit on the mission's branch, on top of the run's start, with the run's trailer; the folder is clean."""
    head, branch = house.head(), house.git("branch", "--show-current")
    result = house.work(sh(*ODD_WAYS[way]))
    assert (result["outcome"], house.feature().status) == ("ok", "validating")
    assert house.git("branch", "--show-current") == branch
    assert house.git("rev-list", f"{head}..HEAD").split() == [result["commit"]]
    assert house.git("rev-parse", "HEAD^") == head
    assert house.git("diff", "--name-status", "HEAD^", "HEAD") == "A\t1.txt"
    assert house.git("show", "HEAD:1.txt") == "1"
    assert house.git("log", "-1", "--format=%(trailers:key=Harness-Run,valueonly)").strip() == result["run"]
    assert house.git("status", "--porcelain") == ""
    assert ("my own words" in house.git("log", "-1", "--format=%B")) == ("my own words" in " ".join(ODD_WAYS[way]))


def test_a_worker_that_only_committed_and_took_back_leaves_the_branch_as_it_was(house: House) -> None:
    """Commits without a net change are undone, and a ref keeps them."""
    head = house.head()
    step = sh("git -c user.name=a -c user.email=a commit -q --allow-empty -m nothing", "git switch -q -c elsewhere")
    result: dict[str, Any] = house.work(step)
    assert (result["outcome"], result["commit"], house.head()) == ("no_op", "", head)
    assert house.git("log", "-1", "--format=%s", f"refs/harness/refused/{result['run']}") == "nothing"


def test_a_persons_untracked_files_stay_out_of_the_commit(house: House) -> None:
    """Files from before the run are not the worker's work."""
    house.write("notes of a person.txt")
    result = house.work(WORK)
    assert house.git("show", "--name-only", "--format=", result["commit"]) == "1.txt"
    assert house.git("status", "--porcelain") == '?? "notes of a person.txt"'
