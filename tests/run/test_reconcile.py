"""What an agent changes besides its work is restored byte for byte, kept, and named: with agents that really do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.mission.contract import Contract
from harness.state import files, names
from tests.missions import House, listing, until
from tests.planned import claim, feature, lay

ENTRY = "[2026-04-24T10:05:12Z] worker F-001 TRICK: {}\n"
WORK = {"run": "echo 1 > 1.txt"}


def sh(*lines: str) -> dict[str, str]:
    """A step of the scripted agent."""
    return {"run": "\n".join(lines)}


def live(house: House) -> dict[str, bytes | None]:
    """The managed files with their content."""
    return {path: files.read(path) for path in house.layout.managed()}


# behind the glass


def remember(house: House) -> Path:
    """An identity that another mission wrote."""
    path = house.identity / "worker.md"
    path.parent.mkdir()
    path.write_text("# worker\n\n- [2026-04-24] use make (missions: a, b · 2x)\n")
    return path


TAMPERING = {
    "managed files": "for f in features.json config.toml validation-contract.md; do echo forged > .harness/$f; done",
    "a file of its own in the state": "echo forged > .harness/escalation.md",
    "append-only files": "for f in runs.jsonl issues.jsonl orders.jsonl memory/raw.md; do echo {} >> .harness/$f; done",
    "the ledger and the journal": "echo {} > .harness/ledger.json; mkdir -p .harness/journal; echo [] > .harness/journal/record",
    "what runs were asked and said": "for f in .harness/runs/*/*; do echo forged > $f; done",
    "parsed files in the cache": "for f in .harness/cache/*; do sed -i 's/test -f 1.txt/true/' $f; done",
    "a role": "echo forged >> .harness/roles/helper.py; cp .harness/roles/helper.py .harness/roles/worker.py",
    "identities": 'echo forged >> "$HARNESS_IDENTITY/worker.md"; echo forged > "$HARNESS_IDENTITY/validator.md"',
    "another mission's way": 'mv "$(readlink .harness)" elsewhere; ln -sfn /tmp "$(readlink .harness)"',
    "all of it": 'rm -rf "$(readlink .harness)" .harness/*',
}


def test_a_confined_agent_cannot_change_what_the_harness_believes(house: House) -> None:
    """Each attempt fails at once, nothing need be restored, and the work beside them counts."""
    remember(house)
    house.role_files("helper")
    house.harness("note", "from before")
    house.harness("issue", "a first one")
    house.work({"say": "nothing"}, feature="F-002")
    house.harness("status")
    before, known = believed(house), listing(house.identity)
    tries = [line.replace("$HARNESS_IDENTITY", str(house.identity)) for line in TAMPERING.values()]
    result = house.work(WORK, *(sh(f"({line}) 2> tried-{n}.log || true") for n, line in enumerate(tries)))
    assert (result["outcome"], result["refused"], house.feature().status) == ("ok", [], "validating")
    said = {what: (house.tree / f"tried-{n}.log").read_text() for n, what in enumerate(TAMPERING)}
    assert [what for what in TAMPERING if not said[what]] == []
    after = believed(house)
    assert [name for name, data in before.items() if not after.get(name, b"").startswith(data)] == []
    assert {name.split("/")[0] for name in after.keys() - before.keys()} <= {"runs", "snapshots", "objects", "journal"}
    assert listing(house.identity) == known
    assert house.harness("doctor").code == 0


def believed(house: House) -> dict[str, bytes]:
    """The state with its content, except files that each run rewrites."""
    return listing(house.state, "cache", "locks", "features.json", "ledger.json", "git-config", "roles/__pycache__")


def test_a_confined_agent_cannot_commit_and_its_work_is_one_commit_all_the_same(house: House) -> None:
    """The repository is read-only: reading it works, and what the agent attempts changes no ref and no configuration."""
    head, refs = house.head(), house.git("for-each-ref")
    config = (house.project / ".git" / "config").read_bytes()
    tries = [
        "git add -A",
        "git switch -c elsewhere",
        "git config core.hooksPath .",
        "git stash",
        "git update-ref HEAD HEAD~0",
    ]
    script = [*WORK.values(), "git status > /dev/null && git log -1 > /dev/null", *(f"! {one}" for one in tries)]
    result = house.work(sh(*script))
    assert (result["outcome"], house.feature().status) == ("ok", "validating"), result["reason"]
    assert house.git("rev-list", f"{head}..HEAD").split() == [result["commit"]]
    assert house.git("diff", "--name-status", "HEAD^", "HEAD") == "A\t1.txt"
    assert set(refs.split("\n")) - set(house.git("for-each-ref").split("\n")) == {refs.split("\n")[0]}
    assert (house.project / ".git" / "config").read_bytes() == config
    assert house.git("status", "--porcelain") == ""


# managed files


LIVE = [
    "format",
    "mission.json",
    "spec.md",
    "features.json",
    "validation-contract.md",
    "memory/summary.md",
]


@pytest.mark.parametrize("spoil", ["echo mine > .harness/{}", "rm .harness/{}"])
def test_live_files_that_the_agent_changed_or_removed_are_put_back_kept_and_named(
    unconfined: House, spoil: str
) -> None:
    """The old bytes are back; what the agent wrote can still be read."""
    Path(unconfined.layout.path(names.SUMMARY)).write_text("## Lessons\n")
    before = {name: (unconfined.state / name).read_bytes() for name in LIVE}
    result = unconfined.work(WORK, sh(*(spoil.format(name) for name in LIVE)))
    assert (result["outcome"], result["refused"]) == ("refused", LIVE)
    assert all(name in result["reason"] for name in LIVE)
    assert unconfined.refused() == dict.fromkeys(LIVE, b"mine\n" if "echo" in spoil else b"")
    after = {name: (unconfined.state / name).read_bytes() for name in LIVE}
    assert [name for name in LIVE if before[name] != after[name]] == ["features.json"]
    assert (unconfined.feature().status, unconfined.feature().attempts) == ("todo", 1)


def test_no_agent_writes_itself_passed(unconfined: House) -> None:
    """The feature goes back, the try is judged, and the work is kept as cut work."""
    cheat = "sed -i s/in_progress/passed/ .harness/features.json"
    result = unconfined.work(WORK, sh(cheat))
    feature = unconfined.feature()
    assert (feature.status, feature.attempts, result["outcome"]) == ("todo", 1, "refused")
    assert b'"passed"' in unconfined.refused()["features.json"]
    assert unconfined.git("show", "--name-only", "--format=%s", "HEAD").split() == ["wip(F-001):", "refused", "1.txt"]


def test_live_files_that_the_agent_invented_are_gone(unconfined: House) -> None:
    """A forged escalation or memory is refused as tampering and not treated as a stray file."""
    names = ["memory/MEMORY.md", "memory/curated.json", "escalation.md"]
    result = unconfined.work(sh(*(f"echo forged > .harness/{name}" for name in names)))
    assert (result["outcome"], result["refused"]) == ("refused", names)
    assert [name for name in names if (unconfined.state / name).exists()] == []


def test_an_agent_that_mends_the_ledger_to_its_lie_is_found_all_the_same(unconfined: House) -> None:
    """The agent can write to the ledger; it cannot change what the run knows."""
    before = unconfined.read("validation-contract.md")
    forge = """
