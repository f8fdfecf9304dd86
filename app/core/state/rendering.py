"""Writes a state as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.core.model.state import StateField, StateSchema
from app.core.text.localization.catalogue import Catalogue, catalogue_of


def render_text(schema: StateSchema, state: Mapping[str, Any], locale: str = "en") -> str:
    """The fields of a state under headings in the locale's language, in the schema's order; empty fields are left out.

    If the last field of the schema is a text, it is about everything before it, and comes first, without a heading.
    """
    narrative_field = next((field for field in schema.fields[-1:] if not field.is_list), None)
    opening = [str(state[narrative_field.name])] if narrative_field and state.get(narrative_field.name) else []
    sections = (field for field in schema.fields if field is not narrative_field and state.get(field.name))
    catalogue = catalogue_of(locale)
    return "\n\n".join([*opening, *(_section(field, state[field.name], catalogue) for field in sections)])


def _section(field: StateField, value: Any, catalogue: Catalogue) -> str:
    heading = catalogue.word("state", field.name).capitalize()
    lines = [f"- {text}" for text in value] if field.is_list else [str(value)]
    return "\n".join([f"{heading}:", *lines])
