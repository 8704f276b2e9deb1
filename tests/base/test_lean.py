"""The lean parts give what the public modules give."""

from __future__ import annotations

import hashlib
import json
import math
import re
import signal
import subprocess
import sys
from functools import partial

import pytest

from harness.base import lean
from tests.missions import CHECKOUT

TEXTS = [
    '{"a": [1, -2.5e3, true, null], "ü\\u00e4": "\\ud83d\\ude00 \\n"}',
    " \t\r\n[1]\n ",
    '"text"',
    "NaN",
    "[Infinity, -Infinity]",
    "0",
    "{}",
    '{"twice": 1, "twice": 2}',
    '"\\ud800"',
    b'{"a": "\xc3\xa4"}',
    bytearray(b"[1, 2]\n"),
    b"\xef\xbb\xbf[1]",
    "[1]".encode("utf-16"),
    "12345678901234567890",
]
BROKEN = [
    *(
        "",
        " ",
        "{",
        "[1,]",
        "{'a': 1}",
        "tru",
        "[1] x",
        "1 2",
        '{"a" 1}',
        '"\n"',
        '"\x01"',
        "\ufeff[1]",
        "[1]\u00a0",
        "\n\n[1,\n2",
    ),
    *(b"", b"\xff", b'"\xc3"', "1" * 5000),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_json_text_has_the_value_that_json_gives_it(text: str | bytes | bytearray) -> None:
    """In any encoding, with white space around it."""
    assert repr(lean.loads(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_text_is_refused_in_the_words_of_json(text: str | bytes) -> None:
    """So that a person is told the line."""
    with pytest.raises(ValueError) as ours:
        lean.loads(text)
    with pytest.raises(ValueError) as theirs:
        json.loads(text)
    assert (type(ours.value), str(ours.value)) == (type(theirs.value), str(theirs.value))
    where = theirs.value.lineno if isinstance(theirs.value, json.JSONDecodeError) else None
    assert (lean.bad_line(ours.value) or (None,))[0] == where


def test_what_is_too_deep_is_refused() -> None:
    """As by json: callers name it as the fault of the text."""
    with pytest.raises(RecursionError):
        lean.loads("[" * 100_000)


VALUES = [
    {"a": [1, 2.5, True, None, -0.0], "ü": {"b": []}, 'q"\\': "\x00\n\t\x7f\u2028"},
    "ä😀",
    [],
    {1: 2, None: 3, False: 4, 1.5: 5},
    (1, 2),
    1e300,
    math.inf,
    "\ud800",
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_value_is_written_as_json_writes_it(value: object, ascii_only: bool) -> None:
    """Byte for byte: digests are taken of it."""
    assert lean.dumps(value, ascii_only=ascii_only) == json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, {(1, 2): 3}, b"bytes"])
def test_what_json_cannot_hold_is_refused_in_its_words(value: object) -> None:
    """A TypeError is a bug of ours, and says of what."""
    with pytest.raises(TypeError) as ours:
        lean.dumps(value)
    with pytest.raises(TypeError) as theirs:
        json.dumps(value)
    assert str(ours.value) == str(theirs.value)


def test_what_holds_itself_is_refused() -> None:
    """And does not fill the memory."""
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(ValueError, match="Circular"):
        lean.dumps(ring)


def test_a_pattern_is_compiled_once_it_is_used() -> None:
    """Then it is one of `re`, flags and all."""
    pattern = lean.pattern(r"^a(b)", re.IGNORECASE)
    assert "search" not in vars(pattern)
    assert (pattern.findall("AB"), pattern.sub("-", "abc"), pattern.match("b")) == (["B"], "-c", None)
    assert {"findall", "sub", "match"} <= set(vars(pattern))


@pytest.mark.parametrize("size", [0, 1, 1000, lean.LARGE - 1, lean.LARGE, 3 * lean.LARGE])
def test_a_digest_is_sha256_with_and_without_openssl(size: int) -> None:
    """Whatever computes it, and only large data loads OpenSSL."""
    program = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from harness.base import lean\n"
        f"print(lean.sha256(b'x' * {size}), 'hashlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    digest = hashlib.sha256(b"x" * size).hexdigest()
    assert done.stdout.split() == [digest, str(size >= lean.LARGE)]
    assert lean.sha256(b"x" * size) == digest


def test_without_the_compiled_halves_the_public_modules_serve() -> None:
    """Another Python than the one we know must not break a mission."""
    program = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\n"
        "sys.modules.update(dict.fromkeys(['_json', '_sha256', '_sha2']))\n"
        "from harness.base import lean\n"
        "print(lean.loads('[1, 2]'), lean.dumps({'a': 'ä'}), lean.sha256(b'')[:8])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == '[1, 2] {"a":"ä"} e3b0c442\n'


def test_signals_and_partial_are_those_of_the_public_modules() -> None:
    """Numbers for the enums, and the same functions under them."""
    assert lean.partial is partial
    for name in ("SIGKILL", "SIGTERM", "SIGCHLD", "SIG_BLOCK", "SIG_SETMASK", "SIG_DFL", "SIG_IGN"):
        assert int(getattr(lean.signal, name)) == int(getattr(signal, name))