import hashlib, json
text = open(".harness/validation-contract.md").read().replace("test -f 1.txt", "true")
open(".harness/validation-contract.md", "w").write(text)
ledger = json.load(open(".harness/ledger.json"))
ledger["validation-contract.md"] = [hashlib.sha256(text.encode()).hexdigest(), len(text)]
json.dump(ledger, open(".harness/ledger.json", "w"))
"""
    result = unconfined.work(sh(f"python3 - <<'END'{forge}END"))
    assert result["refused"] == ["validation-contract.md"]
    assert unconfined.read("validation-contract.md") == before


def test_an_agent_that_spoils_the_copies_spoils_nothing(unconfined: House) -> None:
    """The agent can write objects and the run's own copies; the bytes come back from the run's memory."""
    unconfined.harness("note", "from before")
    before, raw = live(unconfined), unconfined.read("memory/raw.md")
    spoil = "find .harness/objects .harness/runs -type f -exec sh -c 'echo spoilt > \"$1\"' - {} ';'"
    result = unconfined.work(sh(spoil, "echo x > .harness/spec.md", "echo x > .harness/memory/raw.md"))
    assert {"spec.md", "memory/raw.md"} <= set(result["refused"])
    assert unconfined.read("memory/raw.md") == raw
    after = live(unconfined)
    assert {path for path in before if before[path] != after[path]} <= {unconfined.layout.path(names.FEATURES)}


def test_a_mission_survives_an_agent_that_removes_all_its_state(unconfined: House) -> None:
    """`git clean -ffdx` and worse: managed and append-only files are back, and the next run works."""
    unconfined.harness("note", "from before")
    unconfined.work()
    before, books = live(unconfined), unconfined.read("runs.jsonl")
    unconfined.lay(unconfined.feature().replace(status="todo"), unconfined.feature("F-002"))
    result = unconfined.work(WORK, sh('rm -rf "$(readlink .harness)"'))
    assert result["outcome"] == "refused"
    after = live(unconfined)
    assert {path for path in before if before[path] != after[path]} <= {unconfined.layout.path(names.FEATURES)}
    assert unconfined.read("runs.jsonl").startswith(books)
    assert "from before" in unconfined.read("memory/raw.md")
    assert unconfined.feature().status == "todo"
    assert unconfined.work({"run": "echo 2 > 1.txt"})["outcome"] == "ok"


# append-only files


def test_lines_that_the_agent_added_to_a_grown_file_are_cut_off(unconfined: House) -> None:
    """An order, a result or an issue that did not come through its command does not count."""
    unconfined.harness("issue", "a first one")
    before = unconfined.read("issues.jsonl")
    result = unconfined.work(
        sh('echo \'{"id":"I-002"}\' >> .harness/issues.jsonl', "echo '{}' >> .harness/orders.jsonl")
    )
    assert result["outcome"] == "refused"
    assert result["refused"] == ["issues.jsonl", "orders.jsonl"]
    assert unconfined.read("issues.jsonl") == before
    assert unconfined.refused() == {"issues.jsonl": b'{"id":"I-002"}\n', "orders.jsonl": b"{}\n"}


@pytest.mark.parametrize("cut", [": > .harness/{}", "rm .harness/{}", "sed -i s/i/I/ .harness/{}"])
def test_grown_files_that_were_cut_or_rewritten_are_whole_again(unconfined: House, cut: str) -> None:
    """The run log and the issues keep every line."""
    unconfined.work({"say": "nothing"}, feature="F-002")
    unconfined.harness("issue", "a first one")
    before = unconfined.read("runs.jsonl"), unconfined.read("issues.jsonl")
    result = unconfined.work(sh(cut.format("runs.jsonl"), cut.format("issues.jsonl")))
    assert result["refused"] == ["issues.jsonl", "runs.jsonl"]
    assert unconfined.read("runs.jsonl").startswith(before[0])
    assert unconfined.read("issues.jsonl") == before[1]
    assert unconfined.refused(result["run"])["issues.jsonl"] != before[1].encode()


def test_an_issue_of_its_own_does_not_hide_that_the_agent_removed_the_others(unconfined: House) -> None:
    """The command updates the ledger; the lines from before must be there all the same."""
    unconfined.harness("issue", "a first one", "--severity", "critical")
    before = unconfined.read("issues.jsonl")
    result = unconfined.work(sh(": > .harness/issues.jsonl", "harness issue 'another one'"))
    assert (result["outcome"], result["refused"]) == ("refused", ["issues.jsonl"])
    assert unconfined.read("issues.jsonl") == before
    assert b"another one" in unconfined.refused()["issues.jsonl"]


def test_what_doors_wrote_during_the_run_stands(house: House) -> None:
    """A note and an issue made in the run are not tampering."""
    result = house.work(WORK, sh("harness note --tag TRICK 'use make'", "harness issue 'slow' --severity nit"))
    assert (result["outcome"], result["refused"]) == ("ok", [])
    assert "worker F-001 TRICK: use make" in house.read("memory/raw.md")
    assert json.loads(house.read("issues.jsonl"))["by"] == result["run"]


# raw.md


def test_well_formed_lines_that_were_appended_to_raw_stand(unconfined: House) -> None:
    """raw.md is append-only for every writer."""
    unconfined.harness("note", "from before")
    before = unconfined.read("memory/raw.md")
    result = unconfined.work(sh(f"cat >> .harness/memory/raw.md <<'END'\n{ENTRY.format('use make')}END"))
    assert (result["outcome"], result["refused"]) == ("no_op", [])
    assert unconfined.read("memory/raw.md") == before + ENTRY.format("use make")


def test_an_untagged_line_with_a_colon_is_an_entry(unconfined: House) -> None:
    """A run that appends one by hand is not refused for it, and the curator reads it."""
    line = "[2026-04-24T10:18:33Z] validator F-023 -: F-023 verified via curl\n"
    result = unconfined.work(sh(f"cat >> .harness/memory/raw.md <<'END'\n{line}END"))
    assert (result["outcome"], result["refused"]) == ("no_op", [])
    assert unconfined.read("memory/raw.md") == line


def test_malformed_lines_in_raw_go_and_good_ones_beside_them_stand(unconfined: House) -> None:
    """A malformed entry is kept with the refused files."""
    unconfined.harness("note", "from before")
    before = unconfined.read("memory/raw.md")
    good = ENTRY.format("use make")
    lines = f"garbage\n{good}[x] torn"
    result = unconfined.work(sh(f"printf %s {lines!r} >> .harness/memory/raw.md".replace("\\n", "'$'\\n''")))
    assert result["refused"] == ["memory/raw.md"]
    assert unconfined.read("memory/raw.md") == before + good
    assert unconfined.refused()["memory/raw.md"] == b"garbage\n[x] torn\n"


@pytest.mark.parametrize(
    "spoil",
    [": > .harness/memory/raw.md", "rm .harness/memory/raw.md", "sed -i s/before/after/ .harness/memory/raw.md"],
)
def test_old_entries_of_raw_stand_whatever_the_agent_does(unconfined: House, spoil: str) -> None:
    """Cut, removed or rewritten: the old bytes are back, and a later note follows them."""
    unconfined.harness("note", "from before")
    before = unconfined.read("memory/raw.md")
    result = unconfined.work(sh(spoil, "harness note 'and one more'"))
    assert result["refused"] == ["memory/raw.md"]
    after = unconfined.read("memory/raw.md")
    assert after.startswith(before)
    assert after.endswith("worker F-001 - and one more\n")
    assert "memory/raw.md" in unconfined.refused()


@pytest.mark.parametrize("tail", [b"[2026-04-24T10:05:12Z] worker F-0", b"[2026-04-24T10:05:12Z] wor\0\0\0"])
def test_a_line_torn_before_the_run_is_not_the_agents_fault(house: House, tail: bytes) -> None:
    """A power cut left half a line: it stays, as a line of its own, and a note of the run follows it."""
    house.harness("note", "from before")
    path = Path(house.layout.path(names.RAW))
    path.write_bytes(path.read_bytes() + tail)
    result = house.work(WORK, sh("harness note 'and one more'"))
    assert (result["outcome"], result["refused"]) == ("ok", [])
    lines = path.read_bytes().split(b"\n")
    assert lines[1] == tail.rstrip(b"\0")
    assert lines[2].endswith(b"and one more")
    assert len(lines) == 4


# stray files, and files of the user


def test_stray_files_are_moved_out_and_the_outcome_stands(unconfined: House) -> None:
    """An agent's own plan in our folder is not tampering."""
    result = unconfined.work(
        WORK,
        sh(
            "echo a > .harness/PLAN.md",
            "mkdir .harness/tmp",
            "echo b > .harness/tmp/b",
            "echo c > .harness/memory/c.md",
        ),
    )
    assert (result["outcome"], unconfined.feature().status) == ("ok", "validating")
    assert result["refused"] == ["PLAN.md", "tmp", "memory/c.md"]
    assert unconfined.refused() == {"PLAN.md": b"a\n", "tmp/b": b"b\n", "memory/c.md": b"c\n"}
    assert not (unconfined.state / "PLAN.md").exists()


