"""Which mission a folder holds, and whether its format is known, is decided before any write."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.mission import mission
from harness.state import names
from harness.state.layout import Layout
from tests.crash import contents
from tests.helpers import mission as folder
from tests.helpers import put
from tests.missions import SPEC, House

TOLD = {"id": "sheets-a1b2c3", "created": "2026-04-24", "host": "h", "branch": "harness/x", "base_commit": "0" * 40}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A mission with an empty folder."""
    return folder(tmp_path)


def test_where_there_is_no_mission_it_is_said_how_to_begin(layout: Layout) -> None:
    """This is not a broken file."""
    assert not mission.exists(layout)
    with pytest.raises(UsageFault, match=r"no mission in .* Write SPEC\.md"):
        mission.load(layout)


def test_a_mission_comes_back(layout: Layout) -> None:
    """With or without a newline after the format."""
    put(layout.path(names.MISSION), json.dumps(TOLD))
    for text in ("2", "2\n"):
        put(layout.path(names.FORMAT), text)
        assert mission.load(layout) == mission.Mission(**TOLD)
    assert mission.exists(layout)


@pytest.mark.parametrize("text", ["1\n", "3\n", "", "one", "1.0", "-1"])
def test_an_unknown_format_is_refused(layout: Layout, text: str) -> None:
    """An older or a newer harness, or another program, wrote it."""
    put(layout.path(names.FORMAT), text)
    put(layout.path(names.MISSION), json.dumps(TOLD))
    with pytest.raises(BrokenFile, match=r"format, line 1: unknown format .* reads format 2"):
        mission.load(layout)


def kept(house: House) -> dict[str, bytes]:
    """The state of the mission, without its cache."""
    return {path: data for path, data in contents(str(house.state)).items() if names.CACHE not in Path(path).parts}


@pytest.mark.parametrize(
    "words", ["next", "status", "init --quietly", "init --new --abandon", "doctor --fix", "replay --all"]
)
def test_a_mission_of_an_older_format_is_refused_in_one_line(house: House, words: str) -> None:
    """Which format it has, and which this harness reads; nothing of it is changed."""
    (house.state / "format").write_text("1\n")
    before = kept(house)
    done = house.program(*words.split())
    assert (done.code, done.out, done.err.count("\n")) == (65, "", 1), done
    assert "unknown format '1'. This harness reads format 2" in done.err
    assert before.items() <= kept(house).items()


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ({**TOLD, "x": 1}, "unknown key 'x'"),
        *[({**TOLD, key: 5}, f"'{key}' must be text") for key in TOLD],
        *[({other: TOLD[other] for other in TOLD if other != key}, f"lacks '{key}'") for key in TOLD],
    ],
)
def test_a_mission_that_is_none_is_named(layout: Layout, value: Any, fault: str) -> None:
    """The error has the file and every fault; with a format, an absent file is an error too."""
    put(layout.path(names.FORMAT), "2\n")
    if value is not None:
        put(layout.path(names.MISSION), json.dumps(value))
    with pytest.raises(BrokenFile, match=rf"mission\.json: not a mission's .*{fault}"):
        mission.load(layout)


@pytest.mark.parametrize(
    ("project", "slug"),
    [("/a/Sheets Clone", "sheets-clone"), ("/a/é", "mission"), ("/", "mission"), ("/a/" + "x" * 90, "x" * 40)],
)
def test_an_id_is_the_folders_slug_and_six_digits(project: str, slug: str) -> None:
    """Two missions in folders of the same name differ."""
    assert re.fullmatch(rf"{slug}-[0-9a-f]{{6}}", mission.new_id(project))
    assert mission.new_id(project) != mission.new_id(project)


@pytest.mark.parametrize("accepted", [b"# A\n\nB\n", b"\xef\xbb\xbf# A\r\n\r\nB\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_another_editor_s_mark_and_line_ends_are_no_change(
    house: House, accepted: bytes, mark: bytes, end: bytes
) -> None:
    """Whichever way the accepted copy was written; other words are one, and a file of a mark alone is empty."""
    Path(house.layout.path(names.SPEC)).write_bytes(accepted)
    spec = house.project / "SPEC.md"
    for text, changed in ((b"# A\n\nB\n", False), (b"# A\n\nC\n", True), (b"\n", False)):
        spec.write_bytes(mark + text.replace(b"\n", end))
        assert mission.spec_changed(house.layout) is changed


def test_it_is_theirs_or_absent(house: House) -> None:
    """Bytes as they are; text with a fault that names the line."""
    assert mission.asked_spec(house.layout) == SPEC.encode()
    assert not mission.spec_changed(house.layout)
    (house.project / "SPEC.md").write_bytes(b"# A\n\xff\n")
    assert mission.spec_changed(house.layout)
    with pytest.raises(BrokenFile, match="line 2"):
        mission.asked_spec_text(house.layout)
    (house.project / "SPEC.md").unlink()
    assert (
        mission.asked_spec(house.layout),
        mission.asked_spec_text(house.layout),
        mission.spec_changed(house.layout),
    ) == (None, None, False)
