"""Output of a command in the background: of endless output the newest is kept, and places in it stay what they were."""

from __future__ import annotations

import pytest

from harness.builtin.tools import _jobs
from harness.filesystem import _spool
from tests.builtin.tools.benches import Bench
from tests.missions import until


def test_of_endless_output_the_newest_is_kept_and_the_rest_is_told_to_be_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offset still means the byte of the whole output; whoever follows the hints gets each byte that is kept once."""
    monkeypatch.setattr(_jobs, "LONGEST_PAGE", 1_000_000)
    size = _spool.RING + 5_000_000
    bench.said("execute", command=f"yes 0123456 | head -c {size}", background=True)
    job = bench.own.live["job-1"]
    assert isinstance(job, _jobs.Running)
    job.wait(60)
    page = job.page(0)
    first, text = page.start, page.text
    while page.more:
        assert job.page(page.end).start == page.end
        page = job.page(page.end)
        text += page.text
    assert (first > 0, first + len(text)) == (True, size)
    assert text == ("0123456\n" * (size // 8 + 1))[first % 8 :][: len(text)]
    assert f"[The first {first:,} bytes are gone.]" in bench.said("execute", handle="job-1", offset=0)


def test_a_character_that_is_not_whole_yet_waits_for_its_rest(bench: Bench) -> None:
    """No page has half of one."""
    bench.said(
        "execute",
        command=r"printf 'a\xe6\x9d'; while ! test -e go; do sleep 0.05; done; printf '\xb1b'",
        background=True,
    )
    job = bench.own.live["job-1"]
    assert isinstance(job, _jobs.Running)
    until(lambda: job.job.page(0).size == 3)
    assert bench.said("execute", handle="job-1", timeout=0).endswith("\na")
    bench.write("go", "")
    assert bench.said("execute", handle="job-1", timeout=60).endswith("\n東b")
