"""The queue has one format and one table of transitions, and no event sets `passed` directly."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import BrokenFile, UsageFault
from harness.mission import features
from harness.mission.features import Feature
from harness.state import names
from tests.helpers import growth, mission, noted, put

ALLOWED = {
    ("start", "todo"): "in_progress",
    ("start", "failing"): "in_progress",
    ("implemented", "in_progress"): "validating",
    ("blocked", "in_progress"): "blocked",
    **{("enter", name): "in_progress" for name in ("todo", "failing", "passed", "blocked", "validating")},
    **{(f"back to {name}", "in_progress"): name for name in ("todo", "failing", "blocked")},
    ("proved", "validating"): "passed",
    ("green already", "todo"): "validating",
    ("refuted", "validating"): "failing",
    ("refuted", "passed"): "failing",
    ("needs passed", "blocked"): "todo",
    ("replanned", "todo"): "todo",
    ("replanned", "failing"): "todo",
    ("replanned", "blocked"): "todo",
    ("retry", "todo"): "todo",
    ("retry", "in_progress"): "todo",
    ("retry", "validating"): "todo",
    ("retry", "passed"): "todo",
    ("retry", "failing"): "todo",
    ("retry", "blocked"): "todo",
    ("block", "todo"): "blocked",
    ("block", "failing"): "blocked",
    ("block", "validating"): "blocked",
    ("claim set", "todo"): "todo",
    ("claim set", "blocked"): "todo",
    ("claim set", "failing"): "validating",
    ("claim set", "validating"): "validating",
    ("claim set", "passed"): "validating",
}
EVENTS = sorted({event for event, _ in ALLOWED})


def feature(name: str = "F-1", **values: Any) -> Feature:
    """A feature with these fields."""
    return Feature(**{"id": name, "title": "t", "claims": ["VAL-1"], **values})


def test_the_table_of_transitions_is_this_one() -> None:
    """No event is missing here, and none is extra."""
    assert sorted(features.TRANSITIONS) == EVENTS


@pytest.mark.parametrize(("event", "status"), list(itertools.product(EVENTS, features.STATUSES)))
def test_every_event_moves_a_feature_or_is_refused(event: str, status: str) -> None:
    """After a refusal the feature is unchanged, and the answer names the allowed statuses."""
    one = feature(status=status)
    if (event, status) in ALLOWED:
        features.move(one, event)
        assert one.status == ALLOWED[event, status]
    else:
        with pytest.raises(UsageFault, match=f"F-1 is '{status}'; '{event}' is for a feature that is"):
            features.move(one, event)
        assert one.status == status


def test_nobody_sets_passed() -> None:
    """Only a proof during validation gives it."""
    ways = [
        (event, old) for event, table in features.TRANSITIONS.items() for old, new in table.items() if new == "passed"
    ]
    assert ways == [("proved", "validating")]


def test_only_a_red_check_or_a_person_takes_passed_away() -> None:
    """A new plan does not, and nor does a worker by itself."""
    ways = [event for event, table in features.TRANSITIONS.items() if "passed" in table]
    assert ways == ["enter", "refuted", "retry", "claim set"]


def test_features_come_back_one_a_line() -> None:
    """They keep file order and all notes."""
    made = [feature(), feature("F-2", title="é\n\u2028", depends_on=["F-1"], source_issue="I-001", replanned=True)]
    noted(made[1], "needs", "F-1")
    data = features.render(made)
    assert features.parse(data, "f") == made
    assert len(data.split(b"\n")) == len(made) + 3
    assert features.parse(features.render([]), "f") == []


def queue_of(number: int) -> list[Feature]:
    """A queue of this length."""
    return [Feature(id=f"F-{index}", title="t", claims=[f"VAL-{index}"]) for index in range(number)]


def test_an_id_that_appears_twice_is_named_with_its_line() -> None:
    """The first of several, at its second place."""
    doubled = [*queue_of(3), *queue_of(2)]
    with pytest.raises(BrokenFile, match=r"line 5: feature 'F-0' appears twice"):
        features.parse(features.render(doubled), "features.json")


@pytest.mark.parametrize("twice", [False, True])
def test_a_queue_four_times_as_long_takes_four_times_the_steps(twice: bool) -> None:
    """To write and to read, also one with a fault in its last line."""

    def made(number: int) -> Callable[[], object]:
        found = queue_of(number)

        def body() -> None:
            features._last[0] = (None, [], [])  # what the process remembers costs nothing again
            with pytest.raises(BrokenFile) if twice else nullcontext():
                features.parse(features.render([*found, *found[-1:] * twice]), "features.json")

        return body

    assert growth(made) < 4.1


def test_what_looks_like_the_end_of_a_feature_does_not_break_its_line() -> None:
    """A line is a feature, whatever its texts hold."""
    text = 'x"},{"id":"y'
    notes = [{"at": text, "by": "},{", "kind": "judged"}] * 2
    found = [one.replace(title=text, description='},{"id":', notes=notes) for one in queue_of(2)]
    data = features.render(found)
    assert features.parse(data, "features.json") == found
    assert [json.loads(line.rstrip(b","))["title"] for line in data.split(b"\n")[1:-2]] == [text, text]


@pytest.mark.parametrize("layout", ["ours", "pretty", "two on a line"])
def test_what_is_written_does_not_depend_on_what_was_read_before(layout: str) -> None:
    """The lines of features that did not change are reused, and only where they are one feature each."""
    found = queue_of(5)
    before = features.render(found)
    if layout == "pretty":
        before = json.dumps(json.loads(before), indent=1).encode()
    elif layout == "two on a line":
        before = before.replace(b',\n{"id":"F-1"', b',{"id":"F-1"').replace(
            b'"F-3","title":"t"', b'"F-3",\n"title":"t"'
        )
    features._last[0] = (None, [], [])
    read = features.parse(before, "features.json")
    features.move(read[2], "start")
    read[3].note("2026-11-01T00:00:00Z", "worker", "judged")
    once = features.render(read)
    features._last[0] = (None, [], [])
    assert once == features.render(read)
    assert features.parse(once, "features.json") == read
    assert [one.status for one in read] == ["todo", "todo", "in_progress", "todo", "todo"]


def test_what_a_caller_changes_is_not_what_the_next_one_reads() -> None:
    data = features.render(queue_of(2))
    features.parse(data, "features.json")[0].status = "passed"
    assert features.parse(data, "features.json")[0].status == "todo"


def test_no_file_is_no_features(tmp_path: Path) -> None:
    """Absent and empty are different answers."""
    layout = mission(tmp_path)
    assert features.load(layout) == []
    put(layout.path(names.FEATURES), "")
    with pytest.raises(BrokenFile, match=r"features\.json, line 1: not JSON"):
        features.load(layout)
    put(layout.path(names.FEATURES), features.render([feature()]))
    assert features.load(layout) == [feature()]


@pytest.mark.parametrize("text", ["[]", "{}", '{"features":{}}', '{"features":[],"x":1}', "null", '"features"'])
def test_what_is_no_queue_is_named(text: str) -> None:
    """It never counts as an empty queue."""
    with pytest.raises(BrokenFile, match=r"f, line 1: not an object"):
        features.parse(text.encode(), "f")


def second(value: object) -> bytes:
    """A queue with this second line."""
    return b'{"features":[\n%s,\n%s\n]}\n' % (json.dumps(feature().asdict()).encode(), json.dumps(value).encode())


GOOD = feature("F-2").asdict()
CUT = {"at": "t", "by": "r", "kind": "cut", "text": "wall", "run": "1-worker"}
NO_NOTES: list[object] = [
    {},
    {"kind": "cut"},
    {**CUT, "kind": "other"},
    {**CUT, "kind": ["cut"]},
    {**CUT, "run": 5},
    {**CUT, "ids": []},
    {**CUT, "kind": "needs"},
    {**CUT, "kind": "judged"},
]
WRONG: dict[str, list[object]] = {
    "id": [5, None, "a b", ["F"]],
    "title": [5, None],
    "description": [5, None],
    "claims": ["VAL-1", [5], None],
    "depends_on": ["F-1", [None], {}],
    "spec_refs": ["x", [1]],
    "priority": ["1", 1.5, True],
    "status": ["done", 5, None, []],
    "attempts": ["1", None, False],
    "replanned": [0, "no"],
    "notes": [{}, [5], *([note] for note in NO_NOTES)],
    "source_issue": [5, ["I-1"]],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_field_of_the_wrong_kind_is_named_with_its_line(key: str, value: object) -> None:
    """This holds for every field."""
    with pytest.raises(BrokenFile) as caught:
        features.parse(second({**GOOD, key: value}), "f")
    assert caught.value.line == 3


def test_this_page_knows_every_field() -> None:
    """A new field needs its invalid values above."""
    assert WRONG.keys() == set(features.Feature.fields) == GOOD.keys()


@pytest.mark.parametrize("key", GOOD)
def test_a_missing_field_has_its_default_or_is_named(key: str) -> None:
    """The error has its line; an older version may lack a field that has a default."""
    if key not in ("id", "title", "claims"):
        before = second({other: GOOD[other] for other in GOOD if other != key})
        assert features.parse(before, "f")[1] == feature("F-2")
        return
    with pytest.raises(BrokenFile, match=f"f, line 3: the feature lacks '{key}'"):
        features.parse(second({other: GOOD[other] for other in GOOD if other != key}), "f")


@pytest.mark.parametrize(
    ("value", "fault"),
    [(5, "must be an object"), ({**GOOD, "x": 1}, "unknown key 'x'"), ({**GOOD, "id": "f-1"}, "'f-1' appears twice")],
)
def test_what_is_no_feature_is_named(value: object, fault: str) -> None:
    """The error has its line."""
    with pytest.raises(BrokenFile, match=f"f, line 3: .*{fault}"):
        features.parse(second(value), "f")


def test_an_unknown_kind_of_note_is_named_with_the_known_ones() -> None:
    """The error has file and line: decisions depend on kinds, and an unknown kind would be ignored."""
    with pytest.raises(
        BrokenFile, match=r"^f, line 3: unknown note kind 'other': use one of needs, dispute, cut, set, reason, "
    ):
        features.parse(second({**GOOD, "notes": [{**CUT, "kind": "other"}]}), "f")
    with pytest.raises(BrokenFile, match="line 3: the note 'cut' has the unknown key 'ids'"):
        features.parse(second({**GOOD, "notes": [{**CUT, "ids": []}]}), "f")


@pytest.mark.parametrize("kind", features.NOTES)
def test_a_note_is_written_as_it_is_read(kind: str) -> None:
    """Each kind reads back from disk; a field that the kind lacks cannot be written, even by our mistake."""
    one = noted(feature(), kind, "A")
    assert features.parse(features.render([one]), "f") == [one]
    with pytest.raises(TypeError, match="'colour'"):
        one.note("t", "r", kind, colour="red")


def test_a_note_is_read_in_the_same_words_everywhere() -> None:
    """Prompts and commands use it; an empty note has no text."""
    one = noted(noted(feature(), "dispute", "VAL-1", text="too strict", at="now"), "judged")
    assert [features.words(row) for row in one.notes] == ["now dispute: too strict", ""]
    assert [features.named(row) for row in one.notes] == [["VAL-1"], []]


def test_an_unknown_feature_is_answered_with_the_known_ones() -> None:
    """Without a plan the answer says so."""
    assert features.find([feature(), feature("F-2")], "F-2").id == "F-2"
    with pytest.raises(UsageFault, match=r"no feature 'X'\. The features are: F-1, F-2\."):
        features.find([feature(), feature("F-2")], "X")
    with pytest.raises(UsageFault, match="none: no plan has been accepted yet"):
        features.find([], "X")


def test_tries_are_counted_where_they_are_judged() -> None:
    """Three, and five after a replan of the feature."""
    one = feature()
    for left in (2, 1, 0):
        features.judged(one, "", "r")
        assert one.tries_left == left
    one.replanned = True
    assert one.tries_left == 2


def test_cuts_count_since_the_last_judgement() -> None:
    """Two cuts in a row are free, not two in total."""
    one = feature()
    for kind, count in (("cut", 1), ("reason", 1), ("cut", 2), ("judged", 0), ("cut", 1)):
        noted(one, kind)
        assert one.cuts() == count


@pytest.mark.parametrize("end", ["replanned", "retry"])
def test_a_note_stands_until_the_feature_starts_anew(end: str) -> None:
    """The newest of its kind counts."""
    one = feature()
    assert one.last_note("needs") is None
    noted(one, "needs", "F-2")
    noted(one, "needs", "F-3")
    noted(one, "reason")
    assert (one.last_note("needs") or {})["features"] == ["F-3"]
    noted(one, end)
    assert one.last_note("needs") is None


def waiting(*needs: str) -> Feature:
    """A feature that its worker blocked on others."""
    one = feature("F-9", status="blocked")
    noted(one, "needs", *needs)
    return one


def test_a_feature_comes_back_when_all_that_it_needs_has_passed() -> None:
    """Not earlier; and afterwards it needs nothing."""
    first, other, one = feature("A", status="passed"), feature("B"), waiting("A", "B")
    assert features.unblock([first, other, one], "", "r") == []
    other.status = "passed"
    assert features.unblock([first, other, one], "", "r") == [one]
    assert (one.status, one.last_note("needs")) == ("todo", None)
    one.status = "blocked"
    assert features.unblock([first, other, one], "", "r") == []


def test_what_a_person_blocked_stays_blocked() -> None:
    """Both without needs and with an empty list of needs."""
    mine, empty, started = feature("A", status="blocked"), waiting(), waiting("P")
    started.status = "in_progress"
    assert features.unblock([mine, empty, started, feature("P", status="passed")], "", "r") == []


def test_a_dispute_stands_while_the_feature_is_blocked() -> None:
    """It also ends when a planner has replanned the feature."""
    one = feature(status="blocked")
    assert features.disputed(one) == []
    noted(one, "dispute", "VAL-1")
    assert features.disputed(one) == ["VAL-1"]
    one.status = "todo"
    assert features.disputed(one) == []
    one.status = "blocked"
    noted(one, "replanned")
    assert features.disputed(one) == []
