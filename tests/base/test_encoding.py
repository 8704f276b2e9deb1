"""Bytes that mean nothing get a fault with file and line."""

from __future__ import annotations

import hashlib
import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base import encoding
from harness.base.errors import BrokenFile


def test_a_digest_is_sha_256() -> None:
    """As any other program computes it."""
    assert encoding.digest(b"abc") == hashlib.sha256(b"abc").hexdigest()


def test_a_bad_byte_has_its_line() -> None:
    """A person opens the file there."""
    assert encoding.decode("é".encode(), "p") == "é"
    with pytest.raises(BrokenFile, match="p, line 2: not UTF-8"):
        encoding.decode(b"one\n\xff\n", "p")


@given(st.text(st.sampled_from("aé{ \n")), st.booleans(), st.booleans())
def test_a_byte_order_mark_and_the_cr_of_line_ends_are_no_text(text: str, mark: bool, cr: bool) -> None:
    """An editor of another system adds them: the text is the one that the person sees, and a bad byte keeps its line."""
    data = b"\xef\xbb\xbf" * mark + text.replace("\n", "\r\n" if cr else "\n").encode()
    assert encoding.decode(data, "p") == text
    with pytest.raises(BrokenFile) as caught:
        encoding.decode(data + b"\xff\r\n", "p")
    assert caught.value.line == text.count("\n") + 1
    assert encoding.parse_json(b"\xef\xbb\xbf{}\r\n", "p") == {}


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_called_that(name: str) -> None:
    """The remedy says how to save it."""
    with pytest.raises(BrokenFile, match=r"p, line 1: UTF-16, not UTF-8 text\. Save the file as UTF-8"):
        encoding.decode("\ufeff# Spec\n".encode(name), "p")


@pytest.mark.parametrize("data", [b'{"a":\n', b"", b"[" * 100_000, b"1" * 10_000])
def test_what_is_no_json_is_a_fault_and_no_crash(data: bytes) -> None:
    """Also where the parser gives up."""
    with pytest.raises(BrokenFile, match="not JSON"):
        encoding.parse_json(data, "p")


def test_json_is_one_line_whatever_it_holds() -> None:
    """A file name that is no UTF-8 is escaped."""
    assert encoding.dump_json({"a": "é\n"}) == '{"a":"é\\n"}\n'.encode()
    assert json.loads(encoding.dump_json("\udcff")) == "\udcff"


@given(st.text())
def test_a_word_of_a_shell_is_one_word(text: str) -> None:
    """Whatever is in it; plain paths stay as they are."""
    assert shlex.split(encoding.shell_word(text)) == [text]
    assert encoding.shell_word("/srv/a-b_c.d/run.sh") == "/srv/a-b_c.d/run.sh"


def test_a_few_names_stand_for_many() -> None:
    """Five, and the number of the others."""
    assert [encoding.few(names) for names in ([], ["a"], [*"abcde"], [*"abcdefg"])] == [
        "",
        "a",
        "a, b, c, d, e",
        "a, b, c, d, e and 2 more",
    ]
