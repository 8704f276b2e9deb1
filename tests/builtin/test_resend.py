"""A past request sent again, by the command: the same bytes reach the model, and its cost is that of a replay."""

from __future__ import annotations

import json
from pathlib import Path

from harness.state import names
from tests.agents.modelserver import Reply
from tests.builtin.talking import serving, slow, steps
from tests.builtin.test_main import DONE, configured
from tests.missions import House, differences, listing


@slow
def test_a_request_is_sent_again_byte_for_byte(house: House) -> None:
    """The answer of now is shown beside that of then; the mission has nothing of it but its cost; inside a run it is refused."""
    with serving(steps("echo a > a.txt", Reply(DONE))) as server:
        Path(house.layout.path(names.CONFIG)).write_text(configured(server))
        house.role("worker", "F-001")
        run, passed = house.result()["run"], (".harness/replays", ".harness/locks", ".harness/cache")
        before = listing(house.project, *passed)
        server.brain = lambda _: Reply("Another answer.")
        done = house.program("replay", run, "--turn", "2", "--agent", "builtin", "--json")
        value, bodies = json.loads(done.out), [one.body for one in server.seen]
        server.fail("rate_limit")
        limited = house.program("replay", run, "--turn", "2", "--agent", "builtin")
    assert (done.code, value["again"]["equal"], value["again"]["answer"]["text"]) == (0, True, "Another answer."), done
    assert bodies[-1] == bodies[1]
    assert differences(before, listing(house.project, *passed)) == []
    assert json.loads(house.program("usage", "--json").out)["replays"], "its tokens count"
    assert limited.code == 75 and "Rate limit" in limited.out, limited
