"""A store on a Redis server: a string for each value, and one sorted set with the names. A write is one script, so it is atomic.

All keys of a store share one hash tag, so a cluster keeps them together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from harness.stores._engine import HISTORY_CHARS, EngineStore, NoAnswer, RefusedCall, prefix_end, unpack_entry
from harness.stores.store import ANY, Value

CHANGE = f"""
local known = redis.call('GETRANGE', KEYS[1], 0, {HISTORY_CHARS - 1})
if (ARGV[3] ~= '{ANY}' and ARGV[3] ~= known) or string.find(known, ARGV[2], 1, true) then return '' end
local history = string.sub(ARGV[2] .. known .. string.rep('-', {HISTORY_CHARS}), 1, {HISTORY_CHARS})
if ARGV[4] then
  redis.call('SET', KEYS[1], history .. '\\n' .. ARGV[4])
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
else
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return history
"""
# Faults of a server that is starting, or that runs a long script.
LATER = ("LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN")


class RedisEngine:
    """See Engine. `prefix`: begins all keys of this store."""

    def __init__(self, client: redis.Redis, prefix: str, address: str) -> None:
        self.client, self.prefix, self.address = client, "{" + prefix + "}", address
        self._change = client.register_script(CHANGE)

    def read(self, names: Sequence[str]) -> list[Value | None]:
        with _translate_faults():
            found = cast(list[bytes | None], self.client.mget([self._key(one) for one in names]))
        parts = [one and unpack_entry(one, f"{self.address}/{name}") for name, one in zip(names, found, strict=True)]
        return [Value(one[1], one[0]) if one else None for one in parts]

    def change(self, name: str, data: bytes | None, expect: str, token: str) -> str:
        values: list[str | bytes] = [name, token, expect]
        values += [] if data is None else [data]
        with _translate_faults():
            return cast(bytes, self._change(keys=[self._key(name), self._key()], args=values)).decode()

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        low = f"({after}" if after >= begins else f"[{begins}"
        bounds = low if after or begins else "-", f"({prefix_end(begins)}"
        with _translate_faults():
            found = cast(list[bytes], self.client.zrangebylex(self._key(), *bounds, 0, limit or -1))
        return [one.decode() for one in found]

    def _key(self, name: str = "") -> str:
        """The key of an entry, or without a name that of the set of all names."""
        return f"{self.prefix}/{name}" if name else f"{self.prefix}names"


@contextlib.contextmanager
def _translate_faults() -> Iterator[None]:
    try:
        yield
    except (redis.RedisError, TypeError) as fault:  # TypeError: for an unknown option
        is_denied = isinstance(fault, redis.AuthenticationError)  # it is also a ConnectionError
        is_lost = isinstance(fault, redis.ConnectionError | redis.TimeoutError) or str(fault).startswith(LATER)
        raise (NoAnswer if is_lost and not is_denied else RefusedCall)(str(fault)) from None


def store_at(url: str, address: str, prefix: str, seconds: float) -> EngineStore:
    """The store on this server. `seconds`: limit for one answer of the server."""
    once = Retry(NoBackoff(), 0)
    client = redis.Redis.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=once, protocol=2)
    return EngineStore(RedisEngine(client, prefix, address), address)
