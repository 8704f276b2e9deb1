"""What a launch needs of the standard library, without what the public modules load on their way.

`json` loads `re`, `signal` loads `enum`, `functools` loads `collections`, `hashlib` loads OpenSSL: together they cost as much as
a bare start of Python. The compiled halves under them cost next to nothing. Where one is missing, the public module serves.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal
    from functools import partial as partial
    from re import compile as pattern
    from typing import Any
else:
    import _signal as signal
    from _functools import partial

    class pattern:  # noqa: N801 - it stands for a function, re.compile
        """`re.compile`, once the pattern is used: a large one takes a millisecond."""

        def __init__(self, source: str, flags: int = 0) -> None:
            self.source, self.given = source, flags

        def __getattr__(self, name: str) -> object:
            """An attribute of the compiled pattern; from then on it is this one's own."""
            import re

            value = getattr(re.compile(self.source, self.given), name)
            setattr(self, name, value)
            return value


__all__ = ["dumps", "loads", "partial", "pattern", "sha256", "signal"]

WHITE = " \t\n\r"
LARGE = 512 * 1024  # bytes; from there on OpenSSL saves more than it costs to load


class _Options:
    """The defaults of `json.loads`; a scanner reads them once."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = parse_constant = float
    parse_int = int


try:
    from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

    _scan: Any = make_scanner(_Options())  # type: ignore[arg-type]  # it takes any object with these fields
except ImportError:  # a Python without the compiled half
    _scan = None


def loads(text: str | bytes | bytearray) -> Any:
    """`json.loads`: the JSON value of a text; raises what that raises."""
    try:
        plain = (text if isinstance(text, str) else text.decode("utf-8", "surrogatepass")).strip(WHITE)
        value, end = _scan(plain, 0)
        if end == len(plain):
            return value
    except (StopIteration, SystemError, TypeError, ValueError):
        pass  # not JSON, or not UTF-8: the public module has the words for it
    import json

    return json.loads(text)


def bad_line(fault: Exception) -> tuple[int, str] | None:
    """(line, what is wrong there) where a fault of `loads` is one of JSON's form, else None."""
    line, words = getattr(fault, "lineno", 0), getattr(fault, "msg", "")
    return (line, words) if line else None


def dumps(value: object, *, ascii_only: bool = False) -> str:
    """`json.dumps` in its most compact form; raises what that raises."""
    if _scan is None:
        import json

        return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
    escape = encode_basestring_ascii if ascii_only else encode_basestring
    return "".join(make_encoder({}, _refused, escape, None, ":", ",", False, False, True)(value, 0))


def _refused(value: object) -> object:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def sha256(data: bytes) -> str:
    """SHA-256 of `data`, 64 hex digits."""
    if len(data) < LARGE and "hashlib" not in sys.modules:
        made = _built_in(data)
        if made:
            return made
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _built_in(data: bytes) -> str:
    """The same by the interpreter's own code, "" where it has none."""
    name = "_sha256" if sys.version_info < (3, 12) else "_sha2"
    try:
        made: str = __import__(name).sha256(data).hexdigest()
    except ImportError:
        return ""
    return made
