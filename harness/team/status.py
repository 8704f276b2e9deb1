"""Goals and tasks of a thread. Only verbs change them: each is one transaction, with who calls it and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from harness.base.errors import RequestRefused, UsageFault
from harness.base.record import Record
from harness.state.layout import command
from harness.stores.database import Row
from harness.team import _audit, _projections, directory
from harness.team.database import Attribution, Team, Transaction, new_id

VERBS = {  # a `…` means that a reason is required; `team_transitions` says which verbs apply
    "start": "Begin a task",
    "block": "Block a task; say what it waits for …",
    "done": "Finish it; the review policy of the goal may require an acceptance first",
    "drop": "Drop what is not needed …",
    "reopen": "Reopen what has ended …",
    "accept": "Accept what is in review",
    "reject": "Send back what is in review …",
}
KINDS = {"goal": [verb for verb in VERBS if verb not in ("start", "block")], "task": [*VERBS]}
REVIEW_VERBS = ("accept", "reject")
REVIEWS, BLOCKS = ("none", "task", "goal"), ("nothing", "goal", "tasks")
TASK = """update team_tasks set status = step.ends, who = $4, why = $5 from team_transitions as step, team_goals as goal
where team_tasks.tenant = $1 and team_tasks.id = $2 and goal.tenant = $1 and goal.id = team_tasks.goal_id
and step.kind = 'task' and step.mode = goal.mode and step.verb = $3 and step.begins = team_tasks.status
and (step.begins = 'review' or goal.status = 'open') and (step.verb not in ('accept', 'reject') or goal.accepts_id = $6)
and (goal.blocks <> 'tasks' or step.begins in ('doing', 'review') or step.ends in ('todo', 'blocked', 'dropped') or not exists (
  select 1 from team_tasks as other where other.tenant = $1 and other.goal_id = goal.id and other.status = 'review'))
returning team_tasks.id"""
GOAL = """update team_goals set status = step.ends, who = $4, why = $5 from team_transitions as step
where team_goals.tenant = $1 and team_goals.id = $2
and step.kind = 'goal' and step.mode = team_goals.mode and step.verb = $3 and step.begins = team_goals.status
and (step.verb not in ('accept', 'reject') or team_goals.accepts_id = $6) and (step.verb <> 'done' or not exists (
  select 1 from team_tasks as task where task.tenant = $1 and task.goal_id = team_goals.id
  and (task.status in ('todo', 'doing', 'blocked') or (task.status = 'review' and team_goals.blocks <> 'nothing'))))
