"""Writes a tool's data in few words: exact values after their names, record by record, each value once.

A dump of JSON has no sentences, but the next call may need what a tool returned: ids, codes, dates, names and kinds.
Bare amounts and times of day come last, and are left out of long lists, since they can be asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from app.core.text.json_data import data_in
from app.core.text.languages.combined_words import alternatives
from app.core.text.patterns import compiled

MAX_LINE_LENGTH: Final = 160  # the most characters of one line, which can only be kept or lost as a whole
_MAX_VALUE_LENGTH: Final = 48  # the most characters of a value; longer text is prose
_MAX_WORDS_OF_VALUE: Final = 3  # the most words of a value; more words are prose
_MAX_WORDS_AFTER_NUMBER: Final = 5
"""The most words of a value that begins with a number, such as an address or a telephone number."""
_MAX_RUN_LENGTH: Final = 26
"""Characters of consecutive codes that are kept or lost together: a flight, from where, where to, when."""
_FEW_SCALARS: Final = 3  # scalars; amounts identify a record with at most so many
_MAX_RECORDS: Final = 60  # the most records of one list
_DEEPEST: Final = 8
_MAX_DUMP_LENGTH: Final = 200_000  # the most characters of a dump that are read
_MAX_LINES: Final = 80
_MAX_WORD_LENGTH: Final = 400  # the most characters of an id, an address or a path

_EXACT: Final = compiled(
    r"(?=[^\s]*\d)(?=[^\s]*[^\W\d])[^\s]{3,}"  # letters and digits in one word: an id, a code, a flight
    r"|[^\s@]++@[^\s@][^\s@.]*+\.[^\s@]++|\w++://\S++|/\S++"
    r"|[^\W\d][^\W_]*+_[\w.-]++(?:/[\w.-]++)*+|[^\W\d]\w*+(?:/[\w.-]++)++"  # a name in code, a path
    r"|\d{4}-\d{2}-\d{2}\S*|\d{5,}|[A-Z]{2,6}"
)
_CLOCK: Final = compiled(r"\d{1,2}:\d{2}(?::\d{2})?(?:[Z+\-.]\S{0,12})?")
_STAMP: Final = compiled(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*")
_NUMBER: Final = compiled(r"[-+]?[\d.,]{1,12}")
_CODE: Final = compiled(r"[A-Z]{2,6}|(?=\S*\d\S*\d)[\w-]{4,}")
_YES_OR_NO: Final = frozenset({"yes", "no", "true", "false"})
_CELL_SEPARATOR: Final = compiled(r"[,;]\s+|\s\|\s")
RECORD_SEPARATOR: Final = " | "
"""The separator between two records of a list, so that no value seems to belong to a neighbouring record."""

_MAX_INLINE_SCALARS: Final = 6  # the most scalars of a record inside another one that is written as a part of it
_MEASURE_KEY: Final = compiled(rf"(?i)(?:^|_)(?:{alternatives('values', 'measures')})$")
_NAMED_VALUE: Final = compiled(r"([^\W\d][\w.-]{0,40})=(?=.)")
OUTCOME_SEPARATOR: Final = " — "
"""The separator between a call and the tool's words about it."""

