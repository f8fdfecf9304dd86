from __future__ import annotations

import pytest
from pydantic import ValidationError

from app.core.model.schemas import SCHEMAS, SESSION, schema_named
from app.core.model.schemas.session import SessionState


def test_the_state_has_exactly_the_four_fields_with_their_defaults() -> None:
    assert SessionState().model_dump() == {"logos": [], "pathos": [], "abstract": [], "conversation_summary": ""}


def test_any_other_field_is_refused() -> None:
    with pytest.raises(ValidationError):
        SessionState.model_validate({"logos": [], "ethos": []})


def test_the_schema_names_each_field_of_the_model_once_with_its_role() -> None:
    assert [field.name for field in SESSION.fields] == list(SessionState.model_fields)
    assert [field.role for field in SESSION.fields] == ["fact", "style", "known", "narrative"]
    assert [field.is_list for field in SESSION.fields] == [True, True, True, False]


def test_every_field_says_what_to_ask_for_and_the_schema_how_to_use_it() -> None:
    assert SESSION.use
    assert all(field.ask for field in SESSION.fields)


def test_schemas_are_found_by_name() -> None:
    assert schema_named("session") is SESSION
    assert list(SCHEMAS) == ["session", "handoff", "summary", "research"]
    with pytest.raises(KeyError):
        schema_named("diary")