def test_what_people_lay_down_is_never_put_back(unconfined: House) -> None:
    """Their files may change while a run is open; one that is removed comes back."""
    before = unconfined.read("config.toml")
    assert unconfined.work(sh("rm .harness/config.toml"), feature="F-002")["refused"] == ["config.toml"]
    assert unconfined.read("config.toml") == before
    theirs = ("STOP", "PAUSE", "STEER.md", "roles/mine.md", "config.toml")
    lay = "mkdir -p .harness/roles; for f in {}; do echo '# a person' >> .harness/$f; done"
    result = unconfined.work(WORK, sh(lay.format(" ".join(theirs))))
    assert (result["outcome"], result["refused"]) == ("ok", [])
    assert {unconfined.read(name) for name in theirs} == {"# a person\n", before + "# a person\n"}


def test_what_others_committed_meanwhile_is_no_change_of_the_agents(unconfined: House) -> None:
    """A command's order, issue and note are committed while the agent works: they stay, also where it wrote over them."""
    unconfined.script(
        "worker", WORK, {"run": "until [ -e go ]; do sleep 0.02; done"}, sh("echo x > .harness/issues.jsonl")
    )
    role = unconfined.begin_role("worker", "F-001")
    until(lambda: (unconfined.tree / "1.txt").exists())
    assert unconfined.harness("issue", "a person's", "--severity", "nit").code == 0
    assert unconfined.harness("note", "of a person").code == 0
    issues = unconfined.read("issues.jsonl")
    (unconfined.tree / "go").touch()
    assert role.wait() == 10
    assert unconfined.result()["refused"] == ["issues.jsonl"]
    assert (unconfined.read("issues.jsonl"), "of a person" in unconfined.read("memory/raw.md")) == (issues, True)


