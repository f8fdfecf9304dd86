"""Reads request bodies as JSON that Postgres and every client can store; they are checked only here.

The framework would accept what the database then refuses: NUL and lone surrogates, ``NaN``, numbers beyond 64 bits,
thousands of nested arrays.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from decimal import Decimal
from email.message import Message
from typing import Any, Final, NoReturn

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.exceptions import RequestValidationError

from app.core.model.errors import FieldError
from app.core.text.patterns import compiled
from app.http.errors import MAX_ERRORS
from app.http.refusals import BodyTooLargeError, UnreadableError, UnsupportedMediaTypeError, invalid_input
from app.off_loop import MAX_BYTES_ON_LOOP, off_loop

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 200_000
"""The most keys and values of one body. They are counted before parsing, since each takes some hundred bytes."""
MAX_INTEGER: Final = 2**63 - 1
MAX_INTEGER_LENGTH: Final = 400
"""The most characters of a whole number, its sign included. A longer one would be infinite as a double."""
PREFLIGHTED_HEADERS: Final = ("x-stainless-lang",)
"""Headers that stand in for the JSON type in requests without a body, since some clients then leave the type out.

A page of another site cannot send them without a preflight request (CORS).
"""
MAX_CONTENT_TYPE_LENGTH: Final = 200
"""The most characters of a ``Content-Type``."""
SHOWN_KEY_CHARACTERS: Final = 64
"""How many characters of a key an error repeats."""

_JSON_TYPE: Final = "application/json"
_CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii"})
_STRING_PATTERN: Final = compiled(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""A JSON string, or one without its end, so that the body is searched only once."""
Steps = tuple[str | int, ...]


class JsonRequest(Request):
    """A request whose body is read strictly, before the framework looks at it."""

    _document: Any = None
    size: int = 0
    """The size of the body in bytes."""

    async def read(self) -> None:
        """Read and check the body.

        Raises:
            UnreadableError: The body is not JSON, or is nested too deeply.
            BodyTooLargeError: It has more keys and values than ``MAX_VALUES``.
            UnsupportedMediaTypeError: The request does not declare its body as JSON. A POST has to, even without a
                body: no browser sends this type, or the headers of ``PREFLIGHTED_HEADERS``, to another site without a
                preflight.
            InvalidInputError: A text or a number in it cannot be stored; the field is named.
        """
        body = await self.body()
        if not body and self.method != "POST":
            return
        asked_first = not body and any(self.headers.get(name) for name in PREFLIGHTED_HEADERS)
        if not is_json(self.headers.get("content-type", "")) and not asked_first:
            raise UnsupportedMediaTypeError(
                "Send the body as application/json: add the header `Content-Type: application/json`, also to a POST"
                " without a body."
            )
        if not body:
            return
        self.size = len(body)
        self._document = await off_loop(parse, body, size=self.size)

    async def json(self) -> Any:
        """The parsed document, or the validated value that ``checked`` put in its place."""
        return self._document

    async def checked(self, field: ModelField) -> None:
        """Check a large body's fields off the event loop; the framework then finds the finished value.

        Raises:
            RequestValidationError: As the framework would raise it, which checks small bodies itself.
        """
        if self.size <= MAX_BYTES_ON_LOOP or self._document is None:
            return
        given = self._document
        value, faults = await off_loop(lambda: field.validate(given, {}, loc=("body",)))
        if faults:
            raise RequestValidationError(faults, body=given)
        self._document = value


def is_json(content_type: str) -> bool:
    """Whether a ``Content-Type`` is JSON in UTF-8."""
    if content_type == _JSON_TYPE:
        return True  # as nearly all clients write it
    if len(content_type) > MAX_CONTENT_TYPE_LENGTH:
        return False  # reading its parameters takes quadratic time
    header = Message()
    header["content-type"] = content_type
    is_application = header.get_content_maintype() == "application"
    subtype = header.get_content_subtype()
    charset = header.get_content_charset("utf-8")
    return is_application and (subtype == "json" or subtype.endswith("+json")) and charset in _CHARSETS


