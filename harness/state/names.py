"""The names of a mission's state files below `.harness`; `layout.py` turns them into paths."""

from __future__ import annotations

ORIGIN = "origin"  # whose `.harness` this is: ids that the state folders of persons have, too
FORMAT = "format"
MISSION = "mission.json"
GIT_RECORD = "git.json"
CONFIG = "config.toml"
SPEC = "spec.md"
ASKED_SPEC = "SPEC.md"  # in the project folder, written by a person
FEATURES = "features.json"
CONTRACT = "validation-contract.md"
CONTRACT_LOG = "contract-log.jsonl"
ISSUES = "issues.jsonl"
ORDERS = "orders.jsonl"
ANSWERS = "answers.jsonl"
CHECKPOINT_LOG = "checkpoints.jsonl"
STEERING = "steering.jsonl"
NOTICES = "notices.jsonl"
RESTORES = "restores.jsonl"
LANDINGS = "landings.jsonl"
WORKSPACE_LOG = "workspace.jsonl"
FORGOTTEN = "forgotten.jsonl"
RAW = "memory/raw.md"
SUMMARY = "memory/summary.md"
MEMORY = "memory/MEMORY.md"
ARCHIVE = "memory/archive.jsonl"
CURATED = "memory/curated.json"
LESSONS = "memory/lessons.jsonl"
RUN_LOG = "runs.jsonl"
ESCALATION = "escalation.md"
STEER = "STEER.md"
REPOSITORY = "repository.md"  # what `init` found, which a person may correct
STOP = "STOP"
PAUSE = "PAUSE"
LEDGER = "ledger.json"
SHIM = "bin/harness"
IGNORE = ".ignore"
PULL_REQUEST = "pull-request.md"  # the text of one, written by `land`
REPORT = "report.html"
SESSIONS = "sessions"
SANDBOXES = "sandboxes"
SCHEDULE = "schedule"
GIT_PRIVATE = "git-config"  # our git reads this instead of the repository's configuration

RUNS = "runs"
SNAPSHOTS = "snapshots"
CHECKPOINTS = "checkpoints"
ESCALATIONS = "escalations"
CACHE = "cache"
OBJECTS = "objects"
LOCKS = "locks"
MISSION_LOCK = "locks/mission"  # held for the milliseconds in which a run opens or settles
STATE_LOCK = "locks/state"  # held for the milliseconds of one append or one journal
LOOP_LOCK = "locks/loop"  # held by a looping run.sh
GIT = ".git"
HOOKS = "hooks"
JOURNAL = "journal"
REPLAYS = "replays"
ROLES = "roles"
ARCHIVED = "archive"  # archived missions
ARCHIVING = "archiving"  # exists while a mission is archived
RESTORING = "restoring"  # exists while a restore moves the mission's position

# the harness replaces these whole; an agent never writes them
MANAGED = (
    *(FORMAT, MISSION, GIT_RECORD, CONFIG, SPEC, FEATURES, CONTRACT),
    *(SUMMARY, MEMORY, CURATED, LESSONS, ESCALATION),
)
# these grow by whole JSON lines
APPEND_ONLY = (
    *(CONTRACT_LOG, ISSUES, ORDERS, ANSWERS, CHECKPOINT_LOG, STEERING, NOTICES),
    *(RESTORES, LANDINGS, FORGOTTEN, WORKSPACE_LOG, ARCHIVE, RUN_LOG),
)
# a curation shortens the first of these, so length alone does not identify its version
CURATED_TOO = (RAW, ARCHIVE)

CONTEXT, MANIFEST, PROMPT, REPLY = "context.json", "manifest.json", "prompt.md", "reply.md"
NOTES, RECEIPTS, RESULT, REFUSED = "notes.jsonl", "receipts.jsonl", "result.json", "refused"
REPLY_FAULT, ASKED, INBOX = "reply-fault.txt", "asked.jsonl", "inbox"
WORKSPACE = "workspace.json"
TASKS, TASK = "tasks", "task.json"
STREAM, STDERR, TURNS, RESULTS = "stream.jsonl", "stderr.log", "turns.jsonl", "results"


def of_run(run_id: str, name: str) -> str:
    """The name of a file in the folder of a run."""
    return f"{RUNS}/{run_id}/{name}"