# what the next prompt reports


def test_what_was_refused_is_told_to_the_roles_next_run(unconfined: House) -> None:
    """The feature's next worker reads what was restored, and why its role failed."""
    unconfined.work(sh("echo x > .harness/spec.md"))
    unconfined.work(WORK)
    prompt = unconfined.prompt()
    assert "What was put back after it (not yours to change)" in prompt
    assert "spec.md" in prompt.split("What was put back")[1]
    assert "refused: The agent changed state that only the harness writes: spec.md." in prompt


# the working folder of other roles


def test_what_another_role_changed_in_the_tree_is_gone_and_the_patch_is_kept(house: House) -> None:
    """A person's folder never sees it; the next worker starts from the mission's commit."""
    before = listing(house.project, ".git", ".harness")
    house.script("planner", sh("echo planner >> main.py", "echo new > new.py"))
    house.role("planner")
    assert house.result()["refused"] == ["main.py"]
    assert listing(house.project, ".git", ".harness") == before
    assert ((house.tree / "main.py").read_text(), (house.tree / "new.py").exists()) == ("print('hello')\n", False)
    (house.folder / "kept.patch").write_bytes(house.refused()["working-folder.patch"])
    house.git("apply", str(house.folder / "kept.patch"))
    assert (house.project / "main.py").read_text() == "print('hello')\nplanner\n"


