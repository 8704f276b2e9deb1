"""`replay RUN --turn N`, as a person sees it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.builtin.talking import Bench, serving, steps
from tests.cli.test_values import contracted
from tests.missions import House


def test_a_turn_is_shown_with_its_answer_and_compared(house: House, tmp_path: Path) -> None:
    """A line for each part, what is new, what came back; a file that somebody changed is 65, with its line."""
    run = house.work({"say": "Done."})["run"]
    bench = Bench(tmp_path / "bench")
    bench.layout = house.layout
    with serving(steps("echo a > a.txt")) as server:
        bench.talk(f"{server.url}/v1", run=run)
    done = house.harness("replay", run, "--turn", "2")
    assert done.code == 0, done
    assert "turn 2 of 2" in done.out and "Done." in done.out
    assert [line.split()[1] for line in done.out.splitlines()[2:7]] == ["tools", "system", "user", "assistant", "tool"]
    shown = json.loads(house.harness("replay", run, "--turn", "2", "--json").out)
    assert sorted(shown) == contracted()["replay RUN --turn N"]
    assert house.harness("replay", run, "--turn", "9").code == 64
    assert house.harness("replay", run, "--turn", "2", "--agent", "claude").code == 64
    path = Path(house.layout.run(run).turns)
    path.write_text(path.read_text().replace("echo a ", "echo b "))
    done = house.harness("replay", run, "--turn", "2")
    assert done.code == 65 and "turns.jsonl, line " in done.err, done
