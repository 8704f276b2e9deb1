"""The page of a mission: one self-contained HTML file that works without network and script, made of templates/."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.base import clock, console, faults
from harness.decision import rules
from harness.report import _view
from harness.report._facts import Facts
from harness.state.layout import command

FILTERS = {
    "attempt": _view.attempt,
    "command": command,
    "counted": rules.counted,
    "cut": faults.cut,
    "duration": _view.duration,
    "first_fault": faults.first,
    "kind": _view.kind,
    "moment": _view.moment,
    "money": _view.money,
    "short_time": _view.short_time,
    "shortened": _view.shortened,
    "stamp": clock.stamp,
    "waits": _view.waits,
    "when": _view.when,
}


def render(found: Facts) -> bytes:
    """The page in UTF-8. Every value is escaped; control and bidirectional characters become visible."""
    templates = Environment(
        loader=PackageLoader("harness.report"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= FILTERS
    style, script = embedded("style.css"), embedded("script.js")
    page = templates.get_template("report.html").render(
        policy=policy(style, script),
        style=style,
        script=script,
        facts=found,
        claims=_view.claims(found),
        lanes=_view.lanes(found),
        roles=_view.roles(found),
        days=_view.days(found),
        spent=_view.spent(found),
        growth=_view.growth(found),
    )
    return f"{console.sanitise(page)}\n".encode()


def embedded(name: str) -> Markup:
    """The style or the script of the page, byte for byte."""
    return Markup(resources.files("harness.report").joinpath("templates", name).read_text("utf-8"))


def policy(*parts: str) -> str:
    """The Content-Security-Policy of the page: allows only its embedded style and script, by digest."""
    own = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    return f"default-src 'none'; style-src 'sha256-{own[0]}'; script-src 'sha256-{own[1]}'; base-uri 'none'; form-action 'none'"