_CALL: Final = compiled(rf"([^\W\d][\w.-]{{0,60}})\((.*?)\)(?:{OUTCOME_SEPARATOR}(?s:.*+))?")
_LEAD: Final = compiled(r"[^\W\d][\w .-]{0,40}: ")
_DIGITS: Final = compiled(r"\d+")
_LETTERS: Final = compiled(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class DataLine:
    """One line made from a dump: values after their names."""

    text: str
    codes: tuple[str, ...]
    """Ids, codes, addresses, dates."""
    words: tuple[str, ...]
    """Names and kinds: ``economy``, ``Boston``."""
    amounts: tuple[str, ...]
    """Numbers, times of day, yes and no."""

    @property
    def stems(self) -> frozenset[str]:
        """The values of the line, each as a whole, for telling repetition from news."""
        return frozenset(value.casefold() for value in (*self.codes, *self.words, *self.amounts))


def parsed_dump(text: str) -> Any:
    """The data of a dump; ``None`` if it is not a JSON object or list."""
    stripped = text.strip()
    if stripped[:1] not in {"{", "["} or len(stripped) > _MAX_DUMP_LENGTH:
        return None
    try:
        found = data_in(stripped)
    except ValueError:
        return None
    return found if isinstance(found, Mapping | list) else None


def lines_from_data(data: Any) -> list[DataLine]:
    """The lines for a tool's data, in its order; exact values and words come first, a record's amounts after them."""
    ledger = _LineCollector()
    ledger.read("", data, 0)
    return ledger.lines[:_MAX_LINES]


def parse_line(text: str) -> DataLine:
    """The line that has this text, as ``lines_from_data`` made it: ``flight: HAT030, LAX, ORD; economy``."""
    _, cells = _name_and_cells(text)
    return _line(text, [leaf for cell in cells for leaf in cell])


def terse_parts(
    text: str, seen_values: set[str], *, amounts: bool = True, heads: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, list[str]]:
    """A line as its name and its parts, without names before values, and without values that were already seen.

    The remaining values are added to ``seen_values``. An amount without a name is joined to the part before it, or left
    out, since it says nothing by itself.
    """
    lead, cells = _name_and_cells(text)
    heads_elsewhere = heads if is_call(text) or _is_of_one_shape(leaf for cell in cells for leaf in cell) else {}
    parts: list[str] = []
    is_new = False
    for cell in cells:
        run: list[str] = []
        for leaf in cell:
            if leaf.kind == "amounts":
                if leaf.key:
                    parts.append(f"{leaf.key}={leaf.value}")
                elif is_new and amounts:
                    parts[-1] = f"{parts[-1]}, {leaf.value}"
                continue
            value = leaf.value.casefold()
            is_new = value not in seen_values and heads_elsewhere.get(value, text) == text
            if is_new:
                seen_values.add(value)
                if run and len(" ".join([*run, leaf.value])) <= _MAX_RUN_LENGTH:
                    parts.pop()
                    run.append(leaf.value)
                else:
                    run = [leaf.value]
                parts.append(" ".join(run))
    return lead, parts


def line_name(text: str) -> str:
    """The name before the values of a line, with its colon; empty without a name, and for a call."""
    lead = None if is_call(text) else _LEAD.match(text)
    return lead.group() if lead else ""


def records_in(text: str) -> list[str]:
    """The records of a line, each after the line's name."""
    name = line_name(text)
    return [f"{name}{record}" for record in text[len(name) :].split(RECORD_SEPARATOR)]


def joined_records(texts: Iterable[str]) -> Iterator[str]:
    """The lines in order, with records of the same list joined after the list's name."""
    for name, group in groupby(texts, line_name):
        if name:
            yield name + RECORD_SEPARATOR.join(text[len(name) :] for text in group)
        else:
            yield from group


def record_heads(texts: Iterable[str]) -> dict[str, str]:
    """The ids at the head of records, in lower case, each with its record: at other places they say less."""
    heads: dict[str, str] = {}
    for text in texts:
        head, leaves = _head_and_leaves(text)
        if head and not _is_of_one_shape(leaves):
            heads.setdefault(head.value.casefold(), text)
    return heads


def group_key(text: str) -> str:
    """A key that records of one list share: the line's name, or else the form of the id at their head."""
    if name := line_name(text):
        return name
    head, _ = _head_and_leaves(text)
    return _shape(head) if head and not head.key else ""


def _head_and_leaves(text: str) -> tuple[_Leaf | None, Sequence[_Leaf]]:
    leaves = [] if is_call(text) else [leaf for cell in _name_and_cells(text)[1] for leaf in cell]
    return next((leaf for leaf in leaves if leaf.kind == "codes"), None), leaves


def _is_of_one_shape(leaves: Iterable[_Leaf]) -> bool:
    return len({_shape(leaf) for leaf in leaves}) <= 1


def _shape(leaf: _Leaf) -> str:
    return _DIGITS.sub("0", _LETTERS.sub("a", leaf.value))


def is_call(text: str) -> bool:
    """Whether a text is a call: a name with arguments in brackets, and perhaps its outcome."""
    return _CALL.fullmatch(text) is not None


def _name_and_cells(text: str) -> tuple[str, list[list[_Leaf]]]:
    called = _CALL.fullmatch(text)
    lead = _LEAD.match(text)
    name, body = (f"{called[1]}: ", called[2]) if called else (lead.group(), text[lead.end() :]) if lead else ("", text)
    cells = [leaves for cell in _CELL_SEPARATOR.split(body) if (leaves := _leaves_of_cell(cell))]
    return name, [[_as_argument(leaf) for leaf in leaves] for leaves in cells] if called else cells


def _as_argument(leaf: _Leaf) -> _Leaf:
    # An argument of a call may be needed again, even if it is plain words: a command, a name.
    return replace(leaf, kind="codes") if leaf.kind == "words" else leaf


def _leaves_of_cell(text: str) -> list[_Leaf]:
    named = _NAMED_VALUE.match(text)
    key, body = (named.group(1), text[named.end() :]) if named else ("", text)
    words = body.split(" ")
    apart = len(words) > 1 and all(map(_is_code, words))
    return [leaf for word in (words if apart else [body]) if (leaf := _leaf(key, word))]


def line_from_fields(texts: Iterable[str]) -> DataLine | None:
    """A line of those fields that are values and not prose; ``None`` if there are none."""
    leaves = [leaf for text in texts if (leaf := _leaf("", text))]
    return _line(_line_text("", [leaves], named=False), leaves) if leaves else None


def is_code_like(word: str) -> bool:
    """Whether a word is an id, a code, an address, a path or a date."""
    return len(word) <= _MAX_WORD_LENGTH and _EXACT.fullmatch(word) is not None


def _is_code(word: str) -> bool:
    return is_code_like(word) or (len(word) <= _MAX_WORD_LENGTH and _CODE.fullmatch(word) is not None)


def _line(text: str, leaves: Sequence[_Leaf]) -> DataLine:
    by_kind = {
        kind: tuple(dict.fromkeys(leaf.value for leaf in leaves if leaf.kind == kind))
        for kind in ("codes", "words", "amounts")
    }
    return DataLine(text=text, **by_kind)


@dataclass(frozen=True, slots=True)
class _Leaf:
    key: str
    value: str
    kind: str
    """``codes``, ``words`` or ``amounts``."""

    @property
    def is_code(self) -> bool:
        """Whether a value can follow another one without a comma between them."""
        return self.kind != "amounts" and _is_code(self.value)

    def rendered(self, *, named: bool) -> str:
        if named and _CODE.fullmatch(self.key):
            return f"{self.key}, {self.value}"  # the key is a value itself: an airport, a currency
        return f"{self.key}={self.value}" if named and self.key else self.value


class _LineCollector:
    def __init__(self) -> None:
        self.lines: list[DataLine] = []

    def read(self, name: str, data: Any, depth: int) -> None:
        if depth > _DEEPEST or len(self.lines) > _MAX_LINES:
            return
        if isinstance(data, Mapping):
            self._read_record(name, data, depth)
        elif isinstance(data, list):
            self._read_list(name, data, depth)

    def _read_record(self, name: str, data: Mapping[str, Any], depth: int) -> None:
        leaves, inside = _leaves_and_nested(data)
        self._add_leaves(name, [leaf for leaf in leaves if leaf.kind != "amounts"])
        self._add_leaves(name, [leaf for leaf in leaves if leaf.kind == "amounts"])
        for key, value in inside:
            records = _records_by_id(value)
            if records and len(records) > 1:
                self._read_list(key, records, depth + 1)
            else:
                self.read(key, value, depth + 1)

    def _read_list(self, name: str, data: Sequence[Any], depth: int) -> None:
        """Read a list: each record becomes a line of its own, without names of values; plain values share one line."""
        plain = [_leaf("", one) for one in data[:_MAX_RECORDS] if not isinstance(one, Mapping | list)]
        self._add_joined(name, [[leaf] for leaf in plain if leaf and leaf.kind != "amounts"])
        records: list[tuple[_Leaf, ...]] = []
        kinds: dict[tuple[str, ...], str] = {}
        for one in data[:_MAX_RECORDS]:
            if isinstance(one, list):
                self._read_list(name, one, depth + 1)
            elif isinstance(one, Mapping):
                leaves, inside = _leaves_and_nested(one)
                small = len(leaves) <= _FEW_SCALARS
                kept = [leaf for leaf in leaves if small or leaf.kind != "amounts"]
                for key, value in inside:
                    if _has_amounts_only(value):
                        kinds.setdefault(tuple(map(str, value)), key)
                    elif (part := _inline_leaves(value)) is not None:
                        kept += part
                    else:
                        self.read(key, value, depth + 1)
                records.append(tuple(_with_amounts_behind_head(kept)))
        for record in dict.fromkeys(records):
            if record:
                self._add_line(_line_text(name, [record], named=False), record)
        for names, key in kinds.items():  # records with only amounts, such as prices by class: write their keys
            self._add_joined(key, [[leaf] for one in names if (leaf := _leaf("", one))])

    def _add_leaves(self, name: str, leaves: Sequence[_Leaf]) -> None:
        line: list[_Leaf] = []
        for leaf in leaves:
            if line and len(_line_text(name, [[*line, leaf]], named=True)) > MAX_LINE_LENGTH:
                self._add_line(_line_text(name, [line], named=True), line)
                line = []
            line.append(leaf)
        if line:
            self._add_line(_line_text(name, [line], named=True), line)

    def _add_joined(self, name: str, records: Sequence[list[_Leaf]]) -> None:
        line: list[list[_Leaf]] = []
        for record in dict.fromkeys(map(tuple, records)):
            if line and len(_line_text(name, [*line, list(record)], named=False)) > MAX_LINE_LENGTH:
                self._add_line(_line_text(name, line, named=False), [leaf for one in line for leaf in one])
                line = []
            line.append(list(record))
        if line:
            self._add_line(_line_text(name, line, named=False), [leaf for one in line for leaf in one])

    def _add_line(self, text: str, leaves: Sequence[_Leaf]) -> None:
        self.lines.append(_line(text, leaves))


def _line_text(name: str, records: Sequence[Sequence[_Leaf]], *, named: bool) -> str:
    values = ", ".join(_record_text(record, named=named) for record in records)
    return f"{name}: {values}" if name else values


def _record_text(record: Sequence[_Leaf], *, named: bool) -> str:
    text, previous = "", None
    for leaf in _without_repeats(record):
        between = " " if previous and not named and previous.is_code and leaf.is_code else ", "
        text += f"{between if text else ''}{leaf.rendered(named=named)}"
        previous = leaf
    return text


def _without_repeats(record: Sequence[_Leaf]) -> Iterator[_Leaf]:
    # "visa" is left out beside "visa_4421", which says more.
    seen: set[str] = set()
    for leaf in record:
        begun = any(other.value != leaf.value and other.value.startswith(leaf.value) for other in record)
        if leaf.kind == "amounts" or not (begun or leaf.value in seen):
            seen.add(leaf.value)
            yield leaf


def _leaves_and_nested(data: Mapping[str, Any]) -> tuple[list[_Leaf], list[tuple[str, Any]]]:
    leaves: list[_Leaf] = []
    inside: list[tuple[str, Any]] = []
    for key, value in data.items():
        if isinstance(value, Mapping | list):
            inside.append((str(key), value))
        elif leaf := _leaf(str(key), value):
            leaves.append(leaf)
    return leaves, inside


def _with_amounts_behind_head(leaves: Sequence[_Leaf]) -> list[_Leaf]:
    # Before the head, an amount would seem to belong to the record before.
    heads = [place for kind in ("codes", "words") for place, leaf in enumerate(leaves) if leaf.kind == kind]
    front = leaves[: heads[0] + 1] if heads else ()
    return [*sorted(front, key=lambda leaf: leaf.kind == "amounts"), *leaves[len(front) :]]


def _inline_leaves(value: Any) -> list[_Leaf] | None:
    pairs = value.items() if isinstance(value, Mapping) else [("", one) for one in value]
    if len(pairs) > _MAX_INLINE_SCALARS or any(isinstance(one, Mapping | list) for _, one in pairs):
        return None
    found = [leaf for key, one in pairs if (leaf := _leaf(str(key), one))]
    return [leaf for leaf in found if leaf.kind != "amounts"]


def _leaf(key: str, value: Any) -> _Leaf | None:
    if value is None or value == "":
        return None
    text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    if (
        not text
        or len(text) > _MAX_VALUE_LENGTH
        or text.count(" ") >= (_MAX_WORDS_OF_VALUE if text[:1].isalpha() else _MAX_WORDS_AFTER_NUMBER)
    ):
        return None
    is_amount = isinstance(value, float) or (isinstance(value, int) and _MEASURE_KEY.search(key) is not None)
    if is_amount or text in _YES_OR_NO or _CLOCK.fullmatch(text) or _STAMP.fullmatch(text):
        return _Leaf(key, text, "amounts")
    if is_code_like(text) or (" " in text and any(map(str.isdigit, text))):
        return _Leaf(key, text, "codes")
    return _Leaf(key, text, "amounts" if _NUMBER.fullmatch(text) else "words")


def _records_by_id(value: Any) -> list[Any]:
    if not isinstance(value, Mapping) or not all(isinstance(one, Mapping) for one in value.values()):
        return []
    # An id that is also in its record is kept once.
    return [one if str(key) in map(str, one.values()) else {"": key, **one} for key, one in value.items()]


def _has_amounts_only(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(not isinstance(one, Mapping | list) and _kind(one) == "amounts" for one in value.values())


def _kind(value: Any) -> str:
    leaf = _leaf("", value)
    return leaf.kind if leaf else ""
