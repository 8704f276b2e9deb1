"""Colours that can be read, and a policy that lets the page ask for nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import re

import pytest

from harness.report import _facts, _page
from tests.missions import House


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`, by the formula of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


SHEET = _page.embedded("style.css")
LIGHT, DARK = (dict(re.findall(r"--(\w+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", SHEET, re.S))


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_and_plots_have_contrast(colours: dict[str, str]) -> None:
    """WCAG AA: 4.5 for text, 3 for parts of a plot, in light and dark."""
    for behind in ("paper", "field"):
        words = {
            name: contrast(colours[name], colours[behind]) for name in ("ink", "soft", "link", "good", "bad", "warn")
        }
        assert {name: round(value, 2) for name, value in words.items() if value < 4.5} == {}
    parts = {name: contrast(value, colours["paper"]) for name, value in colours.items() if re.fullmatch(r"s\d", name)}
    assert len(parts) == 8
    assert {name: round(value, 2) for name, value in parts.items() if value < 3} == {}


def test_both_kinds_of_light_have_the_same_colours() -> None:
    """No variable is missing where it is dark."""
    assert list(LIGHT) == list(DARK)
    assert set(re.findall(r"var\(--(\w+)\)", SHEET)) == set(LIGHT)


def test_the_policy_admits_exactly_the_style_and_script_of_the_page(house: House) -> None:
    """Their digests, as the page has them; everything else from anywhere is refused."""
    text = _page.render(_facts.gather(house.layout)).decode()
    policy = html.unescape(re.findall('http-equiv="Content-Security-Policy" content="(.*?)"', text)[0])
    for tag in ("style", "script"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert len(inside) == 1
        assert f"sha256-{base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()}" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
