"""Compares what a stream brings with the events that openapi.json declares."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from app.http.event_schemas import UNIONS


class UndeclaredError(AssertionError):
    """An event that is not what the document says."""


def check_event(union: str, event: Any) -> None:
    """Insist that an event is one of a union of the document: every field is declared and of its type.

    Args:
        union: A schema's name.
        event: As JSON.

    Raises:
        UndeclaredError: Naming what differs.
    """
    adapter = UNIONS[union]
    try:
        read = adapter.validate_python(event)
    except ValidationError as error:
        raise UndeclaredError(f"{union}: {error}") from error
    again = adapter.dump_python(read, mode="json", exclude_unset=True)
    if again != event:
        raise UndeclaredError(f"{union}: {event} is declared as {again}")
