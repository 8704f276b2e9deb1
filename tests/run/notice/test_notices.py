"""notices.jsonl: what counts of it is the same however it is read, and a look costs what came since the last."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.base import encoding
from harness.base.errors import BrokenFile
from harness.run.notice import _notices
from harness.run.notice._notices import NoticeCache, NoticeRow
from harness.state import files, names
from harness.state.layout import Layout
from tests.missions import House

MANY = 20_000


def layout_of(folder: Path) -> Layout:
    """A mission's folder with nothing in it."""
    layout = Layout(str(folder))
    files.make_folder(layout.state)
    return layout


def line(number: int, state: str, event: str = "", key: str = "k1") -> NoticeRow:
    """One line."""
    return NoticeRow(
        at="2026-04-24T10:05:12Z", event=event or f"run-{number}", state=state, key=key, label="ü", said=f"{number}"
    )


def text(rows: list[NoticeRow]) -> bytes:
    """Lines as they are on disk."""
    return b"".join(encoding.dump_json(row.asdict()) for row in rows)


def folded(rows: list[NoticeRow]) -> tuple[str, dict[str, str], dict[str, dict[str, str]]]:
    """What counts, of all lines at once."""
    known = NoticeCache()
    for row in rows:
        known.take(row)
    return known.seen, known.states, known.failed


def bytes_read() -> int:
    """What this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.parametrize("seed", range(4))
def test_what_counts_is_the_same_with_and_without_what_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """In any order of calls, looked at and kept at any moment, torn lines and all."""
    monkeypatch.setattr(_notices, "CACHED_EVERY", 200)
    chance, layout, rows = random.Random(seed), layout_of(tmp_path), list[NoticeRow]()
    events = ["run-1", "run-2", "passed-2", "done-sweep", "stuck-stuck-12", "escalated-x"]
    for number in range(120):
        state = chance.choice(["begun", "done", "failed", "failed", "seen"])
        rows.append(line(number, state, chance.choice(events), chance.choice(["k1", "k2"])))
        torn = b'{"at": "20' if chance.random() < 0.2 else b""
        Path(layout.path(names.NOTICES)).write_bytes(text(rows) + torn)
        known = _notices.known(layout, keep=chance.random() < 0.5)
        assert (known.seen, known.states, known.failed) == folded(rows)
    assert Path(layout.cache, "notices.json").exists()


def test_a_look_reads_only_what_came_since(tmp_path: Path) -> None:
    """After a mission of thousands of runs as after one of ten."""
    if not Path("/proc/self/io").exists():
        pytest.skip("only Linux counts what a process has read")
    layout, rows = layout_of(tmp_path), [line(n // 3, ("begun", "done", "seen")[n % 3]) for n in range(MANY)]
    Path(layout.path(names.NOTICES)).write_bytes(text(rows))
    _notices.known(layout, keep=True)
    with open(layout.path(names.NOTICES), "ab") as file:
        file.write(text([line(MANY, "begun"), line(MANY, "failed")]))
    before = bytes_read()
    known = _notices.known(layout)
    assert bytes_read() - before < 8192 < len(text(rows)) / 100
    assert (known.state(f"run-{MANY}", "k1"), known.failed["k1"]["said"]) == ("failed", str(MANY))


@pytest.mark.parametrize("now", ["", "shorter", "other"])
def test_a_file_that_is_another_by_now_is_read_anew(tmp_path: Path, now: str) -> None:
    """A person went back to a snapshot, or took a line out."""
    layout, rows = layout_of(tmp_path), [line(n, "failed", f"stuck-{n}", f"k{n % 9}") for n in range(100)]
    Path(layout.path(names.NOTICES)).write_bytes(text(rows))
    _notices.known(layout, keep=True)
    rows = {"": [], "shorter": rows[:40], "other": [*rows[:98], line(7, "done", key="k8"), *rows[98:]]}[now]
    Path(layout.path(names.NOTICES)).write_bytes(text(rows))
    known = _notices.known(layout)
    assert (known.seen, known.states, known.failed) == folded(rows)


def test_a_line_that_is_no_notice_is_named_by_its_number(tmp_path: Path) -> None:
    """Also behind what was kept."""
    layout, rows = layout_of(tmp_path), [line(n, "done") for n in range(100)]
    Path(layout.path(names.NOTICES)).write_bytes(text(rows))
    _notices.known(layout, keep=True)
    with open(layout.path(names.NOTICES), "ab") as file:
        file.write(b'{"at": 1}\n')
    with pytest.raises(BrokenFile, match=r"notices\.jsonl, line 101"):
        _notices.known(layout)


def test_a_mission_with_hooks_keeps_what_counts(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there is enough of it to matter."""
    house.config('agent = "scripted"', "[[on]]", 'event = "run"', 'run = ["false"]')
    Path(house.layout.path(names.NOTICES)).write_bytes(text([line(n, "done", key="gone") for n in range(60)]))
    house.work({"run": "touch 1.txt"})
    assert (house.state / "cache/notices.json").exists()
    assert "the hook 'false' failed for run-" in house.harness("status").out
