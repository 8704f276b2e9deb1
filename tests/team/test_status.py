"""Goals and tasks: verbs, transitions, reviews, and races."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from harness.base.errors import HarnessError, RequestRefused, UsageFault
from harness.stores.database import Row
from harness.team import directory, status
from harness.team.database import Attribution, Team, open_team
from harness.team.status import ReviewPolicy
from tests.crash import TORTURE
from tests.stores.servers import together
from tests.team.conftest import ME, Place

ANN, BOB, SCRIBE = (Attribution(who=one, why="so") for one in ("ann", "bob", "agent/scribe"))
STATUSES = ("todo", "doing", "blocked", "review", "done", "dropped")
RACES = 1000 if TORTURE else 50
REFUSED = {  # (verb, of a task that is): the status then; all others are refused
    **{("start", one): "doing" for one in ("todo", "blocked")},
    **{("block", one): "blocked" for one in ("todo", "doing")},
    **{("drop", one): "dropped" for one in ("todo", "doing", "blocked", "review")},
    **{("reopen", one): "todo" for one in ("done", "dropped")},
}
REVIEWED = {
    "none": {("done", "todo"): "done", ("done", "doing"): "done"},
    "goal": {("done", "todo"): "done", ("done", "doing"): "done"},
    "task": {
        **{("done", one): "review" for one in ("todo", "doing")},
        ("accept", "review"): "done",
        ("reject", "review"): "doing",
    },
}


def goal(team: Team, tenant: str = "acme", **policy: str) -> str:
    """A new goal of the thread."""
    with team.transaction(tenant) as tx:
        return str(status.add_goal(tx, "deal", "Sign", ReviewPolicy(**policy), ANN)["goal"])


def task(team: Team, of: str, tenant: str = "acme") -> str:
    """A new task of a goal."""
    with team.transaction(tenant) as tx:
        return str(status.add_task(tx, of, "Call", SCRIBE)["task"])


def change(team: Team, name: str, verb: str, by: Attribution = ANN, tenant: str = "acme") -> Row:
    """A verb in a transaction of its own."""
    with team.transaction(tenant) as tx:
        return status.change(tx, "goal" if name[0] == "G" else "task", name, verb, by)


@pytest.mark.parametrize("mode", status.REVIEWS)
def test_each_verb_is_for_the_statuses_of_the_table_alone(team: Team, mode: str) -> None:
    """Of the 42 pairs each mode allows a few; a refused one names what does apply, and changes nothing."""
    of = goal(team, mode=mode, blocks="nothing")
    name = task(team, of)
    for begins in STATUSES:
        for verb in status.VERBS:
            with team.transaction("acme") as tx:
                tx.execute("update team_tasks set status = $2 where tenant = $1", begins)
            ends = {**REFUSED, **REVIEWED[mode]}.get((verb, begins))
            if ends:
                assert change(team, name, verb)["status"] == ends
            else:
                with pytest.raises(
                    RequestRefused, match=f"{name} is {begins}, so '{verb}' does not apply. Verbs that apply: "
                ):
                    change(team, name, verb)
                with team.transaction("acme") as tx:
                    assert status.find(tx, "task", name)["status"] == begins


def test_a_goal_ends_when_its_tasks_have_and_takes_no_verb_of_a_task_then(team: Team) -> None:
    """Until it is reopened."""
    of = goal(team)
    first, second = task(team, of), task(team, of)
    change(team, first, "done")
    with pytest.raises(RequestRefused, match="a task of G-1 has not ended"):
        change(team, of, "done")
    change(team, second, "drop")
    assert change(team, of, "done")["status"] == "done"
    for refused in (lambda: change(team, first, "reopen"), lambda: task(team, of)):
        with pytest.raises(RequestRefused, match="G-1"):
            refused()
    change(team, of, "reopen")
    assert change(team, first, "reopen")["status"] == "todo"


def test_only_who_the_policy_names_accepts_and_meanwhile_it_blocks_what_it_says(team: Team) -> None:
    """The owner by default; an agent never accepts; `nothing`, the `goal`, or other `tasks`."""
    for blocks in status.BLOCKS:
        of = goal(team, mode="task", accepts="bob", blocks=blocks)
        first, second = task(team, of), task(team, of)
        change(team, first, "done", SCRIBE)
        for by in (ANN, SCRIBE):
            with pytest.raises(RequestRefused, match=f"Only user/bob may accept {first}"):
                change(team, first, "accept", by)
        if blocks == "tasks":
            for verb in ("start", "done"):
                with pytest.raises(RequestRefused, match="is in review"):
                    change(team, second, verb)
        change(team, second, "drop")
        if blocks == "nothing":
            change(team, of, "done")
        else:
            with pytest.raises(RequestRefused, match="has not ended"):
                change(team, of, "done")
        assert change(team, first, "reject", BOB)["status"] == "doing"
    of = goal(team, mode="goal", accepts="bob")
    assert change(team, of, "done")["status"] == "review"
    with pytest.raises(RequestRefused, match="Only user/bob"):
        change(team, of, "accept")
    assert change(team, of, "accept", BOB)["status"] == "done"


def test_who_is_bound_to_the_thread_or_may_write_in_its_space_may_change_it(team: Team) -> None:
    """At that moment: a grant that is taken back ends it. Nobody is somebody unknown."""
    of = goal(team)
    with pytest.raises(RequestRefused, match="user/bob may not change the thread 'deal'"):
        change(team, of, "drop", BOB)
    for mode, may in (("read", False), ("write", True), ("", False)):
        with team.transaction("acme") as tx:
            directory.grant(tx, "bob", "sales", mode, ME)
        for verb in ("drop", "reopen") if may else ("drop",):
            if may:
                change(team, of, verb, BOB)
            else:
                with pytest.raises(RequestRefused):
                    change(team, of, verb, BOB)
    with pytest.raises(UsageFault, match="no user or agent 'eve'"):
        change(team, of, "done", Attribution(who="eve"))


def test_bad_input_is_one_line_and_changes_nothing(team: Team) -> None:
    """Another tenant's task is as unknown as one that is not there."""
    name = task(team, goal(team))
    for words, tenant, verb, by in (
        (name, "globex", "done", ANN),
        ("T-99", "acme", "done", ANN),
        ("T-x", "acme", "done", ANN),
        ("T-1' or '1", "acme", "done", ANN),
        (name, "acme", "finish", ANN),
        (name, "acme", "block", Attribution(who="ann")),
    ):
        with pytest.raises(UsageFault) as raised:
            change(team, words, verb, by, tenant)
        assert "\n" not in str(raised.value)
    with pytest.raises(UsageFault, match="title"), team.transaction("acme") as tx:
        status.add_task(tx, "G-1", "a\x1b[2J", ANN)
    with team.transaction("acme") as tx:
        assert [one["status"] for one in status.overview(tx, "deal")["tasks"]] == ["todo"]
        assert status.overview(tx, "deal")["revision"] == 2


