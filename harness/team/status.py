"""Goals and tasks of a thread, which change by verbs only: each is one transaction, with who and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from harness.base.errors import RequestRefused, UsageFault
from harness.base.record import Record
from harness.stores.database import Row
from harness.team import _audit, _projections, directory
from harness.team.database import Attribution, Team, Transaction, new_id

VERBS = {  # with `…` where the reason must be given; `team_transitions` has which apply
    "start": "Begin a task",
    "block": "Say what a task waits for …",
    "done": "End it; by its goal's review policy it may first need an acceptance",
    "drop": "End what is not needed …",
    "reopen": "Begin again what has ended …",
    "accept": "Accept what waits for it",
    "reject": "Send back what waits for its acceptance …",
}
KINDS = {"goal": [verb for verb in VERBS if verb not in ("start", "block")], "task": [*VERBS]}
JUDGING = ("accept", "reject")
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
    """Of a goal. `mode`: whether each `task`, the `goal` or `none` needs an acceptance; `owner` and `accepts`: users, by default
    the thread's user and the owner; `blocks`: while a task waits for it, the `goal` is not done, or no other `tasks` begin."""

    owner: str = ""
    mode: str = "none"
    accepts: str = ""
    blocks: str = "goal"


def add_goal(tx: Transaction, thread: str, title: str, policy: ReviewPolicy, by: Attribution) -> Row:
    """A new goal of a thread. Raises UsageFault, and RequestRefused for who may not."""
    if policy.mode not in REVIEWS or policy.blocks not in BLOCKS:
        raise UsageFault(f"A review is of {', '.join(REVIEWS)}, and blocks {', '.join(BLOCKS)}.")
    at, who = directory.find(tx, "thread", thread), _known(tx, by.who)

    def act() -> Row:
        owner = directory.find(tx, "user", policy.owner or at["user_id"])["id"]
        accepts = directory.find(tx, "user", policy.accepts or owner)["id"]
        number = _number(tx, at["id"], who)
        tx.ask(
            "insert into team_goals (tenant, id, number, thread_id, title, status, owner_id, accepts_id, mode, blocks, who, why)"
            " values ($1, $2, $3, $4, $5, 'open', $6, $7, $8, $9, $10, $11)",
            *(
                new_id(),
                number,
                at["id"],
                _audit.text_of("title", title),
                owner,
                accepts,
                policy.mode,
                policy.blocks,
                who,
                by.why,
            ),
        )
        return _shown(tx, "goal", f"G-{number}")

    asked = {"thread": at["name"], "title": title, **policy.asdict()}
    return _audit.once(tx, "goal add", asked, by.replace(who=who), act)


def add_task(tx: Transaction, goal: str, title: str, by: Attribution) -> Row:
    """A new task of an open goal, such as `G-1`. Raises UsageFault, and RequestRefused."""
    row, who = find(tx, "goal", goal), _known(tx, by.who)

    def act() -> Row:
        number = _number(tx, row["thread_id"], who)
        if (status := find(tx, "goal", goal)["status"]) != "open":
            raise RequestRefused(f"{row['goal']} is {status}, so it takes no task.")
        tx.ask(
            "insert into team_tasks (tenant, id, number, goal_id, title, status, who, why)"
            " values ($1, $2, $3, $4, $5, 'todo', $6, $7)",
            *(new_id(), number, row["id"], _audit.text_of("title", title), who, by.why),
        )
        return _shown(tx, "task", f"T-{number}")

    return _audit.once(tx, "task add", {"goal": row["goal"], "title": title}, by.replace(who=who), act)


def change(tx: Transaction, kind: str, name: str, verb: str, by: Attribution) -> Row:
    """A verb of KINDS on a goal or a task, such as `T-2`. Raises UsageFault for an unknown one or a missing reason, and
    RequestRefused for what does not apply now, or who may not."""
    if verb not in KINDS[kind]:
        raise UsageFault(f"There is no verb '{verb}' of a {kind}.")
    if VERBS[verb].endswith("…") and not by.why.strip():
        raise UsageFault(f'Say why: {kind} {verb} {name} "…"')
    row, who = find(tx, kind, name), _known(tx, by.who)

    def act() -> Row:
        _lock(tx, row["thread_id"])
        if verb not in JUDGING:  # which is for one user alone
            _check_access(tx, row["thread_id"], who)
        person = directory.find(tx, "user", who.removeprefix("user/"))["id"] if who.startswith("user/") else None
        if not tx.ask(TASK if kind == "task" else GOAL, row["id"], verb, who, by.why, person):
            raise RequestRefused(_refusal(tx, kind, find(tx, kind, name), verb))
        return _shown(tx, kind, name)

    return _audit.once(tx, f"{kind} {verb}", {kind: row[kind]}, by.replace(who=who), act)


def overview(tx: Transaction, thread: str) -> Row:
    """A thread with its `goals` and their `tasks`, in their order. Raises UsageFault for an unknown one."""
    at = directory.thread(tx, thread)
    goals = tx.ask(f"{GOALS} and goal.thread_id = $2 order by goal.number", at["id"])
    return {**at, "goals": goals, "tasks": tx.ask(f"{TASKS} and goal.thread_id = $2 order by task.number", at["id"])}


