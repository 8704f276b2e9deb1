"""Plots as plain SVG. Widths are percentages and heights are pixels: a plot fits every screen, and its text stays readable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10

from harness.base import clock
from harness.base.record import Record
from harness.report._markup import Html, element, folded, joined, table

COLOURS = 8  # of series, in _style.py; further series share the last one
HIGH, ABOVE, BELOW = 150, 14, 22  # pixels of the columns, and of the text around them
LEFT = 9.0  # per cent, for the numbers of an axis
LANE, NAME, BAR = 48, 16, 22  # pixels: height of a lane, of the name above its bars, of a bar
NARROWEST, WIDEST = 0.25, 9.0  # per cent: min width of a bar, max width of a column
MAX_LABELS = 8
DAY = 24 * 3600


class Bar(Record):
    """A run on the timeline, from `start` to `end` in unix seconds, in the lane of this number; `series` selects its colour."""

    lane: int
    start: float
    end: float
    series: int
    title: str
    link: str
    bad: bool = False


def colour(series: int) -> str:
    """The CSS class of a series."""
    return f"s{min(series, COLOURS - 1)}"


def legend(names: Sequence[str], more: Sequence[tuple[str, str]] = ()) -> Html:
    """The names of the series with their colours; `more`: (class, meaning) of other marks."""
    rows = [(colour(at), name or "-") for at, name in enumerate(names)]
    return element("ul", *(_key(name, meaning) for name, meaning in [*rows, *more]), class_="legend")


def _key(kind: str, meaning: str) -> Html:
    sign = element("svg", element("rect", width="100%", height="100%", class_=kind), class_="key", aria_hidden="true")
    return element("li", sign, " ", meaning)


def columns(
    title: str, labels: Sequence[str], series: dict[str, list[float]], shown: Callable[[float], str], note: str = ""
) -> Html:
    """A figure with one column per label, of stacked series with a value per label; a table below has the numbers."""
    sums = [sum(values[at] for values in series.values()) for at in range(len(labels))]
    top = ceiling(max(sums, default=0))
    width = (100 - LEFT) / max(len(labels), 1)
    parts = [_axis(top, shown)]
    for at, label in enumerate(labels):
        x, y = LEFT + at * width, float(ABOVE + HIGH)
        for number, (name, values) in enumerate(series.items()):
            height = HIGH * values[at] / top
            y -= height
            tip = element("title", f"{label}, {name}: {shown(values[at])}")
            wide = min(width * 0.76, WIDEST)
            sizes = {"x": _per(x + (width - wide) / 2), "width": _per(wide), "y": f"{y:.1f}"}
            parts += [element("rect", tip, **sizes, height=f"{height:.1f}", class_=colour(number))] if height else []
        if at % -(-len(labels) // MAX_LABELS) == 0:
            parts.append(_word(x + width / 2, ABOVE + HIGH + 16, label, anchor="middle"))
    picture = _picture(title, ABOVE + HIGH + BELOW, parts)
    rows = [[label, *(shown(values[at]) for values in series.values())] for at, label in enumerate(labels)]
    numbers = folded("the numbers", table(["", *series], rows, title))
    words = element("p", note, class_="note") if note else ""
    return element("figure", element("figcaption", title), legend([*series]), picture, words, numbers)


def ceiling(most: float) -> float:
    """The end of an axis for values up to `most`: 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return 1.0
    power = 10.0 ** int(log10(most) // 1)
    return next(power * step for step in (1, 2, 5, 10) if power * step >= most)


def _axis(top: float, shown: Callable[[float], str]) -> Html:
    parts = []
    for share in (0, 0.5, 1):
        y = ABOVE + HIGH * (1 - share)
        parts.append(element("line", x1=_per(LEFT), x2="100%", y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        parts.append(_word(LEFT - 1, y + 4, shown(top * share), anchor="end"))
    return joined(parts)


def timeline(title: str, lanes: Sequence[str], bars: Sequence[Bar], series: Sequence[str]) -> Html:
    """A figure of all lanes, with a bar per run that links to the run; the list of runs also contains them all."""
    first, last = min(bar.start for bar in bars), max(bar.end for bar in bars)
    span = max(last - first, 1.0)
    parts = []
    for at, name in enumerate(lanes):
        parts.append(_word(0, at * LANE + NAME - 4, name))
        y = f"{at * LANE + NAME + BAR / 2:.1f}"
        parts.append(element("line", x1="0", x2="100%", y1=y, y2=y, class_="grid"))
    parts += [_bar(bar, first, span) for bar in bars]
    high = (len(lanes) - 1) * LANE + NAME + BAR
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        parts.append(_word(100 * share, high + 16, _moment(first + span * share, span), anchor=anchor))
    marks = [("bad", "red, not accepted, or cut")]
    picture = _picture(title, high + BELOW, parts)
    return element("figure", element("figcaption", title), legend(series, marks), picture)


def _bar(bar: Bar, first: float, span: float) -> Html:
    x, width = 100 * (bar.start - first) / span, max(100 * (bar.end - bar.start) / span, NARROWEST)
    sizes = {"x": _per(min(x, 100 - NARROWEST)), "width": _per(width)}
    y = float(bar.lane * LANE + NAME)
    parts = [element("rect", y=f"{y:.1f}", height=BAR, class_=colour(bar.series), **sizes)]
    parts += [element("rect", y=f"{y + BAR - 6:.1f}", height=6, class_="bad", **sizes)] if bar.bad else []
    return element("a", element("title", bar.title), *parts, href=bar.link, tabindex=-1)


def _moment(seconds: float, span: float) -> str:
    stamp = clock.stamp(seconds)
    return f"{stamp[5:10]} {stamp[11:16]}" if span > DAY / 2 else stamp[11:19] if span < 3600 else stamp[11:16]


def steps(title: str, moments: Sequence[float], series: dict[str, list[float]]) -> Html:
    """A figure of values that change in steps at these times; a table below has the numbers."""
    top = ceiling(max((value for values in series.values() for value in values), default=0))
    first, span = moments[0], max(moments[-1] - moments[0], 1.0)
    shown = "{:.0f}".format
    lines = [
        element(
            "polyline",
            points=_points(moments, values, first, span, top),
            class_=f"{colour(number)} stroke",
            vector_effect="non-scaling-stroke",
        )
        for number, values in enumerate(series.values())
    ]
    whole = {"x": _per(LEFT), "y": ABOVE, "width": _per(100 - LEFT), "height": HIGH}
    inner = element("svg", *lines, viewBox="0 0 100 100", preserveAspectRatio="none", **whole)
    ends = [_word(LEFT, ABOVE + HIGH + 16, _moment(first, span))]
    ends.append(_word(100, ABOVE + HIGH + 16, _moment(moments[-1], span), anchor="end"))
    rows = [
        [clock.stamp(at), *(shown(values[number]) for values in series.values())] for number, at in enumerate(moments)
    ]
    numbers = folded("the numbers", table(["", *series], rows, title))
    picture = _picture(title, ABOVE + HIGH + BELOW, [_axis(top, shown), inner, *ends])
    return element("figure", element("figcaption", title), legend([*series]), picture, numbers)


def _points(moments: Sequence[float], values: Sequence[float], first: float, span: float, top: float) -> str:
    found, before = [], values[0]
    for at, value in zip(moments, values, strict=True):
        x = 100 * (at - first) / span
        found += [f"{x:.2f},{100 - 100 * before / top:.2f}", f"{x:.2f},{100 - 100 * value / top:.2f}"]
        before = value
    return " ".join([*found, f"100,{100 - 100 * before / top:.2f}"])


def tries(words: Sequence[tuple[str, str, str]]) -> Html:
    """A row of squares, one per attempt: (CSS class, meaning, link)."""
    found = []
    for kind, meaning, link in words:
        dash = element("rect", x="25%", y="42%", width="50%", height="16%", class_="dash") if kind != "good" else ""
        whole = element("rect", width="100%", height="100%", class_=kind)
        square = element("svg", whole, dash, class_="try", aria_hidden="true")
        found.append(
            element("li", element("a", square, element("span", meaning, class_="unseen"), href=link, title=meaning))
        )
    return element("ol", *found, class_="tries") if found else Html("")


def _picture(title: str, high: float, parts: Sequence[object]) -> Html:
    return element("svg", *parts, role="img", aria_label=title, class_="plot", width="100%", height=f"{high:.0f}")


def _word(x: float, y: float, words: str, anchor: str = "start") -> Html:
    return element("text", words, x=_per(x), y=f"{y:.1f}", text_anchor=anchor)


def _per(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") + "%"
