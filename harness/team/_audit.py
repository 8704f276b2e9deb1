"""Who did what and why: one row for each verb, written with what it changes; a key makes a verb that is sent again happen
once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from harness.base import clock
from harness.base.errors import UsageFault
from harness.stores.database import Row
from harness.team.database import Attribution, Transaction, new_id

MAX_CHARS = 4000  # of a title or a reason


def once(tx: Transaction, verb: str, request: Mapping[str, object], by: Attribution, act: Callable[[], Row]) -> Row:
    """What `act` returns, with the row of the verb. If the key is there, nothing happens, and the result is that of the first
    time, with `repeated`. Raises UsageFault for a key that was used for something else."""
    asked = json.dumps(request, ensure_ascii=False, sort_keys=True)
    key = text_of("key", by.key) if by.key else new_id()
    said = (text_of("name of who does it", by.who), text_of("reason", by.why) if by.why else "")
    made = tx.ask(
        "insert into team_audit (tenant, key, verb, request, result, who, why, at) values ($1, $2, $3, $4, '', $5, $6, $7)"
        " on conflict (tenant, key) do nothing returning key",
        *(key, verb, asked, *said, clock.stamp(clock.now())),
    )
    if not made:
        known = tx.ask("select verb, request, result from team_audit where tenant = $1 and key = $2", key)[0]
        if (known["verb"], known["request"]) != (verb, asked):
            raise UsageFault(f"The key '{key}' was used for: {known['verb']} {known['request']}. Choose another one.")
        return {**json.loads(known["result"]), "repeated": True}
    result = act()
    kept = json.dumps(result, ensure_ascii=False)
    tx.ask("update team_audit set result = $3 where tenant = $1 and key = $2", key, kept)
    return {**result, "repeated": False}


def text_of(what: str, text: str) -> str:
    """A text of a person on one line. Raises UsageFault for one that is empty, too long, or has other characters."""
    found = " ".join(text.split())
    if not found or len(found) > MAX_CHARS or not found.isprintable():
        raise UsageFault(f"The {what} needs a text of at most {MAX_CHARS} printable characters.")
    return found
