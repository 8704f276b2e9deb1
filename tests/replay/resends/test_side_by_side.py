"""A run beside its replay, and the spread of several."""

from __future__ import annotations

from harness.replay.resends import side_by_side
from harness.replay.resends.replays import Sample
from harness.replay.resends.side_by_side import Side
from tests.missions import House

SAYS = {"say": '```json harness\n{"status": "implemented", "summary": "done"}\n```'}
PATCH = b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


def side(**changed: object) -> Side:
    """A side with a green check and one file of work."""
    plain = Side(
        who="mine",
        outcome="ok",
        checks=[["VAL-1", "green"]],
        changed=1,
        tokens=5,
        cost_usd=None,
        seconds=1.0,
        patch=PATCH,
        reply="r",
    )
    return plain.replace(**changed)


def sample(number: int, **changed: object) -> Sample:
    """One time without usage."""
    return Sample(
        number=number, agent="mine", outcome="ok", reason="", seconds=float(number), usage=None, uncounted=0, at=""
    ).replace(**changed)


def test_equal_sides_differ_in_nothing() -> None:
    """Digests of files in the patches are no difference; then there are no lines, and no row for a check."""
    value = side_by_side.beside(side(), side(patch=PATCH.replace(b"1..2", b"3..4")))
    assert (value.work, value.replies) == ([], [])
    assert {what: (then, now) for what, then, now in side_by_side.rows(value)} == {
        "agent": ("mine", "mine"),
        "outcome": ("ok", "ok"),
        "checks": ("1 of 1 green", "1 of 1 green"),
        "files changed": ("1", "1"),
        "tokens": ("5", "5"),
        "cost": ("not known", "not known"),
        "seconds": ("1.0", "1.0"),
    }


def test_each_check_that_came_out_otherwise_has_a_row() -> None:
    """And a work that git has no more is not known, which is not none."""
    now = side(checks=[["VAL-1", "red (exit 1)"], ["VAL-2", "green"]], patch=PATCH.replace(b"+b", b"+c"))
    value = side_by_side.beside(side(), now)
    assert side_by_side.rows(value)[-2:] == [("  VAL-1", "green", "red (exit 1)"), ("  VAL-2", "not known", "green")]
    assert [line for line in value.work if line[1:2] == "+"][-2:] == ["-+b", "++c"]
    gone = side_by_side.beside(side(patch=None, changed=None), now)
    assert gone.work == [] and ("files changed", "not known", "1") in side_by_side.rows(gone)


def test_the_spread_has_least_median_and_most() -> None:
    """Of what is known; nothing known is None."""
    used = {"input": 1, "output": 1, "cost_usd": 0.5}
    samples = [sample(1, outcome="idle"), sample(2, checks=[["a", "green"], ["b", "red"]]), sample(6, usage=used)]
    value = side_by_side.spread(samples)
    assert value.outcomes == {"idle": 1, "ok": 2}
    assert (value.passed, value.tokens, value.cost_usd) == ([1, 1, 1], [2, 2, 2], [0.5, 0.5, 0.5])
    assert value.seconds == [1.0, 2.0, 6.0]
    assert side_by_side.spread(samples[:1]).tokens is None


def test_the_checks_of_then_are_those_of_the_next_judgement(house: House) -> None:
    """The validator's behind it, not that of a later try."""
    run = str(house.work({"run": "echo one > 2.txt"}, SAYS)["run"])
    house.script("validator", {"say": "```json harness\n{}\n```"})
    house.role("validator", "F-001")
    house.work({"run": "echo one > 1.txt"}, SAYS)
    house.role("validator", "F-001")
    shown = house.program("replay", run, "--agent", "scripted").out.split("\n")
    assert [line.split() for line in shown if "VAL-1" in line] == [["VAL-1", "red", "(exit", "1)", "green"]]
