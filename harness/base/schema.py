"""Schemas of plain data: the annotations of a Record define the valid values of its file and the error messages.

An annotation names a built-in type, a `Kind` (of this module or the Record's module) or another Record (an object of
that shape). A field with a default is optional, any other is required. An unknown field is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, TypeVar

from harness.base.errors import suggestion
from harness.base.record import Json, Record

R = TypeVar("R", bound=Record)
# in annotations; `WORDS` says what each may hold
Names = list[str]
PlainText = str
Line = str
Positive = int
Whole = int
Count = float

LETTERS_AND_DIGITS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
IN_NAMES = LETTERS_AND_DIGITS | set("._-")
MAX_NAME_CHARS = 64
MAX_FLOAT = 1.7976931348623157e308  # the largest float; a larger int cannot be formatted or divided


class Kind:
    """A type of value with its description. `base`: the kind that the test `closer` narrows; with `bound`, a value that is
    not of the base is described in the base's words. A value of one of `types` always fits. `item` is the kind of each
    element, `shape` the fields of an object; `made`: the object becomes a Record; `told`: the message names the value."""

    base: Kind | None = None
    closer: Callable[[Json], object] = bool
    types: frozenset[type] = frozenset()
    item: Kind | None = None
    shape: type[Record] | None = None
    made = told = bound = False

    def __init__(self, words: str, fits: Callable[[Any], bool], **more: Any) -> None:
        self.words, self.fits = words, fits
        self.__dict__.update(more)

    def must_be(self, value: object) -> str:
        """The description of the expected value, for the message about this one."""
        return self.base.must_be(value) if self.base and self.bound and not self.base.fits(value) else self.words

    def part(self, words: str, closer: Callable[[Any], object], **more: Any) -> Kind:
        """This kind, narrowed by a further test."""
        fits = self.fits
        return Kind(words, lambda value: fits(value) and bool(closer(value)), base=self, closer=closer, **more)


class SchemaFault(str):
    """One message. `where`: the place of the fault; `key`: the invalid field ("": a field is missing, or the whole
    value is wrong); `row`: the 0-based index in a repeated table."""

    where = key = ""
    row = 0

    @classmethod
    def of(cls, text: str, where: str, key: str = "") -> SchemaFault:
        """A fault at this place."""
        fault = cls(text)
        fault.where, fault.key = where, key
        return fault


class InvalidField(ValueError):
    """An object with the right fields has a value of the wrong kind, or a line has another fault."""


def _exactly(words: str, *types: type) -> Kind:
    return Kind(words, lambda value: type(value) in types, types=frozenset(types))


def one_of(values: Iterable[str], told: bool = False) -> Kind:
    """One of these texts; `told`: the message names the wrong value."""
    return TEXT.part(f"one of {', '.join(values)}", frozenset(values).__contains__, told=told, bound=True)


def row_of(shape: type[Record], made: bool = False) -> Kind:
    """An object with the fields of a Record; it becomes that Record only if `made`."""
    fits = OBJECT.part("an object", lambda value: not invalid_field(shape, value)).fits
    return Kind("an object", fits, base=OBJECT, shape=shape, made=made)


def listed(item: Kind, words: str = "a list") -> Kind:
    """A list of items of this kind."""
    fits = LIST.part(words, lambda value: all(map(item.fits, value))).fits
    return Kind(words, fits, base=LIST, item=item, made=item.made)


def table(item: Kind, words: str = "an object") -> Kind:
    """An object with text keys and values of this kind."""
    return OBJECT.part(words, lambda value: all(map(TEXT.fits, value)) and all(map(item.fits, value.values())))


def _optional(kind: Kind) -> Kind:
    fits, types = kind.fits, kind.types and kind.types | {type(None)}
    return Kind(**{**vars(kind), "fits": lambda value: value is None or fits(value), "types": types})


TEXT = _exactly("text", str)
WHOLE = _exactly("a whole number", int)
NUMBER = _exactly("a number", int, float)
OBJECT = _exactly("an object", dict)
LIST = _exactly("a list", list)
WORDS = {
    "Json": Kind("anything", lambda value: True),
    "str": TEXT,
    "int": WHOLE,
    "float": NUMBER,
    "bool": _exactly("true or false", bool),
    "bytes": _exactly("bytes", bytes),
    "list[str]": listed(TEXT, "a list of texts"),
    "list[Json]": LIST,
    "dict[str, str]": table(TEXT, "an object of texts"),
    "dict[str, Json]": OBJECT,
    "Names": listed(TEXT.part("a name", lambda value: is_name(value)), "a list of names, such as [one, two]"),
    "PlainText": TEXT.part("text without NUL or carriage return", lambda value: not _has(value, "\0\r")),
    "Line": TEXT.part("one line of text without NUL", lambda value: not _has(value, "\0\r\n")),
    "Positive": WHOLE.part("a whole number above 0", lambda value: value > 0),
    "Whole": WHOLE.part("a whole number, 0 or above", lambda value: 0 <= value <= MAX_FLOAT),
    "Count": NUMBER.part("a number, 0 or above", lambda value: 0 <= value <= MAX_FLOAT),
}
FIELDS = "the fields"
_KINDS: dict[type[Record], dict[str, Kind]] = {}
_FITS: dict[type[Record], dict[str, Callable[[Any], bool]]] = {}
_MADE: dict[type[Record], list[str]] = {}


def kinds(shape: type[Record]) -> dict[str, Kind]:
    """The kind of each field of a Record, in order."""
    if shape not in _KINDS:
        found: dict[str, Kind] = {}
        for owner in reversed(shape.__mro__):
            names = vars(sys.modules[owner.__module__])
            annotations = owner.__dict__.get("__annotations__", {})  # noqa: RUF063 - `inspect` costs 8 ms to import
            found |= {name: _kind(text, names) for name, text in annotations.items() if name in shape.fields}
        _FITS[shape] = {name: kind.fits for name, kind in found.items()}
        _MADE[shape] = [name for name, kind in found.items() if kind.made]
        _KINDS[shape] = {name: found[name] for name in shape.fields}
    return _KINDS[shape]


def _kind(text: str, names: dict[str, Any]) -> Kind:
    """The kind that an annotation names; raises TypeError for an unknown one."""
    if text in WORDS:
        return WORDS[text]
    if text.endswith(" | None"):
        return _optional(_kind(text[:-7], names))
    if text.startswith("list["):
        return listed(_kind(text[5:-1], names))
    if text.startswith("dict[str, "):
        return table(_kind(text[10:-1], names))
    found = names.get(text)
    if isinstance(found, Kind):
        return found
    if isinstance(found, type) and issubclass(found, Record):
        return row_of(found, made=True)
    raise TypeError(f"'{text}' is not a field kind")


def invalid_field(shape: type[Record], row: dict[str, Any]) -> str:
    """The path of the first invalid field (`totals: runs`), "" if all are valid; FIELDS if one is missing or unknown."""
    if shape not in _FITS:
        kinds(shape)
    fits = _FITS[shape]
    if row.keys() != fits.keys() and not shape.takes(row):
        return FIELDS
    for name, value in row.items():
        if not fits[name](value):
            inner = _KINDS[shape][name].shape
            below = invalid_field(inner, value) if inner and type(value) is dict else FIELDS
            return name if below == FIELDS else f"{name}: {below}"
    return ""


def all_fit(shape: type[Record], rows: list[Any]) -> bool:
    """Whether each row is an object with all fields of a Record; checks column by column, which is fast for thousands."""
    if not all(type(row) is dict and len(row) == len(shape.fields) for row in rows):
        return False
    try:
        return all(_column_fits(kind, [row[name] for row in rows]) for name, kind in kinds(shape).items())
    except KeyError:
        return False


def _column_fits(kind: Kind, values: list[Any]) -> bool:
    found = set(map(type, values))
    if kind.types:
        return found <= kind.types
    if kind.item and found <= LIST.types:
        return _column_fits(kind.item, [*chain.from_iterable(values)])
    if kind.base is TEXT and found <= TEXT.types:
        return all(map(kind.closer, set(values)))
    return all(map(kind.fits, values))


def record(shape: type[R], row: Any, wrote: str) -> R:
    """Build a Record, with nested Records, from an object. Raises TypeError for wrong fields and InvalidField for a
    wrong value; `wrote` names the writer in the message (`a run writes`)."""
    wrong = invalid_field(shape, row) if type(row) is dict else FIELDS
    if wrong == FIELDS:
        raise TypeError(f"not the fields of {shape.__name__}")
    if wrong:
        raise InvalidField(f"'{wrong}' is not what {wrote} there")
    return trusted(shape, row)


def trusted(shape: type[R], row: dict[str, Any]) -> R:
    """Build a Record from an object that was validated before."""
    known, values = kinds(shape), {**row}
    for name in _MADE[shape]:
        if values.get(name):
            values[name] = _inner(known[name], values[name])
    return shape.whole(values) if len(values) == len(known) else shape(**values)


def _inner(kind: Kind, value: Any) -> Any:
    if kind.item:
        return [_inner(kind.item, one) for one in value]
    return trusted(kind.shape, value) if kind.shape else value


def plain(value: Any) -> Any:
    """A Record, with nested Records, as JSON values; the inverse of `trusted`."""
    if isinstance(value, Record):
        return {name: plain(inner) for name, inner in value.asdict().items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def faults(value: object, where: str, shape: type[Record], inside: str = "") -> list[SchemaFault]:
    """Every fault of an object that must have the fields of a Record. `inside` is the path to its fields."""
    if not isinstance(value, dict):
        return [SchemaFault.of(f"{where} must be an object", where)]
    known = kinds(shape)
    listed = f"(known: {', '.join(known)})"
    found = [
        SchemaFault.of(f"{where} has the unknown key '{key}'{near and '.' + near} {listed}", where, key)
        for key in value
        if key not in known
        for near in [suggestion(key, known)]
    ]
    found += [SchemaFault.of(f"{where} lacks '{key}'", where) for key in shape.needed() if key not in value]
    for key, kind in known.items():
        if key in value and not kind.fits(value[key]):
            found += _field_faults(kind, value[key], where, key, inside)
    return found


def _field_faults(kind: Kind, value: Any, where: str, key: str, inside: str) -> list[SchemaFault]:
    if kind.shape and isinstance(value, dict):
        return faults(value, f"{inside}'{key}'", kind.shape, f"{inside}'{key}'.")
    if kind.item and kind.item.shape and isinstance(value, list):
        places = [f"{inside}{key}[{index}]" for index in range(len(value))]
        each = zip(value, places, strict=True)
        return [fault for item, place in each for fault in faults(item, place, kind.item.shape, f"{place}.")]
    if kind.told and isinstance(value, str):
        return [SchemaFault.of(f"{where}: the {key} '{value}' is not {kind.words}", where, key)]
    return [SchemaFault.of(f"{where}: '{key}' must be {kind.must_be(value)}", where, key)]


def is_name(text: str, longest: int = MAX_NAME_CHARS) -> bool:
    """Whether a text is a name: ASCII letters, digits, '.', '_', '-', at most `longest`, and a letter or digit first."""
    return 0 < len(text) <= longest and text[0] in LETTERS_AND_DIGITS and IN_NAMES.issuperset(text)


def _has(text: str, characters: str) -> bool:
    return any(character in text for character in characters)


def name_faults(names: Iterable[Any], what: str) -> list[str]:
    """Every fault of names that must match NAME and differ even without case."""
    return [fault for _, fault in placed_name_faults(names, what)]


def placed_name_faults(names: Iterable[Any], what: str) -> Iterator[tuple[int, str]]:
    """As `name_faults`, each with the index of its name."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not isinstance(name, str) or not is_name(name):
            rule = "letters, digits, '.', '_', '-', at most 64, starting with one of the first two"
            yield index, f"invalid {what} '{name}': {rule}"
        elif name.lower() in seen:
            yield index, f"{what} '{name}' appears twice"
        else:
            seen.add(name.lower())
