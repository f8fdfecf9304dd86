"""The state schemas by name, each one value."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from app.core.model.schemas.handoff import HANDOFF
from app.core.model.schemas.research import RESEARCH
from app.core.model.schemas.session import SESSION
from app.core.model.schemas.summary import SUMMARY
from app.core.model.state import StateSchema

__all__ = ["HANDOFF", "RESEARCH", "SCHEMAS", "SESSION", "SUMMARY", "in_order", "schema_named"]

SCHEMAS: Final[Mapping[str, StateSchema]] = MappingProxyType(
    {schema.name: schema for schema in (SESSION, HANDOFF, SUMMARY, RESEARCH)}
)


def schema_named(name: str) -> StateSchema:
    """The schema of that name; ``KeyError`` when there is none."""
    return SCHEMAS[name]


def in_order(schema: StateSchema, state: Mapping[str, Any]) -> dict[str, Any]:
    """A state with its fields in the schema's order, which JSONB does not keep."""
    return {field.name: state[field.name] for field in schema.fields if field.name in state}
