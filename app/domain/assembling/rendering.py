"""A state as text, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.states.state import StateField, StateSchema


def render_text(schema: StateSchema, state: Mapping[str, Any]) -> str:
    """The narrative first, then each list under its heading; empty fields are left out."""
    filled = [field for field in schema.fields if state.get(field.name)]
    filled.sort(key=lambda field: field.is_list)  # stable: the narrative first, the lists in the schema's order
    return "\n\n".join(_rendered(field, state[field.name]) for field in filled)


def _rendered(field: StateField, value: Any) -> str:
    if not field.is_list:
        return str(value)
    heading = field.name.replace("_", " ").capitalize()
    return "\n".join([f"{heading}:", *(f"- {text}" for text in value)])
