"""Which conversation a run goes on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base import encoding
from harness.builtin._order import ChildOrder
from harness.builtin._run import WHY, before, key_of
from harness.mission import runs
from harness.state import names
from tests.builtin.talking import RUN, Bench, serving, steps


def order(bench: Bench, role: str = "worker", feature: str = "F-001") -> ChildOrder:
    """The order of a later run."""
    return ChildOrder(
        parameters={}, key_env=["ONE_KEY", "OTHER_KEY"], directory="", project=bench.layout.folders.project,
        state=bench.layout.state, run="2-worker-F-001", role=role, feature=feature,
    )  # fmt: skip


def ended(bench: Bench, outcome: str, role: str = "worker", feature: str = "F-001") -> None:
    """The run log has this run as its newest."""
    result = runs.RunResult(
        run=RUN, role=role, feature=feature, trigger="", outcome=outcome, reason="", verdict="", agent="builtin",
        at="2026-01-01T00:00:00Z", seconds=1.0, commit="", head="", newly_green=0, accepted=None, sweep=None, usage=None,
        kept_out=[], refused=[], mark="", seal="", totals={},
    )  # fmt: skip
    Path(bench.layout.path(names.RUN_LOG)).write_bytes(encoding.dump_json(result.asdict()))


@pytest.mark.parametrize("outcome", runs.OUTCOMES)
def test_only_a_run_that_was_cut_off_is_gone_on_with(tmp_path: Path, outcome: str) -> None:
    """And only by its own role, on its own feature."""
    bench = Bench(tmp_path)
    with serving(steps("echo a")) as server:
        bench.talk(f"{server.url}/v1")
    ended(bench, outcome)
    found = before(bench.layout, order(bench))
    assert (found is not None) == (outcome in runs.CUT) == (outcome in WHY)
    assert before(bench.layout, order(bench, feature="F-002")) is None
    assert before(bench.layout, order(bench, role="validator")) is None


def test_a_run_that_is_cut_off_twice_is_gone_on_with(tmp_path: Path) -> None:
    """Also where the second one ended before its first answer: the conversation is that of the first, with its files."""
    bench = Bench(tmp_path)
    with serving(steps("seq 1 30000")) as server:
        first = bench.talk(f"{server.url}/v1", run="0-worker-F-001")
        server.fail("auth")
        bench.talk(f"{server.url}/v1", prompt="Once more.", cut=first.log)
    ended(bench, "killed")
    found = before(bench.layout, order(bench))
    assert found is not None and found[2].messages()[: len(first.log.context)] == first.log.messages()
    assert "Once more." in found[2].messages()[-1]["text"]


def test_a_run_without_an_answer_has_nothing_to_go_on_with(tmp_path: Path) -> None:
    """The same prompt, once more."""
    bench = Bench(tmp_path)
    with serving(steps()) as server:
        server.fail("auth")
        bench.talk(f"{server.url}/v1")
    ended(bench, "killed")
    assert before(bench.layout, order(bench)) is None


def test_the_first_variable_with_a_key_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one is none."""
    monkeypatch.setenv("ONE_KEY", "")
    monkeypatch.setenv("OTHER_KEY", "k")
    assert key_of(order(Bench(tmp_path))) == "k"
