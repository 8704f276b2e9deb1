"""Every reply has a closed schema; an error names its key; the reply is found anywhere in an agent's output."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from harness.base.errors import RequestRefused
from harness.mission import replies
from harness.state import raw

NOTES = [{"tag": tag, "text": "x"} for tag in raw.TAGS]
ASKED = {"name": "price", "text": "May it cost more?"}
ISSUES = [{"title": "t", "severity": "nit", "evidence": "e", "repro": "r", "suggested_fix": "s", "code_pointer": "c"}]
WHOLE: dict[str, dict[str, Any]] = {
    "plans": {
        "features": [
            {
                "id": "F-1",
                "title": "t",
                "claims": ["A"],
                "description": "d",
                "depends_on": [],
                "spec_refs": ["S"],
                "priority": 1,
                "source_issue": "I-001",
            }
        ],
        "contract": [
            {"id": "A", "claim": "it holds", "checks": [{"run": "x", "seconds": 9, "guard": True}], "manual": False}
        ],
        "setup": "make",
        "setup_inputs": ["package.json"],
        "services": [{"name": "web", "run": "serve", "ready": "curl x", "seconds": 5}],
        "drop": [{"id": "B", "reason": "gone"}],
        "reason": "another tool",
        "notes": NOTES,
        "issues": ISSUES,
        "checkpoint": ASKED,
    },
    "commits": {
        "status": "blocked",
        "summary": "s",
        "reason": "r",
        "needs": ["F-2"],
        "disputes": ["A"],
        "notes": NOTES,
        "issues": ISSUES,
        "checkpoint": ASKED,
    },
    "judges": {
        "checks": [{"claim": "A", "run": "x", "why": "y"}],
        "notes": NOTES,
        "issues": ISSUES,
        "checkpoint": ASKED,
    },
    "curates": {"operations": [], "notes": NOTES, "issues": ISSUES, "checkpoint": ASKED},
    "answers": {"notes": NOTES, "issues": ISSUES, "checkpoint": ASKED},
    "specifies": {"spec": "# A", "notes": NOTES, "issues": ISSUES, "checkpoint": ASKED},
}
FREE = {"operations"}  # the curator's requests are checked where they are carried out


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every object in a reply, the reply itself first."""
    found = [path] if isinstance(value, dict) else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [spot for key, item in items for spot in spots(item, (*path, key))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """The object at this path."""
    for key in path:
        value = value[key]
    return value


SPOTS = [(role, path) for role in WHOLE for path in spots(WHOLE[role])]
KEYS = [(role, path, key) for role, path in SPOTS for key in at(WHOLE[role], path) if key not in FREE]


def test_every_schema_has_a_whole_reply_here() -> None:
    """It has every known key and no error."""
    assert WHOLE.keys() == replies.SCHEMAS.keys()
    for role, shape in replies.SCHEMAS.items():
        assert WHOLE[role].keys() == set(shape.fields)
        assert replies.faults(role, WHOLE[role]) == []


@pytest.mark.parametrize(("role", "path"), SPOTS)
def test_every_object_in_a_reply_is_closed(role: str, path: tuple[Any, ...]) -> None:
    """An unread key would be lost silently."""
    value = copy.deepcopy(WHOLE[role])
    at(value, path)["surprise"] = 1
    (fault,) = replies.faults(role, value)
    assert "unknown key 'surprise'" in fault
    assert all(f"{key}" in fault for key in path[:1])


@pytest.mark.parametrize(("role", "path", "key"), KEYS)
def test_a_value_of_the_wrong_kind_is_named_by_its_key(role: str, path: tuple[Any, ...], key: str) -> None:
    """The agent can fix it while it is alive."""
    value = copy.deepcopy(WHOLE[role])
    at(value, path)[key] = 1.5
    assert any(f"'{key}'" in fault for fault in replies.faults(role, value))


NEEDED = [
    ("plans", (), "features"),
    ("plans", (), "contract"),
    ("commits", (), "status"),
    ("plans", ("features", 0), "id"),
    ("plans", ("features", 0), "title"),
    ("plans", ("features", 0), "claims"),
    ("plans", ("contract", 0), "id"),
    ("plans", ("contract", 0), "claim"),
    ("plans", ("contract", 0, "checks", 0), "run"),
    ("plans", ("services", 0), "name"),
    ("plans", ("services", 0), "run"),
    ("plans", ("services", 0), "ready"),
    ("plans", ("drop", 0), "id"),
    ("plans", ("drop", 0), "reason"),
    ("judges", ("checks", 0), "claim"),
    ("judges", ("checks", 0), "run"),
    ("commits", ("notes", 0), "tag"),
    ("commits", ("notes", 0), "text"),
    ("commits", ("issues", 0), "title"),
    ("commits", ("issues", 0), "severity"),
]


@pytest.mark.parametrize(("role", "path", "key"), NEEDED)
def test_what_is_missing_is_named(role: str, path: tuple[Any, ...], key: str) -> None:
    """The error has the place where it is missing."""
    value = copy.deepcopy(WHOLE[role])
    del at(value, path)[key]
    (fault,) = replies.faults(role, value)
    assert f"lacks '{key}'" in fault


def planned(**values: Any) -> dict[str, Any]:
    """A planner's reply with these values changed."""
    return {**copy.deepcopy(WHOLE["plans"]), **values}


@pytest.mark.parametrize(
    ("role", "value", "fault"),
    [
        ("commits", {"status": "passed"}, "'status' must be one of implemented, blocked"),
        ("commits", {"status": "blocked"}, "needs a 'reason'"),
        ("commits", {"status": "blocked", "reason": " \n"}, "needs a 'reason'"),
        ("commits", {"status": "implemented", "notes": [{"tag": "LIE", "text": "x"}]}, "notes[0]: the tag 'LIE'"),
        (
            "commits",
            {"status": "implemented", "issues": [{"title": "t", "severity": "bad"}]},
            "issues[0]: the severity",
        ),
        ("judges", {"checks": [{"claim": "A", "run": "x"}] * 4}, "at most 3 checks"),
        ("judges", {"checks": [{"claim": "A", "run": "a\0b"}]}, "'run' must be text without NUL"),
        ("plans", planned(contract=[{"id": "A", "claim": " "}]), "'claim' must say in one sentence"),
        ("plans", planned(contract=[{"id": "A", "claim": "x", "checks": ["a\0b"]}]), "contract[0].checks[0]: 'run'"),
        ("plans", planned(contract=[{"id": "A", "claim": "x", "checks": [{"run": "x", "seconds": 0}]}]), "'seconds'"),
        ("plans", planned(services=[{"name": "a b", "run": "x", "ready": "y"}]), "invalid service 'a b'"),
        ("plans", planned(services=[{"name": "w", "run": "x", "ready": "y"}] * 2), "service 'w' appears twice"),
        ("plans", planned(services=[{"name": "w", "run": "x", "ready": "a\nb"}]), "'ready' must be one line"),
        ("", {"notes": {}}, "'notes' must be a list"),
        *[(role, value, "must be a JSON object") for role in ("commits", "") for value in (None, 1, "x")],
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_its_reason(role: str, value: object, fault: str) -> None:
    """It is refused before it reaches the disk, where it would not read back."""
    found = replies.faults(role, value)
    assert len(found) == 1
    assert fault in found[0]


def test_a_check_may_be_a_plain_text() -> None:
    """The short form of {"run": …}."""
    assert replies.faults("plans", planned(contract=[{"id": "A", "claim": "x", "checks": ["true"]}])) == []


def test_a_role_of_the_users_own_may_reply_any_object() -> None:
    """Its notes and issues are checked as usual."""
    assert replies.faults("", {"anything": [1], "notes": NOTES, "issues": ISSUES}) == []
    assert replies.faults("", {"notes": [{"tag": "LIE", "text": "x"}]}) != []


def test_all_faults_are_told_at_once() -> None:
    """One new reply can fix them all."""
    with pytest.raises(RequestRefused) as caught:
        replies.parse("commits", '{"statu": 1, "summary": 2}')
    assert [key in str(caught.value) for key in ("'statu'", "'status'", "'summary'")] == [True] * 3


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON: line 1"),
        ("{\n'status'", "not JSON: line 2"),
        ("[" * 100_000, "cannot be stored"),
        ('{"status": "implemented", "summary": %s}' % ("9" * 5000), "cannot be stored"),
        ('{"status": "implemented", "summary": "\\ud83d"}', "cannot be stored"),
    ],
)
def test_what_is_no_json_is_the_agents_fault(text: str, fault: str) -> None:
    """This also holds if the parser itself fails, and if the text could not be written to disk."""
    with pytest.raises(RequestRefused, match=fault):
        replies.parse("commits", text)


def said(summary: str, mark: str = "json harness") -> str:
    """A message with a worker's reply in it."""
    return f"words\n```{mark}\n{json.dumps({'status': 'implemented', 'summary': summary})}\n```\nmore words\n"


def found(*messages: str) -> str | None:
    """The summary of the reply that these messages hold."""
    reply = replies.find("commits", list(messages))
    return reply["summary"] if reply else None


def test_the_last_marked_block_wins() -> None:
    """It wins over earlier blocks and over plain blocks after it."""
    assert found(said("a") + said("b"), said("c") + said("plain", "json"), "bye") == "c"


def test_a_plain_block_that_fits_is_taken() -> None:
    """The last one that fits; examples and other data are skipped."""
    assert found(said("a", "json") + said("b", "json") + '```json\n{"name": "x"}\n```\n```json\n{\n```\n') == "b"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "words",
        '{"status": "implemented"}',
        '```\n{"status": "implemented"}\n```\n',
        said("a")[:-20],
        said("a", "sh"),
    ],
)
def test_without_a_block_there_is_no_reply(message: str) -> None:
    """An unclosed fence does not count."""
    assert replies.find("commits", [message]) is None


@pytest.mark.parametrize(
    "before", ["```python\nnever closed\n", "```json harness\n{torn\n", "```x``` shows\n", "~~~\n~~~\n"]
)
def test_an_unclosed_fence_takes_no_reply_along(before: str) -> None:
    """The block after it is found."""
    assert found(before + said("a")) == "a"


def test_a_marked_block_that_is_wrong_is_told_not_passed_over() -> None:
    """The agent's last intent is not an older or a plain block."""
    with pytest.raises(RequestRefused, match="'status' must be one of"):
        replies.find("commits", [said("a"), '```json harness\n{"status": "done"}\n```\n', said("plain", "json")])
