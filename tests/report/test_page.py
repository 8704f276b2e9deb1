"""The page of a mission: whole, small, quick, safe, and readable in a real browser by mouse, keyboard and phone."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.base.record import Record
from harness.report import _facts, _page
from harness.state import names
from tests import browser
from tests.missions import House
from tests.report import many

VOID = ("meta", "input")
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[2J \u202e ' \" &amp;"
TAB, ENTER = ("Tab", 9), ("Enter", 13, "\r")


class Strict(HTMLParser):
    """Holds a page to what a browser would forgive: every tag is closed in its place, ids are unique, links lead somewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.levels: list[int] = []
        self.outside: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.stack.append(tag)
        self.note(tag, dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def note(self, tag: str, attributes: dict[str, str | None]) -> None:
        """What a tag says."""
        self.tags.add(tag)
        self.ids += [attributes["id"] or ""] if "id" in attributes else []
        self.levels += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        for name, value in attributes.items():
            assert not name.startswith("on") and name != "style", (tag, name)
            if name == "href" and (value or "").startswith("#"):
                self.links.append((value or "")[1:])
            elif name in ("href", "src", "action"):
                self.outside.append(value or "")


def rendered(house: House) -> str:
    """The page of a house."""
    return _page.render(_facts.gather(house.layout)).decode()


def section(found: _facts.Facts, name: str) -> str:
    """One section of the page of these facts."""
    return _page.render(found).decode().partition(f'<section id="{name}"')[2].partition("</section>")[0]


def strict(text: str) -> Strict:
    """A page, held to the rules."""
    found = Strict(text)
    assert len(found.ids) == len(set(found.ids))
    assert set(found.links) <= set(found.ids)
    assert found.outside == []
    assert found.levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(found.levels, found.levels[1:], strict=False))
    return found


def test_a_mission_without_a_run_has_a_page(house: House) -> None:
    """Every section is there, and says that there is nothing yet."""
    found = strict(rendered(house))
    assert {"proof", "features", "timeline", "spending", "people", "signs", "memory", "runs"} <= set(found.ids)
    assert "Nothing has run yet." in rendered(house)


def test_every_run_and_claim_is_on_a_well_formed_page(house: House) -> None:
    """Links lead to them, and nothing is asked of any other place."""
    many.mission(house.layout, 40)
    found = strict(rendered(house))
    assert {f"run-{row['run']}" for row in house.ran()} <= set(found.ids)
    assert {"claim-VAL-1", "claim-VAL-2", "claim-VAL-LOOK"} <= set(found.ids)
    text = rendered(house)
    assert "default-src &#39;none&#39;" in text
    assert not re.search(r"(https?:)?//[a-z]", text.replace("http-equiv", ""))


def test_text_of_agents_stays_text(house: House) -> None:
    """Markup is escaped; what steers a terminal or turns text is made visible."""
    house.harness("issue", HOSTILE)
    house.harness("steer", HOSTILE)
    house.work({"note": f"a {HOSTILE}"}, {"say": HOSTILE})
    Path(house.layout.path(names.ESCALATION)).write_text(f"---\nkind: stuck\n---\n{HOSTILE}\n")
    house.harness("feature", "set", "F-001", "--title", HOSTILE)
    text = rendered(house)
    assert strict(rendered(house)).tags.isdisjoint({"img"})
    assert text.count("<script") == 1
    assert "alert(1)" in text
    assert not set("\x1b\u202e") & set(text)


def soured(value: Any) -> Any:
    """A value with hostile words in each of its texts."""
    if isinstance(value, Record):
        return type(value)(**{name: soured(getattr(value, name)) for name in value.fields})
    if isinstance(value, list | tuple):
        return type(value)(map(soured, value))
    if isinstance(value, dict):
        return {key: soured(each) for key, each in value.items()}
    return value + HOSTILE if isinstance(value, str) else value


def test_no_text_of_a_mission_becomes_markup(house: House) -> None:
    """Wherever it stands: names of runs, lanes, models and days are in attributes and in plots, too."""
    many.mission(house.layout, 12)
    house.harness("issue", "a part is missing")
    Path(house.layout.path(names.ESCALATION)).write_text("---\nkind: stuck\n---\nWhat now?\n")
    clean = _facts.gather(house.layout)
    clean.proofs[0].signs, clean.runs[0].result.secrets, clean.runs[1].result.refused = ["a"], ["b"], ["c"]
    before, after = (_page.render(found).decode() for found in (clean, soured(clean)))
    assert strict(after).tags <= strict(before).tags
    assert after.count("<script") == 1
    assert after.count("alert(1)") > 300
    assert not set("\x1b\u202e") & set(after)


def test_five_hundred_runs_are_a_small_page(house: House) -> None:
    """Well below 2 MB."""
    many.mission(house.layout, 500)
    data = _page.render(_facts.gather(house.layout))
    assert len(data) < 1_500_000
    assert data.count(b'class="run"') == 500


def test_what_runs_print_does_not_swell_the_page(house: House) -> None:
    """Long replies, outputs and reasons are cut, and it says where the rest is."""
    many.mission(house.layout, 40)
    for row in house.ran():
        Path(house.layout.run(row["run"]).reply).write_text("x" * 100_000)
    data = _page.render(_facts.gather(house.layout))
    assert len(data) < 300_000
    assert b"runs show" in data


@pytest.mark.skipif(not browser.found(), reason=browser.WHY_NOT)
def test_a_browser_shows_it_and_the_keyboard_reaches_every_run(house: House) -> None:
    """No complaint on the console, no request but the page itself, no sideways scrolling on a phone."""
    many.mission(house.layout, 24)
    assert house.harness("report").code == 0
    url = Path(house.layout.path(names.REPORT)).as_uri()
    with browser.Page(width=390) as shown:
        shown.open(url)
        assert shown.value("document.documentElement.scrollWidth") <= 390
        reached, last = {}, ""
        for _ in range(400):
            shown.press(*TAB)
            last = shown.value(ACTIVE)
            if last in reached:
                break
            reached[last] = True
        wanted = [f"run-{row['run']}" for row in house.ran()]
        assert set(wanted) <= {name.removeprefix("SUMMARY ") for name in reached}
        shown.value(f"document.getElementById('{wanted[0]}').firstElementChild.focus()")
        shown.press(*ENTER)
        assert shown.value(f"document.getElementById('{wanted[0]}').open") is True
        shown.value(f"location.hash = '#{wanted[3]}'")
        shown.value("new Promise(done => setTimeout(done, 50))")
        assert shown.value(f"document.getElementById('{wanted[3]}').open") is True
        shown.value(FILTER)
        assert shown.value("document.querySelectorAll('#runs details.run:not([hidden])').length") == 6
        assert (shown.complaints, set(shown.requests)) == ([], {url})


ACTIVE = """(function(){var at=document.activeElement;var box=at.closest("details");
return at.tagName==="SUMMARY"&&box?"SUMMARY "+(box.id||[...document.querySelectorAll("details")].indexOf(box)):
at.tagName+" "+[...document.querySelectorAll("a,input,button,pre,[tabindex]")].indexOf(at)})()"""
FILTER = """(function(){var field=document.querySelector("#runs input");field.value="planner";
field.dispatchEvent(new Event("input"))})()"""