def listed(tx: Transaction, thread: str, kind: str) -> list[Row]:
    """The goals or tasks of a thread. Raises UsageFault for an unknown one."""
    rows: list[Row] = overview(tx, thread)[f"{kind}s"]
    return rows


def tools_of(team: Team, tenant: str, thread: str, who: str) -> list[Callable[..., Row]]:
    """The verbs as functions for an agent, on one thread in its name (`agent/scribe`). Each returns the row it changed, and
    `files`: the projections as they are then, by name; raises as the verbs."""

    def carried_out(kind: str, name: str, act: Callable[[Transaction], Row]) -> Row:
        with team.transaction(tenant) as tx:
            if find(tx, kind, name)["thread_id"] != directory.find(tx, "thread", thread)["id"]:
                raise UsageFault(f"{name} is not of this thread.")
            row, shown = act(tx), _projections.rendered(overview(tx, thread))
        return {**row, "files": {file: data.decode() for file, data in shown.items()}}

    def task_add(goal: str, title: str, why: str = "") -> Row:
        """Add a task to a goal, such as G-1."""
        return carried_out("goal", goal, lambda tx: add_task(tx, goal, title, Attribution(who=who, why=why)))

    def task_status(task: str, verb: Literal["start", "block", "done", "drop", "reopen"], why: str) -> Row:
        """Change the status of a task, such as T-2. GOAL.md and PROGRESS.md only show it: editing them changes nothing."""
        return carried_out("task", task, lambda tx: change(tx, "task", task, verb, Attribution(who=who, why=why)))

    def goal_status(goal: str, verb: Literal["done", "drop", "reopen"], why: str) -> Row:
        """Change the status of a goal, such as G-1."""
        return carried_out("goal", goal, lambda tx: change(tx, "goal", goal, verb, Attribution(who=who, why=why)))

    return [task_add, task_status, goal_status]


def find(tx: Transaction, kind: str, name: str) -> Row:
    """A goal such as `G-1`, or a task such as `T-2`. Raises UsageFault for an unknown one."""
    digits = name.upper().removeprefix(f"{kind[0].upper()}-")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else 0
    if found := tx.ask(f"{GOALS if kind == 'goal' else TASKS} and {kind}.number = $2", number):
        return found[0]
    raise UsageFault(f"There is no {kind} {name!r} in this tenant. It is named as {kind[0].upper()}-1.")


def _known(tx: Transaction, who: str) -> str:
    """Who it is, as `user/NAME` or `agent/NAME`. Raises UsageFault."""
    kind, row = directory.holder(tx, who)
    return f"{kind}/{row['name']}"


def _lock(tx: Transaction, thread_id: str) -> None:
    """Other verbs of the thread wait until this transaction ends. Raises UsageFault for one in an archived space."""
    directory.active_thread(tx, thread_id)
    tx.ask("update team_threads set revision = revision + 1 where tenant = $1 and id = $2", thread_id)


def _check_access(tx: Transaction, thread_id: str, who: str) -> None:
    """Raises RequestRefused for who may not change a thread's status: its user, its agent, and those who may write in its space
    may."""
    row, (kind, holder) = directory.thread(tx, thread_id), directory.holder(tx, who)
    if holder["id"] != row[f"{kind}_id"] and directory.granted(tx, row["space_id"], kind, holder["id"]) != "write":
        raise RequestRefused(f"{who} may not change the thread '{row['name']}'. See: harness team grant.")


def _number(tx: Transaction, thread_id: str, who: str) -> int:
    """As `_lock` and `_check_access`; returns the number of a new goal or task, which is one of the tenant's."""
    _lock(tx, thread_id)
    _check_access(tx, thread_id, who)
    return int(tx.ask("update team_tenants set last = last + 1 where id = $1 returning last")[0]["last"])


def _shown(tx: Transaction, kind: str, name: str) -> Row:
    """What a verb returns."""
    row = find(tx, kind, name)
    at = directory.thread(tx, row.pop("thread_id"))
    return {**row, "thread": at["name"], "revision": at["revision"]}


def _refusal(tx: Transaction, kind: str, row: Row, verb: str) -> str:
    """Why a verb did not apply to this row."""
    asked = "select verb from team_transitions where kind = $2 and mode = $3 and begins = $4 and $1 <> '' order by verb"
    verbs = [one["verb"] for one in tx.ask(asked, kind, row["mode"], row["status"])]
    if verb not in verbs:
        return f"{row[kind]} is {row['status']}, so '{verb}' does not apply; {', '.join(verbs)} do."
    if verb in JUDGING:
        return f"Only user/{row['accepts']} may {verb} {row[kind]}."
    if row.get("goal_status", "open") != "open":
        return f"{row['task']} is of {row['goal']}, which is {row['goal_status']}."
    return f"{row[kind]} waits: a task of {row['goal']} {'waits for its acceptance' if kind == 'task' else 'has not ended'}."
