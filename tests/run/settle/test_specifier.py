"""What the specifier's reply does: it never goes over a person's edit."""

from __future__ import annotations

import json

from tests.missions import House


def test_what_a_person_writes_meanwhile_stays(house: House) -> None:
    """The proposed text is kept in the run's folder."""
    spec = house.project / "SPEC.md"
    house.base = ('confine = "off"',)
    house.config('agent = "scripted"')
    house.script(
        "specifier", {"run": f"echo mine > {json.dumps(str(spec))}"}, {"say": "# A\n\n## Claims\n\n- it counts"}
    )
    assert house.role("specifier").code == 10
    assert (house.result()["outcome"], spec.read_text()) == ("conflict", "mine\n")
