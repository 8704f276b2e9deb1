"""Record: the base class of plain data, with keyword construction, defaults, equality, a repr and `replace`.

Type checkers treat it as a data class.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, dataclass_transform

Json = Any  # a JSON value; as a union of types, each read of a field would need a cast


@dataclass_transform(kw_only_default=True)
class Record:
    """The annotations of a subclass are its fields. Each instance gets copies of list and dict defaults. Assigning a
    field of a `frozen` record raises AttributeError."""

    fields: ClassVar[tuple[str, ...]] = ()
    defined: ClassVar[frozenset[str]] = frozenset()
    _fixed: ClassVar[dict[str, object]] = {}
    _copied: ClassVar[dict[str, list[object] | dict[str, object]]] = {}
    _needed: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, *, frozen: bool = False) -> None:
        if frozen:
            cls.__setattr__ = cls._refuse  # type: ignore[method-assign, assignment]  # a class of ours, made here
        kinds: dict[str, str] = {}
        for owner in cls.__mro__[-3::-1]:  # without Record and object
            kinds |= owner.__dict__.get("__annotations__", {})  # noqa: RUF063 - `inspect` costs 8 ms to import
        cls.fields = tuple(name for name, kind in kinds.items() if not kind.startswith("ClassVar"))
        cls.defined = frozenset(cls.fields)
        defaults = {name: getattr(cls, name) for name in cls.fields if hasattr(cls, name)}
        cls._copied = {name: value for name, value in defaults.items() if isinstance(value, list | dict)}
        cls._fixed = {name: value for name, value in defaults.items() if name not in cls._copied}
        cls._needed = cls.defined - defaults.keys()

    def __init__(self, **values: Any) -> None:
        mine = self.__dict__
        mine.update(self._fixed)
        for name, value in self._copied.items():
            mine[name] = value.copy()
        mine.update(values)
        if mine.keys() != self.defined:
            raise TypeError(f"{type(self).__name__} takes {', '.join(self.fields)}; got {', '.join(values)}")

    def _refuse(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be assigned: it is frozen")

    @classmethod
    def needed(cls) -> list[str]:
        """The fields without a default, in order."""
        return [name for name in cls.fields if name in cls._needed]

    @classmethod
    def default(cls, name: str) -> object:
        """The default of a field; None for a required field."""
        return cls._fixed.get(name, cls._copied.get(name))

    @classmethod
    def takes(cls, values: dict[str, Any]) -> bool:
        """Whether these values make a record: no unknown field, and no required field missing."""
        return values.keys() <= cls.defined and values.keys() >= cls._needed

    @classmethod
    def whole(cls, values: dict[str, Any]) -> Self:
        """A record that uses this dict as its fields without a copy: fast for thousands of rows. Raises TypeError."""
        if values.keys() != cls.defined:
            raise TypeError(f"{cls.__name__} takes {', '.join(cls.fields)}; got {', '.join(values)}")
        made = cls.__new__(cls)
        made.__dict__ = values
        return made

    @classmethod
    def copies(cls, rows: list[dict[str, Any]]) -> list[Self]:
        """A record from a copy of each of these dicts, which are known to have all fields."""
        made, new = [], cls.__new__
        for row in rows:
            one = new(cls)
            one.__dict__ = {**row}
            made.append(one)
        return made

    def replace(self, **values: Any) -> Self:
        """A copy with these fields changed."""
        return type(self)(**{**self.asdict(), **values})

    def asdict(self) -> dict[str, Any]:
        """The fields in their declared order; values are not copied."""
        mine = self.__dict__
        return {name: mine[name] for name in self.fields}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.asdict().items())})"