returning team_goals.id"""
GOALS = """select goal.id, 'G-' || goal.number as goal, goal.title, goal.status, goal.mode, goal.blocks, goal.who, goal.why,
owner.name as owner, accepts.name as accepts, goal.thread_id from team_goals as goal
join team_users as owner on owner.tenant = $1 and owner.id = goal.owner_id
join team_users as accepts on accepts.tenant = $1 and accepts.id = goal.accepts_id where goal.tenant = $1"""
TASKS = """select task.id, 'T-' || task.number as task, 'G-' || goal.number as goal, task.title, task.status, task.who, task.why,
goal.mode, goal.status as goal_status, accepts.name as accepts, goal.thread_id from team_tasks as task
join team_goals as goal on goal.tenant = $1 and goal.id = task.goal_id
join team_users as accepts on accepts.tenant = $1 and accepts.id = goal.accepts_id where task.tenant = $1"""


class ReviewPolicy(Record, frozen=True):
    """The review policy of a goal. `mode`: each `task`, the `goal` or `none` needs an acceptance; `owner` and `accepts`: users,
    by default the thread's user and the owner; `blocks`: while a task is in review, `nothing` waits, the `goal` cannot be done,
    or no other `tasks` begin."""

    owner: str = ""
    mode: str = "none"
    accepts: str = ""
    blocks: str = "goal"


def add_goal(tx: Transaction, thread: str, title: str, policy: ReviewPolicy, by: Attribution) -> Row:
    """Add a goal to a thread. Raises UsageFault for an invalid request, and RequestRefused if the caller may not."""
    if policy.mode not in REVIEWS or policy.blocks not in BLOCKS:
        raise UsageFault(f"The review is one of {', '.join(REVIEWS)}, and it blocks one of {', '.join(BLOCKS)}.")
    at, who = directory.find(tx, "thread", thread), _full_name(tx, by.who)

    def act() -> Row:
        owner = directory.find(tx, "user", policy.owner or at["user_id"])["id"]
        accepts = directory.find(tx, "user", policy.accepts or owner)["id"]
        number = _next_number(tx, at["id"], who)
        tx.execute(
            "insert into team_goals (tenant, id, number, thread_id, title, status, owner_id, accepts_id, mode, blocks, who, why)"
            " values ($1, $2, $3, $4, $5, 'open', $6, $7, $8, $9, $10, $11)",
            *(new_id(), number, at["id"], _audit.checked_text("title", title)),
            *(owner, accepts, policy.mode, policy.blocks, who, by.why),
        )
        return _result_row(tx, "goal", f"G-{number}")

    request = {"thread": at["name"], "title": title, **policy.asdict()}
    return _audit.run_once(tx, "goal add", request, by.replace(who=who), act)


def add_task(tx: Transaction, goal: str, title: str, by: Attribution) -> Row:
    """Add a task to an open goal, such as `G-1`. Raises UsageFault and RequestRefused as `add_goal`."""
    row, who = find(tx, "goal", goal), _full_name(tx, by.who)

    def act() -> Row:
        number = _next_number(tx, row["thread_id"], who)
        if (status := find(tx, "goal", goal)["status"]) != "open":
            raise RequestRefused(f"{row['goal']} is {status}, so no task can be added to it.")
        tx.execute(
            "insert into team_tasks (tenant, id, number, goal_id, title, status, who, why)"
            " values ($1, $2, $3, $4, $5, 'todo', $6, $7)",
            *(new_id(), number, row["id"], _audit.checked_text("title", title), who, by.why),
        )
        return _result_row(tx, "task", f"T-{number}")

    return _audit.run_once(tx, "task add", {"goal": row["goal"], "title": title}, by.replace(who=who), act)


def change(tx: Transaction, kind: str, name: str, verb: str, by: Attribution) -> Row:
    """Carry out a verb of KINDS on a goal or a task, such as `T-2`. Raises UsageFault for an unknown verb or a missing reason,
    and RequestRefused if the verb does not apply now or the caller may not."""
    if verb not in KINDS[kind]:
        raise UsageFault(f"There is no verb '{verb}' of a {kind}.")
    if VERBS[verb].endswith("…") and not by.why.strip():
        raise UsageFault(f'Say why: {kind} {verb} {name} "…"')
    row, who = find(tx, kind, name), _full_name(tx, by.who)

    def act() -> Row:
        _lock(tx, row["thread_id"])
        if verb not in REVIEW_VERBS:  # a review verb is for one user only
            _check_access(tx, row["thread_id"], who)
        person = directory.find(tx, "user", who.removeprefix("user/"))["id"] if who.startswith("user/") else None
        if not tx.execute(TASK if kind == "task" else GOAL, row["id"], verb, who, by.why, person):
            raise RequestRefused(_refusal(tx, kind, find(tx, kind, name), verb))
        return _result_row(tx, kind, name)

    return _audit.run_once(tx, f"{kind} {verb}", {kind: row[kind]}, by.replace(who=who), act)


def overview(tx: Transaction, thread: str) -> Row:
    """A thread with its `goals` and `tasks`, in order. Raises UsageFault for an unknown thread."""
    at = directory.thread(tx, thread)
    goals = tx.execute(f"{GOALS} and goal.thread_id = $2 order by goal.number", at["id"])
    return {
        **at,
        "goals": goals,
        "tasks": tx.execute(f"{TASKS} and goal.thread_id = $2 order by task.number", at["id"]),
    }


def list_rows(tx: Transaction, thread: str, kind: str) -> list[Row]:
    """The goals or the tasks of a thread. Raises UsageFault for an unknown thread."""
    rows: list[Row] = overview(tx, thread)[f"{kind}s"]
    return rows


def tools_of(team: Team, tenant: str, thread: str, who: str) -> list[Callable[..., Row]]:
    """The verbs as functions for an agent: for one thread, in the name of `who` (`agent/scribe`). Each returns the row that it
    changed, and as `files` the new projections by name; it raises as the verb."""

    def carry_out(kind: str, name: str, act: Callable[[Transaction], Row]) -> Row:
        with team.transaction(tenant) as tx:
            if find(tx, kind, name)["thread_id"] != directory.find(tx, "thread", thread)["id"]:
                raise UsageFault(f"{name} does not belong to this thread.")
            row, shown = act(tx), _projections.render(overview(tx, thread))
        return {**row, "files": {file: data.decode() for file, data in shown.items()}}

    def task_add(goal: str, title: str, why: str = "") -> Row:
        """Add a task to a goal, such as G-1."""
        return carry_out("goal", goal, lambda tx: add_task(tx, goal, title, Attribution(who=who, why=why)))

    def task_status(task: str, verb: Literal["start", "block", "done", "drop", "reopen"], why: str) -> Row:
        """Change the status of a task, such as T-2. GOAL.md and PROGRESS.md only show it: editing them changes nothing."""
        return carry_out("task", task, lambda tx: change(tx, "task", task, verb, Attribution(who=who, why=why)))

    def goal_status(goal: str, verb: Literal["done", "drop", "reopen"], why: str) -> Row:
        """Change the status of a goal, such as G-1."""
        return carry_out("goal", goal, lambda tx: change(tx, "goal", goal, verb, Attribution(who=who, why=why)))

    return [task_add, task_status, goal_status]


def find(tx: Transaction, kind: str, name: str) -> Row:
    """The goal, such as `G-1`, or the task, such as `T-2`, of this name. Raises UsageFault if there is none."""
    digits = name.upper().removeprefix(f"{kind[0].upper()}-")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0
    if found := tx.execute(f"{GOALS if kind == 'goal' else TASKS} and {kind}.number = $2", number):
        return found[0]
    raise UsageFault(f"There is no {kind} {name!r} in this tenant. Names are like {kind[0].upper()}-1.")


def _full_name(tx: Transaction, who: str) -> str:
    """The name of a user or agent as `user/NAME` or `agent/NAME`. Raises UsageFault."""
    kind, row = directory.find_holder(tx, who)
    return f"{kind}/{row['name']}"


def _lock(tx: Transaction, thread_id: str) -> None:
    """Make other verbs on the thread wait until this transaction ends. Raises UsageFault if its space is archived."""
    directory.active_thread(tx, thread_id)
    tx.execute("update team_threads set revision = revision + 1 where tenant = $1 and id = $2", thread_id)


def _check_access(tx: Transaction, thread_id: str, who: str) -> None:
    """Raises RequestRefused unless `who` is the thread's user or agent, or may write in its space."""
    row, (kind, holder) = directory.thread(tx, thread_id), directory.find_holder(tx, who)
    if holder["id"] != row[f"{kind}_id"] and directory.granted_mode(tx, row["space_id"], kind, holder["id"]) != "write":
        raise RequestRefused(f"{who} may not change the thread '{row['name']}'. See: {command('team grant --help')}")


