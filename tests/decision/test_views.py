"""Snapshots for decisions: the state on disk as recovery will leave it, without a lock and without a change."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.base import clock, encoding
from harness.base.errors import BrokenFile, UsageFault
from harness.decision import rules, views
from harness.memory import pages
from harness.mission import features, issues, lease, mission, runs
from harness.mission.features import Feature
from harness.run import opening, reconcile, recover
from harness.run.opening import RunRequest
from harness.state import files, journal, names, raw
from harness.state.layout import Layout
from harness.workplace import mission_lock, workplace
from tests.missions import House, copied, differences, enter, listing, until
from tests.planned import accept_all, feature, lay, reply, role, worked


def die(house: House, name: str = "F-001", *, commit: str = "", forget: bool = False) -> str:
    """A worker that is killed after its start; `commit` is the outcome in its commit. Returns its run."""
    run, _ = opening.open_run(RunRequest(layout=house.layout, role="worker", feature=name, trigger="leaving"))
    if commit:
        (house.tree / "made").write_text("text\n")
        reconcile.tree(run, run.outcome)
        workplace.commit(run, run.outcome.work.tree, "F-001: made", cut=commit in runs.UNFINISHED)
    run.lease.release()
    if forget:
        os.unlink(run.paths.lock)
    return run.id


def recovered(house: House) -> None:
    """What the next start does first."""
    with mission_lock.take(house.layout):
        recover.recover(house.layout)


def seen(house: House) -> list[tuple[str, str]]:
    """The features in the view."""
    return [(one.id, one.status) for one in views.queue(house.layout)]


# plain facts


def test_a_mission_as_it_begins(house: House) -> None:
    """Nothing halts it, nothing waits, and its own parts are there."""
    view = views.gather(house.layout)
    assert not (view.stop or view.pause or view.asks.now or view.escalation or view.spec_changed or view.swept)
    assert [one.id for one in view.features] == ["F-001", "F-002"]
    assert (view.uncurated, view.serious, view.newest, view.totals) == (0, [], [], runs.Totals())
    assert view.limits == rules.Caps(max_runs=200, max_hours=48, stall_after=3, max_cost_usd=None, max_tokens=None)


def test_what_people_lay_down_is_seen(house: House) -> None:
    """STOP, PAUSE, a checkpoint, an escalation, a changed spec, limits set by the user."""
    state = house.state
    (state / "STOP").touch()
    (state / "PAUSE").touch()
    (state / "checkpoints").mkdir()
    (state / "checkpoints" / "b.md").touch()
    (state / "checkpoints" / "a.md").touch()
    (state / "checkpoints" / "notes.txt").touch()
    (state / "escalation.md").write_text("---\nkind: setup\n---\nWhy.\n")
    house.write("SPEC.md", "# Other\n")
    house.config('agent = "scripted"\ncurate_after = 5\n[limits]\nmax_runs = 7\nmax_cost_usd = 1.5')
    view = views.gather(house.layout)
    assert (view.stop, view.pause, view.asks.now[0].name, view.escalation) == (True, True, "a", "setup")
    assert (view.spec_changed, view.curate_after) == (True, 5)
    assert (view.limits.max_runs, view.limits.max_cost_usd) == (7, 1.5)


def test_what_runs_left_is_seen(house: House) -> None:
    """Waiting notes, open serious issues, the newest runs first, the totals."""
    raw.append(house.layout, "worker", "F-001", [("TRICK", "a"), ("-", "b")])
    raw.append(house.layout, "curator", "", [("-", "folded")])
    changes = journal.Journal(house.layout)
    given = [{"title": one, "severity": one} for one in issues.SEVERITIES]
    changes.append(house.layout.path(names.ISSUES), issues.render(issues.new([], given, "person")))
    changes.commit()
    for number in range(4):
        worked(house, {"run": f"echo {number} > made"}, {"usage": {"input": 10}}, {"fail": "limit"})
    view = views.gather(house.layout)
    assert (view.uncurated, view.serious) == (2, ["I-001", "I-002"])
    assert [one.role for one in view.newest] == ["worker"] * 3
    assert view.newest[0].run == house.result()["run"]
    assert (view.totals.runs, view.totals.tokens) == (4, 40)


def test_entries_are_counted_up_to_what_makes_the_curator_due(house: House) -> None:
    """More entries make no difference, and a long file is not read for them."""
    raw.append(house.layout, "worker", "", [("-", "x")] * 50)
    assert views.gather(house.layout).uncurated == 20
    data = pages.render_curated(pages.CurationProgress(generation=1, first_seq=35, folded=45))
    Path(house.layout.path(names.RAW)).write_bytes(
        b"".join(Path(house.layout.path(names.RAW)).read_bytes().splitlines(keepends=True)[35:])
    )
    files.replace(house.layout.path(names.CURATED), data)
    assert views.gather(house.layout).uncurated == 5


@pytest.mark.parametrize(("text", "changed"), [("# Other\n", True), ("", False), (" \n\n", False), (None, False)])
def test_an_absent_or_empty_spec_asks_for_nothing(house: House, text: str | None, changed: bool) -> None:
    """A person who empties SPEC.md has not asked for another program."""
    if text is None:
        (house.project / "SPEC.md").unlink()
    else:
        house.write("SPEC.md", text)
    assert mission.spec_changed(house.layout) is changed


def test_without_a_mission_nothing_is_guessed(unbegun: House) -> None:
    """The message says what to do."""
    with pytest.raises(UsageFault, match="no mission"):
        views.gather(unbegun.layout)


BROKEN = [
    ("format", "3\n", "unknown format"),
    ("features.json", '{"features":[\n{"id":1}\n]}\n', "features.json, line 2"),
    ("config.toml", "agnet = 1\n", "config.toml, line 1"),
    ("escalation.md", "what now?\n", "escalation.md, line 1"),
    ("issues.jsonl", "{}\n", "issues.jsonl, line 1"),
    ("runs.jsonl", "{}\n", "runs.jsonl"),
    ("memory/curated.json", "[]\n", "curated.json"),
]


@pytest.mark.parametrize(("name", "text", "said"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_file_that_is_broken_is_named_and_never_read_as_empty(house: House, name: str, text: str, said: str) -> None:
    """Absent, empty and broken are three different answers."""
    (house.state / name).write_text(text)
    with pytest.raises(BrokenFile, match=said.replace(".", r"\.")):
        views.gather(house.layout)


def test_looking_changes_nothing(house: House) -> None:
    """No lock, no repair, no file, also after a run has died; and no held lock blocks it."""
    die(house)
    held = mission_lock.take(house.layout)
    views.gather(house.layout)
    before = listing(house.project, ".harness/cache")
    for _ in range(2):
        views.gather(house.layout)
    assert differences(before, listing(house.project, ".harness/cache")) == []
    held.release()


# dead runs, as recovery will leave them


@pytest.mark.parametrize(("status", "attempts"), [("todo", 0), ("todo", 1), ("failing", 1), ("failing", 0)])
def test_a_died_worker_leaves_its_feature_where_it_was(house: House, status: str, attempts: int) -> None:
    """Also if the tries alone do not show it; the next start then finds what the view said."""
    lay(house, [feature("F-001", status=status, attempts=attempts), feature("F-002", status="passed")])
    die(house)
    assert house.feature().status == "in_progress"
    assert seen(house) == [("F-001", status), ("F-002", "passed")]
    recovered(house)
    assert house.feature().status == status


def test_a_worker_that_died_after_its_commit_goes_on_to_its_validation(house: House) -> None:
    """The commit names the run: the view shows it as recovery will roll it forward."""
    lay(house, [feature("F-001"), feature("F-002", status="passed")])
    die(house, commit="implemented")
    assert seen(house)[0] == ("F-001", "validating")
    assert rules.decide(views.gather(house.layout), 0).line == "NEXT validator F-001"
    recovered(house)
    assert house.feature().status == "validating"


def test_a_commit_of_cut_work_is_no_work_done(house: House) -> None:
    """The run died after its work was cut."""
    lay(house, [feature("F-001", status="failing", attempts=1), feature("F-002", status="passed")])
    die(house, commit="cut")
    assert seen(house)[0] == ("F-001", "failing")


def test_a_feature_whose_run_is_nowhere_is_not_stuck(house: House) -> None:
    """Whatever was lost, a worker can take it."""
    lay(house, [feature("F-001", status="in_progress", attempts=1), feature("F-002", status="in_progress")])
    assert seen(house) == [("F-001", "failing"), ("F-002", "todo")]


def test_a_living_run_keeps_its_feature(house: House) -> None:
    """Its lock is held: no second run gets the feature."""
    made, _ = opening.open_run(RunRequest(layout=house.layout, role="worker", feature="F-001", trigger="leaving"))
    assert seen(house)[0] == ("F-001", "in_progress")
    made.lease.release()
    assert seen(house)[0] == ("F-001", "todo")


def test_a_feature_whose_needs_have_passed_is_todo(house: House) -> None:
    """All of them, not one; and a feature without named needs stays blocked."""
    waiting = feature("F-001", status="blocked")
    waiting.note("t", "r", "needs", text="both", features=["F-002", "F-003"])
    alone = feature("F-004", status="blocked")
    others = [feature("F-002", status="passed"), feature("F-003", status="passed")]
    lay(house, [waiting, *others, alone])
    assert seen(house)[0] == ("F-001", "todo")
    assert seen(house)[3] == ("F-004", "blocked")
    lay(house, [waiting, others[0], others[1].replace(status="failing"), alone])
    assert seen(house)[0] == ("F-001", "blocked")


# proof, and standstill


def passed(house: House) -> House:
    """All features passed, with a check that passes in every clone."""
    found: list[Feature] = [one.replace(status="passed") for one in features.load(house.layout)]
    for name in ("1.txt", "2.txt"):
        house.write(name)
    house.git("add", "-A")
    house.git("commit", "-q", "-m", "both")
    house.lay(*found)
    return house


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Path:
    """Such a mission with a green sweep; tests work on copies."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("finished")
        house = passed(copied(template, folder, enter(patch, folder)))
        assert not views.gather(house.layout).swept
        assert role(house, "validator") == 0
        return folder


