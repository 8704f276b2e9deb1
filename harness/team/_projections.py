"""GOAL.md and PROGRESS.md of a thread, rendered from its rows: what a reader sees of its status, and never the status itself."""

from __future__ import annotations

from harness.stores.database import Row

HEAD = "<!-- revision {revision} of the thread {name}: written from the database; text that is changed here is not read -->"
WAITS = {"nothing": "", "goal": "; until then the goal is not done", "tasks": "; until then no other task begins"}


def rendered(at: Row) -> dict[str, bytes]:
    """{file name: its bytes} of a thread as `status.overview` has it; the first line has the revision."""
    goals = [line for goal in at["goals"] for line in ("", f"## {goal['goal']} {goal['title']}", "", _goal(goal))]
    steps = [
        line
        for goal in at["goals"]
        for line in _progress(goal, [one for one in at["tasks"] if one["goal"] == goal["goal"]])
    ]
    made = {"GOAL.md": ["# Goals", *(goals or ["", "There is none yet."])]}
    made["PROGRESS.md"] = ["# Progress", *(steps or ["", "There is no goal yet."])]
    return {name: "\n".join([HEAD.format_map(at), *lines, ""]).encode() for name, lines in made.items()}


def _goal(goal: Row) -> str:
    review = {
        "none": "no acceptance is needed",
        "task": f"{goal['accepts']} accepts each task{WAITS[goal['blocks']]}",
        "goal": f"{goal['accepts']} accepts the goal",
    }[goal["mode"]]
    return f"{goal['status']}, owned by {goal['owner']}; {review}{_reason(goal)}"


def _progress(goal: Row, tasks: list[Row]) -> list[str]:
    ended, needed = (
        sum(one["status"] in states for one in tasks)
        for states in (("done",), ("todo", "doing", "blocked", "review", "done"))
    )
    rows = [
        f"- [{'x' if one['status'] == 'done' else ' '}] {one['task']} {one['title']}: {one['status']}{_reason(one)}"
        for one in tasks
    ]
    return ["", f"## {goal['goal']} {goal['title']}: {goal['status']}, {ended} of {needed} tasks done", "", *rows]


def _reason(row: Row) -> str:
    return f" ({row['who']}: {row['why']})" if row["why"] else ""