def test_what_another_role_committed_in_the_tree_is_kept_too(unconfined: House) -> None:
    """Without confinement it can commit there: the tree goes back, and nothing of it is lost."""
    head = unconfined.head()
    commit = "git -c user.name=a -c user.email=a commit -qam mine"
    unconfined.script("planner", sh("echo planner >> main.py", commit))
    unconfined.role("planner")
    assert (unconfined.tree / "main.py").read_text() == "print('hello')\n"
    assert unconfined.head() == head
    ref = f"refs/harness/refused/{unconfined.result()['run']}"
    assert unconfined.result()["refused"] == [f"commits (kept as {ref})"]
    assert unconfined.git("log", "-1", "--format=%s", ref) == "mine"


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
    "leaves a lock": ["echo 1 > 1.txt", 'touch "$(git rev-parse --git-dir)/index.lock"'],
    "removes the index": ["echo 1 > 1.txt", 'rm "$(git rev-parse --git-dir)/index"'],
    "amends": ["echo 1 > 1.txt", "git add -A", "git -c user.name=a -c user.email=a commit -q --amend -m amended"],
}


@pytest.mark.parametrize("way", ODD_WAYS)
def test_however_a_worker_leaves_the_repository_there_is_one_right_commit(unconfined: House, way: str) -> None:
    """One commit on the mission's branch, on top of the run's start, with the run's trailer; the folder is clean."""
    head, branch = unconfined.head(), unconfined.git("branch", "--show-current")
    result = unconfined.work(sh(*ODD_WAYS[way]))
    assert (result["outcome"], unconfined.feature().status) == ("ok", "validating")
    assert unconfined.git("branch", "--show-current") == branch
    assert unconfined.git("rev-list", f"{head}..HEAD").split() == [result["commit"]]
    assert unconfined.git("rev-parse", "HEAD^") == head
    assert unconfined.git("diff", "--name-status", "HEAD^", "HEAD") == "A\t1.txt"
    assert unconfined.git("show", "HEAD:1.txt") == "1"
    assert unconfined.git("log", "-1", "--format=%(trailers:key=Harness-Run,valueonly)").strip() == result["run"]
    assert unconfined.git("status", "--porcelain") == ""
    assert ("my own words" in unconfined.git("log", "-1", "--format=%B")) == ("my own words" in " ".join(ODD_WAYS[way]))


