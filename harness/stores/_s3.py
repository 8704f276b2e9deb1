"""A store in a bucket of S3 or of a compatible server: an object for each value, below a prefix.

Every write is conditional, so the server must honour conditions; the first write tests that. S3 cannot delete conditionally, so a
removed value becomes a tombstone: an object with only the tokens of its writes, which no list shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from harness.stores._engine import HISTORY_CHARS, EngineStore, NoAnswer, RefusedCall, pack_entry, unpack_entry
from harness.stores.store import ABSENT, ANY, Value

if TYPE_CHECKING:  # obstore has these for type checkers alone
    from obstore import PutMode  # see above
    from obstore.store import ClientConfig, RetryConfig, S3Config  # see above

T = TypeVar("T")

CONCURRENT_REQUESTS = 16  # requests
PROBE = "%probe"  # no encoded key has this form
PAGE = 1000  # names in one answer
TRIES = 50  # of one write, against other writers
REFUSED = re.compile(r"status code: (507|4(?!08|25|29)\d\d)")  # a bad request, missing rights or no space


class _Known(NamedTuple):
    history: str
    tag: str
    exists: bool = True  # False: it is a tombstone, or absent

    @property
    def version(self) -> str:
        return f"{self.history}/{self.tag}"


class S3Engine:
    """See Engine. A version has the tokens and the tag of its object, so that a write need not read them."""

    def __init__(self, bucket: S3Store, address: str) -> None:
        self.bucket, self.address, self.is_probed = bucket, address, False

    def read(self, names: Sequence[str]) -> list[Value | None]:
        if len(names) == 1:
            return [self._read(names[0])]
        with ThreadPoolExecutor(CONCURRENT_REQUESTS) as together:
            return list(together.map(self._read, names))

    def _read(self, name: str) -> Value | None:
        known, data = self._fetch(name)
        return Value(unpack_entry(data, f"{self.address}/{name}")[1], known.version) if known.exists else None

    def _fetch(self, name: str, end: int = 0) -> tuple[_Known, bytes]:
        """An object's state, and its bytes; with `end` only so many."""

        def fetch() -> tuple[_Known, bytes]:
            found = obstore.get(self.bucket, name, options={"range": (0, end)} if end else None)
            data, meta = bytes(found.bytes()), found.meta
            history = data[:HISTORY_CHARS].decode("ascii", "replace")
            return _Known(history, meta["e_tag"] or "", meta["size"] != HISTORY_CHARS), data

        return _call(fetch, (_Known("", "", False), b""))

    def _known(self, name: str) -> _Known:
        return self._fetch(name, HISTORY_CHARS + 1)[0]

    def change(self, name: str, data: bytes | None, expect: str, token: str) -> str:
        """See Engine. What is removed becomes a tombstone."""
        self._probe()
        history, _, tag = expect.partition("/")
        known = self._known(name) if expect == ANY else _Known(history, tag or expect)
        for _ in range(TRIES):
            if token in known.history or (data is None and not known.exists):
                return ""
            if put := self._put(name, known, data, token):
                return put
            before, known = known.tag, self._known(name)
            if not (expect == ANY or known.tag == before or (expect == ABSENT and not known.exists)):
                return ""
        raise NoAnswer("too many writers at once")

    def _put(self, name: str, known: _Known, data: bytes | None, token: str) -> str:
        """Replace the known object; returns the new version, "" if the known one is not there any more."""
        body = pack_entry(token, known.history, data or b"")[: HISTORY_CHARS if data is None else None]
        tag = self._replace(name, body, known.tag)
        return tag and _Known(body[:HISTORY_CHARS].decode(), tag).version

    def _replace(self, name: str, body: bytes, tag: str) -> str:
        """Replace the object with this tag, or with "" create one; returns the new tag, "" if another object is there."""
        mode: PutMode = {"e_tag": tag} if tag else "create"
        new_tag = _call(lambda: obstore.put(self.bucket, name, body, mode=mode, use_multipart=False)["e_tag"], None)
        return new_tag or ""

    def _probe(self) -> None:
        """Raises RefusedCall if the server ignores conditions: writers would overwrite each other."""
        if not self.is_probed:
            _, again, other = (self._replace(PROBE, b"A test of conditions.", tag) for tag in ("", "", '"0"'))
            if again or other:
                raise RefusedCall("the server ignores If-None-Match or If-Match: writers would lose values")
            self.is_probed = True

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        found = list[str]()

        def listed() -> None:
            for page in obstore.list(self.bucket, begins.rstrip("/") or None, offset=after or None, chunk_size=PAGE):
                found.extend(one["path"] for one in page if one["size"] > HISTORY_CHARS and one["path"] != PROBE)
                if limit and len(found) >= limit:
                    break

        _call(listed, None)
        return found[: limit or None]


def _call(action: Callable[[], T], nothing: T) -> T:
    """The result of a call, or `nothing` if the object is absent or is not the expected one."""
    try:
        return action()
    except (BaseError, FileNotFoundError) as fault:
        words = str(fault).partition("Debug source")[0][:300]
        is_condition = isinstance(fault, AlreadyExistsError | PreconditionError | FileNotFoundError)
        if is_condition and "NoSuchBucket" not in words:
            return nothing
        raise (RefusedCall if REFUSED.search(words) else NoAnswer)(words) from None


def store_at(bucket: str, prefix: str, options: dict[str, str], seconds: float) -> EngineStore:
    """The store below a prefix of a bucket. `options`: endpoint, region; credentials come from the environment, as
    for other clients. `seconds`: limit for one answer of the server."""
    address = f"s3://{bucket}" + (f"/{prefix}" if prefix else "")
    wait = timedelta(seconds=seconds)
    client: ClientConfig = {"timeout": wait, "connect_timeout": wait, "allow_http": True}
    once: RetryConfig = {"max_retries": 0}  # obstore repeats a conditional write, and mistakes its own for another's
    config = cast("S3Config", {name: options[name] for name in ("endpoint", "region") if name in options})
    store = S3Store(bucket, prefix=prefix or None, client_options=client, retry_config=once, config=config)
    return EngineStore(S3Engine(store, address), address)
