"""A store in a bucket of S3 or of a server that speaks its protocol: a value an object, below a prefix.

Every write is a conditional one, so the server must honour conditions, which the first write tries out. S3 deletes without a
condition only, so a removed value is a tombstone: an object with the tokens of its writes alone, which no list has.
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

from harness.stores._engine import HISTORY_CHARS, EngineStore, NoAnswer, RefusedCall, packed, unpacked
from harness.stores.store import ABSENT, ANY, Value

if TYPE_CHECKING:  # obstore has these for type checkers alone
    from obstore import PutMode  # see above
    from obstore.store import ClientConfig, RetryConfig, S3Config  # see above

T = TypeVar("T")

AT_ONCE = 16  # requests
PROBE = "%probe"  # no key has this form
PAGE = 1000  # names in one answer
TRIES = 50  # of one write, against other writers
REFUSED = re.compile(r"status code: (507|4(?!08|25|29)\d\d)")  # the request, the rights or the space do not suffice


class _Known(NamedTuple):
    history: str
    tag: str
    is_there: bool = True  # else it is a tombstone

    @property
    def version(self) -> str:
        return f"{self.history}/{self.tag}"


class S3Engine:
    """See Engine. A version has the tokens and the tag of its object, so that a write need not read them."""

    def __init__(self, bucket: S3Store, address: str) -> None:
        self.bucket, self.address, self.is_probed = bucket, address, False

    def read(self, names: Sequence[str]) -> list[Value | None]:
        """See Engine."""
        if len(names) == 1:
            return [self._read(names[0])]
        with ThreadPoolExecutor(AT_ONCE) as together:
            return list(together.map(self._read, names))

    def _read(self, name: str) -> Value | None:
        known, data = self._got(name)
        return Value(unpacked(data, f"{self.address}/{name}")[1], known.version) if known.is_there else None

    def _got(self, name: str, end: int = 0) -> tuple[_Known, bytes]:
        """What is known of an object, and its bytes, at most so many."""

        def got() -> tuple[_Known, bytes]:
            found = obstore.get(self.bucket, name, options={"range": (0, end)} if end else None)
            data, meta = bytes(found.bytes()), found.meta
            history = data[:HISTORY_CHARS].decode("ascii", "replace")
            return _Known(history, meta["e_tag"] or "", meta["size"] != HISTORY_CHARS), data

        return _called(got, (_Known("", "", False), b""))

    def _known(self, name: str) -> _Known:
        return self._got(name, HISTORY_CHARS + 1)[0]

    def change(self, name: str, data: bytes | None, expect: str, token: str) -> str:
        """See Engine. What is removed becomes a tombstone."""
        self._probe()
        history, _, tag = expect.partition("/")
        known = self._known(name) if expect == ANY else _Known(history, tag or expect)
        for _ in range(TRIES):
            if token in known.history or (data is None and not known.is_there):
                return ""
            if put := self._put(name, known, data, token):
                return put
            before, known = known.tag, self._known(name)
            if not (expect == ANY or known.tag == before or (expect == ABSENT and not known.is_there)):
                return ""
        raise NoAnswer("too many writers at once")

    def _put(self, name: str, known: _Known, data: bytes | None, token: str) -> str:
        """The version of an object that replaces the known one; "" if that is not there any more."""
        body = packed(token, known.history, data or b"")[: HISTORY_CHARS if data is None else None]
        tag = self._sent(name, body, known.tag)
        return tag and _Known(body[:HISTORY_CHARS].decode(), tag).version

    def _sent(self, name: str, body: bytes, tag: str) -> str:
        """The tag of an object that is put in the place of the one with this tag, or of none; "" if another one is there."""
        mode: PutMode = {"e_tag": tag} if tag else "create"
        return (
            _called(lambda: obstore.put(self.bucket, name, body, mode=mode, use_multipart=False)["e_tag"], None) or ""
        )

    def _probe(self) -> None:
        """Raises RefusedCall if the server ignores conditions: then writers would replace what they have not seen."""
        if not self.is_probed:
            _, again, other = (self._sent(PROBE, b"A try of conditions.", tag) for tag in ("", "", '"0"'))
            if again or other:
                raise RefusedCall("the server ignores If-None-Match or If-Match: writers would lose values")
            self.is_probed = True

    def names(self, begins: str, after: str, limit: int) -> list[str]:
        """See Engine."""
        found = list[str]()

        def listed() -> None:
            for page in obstore.list(self.bucket, begins.rstrip("/") or None, offset=after or None, chunk_size=PAGE):
                found.extend(one["path"] for one in page if one["size"] > HISTORY_CHARS and one["path"] != PROBE)
                if limit and len(found) >= limit:
                    break

        _called(listed, None)
        return found[: limit or None]


def _called(action: Callable[[], T], nothing: T) -> T:
    """What a call returns, or `nothing` if no object is there, or another one than the expected."""
    try:
        return action()
    except (BaseError, FileNotFoundError) as fault:
        words = str(fault).partition("Debug source")[0][:300]
        if (
            isinstance(fault, AlreadyExistsError | PreconditionError | FileNotFoundError)
            and "NoSuchBucket" not in words
        ):
            return nothing
        raise (RefusedCall if REFUSED.search(words) else NoAnswer)(words) from None


def opened(bucket: str, prefix: str, options: dict[str, str], seconds: float) -> EngineStore:
    """The store below a prefix of a bucket. `options`: endpoint, region; keys come from the environment, as for other
    clients. `seconds`: that the server may take for one answer."""
    address = f"s3://{bucket}" + (f"/{prefix}" if prefix else "")
    wait = timedelta(seconds=seconds)
    client: ClientConfig = {"timeout": wait, "connect_timeout": wait, "allow_http": True}
    once: RetryConfig = {"max_retries": 0}  # obstore sends a conditional write again, and takes its own for another's
    config = cast("S3Config", {name: options[name] for name in ("endpoint", "region") if name in options})
    store = S3Store(bucket, prefix=prefix or None, client_options=client, retry_config=once, config=config)
    return EngineStore(S3Engine(store, address), address)
