"""Transcripts stay within their limits, say where they were cut, and hold no secret that a rule matches."""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest

from harness.mission import transcript
from harness.mission.transcript import MIB, MaskedLines, RecentTexts, Row, RunTranscript, UsageReport, reported
from harness.mission.usage import Usage
from tests.helpers import is_linear

TOKEN = "gh" + "p_a8Kd93jfLs02LqPz7Xc1Vb5Nm4Qw6Er8Ty2Ui0"
MASKED = "[masked: github-token]"
KEY = "-----BEGIN" + " PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" * 20
END = "-----END" + " PRIVATE KEY-----\n"


def rows(path: str) -> list[dict[str, Any]]:
    """The rows of a stream."""
    return [json.loads(line) for line in Path(path).read_text().split("\n") if line]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The path of a transcript."""
    return str(tmp_path / "t")


def test_a_row_is_one_line_with_its_secrets_masked(path: str) -> None:
    """The file is private to its owner, and the row is there once it is closed."""
    stream = RunTranscript(path, MIB)
    stream.row(1.5, "did", f"curl {TOKEN}\nö\ud800")
    stream.close()
    assert rows(path) == [{"at": 1.5, "kind": "did", "text": f"curl {MASKED}\nö\ud800"}]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@pytest.mark.parametrize("text", ["x" * 3 * MIB, "ä🔑" * MIB, "\0" * MIB, '"' * MIB, "\ud800" * MIB])
def test_a_row_that_is_too_long_says_how_many_bytes_went(path: str, text: str) -> None:
    """The line with its JSON is at most 1 MiB, and no character is torn."""
    stream = RunTranscript(path, 10 * MIB)
    stream.row(0, "said", text)
    stream.close()
    data = Path(path).read_bytes()
    kept, _, gone = rows(path)[0]["text"].partition("[… ")
    assert MIB // 2 < len(data) <= MIB
    assert text.startswith(kept)
    assert int(gone.removesuffix(" bytes cut …]")) + len(kept.encode("utf-8", "surrogatepass")) == len(
        text.encode("utf-8", "surrogatepass")
    )


def test_a_file_ends_with_one_row_that_says_so(path: str) -> None:
    """Later rows are dropped; the file never outgrows its limit."""
    stream = RunTranscript(path, MIB)
    for _ in range(40):
        stream.row(0, "said", "x" * 50_000)
    stream.close()
    written = rows(path)
    assert [row["kind"] for row in written] == ["said"] * (len(written) - 1) + ["cut"]
    assert written[-1]["text"] == "the transcript reached its bound of 1 MiB; what follows is not kept"
    assert os.path.getsize(path) <= MIB


def test_a_log_ends_with_one_line_that_says_so(path: str) -> None:
    """As in a stream, but in plain text."""
    log = RunTranscript(path, MIB // 4)
    for _ in range(40):
        log.log("line\n" * 2000)
    log.close()
    lines = Path(path).read_text().split("\n")
    assert set(lines[:-2]) == {"line"}
    assert lines[-2:] == ["[the transcript reached its bound of 0.25 MiB; what follows is not kept]", ""]
    assert os.path.getsize(path) <= MIB // 4


def test_what_the_books_need_is_kept_behind_the_bound(path: str) -> None:
    """The last usage of a long run that was killed is kept; the limit holds all the same."""
    made = RunTranscript(path, MIB)
    for second in range(2000):
        made.row(second, "raw", "x" * 1000)
        made.book(second, "usage", json.dumps({"input": second}))
    made.close()
    rows = [json.loads(line) for line in Path(path).read_text().split("\n") if line]
    assert rows[-1] == {"at": 1999, "kind": "usage", "text": '{"input": 1999}'}
    assert sum(row["kind"] == "cut" for row in rows) == 1
    assert Path(path).stat().st_size <= MIB


def test_a_file_that_is_opened_again_counts_what_is_there(path: str) -> None:
    """A torn last line is closed; a reached limit stays reached."""
    stream = RunTranscript(path, MIB)
    stream.row(0, "said", "x" * 600_000)
    stream.close()
    with open(path, "a") as file:
        file.write('{"torn')
    again = RunTranscript(path, MIB)
    again.row(1, "said", "y" * 600_000)
    again.row(2, "said", "short")
    again.close()
    third = RunTranscript(path, MIB)
    third.row(3, "said", "short")
    third.close()
    lines = Path(path).read_text().split("\n")
    assert [json.loads(line)["kind"] for line in (lines[0], lines[2])] == ["said", "cut"]
    assert lines[1] == '{"torn'
    assert lines[3:] == [""]


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1000])
def test_a_secret_that_comes_in_pieces_is_masked(path: str, size: int) -> None:
    """A token within a line or a private key over many lines, in the log and in the stream."""
    text = f"a {TOKEN} b\n{KEY}{END}after\nno end"
    log, stream = RunTranscript(path, MIB), RunTranscript(path + "s", MIB)
    for start in range(0, len(text), size):
        log.log(text[start : start + size])
        stream.piece(1, "output", text[start : start + size])
    log.close()
    stream.close()
    begun = KEY.split("\n")[0]
    wanted = f"a {MASKED} b\n{begun}[masked: private-key]{END}after\nno end"
    assert Path(path).read_text() == wanted
    assert "".join(row["text"] for row in rows(path + "s")) == wanted


def test_a_key_whose_end_never_comes_is_masked(path: str) -> None:
    """It is masked when the transcript is closed."""
    log = RunTranscript(path, MIB)
    log.log(KEY)
    log.close()
    assert Path(path).read_text() == KEY.split("\n")[0] + "\n[masked: private-key]\n"


def test_a_line_of_a_hundred_megabytes_is_cut(path: str) -> None:
    """However it arrives; the text after it is kept."""
    log = RunTranscript(path, 4 * MIB)
    for _ in range(100):
        log.log("x" * 1_000_000)
    log.log("\nnext\n")
    log.close()
    first, second, _ = Path(path).read_text().split("\n")
    kept, _, gone = first.partition("[… ")
    assert second == "next"
    assert len(first.encode()) < MIB
    assert len(kept) + int(gone.split(" ")[0]) == 100_000_000


def test_what_is_not_cut_arrives_as_it_was() -> None:
    """However it is split: progress with CR, empty pieces, other alphabets."""
    chance = random.Random(3)
    for _ in range(300):
        text = "".join(chance.choices(["a", "ö", "\n", "\r", " ", "-----BEGIN ", "\ud800", "word"], k=40))
        lines, got, at = MaskedLines(), "", 0
        while at < len(text):
            step = chance.randrange(9)
            got += lines.take(text[at : at + step])
            at += step
        assert got + lines.rest() == text


def test_progress_is_shown_before_its_line_ends() -> None:
    """A carriage return ends a line too."""
    lines = MaskedLines()
    assert lines.take("10 %\r20 %") == "10 %\r"
    assert lines.take("\r") == "20 %\r"


def test_the_oldest_messages_go_first() -> None:
    """The newest message is always there; an oversized one keeps its end."""
    texts = ["x" * 400]
    recent = RecentTexts(texts, 1000)
    for letter in "abc":
        recent.add(letter * 300)
    assert [text[0] for text in texts] == ["b", "c"]
    recent.add("y" * 5000 + "end")
    assert texts[-1].endswith("yend")
    assert sum(map(len, texts)) <= 1000


def test_bounds_are_what_the_page_says() -> None:
    """1 MiB a line, 16 MiB of messages in memory."""
    assert (transcript.MAX_LINE_BYTES, transcript.MAX_TEXT_BYTES) == (1_048_576, 16_777_216)


# what is written reads back


@pytest.mark.parametrize("kind", transcript.KINDS)
def test_every_row_that_is_written_can_be_read(kind: str, path: str) -> None:
    """The text reads back whole, whatever it holds."""
    stream = RunTranscript(path, MIB)
    stream.row(1.5, kind, 'a "quoted"\nö 🔑')
    stream.close()
    (line,) = Path(path).read_bytes().splitlines()
    assert transcript.parse(line) == Row(at=1.5, kind=kind, text='a "quoted"\nö 🔑')


@pytest.mark.parametrize(
    "fields",
    [
        {"at": -1},
        {"at": "1"},
        {"at": float("nan")},
        {"at": 1e9},
        {"kind": "boast"},
        {"kind": ["said"]},
        {"text": 5},
        {"text": None},
        {"more": 1},
    ],
)
def test_a_line_that_no_run_writes_is_no_row(fields: dict[str, Any]) -> None:
    """No total includes what an agent planted there."""
    whole: dict[str, Any] = {"at": 1.0, "kind": "said", "text": "x"}
    assert transcript.parse(json.dumps(whole).encode()) == Row(**whole)
    assert transcript.parse(json.dumps({**whole, **fields}).encode()) is None
    assert transcript.parse(json.dumps(whole).encode()[:-3]) is None


# what a dead run had reported


def row(kind: str, text: str, at: float = 1.0) -> bytes:
    """A line of a transcript."""
    return json.dumps({"at": at, "kind": kind, "text": text}, separators=(",", ":")).encode() + b"\n"


def used(**values: Any) -> bytes:
    """A line with a usage."""
    return row("usage", json.dumps(Usage(**values).asdict()))


def test_the_newest_usage_of_each_agent_is_heard(tmp_path: Path) -> None:
    """Rows are cumulative within an answer; each agent's answer follows its name."""
    path = tmp_path / "stream.jsonl"
    rows = [row("agent", "a"), used(input=1), row("said", "x"), used(input=3), row("agent", "b"), row("agent", "c")]
    path.write_bytes(b"".join([*rows, used(output=7), row("did", "y", 9.5)]))
    found = reported(str(path))
    assert ([one.agent for one in found.usages], found.seconds) == (["a", "b", "c"], 9.5)
    assert [(one.input, one.output) for one in found.usages] == [(3, None), (None, None), (None, 7)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"at":1,"kind":"usage","text":"{\\"inp',
        b"\xff\0\n",
        b"[" * 99999 + b"\n",
        row("usage", "{}").replace(b'"{}"', b"5"),
        row("usage", '{"input": "much"}'),
        row("usage", '{"input": -5}'),
        row("usage", '{"cost_usd": NaN}'),
        row("usage", '{"cost_usd": 1e999}'),
        row("usage", '{"input": 1.5}'),
        row("usage", '{"more": 1}'),
        row("usage", '{"cost_source": "guessed"}'),
        row("usage", "[]"),
        b"x" * (transcript.MAX_LINE_BYTES + 9) + b"\n",
    ],
)
def test_a_torn_or_forged_row_is_passed_over(tmp_path: Path, line: bytes) -> None:
    """What came before it counts."""
    path = tmp_path / "stream.jsonl"
    path.write_bytes(row("agent", "a") + used(input=3) + line)
    found = reported(str(path))
    assert [one.input for one in found.usages] == [3]


def test_a_run_without_a_transcript_told_nothing(tmp_path: Path) -> None:
    """The run died before it asked a vendor."""
    assert reported(str(tmp_path / "stream.jsonl")) == UsageReport()


def test_a_long_transcript_is_heard_in_time_that_grows_with_its_length(tmp_path: Path) -> None:
    """With one unterminated line at its end; the usage in the middle is found."""
    path = tmp_path / "stream.jsonl"
    line = row("output", "x" * 8000)

    def heard(rest: str) -> None:
        path.write_bytes(row("agent", "a") + line * (len(rest) // 8000) + used(input=3) + rest.encode())
        assert [one.input for one in reported(str(path)).usages] == [3]

    assert is_linear(heard, "y" * (8 << 20))
