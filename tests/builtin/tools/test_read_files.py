"""read_file: every line can be reached, nothing floods the model, and what is no text is said to be none."""

from __future__ import annotations

import re

import pytest

from harness.builtin.tools import read_files, registry
from harness.filesystem.protocol import Shell
from tests.builtin.tools.benches import Bench

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
SHOWN = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(100),
    "image/gif": b"GIF89a" + bytes(100),
    "image/webp": b"RIFF\x10\0\0\0WEBPVP8 " + bytes(100),
}


def followed(bench: Bench, path: str) -> list[str]:
    """The lines of a file that a model gets who does what each answer says."""
    lines, offset = list[str](), 1
    while True:
        text = bench.said("read_file", path=path, offset=offset)
        assert len(text) <= registry.LONGEST_RESULT
        lines += [row.split("\t", 1)[1] for row in text.split("\n") if re.match(r" *\d+\t", row)]
        on = re.search(r"Go on with offset=(\d+)", text)
        if not on:
            return lines
        assert int(on[1]) == len(lines) + 1
        offset = int(on[1])


def test_lines_are_numbered_as_they_are_in_the_file(bench: Bench) -> None:
    """From 1; the newline at the end is no further line, a blank line is one; the whole needs no remark."""
    bench.write("a.txt", "one\n\n  three\n")
    assert bench.said("read_file", path="a.txt") == "     1\tone\n     2\t\n     3\t  three"
    bench.write("a.txt", "one\ntwo")
    assert bench.said("read_file", path="/a.txt") == "     1\tone\n     2\ttwo"


def test_whoever_follows_the_hints_reads_every_line_once(bench: Bench) -> None:
    """More lines than an answer has, and lines so wide that fewer fit."""
    narrow = [f"line {number}" for number in range(4500)]
    wide = [str(number) + "x" * 1500 for number in range(200)]
    for lines in (narrow, wide):
        bench.write("big.txt", "\n".join(lines) + "\n")
        assert followed(bench, "big.txt") == lines


def test_an_answer_has_two_thousand_lines_and_says_how_many_there_are(bench: Bench) -> None:
    """By default; a limit is kept to, and one above the most is refused in words."""
    bench.write("big.txt", "x\n" * 2500)
    text = bench.said("read_file", path="big.txt")
    assert text.count("\tx") == 2000
    assert "Go on with offset=2001." in text
    assert bench.said("read_file", path="big.txt", limit=2, offset=10).startswith(
        "    10\tx\n    11\tx\n\n[Lines 10-11"
    )
    assert "at most 2000" in bench.refused("read_file", path="big.txt", limit=5000)


def test_the_last_line_can_be_read_by_its_number_and_the_one_behind_it_is_said_to_be_none(bench: Bench) -> None:
    """An offset of the number of lines is no fault."""
    bench.write("a.txt", "one\ntwo\nthree\n")
    assert bench.said("read_file", path="a.txt", offset=3).startswith("     3\tthree\n")
    assert "there is no line 4" in bench.refused("read_file", path="a.txt", offset=4)


def test_one_huge_line_is_cut_and_can_be_read_whole_by_column(bench: Bench) -> None:
    """A minified file, or a long answer that was kept, is one line."""
    line = "".join(f"{number:05d}" for number in range(30_000))
    bench.write("min.js", f"first\n{line}\n")
    text = bench.said("read_file", path="min.js")
    assert len(text) < 3000
    assert "150,000 characters" in text and f"column={read_files.LONGEST_LINE + 1}" in text
    got, column = "", 1
    while column:
        text = bench.said("read_file", path="min.js", offset=2, column=column)
        got += text.split("\t", 1)[1].split("\n", 1)[0]
        on = re.search(r"Go on with column=(\d+)", text)
        column = int(on[1]) if on else 0
    assert got == line


@pytest.mark.parametrize("kind", SHOWN)
def test_images_are_returned_as_images(bench: Bench, kind: str) -> None:
    """By what is in them, whatever they are called; never as text."""
    bench.write("picture.bin", SHOWN[kind])
    found = bench.call("read_file", path="picture.bin")
    assert (found.failed, found.images) == (False, [(kind, SHOWN[kind])])
    assert len(found.text) < 100


def test_an_image_that_no_vendor_takes_is_described(bench: Bench) -> None:
    """It is not sent, so the request does not fail."""
    bench.write("large.png", PNG + bytes(read_files.LARGEST_IMAGE))
    found = bench.call("read_file", path="large.png")
    assert found.images == []
    assert "image/png, larger than" in found.text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"%PDF-1.7\nplain looking text\n", "PDF"),
        (b"PK\x03\x04\x14\0" + bytes(300), "ZIP"),
        (b"\x7fELF\x02\x01\x01\0", "ELF"),
        ("text in UTF-16".encode("utf-16"), "UTF-16"),
        (b"\x01\x02\0\x03" * 5000, "binary"),
    ],
)
def test_binary_files_are_described_and_never_dumped(bench: Bench, data: bytes, words: str) -> None:
    """Their kind and size, and what could look into them."""
    bench.write("thing", data)
    text = bench.said("read_file", path="thing")
    assert words in text and f"{len(data):,} bytes" in text and ("execute" in text) == isinstance(bench.files, Shell)
    assert len(text) < 200


def test_an_empty_file_is_said_to_be_empty_and_its_content_is_never_mistaken(bench: Bench) -> None:
    """A file that holds that very sentence shows it as a numbered line; an edit of neither brings the sentence into a file."""
    bench.write("empty.txt", "")
    said = bench.said("read_file", path="empty.txt")
    assert "0 bytes" in said
    bench.write("sentence.txt", said)
    assert bench.said("read_file", path="sentence.txt") == f"     1\t{said}"
    bench.said("write_file", path="empty.txt", content="full\n")
    assert (bench.tree / "empty.txt").read_text() == "full\n"


def test_text_that_is_no_utf8_can_be_read(bench: Bench) -> None:
    """Latin-1 and GBK: its bytes stand as escapes, and the answer says so."""
    bench.write("latin.txt", "café\n".encode("latin-1"))
    text = bench.said("read_file", path="latin.txt")
    assert "     1\tcaf\\xe9\n" in text and "not UTF-8" in text


def test_line_ends_and_a_byte_order_mark_are_told_and_not_shown(bench: Bench) -> None:
    """So that a model copies clean lines."""
    bench.write("windows.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    text = bench.said("read_file", path="windows.txt")
    assert text.startswith("     1\tone\n     2\ttwo\n")
    assert "CRLF" in text and "byte order mark" in text and "\r" not in text


def test_a_path_that_is_wrong_names_the_one_that_was_meant(bench: Bench) -> None:
    """Or the tool that helps."""
    bench.write("src/main.py", "x\n")
    assert "Did you mean src/main.py?" in bench.refused("read_file", path="src/man.py")
    assert "glob_files" in bench.refused("read_file", path="elsewhere/zzz")
    assert "list_files" in bench.refused("read_file", path="src")
    assert bench.refused("read_file", path="../secret")