def _next_number(tx: Transaction, thread_id: str, who: str) -> int:
    """As `_lock` and `_check_access`; returns the number of a new goal or task, unique in the tenant."""
    _lock(tx, thread_id)
    _check_access(tx, thread_id, who)
    return int(tx.execute("update team_tenants set last = last + 1 where id = $1 returning last")[0]["last"])


def _result_row(tx: Transaction, kind: str, name: str) -> Row:
    """The row that a verb returns."""
    row = find(tx, kind, name)
    at = directory.thread(tx, row.pop("thread_id"))
    return {**row, "thread": at["name"], "revision": at["revision"]}


def _refusal(tx: Transaction, kind: str, row: Row, verb: str) -> str:
    """Why a verb did not apply to this row."""
    sql = "select verb from team_transitions where kind = $2 and mode = $3 and begins = $4 and $1 <> '' order by verb"
    verbs = [one["verb"] for one in tx.execute(sql, kind, row["mode"], row["status"])]
    if verb not in verbs:
        return f"{row[kind]} is {row['status']}, so '{verb}' does not apply. Verbs that apply: {', '.join(verbs)}."
    if verb in REVIEW_VERBS:
        return f"Only user/{row['accepts']} may {verb} {row[kind]}."
    if row.get("goal_status", "open") != "open":
        return f"{row['task']} belongs to {row['goal']}, which is {row['goal_status']}."
    return f"{row[kind]} waits: a task of {row['goal']} {'is in review' if kind == 'task' else 'has not ended'}."