def test_a_worker_that_only_committed_and_took_back_leaves_the_branch_as_it_was(unconfined: House) -> None:
    """Commits without a net change are undone, and a ref keeps them."""
    head = unconfined.head()
    step = sh("git -c user.name=a -c user.email=a commit -q --allow-empty -m nothing", "git switch -q -c elsewhere")
    result: dict[str, Any] = unconfined.work(step)
    assert (result["outcome"], result["commit"], unconfined.head()) == ("no_op", "", head)
    assert unconfined.git("log", "-1", "--format=%s", f"refs/harness/refused/{result['run']}") == "nothing"


def test_a_persons_untracked_files_stay_out_of_the_commit(house: House) -> None:
    """Files from before the run are not the worker's work."""
    house.write("notes of a person.txt")
    result = house.work(WORK)
    assert house.git("show", "--name-only", "--format=", result["commit"]) == "1.txt"
    assert house.git("status", "--porcelain") == '?? "notes of a person.txt"'


def test_the_state_of_a_mission_below_is_taken_out_of_the_commit(house: House) -> None:
    """A mission that is started there would run its hooks. One that the repository has stays as it is, also in the mission's
    own folder, where the tree has a link."""
    for name in ("sub/.harness/config.toml", ".harness/config.toml"):
        blob = house.git("hash-object", "-w", house.layout.path(names.CONFIG))
        house.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    house.git("commit", "-q", "-m", "states")
    house.git("checkout", "-q", "--", "sub")
    assert house.harness("workspace", "accept").code == 0
    result = house.work(
        {"run": "mkdir -p sub/b/.Harness; echo x | tee sub/b/.Harness/x > sub/.harness/config.toml; touch 1.txt"}
    )
    assert house.git("show", "--name-status", "--format=", result["commit"]) == "A\t1.txt"
    assert [line.split(" (")[0] for line in result["kept_out"]] == ["sub/b/.Harness/", "sub/.harness/config.toml"]
    assert (house.project / "sub/.harness/config.toml").read_text() == Path(house.layout.path(names.CONFIG)).read_text()
    again = house.work({"run": "cat sub/.harness/config.toml > 2.txt"}, feature="F-002")
    assert house.git("show", again["commit"] + ":2.txt") == Path(house.layout.path(names.CONFIG)).read_text().rstrip(
        "\n"
    )


# secrets in the work

KEY = "AK" + "IA" + "Q3EGRZ7TNLW4VBMX"


def test_a_file_with_a_key_stays_out_of_the_commit_and_that_is_said(house: House) -> None:
    """On the run's line, in the result, in status, in the next prompt; its bytes are kept for a person alone."""
    house.script("worker", {"run": f"echo 1 > 1.txt; echo 'id = {KEY}' > conf.txt"})
    done = house.role("worker", "F-001")
    result = house.result()
    assert house.git("ls-tree", "--name-only", "-r", result["commit"]).split("\n") == ["1.txt", "SPEC.md", "main.py"]
    assert result["kept_out"] == ["conf.txt (line 1 holds a secret: aws-key-id)"]
    assert (
        "  warning: kept out of the commit: conf.txt (line 1 holds a secret: aws-key-id); see .harness/runs/"
        in done.out
    )
    kept = Path(house.layout.run(result["run"]).refused) / "kept-out" / "conf.txt"
    assert (kept.read_text(), kept.stat().st_mode & 0o077) == (f"id = {KEY}\n", 0)
    assert not (house.tree / "conf.txt").exists()
    assert "warning   kept out of the commit: conf.txt" in house.harness("status").out
    assert KEY not in done.out + house.harness("status").out + house.harness("runs", "show", result["run"]).out