def parse(body: bytes) -> Any:
    """The document, checked; see ``JsonRequest.read`` for what is refused."""
    try:
        text = body.decode()
        _refuse_many_values(text)
        document = json.loads(text, parse_constant=_refuse_constant, parse_int=_whole_number)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"The body is not valid JSON in UTF-8{_place_of_error(error, body)}.") from None
    faults: list[FieldError] = []
    _find_faults(document, (), faults)
    if faults:
        raise invalid_input(faults)
    return document


def _whole_number(digits: str) -> int | float:
    if len(digits) > MAX_INTEGER_LENGTH:
        return float(digits)  # infinite: refused with its field, while ``int`` would refuse the whole body
    whole = int(digits)
    if abs(whole) <= MAX_INTEGER:
        return whole
    # Postgres, and so every answer, writes the double 1e22 with 23 digits; such numbers are read as the double.
    with contextlib.suppress(OverflowError):
        if Decimal(repr(double := float(whole))) == whole:
            return double
    return whole


def _refuse_many_values(text: str) -> None:
    # All separators are counted first, since finding out which of them are inside strings takes longer.
    if _count_separators(text, 0, len(text)) > MAX_VALUES and _has_many_values(text):
        raise BodyTooLargeError(
            f"The body has more than {MAX_VALUES} keys and values: send it in parts.", extra={"limit": MAX_VALUES}
        )


def _has_many_values(text: str) -> bool:
    count = end = 0
    for number, found in enumerate(_STRING_PATTERN.finditer(text)):
        count += _count_separators(text, end, found.start())
        end = found.end()
        if max(count, number) > MAX_VALUES:  # a text is a key or a value itself
            return True
    return count + _count_separators(text, end, len(text)) > MAX_VALUES


def _count_separators(text: str, start: int, end: int) -> int:
    return sum(text.count(sign, start, end) for sign in ",:[{")


def _place_of_error(error: Exception, body: bytes) -> str:
    if isinstance(error, UnicodeDecodeError):
        *lines, line = body[: error.start].split(b"\n")
        return f": line {len(lines) + 1}, column {len(line.decode()) + 1} (no UTF-8)"
    if isinstance(error, json.JSONDecodeError):
        problem = error.msg.partition(" (")[0].partition(":")[0].removesuffix(" at")
        return f": line {error.lineno}, column {error.colno} ({problem[:1].lower()}{problem[1:]})"
    if isinstance(error, _ConstantError):
        return f" ({error} is no JSON)"
    return " (nested too deep)" if isinstance(error, RecursionError) else ""


class _ConstantError(ValueError):
    """``NaN`` or ``Infinity``, which JavaScript has, but not JSON."""


def _refuse_constant(name: str) -> NoReturn:
    # ``NaN`` and ``Infinity`` are JavaScript, but not JSON.
    raise _ConstantError(name)


def _find_faults(value: Any, path: Steps, faults: list[FieldError]) -> None:
    if len(path) >= MAX_DEPTH and isinstance(value, dict | list):
        raise UnreadableError(f"The body is nested deeper than {MAX_DEPTH} levels.")
    if len(faults) >= MAX_ERRORS:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, (*path, key), faults)
            _find_faults(item, (*path, key), faults)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _find_faults(item, (*path, index), faults)
    elif isinstance(value, str):
        _check_text(value, path, faults)
    elif isinstance(value, int | float):
        _check_number(value, path, faults)


def _check_text(text: str, path: Steps, faults: list[FieldError]) -> None:
    if "\0" in text:
        faults.append(FieldError(field=_dotted_path(path), message="must not contain the character NUL"))
    elif not _is_encodable(text):
        faults.append(FieldError(field=_dotted_path(path), message="must not contain half of a surrogate pair"))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_number(number: float, path: Steps, faults: list[FieldError]) -> None:
    if isinstance(number, int):
        if abs(number) > MAX_INTEGER:
            faults.append(FieldError(field=_dotted_path(path), message="must fit into 64 bits"))
    elif not math.isfinite(number):
        faults.append(FieldError(field=_dotted_path(path), message="is too large for a number"))


def _dotted_path(path: Steps) -> str:
    # An invalid key must not make the answer that names it invalid.
    return ".".join(_printable(step) for step in path) or "body"


def _printable(step: str | int) -> str:
    if isinstance(step, int):
        return str(step)
    return step[:SHOWN_KEY_CHARACTERS].encode(errors="backslashreplace").decode().replace("\0", "\\u0000")
