"""Keeps the SQL text of statements that SQLAlchemy then compiles only once, with how to write values and read rows.

Most of a statement's time in a process is spent in SQLAlchemy, at each execution. A statement that is built once, with
named parameters in place of values (``tenancy.keep_compiled``), is turned into text here, with the tenant's condition
as in every other statement. That text goes to the driver.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from types import NoneType
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, Dialect, Float, inspect
from sqlalchemy.sql.dml import UpdateBase

from app.core.text.patterns import compiled
from app.storage import tenancy

MAX_KEPT_STATEMENTS: Final = 1_024
"""How many statements are kept; each takes some 10 kB."""
_MISSING: Final = object()
_FLOAT8: Final = 701
"""The type number of ``double precision`` in Postgres, the only type with fractions that the tables use."""
_NUMERIC: Final = 1_700
"""The type number of decimal numbers in Postgres, which sums may have."""
_PARAMETER: Final = compiled(r"\$(\d{1,3})")
_PLAIN_WORD: Final = compiled(r"[a-z0-9_-]{1,64}")
_LITERAL_TYPES: Final = (str, UUID, int, datetime, timedelta, NoneType)

Process = Callable[[Any], Any]


class CompiledStatement:
    """A statement in the form that the driver takes."""

    __slots__ = ("_arguments", "_is_object", "_parts", "_processes", "_row", "is_insert", "table", "text")

    def __init__(self, statement: Any, scoped: Any, dialect: Dialect) -> None:
        """Compile ``scoped``, which is the statement with the tenant's condition.

        Raises:
            ValueError: Its text depends on its values, or its rows have an object and further columns.
        """
        made: Any = scoped.compile(dialect=dialect)
        prefetched = [getattr(made, f"{kind}_prefetch", None) for kind in ("insert", "update")]
        if made.post_compile_params or any(prefetched):
            raise ValueError(
                f"this cannot be built once: its SQL depends on its values, or on columns' defaults: {made}"
            )
        text, binds = _with_constants_written_in(str(made), [made.binds[name] for name in made.positiontup])
        self.text = text
        self._parts = _PARAMETER.split(self.text)
        """Alternately a piece of the text and the number of the parameter after it."""
        self.is_insert = bool(statement.is_insert)
        self.table: str | None = str(statement.table) if isinstance(statement, UpdateBase) else None
        """The table that it writes; ``None`` if it only reads."""
        self._arguments: list[tuple[str, Any, Process | None]] = [
            (
                bind.key,
                _MISSING if bind.required else bind.effective_value,
                bind.type.dialect_impl(dialect).bind_processor(dialect),
            )
            for bind in binds
        ]
        columns = made._result_columns or ()  # noqa: SLF001 - what SQLAlchemy itself reads rows by
        processes = [_result_processor(column.type.dialect_impl(dialect), dialect) for column in columns]
        self._processes: list[tuple[int, Process]] = [(place, one) for place, one in enumerate(processes) if one]
        self._is_object, names = _row_names(statement, [column.name for column in columns])
        self._row: Any = namedtuple("_row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024

    @property
    def is_plain(self) -> bool:
        """Whether the values of its rows need no conversion after the driver."""
        return not self._processes

    @property
    def count(self) -> int:
        """The number of its parameters."""
        return len(self._arguments)

    def arguments(self, given: Mapping[str, Any]) -> list[Any]:
        """The values of its parameters in order. Raises ``KeyError`` if one is missing."""
        found = []
        for name, constant, process in self._arguments:
            value = given.get(name, constant)
            if value is _MISSING:
                raise KeyError(name)
            found.append(value if process is None else process(value))
        return found

    def text_with_values(self, values: Sequence[Any]) -> str:
        """The SQL text with the values written into it.

        A string other than a plain word is written as hexadecimal digits.

        Raises ``ValueError`` for values other than texts, numbers, times, ids, lists of ids or ``None``.
        """
        parts = self._parts.copy()
        parts[1::2] = [_literal(values[int(number) - 1]) for number in parts[1::2]]
        return "".join(parts)

    def scalar(self, record: Sequence[Any]) -> Any:
        """The first column of a row of the driver, or the whole row if it stands for an object."""
        row = self.row(record)
        return row if self._is_object else row[0]

    def row(self, record: Sequence[Any]) -> Any:
        """A row of the driver as a named tuple of converted values."""
        if not self._processes:
            return self._row._make(record)
        values = list(record)
        for place, process in self._processes:
            values[place] = process(values[place])
        return self._row._make(values)


@lru_cache(maxsize=MAX_KEPT_STATEMENTS)
def joined_sql(statements: tuple[CompiledStatement, ...]) -> str:
    """Several statements as one SQL text that returns the rows of the last.

    Its parameters are those of the first statement, then those of the next, and so on. All statements see the database
    as it was before any of them, so none may read or change what another writes (``can_join``).
    """
    texts, before = list[str](), 0
    for one in statements:
        texts.append(_renumbered(before, one.text))
        before += one.count
    parts = ", ".join(f"part_{number} AS ({text})" for number, text in enumerate(texts[:-1]))
    return f"WITH {parts} {texts[-1]}" if parts else texts[-1]


def _with_constants_written_in(text: str, binds: Sequence[Any]) -> tuple[str, list[Any]]:
    # Postgres makes the plan that it keeps without knowing the values. Nearly all messages have the same status:
    # without knowing that ``'superseded'`` is rare, it would read a whole conversation to find its last message.
    kept = [bind for bind in binds if not _is_constant(bind)]
    places = {bind.key: number for number, bind in enumerate(kept, 1)}

    def written(found: re.Match[str]) -> str:
        bind = binds[int(found[1]) - 1]
        return f"${places[bind.key]}" if bind.key in places else _literal(bind.effective_value)

    return _PARAMETER.sub(written, text), kept


def _is_constant(bind: Any) -> bool:
    value = bind.effective_value
    is_plain = type(value) is int or (type(value) is str and _PLAIN_WORD.fullmatch(value) is not None)
    # A parameter without a name cannot be given a value.
    return bind.unique and not bind.required and is_plain


def _renumbered(before: int, text: str) -> str:
    return _PARAMETER.sub(lambda found: f"${int(found[1]) + before}", text)


def can_join(statement: CompiledStatement, others: Sequence[CompiledStatement]) -> bool:
    """Whether a statement that writes can be joined with others.

    None of them may write the same table, unless all only add rows.
    """
    return all(one.table != statement.table or (one.is_insert and statement.is_insert) for one in others)


def can_be_literals(values: Sequence[Any]) -> bool:
    """Whether ``CompiledStatement.text_with_values`` can write these values; lists of ids are left out here."""
    return all(isinstance(one, _LITERAL_TYPES) for one in values)


def _literal(value: Any) -> str:
    if isinstance(value, UUID):
        return f"'{value}'"
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"'{{{','.join(map(_id_in_list, value))}}}'"
    if isinstance(value, str) and not _PLAIN_WORD.fullmatch(value):
        return f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')"
    if isinstance(value, timedelta):
        return f"'{value.days} days {value.seconds} seconds {value.microseconds} microseconds'"
    if not isinstance(value, _LITERAL_TYPES):
        raise ValueError("only texts, ids, numbers and times are spelt out")  # noqa: TRY004 - a value, not a type
    return f"'{value}'"


def _id_in_list(value: Any) -> str:
    # The whole list becomes one literal, in which a bare ``null`` would mean a missing value.
    if not isinstance(value, UUID):
        raise ValueError("of a list only ids are spelt out")  # noqa: TRY004 - a value, not a type
    return str(value)


def _result_processor(kind: Any, dialect: Dialect) -> Process | None:
    if isinstance(kind, ARRAY) and _result_processor(kind.item_type.dialect_impl(dialect), dialect) is None:
        return None  # otherwise SQLAlchemy would copy each list
    process: Process | None = kind.result_processor(dialect, _FLOAT8 if isinstance(kind, Float) else _NUMERIC)
    return process


def _row_names(statement: Any, columns: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether each row stands for an object of a table, and the names of its columns."""
    if isinstance(statement, UpdateBase):
        attributes = _attributes_by_column(statement.entity_description["entity"])
        return len(columns) == len(attributes), [attributes[name] for name in columns]
    described = statement.column_descriptions
    if len(described) == 1 and isinstance(described[0]["expr"], type):
        attributes = _attributes_by_column(described[0]["expr"])
        return True, [attributes[name] for name in columns]
    if len(described) != len(columns):
        raise ValueError(f"its rows hold an object and more: {statement}")
    return False, [one["name"] or "_" for one in described]


def _attributes_by_column(entity: Any) -> dict[str, str]:
    return {column.name: name for name, column in inspect(entity).columns.items()}


@lru_cache(maxsize=MAX_KEPT_STATEMENTS)
def compiled_for(statement: Any, dialect: Dialect, kind: type) -> CompiledStatement:
    """A statement compiled for sessions of that kind (``tenancy.kind_of``): one tenant's, one end user's, or all."""
    scoped = statement if kind is NoneType else tenancy.scoped_for(statement, kind)
    return CompiledStatement(statement, scoped, dialect)