def test_the_next_run_can_mend_such_a_file(house: House) -> None:
    """Its prompt says what stayed out; without the key the file is committed."""
    house.work({"run": f"echo 'id = {KEY}' > conf.txt"})
    house.role("validator", "F-001")
    result = house.work({"run": "echo 'id = $AWS_ACCESS_KEY_ID' > conf.txt"})
    assert "Secrets in its work: read them from the environment instead" in house.prompt()
    assert house.git("show", result["commit"] + ":conf.txt") == "id = $AWS_ACCESS_KEY_ID"
    assert (result["kept_out"], result["secrets"]) == ([], [])


def test_a_tracked_file_that_gets_a_key_is_committed_as_it_was(house: House) -> None:
    """The tree has it as before, and the run's own copy is kept."""
    result = house.work({"run": f"echo 1 > 1.txt; echo 'id = \"{KEY}\"' >> main.py"})
    assert house.git("diff", "--name-only", result["head"] + "^", result["head"]) == "1.txt"
    assert house.refused()["kept-out/main.py"].decode() == f"print('hello')\nid = \"{KEY}\"\n"
    assert (house.tree / "main.py").read_text() == "print('hello')\n"


def test_what_may_be_a_secret_is_committed_and_said(house: House) -> None:
    """A person decides; it is no reason to lose work."""
    house.script("worker", {"run": "echo 1 > 1.txt; echo 'password = \"hT7kq2Lm9zXw\"' > conf.txt"})
    done = house.role("worker", "F-001")
    result = house.result()
    assert house.git("show", result["commit"] + ":conf.txt") == 'password = "hT7kq2Lm9zXw"'
    words = "committed, and may be a secret: conf.txt line 1 (assignment)"
    assert (result["secrets"], f"  warning: {words}" in done.out) == ([words], True)
    assert words in str(json.loads(house.harness("status", "--json").out)["warnings"])


def test_work_that_was_cut_short_is_kept_without_the_file_too(house: House) -> None:
    """Its wip commit is a commit."""
    result = house.work({"run": f"echo 1 > 1.txt; echo 'id = {KEY}' > conf.txt"}, {"fail": "agent_error"})
    names = house.git("ls-tree", "--name-only", "-r", result["commit"]).split("\n")
    assert (result["outcome"], names) == ("agent_error", ["1.txt", "SPEC.md", "main.py"])


# what git ignores

GENERATES = "```sh\nmkdir -p src tools\necho 'test -f src/x' > tools/gen.sh\necho x >> src/x\n```\n"
IGNORED = 'ignored by .gitignore:1 "/*": tools/gen.sh'


def newest(house: House, role: str) -> str:
    """The newest run of a role."""
    return str([row["run"] for row in house.ran() if row["role"] == role][-1])


def test_a_file_that_git_ignores_is_named_until_a_run_has_mended_it(house: House) -> None:
    """Green in the tree and red in a clone: result, next prompt, `why` and escalation name the file and the rule, and show the
    receipt of the sweep with its notes."""
    house.write(".gitignore", "/*\n!/src/\n")
    house.write("playbooks/worker.md", GENERATES)
    house.write("playbooks/worker-F-001.6.md", "```sh\necho '!/tools/' >> .gitignore\n```\n")
    house.git("add", "-f", ".gitignore", "playbooks")
    house.git("commit", "-q", "-m", "only src")
    house.config('agent = "playbook"')
    lay(house, [feature(attempts=3, replanned=True)], Contract(claims=[claim("VAL-001", "sh tools/gen.sh")]))
    for number in range(2):
        house.role("worker", "F-001")
        assert house.result()["ignored"] == [IGNORED], "the second run found the file there, and left it"
        house.role("validator", "F-001")
        assert house.result()["verdict"] == "green"
        house.role("validator")
        assert house.result()["verdict"] == "red"
        prompt = house.prompt(newest(house, "worker"))
        assert (IGNORED in prompt, "not in a clone: tools/" in prompt) == (number == 1, number == 1)
    house.role("curator")  # which is due before a person is asked
    for text in (house.harness("why", "F-001").out, house.read("escalation.md")):
        assert f"  {IGNORED}\n" in text
        assert "note: only in the working folder, not in a clone: tools/\n" in text
    assert IGNORED in house.harness("runs", "show", newest(house, "worker")).out
    house.role("worker", "F-001", "--again")
    assert house.result()["ignored"] == []
    assert house.git("show", "--name-only", "--format=", house.result()["commit"]) == ".gitignore\ntools/gen.sh"
