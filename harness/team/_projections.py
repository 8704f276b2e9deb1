"""Renders GOAL.md and PROGRESS.md of a thread from the database. They show the status; editing them does not change it."""

from __future__ import annotations

from harness.stores.database import Row

HEAD = "<!-- revision {revision} of the thread {name}: rendered from the database; edits here have no effect -->"
WAITS = {"nothing": "", "goal": "; until then the goal is not done", "tasks": "; until then no other task begins"}


def render(thread: Row) -> dict[str, bytes]:
    """{file name: bytes} for a thread as `status.overview` returns it; the first line has the revision."""
    goals, progress = list[str](), list[str]()
    for goal in thread["goals"]:
        goals += ["", f"## {goal['goal']} {goal['title']}", "", _goal(goal)]
        progress += _progress(goal, [task for task in thread["tasks"] if task["goal"] == goal["goal"]])
    pages = {
        "GOAL.md": ["# Goals", *(goals or ["", "There is no goal yet."])],
        "PROGRESS.md": ["# Progress", *(progress or ["", "There is no goal yet."])],
    }
    return {name: "\n".join([HEAD.format_map(thread), *lines, ""]).encode() for name, lines in pages.items()}


def _goal(goal: Row) -> str:
    review = {
        "none": "no acceptance is needed",
        "task": f"{goal['accepts']} accepts each task{WAITS[goal['blocks']]}",
        "goal": f"{goal['accepts']} accepts the goal",
    }[goal["mode"]]
    return f"{goal['status']}, owned by {goal['owner']}; {review}{_reason(goal)}"


def _progress(goal: Row, tasks: list[Row]) -> list[str]:
    finished = sum(task["status"] == "done" for task in tasks)
    needed = sum(task["status"] != "dropped" for task in tasks)
    rows = [
        f"- [{'x' if one['status'] == 'done' else ' '}] {one['task']} {one['title']}: {one['status']}{_reason(one)}"
        for one in tasks
    ]
    return ["", f"## {goal['goal']} {goal['title']}: {goal['status']}, {finished} of {needed} tasks done", "", *rows]


def _reason(row: Row) -> str:
    return f" ({row['who']}: {row['why']})" if row["why"] else ""
