"""Writing the page: whole or not at all, where it is wanted, and over nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.errors import UsageFault
from harness.mission import mission
from harness.report import page_file
from harness.state import names
from harness.state.layout import Layout
from tests.missions import House, differences, listing
from tests.report import many


def test_it_goes_beside_the_state_and_changes_nothing_else(house: House) -> None:
    """A second one replaces the first; only caches may change besides."""
    many.mission(house.layout, 4)
    before = listing(house.project, ".harness/cache")
    first = page_file.write(house.layout, "", "")
    second = page_file.write(house.layout, "", "")
    assert differences(before, listing(house.project, ".harness/cache")) == [".harness/report.html"]
    assert (first.path, second.runs, second.faults) == (house.layout.path(names.REPORT), 4, [])
    assert second.size == Path(second.path).stat().st_size
    assert house.git("status", "--porcelain") == ""


def test_it_goes_where_a_person_wants_it(house: House, tmp_path: Path) -> None:
    """Also over an older page."""
    for _ in range(2):
        made = page_file.write(house.layout, "", str(tmp_path / "page.html"))
    assert Path(made.path).read_bytes().startswith(page_file.BEGINS)
    assert not Path(house.layout.path(names.REPORT)).exists()


@pytest.mark.parametrize("name", ["SPEC.md", ".harness/config.toml", ".harness/new.html", "nowhere/page.html", "."])
def test_it_overwrites_nothing_else(house: House, name: str) -> None:
    """A person's file, the mission's state, a folder, a folder that is not there."""
    before = listing(house.project, ".harness/cache", ".harness/locks")
    with pytest.raises(UsageFault):
        page_file.write(house.layout, "", str(house.project / name))
    assert differences(before, listing(house.project, ".harness/cache", ".harness/locks")) == []


def test_a_mission_that_was_put_away_has_its_own(house: House) -> None:
    """In its folder, with all its runs."""
    many.mission(house.layout, 6)
    old = mission.load(house.layout).id
    assert house.harness("init", "--abandon", "--quietly").code == 0
    assert mission.load(house.layout).id != old
    archived = Layout(str(house.project), house.layout.archive_of(old))
    before = listing(Path(archived.state))
    made = page_file.write(house.layout, old, "")
    assert (made.path, made.runs, made.faults) == (archived.path(names.REPORT), 6, [])
    assert differences(before, listing(Path(archived.state))) == ["report.html"]
    assert old in Path(made.path).read_text()
    with pytest.raises(UsageFault, match=old):
        page_file.write(house.layout, "other", "")


def test_an_agent_writes_no_page_into_the_state(house: House) -> None:
    """It may look, and put a page into its own tree."""
    house.work({"say": "hello"})
    run = house.result()["run"]
    assert house.harness("--run", run, "report").code == 64
    assert house.harness("--run", run, "report", "--to", str(house.project / "page.html")).code == 0
