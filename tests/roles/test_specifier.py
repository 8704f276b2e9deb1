"""The specifier: its reply becomes SPEC.md if it ends in claims."""

from __future__ import annotations

import pytest

from tests.missions import SPEC, House
from tests.planned import reply

TEXT = "# A program\n\nIt counts.\n\n```json\n{}\n```\n\n## Claims\n\n- `count` prints a number"


@pytest.mark.parametrize(
    "said", [reply(spec=TEXT), {"say": TEXT}, {"say": f"Here it is.\n\n````markdown\n{TEXT}\n````\nGood luck!"}]
)
def test_each_form_of_the_reply_becomes_spec_md(house: House, said: dict[str, str]) -> None:
    """A block, the whole message, or a fence in it; the prompt has what SPEC.md was until then."""
    house.script("specifier", said)
    assert house.role("specifier").code == 0
    assert (house.project / "SPEC.md").read_text() == TEXT + "\n"
    assert "It works." in house.prompt()


def test_a_text_without_claims_is_refused(house: House) -> None:
    """It is the agent's fault, and SPEC.md stays."""
    house.script("specifier", {"say": "# A program\n\n## Claims\n\nIt works."})
    assert house.role("specifier").code == 10
    assert "no list under a heading '## Claims'" in house.result()["reason"]
    assert (house.project / "SPEC.md").read_text() == SPEC