@pytest.fixture
def swept(bare: House, finished: Path) -> House:
    """A copy of it."""
    return copied(finished, bare.folder, bare.env)


CHANGES: dict[str, Any] = {
    "the tree": lambda house: (house.write("more"), house.git("add", "more"), house.git("commit", "-q", "-m", "more")),
    "the contract": lambda house: Path(house.layout.path(names.CONTRACT)).write_text(
        house.read("validation-contract.md") + "\n"
    ),
    "the spec": lambda house: Path(house.layout.path(names.SPEC)).write_text("# Other\n"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_sweep_is_good_for_exactly_one_tree_contract_and_spec(swept: House, what: str) -> None:
    """A change to any of them makes it due again; a commit without a file change does not."""
    assert views.gather(swept.layout).swept
    swept.git("commit", "-q", "--allow-empty", "-m", "only words")
    assert views.gather(swept.layout).swept
    CHANGES[what](swept)
    assert not views.gather(swept.layout).swept


def test_a_red_sweep_is_none(swept: House) -> None:
    """The newest sweep counts."""
    swept.git("rm", "-q", "--cached", "1.txt")
    swept.git("commit", "-q", "-m", "forgot")
    assert role(swept, "validator") == 10
    assert not views.swept(swept.layout)


UNPROVEN: dict[str, Any] = {
    "its result is gone": lambda run: os.unlink(run.result),
    "its result is junk": lambda run: Path(run.result).write_bytes(b"\xff{"),
    "its result says something else": lambda run: Path(run.result).write_text(
        Path(run.result).read_text().replace('"outcome":"ok"', '"outcome":"no_op"')
    ),
    "its receipts are gone": lambda run: os.unlink(run.receipts),
    "its receipts were changed": lambda run: Path(run.receipts).write_text(Path(run.receipts).read_text() + "\n"),
}


@pytest.mark.parametrize("what", UNPROVEN)
def test_a_sweep_without_its_receipts_is_none(swept: House, what: str) -> None:
    """A line in the run log alone ends no mission: result, digest and receipts must agree."""
    accept_all(swept)
    assert rules.decide(views.gather(swept.layout), 0).line == "DONE"
    UNPROVEN[what](swept.layout.run(swept.ran()[-1]["run"]))
    assert rules.decide(views.gather(swept.layout), 0).line == "NEXT validator"


def test_a_sealed_sweep_that_lacks_a_check_is_none(swept: House) -> None:
    """Every check of the contract needs a green receipt from that sweep."""
    assert views.swept(swept.layout)
    row = swept.ran()[-1]
    run = swept.layout.run(row["run"])
    first, *_ = Path(run.receipts).read_text().splitlines(keepends=True)
    Path(run.receipts).write_text(first)
    line = files.dump_json({**row, "seal": runs.seal(run)})
    Path(run.result).write_bytes(line)
    Path(swept.layout.path(names.RUN_LOG)).write_bytes(line)
    assert not views.swept(swept.layout)


def test_the_mark_of_a_run_is_what_the_view_computes_while_nothing_changes(house: House) -> None:
    """Three equal decisions without a change show up; any change of plan, contract, spec or HEAD is progress."""
    house.script("planner", reply(features=[], contract=[]), {"fail": "auth"})
    for _ in range(3):
        role(house, "planner")
    view = views.gather(house.layout)
    assert {one.mark for one in view.newest} == {view.mark} == {views.mark(house.layout)}
    house.git("commit", "-q", "--allow-empty", "-m", "somebody did something")
    assert views.gather(house.layout).mark != view.newest[0].mark


def test_the_mark_is_not_computed_where_it_cannot_matter(house: House) -> None:
    """It costs a git call; the last runs differ, so there is no standstill."""
    worked(house, {"run": "touch a"}, {"fail": "limit"})
    assert views.gather(house.layout).mark == ""


def test_the_mark_knows_what_is_about_to_be_written(house: House) -> None:
    """A run computes it before its journal lands."""
    pending: dict[str, bytes | None] = {names.SPEC: b"# Other\n"}
    expected = views.mark(house.layout, pending)
    assert expected != views.mark(house.layout)
    Path(house.layout.path(names.SPEC)).write_text("# Other\n")
    assert views.mark(house.layout) == expected


# waiting


def limited(house: House, until: int = 5_000_000_000, reason: str = "mine: five_hour limit until 14:05") -> None:
    """A worker's run whose vendor refused its agent."""
    worked(house, {"fail": "limit", "until": until, "reason": reason})


def test_after_a_limit_nobody_starts_until_the_vendor_lets_in(house: House) -> None:
    """The decision gives time and reason; then the worker goes on."""
    limited(house, reason="mine: five_hour\tlimit until 14:05\nand more")
    view = views.gather(house.layout)
    assert view.wait_until == house.result()["until"]
    assert view.wait_why == "mine: five_hour limit until 14:05"
    assert rules.decide(view, view.wait_since).line == f"WAIT {view.wait_until} mine: five_hour limit until 14:05"
    assert rules.decide(view, view.wait_until).line == "NEXT worker F-001"


def test_why_it_waits_is_one_short_line(house: House) -> None:
    """At most 80 characters, and no terminal control characters."""
    limited(house, reason="\x1b[31m" + "x" * 200)
    why = views.gather(house.layout).wait_why
    assert (len(why), why[:5], why[-1]) == (80, "xxxxx", "…")


def test_what_a_person_says_does_not_end_the_wait_and_a_newer_run_does(house: House) -> None:
    """The newest run counts."""
    limited(house)
    line = json.loads(house.read("runs.jsonl"))
    (house.state / "escalation.md").write_text("---\nkind: stuck\n---\n")
    assert house.harness("escalation", "answer", "go on").code == 0
    assert views.gather(house.layout).wait_until == line["until"]
    worked(house, {"run": "echo 1 > made"})
    assert views.gather(house.layout).wait_until == 0


@pytest.mark.parametrize(
    ("lines", "waits"),
    [
        (['agent = "scripted"', "check_seconds = 5"], True),
        (['agent = "mine"'], False),
        (['agent = ["scripted", "mine"]'], False),
        (['agent = "scripted"', "[roles.worker]", 'agent = "mine"'], False),
        (['agent = "scripted"', "[roles.planner]", 'agent = "mine"'], True),
        (['agent = "mine"', "[roles.worker]", 'agent = "scripted"'], True),
    ],
)
def test_another_agent_need_not_wait(house: House, lines: list[str], waits: bool) -> None:
    """The user gave the role of that run a new agent."""
    limited(house)
    house.config(*lines)
    assert bool(views.gather(house.layout).wait_until) == waits


def test_an_agent_that_was_there_but_not_asked_is_no_other_one(house: House) -> None:
    """Otherwise a list with an agent that is not installed would start run after run."""
    lines = ['agent = ["scripted", "gone"]', "[agents.gone]", 'command = ["no-such-program-here"]']
    house.config(*lines)
    limited(house)
    assert house.result()["agents"] == ["scripted"]
    assert views.gather(house.layout).wait_until > 0


YEARS = 20 * 365 * 86400


def by_clock(house: House, began: int, ended: int, seconds: float = 0.0) -> None:
    """As if the clock had been so many seconds ahead when the newest run was recorded, and when its vendor stated a limit."""
    found = runs.parse(house.read("runs.jsonl").encode().rstrip(b"\n").rpartition(b"\n")[2])[0]
    assert found is not None
    moved = found.replace(at=clock.stamp(clock.seconds_of(found.at) + began), until=found.until + ended)
    moved = moved.replace(seconds=seconds or found.seconds)
    moved = moved.replace(waits={name: until + ended for name, until in found.waits.items()})
    Path(house.layout.path(names.RUN_LOG)).write_bytes(encoding.dump_json(moved.asdict()))
    Path(house.layout.run(found.run).result).write_bytes(encoding.dump_json(moved.asdict()))
    journal.adopt(house.layout)


@pytest.mark.parametrize(
    ("began", "ended", "waits"),
    [
        (0, 0, True),
        (YEARS, YEARS, False),
        (0, YEARS, False),
        (-YEARS, 0, False),
        (-YEARS, -YEARS, False),
        (3600, 3600, False),
    ],
)
def test_a_clock_that_was_wrong_at_a_limit_makes_nobody_wait_for_years(
    house: House, began: int, ended: int, waits: bool
) -> None:
    """It was ahead or behind when the run began, when it ended, or both, and is right again: the vendor is asked."""
    limited(house, until=clock.now() + 600)
    by_clock(house, began, ended)
    assert house.harness("next").out.startswith("WAIT" if waits else "NEXT worker F-001"), house.harness("next")


def test_a_long_run_that_ends_at_a_limit_makes_the_next_wait(house: House) -> None:
    """The wait is counted from its end."""
    limited(house, until=clock.now() + 600)
    by_clock(house, 0, 0, seconds=7200.0)
    assert house.harness("next").out.startswith("WAIT"), house.harness("next")


def test_a_clock_that_was_wrong_keeps_no_agent_of_a_list_out(house: House) -> None:
    """The limit of one that another stood in for."""
    answer = 'command = ["sh", "-c", "cat > /dev/null; date >> 1.txt; echo done"]'
    house.config('agent = ["scripted", "mine"]', "[agents.mine]", answer)
    house.work({"fail": "limit", "reason": "full", "until": clock.now() + 1000})
    by_clock(house, YEARS, YEARS)
    assert house.work({"run": "touch asked"}, feature="F-002")["agents"] == ["scripted"]


def test_a_run_whose_folder_is_gone_is_waited_for_all_the_same(house: House) -> None:
    """Old runs may be removed."""
    limited(house)
    shutil.rmtree(house.layout.run(house.ran()[-1]["run"]).folder)
    assert views.gather(house.layout).wait_until > 0


def test_a_run_that_settles_while_somebody_decides_is_not_due_once_more(house: House) -> None:
    """Its claims are read before the queue: it is waited for, and the next look finds it gone."""
    house.lay(house.feature().replace(status="validating"), house.feature("F-002").replace(status="blocked"))
    slow = house.folder / "go"
    house.base = ('confine = "off"',)
    house.config('agent = "scripted"')
    house.script("validator", {"run": f"until test -e '{slow}'; do sleep 0.02; done"}, {"say": "nothing"})
    house.write("1.txt")
    house.git("add", "1.txt")
    house.git("commit", "-qm", "one")
    judging = house.begin_role("validator", "F-001")
    until(lambda: bool(lease.alive(house.layout)))

    def settled(layout: Layout) -> list[Feature]:
        found = features.load(layout)
        slow.touch()
        judging.wait()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "queue", settled)
        assert views.gather(house.layout).held
    assert not views.gather(house.layout).held
