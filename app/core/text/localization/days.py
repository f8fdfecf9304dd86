"""Days as the chat model reads them."""

from __future__ import annotations

from datetime import date

from app.core.text.localization.catalogue import Catalogue


def date_line(day: date, say: Catalogue, *, with_year: bool) -> str:
    """A day with its weekday, as the conversation's language writes it."""
    month, weekday = say.text(f"context.month.{day.month}"), say.text(f"context.weekday.{day.isoweekday()}")
    key = "context.date" if with_year else "context.date_same_year"
    return say.text(key, weekday=weekday, day=str(day.day), month=month, year=str(day.year))
