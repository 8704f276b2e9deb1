"""The finalize of a turn, as one row `begun -> files -> done` that a second call continues, and that a later turn takes over."""

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
    """`gate`: the number of its turn at the gate of the thread; `fence`: of the turn that may go on with it; `manifest`: the
    digest that the turn began from; `result`: a text of the caller."""

    id: str
    thread_id: str
    gate: int
    fence: int
    manifest: str
    status: str
    result: str


def claim(tx: Transaction, thread: str) -> int:
    """The number of a new turn at the gate of the thread; turns with lower ones are late from now on."""
    sql = "update team_threads set gate = gate + 1 where tenant = $1 and id = $2 returning gate"
    return int(tx.ask(sql, str(directory.find(tx, "thread", thread)["id"]))[0]["gate"])


def newest(tx: Transaction, thread: str) -> Finalize | None:
    """The one of the newest turn that ended; None before the first."""
    thread_id = directory.find(tx, "thread", thread)["id"]
    found = tx.ask(f"{KNOWN} and status = 'done' order by gate desc limit 1", thread_id)
    return Finalize(**found[0]) if found else None


def begin(tx: Transaction, thread: str, gate: int, manifest: str) -> Finalize:
    """The row of this turn, as far as it is; a new one is `begun`. Raises LockBusy if a later turn has the thread, and
    BrokenFile if the turn began from another manifest."""
    thread_id = fenced(tx, thread, gate)
    tx.ask(
        "insert into team_finalizes (tenant, id, thread_id, gate, fence, manifest, status, result)"
        " values ($1, $2, $3, $4, $4, $5, 'begun', '') on conflict (tenant, thread_id, gate) do nothing",
        *(new_id(), thread_id, gate, manifest),
    )
    found = Finalize(**tx.ask(f"{KNOWN} and gate = $3", thread_id, gate)[0])
    if found.manifest != manifest:
        raise BrokenFile("the manifest", f"turn {gate} of the thread began from another one", remedy="Compose again.")
    return found


def pending(tx: Transaction, thread: str, gate: int) -> Finalize | None:
    """The oldest one that an earlier turn left, which is from now on for this turn to end. Raises LockBusy."""
    thread_id = fenced(tx, thread, gate)
    tx.ask(
        "update team_finalizes set fence = $3 where tenant = $1 and thread_id = $2 and gate < $3 and status <> 'done'",
        *(thread_id, gate),
    )
    found = tx.ask(f"{KNOWN} and gate < $3 and status <> 'done' order by gate limit 1", thread_id, gate)
    return Finalize(**found[0]) if found else None


def advance(tx: Transaction, one: Finalize, result: str = "") -> Finalize:
    """From `begun` to `files`: what changed is in the store. Raises LockBusy if a later turn took it over."""
    return _step(tx, one, BEGUN, FILES, result)


def done(tx: Transaction, one: Finalize, result: str = "") -> Finalize:
    """From `files` to `done`. More than once is once. Raises LockBusy if a later turn took it over."""
    return _step(tx, one, FILES, DONE, result)


def _step(tx: Transaction, one: Finalize, begins: str, ends: str, result: str) -> Finalize:
    if changed := tx.ask(STEP, one.id, one.fence, begins, ends, result):
        return Finalize(**changed[0])
    known = Finalize(**tx.ask(f"select {COLUMNS} from team_finalizes where tenant = $1 and id = $2", one.id)[0])
    if known.fence != one.fence or STEPS.index(known.status) < STEPS.index(ends):
        raise _late(one.fence)
    return known


def fenced(tx: Transaction, thread: str, gate: int) -> str:
    """The id of the thread, where this is now the newest turn that writes. Raises LockBusy."""
    thread_id = str(directory.find(tx, "thread", thread)["id"])
    sql = "update team_threads set gate = $3 where tenant = $1 and id = $2 and gate <= $3 returning id"
    if not tx.ask(sql, thread_id, gate):
        raise _late(gate)
    return thread_id


def _late(gate: int) -> LockBusy:
    return LockBusy(f"Turn {gate} is late: a later one has the thread, so it wrote nothing more. Ask again.")
