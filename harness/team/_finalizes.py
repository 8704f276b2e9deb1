"""The finalize of a turn: one row, `begun -> files -> done`, which a second call continues and a later turn can take over."""

from __future__ import annotations

from harness.base.errors import BrokenFile, LockBusy
from harness.base.record import Record
from harness.team import directory
from harness.team.database import Transaction, new_id

BEGUN, FILES, DONE = STEPS = ("begun", "files", "done")
COLUMNS = "id, thread_id, gate, fence, manifest, status, result"
KNOWN = f"select {COLUMNS} from team_finalizes where tenant = $1 and thread_id = $2"
STEP = f"""update team_finalizes set status = $5, result = $6 where tenant = $1 and id = $2 and fence = $3 and status = $4
and exists (select 1 from team_threads where tenant = $1 and id = thread_id and gate <= $3) returning {COLUMNS}"""


class Finalize(Record, frozen=True):
    """`gate`: the number of its turn at the gate of the thread; `fence`: the number of the turn that may continue it;
    `manifest`: the digest of the manifest that the turn began from; `result`: a text of the caller."""

    id: str
    thread_id: str
    gate: int
    fence: int
    manifest: str
    status: str
    result: str


def claim(tx: Transaction, thread: str) -> int:
    """The number of a new turn at the gate of the thread. Turns with lower numbers can write nothing from now on."""
    sql = "update team_threads set gate = gate + 1 where tenant = $1 and id = $2 returning gate"
    return int(tx.execute(sql, str(directory.find(tx, "thread", thread)["id"]))[0]["gate"])


def newest(tx: Transaction, thread: str) -> Finalize | None:
    """The finalize of the newest turn that ended; None before the first."""
    thread_id = directory.find(tx, "thread", thread)["id"]
    found = tx.execute(f"{KNOWN} and status = 'done' order by gate desc limit 1", thread_id)
    return Finalize(**found[0]) if found else None


def begin(tx: Transaction, thread: str, gate: int, manifest: str) -> Finalize:
    """The finalize of this turn at its current status; a new one is `begun`. Raises LockBusy if a later turn has the thread,
    and BrokenFile if the turn began from another manifest."""
    thread_id = require_current(tx, thread, gate)
    tx.execute(
        "insert into team_finalizes (tenant, id, thread_id, gate, fence, manifest, status, result)"
        " values ($1, $2, $3, $4, $4, $5, 'begun', '') on conflict (tenant, thread_id, gate) do nothing",
        *(new_id(), thread_id, gate, manifest),
    )
    found = Finalize(**tx.execute(f"{KNOWN} and gate = $3", thread_id, gate)[0])
    if found.manifest != manifest:
        raise BrokenFile(
            "the manifest", f"turn {gate} of the thread began from another manifest", remedy="Compose again."
        )
    return found


def pending(tx: Transaction, thread: str, gate: int) -> Finalize | None:
    """The oldest unfinished finalize of an earlier turn, which this turn takes over. Raises LockBusy if a later turn has the
    thread."""
    thread_id = require_current(tx, thread, gate)
    tx.execute(
        "update team_finalizes set fence = $3 where tenant = $1 and thread_id = $2 and gate < $3 and status <> 'done'",
        *(thread_id, gate),
    )
    found = tx.execute(f"{KNOWN} and gate < $3 and status <> 'done' order by gate limit 1", thread_id, gate)
    return Finalize(**found[0]) if found else None


def advance(tx: Transaction, finalize: Finalize, status: str, result: str = "") -> Finalize:
    """Set the next status: `files` once the store has the changes, then `done`; a second call changes nothing. Raises LockBusy
    if a later turn took the finalize over."""
    before = STEPS[STEPS.index(status) - 1]
    if changed := tx.execute(STEP, finalize.id, finalize.fence, before, status, result):
        return Finalize(**changed[0])
    sql = f"select {COLUMNS} from team_finalizes where tenant = $1 and id = $2"
    known = Finalize(**tx.execute(sql, finalize.id)[0])
    if known.fence != finalize.fence or STEPS.index(known.status) < STEPS.index(status):
        raise _late(finalize.fence)
    return known


def require_current(tx: Transaction, thread: str, gate: int) -> str:
    """The id of the thread, in which no turn before this one can write from now on. Raises LockBusy if a later turn has it."""
    thread_id = str(directory.find(tx, "thread", thread)["id"])
    sql = "update team_threads set gate = $3 where tenant = $1 and id = $2 and gate <= $3 returning id"
    if not tx.execute(sql, thread_id, gate):
        raise _late(gate)
    return thread_id


def _late(gate: int) -> LockBusy:
    return LockBusy(f"Turn {gate} is late: a later turn has the thread, so this one wrote nothing more. Ask again.")
