"""The estimate of tokens is never far below what published vocabularies make of a text."""

from __future__ import annotations

import pytest

from harness.base import tokens

# A text of each kind, and how many of its characters make a token of the o200k vocabulary, as recorded.
SAMPLES = {
    "English": (
        3.97,
        "The dev server and the end-to-end tests both bind port 3000, so stop the server before you run them. When the"
        " build fails with an error about a missing module, remove the cache and install the packages again: `npm ci`"
        " takes a minute, and VAL-TODO-002 needs it.\n",
    ),
    "Python": (
        4.23,
        "def backwards(path: str, folded: int) -> Iterator[Archived]:\n    seq = folded\n    for offset, line in"
        ' json_lines.backwards(path, BLOCK):\n        if not line.strip(b"\\0 \\r"):\n            continue\n'
        "        row = parse(line)\n        yield row\n",
    ),
    "shell": (
        3.12,
        'set -eu\nfor name in $(git ls-files "*.sh"); do\n  shellcheck -x "$name" || exit 1\ndone\n'
        'docker compose up -d db && psql -h localhost -U app -f schema.sql 2>&1 | tee "$LOG"\n',
    ),
    "log": (
        2.11,
        "2026-04-24T10:05:12.481Z INFO  [worker-3] req=7f3a9c1e GET /api/v2/todos?page=2 200 14ms 10.0.3.17:51234\n"
        "2026-04-24T10:05:12.517Z ERROR [worker-1] req=c0ffee42 POST /api/v2/todos 503 2041ms 10.0.3.18:40112\n",
    ),
    "Chinese": (
        1.52,
        "数据库迁移之前必须先备份数据,否则无法恢复。测试服务器和开发服务器使用同一个端口,运行测试之前请先停止开发服务器。\n",
    ),
    "Japanese": (
        1.66,
        "テストの前にデータベースを初期化してください。開発サーバーとテストは同じポートを使うため、先に停止する必要があります。\n",
    ),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_an_estimate_is_at_most_a_tenth_too_low(kind: str) -> None:
    """And no more than half too high, so that the summary is not left empty."""
    per_token, text = SAMPLES[kind]
    real = len(text) / per_token
    assert 0.9 * real <= tokens.estimated(text) <= 1.5 * real


def test_every_character_costs_something() -> None:
    """Nothing is free; an empty text has no tokens."""
    assert tokens.estimated("") == 0
    for one in ("a", "7", ".", "\n", "é", "漢", "한", "🙂", "\u2028"):
        assert 1 <= tokens.estimated(one) <= 2
        assert tokens.estimated(one * 400) >= 80


def test_what_a_text_costs_is_at_most_what_its_lines_cost() -> None:
    """So lines can be taken one by one."""
    lines = [text for _, text in SAMPLES.values()]
    assert tokens.estimated("".join(lines)) <= sum(map(tokens.estimated, lines))
