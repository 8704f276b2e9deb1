"""Lines and queries: the hits are those of a look at every line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.replay import query
from tests.helpers import NASTY


def hits(path: Path, asked: query.Query, escaped: bool) -> list[str]:
    """The texts of lines that are hits."""
    found = (line for _, line in query.lines(str(path)))
    texts = (json.loads(line)["text"] if escaped else line.decode() for line in found)
    return [text for text in texts if asked.at(text) >= 0]


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("escaped", [False, True])
def test_the_hits_are_those_of_a_look_at_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, escaped: bool
) -> None:
    """Whatever the size of the blocks, and however the writer of JSON escapes."""
    monkeypatch.setattr(query, "BLOCK", block)
    chance = random.Random(7)
    pieces = [text for text in NASTY if "\n" not in text] + ["foo", "bar", "foobar"]
    texts = ["".join(chance.choices(pieces, k=4)) for _ in range(120)]
    dumped = [json.dumps({"text": text}, ensure_ascii=chance.random() < 0.5, separators=(",", ":")) for text in texts]
    path = tmp_path / "file"
    path.write_text("\n".join(dumped if escaped else texts), encoding="utf-8")
    for words, regex in [(["foo"], False), (["漢字"], False), (['"'], False), (["foo", "é"], False), (["fo+b"], True)]:
        asked = query.query(words, regex)
        assert hits(path, asked, escaped) == [text for text in texts if asked.at(text) >= 0]


@pytest.mark.parametrize(("words", "regex"), [([], False), ([""], False), (["("], True), (["a{99999999999}"], True)])
def test_what_is_no_query_is_refused(words: list[str], regex: bool) -> None:
    """64, in words."""
    with pytest.raises(UsageFault):
        query.query(words, regex)


def test_a_line_without_end_is_taken_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded; what is in one piece is found."""
    monkeypatch.setattr(query, "BLOCK", 1000)
    monkeypatch.setattr(query, "MAX_PIECE_BYTES", 4000)
    path = tmp_path / "file"
    path.write_text("x" * 10_000 + "needle" + "x" * 10_000)
    found = list(query.lines(str(path)))
    assert [b"needle" in line for _, line in found].count(True) == 1
    assert max(len(line) for _, line in found) <= 8000