def test_each_verb_leaves_who_and_why_and_a_new_revision(team: Team) -> None:
    """In its row and in the audit, in the name that the team knows."""
    name = task(team, goal(team))
    done = change(team, name, "done", Attribution(who="scribe", why="both signed"))
    assert (done["who"], done["why"], done["revision"], done["thread"]) == ("agent/scribe", "both signed", 3, "deal")
    with team.transaction("acme") as tx:
        rows = tx.execute("select verb, who, why, request from team_audit where tenant = $1 and verb = 'task done'")
    assert [(row["who"], row["why"], json.loads(row["request"])) for row in rows] == [
        ("agent/scribe", "both signed", {"task": name})
    ]


def test_an_agent_has_the_verbs_as_functions_on_its_thread(team: Team) -> None:
    """With what the projections are then; a task of another thread is not for it."""
    with team.transaction("acme") as tx:
        directory.add(tx, "thread", "other", ME, {"agent": "scribe", "space": "sales", "user": "ann"})
        status.add_goal(tx, "other", "Else", ReviewPolicy(), ANN)
    of = goal(team)
    add, task_status, goal_status = status.tools_of(team, "acme", "deal", "agent/scribe")
    name = add(of, "Call the bank")["task"]
    found = task_status(name, "done", "they agreed")
    assert (
        found["status"] == "done"
        and f"- [x] {name} Call the bank: done (agent/scribe: they agreed)" in found["files"]["PROGRESS.md"]
    )
    assert goal_status(of, "done", "all is said")["files"]["GOAL.md"].startswith("<!-- revision 4 ")
    with pytest.raises(UsageFault, match="G-1 does not belong to this thread"):
        add("G-1", "Elsewhere")


def test_a_task_that_is_done_twice_with_one_key_is_done_once(place: Place) -> None:
    """Whoever comes first: the other gets the same answer."""
    team = open_team(place.url)
    of = goal(team)
    for number in range(RACES // 5):
        name, found = task(team, of), list[Row]()
        by = Attribution(who="ann", key=f"key-{number}")
        together(lambda _, name=name, by=by, found=found: found.append(change(team, name, "done", by)), 5)  # type: ignore[misc]  # bound early
        assert Counter(one["repeated"] for one in found) == {False: 1, True: 4}
        assert len({one["revision"] for one in found}) == 1
    with team.transaction("acme") as tx:
        assert len(tx.execute("select key from team_audit where tenant = $1 and verb = 'task done'")) == RACES // 5


def test_of_two_writers_of_a_task_one_is_first_and_the_other_is_told(place: Place) -> None:
    """In two tenants at once, in which tasks have the same names: no verb is lost, none happens twice, none in the other."""
    team = open_team(place.url)
    names = {
        tenant: [task(team, of, tenant) for _ in range(RACES // 4)]
        for tenant in ("acme", "globex")
        for of in [goal(team, tenant)]
    }
    assert names["acme"] == names["globex"]
    outcomes = Counter[tuple[str, str, bool]]()

    def write(number: int) -> None:
        tenant, verb = ("acme", "globex")[number % 2], ("start", "drop")[number // 2]
        for name in names[tenant]:
            try:
                change(team, name, verb, ANN, tenant)
                outcomes[tenant, verb, True] += 1
            except RequestRefused:
                outcomes[tenant, verb, False] += 1
            except HarnessError as fault:
                raise AssertionError(fault) from fault

    together(write, 4)
    for tenant in names:
        with team.transaction(tenant) as tx:
            found = Counter(one["status"] for one in status.overview(tx, "deal")["tasks"])
            known = Counter(row["verb"] for row in tx.execute("select verb from team_audit where tenant = $1"))
        assert found == {"dropped": RACES // 4}  # whatever began is dropped, and what is dropped does not begin
        assert known["task drop"] == outcomes[tenant, "drop", True] == RACES // 4
        assert known["task start"] == outcomes[tenant, "start", True]
        assert outcomes[tenant, "start", True] + outcomes[tenant, "start", False] == RACES // 4
