"""features.json: the queue. All callers use one table of transitions; no code sets `passed` directly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness.base import encoding, schema
from harness.base.errors import BrokenFile, UsageFault
from harness.base.record import Json, Record
from harness.base.schema import Names
from harness.state import journal, names
from harness.state.layout import Layout, command, restoring
from harness.state.state import State

if TYPE_CHECKING:  # a type here, at run time the kind of a field
    Status = str
    NoteRow = dict[str, Json]


class _WithId(Protocol):
    id: str


T = TypeVar("T", bound=_WithId)


STATUSES = ("todo", "in_progress", "validating", "passed", "failing", "blocked")
TRIES = 3
TRIES_REPLANNED = 5
FREE_CUTS = 2
BLOCKING = ("needs", "dispute", "reason", "person")  # the notes that say why a feature is blocked

TRANSITIONS: dict[str, dict[str, str]] = {
    "start": {"todo": "in_progress", "failing": "in_progress"},
    "enter": {name: "in_progress" for name in STATUSES if name != "in_progress"},  # a person works on it
    "implemented": {"in_progress": "validating"},
    "blocked": {"in_progress": "blocked"},
    **{f"back to {name}": {"in_progress": name} for name in ("todo", "failing", "blocked")},
    "proved": {"validating": "passed"},
    "green already": {"todo": "validating"},
    "refuted": {"validating": "failing", "passed": "failing"},
    "needs passed": {"blocked": "todo"},
    "replanned": {"todo": "todo", "failing": "todo", "blocked": "todo"},
    "retry": dict.fromkeys(STATUSES, "todo"),  # on a person's order; a passed feature must then be proven again
    "block": {"todo": "blocked", "failing": "blocked", "validating": "blocked"},
    "claim set": {
        **dict.fromkeys(("todo", "blocked"), "todo"),
        **dict.fromkeys(("failing", "passed", "validating"), "validating"),
    },
}


class FeatureNote(Record):
    """A fact about a feature, for its next prompt and for decisions; `kind` is a key of NOTES."""

    at: str
    by: str
    kind: str


class TextNote(FeatureNote):
    """A note with a text."""

    text: str


class NeedsNote(TextNote):
    """The features that a blocked feature needs."""

    features: list[str]


class DisputeNote(TextNote):
    """The claims that a worker disputes."""

    claims: list[str]


class CutNote(TextNote):
    """The run that was cut short."""

    run: str


class FieldSet(FeatureNote):
    """The field that a person set; a plan leaves it as it is."""

    key: str


NOTES: dict[str, type[FeatureNote]] = {
    "needs": NeedsNote,
    "dispute": DisputeNote,
    "cut": CutNote,
    "set": FieldSet,
    **dict.fromkeys(("reason", "retry", "person"), TextNote),
    **dict.fromkeys(("judged", "aimed", "replanned"), FeatureNote),
}


def note_faults(note: object) -> list[str]:
    """Every fault of one note."""
    kind = note.get("kind") if isinstance(note, dict) else None
    if isinstance(kind, str) and kind not in NOTES:
        return [f"unknown note kind '{kind}': use one of {', '.join(NOTES)}"]
    return [*schema.faults(note, f"the note '{kind}'" if kind else "a note", NOTES.get(str(kind), FeatureNote))]


if not TYPE_CHECKING:  # the kinds of those fields
    Status = schema.one_of(STATUSES, told=True)
    NoteRow = schema.OBJECT.part("a note", lambda value: not note_faults(value))


class Feature(Record):
    """One feature. `priority`: 1 comes first. `notes`: each has the fields of its kind in NOTES."""

    id: str
    title: str
    description: str = ""
    claims: Names
    depends_on: Names = []
    spec_refs: list[str] = []
    priority: int = 1
    status: Status = "todo"
    attempts: int = 0
    replanned: bool = False
    notes: list[NoteRow] = []
    source_issue: str | None = None

    def note(self, at: str, by: str, kind: str, **carried: Any) -> None:
        """Add a note; `carried` are the further fields of its kind in NOTES."""
        made = {"at": at, "by": by, "kind": kind, **carried}
        if found := note_faults(made):
            raise TypeError("; ".join(found))
        self.notes = [*self.notes, made]

    def last_note(self, kind: str) -> dict[str, Any] | None:
        """The newest note of a kind since the feature was last replanned, or retried by a person."""
        for note in reversed(self.notes):
            if note["kind"] == kind:
                return dict(note)
            if note["kind"] in ("replanned", "retry"):
                return None
        return None

    def cuts(self, since: tuple[str, ...] = ("judged",)) -> int:
        """The number of interrupted runs on the feature since the newest note of one of these kinds."""
        kinds = [note["kind"] for note in self.notes]
        start = max((index for index, kind in enumerate(kinds) if kind in since), default=0)
        return kinds[start:].count("cut")

    @property
    def blocked_by(self) -> str:
        """The kind of the newest note that can say why the feature is blocked, one of BLOCKING; "" without one."""
        return next((note["kind"] for note in reversed(self.notes) if note["kind"] in BLOCKING), "")

    @property
    def set_by_person(self) -> list[str]:
        """The fields that a person set, in the order in which they did so first."""
        return list(dict.fromkeys(note["key"] for note in self.notes if note["kind"] == "set"))

    @property
    def tries(self) -> int:
        """The attempts before that, with those made."""
        return TRIES_REPLANNED if self.replanned else TRIES

    @property
    def tries_left(self) -> int:
        """The judged attempts left before the feature needs a planner or a person."""
        return self.tries - self.attempts


_last: list[tuple[bytes | None, list[dict[str, Any]], list[bytes]]] = [(None, [], [])]
# Cache of the last parse or render: the bytes, the rows, and after `render` the line of each.


def parse(data: bytes | None, path: str, *, ours: bool = False) -> list[Feature]:
    """The features in file order; [] if the file is absent; raises BrokenFile if it is malformed. `ours`: the harness
    wrote these bytes, so validation is skipped. A process parses the same bytes once."""
    if data is None:
        return []
    if data != _last[0][0]:
        _last[0] = data, _parsed(data, path, ours), []
    return Feature.copies(_last[0][1])


def _parsed(data: bytes, path: str, ours: bool) -> list[dict[str, Any]]:
    """The rows of the features, each with all fields."""
    value = encoding.parse_json(data, path, restoring())
    if not isinstance(value, dict) or list(value) != ["features"] or not isinstance(value["features"], list):
        raise BrokenFile(path, 'not an object {"features": […]}', line=1, remedy=restoring())
    rows: list[dict[str, Any]] = value["features"]
    if ours and all(type(row) is dict and row.keys() == Feature.defined for row in rows):
        return rows
    whole = schema.all_fit(Feature, rows)
    for number, row in enumerate(() if whole else rows, start=2):
        if found := _faults(row):
            raise BrokenFile(path, "; ".join(found), line=number, remedy=f"Correct that feature. {restoring()}")
    for index, fault in schema.placed_name_faults((row["id"] for row in rows), "feature"):
        raise BrokenFile(path, fault, line=index + 2, remedy=f"Give every feature a unique id. {restoring()}")
    return rows if whole else [Feature(**row).asdict() for row in rows]


def _faults(row: object) -> list[str]:
    """Every fault of a feature and of its notes."""
    notes = row.get("notes") if isinstance(row, dict) else None
    found = [fault for note in notes for fault in note_faults(note)] if isinstance(notes, list) else []
    return [fault for fault in schema.faults(row, "the feature", Feature) if not found or fault.key != "notes"] + found


def load(layout: Layout) -> list[Feature]:
    """The features of the mission, as `parse` returns them; raises BrokenFile if a written file is gone."""
    state = State(layout)
    data = state.data(names.FEATURES)
    if data is None and journal.read_ledger(layout).get(names.FEATURES):
        raise BrokenFile(layout.path(names.FEATURES), "the file is gone, and the plan with it", remedy=restoring())
    return parse(data, layout.path(names.FEATURES), ours=state.is_ours(names.FEATURES, data))


def words(note: dict[str, Any]) -> str:
    """A note for prompts and people; "" if it has no text."""
    return f"{note['at']} {note['kind']}: {note['text']}" if note.get("text") else ""


def named(note: dict[str, Any]) -> list[str]:
    """The features or claims that a note names."""
    return list(note.get("features") or note.get("claims") or [])


def render(features: list[Feature]) -> bytes:
    """The bytes of features.json, one feature per line; lines of unchanged features are reused."""
    data, rows, lines = _last[0]
    known = {row["id"]: (row, line) for row, line in zip(rows, lines or _lines(data or b"", rows), strict=False)}
    made, fresh = [], []
    for feature in features:
        row, line = known.get(feature.id) or ({}, b"")
        if row != feature.__dict__:
            fresh.append(feature.asdict())
            line = encoding.dump_json(fresh[-1])[:-1]
        made.append(line)
    data = b'{"features":[\n' + b",\n".join(made) + b"\n]}\n"
    rows = [{**feature.__dict__} for feature in features]
    same = {row["id"] for row in rows} == known.keys() and len(rows) == len(known)
    if same and schema.all_fit(Feature, fresh):  # as `parse` would find it
        _last[0] = data, rows, made
    return data


def _lines(data: bytes, rows: list[dict[str, Any]]) -> list[bytes]:
    """The line of each row if the file has one feature per line, as from `render`; else []."""
    head, *lines = data.split(b"\n")
    if len(lines) != len(rows) + 2 or head != b'{"features":[':
        return []
    ours = all(line.startswith(b'{"id":"%b",' % row["id"].encode()) for row, line in zip(rows, lines, strict=False))
    return [line.removesuffix(b",") for line in lines[:-2]] if ours else []


def find(rows: list[T], wanted: str, kind: str = "feature") -> T:
    """The row with the wanted id; raises UsageFault, with the known ids, if there is none."""
    for row in rows:
        if row.id == wanted:
            return row
    known = ", ".join(row.id for row in rows[:20]) or "none: no plan has been accepted yet"
    raise UsageFault(f"There is no {kind} '{wanted}'. The {kind}s are: {known}.")


def move(feature: Feature, event: str) -> None:
    """Apply one transition of TRANSITIONS; raises UsageFault if the status of the feature does not allow it."""
    allowed = TRANSITIONS[event]
    if feature.status not in allowed:
        needed = f"'{event}' is for a feature that is {' or '.join(allowed)}"
        raise UsageFault(f"{feature.id} is '{feature.status}'; {needed}. See: {command('status')}")
    feature.status = allowed[feature.status]


def restart(feature: Feature, event: str, at: str, why: str) -> None:
    """Move the feature on a person's order, and reset its attempts."""
    move(feature, event)
    feature.attempts, feature.replanned = 0, False
    feature.note(at, "person", "retry", text=why)


def judged(feature: Feature, at: str, by: str) -> None:
    """Count a judged attempt: the only place where `attempts` grows."""
    feature.attempts += 1
    feature.note(at, by, "judged")


def passed(features: list[Feature]) -> set[str]:
    """Ids of the features that have passed."""
    return {feature.id for feature in features if feature.status == "passed"}


def unblock(features: list[Feature], at: str, by: str) -> list[Feature]:
    """Move features back to todo if all features they need have passed; returns the moved ones."""
    done = passed(features)
    back = []
    for feature in features:
        needs = feature.last_note("needs")
        if feature.status == "blocked" and needs and needs["features"] and set(needs["features"]) <= done:
            move(feature, "needs passed")
            feature.note(at, by, "retry", text=f"{', '.join(needs['features'])} passed")
            back.append(feature)
    return back


def disputed(feature: Feature) -> list[str]:
    """Claims that the last worker of the feature disputes and no planner has seen since."""
    note = feature.last_note("dispute")
    return list(note["claims"]) if note and feature.status == "blocked" else []
