"""Every statement can be kept as text, for every kind of session, with the tenant's condition."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from types import NoneType
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Integer, bindparam, insert, select, update
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlmodel import col

from app.storage import tenancy
from app.storage.compiled import CompiledStatement, can_join, compiled_for, joined_sql
from app.storage.tables import ConversationRow, EventRow

import_module("app.storage.unit_of_work")  # loads every repository, whose statements register themselves
DIALECT = PGDialect_asyncpg()  # type: ignore[no-untyped-call]
NO_TENANT: Any = NoneType
KINDS = (NoneType, tenancy.TenantCriteria, tenancy.UserCriteria)
NAMES = ("tenant_id", "conversation_id", "number", "type")
NEW = insert(EventRow).values({name: bindparam(f"new_{name}") for name in NAMES})


@pytest.mark.parametrize("kind", KINDS)
def test_every_statement_that_is_kept_compiled_becomes_text(kind: type) -> None:
    own = [statement for statement in tenancy._kept_compiled if not (statement.is_insert and kind is NoneType)]
    assert len(own) > 20
    for statement in own:
        text = compiled_for(statement, DIALECT, kind).text
        assert "POSTCOMPILE" not in text
        assert kind is NoneType or "tenant_id = $" in text or text.startswith("INSERT")


def test_a_value_that_is_missing_is_named() -> None:
    statement = select(EventRow).where(col(EventRow.number) == bindparam("number"))
    compiled = compiled_for(statement, DIALECT, tenancy.TenantCriteria)
    with pytest.raises(KeyError, match="number"):
        compiled.arguments({tenancy.TENANT_VALUE: None})


@pytest.mark.parametrize(
    "statement",
    [
        select(EventRow).where(col(EventRow.number).in_([1, 2])),
        select(EventRow, col(ConversationRow.id)).join(ConversationRow, col(ConversationRow.id) == EventRow.number),
    ],
)
def test_what_cannot_be_text_once_and_for_all_is_refused(statement: object) -> None:
    with pytest.raises(ValueError, match=r"depends|object and more"):
        CompiledStatement(statement, statement, DIALECT)


def test_what_is_always_the_same_is_no_value() -> None:
    number = bindparam("number", type_=Integer)
    statement = select(EventRow).where(col(EventRow.type) != "it's", col(EventRow.type) != "append", number < 7)
    compiled = compiled_for(statement.where(number > col(EventRow.number)).limit(1), DIALECT, NO_TENANT)
    assert "!= 'append'::VARCHAR" in compiled.text
    assert "$2::INTEGER < '7'::INTEGER AND $2::INTEGER > events.number" in compiled.text
    assert compiled.text.endswith("LIMIT '1'::INTEGER")
    assert compiled.arguments({"number": 5}) == ["it's", 5]


def test_an_insert_takes_the_tenant_of_its_session() -> None:
    compiled = compiled_for(NEW, DIALECT, tenancy.TenantCriteria)
    given = dict.fromkeys((f"new_{name}" for name in NAMES), "of another") | {tenancy.TENANT_VALUE: "own"}
    assert compiled.arguments(given)[0] == "own"


def test_ids_and_words_of_our_own_are_spelt_out() -> None:
    statement = select(EventRow).where(col(EventRow.type) == bindparam("type"), col(EventRow.number) < 2)
    compiled = compiled_for(statement, DIALECT, NO_TENANT)
    assert "events.type = 'append'" in compiled.text_with_values(["append", "2"])
    assert compiled.text_with_values([timedelta(seconds=75), "2"]).count("'0 days 75 seconds 0 microseconds'") == 1
    assert f"'{{{UUID(int=1)},{UUID(int=2)}}}'" in compiled.text_with_values([[UUID(int=1), UUID(int=2)], "2"])


@pytest.mark.parametrize("value", ["it's", "a b", "", "ä", "$1", "\\", "a" * 65])
def test_any_other_text_is_spelt_out_in_digits(value: str) -> None:
    compiled = compiled_for(select(EventRow).where(col(EventRow.type) == bindparam("type")), DIALECT, NO_TENANT)
    written = f"convert_from(decode('{value.encode().hex()}', 'hex'), 'UTF8')"
    assert compiled.text_with_values([value]) == compiled.text.replace("$1", written)


@pytest.mark.parametrize(("value", "written"), [(5, "'5'"), (-5, "'-5'"), (None, "NULL"), (True, "'True'")])
def test_numbers_and_nothing_are_spelt_out(value: object, written: str) -> None:
    compiled = compiled_for(select(EventRow).where(col(EventRow.type) == bindparam("type")), DIALECT, NO_TENANT)
    assert compiled.text_with_values([value]) == compiled.text.replace("$1", written)


@pytest.mark.parametrize("value", [["x'"], ["a b"], ["null"], [None], [5], b"x", 5.5, {"a": 1}, object()])
def test_nothing_else_is_spelt_out(value: object) -> None:
    compiled = compiled_for(select(EventRow).where(col(EventRow.type) == bindparam("type")), DIALECT, NO_TENANT)
    with pytest.raises(ValueError, match="spelt out"):
        compiled.text_with_values([value])


def test_statements_go_together_with_their_values_one_after_the_other() -> None:
    one = compiled_for(NEW, DIALECT, tenancy.TenantCriteria)
    two = compiled_for(select(EventRow).where(col(EventRow.type) == bindparam("type")), DIALECT, NO_TENANT)
    assert joined_sql((one,)) == one.text
    whole = joined_sql((one, one, two))
    second = one.text
    for place in range(one.count, 0, -1):
        second = second.replace(f"${place}:", f"${place + one.count}:")
    last = two.text.replace("$1", f"${2 * one.count + 1}")
    assert whole == f"WITH part_0 AS ({one.text}), part_1 AS ({second}) {last}"


def test_only_new_rows_of_one_table_go_together() -> None:
    kind = tenancy.TenantCriteria
    new = compiled_for(NEW, DIALECT, kind)
    changed = compiled_for(update(EventRow).values({"type": bindparam("new_type")}), DIALECT, kind)
    elsewhere = compiled_for(update(ConversationRow).values({"title": bindparam("new_title")}), DIALECT, kind)
    assert can_join(new, [new, elsewhere])
    assert can_join(elsewhere, [new, changed])
    assert not can_join(changed, [new])
    assert not can_join(new, [changed])
    assert not can_join(changed, [changed])
